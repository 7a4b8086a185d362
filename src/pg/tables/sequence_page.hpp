// reserve and durable: how a range becomes ours, and how it becomes safe to hand out.
//
// Why a value drawn from a reserved range can't come again, on any history that has the record:
//
//   1. The counter of a sequence stands on one page. A reservation reads it, moves it and logs it under that
//      page's exclusive lock, so reservations are totally ordered and each starts above the one before.
//   2. The record carries the whole page, not what changed. nextval moves the page without logging it for up
//      to 32 values; a delta against such a page would be applied by recovery to a different page.
//   3. The record says log_cnt = 0. A leftover count would let the next nextval go on without logging, above
//      our range, and a crash would bring those values back.
//   4. durable() comes before the first value of the range is handed out, with no lock held: the record is
//      flushed, and where synchronous_commit asks for it the synchronous standby has it. A crash or a
//      promotion after that replays the record and restores a counter above every value handed out.
//   5. A row that uses a value is logged after the record, in the same log. Whatever prefix of the log
//      survives (asynchronous promotion, point-in-time recovery, pg_rewind), a surviving row's record
//      survived too.
//   6. No transaction id is taken and nothing depends on the caller's commit, so a rollback, a read-only or
//      serializable transaction, a parallel worker make no difference. With wal_level=minimal a sequence
//      made in the open transaction is not logged at all: a crash removes it, and its commit syncs the file;
//      its lsn is 0, and there is nothing to wait for.
#pragma once

#include "core/durability.hpp"
#include "core/range.hpp"
#include "shared/slots.hpp"

namespace uidgen::pg {

// The page of an open sequence, pinned and locked. Between lock and unlock nothing may wait or allocate.
struct SequencePage {
    Relation relation;
    Buffer buffer;
    GenericXLogState *record; // only for writing
};

// For reading: a shared lock. `recent` is the buffer where the page was last seen, which saves the look-up if it is
// still there.
SequencePage lock_page_for_reading(Relation sequence, Buffer recent = InvalidBuffer);
// For a reservation: an exclusive lock. Allocates before it locks.
SequencePage lock_page_for_writing(Relation sequence);

PageState read_page(const SequencePage &page);

// Moves the counter to `last_value` (is_called) and logs the page. At most once per lock. Returns the end of
// the record, 0 if there is nothing to wait for.
uint64_t write_page(SequencePage *page, int64_t last_value);

void unlock_page(SequencePage *page);

// What the page says, read under a lock of its own.
PageState page_state(Relation sequence);

// Returns when every record up to lsn is as durable as `level` says. Cancellable: an error, and nothing is promised. Returns
// the level that was reached: local if no standby is awaited any more, though it may be again before it has the record.
//
// The standby is asked for without SyncRepWaitForLSN. That is a commit's wait: on a cancel it warns that the transaction is
// committed, which is not true here, and ends as if the standby had answered. And no two processes may stand in its queue
// with the same LSN, but all sessions that need one range wait for one record.
//
// Counts the waits in the slot, if there is one.
core::Durability durable(Slot *slot, uint64_t lsn, core::Durability level);
inline core::Durability durable(uint64_t lsn, core::Durability level) { return durable(nullptr, lsn, level); }

// Has the WAL writer flush the record soon, without waiting: else it stays unflushed while the transaction
// is open.
void durable_soon(uint64_t lsn);

// What this session's synchronous_commit asks of a range. `off` asks for a flush all the same: unlike a lost
// transaction, a value handed out twice can't be explained to anybody.
inline core::Durability wanted_durability() {
    if (synchronous_commit <= SYNCHRONOUS_COMMIT_LOCAL_FLUSH || !standbys_are_awaited())
        return core::Durability::local;
    return synchronous_commit == SYNCHRONOUS_COMMIT_REMOTE_WRITE ? core::Durability::remote_written
                                                                 : core::Durability::remote_flushed;
}

} // namespace uidgen::pg
