// The processor's time-stamp counter: a cheap way to check that a short time has not passed yet.
//
// A window of the fast path ends with its tick (session.hpp). The slow path reads the wall clock together with the
// counter, and computes how far the counter may go before the tick is over. So the fast path need not read the wall
// clock at each call. Each window starts from a new reading, so errors do not add up. The price: a step of the wall
// clock is noticed only at the window's end, at most longest_without_clock_us later. In cached mode the counter bounds the
// age of an id, and is used for as long as that lasts.
//
// Used only where the counter runs at one rate and never stops: on x86 the invariant TSC (Intel SDM volume 3, 18.17.1;
// AMD APM volume 3, CPUID 8000_0007h), on arm64 the generic timer (Arm ARM, D12). Elsewhere, or with uidgen.use_counter
// off, every call reads the wall clock.
#pragma once

#include <cstdint>

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

namespace uidgen::pg {

inline uint64_t read_counter() {
#if defined(__x86_64__)
    return __rdtsc();
#elif defined(__aarch64__)
    uint64_t count;
    asm volatile("mrs %0, cntvct_el0" : "=r"(count));
    return count;
#else
    return 0;
#endif
}

// How far the counter goes in that time, rather less than more. 0: the counter cannot be used, or its rate is not known
// yet, as in the first tenth of a second in which a session draws.
uint64_t counter_distance(int64_t us);

constexpr int64_t longest_without_clock_us = 4000;
// After that a window of a long tick ends all the same, because the counter's rate may be known by then.
constexpr int64_t longest_without_counter_us = 100000;

} // namespace uidgen::pg
