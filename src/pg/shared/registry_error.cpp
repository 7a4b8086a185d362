#include "registry_error.hpp"

#include "single_worker.hpp"
#include "base/time_source.hpp"

namespace uidgen::pg {

bool wake_registrar(GrantError *error) {
    if (wake_worker(SingleWorker::registrar))
        return true;
    strlcpy(error->message, "no background worker slot is free for the registrar", sizeof(error->message));
    strlcpy(error->hint, "Increase max_worker_processes in postgresql.conf and restart the server.",
            sizeof(error->hint));
    error->at_us = wall_clock_us();
    return false;
}

} // namespace uidgen::pg
