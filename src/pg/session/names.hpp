// What uid_next() and segment_next(text) mean.
//
// The generator behind uid_next(), as this session knows it: looked up once, and again after uid_generator changes.
#pragma once

#include "config/extension.hpp"
#include "session.hpp"

namespace uidgen::pg {

// The default generator's entry, opened for the current user and transaction.
SessionEntry *open_default();

// For module.cpp.
void default_relation_changed(Oid relation);

// ---------------------------------------------------------------------------------------------------------
// segment_next(text): resolves any text to a sequence, looked up once.
//
// A named segment wins over a sequence of the same name. A result stays valid until something is renamed, created or
// dropped: any change of a relation, pg_class or pg_namespace invalidates all results. The result of a plain sequence
// also requires the search_path that found it.
// ---------------------------------------------------------------------------------------------------------

// The sequence of the segment of that name, else the sequence of that name; error if there is neither.
Oid sequence_named(const text *name);

// The same, with its entry opened. The expression remembers its last name in fn_extra.
SessionEntry *open_entry_named(FunctionCallInfo fcinfo, const text *name);

// What an expression remembers of its last call, in fn_extra. The name's bytes and the path are valid as long as
// nothing has changed.
struct LastCall {
    uint64_t as_of;   // of relation_changes
    Oid sequence;     // the result
    Oid role;         // the role of the look-up
    SearchPath *path; // the path that found a plain sequence; null for a named segment
    bool is_constant; // each call of the expression has the same name
    Size length;
    const char *bytes;
};

// A name that is stored compressed or out of line never matches.
inline bool is_name_of(const LastCall *last, Datum argument) {
    const void *name = DatumGetPointer(argument);
    return !VARATT_IS_EXTERNAL(name) && !VARATT_IS_COMPRESSED(name) && VARSIZE_ANY_EXHDR(name) == last->length &&
           memcmp(VARDATA_ANY(name), last->bytes, last->length) == 0;
}

// The result of this expression's last open_entry_named(), if the name still means the same to this role; else
// InvalidOid, which no entry has. The caller checks whether the entry is open.
inline Oid remembered_sequence(FunctionCallInfo fcinfo, Oid role) {
    const auto *last = static_cast<const LastCall *>(fcinfo->flinfo->fn_extra);
    if (unlikely(last == nullptr) || unlikely(last->as_of != relation_changes))
        return InvalidOid;
    const bool known = last->role == role && (last->is_constant || is_name_of(last, PG_GETARG_DATUM(0))) &&
                       (last->path == nullptr || search_path_is(last->path));
    return likely(known) ? last->sequence : InvalidOid;
}

} // namespace uidgen::pg
