#include "row.hpp"

namespace uidgen::pg {
namespace {

// InvalidOid if there is none. A partial index lacks rows.
Oid unique_index_on(Relation table, AttrNumber number) {
    Oid found = InvalidOid;
    List *indexes = RelationGetIndexList(table);
    ListCell *cell;
    foreach (cell, indexes) {
        HeapTuple tuple = SearchSysCache1(INDEXRELID, ObjectIdGetDatum(lfirst_oid(cell)));
        if (!HeapTupleIsValid(tuple))
            continue;
        const auto *index = reinterpret_cast<Form_pg_index>(GETSTRUCT(tuple));
        if (index->indisunique && index->indisvalid && index->indnkeyatts == 1 && index->indkey.values[0] == number &&
            heap_attisnull(tuple, Anum_pg_index_indpred, nullptr))
            found = lfirst_oid(cell);
        ReleaseSysCache(tuple);
    }
    list_free(indexes);
    return found;
}

bool is_in(Oid catalog, Oid index, AttrNumber oid_column, Oid oid) {
    ScanKeyData key;
    ScanKeyInit(&key, oid_column, BTEqualStrategyNumber, F_OIDEQ, ObjectIdGetDatum(oid));
    Relation table = table_open(catalog, AccessShareLock);
    SysScanDesc scan = systable_beginscan(table, index, true, nullptr, 1, &key);
    const bool found = HeapTupleIsValid(systable_getnext(scan));
    systable_endscan(scan);
    table_close(table, AccessShareLock);
    return found;
}

} // namespace

bool is_relation(Oid oid) { return is_in(RelationRelationId, ClassOidIndexId, Anum_pg_class_oid, oid); }
bool is_database(Oid oid) { return is_in(DatabaseRelationId, DatabaseOidIndexId, Anum_pg_database_oid, oid); }

AttrNumber column_number(TupleDesc desc, const char *name) {
    const int number = SPI_fnumber(desc, name);
    if (number <= 0)
        ereport(ERROR,
                (errcode(ERRCODE_UNDEFINED_COLUMN), errmsg("a table of extension uidgen has no column \"%s\"", name),
                 errhint("Run ALTER EXTENSION uidgen UPDATE.")));
    return static_cast<AttrNumber>(number);
}

void check_column_type(TupleDesc desc, const char *name, Oid type) {
    if (!IsBinaryCoercible(TupleDescAttr(desc, column_number(desc, name) - 1)->atttypid, type))
        ereport(ERROR,
                (errcode(ERRCODE_DATATYPE_MISMATCH),
                 errmsg("column \"%s\" of a table of extension uidgen is not of type %s", name, format_type_be(type)),
                 errhint("Run DROP EXTENSION uidgen and CREATE EXTENSION uidgen.")));
}

bool is_null(Row row, const char *name) { return heap_attisnull(row.tuple, column_number(row.desc, name), row.desc); }

Datum column(Row row, const char *name) {
    bool null = false;
    const Datum value = heap_getattr(row.tuple, column_number(row.desc, name), row.desc, &null);
    return null ? Int64GetDatum(0) : value;
}

const char *text_column(Row row, const char *name) {
    check_column_type(row.desc, name, TEXTOID);
    return is_null(row, name) ? "" : TextDatumGetCString(column(row, name));
}

SysScanDesc begin_scan(Relation table, const char *name, RegProcedure equal, Datum value) {
    const TupleDesc desc = RelationGetDescr(table);
    const AttrNumber number = column_number(desc, name);
    Oid *types = nullptr;
    int arguments = 0;
    (void)get_func_signature(equal, &types, &arguments);
    check_column_type(desc, name, types[0]);
    pfree(types);
    const Oid index = unique_index_on(table, number);
    ScanKeyData key;
    ScanKeyEntryInitialize(&key, 0, number, BTEqualStrategyNumber, InvalidOid,
                           TupleDescAttr(desc, number - 1)->attcollation, equal, value);
    return systable_beginscan(table, index, OidIsValid(index), nullptr, 1, &key);
}

} // namespace uidgen::pg
