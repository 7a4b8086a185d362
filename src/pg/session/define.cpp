#include "define.hpp"

#include "node/worker_node.hpp"
#include "session.hpp"
#include "slot_life.hpp"

namespace uidgen::pg {
namespace {

ObjectAddress address_of(Oid sequence) { return {RelationRelationId, sequence, 0}; }

bool same_definition(const core::Definition &a, const core::Definition &b) {
    return strcmp(print_label(a), print_label(b)) == 0;
}

// ---------------------------------------------------------------------------------------------------------
// The sequence, and that it depends on the extension
// ---------------------------------------------------------------------------------------------------------

// By catalogs. The caller has locked the sequence.
void check_can_be_defined(Oid sequence, core::DefinitionKind kind) {
    Oid table = InvalidOid;
    int32 column = 0;
    check_is_sequence(sequence);
    if (kind == core::DefinitionKind::generator)
        check_lease_sequence(sequence);
    else if (is_lease_sequence(sequence))
        report_lease_sequence(sequence);
    if (get_rel_persistence(sequence) != RELPERSISTENCE_PERMANENT)
        ereport(ERROR, (errcode(ERRCODE_WRONG_OBJECT_TYPE),
                        errmsg("sequence \"%s\" is temporary or unlogged", get_rel_name(sequence)),
                        errhint("Use a permanent sequence.")));
    if (sequenceIsOwned(sequence, DEPENDENCY_INTERNAL, &table, &column))
        ereport(ERROR, (errcode(ERRCODE_WRONG_OBJECT_TYPE),
                        errmsg("sequence \"%s\" belongs to an identity column", get_rel_name(sequence)),
                        errhint("Use a sequence of its own.")));
}

// The right to create in the schema of the kind. What functions need, too, which create the sequence in that schema: a
// name means one segment to every role.
void check_may_define(core::DefinitionKind kind) {
    (void)LookupCreationNamespace(psprintf("uid_%ss", core::kind_name(kind)));
}

// For what only the owner of the database may say. A restore may set labels as the owners of sequences, so the role of
// the session counts, too. Not so in a function that runs with the rights of another role, such as one of an index that
// REINDEX or ANALYZE of a superuser calls.
bool is_database_owners_statement() {
    Oid role = InvalidOid;
    int security = 0;
    GetUserIdAndSecContext(&role, &security);
    return has_privs_of_role(role, ROLE_PG_DATABASE_OWNER) ||
           (security == 0 && superuser_arg(GetAuthenticatedUserId()));
}

// Writes a row of pg_depend, unless the sequence is a member of the extension. A member depends on it already.
void depend_on(const Extension &extension, Oid sequence) {
    if (getExtensionOfObject(RelationRelationId, sequence) == extension.oid)
        return;
    const ObjectAddress needed = {ExtensionRelationId, extension.oid, 0};
    const ObjectAddress depender = address_of(sequence);
    recordDependencyOn(&depender, &needed, DEPENDENCY_NORMAL);
}

// Takes AccessShareLock on the extension, to the end of the transaction: DROP EXTENSION waits. Error if there is none.
Extension hold_extension() EXCLUDES(page_lock, table_lock, slot_lock, state_lock) {
    const Extension extension = find_extension();
    if (!OidIsValid(extension.oid))
        ereport(ERROR, (errcode(ERRCODE_UNDEFINED_OBJECT), errmsg("extension uidgen does not exist in this database"),
                        errhint("Run CREATE EXTENSION uidgen.")));
    LockDatabaseObject(ExtensionRelationId, extension.oid, 0, AccessShareLock);
    AcceptInvalidationMessages();
    if (find_extension().oid != extension.oid)
        report_dropped();
    return extension;
}

// ---------------------------------------------------------------------------------------------------------
// Generators
// ---------------------------------------------------------------------------------------------------------

// Waits until the high-water mark is at most the new max_ahead above the clock. Beyond that it would look like the mark
// of a clock that moved backwards. No session draws meanwhile, so the clock catches up; error if it does not within
// uidgen.max_wait. Under lock_generator(). Sleeps, and touches nothing else.
void wait_out_lead(Oid generator, const core::Layout &layout, int64_t mark, int64_t max_ahead)
    EXCLUDES(page_lock, table_lock, slot_lock, state_lock) {
    const int64_t until_us = monotonic_us() + settings::max_wait_ms * us_per_ms;
    for (;;) {
        const int64_t lead = mark - core::tick_at(layout, wall_clock_us());
        const int64_t missing_us = (lead - max_ahead) * layout.tick_us;
        const int64_t left_us = until_us - monotonic_us();
        if (missing_us <= 0)
            return;
        if (left_us <= 0)
            ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                            errmsg("cannot reduce max_ahead_ms of generator \"%s\" yet", get_rel_name(generator)),
                            errdetail("The generator has leased ids up to %.3f s ahead of the clock.",
                                      seconds(lead * layout.tick_us)),
                            errhint("Try again in %lld s.", static_cast<long long>((missing_us + 999999) / 1000000))));
        sleep_for(Min(missing_us, Min(left_us, 100 * us_per_ms)), wait_event("UidgenClock"));
    }
}

