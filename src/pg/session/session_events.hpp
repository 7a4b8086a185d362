// What a session hears of: invalidations of relations, ends of transactions. One callback of each kind for the whole library:
// the order in which its parts hear of something is written down here, and a backend has few places for callbacks.
#pragma once

namespace uidgen::pg {

void session_events_register();

} // namespace uidgen::pg
