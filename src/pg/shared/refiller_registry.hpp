// Which process is the server's refiller, and whether a backend may start one.
#pragma once

#include "base/compat.hpp"

namespace uidgen::pg {

void refiller_registry_request_memory(); // from shmem_request_hook
void refiller_registry_attach_memory();  // from shmem_startup_hook

// The latch of the running refiller; null if there is none.
Latch *running_refiller();

// Registers the process of that latch. False: another refiller is running.
bool become_refiller(Latch *latch);

// Does nothing if another process is registered.
void resign_as_refiller(Latch *latch);

// True for one backend, and at most once a second. The second is not waited for after refiller_found_nothing().
bool may_start_refiller(int64_t now_us);
void refiller_found_nothing();

} // namespace uidgen::pg
