// A directory in shared memory: which sequence has which of `uidgen.max_slots` cells of a table. Slots, places and
// blocks have one each. The table's lock guards it.
//
// A cell that was given up is taken again before one that never was. So a table has its cells in use at its start, and
// memory behind them is not touched.
#pragma once

#include <atomic>

#include "base/compat.hpp"

namespace uidgen::pg {

// `born` tells two databases apart that had one oid, one after the other. Their sequences may have the same oids, files
// and values.
struct SlotKey {
    Oid database;
    Oid sequence;
    uint64_t born;
};

inline bool same_key(const SlotKey &a, const SlotKey &b) {
    return a.database == b.database && a.sequence == b.sequence && a.born == b.born;
}

// The key of a sequence of this session's database.
SlotKey slot_key(Oid sequence);

inline bool is_of_this_database(const SlotKey &key) { return same_key(key, slot_key(key.sequence)); }

constexpr int32_t no_cell = -1;

class Directory {
  public:
    static void request_memory();  // from shmem_request_hook
    void attach(const char *name); // from shmem_startup_hook; the name is also that of the table's memory

    int32_t find(const SlotKey &key) const; // no_cell: the sequence has none

    struct Taken {
        int32_t cell;  // no_cell: all are in use
        bool is_fresh; // it was never taken before
    };
    Taken take(const SlotKey &key); // the sequence has none

    void give_up(const SlotKey &key); // the sequence has one

    // The cells before it were taken once. It only grows, so a reader without the lock misses new cells only.
    int32_t ever_used() const { return free_cells_->ever_used.load(std::memory_order_relaxed); }

  private:
    struct FreeCells {
        std::atomic<int32_t> ever_used;
        int32_t first;                       // of a list of cells that were given up; no_cell: none
        int32_t next[FLEXIBLE_ARRAY_MEMBER]; // of a cell in the list
    };

    static Size free_cells_bytes();

    HTAB *cell_of_ = nullptr;
    FreeCells *free_cells_ = nullptr;
};

} // namespace uidgen::pg
