#include "report.hpp"

#include "conninfo.hpp"
#include "base/settings.hpp"
#include "base/time_source.hpp"

namespace uidgen::pg {
namespace {

bool said_away = false;
bool said_others = false;
bool said_clock = false;

// One line each time that there is more than one registry.
void note_others(const Found &found) {
    const bool has_others = found.others != nullptr;
    if (has_others && !said_others)
        ereport(WARNING, (errmsg("there is more than one registry: %s and %s", found.host, found.others),
                          errdetail("This server uses %s.", found.host), errhint("%s", stop_others)));
    said_others = has_others;
}

} // namespace

void report_connected(const Found &found) {
    RegistrarStatus status = registrar_status();
    status.connected = true;
    status.away_since_us = 0;
    strlcpy(status.host, found.host, sizeof(status.host));
    status.registries = found.registries;
    registrar_status_set(status);
    note_others(found);
    if (said_away)
        ereport(LOG, (errmsg("connected to the registry of this server's fleet again")));
    said_away = false;
}

void report_disconnected() {
    RegistrarStatus status = registrar_status();
    status.connected = false;
    status.away_since_us = 0;
    registrar_status_set(status);
}

void report_away(const GrantError &error, const char *conninfo, const Found &found) {
    RegistrarStatus status = registrar_status();
    status.connected = false;
    status.host[0] = '\0';
    status.registries = found.registries;
    status.last_error = error;
    if (status.away_since_us == 0)
        status.away_since_us = wall_clock_us();
    registrar_status_set(status);
    if (said_away)
        return;
    said_away = true;
    ereport(LOG, (errmsg("could not use the registry of this server's fleet: %s", error.message),
                  error.hint[0] != '\0' ? errhint("%s", error.hint) : 0,
                  errdetail("The registry is \"%s\".", conninfo_redacted(conninfo))));
}

void report_error(const GrantError &error) {
    RegistrarStatus status = registrar_status();
    status.last_error = error;
    registrar_status_set(status);
}

void report_clocks(int64_t sent_us, int64_t registry_clock_us) {
    const int64_t bound_us = settings::registry_clock_bound_ms * us_per_ms;
    const int64_t middle_us = sent_us + (wall_clock_us() - sent_us) / 2;
    RegistrarStatus status = registrar_status();
    status.compared_clocks = true;
    status.clock_offset_us = middle_us - registry_clock_us;
    registrar_status_set(status);
    const bool differ = status.clock_offset_us > bound_us || status.clock_offset_us < -bound_us;
    if (differ && !said_clock)
        ereport(WARNING, (errmsg("clock of this server differs from the registry's by " INT64_FORMAT " ms",
                                 status.clock_offset_us / us_per_ms),
                          errdetail("uidgen.registry_clock_bound is %d ms.", settings::registry_clock_bound_ms),
                          errhint("Synchronize the clocks of the fleet.")));
    said_clock = differ;
}

void report_new_registry() { said_away = false; }

} // namespace uidgen::pg
