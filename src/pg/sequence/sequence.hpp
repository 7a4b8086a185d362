// A sequence: what it is, and the page with its counter.
#pragma once

#include <initializer_list>

#include "core/position_allocator.hpp"
#include "core/range.hpp"
#include "memory/slots.hpp"

namespace uidgen::pg {

[[noreturn]] void report_no_sequence(Oid sequence);
[[noreturn]] void report_not_a_sequence(Oid relation);
void check_is_sequence(Oid relation); // by pg_class: error if it is not

// The definition of a sequence, by the syscache. Error if there is none.
core::SequenceRule sequence_rule(Oid sequence);

// Whether pg_sequence says that nextval cannot move it, as it must be to hold a generator's high-water mark: one
// increment exceeds its maximum.
bool is_lease_sequence(Oid relation);
void check_lease_sequence(Oid sequence);               // by pg_sequence: error if it is not
[[noreturn]] void report_lease_sequence(Oid sequence); // the caller expected a segment

// Opens a sequence to draw from it: its relcache entry, after check_not_rewritten() for a generator. The caller holds
// RowExclusiveLock on it. Error unless the current user has the privilege, and such a sequence can be drawn from at
// all.
Relation open_to_draw(Oid sequence, SlotKind kind) EXCLUDES(page_lock, table_lock, slot_lock, state_lock);

// To draw, a role needs one of them.
constexpr AclMode draw_privileges = ACL_USAGE | ACL_UPDATE;

// The roles that have one of these privileges on one sequence, its owner among them, and none on the other, as a list
// for GRANT; null if there is none. By the catalogs. Error if the first one is dropped meanwhile.
const char *roles_that_lack(Oid granted, Oid lacking, AclMode privileges);

// Whether the transaction has created it, by relcache and catalogs. In a parallel worker not if it has altered it as
// well.
bool made_in_this_transaction(Relation sequence);

// Error if the open transaction gave the sequence a new file. A rollback would restore the old page, below what was
// leased on the new one. (A segment behaves as nextval does.) By catalogs and the slot, under its lock; the caller
// holds a lock on the sequence.
void check_not_rewritten(Relation rel) EXCLUDES(page_lock, table_lock, slot_lock, state_lock);
[[noreturn]] void report_altered_here(Oid sequence); // the open transaction has altered the generator, or its sequence

// ---------------------------------------------------------------------------------------------------------
// Locks (locking.cpp)
// ---------------------------------------------------------------------------------------------------------

// Takes the sequence's heavyweight lock, to the end of the transaction. Waits once, as LOCK TABLE does, and if the mode
// excludes draws, sessions that draw queue behind it. Error if another session drops the sequence meanwhile.
void lock_sequence(Oid sequence, LOCKMODE mode) EXCLUDES(page_lock, table_lock, slot_lock, state_lock);

// Takes a heavyweight lock in a short attempt, and looks for a deadlock soon. The other session in it looks once, after
// deadlock_timeout, which may be between two attempts of this one. If it is the attempt's first lock, nothing is held
// yet that its end would release, so a deadlock that is found would last.
void lock_first(Oid relation, LOCKMODE mode) EXCLUDES(page_lock, table_lock, slot_lock, state_lock);

// Takes a heavyweight lock that excludes draws, on all of these or on none, to the end of the transaction, without
// making sessions that draw queue behind it for longer than half a second: it waits in short attempts, each in a
// subtransaction by lock_first(), and sleeps between them, so that they draw, for as long as lock_timeout says (0:
// without limit). Where draws wait for the clock or for a grant, as their slots say, attempts are as long as their
// waits. Error if the first one was dropped meanwhile.
void lock_sequences(std::initializer_list<Oid> sequences, LOCKMODE mode)
    EXCLUDES(page_lock, table_lock, slot_lock, state_lock);

// ---------------------------------------------------------------------------------------------------------
// Reserving a range, and making it durable before its values are handed out.
//
// Why a value drawn from a reserved range is never issued again is in docs/design.md, P1 3, 7, 8 and 9. Of the record:
//
//   1. It carries the whole page, not a delta. nextval moves the page without logging it for up to 32 values, so
//      recovery would apply a delta to a different page.
//   2. It has log_cnt = 0. With a leftover count the next nextval would continue without logging, above our range, and
//      a crash would bring those values back.
//   3. With wal_level=minimal a sequence created in the open transaction is not logged at all: a crash removes it, and
//      its commit syncs the file. Its lsn is 0, and there is nothing to wait for.
// ---------------------------------------------------------------------------------------------------------

// When a range that is being reserved is needed.
enum class Needed {
    now,   // a call has no value left, and waits until the record is durable
    later, // it is reserved ahead of its use, and no call waits
};

// The page of an open sequence, pinned and locked. Between lock and unlock no wait and no allocation is allowed.
struct SequencePage {
    Relation relation;
    Buffer buffer;
    GenericXLogState *record; // only for writing
};

// Reads, pins and locks the page of an open sequence, until unlock_page(): a shared lock.
SequencePage lock_page_for_reading(Relation sequence) ACQUIRE_SHARED(page_lock)
    EXCLUDES(table_lock, slot_lock, state_lock);
// As lock_page_for_reading(), with an exclusive lock. Before, it allocates memory and begins a record of the log.
SequencePage lock_page_for_writing(Relation sequence) ACQUIRE(page_lock) EXCLUDES(table_lock, slot_lock, state_lock);

// For a reservation: lock_page_for_writing(), after a look at catalogs and the slot, which a parallel worker finds in
// the table of slots (is_rewritten()). If another command has moved the counter, the slot adopts the page
// (adopt_page()). A new file's may be logged once more (docs/design.md, P1 7), and the slot notes whether it may be
// rolled back.
SequencePage lock_matched_page(Slot *slot, Relation sequence) ACQUIRE(page_lock)
    EXCLUDES(table_lock, slot_lock, state_lock);

// Has the slot discard what it has reserved, and expect this state of its page.
void adopt_page(Slot *slot, RelationFile file, const PageState &state) REQUIRES(page_lock)
    EXCLUDES(slot_lock, state_lock);

// Where a sequence's page was last found.
struct PagePlace {
    RelationPlace relation;
    Buffer buffer; // saves the look-up if it still holds the page
};

// Reads the page: whether it is what the slot expects. Notes in `place` where the page is.
bool find_expected_page(const Slot *slot, Relation sequence, PagePlace *place)
    EXCLUDES(page_lock, table_lock, slot_lock, state_lock);

// Has the slot adopt the page, if that is not what the slot expects, by lock_matched_page().
void match_page(Slot *slot, Relation sequence) EXCLUDES(page_lock, table_lock, slot_lock, state_lock);

// Whether the page is what the slot expects, without the relation: for a session that holds a lock on the sequence, and
// knows that the relation has not changed since the place was noted. Takes the page's shared lock for the moment, and
// changes nothing. False also if the page is not there any more: then find_expected_page() finds it.
bool is_page_expected(const Slot *slot, const PagePlace &place) EXCLUDES(page_lock, table_lock, slot_lock, state_lock);

PageState read_page(const SequencePage &page) REQUIRES_SHARED(page_lock);

// Moves the counter to `last_value` (is_called) and logs the page, which the slot, if there is one, expects from then
// on; it counts the record. At most once per lock. Returns the end of the record; 0: there is nothing to wait for.
uint64_t write_page(SequencePage *page, int64_t last_value, Slot *slot = nullptr) REQUIRES(page_lock);

// Discards the record that was begun, unless write_page() has written it.
void unlock_page(SequencePage *page) RELEASE(page_lock);

// Reads the page: its contents.
PageState page_state(Relation sequence) EXCLUDES(page_lock, table_lock, slot_lock, state_lock);

// Returns when every record up to lsn is as durable as `level` requires. A cancel raises an error, and nothing is
// promised. Returns the level that was reached: local if no standby is awaited any more. (A standby may be awaited
// again before it has the record.)
//
// Does not use SyncRepWaitForLSN, for two reasons:
//   1. That is a commit's wait. On a cancel it warns that the transaction is committed, which is not true here, and
//      returns as if the standby had answered.
//   2. Its queue allows each LSN once, but all sessions that need one range wait for the same record.
//
// Counts the waits. Flushes the log, and sleeps until the standby has it, for which it takes SyncRepLock for moments.
core::Durability make_durable(Counters *counters, uint64_t lsn, core::Durability level)
    EXCLUDES(page_lock, table_lock, slot_lock, state_lock);

// Whether every record up to lsn, which was flushed, is that durable now. Takes SyncRepLock for a moment. As long as no
// standby is awaited, it is so.
bool is_durable(uint64_t lsn, core::Durability level);

// Has the WAL writer flush the record soon, without waiting. Otherwise it stays unflushed while the transaction is
// open.
void make_durable_soon(uint64_t lsn);

// The durability that this session's synchronous_commit requires of a range. `off` still requires a flush: a lost
// transaction can be explained, but not a value handed out twice. `remote_write` is treated as `on`.
inline core::Durability wanted_durability(SyncState state) {
    const bool is_local = commit_of(state) <= SYNCHRONOUS_COMMIT_LOCAL_FLUSH;
    return is_local || !standbys_are_awaited(status_of(state)) ? core::Durability::local : core::Durability::on_standby;
}
inline core::Durability wanted_durability() { return wanted_durability(sync_state()); }

} // namespace uidgen::pg
