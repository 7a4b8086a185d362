// The events that a session receives: invalidations of relations, ends of transactions, and DISCARD. The library has
// one callback of each kind, so that its parts receive an event in a fixed order.
#pragma once

namespace uidgen::pg {

void session_events_register();

} // namespace uidgen::pg
