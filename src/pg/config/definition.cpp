#include "definition.hpp"

#include "rows.hpp"
#include "base/errors.hpp"
#include "base/time_source.hpp"
#include "sequence/sequence.hpp"

namespace uidgen::pg {

LabelScan begin_labels(Oid sequence, Snapshot snapshot) {
    ScanKeyData keys[3];
    ScanKeyInit(&keys[0], Anum_pg_seclabel_objoid, BTEqualStrategyNumber, F_OIDEQ, ObjectIdGetDatum(sequence));
    ScanKeyInit(&keys[1], Anum_pg_seclabel_classoid, BTEqualStrategyNumber, F_OIDEQ,
                ObjectIdGetDatum(RelationRelationId));
    ScanKeyInit(&keys[2], Anum_pg_seclabel_objsubid, BTEqualStrategyNumber, F_INT4EQ, Int32GetDatum(0));
    Relation catalog = table_open(SecLabelRelationId, AccessShareLock);
    const bool is_of_one = OidIsValid(sequence);
    return {catalog,
            systable_beginscan(catalog, SecLabelObjectIndexId, is_of_one, snapshot, is_of_one ? 3 : 2,
                               is_of_one ? keys : keys + 1),
            InvalidOid, nullptr};
}

namespace {

const text *text_in(const LabelScan &scan, AttrNumber column) {
    bool null = false;
    return DatumGetTextPP(heap_getattr(scan.tuple, column, RelationGetDescr(scan.catalog), &null));
}

} // namespace

const char *label_in(const LabelScan &scan) { return text_to_cstring(text_in(scan, Anum_pg_seclabel_label)); }

bool move_next(LabelScan *scan) {
    while (HeapTupleIsValid(scan->tuple = systable_getnext(scan->scan))) {
        const text *provider = text_in(*scan, Anum_pg_seclabel_provider);
        if (VARSIZE_ANY_EXHDR(provider) != strlen(label_provider) ||
            memcmp(VARDATA_ANY(provider), label_provider, strlen(label_provider)) != 0)
            continue;
        scan->sequence = reinterpret_cast<const FormData_pg_seclabel *>(GETSTRUCT(scan->tuple))->objoid;
        return true;
    }
    systable_endscan(scan->scan);
    table_close(scan->catalog, AccessShareLock);
    return false;
}

core::DefinitionFault parse_label(const char *label, core::Definition *definition) {
    return core::parse(label, definition, static_cast<char *>(palloc(strlen(label) + 1)));
}

const char *print_label(const core::Definition &definition) {
    const size_t size = core::print(definition, nullptr, 0) + 1;
    char *label = static_cast<char *>(palloc(size));
    core::print(definition, label, size);
    return label;
}

namespace {

constexpr char how_to_label[] =
    "Use the label of a dump, or create a generator with uid_generator_create(), a segment with "
    "segment_create(), or a key with uid_key_create().";

const char *why(const core::DefinitionFault &fault) {
    const char *at = fault.at != nullptr ? shown(pnstrdup(fault.at, fault.size)) : "";
    switch (fault.kind) {
    case core::FaultKind::kind:
        return "It does not begin with generator, segment or key.";
    case core::FaultKind::repeated:
        return psprintf("\"%s\" is there twice.", at);
    case core::FaultKind::missing:
        return psprintf("\"%s\" is missing.", fault.field->word);
    default:
        return psprintf("\"%s\" is not a field and its value.", at);
    }
}

} // namespace

void report_fault(const core::Definition &definition, const core::DefinitionFault &fault) {
    char buffer[256];
    const char *value = buffer;
    if (fault.kind != core::FaultKind::value && fault.kind != core::FaultKind::rule)
        ereport(ERROR, (errcode(ERRCODE_INVALID_TEXT_REPRESENTATION), errmsg("invalid label of a sequence"),
                        errdetail("%s", why(fault)), errhint(how_to_label)));
    if (fault.at != nullptr)
        value = pnstrdup(fault.at, fault.size);
    else
        core::print_value(definition, *fault.field, buffer, sizeof(buffer));
    char allowed[256];
    core::print_allowed(*fault.field, allowed, sizeof(allowed));
    report_generator_field(fault.field->word, value, fault.hint != nullptr ? fault.hint : pstrdup(allowed),
                           fault.detail);
}

namespace {

// A label that the open transaction has changed or added may be rolled back, but its ids would stay. The exception is
// a generator as new as its label: it is rolled back too.
void refuse_altered_here(const Label &label, Relation sequence) {
    if (label.is_written_here && (label.is_updated || !made_in_this_transaction(sequence)))
        report_altered_here(RelationGetRelid(sequence));
}

} // namespace

Label label_of(Oid sequence) {
    Label label = {nullptr, false, false};
    if (!OidIsValid(sequence))
        return label;
    LabelScan scan = begin_labels(sequence);
    while (move_next(&scan))
        label = {label_in(scan), TransactionIdIsCurrentTransactionId(HeapTupleHeaderGetXmin(scan.tuple->t_data)),
                 (scan.tuple->t_data->t_infomask & HEAP_UPDATED) != 0};
    return label;
}

core::Definition read_definition(Oid sequence, core::DefinitionKind kind, Relation to_draw) {
    core::Definition definition = {};
    const Label label = label_of(sequence);
    if (label.text == nullptr)
        return definition;
    const core::DefinitionFault fault = parse_label(label.text, &definition);
    if (fault.kind != core::FaultKind::none)
        report_fault(definition, fault);
    if (definition.kind != kind)
        return {};
    if (to_draw != nullptr)
        refuse_altered_here(label, to_draw);
    return definition;
}

// ---------------------------------------------------------------------------------------------------------
// Rows
// ---------------------------------------------------------------------------------------------------------

namespace {

[[noreturn]] void report_value(const core::Field &field, const char *value) {
    report_fault({}, {core::FaultKind::value, &field, value, strlen(value)});
}

} // namespace

void set_field(core::Definition *definition, const core::Field &field, Datum value, Oid type) {
    int64_t number = 0;
    switch (field.type) {
    case core::FieldType::text:
        *core::text_in(definition, field) = TextDatumGetCString(value);
        return;
    case core::FieldType::choice:
        number = core::choice_of(field, TextDatumGetCString(value));
        if (number < 0)
            report_value(field, TextDatumGetCString(value));
        break;
    case core::FieldType::time:
        // A time that is infinite, or far away, must not wrap into a valid one.
        number = to_unix_us(DatumGetTimestampTz(value));
        if (TIMESTAMP_NOT_FINITE(DatumGetTimestampTz(value)) || number < 0)
            report_value(field, timestamptz_to_str(DatumGetTimestampTz(value)));
        break;
    case core::FieldType::boolean:
        number = DatumGetBool(value) ? 1 : 0;
        break;
    case core::FieldType::number:
        number = type == INT8OID ? DatumGetInt64(value) : type == INT4OID ? DatumGetInt32(value) : DatumGetInt16(value);
    }
    if (number == core::null_number)
        report_value(field, psprintf(INT64_FORMAT, number));
    *core::number_in(definition, field) = number;
}

void set_fields(core::Definition *definition, HeapTuple row, TupleDesc desc) {
    for (const core::Field &field : core::fields_of(definition->kind)) {
        bool null = true;
        const int number = SPI_fnumber(desc, field.word);
        const Datum value = number > 0 ? heap_getattr(row, number, desc, &null) : Datum(0);
        if (number > 0 && null)
            core::set_null(definition, field);
        else if (number > 0)
            set_field(definition, field, value, SPI_gettypeid(desc, number));
    }
}

namespace {

Datum datum_of(const core::Definition &definition, const core::Field &field) {
    switch (field.type) {
    case core::FieldType::text:
        return CStringGetTextDatum(core::text_in(definition, field));
    case core::FieldType::choice:
        return CStringGetTextDatum(field.words[core::number_in(definition, field)]);
    case core::FieldType::time:
        return TimestampTzGetDatum(to_timestamptz(core::number_in(definition, field)));
    default: // every integer and boolean is the low bits of its Datum
        return Int64GetDatum(core::number_in(definition, field));
    }
}

} // namespace

Datum row_of_definition(const core::Definition &definition, TupleDesc desc) {
    Datum values[64] = {};
    bool nulls[64];
    int number = 0;
    memset(nulls, true, sizeof(nulls));
    for (const core::Field &field : core::fields_of(definition.kind)) {
        const bool is_next = number >= 0 && number < desc->natts &&
                             strcmp(NameStr(TupleDescAttr(desc, number)->attname), field.word) == 0;
        number = is_next ? number + 1 : SPI_fnumber(desc, field.word);
        if (number <= 0 || number > 64 || core::is_null(definition, field))
            continue;
        values[number - 1] = datum_of(definition, field);
        nulls[number - 1] = false;
    }
    return HeapTupleGetDatum(heap_form_tuple(desc, values, nulls));
}

// ---------------------------------------------------------------------------------------------------------
// Generators
// ---------------------------------------------------------------------------------------------------------

GeneratorConfig generator_config_of(const core::Definition &definition) {
    const core::GeneratorDefinition &g = definition.generator;
    const auto or_else = [](int64_t value, int32_t none) {
        return value == core::null_number ? none : static_cast<int32_t>(value);
    };
    GeneratorConfig config = {};
    config.layout = core::layout_of(g);
    config.policy = core::policy_of(g);
    config.cached = core::cached_of(g);
    config.worker_policy = static_cast<WorkerPolicy>(g.worker_policy);
    config.worker_number = config.worker_policy == WorkerPolicy::fixed ? or_else(g.worker_number, 0) : 0;
    config.datacenter_id = or_else(g.datacenter_id, -1);
    config.own_pool = g.own_pool != 0;
    copy_clipped(config.preset, g.preset, sizeof(config.preset));
    return config;
}

namespace {

[[noreturn]] void report_lost_definition(Oid generator, Oid to_draw) {
    const char *name = get_rel_name(generator);
    ereport(ERROR,
            (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
             errmsg("cannot draw from generator \"%s\" because sequence \"%s\" has lost its definition",
                    get_rel_name(to_draw), name),
             errdetail("It has no security label of uidgen. A restore without labels leaves it so."),
             errhint("Run SELECT uid_generator_create(%s, 'preset') with the preset that it had, which takes the "
                     "sequence over, or drop it. If it was the default, run uid_default_set(), too.",
                     quote_literal_cstr(name))));
}

} // namespace

Oid find_lost_generator() {
    Oid found = InvalidOid;
    const Oid schema = get_namespace_oid("uid_generators", false);
    ScanKeyData key;
    ScanKeyInit(&key, Anum_pg_class_relnamespace, BTEqualStrategyNumber, F_OIDEQ, ObjectIdGetDatum(schema));
    Relation catalog = table_open(RelationRelationId, AccessShareLock);
    SysScanDesc scan = systable_beginscan(catalog, InvalidOid, false, nullptr, 1, &key);
    while (HeapTuple tuple = systable_getnext(scan)) {
        const Oid sequence = reinterpret_cast<const FormData_pg_class *>(GETSTRUCT(tuple))->oid;
        if (is_lease_sequence(sequence) && !has_label(sequence))
            found = sequence;
    }
    systable_endscan(scan);
    table_close(catalog, AccessShareLock);
    return found;
}

void refuse_lost_definitions(Oid to_draw) {
    const Oid lost = find_lost_generator();
    if (OidIsValid(lost))
        report_lost_definition(lost, to_draw);
}

GeneratorConfig read_generator_config(Oid generator, Relation to_draw) {
    const core::Definition definition = read_definition(generator, core::DefinitionKind::generator, to_draw);
    if (definition.kind == core::DefinitionKind::none && is_lease_sequence(generator) && !has_label(generator))
        report_lost_definition(generator, generator);
    if (definition.kind == core::DefinitionKind::none)
        report_not_a_generator(generator);
    return generator_config_of(definition);
}

Oid builtin_generator() { return get_relname_relid("uid_default", get_namespace_oid("uid_generators", false)); }

// One label at most says so. Of the others most are left out without being parsed.
Oid find_default_generator() {
    Oid found = InvalidOid;
    LabelScan scan = begin_labels();
    while (move_next(&scan)) {
        core::Definition definition;
        const char *label = label_in(scan);
        if (strstr(label, "is_default=true") != nullptr &&
            parse_label(label, &definition).kind == core::FaultKind::none &&
            definition.kind == core::DefinitionKind::generator && definition.generator.is_default != 0)
            found = scan.sequence;
    }
    return found;
}

Oid read_default_generator() {
    const Oid generator = find_default_generator();
    if (!OidIsValid(generator))
        ereport(ERROR, (errcode(ERRCODE_UNDEFINED_OBJECT), errmsg("database has no default generator"),
                        errhint("Draw with uid_next('uid_generators.name'), or choose a default with "
                                "uid_default_set().")));
    return generator;
}

// ---------------------------------------------------------------------------------------------------------
// Segments
// ---------------------------------------------------------------------------------------------------------

core::SegmentDefinition read_segment(Oid sequence) {
    const core::Definition definition = read_definition(sequence, core::DefinitionKind::segment);
    constexpr int64_t none = core::null_number;
    return definition.kind == core::DefinitionKind::segment
               ? definition.segment
               : core::SegmentDefinition{nullptr, none, none, nullptr, none, none, none};
}

Oid own_sequence_of(const text *name) {
    const Oid schema = get_namespace_oid("uid_segments", true);
    const Oid relation = OidIsValid(schema) && VARSIZE_ANY_EXHDR(name) < NAMEDATALEN
                             ? get_relname_relid(text_to_cstring(name), schema)
                             : InvalidOid;
    return OidIsValid(relation) && get_rel_relkind(relation) == RELKIND_SEQUENCE ? relation : InvalidOid;
}

namespace {

bool is_named(Oid sequence, const text *name) {
    const char *own = OidIsValid(sequence) ? read_segment(sequence).name : nullptr;
    return own != nullptr && strlen(own) == VARSIZE_ANY_EXHDR(name) &&
           memcmp(own, VARDATA_ANY(name), VARSIZE_ANY_EXHDR(name)) == 0;
}

} // namespace

// A row may outlive its sequence, where event triggers are off. So the label counts.
Oid find_segment(const text *name) {
    const Oid own = own_sequence_of(name);
    if (is_named(own, name))
        return own;
    const Row row =
        find_row(get_namespace_oid("uid_internal", true), "uid_segment_row", "name", F_TEXTEQ, PointerGetDatum(name));
    const Oid other = row.tuple != nullptr ? DatumGetObjectId(column(row, "sequence")) : InvalidOid;
    return is_named(other, name) ? other : InvalidOid;
}

uint64_t hash_of_name(const text *name) {
    return hash_bytes_extended(reinterpret_cast<const unsigned char *>(VARDATA_ANY(name)),
                               static_cast<int>(VARSIZE_ANY_EXHDR(name)), 0);
}

Oid segment_row_table() { return get_relname_relid("uid_segment_row", get_namespace_oid("uid_internal", true)); }

} // namespace uidgen::pg
