// Which node a newcomer gets: one that no other generator may use at its ticks.
//
//   disposable  a node that was never used, if a few random ones find one; otherwise the node whose grant ended first
//   sticky      the node that this generator of this server held last, if it is free; otherwise as disposable
//   static      the node with that worker number, or none
//
// The node is random, so that two registries that do not know of each other seldom choose the same.
#pragma once

#include "registry.hpp"
#include "memory/slots.hpp"

namespace uidgen::pg {

struct Newcomer {
    const Registry *registry;
    int32_t pool;
    const FleetRequest *request;
    WorkerPolicy policy;
    bool reserves; // for a generator outside: to the end of the layout, without a holder
};

// All nodes of the layout, or of the datacenter id that the request names.
NodeRange nodes_for(const FleetRequest &request);

// The node with that worker number.
int64_t static_node(const FleetRequest &request);

// True: *granted is the row as it was written. False: no node is free; of static, *granted is the row that is in the
// way. The registry's judgement must be that the member is a newcomer.
bool grant_node(const Newcomer &newcomer, NodeRecord *granted);

// The row of a member, as it describes itself.
NodeRecord record_of(const Registry &registry, int32_t pool, const FleetRequest &request, const core::NodeRow &row);

} // namespace uidgen::pg
