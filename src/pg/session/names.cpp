#include "names.hpp"

#include "config/label.hpp"

namespace uidgen::pg {

namespace {

// The default generator, as of that value of definition_changes.
Oid default_sequence = InvalidOid;
uint64 default_as_of = 0;

[[noreturn]] void report_default_changed() {
    ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                    errmsg("cannot use the default generator because it was changed in this transaction"),
                    errdetail("If the transaction rolled back, later ids could be lower than ids drawn now."),
                    errhint("Commit the transaction before you draw.")));
}

// By the label. A parallel worker does not know what its leader did, but sees the label that the leader wrote. That of
// the builtin generator is as new as the extension, unless it was changed, which a draw refuses by itself.
bool is_chosen_by_leader(Oid generator) {
    return IsParallelWorker() && generator != builtin_generator() && label_of(generator).is_written_here;
}

// The default by the table of slots, else by the labels. This session notices its changes from now on. What is known in
// shared memory was the default a moment ago. If its sequence is gone, a session without the library dropped it.
Oid watch_default() EXCLUDES(table_lock) {
    const bool may_be_known = settings::is_preloaded || server_state != nullptr;
    const Oid known = may_be_known && !RecoveryInProgress() ? known_default() : InvalidOid;
    const bool is_there = OidIsValid(known) && SearchSysCacheExists1(RELOID, ObjectIdGetDatum(known));
    const Oid found = is_there ? known : read_default_generator();
    if (is_chosen_by_leader(found))
        report_default_changed();
    watch_sequence(found);
    return found;
}

// Notes in the table of slots (note_default()) that it is the default, if its label says so. Under RowExclusiveLock.
void note_if_default(Oid generator) EXCLUDES(table_lock) {
    if (known_default() == generator)
        return;
    const core::Definition definition = read_definition(generator, core::DefinitionKind::generator);
    if (definition.kind == core::DefinitionKind::generator && definition.generator.is_default != 0)
        note_default(generator);
}

} // namespace

// While it waits for the lock of uid_default_set(), open_entry() processes the invalidation that comes with the choice.
SessionEntry *open_default() {
    if (default_changed_here())
        report_default_changed();
    constexpr int most_rounds = 8;
    SessionEntry *entry = nullptr;
    bool is_known = true;
    for (int round = 0; entry == nullptr || (default_as_of != definition_changes && round < most_rounds); round++) {
        if (default_as_of != definition_changes) {
            default_as_of = read_unchanged([] { default_sequence = watch_default(); });
            is_known = false;
        }
        entry = open_entry(default_sequence, SlotKind::generator);
    }
    if (!is_known)
        note_if_default(default_sequence);
    last_used.default_generator = default_as_of == definition_changes ? entry : &empty_entry;
    return entry;
}

namespace {

HTAB *names = nullptr;
MemoryContext names_context = nullptr; // all of the above
uint64 names_kept = 0;                 // look-ups that still occupy memory in `names_context`
uint64 names_as_of = 0;                // relation_changes when it was empty

// Bounds the memory. A session that keeps changing its search_path looks the same names up again and again, and each
// look-up leaves a copy behind. So does one that creates and drops segments.
constexpr uint64 most_names = 16384;
constexpr uint64 most_after_changes = 256;

// Whether the names that this session remembers take too much of its memory.
bool are_too_many() { return names_kept >= (relation_changes == names_as_of ? most_names : most_after_changes); }

constexpr Size longest_qualified_name = 1024;

uint64 hash_of_name(const text *name) {
    return hash_bytes_extended(reinterpret_cast<const unsigned char *>(VARDATA_ANY(name)),
                               static_cast<int>(VARSIZE_ANY_EXHDR(name)), 0);
}

// Forgets all names of this session, and frees their memory.
void renew_names() {
    if (names_context == nullptr)
        names_context = AllocSetContextCreate(TopMemoryContext, "uidgen segment names", ALLOCSET_DEFAULT_SIZES);
    names = nullptr;
    MemoryContextReset(names_context);
    HASHCTL control = {};
    control.keysize = sizeof(uint64);
    control.entrysize = sizeof(Name);
    control.hcxt = names_context;
    names = hash_create("uidgen segment names", 64, &control, HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
    names_kept = 0;
    forget_all_names(); // expressions point at what was here
    names_as_of = relation_changes;
}

// A sequence in uid_segments without its label is what a restore without labels leaves. The name must not mean another
// sequence then.
[[noreturn]] void report_without_label(const text *name) {
    ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                    errmsg("sequence \"%s\" has lost its definition as a segment", clipped(name)),
                    errdetail("It has no security label of uidgen. A restore without labels leaves it so."),
                    errhint("Run SELECT segment_create(%s), which takes the sequence over, with the step and max_step "
                            "that it had.",
                            quote_literal_cstr(text_to_cstring(name)))));
}

