// A session's entry for one sequence: opened at a transaction's first call, then drawn from by the fast path.
//
// open_entry() takes the lock and checks the privilege (open_to_draw()), finds the slot or makes it
// (find_or_make_slot()), and compares the sequence's page with what the slot expects (find_expected_page()). A later
// transaction of the same role only takes the lock and compares the page, until an invalidation says that the sequence
// or a role has changed. The slow path then draws, and opens a window (core/window.hpp). Every later call takes the
// fast path, draw_next(), as long as
//   1. no event since requires the entry to be opened again: session_checks is unchanged,
//   2. the current user is the one whose privilege was checked,
//   3. synchronous replication requires what it required when the window was opened,
//   4. the clock is in the window's tick; in cached mode, the wall clock was read less than half of max_staleness ago,
//   5. the window has a next value.
// An event that invalidates one of these need do nothing else: the slow path checks everything again.
#pragma once

#include "core/range.hpp"
#include "core/window.hpp"
#include "sequence/sequence.hpp"

namespace uidgen::pg {

// The clock that ends a window, when it is clock_length or more beyond clock_begin.
enum class WindowClock : uint32_t {
    none,   // segments
    wall,   // in nanoseconds: the window's tick
    coarse, // in microseconds, a clock that cannot be set: cached mode
};

struct SessionEntry {
    // The fast path. Its fields come first, so that each of many sequences drawn from in turn takes two cache lines.
    uint64_t checked; // session_checks when the entry was opened; 0: must be opened
    Oid role;
    SlotKind kind; // of the slot
    core::Window<> window;
    WindowClock clock;
    uint64_t clock_begin;
    uint64_t clock_length;
    SyncState sync;
    int64_t last_value; // segments: what segment_last() returns, if has_last
    bool has_last;

