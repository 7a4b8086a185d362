// What a member of a fleet shows of its registry, and what its administrator calls.

#include "config/rows.hpp"
#include "fleet/grant_file.hpp"
#include "fleet/report.hpp"

namespace uidgen::pg {
namespace {

void put_time(ResultRow *row, const char *column, int64_t unix_us) {
    if (unix_us != 0)
        put(row, column, to_timestamptz(unix_us));
}

// Text that may be in the encoding of another database.
void put_text(ResultRow *row, const char *column, const char *text) {
    char *copy = pstrdup(text);
    if (!pg_verifymbstr(copy, static_cast<int>(strlen(copy)), true))
        for (char *c = copy; *c != '\0'; c++)
            *c = static_cast<unsigned char>(*c) < 0x80 ? *c : '?';
    if (text[0] != '\0')
        put(row, column, copy);
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

void put_server(ResultRow *row, const RegistrarStatus &s, const Member *member) {
    const core::FleetSeen seen = fleet_seen();
    put_text(row, "state", state_of(s, member));
    if (superuser() || has_privs_of_role(GetUserId(), ROLE_PG_READ_ALL_SETTINGS)) {
        put_text(row, "said_by", said_by(s));
        put_text(row, "registry", conninfo_redacted(settings::registry));
        put_text(row, "host", s.host);
    }
    put(row, "connected", s.connected);
    put(row, "registries", s.registries);
    put_time(row, "away_since", s.away_since_us);
    put_text(row, "last_error", s.last_error.message);
    put_time(row, "last_error_at", s.last_error.at_us);
    if (seen.fleet != 0)
        put(row, "fleet", seen.fleet);
    if (seen.term.number != 0)
        put(row, "term", seen.term.number);
    if (s.compared_clocks)
        put(row, "clock_offset_ms", s.clock_offset_us / us_per_ms);
}

void put_member(ResultRow *row, const Member &member) {
    const core::Membership &membership = member.membership;
    put_text(row, "database", member.request.database);
    put_text(row, "generator", member.request.generator);
    if (membership.holds) {
        put(row, "node", membership.held.node);
        put_time(row, "granted_until", core::start_of(member.request.layout, membership.held.until));
    }
    put(row, "renewals", member.renewals);
    put(row, "superseded", membership.superseded);
    put_text(row, "refusal", core::row_of(member.error.refusal).word);
    put_text(row, "error", member.error.message);
}

} // namespace

// A row for each member, or one of the server alone.
UIDGEN_SQL_FUNCTION(uid_registrar) {
    const ReturnSetInfo *result = new_result(fcinfo);
    if (!settings::is_preloaded)
        return static_cast<Datum>(0);
    if (is_in_fleet())
        open_area();
    const RegistrarStatus shown = registrar_status();
    const auto add = [&](const Member *member) {
        add_row(result, [&](ResultRow *row) {
            put_server(row, shown, member);
            if (member != nullptr)
                put_member(row, *member);
            return true;
        });
    };
    bool any = false;
    for_each_member([&](const Member &member) {
        if (member.requested)
            add(&member);
        any = any || member.requested;
    });
    if (!any)
        add(nullptr);
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
