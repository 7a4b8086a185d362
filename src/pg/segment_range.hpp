// Drawing from a segment: its ranges, the one reserved ahead, and the share that this backend takes from.
#pragma once

#include "attach.hpp"

namespace uidgen::pg {

// The next value when the backend's share is used up or out of date. Error when the sequence is used up.
int64_t next_value_slowly(Attached *a);

} // namespace uidgen::pg
