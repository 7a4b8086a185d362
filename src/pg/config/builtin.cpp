#include "rows.hpp"

#include "base/compat.hpp"
#include "extension.hpp"

namespace uidgen::pg {
namespace {

// Its fields, which are also the preset snowflake and the base of the other presets. All others are NULL.
constexpr const char *fields[][2] = {
    {"preset", "snowflake"},      {"epoch", "2026-01-01 00:00:00+00"},
    {"tick_us", "1000"},          {"time_bits", "41"},
    {"datacenter_bits", "5"},     {"worker_bits", "5"},
    {"sequence_bits", "12"},      {"sequence_first", "false"},
    {"backup_worker", "false"},   {"lease_ms", "1000"},
    {"max_ahead_ms", "2000"},     {"when_full", "borrow"},
    {"when_back", "hold"},        {"spread", "true"},
    {"mode", "snowflake"},        {"worker_policy", "disposable"},
    {"boost_power", "3"},         {"padding_factor", "50"},
    {"when_ring_full", "stop"},   {"when_ring_empty", "pad"},
    {"max_staleness_ms", "5000"}, {"created", "now"},
    {"builtin", "true"},
};

} // namespace

Oid builtin_generator() {
    const Oid schema = get_namespace_oid("uid_generators", true);
    const Oid sequence = OidIsValid(schema) ? get_relname_relid("uid_default", schema) : InvalidOid;
    const Oid owner = OidIsValid(sequence) ? getExtensionOfObject(RelationRelationId, sequence) : InvalidOid;
    return OidIsValid(owner) && owner == find_extension().oid ? sequence : InvalidOid;
}

Row builtin_row(Oid generator, bool is_default, TupleDesc desc) {
    auto **values = static_cast<char **>(palloc0(sizeof(char *) * static_cast<Size>(desc->natts)));
    const auto set = [&](const char *name, const char *value) {
        values[column_number(desc, name) - 1] = pstrdup(value);
    };
    for (const auto &[name, value] : fields)
        set(name, value);
    set("is_default", is_default ? "true" : "false");
    if (OidIsValid(generator))
        set("generator", psprintf("%u", generator));
    return {BuildTupleFromCStrings(TupleDescGetAttInMetadata(desc), values), desc};
}

void insert_builtin_row(Oid table, bool is_default) {
    const char *statement = "INSERT INTO %1$s SELECT * FROM uid_internal.uid_generator_builtin($1)";
    Oid types[] = {BOOLOID};
    Datum values[] = {BoolGetDatum(is_default)};
    write_as_owner(table, statement, lengthof(types), types, values);
}

} // namespace uidgen::pg

using namespace uidgen::pg;

extern "C" {

UIDGEN_SQL_FUNCTION(uid_generator_builtin);

Datum uid_generator_builtin(PG_FUNCTION_ARGS) {
    TupleDesc desc;
    if (get_call_result_type(fcinfo, nullptr, &desc) != TYPEFUNC_COMPOSITE)
        elog(ERROR, "uid_generator_builtin must return a row of uid_generator");
    PG_RETURN_DATUM(HeapTupleGetDatum(builtin_row(builtin_generator(), PG_GETARG_BOOL(0), desc).tuple));
}
}
