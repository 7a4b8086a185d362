// Which node a newcomer gets: one that no other generator may use at its ticks.
//
//   disposable  a node that was never used, if a few draws from worker_node's sequence find one; otherwise the node
//               whose grant ended first
//   sticky      the node that this generator of this server held last, if it is free; otherwise as disposable
//   static      the node with that worker number, or none
//
// Many newcomers at the same moment do not wait for each other: a draw is one's own, and nodes that another session is
// about to take are skipped.
#pragma once

#include "registry.hpp"

namespace uidgen::pg {

// What a member asks for.
struct Call {
    core::Ask ask;
    core::Layout layout;
    const char *preset;
    Holder holder;
    WorkerPolicy policy;
    int32_t worker_number; // of static; no_worker: 0
    int32_t datacenter_id; // any_datacenter: any
    int64_t former_node;   // used without a registry; no_node: none
    int64_t former_until;
    bool reserves; // for a generator outside: to the end of the layout, without a holder
};
constexpr int32_t any_datacenter = -1;
constexpr int64_t no_node = -1;

// All nodes of the layout, or of the datacenter id that the call asks for.
NodeRange nodes_for(const Call &call);

// True: *granted is the row as it was written. False: no node is free; of static, *granted is the row that is in the
// way. The registry's judgement must be that the asker is a newcomer.
bool grant_node(Registry *registry, int32_t pool, const Call &call, NodeRecord *granted);

} // namespace uidgen::pg
