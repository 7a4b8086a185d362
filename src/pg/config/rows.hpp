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

// A key for for_each_row().
inline ScanKeyData equals(AttrNumber column, RegProcedure equal, Datum value, Oid collation = C_COLLATION_OID) {
    ScanKeyData key;
    ScanKeyEntryInitialize(&key, 0, column, BTEqualStrategyNumber, InvalidOid, collation, equal, value);
    return key;
}

// Calls visit(row) for each row of a table or catalog that fits the key (null: for each), as of the snapshot (null:
// now, as catalogs are read). The caller has opened it under AccessShareLock; this closes and unlocks it. The index is
// InvalidOid: there is none.
template <typename Visit>
void for_each_row(Relation table, Oid index, const ScanKeyData *key, Visit visit, Snapshot snapshot = nullptr) {
    ScanKeyData copy = key != nullptr ? *key : ScanKeyData{}; // which the scan changes
    SysScanDesc scan = systable_beginscan(table, index, OidIsValid(index), snapshot, key != nullptr ? 1 : 0, &copy);
    for (HeapTuple tuple; HeapTupleIsValid(tuple = systable_getnext(scan));)
        visit(Row{tuple, RelationGetDescr(table)});
    systable_endscan(scan);
    table_close(table, AccessShareLock);
}

// The number of a column in a row type; error if there is none of that name and, where it is given, that type. In a
// moment in which the extension is dropped, the table may be one of the schema's owner. So a type is given before a
// Datum is used as a pointer, or compared in an index.
AttrNumber column_number(TupleDesc desc, const char *name, Oid type = InvalidOid);

// Whether the column of that name is NULL in a row that was read; error if there is none, as in the next two.
bool is_null(Row row, const char *name);
// The value of the column of that name in a row that was read, which may point into the row; 0 for NULL.
Datum column(Row row, const char *name);
// A copy of the text in the column of that name of a row that was read; "" for NULL.
const char *text_column(Row row, const char *name);

// Whether the catalogs have the relation, or the database. They bypass the caches, which would remember each oid that
// does not exist.
bool is_relation(Oid oid);
bool is_database(Oid oid);

// A table of the extension, or one of its sequences, by the catalogs, not locked; error if it does not exist.
Oid required_table(Oid schema, const char *name, char kind = RELKIND_RELATION);
// A table or sequence of the extension, opened under a heavyweight lock of that mode, for which it may wait. The
// caller closes and unlocks it. Error if it does not exist.
Relation open_required_table(Oid schema, const char *name, LOCKMODE mode = AccessShareLock,
                             char kind = RELKIND_RELATION);

// The next value of a sequence of the extension. Unlike nextval it logs each one, so neither a crash nor a promotion
// skips any: a serial that was not reached is known. Takes RowExclusiveLock on it for the moment, and moves its
// counter.
int64_t draw_number_of(Oid schema, const char *sequence) EXCLUDES(page_lock, table_lock, slot_lock, state_lock);

// Copies a name and a NUL into a field of that size, without cutting a character of the database's encoding in two.
void copy_clipped(char *to, const char *from, size_t size);

// The type of the row that a function returns; null: it returns none. The function may be dropped while it waits for a
// lock, so it asks before.
TupleDesc row_type(FunctionCallInfo fcinfo);

// A row of that type from all its values, without a NULL; in the current memory context.
template <size_t columns> Datum make_row(TupleDesc desc, Datum (&&values)[columns]) {
    bool nulls[columns] = {};
    return HeapTupleGetDatum(heap_form_tuple(desc, values, nulls));
}

// A row of what a function returns as a set. What nothing is put in is NULL.
struct ResultRow {
    TupleDesc desc;
    Datum values[32]; // more than there are columns
    bool nulls[32];
};

// A value as the Datum of a result's column.
inline Datum datum_of(bool value) { return BoolGetDatum(value); }
inline Datum datum_of(int32_t value) { return Int32GetDatum(value); }
inline Datum datum_of(int64_t value) { return Int64GetDatum(value); }
inline Datum datum_of(uint64_t value) { return UInt64GetDatum(value); }
inline Datum datum_of(double value) { return Float8GetDatum(value); }
inline Datum datum_of(const char *value) { return CStringGetTextDatum(value); }
// A counter in shared memory, read without a lock.
inline Datum datum_of(const std::atomic<uint64_t> &counter) {
    return datum_of(counter.load(std::memory_order_relaxed));
}

// Sets a column of a result's row, by its name; error if there is none.
template <typename T> void put_column(ResultRow *row, const char *column, const T &value) {
    const int number = column_number(row->desc, column) - 1;
    row->values[number] = datum_of(value);
    row->nulls[number] = false;
}

// The empty result of a function that returns a set, for add_row().
const ReturnSetInfo *new_result(FunctionCallInfo fcinfo);

// Adds a row to the result, if put_all(&row) puts something into it.
template <typename Put> void add_row(const ReturnSetInfo *result, Put put_all) {
    ResultRow row = {};
    row.desc = result->setDesc;
    memset(row.nulls, true, sizeof(row.nulls));
    if (put_all(&row))
        tuplestore_putvalues(result->setResult, row.desc, row.values, row.nulls);
}

// A copy of the row of a table of the extension whose primary key has that value, as of now: with a new snapshot, as
// catalogs are read, under AccessShareLock, which it releases. Without one the tuple is null.
Row find_row(Oid schema, const char *table, const char *name, RegProcedure equal, Datum value);

} // namespace uidgen::pg
