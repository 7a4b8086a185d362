// Background workers. A server runs at most one of each kind, and only while it is needed: the first process that needs
// one starts it.
//
// How one ends without losing work: it resigns, and looks for work once more. A session first leaves work where the
// worker looks, and then looks for the worker. A fence is between the two steps of each. So either the worker finds the
// work, or the session finds no worker and starts one.
#pragma once

#include <atomic>

#include "base/base.hpp"

namespace uidgen::pg {

// The head of a worker's main function.
#define UIDGEN_WORKER_MAIN(name)                                                                                       \
    extern "C" PGDLLEXPORT void name(Datum);                                                                           \
    void name(Datum)

// A background worker of which a server has at most one.
struct WorkerState {
    std::atomic<Latch *> latch;         // of the running worker
    std::atomic<int64_t> started_at_us; // on the monotonic clock; 0: one may be started at once
};
constexpr uint32_t single_workers = 3;

enum class SingleWorker : uint32_t {
    refiller,    // fills rings of generators in cached mode
    registrar,   // asks the registry of the fleet for grants and blocks
    node_writer, // writes rows of worker_node
};

// Wakes the worker by its latch, or has the postmaster start it if none runs, at most one a second (an atomic of the
// server state). That second is not waited for after worker_resigns(). Allocates nothing and raises no error. False: no
// background worker can be started.
bool wake_worker(SingleWorker kind);

// Has the postmaster start the worker, as wake_worker() does, but leaves alone one that runs.
void start_worker_if_gone(SingleWorker kind);

// For the worker's main function, after it has set its signal handlers: attaches to the server state, and registers the
// process there, by an atomic, until its end. If another one is running, this one ends.
void begin_as_worker(SingleWorker kind);

// For a worker that has found no work: resigns, by an atomic of shared memory, and then calls has_work(), with its
// locks. False: that is true by now, and this process is the worker again.
bool worker_resigns(SingleWorker kind, bool (*has_work)());

// For one that can do only a part of the work: resigns, by an atomic, and starts the next one. False: there is no
// place.
bool worker_hands_over(SingleWorker kind);

} // namespace uidgen::pg
