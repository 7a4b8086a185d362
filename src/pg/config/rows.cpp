#include "rows.hpp"

#include "sequence/sequence.hpp"

namespace uidgen::pg {

namespace {

// Scans a catalog past its cache, with a new snapshot, under AccessShareLock.
bool catalog_has(Oid catalog, Oid index, AttrNumber oid_column, Oid oid) {
    bool found = false;
    const ScanKeyData key = equals(oid_column, F_OIDEQ, ObjectIdGetDatum(oid));
    for_each_row(table_open(catalog, AccessShareLock), index, &key, [&](Row) { found = true; });
    return found;
}

} // namespace

bool is_relation(Oid oid) { return catalog_has(RelationRelationId, ClassOidIndexId, Anum_pg_class_oid, oid); }
bool is_database(Oid oid) { return catalog_has(DatabaseRelationId, DatabaseOidIndexId, Anum_pg_database_oid, oid); }

AttrNumber column_number(TupleDesc desc, const char *name, Oid type) {
    const int number = SPI_fnumber(desc, name);
    if (number <= 0 || (OidIsValid(type) && !IsBinaryCoercible(SPI_gettypeid(desc, number), type)))
        ereport(ERROR, (errcode(ERRCODE_UNDEFINED_COLUMN),
                        errmsg("a table of extension uidgen has no column \"%s\"%s", name,
                               OidIsValid(type) ? psprintf(" of type %s", format_type_be(type)) : ""),
                        errhint("Run ALTER EXTENSION uidgen UPDATE, or change your own table with ALTER TABLE.")));
    return static_cast<AttrNumber>(number);
}

bool is_null(Row row, const char *name) { return heap_attisnull(row.tuple, column_number(row.desc, name), row.desc); }

Datum column(Row row, const char *name) {
    bool null = false;
    const Datum value = heap_getattr(row.tuple, column_number(row.desc, name), row.desc, &null);
    return null ? Int64GetDatum(0) : value;
}

const char *text_column(Row row, const char *name) {
    (void)column_number(row.desc, name, TEXTOID);
    return is_null(row, name) ? "" : TextDatumGetCString(column(row, name));
}

Row find_row(Oid schema, const char *table, const char *name, RegProcedure equal, Datum value) {
    Relation rel = open_required_table(schema, table);
    const TupleDesc desc = RelationGetDescr(rel);
    Oid *types = nullptr;
    int arguments = 0;
    (void)get_func_signature(equal, &types, &arguments);
    const AttrNumber number = column_number(desc, name, types[0]);
    list_free(RelationGetIndexList(rel)); // finds out rd_pkindex
    Row found = {nullptr, CreateTupleDescCopyConstr(desc)};
    const ScanKeyData key = equals(number, equal, value, TupleDescAttr(desc, number - 1)->attcollation);
    for_each_row(rel, rel->rd_pkindex, &key, [&](Row row) { found.tuple = heap_copytuple(row.tuple); });
    return found;
}

// By the catalogs, without a lock. In a moment in which the extension is dropped, the relation of that name may be one
// of the schema's owner.
Oid required_table(Oid schema, const char *name, char kind) {
    const Oid table = get_relname_relid(name, schema);
    if (!OidIsValid(table) || get_rel_relkind(table) != kind)
        ereport(ERROR, (errcode(ERRCODE_UNDEFINED_TABLE),
                        errmsg("%s \"%s\" of extension uidgen does not exist",
                               kind == RELKIND_SEQUENCE ? "sequence" : "table", name),
                        errhint("%sCREATE EXTENSION uidgen.",
                                OidIsValid(extension_schema()) ? "Run DROP EXTENSION uidgen and " : "Run ")));
    return table;
}

// While it waits for the lock, another session may drop the extension, and create it again.
Relation open_required_table(Oid schema, const char *name, LOCKMODE mode, char kind) {
    Relation rel = nullptr;
    while (rel == nullptr)
        rel = try_relation_open(required_table(schema, name, kind), mode);
    return rel;
}

// The sequence's lock is released at once, because the draw belongs to no transaction.
int64_t draw_number_of(Oid schema, const char *sequence) {
    Relation rel = open_required_table(schema, sequence, RowExclusiveLock, RELKIND_SEQUENCE);
    const core::SequenceRule rule = {.increment = 1, .min_value = 1, .max_value = PG_INT64_MAX, .cycle = true};
    SequencePage page = lock_page_for_writing(rel);
    const core::PlannedRange draw = core::plan_range(read_page(page).counter, rule, 1);
    write_page(&page, draw.last);
    unlock_page(&page);
    relation_close(rel, RowExclusiveLock);
    return draw.first;
}

TupleDesc row_type(FunctionCallInfo fcinfo) {
    TupleDesc desc = nullptr;
    return get_call_result_type(fcinfo, nullptr, &desc) == TYPEFUNC_COMPOSITE ? desc : nullptr;
}

const ReturnSetInfo *new_result(FunctionCallInfo fcinfo) {
    InitMaterializedSRF(fcinfo, 0);
    return reinterpret_cast<const ReturnSetInfo *>(fcinfo->resultinfo);
}

void copy_clipped(char *to, const char *from, size_t size) {
    const int length = pg_mbcliplen(from, static_cast<int>(strlen(from)), static_cast<int>(size) - 1);
    memcpy(to, from, static_cast<size_t>(length));
    to[length] = '\0';
}

} // namespace uidgen::pg
