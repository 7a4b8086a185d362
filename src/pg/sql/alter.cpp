// uid_generator_alter(), segment_alter(), uid_change_segment(): they write rows of the extension's tables. And
// uid_generator_raise().
//
//   1. An argument sets the column of its name, unless it is NULL. So which columns a call may set
//      is said by its signature in the install script alone.
//   2. A number that no column holds (`null_number`) sets a column that may be NULL to NULL.
//   3. The tables belong to a superuser. A grant of UPDATE would let every role lock their rows. So a statement runs
//      with the rights of the table's owner, after a check of the caller. It qualifies types and operators, and does
//      not depend on a search_path.

#include "config/rows.hpp"
#include "base/errors.hpp"
#include "session/slot_life.hpp"
#include "config/extension.hpp"
#include "sequence/sequence.hpp"

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

// The call's first argument stands for the row. It may be the column that names the sequence, which is `key`.
void change_row(FunctionCallInfo fcinfo, const char *name, const char *key, Oid sequence, LOCKMODE lock,
                int64_t null_number) {
    const Oid schema = extension_schema();
    const Oid table = required_table(schema, name);
    const Call call = read_call(fcinfo, table, null_number);
    check_owner(sequence, table);
    lock_sequences({sequence}, lock); // before the row, as uid_default_set() does
    if (find_row(schema, name, key, F_OIDEQ, ObjectIdGetDatum(sequence)).tuple == nullptr)
        ereport(ERROR, (errcode(ERRCODE_UNDEFINED_OBJECT),
                        errmsg("\"%s\" has no row in table \"%s\"", get_rel_name(sequence), name),
                        errhint("Create a segment with segment_create(), a generator with uid_generator_create(), or "
                                "a key with uid_key_create().")));
    StringInfoData statement;
    initStringInfo(&statement);
    appendStringInfo(&statement, "UPDATE %%1$s AS t SET %s = t.%s", key, key);
    for (int i = 1; i < call.count; i++)
        if (call.sets[i])
            appendStringInfo(&statement, ", %s = $%d", quote_identifier(call.names[i]), i + 1);
    appendStringInfo(&statement, " WHERE t.%s::pg_catalog.oid OPERATOR(pg_catalog.=) %u::pg_catalog.oid", key,
                     sequence);
    if (write_as_owner(table, statement.data, call.count, call.types, const_cast<Datum *>(call.values), call.nulls) ==
        0)
        report_newer_row(sequence, name);
}

Oid segment_named(FunctionCallInfo fcinfo) {
    const Oid schema = extension_schema();
    const Oid sequence = PG_ARGISNULL(0) ? InvalidOid : read_segment_by_name(schema, PG_GETARG_TEXT_PP(0));
    if (!OidIsValid(sequence))
        ereport(ERROR,
                (errcode(ERRCODE_UNDEFINED_OBJECT),
                 errmsg("segment \"%s\" does not exist", PG_ARGISNULL(0) ? "<NULL>" : shown(PG_GETARG_TEXT_PP(0))),
                 errhint("Run SELECT name FROM uid_segment to list the named segments.")));
    return sequence;
}

} // namespace

} // namespace uidgen::pg

using namespace uidgen::pg;

extern "C" {

UIDGEN_SQL_FUNCTION(uid_generator_alter);
UIDGEN_SQL_FUNCTION(segment_alter);
UIDGEN_SQL_FUNCTION(uid_change_segment);
UIDGEN_SQL_FUNCTION(uid_generator_raise);

Datum uid_generator_alter(PG_FUNCTION_ARGS) {
    if (!PG_ARGISNULL(0))
        change_row(fcinfo, "uid_generator", "generator", PG_GETARG_OID(0), excludes_draws, -1);
    PG_RETURN_VOID();
}

Datum segment_alter(PG_FUNCTION_ARGS) {
    change_row(fcinfo, "uid_segment", "sequence", segment_named(fcinfo), AccessShareLock, 0);
    PG_RETURN_VOID();
}

Datum uid_change_segment(PG_FUNCTION_ARGS) {
    if (!PG_ARGISNULL(0)) // 0 is a value
        change_row(fcinfo, "uid_segment", "sequence", PG_GETARG_OID(0), AccessShareLock, PG_INT64_MIN);
    PG_RETURN_VOID();
}

// The owner of a generator has its ids start above a given one.
Datum uid_generator_raise(PG_FUNCTION_ARGS) {
    const Oid generator = PG_GETARG_OID(0);
    check_is_sequence(generator); // a row may outlive its sequence where the library is not loaded
    if (!has_privs_of_role(GetUserId(), owner_of(generator)))
        aclcheck_error(ACLCHECK_NOT_OWNER, OBJECT_SEQUENCE, get_rel_name(generator));
    if (RecoveryInProgress())
        report_in_recovery();
    lock_generator(generator);
    raise_above_id(generator, read_generator_config(extension_schema(), generator), PG_GETARG_INT64(1));
    PG_RETURN_VOID();
}
}
