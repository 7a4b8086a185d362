// The node writer: a short-lived background process that writes rows of worker_node.
//
// A row is written in a transaction of its own, so nothing that becomes of it touches a transaction that draws: not a lock
// on the table, not a failing trigger, not a serialization conflict, not a standby that is awaited. A transaction that has
// used a generator whose row is due starts the process at its end, when what it committed can be seen; one that is
// rolled back or read-only does the same. Nothing waits for the process: it may be killed, or never find a place among
// max_worker_processes. A later transaction then starts another.
#pragma once

#include "shared/slots.hpp"

namespace uidgen::pg {

// This transaction uses the generator: if its row is due at the transaction's end, that starts the writer. `function` is
// the SQL function that was called: it leads to the extension's tables.
void note_generator_in_use(Slot *slot, Oid function);

// For session_events.cpp.
void node_writer_transaction_ended();

} // namespace uidgen::pg
