// The events that a session receives: invalidations of relations, and ends of transactions. The whole library has one
// callback of each kind. This fixes the order in which its parts receive an event, and saves a backend's few callback
// slots.
#pragma once

namespace uidgen::pg {

void session_events_register();

// DISCARD ALL and DISCARD SEQUENCES reset uid_last() and segment_last() as they reset currval() and lastval(). Behind a
// pooler the next client of the session must not read the values of another client.

void discard_hook_install();

} // namespace uidgen::pg
