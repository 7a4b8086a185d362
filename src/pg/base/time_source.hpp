// The clocks, each read in one place, and bounded, cancellable waits. Tests step the server's wall clock by preloading
// a library that replaces clock_gettime.
#pragma once

#include <cstdint>
#include <ctime>

#include "core/layout.hpp"
#include "locks.hpp"

namespace uidgen::pg {

constexpr int64_t ns_per_us = 1000;
constexpr int64_t us_per_ms = 1000;
constexpr int64_t us_per_second = 1000 * us_per_ms;
constexpr int64_t us_per_day = 86400 * us_per_second;

// A timestamptz counts microseconds from 2000-01-01; everything else here from 1970-01-01.
constexpr int64_t postgres_epoch_us = INT64_C(946684800) * 1000 * us_per_ms;
constexpr int64_t to_timestamptz(int64_t unix_us) { return unix_us - postgres_epoch_us; }
constexpr int64_t to_unix_us(int64_t timestamptz) { return timestamptz + postgres_epoch_us; }

// No layout begins before the first of these seconds or ends after the last one. So limiting the wall clock to them
// changes no decision, and sums and differences of readings never overflow.
constexpr int64_t first_second = -1;
constexpr int64_t last_second = core::max_instant_us / (1000 * us_per_ms);

// Microseconds since 1970-01-01 UTC. May step either way at any time. Nanoseconds would overflow in 2262. The coarse
// wall clock is not used, because its steps, up to coarse_lag_us, are longer than a tick.
inline int64_t wall_clock_us() {
    timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    int64_t seconds = now.tv_sec;
    seconds = seconds < first_second ? first_second : seconds;
    seconds = seconds > last_second ? last_second : seconds;
    return seconds * (1000 * us_per_ms) + now.tv_nsec / ns_per_us;
}

// The same in nanoseconds modulo 2^64: the shortest code for the difference between two readings.
inline uint64_t wall_clock_ns_modulo() {
    timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return static_cast<uint64_t>(now.tv_sec) * UINT64_C(1000000000) + static_cast<uint64_t>(now.tv_nsec);
}

// The monotonic clock, which never steps: measures how long a caller has waited. Counts from the machine's start.
inline int64_t monotonic_us() {
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<int64_t>(now.tv_sec) * (1000 * us_per_ms) + now.tv_nsec / ns_per_us;
}

// The monotonic clock as of the kernel's last timer interrupt, at most coarse_lag_us ago: a third of the cost.
constexpr int64_t coarse_lag_us = 10 * us_per_ms;
inline int64_t monotonic_coarse_us() {
    timespec now;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    return static_cast<int64_t>(now.tv_sec) * (1000 * us_per_ms) + now.tv_nsec / ns_per_us;
}

// The wall clock's offset above the monotonic clock: constant while the wall clock is not set. If it has changed by
// more than this, the clock has jumped.
inline int64_t clock_offset_us() { return wall_clock_us() - monotonic_us(); }
constexpr int64_t suspicious_jump_us = 10 * us_per_second;

// For waits of PostgreSQL, which end early when they are rounded down, and never if they are negative: what was due in
// a moment may be overdue when the wait begins.
inline long wait_ms(int64_t us) { return us > 0 ? static_cast<long>((us + us_per_ms - 1) / us_per_ms) : 0; }

// Sleeps for at most that long, or until the latch is set, and shows that wait event. Honours cancel and shutdown. The
// caller holds heavyweight locks at most.
inline void sleep_for(int64_t us, uint32 event) EXCLUDES(page_lock, table_lock, slot_lock, state_lock) {
    (void)WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH, wait_ms(us), event);
    ResetLatch(MyLatch);
    CHECK_FOR_INTERRUPTS();
}

} // namespace uidgen::pg
