// When slots end: DROP of a sequence, rollback of a CREATE, DROP DATABASE.
//
// What happens to a slot waits for the transaction's outcome. A sequence noted here is looked up once more
// just before the commit, which also settles savepoints that were rolled back; the slots of those that are
// gone are freed at the commit, while the lock that the DROP took still keeps everybody else away.
#pragma once

#include "postgres.hpp"

namespace uidgen::pg {

void drop_hooks_install();

// For session_events.cpp.
void drops_transaction_event(XactEvent event);
void drops_subtransaction_aborted();

// A slot is about to be used for a relation: if the open transaction made that, the slot ends with a rollback. (If only
// a parallel worker ever uses it, nobody notes it; such a slot is reclaimed like any that is out of use.)
void note_slot_of_new_relation(Relation rel);

} // namespace uidgen::pg
