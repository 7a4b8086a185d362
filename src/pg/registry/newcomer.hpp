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

// Grants a node, or refuses. `full` is the last newcomer of the call for which there was no node, or null: others are
// then refused without looking.
void admit_newcomer(const Registry &registry, const Call **full, Call *call);

// Writes down that the member drew with a node before it joined the fleet. The node is one of its login's until then,
// because anyone can say so.
void note_use_before(const Registry &registry, const Call &call);

// False: no node is free; of static, *found is the row that is in the way.
bool find_node(const Registry &registry, const Call &call, NodeRecord *found);

// Writes the node's row with the member as it describes itself.
void put_member(const Registry &registry, const Call &call, const core::NodeRow &row);

// The same, and answers with the grant that the row is.
void grant(const Registry &registry, Call *call, const core::NodeRow &row);

} // namespace uidgen::pg
