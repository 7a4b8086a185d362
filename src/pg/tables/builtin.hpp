// The builtin generator: the one that comes with the extension.
//
// It has a row in uid_generator only once it was altered or the default was chosen. Until then it is what builtin_row() says,
// the preset snowflake, and the default generator. So CREATE EXTENSION leaves uid_generator empty, and a dump can restore
// every row of it.
#pragma once

#include "base/postgres.hpp"

namespace uidgen::pg {

// The extension's schema in this database; InvalidOid if there is no extension.
Oid extension_schema();

// The builtin generator's sequence: the extension's own, and no other of that name. InvalidOid if it is not there.
Oid builtin_generator();

// Its row as it is while nobody has altered it, for a table with the columns of uid_generator.
HeapTuple builtin_row(Oid generator, bool is_default, TupleDesc desc);

// Gives it that row in uid_generator. Under a lock that excludes all who draw from it, or alter it.
void insert_builtin_row(Oid table, bool is_default);

} // namespace uidgen::pg
