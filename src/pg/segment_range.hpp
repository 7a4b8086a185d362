// Drawing from a segment: its ranges, the one reserved ahead, and the share that this backend takes from.
#pragma once

#include "attach.hpp"

namespace uidgen::pg {

// Consecutive values of a segment.
struct ValueRun {
    uint64_t first; // as int64_t; the arithmetic of sequences is modulo 2^64
    uint64_t increment;
    uint64_t count;
};

// The next values, up to `want` (>= 1), when the backend's share is used up or out of date. Error when the sequence
// is used up.
ValueRun draw_values(Attached *a, uint64_t want);

} // namespace uidgen::pg
