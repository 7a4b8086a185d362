#include "incarnation.hpp"

#include <atomic>

namespace uidgen::pg {
namespace {

constexpr char name[] = "uidgen incarnation";
constexpr int places = 1024;

struct Incarnation {
    uint64_t salt;                  // never changes
    std::atomic<Oid> drawn[places]; // databases that have drawn, in no order; InvalidOid: a free place
};
Incarnation *incarnation = nullptr;

} // namespace

void incarnation_request_memory() { RequestAddinShmemSpace(sizeof(Incarnation)); }

void incarnation_attach_memory() {
    bool found = false;
    LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
    incarnation = static_cast<Incarnation *>(ShmemInitStruct(name, sizeof(Incarnation), &found));
    if (!found) {
        if (!pg_strong_random(&incarnation->salt, sizeof(incarnation->salt)))
            ereport(FATAL, (errcode(ERRCODE_INTERNAL_ERROR), errmsg("could not generate a random salt for uidgen")));
        for (auto &database : incarnation->drawn)
            database.store(InvalidOid, std::memory_order_relaxed);
    }
    LWLockRelease(AddinShmemInitLock);
}

uint64_t incarnation_salt() { return incarnation->salt; }

// Relaxed: a place says nothing but its own value. A server with more databases than places says nothing of the rest.
bool is_first_draw_of_database() {
    for (auto &database : incarnation->drawn) {
        Oid seen = InvalidOid;
        if (database.compare_exchange_strong(seen, MyDatabaseId, std::memory_order_relaxed))
            return true;
        if (seen == MyDatabaseId)
            return false;
    }
    return false;
}

} // namespace uidgen::pg
