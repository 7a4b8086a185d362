// uid_change_generator(), uid_change_segment(): the owner of a sequence alters its row of uid_generator or uid_segment.
//
// The tables belong to the extension's owner. A grant of UPDATE would let every role lock their rows. So the UPDATE
// runs with the rights of the table's owner, after a check of the caller, and for fixed columns only. It qualifies
// every function and operator, and does not depend on a search_path.

#include "tables/builtin.hpp"
#include "tables/config_table.hpp"
#include "base/errors.hpp"
#include "session/locked_generator.hpp"
#include "tables/owner_rights.hpp"

namespace uidgen::pg {
namespace {

struct Changeable {
    const char *table;
    const char *key; // the column with the sequence
    const char *columns;
    const char *values; // the columns of the row with the changes in it, r
    LOCKMODE lock;      // on the sequence
    bool (*has_row)(Oid schema, Oid table, Oid sequence);
};

bool has_segment_row(Oid schema, Oid, Oid sequence) { return has_segment(schema, sequence); }

// The first alteration of the builtin generator inserts its row. Under lock_generator()'s lock.
bool has_or_gets_row(Oid schema, Oid table, Oid generator) {
    if (has_generator_row(schema, generator))
        return true;
    if (generator != builtin_generator())
        return false;
    insert_builtin_row(table, find_default_generator(schema) == generator);
    return true;
}

// A step of 0 stands for that of the settings.
constexpr Changeable segment_row = {
    "uid_segment",
    "sequence",
    "step, max_step, description",
    "CASE WHEN step OPERATOR(pg_catalog.<>) 0::pg_catalog.int8 THEN step END, "
    "CASE WHEN max_step OPERATOR(pg_catalog.<>) 0::pg_catalog.int8 THEN max_step END, description",
    AccessShareLock,
    has_segment_row};

// All other columns never change (uid_generator_changing()).
constexpr char generator_columns[] =
    "epoch, tick_us, time_bits, datacenter_bits, worker_bits, sequence_bits, sequence_first, backup_worker, lease_ms, "
    "max_ahead_ms, when_full, when_back, tolerance_ms, spread, worker_policy, worker_number, mode, boost_power, "
    "padding_factor, schedule_ms, when_ring_full, when_ring_empty, chunk, max_staleness_ms";
constexpr Changeable generator_row = {"uid_generator",   "generator",    generator_columns,
                                      generator_columns, excludes_draws, has_or_gets_row};

void check_owner(Oid sequence, Oid table) {
    const char kind = get_rel_relkind(sequence);
    if (kind == '\0')
        report_no_sequence(sequence);
    if (!has_privs_of_role(GetUserId(), owner_of(sequence)) && !has_privs_of_role(GetUserId(), owner_of(table)))
        aclcheck_error(ACLCHECK_NOT_OWNER, OBJECT_SEQUENCE, get_rel_name(sequence));
}

void change_row(const Changeable &what, Oid schema, Oid sequence, Datum changes) {
    const Oid table = required_table(schema, what.table);
    check_owner(sequence, table);
    LockRelationOid(sequence, what.lock); // before the row, as uid_default_set() does
    const char *statement = psprintf("UPDATE %s AS t "
                                     "SET (%s) = (SELECT %s FROM pg_catalog.jsonb_populate_record(t, $2) AS r) "
                                     "WHERE t.%s::pg_catalog.oid OPERATOR(pg_catalog.=) $1",
                                     qualified_name(table), what.columns, what.values, what.key);
    Oid types[] = {OIDOID, JSONBOID};
    Datum values[] = {ObjectIdGetDatum(sequence), changes};
    if (!what.has_row(schema, table, sequence))
        ereport(ERROR, (errcode(ERRCODE_UNDEFINED_OBJECT),
                        errmsg("\"%s\" has no row in table \"%s\"", get_rel_name(sequence), what.table),
                        errhint("Create a segment with segment_create(), or a generator with "
                                "uid_generator_create().")));
    if (execute_as_owner(table, statement, lengthof(types), types, values) == 0)
        ereport(ERROR, (errcode(ERRCODE_T_R_SERIALIZATION_FAILURE),
                        errmsg("could not alter \"%s\" because its row in table \"%s\" is newer than this transaction",
                               get_rel_name(sequence), what.table),
                        errhint("Retry the transaction.")));
}

} // namespace
} // namespace uidgen::pg

using namespace uidgen::pg;

extern "C" {

UIDGEN_SQL_FUNCTION(uid_change_segment);
UIDGEN_SQL_FUNCTION(uid_change_generator);

Datum uid_change_segment(PG_FUNCTION_ARGS) {
    change_row(segment_row, schema_of_function(fcinfo->flinfo->fn_oid), PG_GETARG_OID(0), PG_GETARG_DATUM(1));
    PG_RETURN_VOID();
}

Datum uid_change_generator(PG_FUNCTION_ARGS) {
    change_row(generator_row, schema_of_function(fcinfo->flinfo->fn_oid), PG_GETARG_OID(0), PG_GETARG_DATUM(1));
    PG_RETURN_VOID();
}
}
