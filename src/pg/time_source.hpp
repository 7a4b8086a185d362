// The clocks, each read in one place. Tests step the wall clock under the server by preloading a library
// that replaces clock_gettime.
#pragma once

#include <cstdint>
#include <ctime>

namespace uidgen::pg {

constexpr int64_t ns_per_us = 1000;
constexpr int64_t us_per_ms = 1000;

// A timestamptz counts microseconds from 2000-01-01; everything else here from 1970-01-01.
constexpr int64_t postgres_epoch_us = INT64_C(946684800) * 1000 * us_per_ms;
constexpr int64_t to_timestamptz(int64_t unix_us) { return unix_us - postgres_epoch_us; }
constexpr int64_t to_unix_us(int64_t timestamptz) { return timestamptz + postgres_epoch_us; }

inline int64_t read_clock_ns(clockid_t clock) {
    timespec now;
    clock_gettime(clock, &now);
    return static_cast<int64_t>(now.tv_sec) * INT64_C(1000000000) + now.tv_nsec;
}

// Nanoseconds since 1970-01-01 UTC; may step either way at any time. Not the coarse clock: its steps of up
// to 4 ms are longer than a tick.
inline int64_t wall_clock_ns() { return read_clock_ns(CLOCK_REALTIME); }

// For measuring how long a caller has waited; never steps.
inline int64_t monotonic_ns() { return read_clock_ns(CLOCK_MONOTONIC); }

// The wall clock above the one that never steps: constant while the wall clock is not set.
inline int64_t clock_offset_us() { return (wall_clock_ns() - monotonic_ns()) / ns_per_us; }

} // namespace uidgen::pg
