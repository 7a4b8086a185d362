#include "registrar_status.hpp"

namespace uidgen::pg {
namespace {

constexpr char name[] = "uidgen registrar";

RegistrarStatus *shared = nullptr; // guarded by the lock
LWLock *lock = nullptr;

} // namespace

void registrar_status_request_memory() {
    RequestAddinShmemSpace(sizeof(RegistrarStatus));
    RequestNamedLWLockTranche(name, 1);
}

void registrar_status_attach_memory() {
    bool found = false;
    LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
    lock = &GetNamedLWLockTranche(name)->lock;
    shared = static_cast<RegistrarStatus *>(ShmemInitStruct(name, sizeof(RegistrarStatus), &found));
    if (!found)
        *shared = {};
    LWLockRelease(AddinShmemInitLock);
}

RegistrarStatus registrar_status() {
    LWLockAcquire(lock, LW_SHARED);
    const RegistrarStatus copy = *shared;
    LWLockRelease(lock);
    return copy;
}

void registrar_status_set(const RegistrarStatus &status) {
    LWLockAcquire(lock, LW_EXCLUSIVE);
    *shared = status;
    LWLockRelease(lock);
}

} // namespace uidgen::pg
