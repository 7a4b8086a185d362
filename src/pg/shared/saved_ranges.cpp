#include "saved_ranges.hpp"

#include <unistd.h>

#include "base/faults.hpp"
#include "base/file_identity.hpp"
#include "base/settings.hpp"
#include "base/this_server.hpp"

namespace uidgen::pg {
namespace {

constexpr char file_name[] = PGSTAT_STAT_PERMANENT_DIRECTORY "/uidgen.ranges";
constexpr char temporary_name[] = PGSTAT_STAT_PERMANENT_DIRECTORY "/uidgen.ranges.tmp";
constexpr uint32 file_format = 0x75696401;

struct Header {
    uint32 format;
    uint32 count;
    uint64 system_identifier;
    XLogRecPtr checkpoint;
    pg_crc32c crc; // of the entries
    FileIdentity identity;
};

// In shared memory, guarded by the directory lock of slots.cpp.
struct Saved {
    int32_t count;
    SavedRanges entries[FLEXIBLE_ARRAY_MEMBER]; // ordered by database and sequence
};
Saved *saved = nullptr;

Size saved_bytes() {
    return add_size(offsetof(Saved, entries), mul_size(static_cast<Size>(settings::max_slots), sizeof(SavedRanges)));
}

bool has_left(const SavedRanges &entry) { return entry.left[0].count > 0 || entry.left[1].count > 0; }

void forget(SavedRanges *entry) { entry->left[0].count = entry->left[1].count = 0; }

int compare(Oid database, Oid sequence, const SavedRanges &entry) {
    if (database != entry.database)
        return database < entry.database ? -1 : 1;
    return sequence < entry.sequence ? -1 : sequence > entry.sequence ? 1 : 0;
}

int compare_entries(const void *a, const void *b) {
    const auto *entry = static_cast<const SavedRanges *>(a);
    return compare(entry->database, entry->sequence, *static_cast<const SavedRanges *>(b));
}

// The first entry at or after that key; saved->count: there is none.
int32_t first_from(Oid database, Oid sequence) {
    int32_t from = 0;
    int32_t until = saved->count;
    while (from < until) {
        const int32_t middle = from + (until - from) / 2;
        if (compare(database, sequence, saved->entries[middle]) > 0)
            from = middle + 1;
        else
            until = middle;
    }
    return from;
}

SavedRanges *find(Oid database, Oid sequence) {
    const int32_t place = first_from(database, sequence);
    const bool found = place < saved->count && compare(database, sequence, saved->entries[place]) == 0;
    return found && has_left(saved->entries[place]) ? &saved->entries[place] : nullptr;
}

// Whether the cluster was shut down cleanly. Fills in the system's identifier and its checkpoint.
bool read_control(Header *header) {
    bool crc_ok = false;
    ControlFileData *control = get_controlfile(DataDir, &crc_ok);
    const bool clean = crc_ok && control->state == DB_SHUTDOWNED;
    header->system_identifier = control->system_identifier;
    header->checkpoint = control->checkPoint;
    pfree(control);
    return clean;
}

// Reads the entries of a file that was written at the checkpoint `now`. The ranges were logged before that checkpoint,
// so a server that has the checkpoint has their records.
bool read_entries(FILE *file, const Header &now, uint32 *count, bool *is_own) {
    Header header;
    FileIdentity identity;
    if (fread(&header, sizeof(header), 1, file) != 1 || header.format != file_format)
        return false;
    const bool same_moment = header.system_identifier == now.system_identifier && header.checkpoint == now.checkpoint;
    if (!(same_moment || fault_is(Fault::trust_ranges)) || header.count > static_cast<uint32>(settings::max_slots))
        return false;
    *count = header.count;
    // The file of the last start was removed. Without a time of birth, one that was put back could have its inode.
    *is_own = identify(fileno(file), &identity) && identity.born_seconds != 0 &&
              difference(header.identity, identity) == nullptr;
    return fread(saved->entries, sizeof(SavedRanges), header.count, file) == header.count &&
           checksum(saved->entries, header.count * sizeof(SavedRanges)) == header.crc;
}

// Keeps what counts, and hands out the blocks.
void keep_entries(uint32 count, XLogRecPtr checkpoint, bool is_own, void (*restore_block)(const SavedRanges &entry)) {
    for (uint32 i = 0; i < count; i++) {
        SavedRanges entry = saved->entries[i];
        entry.lsn = checkpoint;
        if (entry.fleet != 0 && !is_own)
            continue;
        if (entry.is_block)
            restore_block(entry);
        else
            saved->entries[saved->count++] = entry;
    }
    qsort(saved->entries, static_cast<size_t>(saved->count), sizeof(SavedRanges), compare_entries);
}

// Reads the file, then removes it, because a removed file cannot be read. The entries count only after both.
void load(void (*restore_block)(const SavedRanges &entry)) {
    FILE *file = AllocateFile(file_name, PG_BINARY_R);
    if (file == nullptr)
        return;
    Header now;
    uint32 count = 0;
    bool is_own = false;
    const bool untouched = (read_control(&now) && !recovery_is_requested()) || fault_is(Fault::trust_ranges);
    const bool good = untouched && read_entries(file, now, &count, &is_own);
    FreeFile(file);
    if (durable_unlink(file_name, LOG) != 0 || !good)
        return;
    keep_entries(count, now.checkpoint, is_own, restore_block);
}

// Without an identity nothing of a fleet's segments counts later.
bool write_file(FILE *file, Header header, const SavedRanges *entries) {
    header.format = file_format;
    (void)identify(fileno(file), &header.identity);
    header.crc = checksum(entries, header.count * sizeof(SavedRanges));
    return fwrite(&header, sizeof(header), 1, file) == 1 &&
           fwrite(entries, sizeof(SavedRanges), header.count, file) == header.count;
}

} // namespace

void saved_ranges_request_memory() { RequestAddinShmemSpace(saved_bytes()); }

void saved_ranges_attach_memory(void (*restore_block)(const SavedRanges &entry)) {
    bool found = false;
    LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
    saved = static_cast<Saved *>(ShmemInitStruct("uidgen saved ranges", saved_bytes(), &found));
    if (!found) {
        saved->count = 0;
        if (!IsUnderPostmaster)
            load(restore_block);
    }
    LWLockRelease(AddinShmemInitLock);
}

void saved_ranges_write(bool (*next_entry)(SavedRanges *entry, SavedCursor *cursor)) {
    Header header = {};
    if (saved == nullptr || !read_control(&header))
        return;
    // Entries that no session has used since the start come first. Used ones are left out.
    auto *entries =
        static_cast<SavedRanges *>(palloc0(mul_size(static_cast<Size>(settings::max_slots), sizeof(SavedRanges))));
    for (int32_t i = 0; i < saved->count; i++)
        if (has_left(saved->entries[i]))
            entries[header.count++] = saved->entries[i];
    SavedCursor cursor = {};
    while (header.count < static_cast<uint32>(settings::max_slots) && next_entry(&entries[header.count], &cursor))
        header.count++;
    (void)unlink(temporary_name); // a new file has a new inode or a new time of birth
    FILE *file = header.count > 0 ? AllocateFile(temporary_name, PG_BINARY_W) : nullptr;
    if (file != nullptr) {
        const bool written = write_file(file, header, entries);
        if (FreeFile(file) == 0 && written)
            (void)durable_rename(temporary_name, file_name, LOG);
        else
            unlink(temporary_name);
    }
    pfree(entries);
}

bool saved_ranges_hold(Oid database, Oid sequence) { return find(database, sequence) != nullptr; }

SavedRanges saved_ranges_take(Oid database, Oid sequence, RelationFile file, const core::SequenceState &state,
                              XLogRecPtr page_lsn) {
    SavedRanges result = {};
    SavedRanges *entry = find(database, sequence);
    if (entry == nullptr)
        return result;
    if (entry->file == file && entry->last_value == state.last_value && state.is_called && entry->page_lsn == page_lsn)
        result = *entry;
    forget(entry);
    return result;
}

void saved_ranges_forget(Oid database, Oid sequence) {
    for (int32_t i = first_from(database, sequence); i < saved->count; i++) {
        SavedRanges *entry = &saved->entries[i];
        if (entry->database != database || (OidIsValid(sequence) && entry->sequence != sequence))
            break;
        forget(entry);
    }
}

} // namespace uidgen::pg
