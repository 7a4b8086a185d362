#include "report.hpp"

#include "grant_file.hpp"
#include "base/errors.hpp"
#include "base/settings.hpp"
#include "base/time_source.hpp"
#include "memory/server_state.hpp"

namespace uidgen::pg {
namespace {

RegistrarStatus status = {}; // the registrar's, as it has said last
bool said_others = false;

// What may be shown of a connection string, which may contain a password: host, port, dbname and user, as far as it
// names them. In the place of a database's name may be a connection string, too.
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

// ---------------------------------------------------------------------------------------------------------
// What SQL shows.
// ---------------------------------------------------------------------------------------------------------

constexpr int columns_of_server = 12;
constexpr int columns = 20;

// A row that is filled from left to right.
struct Row {
    int count;
    Datum values[columns];
    bool nulls[columns];
};

void put(Row *row, bool known, Datum value) {
    row->values[row->count] = value;
    row->nulls[row->count++] = !known;
}

void put_time(Row *row, int64_t unix_us) { put(row, unix_us != 0, TimestampTzGetDatum(to_timestamptz(unix_us))); }

// Text that may be in the encoding of another database.
void put_text(Row *row, const char *text) {
    char *copy = pstrdup(text);
    if (!pg_verifymbstr(copy, static_cast<int>(strlen(copy)), true))
        for (char *c = copy; *c != '\0'; c++)
            *c = static_cast<unsigned char>(*c) < 0x80 ? *c : '?';
    put(row, text[0] != '\0', CStringGetTextDatum(copy));
}

bool may_see_settings() { return superuser() || has_privs_of_role(GetUserId(), ROLE_PG_READ_ALL_SETTINGS); }

// How it is with a generator in one word, or with the server if it has none. What was wrong before the present
// connection is over.
const char *state_of(const RegistrarStatus &s, const Member *member) {
    const int64_t now_us = wall_clock_us();
    const auto word_of = [](const GrantError &e, const char *other) {
        return e.refusal != core::Refusal::none ? core::row_of(e.refusal).word : other;
    };
    if (member == nullptr && s.away_since_us == 0)
        return s.connected ? "connected" : "idle";
    if (member != nullptr && member->membership.superseded)
        return "superseded";
    if (member != nullptr && !is_in_use(*member, now_us))
        return "idle";
    if (s.away_since_us != 0)
        return word_of(s.last_error, "unreachable");
    if (member->error.at_us != 0 && member->error.at_us >= s.connected_at_us)
        return word_of(member->error, "failed");
    const core::Membership &m = member->membership;
    return m.holds && now_us < core::start_of(member->request.layout, m.held.until) ? "granted" : "asking";
}

// The host that has said so.
const char *said_by(const RegistrarStatus &s) {
    if (!may_see_settings())
        return "";
    return s.away_since_us == 0 ? s.host : s.last_error.refusal != core::Refusal::none ? s.refused_by : "";
}

void put_state(Row *row, const RegistrarStatus &s, const Member *member) {
    put_text(row, state_of(s, member));
    put_text(row, said_by(s));
}

Row server_row(const RegistrarStatus &shown) {
    Row row = {};
    const core::FleetSeen seen = fleet_seen();
    put_state(&row, shown, nullptr);
    put(&row, true, BoolGetDatum(shown.connected));
    put_text(&row, may_see_settings() ? conninfo_redacted(settings::registry) : "");
    put_text(&row, may_see_settings() ? shown.host : "");
    put(&row, true, Int32GetDatum(shown.registries));
    put_time(&row, shown.away_since_us);
    put_text(&row, shown.last_error.message);
    put_time(&row, shown.last_error.at_us);
    put(&row, seen.fleet != 0, Int64GetDatum(static_cast<int64_t>(seen.fleet)));
    put(&row, seen.fleet != 0, Int64GetDatum(seen.term.number));
    put(&row, shown.compared_clocks, Int64GetDatum(shown.clock_offset_us / us_per_ms));
    memset(&row.nulls[columns_of_server], true, columns - columns_of_server);
    return row;
}

void put_member(Row *row, const RegistrarStatus &shown, const Member &member) {
    const core::Membership &membership = member.membership;
    row->count = 0;
    put_state(row, shown, &member);
    row->count = columns_of_server;
    put_text(row, member.request.database);
    put_text(row, member.request.generator);
    put(row, membership.holds, Int64GetDatum(membership.held.node));
    put_time(row, membership.holds ? core::start_of(member.request.layout, membership.held.until) : 0);
    put(row, true, Int64GetDatum(member.renewals));
    put(row, true, BoolGetDatum(membership.superseded));
    put_text(row, core::row_of(member.error.refusal).word);
    put_text(row, member.error.message);
}

} // namespace

void report_connected(const Found &found) {
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

void report_disconnected() {
    status.connected = false;
    status.away_since_us = 0;
    registrar_status_set(status);
}

void report_lost() {
    if (status.connected)
        report_disconnected();
}

void report_away(const GrantError &error, const Found &found) {
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
    report_error(error);
}

void report_error(const GrantError &error) {
    status.last_error = error;
    registrar_status_set(status);
}

void report_clocks(int64_t sent_us, int64_t registry_clock_us) {
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

using namespace uidgen::pg;

extern "C" {

UIDGEN_SQL_FUNCTION(uid_registrar);
UIDGEN_SQL_FUNCTION(uid_fleet_move);

Datum uid_registrar(PG_FUNCTION_ARGS) {
    InitMaterializedSRF(fcinfo, 0);
    if (!settings::is_preloaded)
        return static_cast<Datum>(0);
    auto *result = reinterpret_cast<ReturnSetInfo *>(fcinfo->resultinfo);
    const RegistrarStatus shown = registrar_status();
    Row row = server_row(shown);
    bool any = false;
    for_each_member([&](const Member &member) {
        if (!member.requested)
            return;
        put_member(&row, shown, member);
        tuplestore_putvalues(result->setResult, result->setDesc, row.values, row.nulls);
        any = true;
    });
    if (!any)
        tuplestore_putvalues(result->setResult, result->setDesc, row.values, row.nulls);
    return static_cast<Datum>(0);
}

Datum uid_fleet_move(PG_FUNCTION_ARGS) {
    (void)fcinfo;
    if (!superuser())
        ereport(ERROR,
                (errcode(ERRCODE_INSUFFICIENT_PRIVILEGE), errmsg("permission denied for function %s", "uid_fleet_move"),
                 errhint("Only a superuser may move a server to another fleet.")));
    if (!settings::is_preloaded)
        report_not_preloaded();
    open_area(); // or one that is being made would have the former memberships
    grant_file_forget();
    (void)wake_worker(SingleWorker::registrar);
    PG_RETURN_VOID();
}
}
