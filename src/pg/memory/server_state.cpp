#include "server_state.hpp"

#include "base/errors.hpp"
#include "base/identity.hpp"
#include "base/settings.hpp"
#include "base/time_source.hpp"
#include "slots.hpp"

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
    const uint64_t parts[] = {meaning,           sizeof(ServerState),    sizeof(Slot),
                              sizeof(SlotEntry), sizeof(GeneratorState), sizeof(SegmentState)};
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
    state->place = place_of_server();
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
    ErrorContextCallback context;
    begin_allocation(&context, "the state of the server");
    auto *state = static_cast<ServerState *>(named_memory(name, bytes, make));
    end_allocation(context);
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

int error_details(const GrantError &error, int64_t waited_us, const char *hint) {
    const GrantError shown = error_for_user(error);
    if (shown.message[0] != '\0')
        errdetail("The last request to the registry failed: %s", shown.message);
    else
        errdetail("The registry has not answered yet. The call waited %lld ms.",
                  static_cast<long long>(waited_us / us_per_ms));
    if (hint == nullptr)
        hint = shown.hint[0] != '\0' ? shown.hint
                                     : "Check uidgen.registry, max_worker_processes and the view uid_registry_status.";
    return errhint("%s", hint);
}

int64_t clock_moved_us() { return clock_offset_us() - server_state->clock.at_start_us; }

// ---------------------------------------------------------------------------------------------------------
// Background workers
// ---------------------------------------------------------------------------------------------------------

namespace {

constexpr int64_t pause_us = 1000 * us_per_ms;

// One that fails starts again if its work must not wait for the next session.
constexpr struct {
    const char *name;
    const char *function;
    int flags;
    int restart_s;
} kinds[single_workers] = {
    {"uidgen refiller", "uidgen_refiller_main", 0, BGW_NEVER_RESTART},
    {"uidgen registrar", "uidgen_registrar_main", 0, BGW_NEVER_RESTART},
    {"uidgen node writer", "uidgen_node_writer_main", BGWORKER_BACKEND_DATABASE_CONNECTION, 1},
};

WorkerState &registration(SingleWorker kind) { return server_state->workers[static_cast<uint32_t>(kind)]; }

// True for one process. Relaxed: the time guards no other data, and the swap alone lets one process through.
bool may_start(WorkerState *own, int64_t now_us) {
    int64_t last = own->started_at_us.load(std::memory_order_relaxed);
    return (last == 0 || now_us - last > pause_us) &&
           own->started_at_us.compare_exchange_strong(last, now_us, std::memory_order_relaxed);
}

// Registers this process as the worker. False: another one is running. Release also in resign(): a process that sees no
// worker sees what the last one wrote before.
bool become_worker(SingleWorker kind) {
    Latch *none = nullptr;
    return registration(kind).latch.compare_exchange_strong(none, MyLatch, std::memory_order_acq_rel,
                                                            std::memory_order_relaxed);
}

// Does nothing if another process is registered.
void resign(SingleWorker kind) {
    Latch *own = MyLatch;
    registration(kind).latch.compare_exchange_strong(own, nullptr, std::memory_order_acq_rel,
                                                     std::memory_order_relaxed);
}

void resign_at_exit(int, Datum kind) { resign(static_cast<SingleWorker>(DatumGetInt32(kind))); }

bool start_worker(SingleWorker kind) {
    const auto &started = kinds[static_cast<uint32_t>(kind)];
    BackgroundWorker worker = {};
    worker.bgw_flags = BGWORKER_SHMEM_ACCESS | started.flags;
    worker.bgw_start_time = BgWorkerStart_RecoveryFinished;
    worker.bgw_restart_time = started.restart_s;
    strlcpy(worker.bgw_library_name, "uidgen", BGW_MAXLEN);
    strlcpy(worker.bgw_function_name, started.function, BGW_MAXLEN);
    strlcpy(worker.bgw_name, started.name, BGW_MAXLEN);
    strlcpy(worker.bgw_type, started.name, BGW_MAXLEN);
    return RegisterDynamicBackgroundWorker(&worker, nullptr);
}

} // namespace

// Acquire pairs with the release in become_worker(), so that the latch is seen initialized.
bool wake_worker(SingleWorker kind) {
    WorkerState &own = registration(kind);
    Latch *running = own.latch.load(std::memory_order_acquire);
    if (running != nullptr) {
        SetLatch(running);
        return true;
    }
    return !may_start(&own, monotonic_us()) || start_worker(kind);
}

void begin_as_worker(SingleWorker kind) {
    BackgroundWorkerUnblockSignals();
    (void)attach_server_state();
    if (!become_worker(kind))
        proc_exit(0);
    before_shmem_exit(resign_at_exit, Int32GetDatum(static_cast<int32>(kind)));
}

bool worker_may_end(SingleWorker kind, bool (*has_work)()) {
    registration(kind).started_at_us.store(0, std::memory_order_relaxed);
    resign(kind);
    return !has_work() || !become_worker(kind);
}

bool worker_hands_over(SingleWorker kind) {
    resign(kind);
    return start_worker(kind);
}

} // namespace uidgen::pg