// Error if a generator may not change from one configuration to the other, by high_water_mark_of(). Waits for the
// clock, up to uidgen.max_wait, where max_ahead becomes shorter. Under lock_generator().
void wait_for_change(Oid generator, const GeneratorConfig &former, const GeneratorConfig &wanted)
    EXCLUDES(page_lock, table_lock, slot_lock, state_lock) {
    const int64_t mark = high_water_mark_of(generator);
    if (mark <= core::no_lease_yet)
        return;
    if (!core::same_layout(former.layout, wanted.layout))
        ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                        errmsg("cannot change the layout of generator \"%s\"", get_rel_name(generator)),
                        errdetail("The generator has leased ids. With another layout they would not decode, and could "
                                  "be issued again."),
                        errhint("Create another generator above it: "
                                "SELECT uid_generator_create('name', above => %lld).",
                                static_cast<long long>(core::largest_leased_id(former.layout, former.policy, mark)))));
    if (wanted.policy.max_ahead < former.policy.max_ahead)
        wait_out_lead(generator, former.layout, core::tick_of_mark(former.policy, mark), wanted.policy.max_ahead);
}

// Error if the sequence, whose label is lost, has drawn in another layout: in this one the counter is far ahead of the
// clock, so that it would never draw. By high_water_mark_of(). The caller has locked the sequence.
void check_counter(Oid generator, const GeneratorConfig &config)
    EXCLUDES(page_lock, table_lock, slot_lock, state_lock) {
    const core::Layout &layout = config.layout;
    const int64_t mark = high_water_mark_of(generator);
    const int64_t tick = Min(core::tick_of_mark(config.policy, mark), config.policy.end);
    if (mark > core::no_lease_yet && !fault_is("any_layout") &&
        core::start_of(layout, tick) > wall_clock_us() + core::longest_ahead_ms * us_per_ms)
        ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                        errmsg("sequence \"%s\" has drawn ids of another layout", get_rel_name(generator)),
                        errdetail("In this one its counter stands for %s.", instant_text(core::start_of(layout, tick))),
                        errhint("Pass every field that the generator had in the original database.")));
}

// Whether the generator has drawn (high_water_mark_of()). If not, locks it by lock_generator(), and so waits for
// sessions that are about to draw. Of one that has drawn the lock could last long, for nothing.
bool has_drawn_or_lock(Oid generator) EXCLUDES(page_lock, table_lock, slot_lock, state_lock) {
    if (high_water_mark_of(generator) > core::no_lease_yet)
        return true;
    lock_generator(generator);
    return high_water_mark_of(generator) > core::no_lease_yet;
}

