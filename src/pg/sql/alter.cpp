// uid_generator_create(), uid_generator_alter(), uid_change_segment(), uid_change_key(): their parameters have the
// names of columns.
//
//   1. An argument sets the column of its name, unless it is NULL. So which columns a call may set is said by its
//      signature in the install script alone.
//   2. A number that no column holds (`null_number`) sets a column that may be NULL to NULL.
//   3. The tables belong to the extension's owner. A grant of UPDATE would let every role lock their rows. So an UPDATE
//      runs with the rights of the table's owner, after a check of the caller. It qualifies types and operators, and
//      does not depend on a search_path. An INSERT runs with the rights of the caller.

#include "tables/config_table.hpp"
#include "base/errors.hpp"
#include "session/locked_generator.hpp"
#include "tables/lease_sequence.hpp"
#include "tables/owner_rights.hpp"

namespace uidgen::pg {
namespace {

// The arguments of a call, as parameters of a statement.
struct Call {
    int count;
    char **names;
    Oid *types;
    Datum values[FUNC_MAX_ARGS];
    char nulls[FUNC_MAX_ARGS];
    bool sets[FUNC_MAX_ARGS]; // sets the column of its name
};

bool is_number(Oid type, Datum value, int64_t number) {
    return (type == INT8OID && DatumGetInt64(value) == number) || (type == INT4OID && DatumGetInt32(value) == number);
}

Call read_call(FunctionCallInfo fcinfo, Oid table, int64_t null_number) {
    Call call = {};
    char *modes = nullptr;
    HeapTuple function = SearchSysCache1(PROCOID, ObjectIdGetDatum(fcinfo->flinfo->fn_oid));
    if (!HeapTupleIsValid(function))
        elog(ERROR, "cache lookup failed for function %u", fcinfo->flinfo->fn_oid);
    call.count = get_func_arg_info(function, &call.types, &call.names, &modes);
    ReleaseSysCache(function);
    for (int i = 0; i < call.count; i++) {
        HeapTuple column = SearchSysCacheAttName(table, call.names[i]);
        const bool nullable =
            HeapTupleIsValid(column) && !reinterpret_cast<Form_pg_attribute>(GETSTRUCT(column))->attnotnull;
        call.values[i] = fcinfo->args[i].value;
        call.sets[i] = HeapTupleIsValid(column) && !fcinfo->args[i].isnull;
        const bool resets = call.sets[i] && nullable && is_number(call.types[i], call.values[i], null_number);
        call.nulls[i] = fcinfo->args[i].isnull || resets ? 'n' : ' ';
        if (HeapTupleIsValid(column))
            ReleaseSysCache(column);
    }
    return call;
}

struct Changeable {
    const char *table;
    int64_t null_number;
    LOCKMODE lock; // on the sequence
    bool (*has_row)(Oid schema, Oid table, Oid sequence);
};

bool has_segment_row(Oid schema, Oid, Oid sequence) { return has_segment(schema, sequence); }

bool has_key_row(Oid schema, Oid, Oid sequence) { return read_key_row(schema, sequence, 1).versions > 0; }

constexpr Changeable segment_row = {"uid_segment", 0, AccessShareLock, has_segment_row};
constexpr Changeable key_row = {"uid_key", 0, AccessShareLock, has_key_row};
constexpr Changeable generator_row = {"uid_generator", -1, excludes_draws, has_or_gets_generator_row};

void check_owner(Oid sequence, Oid table) {
    const char kind = get_rel_relkind(sequence);
    if (kind == '\0')
        report_no_sequence(sequence);
    if (!has_privs_of_role(GetUserId(), owner_of(sequence)) && !has_privs_of_role(GetUserId(), owner_of(table)))
        aclcheck_error(ACLCHECK_NOT_OWNER, OBJECT_SEQUENCE, get_rel_name(sequence));
}

// The first parameter is the sequence, and has the name of the column with the sequence.
void change_row(const Changeable &what, FunctionCallInfo fcinfo) {
    const Oid schema = schema_of_function(fcinfo->flinfo->fn_oid);
    const Oid table = required_table(schema, what.table);
    const Oid sequence = PG_GETARG_OID(0);
    check_owner(sequence, table);
    Call call = read_call(fcinfo, table, what.null_number);
    lock_sequence(sequence, what.lock); // before the row, as uid_default_set() does
    StringInfoData statement;
    initStringInfo(&statement);
    appendStringInfoString(&statement, "UPDATE %1$s AS t SET");
    for (int i = 0; i < call.count; i++)
        if (call.sets[i])
            appendStringInfo(&statement, "%s %s = $%d", i == 0 ? "" : ",", quote_identifier(call.names[i]), i + 1);
    appendStringInfo(&statement, " WHERE t.%s::pg_catalog.oid OPERATOR(pg_catalog.=) $1::pg_catalog.oid",
                     quote_identifier(call.names[0]));
    if (!what.has_row(schema, table, sequence))
        ereport(ERROR, (errcode(ERRCODE_UNDEFINED_OBJECT),
                        errmsg("\"%s\" has no row in table \"%s\"", get_rel_name(sequence), what.table),
                        errhint("Create a segment with segment_create(), a generator with uid_generator_create(), or "
                                "a key with uid_key_create().")));
    if (write_as_owner(table, statement.data, call.count, call.types, call.values, call.nulls) == 0)
        report_newer_row(sequence, what.table);
}

// uid_make_generator() does the rest, with the columns that the call sets. Its parameters are the first three of the
// call, and these columns.
Datum create_generator(FunctionCallInfo fcinfo) {
    const Oid schema = schema_of_function(fcinfo->flinfo->fn_oid);
    Call call = read_call(fcinfo, required_table(schema, "uid_generator"), generator_row.null_number);
    StringInfoData statement;
    initStringInfo(&statement);
    appendStringInfo(&statement, "SELECT %s.uid_make_generator($1, $2, $3, pg_catalog.jsonb_build_object(",
                     quote_identifier(get_namespace_name(schema)));
    const char *comma = "";
    for (int i = 0; i < call.count; i++)
        if (call.sets[i]) {
            appendStringInfo(&statement, "%s%s, $%d", comma, quote_literal_cstr(call.names[i]), i + 1);
            comma = ", ";
        }
    appendStringInfoString(&statement, "))");
    bool is_null = false;
    check_spi(SPI_connect(), "SPI_connect", statement.data);
    check_spi(SPI_execute_with_args(statement.data, call.count, call.types, call.values, call.nulls, false, 0),
              "SPI_execute_with_args", statement.data);
    const Datum generator = SPI_getbinval(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 1, &is_null);
    check_spi(SPI_finish(), "SPI_finish", statement.data);
    return generator;
}

} // namespace
} // namespace uidgen::pg

using namespace uidgen::pg;

extern "C" {

UIDGEN_SQL_FUNCTION(uid_generator_create);
UIDGEN_SQL_FUNCTION(uid_generator_alter);
UIDGEN_SQL_FUNCTION(uid_change_segment);
UIDGEN_SQL_FUNCTION(uid_change_key);

Datum uid_generator_create(PG_FUNCTION_ARGS) { return create_generator(fcinfo); }

Datum uid_generator_alter(PG_FUNCTION_ARGS) {
    if (!PG_ARGISNULL(0))
        change_row(generator_row, fcinfo);
    PG_RETURN_VOID();
}

Datum uid_change_segment(PG_FUNCTION_ARGS) {
    if (!PG_ARGISNULL(0))
        change_row(segment_row, fcinfo);
    PG_RETURN_VOID();
}

Datum uid_change_key(PG_FUNCTION_ARGS) {
    if (!PG_ARGISNULL(0))
        change_row(key_row, fcinfo);
    PG_RETURN_VOID();
}
}
