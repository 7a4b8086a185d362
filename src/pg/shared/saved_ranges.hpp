// What is left of segments' ranges over a clean stop, so that a restart leaves no gap.
//
// The postmaster writes a file when it has shut down cleanly, and removes it for good before it uses it at the next
// start. A value that is left may be handed out by one incarnation only, so the file counts only if nothing happened
// to the cluster since:
//
//   1. the cluster was shut down cleanly then (the control file says so), and the control file still says the same
//      checkpoint of the same system now: no other server, with or without uidgen, ran in between;
//   2. this start replays nothing: with standby.signal, recovery.signal or backup_label the log may hold rows with
//      the very values that are left here, drawn later by the server that was copied;
//   3. the file is gone from disk before its first value is handed out, so a crash finds no file.
//
// And a segment's part counts only if its page and file are as they were, which the slot compares in any case. What
// is left lies below the page's counter, so everything reserved later lies above it.
//
// Not written: after a crash or an immediate stop, on a standby, and what does not fit. Then there is a gap.
#pragma once

#include "core/range.hpp"
#include "base/compat.hpp"

namespace uidgen::pg {

struct RangeLeft {
    uint64_t count; // 0: nothing
    int64_t first;
    int64_t increment;
};

// The range in use and the one reserved ahead; nothing left of either: an entry that was used or forgotten.
struct SavedRanges {
    Oid database;
    Oid sequence;
    RelationFile file;
    int64_t last_value;
    XLogRecPtr page_lsn;
    uint64_t lsn; // of the clean stop's checkpoint: a synchronous standby must have come that far
    RangeLeft left[2];
};

void saved_ranges_request_memory(); // from shmem_request_hook

// From shmem_startup_hook: in the postmaster it reads the file when shared memory is new; elsewhere it only finds the memory.
void saved_ranges_attach_memory();

// In the postmaster, at a clean stop: `next_entry` returns the segments' ranges one by one, false at the end.
void saved_ranges_write(bool (*next_entry)(SavedRanges *entry, int *cursor));

// The rest is for slots.cpp, under its directory lock: exclusive, but for the first.

// Whether something is left of a sequence's ranges.
bool saved_ranges_hold(Oid database, Oid sequence);

// What was saved for a sequence, if its page and file are as they were; used up by this call. Counts of 0: nothing.
SavedRanges saved_ranges_take(Oid database, Oid sequence, RelationFile file, const core::SequenceState &state,
                              XLogRecPtr page_lsn);

// A sequence or (sequence = InvalidOid) all of a database are gone.
void saved_ranges_forget(Oid database, Oid sequence);

} // namespace uidgen::pg
