#include "names.hpp"

#include "base/errors.hpp"
#include "config/extension.hpp"
#include "config/rows.hpp"

namespace uidgen::pg {

namespace {

// The default generator, as of that value of relation_changes.
Oid default_sequence = InvalidOid;
uint64 default_as_of = 0;

} // namespace

// While it waits for the lock of uid_default_set(), open_entry() processes the invalidation that comes with the choice.
SessionEntry *open_default() {
    if (default_changed_here())
        ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                        errmsg("cannot use the default generator because it was changed in this transaction"),
                        errdetail("If the transaction rolled back, later ids could be lower than ids drawn now."),
                        errhint("Commit the transaction before you draw.")));
    SessionEntry *e = nullptr;
    default_as_of = read_unchanged([&] {
        if (default_as_of != relation_changes)
            default_sequence = read_default_generator(extension_schema());
        e = open_entry(default_sequence, SlotKind::generator);
    });
    last_used.default_generator = default_as_of == relation_changes ? e : &empty_entry;
    return e;
}

namespace {

HTAB *names = nullptr;
MemoryContext names_context = nullptr; // all of the above
uint64 names_as_of = 0;                // relation_changes of the entries of `names`
uint64 names_kept = 0;                 // look-ups that still occupy memory in `names_context`

// Bounds the memory. A session that keeps changing its search_path looks the same names up again and again, and each
// look-up leaves a copy behind.
constexpr uint64 most_names = 16384;

constexpr Size longest_qualified_name = 1024;

void start_afresh() {
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
    *entry = {hash, copy, path, GetUserId(), sequence};
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
        if (known != nullptr && same_text(known->name, name) && still_counts(*known, GetUserId()))
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
    *last = {as_of, has_constant_argument(fcinfo->flinfo), *known};
    return entry;
}

} // namespace uidgen::pg
