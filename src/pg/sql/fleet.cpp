// What a member of a fleet shows of its registry, and what its administrator calls.

#include "fleet/grant_file.hpp"
#include "fleet/report.hpp"

namespace uidgen::pg {
namespace {

// A row that is filled from left to right.
struct ResultRow {
    int count;
    Datum values[20];
    bool nulls[20];
};

void put(ResultRow *row, Datum value, bool known = true) {
    row->values[row->count] = value;
    row->nulls[row->count++] = !known;
}

void put_time(ResultRow *row, int64_t unix_us) { put(row, TimestampTzGetDatum(to_timestamptz(unix_us)), unix_us != 0); }

// Text that may be in the encoding of another database.
void put_text(ResultRow *row, const char *text) {
    char *copy = pstrdup(text);
    if (!pg_verifymbstr(copy, static_cast<int>(strlen(copy)), true))
        for (char *c = copy; *c != '\0'; c++)
            *c = static_cast<unsigned char>(*c) < 0x80 ? *c : '?';
    put(row, CStringGetTextDatum(copy), text[0] != '\0');
}

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
    return s.away_since_us == 0 ? s.host : s.last_error.refusal != core::Refusal::none ? s.refused_by : "";
}

// The server's columns, and those of a member unless it is null.
void put_row(const ReturnSetInfo *result, const RegistrarStatus &s, const Member *member) {
    ResultRow row = {};
    const core::FleetSeen seen = fleet_seen();
    const bool shows_hosts = superuser() || has_privs_of_role(GetUserId(), ROLE_PG_READ_ALL_SETTINGS);
    memset(row.nulls, true, sizeof(row.nulls));
    put_text(&row, state_of(s, member));
    put_text(&row, shows_hosts ? said_by(s) : "");
    put(&row, BoolGetDatum(s.connected));
    put_text(&row, shows_hosts ? conninfo_redacted(settings::registry) : "");
    put_text(&row, shows_hosts ? s.host : "");
    put(&row, Int32GetDatum(s.registries));
    put_time(&row, s.away_since_us);
    put_text(&row, s.last_error.message);
    put_time(&row, s.last_error.at_us);
    put(&row, Int64GetDatum(static_cast<int64_t>(seen.fleet)), seen.fleet != 0);
    put(&row, Int64GetDatum(seen.term.number), seen.term.number != 0);
    put(&row, Int64GetDatum(s.clock_offset_us / us_per_ms), s.compared_clocks);
    if (member != nullptr) {
        const core::Membership &membership = member->membership;
        put_text(&row, member->request.database);
        put_text(&row, member->request.generator);
        put(&row, Int64GetDatum(membership.held.node), membership.holds);
        put_time(&row, membership.holds ? core::start_of(member->request.layout, membership.held.until) : 0);
        put(&row, Int64GetDatum(member->renewals));
        put(&row, BoolGetDatum(membership.superseded));
        put_text(&row, core::row_of(member->error.refusal).word);
        put_text(&row, member->error.message);
    }
    tuplestore_putvalues(result->setResult, result->setDesc, row.values, row.nulls);
}

} // namespace

UIDGEN_SQL_FUNCTION(uid_registrar) {
    InitMaterializedSRF(fcinfo, 0);
    if (!settings::is_preloaded)
        return static_cast<Datum>(0);
    auto *result = reinterpret_cast<ReturnSetInfo *>(fcinfo->resultinfo);
    if (is_in_fleet())
        open_area();
    const RegistrarStatus shown = registrar_status();
    bool any = false;
    for_each_member([&](const Member &member) {
        if (member.requested)
            put_row(result, shown, &member);
        any = any || member.requested;
    });
    if (!any)
        put_row(result, shown, nullptr);
    return static_cast<Datum>(0);
}

UIDGEN_SQL_FUNCTION(uid_fleet_move) {
    (void)fcinfo;
    if (!settings::is_preloaded)
        report_not_preloaded();
    open_area(); // or one that is being made would have the former memberships
    grant_file_forget();
    (void)wake_worker(SingleWorker::registrar);
    PG_RETURN_VOID();
}

} // namespace uidgen::pg
