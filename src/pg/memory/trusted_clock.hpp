// The last plausible reading of the wall clock, as its offset from the monotonic clock in microseconds. One figure for
// the whole server; a lease far ahead is written only after a comparison with it (draw_generator.cpp).
#pragma once

#include "base/compat.hpp"
#include "base/time_source.hpp"

namespace uidgen::pg {

// A step by less is no reason for doubt.
constexpr int64_t suspicious_jump_us = INT64_C(10) * 1000 * us_per_ms;

int64_t trusted_clock_offset_us();
void trust_clock_offset(int64_t offset_us);

// Whether the wall clock agrees with the monotonic clock as it did at the server's start: it was not set since, or it
// was set back.
bool clock_is_as_at_start();

} // namespace uidgen::pg
