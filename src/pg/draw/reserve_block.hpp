// Blocks of a segment's values for callers outside: each is contiguous, and given to its caller alone.
#pragma once

#include "core/range.hpp"
#include "session/session.hpp"

namespace uidgen::pg {

// `count` values: first, first + increment, ..., last.
struct Block {
    int64_t first;
    int64_t last;
    int64_t increment;
};

// Reserves a block of exactly `count` (>= 1) values for the caller alone, as durable as a range before it is returned.
// The entry must be open. Error, and nothing is reserved, if fewer values are left before the sequence's bound.
//
// The block begins after the counter, so it is above everything reserved before it, by any session. What is left of the
// segment's own ranges stays valid: it lies below the counter, and the slot expects the page as this call leaves it.
// An attached segment is an error: its values are the registry's to reserve.
Block reserve_block(const SessionEntry *e, uint64_t count);

enum class BlockFault {
    none,
    too_few, // fewer values are left
    moved,   // the next value is another one
};

// The same without an error for too few values. If `first` is not null, the block must begin at that value.
BlockFault try_reserve_block(const SessionEntry *e, uint64_t count, const int64_t *first, Block *block);

// On a fleet's registry, for a member: up to `count` (>= 1) values, as many as a range of the segment's own may have,
// and beyond the last value that the member was given. So a registry that has lost commits never stands below what
// members show. The result has a count of 0 if no value is left.
core::PlannedRange reserve_for_member(const SessionEntry *e, int64_t count, int64_t shown);

} // namespace uidgen::pg
