// Blocks of a segment's values, for members that are attached to it.
//
//   1. A block is durable before it is answered, as each answer is, and no other call gets its values
//      (segment/draw.hpp).
//   2. It lies beyond the last value that the member shows, and beyond the last one that any member was given of a
//      segment of this name: a registry that has lost commits does not give the former up again, and a segment that was
//      made again gives none of the latter. A member's claim that uses up more values than a failover loses is refused,
//      and logged.
//   3. The member's role needs USAGE on the segment's sequence, as every role that draws from it.
#pragma once

#include "refusals.hpp"
#include "session/session.hpp"

namespace uidgen::pg {

// The segment that a call is about.
struct SegmentOfCall {
    Oid sequence;              // InvalidOid: there is none of that name
    bool is_allowed;           // to the caller's role
    const SessionEntry *entry; // if it may be used
};

// Finds the segment, and opens an entry of it, before the registry's lock is taken: a session that alters the sequence
// must not hold up all members.
SegmentOfCall open_segment(const Registry &registry, const FleetRequest &request);

// Returns whether the block was given, or else the answer says why not.
bool give_block(const Registry &registry, const SegmentOfCall &segment, Call *call);

} // namespace uidgen::pg
