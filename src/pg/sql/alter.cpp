// Functions that set a definition: the first one of a sequence, and changes of it; what views show of a label. And
// uid_generator_raise().
//
//   1. An argument sets the field of its name, unless it is NULL. So which fields a call may set is said by its
//      signature in the install script alone.
//   2. Where a function has a number that stands for NULL, that sets a field that may be NULL to NULL.

#include "base/columns.hpp"
#include "session/create.hpp"
#include "session/define.hpp"
#include "session/slot_life.hpp"
#include "sequence/sequence.hpp"

namespace uidgen::pg {

namespace {

constexpr int64_t generator_null = -1;
constexpr int64_t segment_null = 0;

// Sets a field of the definition in memory. Error if it is none of the values that the field may have.
void set_field(core::Definition *definition, const core::Field &field, Datum value) {
    if (set_value(definition, field, value))
        return;
    const char *given = field.type == FieldType::choice ? TextDatumGetCString(value)
                        : field.type == FieldType::time ? timestamptz_to_str(DatumGetTimestampTz(value))
                                                        : psprintf(INT64_FORMAT, DatumGetInt64(value));
    check_fault({}, {.kind = core::FaultKind::value, .field = &field, .at = given, .size = strlen(given)});
}

// Sets in the definition in memory what the arguments say, as far as `end`; pg_proc has their names. The first one
// stands for the sequence.
void set_arguments(FunctionCallInfo fcinfo, core::Definition *definition, const int64_t *null_number,
                   int end = FUNC_MAX_ARGS) {
    Oid *types = nullptr;
    char **names = nullptr;
    char *modes = nullptr;
    HeapTuple function = SearchSysCache1(PROCOID, ObjectIdGetDatum(fcinfo->flinfo->fn_oid));
    if (!HeapTupleIsValid(function))
        elog(ERROR, "cache lookup failed for function %u", fcinfo->flinfo->fn_oid);
    const int count = get_func_arg_info(function, &types, &names, &modes);
    ReleaseSysCache(function);
    for (int i = 1; i < Min(count, end); i++) {
        const core::Field *field = core::find_field(core::fields_of(definition->kind), names[i]);
        if (field == nullptr || fcinfo->args[i].isnull)
            continue;
        const Datum given = fcinfo->args[i].value;
        const Datum value = types[i] == INT4OID ? Int32GetDatum(DatumGetInt32(given)) : given; // JIT extends no sign
        if (field->nullable && null_number != nullptr && DatumGetInt64(value) == *null_number)
            core::set_null(definition, *field);
        else
            set_field(definition, *field, value);
    }
}

// The whole of uid_generator_alter() and its like: error unless the caller owns the sequence; locks it as
// lock_definition() does, changes its definition by the arguments, and stores the label (redefine_sequence()).
// `null_number`, unless it is null, is the number that stands for NULL in them.
void change_by_arguments(FunctionCallInfo fcinfo, Oid sequence, core::DefinitionKind kind, const int64_t *null_number) {
    check_is_sequence(sequence);
    check_owner(sequence);
    if (sequence == builtin_generator()) // it is in no dump, so a change of it would be lost in a copy
        ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED), errmsg("cannot alter the builtin generator"),
                        errdetail("It belongs to the extension, so it is the same in each database."),
                        errhint("Create another generator with uid_generator_create(), and make it the default with "
                                "uid_default_set().")));
    const auto set = [&](core::Definition *definition) {
        check_owner(sequence); // again under the lock, because it may have got another owner meanwhile
        set_arguments(fcinfo, definition, null_number);
    };
    if (!change_definition(sequence, kind, set))
        ereport(ERROR,
                (errcode(ERRCODE_UNDEFINED_OBJECT),
                 errmsg("\"%s\" is not a %s", get_rel_name(sequence), core::kind_name(kind)),
                 errhint("Create a segment with segment_create(), or a generator with uid_generator_create().")));
}

