// How often the registry of a fleet has refused newcomers, since the server's start. A refused call writes no row, so
// that it costs less than a grant, and so that callers that are refused do not wait for each other.
#pragma once

#include "base/compat.hpp"

namespace uidgen::pg {

// Which pool of which registry.
struct PoolKey {
    Oid database;
    Oid registry; // uid_fleet_state of that registry
    int32_t pool;
};

void refusals_request_memory(); // from shmem_request_hook
void refusals_attach_memory();  // from shmem_startup_hook

// Nothing, if the library was not preloaded.
void count_refusal(const PoolKey &key);

// False: it is not known, because the library was not preloaded.
bool read_refusals(const PoolKey &key, int64_t *count);

} // namespace uidgen::pg
