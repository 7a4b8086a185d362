// What one life of the server's shared memory has for itself.
#pragma once

#include "base/compat.hpp"

namespace uidgen::pg {

void incarnation_request_memory(); // from shmem_request_hook
void incarnation_attach_memory();  // from shmem_startup_hook

// 64 random bits that no other server knows. They salt the starts of ticks (core/clock_policy.hpp).
uint64_t incarnation_salt();

} // namespace uidgen::pg
