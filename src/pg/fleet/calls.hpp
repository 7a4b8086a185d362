// The calls of the registry, over the open connection: for a generator's grant, and for a block of a segment that is
// attached to one of the registry (memory/memberships.hpp).
#pragma once

#include "connection.hpp"
#include "memory/memberships.hpp"

namespace uidgen::pg {

// Asks for a member. `other` is another registry that the server has found. False: there is no answer, and *error says
// why. *error also has the reason of a refusal. If another server of the registry could answer what this one has
// refused, the connection is closed.
bool member_call(const Member &member, const core::Request &request, const GrantedLast &other, FleetAnswer *answer,
                 GrantError *error);

// Asks for a block.
BlockAnswer block_call(const BlockAsk &ask);

} // namespace uidgen::pg
