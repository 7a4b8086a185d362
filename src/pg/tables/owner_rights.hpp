// Statements that run with the rights of a table's owner, in a security-restricted operation: the role that draws, or
// that owns a sequence, need not be able to write the extension's tables. Nothing of the caller's is found by their names:
// the search_path is pg_catalog.
#pragma once

#include "base/postgres.hpp"

namespace uidgen::pg {

// Whoever owns a relation that exists.
Oid owner_of(Oid relation);

// An error if a function of SPI has failed. Most failures are errors of their own; those that SPI only returns are negative.
void check_spi(int result, const char *function, const char *statement);

// Runs one statement and returns the number of rows that it wrote. An error puts the user back with the
// (sub)transaction that it ends. Needs an active snapshot.
uint64 execute_as_owner(Oid table, const char *statement, int arguments, Oid *types, Datum *values);

} // namespace uidgen::pg