// The sequence of the segment of that name; InvalidOid: there is none, and the name may be that of a plain sequence. An
// error if the sequence has lost its label. By find_segment() and the label; locks no sequence.
Oid named_segment(const text *name) EXCLUDES(table_lock, slot_lock, state_lock) {
    const Oid found = find_segment(name);
    const Oid own = OidIsValid(found) ? found : own_sequence_of(name);
    // It may have been dropped meanwhile.
    if (!OidIsValid(found) && OidIsValid(own) && !has_label(own) && is_relation(own))
        report_without_label(name);
    return found;
}

// Resolves a name by named_segment() and catalogs, and remembers it in this session. Locks no sequence.
const Name *look_up(const text *name) EXCLUDES(table_lock, slot_lock, state_lock) {
    if (names == nullptr || are_too_many())
        renew_names();
    names_kept++;
    const uint64 definitions = definition_changes;
    const uint64 relations = relation_changes;
    Oid sequence = named_segment(name);
    const bool is_segment = OidIsValid(sequence);
    if (!is_segment) {
        const bool may_be_qualified = VARSIZE_ANY_EXHDR(name) < longest_qualified_name; // PostgreSQL shows all of it
        if (may_be_qualified)
            sequence = RangeVarGetRelid(makeRangeVarFromNameList(textToQualifiedNameList(const_cast<text *>(name))),
                                        NoLock, true);
        if (OidIsValid(find_renamed_segment(name, sequence)) && !fault_is("former_name"))
            report_no_segment(name, "");
        if (!OidIsValid(sequence))
            ereport(ERROR,
                    (errcode(ERRCODE_UNDEFINED_TABLE),
                     errmsg("segment or sequence \"%s\" does not exist", clipped(name)),
                     settings::registry[0] != '\0'
                         ? errhint("Attach it to a segment of the registry with segment_attach(). If its values may be "
                                   "those of other members, create it with segment_create().")
                         : errhint("Create it with segment_create(), or name an existing sequence.")));
    }
    watch_sequence(sequence);
    const uint64 hash = hash_of_name(name);
    MemoryContext caller = MemoryContextSwitchTo(names_context);
    auto *copy = static_cast<text *>(static_cast<void *>(PG_DETOAST_DATUM_COPY(PointerGetDatum(name))));
    SearchPath *path = is_segment ? nullptr : copy_search_path(names_context);
    MemoryContextSwitchTo(caller);
    auto *remembered = static_cast<Name *>(hash_search(names, &hash, HASH_ENTER, nullptr));
    // A change that came during the look-up may have been one of the sequence, which was not watched yet.
    const uint64 as_of = relations != relation_changes ? 0 : is_segment ? definitions : relations;
    *remembered = {.hash = hash,
                   .name = copy,
                   .path = path,
                   .role = GetUserId(),
                   .sequence = sequence,
                   .as_of = as_of,
                   .changes = is_segment ? &definition_changes : &relation_changes};
    return remembered;
}

// Whether the argument is a literal, as in a column's default. Of other arguments the executor knows only the type.
bool has_constant_argument(const FmgrInfo *flinfo) {
    Node *call = flinfo->fn_expr;
    if (call == nullptr || !IsA(call, FuncExpr) || castNode(FuncExpr, call)->funcid != flinfo->fn_oid)
        return false;
    const List *arguments = castNode(FuncExpr, call)->args;
    return list_length(arguments) == 1 && IsA(linitial(arguments), Const);
}

// What the name means, by look_up() unless this session remembers it; error if it means nothing.
const Name *find_name(const text *name) EXCLUDES(table_lock, slot_lock, state_lock) {
    if (names != nullptr) {
        const uint64 hash = hash_of_name(name);
        const auto *known = static_cast<const Name *>(hash_search(names, &hash, HASH_FIND, nullptr));
        if (known != nullptr && is_current(*known) && same_text(known->name, name) && is_for(*known, GetUserId()))
            return known;
    }
    return look_up(name);
}

} // namespace

Oid sequence_named(const text *name) { return find_name(name)->sequence; }

SessionEntry *open_entry_named(FunctionCallInfo fcinfo) {
    const Name *known = find_name(PG_GETARG_TEXT_PP(0));
    const Name now = *known; // in case that the table is made anew
    SessionEntry *entry = open_entry(now.sequence, SlotKind::segment);
    auto *last = static_cast<LastCall *>(fcinfo->flinfo->fn_extra);
    if (last == nullptr) {
        last = static_cast<LastCall *>(MemoryContextAlloc(fcinfo->flinfo->fn_mcxt, sizeof(LastCall)));
        fcinfo->flinfo->fn_extra = last;
    }
    // A name looked up again under another path replaces its entry in the table, but this text and path stay in memory.
    *last = {has_constant_argument(fcinfo->flinfo), now};
    return entry;
}

} // namespace uidgen::pg
