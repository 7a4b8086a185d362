// What the administrator of a registry calls: what it is, fence, handover, takeover of a node, reservation of nodes for
// generators outside.

#include "base/errors.hpp"
#include "base/settings.hpp"
#include "base/identity.hpp"
#include "base/time_source.hpp"
#include "refusals.hpp"
#include "config/rows.hpp"

namespace uidgen::pg {
namespace {

Datum time_datum(int64_t unix_us) { return TimestampTzGetDatum(to_timestamptz(unix_us)); }

// The registry, under its lock.
Registry enter(FunctionCallInfo fcinfo) {
    Registry registry;
    open_registry(&registry, fcinfo);
    enter_registry(&registry);
    return registry;
}

// After the registry was closed, the next one must not miss anything that this one has decided.
void check_open(const Registry &registry) {
    if (registry.unclaimed != nullptr)
        ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                        errmsg("the registry is not the server that it was: %s", registry.unclaimed),
                        errhint("Say what it is: run SELECT uid_fleet_admit('role', 'successor'), with 'unchanged' if "
                                "nothing was lost, or with 'new' if it is a copy.")));
    if (is_closed(registry))
        ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                        errmsg("the registry is being handed over to another server"),
                        errhint("Wait for the switchover. To stay with this server, run "
                                "SELECT uid_fleet_handover(cancel => true) after uid_fleet_state.closed_until.")));
}

// Until then a standby that knows of the closing, and of nothing after it, may take over without a fence.
void check_may_open(const Registry &registry) {
    const int64_t at_us = registry.state.closed_until_us + 2 * registry.state.view.bound_us;
    if (is_closed(registry) && registry.state.view.now_us < at_us)
        ereport(ERROR,
                (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE), errmsg("the handover cannot be canceled yet"),
                 errdetail("Another server may still take over, and rely on this one to grant nothing."),
                 errhint("Try again at %s.", show_time(at_us))));
}

// ---------------------------------------------------------------------------------------------------------
// What this registry is.
// ---------------------------------------------------------------------------------------------------------

// By an administrator's word.
void say_nothing_lost(Registry *registry, const char *reason) {
    ereport(WARNING, (errmsg("registry accepts newcomers from now on"),
                      errdetail("If grants were lost and their holders draw on, or if another server still grants, ids "
                                "collide.")));
    registry->state.view.fence_base_us = 0;
    draw_epoch(registry, Takeover::nothing, reason);
}

// A fleet of its own. Whoever holds a grant of the former one is no member of it.
void begin_fleet(Registry *registry, bool exists, int64_t fleet) {
    FleetState &state = registry->state;
    const int64_t now_us = state.view.now_us;
    if (exists && registry->unclaimed == nullptr && read_latest_grants(state.view).end_us > now_us &&
        state.serial_at_start == 0)
        ereport(ERROR,
                (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE), errmsg("this registry has members"),
                 errdetail("They would draw nothing any more once their grants end."),
                 errhint("Change uidgen.registry on all members first, or wait until their grants have ended.")));
    if (exists)
        forget_grants();
    const int64_t bound_us = state.view.bound_us;
    state = {};
    state.environment = present_environment(*registry);
    state.view.fleet = static_cast<uint64_t>(fleet != 0 ? fleet : random_number());
    state.view.now_us = now_us;
    state.view.epoch = {1, random_number()};
    state.view.bound_us = Max(bound_us, settings::registry_clock_bound_ms * us_per_ms);
    state.first_epoch = 1;
    state.started_us = server_start_us();
    write_state(state);
    (void)read_state(&state); // with what an administrator sets
    state.view.now_us = now_us;
    registry->unclaimed = nullptr;
}

[[noreturn]] void report_choice(const Registry &registry, const char *message) {
    const char *detail =
        registry.unclaimed != nullptr ? psprintf("It differs: %s.", registry.unclaimed) : "This database has no fleet.";
    ereport(ERROR,
            (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE), errmsg("%s", message), errdetail("%s", detail),
             errhint("Pass 'new' for a fleet of its own: no other registry may grant to its members. Pass "
                     "'successor' if it follows a former registry: newcomers wait until the grants that may have "
                     "been lost have ended. Pass 'unchanged' if it follows one, and nothing was lost.")));
}

// Of a database without tables of the former registry: that one's identity is all that is left of it.
void follow_lost_registry(Registry *registry, int64_t fleet) {
    if (fleet == 0)
        ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                        errmsg("this database has nothing of the former registry"),
                        errhint("Pass its fleet, which the view uid_registry_status shows on each member: "
                                "uid_fleet_admit('role', 'successor', fleet => ...).")));
    begin_fleet(registry, false, fleet);
    draw_epoch(registry, Takeover::unknown, "it follows a registry that was lost");
}

