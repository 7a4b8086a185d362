#include "sweep.hpp"

#include "base/faults.hpp"
#include "base/time_source.hpp"
#include "blocks.hpp"
#include "grants.hpp"
#include "lost_generators.hpp"
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
        give_up_slot(key, Fate::lost);
    LockRelease(&tag, ExclusiveLock, false);
}

struct Ahead {
    int64_t now_us;
    Oid *generators;
    int used;
    int capacity;
};

void count_slot(Slot *, void *arg) { static_cast<Ahead *>(arg)->capacity++; }

void collect(Slot *slot, void *arg) {
    auto *ahead = static_cast<Ahead *>(arg);
    if (is_of_this_database(slot->key) && slot_last_time(*slot) > ahead->now_us && ahead->used < ahead->capacity)
        ahead->generators[ahead->used++] = slot->key.sequence;
}

} // namespace

void give_up_slot(const SlotKey &key, Fate fate) {
    slot_free(key, fate);
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

void note_lost_generators() {
    Ahead ahead = {wall_clock_us(), nullptr, 0, most_last_times};
    (void)slot_key(InvalidOid); // raises an error only the first time
    slots_visit(count_slot, &ahead);
    ahead.generators = static_cast<Oid *>(palloc(sizeof(Oid) * static_cast<Size>(ahead.capacity)));
    slots_visit(collect, &ahead);
    ahead.used += remembered_generators(ahead.generators + ahead.used, ahead.capacity - ahead.used);
    for (int i = 0; i < ahead.used; i++)
        if (!is_relation(ahead.generators[i]))
            slot_note_loss(slot_key(ahead.generators[i]));
    pfree(ahead.generators);
}

} // namespace uidgen::pg
