// The rest of segments' ranges, kept over a clean stop so that a restart leaves no gap.
//
// The postmaster writes a file when it has shut down cleanly. At the next start it removes the file durably before it
// uses the contents. Only one incarnation may hand out a saved value, so the file counts only if nothing has happened
// to the cluster since:
//
//   1. The cluster was shut down cleanly (the control file says so), and the control file still has the same checkpoint
//      of the same system. So no other server, with or without uidgen, ran in between.
//   2. This start replays nothing. With standby.signal, recovery.signal or backup_label the log may hold rows with
//      these very values, drawn later by the server that was copied.
//   3. The file is removed from disk before its first value is handed out, so a start after a crash finds no file.
//
// A segment's entry counts only if its page and file are unchanged, which the slot checks in any case. The saved values
// are below the page's counter, so everything reserved later is above them.
//
// Of a fleet's segment, the values belong to one server of the fleet. A copy of the stopped directory is another one,
// although 1 to 3 hold for it, too. So what the registry gave counts only while the file is this server's own
// (base/file_identity.hpp). It is the rest of the range in use, and a block that no session has taken yet
// (blocks.hpp).
//
// Nothing is saved after a crash or an immediate stop, on a standby, or beyond the file's room. Then there is a gap.
#pragma once

#include "core/range.hpp"
#include "base/compat.hpp"

namespace uidgen::pg {

struct RangeLeft {
    uint64_t count; // 0: nothing
    int64_t first;
    int64_t increment;
};

// The range in use and the one reserved ahead; or, with is_block, a block of a fleet's segment. If nothing is left of
// either, the entry was used or forgotten.
struct SavedRanges {
    Oid database;
    Oid sequence;
    bool is_block;
    uint64_t fleet; // whose registry gave the values; 0: they are of this database's own sequence
    RelationFile file;
    int64_t last_value;
    XLogRecPtr page_lsn;
    uint64_t lsn; // of the clean stop's checkpoint: a synchronous standby must have reached it
    RangeLeft left[2];
};

void saved_ranges_request_memory(); // from shmem_request_hook

// From shmem_startup_hook. In the postmaster it reads the file when shared memory is new; elsewhere it only finds the
// memory. Blocks are not kept, but given to `restore_block`.
void saved_ranges_attach_memory(void (*restore_block)(const SavedRanges &entry));

// In the postmaster, at a clean stop. `next_entry` returns the segments' ranges and blocks one by one, and false at the
// end.
struct SavedCursor {
    int32_t place; // of slots
    int32_t cell;  // of blocks
};
void saved_ranges_write(bool (*next_entry)(SavedRanges *entry, SavedCursor *cursor));

// The following are for slots.cpp, under its directory lock: exclusive, except for the first one.

// Whether anything is left of a sequence's ranges.
bool saved_ranges_hold(Oid database, Oid sequence);

// The ranges saved for a sequence, if its page and file are unchanged. This call uses them up. Counts of 0: nothing.
SavedRanges saved_ranges_take(Oid database, Oid sequence, RelationFile file, const core::SequenceState &state,
                              XLogRecPtr page_lsn);

// A sequence or (sequence = InvalidOid) all sequences of a database are dropped.
void saved_ranges_forget(Oid database, Oid sequence);

} // namespace uidgen::pg
