// What a backend knows of one sequence: one SessionEntry, opened at a transaction's first call, drawn from by the fast path.
//
// open_entry() takes RowExclusiveLock on the sequence (to the end of the transaction, under TopTransactionResourceOwner, so
// that ROLLBACK TO does not drop it while the entry says it is held), checks the privilege of the current user, finds the
// slot, and compares the sequence's page with what the slot expects: when another session moved the counter (setval,
// nextval, a restore), the reserved values are given up. The slow path then draws, and opens a window (core/window.hpp).
//
// Every later call takes the fast path, draw_next(), as long as
//   1. nothing has happened since that an entry must be opened again for: session_checks is what it was,
//   2. the current user is the one whose privilege was checked,
//   3. synchronous replication asks for what it asked for when the window was opened,
//   4. the clock is in the window's tick, where the mode looks at the clock at each call,
//   5. the window has a next value.
// Whatever ends one of these needs no more than that: the slow path looks at everything again.
#pragma once

#include "core/range.hpp"
#include "core/window.hpp"
#include "base/counter.hpp"
#include "tables/sequence_page.hpp"
#include "shared/slots.hpp"
#include "base/time_source.hpp"

namespace uidgen::pg {

// How the fast path knows that the clock is in the window's tick.
enum class WindowClock : uint32_t {
    none,    // it need not: cached mode, segments
    counter, // the processor's counter has not gone further than clock_length from clock_begin
    wall,    // the wall clock shows no more than clock_length above clock_begin, in nanoseconds
};

struct SessionEntry {
    // The fast path. What it needs comes first, so that many sequences drawn from in turn take two cache lines each.
    uint64_t checked; // session_checks when the entry was opened; 0: to be opened
    Oid role;
    SlotKind kind; // of the slot
    core::Window<> window;
    WindowClock clock;
    uint64_t clock_begin;
    uint64_t clock_length;
    SyncState sync;
    int64_t last_value; // segments: what segment_last() returns, if has_last
    bool has_last;
    bool dropped; // the sequence does not exist any more

    // The slow path.
    Oid sequence;
    Oid function;       // the SQL function that was called last: leads to the extension's tables
    uint64_t locked_in; // the transaction that took the lock
    Slot *slot;
    uint64_t generation; // of the slot
    Buffer buffer;       // where the page was last
    core::Ring<> ring;       // generators in cached mode
    dsm_handle ring_memory;  // of the ring, while it has cells
    uint64_t run_first;      // the rest of the session's own run, while no window has it
    uint64_t run_end;
};

// One number for every reason to open entries again: a transaction's end, an invalidation, a setting, a timer. Signal handlers
// add to it as well, so it is a lock-free atomic.
[[gnu::visibility("hidden")]] extern std::atomic<uint64_t> session_checks;
// Numbers this backend's transactions from 1.
[[gnu::visibility("hidden")]] extern uint64_t transaction_number;
// The transaction that chose another default generator: it may yet choose otherwise, and ids would stay.
[[gnu::visibility("hidden")]] extern uint64_t default_changed_in;
// What uid_last() returns; ids are never negative, so -1: none.
[[gnu::visibility("hidden")]] extern int64_t last_id;
// Where the fast path looks first: the entry of the last call by regclass or name, and the default generator's; never null.
struct LastUsed {
    SessionEntry *generator;
    SessionEntry *segment;
    SessionEntry *default_generator; // set by default_generator.cpp
};
[[gnu::visibility("hidden")]] extern LastUsed last_used;
// In the place of an entry that is not known: never opened.
[[gnu::visibility("hidden")]] extern SessionEntry empty_entry;

inline void open_all_again() { session_checks.fetch_add(1, std::memory_order_relaxed); }

inline bool is_open(const SessionEntry *e, Oid role) {
    return likely(e->checked == session_checks.load(std::memory_order_relaxed)) && likely(e->role == role);
}

[[gnu::noinline]] bool wall_clock_is_in_tick(const SessionEntry *e);

inline bool clock_is_in_tick(const SessionEntry *e) {
    if (likely(e->clock == WindowClock::counter))
        return read_counter() - e->clock_begin < e->clock_length;
    return e->clock == WindowClock::none || wall_clock_is_in_tick(e);
}

// The fast path: the next value of an entry's window, inlined into each entry point. The role is the current one, asked for
// first by callers, so that nothing else must be kept over that call. A window of any durability will do while no standby
// is awaited.
template <bool may_have_clock>
[[gnu::always_inline]] inline bool draw_next(SessionEntry *e, Oid role, int64_t *value) {
    if (unlikely(!is_open(e, role)))
        return false;
    if (unlikely(!surely_no_standby_is_awaited()) && e->sync != sync_state())
        return false;
    if (may_have_clock && unlikely(!clock_is_in_tick(e)))
        return false;
    return e->window.take(value);
}
[[gnu::always_inline]] inline bool draw_next_id(SessionEntry *e, Oid role, int64_t *id) { return draw_next<true>(e, role, id); }
[[gnu::always_inline]] inline bool draw_next_value(SessionEntry *e, Oid role, int64_t *value) { return draw_next<false>(e, role, value); }

// The entry of a sequence, opened for the current user and transaction, of that kind; errors otherwise. Entries of dropped
// sequences are freed at a later call, so callers keep the pointer to the end of their own call only.
SessionEntry *open_entry(Oid sequence, SlotKind kind, Oid function);

// The entry of a sequence that was drawn from in this session; null if it never was.
SessionEntry *find_entry(Oid sequence);

// The same, of that kind; else the empty entry, from which nothing can be drawn.
SessionEntry *find_entry(Oid sequence, SlotKind kind);

// Where the fast path of a call for that sequence begins.
inline SessionEntry *generator_entry(Oid sequence) {
    if (unlikely(last_used.generator->sequence != sequence))
        last_used.generator = find_entry(sequence, SlotKind::generator);
    return last_used.generator;
}
inline SessionEntry *segment_entry(Oid sequence) {
    if (unlikely(last_used.segment->sequence != sequence))
        last_used.segment = find_entry(sequence, SlotKind::segment);
    return last_used.segment;
}

// The slow path begins each look with this: closes the window, and says how durable a value must be. What synchronous
// replication asks for is noted first, so that a change of it ends whatever window is opened next.
core::Durability close_window(SessionEntry *e);

// Closes the windows of all entries: what they were opened with is no longer so.
void close_all_windows();

// After a draw: what may be drawn next without a look, in the given tick of the clock if the mode has one. The window is
// never used if an invalidation or a timer came during the draw, as `checked` is of before.
void open_window(SessionEntry *e, const core::Window<> &window);

// What the clocks showed when the slow path looked at them.
struct ClockReading {
    uint64_t counter; // read first
    int64_t wall_us;
};
// The same while the clock is in the tick that began and ends then.
void open_window(SessionEntry *e, const core::Window<> &window, const ClockReading &reading, int64_t begin_us, int64_t end_us);

// The sequence of an open entry; its lock is held.
Relation open_sequence(const SessionEntry *e);

// Gives up what a slot has reserved and takes over what the page says. Under the page's exclusive lock.
void adopt_page(Slot *slot, Relation sequence, const PageState &state);

// uid_last() and segment_last() are not defined any more, as currval() and lastval() after DISCARD SEQUENCES.
void forget_last_values();

// For session_events.cpp. InvalidOid: any relation.
void session_relation_changed(Oid relation);
void session_transaction_ended();

} // namespace uidgen::pg
