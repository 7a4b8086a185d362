// Slots: what the server keeps in shared memory for each generator and segment in use. Slots are in the area
// (area.hpp), as many as are used. A slot's memory is of one kind for good, and is never given back: a freed slot is
// used again for another sequence.
//
// Locking contract (more of it in server_state.hpp)
//   1. To make or use a slot: RowExclusiveLock on the sequence, held to the end of the transaction.
//   2. To reset or free a slot: a lock on the sequence that excludes all users, or a sequence that no other session
//      sees. Each changes the generation. So a session that kept a pointer compares the generation, under the lock on
//      the sequence.
//   3. page_lock is the lock of the sequence's buffer page. So no race makes a page and its slot differ.
//   4. slot_lock is the slot's own. A process that does not hold a lock on the sequence (the refiller, the registrar, a
//      view) reads other fields under it, shared, while phase is not free.
//   5. A process that makes, resets or frees a slot holds the slot's lock and the state's, exclusively. So who looks at
//      many slots at one moment needs only the state's.
//   6. All other fields are atomics, or never change while the slot is in use.
#pragma once

#include <atomic>
#include <type_traits>

#include "core/definition.hpp"
#include "core/position_allocator.hpp"
#include "core/range.hpp"
#include "server_state.hpp"

namespace uidgen::pg {

// What a generator's or a segment's definition says, as its slot has it.

using core::CachedConfig;
using core::WhenRingEmpty;
using core::worker_policy_names;
using core::WorkerPolicy;

// What the generator's definition says, copied when the slot is made; and the incarnation's salt.
struct GeneratorConfig {
    core::Layout layout;
    core::ClockPolicy policy;
    CachedConfig cached;
    WorkerPolicy worker_policy;
    int32_t worker_number; // of WorkerPolicy::fixed
    int32_t datacenter_id; // -1: none of its own
    bool own_pool;
    char preset[NAMEDATALEN]; // shortened if need be
};

constexpr int longest_registry_name = 255; // bytes

// What a segment's definition says; zeros for a plain sequence.
struct SegmentConfig {
    int64_t step; // 0: the setting, as the next one
    int64_t max_step;
    char name[2 * NAMEDATALEN]; // shortened if need be, to more than a sequence's; empty: it has none
    uint64_t fleet;             // whose registry gives its values; 0: they are of the sequence itself
    int64_t increment;          // there, as the next one
    char registry_name[longest_registry_name + 1]; // in UTF-8

