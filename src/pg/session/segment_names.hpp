// segment_next(text): from any text to a sequence, looked up once.
//
// A named segment wins over a sequence of that name. What was found stays good while nothing was renamed,
// created or dropped (any change of pg_class or pg_namespace, or of uid_segment, starts afresh), and for a
// plain sequence while the search_path is the one it was found under.
#pragma once

#include "session.hpp"

namespace uidgen::pg {

// The sequence of the segment of that name, or of that name itself; error if there is none. `function` is the SQL
// function that was called.
Oid sequence_named(Oid function, const text *name);

// The same, opened. The expression remembers its last name in fn_extra.
SessionEntry *open_entry_named(FunctionCallInfo fcinfo, const text *name);

// What an expression remembers of its last call, in fn_extra. The name's bytes and the path are good within their
// generation.
struct LastCall {
    uint64_t generation;
    Oid sequence;     // what was found
    Oid role;         // whose look-up it was
    SearchPath *path; // under which a plain sequence was found; null for a named segment
    bool is_constant; // the name is the same in each call of the expression
    Size length;
    const char *bytes;
};

// Changes when what was looked up may be wrong.
[[gnu::visibility("hidden")]] extern uint64_t names_generation;

// A name that is stored compressed, or elsewhere, is none that is remembered.
inline bool is_name_of(const LastCall *last, Datum argument) {
    const void *name = DatumGetPointer(argument);
    return !VARATT_IS_EXTERNAL(name) && !VARATT_IS_COMPRESSED(name) && VARSIZE_ANY_EXHDR(name) == last->length &&
           memcmp(VARDATA_ANY(name), last->bytes, last->length) == 0;
}

// What open_entry_named() found for this expression's last call, if the name still means it to this role; else InvalidOid,
// which no entry has. Whether the entry is open is for the caller to see.
inline Oid remembered_sequence(FunctionCallInfo fcinfo, Oid role) {
    const auto *last = static_cast<const LastCall *>(fcinfo->flinfo->fn_extra);
    if (unlikely(last == nullptr) || unlikely(last->generation != names_generation))
        return InvalidOid;
    const bool known = last->role == role &&
                       (last->is_constant || is_name_of(last, PG_GETARG_DATUM(0))) &&
                       (last->path == nullptr || search_path_is(last->path));
    return likely(known) ? last->sequence : InvalidOid;
}

// For session_events.cpp.
void names_relation_changed(Oid relation);

} // namespace uidgen::pg
