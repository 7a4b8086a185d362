#include "grant_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/identity.hpp"

namespace uidgen::pg {
namespace {

constexpr char file_name[] = "global/pgsql_tmp_uidgen.grants"; // the prefix is PG_TEMP_FILE_PREFIX
constexpr char temporary_name[] = "global/pgsql_tmp_uidgen.grants.tmp";
constexpr uint32 file_format = 0x75696705;

struct Header {
    uint32 format;
    uint64 system_identifier;
    uint64 timeline;
    FileIdentity identity;
};

// The last one of a key counts.
struct Record {
    uint64 place;
    SlotKey key;
    core::Layout layout; // must still be the generator's
    core::Membership membership;
    core::FleetSeen seen;
};

// The file that this process has written, and nobody else since. Without a place: none.
struct Written {
    FileIdentity identity; // in its header
    uint64 place;          // of the next record
};
Written written = {};

constexpr size_t record_bytes = sizeof(Record) + sizeof(pg_crc32c);

// The checksum of the header, and how many records come before.
uint64 first_place(const Header &header) { return static_cast<uint64>(checksum(&header, sizeof(header))) << 32; }

bool report(const char *failed, const char *name) {
    ereport(LOG, (errcode_for_file_access(), errmsg("could not %s file \"%s\": %m", failed, name)));
    return false;
}

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
    if (header.timeline != timeline)
        return "It was written on another timeline.";
    return difference(header.identity, now);
}

// ---------------------------------------------------------------------------------------------------------
// Reading
// ---------------------------------------------------------------------------------------------------------

// A cursor over the whole content.
struct Input {
    const char *next;
    const char *end;
};

// With its checksum.
template <typename Part> bool take(Input *input, Part *part) {
    pg_crc32c sum;
    if (static_cast<size_t>(input->end - input->next) < sizeof(*part) + sizeof(sum))
        return false;
    memcpy(static_cast<void *>(part), input->next, sizeof(*part));
    memcpy(&sum, input->next + sizeof(*part), sizeof(sum));
    input->next += sizeof(*part) + sizeof(sum);
    return EQ_CRC32C(sum, checksum(part, sizeof(*part)));
}

// False: one of them is damaged. What is left of the last one may never have been written.
template <typename Visit> bool read_records(Input input, uint64 place, Visit visit) {
    Record record;
    const char *begin = input.next;
    for (; take(&input, &record) && record.place == place; place++) {
        visit(record);
        begin = input.next;
    }
    return static_cast<size_t>(input.end - begin) <= record_bytes;
}

// Null: it counts. If `restores`, its memberships are restored, and each begins its next incarnation.
const char *judge(int file, Input content, bool restores) {
    Header header;
    if (!take(&content, &header))
        return "Its checksum is wrong.";
    if (header.format != file_format)
        return "It was written by another version of uidgen.";
    const char *why = compare(file, header);
    if (why != nullptr)
        return why;
    if (!read_records(content, first_place(header), [](const Record &) {}))
        return "A record of it is damaged.";
    if (restores)
        (void)read_records(content, first_place(header), [](Record &record) {
            core::begin_incarnation(&record.membership, fresh_incarnation());
            membership_restore(record.key, record.layout, record.membership);
            fleet_restore(record.seen);
        });
    return nullptr;
}

// The whole file, palloc'd; null: it cannot be read.
char *read_whole(int file, size_t *bytes) {
    struct stat about;
    if (fstat(file, &about) != 0 || about.st_size > static_cast<off_t>(MaxAllocSize))
        return nullptr;
    *bytes = static_cast<size_t>(about.st_size);
    char *content = static_cast<char *>(palloc(*bytes + 1));
    return read(file, content, *bytes) == about.st_size ? content : nullptr;
}

// ---------------------------------------------------------------------------------------------------------
// Writing
// ---------------------------------------------------------------------------------------------------------

template <typename Part> void put(StringInfo output, const Part &part) {
    const pg_crc32c sum = checksum(&part, sizeof(part));
    appendBinaryStringInfo(output, reinterpret_cast<const char *>(&part), sizeof(part));
    appendBinaryStringInfo(output, reinterpret_cast<const char *>(&sum), sizeof(sum));
}

void put_record(StringInfo output, const Member &member, const core::Membership &membership,
                const core::FleetSeen &seen) {
    Record record;
    memset(static_cast<void *>(&record), 0, sizeof(record));
    record.place = written.place++;
    record.key = member.key;
    record.layout = member.request.layout;
    record.membership = membership;
    record.seen = seen;
    put(output, record);
}

bool put_all(StringInfo output, int file) {
    Header header;
    memset(static_cast<void *>(&header), 0, sizeof(header));
    header.format = file_format;
    header.system_identifier = GetSystemIdentifier();
    header.timeline = GetWALInsertionTimeLine();
    if (!identify(file, &header.identity))
        return false;
    written = {header.identity, first_place(header)};
    put(output, header);
    for_each_member([&](const Member &member) { put_record(output, member, member.membership, fleet_seen()); });
    return true;
}

// With a record of the change, if membership_publish() would take it.
bool write_out(int file, StringInfo output, const MembershipChange &change) {
    Member member;
    if (membership_copy(change.slot, &member) && membership_may_follow(member, change))
        put_record(output, member, change.membership, change.seen);
    errno = ENOSPC; // if less is written
    return write(file, output->data, static_cast<size_t>(output->len)) == output->len;
}

// The name of a file says nothing about its inode, so the file is made first.
bool write_whole(StringInfo output, const MembershipChange &change) {
    (void)unlink(temporary_name); // a new file has a new inode or a new time of birth
    const int file = OpenTransientFile(temporary_name, O_CREAT | O_EXCL | O_WRONLY | PG_BINARY);
    if (file < 0)
        return report("create", temporary_name);
    const bool is_whole = (put_all(output, file) && write_out(file, output, change)) || report("write", temporary_name);
    return CloseTransientFile(file) == 0 && is_whole &&
           durable_rename(temporary_name, file_name, LOG) == 0; // flushes first, and keeps the inode
}

// Whether a record may follow those that are there: in the same file of the same host, whose name may change, and not
// many more records than members.
bool may_grow(int file) {
    FileIdentity now;
    uint32 members = 0;
    for_each_member([&members](const Member &) { members++; });
    return written.place != 0 && identify(file, &now) && difference(written.identity, now) == nullptr &&
           static_cast<uint32>(written.place) < 2 * members + 100;
}

// What fails may leave a part of a record, so the next write is of the whole file.
bool write_file(StringInfo output, const MembershipChange &change) {
    const int file = OpenTransientFile(file_name, O_WRONLY | O_APPEND | PG_BINARY);
    const bool grows = file >= 0 && may_grow(file);
    bool stored = grows && ((write_out(file, output, change) && pg_fsync(file) == 0) || report("write", file_name));
    if (file >= 0)
        CloseTransientFile(file);
    if (!grows)
        stored = write_whole(output, change);
    if (!stored)
        written = {};
    return stored;
}

// A file that does not count is removed.
void read_file(bool restores) {
    const int file = OpenTransientFile(file_name, O_RDONLY | PG_BINARY);
    if (file < 0) {
        if (errno != ENOENT)
            (void)report("open", file_name);
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

} // namespace

void grant_file_check() { read_file(false); }
void grant_file_restore() { read_file(true); }

bool grant_file_write(const MembershipChange &change) {
    StringInfoData output;
    initStringInfo(&output);
    LWLockAcquire(&server_state->fleet.file_lock, LW_EXCLUSIVE);
    const bool stored = write_file(&output, change);
    LWLockRelease(&server_state->fleet.file_lock);
    pfree(output.data);
    return stored;
}

// A registrar that is writing what it has copied before is waited for.
void grant_file_remove() {
    LWLockAcquire(&server_state->fleet.file_lock, LW_EXCLUSIVE);
    if (access(file_name, F_OK) == 0)
        (void)durable_unlink(file_name, ERROR);
    LWLockRelease(&server_state->fleet.file_lock);
}

} // namespace uidgen::pg
