#include "lost_generators.hpp"

#include "base/guarded_struct.hpp"

namespace uidgen::pg {
namespace {

constexpr char name[] = "uidgen lost generators";
constexpr int32_t places = most_last_times;

// Guarded by the lock.
struct Table {
    int32_t used; // how many places have ever been taken
    LastTime last[places];
};
Table *table = nullptr;
LWLock *table_lock = nullptr;

bool is_of(const LastTime &last, Oid database, Oid generator) {
    return last.database == database && last.generator == generator;
}

// The place of the same generator (of lost ones: of the same layout); else a place never taken; else the earliest one.
LastTime *place_for(const LastTime &wanted) {
    LastTime *earliest = &table->last[0];
    for (int32_t i = 0; i < table->used; i++) {
        LastTime &last = table->last[i];
        if (is_of(last, wanted.database, wanted.generator) && core::same_layout(last.layout, wanted.layout))
            return &last;
        if (last.until_us < earliest->until_us)
            earliest = &last;
    }
    return table->used < places ? &table->last[table->used++] : earliest;
}

bool is_remembered(Oid database, Oid generator) {
    for (int32_t i = 0; i < table->used; i++)
        if (is_of(table->last[i], database, generator))
            return true;
    return false;
}

} // namespace

void lost_generators_request_memory() { request_guarded_struct<Table>(name); }
void lost_generators_attach_memory() { table = attach_guarded_struct<Table>(name, &table_lock); }

int64_t lost_until_us(const core::Layout &layout) {
    int64_t until_us = 0;
    LWLockAcquire(table_lock, LW_SHARED);
    for (int32_t i = 0; i < table->used; i++) {
        const LastTime &last = table->last[i];
        if (is_of(last, MyDatabaseId, InvalidOid) && core::same_layout(last.layout, layout))
            until_us = Max(until_us, last.until_us);
    }
    LWLockRelease(table_lock);
    return until_us;
}

void remember_last_time(const LastTime &last) {
    LWLockAcquire(table_lock, LW_EXCLUSIVE);
    LastTime *place = place_for(last);
    if (place->until_us < last.until_us)
        *place = last;
    LWLockRelease(table_lock);
}

void generator_is_lost(Oid database, Oid generator) {
    LWLockAcquire(table_lock, LW_SHARED);
    const bool remembered = is_remembered(database, generator);
    LWLockRelease(table_lock);
    if (!remembered)
        return;
    LWLockAcquire(table_lock, LW_EXCLUSIVE);
    for (int32_t i = 0; i < table->used; i++)
        if (is_of(table->last[i], database, generator))
            table->last[i].generator = InvalidOid;
    LWLockRelease(table_lock);
}

int remembered_generators(Oid *generators, int most) {
    int count = 0;
    LWLockAcquire(table_lock, LW_SHARED);
    for (int32_t i = 0; i < table->used && count < most; i++)
        if (table->last[i].database == MyDatabaseId && OidIsValid(table->last[i].generator))
            generators[count++] = table->last[i].generator;
    LWLockRelease(table_lock);
    return count;
}

} // namespace uidgen::pg
