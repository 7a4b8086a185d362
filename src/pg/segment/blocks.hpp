// Blocks of a segment's values for callers outside, each contiguous and given to its caller alone.
#pragma once

#include "core/range.hpp"
#include "session/session.hpp"

namespace uidgen::pg {

// Reserves a block of exactly `count` (>= 1) values for the caller alone: moves the counter and logs it, under the
// page's lock, and makes it as durable as a range before it returns. The entry must be open. Error, and nothing is
// reserved, if fewer values are left before the sequence's bound.
//
// The block begins after the counter, so it is above everything reserved before it, by any session. What is left of the
// segment's own ranges stays valid: it lies below the counter, and the slot expects the page as this call leaves it.
// But the slot first adopts what another command did to the page (with_locked_page()), which discards them. Before
// that it calls check_not_rewritten().
// An attached segment is an error: its values are the registry's to reserve. So is a block of more values than a range
// of the segment may have, unless the role may move the counter anyhow.
core::PlannedRange reserve_block(const SessionEntry *entry, uint64_t count)
    EXCLUDES(page_lock, table_lock, slot_lock, state_lock);

// How many values a range of the segment may have, by its slot and the settings (segment_config()).
core::StepBounds step_bounds_of(const SessionEntry *entry, const core::SequenceRule &rule)
    EXCLUDES(slot_lock, state_lock);

// Too few values are left for a block. `way_out` ends the hint.
[[noreturn]] void report_too_few(Oid sequence, uint64_t count, const char *way_out);

// Whether the counter may have lost what lies between it and a value that was handed out (core::is_credible_loss()): by
// the arguments alone.
bool is_credible(const core::SequenceState &counter, const core::SequenceRule &rule, const core::StepBounds &bounds,
                 int64_t shown);

struct BlockLength {
    uint64_t least;
    uint64_t most;
    uint64_t rest; // if fewer values would be left, they belong to the block, too
};
constexpr BlockLength exactly(uint64_t count) { return {.least = count, .most = count, .rest = 0}; }

// reserve_block() beyond a value that was handed out, whether or not the counter knows. A counter that does not is
// raised to that value in any case, and the segment's own ranges are discarded: after a restore it never stays below
// what rows show. The result has a count of 0 if there are too few values. A value further beyond the counter than a
// failover loses is an error, unless the role may move the counter anyhow: it would use up the sequence. The caller has
// refused an attached segment (see check_not_attached()). A new file of the open transaction is not refused.
core::PlannedRange reserve_beyond(const SessionEntry *entry, const BlockLength &length, int64_t shown)
    EXCLUDES(page_lock, table_lock, slot_lock, state_lock);

// Error if the segment of an open entry is attached, by its slot: then its sequence is neither set nor reserved from.
void check_not_attached(const SessionEntry *entry) EXCLUDES(slot_lock, state_lock);
[[noreturn]] void report_attached(Oid sequence);

} // namespace uidgen::pg
