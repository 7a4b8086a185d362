// What members call on the registry. A request says hello, asks for a grant or extends it, or asks for a block of a
// segment. A call has all requests that wait at a server, and is one transaction.
//
// The requests are judged one after another, as if each were a call of its own, except for this:
//   1. What they all show of other registries and of lost commits is read before the first one gets anything.
//   2. One that is not valid is refused, and changes nothing for the others.
//   3. The registry answers as many as it can in the time for which a call may have its lock.
#pragma once

#include "fleet_request.hpp"

namespace uidgen::pg {

// The answers to the first requests, as a message. Writes what they come to into the registry's tables, closes or
// fences it if that is what they show, and logs it. Under the registry's lock, in the transaction of a procedure
// (registry.hpp).
const bytea *answer_calls(Registry *registry, const Calls &calls);

} // namespace uidgen::pg
