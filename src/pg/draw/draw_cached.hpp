// Drawing from a generator in cached mode: from the session's run or the one that all share, else from the ring, else by the
// generator's policy.
//
// Who looks at a clock, and when. A taker of the fast path doesn't. Whoever comes the slow way (a transaction's first
// call, a new run, an empty ring) reads the clock, throws away what is older than half of max_staleness, and lets the fast
// path go on for the other half: then a timer of this session ends it. So no id is older than max_staleness when it is
// handed out, whether or not the refiller lives. The timer costs a system call each half max_staleness while ids are drawn.
#pragma once

#include "draw_generator.hpp"

namespace uidgen::pg {

// As draw(). Leaves a window on the rest of the run.
Drawn draw_cached(SessionEntry *e, uint64_t want);

} // namespace uidgen::pg