// By statement: a restore takes the default from the builtin generator, as that is made. Locks the choice of the
// default, and the builtin generator if that has not drawn (has_drawn_or_lock()), and changes that one's label
// (move_default()). The caller has locked the sequence.
void take_default(Oid generator, const Extension &extension) EXCLUDES(page_lock, table_lock, slot_lock, state_lock) {
    if (creating_extension && CurrentExtensionObject == extension.oid)
        return; // the builtin one
    if (!is_database_owners_statement() && !fault_is("any_chooser"))
        ereport(ERROR,
                (errcode(ERRCODE_INSUFFICIENT_PRIVILEGE), errmsg("permission denied to choose the default generator"),
                 errdetail("The label says is_default=true. Only the owner of the database may choose it.")));
    if (!lock_choice_of_default(LockWaitSkip))
        ereport(ERROR, (errcode(ERRCODE_LOCK_NOT_AVAILABLE),
                        errmsg("another session is choosing the default generator"), errhint("Try again.")));
    const Oid builtin = builtin_generator();
    if ((find_default_generator() != builtin || has_drawn_or_lock(builtin)) && !fault_is("usurp_default"))
        ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                        errmsg("generator \"%s\" cannot become the default by its label", get_rel_name(generator)),
                        errdetail("This database has chosen another default, or has drawn from the builtin one."),
                        errhint("Use the label with is_default=false, and then choose it with uid_default_set().")));
    move_default(builtin);
}

// Frees the slot that the sequence may have, made from an earlier definition, or of a sequence that had its oid
// (forget_generator()). Has the table of slots forget the default, and may take it (take_default()). Under a lock on
// draws.
void begin_generator(Oid generator, const core::Definition &definition, const Extension &extension)
    EXCLUDES(page_lock, table_lock, slot_lock, state_lock) {
    const GeneratorConfig config = generator_config_of(definition);
    forget_generator(generator);
    warn_of_end(generator, config.layout);
    notify_of_datacenter_id(generator, config);
    note_default(InvalidOid); // known may be a generator that had the oid, or that of an extension that was dropped
    if (definition.generator.is_default != 0)
        take_default(generator, extension);
}

// ---------------------------------------------------------------------------------------------------------
// Segments and keys
// ---------------------------------------------------------------------------------------------------------

// Has the next draw make the segment's slot again, if there is one (mark_stale()). The caller has locked the sequence
// against draws; for `altered` a lock that lets sessions draw will do.
void mark_segment_stale(Oid sequence, SlotPhase to = SlotPhase::stale)
    EXCLUDES(page_lock, table_lock, slot_lock, state_lock) {
    if (Slot *slot = find_slot(slot_key(sequence), SlotKind::segment))
        mark_stale(slot, to);
}

// Another role could take the id of a key that is to be restored, and so get its secrets.
void check_may_choose_key() {
    if (!is_database_owners_statement() && !fault_is("any_chooser"))
        ereport(ERROR, (errcode(ERRCODE_INSUFFICIENT_PRIVILEGE), errmsg("permission denied to choose the id of a key"),
                        errdetail("Only the owner of the database may label a sequence as a key, in a restore."),
                        errhint("Create a key with uid_key_create().")));
}

// Reads all labels. With the number of another key its owner could reveal what that one concealed.
void check_key_is_new(Oid sequence, const core::KeyDefinition &key) {
    for_each_definition(core::DefinitionKind::key, [&](Oid other, const core::Definition &definition) {
        if (other != sequence && definition.key.id == key.id)
            ereport(ERROR, (errcode(ERRCODE_DUPLICATE_OBJECT),
                            errmsg("the key's id %lld is that of another key", static_cast<long long>(key.id)),
                            errhint("Create another key with uid_key_create().")));
    });
}

// ---------------------------------------------------------------------------------------------------------
// A first definition, and none any more
// ---------------------------------------------------------------------------------------------------------

// Everything that a first definition does but for the label itself. Locks the sequence against draws, and the
// extension, to the end of the transaction; writes the dependency, and frees the slot (begin_generator()) or marks it
// stale (mark_segment_stale()).
void begin_definition(Oid sequence, const core::Definition &definition)
    EXCLUDES(page_lock, table_lock, slot_lock, state_lock) {
    lock_sequence(sequence, excludes_draws);
    check_can_be_defined(sequence, definition.kind);
    const Extension extension = hold_extension();
    check_may_define(definition.kind);
    depend_on(extension, sequence);
    CacheInvalidateRelcacheByRelid(sequence);
    if (definition.kind == core::DefinitionKind::generator)
        begin_generator(sequence, definition, extension);
    else if (definition.kind == core::DefinitionKind::segment)
        mark_segment_stale(sequence);
    else
        check_key_is_new(sequence, definition.key);
    open_all_again();
}

