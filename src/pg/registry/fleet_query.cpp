#include "fleet_query.hpp"

#include "base/time_source.hpp"
#include "config/extension.hpp"

namespace uidgen::pg {
namespace {

char schema_name[NAMEDATALEN] = "";
Oid schema_oid = InvalidOid;
uint64 schema_version = 0; // counts the schemas

void add_datum(Parameters *p, Oid type, Datum value, bool is_null = false) {
    Assert(p->count < most_parameters);
    p->types[p->count] = type;
    p->values[p->count] = value;
    p->nulls[p->count++] = is_null ? 'n' : ' ';
}

// A generic plan: a member calls seldom, so a connection would never leave the custom plans behind.
void plan(Query *query, const Parameters &parameters) {
    if (query->plan != nullptr)
        SPI_freeplan(query->plan);
    query->plan = nullptr;
    const char *text = psprintf(query->text, quote_identifier(schema_name));
    Oid *types = const_cast<Oid *>(parameters.types);
    SPIPlanPtr made = SPI_prepare_cursor(text, parameters.count, types, CURSOR_OPT_GENERIC_PLAN);
    if (made == nullptr)
        check_spi(SPI_result, "SPI_prepare_cursor", text);
    check_spi(SPI_keepplan(made), "SPI_keepplan", text);
    query->plan = made;
    query->planned_for = schema_version;
}

Datum value_of(int column, bool *is_null) {
    return SPI_getbinval(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, column, is_null);
}

} // namespace

void add(Parameters *p, int64_t value) { add_datum(p, INT8OID, Int64GetDatum(value)); }
void add(Parameters *p, int32_t value) { add_datum(p, INT4OID, Int32GetDatum(value)); }
void add(Parameters *p, bool value) { add_datum(p, BOOLOID, BoolGetDatum(value)); }
void add(Parameters *p, Time value) {
    add_datum(p, TIMESTAMPTZOID, TimestampTzGetDatum(to_timestamptz(value.unix_us)));
}
void add(Parameters *p, const char *value) {
    add_datum(p, TEXTOID, value == nullptr ? static_cast<Datum>(0) : CStringGetTextDatum(value), value == nullptr);
}

void query_use_schema(Oid schema) {
    const char *name = get_namespace_name(schema);
    if (name == nullptr)
        elog(ERROR, "cache lookup failed for schema %u", schema);
    if (schema == schema_oid && strcmp(name, schema_name) == 0)
        return;
    schema_oid = schema;
    strlcpy(schema_name, name, sizeof(schema_name));
    schema_version++;
}

uint64 execute(Query *query, const Parameters &parameters) {
    if (query->plan == nullptr || query->planned_for != schema_version)
        plan(query, parameters);
    Datum *values = const_cast<Datum *>(parameters.values);
    check_spi(SPI_execute_plan(query->plan, values, parameters.nulls, false, 0), "SPI_execute_plan", query->text);
    return SPI_processed;
}

bool is_null_of(int column) {
    bool is_null = false;
    value_of(column, &is_null);
    return is_null;
}

int64_t bigint_of(int column) {
    bool is_null = false;
    const Datum value = value_of(column, &is_null);
    return is_null ? 0 : DatumGetInt64(value);
}

int32_t integer_of(int column) {
    bool is_null = false;
    const Datum value = value_of(column, &is_null);
    return is_null ? 0 : DatumGetInt32(value);
}

bool boolean_of(int column) {
    bool is_null = false;
    const Datum value = value_of(column, &is_null);
    return !is_null && DatumGetBool(value);
}

const char *text_of(int column) {
    bool is_null = false;
    const Datum value = value_of(column, &is_null);
    return is_null ? nullptr : TextDatumGetCString(value);
}

int64_t time_of(int column) {
    bool is_null = false;
    const Datum value = value_of(column, &is_null);
    return is_null ? 0 : to_unix_us(DatumGetTimestampTz(value));
}

} // namespace uidgen::pg
