// The last plausible reading of the wall clock, as its offset from the monotonic clock in microseconds. One figure for
// the whole server; a lease far ahead is written only after a comparison with it (draw_generator.cpp).
#pragma once

#include "base/compat.hpp"
#include "base/time_source.hpp"

namespace uidgen::pg {

int64_t trusted_clock_offset_us();

// False: another session has trusted another offset than `before_us` meanwhile.
bool trust_clock_offset(int64_t before_us, int64_t offset_us);

// By how much the wall clock was set since the server's start; all steps together, so 0 if it was set back.
int64_t clock_moved_us();

} // namespace uidgen::pg
