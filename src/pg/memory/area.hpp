// The area: dynamic shared memory that grows with what is in it, and the table that finds a sequence's slot there. The
// model is PostgreSQL's own pgstat_shmem.c.
//
// The first process that needs a slot makes the area; every other one attaches to it at its first use. It lasts until
// the server stops or restarts after a crash. Slots are never given back to it, so an address that a process has kept
// may always be read.
//
// Memory may not be there: /dev/shm is full, or there are too many segments. PostgreSQL then raises an error under
// locks of its own, so only an abort catches it. Whatever is to last is allocated first, and published by a
// step that cannot fail.
#pragma once

#include "base/base.hpp"

namespace uidgen::pg {

// Which sequence a slot belongs to. `born` tells two databases apart that had one oid, one after the other. Their
// sequences may have the same oids, files and values.
struct SlotKey {
    Oid database;
    Oid sequence;
    uint64_t born;
};

inline bool same_key(const SlotKey &a, const SlotKey &b) {
    return a.database == b.database && a.sequence == b.sequence && a.born == b.born;
}

// The key of a sequence of this session's database. The first call of a process looks at a file of the database, and
// may raise an error. One that has attached to the area has made it.
SlotKey slot_key(Oid sequence);

// Compares the key with what this process knows of its database (slot_key()). Reads no catalog.
inline bool is_of_this_database(const SlotKey &key) { return same_key(key, slot_key(key.sequence)); }

enum class SlotKind : uint32_t { generator, segment };
constexpr uint32_t slot_kinds = 2;
constexpr uint32_t index(SlotKind kind) { return static_cast<uint32_t>(kind); }

// What the table holds: a row for each sequence that has a slot, one for each database whose default generator is
// known, and counts of nodes (slots.cpp). A row without a slot is like none. A slot of the other kind than the
// sequence is one that its oid had before.
struct SlotRow {
    SlotKey key; // must come first: the table's key
    dsa_pointer slots[slot_kinds];
    int64_t count;         // of a node
    Oid default_generator; // of a database; InvalidOid: it is not known
};

constexpr char of_slot_table[] = "the table of generators and segments"; // for allocation errors

// Of no use until this process has attached.
[[gnu::visibility("hidden")]] extern dsa_area *area;
[[gnu::visibility("hidden")]] extern dshash_table *slot_table;

// Attaches this process to the area, if it was made, and first to the server state (attach_server_state()). It looks at
// a file of the database, maps memory, keeps in TopMemoryContext what it knows, and touches no slot.
// False: the server has no slot yet.
bool attach_area();

// Attaches this process to the area (attach_area()). If there is none, it makes it under area.making, and fills its
// slots from the file of grants (grant_file_restore()). The caller holds no lock but sequences'.
void open_area();
// For _PG_init, in this process only: what open_area() calls to fill a new area, before any other process sees it.
void area_restore_by(void (*restore)());

// The address in this process; null for InvalidDsaPointer. May raise an error, if the memory is new to the process.
template <typename T> T *in_area(dsa_pointer pointer) { return static_cast<T *>(dsa_get_address(area, pointer)); }

// Sets this process's error context, and allocates nothing: until end_allocation() an error for lack of dynamic shared
// memory says what for, and what to do.
void begin_allocation(ErrorContextCallback *context, const char *what);
// Sets the error context back.
inline void end_allocation(const ErrorContextCallback &context) { error_context_stack = context.previous; }

// Zeroed memory of the area, to which the process has attached. Error with `what` if there is none; not under a page.
dsa_pointer allocate_in_area(Size bytes, const char *what);

} // namespace uidgen::pg
