// The node that the ids of one try carry: the generator's own, or in a fleet that of its grant.
//
// While uidgen.registry is set, a generator draws inside grants (shared/grants.hpp), whose ticks bound what decide()
// allows. A try reads one grant, after the bounds of the generator's word and before the clock. Joining a fleet needs
// no pause:
//   1. The sessions follow the postmaster's setting, not their own, which they read late.
//   2. A try that has found no fleet uses ticks of a lease that it has seen before. The first session that finds the
//      fleet reads the high-water mark afterwards, under the page's lock. So all of those ticks are at or below the
//      mark that it shows to the registry together with the generator's own node.
//
// A new term (core/clock_policy.hpp) uses the ticks of earlier ones again. So the ids of a term have the node of a line
// that no other term draws with:
//   1. A line is begun after the word was read in the line's term, and the word never returns to an earlier term. So no
//      earlier term draws with it.
//   2. A try reads the word's last position first. If the place was found for another term, the try finds it again, and
//      grants_place() begins a new line, unless the present one is for the same term. So no later term draws with it. A
//      session that is late may begin a line for a term that is over: then only the term that the word is in can draw
//      with it.
//   3. The term begins with its lease, before it has a grant: no position of that lease is handed out but inside a
//      grant. A registry that is away delays the term, as it delays a newcomer.
#pragma once

#include "session/session.hpp"
#include "shared/grants.hpp"

namespace uidgen::pg {

struct NodeGrant {
    int place; // no_place: in no fleet, and `view` holds all ticks
    GrantView view;

    bool in_fleet() const { return place != no_place; }
};

// `last`: what the word held when the try began.
NodeGrant read_node_grant(SessionEntry *e, uint64_t last);

// The encoder for ids of that grant, in the term of a position. A node that the generator's row of worker_node does not
// show yet gets a row.
core::IdEncoder granted_encoder(SessionEntry *e, const NodeGrant &grant, uint64_t position, bool backup);

// Wakes the registrar if less of the grant is left from the clock's tick on than the generator may need for a lease.
void hurry_renewal(const SessionEntry *e, const NodeGrant &grant, int64_t now);

// The grant of a generator for a reader that has no entry; in_fleet() without a grant: the generator has not drawn yet.
NodeGrant present_grant(const GeneratorState &generator);

} // namespace uidgen::pg
