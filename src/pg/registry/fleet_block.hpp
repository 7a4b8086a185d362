// Blocks of a segment's values, for members that are attached to it:
//
//   1. A block is durable before it is answered, as each answer is, and no other call gets its values
//      (segment/blocks.hpp).
//   2. It lies beyond the last value that the member shows, and beyond the last one that any member was given of a
//      segment of this name: a registry that has lost commits does not give the former up again, and a segment that was
//      made again gives none of the latter. A member's claim that uses up more values than a failover loses is refused,
//      and logged.
//   3. The member's role needs USAGE on the segment's sequence, as every role that draws from it.
#pragma once

#include "fleet_request.hpp"

namespace uidgen::pg {

// Finds the segment that the request names, locks its sequence, and opens an entry of it: before the registry's lock is
// taken. Refuses while a session alters the sequence, because waiting for it would hold up what else is in the call.
void open_segment(const Registry &registry, Call *call);

// Answers with a block, which it reserves and writes down, or only with what the segment is like; or refuses. Under the
// registry's lock.
void give_block(Call *call);

} // namespace uidgen::pg
