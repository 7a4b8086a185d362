#include "lost_generators.hpp"

#include "base/guarded_struct.hpp"

namespace uidgen::pg {
namespace {

constexpr char name[] = "uidgen lost generators";
constexpr int32_t places = 1024;

struct LastTime {
    SlotKey database; // of no sequence
    core::Layout layout;
    int64_t until_us;
};

// Guarded by the lock.
struct Table {
    int32_t used; // how many places have ever been taken
    LastTime last[places];
};
Table *table = nullptr;
LWLock *table_lock = nullptr;

SlotKey database_of(const SlotKey &key) { return {key.database, InvalidOid, key.born}; }

// Null: there is none.
LastTime *find(const SlotKey &database, const core::Layout &layout) {
    for (int32_t i = 0; i < table->used; i++)
        if (same_key(table->last[i].database, database) && core::same_layout(table->last[i].layout, layout))
            return &table->last[i];
    return nullptr;
}

// One that was never taken, or that of the earliest time.
LastTime *place_to_take() {
    if (table->used < places)
        return &table->last[table->used++];
    LastTime *earliest = &table->last[0];
    for (LastTime &last : table->last)
        if (last.until_us < earliest->until_us)
            earliest = &last;
    return earliest;
}

} // namespace

void lost_generators_request_memory() { request_guarded_struct<Table>(name); }
void lost_generators_attach_memory() { table = attach_guarded_struct<Table>(name, &table_lock); }

int64_t lost_until_us(const core::Layout &layout) {
    const SlotKey database = slot_key(InvalidOid);
    LWLockAcquire(table_lock, LW_SHARED);
    const LastTime *last = find(database, layout);
    const int64_t until_us = last != nullptr ? last->until_us : 0;
    LWLockRelease(table_lock);
    return until_us;
}

void remember_last_time(const SlotKey &generator, const core::Layout &layout, int64_t until_us) {
    const SlotKey database = database_of(generator);
    LWLockAcquire(table_lock, LW_EXCLUSIVE);
    LastTime *last = find(database, layout);
    if (last == nullptr) {
        last = place_to_take();
        *last = {database, layout, until_us};
    }
    last->until_us = Max(last->until_us, until_us);
    LWLockRelease(table_lock);
}

} // namespace uidgen::pg
