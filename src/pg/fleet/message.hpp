// What a member asks of the registry, and what it gets: a message of at most most_requests rows of FleetRequest, and
// one of FleetAnswer rows, one for each of the first requests. The others the registry had no time for. Both sides of
// the connection use this file.
//
// A request says what its server has seen of the fleet. It asks
//   - for a node, if it names an incarnation;
//   - for values of a segment, if it names one;
//   - otherwise for nothing: a hello.
// An answer that refuses has no grant and no block, but it says who answers. Texts of a request are UTF-8.
#pragma once

#include "base/fields.hpp"
#include "core/membership.hpp"

namespace uidgen::pg {

constexpr int32_t fleet_protocol = 1;
constexpr int most_requests = 100; // of a call

constexpr int32_t any_datacenter = -1;
constexpr int32_t no_worker = -1;
constexpr int64_t no_node = -1;
constexpr int64_t no_block = -1;
constexpr int64_t no_value = PG_INT64_MIN + 1;

// When a registry granted last, by its clock, and its proof of that.
struct GrantedLast {
    int64_t granted_us; // 0: never
    core::Term term;
    int64_t seal;
};

struct FleetRequest {
    int32_t protocol;
    core::Request generator; // with what its server has seen of the fleet
    GrantedLast other;       // another registry of the fleet that the server has found
    const char *host;
    const char *port;
    const char *database; // null in a hello
    const char *version;
    // Of a generator.
    const char *name; // its qualified name
    const char *preset;
    core::Layout layout;
    bool own_pool;         // it may share its widths with generators of another epoch or split
    const char *policy;    // worker_policy
    int32_t worker_number; // of the policy static
    int32_t datacenter_id; // any_datacenter: any
    int64_t former_node;   // used without a registry; no_node: none
    int64_t former_until;
    // Of a segment.
    const char *segment;
    int64_t count;     // 0: no values, only what the segment is like
    int64_t shown;     // the last value that the member was given
    int64_t increment; // 0: any
};

struct FleetAnswer {
    core::Answer given; // why not; the stamp; and a grant; no_node: none
    const char *message;
    const char *hint;
    int64_t clock_us;
    uint64_t server;          // no other server has this number
    bool is_open;             // whether the registry may grant
    bool awaits_member;       // it has started, and waits for a member whose grant lasts
    int64_t longest_us;       // the longest grant of the fleet
    GrantedLast granted_last; // without the term
    // A block of a segment.
    int64_t first;
    int64_t count;       // no_block: none
    int64_t increment;   // also without a block
    bool is_synchronous; // no failover loses a block
};

extern const Fields request_fields;
extern const Fields answer_fields;

} // namespace uidgen::pg
