#include "label.hpp"

#include "base/columns.hpp"
#include "sequence/sequence.hpp"

namespace uidgen::pg {

bool is_label(Row row) {
    const auto *label = reinterpret_cast<const FormData_pg_seclabel *>(GETSTRUCT(row.tuple));
    bool null = false;
    const text *provider = DatumGetTextPP(heap_getattr(row.tuple, Anum_pg_seclabel_provider, row.desc, &null));
    return label->classoid == RelationRelationId && label->objsubid == 0 &&
           VARSIZE_ANY_EXHDR(provider) == strlen(label_provider) &&
           memcmp(VARDATA_ANY(provider), label_provider, strlen(label_provider)) == 0;
}

const char *label_in(Row row) {
    bool null = false;
    return TextDatumGetCString(heap_getattr(row.tuple, Anum_pg_seclabel_label, row.desc, &null));
}

core::DefinitionFault parse_label(const char *label, core::Definition *definition) {
    return core::parse_definition(label, definition, static_cast<char *>(palloc(strlen(label) + 1)));
}

const char *print_label(const core::Definition &definition) {
    const size_t size = core::print_definition(definition, nullptr, 0) + 1;
    char *label = static_cast<char *>(palloc(size));
    core::print_definition(definition, label, size);
    return label;
}

namespace {

constexpr char how_to_label[] =
    "Use the label of a dump, or create a generator with uid_generator_create(), a segment with "
    "segment_create(), or a key with uid_key_create().";

// The DETAIL of a label that cannot be parsed.
const char *why_unreadable(const core::DefinitionFault &fault) {
    const char *at = fault.at != nullptr ? clipped(pnstrdup(fault.at, fault.size)) : "";
    switch (fault.kind) {
    case core::FaultKind::kind:
        return "It does not begin with generator, segment or key.";
    case core::FaultKind::repeated:
        return psprintf("\"%s\" is there twice.", at);
    case core::FaultKind::missing:
        return psprintf("\"%s\" is missing.", fault.field->name);
    default:
        return psprintf("\"%s\" is not a field and its value.", at);
    }
}

} // namespace

void check_fault(const core::Definition &definition, const core::DefinitionFault &fault) {
    if (fault.kind == core::FaultKind::none)
        return;
    if (fault.kind != core::FaultKind::value && fault.kind != core::FaultKind::rule)
        ereport(ERROR, (errcode(ERRCODE_INVALID_TEXT_REPRESENTATION), errmsg("invalid label of a sequence"),
                        errdetail("%s", why_unreadable(fault)), errhint(how_to_label)));
    char value[256];
    char allowed[256];
    core::Field field = *fault.field;
    core::print_value(definition, field, value, sizeof(value));
    if (fault.kind == core::FaultKind::rule) {
        field.most = fault.most;
        field.nullable = false;
    }
    core::print_allowed(field, allowed, sizeof(allowed));
    report_generator_field(fault.field->name, fault.at != nullptr ? pnstrdup(fault.at, fault.size) : value,
                           fault.hint != nullptr ? fault.hint : allowed, fault.detail);
}

Label label_of(Oid sequence) {
    Label label = {};
    if (!OidIsValid(sequence))
        return label;
    for_each_label(sequence, [&](Row row) {
        const HeapTupleHeader header = row.tuple->t_data;
        label = {.text = label_in(row),
                 .is_written_here = TransactionIdIsCurrentTransactionId(HeapTupleHeaderGetXmin(header)),
                 .is_updated = (header->t_infomask & HEAP_UPDATED) != 0};
    });
    return label;
}

core::Definition read_definition(Oid sequence, core::DefinitionKind kind, Relation to_draw) {
    core::Definition definition = {};
    const Label label = label_of(sequence);
    if (label.text == nullptr)
        return definition;
    check_fault(definition, parse_label(label.text, &definition));
    if (definition.kind != kind)
        return {};
    // A label that the open transaction has changed or added may be rolled back, but its ids would stay. The exception
    // is a generator as new as its label: it is rolled back too.
    if (to_draw != nullptr && label.is_written_here && (label.is_updated || !made_in_this_transaction(to_draw)))
        report_altered_here(sequence);
    return definition;
}

// ---------------------------------------------------------------------------------------------------------
// Generators
// ---------------------------------------------------------------------------------------------------------

GeneratorConfig generator_config_of(const core::Definition &definition) {
    const core::GeneratorDefinition &generator = definition.generator;
    const auto or_else = [](int64_t value, int32_t none) {
        return value == core::null_number ? none : static_cast<int32_t>(value);
    };
    GeneratorConfig config = {};
    config.layout = core::layout_of(generator);
    config.policy = core::policy_of(generator);
    config.cached = core::cached_of(generator);
    config.worker_policy = static_cast<WorkerPolicy>(generator.worker_policy);
    config.worker_number = config.worker_policy == WorkerPolicy::fixed ? or_else(generator.worker_number, 0) : 0;
    config.datacenter_id = or_else(generator.datacenter_id, -1);
    config.own_pool = generator.own_pool != 0;
    copy_clipped(config.preset, generator.preset, sizeof(config.preset));
    return config;
}

namespace {

// A generator's sequence has no label, so nobody can draw from `to_draw`.
[[noreturn]] void report_lost_definition(Oid generator, Oid to_draw) {
    const char *name = relation_name(generator);
    ereport(ERROR,
            (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
             errmsg("cannot draw from generator \"%s\" because sequence \"%s\" has lost its definition",
                    relation_name(to_draw), name),
             errdetail("It has no security label of uidgen. A restore without labels leaves it so."),
             errhint("Run SELECT uid_generator_create(%s, 'preset', ...) with every field that uid_generator shows in "
                     "the original database, or drop it. If it was the default, run uid_default_set(), too.",
                     quote_literal_cstr(name))));
}

} // namespace

void check_no_lost_definition(Oid builtin) {
    Oid lost = InvalidOid;
    const Oid schema = get_namespace_oid("uid_generators", false);
    const ScanKeyData key = equals(Anum_pg_class_relnamespace, F_OIDEQ, ObjectIdGetDatum(schema));
    if (read_definition(builtin, core::DefinitionKind::generator).generator.is_default == 0 ||
        fault_is("pass_unlabeled"))
        return;
    for_each_row(table_open(RelationRelationId, AccessShareLock), InvalidOid, &key, [&](Row row) {
        const auto *sequence = reinterpret_cast<const FormData_pg_class *>(GETSTRUCT(row.tuple));
        if (has_privs_of_role(sequence->relowner, ROLE_PG_DATABASE_OWNER) && is_lease_sequence(sequence->oid) &&
            !has_label(sequence->oid))
            lost = sequence->oid;
    });
    if (OidIsValid(lost))
        report_lost_definition(lost, builtin);
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

// Reads all labels: one at most says so. Of the others most are left out without being parsed.
Oid find_default_generator() {
    Oid found = InvalidOid;
    for_each_label(InvalidOid, [&](Row row) {
        core::Definition definition;
        const char *label = label_in(row);
        if (strstr(label, "is_default=true") != nullptr && parses(label, &definition) &&
            definition.kind == core::DefinitionKind::generator && definition.generator.is_default != 0)
            found = labeled_in(row);
    });
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
    core::Definition definition = read_definition(sequence, core::DefinitionKind::segment);
    if (definition.kind == core::DefinitionKind::none)
        clear_fields(core::fields_of(core::DefinitionKind::segment), &definition);
    else
        definition.segment.name = name_of_segment(sequence, definition.segment);
    return definition.segment;
}

SegmentConfig segment_config_of(const core::SegmentDefinition &segment) {
    const auto or_zero = [](int64_t value) { return value == core::null_number ? 0 : value; };
    SegmentConfig config = {};
    config.step = or_zero(segment.step);
    config.max_step = or_zero(segment.max_step);
    if (segment.name != nullptr)
        copy_clipped(config.name, segment.name, sizeof(config.name));
    if (segment.registry_name == nullptr)
        return config;
    const char *at_registry =
        pg_server_to_any(segment.registry_name, static_cast<int>(strlen(segment.registry_name)), PG_UTF8);
    if (strlcpy(config.registry_name, at_registry, sizeof(config.registry_name)) >= sizeof(config.registry_name))
        ereport(ERROR, (errcode(ERRCODE_NAME_TOO_LONG),
                        errmsg("segment name \"%s\" is too long", clipped(segment.registry_name)),
                        errhint("Use a name of at most %d bytes at the registry.", longest_registry_name)));
    config.fleet = static_cast<uint64_t>(segment.fleet);
    config.increment = segment.increment;
    return config;
}

const char *relation_of(const char *name) {
    char hash[33] = {};
    if (strlen(name) < NAMEDATALEN)
        return name;
    const char *fault = nullptr;
    if (!pg_md5_hash(name, strlen(name), hash, &fault))
        elog(ERROR, "could not compute MD5 hash: %s", fault);
    return psprintf("segment_%s", hash);
}

const char *name_of_segment(Oid sequence, const core::SegmentDefinition &segment) {
    const char *own = get_rel_name(sequence);
    return own == nullptr || strlen(segment.name) >= NAMEDATALEN || fault_is("keep_name") ? segment.name : own;
}

Oid own_sequence_of(const text *name) {
    const Oid schema = get_namespace_oid("uid_segments", true);
    const Oid relation =
        OidIsValid(schema) ? get_relname_relid(relation_of(text_to_cstring(name)), schema) : InvalidOid;
    return OidIsValid(relation) && get_rel_relkind(relation) == RELKIND_SEQUENCE ? relation : InvalidOid;
}

// Looks at the slot first, under its lock: one that is ready knows its label. A long name has another hash after a
// restore to another encoding.
Oid find_segment(const text *name) {
    const char *wanted = text_to_cstring(name);
    const Oid own = own_sequence_of(name);
    if (OidIsValid(own) && slot_has_name(slot_key(own), wanted))
        return own;
    const char *known = OidIsValid(own) ? read_segment(own).name : nullptr;
    if (known != nullptr && strcmp(known, wanted) == 0)
        return own;
    const Oid labelled = strlen(wanted) < NAMEDATALEN ? InvalidOid : find_renamed_segment(name);
    const bool is_here = OidIsValid(labelled) && get_rel_namespace(labelled) == get_namespace_oid("uid_segments", true);
    return is_here ? labelled : InvalidOid;
}

// Reads all labels, of which most are left out without being parsed. A double quote in a name is doubled in its label.
Oid find_renamed_segment(const text *name, Oid meant) {
    const char *wanted = text_to_cstring(name);
    Oid found = InvalidOid;
    bool is_meant = false;
    for_each_label(InvalidOid, [&](Row row) {
        core::Definition definition;
        const char *label = label_in(row);
        if ((strchr(wanted, '"') != nullptr || strstr(label, wanted) != nullptr) && parses(label, &definition) &&
            definition.kind == core::DefinitionKind::segment && strcmp(definition.segment.name, wanted) == 0) {
            found = labeled_in(row);
            is_meant = is_meant || found == meant;
        }
    });
    return is_meant ? InvalidOid : found;
}

void report_no_segment(const text *name, const char *hint) {
    const Oid renamed = find_renamed_segment(name);
    const char *sequence = OidIsValid(renamed) ? qualified_name(renamed) : "";
    ereport(ERROR,
            (errcode(ERRCODE_UNDEFINED_OBJECT), errmsg("segment \"%s\" does not exist", clipped(name)),
             OidIsValid(renamed) ? errdetail("Its sequence was renamed, and is %s.", sequence) : 0,
             errhint("%s", OidIsValid(renamed) ? "Use the new name, or create another segment with segment_create()."
                                               : hint)));
}

} // namespace uidgen::pg
