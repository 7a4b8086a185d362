// Rows of uid_generator that the open transaction has added. When one is rolled back, with the transaction or to a savepoint,
// the slot that was made from it goes too: else its layout would stay, for a row that somebody adds later with another.
#pragma once

#include "base/postgres.hpp"

namespace uidgen::pg {

// Under a lock that excludes all others who draw from the generator.
void note_new_row(Oid generator);

// For session_events.cpp.
void new_rows_transaction_ended(bool aborted);
void new_rows_subtransaction_aborted();

} // namespace uidgen::pg
