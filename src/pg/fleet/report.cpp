#include "report.hpp"

namespace uidgen::pg {
namespace {

RegistrarStatus status = {}; // the registrar's, as it has said last
bool said_others = false;

} // namespace

const char *conninfo_redacted(const char *conninfo) {
    const char *const shown[] = {"service", "host", "port", "dbname", "user"};
    StringInfoData text;
    initStringInfo(&text);
    PQconninfoOption *options = PQconninfoParse(conninfo, nullptr);
    for (const char *keyword : shown)
        for (const PQconninfoOption *option = options; option != nullptr && option->keyword != nullptr; option++)
            if (strcmp(option->keyword, keyword) == 0 && option->val != nullptr && option->val[0] != '\0')
                appendStringInfo(&text, "%s%s=%s", text.len > 0 ? " " : "", keyword,
                                 strpbrk(option->val, "=@:") == nullptr ? option->val : "...");
    PQconninfoFree(options);
    return text.data;
}

void note_connected(const Found &found) {
    const bool has_others = found.others[0] != '\0';
    if (has_others && !said_others)
        ereport(WARNING, (errmsg("there is more than one registry: %s and %s", found.host, found.others),
                          errdetail("This server uses %s.", found.host), errhint("%s", stop_others)));
    said_others = has_others;
    if (status.away_since_us != 0)
        ereport(LOG, (errmsg("connected to the registry of this server's fleet again")));
    if (!status.connected)
        status.connected_at_us = wall_clock_us();
    status.connected = true;
    status.away_since_us = 0;
    strlcpy(status.host, found.host, sizeof(status.host));
    status.registries = found.registries;
    registrar_status_set(status);
}

void note_disconnected() {
    status.connected = false;
    status.away_since_us = 0;
    registrar_status_set(status);
}

void note_connection_lost() {
    if (status.connected)
        note_disconnected();
}

void note_away(const GrantError &error, const Found &found) {
    if (status.away_since_us == 0) {
        ereport(LOG, (errmsg("could not use the registry of this server's fleet: %s", error.message),
                      error.hint[0] != '\0' ? errhint("%s", error.hint) : 0,
                      errdetail("The registry is \"%s\".", conninfo_redacted(settings::registry))));
        status.away_since_us = wall_clock_us();
    }
    status.connected = false;
    status.host[0] = '\0';
    strlcpy(status.refused_by, found.refused_by != nullptr ? found.refused_by : "", sizeof(status.refused_by));
    status.registries = found.registries;
    note_error(error);
}

void note_error(const GrantError &error) {
    status.last_error = error;
    registrar_status_set(status);
}

void note_clocks(int64_t sent_us, int64_t registry_clock_us) {
    const int64_t bound_us = settings::registry_clock_bound_ms * us_per_ms;
    const int64_t middle_us = sent_us + (wall_clock_us() - sent_us) / 2;
    const auto differ = [bound_us] { return status.clock_offset_us > bound_us || status.clock_offset_us < -bound_us; };
    const bool differed = differ();
    status.compared_clocks = true;
    status.clock_offset_us = middle_us - registry_clock_us;
    registrar_status_set(status);
    if (differ() && !differed)
        ereport(WARNING, (errmsg("clock of this server differs from the registry's by " INT64_FORMAT " ms",
                                 status.clock_offset_us / us_per_ms),
                          errdetail("uidgen.registry_clock_bound is %d ms.", settings::registry_clock_bound_ms),
                          errhint("Synchronize the clocks of the fleet.")));
}

} // namespace uidgen::pg
