// The file of grants: how the memberships of this server's generators last over a restart.
//
// A crash keeps it, and it is not in the log. pg_basebackup and pg_rewind leave out all files of its name's
// prefix. So a standby does not inherit it. A copy that was made in another way is found out by what the file says
// about itself. It counts only if all of the following are as they were when it was written:
//   1. the system identifier: the directory was not given to a new cluster;
//   2. its identity (base/identity.hpp): neither the directory nor the file is a copy;
//   3. the timeline that the server will write to.
//
// The timeline is known when the server starts, before it has replayed its log: a server begins a new timeline only
// at the end of an archive recovery, and such a recovery is requested by a file in the data directory, or is under
// way by the control file. Then the file is removed, since the server that was a primary here may have been followed
// by another one. Otherwise the server continues, perhaps after a crash recovery, in the latest timeline that the
// control file names. The end of a recovery is in the control file before the server writes anything else. So the
// grants of a file that counts may be used at once.
//
// A store appends to the file what changes. If that would make the file twice as long, or if it is the first store
// after a start, it writes a whole one under another name, which it changes afterwards. Each store is flushed before
// the next one begins, so a crash may only lose the last one: its records count if their checksum is right. The grants
// of before are still the memberships' own. The new grant was not used; but the token that its call named was stored
// before, and a repeat gets the same grant again (core/holding.hpp, 1). For the same reason it does no harm if the
// file's bytes are replaced by earlier ones of the same file, which its identity does not show.
//
// A clone of the whole machine with its memory cannot be told here. The registry finds it out, because the two cannot
// both have the token of the row.
#pragma once

#include "memory/memberships.hpp"

namespace uidgen::pg {

// In the postmaster, when shared memory is new (or in single-user mode): removes the grants if the file does not count
// (read_or_discard_file()). What the server has seen of its fleet stays, because it must not go back to an earlier
// registry.
void grant_file_discard_invalid();

// While the area is made (under area.making): reads the file or discards it (read_or_discard_file()), and restores what
// it says into slots (membership_restore()) and server state.
void grant_file_restore() EXCLUDES(table_lock, slot_lock, state_lock);

// Takes the lock of the file of grants. It is held while grants are changed, stored and published, so that memberships
// do not begin again meanwhile.
void lock_grant_file() ACQUIRE(grant_file_lock) EXCLUDES(slot_lock, state_lock);
void unlock_grant_file() RELEASE(grant_file_lock);

// Stores durably in the file, whose length it keeps, in one write, what was seen of the fleet, and the memberships that
// change (a list of Member), which the caller publishes afterwards. Where it writes the file whole, it copies all
// memberships (write_whole()). An error: they could not be written, and the log says why.
GrantError grant_file_store(const core::FleetSeen &seen, const List *changed) REQUIRES(grant_file_lock)
    EXCLUDES(slot_lock, state_lock);

// For uid_fleet_move(), in a session: all memberships begin again (memberships_begin_again()), and the file is written
// without the former ones (write_whole()). Takes the file's lock, then in turn those of slots and state. Error if the
// file cannot be written.
void grant_file_forget() EXCLUDES(grant_file_lock, slot_lock, state_lock);

} // namespace uidgen::pg
