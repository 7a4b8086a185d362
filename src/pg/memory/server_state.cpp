#include "server_state.hpp"

#include "base/errors.hpp"
#include "base/settings.hpp"
#include "base/time_source.hpp"
#include "slots.hpp"

namespace uidgen::pg {

ServerState *server_state = nullptr;

#ifndef UIDGEN_SHARED_MEANING // a test build may have another one
#define UIDGEN_SHARED_MEANING 1
#endif

namespace {

// To be changed if something in shared memory has another meaning, although it is as long as before.
constexpr uint64_t meaning = UIDGEN_SHARED_MEANING;

// A number for how this build lays out shared memory.
uint64_t shared_layout() {
    const uint64_t parts[] = {meaning,
                              sizeof(ServerState),
                              offsetof(ServerState, area),
                              offsetof(ServerState, fleet),
                              sizeof(Slot),
                              offsetof(Slot, key),
                              offsetof(Slot, generator),
                              sizeof(GeneratorState),
                              sizeof(SegmentState),
                              sizeof(MembershipState),
                              sizeof(SlotEntry)};
    return hash_bytes_extended(reinterpret_cast<const unsigned char *>(parts), sizeof(parts), 0);
}

constexpr char name[] = "uidgen";
constexpr Size bytes = 8192; // never changes
static_assert(sizeof(ServerState) <= bytes);

constexpr uint64_t magic = UINT64_C(0x6e65676469750001);

// All bytes are 0.
void initialize(ServerState *state) {
    if (!pg_strong_random(&state->salt, sizeof(state->salt)))
        ereport(ERROR, (errcode(ERRCODE_INTERNAL_ERROR), errmsg("could not generate a random salt for uidgen")));
    state->tranche = new_tranche(name);
    LWLockInitialize(&state->lock, state->tranche);
    LWLockInitialize(&state->area.making, state->tranche);
    LWLockInitialize(&state->fleet.file_lock, state->tranche);
    state->area.handle.store(DSM_HANDLE_INVALID, std::memory_order_relaxed);
    state->clock.at_start_us = clock_offset_us();
    state->clock.offset_us.store(state->clock.at_start_us, std::memory_order_relaxed);
    state->fleet.changes = 1;
    state->fleet.epoch.store(settings::is_preloaded && settings::registry[0] != '\0' ? 1 : 0,
                             std::memory_order_relaxed);
    state->header = {magic, shared_layout()};
}

void make(void *memory) {
    memset(memory, 0, sizeof(ServerState));
    initialize(static_cast<ServerState *>(memory));
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
        make(state);
    LWLockRelease(AddinShmemInitLock);
    name_tranche(state->tranche, name);
    server_state = state;
}

bool attach_server_state() {
    if (likely(server_state != nullptr))
        return true;
    void *memory = explained("the state of the server", [] { return named_memory(name, bytes, make); });
    auto *state = static_cast<ServerState *>(memory);
    if (state == nullptr)
        return false;
    if (state->header.magic != magic || state->header.layout != shared_layout())
        report_other_build();
    name_tranche(state->tranche, name);
    server_state = state;
    return true;
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

GrantError error_for_user(const GrantError &error) {
    if (!error.names_host || has_privs_of_role(GetUserId(), ROLE_PG_MONITOR))
        return error;
    GrantError shown = {};
    strlcpy(shown.message, "the registry cannot be reached", sizeof(shown.message));
    strlcpy(shown.hint, "The view uid_registry_status tells members of pg_monitor why.", sizeof(shown.hint));
    shown.at_us = error.at_us;
    return shown;
}

int64_t clock_moved_us() { return clock_offset_us() - server_state->clock.at_start_us; }

// ---------------------------------------------------------------------------------------------------------
// Background workers
// ---------------------------------------------------------------------------------------------------------

namespace {

constexpr int64_t pause_us = 1000 * us_per_ms;

constexpr WorkerStart kinds[] = {
    {"uidgen refiller", "uidgen_refiller_main", BGWORKER_SHMEM_ACCESS, BgWorkerStart_PostmasterStart,
     "Increase max_worker_processes. Until then, calls refill rings themselves.", nullptr, 0},
    {"uidgen registrar", "uidgen_registrar_main", BGWORKER_SHMEM_ACCESS, BgWorkerStart_RecoveryFinished,
     "Increase max_worker_processes. Until then, this server gets no grant from its registry.", nullptr, 0},
};

static_assert(lengthof(kinds) == single_workers, "each kind has its place in the state of the server");

WorkerState &registration(SingleWorker kind) { return server_state->workers[static_cast<uint32_t>(kind)]; }

// True for one process. Relaxed: the time guards no other data, and the swap alone lets one process through.
bool may_start(WorkerState *own, int64_t now_us) {
    int64_t last = own->started_at_us.load(std::memory_order_relaxed);
    return (last == 0 || now_us - last > pause_us) &&
           own->started_at_us.compare_exchange_strong(last, now_us, std::memory_order_relaxed);
}

void resign_at_exit(int, Datum kind) { resign_as_worker(static_cast<SingleWorker>(DatumGetInt32(kind))); }

} // namespace

bool start_worker(const WorkerStart &start) {
    BackgroundWorker worker = {};
    worker.bgw_flags = start.flags;
    worker.bgw_start_time = start.starts;
    worker.bgw_restart_time = BGW_NEVER_RESTART;
    if (start.argument != nullptr)
        memcpy(worker.bgw_extra, start.argument, start.argument_bytes);
    snprintf(worker.bgw_library_name, BGW_MAXLEN, "uidgen");
    snprintf(worker.bgw_function_name, BGW_MAXLEN, "%s", start.function);
    snprintf(worker.bgw_name, BGW_MAXLEN, "%s", start.name);
    snprintf(worker.bgw_type, BGW_MAXLEN, "%s", start.name);
    if (RegisterDynamicBackgroundWorker(&worker, nullptr))
        return true;
    ereport(DEBUG1, (errmsg("out of background worker slots for the %s", start.name), errhint("%s", start.without)));
    return false;
}

// Acquire pairs with the release in become_worker(), so that the latch is seen initialized.
bool wake_worker(SingleWorker kind) {
    WorkerState &own = registration(kind);
    Latch *running = own.latch.load(std::memory_order_acquire);
    if (running != nullptr) {
        SetLatch(running);
        return true;
    }
    return !may_start(&own, monotonic_us()) || start_worker(kinds[static_cast<uint32_t>(kind)]);
}

bool wake_registrar(GrantError *error) {
    if (wake_worker(SingleWorker::registrar))
        return true;
    strlcpy(error->message, "no background worker slot is free for the registrar", sizeof(error->message));
    strlcpy(error->hint, "Increase max_worker_processes in postgresql.conf and restart the server.",
            sizeof(error->hint));
    error->at_us = wall_clock_us();
    return false;
}

// Release also in resign_as_worker(): a process that sees no worker sees what the last one wrote before.
bool become_worker(SingleWorker kind) {
    Latch *none = nullptr;
    return registration(kind).latch.compare_exchange_strong(none, MyLatch, std::memory_order_acq_rel,
                                                            std::memory_order_relaxed);
}

void resign_as_worker(SingleWorker kind) {
    Latch *own = MyLatch;
    registration(kind).latch.compare_exchange_strong(own, nullptr, std::memory_order_acq_rel,
                                                     std::memory_order_relaxed);
}

void begin_as_worker(SingleWorker kind) {
    BackgroundWorkerUnblockSignals();
    (void)attach_server_state();
    if (!become_worker(kind))
        proc_exit(0);
    before_shmem_exit(resign_at_exit, Int32GetDatum(static_cast<int32>(kind)));
}

void worker_found_nothing(SingleWorker kind) { registration(kind).started_at_us.store(0, std::memory_order_relaxed); }

} // namespace uidgen::pg
