// Rows of the extension's tables, read by the names of their columns. So the install script alone says which columns
// there are, and in which order.
#pragma once

#include "base/postgres.hpp"

namespace uidgen::pg {

struct Row {
    HeapTuple tuple;
    TupleDesc desc;
};

// The number of a column; error if there is none of that name.
AttrNumber column_number(TupleDesc desc, const char *name);

// Error if the column has another type. In a moment in which the extension is dropped, the table may be one of the
// schema's owner. So it comes before the use of a Datum as a pointer, and before a comparison in an index.
void check_column_type(TupleDesc desc, const char *name, Oid type);

bool is_null(Row row, const char *name);
Datum column(Row row, const char *name);            // 0 for NULL
const char *text_column(Row row, const char *name); // "" for NULL

// Begins a scan for the rows whose column equals the value by the function `equal`. It uses the unique index on that
// column alone, if there is one.
SysScanDesc begin_scan(Relation table, const char *name, RegProcedure equal, Datum value);

// Whether the catalogs have the relation, or the database. They bypass the caches, which would remember each oid that
// does not exist.
bool is_relation(Oid oid);
bool is_database(Oid oid);

} // namespace uidgen::pg
