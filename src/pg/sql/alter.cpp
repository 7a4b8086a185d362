// Functions that set a definition: the first one of a sequence, and changes of it; what views show of a label. And
// uid_generator_raise().
//
//   1. An argument sets the field of its name, unless it is NULL. So which fields a call may set is said by its
//      signature in the install script alone.
//   2. A number that no field holds (`null_number`) sets a field that may be NULL to NULL.

#include "base/errors.hpp"
#include "base/settings.hpp"
#include "config/rows.hpp"
#include "session/define.hpp"
#include "session/slot_life.hpp"
#include "sequence/sequence.hpp"

namespace uidgen::pg {

namespace {

bool is_number(Oid type, Datum value, int64_t number) {
    return (type == INT8OID && DatumGetInt64(value) == number) || (type == INT4OID && DatumGetInt32(value) == number);
}

// Sets what the arguments say. The first one stands for the sequence.
void set_arguments(FunctionCallInfo fcinfo, core::Definition *definition, int64_t null_number) {
    Oid *types = nullptr;
    char **names = nullptr;
    char *modes = nullptr;
    HeapTuple function = SearchSysCache1(PROCOID, ObjectIdGetDatum(fcinfo->flinfo->fn_oid));
    if (!HeapTupleIsValid(function))
        elog(ERROR, "cache lookup failed for function %u", fcinfo->flinfo->fn_oid);
    const int count = get_func_arg_info(function, &types, &names, &modes);
    ReleaseSysCache(function);
    for (int i = 1; i < count; i++) {
        const core::Field *field = core::find_field(definition->kind, names[i]);
        if (field == nullptr || fcinfo->args[i].isnull)
            continue;
        if (field->nullable && is_number(types[i], fcinfo->args[i].value, null_number))
            set_null(definition, *field);
        else
            set_field(definition, *field, fcinfo->args[i].value, types[i]);
    }
}

void change(FunctionCallInfo fcinfo, Oid sequence, core::DefinitionKind kind, int64_t null_number) {
    check_owner(sequence);
    const core::Definition former = lock_definition(sequence, kind);
    if (former.kind == core::DefinitionKind::none)
        ereport(
            ERROR,
            (errcode(ERRCODE_UNDEFINED_OBJECT),
             errmsg("\"%s\" is not a %s", get_rel_name(sequence), core::definition_kinds[static_cast<size_t>(kind)]),
             errhint("Create a segment with segment_create(), or a generator with uid_generator_create().")));
    core::Definition wanted = former;
    set_arguments(fcinfo, &wanted, null_number);
    redefine(sequence, former, wanted);
}

Oid segment_named(FunctionCallInfo fcinfo) {
    const Oid sequence = PG_ARGISNULL(0) ? InvalidOid : find_segment(PG_GETARG_TEXT_PP(0));
    if (!OidIsValid(sequence))
        ereport(ERROR,
                (errcode(ERRCODE_UNDEFINED_OBJECT),
                 errmsg("segment \"%s\" does not exist", PG_ARGISNULL(0) ? "<NULL>" : shown(PG_GETARG_TEXT_PP(0))),
                 errhint("Run SELECT name FROM uid_segment to list the named segments.")));
    return sequence;
}

// The type of the row that the function returns, found once for all calls of an expression. Null: it returns no row.
TupleDesc row_type(FunctionCallInfo fcinfo) {
    TupleDesc desc = static_cast<TupleDesc>(fcinfo->flinfo->fn_extra);
    MemoryContext caller = MemoryContextSwitchTo(fcinfo->flinfo->fn_mcxt);
    if (desc == nullptr && get_call_result_type(fcinfo, nullptr, &desc) == TYPEFUNC_COMPOSITE)
        fcinfo->flinfo->fn_extra = desc = BlessTupleDesc(desc);
    MemoryContextSwitchTo(caller);
    return desc;
}

// It is in no dump, so a change of it would be lost in a copy.
void refuse_builtin(Oid generator) {
    if (generator == builtin_generator())
        ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED), errmsg("cannot alter the builtin generator"),
                        errdetail("It belongs to the extension, so it is the same in each database."),
                        errhint("Create another generator with uid_generator_create(), and make it the default with "
                                "uid_default_set().")));
}

} // namespace

} // namespace uidgen::pg

using namespace uidgen::pg;
namespace core = uidgen::core;

