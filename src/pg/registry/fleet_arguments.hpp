// The arguments of uid_fleet_call(). A role that may call it may pass anything, so each one is checked.
#pragma once

#include "newcomer.hpp"

namespace uidgen::pg {

// An error if an argument is not valid, or if the member speaks another version of the protocol. The offset of its
// clock is not known yet.
Call read_call(FunctionCallInfo fcinfo);

} // namespace uidgen::pg
