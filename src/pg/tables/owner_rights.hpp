// Statements that run with the rights of a table's owner, in a security-restricted operation. So a role that draws, or
// that owns a sequence, needs no right to write the extension's tables. The search_path is pg_catalog, so no name
// resolves to an object of the caller's.
#pragma once

#include "base/postgres.hpp"

namespace uidgen::pg {

// The owner of a relation. The relation must exist.
Oid owner_of(Oid relation);

// An error if a function of SPI has failed. Most failures raise errors of their own. SPI reports the others by a
// negative result.
void check_spi(int result, const char *function, const char *statement);

// Runs one statement and returns the number of rows that it wrote. `nulls` has an 'n' for each argument that is NULL;
// nullptr: none is. After an error the end of the (sub)transaction restores the user. Needs an active snapshot.
uint64 execute_as_owner(Oid table, const char *statement, int arguments, Oid *types, Datum *values,
                        const char *nulls = nullptr);

} // namespace uidgen::pg
