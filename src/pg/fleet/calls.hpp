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

// Asks for the next block that sessions want, if there is one. False: none is due; then *next_us is how long until one
// is, if that is less than it was. *error is that of the call; at_us 0: it had none.
bool block_call_next(int64_t *next_us, GrantError *error);

// Whether a block was asked for a moment ago. The registrar then stays, so that the connection lasts from one block to
// the next.
bool block_was_called_lately();

} // namespace uidgen::pg
