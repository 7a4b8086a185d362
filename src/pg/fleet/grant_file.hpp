// The file of grants: how the memberships of this server's generators last over a restart.
//
// A reboot and a crash keep it, and it is not in the log. pg_basebackup and pg_rewind leave out all files of its name's
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
// grants of a file that counts may be used at once. They are the same membership, on the same timeline, as before.
//
// The file is a header, which says what the file is, and a record for each membership. A change adds a record, which is
// flushed before the change is used; the last record of a membership counts. The whole file is written, under another
// inode, when a process writes it for the first time, and when it has grown long. Each part has a checksum. A record
// also has its number and the checksum of its header, so that what another file has left on the disk does not pass for
// one.
//
// A crash can tear only the last record, because each one is flushed before the next is written, and a whole file
// follows a write that failed. The grant of that record was not used. So if the last record is damaged, the others
// count, with the earlier one of its membership. That is right even if the record was whole once: the ticks of the
// earlier grant are still the membership's, and its own high-water mark keeps it from those that it has used. If
// another record is damaged, the file does not count.
//
// A copy made below the file system, such as a clone of a machine's disk, cannot be told here. The registry finds it
// out, because both copies follow the same incarnation.
#pragma once

#include "memory/memberships.hpp"

namespace uidgen::pg {

// In the postmaster, when shared memory is new: removes the file if it does not count, with a line in the log that says
// why.
void grant_file_check();

// While the area is made: begins the next incarnation of each membership in the file and restores it.
void grant_file_restore();

// Stores a change durably, if membership_publish() would take it. False: it could not be written, and the log says why;
// the file then counts as it did.
bool grant_file_write(const MembershipChange &change);

// Removes the file durably, if there is one, so that no later start knows the memberships that were in it. The caller
// has changed them in shared memory. Raises an error.
void grant_file_remove();

} // namespace uidgen::pg
