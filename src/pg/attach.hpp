// A backend's view of a generator or segment: found once, checked again at a transaction's first call.
//
// The first call of a transaction takes RowExclusiveLock on the sequence (to the end of the transaction,
// under TopTransactionResourceOwner, so that ROLLBACK TO does not drop it while this cache says it is held),
// checks the privilege of the current user, finds the slot, and compares the sequence's page with what the
// slot expects: when somebody else moved the counter (setval, nextval, a restore), what is in hand is given
// up. Every later call of the transaction by the same user needs two comparisons.
#pragma once

#include "../core/durability.hpp"
#include "../core/range.hpp"
#include "slots.hpp"

namespace uidgen::pg {

// What may be taken from the generator's word while the clock stays in one tick.
struct Window {
    uint64_t from_ns;   // the tick's start, modulo 2^64
    uint64_t length_ns; // 0: no window
    uint64_t floor;
    uint64_t limit;
    core::Shape shape; // of the ids
    core::Durability level;
};

// The part of a segment's range that this backend may take from: ordinals from the next one up to `limit`. The
// value of an ordinal is origin + ordinal * increment, modulo 2^64.
struct Share {
    uint64_t limit; // 0: nothing
    uint64_t origin;
    uint64_t increment;

    uint64_t value(uint64_t ordinal) const { return origin + ordinal * increment; }
};

// What segment_next() needs comes first, in one cache line: many segments drawn from in turn do not all stay in the
// processor's nearest cache.
struct alignas(core::cache_line) Attached {
    uint64_t key;        // front_key() of the sequence and the role whose privilege was checked
    uint64_t checked_in; // the transaction's number; 0: to be checked again
    Slot *slot;
    Share share;                  // segments
    core::Durability share_level; // segments
    bool keeps_last_value;        // segments: one was drawn, and the newest is not at the front but here
    int64_t last_value;           // segments: what segment_last() returns, if it is kept here

    Oid sequence;
    Oid function;       // the SQL function that was called last: leads to the extension's tables
    uint64_t locked_in; // the transaction that took the lock
    uint64_t tenancy;
    Buffer buffer; // where the page was last
    Window window; // generators
    core::Ring<> ring;       // generators in cached mode
    dsm_handle ring_memory;  // of the ring, while it has cells
    uint64_t chunk_first;    // what is left of the run taken out of it, if it is not at the front
    uint64_t chunk_end;
    uint64_t fresh_floor;    // what was the oldest position to be handed out at the last look at the clock
    void *memory;            // as allocated
    bool dropped;            // make_room() has found that the sequence does not exist any more
};
static_assert(offsetof(Attached, sequence) == core::cache_line, "the first line is full");

// The entry of a sequence that was dropped makes room for others at a later call, so callers keep a pointer to the end of
// their own call only.
Attached *attach(Oid sequence, SlotKind kind, Oid function);

// Numbers this backend's transactions from 1.
[[gnu::visibility("hidden")]] extern uint64_t transaction_number;
// What uid_last() returns; ids are never negative, so -1: none.
[[gnu::visibility("hidden")]] extern int64_t last_id;
// The transaction that chose another default generator: it may yet choose otherwise, and ids would stay.
[[gnu::visibility("hidden")]] extern uint64_t default_changed_in;

// The role and the sequence, as its Datum, for one comparison. An oid from a column has its sign extended: its key is
// that of the role of signs, for which every call attaches anew. 0 is no call's key.
constexpr Oid role_of_signs = UINT32_MAX;
inline uint64_t front_key(Oid role, Datum sequence) { return static_cast<uint64_t>(role) << 32 | sequence; }

// Whether attach() has nothing to check again for the current user, whose role is in the key.
inline bool attached(const Attached *a, uint64_t key) {
    return likely(a->key == key) && likely(a->checked_in == transaction_number);
}

// The entries of this session by their sequences: open addressing, at most a quarter of the places taken, so that
// nearly every entry stands where its search begins. The other places hold an entry of no sequence, never attached.
struct EntryTable {
    Attached **places;
    uint32_t mask;
    uint32_t shift; // makes an index of a hash of 32 bits
};
[[gnu::visibility("hidden")]] extern EntryTable entries;

// Where the search for a sequence's entry begins. Fibonacci hashing spreads the oids of sequences that were made one
// after the other evenly.
inline uint32_t first_place(Oid sequence) { return (sequence * UINT32_C(0x9E3779B9)) >> entries.shift; }

// The front: what a generator and a segment that are much in use need for their next value, in static memory, so that
// the next call for the same one by the same user finds everything without following a pointer. The key is 0 when
// something is to be checked again, or a segment's share is used up.
//
// A locked swap waits for every instruction before it and holds up every load after it, so little stands before one: whether
// there is a next value was found out with the value before.
struct GeneratorFront {
    uint64_t key;
    Oid default_role; // the role in the key, if the generator is the session's default one; else InvalidOid
    StandbyMark no_standby;
    core::TickWord<> *word;
    Window window;
    Attached *entry; // null until the first draw
};
struct SegmentFront {
    uint64_t key;
    StandbyMark no_standby;
    core::SegmentWord<> *word;
    Share share;
    uint64_t next;   // the ordinal after the session's last one, which segment_last() returns; in the share while there is a key
    Attached *entry; // null until the first draw

