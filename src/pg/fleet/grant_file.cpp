#include "grant_file.hpp"

#include <algorithm>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace uidgen::pg {
namespace {

constexpr char file_name[] = "global/pgsql_tmp_uidgen.grants"; // the prefix is PG_TEMP_FILE_PREFIX
constexpr char temporary_name[] = "global/pgsql_tmp_uidgen.grants.tmp";
constexpr uint32 file_format = 0x7569670a;

// Of a file without memberships: it says what the server has seen of its fleet, and counts everywhere.
constexpr uint64 no_timeline = 0;

// The file is this, and batches.
struct Header {
    pg_crc32c sum; // of the rest
    uint32 format;
    uint64 system_identifier;
    uint64 timeline;
    FileIdentity identity;
};

// This, and its records. The first batch has all memberships, each later one those that have changed.
struct Batch {
    pg_crc32c sum; // of the rest and the records
    uint32 count;  // of the records
    core::FleetSeen seen;
};

struct Record {
    SlotKey key;
    core::Layout layout; // must still be the generator's
    core::Holding holding;
};

// Of what follows the sum, with which the bytes begin.
pg_crc32c sum_of(const void *bytes, size_t length) {
    pg_crc32c sum;
    INIT_CRC32C(sum);
    COMP_CRC32C(sum, static_cast<const char *>(bytes) + sizeof(sum), length - sizeof(sum));
    FIN_CRC32C(sum);
    return sum;
}

// The length of a batch and its records in the file, in bytes.
size_t length_of(const Batch &batch) { return sizeof(batch) + batch.count * sizeof(Record); }

// Logs what errno says. Returns false.
bool log_failure(const char *failed, const char *name) {
    ereport(LOG, (errcode_for_file_access(), errmsg("could not %s file \"%s\": %m", failed, name)));
    return false;
}

// ---------------------------------------------------------------------------------------------------------
// Identity
// ---------------------------------------------------------------------------------------------------------

// By files of the data directory: whether the server becomes a standby, or recovers from a backup, at its next start.
bool recovery_is_requested() {
    const char *const signals[] = {"standby.signal", "recovery.signal", "backup_label"};
    for (const char *signal : signals)
        if (access(signal, F_OK) == 0)
            return true;
    return false;
}

// By the control file's state: whether the server took writes when it last ran.
bool was_primary(DBState state) {
    return state == DB_SHUTDOWNED || state == DB_SHUTDOWNING || state == DB_IN_PRODUCTION ||
           state == DB_IN_CRASH_RECOVERY;
}

// Compares the open file's header with the control file, the data directory and the host. Null: this server may use the
// file.
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

// The batch that begins there in what was read; null: none that is whole.
const Batch *batch_at(const StringInfoData &content, size_t at) {
    const size_t left = static_cast<size_t>(content.len) - at;
    const auto *batch = reinterpret_cast<const Batch *>(content.data + at);
    return left >= sizeof(*batch) && left >= length_of(*batch) &&
                   EQ_CRC32C(batch->sum, sum_of(batch, length_of(*batch)))
               ? batch
               : nullptr;
}

// Calls visit(batch) for each batch in what was read, in the order in which they were written.
template <typename Visit> void for_each_batch(const StringInfoData &content, Visit visit) {
    size_t at = sizeof(Header);
    while (const Batch *batch = batch_at(content, at)) {
        visit(*batch);
        at += length_of(*batch);
    }
}

// Reads the open file. Null: it can be relied on, up to a batch that was being written in a crash.
const char *read_whole(int file, StringInfo content) {
    struct stat about;
    if (fstat(file, &about) != 0 || about.st_size >= static_cast<off_t>(MaxAllocSize))
        return "It could not be read.";
    enlargeStringInfo(content, static_cast<int>(about.st_size));
    content->len = static_cast<int>(about.st_size);
    if (read(file, content->data, static_cast<size_t>(content->len)) != content->len)
        return "It could not be read.";
    const auto *header = reinterpret_cast<const Header *>(content->data);
    if (static_cast<size_t>(content->len) < sizeof(*header) ||
        !EQ_CRC32C(header->sum, sum_of(header, sizeof(*header))) || batch_at(*content, sizeof(*header)) == nullptr)
        return "Its checksum is wrong.";
    return header->format == file_format ? nullptr : "It was written by another version of uidgen.";
}

// ---------------------------------------------------------------------------------------------------------
// Writing
// ---------------------------------------------------------------------------------------------------------

// Writes all to the new, open file, whose identity (identify()) it puts into the header. False: errno says why.
bool write_content(int file, StringInfo content) {
    auto *header = reinterpret_cast<Header *>(content->data);
    if (!identify(file, &header->identity))
        return false;
    header->sum = sum_of(header, sizeof(*header));
    errno = ENOSPC; // if less is written
    return write(file, content->data, static_cast<size_t>(content->len)) == content->len;
}

// Makes a new file of grants in the place of the old one, durably. The name of a file says nothing about its inode, so
// the file is made before its content. After a crash the name leads to one of the two, whole. False: the log says why.
bool write_file(StringInfo content) {
    (void)unlink(temporary_name); // a new file has a new inode or a new time of birth
    const int file = OpenTransientFile(temporary_name, O_CREAT | O_EXCL | O_WRONLY | PG_BINARY);
    if (file < 0)
        return log_failure("create", temporary_name);
    const bool is_whole = write_content(file, content) || log_failure("write", temporary_name);
    return CloseTransientFile(file) == 0 && is_whole && durable_rename(temporary_name, file_name, LOG) == 0;
}

void put_bytes(StringInfo content, const void *bytes, size_t length) {
    appendBinaryStringInfo(content, static_cast<const char *>(bytes), static_cast<int>(length));
}

void put_header(StringInfo content, uint64 timeline) {
    const Header header = {.format = file_format, .system_identifier = GetSystemIdentifier(), .timeline = timeline};
    put_bytes(content, &header, sizeof(header));
}

// Puts a batch: put_records(put_record) calls put_record(member, holding) for each of its records.
template <typename PutRecords> void put_batch(StringInfo content, const core::FleetSeen &seen, PutRecords put_records) {
    const int begin = content->len;
    Batch batch = {.seen = seen};
    put_bytes(content, &batch, sizeof(batch));
    put_records([content, &batch](const Member &member, const core::Holding &holding) {
        const Record record = {.key = member.key, .layout = member.request.layout, .holding = holding};
        put_bytes(content, &record, sizeof(record));
        batch.count++;
    });
    auto *is_there = reinterpret_cast<Batch *>(content->data + begin);
    is_there->count = batch.count;
    is_there->sum = sum_of(is_there, length_of(batch));
}

// Writes a file whose grants do not count again, without them (write_file()): a server never goes back to an earlier
// registry of its fleet. Needs no lock: the server is starting, or makes the area.
bool keep_seen(StringInfo content) {
    core::FleetSeen seen = {};
    for_each_batch(*content, [&seen](const Batch &batch) { seen = batch.seen; });
    resetStringInfo(content);
    put_header(content, no_timeline);
    put_batch(content, seen, [](auto) {});
    return seen.fleet != 0 && write_file(content);
}

// Reads the file, without a lock. False: there is none that counts. Of one that does not (why_foreign()), it leaves no
// more than what the server has seen, in a new file, or removes it, and logs why.
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

// What the holding of a member becomes, by its copy in the list if it changes.
const core::Holding &next_of(const Member &member, const List *changed) {
    const ListCell *cell = nullptr;
    foreach (cell, changed) {
        const auto *next = static_cast<const Member *>(lfirst(cell));
        if (next->number == member.number)
            return next->holding;
    }
    return member.holding;
}

// Writes a new file with all memberships (write_file()), which it copies under the slots' locks, and keeps its length,
// which the file's lock guards. That of a server in recovery gets no batches afterwards, because it is of no timeline.
bool write_whole(const core::FleetSeen &seen, const List *changed) REQUIRES(grant_file_lock)
    EXCLUDES(slot_lock, state_lock) {
    MemberState *fleet = &server_state->fleet;
    StringInfoData content;
    const uint64 timeline = RecoveryInProgress() ? no_timeline : GetWALInsertionTimeLine();
    initStringInfo(&content);
    put_header(&content, timeline);
    put_batch(&content, seen, [changed](auto put_record) {
        for_each_member([changed, put_record](const Member &member) { put_record(member, next_of(member, changed)); });
    });
    fleet->file_length = 0;
    if (!write_file(&content))
        return false;
    fleet->file_length = timeline == no_timeline ? 0 : content.len;
    fleet->file_limit = 2 * content.len;
    return true;
}

// Appends a batch of those that change, flushes it, and keeps the length, which the file's lock guards. False: the file
// must be written whole. While this writes, and if it fails, no batch can follow.
bool append_changed(const core::FleetSeen &seen, const List *changed) REQUIRES(grant_file_lock) {
    MemberState *fleet = &server_state->fleet;
    const int64_t end = fleet->file_length;
    StringInfoData content;
    initStringInfo(&content);
    put_batch(&content, seen, [changed](auto put_record) {
        const ListCell *cell = nullptr;
        foreach (cell, changed) {
            const auto *next = static_cast<const Member *>(lfirst(cell));
            put_record(*next, next->holding);
        }
    });
    fleet->file_length = 0;
    if (end == 0 || end + content.len > fleet->file_limit)
        return false;
    const int file = OpenTransientFile(file_name, O_WRONLY | PG_BINARY);
    if (file < 0)
        return false;
    const bool is_done =
        pg_pwrite(file, content.data, static_cast<size_t>(content.len), end) == content.len && pg_fsync(file) == 0;
    if (CloseTransientFile(file) != 0 || !is_done)
        return false;
    fleet->file_length = end + content.len;
    return true;
}

// No error, or one of now that the file could not be written.
GrantError error_unless(bool is_written) {
    return is_written ? GrantError{}
                      : make_error("could not write the file of grants", "See the server log of this server.");
}

} // namespace

