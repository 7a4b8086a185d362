// Blocks of a segment's values for callers outside, each contiguous and given to its caller alone; and ranges that are
// blocks of a fleet's registry.
#pragma once

#include "config/definition.hpp"
#include "core/range.hpp"
#include "memory/segment_state.hpp"
#include "session/session.hpp"

namespace uidgen::pg {

// Reserves a block of exactly `count` (>= 1) values for the caller alone, as durable as a range before it is returned.
// The entry must be open. Error, and nothing is reserved, if fewer values are left before the sequence's bound.
//
// The block begins after the counter, so it is above everything reserved before it, by any session. What is left of the
// segment's own ranges stays valid: it lies below the counter, and the slot expects the page as this call leaves it.
// An attached segment is an error: its values are the registry's to reserve. So is a block of more values than a range
// of the segment may have, unless the role may move the counter anyhow.
core::PlannedRange reserve_block(const SessionEntry *e, uint64_t count);

// Too few values are left for a block. `way_out` ends the hint.
[[noreturn]] void report_too_few(Oid sequence, uint64_t count, const char *way_out);

// Whether the counter may have lost what lies between it and a value that was handed out (core::is_credible_loss()).
bool is_credible(const core::SequenceState &counter, const core::SequenceRule &rule, const core::StepBounds &bounds,
                 int64_t shown);

struct BlockLength {
    uint64_t least;
    uint64_t most;
    uint64_t rest; // if fewer values would be left, they belong to the block, too
};

// reserve_block() beyond a value that was handed out, whether or not the counter knows. So after a restore the counter
// never stays below what rows show. The result has a count of 0 if there are too few values. A value further beyond the
// counter than a failover loses is an error, unless the role may move the counter anyhow: it would use up the sequence.
// The caller has refused an attached segment.
core::PlannedRange reserve_beyond(const SessionEntry *e, const BlockLength &length, int64_t shown);

// On a fleet's registry, for a member: up to `count` (>= 1) values beyond the last value that the member was given. The
// result has a count of 0 if no value is left. It is as durable as the transaction's commit.
core::PlannedRange reserve_for_member(const SessionEntry *e, int64_t count, int64_t shown);

// ---------------------------------------------------------------------------------------------------------
// A segment that is attached to one of a fleet's registry: its ranges are blocks that the registry gave.
//
// A block leaves its place once, and becomes the slot's range under the page's lock (take_block()), if it lies beyond
// the page's value. It then counts as a range that was reserved on the sequence. So the page always shows the last
// value that this database was given, and requests show it to the registry. docs/design.md, Segments of a fleet, says
// why no value is handed out twice. The sequence of an attached segment is one that nextval cannot move: one increment
// exceeds its maximum.
// ---------------------------------------------------------------------------------------------------------

// Asks the registrar for a block, unless one is asked for or ready. Returns at once. Error if the server is in no
// fleet.
void ask_registry(Slot *segment, const core::SegmentDefinition &definition, int64_t values, int64_t known,
                  Counters *counters);

// After ask_registry(): returns when there may be a block. Error if the registry refuses, or after uidgen.max_wait.
// *give_up_at_us is 0 in the first call of a draw.
void wait_for_block(Slot *segment, const core::SegmentDefinition &definition, int64_t *give_up_at_us,
                    Counters *counters);

// An attached segment's name at the registry, in UTF-8. Error if it is too long.
const char *name_at_registry(const core::SegmentDefinition &definition);

// The values of the block that is ready, if it follows the counter, and the database knows its term by that number; a
// count of 0: there is none. Under the page's exclusive lock, with name_at_registry().
core::PlannedRange take_block(Slot *segment, const char *name, const core::SegmentDefinition &definition, int64_t term,
                              const core::SequenceState &counter);

// Error if the segment is attached: then its sequence is neither set nor reserved from.
void refuse_attached(Oid sequence);

} // namespace uidgen::pg
