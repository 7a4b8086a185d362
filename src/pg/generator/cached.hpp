// Drawing from a generator in cached mode: from the session's own run or the shared one, else from the ring, else by
// the generator's policy for an empty ring.
//
// When the wall clock is read:
//   1. The fast path does not read it, only the coarse monotonic clock (3).
//   2. The slow path (a transaction's first call, a new run, an empty ring) reads it, and throws away what is older
//      than half of max_staleness.
//   3. The fast path may then continue for the other half. It measures that time by the coarse monotonic clock,
//      because the wall clock may be set meanwhile.
// So no id is older than max_staleness when it is handed out, even without a refiller.
#pragma once

#include "draw.hpp"

namespace uidgen::pg {

// As draw(). Leaves a window on the rest of the run.
Drawn draw_cached(SessionEntry *e, uint64_t want);

} // namespace uidgen::pg
