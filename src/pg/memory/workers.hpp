// Background workers. Of some a server runs at most one of each kind, and only while it is needed: the first process
// that needs one starts it.
//
// How one ends without losing work: it resigns, and looks for work once more. A session first leaves work where the
// worker looks, under a lock that the worker takes too, and then looks for the worker. So either the worker finds the
// work, or the session finds no worker and starts one.
#pragma once

#include "server_state.hpp"

namespace uidgen::pg {

struct WorkerStart {
    const char *name;
    const char *function; // its main function
    int flags;
    BgWorkerStartTime starts;
    const char *without;  // the hint if there is no place for one
    const void *argument; // of BGW_EXTRALEN bytes at most, for its bgw_extra
    Size argument_bytes;
};

// Allocates nothing and raises no error. False: there is no place for one.
bool start_worker(const WorkerStart &start);

enum class SingleWorker : uint32_t {
    refiller,  // fills rings of generators in cached mode
    registrar, // asks the registry of the fleet for grants and blocks
};

// Wakes the worker, or starts it if none runs, at most one a second. That second is not waited for after
// worker_found_nothing(). Allocates nothing and raises no error. False: no background worker can be started.
bool wake_worker(SingleWorker kind);

// The same for the registrar. False: it cannot be started, and *error says why.
bool wake_registrar(GrantError *error);

// For the worker's main function, after it has set its signal handlers: registers the process until its end. If another
// one is running, this one ends.
void begin_as_worker(SingleWorker kind);

// Registers this process as the worker. False: another one is running.
bool become_worker(SingleWorker kind);

// Does nothing if another process is registered.
void resign_as_worker(SingleWorker kind);

void worker_found_nothing(SingleWorker kind);

} // namespace uidgen::pg
