// Rows of the extension's tables, read by the names of their columns. So the install script alone says which columns
// there are, and in which order.
#pragma once

#include "extension.hpp"
#include "memory/slots.hpp"

namespace uidgen::pg {

struct Row {
    HeapTuple tuple;
    TupleDesc desc;
};

// The number of a column; error if there is none of that name and, where it is given, that type. In a moment in which
// the extension is dropped, the table may be one of the schema's owner. So a type is given before a Datum is used as a
// pointer, or compared in an index.
AttrNumber column_number(TupleDesc desc, const char *name, Oid type = InvalidOid);

bool is_null(Row row, const char *name);
Datum column(Row row, const char *name);            // 0 for NULL
const char *text_column(Row row, const char *name); // "" for NULL

// Whether the catalogs have the relation, or the database. They bypass the caches, which would remember each oid that
// does not exist.
bool is_relation(Oid oid);
bool is_database(Oid oid);

// ---------------------------------------------------------------------------------------------------------
// Reading the extension's own tables: uid_generator and uid_segment.
//
// Tables are read with a new snapshot, as catalogs are. So a generator that another session has just committed is
// visible to a transaction with an older snapshot too, as its sequence is.
// ---------------------------------------------------------------------------------------------------------

// A table of the extension, or one of its sequences; error if it does not exist.
Oid required_table(Oid schema, const char *name, char kind = RELKIND_RELATION);
// Such a table, locked, for the caller to close.
Relation open_required_table(Oid schema, const char *name, LOCKMODE mode = AccessShareLock,
                             char kind = RELKIND_RELATION);

// Copies a name into a field of that size, without cutting a character in two.
void copy_clipped(char *to, const char *from, size_t size);

// A copy of the row whose column has that value. Without one the tuple is null.
Row find_row(Oid schema, const char *table, const char *name, RegProcedure equal, Datum value);

// Calls visit(row) for each row.
template <typename Visit> void for_each_row(Oid schema, const char *table, Visit visit) {
    Relation rel = open_required_table(schema, table);
    SysScanDesc scan = systable_beginscan(rel, InvalidOid, false, nullptr, 0, nullptr);
    for (HeapTuple tuple; HeapTupleIsValid(tuple = systable_getnext(scan));)
        visit(Row{tuple, RelationGetDescr(rel)});
    systable_endscan(scan);
    table_close(rel, AccessShareLock);
}

// The configuration in a row of uid_generator; error if it is not valid.
GeneratorConfig generator_config_of(Row row);

// A copy of a generator's row. Without one the tuple is null.
Row find_generator_row(Oid schema, Oid generator);

// The configuration of a generator. Error if the sequence is not a generator's. To draw from its open sequence, also an
// error if the open transaction has altered the generator, or made one of a sequence that existed before.
GeneratorConfig read_generator_config(Oid schema, Oid generator, Relation to_draw = nullptr);

// The default generator's lease sequence. If it was dropped: InvalidOid, or an error.
Oid find_default_generator(Oid schema);
Oid read_default_generator(Oid schema);

// The sequence of a named segment; InvalidOid if there is none of that name.
Oid read_segment_by_name(Oid schema, const text *name);

// A segment's row; all 0 and null without one.
struct SegmentRow {
    int64_t step; // 0: the row has none
    int64_t max_step;
    const char *name;
    const char *registry_name; // null: not attached to a segment of a fleet's registry
    uint64_t fleet;            // whose registry it is attached to
    int64_t increment;         // of the segment there

    bool is_attached() const { return registry_name != nullptr; }
};
SegmentRow read_segment_row(Oid schema, Oid sequence);

} // namespace uidgen::pg