// A segment is a plain sequence without its label, unless its values are those of the registry.
bool needs_label(const core::Definition &definition) {
    return definition.kind == core::DefinitionKind::segment ? definition.segment.registry_name != nullptr
                                                            : definition.kind != core::DefinitionKind::none;
}

// The reverse: locks the sequence against draws, deletes the dependency, and marks a segment's slot stale. A label that
// cannot be read means nothing.
void end_definition(Oid sequence, const core::Definition &definition, const Extension &extension)
    EXCLUDES(page_lock, table_lock, slot_lock, state_lock) {
    lock_sequence(sequence, excludes_draws);
    if (needs_label(definition))
        ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                        errmsg("cannot remove the label of sequence \"%s\"", get_rel_name(sequence)),
                        errdetail("It is a %s, which only its label defines.", core::kind_name(definition.kind)),
                        errhint("Drop the sequence instead.")));
    if (definition.kind == core::DefinitionKind::segment)
        mark_segment_stale(sequence);
    deleteDependencyRecordsForSpecific(RelationRelationId, sequence, DEPENDENCY_NORMAL, ExtensionRelationId,
                                       extension.oid);
    CacheInvalidateRelcacheByRelid(sequence);
    open_all_again();
}

[[noreturn]] void refuse_change(Oid sequence) {
    ereport(ERROR, (errcode(ERRCODE_DUPLICATE_OBJECT),
                    errmsg("sequence \"%s\" is a generator, segment or key already", get_rel_name(sequence)),
                    errdetail("A statement cannot change its label."),
                    errhint("Change a generator with uid_generator_alter() or uid_default_set(), a segment with "
                            "segment_alter(), or drop the sequence first.")));
}

} // namespace

bool lock_choice_of_default(LockWaitPolicy policy) {
    LOCKTAG tag;
    SET_LOCKTAG_OBJECT(tag, MyDatabaseId, ExtensionRelationId, find_extension().oid, 0);
    const LockAcquireResult result = LockAcquire(&tag, ShareUpdateExclusiveLock, false, policy == LockWaitSkip);
    AcceptInvalidationMessages();
    return result != LOCKACQUIRE_NOT_AVAIL;
}

// In a binary upgrade the tables of the extension are not there yet, and every label was checked in the former cluster.
void accept_label(const ObjectAddress *object, const char *label) {
    const Oid sequence = object->objectId;
    const bool is_sequence = object->classId == RelationRelationId && object->objectSubId == 0 &&
                             get_rel_relkind(sequence) == RELKIND_SEQUENCE;
    if (!is_sequence && label != nullptr)
        ereport(ERROR, (errcode(ERRCODE_WRONG_OBJECT_TYPE), errmsg("uidgen labels sequences only"),
                        errhint("Name the other provider with SECURITY LABEL FOR.")));
    const Extension extension = find_extension();
    if (!is_sequence || (label == nullptr && !OidIsValid(extension.oid)))
        return;
    if (IsBinaryUpgrade) {
        depend_on(extension, sequence);
        return;
    }
    core::Definition present = {};
    const char *present_label = label_of(sequence).text;
    const bool is_readable = present_label != nullptr && parses(present_label, &present);
    if (label == nullptr) {
        end_definition(sequence, is_readable ? present : core::Definition{}, extension);
        return;
    }
    core::Definition wanted;
    check_fault(wanted, parse_label(label, &wanted));
    if (is_readable && same_definition(present, wanted))
        return;
    if (present_label != nullptr)
        refuse_change(sequence);
    if (wanted.kind == core::DefinitionKind::key)
        check_may_choose_key();
    begin_definition(sequence, wanted);
}

namespace {

// Writes the label to pg_seclabel. The caller has locked the sequence.
void set_label(Oid sequence, const core::Definition &definition) {
    const ObjectAddress address = address_of(sequence);
    SetSecurityLabel(&address, label_provider, print_label(definition));
    CommandCounterIncrement();
}

} // namespace

