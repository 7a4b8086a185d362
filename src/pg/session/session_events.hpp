// The events that a session receives: invalidations of relations, and ends of transactions. The whole library has one
// callback of each kind. This fixes the order in which its parts receive an event, and saves a backend's few callback
// slots.
#pragma once

namespace uidgen::pg {

void session_events_register();

} // namespace uidgen::pg
