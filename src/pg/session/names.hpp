// What uid_next() and segment_next(text) mean.
//
// The generator behind uid_next() is looked up once, and again after it or its definition has changed.
#pragma once

#include "config/extension.hpp"
#include "session.hpp"

namespace uidgen::pg {

// The default generator's entry, opened by open_entry() for the current user and transaction: RowExclusiveLock is held
// from then on. Looked up in the table of slots, else in labels, unless this session knows it; then noted there.
SessionEntry *open_default() EXCLUDES(page_lock, table_lock, slot_lock, state_lock);

// ---------------------------------------------------------------------------------------------------------
// segment_next(text): resolves any text to a sequence, looked up once.
//
// A named segment wins over a sequence of the same name. Its result stays valid until that sequence or a schema
// changes. That of a plain sequence stays valid until anything is renamed, created or dropped, and requires the
// search_path that found it.
// ---------------------------------------------------------------------------------------------------------

// The sequence of the segment of that name, else the sequence of that name; error if there is neither. Looked up in the
// slot, labels and catalogs (find_segment()) unless this session remembers it. Locks no sequence.
Oid sequence_named(const text *name) EXCLUDES(table_lock, slot_lock, state_lock);

// Opens the entry of sequence_named() for the name that is the first argument. The expression remembers its last name
// in fn_extra. RowExclusiveLock is held from then on.
SessionEntry *open_entry_named(FunctionCallInfo fcinfo) EXCLUDES(page_lock, table_lock, slot_lock, state_lock);

// What a name means as long as is_current(). Text and path are valid that long.
struct Name {
    uint64 hash;      // must come first: the key of the session's table
    const text *name; // in full, because two names may share a hash
    SearchPath *path; // the path that found a plain sequence; null for a named segment
    Oid role;         // the role that looked it up: a plain sequence's schema may be closed to others
    Oid sequence;
    uint64 as_of;          // of those changes; 0: not valid
    const uint64 *changes; // definition_changes for a named segment, else relation_changes
};

// By this session's counters of changes only.
inline bool is_current(const Name &known) { return known.as_of == *known.changes; }

// What an expression remembers of its last call, in fn_extra.
struct LastCall {
    bool is_constant; // each call of the expression has the same name
    Name known;
};

// By the arguments, which are neither compressed nor out of line.
inline bool same_text(const text *a, const text *b) {
    return VARSIZE_ANY_EXHDR(a) == VARSIZE_ANY_EXHDR(b) &&
           memcmp(VARDATA_ANY(a), VARDATA_ANY(b), VARSIZE_ANY_EXHDR(a)) == 0;
}

// A name that is stored compressed or out of line never matches.
inline bool is_name_of(const LastCall *last, Datum argument) {
    const auto *name = static_cast<const text *>(static_cast<const void *>(DatumGetPointer(argument)));
    return !VARATT_IS_EXTERNAL(name) && !VARATT_IS_COMPRESSED(name) && same_text(last->known.name, name);
}

// Whether it was looked up for that role, with the search_path of now.
inline bool is_for(const Name &known, Oid role) {
    return known.role == role && (known.path == nullptr || search_path_is(known.path));
}

// The result of this expression's last open_entry_named(), if the name still means the same to this role; else
// InvalidOid, which no entry has. The caller checks whether the entry is open.
inline Oid remembered_sequence(FunctionCallInfo fcinfo, Oid role) {
    const auto *last = static_cast<const LastCall *>(fcinfo->flinfo->fn_extra);
    if (unlikely(last == nullptr) || unlikely(!is_current(last->known)))
        return InvalidOid;
    const bool is_same = (last->is_constant || is_name_of(last, PG_GETARG_DATUM(0))) && is_for(last->known, role);
    return likely(is_same) ? last->known.sequence : InvalidOid;
}

} // namespace uidgen::pg