extern "C" {

UIDGEN_SQL_FUNCTION(uid_define);
UIDGEN_SQL_FUNCTION(uid_definition);
UIDGEN_SQL_FUNCTION(uid_has_label);
UIDGEN_SQL_FUNCTION(uid_generator_alter);
UIDGEN_SQL_FUNCTION(segment_alter);
UIDGEN_SQL_FUNCTION(uid_change_segment);
UIDGEN_SQL_FUNCTION(uid_place_segment);
UIDGEN_SQL_FUNCTION(uid_generator_raise);

// In a fleet a segment of one's own is seldom what was meant.
static void note_fleet(const core::SegmentDefinition &segment) {
    if (segment.registry_name == nullptr && settings::registry[0] != '\0')
        ereport(NOTICE,
                (errmsg("values of segment \"%s\" are those of this server alone", shown(segment.name)),
                 errdetail("Another server of the fleet may have a segment of that name, with the same values."),
                 errhint("On a member, use segment_attach() for values of the registry's segment.")));
}

// The owner of a sequence defines a generator or a segment. A default is chosen in another way.
Datum uid_define(PG_FUNCTION_ARGS) {
    const Oid sequence = PG_GETARG_OID(0);
    const bool is_generator = strcmp(text_to_cstring(PG_GETARG_TEXT_PP(1)), "generator") == 0;
    core::Definition definition = {};
    definition.kind = is_generator ? core::DefinitionKind::generator : core::DefinitionKind::segment;
    check_owner(sequence);
    set_fields(&definition, PG_GETARG_HEAPTUPLEHEADER(2));
    if (is_generator)
        definition.generator.is_default = 0;
    define(sequence, definition);
    if (!is_generator)
        note_fleet(definition.segment);
    PG_RETURN_VOID();
}

// NULL for a label that cannot be read. Of a key only the id.
Datum uid_definition(PG_FUNCTION_ARGS) {
    TupleDesc desc = row_type(fcinfo);
    core::Definition definition;
    const bool is_row = desc != nullptr;
    if (parse_label(text_to_cstring(PG_GETARG_TEXT_PP(0)), &definition).kind != core::FaultKind::none ||
        is_row == (definition.kind == core::DefinitionKind::key))
        PG_RETURN_NULL();
    return is_row ? row_of_definition(definition, desc) : Int64GetDatum(definition.key.id);
}

Datum uid_has_label(PG_FUNCTION_ARGS) { PG_RETURN_BOOL(has_label(PG_GETARG_OID(0))); }

Datum uid_generator_alter(PG_FUNCTION_ARGS) {
    if (PG_ARGISNULL(0))
        PG_RETURN_VOID();
    check_is_sequence(PG_GETARG_OID(0));
    check_owner(PG_GETARG_OID(0));
    refuse_builtin(PG_GETARG_OID(0));
    change(fcinfo, PG_GETARG_OID(0), core::DefinitionKind::generator, -1);
    PG_RETURN_VOID();
}

Datum segment_alter(PG_FUNCTION_ARGS) {
    change(fcinfo, segment_named(fcinfo), core::DefinitionKind::segment, 0);
    PG_RETURN_VOID();
}

Datum uid_change_segment(PG_FUNCTION_ARGS) {
    if (!PG_ARGISNULL(0)) // 0 is a value
        change(fcinfo, PG_GETARG_OID(0), core::DefinitionKind::segment, PG_INT64_MIN);
    PG_RETURN_VOID();
}

// What an INSERT into t_sequence says. The trigger of the row reserves the block that it shows.
Datum uid_place_segment(PG_FUNCTION_ARGS) {
    check_owner(PG_GETARG_OID(0));
    Oid types[] = {OIDOID, INT8OID, INT8OID};
    Datum values[] = {PG_GETARG_DATUM(0), fcinfo->args[1].value, fcinfo->args[2].value};
    const char nulls[] = {' ', PG_ARGISNULL(1) ? 'n' : ' ', PG_ARGISNULL(2) ? 'n' : ' '};
    write_as_owner(segment_row_table(),
                   "UPDATE %1$s SET current_val = $2, increment_val = $3 WHERE sequence OPERATOR(pg_catalog.=) $1",
                   lengthof(types), types, values, nulls);
    PG_RETURN_VOID();
}

// The owner of a generator has its ids start above a given one.
Datum uid_generator_raise(PG_FUNCTION_ARGS) {
    const Oid generator = PG_GETARG_OID(0);
    check_is_sequence(generator);
    check_owner(generator);
    if (RecoveryInProgress())
        report_in_recovery();
    lock_generator(generator);
    raise_above_id(generator, read_generator_config(generator), PG_GETARG_INT64(1));
    PG_RETURN_VOID();
}
}
