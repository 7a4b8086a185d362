// The parts of a member's call: what it asks, which node a newcomer gets, blocks of segments, and refusals.
//
// A role that may call may pass anything, so each field is checked. What it shows has a seal, a keyed hash
// (HMAC-SHA-256, cut to 63 bits), by which the registry knows again what it has given (core/grant.hpp, 8). The key is
// in a table, so that a server that takes over, or a restored dump, accepts the seals of the former one.
#pragma once

#include "memory/slots.hpp"
#include "registry.hpp"
#include "session/session.hpp"

namespace uidgen::pg {

// The segment that a request is about.
struct SegmentOfCall {
    Oid sequence;              // InvalidOid: there is none of that name
    const SessionEntry *entry; // null: the caller's role may not use it
};

// One request of a call, and its answer.
struct Call {
    FleetRequest request;
    WorkerPolicy policy;
    const char *login;  // the caller's role: nodes belong to it, whatever the request says. null: an administrator's
    bool claims_unseen; // the grant that it shows is of a registry whose key is lost, so it may be invented
    SegmentOfCall segment;
    int32_t pool;
    FleetAnswer answer;
};

struct Calls {
    Call *calls;
    int count;
};

// What a member asks, the argument of its call (fleet_request.cpp). A request with fields that are not valid is refused
// already. Error for a message that is none.
Calls read_calls(FunctionCallInfo fcinfo);

// Seals of the registry's answers: of a number of a term, which is a serial that it has answered with ("stamp") or
// the time when it granted last ("last"); and of a grant.
int64_t seal_of_number(const FleetState &state, const char *kind, const core::Term &term, int64_t number);
int64_t seal_of_grant(const FleetState &state, const core::Layout &layout, const core::Grant &grant);

// Whether a registry of this fleet has given what the member shows. What a registry has given whose key is lost has no
// such proof. A grant of it counts while the fence lasts that this one began with. The rest is forgotten.
bool is_proven(const FleetState &state, Call *call);

// Whether it has given the stamp that the server of the member shows.
bool is_stamp_proven(const FleetState &state, const FleetRequest &r);

// All nodes of the layout, or of the datacenter id that the request names.
NodeRange nodes_for(const FleetRequest &request);

// A newcomer gets a node that no other generator may use at its ticks (newcomer.cpp):
//
//   disposable  a node that was never used, if a few random ones find one; otherwise the node whose grant ended first
//   sticky      the node that this generator of this server held last, if it is free; otherwise as disposable
//   static      the node with that worker number, or none
//
// The node is random, so that two registries that do not know of each other seldom choose the same. False: no node is
// free; of static, *found is the row that is in the way.
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

// Whether the caller's login may not have another node. A stolen login so leaves the others their shares.
bool exceeds_quota(const Registry &registry, const Call &call, Newcomers *known);

// Writes the row of a member, as it describes itself.
void put_member(const Registry &registry, const Call &call, const core::NodeRow &row);

// Blocks of a segment's values, for members that are attached to it (fleet_block.cpp):
//
//   1. A block is durable before it is answered, as each answer is, and no other call gets its values
//      (segment/draw.hpp).
//   2. It lies beyond the last value that the member shows, and beyond the last one that any member was given of a
//      segment of this name: a registry that has lost commits does not give the former up again, and a segment that was
//      made again gives none of the latter. A member's claim that uses up more values than a failover loses is refused,
//      and logged.
//   3. The member's role needs USAGE on the segment's sequence, as every role that draws from it.

// Finds the segment, and opens an entry of it, before the registry's lock is taken. Refused while a session alters
// the sequence, because waiting for it would hold up what else is in the call.
void open_segment(const Registry &registry, Call *call);

// Gives the block, unless it is refused.
bool refuse_segment(Call *call);

// The message and the way out for the member that asked (refusals.cpp). Any role that draws there reads it. So it names
// no other member, and no login: the view uid_fleet and the log do. Each function returns whether the call is refused.
bool refuse(FleetAnswer *answer, const char *name, const char *message, const char *hint);

// By the judgement of refuses_all(), core::judge_server() or core::judge(), or because what it used before it joined is
// too far ahead.
bool refuse_judged(const Registry &registry, Call *call, core::Refusal why);

// Why the registry grants nothing to anyone.
core::Refusal refuses_all(const Registry &registry);

// Of a member that shows what this fleet's registry has not given. The log says it, too.
bool refuse_unproven(Call *call);

bool refuse_none_free(Call *call);
bool refuse_quota(Call *call);
bool refuse_taken(Call *call, const NodeRecord &taken);
bool refuse_equal_ids(Call *call, const core::Layout &of_pool);

const char *show_time(int64_t unix_us);

} // namespace uidgen::pg
