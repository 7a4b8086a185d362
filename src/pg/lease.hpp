// Drawing from a generator: the loop around core's decide(), with its clock, its records and its waits.
#pragma once

#include "attach.hpp"

namespace uidgen::pg {

struct Drawn {
    core::Run run; // positions
    core::Shape shape;
};

// Takes up to `want` positions (>= 1), waiting for the clock or for durability as needed. Errors take none.
// Leaves a window for the calls that follow within the same tick, unless it drew from the backup worker.
Drawn draw(Attached *a, uint64_t want);

} // namespace uidgen::pg
