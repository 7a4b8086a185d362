#include "dropped_rows.hpp"

#include "builtin.hpp"
#include "base/compat.hpp"
#include "config_table.hpp"
#include "extension.hpp"
#include "owner_rights.hpp"

namespace uidgen::pg {
namespace {

// Without a row the builtin generator would become the default again, and its ids could collide with those of the
// dropped one. uid_default_set() makes the row. It is missing only if the default's row was written by hand.
void check_builtin_has_row(Oid schema) {
    const Oid builtin = builtin_generator();
    if (!OidIsValid(builtin) || has_generator_row(schema, builtin))
        return;
    ereport(ERROR, (errcode(ERRCODE_DEPENDENT_OBJECTS_STILL_EXIST), errmsg("cannot drop the default generator"),
                    errdetail("The generator became the default without uid_default_set()."),
                    errhint("Run SELECT uid_default_set('uid_generators.uid_default') first.")));
}

void warn_of_no_default() {
    ereport(WARNING, (errmsg("the database no longer has a default generator"),
                      errdetail("Calls of uid_next() without a generator fail from now on."),
                      errhint("Choose a default with uid_default_set(). To stay above the ids of the "
                              "dropped generator, pass the largest of them to uid_generator_create() as the "
                              "parameter above.")));
}

// The lock that DROP holds on the sequence excludes all sessions that would change the row. Privileges are not checked:
// the sequence's owner has dropped it.
enum class Deleted { nothing, row, default_row };

Deleted delete_row(Oid table, const char *key, Oid sequence, bool (*is_default)(Row row)) {
    if (!OidIsValid(table))
        return Deleted::nothing;
    Relation rel = try_relation_open(table, RowExclusiveLock);
    if (rel == nullptr) // another session has dropped the extension, too
        return Deleted::nothing;
    SysScanDesc scan = begin_scan(rel, key, F_OIDEQ, ObjectIdGetDatum(sequence));
    HeapTuple row = systable_getnext(scan);
    Deleted deleted = Deleted::nothing;
    if (HeapTupleIsValid(row)) {
        deleted = is_default({row, RelationGetDescr(rel)}) ? Deleted::default_row : Deleted::row;
        CatalogTupleDelete(rel, &row->t_self);
        CacheInvalidateRelcache(rel); // sessions look up names and the default again
    }
    systable_endscan(scan);
    table_close(rel, RowExclusiveLock);
    return deleted;
}

bool is_default_row(Row row) { return DatumGetBool(column(row, "is_default")); }
bool never(Row) { return false; }

} // namespace

void forget_dropped_sequence(Oid sequence) {
    const Oid schema = find_extension().schema;
    if (!OidIsValid(schema))
        return;
    const Deleted generator =
        delete_row(extension_table(schema, "uid_generator"), "generator", sequence, is_default_row);
    const Deleted segment = delete_row(extension_table(schema, "uid_segment"), "sequence", sequence, never);
    const Deleted key = delete_row(extension_table(schema_of_keys(), "uid_key"), "sequence", sequence, never);
    if (generator == Deleted::nothing && segment == Deleted::nothing && key == Deleted::nothing)
        return;
    CommandCounterIncrement(); // or a second caller would find them again
    if (generator == Deleted::default_row) {
        check_builtin_has_row(schema);
        warn_of_no_default();
    }
}

} // namespace uidgen::pg

using namespace uidgen::pg;

extern "C" {

UIDGEN_SQL_FUNCTION(uid_forget_dropped);

Datum uid_forget_dropped(PG_FUNCTION_ARGS) {
    if (!CALLED_AS_EVENT_TRIGGER(fcinfo))
        ereport(ERROR, (errcode(ERRCODE_E_R_I_E_EVENT_TRIGGER_PROTOCOL_VIOLATED),
                        errmsg("function \"uid_forget_dropped\" must be called as an event trigger"),
                        errhint("Use it only for the event trigger uid_forget_dropped.")));
    const char *statement =
        "SELECT objid FROM pg_catalog.pg_event_trigger_dropped_objects() WHERE object_type OPERATOR(pg_catalog.=) "
        "'sequence'::pg_catalog.text AND objsubid OPERATOR(pg_catalog.=) 0::pg_catalog.int4";
    check_spi(SPI_connect(), "SPI_connect", statement);
    check_spi(SPI_execute(statement, true, 0), "SPI_execute", statement);
    const uint64 count = SPI_processed;
    const SPITupleTable *dropped = SPI_tuptable;
    for (uint64 i = 0; i < count; i++) {
        bool is_null = false;
        forget_dropped_sequence(DatumGetObjectId(SPI_getbinval(dropped->vals[i], dropped->tupdesc, 1, &is_null)));
    }
    check_spi(SPI_finish(), "SPI_finish", statement);
    PG_RETURN_NULL();
}
}
