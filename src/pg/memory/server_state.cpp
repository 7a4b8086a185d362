#include "server_state.hpp"

#include "base/settings.hpp"
#include "base/time_source.hpp"

namespace uidgen::pg {

ServerState *server_state = nullptr;

namespace {

constexpr char name[] = "uidgen";

// All bytes are 0.
void initialize(ServerState *state) {
    if (!pg_strong_random(&state->salt, sizeof(state->salt)))
        ereport(FATAL, (errcode(ERRCODE_INTERNAL_ERROR), errmsg("could not generate a random salt for uidgen")));
    state->tranche = new_tranche(name);
    LWLockInitialize(&state->lock, state->tranche);
    LWLockInitialize(&state->area.making, state->tranche);
    LWLockInitialize(&state->fleet.file_lock, state->tranche);
    state->area.handle.store(DSM_HANDLE_INVALID, std::memory_order_relaxed);
    state->clock.at_start_us = clock_offset_us();
    state->clock.offset_us.store(state->clock.at_start_us, std::memory_order_relaxed);
    state->fleet.changes = 1;
    state->fleet.epoch.store(settings::registry[0] != '\0' ? 1 : 0, std::memory_order_relaxed);
}

} // namespace

void server_state_request_memory() { RequestAddinShmemSpace(sizeof(ServerState)); }

void server_state_attach() {
    bool found = false;
    LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
    auto *state = static_cast<ServerState *>(ShmemInitStruct(name, sizeof(ServerState), &found));
    if (!found) {
        memset(static_cast<void *>(state), 0, sizeof(*state));
        initialize(state);
    }
    LWLockRelease(AddinShmemInitLock);
    server_state = state;
}

RegistrarStatus registrar_status() {
    lock_state(LW_SHARED);
    const RegistrarStatus copy = server_state->fleet.registrar;
    unlock_state();
    return copy;
}

void registrar_status_set(const RegistrarStatus &status) {
    lock_state(LW_EXCLUSIVE);
    server_state->fleet.registrar = status;
    unlock_state();
}

} // namespace uidgen::pg
