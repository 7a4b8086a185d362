// When slots are freed: DROP of a sequence, rollback of a CREATE, DROP DATABASE.
//
// Slots are freed according to the transaction's outcome. A dropped sequence is looked up again just before the commit,
// which also accounts for savepoints that were rolled back. If it is dropped, its slot is freed at the commit, while
// the lock of the DROP still excludes all other sessions. A sequence that the transaction creates is noted when it is
// created, not when it is used, because a parallel worker may be the only one that uses it.
#pragma once

#include "base/postgres.hpp"

namespace uidgen::pg {

void drop_hooks_install();

// For session_events.cpp.
void drops_transaction_event(XactEvent event);
void drops_subtransaction_event(SubXactEvent event, SubTransactionId mine, SubTransactionId parent);

} // namespace uidgen::pg
