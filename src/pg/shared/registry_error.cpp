#include "registry_error.hpp"

#include "single_worker.hpp"
#include "base/time_source.hpp"

namespace uidgen::pg {

GrantError error_for_user(const GrantError &error) {
    if (!error.names_host || has_privs_of_role(GetUserId(), ROLE_PG_MONITOR))
        return error;
    GrantError shown = {};
    strlcpy(shown.message, "the registry cannot be reached", sizeof(shown.message));
    strlcpy(shown.hint, "The view uid_registry_status tells members of pg_monitor why.", sizeof(shown.hint));
    shown.at_us = error.at_us;
    return shown;
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

} // namespace uidgen::pg
