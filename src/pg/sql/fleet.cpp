// What a member of a fleet shows of its registry, and what its administrator calls.

#include "config/rows.hpp"
#include "fleet/grant_file.hpp"
#include "fleet/report.hpp"

namespace uidgen::pg {
namespace {

void put_unless_zero(ResultRow *row, const char *column, int64_t unix_us) {
    if (unix_us != 0)
        put_column(row, column, to_timestamptz(unix_us));
}

// Text that may be in the encoding of another database.
void put_text(ResultRow *row, const char *column, const char *text) {
    char *copy = pstrdup(text);
    if (!pg_verifymbstr(copy, static_cast<int>(strlen(copy)), true))
        for (char *c = copy; *c != '\0'; c++)
            *c = static_cast<unsigned char>(*c) < 0x80 ? *c : '?';
    if (text[0] != '\0')
        put_column(row, column, copy);
}

// Why a generator gets nothing, by copies; at_us 0: it was not refused since the registry could be used last.
GrantError error_to_show(const RegistrarStatus &status, const Member *member) {
    if (status.away_since_us != 0)
        return status.last_error;
    return member != nullptr && member->error.at_us >= status.back_at_us ? member->error : GrantError{};
}

// How it is with a generator, or with the server if it has none: by a copy of the membership, the clock, and the usual
// length of grants.
const char *state_of(const GrantError &error, const Member *member) EXCLUDES(state_lock) {
    const int64_t now_us = wall_clock_us();
    const bool is_idle = member != nullptr && !is_in_use(*member, now_us, usual_length_us());
    if (error.at_us != 0 && !is_idle) {
        if (error.why == core::Why::granted || error.why == core::Why::outdated)
            return "unreachable";
        return error.why == core::Why::fenced ? "fenced" : "refused";
    }
    const bool has_grant = member != nullptr && member->holding.holds && now_us < member->holding.grant.until;
    return has_grant && !is_idle ? "granted" : "waiting";
}

// Of copies, and of what the server has seen of its fleet.
void put_registry_status(ResultRow *row, const RegistrarStatus &status, const Member *member) EXCLUDES(state_lock) {
    const core::FleetSeen seen = fleet_seen();
    const GrantError error = error_to_show(status, member);
    put_text(row, "state", state_of(error, member));
    put_text(row, "why", error.why != core::Why::granted ? core::why_name(error.why) : "");
    put_text(row, "error", error.message);
    put_text(row, "hint", error.hint);
    put_unless_zero(row, "fenced_until", error.why == core::Why::fenced ? error.until_us : 0);
    if (superuser() || has_privs_of_role(GetUserId(), ROLE_PG_READ_ALL_SETTINGS)) {
        put_text(row, "registry", conninfo_redacted(settings::registry));
        put_text(row, "host", status.host);
    }
    put_unless_zero(row, "heard_at", status.heard_at_us);
    put_unless_zero(row, "away_since", status.away_since_us);
    put_text(row, "last_error", status.last_error.message);
    put_unless_zero(row, "last_error_at", status.last_error.at_us);
    if (status.compared_clocks)
        put_column(row, "clock_offset_ms", status.clock_offset_us / us_per_ms);
    if (seen.fleet == 0)
        return;
    put_column(row, "fleet", seen.fleet);
    put_column(row, "term", seen.term);
    put_column(row, "longest", seconds(seen.longest));
}

// Of a copy, without the slot's lock.
void put_member(ResultRow *row, const Member &member) {
    put_text(row, "database", member.request.database);
    put_text(row, "generator", member.request.generator);
    if (member.holding.holds) {
        put_column(row, "node", member.holding.grant.node);
        put_unless_zero(row, "granted_until", member.holding.grant.until);
    }
    put_column(row, "renewals", member.renewals);
}

} // namespace

// A row for each member, or one of the server alone. Copies each from its slot, under the slot's lock, and the status
// from the server state. In a fleet it makes the area if there is none (open_area()). Asks no registry.
UIDGEN_SQL_FUNCTION(uid_registrar) {
    const ReturnSetInfo *result = new_result(fcinfo);
    if (!settings::is_preloaded)
        return static_cast<Datum>(0);
    if (is_in_fleet())
        open_area();
    const RegistrarStatus shown = registrar_status();
    const auto add = [&](const Member *member) {
        add_row(result, [&](ResultRow *row) {
            put_registry_status(row, shown, member);
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

// Has all memberships begin again, in the slots, the server state and, under its lock, the file of grants
// (grant_file_forget()), after open_area(); wakes the registrar.
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
