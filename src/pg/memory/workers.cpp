#include "workers.hpp"

#include "server_state.hpp"

namespace uidgen::pg {
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

// In the server state: only an address. All of it is atomic.
WorkerState &state_of_worker(SingleWorker kind) { return server_state->workers[static_cast<uint32_t>(kind)]; }

// True for one process, which then starts it. Relaxed: the time, an atomic of the server state, guards no other data,
// and the swap lets one through.
bool take_start(WorkerState *own, int64_t now_us) {
    int64_t last = own->started_at_us.load(std::memory_order_relaxed);
    return (last == 0 || now_us - last > pause_us) &&
           own->started_at_us.compare_exchange_strong(last, now_us, std::memory_order_relaxed);
}

// Registers this process as the worker, by an atomic of shared memory. False: another one is running. Release also in
// resign_worker(): a process that sees no worker sees what the last one wrote before.
bool become_worker(SingleWorker kind) {
    Latch *none = nullptr;
    return state_of_worker(kind).latch.compare_exchange_strong(none, MyLatch, std::memory_order_acq_rel,
                                                               std::memory_order_relaxed);
}

// This process is the worker no more, by an atomic of shared memory. Does nothing if another process is registered.
void resign_worker(SingleWorker kind) {
    Latch *own = MyLatch;
    state_of_worker(kind).latch.compare_exchange_strong(own, nullptr, std::memory_order_acq_rel,
                                                        std::memory_order_relaxed);
}

// When the worker's process ends: resign_worker().
void resign_at_exit(int, Datum kind) { resign_worker(static_cast<SingleWorker>(DatumGetInt32(kind))); }

// Asks the postmaster for a worker. False: all of max_worker_processes run.
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

// The worker's latch, by an atomic of shared memory; null: none runs. Acquire pairs with the release in
// become_worker(), so that the latch is seen initialized. The fence pairs with the one in worker_resigns().
Latch *running_worker(SingleWorker kind) {
    std::atomic_thread_fence(std::memory_order_seq_cst);
    return state_of_worker(kind).latch.load(std::memory_order_acquire);
}

// Has the postmaster start one (start_worker()), unless one was started less than a second ago (take_start()). False:
// it was due, and none can be started.
bool start_if_due(SingleWorker kind) {
    return !take_start(&state_of_worker(kind), monotonic_us()) || start_worker(kind);
}

} // namespace

bool wake_worker(SingleWorker kind) {
    Latch *running = running_worker(kind);
    if (running == nullptr)
        return start_if_due(kind);
    SetLatch(running);
    return true;
}

void start_worker_if_gone(SingleWorker kind) {
    if (running_worker(kind) == nullptr)
        (void)start_if_due(kind);
}

void begin_as_worker(SingleWorker kind) {
    BackgroundWorkerUnblockSignals();
    (void)attach_server_state();
    if (!become_worker(kind))
        proc_exit(0);
    before_shmem_exit(resign_at_exit, Int32GetDatum(static_cast<int32>(kind)));
}

bool worker_resigns(SingleWorker kind, bool (*has_work)()) {
    state_of_worker(kind).started_at_us.store(0, std::memory_order_relaxed);
    resign_worker(kind);
    std::atomic_thread_fence(std::memory_order_seq_cst);
    return !has_work() || !become_worker(kind);
}

bool worker_hands_over(SingleWorker kind) {
    resign_worker(kind);
    return start_worker(kind);
}

} // namespace uidgen::pg
