// The library's start: settings, then, when the server is starting, shared memory and hooks.

#include "memory/area.hpp"
#include "memory/memberships.hpp"
#include "memory/server_state.hpp"
#include "session/events.hpp"
#include "fleet/grant_file.hpp"
#include "session/session.hpp"
#include "base/settings.hpp"

namespace uidgen::pg {
namespace {

shmem_request_hook_type next_shmem_request_hook = nullptr;
shmem_startup_hook_type next_shmem_startup_hook = nullptr;

void request_memory() {
    if (next_shmem_request_hook != nullptr)
        next_shmem_request_hook();
    server_state_request_memory();
}

// The connection string is not shown, because it may have a password.
void log_start() {
    if (settings::registry[0] != '\0')
        ereport(LOG, (errmsg("uidgen %s is loaded, and uidgen.registry is set", UIDGEN_VERSION)));
    else if (settings::datacenter_id >= 0)
        ereport(LOG, (errmsg("uidgen %s is loaded with datacenter id %d", UIDGEN_VERSION, settings::datacenter_id)));
    else
        ereport(LOG, (errmsg("uidgen %s is loaded without a datacenter id", UIDGEN_VERSION)));
}

void attach_memory() {
    if (next_shmem_startup_hook != nullptr)
        next_shmem_startup_hook();
    server_state_preload();
    if (!IsUnderPostmaster)
        grant_file_check();
    if (IsPostmasterEnvironment && !IsUnderPostmaster)
        log_start();
}

void registry_changed(bool in_fleet) {
    set_in_fleet(in_fleet);
    close_all_windows();
}

} // namespace
} // namespace uidgen::pg

using namespace uidgen::pg;

extern "C" {

PG_MODULE_MAGIC;

PGDLLEXPORT void _PG_init(void);

// A library that is loaded later must not fail once it has defined a setting, because the next attempt would fail to
// define it again. So settings come last, and no WARNING about one lets a cancel through, or an error of a parallel
// worker.
void _PG_init(void) {
    session_events_register();
    area_restore_by(grant_file_restore);
    if (process_shared_preload_libraries_in_progress) {
        next_shmem_request_hook = shmem_request_hook;
        shmem_request_hook = request_memory;
        next_shmem_startup_hook = shmem_startup_hook;
        shmem_startup_hook = attach_memory;
    }
    HOLD_INTERRUPTS();
    settings::define(close_all_windows, registry_changed);
    RESUME_INTERRUPTS();
}
}
