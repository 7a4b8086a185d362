#include "fleet_query.hpp"

#include "base/time_source.hpp"
#include "config/extension.hpp"

namespace uidgen::pg {
namespace {

char schema_name[NAMEDATALEN] = "";
Oid schema_oid = InvalidOid;
uint64 schema_version = 0; // counts the schemas

void add_datum(Parameters *p, Oid type, Datum value, bool is_null = false) {
    Assert(p->count < most_fields);
    p->types[p->count] = type;
    p->values[p->count] = value;
    p->nulls[p->count++] = is_null ? 'n' : ' ';
}

struct Plan {
    const char *statement;
    SPIPlanPtr plan;
    uint64 made_for; // the schema, or name of it
};
constexpr int most_plans = 64;
Plan plans[most_plans];

Plan *plan_of(const char *statement) {
    Plan *plan = plans;
    while (plan->statement != nullptr && strcmp(plan->statement, statement) != 0)
        if (++plan == plans + most_plans)
            elog(ERROR, "too many statements");
    if (plan->statement == nullptr)
        plan->statement = MemoryContextStrdup(TopMemoryContext, statement);
    return plan;
}

const char *with_schema(const char *statement) {
    StringInfoData text;
    initStringInfo(&text);
    for (; *statement != '\0'; statement++)
        if (*statement == '@')
            appendStringInfo(&text, "%s.", quote_identifier(schema_name));
        else
            appendStringInfoChar(&text, *statement);
    return text.data;
}

// A generic plan: a member calls seldom, so a connection would never leave the custom plans behind.
void make(Plan *plan, const Parameters &parameters) {
    const char *text = with_schema(plan->statement);
    if (plan->plan != nullptr)
        SPI_freeplan(plan->plan);
    plan->plan = nullptr;
    Oid *types = const_cast<Oid *>(parameters.types);
    SPIPlanPtr made = SPI_prepare_cursor(text, parameters.count, types, CURSOR_OPT_GENERIC_PLAN);
    if (made == nullptr)
        check_spi(SPI_result, "SPI_prepare_cursor", text);
    check_spi(SPI_keepplan(made), "SPI_keepplan", text);
    plan->plan = made;
    plan->made_for = schema_version;
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

Parameters parameters_of(const Fields &fields, const void *from) {
    Parameters p = {};
    p.count = fields.count;
    for (int i = 0; i < fields.count; i++)
        p.types[i] = field_type_oid(fields.fields[i].type);
    field_values(fields, from, p.values, p.nulls);
    return p;
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

uint64 execute(const char *statement, const Parameters &parameters) {
    Plan *plan = plan_of(statement);
    if (plan->plan == nullptr || plan->made_for != schema_version)
        make(plan, parameters);
    Datum *values = const_cast<Datum *>(parameters.values);
    check_spi(SPI_execute_plan(plan->plan, values, parameters.nulls, false, 0), "SPI_execute_plan", statement);
    return SPI_processed;
}

bool select(const Fields &fields, void *into, const char *from, const Parameters &parameters) {
    if (execute(psprintf("SELECT %s %s", field_names(fields), from), parameters) == 0)
        return false;
    read_row(fields, into);
    return true;
}

void upsert(const char *table, const char *key, const Fields &fields, const Parameters &parameters) {
    const char *names = field_names(fields);
    execute(psprintf("INSERT INTO @%s (%s) VALUES (%s) ON CONFLICT (%s) DO UPDATE SET (%s) = ROW(%s)", table, names,
                     placeholders(parameters.count), key, names, field_names(fields, "EXCLUDED.")),
            parameters);
}

const char *placeholders(int count) {
    StringInfoData list;
    initStringInfo(&list);
    for (int i = 1; i <= count; i++)
        appendStringInfo(&list, "%s$%d", i > 1 ? ", " : "", i);
    return list.data;
}

void read_row(const Fields &fields, void *into, uint64 row) {
    read_fields(fields, into, SPI_tuptable->vals[row], SPI_tuptable->tupdesc);
}

int64_t first_number() {
    bool is_null = false;
    const Datum value = SPI_getbinval(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 1, &is_null);
    return is_null ? 0 : DatumGetInt64(value);
}

} // namespace uidgen::pg
