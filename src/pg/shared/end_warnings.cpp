#include "end_warnings.hpp"

namespace uidgen::pg {
namespace {

constexpr char name[] = "uidgen end warnings";
constexpr uint32_t places = 64;

struct Warning {
    Oid database;
    Oid generator;
    int64_t end_us;
};

// Guarded by the lock.
struct Warnings {
    Warning latest[places]; // a circular buffer
    uint32_t next;
};
Warnings *warnings = nullptr;
LWLock *warnings_lock = nullptr;

} // namespace

void end_warnings_request_memory() {
    RequestAddinShmemSpace(sizeof(Warnings));
    RequestNamedLWLockTranche(name, 1);
}

void end_warnings_attach_memory() {
    bool found = false;
    LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
    warnings_lock = &GetNamedLWLockTranche(name)->lock;
    warnings = static_cast<Warnings *>(ShmemInitStruct(name, sizeof(Warnings), &found));
    if (!found)
        memset(static_cast<void *>(warnings), 0, sizeof(Warnings));
    LWLockRelease(AddinShmemInitLock);
}

bool is_first_end_warning(Oid generator, int64_t end_us) {
    bool known = false;
    LWLockAcquire(warnings_lock, LW_EXCLUSIVE);
    for (const Warning &warning : warnings->latest)
        known =
            known || (warning.database == MyDatabaseId && warning.generator == generator && warning.end_us == end_us);
    if (!known)
        warnings->latest[warnings->next++ % places] = {MyDatabaseId, generator, end_us};
    LWLockRelease(warnings_lock);
    return !known;
}

} // namespace uidgen::pg
