// The node writer: a background process that writes rows of worker_node. A server has at most one.
//
// Its transactions cannot affect one that draws (docs/design.md, P7). A transaction that has used a generator whose row
// is due says so in the generator's slot and wakes the process at its end, when its changes are visible, even if it is
// rolled back or read-only. What slots owe is written even if the process fails, because the postmaster starts it
// again. If it finds no free place, a later transaction starts it.
#pragma once

#include "memory/slots.hpp"

namespace uidgen::pg {

// Notes that this transaction uses the generator.
void note_generator_in_use(Slot *slot);

// For module.cpp.
void node_writer_transaction_ended();

} // namespace uidgen::pg
