#include "names.hpp"

#include "base/errors.hpp"
#include "config/extension.hpp"
#include "config/rows.hpp"

namespace uidgen::pg {

namespace {

// The default generator as this session knows it. InvalidOid: it must be looked up.
Oid default_sequence = InvalidOid;
// Relcache changes of uid_generator (a new extension, another default) reset default_sequence.
Oid default_table = InvalidOid;

void look_up_default() {
    const Oid schema = extension_schema();
    default_table = extension_table(schema, "uid_generator");
    Oid found = InvalidOid;
    (void)read_unchanged([&] { found = read_default_generator(schema); });
    default_sequence = found;
}

} // namespace

SessionEntry *open_default() {
    if (default_changed_in == transaction_number)
        ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                        errmsg("cannot use the default generator because it was changed in this transaction"),
                        errdetail("If the transaction rolled back, later ids could be lower than ids drawn now."),
                        errhint("Commit the transaction before you draw.")));
    constexpr int most_rounds = 8; // as in read_unchanged()
    for (int round = 1;; round++) {
        if (default_sequence == InvalidOid)
            look_up_default();
        const Oid sequence = default_sequence;
        SessionEntry *e = open_entry(sequence, SlotKind::generator);
        // open_entry() may have waited for the lock of uid_default_set(), and has then processed its invalidation.
        if (sequence != default_sequence && round < most_rounds)
            continue;
        last_used.default_generator = sequence == default_sequence ? e : &empty_entry;
        return e;
    }
}

void default_relation_changed(Oid relation) {
    if (relation != default_table && OidIsValid(relation))
        return;
    default_sequence = InvalidOid;
    last_used.default_generator = &empty_entry;
}

