// The library's start: settings, then, when the server is starting, shared memory and hooks.

#include "shared/blocks.hpp"
#include "session/discard.hpp"
#include "fleet/grant_file.hpp"
#include "shared/grants.hpp"
#include "shared/incarnation.hpp"
#include "fleet/registrar_status.hpp"
#include "shared/lost_generators.hpp"
#include "session/session.hpp"
#include "session/session_events.hpp"
#include "base/settings.hpp"
#include "shared/single_worker.hpp"
#include "shared/slots.hpp"
#include "shared/statistics.hpp"
#include "shared/trusted_clock.hpp"

namespace uidgen::pg {
namespace {

shmem_request_hook_type next_shmem_request_hook = nullptr;
shmem_startup_hook_type next_shmem_startup_hook = nullptr;

void request_memory() {
    if (next_shmem_request_hook != nullptr)
        next_shmem_request_hook();
    slots_request_memory();
    statistics_request_memory();
    lost_generators_request_memory();
    incarnation_request_memory();
    trusted_clock_request_memory();
    single_workers_request_memory();
    places_request_memory();
    blocks_request_memory();
    registrar_status_request_memory();
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
    slots_attach_memory();
    statistics_attach_memory();
    blocks_attach_memory();
    lost_generators_attach_memory();
    incarnation_attach_memory();
    trusted_clock_attach_memory();
    single_workers_attach_memory();
    places_attach_memory();
    registrar_status_attach_memory();
    if (!IsUnderPostmaster)
        grant_file_load();
    if (IsPostmasterEnvironment && !IsUnderPostmaster)
        log_start();
}

void registry_changed(bool in_fleet) {
    grants_set_fleet(in_fleet);
    close_all_windows();
}

} // namespace
} // namespace uidgen::pg

using namespace uidgen::pg;

extern "C" {

PG_MODULE_MAGIC;

PGDLLEXPORT void _PG_init(void);

void _PG_init(void) {
    const bool preloading = process_shared_preload_libraries_in_progress;
    settings::define(preloading, close_all_windows, registry_changed);
    session_events_register();
    if (!preloading)
        return;
    next_shmem_request_hook = shmem_request_hook;
    shmem_request_hook = request_memory;
    next_shmem_startup_hook = shmem_startup_hook;
    shmem_startup_hook = attach_memory;
    discard_hook_install();
}
}
