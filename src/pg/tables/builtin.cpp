#include "builtin.hpp"

#include "base/compat.hpp"
#include "generator_columns.hpp"
#include "owner_rights.hpp"
#include "base/time_source.hpp"

namespace uidgen::pg {
namespace {

constexpr int64_t epoch_us = INT64_C(1767225600000000); // 2026-01-01 00:00:00 UTC

struct Extension {
    Oid oid;
    Oid schema;
};

Extension find_extension() {
    Extension found = {InvalidOid, InvalidOid};
    ScanKeyData key;
    ScanKeyInit(&key, Anum_pg_extension_extname, BTEqualStrategyNumber, F_NAMEEQ, CStringGetDatum("uidgen"));
    Relation rel = table_open(ExtensionRelationId, AccessShareLock);
    SysScanDesc scan = systable_beginscan(rel, ExtensionNameIndexId, true, nullptr, 1, &key);
    HeapTuple tuple = systable_getnext(scan);
    if (HeapTupleIsValid(tuple)) {
        const auto *extension = reinterpret_cast<Form_pg_extension>(GETSTRUCT(tuple));
        found = {extension->oid, extension->extnamespace};
    }
    systable_endscan(scan);
    table_close(rel, AccessShareLock);
    return found;
}

} // namespace

Oid extension_schema() { return find_extension().schema; }

Oid builtin_generator() {
    const Oid schema = get_namespace_oid("uid_generators", true);
    const Oid sequence = OidIsValid(schema) ? get_relname_relid("uid_default", schema) : InvalidOid;
    const Oid owner = OidIsValid(sequence) ? getExtensionOfObject(RelationRelationId, sequence) : InvalidOid;
    return OidIsValid(owner) && owner == find_extension().oid ? sequence : InvalidOid;
}

HeapTuple builtin_row(Oid generator, bool is_default, TupleDesc desc) {
    auto *values = static_cast<Datum *>(palloc0(sizeof(Datum) * static_cast<Size>(desc->natts)));
    auto *nulls = static_cast<bool *>(palloc0(sizeof(bool) * static_cast<Size>(desc->natts)));
    memset(nulls + generator_last_column, true, static_cast<Size>(desc->natts - generator_last_column));
    const auto set = [values](AttrNumber column, Datum value) { values[column - 1] = value; };
    const auto set_null = [nulls](AttrNumber column) { nulls[column - 1] = true; };
    set(generator_sequence, ObjectIdGetDatum(generator));
    set(generator_preset, CStringGetTextDatum("snowflake"));
    set(generator_epoch, TimestampTzGetDatum(to_timestamptz(epoch_us)));
    set(generator_tick_us, Int64GetDatum(1000));
    set(generator_time_bits, Int16GetDatum(41));
    set(generator_datacenter_bits, Int16GetDatum(5));
    set(generator_worker_bits, Int16GetDatum(5));
    set(generator_sequence_bits, Int16GetDatum(12));
    set(generator_sequence_first, BoolGetDatum(false));
    set(generator_backup_worker, BoolGetDatum(false));
    set(generator_lease_ms, Int32GetDatum(1000));
    set(generator_max_ahead_ms, Int32GetDatum(2000));
    set(generator_when_full, CStringGetTextDatum("borrow"));
    set(generator_when_back, CStringGetTextDatum("hold"));
    set_null(generator_tolerance_ms);
    set(generator_spread, BoolGetDatum(true));
    set(generator_worker_policy, CStringGetTextDatum("disposable"));
    set_null(generator_worker_number);
    set(generator_mode, CStringGetTextDatum("snowflake"));
    set(generator_boost_power, Int32GetDatum(3));
    set(generator_padding_factor, Int32GetDatum(50));
    set_null(generator_schedule_ms);
    set(generator_when_ring_full, CStringGetTextDatum("stop"));
    set(generator_when_ring_empty, CStringGetTextDatum("pad"));
    set(generator_chunk, Int32GetDatum(1));
    set(generator_max_staleness_ms, Int32GetDatum(5000));
    set(generator_created, TimestampTzGetDatum(GetCurrentTransactionStartTimestamp()));
    set(generator_builtin, BoolGetDatum(true));
    set(generator_is_default, BoolGetDatum(is_default));
    return heap_form_tuple(desc, values, nulls);
}

void insert_builtin_row(Oid table, bool is_default) {
    const char *name = get_rel_name(table);
    const char *schema = quote_identifier(get_namespace_name(get_rel_namespace(table)));
    const char *statement = psprintf("INSERT INTO %s.%s SELECT * FROM %s.uid_generator_builtin($1)", schema,
                                     quote_identifier(name), schema);
    Oid types[] = {BOOLOID};
    Datum values[] = {BoolGetDatum(is_default)};
    execute_as_owner(table, statement, lengthof(types), types, values);
}

} // namespace uidgen::pg

using namespace uidgen::pg;

extern "C" {

UIDGEN_SQL_FUNCTION(uid_generator_builtin);

Datum uid_generator_builtin(PG_FUNCTION_ARGS) {
    const Oid generator = builtin_generator();
    TupleDesc desc;
    if (!OidIsValid(generator))
        PG_RETURN_NULL();
    if (get_call_result_type(fcinfo, nullptr, &desc) != TYPEFUNC_COMPOSITE || desc->natts < generator_last_column)
        elog(ERROR, "uid_generator_builtin must return a row of uid_generator");
    PG_RETURN_DATUM(HeapTupleGetDatum(builtin_row(generator, PG_GETARG_BOOL(0), BlessTupleDesc(desc))));
}
}
