#include "registrar_status.hpp"

#include "base/guarded_struct.hpp"

namespace uidgen::pg {
namespace {

constexpr char name[] = "uidgen registrar";

RegistrarStatus *shared = nullptr; // guarded by the lock
LWLock *lock = nullptr;

} // namespace

void registrar_status_request_memory() { request_guarded_struct<RegistrarStatus>(name); }
void registrar_status_attach_memory() { shared = attach_guarded_struct<RegistrarStatus>(name, &lock); }

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