void claim(Registry *registry, bool exists, const char *what, int64_t fleet) {
    const bool unclaimed = !exists || registry->unclaimed != nullptr;
    const auto is = [what](const char *name) { return what != nullptr && strcmp(what, name) == 0; };
    const char *said = "an administrator has said what it is";
    if (fleet != 0 && (exists || !is("successor")))
        ereport(ERROR,
                (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("fleet must not be given"),
                 errhint("It is for the successor of a registry that was lost, in a database without a fleet.")));
    if (!unclaimed && what != nullptr)
        check_may_open(*registry);
    if (what == nullptr && unclaimed)
        report_choice(*registry, exists ? "the registry is not the server that it was"
                                        : "it must be said what kind of registry this is");
    else if (is("new") && !unclaimed)
        ereport(ERROR, (errcode(ERRCODE_DUPLICATE_OBJECT), errmsg("this database is the registry of a fleet already"),
                        errhint("To admit another role, leave the kind of registry out. To make a copy of a registry a "
                                "fleet of its own, run SELECT uid_fleet_fork().")));
    else if (is("new"))
        begin_fleet(registry, exists, 0);
    else if (is("successor") && exists)
        draw_epoch(registry, Takeover::lost, said);
    else if (is("successor"))
        follow_lost_registry(registry, fleet);
    else if (is("unchanged") && !unclaimed && registry->state.view.shown.number == 0)
        ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE), errmsg("the registry is not in doubt"),
                        errhint("To admit another role, leave the kind of registry out. To end a fence, run SELECT "
                                "uid_fleet_fence(cancel => true).")));
    else if (is("unchanged") && exists)
        say_nothing_lost(registry, said);
    else if (is("unchanged"))
        report_choice(*registry, "this database has nothing of a former registry");
    else if (what != nullptr)
        ereport(ERROR,
                (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("unknown kind of registry: \"%s\"", shown(what)),
                 errhint("Use 'new', 'successor' or 'unchanged'.")));
}

// ---------------------------------------------------------------------------------------------------------
// Handover.
// ---------------------------------------------------------------------------------------------------------

// How long a switchover may take.
constexpr int64_t closing_us = INT64_C(300) * 1000 * us_per_ms;

void hand_over(Registry *registry) {
    FleetState &state = registry->state;
    if (registry->unclaimed != nullptr)
        check_open(*registry);
    state.closed_until_us = Max(state.closed_until_us, state.view.now_us + closing_us);
    state.granted_last_us = read_latest_grants(state.view).known.last_us;
    write_state(state);
}

void cancel_handover(Registry *registry) {
    if (!is_closed(*registry))
        return;
    check_may_open(*registry);
    registry->state.closed_until_us = registry->state.granted_last_us = 0;
    write_state(registry->state);
}

// ---------------------------------------------------------------------------------------------------------
// Taking a node over.
// ---------------------------------------------------------------------------------------------------------

[[noreturn]] void report_no_node(int32_t pool, int64_t node) {
    ereport(ERROR, (errcode(ERRCODE_UNDEFINED_OBJECT),
                    errmsg("node %lld of pool %d was never granted", static_cast<long long>(node), pool),
                    errhint("Run SELECT pool, node FROM uid_fleet to list the nodes.")));
}

// How far ahead of its clock the holder may have drawn. A generator outside does not say it.
int64_t ahead_of(const Registry &registry, const core::Layout &layout, const NodeRecord &record) {
    const int64_t length = record.asked_length;
    return record.reserved ? core::longest_ticks(layout, registry.state.view) : length - length / 2;
}

// Returns when the node is free.
int64_t take_over(const Registry &registry, int32_t pool, int64_t node) {
    core::Layout layout;
    NodeRecord record;
    check_open(registry);
    if (!read_pool(pool, &layout) || !read_node(pool, node, &record))
        report_no_node(pool, node);
    record.row = core::revoked(layout, registry.state.view, record.row, ahead_of(registry, layout, record));
    record.reserved = false;
    record.last_heard_us = registry.state.view.now_us;
    put_node(record);
    return core::start_of(layout, record.row.until);
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
    FleetRequest request;
    NodeRecord *nodes;
};

// A preset without an epoch of its own begins on the day of creation, so the fleet's generators know it.
core::Layout layout_of_preset(const Reservation &r) {
    core::Layout layout;
    if (!read_preset(r.preset, &layout))
        ereport(ERROR,
                (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("preset \"%s\" does not exist", shown(r.preset)),
                 errhint("Run SELECT preset FROM uid_preset to list the presets.")));
    const bool has_epoch = layout.epoch_us >= 0;
    layout.epoch_us = has_epoch ? layout.epoch_us : 0;
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

void find_pool_to_reserve(Reservation *r) {
    core::Layout *layout = &r->request.layout;
    if (r->has_pool) {
        if (!read_pool(r->pool, layout))
            ereport(ERROR, (errcode(ERRCODE_UNDEFINED_OBJECT), errmsg("pool %d does not exist", r->pool),
                            errhint("Run SELECT pool, preset FROM uid_fleet_pools to list the pools.")));
        return;
    }
    *layout = layout_of_preset(*r);
    r->pool = find_pool(*layout);
    if (r->pool == no_pool)
        r->pool = insert_pool(*layout, r->preset, nullptr);
}

// A reservation is a newcomer's grant.
void check_newcomers(const Registry &registry, const FleetRequest &request) {
    Call call = {};
    call.request = request;
    const core::Judgement judgement = core::judge(request.layout, registry.state.view, request.generator, nullptr);
    if (core::is_before_epoch(request.layout, registry.state.view))
        ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                        errmsg("the epoch of the layout is ahead of the clocks of the fleet"),
                        errhint("Reserve nodes after that time, or pass another epoch.")));
    if (judgement.verdict == core::Verdict::refuse && judgement.why != core::Refusal::ahead &&
        refuse_judged(registry, &call, judgement.why))
        ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                        errmsg("no node can be reserved: %s", call.answer.message), errhint("%s", call.answer.hint)));
}

