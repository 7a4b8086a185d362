// What the administrator of a registry calls: fence, handover, takeover, reservation of nodes for generators outside.

#include "base/errors.hpp"
#include "base/time_source.hpp"
#include "newcomer.hpp"
#include "config/rows.hpp"

namespace uidgen::pg {
namespace {

Datum time_datum(int64_t unix_us) { return TimestampTzGetDatum(to_timestamptz(unix_us)); }

bool fence_by_hand(Registry *registry, void *) {
    raise_fence(registry, "uid_fleet_fence() was called");
    return true;
}

bool cancel_fence(Registry *registry, void *) {
    ereport(WARNING, (errmsg("registry accepts newcomers from now on"),
                      errdetail("If grants were lost and their holders continue to draw, ids collide.")));
    registry->state.view.fence_base_us = registry->state.view.term_shown = 0;
    write_state(registry->state);
    return true;
}

// How long a switchover may take.
constexpr int64_t closing_us = INT64_C(300) * 1000 * us_per_ms;

bool hand_over(Registry *registry, void *) {
    FleetState &state = registry->state;
    state.closed_until_us = Max(state.closed_until_us, state.view.now_us + closing_us);
    write_state(state);
    return true;
}

// Until then a standby that knows of the closing, and of nothing after it, may take over without a fence.
bool cancel_handover(Registry *registry, void *) {
    const core::RegistryView &view = registry->state.view;
    const int64_t at_us = registry->state.closed_until_us + 2 * view.bound_us;
    if (!is_closed(*registry))
        return true;
    if (view.now_us < at_us)
        ereport(ERROR,
                (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE), errmsg("the handover cannot be canceled yet"),
                 errdetail("Another server may still take over, and rely on this one to grant nothing."),
                 errhint("Try again at %s.", timestamptz_to_str(to_timestamptz(at_us)))));
    registry->state.closed_until_us = 0;
    write_state(registry->state);
    return true;
}

// After the registry was closed, the next one must not miss anything that this one has decided.
void check_open(const Registry *registry) {
    if (is_closed(*registry))
        ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                        errmsg("the registry is being handed over to another server"),
                        errhint("Wait for the switchover. To stay with this server, run "
                                "SELECT uid_fleet_handover(cancel => true) after uid_fleet_state.closed_until.")));
}

struct Takeover {
    int32_t pool;
    int64_t node;
    int64_t free_at_us;
};

[[noreturn]] void report_no_node(int32_t pool, int64_t node) {
    ereport(ERROR, (errcode(ERRCODE_UNDEFINED_OBJECT),
                    errmsg("node %lld of pool %d was never granted", static_cast<long long>(node), pool),
                    errhint("Run SELECT pool, node FROM uid_fleet to list the nodes.")));
}

// How far ahead of its clock the holder may have drawn. A generator outside does not say it.
int64_t ahead_of(const Registry *registry, const core::Layout &layout, const NodeRecord &record) {
    const int64_t length = record.holder.asked_length;
    return record.reserved ? core::longest_ticks(layout, registry->state.view) : length - length / 2;
}

bool take_over(Registry *registry, void *arg) {
    auto *t = static_cast<Takeover *>(arg);
    core::Layout layout;
    NodeRecord before;
    check_open(registry);
    for (;;) {
        if (!read_pool(t->pool, &layout) || !read_node(t->pool, t->node, &before))
            report_no_node(t->pool, t->node);
        NodeRecord after = before;
        after.row = core::revoked(layout, registry->state.view, before.row, ahead_of(registry, layout, before));
        after.reserved = false;
        t->free_at_us = core::start_of(layout, after.row.until);
        if (update_node(t->pool, before, after, registry->state.view.now_us))
            return true;
        renew_serial(registry);
        CHECK_FOR_INTERRUPTS();
    }
}

[[noreturn]] void report_no_pool(int32_t pool) {
    ereport(ERROR, (errcode(ERRCODE_UNDEFINED_OBJECT), errmsg("pool %d does not exist", pool),
                    errhint("Run SELECT pool, preset FROM uid_fleet_pools to list the pools.")));
}

// ---------------------------------------------------------------------------------------------------------
// Reservations.
// ---------------------------------------------------------------------------------------------------------