    // The slow path.
    Oid sequence;
    uint64_t locked_in;        // the transaction that took the lock
    SubTransactionId found_in; // where the slot was found, if that transaction created the sequence; else invalid
    Slot *slot;
    uint64_t generation;  // of the slot
    bool is_settled;      // the slot was ready, as of that generation: its definition need not be read again
    uint64_t known_as_of; // sequence_changes when the sequence, and the role's privilege, were looked up; 0: never
    PagePlace page;
};

// Changes for every reason to open entries again: the end of a transaction, an invalidation, a setting, a savepoint
// that is rolled back.
[[gnu::visibility("hidden")]] extern uint64_t session_checks;
// Notes in this session that the open transaction has chosen another default generator. That may still be rolled back,
// but ids would remain.
void note_default_changed();
// Whether this session has noted so in the open transaction.
bool default_changed_here();
// The result of uid_last(). Ids are never negative; -1: none.
[[gnu::visibility("hidden")]] extern int64_t last_id;
// Where the fast path looks first: the entry of the last call by regclass or name, and that of the default generator.
// Never null.
struct LastUsed {
    SessionEntry *generator;
    SessionEntry *segment;
    SessionEntry *default_generator; // set by names.cpp
};
[[gnu::visibility("hidden")]] extern LastUsed last_used;
// Stands for an entry that is not known. Never opened.
[[gnu::visibility("hidden")]] extern SessionEntry empty_entry;

// Every entry of this session is to be opened again before its next use.
inline void open_all_again() { session_checks++; }

// Whether no event since requires that the entry is opened again for this role. By memory of this session only.
inline bool is_open(const SessionEntry *entry, Oid role) {
    return likely(entry->checked == session_checks) && likely(entry->role == role);
}

// Whether the coarse monotonic clock is within the window.
[[gnu::noinline]] bool coarse_clock_allows(const SessionEntry *entry);

// One comparison serves a clock that is beyond the window's end and one that went back, which gives a huge difference.
inline bool clock_allows(const SessionEntry *entry) {
    if (likely(entry->clock == WindowClock::wall))
        return wall_clock_ns_modulo() - entry->clock_begin < entry->clock_length;
    return entry->clock == WindowClock::none || coarse_clock_allows(entry);
}

// The fast path: draws the next value of an entry's window, by one swap of the slot's word. False if the entry is not
// open, or the window does not serve. It is inlined into each entry point. Callers fetch the current role before
// anything else, so that no register need be kept over that call. While no standby is awaited, a window of any
// durability will do. Segments have no clock.
template <SlotKind kind> [[gnu::always_inline]] inline bool draw_next(SessionEntry *entry, Oid role, int64_t *value) {
    if (unlikely(!is_open(entry, role)))
        return false;
    if (unlikely(!surely_no_standby_is_awaited()) && entry->sync != sync_state())
        return false;
    if (kind == SlotKind::generator && unlikely(!clock_allows(entry)))
        return false;
    return entry->window.take(value);
}

// The entry of a sequence of that kind, opened for the current user and transaction; else an error. Takes the
// sequence's RowExclusiveLock, to the end of the transaction; finds or makes the slot, and reads the page, which the
// slot may adopt, all by open_afresh(). Entries of dropped sequences are freed at a later call, so callers keep the
// pointer only until their own call ends.
SessionEntry *open_entry(Oid sequence, SlotKind kind) EXCLUDES(page_lock, table_lock, slot_lock, state_lock);

// The entry of a sequence that this session has drawn from, open or not; null if it has not.
SessionEntry *find_entry(Oid sequence);

// The same if the entry is of that kind, else the empty entry, from which nothing can be drawn.
SessionEntry *find_entry(Oid sequence, SlotKind kind);

// The entry with which the fast path of a call for that sequence begins.
template <SlotKind kind> inline SessionEntry *known_entry(Oid sequence) {
    SessionEntry *&last = kind == SlotKind::generator ? last_used.generator : last_used.segment;
    if (unlikely(last->sequence != sequence))
        last = find_entry(sequence, kind);
    return last;
}

// Starts each round of the slow path: closes the window, and returns how durable a value must be. That follows from
// what is noted of synchronous replication, from one reading, so the window opened next holds values as durable as a
// session that reads the same must have them.
core::Durability close_window(SessionEntry *entry);

// Closes the windows of all entries of this session, because what was checked when they were opened no longer holds.
void close_all_windows();

// After a draw: opens the window for the next draws. If an invalidation came during the draw, the window is never used,
// because `checked` is from before the draw. The first form is for segments.
void open_window(SessionEntry *entry, const core::Window<> &window);

// Valid while the wall clock is in the tick from begin_us to end_us.
void open_window_in_tick(SessionEntry *entry, const core::Window<> &window, int64_t begin_us, int64_t end_us);
// Valid for that long after an instant of the monotonic clock, whatever the wall clock does.
void open_window_for(SessionEntry *entry, const core::Window<> &window, int64_t since_us, int64_t us);

// The sequence of an open entry. Its lock is held.
Relation open_sequence(const SessionEntry *entry);

// Calls work(&page) under the exclusive lock of the page of an open entry's sequence, after the slot has adopted what
// another command did to it (lock_matched_page()). `work` must not wait, allocate memory or raise an error. Returns
// what it returns: the end of the record that it wrote, or 0.
template <typename Work>
uint64_t with_locked_page(const SessionEntry *entry, Work work) EXCLUDES(page_lock, table_lock, slot_lock, state_lock) {
    Relation rel = open_sequence(entry);
    SequencePage page = lock_matched_page(entry->slot, rel);
    const uint64_t lsn = work(&page);
    unlock_page(&page);
    relation_close(rel, NoLock);
    return lsn;
}

// Makes this session's uid_last() and segment_last() undefined, like currval() and lastval() after DISCARD SEQUENCES.
void forget_last_values();

// For module.cpp: a relation was changed (InvalidOid: any). Has this session's entries be opened again, and touches
// nothing else.
void session_relation_changed(Oid relation);
// A role, a membership, or the owner of a database was changed. Has this session's entries be opened again.
void session_roles_changed();
// A rollback, before locks are released, of what it and its children have done, or may have. Marks the slots stale of
// sequences that they have created (mark_stale()), notes in the server state how far their ids reach (note_dropped()),
// and has this session's entries be opened again. Raises no error.
void session_rolls_back(SubTransactionId mine) EXCLUDES(slot_lock, state_lock);
// The locks on sequences are released, so this session's entries are to be opened again.
void session_transaction_ended();

} // namespace uidgen::pg
