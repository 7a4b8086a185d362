#include "directory.hpp"

#include "base/faults.hpp"
#include "base/file_identity.hpp"
#include "base/settings.hpp"

namespace uidgen::pg {
namespace {

struct Entry {
    SlotKey key; // must come first: dynahash's key
    int32_t cell;
};

// The database's directory is made with the database, and this file in it.
uint64_t birth_of_database() {
    if (fault_is(Fault::keep_slot))
        return 0;
    const char *file = psprintf("%s/PG_VERSION", DatabasePath);
    uint64_t born = 0;
    if (!birth_of(file, &born))
        ereport(ERROR, (errcode_for_file_access(), errmsg("could not stat file \"%s\": %m", file)));
    return born;
}

} // namespace

SlotKey slot_key(Oid sequence) {
    static bool known = false;
    static uint64_t born = 0;
    if (unlikely(!known)) {
        born = birth_of_database();
        known = true;
    }
    return {MyDatabaseId, sequence, born};
}

Size Directory::free_cells_bytes() {
    return add_size(offsetof(FreeCells, next), mul_size(static_cast<Size>(settings::max_slots), sizeof(int32_t)));
}

void Directory::request_memory() {
    RequestAddinShmemSpace(
        add_size(free_cells_bytes(), hash_estimate_size(static_cast<long>(settings::max_slots), sizeof(Entry))));
}

void Directory::attach(const char *name) {
    HASHCTL control = {};
    control.keysize = sizeof(SlotKey);
    control.entrysize = sizeof(Entry);
    char *table_name = psprintf("%s directory", name);
    cell_of_ = shared_hash_table(table_name, settings::max_slots, &control, HASH_ELEM | HASH_BLOBS);
    pfree(table_name);

    bool found = false;
    char *list_name = psprintf("%s free cells", name);
    free_cells_ = static_cast<FreeCells *>(ShmemInitStruct(list_name, free_cells_bytes(), &found));
    pfree(list_name);
    if (!found) {
        free_cells_->ever_used.store(0, std::memory_order_relaxed);
        free_cells_->first = no_cell;
    }
}

int32_t Directory::find(const SlotKey &key) const {
    const Entry *entry = static_cast<Entry *>(hash_search(cell_of_, &key, HASH_FIND, nullptr));
    return entry != nullptr ? entry->cell : no_cell;
}

Directory::Taken Directory::take(const SlotKey &key) {
    int32_t cell = free_cells_->first;
    const bool is_fresh = cell == no_cell;
    if (is_fresh) {
        cell = ever_used();
        if (cell >= settings::max_slots)
            return {no_cell, false};
        free_cells_->ever_used.store(cell + 1, std::memory_order_relaxed);
    } else {
        free_cells_->first = free_cells_->next[cell];
    }
    static_cast<Entry *>(hash_search(cell_of_, &key, HASH_ENTER, nullptr))->cell = cell;
    return {cell, is_fresh};
}

void Directory::give_up(const SlotKey &key) {
    const int32_t cell = find(key);
    hash_search(cell_of_, &key, HASH_REMOVE, nullptr);
    free_cells_->next[cell] = free_cells_->first;
    free_cells_->first = cell;
}

} // namespace uidgen::pg
