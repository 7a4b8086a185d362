// Rows of uid_generator that the open transaction has added. When such a row is rolled back, with the transaction or to
// a savepoint, the slot made from it is freed too. Otherwise its layout would stay in force for a later row with
// another layout.
#pragma once

#include "base/postgres.hpp"

namespace uidgen::pg {

// Under a lock that excludes all other sessions that draw from the generator.
void note_new_row(Oid generator);

// For session_events.cpp.
void new_rows_transaction_ended(bool aborted);
void new_rows_subtransaction_aborted();

} // namespace uidgen::pg