void grant_file_discard_invalid() {
    StringInfoData content;
    if (read_or_discard_file(&content))
        pfree(content.data);
}

void lock_grant_file() UNCHECKED { LWLockAcquire(&server_state->fleet.file_lock, LW_EXCLUSIVE); }
void unlock_grant_file() UNCHECKED { LWLockRelease(&server_state->fleet.file_lock); }

GrantError grant_file_store(const core::FleetSeen &seen, const List *changed) {
    return error_unless(append_changed(seen, changed) || write_whole(seen, changed));
}

void grant_file_restore() {
    StringInfoData content;
    if (!read_or_discard_file(&content))
        return;
    for_each_batch(content, [](const Batch &batch) {
        const auto *records = reinterpret_cast<const Record *>(&batch + 1);
        fleet_set_seen(batch.seen);
        std::for_each_n(records, batch.count,
                        [](const Record &record) { membership_restore(record.key, record.layout, record.holding); });
    });
}

void grant_file_forget() {
    lock_grant_file();
    memberships_begin_again();
    const GrantError error = error_unless(write_whole(fleet_seen(), NIL));
    unlock_grant_file();
    if (error.at_us != 0)
        ereport(ERROR, (errcode(ERRCODE_IO_ERROR), errmsg("%s", error.message), errhint("%s", error.hint)));
}

} // namespace uidgen::pg
