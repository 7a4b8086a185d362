// What is asked of the registry, over the open connection: a generator's grant, and a block of a segment that is
// attached to one of the registry (memory/memberships.hpp).
#pragma once

#include "connection.hpp"
#include "memory/memberships.hpp"

namespace uidgen::pg {

// A hello, and what every request says of this server.
FleetRequest new_request(const core::FleetSeen &seen);

// Asks for a member. `other` is another registry that the server has found. False: there is no answer, and *error says
// why. *error also has the reason of a refusal. If another server of the registry could answer what this one has
// refused, the connection is closed.
bool member_call(const Member &member, const core::Request &request, const GrantedLast &other, FleetAnswer *answer,
                 GrantError *error);

// Asks for a block.
BlockAnswer block_call(const BlockAsk &ask);

} // namespace uidgen::pg
