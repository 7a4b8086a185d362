#include "grant_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace uidgen::pg {
namespace {

constexpr char file_name[] = "global/pgsql_tmp_uidgen.grants"; // the prefix is PG_TEMP_FILE_PREFIX
constexpr char temporary_name[] = "global/pgsql_tmp_uidgen.grants.tmp";
constexpr uint32 file_format = 0x75696709;

// Of a file without memberships: it says what the server has seen of its fleet, and counts everywhere.
constexpr uint64 no_timeline = 0;

// The file is this, and a record for each membership.
struct Header {
    pg_crc32c sum; // of all that follows
    uint32 format;
    uint64 system_identifier;
    uint64 timeline;
    FileIdentity identity;
    core::FleetSeen seen;
};

struct Record {
    SlotKey key;
    core::Layout layout; // must still be the generator's
    core::Holding holding;
};

pg_crc32c sum_of(const StringInfoData &content) {
    pg_crc32c sum;
    INIT_CRC32C(sum);
    COMP_CRC32C(sum, content.data + sizeof(sum), static_cast<size_t>(content.len) - sizeof(sum));
    FIN_CRC32C(sum);
    return sum;
}

bool log_failure(const char *failed, const char *name) {
    ereport(LOG, (errcode_for_file_access(), errmsg("could not %s file \"%s\": %m", failed, name)));
    return false;
}

// ---------------------------------------------------------------------------------------------------------
// Identity
// ---------------------------------------------------------------------------------------------------------

// Whether the server becomes a standby, or recovers from a backup, at its next start.
bool recovery_is_requested() {
    const char *const signals[] = {"standby.signal", "recovery.signal", "backup_label"};
    for (const char *signal : signals)
        if (access(signal, F_OK) == 0)
            return true;
    return false;
}

bool was_primary(DBState state) {
    return state == DB_SHUTDOWNED || state == DB_SHUTDOWNING || state == DB_IN_PRODUCTION ||
           state == DB_IN_CRASH_RECOVERY;
}

// Null: this server may go on with what the file says.
const char *why_foreign(int file, const Header &header) {
    FileIdentity now;
    bool crc_ok = false;
    if (header.timeline == no_timeline)
        return nullptr;
    ControlFileData *read = get_controlfile(DataDir, &crc_ok);
    const ControlFileData control = *read;
    pfree(read);
    if (!crc_ok || !was_primary(control.state) || recovery_is_requested()) // it may begin another timeline
        return "The server is a standby or recovers from a backup.";
    if (header.system_identifier != control.system_identifier)
        return "It was written by another database cluster.";
    if (header.timeline != Max(control.checkPointCopy.ThisTimeLineID, control.minRecoveryPointTLI))
        return "It was written on another timeline.";
    if (!identify(file, &now) || (memcmp(&now, &header.identity, sizeof(now)) != 0 && !fault_is("trust_copy")))
        return "It is a copy, or was written on another host or in another data directory.";
    return nullptr;
}

// ---------------------------------------------------------------------------------------------------------
// Reading
// ---------------------------------------------------------------------------------------------------------

// Null: the file is whole.
const char *read_whole(int file, StringInfo content) {
    struct stat about;
    if (fstat(file, &about) != 0 || about.st_size >= static_cast<off_t>(MaxAllocSize))
        return "It could not be read.";
    enlargeStringInfo(content, static_cast<int>(about.st_size));
    content->len = static_cast<int>(about.st_size);
    if (read(file, content->data, static_cast<size_t>(content->len)) != content->len)
        return "It could not be read.";
    const auto *header = reinterpret_cast<const Header *>(content->data);
    if (static_cast<size_t>(content->len) < sizeof(*header) || !EQ_CRC32C(header->sum, sum_of(*content)))
        return "Its checksum is wrong.";
    return header->format == file_format ? nullptr : "It was written by another version of uidgen.";
}

// ---------------------------------------------------------------------------------------------------------
// Writing
// ---------------------------------------------------------------------------------------------------------

bool write_content(int file, StringInfo content) {
    auto *header = reinterpret_cast<Header *>(content->data);
    if (!identify(file, &header->identity))
        return false;
    header->sum = sum_of(*content);
    errno = ENOSPC; // if less is written
    return write(file, content->data, static_cast<size_t>(content->len)) == content->len;
}

// The name of a file says nothing about its inode, so the file is made before its content. Whichever of the two files
// the name leads to after a crash, it is whole.
bool write_file(StringInfo content) {
    (void)unlink(temporary_name); // a new file has a new inode or a new time of birth
    const int file = OpenTransientFile(temporary_name, O_CREAT | O_EXCL | O_WRONLY | PG_BINARY);
    if (file < 0)
        return log_failure("create", temporary_name);
    const bool is_whole = write_content(file, content) || log_failure("write", temporary_name);
    return CloseTransientFile(file) == 0 && is_whole && durable_rename(temporary_name, file_name, LOG) == 0;
}

// Of a file whose grants do not count: a server never goes back to an earlier registry of its fleet.
bool keep_seen(StringInfo content) {
    auto *header = reinterpret_cast<Header *>(content->data);
    content->len = sizeof(*header);
    header->timeline = no_timeline;
    return header->seen.fleet != 0 && write_file(content);
}

// False: there is no file that counts. Of one that does not, it leaves no more than what the server has seen.
bool read_or_discard_file(StringInfo content) {
    const int file = OpenTransientFile(file_name, O_RDONLY | PG_BINARY);
    if (file < 0)
        return errno != ENOENT && log_failure("open", file_name);
    initStringInfo(content);
    const char *why = read_whole(file, content);
    const bool is_whole = why == nullptr;
    if (is_whole)
        why = why_foreign(file, *reinterpret_cast<const Header *>(content->data));
    CloseTransientFile(file);
    if (why == nullptr)
        return true;
    ereport(LOG, (errmsg("ignoring file \"%s\"", file_name), errdetail("%s", why),
                  errhint("Its generators ask the registry for new nodes.")));
    if (is_whole && keep_seen(content))
        return true;
    (void)durable_unlink(file_name, LOG);
    return false;
}

// What a membership becomes, if it changes.
const core::Holding &next_of(const Member &member, const List *changed) {
    const ListCell *cell = nullptr;
    foreach (cell, changed) {
        const auto *next = static_cast<const Member *>(lfirst(cell));
        if (next->number == member.number)
            return next->holding;
    }
    return member.holding;
}

void put_all(StringInfo content, const core::FleetSeen &seen, const List *changed) {
    const Header header = {.format = file_format,
                           .system_identifier = GetSystemIdentifier(),
                           .timeline = RecoveryInProgress() ? no_timeline : GetWALInsertionTimeLine(),
                           .seen = seen};
    appendBinaryStringInfo(content, reinterpret_cast<const char *>(&header), sizeof(header));
    for_each_member([content, changed](const Member &member) {
        const Record record = {.key = member.key, .layout = member.request.layout, .holding = next_of(member, changed)};
        appendBinaryStringInfo(content, reinterpret_cast<const char *>(&record), sizeof(record));
    });
}

} // namespace