void define_sequence(Oid sequence, const core::Definition &definition) {
    check_fault(definition, core::find_fault(definition));
    lock_sequence(sequence, excludes_draws);
    check_owner(sequence); // it may have got another one since the caller checked it
    if (has_label(sequence))
        refuse_change(sequence);
    if (definition.kind == core::DefinitionKind::generator)
        check_counter(sequence, generator_config_of(definition));
    begin_definition(sequence, definition);
    set_label(sequence, definition);
}

core::Definition lock_definition(Oid sequence, core::DefinitionKind kind) {
    PreventCommandDuringRecovery("a change of a definition");
    if (kind == core::DefinitionKind::generator)
        lock_generator(sequence);
    else
        lock_sequence(sequence, ShareUpdateExclusiveLock);
    return read_definition(sequence, kind);
}

void redefine_sequence(Oid sequence, const core::Definition &former, const core::Definition &wanted) {
    check_fault(wanted, core::find_fault(wanted));
    if (wanted.kind == core::DefinitionKind::generator) {
        wait_for_change(sequence, generator_config_of(former), generator_config_of(wanted));
        end_lease(sequence);
        if (former.generator.is_default != wanted.generator.is_default)
            note_default(InvalidOid);
    }
    if (wanted.kind == core::DefinitionKind::segment)
        mark_segment_stale(sequence, SlotPhase::altered);
    CacheInvalidateRelcacheByRelid(sequence);
    set_label(sequence, wanted);
}

void set_is_default(Oid generator, bool is_default) {
    change_definition(generator, core::DefinitionKind::generator,
                      [&](core::Definition *definition) { definition->generator.is_default = is_default; });
}

void move_default(Oid former) {
    if (OidIsValid(former))
        set_is_default(former, false);
    note_default_changed();
}

namespace {

// By the lock manager: whether DROP EXTENSION, or a DROP that cascades to it, drops the extension, too: it holds this
// lock on all that it drops, and drops the extension last. Its tables may be gone by now, and nothing needs to be true
// in them.
bool is_being_dropped(const Extension &extension) {
    LOCKTAG tag;
    SET_LOCKTAG_OBJECT(tag, MyDatabaseId, ExtensionRelationId, extension.oid, 0);
    return holds_lock(tag, AccessExclusiveLock);
}

// The default is dropped, under the lock of its DROP: forgets it in the table of slots, and raises a WARNING.
void note_no_default() EXCLUDES(table_lock) {
    note_default(InvalidOid);
    ereport(WARNING,
            (errmsg("the database no longer has a default generator"),
             errdetail("Calls of uid_next() without a generator fail from now on."),
             errhint("Choose a default with uid_default_set(). To stay above the ids of the dropped generator, "
                     "pass the largest of them to uid_generator_create() as the parameter above.")));
}

} // namespace

// The caller owns it, and needs no right to the tables. No session draws from it any more, and no sweep frees the slot,
// because the DROP has locked it.
void forget_dropped(Oid relation) {
    if (get_rel_relkind(relation) != RELKIND_SEQUENCE || get_rel_persistence(relation) != RELPERSISTENCE_PERMANENT)
        return;
    const char *label = label_of(relation).text;
    core::Definition dropped;
    if (label == nullptr || !parses(label, &dropped))
        return;
    if (dropped.kind == core::DefinitionKind::generator)
        lose_generator(relation);
    const Extension extension = find_extension();
    if (!OidIsValid(extension.oid) || is_being_dropped(extension))
        return;
    if (dropped.kind == core::DefinitionKind::generator && dropped.generator.is_default != 0)
        note_no_default();
    if (dropped.kind == core::DefinitionKind::key)
        write_as_owner(required_table(schema_of_secrets(), "uid_key"),
                       "DELETE FROM %1$s WHERE id OPERATOR(pg_catalog.=) $1",
                       {{INT8OID, Int64GetDatum(dropped.key.id)}});
}

} // namespace uidgen::pg