constexpr int64_t no_epoch = PG_INT64_MIN;

struct Reservation {
    bool has_pool; // otherwise the layout is that of the preset
    int32_t pool;
    int32_t count;
    const char *preset;
    int64_t epoch_us; // no_epoch: that of the preset
    Call call;
    NodeRecord *nodes;
};

[[noreturn]] void report_fenced(const Registry *registry, const core::Layout &layout) {
    const int64_t at_us = core::start_of(layout, core::fence_tick(layout, registry->state.view));
    ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                    errmsg("the registry may have lost grants and reserves no node yet"),
                    errhint("Try again after %s.", timestamptz_to_str(to_timestamptz(at_us)))));
}

// A preset without an epoch of its own begins on the day of creation, so the fleet's generators know it.
core::Layout layout_of_preset(const Reservation &r) {
    core::Layout layout;
    bool has_epoch = false;
    if (!read_preset(r.preset, &layout, &has_epoch))
        ereport(ERROR,
                (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("preset \"%s\" does not exist", shown(r.preset)),
                 errhint("Run SELECT preset FROM uid_preset to list the presets.")));
    if (r.epoch_us != no_epoch)
        layout.epoch_us = r.epoch_us;
    else if (!has_epoch && !find_other_epoch(layout, r.preset, &layout.epoch_us))
        ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                        errmsg("the epoch of preset \"%s\" is not known in this fleet", shown(r.preset)),
                        errhint("Pass the epoch of the generators outside PostgreSQL as epoch.")));
    if (core::check(layout) != core::LayoutFault::none)
        ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("invalid epoch for preset \"%s\"", r.preset),
                        errhint("Use an epoch from 1970 on, from which the layout ends before the year 294000.")));
    return layout;
}

// False: needs the exclusive lock.
bool find_pool_to_reserve(const Registry *registry, Reservation *r) {
    core::Layout *layout = &r->call.layout;
    if (r->has_pool) {
        if (!read_pool(r->pool, layout))
            report_no_pool(r->pool);
        return true;
    }
    *layout = layout_of_preset(*r);
    r->pool = find_pool(*layout);
    if (r->pool == no_pool && registry->exclusive)
        r->pool = insert_pool(*layout, r->preset, nullptr);
    return r->pool != no_pool;
}

// All of them, or none: an error rolls back.
bool reserve(Registry *registry, void *arg) {
    auto *r = static_cast<Reservation *>(arg);
    check_open(registry);
    if (!find_pool_to_reserve(registry, r))
        return false;
    const core::Layout &layout = r->call.layout;
    const core::RegistryView &view = registry->state.view;
    r->call.ask.lowest = Max(core::tick_at(layout, view.now_us), 0);
    r->call.ask.length = core::largest(layout.time_bits);
    if (core::is_before_epoch(layout, view))
        ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                        errmsg("the epoch of the layout is ahead of the clocks of the fleet"),
                        errhint("Reserve nodes after that time, or pass another epoch.")));
    if (core::judge(layout, view, r->call.ask, nullptr).why == core::Refusal::fenced)
        report_fenced(registry, layout);
    for (int32_t i = 0; i < r->count; i++)
        if (!grant_node(registry, r->pool, r->call, &r->nodes[i]))
            ereport(ERROR, (errcode(ERRCODE_CONFIGURATION_LIMIT_EXCEEDED),
                            errmsg("pool %d has only %d free nodes", r->pool, i),
                            errhint("Reserve fewer nodes, or use a layout with more datacenter and worker bits.")));
    return true;
}

void return_nodes(FunctionCallInfo fcinfo, const Reservation &r) {
    InitMaterializedSRF(fcinfo, 0);
    auto *result = reinterpret_cast<ReturnSetInfo *>(fcinfo->resultinfo);
    const core::Layout &layout = r.call.layout;
    const int32_t bits = core::drawn_worker_bits(layout);
    for (int32_t i = 0; i < r.count; i++) {
        const core::NodeRow &row = r.nodes[i].row;
        Datum values[] = {Int64GetDatum(row.node), Int32GetDatum(static_cast<int32_t>(row.node >> bits)),
                          Int32GetDatum(static_cast<int32_t>(row.node & core::largest(bits))),
                          time_datum(core::start_of(layout, row.from)), time_datum(core::start_of(layout, row.until))};
        bool nulls[lengthof(values)] = {};
        tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
    }
}