void grant_file_discard_invalid() {
    StringInfoData content;
    if (read_or_discard_file(&content))
        pfree(content.data);
}

void lock_grant_file() { LWLockAcquire(&server_state->fleet.file_lock, LW_EXCLUSIVE); }
void unlock_grant_file() { LWLockRelease(&server_state->fleet.file_lock); }

GrantError grant_file_store(const core::FleetSeen &seen, const List *changed) {
    StringInfoData content;
    initStringInfo(&content);
    put_all(&content, seen, changed);
    return write_file(&content)
               ? GrantError{}
               : make_error("could not write the file of grants", "See the server log of this server.");
}

void grant_file_restore() {
    StringInfoData content;
    Record record;
    if (!read_or_discard_file(&content))
        return;
    fleet_set_seen(reinterpret_cast<const Header *>(content.data)->seen);
    for (int at = sizeof(Header); at + static_cast<int>(sizeof(record)) <= content.len; at += sizeof(record)) {
        memcpy(&record, content.data + at, sizeof(record));
        membership_restore(record.key, record.layout, record.holding);
    }
}

void grant_file_forget() {
    lock_grant_file();
    memberships_begin_again();
    const GrantError error = grant_file_store(fleet_seen(), NIL);
    unlock_grant_file();
    if (error.at_us != 0)
        ereport(ERROR, (errcode(ERRCODE_IO_ERROR), errmsg("%s", error.message), errhint("%s", error.hint)));
}

} // namespace uidgen::pg
