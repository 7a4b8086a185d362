// uid_change_row(): the owner of a sequence changes what its row of uid_generator or uid_segment says.
//
// The tables belong to the extension's owner, and a grant of UPDATE would let anybody lock their rows. So the statement
// runs with the rights of the table's owner, after a look at who asks, and for fixed columns only. It names every function
// and operator with its schema: the caller's search_path holds, and may lead to the caller's own.

#include "tables/builtin.hpp"
#include "tables/config_table.hpp"
#include "base/errors.hpp"
#include "tables/owner_rights.hpp"

namespace uidgen::pg {
namespace {

struct Changeable {
    const char *table;
    const char *key; // the column with the sequence
    const char *columns;
    const char *values; // of r, the row with the changes in it
    LOCKMODE lock;      // on the sequence
    bool (*has_row)(Oid schema, Oid table, Oid sequence);
};

bool has_segment_row(Oid schema, Oid, Oid sequence) { return has_segment(schema, sequence); }

// The builtin generator gets its row with its first change. Under the lock.
bool has_or_gets_row(Oid schema, Oid table, Oid generator) {
    if (has_generator_row(schema, generator))
        return true;
    if (generator != builtin_generator())
        return false;
    insert_builtin_row(table, find_default_generator(schema) == generator);
    return true;
}

constexpr Changeable segment_row = {"uid_segment", "sequence", "step, max_step, description",
                                    "CASE WHEN r.step OPERATOR(pg_catalog.<>) 0::pg_catalog.int8 THEN r.step END, "
                                    "CASE WHEN r.max_step OPERATOR(pg_catalog.<>) 0::pg_catalog.int8 THEN r.max_step END, r.description",
                                    AccessShareLock, has_segment_row};

// What uid_generator_changing() lets pass.
constexpr Changeable generator_row = {
    "uid_generator", "generator",
    "epoch, tick_us, time_bits, datacenter_bits, worker_bits, sequence_bits, sequence_first, backup_worker, lease_ms, "
    "max_ahead_ms, when_full, when_back, tolerance_ms, spread, worker_policy, worker_number, mode, boost_power, "
    "padding_factor, schedule_ms, when_ring_full, when_ring_empty, chunk, max_staleness_ms",
    "r.epoch, r.tick_us, r.time_bits, r.datacenter_bits, r.worker_bits, r.sequence_bits, r.sequence_first, r.backup_worker, "
    "r.lease_ms, r.max_ahead_ms, r.when_full, r.when_back, r.tolerance_ms, r.spread, r.worker_policy, r.worker_number, "
    "r.mode, r.boost_power, r.padding_factor, r.schedule_ms, r.when_ring_full, r.when_ring_empty, r.chunk, r.max_staleness_ms",
    ShareRowExclusiveLock, has_or_gets_row};

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
    const char *statement = psprintf("UPDATE %s AS t SET (%s) = (SELECT %s FROM pg_catalog.jsonb_populate_record(t, $2) AS r) "
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
