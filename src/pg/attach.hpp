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
    int64_t from_ns;    // the tick's start
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
    core::Durability level;
};

struct Attached {
    Oid sequence;        // must come first: the key of the backend's table
    Oid role;            // whose privilege was checked
    Oid function;        // the SQL function that was called last: leads to the extension's tables
    uint64_t checked_in; // the transaction's number; 0: to be checked again
    uint64_t locked_in;  // the transaction that took the lock
    Slot *slot;
    Slot *database; // generators: where the last time of those that are gone is kept
    uint64_t tenancy;
    Buffer buffer; // where the page was last
    Window window; // generators
    Share share;   // segments
    int64_t last_value; // segments: what segment_last() returns
    bool has_last_value;
};

// Entries live as long as the backend, so callers may keep the pointer and test it with attached().
Attached *attach(Oid sequence, SlotKind kind, Oid function);

// Numbers this backend's transactions from 1.
[[gnu::visibility("hidden")]] extern uint64_t transaction_number;

// Whether attach() has nothing to check again for the current user, `role`.
inline bool attached(const Attached *a, Oid role) {
    return likely(a->checked_in == transaction_number) && likely(a->role == role);
}

// The generator and the segment used last, never null: most calls are for the same one as the call before.
[[gnu::visibility("hidden")]] extern Attached *latest_generator;
[[gnu::visibility("hidden")]] extern Attached *latest_segment;

// The entry of a sequence that was attached once in this session; null if it never was.
const Attached *find_attached(Oid sequence);

// The sequence of an attached entry, open; its lock is held.
Relation open_attached(const Attached *a);

// Has every entry checked again at its next use.
void attach_again();

void attach_register_callbacks();

// Gives up what a slot has in hand and takes over what the page says. Under the page's exclusive lock.
void adopt_page(Slot *slot, Relation sequence, const PageState &state);

} // namespace uidgen::pg
