#include "single_worker.hpp"

#include <atomic>

#include "base/time_source.hpp"

namespace uidgen::pg {
namespace {

constexpr char name[] = "uidgen single workers";
constexpr int64_t pause_us = 1000 * us_per_ms;

struct Kind {
    const char *name;
    const char *function;
    BgWorkerStartTime starts;
    const char *without; // the hint if there is no place for one
};
constexpr Kind kinds[] = {
    {"uidgen refiller", "uidgen_refiller_main", BgWorkerStart_PostmasterStart,
     "Increase max_worker_processes. Until then, calls refill rings themselves."},
    {"uidgen registrar", "uidgen_registrar_main", BgWorkerStart_RecoveryFinished,
     "Increase max_worker_processes. Until then, this server gets no grant from its registry."},
};

struct Registration {
    std::atomic<Latch *> latch;         // of the running worker
    std::atomic<int64_t> started_at_us; // on the monotonic clock; 0: one may be started at once
};
Registration *registrations = nullptr;

Registration &registration(SingleWorker kind) { return registrations[static_cast<uint32_t>(kind)]; }

// True for one process. Relaxed: the time guards no other data, and the swap alone lets one process through.
bool may_start(Registration *own, int64_t now_us) {
    int64_t last = own->started_at_us.load(std::memory_order_relaxed);
    return (last == 0 || now_us - last > pause_us) &&
           own->started_at_us.compare_exchange_strong(last, now_us, std::memory_order_relaxed);
}

bool start(const Kind &kind) {
    BackgroundWorker worker = {};
    worker.bgw_flags = BGWORKER_SHMEM_ACCESS;
    worker.bgw_start_time = kind.starts;
    worker.bgw_restart_time = BGW_NEVER_RESTART;
    snprintf(worker.bgw_library_name, BGW_MAXLEN, "uidgen");
    snprintf(worker.bgw_function_name, BGW_MAXLEN, "%s", kind.function);
    snprintf(worker.bgw_name, BGW_MAXLEN, "%s", kind.name);
    snprintf(worker.bgw_type, BGW_MAXLEN, "%s", kind.name);
    if (RegisterDynamicBackgroundWorker(&worker, nullptr))
        return true;
    ereport(DEBUG1, (errmsg("out of background worker slots for the %s", kind.name), errhint("%s", kind.without)));
    return false;
}

void resign_at_exit(int, Datum kind) { resign_as_worker(static_cast<SingleWorker>(DatumGetInt32(kind))); }

} // namespace

void single_workers_request_memory() { RequestAddinShmemSpace(sizeof(Registration) * lengthof(kinds)); }

void single_workers_attach_memory() {
    bool found = false;
    LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
    registrations = static_cast<Registration *>(ShmemInitStruct(name, sizeof(Registration) * lengthof(kinds), &found));
    for (size_t i = 0; !found && i < lengthof(kinds); i++) {
        registrations[i].latch.store(nullptr, std::memory_order_relaxed);
        registrations[i].started_at_us.store(0, std::memory_order_relaxed);
    }
    LWLockRelease(AddinShmemInitLock);
}

// Acquire pairs with the release in become_worker(), so that the latch is seen initialized.
bool wake_worker(SingleWorker kind) {
    Registration &own = registration(kind);
    Latch *running = own.latch.load(std::memory_order_acquire);
    if (running != nullptr) {
        SetLatch(running);
        return true;
    }
    return !may_start(&own, monotonic_us()) || start(kinds[static_cast<uint32_t>(kind)]);
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
    if (!become_worker(kind))
        proc_exit(0);
    on_shmem_exit(resign_at_exit, Int32GetDatum(static_cast<int32>(kind)));
}

void worker_found_nothing(SingleWorker kind) { registration(kind).started_at_us.store(0, std::memory_order_relaxed); }

} // namespace uidgen::pg
