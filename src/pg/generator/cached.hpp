// Cached mode: ids from runs that were made ahead of time.
#pragma once

#include "draw.hpp"

namespace uidgen::pg {

// As draw(): from the run that all sessions share, else from the ring, else by the generator's policy for
// an empty ring. Leaves a window on the rest of the run. Throws away what is older than half of max_staleness, so that
// the fast path may continue for the other half without the wall clock (docs/design.md, P4).
Drawn draw_cached(SessionEntry *e, uint64_t want);

} // namespace uidgen::pg
