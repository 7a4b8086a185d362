// Drawing from a segment: its ranges, the one reserved ahead, and the share that this backend takes from.
#pragma once

#include "attach.hpp"

namespace uidgen::pg {

// The next ordinals, up to `want` (>= 1), when the backend's share is used up or out of date; their values are by its share
// as it is then. Error when the sequence is used up.
core::Run draw_ordinals(Attached *a, uint64_t want);

} // namespace uidgen::pg
