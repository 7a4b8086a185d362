// segment_next(text): from any text to a sequence, looked up once.
//
// A named segment wins over a sequence of that name. What was found stays good while nothing was renamed,
// created or dropped (any change of pg_class or pg_namespace, or of uid_segment, starts afresh), and for a
// plain sequence while the search_path is the one it was found under.
#pragma once

#include "attach.hpp"

namespace uidgen::pg {

// The sequence of the segment of that name, or of that name itself; error if there is none. `function` is the SQL
// function that was called.
Oid sequence_named(Oid function, const text *name);

// The same, attached. The expression remembers its last name in fn_extra.
Attached *attach_named(FunctionCallInfo fcinfo, const text *name);

// What an expression remembers of its last call, in fn_extra. The name's bytes and the path are good within their
// generation.
struct LastCall {
    uint64_t generation;
    uint64_t key;     // front_key() of what was found, and of the role whose look-up it was
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

// The key of what attach_named() found for this expression's last call, if the name still means it to that role; else 0.
// Whether it is attached is for the caller to see.
inline uint64_t remembered_key(FunctionCallInfo fcinfo, Oid role) {
    const auto *last = static_cast<const LastCall *>(fcinfo->flinfo->fn_extra);
    if (unlikely(last == nullptr) || unlikely(last->generation != names_generation))
        return 0;
    const bool known = last->key >> 32 == role &&
                       (last->is_constant || is_name_of(last, PG_GETARG_DATUM(0))) &&
                       (last->path == nullptr || search_path_is(last->path));
    return likely(known) ? last->key : 0;
}

} // namespace uidgen::pg
