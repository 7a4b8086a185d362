// The node that the ids of one try carry: the generator's own, or in a fleet that of its grant.
//
// While uidgen.registry is set, a generator draws inside grants (memory/memberships.hpp), whose ticks bound what
// decide() allows. A try reads one grant, after the bounds of the generator's word and before the clock. Joining a
// fleet needs no pause:
//   1. The sessions follow the postmaster's setting, not their own, which they read late.
//   2. A try that has found no fleet uses ticks of a lease that it has seen before. The first session that finds the
//      fleet reads the high-water mark afterwards, under the page's lock. So all of those ticks are at or below the
//      mark that it shows to the registry together with the generator's own node.
#pragma once

#include "session/session.hpp"
#include "memory/memberships.hpp"

namespace uidgen::pg {

struct NodeGrant {
    bool in_fleet; // else `view` holds all ticks
    GrantView view;
};

NodeGrant read_node_grant(SessionEntry *e);

// The encoder for ids of that grant. A node that the generator's row of worker_node does not show yet gets a row.
core::IdEncoder granted_encoder(SessionEntry *e, const NodeGrant &grant, bool backup);

// The grant of a generator for a reader that has no entry, under the slot's lock; in a fleet without a grant: the
// generator has not drawn yet.
NodeGrant present_grant(const Slot *slot);

} // namespace uidgen::pg
