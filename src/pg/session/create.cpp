#include "create.hpp"

#include "base/columns.hpp"
#include "define.hpp"
#include "sequence/sequence.hpp"

namespace uidgen::pg {

namespace {

// Takes a heavyweight lock that stands for the name, to the end of the transaction. Two sessions that create one name
// wait for each other, as on the index of names, where the second one would fail.
void lock_name(Oid schema, const char *name) EXCLUDES(page_lock, table_lock, slot_lock, state_lock) {
    const uint32 hash = hash_bytes(reinterpret_cast<const unsigned char *>(name), static_cast<int>(strlen(name)));
    const uint16 number = static_cast<uint16>(hash | 1); // 0 would be the schema itself
    LockDatabaseObject(NamespaceRelationId, schema, number, ExclusiveLock);
    AcceptInvalidationMessages(); // the name may be known not to exist
}

} // namespace

Oid create_sequence(core::DefinitionKind kind, const char *name, const SequenceOptions &options) {
    const char *schema_name = psprintf("uid_%ss", core::kind_name(kind));
    const Oid schema = get_namespace_oid(schema_name, false);
    PreventCommandDuringRecovery("CREATE SEQUENCE");
    lock_name(schema, name);
    const bool creates = !OidIsValid(get_relname_relid(name, schema));
    if (creates)
        run_statement(psprintf("CREATE SEQUENCE %s.%s START %lld INCREMENT %lld MINVALUE %lld MAXVALUE %lld %s",
                               schema_name, quote_identifier(name), static_cast<long long>(options.start),
                               static_cast<long long>(options.increment), static_cast<long long>(options.min_value),
                               static_cast<long long>(options.max_value), options.cycle ? "CYCLE" : "NO CYCLE"));
    const Oid sequence = get_relname_relid(name, schema);
    check_is_sequence(sequence);
    if (creates && kind == core::DefinitionKind::generator &&
        !fault_is("open_lease")) // so that nextval fails, and does not move the counter
        OidFunctionCall3(F_SETVAL_REGCLASS_INT8_BOOL, ObjectIdGetDatum(sequence), Int64GetDatum(1), BoolGetDatum(true));
    return sequence;
}

namespace {

// A NOTICE, by the arguments and a setting. On a member a segment of its own is seldom what was meant. A segment of the
// registry is what members attach to.
void notify_of_fleet(const core::SegmentDefinition &segment) {
    if (segment.registry_name != nullptr || settings::registry[0] == '\0')
        return;
    ereport(NOTICE, (errmsg("values of segment \"%s\" are those of this server alone", clipped(segment.name)),
                     errdetail("This server does not know whether the registry has a segment of that name, which would "
                               "have the same values."),
                     errhint("Use segment_attach() for values of the registry's segment.")));
}

// With the largest increment the sequence would pass for one that holds the leases of a generator.
void check_new_segment(const char *name, int64_t increment) {
    if (name[0] == '\0')
        ereport(ERROR, (errcode(ERRCODE_INVALID_NAME), errmsg("invalid segment name: \"\""),
                        errhint("Use a text that is not empty.")));
    if (increment == PG_INT64_MAX)
        ereport(ERROR,
                (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                 errmsg("invalid increment %lld for segment \"%s\"", static_cast<long long>(increment), clipped(name)),
                 errhint("Use an increment of at most 9223372036854775806.")));
}

// By find_segment(): error unless the sequence is that of the segment, and if_not_exists; else a NOTICE.
void notify_or_refuse_existing(const char *name, Oid sequence, bool if_not_exists)
    EXCLUDES(table_lock, slot_lock, state_lock) {
    if (find_segment(cstring_to_text(name)) != sequence)
        ereport(ERROR, (errcode(ERRCODE_DUPLICATE_OBJECT),
                        errmsg("sequence %s is not that of segment \"%s\"", qualified_name(sequence), clipped(name)),
                        errhint("Rename it with ALTER SEQUENCE, or use another name.")));
    if (!if_not_exists)
        ereport(ERROR,
                (errcode(ERRCODE_DUPLICATE_OBJECT), errmsg("segment \"%s\" already exists", clipped(name)),
                 errdetail("Its sequence is %s.", qualified_name(sequence)),
                 errhint("Use another name, drop the segment with segment_drop(), or pass if_not_exists => true.")));
    ereport(NOTICE,
            (errcode(ERRCODE_DUPLICATE_OBJECT), errmsg("segment \"%s\" already exists, skipping", clipped(name))));
}

} // namespace

core::Definition new_segment(const char *name) {
    core::Definition definition = {};
    definition.kind = core::DefinitionKind::segment;
    clear_fields(core::fields_of(definition.kind), &definition);
    definition.segment.name = name;
    return definition;
}

void define_segment(Oid sequence, const core::Definition &definition) {
    check_owner_of_new(sequence);
    define_sequence(sequence, definition);
    notify_of_fleet(definition.segment);
}

Oid create_segment(const core::Definition &definition, const SequenceOptions &options, bool if_not_exists) {
    const char *name = definition.segment.name;
    check_new_segment(name, options.increment);
    Oid sequence = find_segment(cstring_to_text(name));
    if (!OidIsValid(sequence))
        sequence = create_sequence(definition.kind, relation_of(name), options);
    if (has_label(sequence))
        notify_or_refuse_existing(name, sequence, if_not_exists);
    else
        define_segment(sequence, definition);
    return sequence;
}

} // namespace uidgen::pg
