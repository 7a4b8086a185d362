#include "report.hpp"

namespace uidgen::pg {
namespace {

RegistrarStatus status = {}; // the registrar's, as it has said last

constexpr int64_t clock_bound_us = 10 * us_per_second;

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
    status.heard_at_us = wall_clock_us();
    strlcpy(status.host, found.host, sizeof(status.host));
    registrar_status_set(status);
}

void note_back() {
    if (status.away_since_us == 0)
        return;
    ereport(LOG, (errmsg("the registry of this server's fleet answers again")));
    status.away_since_us = 0;
    status.back_at_us = wall_clock_us();
    registrar_status_set(status);
}

void note_disconnected() {
    status.away_since_us = 0;
    status.host[0] = '\0';
    registrar_status_set(status);
}

void note_away(const GrantError &error) {
    if (status.away_since_us == 0) {
        ereport(LOG, (errmsg("could not use the registry of this server's fleet: %s", error.message),
                      error.hint[0] != '\0' ? errhint("%s", error.hint) : 0,
                      errdetail("The registry is \"%s\".", conninfo_redacted(settings::registry))));
        status.away_since_us = wall_clock_us();
    }
    note_error(error);
}

void note_fleet(const core::FleetSeen &before, const core::FleetSeen &seen) {
    if (before.fleet != seen.fleet)
        ereport(LOG, (errmsg("this server has joined fleet %lld, whose longest grant is %g s",
                             static_cast<long long>(seen.fleet), seconds(seen.longest)),
                      errdetail("A registry of this fleet that is made anew needs both numbers.")));
    else if (before.term != seen.term)
        ereport(LOG, (errmsg("the registry of this server's fleet is that of term %lld",
                             static_cast<long long>(seen.term))));
}

void note_error(const GrantError &error) {
    status.last_error = error;
    registrar_status_set(status);
}

void note_clocks(int64_t sent_us, int64_t registry_clock_us) {
    const int64_t middle_us = sent_us + (wall_clock_us() - sent_us) / 2;
    const auto differ = [] {
        return status.clock_offset_us > clock_bound_us || status.clock_offset_us < -clock_bound_us;
    };
    const bool differed = differ();
    status.compared_clocks = true;
    status.clock_offset_us = middle_us - registry_clock_us;
    registrar_status_set(status);
    if (differ() && !differed)
        ereport(WARNING, (errmsg("clock of this server differs from the registry's by " INT64_FORMAT " ms",
                                 status.clock_offset_us / us_per_ms),
                          errhint("Synchronize the clocks of the fleet.")));
}

} // namespace uidgen::pg
