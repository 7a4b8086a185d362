// The builtin generator: the one that comes with the extension.
//
// It has a row in uid_generator only after it was altered or a default was chosen. Until then builtin_row() describes
// it (the preset snowflake), and it is the default generator. So CREATE EXTENSION leaves uid_generator empty, and a
// dump can restore every row of it.
#pragma once

#include "rows.hpp"

namespace uidgen::pg {

// The builtin generator's sequence: the extension's own, not another one of that name. InvalidOid if it does not exist.
Oid builtin_generator();

// Its row before any alteration, for a table with the columns of uid_generator.
Row builtin_row(Oid generator, bool is_default, TupleDesc desc);

// Inserts that row into uid_generator. Under a lock that excludes all sessions that draw from it or alter it.
void insert_builtin_row(Oid table, bool is_default);

} // namespace uidgen::pg