// Reads the row of uid_preset by a statement, and what it leaves out from the builtin generator. Error if one of them
// is missing.
core::Definition preset_named(Oid schema, const text *preset) {
    core::Definition definition = read_definition(builtin_generator(), core::DefinitionKind::generator);
    if (definition.kind == core::DefinitionKind::none)
        ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                        errmsg("the builtin generator uid_generators.uid_default does not exist"),
                        errdetail("A new generator has the fields that its preset leaves out from that one."),
                        errhint("Give the sequence that came with the extension its name back.")));
    const char *select =
        psprintf("SELECT * FROM %s.uid_preset WHERE preset OPERATOR(pg_catalog.=) $1", quoted_schema(schema));
    if (select_rows(select, {{TEXTOID, PointerGetDatum(preset), preset == nullptr}}) == 0)
        ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                        errmsg("preset \"%s\" does not exist", preset == nullptr ? "<NULL>" : clipped(preset)),
                        errhint("Run SELECT preset FROM uid_preset to list the presets.")));
    for (const core::Field &field : core::fields_of(definition.kind)) {
        bool null = false;
        const int column = SPI_fnumber(SPI_tuptable->tupdesc, field.name);
        const Datum value = column > 0 ? SPI_getbinval(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, column, &null) : 0;
        if (null)
            core::set_null(&definition, field);
        else if (column > 0)
            set_field(&definition, field, value);
    }
    finish_statement();
    definition.generator.preset = text_to_cstring(preset); // that of the row is gone
    return definition;
}

// The definition before the arguments: read from that generator's label, or without one (InvalidOid) from the preset
// (preset_named()). No lock is held, and nothing written. A layout without an epoch begins today.
core::Definition new_generator(Oid schema, Oid like, const text *preset) {
    core::Definition definition =
        OidIsValid(like) ? read_definition(like, core::DefinitionKind::generator) : preset_named(schema, preset);
    if (definition.kind == core::DefinitionKind::none)
        report_not_a_generator(like);
    core::GeneratorDefinition &generator = definition.generator;
    generator.created = to_unix_us(GetCurrentTransactionStartTimestamp());
    generator.is_default = 0;
    if (generator.epoch == core::null_number)
        generator.epoch = generator.created / us_per_day * us_per_day;
    return definition;
}

// Grants the privilege on the generator, which is the caller's, to the roles that have it, or as good a one, on the
// other one (roles_that_lack()), by a statement.
void grant_as(Oid like, Oid generator, const char *privilege, AclMode privileges) {
    const char *roles = roles_that_lack(like, generator, privileges);
    if (roles != nullptr)
        run_statement(psprintf("GRANT %s ON SEQUENCE %s TO %s", privilege, qualified_name(generator), roles));
}

// Has the ids of a generator of the caller's start above a given one: takes lock_generator(), and raises the high-water
// mark on the sequence's page, durably, which ends the lease (raise_above_id()).
void raise_generator(Oid generator, int64_t above) {
    check_is_sequence(generator);
    check_owner(generator);
    if (RecoveryInProgress())
        report_in_recovery();
    lock_generator(generator);
    check_owner(generator); // as in change_by_arguments()
    raise_above_id(generator, read_generator_config(generator), above);
}

// The sequence of the segment that the first argument names, by find_segment(); error if there is none. Not locked.
Oid segment_named(FunctionCallInfo fcinfo) {
    const text *name = PG_ARGISNULL(0) ? cstring_to_text("<NULL>") : PG_GETARG_TEXT_PP(0);
    const Oid sequence = PG_ARGISNULL(0) ? InvalidOid : find_segment(name);
    if (!OidIsValid(sequence))
        report_no_segment(name, "Run SELECT name FROM uid_segment to list the named segments.");
    return sequence;
}

// By a statement, DROP SEQUENCE, which locks it and calls forget_dropped(), as the caller, who must own it.
void drop_sequence(Oid sequence) { run_statement(psprintf("DROP SEQUENCE %s", qualified_name(sequence))); }

} // namespace