// All of them, or none: an error rolls back.
void reserve(const Registry &registry, Reservation *r) {
    check_open(registry);
    find_pool_to_reserve(r);
    const core::Layout &layout = r->request.layout;
    r->request.generator.lowest = Max(core::tick_at(layout, registry.state.view.now_us), 0);
    r->request.generator.length = core::largest(layout.time_bits);
    r->request.generator.clock_us = registry.state.view.now_us;
    check_newcomers(registry, r->request);
    for (int32_t i = 0; i < r->count; i++)
        if (!grant_node({&registry, r->pool, &r->request, WorkerPolicy::disposable, true}, &r->nodes[i]))
            ereport(ERROR, (errcode(ERRCODE_CONFIGURATION_LIMIT_EXCEEDED),
                            errmsg("pool %d has only %d free nodes", r->pool, i),
                            errhint("Reserve fewer nodes, or use a layout with more datacenter and worker bits.")));
}

void return_nodes(FunctionCallInfo fcinfo, const Reservation &r) {
    InitMaterializedSRF(fcinfo, 0);
    auto *result = reinterpret_cast<ReturnSetInfo *>(fcinfo->resultinfo);
    const core::Layout &layout = r.request.layout;
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
    r.request.policy = "reserved";
    r.request.datacenter_id = any_datacenter;
    r.request.former_node = no_node;
    return r;
}

} // namespace
} // namespace uidgen::pg

using namespace uidgen::pg;

extern "C" {

UIDGEN_SQL_FUNCTION(uid_fleet_claim);
UIDGEN_SQL_FUNCTION(uid_fleet_fork);
UIDGEN_SQL_FUNCTION(uid_fleet_fence);
UIDGEN_SQL_FUNCTION(uid_fleet_handover);
UIDGEN_SQL_FUNCTION(uid_fleet_takeover);
UIDGEN_SQL_FUNCTION(uid_fleet_reserve);

// Its arguments are the kind of registry and the fleet, each of which may be NULL.
Datum uid_fleet_claim(PG_FUNCTION_ARGS) {
    Registry registry;
    open_registry(&registry, fcinfo, false);
    const bool exists = try_lock_registry(&registry);
    if (exists)
        settle_environment(&registry);
    claim(&registry, exists, PG_ARGISNULL(0) ? nullptr : text_to_cstring(PG_GETARG_TEXT_PP(0)),
          PG_ARGISNULL(1) ? 0 : PG_GETARG_INT64(1));
    close_registry(&registry);
    PG_RETURN_VOID();
}

Datum uid_fleet_fork(PG_FUNCTION_ARGS) {
    Registry registry;
    open_registry(&registry, fcinfo);
    lock_registry(&registry);
    // A copy that was promoted has no members either.
    registry.unclaimed = change_of_environment(registry.state.environment, present_environment(registry));
    begin_fleet(&registry, true, 0);
    close_registry(&registry);
    PG_RETURN_VOID();
}

Datum uid_fleet_fence(PG_FUNCTION_ARGS) {
    const bool cancel = PG_GETARG_BOOL(0);
    Registry registry = enter(fcinfo);
    check_may_open(registry);
    if (cancel)
        say_nothing_lost(&registry, "uid_fleet_fence(cancel => true) was called");
    else
        draw_epoch(&registry, Takeover::lost, "uid_fleet_fence() was called");
    close_registry(&registry);
    const uidgen::core::RegistryView &view = registry.state.view;
    return time_datum(cancel ? view.now_us : uidgen::core::fence_end_us(view));
}

Datum uid_fleet_handover(PG_FUNCTION_ARGS) {
    Registry registry = enter(fcinfo);
    if (PG_GETARG_BOOL(0))
        cancel_handover(&registry);
    else
        hand_over(&registry);
    close_registry(&registry);
    PG_RETURN_VOID();
}

Datum uid_fleet_takeover(PG_FUNCTION_ARGS) {
    Registry registry = enter(fcinfo);
    const int64_t free_at_us = take_over(registry, PG_GETARG_INT32(0), PG_GETARG_INT64(1));
    close_registry(&registry);
    return time_datum(free_at_us);
}

Datum uid_fleet_reserve(PG_FUNCTION_ARGS) {
    Reservation r = read_reservation(fcinfo);
    check_standby(!PG_ARGISNULL(4) && PG_GETARG_BOOL(4));
    Registry registry = enter(fcinfo);
    reserve(registry, &r);
    close_registry(&registry);
    return_nodes(fcinfo, r);
    return static_cast<Datum>(0);
}
}