constexpr int32_t most_reserved = 10000;

// A fence ends after the longest grant, and a reservation lasts longer. So nothing replaces one that is lost.
void check_standby(bool without_standby) {
    if (!without_standby && !standbys_are_awaited())
        ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                        errmsg("no synchronous standby keeps the reservation"),
                        errdetail("After a failover that loses it, the nodes may be granted to members."),
                        errhint("Set synchronous_standby_names on the registry, or pass without_standby => true and "
                                "check uid_fleet after each unplanned failover.")));
}

core::RegistryView administer(FunctionCallInfo fcinfo, RegistryWork work, void *arg, bool exclusive = false) {
    Registry registry;
    open_registry(&registry, fcinfo);
    run_in_registry(&registry, work, arg, exclusive);
    close_registry(&registry);
    return registry.state.view;
}

// The function's arguments: nodes, preset, epoch, pool. The fifth one is without_standby.
Reservation read_reservation(FunctionCallInfo fcinfo) {
    Reservation r = {};
    if (PG_ARGISNULL(0) || (PG_ARGISNULL(1) && PG_ARGISNULL(3)))
        ereport(ERROR, (errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED), errmsg("nodes and preset must not be null"),
                        errhint("Pass a number of nodes, and a preset or a pool.")));
    r.count = PG_GETARG_INT32(0);
    if (r.count < 0 || r.count > most_reserved)
        ereport(ERROR,
                (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("invalid number of nodes to reserve: %d", r.count),
                 errhint("Use a number from 0 to %d.", most_reserved)));
    r.preset = PG_ARGISNULL(1) ? "" : text_to_cstring(PG_GETARG_TEXT_PP(1));
    const TimestampTz epoch = PG_ARGISNULL(2) ? 0 : PG_GETARG_TIMESTAMPTZ(2);
    r.epoch_us = PG_ARGISNULL(2) ? no_epoch : TIMESTAMP_NOT_FINITE(epoch) ? -1 : to_unix_us(epoch);
    r.has_pool = !PG_ARGISNULL(3);
    r.pool = r.has_pool ? PG_GETARG_INT32(3) : no_pool;
    r.nodes = static_cast<NodeRecord *>(palloc0(sizeof(NodeRecord) * static_cast<Size>(r.count + 1)));
    r.call.reserves = true;
    r.call.holder.policy = "reserved";
    r.call.datacenter_id = any_datacenter;
    r.call.former_node = no_node;
    return r;
}

} // namespace
} // namespace uidgen::pg

using namespace uidgen::pg;

extern "C" {

UIDGEN_SQL_FUNCTION(uid_fleet_fence);
UIDGEN_SQL_FUNCTION(uid_fleet_handover);
UIDGEN_SQL_FUNCTION(uid_fleet_takeover);
UIDGEN_SQL_FUNCTION(uid_fleet_reserve);

Datum uid_fleet_fence(PG_FUNCTION_ARGS) {
    const bool cancel = PG_GETARG_BOOL(0);
    const uidgen::core::RegistryView view = administer(fcinfo, cancel ? cancel_fence : fence_by_hand, nullptr, true);
    return time_datum(cancel ? view.now_us : uidgen::core::fence_end_us(view));
}

Datum uid_fleet_handover(PG_FUNCTION_ARGS) {
    administer(fcinfo, PG_GETARG_BOOL(0) ? cancel_handover : hand_over, nullptr, true);
    PG_RETURN_VOID();
}

Datum uid_fleet_takeover(PG_FUNCTION_ARGS) {
    Takeover takeover = {PG_GETARG_INT32(0), PG_GETARG_INT64(1), 0};
    administer(fcinfo, take_over, &takeover);
    return time_datum(takeover.free_at_us);
}

Datum uid_fleet_reserve(PG_FUNCTION_ARGS) {
    Reservation r = read_reservation(fcinfo);
    check_standby(!PG_ARGISNULL(4) && PG_GETARG_BOOL(4));
    administer(fcinfo, reserve, &r);
    return_nodes(fcinfo, r);
    return static_cast<Datum>(0);
}
}
