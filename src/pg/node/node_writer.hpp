// The node writer: a short-lived background process that writes rows of worker_node.
//
// A row is written in its own transaction, so no failure affects a transaction that draws: no lock on the table,
// failing trigger, serialization conflict or wait for a standby. A transaction that has used a generator whose row is
// due starts the process at its end, when its changes are visible. A transaction that is rolled back or read-only does
// so too. No session waits for the process. It may be killed, or find no free place among max_worker_processes. Then a
// later transaction starts another.
#pragma once

#include "memory/slots.hpp"

namespace uidgen::pg {

// Notes that this transaction uses the generator. If its row is due, and no other session has claimed it, the writer is
// started at the transaction's end. `function` is the SQL function that was called, which leads to the extension's
// tables.
void note_generator_in_use(Slot *slot, Oid function);

// For module.cpp.
void node_writer_transaction_ended();

} // namespace uidgen::pg
