#include "grant_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/identity.hpp"

namespace uidgen::pg {
namespace {

constexpr char file_name[] = "global/pgsql_tmp_uidgen.grants"; // the prefix is PG_TEMP_FILE_PREFIX
constexpr char temporary_name[] = "global/pgsql_tmp_uidgen.grants.tmp";
constexpr uint32 file_format = 0x75696704;

// All bytes of these are set, so that they can be summed.
struct Header {
    uint32 format;
    uint32 count;
    uint64 system_identifier;
    uint64 timeline;
    FileIdentity identity;
    core::FleetSeen seen;
};

// Followed by its former incarnations.
struct Entry {
    SlotKey key;
    core::Layout layout; // must still be the generator's
    uint64_t incarnation;
    uint32_t former_count;
    bool holds;
    bool superseded;
    core::Grant held;
};

// ---------------------------------------------------------------------------------------------------------
// Identity
// ---------------------------------------------------------------------------------------------------------

bool was_primary(DBState state) {
    return state == DB_SHUTDOWNED || state == DB_SHUTDOWNING || state == DB_IN_PRODUCTION ||
           state == DB_IN_CRASH_RECOVERY;
}

// The timeline that the server will write to; 0: it may begin a new one.
uint32 coming_timeline(uint64 *system_identifier) {
    bool crc_ok = false;
    ControlFileData *control = get_controlfile(DataDir, &crc_ok);
    *system_identifier = control->system_identifier;
    const bool goes_on = crc_ok && was_primary(control->state) && !recovery_is_requested();
    const uint32 timeline = Max(control->checkPointCopy.ThisTimeLineID, control->minRecoveryPointTLI);
    pfree(control);
    return goes_on ? timeline : 0;
}

// Null: this server may go on with what the file says.
const char *compare(int file, const Header &header) {
    FileIdentity now;
    uint64 system_identifier = 0;
    if (!identify(file, &now))
        return "Its own inode, the host or the data directory could not be determined.";
    const uint32 timeline = coming_timeline(&system_identifier);
    if (timeline == 0)
        return "The server is a standby or recovers from a backup.";
    if (header.system_identifier != system_identifier)
        return "It was written by another database cluster.";
    const char *why = difference(header.identity, now);
    if (why != nullptr)
        return why;
    return header.timeline != timeline ? "It was written on another timeline." : nullptr;
}

// ---------------------------------------------------------------------------------------------------------
// Reading
// ---------------------------------------------------------------------------------------------------------

// A cursor over the whole content, whose checksum was verified.
struct Input {
    const char *next;
    const char *end;
};

bool take(Input *input, void *into, size_t bytes) {
    if (static_cast<size_t>(input->end - input->next) < bytes)
        return false;
    memcpy(into, input->next, bytes);
    input->next += bytes;
    return true;
}

bool take_entry(Input *input, Entry *entry, core::Membership *membership) {
    if (!take(input, entry, sizeof(*entry)) || entry->former_count > core::most_former)
        return false;
    *membership = {};
    membership->incarnation = entry->incarnation;
    membership->former.count = entry->former_count;
    membership->holds = entry->holds;
    membership->superseded = entry->superseded;
    membership->held = entry->held;
    return take(input, membership->former.incarnations,
                sizeof(membership->former.incarnations[0]) * entry->former_count);
}

// Each membership begins its next incarnation. Null: all were restored.
const char *restore(Input input, const Header &header) {
    fleet_restore(header.seen);
    for (uint32 i = 0; i < header.count; i++) {
        Entry entry;
        core::Membership membership;
        uint64_t fresh = 0;
        if (!take_entry(&input, &entry, &membership))
            return "An entry is incomplete.";
        if (!try_fresh_incarnation(&fresh))
            return "Random values could not be generated.";
        core::begin_incarnation(&membership, fresh);
        membership_restore(entry.key, entry.layout, membership);
    }
    return nullptr;
}

// Null: it counts. If `restores`, its memberships are restored.
const char *judge(int file, Input content, bool restores) {
    Header header;
    pg_crc32c crc;
    const size_t bytes = static_cast<size_t>(content.end - content.next);
    if (bytes < sizeof(crc))
        return "It is too short.";
    memcpy(&crc, content.end - sizeof(crc), sizeof(crc));
    if (!EQ_CRC32C(crc, checksum(content.next, bytes - sizeof(crc))))
        return "Its checksum is wrong.";
    content.end -= sizeof(crc);
    if (!take(&content, &header, sizeof(header)))
        return "It is too short.";
    if (header.format != file_format)
        return "It was written by another version of uidgen.";
    const char *why = compare(file, header);
    return why != nullptr || !restores ? why : restore(content, header);
}

// The whole file, palloc'd; null: it cannot be read.
char *read_whole(int file, size_t *bytes) {
    struct stat about;
    if (fstat(file, &about) != 0 || about.st_size > static_cast<off_t>(MaxAllocSize))
        return nullptr;
    *bytes = static_cast<size_t>(about.st_size);
    char *content = static_cast<char *>(palloc(*bytes + 1));
    size_t have = 0;
    while (have < *bytes) {
        const ssize_t got = read(file, content + have, *bytes - have);
        if (got <= 0)
            return nullptr;
        have += static_cast<size_t>(got);
    }
    return content;
}

// ---------------------------------------------------------------------------------------------------------
// Writing
// ---------------------------------------------------------------------------------------------------------

void put_entry(StringInfo output, const Member &member, const core::Membership &membership) {
    Entry entry;
    memset(static_cast<void *>(&entry), 0, sizeof(entry));
    entry.key = member.key;
    entry.layout = member.request.layout;
    entry.incarnation = membership.incarnation;
    entry.former_count = membership.former.count;
    entry.holds = membership.holds;
    entry.superseded = membership.superseded;
    entry.held = membership.held;
    appendBinaryStringInfo(output, reinterpret_cast<const char *>(&entry), sizeof(entry));
    appendBinaryStringInfo(output, reinterpret_cast<const char *>(membership.former.incarnations),
                           static_cast<int>(sizeof(membership.former.incarnations[0]) * membership.former.count));
}

// What is known of the fleet is read last: if all members begin anew meanwhile (memberships_begin_again()), it says
// nothing of the former fleet that the memberships do not say.
void put_all(StringInfo output, Header *header, const MembershipChange *change) {
    appendBinaryStringInfo(output, reinterpret_cast<const char *>(header), sizeof(*header));
    bool has_changed = false;
    for_each_member([&](const Member &member) {
        const bool changes = change != nullptr && membership_may_follow(member, *change);
        put_entry(output, member, changes ? change->membership : member.membership);
        has_changed = has_changed || changes;
        header->count++;
    });
    header->seen = has_changed ? change->seen : fleet_seen();
    memcpy(output->data, header, sizeof(*header));
    const pg_crc32c crc = checksum(output->data, static_cast<size_t>(output->len));
    appendBinaryStringInfo(output, reinterpret_cast<const char *>(&crc), sizeof(crc));
}

bool write_whole(int file, const char *content, size_t bytes) {
    for (size_t done = 0; done < bytes;) {
        const ssize_t written = write(file, content + done, bytes - done);
        if (written < 0)
            return false;
        done += static_cast<size_t>(written);
    }
    return true;
}

// The name of a file says nothing about its inode, so the file is made first.
bool write_content(int file, const MembershipChange *change) {
    Header header;
    memset(static_cast<void *>(&header), 0, sizeof(header));
    header.format = file_format;
    if (!identify(file, &header.identity))
        return false;
    header.system_identifier = GetSystemIdentifier();
    header.timeline = GetWALInsertionTimeLine();
    StringInfoData output;
    initStringInfo(&output);
    put_all(&output, &header, change);
    const bool written = write_whole(file, output.data, static_cast<size_t>(output.len));
    pfree(output.data);
    return written;
}

bool write_file(const MembershipChange *change) {
    (void)unlink(temporary_name); // a new file has a new inode or a new time of birth
    const int file = OpenTransientFile(temporary_name, O_CREAT | O_EXCL | O_WRONLY | PG_BINARY);
    if (file < 0) {
        ereport(LOG, (errcode_for_file_access(), errmsg("could not create file \"%s\": %m", temporary_name)));
        return false;
    }
    const bool written = write_content(file, change);
    if (!written)
        ereport(LOG, (errcode_for_file_access(), errmsg("could not write file \"%s\": %m", temporary_name)));
    if (CloseTransientFile(file) != 0 || !written) {
        (void)unlink(temporary_name);
        return false;
    }
    return durable_rename(temporary_name, file_name, LOG) == 0; // flushes first, and keeps the inode
}

} // namespace

namespace {

// A file that does not count is removed.
void read_file(bool restores) {
    const int file = OpenTransientFile(file_name, O_RDONLY | PG_BINARY);
    if (file < 0) {
        if (errno != ENOENT)
            ereport(LOG, (errcode_for_file_access(), errmsg("could not open file \"%s\": %m", file_name)));
        return;
    }
    size_t bytes = 0;
    char *content = read_whole(file, &bytes);
    const char *why = content != nullptr ? judge(file, {content, content + bytes}, restores) : "It could not be read.";
    CloseTransientFile(file);
    if (content != nullptr)
        pfree(content);
    if (why == nullptr)
        return;
    ereport(LOG, (errmsg("ignoring file \"%s\"", file_name), errdetail("%s", why),
                  errhint("Its generators ask the registry for new nodes.")));
    (void)durable_unlink(file_name, LOG);
}

void lock_file() { LWLockAcquire(&server_state->fleet.file_lock, LW_EXCLUSIVE); }
void unlock_file() { LWLockRelease(&server_state->fleet.file_lock); }

} // namespace

void grant_file_check() { read_file(false); }
void grant_file_restore() { read_file(true); }

bool grant_file_write(const MembershipChange *change) {
    lock_file();
    const bool written = write_file(change);
    unlock_file();
    return written;
}

// A registrar that is writing what it has copied before is waited for.
void grant_file_remove() {
    lock_file();
    if (access(file_name, F_OK) == 0)
        (void)durable_unlink(file_name, ERROR);
    unlock_file();
}

} // namespace uidgen::pg
