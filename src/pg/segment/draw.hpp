// Drawing from a segment: its range in use, and the one reserved ahead.
#pragma once

#include "session/session.hpp"

namespace uidgen::pg {

// first, first + increment, ...
struct SegmentValues {
    uint64_t first;
    uint64_t increment;
    uint64_t count;
};

// The next values, up to `want` (>= 1), on the slow path. Leaves a window for the next calls. Error when the sequence
// is used up.
SegmentValues draw_segment(SessionEntry *e, uint64_t want);

} // namespace uidgen::pg
