// A segment that is attached to one of a fleet's registry: its ranges are blocks that the registry gave.
//
// Why no value is handed out twice in the fleet, while the registry loses no commit:
//   1. The registry reserves a block durably before it answers, and gives it to one server (registry/fleet_block.cpp).
//   2. A block leaves its place once, and becomes the slot's range under the page's lock (take_block()).
//      It then counts as a range that was reserved on the sequence: its last value is on the page, logged, and durable
//      before its first value is handed out.
//   3. It counts only if it lies beyond the page's value. So the page always shows the last value that this database
//      was given, after a crash and on a standby that is promoted, too. Asks show it to the registry.
//   4. What is left of a range or a block when the server stops is lost.
// The sequence of an attached segment is one that nextval cannot move: one increment exceeds its maximum.
#pragma once

#include "core/range.hpp"
#include "memory/blocks.hpp"
#include "config/rows.hpp"

namespace uidgen::pg {

// Asks the registrar for a block, unless one is asked for or ready. Returns at once. Error if the server is in no
// fleet.
void ask_registry(Slot *segment, const SegmentRow &row, int64_t values, int64_t shown, Counters *counters);

// After ask_registry(): returns when there may be a block. Error if the registry refuses, or after uidgen.max_wait.
// *give_up_at_us is 0 in the first call of a draw.
void wait_for_block(Slot *segment, const SegmentRow &row, int64_t *give_up_at_us, Counters *counters);

// What take_block() needs, made before the page is locked.
struct BlockSource {
    BlockPlace *place;
    const char *name; // at the registry, in UTF-8
};
BlockSource block_source(const Slot *segment, const SegmentRow &row);

// The values of the block that is ready, if it follows the counter; a count of 0: there is none. Under the page's
// exclusive lock.
core::PlannedRange take_block(Slot *segment, const BlockSource &source, const SegmentRow &row,
                              const core::SequenceState &counter);

// Error if the segment is attached: then its sequence is neither set nor reserved from. `function` leads to the
// extension's tables.
void refuse_attached(Oid function, Oid sequence);

} // namespace uidgen::pg
