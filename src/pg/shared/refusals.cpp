#include "refusals.hpp"

#include "base/guarded_struct.hpp"

namespace uidgen::pg {
namespace {

constexpr char name[] = "uidgen refusals";
constexpr uint32_t places = 256;

struct Refusals {
    PoolKey key;
    int64_t count;
};

// Guarded by the lock.
struct Table {
    Refusals latest[places]; // a circular buffer: a further pool takes the place of the first one
    uint32_t next;
};
Table *table = nullptr;
LWLock *lock = nullptr;

// Null: the pool has none.
Refusals *find(const PoolKey &key) {
    for (Refusals &r : table->latest)
        if (r.key.database == key.database && r.key.registry == key.registry && r.key.pool == key.pool)
            return &r;
    return nullptr;
}

} // namespace

void refusals_request_memory() { request_guarded_struct<Table>(name); }
void refusals_attach_memory() { table = attach_guarded_struct<Table>(name, &lock); }

void count_refusal(const PoolKey &key) {
    if (table == nullptr)
        return;
    LWLockAcquire(lock, LW_EXCLUSIVE);
    Refusals *r = find(key);
    if (r == nullptr) {
        r = &table->latest[table->next++ % places];
        *r = {key, 0};
    }
    r->count++;
    LWLockRelease(lock);
}

bool read_refusals(const PoolKey &key, int64_t *count) {
    if (table == nullptr)
        return false;
    LWLockAcquire(lock, LW_SHARED);
    const Refusals *r = find(key);
    *count = r != nullptr ? r->count : 0;
    LWLockRelease(lock);
    return true;
}

} // namespace uidgen::pg
