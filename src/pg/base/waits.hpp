// Bounded, cancellable waits.
#pragma once

#include <cstdint>

#include "postgres.hpp"

namespace uidgen::pg {

// Sleeps for at most that long, or until the latch is set. Honours cancel and shutdown. Shown as the wait event
// UidgenClock (PostgreSQL 17 and later; before that as Extension).
void sleep_for_clock(int64_t us);

// The same, for a ring that the refiller must fill: UidgenRing.
void sleep_for_ring(int64_t us);

// The same, for the refiller itself: UidgenRefiller.
void sleep_as_refiller(int64_t us);

// The same, for the registrar, until one of its sockets is ready for one of its events, too: UidgenRegistrar. `ready`
// is set for each of them.
struct WaitingSocket {
    pgsocket socket;
    uint32 events;
    bool ready;
};
void wait_as_registrar(WaitingSocket *sockets, int count, int64_t us);

// The same, for a grant or a block of the registry: UidgenGrant. Returns when the condition variable is signaled, too;
// the caller has prepared to sleep on it. True: the time is over.
bool sleep_for_grant(ConditionVariable *changed, int64_t us);

// The same, for a synchronous standby, shown as PostgreSQL's own SyncRep. Returns when the session is asked to cancel
// or to end; the caller must handle that.
void sleep_for_standby(int64_t us);

} // namespace uidgen::pg
