// A member of a fleet, seen from SQL: the state of its registrar, and how it is moved to another fleet.

#include "fleet/grant_file.hpp"
#include "fleet/conninfo.hpp"
#include "base/errors.hpp"
#include "base/settings.hpp"
#include "base/time_source.hpp"
#include "memory/server_state.hpp"

namespace uidgen::pg {
namespace {

enum Column {
    col_connected,
    col_registry,
    col_host,
    col_registries,
    col_away_since,
    col_last_error,
    col_last_error_at,
    col_fleet,
    col_epoch,
    col_clock_offset,
    col_database, // from here on: of a generator
    col_generator,
    col_node,
    col_granted_until,
    col_renewals,
    col_superseded,
    col_refusal,
    col_error,
    columns
};

struct Row {
    Datum values[columns];
    bool nulls[columns];
};

void put(Row *row, Column column, bool known, Datum value) {
    row->values[column] = value;
    row->nulls[column] = !known;
}

void put_time(Row *row, Column column, int64_t unix_us) {
    put(row, column, unix_us != 0, TimestampTzGetDatum(to_timestamptz(unix_us)));
}

// Text that may be in the encoding of another database.
void put_text(Row *row, Column column, const char *text) {
    char *copy = pstrdup(text);
    if (!pg_verifymbstr(copy, static_cast<int>(strlen(copy)), true))
        for (char *c = copy; *c != '\0'; c++)
            *c = static_cast<unsigned char>(*c) < 0x80 ? *c : '?';
    put(row, column, text[0] != '\0', CStringGetTextDatum(copy));
}

bool may_see_settings() { return superuser() || has_privs_of_role(GetUserId(), ROLE_PG_READ_ALL_SETTINGS); }

Row server_row() {
    Row row = {};
    const RegistrarStatus status = registrar_status();
    const core::FleetSeen seen = fleet_seen();
    put(&row, col_connected, true, BoolGetDatum(status.connected));
    put_text(&row, col_registry, may_see_settings() ? conninfo_redacted(settings::registry) : "");
    put_text(&row, col_host, may_see_settings() ? status.host : "");
    put(&row, col_registries, true, Int32GetDatum(status.registries));
    put_time(&row, col_away_since, status.away_since_us);
    put_text(&row, col_last_error, status.last_error.message);
    put_time(&row, col_last_error_at, status.last_error.at_us);
    put(&row, col_fleet, seen.fleet != 0, Int64GetDatum(static_cast<int64_t>(seen.fleet)));
    put(&row, col_epoch, seen.fleet != 0, Int64GetDatum(seen.epoch.number));
    put(&row, col_clock_offset, status.compared_clocks, Int64GetDatum(status.clock_offset_us / us_per_ms));
    memset(&row.nulls[col_database], true, columns - col_database);
    return row;
}

void put_member(Row *row, const Member &member) {
    const core::Membership &membership = member.membership;
    put_text(row, col_database, member.request.database);
    put_text(row, col_generator, member.request.generator);
    put(row, col_node, membership.holds, Int64GetDatum(membership.held.node));
    put_time(row, col_granted_until,
             membership.holds ? core::start_of(member.request.layout, membership.held.until) : 0);
    put(row, col_renewals, true, Int64GetDatum(member.renewals));
    put(row, col_superseded, true, BoolGetDatum(membership.superseded));
    put_text(row, col_refusal, member.error.refusal);
    put_text(row, col_error, member.error.message);
}

} // namespace
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
    Row row = server_row();
    bool any = false;
    for_each_member([&](const Member &member) {
        if (!member.requested)
            return;
        put_member(&row, member);
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
    memberships_begin_again();
    grant_file_remove(); // or a start while the registry is away would go on with the former grants
    (void)wake_worker(SingleWorker::registrar);
    PG_RETURN_VOID();
}
}