// Reads the preset (new_generator()), creates the sequence (create_sequence()) and excludes draws (define_sequence()),
// stores its label, raises its high-water mark if `above` is given (raise_generator()), and may GRANT (grant_as()).
// After hold_names(). Error if the generator exists, or with if_not_exists a NOTICE. A sequence that has no label is
// one that was restored without it.
UIDGEN_SQL_FUNCTION(uid_generator_create) {
    const char *name = PG_ARGISNULL(0) ? "<NULL>" : text_to_cstring(PG_GETARG_TEXT_PP(0));
    const Oid schema = hold_names();
    if (PG_ARGISNULL(0) || name[0] == '\0' || strlen(name) >= NAMEDATALEN)
        ereport(ERROR, (errcode(ERRCODE_INVALID_NAME), errmsg("invalid generator name: \"%s\"", clipped(name)),
                        errhint("Use a name of 1 to 63 bytes.")));
    const int last = PG_NARGS() - 1;
    const Oid like = PG_ARGISNULL(last - 1) ? InvalidOid : PG_GETARG_OID(last - 1);
    core::Definition definition = new_generator(schema, like, PG_ARGISNULL(1) ? nullptr : PG_GETARG_TEXT_PP(1));
    const Oid sequence = create_sequence(definition.kind, name, {.increment = PG_INT64_MAX});
    if (has_label(sequence)) {
        const bool skips = !PG_ARGISNULL(last) && PG_GETARG_BOOL(last);
        ereport(skips ? NOTICE : ERROR, (errcode(ERRCODE_DUPLICATE_OBJECT),
                                         errmsg("generator \"%s\" already exists%s", name, skips ? ", skipping" : ""),
                                         skips ? 0 : errhint("Use another name, or pass if_not_exists => true.")));
        PG_RETURN_OID(sequence);
    }
    check_owner_of_new(sequence);
    const char *preset = definition.generator.preset; // the template's, whatever the argument
    set_arguments(fcinfo, &definition, &generator_null);
    definition.generator.preset = preset;
    define_sequence(sequence, definition);
    if (!PG_ARGISNULL(2) && !fault_is("forget_above"))
        raise_generator(sequence, PG_GETARG_INT64(2));
    if (OidIsValid(like)) {
        grant_as(like, sequence, "USAGE", draw_privileges);
        grant_as(like, sequence, "SELECT", ACL_SELECT); // which a dump needs
    }
    PG_RETURN_OID(sequence);
}

// Excludes draws (define_segment()), and stores the label.
UIDGEN_SQL_FUNCTION(uid_define_segment) {
    const Oid sequence = PG_ARGISNULL(0) ? InvalidOid : PG_GETARG_OID(0);
    core::Definition definition = new_segment(nullptr);
    set_arguments(fcinfo, &definition, nullptr);
    define_segment(sequence, definition);
    PG_RETURN_VOID();
}

// Creates the sequence unless it is there (create_segment()), and stores its label, under a lock that excludes draws.
// After hold_names(). Without a bound the sequence has all values in the direction of the increment. In the other
// direction it ends at 1 or -1, or at its start if that lies further.
UIDGEN_SQL_FUNCTION(segment_create) {
    const auto number = [fcinfo](int i, int64_t otherwise) { return PG_ARGISNULL(i) ? otherwise : PG_GETARG_INT64(i); };
    const char *name = PG_ARGISNULL(0) ? "" : text_to_cstring(PG_GETARG_TEXT_PP(0));
    hold_names();
    if (PG_ARGISNULL(1))
        ereport(ERROR, (errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
                        errmsg("start of segment \"%s\" must not be null", clipped(name)),
                        errhint("Pass the first value of the segment as start.")));
    const int64_t start = PG_GETARG_INT64(1);
    const int64_t increment = number(4, 1);
    const bool up = increment > 0;
    const SequenceOptions options = {.start = start,
                                     .increment = increment,
                                     .min_value = number(5, up ? Min(start, 1) : PG_INT64_MIN),
                                     .max_value = number(6, up ? PG_INT64_MAX : Max(start, -1)),
                                     .cycle = !PG_ARGISNULL(7) && PG_GETARG_BOOL(7)};
    core::Definition definition = new_segment(name);
    set_arguments(fcinfo, &definition, nullptr, 4); // not the increment, which is that of the sequence
    PG_RETURN_OID(create_segment(definition, options, !PG_ARGISNULL(8) && PG_GETARG_BOOL(8)));
}

