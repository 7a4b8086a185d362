#include "server_state.hpp"

#include "base/time_source.hpp"

namespace uidgen::pg {
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
