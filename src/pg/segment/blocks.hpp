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
// An attached segment is an error: its values are the registry's to reserve. So is a block of more values than a range
// of the segment may have, unless the role may move the counter anyhow.
Block reserve_block(const SessionEntry *e, uint64_t count);

struct BlockWish {
    uint64_t least; // 1 to most
    uint64_t most;
    uint64_t rest; // if fewer values would be left, they belong to the block, too
    int64_t shown; // the block lies beyond it
};

// Error if the role may not move the counter anyhow, and the wish is for more values than a range of the segment may
// have, or lies further beyond the counter than a failover loses. It would use up the sequence.
void check_wish(const SessionEntry *e, const BlockWish &wish);

// reserve_block() for as many values as are left, beyond a value that was handed out, whether or not the counter knows.
// So after a restore the counter never stays below what rows or members show. The result has a count of 0 if there are
// too few. The caller has refused an attached segment.
core::PlannedRange reserve_beyond(const SessionEntry *e, const BlockWish &wish);

// On a fleet's registry, for a member: up to `count` (>= 1) values beyond the last value that the member was given. The
// result has a count of 0 if no value is left.
core::PlannedRange reserve_for_member(const SessionEntry *e, int64_t count, int64_t shown);

} // namespace uidgen::pg
