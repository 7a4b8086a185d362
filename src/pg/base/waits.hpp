// Bounded, cancellable waits.
#pragma once

#include <cstdint>

namespace uidgen::pg {

// Sleeps for at most that long, or until the latch is set; honours cancel and shutdown. Visible as the wait
// event UidgenClock (PostgreSQL 17 and later; before, as Extension).
void sleep_for_clock(int64_t us);

// The same for a ring that the refiller shall fill: UidgenRing.
void sleep_for_ring(int64_t us);

// And for the refiller itself: UidgenRefiller.
void sleep_as_refiller(int64_t us);

// The same for a synchronous standby, as PostgreSQL's own SyncRep. Returns when the session is asked to cancel or to end,
// and leaves the answer to the caller.
void sleep_for_standby(int64_t us);

} // namespace uidgen::pg
