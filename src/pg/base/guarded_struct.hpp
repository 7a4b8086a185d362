// A struct in shared memory and the lock that guards it, for files that keep no more than that there.
#pragma once

#include "postgres.hpp"

namespace uidgen::pg {

// From shmem_request_hook.
template <typename T> void request_guarded_struct(const char *name) {
    RequestAddinShmemSpace(sizeof(T));
    RequestNamedLWLockTranche(name, 1);
}

// From shmem_startup_hook. All bytes are 0 when the server starts.
template <typename T> T *attach_guarded_struct(const char *name, LWLock **lock) {
    bool found = false;
    LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
    *lock = &GetNamedLWLockTranche(name)->lock;
    void *memory = ShmemInitStruct(name, sizeof(T), &found);
    if (!found)
        memset(memory, 0, sizeof(T));
    LWLockRelease(AddinShmemInitLock);
    return static_cast<T *>(memory);
}

} // namespace uidgen::pg
