#include "sweep.hpp"

#include "base/time_source.hpp"
#include "blocks.hpp"
#include "grants.hpp"
#include "tables/row.hpp"

namespace uidgen::pg {
namespace {

constexpr int looks = 4;

bool is_there(const SlotKey &key) {
    return key.database == MyDatabaseId ? is_of_this_database(key) && is_relation(key.sequence)
                                        : is_database(key.database);
}

void look_at(const SlotKey &key) {
    LOCKTAG tag;
    SET_LOCKTAG_RELATION(tag, key.database, key.sequence);
    if (holds_lock(tag) || LockAcquire(&tag, ExclusiveLock, false, true) == LOCKACQUIRE_NOT_AVAIL)
        return;
    if (!is_there(key))
        give_up_slot(key);
    LockRelease(&tag, ExclusiveLock, false);
}

struct LastTime {
    Oid generator;
    int64_t until_us;
};

struct Ahead {
    const core::Layout *layout;
    int64_t now_us;
    LastTime *last;
    int used;
    int capacity;
};

void count_slot(Slot *, void *arg) { static_cast<Ahead *>(arg)->capacity++; }

void collect(Slot *slot, void *arg) {
    auto *ahead = static_cast<Ahead *>(arg);
    const int64_t until_us = slot_last_time(*slot);
    if (until_us > ahead->now_us && core::same_layout(slot->generator.config.layout, *ahead->layout) &&
        is_of_this_database(slot->key) && ahead->used < ahead->capacity)
        ahead->last[ahead->used++] = {slot->key.sequence, until_us};
}

} // namespace

void give_up_slot(const SlotKey &key) {
    slot_free(key);
    grants_forget(key);
    blocks_forget(key);
}

void sweep_slots() {
    if (IsInParallelMode())
        return;
    SlotKey keys[looks];
    const int count = slots_to_look_at(keys, looks);
    for (int i = 0; i < count; i++)
        look_at(keys[i]);
}

int64_t unseen_until_us(const core::Layout &layout) {
    Ahead ahead = {&layout, wall_clock_us(), nullptr, 0, 1};
    (void)slot_key(InvalidOid); // which may raise an error, but only the first time
    slots_visit(count_slot, &ahead);
    ahead.last = static_cast<LastTime *>(palloc(sizeof(LastTime) * static_cast<Size>(ahead.capacity)));
    slots_visit(collect, &ahead);
    int64_t until_us = 0;
    for (int i = 0; i < ahead.used; i++)
        if (!is_relation(ahead.last[i].generator))
            until_us = Max(until_us, ahead.last[i].until_us);
    pfree(ahead.last);
    return until_us;
}

} // namespace uidgen::pg