    int64_t last_value() const { return static_cast<int64_t>(share.value(next - 1)); }

    // Ordinals before `after` were drawn.
    void follow(uint64_t after) {
        next = after;
        if (unlikely(after >= share.limit))
            key = 0;
    }
};
// Of the run that a session in cached mode has in hand.
struct CachedFront {
    uint64_t key; // see cached_fronts_expired
    Oid default_role;
    StandbyMark no_standby;
    int64_t next_id;
    int64_t end_id; // the same as next_id when the run is used up
    int64_t step;
    Attached *entry; // null until the first draw
};
// Of the run that all sessions draw from.
struct SharedFront {
    uint64_t key; // see cached_fronts_expired
    Oid default_role;
    StandbyMark no_standby;
    core::SharedRun<> *run;
    uint64_t believed; // to be the last position handed out
    uint64_t end;      // the run's last position
    uint64_t origin;   // ids are origin + position * step, modulo 2^64
    uint64_t step;

    uint64_t length; // of runs
    uint64_t floor;
    core::Shape shape;

    int64_t id(uint64_t position) const { return static_cast<int64_t>(origin + position * step); }

    // `last` was handed out, of the run that was followed.
    void follow(uint64_t last) { believed = core::SharedRun<>::belief_after(last, end); }

    // The same, of another run, no older than `floor`.
    void follow_another(uint64_t last) {
        end = core::SharedRun<>::end_of_run(last, length);
        origin = static_cast<uint64_t>(core::join(shape, last)) - last * step;
        follow(last);
    }
};
[[gnu::visibility("hidden")]] extern GeneratorFront generator_front;
[[gnu::visibility("hidden")]] extern CachedFront cached_front;
[[gnu::visibility("hidden")]] extern SharedFront shared_front;
[[gnu::visibility("hidden")]] extern SegmentFront segment_front;

// The last look at the clock is too long ago for both fronts of cached mode, whatever their keys say. All that the handler
// of a timer's signal writes (cached.cpp); relaxed, as it runs in the thread that reads.
[[gnu::visibility("hidden")]] extern std::atomic<bool> cached_fronts_expired;
static_assert(std::atomic<bool>::is_always_lock_free, "a signal handler must not wait for a lock");
inline bool cached_fronts_are_fresh() { return !cached_fronts_expired.load(std::memory_order_relaxed); }

// The entry of that key, if it stands where its search begins and attach() would have nothing to check again but the
// kind, which is for the caller: the other kind has no share, or no window. Else null: to be attached.
inline Attached *probably_attached(uint64_t key) {
    Attached *a = entries.places[first_place(static_cast<Oid>(key))];
    return attached(a, key) ? a : nullptr;
}

// The key for the current user; 0 if something is to be checked again.
uint64_t front_key_of(const Attached *a);
// The same for a front where it is found out after a swap that a standby is awaited; 0 while one is.
uint64_t front_key_of(const Attached *a, StandbyMark mark);

// After a draw: the entry and its window, or its share and the ordinal after the last one drawn, come to the front.
void bring_to_front(Attached *a);
void bring_to_front(Attached *a, uint64_t next);

// The entry of a sequence that was attached once in this session; null if it never was.
Attached *find_attached(Oid sequence);

// The sequence of an attached entry, open; its lock is held.
Relation open_attached(const Attached *a);

// Has every entry checked again at its next use.
void attach_again();

// uid_last() and segment_last() are not defined any more, as currval() and lastval() after DISCARD SEQUENCES.
void forget_last_values();

void attach_register_callbacks();

// Gives up what a slot has in hand and takes over what the page says. Under the page's exclusive lock.
void adopt_page(Slot *slot, Relation sequence, const PageState &state);

} // namespace uidgen::pg
