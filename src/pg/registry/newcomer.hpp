// Which node a newcomer gets: one that no other generator may use at its ticks.
//
//   disposable  a node that was never used, if a few random ones find one; otherwise the node whose grant ended first
//   sticky      the node that this generator of this server held last, if it is free; otherwise as disposable
//   static      the node with that worker number, or none
//
// The node is random, so that two registries that do not know of each other seldom choose the same. A login has no more
// than its share of the nodes when few are left, so that a stolen one leaves the others theirs. The caller holds the
// registry's lock.
#pragma once

#include "fleet_request.hpp"

namespace uidgen::pg {

// What a call has found out for its newcomers, so that it need not look again for each of them.
struct Newcomers {
    const Call *full;    // the last one for which there was no node; null: there was none
    const Call *counted; // the one for whose pool and datacenter id the rest was counted; null: nothing was
    // How many nodes have grants that last: the login's in the pool, its own among nodes_for() them, and all of these.
    int64_t own_of_pool;
    int64_t own;
    int64_t used;   // negative: it was not counted, as the next one
    int64_t logins; // that have one
};

// Grants a node, or refuses.
void admit_newcomer(const Registry &registry, Newcomers *known, Call *call);

// Writes down that the member drew with a node before it joined the fleet. The node is one of its login's until then,
// because anyone can say so.
void note_use_before(const Registry &registry, Newcomers *known, const Call &call);

// False: no node is free; of static, *found is the row that is in the way.
bool find_node(const Registry &registry, const Call &call, NodeRecord *found);

// Writes the node's row with the member as it describes itself.
void put_member(const Registry &registry, const Call &call, const core::NodeRow &row);

// The same, and answers with the grant that the row is.
void grant(const Registry &registry, Call *call, const core::NodeRow &row);

} // namespace uidgen::pg
