// Which node a newcomer gets: one that no other generator may use at its ticks.
//
//   disposable  a node that was never used, if a few random ones find one; otherwise the node whose grant ended first
//   sticky      the node that this generator of this server held last, if it is free; otherwise as disposable
//   static      the node with that worker number, or none
//
// The node is random, so that two registries that do not know of each other seldom choose the same. The caller holds
// the registry's lock. Only put_member() writes.
#pragma once

#include "fleet_request.hpp"

namespace uidgen::pg {

// All nodes of the layout, or of the datacenter id that the request names. Needs no lock.
NodeRange nodes_for(const FleetRequest &request);

// False: no node is free; of static, *found is the row that is in the way.
bool find_node(const Registry &registry, const Call &call, NodeRecord *found);

// What a call has found out for its newcomers, so that it need not look again for each of them.
struct Newcomers {
    const Call *full; // the last one for which there was no node; null: there was none
    // How many nodes of this range have grants that last: the login's in the whole pool, its own in the range, all.
    int32_t pool; // no_pool: they were not counted
    NodeRange range;
    int64_t own_of_pool;
    int64_t own;
    int64_t used;   // negative: it was not counted, as the next one
    int64_t logins; // that have one
};

// Whether the caller's login may not have another node. A stolen login so leaves the others their shares. What it must
// count for that is in *known afterwards.
bool exceeds_quota(const Registry &registry, const Call &call, Newcomers *known);

// Writes the node's row with the member as it describes itself.
void put_member(const Registry &registry, const Call &call, const core::NodeRow &row);

} // namespace uidgen::pg
