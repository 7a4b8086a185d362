// The call of the registry for a segment: the registrar's work for segments that are attached to one of the registry
// (memory/memberships.hpp).
#pragma once

#include "memory/memberships.hpp"

namespace uidgen::pg {

// Asks for the next block that sessions want, over the open connection, if there is one. False: none is due; then
// *next_us is how long until one is, if that is less than it was.
bool block_call_next(int64_t *next_us);

// Whether a block was asked for a moment ago. The registrar then stays, so that the connection lasts from one block to
// the next.
bool block_was_called_lately();

// The error of the last call; at_us 0: it had none.
const GrantError &block_call_error();

} // namespace uidgen::pg