    bool is_attached() const { return fleet != 0; }
};

// What a sequence's page says. The lsn shows that the counter was moved, even if it was moved back.
struct PageState {
    core::SequenceState counter;
    XLogRecPtr lsn;
};

inline bool same_state(const PageState &a, const PageState &b) {
    return a.counter.last_value == b.counter.last_value && a.counter.is_called == b.counter.is_called && a.lsn == b.lsn;
}

enum class SlotPhase : uint32_t {
    free,    // of no sequence
    dropped, // of a sequence that does not exist any more, unless its DROP is rolled back
    stale,   // what is drawn with must be made again
    altered, // of a segment: its definition must be read again, because it may have changed, or be rolled back
    ready,
};

// What all slots have. The rest of a slot's memory follows it: what passes between sessions and registrar
// (memberships.hpp), and the state of its kind (generator_state.hpp, segment_state.hpp).
struct Slot {
    dsa_pointer self; // never changes, as the next two
    dsa_pointer next; // of all slots of the kind
    SlotKind kind;
    dsa_pointer next_free GUARDED_BY(state_lock);
    LWLock lock;
    SlotPhase phase GUARDED_BY(slot_lock);
    SlotKey key GUARDED_BY(slot_lock);
    std::atomic<uint64_t> generation;
    RelationFile file GUARDED_BY(page_lock);  // the sequence's file that `expected` belongs to
    PageState expected GUARDED_BY(page_lock); // what the sequence's page says unless another command moved the counter
    // The transaction that has created the sequence, or has given it that file, and has reserved since; 0: none. No
    // other one expects the page that it wrote: until the commit is durable, what was reserved there is not either.
    uint64_t uncommitted_in GUARDED_BY(page_lock);
    XLogRecPtr uncommitted_lsn GUARDED_BY(page_lock); // which that transaction expects; `expected` has that of no page
    Counters counters;
    PassedOver passed_over;          // by the word that sessions draw from
    std::atomic<uint64_t> ids_shown; // the most ids that a reader of the statistics was told
};

inline void lock_slot(Slot *slot) ACQUIRE(slot_lock) EXCLUDES(state_lock) UNCHECKED {
    LWLockAcquire(&slot->lock, LW_EXCLUSIVE);
}
inline void lock_slot_shared(const Slot *slot) ACQUIRE_SHARED(slot_lock) EXCLUDES(state_lock) UNCHECKED {
    LWLockAcquire(const_cast<LWLock *>(&slot->lock), LW_SHARED);
}
inline void unlock_slot(const Slot *slot) RELEASE(slot_lock) UNCHECKED {
    LWLockRelease(const_cast<LWLock *>(&slot->lock));
}

// What the phase was a moment ago, read under the slot's lock, unless a lock on the sequence keeps it.
inline SlotPhase phase_of(const Slot *slot) EXCLUDES(slot_lock, state_lock) {
    lock_slot_shared(slot);
    const SlotPhase phase = slot->phase;
    unlock_slot(slot);
    return phase;
}

// For a session that holds a lock on the sequence, which keeps the slot's key.
inline Oid sequence_of(const Slot *slot) UNCHECKED { return slot->key.sequence; }

// By (5) of the contract the state's lock will do.
inline const SlotKey &key_under_state(const Slot *slot) REQUIRES_SHARED(state_lock) UNCHECKED { return slot->key; }
inline bool is_ready_under_state(const Slot *slot) REQUIRES_SHARED(state_lock) UNCHECKED {
    return slot->phase == SlotPhase::ready;
}

static_assert(std::is_standard_layout_v<Slot> && std::is_trivially_destructible_v<Slot>,
              "slots live in memory that no constructor or destructor of C++ manages");

struct SlotInit {
    SlotKind kind;
    RelationFile file;
    PageState expected;
    SlotPhase phase;         // ready, or altered
    GeneratorConfig config;  // generator
    int64_t mark;            // generator: the high-water mark
    uint64_t first_position; // no position or ordinal below it is handed out
    SegmentConfig segment;
};

// ---------------------------------------------------------------------------------------------------------
// For sessions that hold a lock on the sequence.
// ---------------------------------------------------------------------------------------------------------

// The slot of that key, in the table of slots; null: none. Without a lock on the sequence it may be another's at once.
Slot *find_slot(const SlotKey &key, SlotKind kind) EXCLUDES(page_lock, table_lock, slot_lock, state_lock);

// The slot of that key, with the definition and the phase of `init` (ready or `altered`) unless another session has
// done so first. One that was only `altered` keeps its ranges, and its block if that is for the same segment of the
// registry; any other is reset. Opens the area first (open_area(), which may make it and read the file of grants). The
// caller holds RowExclusiveLock on the sequence. Raises an error if there is no memory.
Slot *make_slot(const SlotKey &key, const SlotInit &init) EXCLUDES(page_lock, table_lock, slot_lock, state_lock);

// The slot of that key in the table of slots; if there is none, it makes a stale one. The process has attached to the
// area. The caller holds RowExclusiveLock on the sequence, or makes the area.
Slot *claim_slot(const SlotKey &key, SlotKind kind) EXCLUDES(page_lock, table_lock, slot_lock, state_lock);

// What the slot was made from has changed, or may have been rolled back: the next draw makes again what it draws with.
// Lowers the phase, never raises it: what is dropped does not become stale. Statistics and membership stay, and the
// ranges and the block of a segment that was only altered; otherwise the block is discarded, whatever the phase was
// (blocks_discard()). If the sequence was dropped, they are out of sight, unless the DROP is rolled back. Takes both
// locks of (5), raises no error, and leaves the node to a later call. The caller's lock on the sequence excludes other
// users, or no other session sees it; for `altered` RowExclusiveLock will do.
void mark_stale(Slot *slot, SlotPhase to = SlotPhase::stale) EXCLUDES(slot_lock, state_lock);

// Marks the slot stale, too (mark_stale()), and gives its nodes back to the table (give_back_nodes()). The caller's
// lock on the sequence excludes other users. Not for a rollback, where no error may be raised.
void expire_slot(Slot *slot, SlotPhase to = SlotPhase::stale) EXCLUDES(page_lock, table_lock, slot_lock, state_lock);

// Frees the slot, if there is one, and its row, if that has no other: under the lock of the row, and both locks of (5).
// No session may use it: the caller's lock on the sequence excludes users. A generator counts as lost (note_dropped()),
// its membership ends, and its nodes are given back (give_back_nodes()). A block is discarded (blocks_discard()).
void free_slot(const SlotKey &key, SlotKind kind) EXCLUDES(page_lock, table_lock, slot_lock, state_lock);

// Notes in an atomic of the server state how far the ids of a generator reach that the database has lost, or may lose:
// its sequence is dropped, or the creation is rolled back. Does nothing if the slot is another sequence's by now.
// Raises no error.
void note_dropped(Slot *slot, const SlotKey &key) EXCLUDES(slot_lock, state_lock);

// No id of a lost generator of this layout and this database has a later time; 0: there is none. Times of other
// databases and layouts may count, too. An atomic of the server state: no lock. The process has attached to the area.
int64_t dropped_until_us(const core::Layout &layout);

// How many other generators of a layout have a node, and how many have any.
struct NodeHolders {
    int64_t of_node;
    int64_t of_layout;
};

// Counts, in the table of slots, one more generator that draws with the node until it is given back, which also happens
// when a slot that has it is made ready again, expires or is freed. Error if there is no memory for a row: then a count
// may stay too high until the server's next start. The process has attached to the area.
NodeHolders take_node(const core::Layout &layout, int64_t node) EXCLUDES(page_lock, table_lock, slot_lock, state_lock);
// Counts, in the table of slots, one generator less that draws with the node. The process has attached to the area.
void give_back_node(const core::Layout &layout, int64_t node) EXCLUDES(page_lock, table_lock, slot_lock, state_lock);

// Whether the slot, found in the table of slots and read under its lock, is ready, and of a segment of that name, which
// is short enough for a sequence. Callers need no lock on the sequence.
bool slot_has_name(const SlotKey &key, const char *name) EXCLUDES(page_lock, table_lock, slot_lock, state_lock);

// The default generator of this database, in the table of slots, so that no session reads labels to find it;
// InvalidOid: they must be read.
//
//   1. It is noted under RowExclusiveLock on that generator, after its label was read under this lock.
//   2. A session that makes another default, or drops it, notes InvalidOid under a lock that excludes those, and keeps
//      it to the end of its transaction. So what is known was committed, and is the default until that lock is taken.
Oid known_default() EXCLUDES(page_lock, table_lock, slot_lock, state_lock);
// Notes it in the table of slots, for known_default(): under RowExclusiveLock on that generator. InvalidOid: another
// one is made the default, or it is dropped, under a lock that excludes its users; or a new sequence is made the
// default generator. Does nothing if none was known and none is noted.
void note_default(Oid generator) EXCLUDES(page_lock, table_lock, slot_lock, state_lock);

// ---------------------------------------------------------------------------------------------------------
// For readers without a lock on the sequence.
// ---------------------------------------------------------------------------------------------------------

// All slots of a kind that were ever made, the newest first; null at the end. Slots that are made meanwhile are
// missing. Needs no lock: a slot's memory stays.
Slot *first_slot(SlotKind kind);
// The slot of its kind that was made before it; null at the end. Needs no lock.
inline Slot *next_slot(const Slot *slot) { return in_area<Slot>(slot->next); }

// Calls visit(slot) for each slot that a sequence has, under its lock. It must not raise an error.
template <typename Visit> void for_each_slot(SlotKind kind, Visit visit) EXCLUDES(slot_lock, state_lock) {
    for (Slot *slot = first_slot(kind); slot != nullptr; slot = next_slot(slot)) {
        lock_slot_shared(slot);
        if (slot->phase != SlotPhase::free)
            visit(slot);
        unlock_slot(slot);
    }
}

// The next slot of a kind in turn, to be looked at whether its sequence is still there; null at the end of a round.
// Moves an atomic of the server state, and needs no lock.
Slot *take_next_look(SlotKind kind);

// Whether a generator's slot has written a lease since it was made ready.
bool has_leased(const Slot &slot) REQUIRES_SHARED(slot_lock);

// Start of the latest tick in an id that was drawn from the slot's generator; 0: there is none.
int64_t slot_last_time(const Slot &slot) REQUIRES_SHARED(slot_lock);

// ---------------------------------------------------------------------------------------------------------
// What slots have counted.
// ---------------------------------------------------------------------------------------------------------

// The word that sessions draw from, which is in the slot: only an address, so no lock is needed.
core::PositionAllocator<> &word_of(Slot *slot);

// What a slot has counted since its sequence has it. Notes what it shows, in an atomic.
Stats slot_counted(Slot *slot) REQUIRES_SHARED(slot_lock);

// What all slots of the server have counted since its start, also those that were freed. Takes the state's lock, and
// after that each slot's. Notes what it shows, in atomics. The process has attached.
Stats slots_counted() EXCLUDES(slot_lock, state_lock);

} // namespace uidgen::pg
