#include "reclaim.hpp"

#include "statistics.hpp"

namespace uidgen::pg {
namespace {

// The order in which candidates are tried. Segments come before generators, because a generator loses its lease and its
// worker id with the slot. Generators whose row in worker_node is not written yet come last, because they would lose it
// too. Within a rank the longest unused comes first. Each search continues after the last candidate tried.
enum class Rank : int32_t { segment, generator, owes_row };

struct Candidate {
    bool found;
    Rank rank;
    int64_t used_at;
    SlotKey key;
};

struct Search {
    bool only_segments;
    bool (*used_here)(Oid sequence);
    Candidate after; // the last one tried
    Candidate best;
};

bool before(const Candidate &a, const Candidate &b) {
    if (a.rank != b.rank)
        return a.rank < b.rank;
    if (a.used_at != b.used_at)
        return a.used_at < b.used_at;
    return a.key.database != b.key.database ? a.key.database < b.key.database : a.key.sequence < b.key.sequence;
}

Rank rank_of(const Slot *slot) {
    if (slot->kind != SlotKind::generator)
        return Rank::segment;
    return slot->generator.row_owed.load(std::memory_order_relaxed) ? Rank::owes_row : Rank::generator;
}

void consider(Slot *slot, void *arg) {
    auto *search = static_cast<Search *>(arg);
    if ((slot->kind == SlotKind::generator && search->only_segments) ||
        (is_of_this_database(slot->key) && search->used_here(slot->key.sequence)))
        return;
    const Candidate candidate = {true, rank_of(slot), slot->used_at.load(std::memory_order_relaxed), slot->key};
    if (search->after.found && !before(search->after, candidate))
        return;
    if (!search->best.found || before(candidate, search->best))
        search->best = candidate;
}

} // namespace

bool reclaim_slot(SlotKind wanted_for, bool (*used_here)(Oid sequence)) {
    if (IsInParallelMode())
        return false;
    // When segments have their share of the slots, a segment must take the slot of another segment.
    const bool only_segments = wanted_for == SlotKind::segment && slots_segments_have_their_share();
    Search search = {only_segments, used_here, {}, {}};
    for (;;) {
        slots_visit(consider, &search);
        if (!search.best.found)
            return false;
        const SlotKey key = search.best.key;
        LOCKTAG tag;
        SET_LOCKTAG_RELATION(tag, key.database, key.sequence);
        if (LockAcquire(&tag, ExclusiveLock, false, true) != LOCKACQUIRE_NOT_AVAIL) {
            slot_free(key);
            count(ServerStat::slots_reclaimed);
            LockRelease(&tag, ExclusiveLock, false);
            return true;
        }
        search.after = search.best;
        search.best = {};
    }
}

} // namespace uidgen::pg