// Parses its argument, the text of a label, into a row. NULL for one that cannot be read, or is of another kind than
// the row.
UIDGEN_SQL_FUNCTION(uid_definition) {
    TupleDesc desc = row_type(fcinfo);
    core::Definition definition;
    const bool is_read = parses(text_to_cstring(PG_GETARG_TEXT_PP(0)), &definition);
    const core::Fields &fields = core::fields_of(definition.kind);
    if (!is_read || namestrcmp(&TupleDescAttr(desc, 0)->attname, fields.first->name) != 0)
        PG_RETURN_NULL();
    return HeapTupleGetDatum(form_fields(fields, &definition, desc));
}

// Excludes draws (lock_generator()), ends the lease and stores the label (change_by_arguments()).
UIDGEN_SQL_FUNCTION(uid_generator_alter) {
    if (!PG_ARGISNULL(0))
        change_by_arguments(fcinfo, PG_GETARG_OID(0), core::DefinitionKind::generator, &generator_null);
    PG_RETURN_VOID();
}

// Finds the segment (segment_named()), and stores the label, under ShareUpdateExclusiveLock (change_by_arguments()):
// sessions draw meanwhile, from a slot that is marked altered.
UIDGEN_SQL_FUNCTION(segment_alter) {
    change_by_arguments(fcinfo, segment_named(fcinfo), core::DefinitionKind::segment, &segment_null);
    PG_RETURN_VOID();
}

// For segment_attach(): stores the label, under ShareUpdateExclusiveLock (change_by_arguments()); sessions draw
// meanwhile, from a slot that is marked altered.
UIDGEN_SQL_FUNCTION(uid_change_segment) {
    if (!PG_ARGISNULL(0))
        change_by_arguments(fcinfo, PG_GETARG_OID(0), core::DefinitionKind::segment, nullptr);
    PG_RETURN_VOID();
}

// By drop_sequence(), under its lock (AccessExclusiveLock). After hold_names(). Error for the default generator.
UIDGEN_SQL_FUNCTION(uid_generator_drop) {
    const Oid generator = PG_ARGISNULL(0) ? InvalidOid : PG_GETARG_OID(0);
    hold_names();
    const core::Definition definition = read_definition(generator, core::DefinitionKind::generator);
    if (definition.kind == core::DefinitionKind::none)
        ereport(ERROR, (errcode(ERRCODE_UNDEFINED_OBJECT),
                        errmsg("%s is not a generator",
                               PG_ARGISNULL(0)
                                   ? "<NULL>"
                                   : DatumGetCString(DirectFunctionCall1(regclassout, ObjectIdGetDatum(generator)))),
                        errhint("Run SELECT generator FROM uid_generator to list the generators.")));
    bool is_default = definition.generator.is_default != 0;
    if (!is_default) {
        check_owner(generator);
        lock_sequence(generator, AccessExclusiveLock); // that of DROP, because it may become the default meanwhile
        is_default = read_definition(generator, core::DefinitionKind::generator).generator.is_default != 0;
    }
    if (is_default && !fault_is("drop_default"))
        ereport(ERROR, (errcode(ERRCODE_DEPENDENT_OBJECTS_STILL_EXIST), errmsg("cannot drop the default generator"),
                        errdetail("The drop would leave the database without a default generator."),
                        errhint("Choose another default with uid_default_set() first.")));
    drop_sequence(generator);
    PG_RETURN_VOID();
}

// Finds the segment (segment_named()), and drops it by drop_sequence(). After hold_names().
UIDGEN_SQL_FUNCTION(segment_drop) {
    hold_names();
    drop_sequence(segment_named(fcinfo));
    PG_RETURN_VOID();
}

// Takes lock_generator(), and raises the high-water mark on the page, durably (raise_generator()).
UIDGEN_SQL_FUNCTION(uid_generator_raise) {
    raise_generator(PG_GETARG_OID(0), PG_GETARG_INT64(1));
    PG_RETURN_VOID();
}

} // namespace uidgen::pg
