// When slots end: DROP of a sequence, rollback of a CREATE, DROP DATABASE.
//
// What happens to a slot waits for the transaction's outcome. A dropped sequence is looked up once more just before the
// commit, which also settles savepoints that were rolled back. The slots of those that are gone are freed at the commit,
// while the lock that the DROP took still keeps everybody else away. A sequence that the transaction creates is noted when it
// is created, not when it is used, because a parallel worker may be the only one that uses it.
#pragma once

#include "base/postgres.hpp"

namespace uidgen::pg {

void drop_hooks_install();

// For session_events.cpp.
void drops_transaction_event(XactEvent event);
void drops_subtransaction_event(SubXactEvent event, SubTransactionId mine, SubTransactionId parent);

} // namespace uidgen::pg
