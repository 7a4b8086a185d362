// Drawing from a segment: its range in use, and the one reserved ahead.
//
// A segment that is attached to one of a fleet's registry has ranges that are blocks, which the registry gave. A block
// leaves its place once (memory/memberships.hpp), and becomes the slot's range under the page's lock, if it lies beyond
// the page's value. It then counts as a range that was reserved on the sequence. So the page always shows the last
// value that this database was given, and requests show it to the registry. docs/design.md, Segments of a fleet, says
// why no value is handed out twice. The sequence of an attached segment is one that nextval cannot move: one increment
// exceeds its maximum.
#pragma once

#include "memory/segment_state.hpp"
#include "session/session.hpp"

namespace uidgen::pg {

// first, first + increment, ...
struct SegmentValues {
    uint64_t first;
    uint64_t increment;
    uint64_t count;
};

// The next values, up to `want` (>= 1), on the slow path of an open entry: moves the word, and first makes a range
// durable (begin_segment_try()), reserves one on the page, or asks the registrar for a block and waits
// (reserve_or_ask()), if need be. Leaves a window for the next calls. Error when the sequence is used up, or when the
// registry gives no block within uidgen.max_wait.
SegmentValues draw_segment(SessionEntry *entry, uint64_t want) EXCLUDES(page_lock, table_lock, slot_lock, state_lock);

// A copy of the slot's configuration of the segment, with the settings where it leaves the step to them.
SegmentConfig segment_config(const Slot *slot) EXCLUDES(slot_lock, state_lock);

// A call that waits for a block of the registry.
struct BlockWait {
    int64_t began_us; // on the monotonic clock; 0: it has not waited yet
    Counters *counters;
};

// In a fleet asks the registrar for a block, in the slot, unless one is asked for or ready, by blocks_ask().
// Returns at once without `wait`, else when there may be a block; then it is an error if the server is in no fleet, if
// the registry refuses, or after uidgen.max_wait. Counts that in the counters of `wait`.
BlockAnswer ask_for_block(Slot *slot, const SegmentConfig &config, int64_t count, int64_t shown, BlockWait *wait)
    EXCLUDES(page_lock, slot_lock, state_lock);

} // namespace uidgen::pg
