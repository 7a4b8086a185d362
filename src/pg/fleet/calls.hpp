// What is asked of the registry, over the open connection: grants of generators, and blocks of segments that are
// attached to ones of the registry (memory/memberships.hpp). One call has many asks.
#pragma once

#include "connection.hpp"
#include "memory/memberships.hpp"

namespace uidgen::pg {

// What this server has seen of its fleet, as it counts in calls.
core::FleetSeen fleet_known();

// A hello, and what every request says of this server.
FleetRequest new_request(const core::FleetSeen &seen);

// A generator or a segment that waits for the registry, and what came of it.
struct Ask {
    bool is_block;
    Member member;    // unless it is a block
    AskedBlock block; // if it is one
    int64_t lowest;   // tick that the member needs
    core::Answer given;
    FleetBlock block_given;
    GrantError error; // at_us 0: none; a refusal is one
};

// Asks for all of them. `other` is another registry that the server has found. Returns how many were answered, from the
// first one on; 0: *error says why. If another server of the registry could answer what this one has refused, the
// connection is closed. *clock_us: the registry's clock.
int call_registry(Ask *asks, int count, const GrantedLast &other, int64_t *clock_us, GrantError *error);

} // namespace uidgen::pg
