#include "server_state.hpp"

#include "generator_state.hpp"
#include "segment_state.hpp"

namespace uidgen::pg {

ServerState *server_state = nullptr;

#ifndef UIDGEN_SHARED_MEANING // a test build may have another one
#define UIDGEN_SHARED_MEANING 1
#endif

namespace {

// To be changed if something in shared memory has another place or meaning, although all is as long as before.
constexpr uint64_t meaning = UIDGEN_SHARED_MEANING;

// A number for how this build lays out shared memory.
uint64_t shared_layout() {
    const uint64_t parts[] = {meaning,         sizeof(ServerState),   sizeof(Slot),
                              sizeof(SlotRow), sizeof(GeneratorSlot), sizeof(SegmentSlot)};
    return hash_bytes_extended(reinterpret_cast<const unsigned char *>(parts), sizeof(parts), 0);
}

constexpr char name[] = "uidgen";
constexpr Size bytes = 8192; // never changes
static_assert(sizeof(ServerState) <= bytes);

constexpr uint64_t magic = UINT64_C(0x6e65676469750001);

// Fills the memory when it is new, and looks at a file of the data directory (place_of_server()). No other process uses
// it yet, so no lock of it is needed.
void initialize_server_state(void *memory) {
    auto *state = static_cast<ServerState *>(memset(memory, 0, sizeof(ServerState)));
    if (!pg_strong_random(&state->salt, sizeof(state->salt)) || !pg_strong_random(&state->life, sizeof(state->life)))
        ereport(ERROR, (errcode(ERRCODE_INTERNAL_ERROR), errmsg("could not generate random values")));
    state->place = place_of_server();
    state->tranche = new_tranche(name);
    LWLockInitialize(&state->lock, state->tranche);
    LWLockInitialize(&state->area.making, state->tranche);
    LWLockInitialize(&state->fleet.file_lock, state->tranche);
    state->area.handle.store(DSM_HANDLE_INVALID, std::memory_order_relaxed);
    state->clock.at_start_us = clock_offset_us();
    state->clock.offset_us.store(state->clock.at_start_us, std::memory_order_relaxed);
    state->fleet.is_in_fleet.store(settings::is_preloaded && settings::registry[0] != '\0', std::memory_order_relaxed);
    state->header = {magic, shared_layout()};
}

[[noreturn]] void report_other_build() {
    ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                    errmsg("this session has loaded another build of uidgen than the other sessions of this server"),
                    errdetail("The package was changed while the server ran, and its shared memory differs."),
                    errhint("Restart the server.")));
}

} // namespace

void server_state_request_memory() { RequestAddinShmemSpace(sizeof(ServerState)); }

void server_state_preload() {
    bool found = false;
    LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
    auto *state = static_cast<ServerState *>(ShmemInitStruct(name, sizeof(ServerState), &found));
    if (!found)
        initialize_server_state(state);
    LWLockRelease(AddinShmemInitLock);
    name_tranche(state->tranche, name);
    server_state = state;
}

bool attach_server_state() {
    if (likely(server_state != nullptr))
        return true;
    ErrorContextCallback context;
    begin_allocation(&context, "the state of the server");
    auto *state = static_cast<ServerState *>(named_memory(name, bytes, initialize_server_state));
    end_allocation(context);
    if (state == nullptr)
        return false;
    if (state->header.magic != magic || state->header.layout != shared_layout())
        report_other_build();
    name_tranche(state->tranche, name);
    server_state = state;
    return true;
}

int64_t clock_moved_us() { return clock_offset_us() - server_state->clock.at_start_us; }

} // namespace uidgen::pg