namespace {

struct Name {
    uint64 hash;      // must come first: the key of the backend's table
    text *name;       // in full, because two names may share a hash
    SearchPath *path; // the path that found a plain sequence; null for a named segment
    Oid role;         // the role that looked it up: a plain sequence's schema may be closed to others
    Oid sequence;
};

HTAB *names = nullptr;
MemoryContext names_context = nullptr; // all of the above
uint64 names_as_of = 0;                // relation_changes of the entries of `names`
uint64 names_kept = 0;                 // look-ups that still occupy memory in `names_context`

// Bounds the memory. A session that keeps changing its search_path looks the same names up again and again, and each
// look-up leaves a copy behind.
constexpr uint64 most_names = 16384;

constexpr Size longest_qualified_name = 1024;

void catalog_changed(Datum, SysCacheIdentifier, uint32) { relation_changes++; }

void register_callbacks() {
    static bool registered = false;
    if (registered)
        return;
    CacheRegisterSyscacheCallback(RELNAMENSP, catalog_changed, 0);
    CacheRegisterSyscacheCallback(NAMESPACEOID, catalog_changed, 0);
    registered = true;
}

void start_afresh() {
    register_callbacks();
    if (names_context == nullptr)
        names_context = AllocSetContextCreate(TopMemoryContext, "uidgen segment names", ALLOCSET_DEFAULT_SIZES);
    names = nullptr;
    MemoryContextReset(names_context);
    HASHCTL control = {};
    control.keysize = sizeof(uint64);
    control.entrysize = sizeof(Name);
    control.hcxt = names_context;
    names = hash_create("uidgen segment names", 64, &control, HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
    names_as_of = relation_changes;
    names_kept = 0;
}

bool same_text(const text *a, const text *b) {
    return VARSIZE_ANY_EXHDR(a) == VARSIZE_ANY_EXHDR(b) &&
           memcmp(VARDATA_ANY(a), VARDATA_ANY(b), VARSIZE_ANY_EXHDR(a)) == 0;
}

bool still_means(const Name *known, const text *name) {
    return known->role == GetUserId() && same_text(known->name, name) &&
           (known->path == nullptr || search_path_is(known->path));
}

uint64 hash_of(const text *name) {
    return hash_bytes_extended(reinterpret_cast<const unsigned char *>(VARDATA_ANY(name)),
                               static_cast<int>(VARSIZE_ANY_EXHDR(name)), 0);
}

// Resolves a name that is not remembered, and remembers it.
const Name *look_up(const text *name) {
    const Oid schema = extension_schema();
    Oid sequence = read_segment_by_name(schema, name);
    const bool is_segment = OidIsValid(sequence);
    if (!is_segment) {
        const bool may_be_qualified = VARSIZE_ANY_EXHDR(name) < longest_qualified_name; // PostgreSQL shows all of it
        if (may_be_qualified)
            sequence = RangeVarGetRelid(makeRangeVarFromNameList(textToQualifiedNameList(const_cast<text *>(name))),
                                        NoLock, true);
        if (!OidIsValid(sequence))
            ereport(ERROR,
                    (errcode(ERRCODE_UNDEFINED_TABLE), errmsg("segment or sequence \"%s\" does not exist", shown(name)),
                     errhint("Create it with segment_create(), or name an existing sequence.")));
    }
    // The look-up may have processed invalidations, which invalidate the table.
    if (names_kept++ >= most_names)
        relation_changes++;
    if (names == nullptr || names_as_of != relation_changes)
        start_afresh();
    const uint64 hash = hash_of(name);
    MemoryContext caller = MemoryContextSwitchTo(names_context);
    auto *copy = static_cast<text *>(static_cast<void *>(PG_DETOAST_DATUM_COPY(PointerGetDatum(name))));
    SearchPath *path = is_segment ? nullptr : copy_search_path(names_context);
    MemoryContextSwitchTo(caller);
    auto *entry = static_cast<Name *>(hash_search(names, &hash, HASH_ENTER, nullptr));
    entry->name = copy;
    entry->path = path;
    entry->role = GetUserId();
    entry->sequence = sequence;
    return entry;
}

// Whether the argument is a literal, as in a column's default. Of other arguments the executor knows only the type.
bool has_constant_argument(const FmgrInfo *flinfo) {
    Node *call = flinfo->fn_expr;
    if (call == nullptr || !IsA(call, FuncExpr) || castNode(FuncExpr, call)->funcid != flinfo->fn_oid)
        return false;
    const List *arguments = castNode(FuncExpr, call)->args;
    return list_length(arguments) == 1 && IsA(linitial(arguments), Const);
}

const Name *find_name(const text *name) {
    if (names != nullptr && names_as_of == relation_changes) {
        const uint64 hash = hash_of(name);
        const auto *known = static_cast<const Name *>(hash_search(names, &hash, HASH_FIND, nullptr));
        if (known != nullptr && still_means(known, name))
            return known;
    }
    return look_up(name);
}

} // namespace

Oid sequence_named(const text *name) { return find_name(name)->sequence; }

SessionEntry *open_entry_named(FunctionCallInfo fcinfo, const text *name) {
    const Name *known = find_name(name);
    const uint64 as_of = names_as_of;
    SessionEntry *entry = open_entry(known->sequence, SlotKind::segment);
    auto *last = static_cast<LastCall *>(fcinfo->flinfo->fn_extra);
    if (last == nullptr) {
        last = static_cast<LastCall *>(MemoryContextAlloc(fcinfo->flinfo->fn_mcxt, sizeof(LastCall)));
        fcinfo->flinfo->fn_extra = last;
    }
    // A name looked up again under another path replaces its entry in the table, but this text and path stay in memory.
    *last = {as_of,
             known->sequence,
             known->role,
             known->path,
             has_constant_argument(fcinfo->flinfo),
             VARSIZE_ANY_EXHDR(known->name),
             VARDATA_ANY(known->name)};
    return entry;
}

} // namespace uidgen::pg

using namespace uidgen::pg;

extern "C" {

UIDGEN_SQL_FUNCTION(uid_segment_changed);

Datum uid_segment_changed(PG_FUNCTION_ARGS) {
    if (!CALLED_AS_TRIGGER(fcinfo))
        report_other_call("uid_segment_changed", "trigger");
    const auto *trigger = reinterpret_cast<TriggerData *>(fcinfo->context);
    CacheInvalidateRelcache(trigger->tg_relation);
    PG_RETURN_DATUM(0);
}
}
