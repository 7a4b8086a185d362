// The entry points of a registry: what members call, and what its administrator calls: what it is, fence, handover,
// takeover, reservation of nodes for generators outside. All but uid_fleet_refuses() take the registry's lock.

#include "base/identity.hpp"
#include "config/rows.hpp"
#include "registry/newcomer.hpp"

namespace uidgen::pg {
namespace {

Datum time_datum(int64_t unix_us) { return TimestampTzGetDatum(to_timestamptz(unix_us)); }

// The registry, under its lock.
Registry enter(FunctionCallInfo fcinfo) {
    Registry registry = open_registry(fcinfo);
    enter_registry(&registry);
    return registry;
}

// Error if members would be refused, too.
void check(const Registry &registry, core::Refusal why, Call call = {}) {
    if (refuse_if_judged(registry, &call, why))
        ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE), errmsg("%s", call.answer.message),
                        registry.unclaimed != nullptr ? errdetail("It differs: %s.", registry.unclaimed) : 0,
                        errhint("%s", call.answer.hint)));
}

// The registry, if it grants nodes to members.
Registry enter_open(FunctionCallInfo fcinfo) {
    const Registry registry = enter(fcinfo);
    check(registry, reason_for_all(registry));
    return registry;
}

void check_knows_all(const Registry &registry) {
    const core::RegistryView &view = registry.state.view;
    const core::Refusal why =
        registry.unclaimed != nullptr ? core::Refusal::unclaimed : core::judge_handover(view, server_start_us());
    const bool is_closed = core::is_closed(view);
    const int64_t at_us = is_closed ? Max(core::may_open_us(view), view.now_us) : core::wait_end_us(view);
    if (why == core::Refusal::starting)
        ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                        errmsg("the registry cannot be handed over so soon after its start"),
                        errdetail("Another server may have granted before, which would have taken over meanwhile."),
                        is_closed ? errhint("At %s, run SELECT uid_fleet_handover(cancel => true). Then try again.",
                                            instant(at_us))
                                  : errhint("Try again at %s, or switch over without a handover, which raises a fence.",
                                            instant(at_us))));
    check(registry, why);
}

// Until then a standby that knows of the closing, and of nothing after it, may take over without a fence.
void check_may_open(const Registry &registry) {
    const int64_t at_us = core::may_open_us(registry.state.view);
    if (registry.state.view.now_us < at_us)
        ereport(ERROR,
                (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE), errmsg("the closed registry cannot be opened yet"),
                 errdetail("Another server may still take over, and rely on this one to grant nothing."),
                 errhint("Try again at %s.", instant(at_us))));
}

// ---------------------------------------------------------------------------------------------------------
// What this registry is.
// ---------------------------------------------------------------------------------------------------------

// By an administrator's word.
void declare_nothing_lost(Registry *registry, const char *reason) {
    ereport(WARNING,
            (errmsg("registry accepts newcomers from now on"),
             errdetail("If grants were lost and their holders still draw, or if another server still grants, ids "
                       "collide.")));
    draw_term(registry, Commits::are_declared, reason);
}

// Of a registry that was lost, what the administrator says. The key is null if nobody has kept it.
struct Lost {
    int64_t fleet; // 0: none was lost
    int64_t term;  // the largest that members show
    const char *key;
};

void check_lost(const Lost &lost, int64_t now_us) {
    if (lost.fleet == 0)
        return;
    if (lost.term < 1 || !core::can_be_drawn(lost.term, now_us))
        ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("invalid term: " INT64_FORMAT, lost.term),
                        errdetail("A term is the time in microseconds when it was drawn."),
                        errhint("Pass the largest term that uid_registry_status shows on the members.")));
    if (lost.key != nullptr && (strlen(lost.key) != 32 || strspn(lost.key, "0123456789abcdef") != 32))
        ereport(ERROR,
                (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("invalid key of a fleet"),
                 errhint("Pass the 32 digits that uid_fleet_key() has returned on the registry that was lost.")));
}

// A fleet of its own: whoever holds a grant of the former one is no member of it. Or that of a registry that was lost.
void begin_fleet(Registry *registry, const Lost &lost = {}) {
    FleetState &state = registry->state;
    const int64_t now_us = state.view.now_us;
    check_lost(lost, now_us);
    forget_grants(lost.key);
    state = {};
    state.view.fleet = static_cast<uint64_t>(lost.fleet != 0 ? lost.fleet : random_number());
    state.view.now_us = now_us;
    state.view.term.number = lost.term;
    state.view.first = lost.fleet != 0 && lost.key == nullptr ? core::next_number(state.view, 1) : 1;
    draw_term(registry, Commits::are_known, "a fleet begins");
    put_clock_bound(settings::registry_clock_bound_ms * us_per_ms);
    if (lost.fleet == 0)
        return;
    (void)read_state(&state); // with what an administrator sets
    state.view.now_us = now_us;
    draw_term(registry, Commits::may_be_lost, "it follows a registry that was lost");
    state.view.unproven_base_us = lost.key == nullptr ? state.view.fence_base_us : 0;
    write_state(state);
}

[[noreturn]] void report_kind(const Registry &registry, const char *kind) {
    ereport(ERROR,
            (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
             kind == nullptr ? errmsg("the kind of this registry must be specified")
                             : errmsg("this database cannot become the registry as \"%s\"", kind),
             registry.unclaimed != nullptr ? errdetail("It differs from the former registry: %s.", registry.unclaimed)
                                           : errdetail("This database has no fleet."),
             registry.unclaimed != nullptr
                 ? errhint("Pass 'unchanged' if no grant was lost, 'successor' if grants may be lost, or 'new' for a "
                           "fleet of its own. docs/runbooks/registry-copy.md says which.")
                 : errhint("Pass 'new' to begin a fleet. To replace a registry that was lost, see "
                           "docs/runbooks/registry-lost.md.")));
}

void establish(Registry *registry, bool exists, const char *kind, const Lost &lost) {
    const bool is_lost = lost.fleet != 0 || lost.term != 0 || lost.key != nullptr;
    const bool is_known = exists && registry->unclaimed == nullptr;
    const auto is = [&](const char *name) { return kind != nullptr && strcmp(kind, name) == 0; };
    const char *said = "an administrator has said what it is";
    if (is_known && (kind != nullptr || is_lost))
        ereport(ERROR, (errcode(ERRCODE_DUPLICATE_OBJECT), errmsg("this database is the registry of a fleet already"),
                        errhint("To admit another role, leave the kind of registry out. For a fence, or a fleet of "
                                "a copy's own, see docs/runbooks/registry.md.")));
    if (kind != nullptr && !is("new"))
        check_may_open(*registry);
    if (is("new") && !is_lost)
        begin_fleet(registry);
    else if (is("successor") && exists && !is_lost)
        draw_term(registry, Commits::may_be_lost, said);
    else if (is("unchanged") && exists && !is_lost)
        declare_nothing_lost(registry, said);
    else if (is("successor") && !exists && lost.fleet != 0)
        begin_fleet(registry, lost);
    else if (!is_known)
        report_kind(*registry, kind);
}

// With the rights of the tables' owner. Returns the number of rows.
uint64 run(const char *statement) {
    check_spi(SPI_execute(statement, false, 0), "SPI_execute", statement);
    return SPI_processed;
}

// The owner of the procedure keeps his right.
void check_admitted(Oid role, const char *name) {
    if (run(psprintf("SELECT FROM pg_proc p CROSS JOIN LATERAL aclexplode(p.proacl) a "
                     "WHERE p.oid = 'uid_internal.uid_fleet_call'::regproc AND a.grantee = '%u'::oid "
                     "AND a.grantee <> p.proowner",
                     role)) == 0)
        ereport(ERROR, (errcode(ERRCODE_UNDEFINED_OBJECT), errmsg("role %s was not admitted to the fleet", name),
                        errhint("Pass the name of a role that was passed to uid_fleet_admit().")));
}

void revoke_segments(Oid role, const char *name) {
    run(psprintf("SELECT string_agg(DISTINCT s.sequence::regclass::text, ', ') FROM %s.uid_segment s "
                 "JOIN pg_class c ON c.oid = s.sequence CROSS JOIN LATERAL aclexplode(c.relacl) a "
                 "WHERE a.grantee = '%u'::oid",
                 quoted_schema(extension_schema()), role));
    const char *sequences = SPI_getvalue(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 1);
    if (sequences != nullptr)
        run(psprintf("REVOKE ALL ON SEQUENCE %s FROM %s CASCADE", sequences, name));
}

// ---------------------------------------------------------------------------------------------------------
// Nodes.
// ---------------------------------------------------------------------------------------------------------

core::Layout required_pool(int32_t pool) {
    core::Layout layout;
    if (!read_pool(pool, &layout))
        ereport(ERROR, (errcode(ERRCODE_UNDEFINED_OBJECT), errmsg("pool %d does not exist", pool),
                        errhint("Run SELECT pool, preset FROM uid_fleet_pools to list the pools. For another layout, "
                                "create a generator with it on a member first, and draw an id.")));
    return layout;
}

// Returns when the node is free.
int64_t take_over(const Registry &registry, int32_t pool, int64_t node) {
    core::Layout layout;
    NodeRecord record;
    if (!read_pool(pool, &layout) || !read_node(pool, node, &record))
        ereport(ERROR, (errcode(ERRCODE_UNDEFINED_OBJECT),
                        errmsg("node %lld of pool %d was never granted", static_cast<long long>(node), pool),
                        errhint("Run SELECT pool, node FROM uid_fleet to list the nodes.")));
    // So far ahead of its clock the holder may have drawn.
    const int64_t ahead = record.asked_length - record.asked_length / 2;
    record.row = core::revoked(layout, registry.state.view, record.row, ahead);
    if (record.policy != nullptr && strcmp(record.policy, "reserved") == 0)
        record.policy = nullptr; // a sticky holder may come back
    record.last_heard_us = registry.state.view.now_us;
    put_node(record);
    return core::start_of(layout, record.row.until);
}

// A fence ends after the longest grant, and a reservation lasts longer. So nothing replaces one that is lost.
void check_standby() {
    if (!standbys_are_awaited())
        ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                        errmsg("no synchronous standby keeps the reservation"),
                        errdetail("After a failover that loses it, the nodes may be granted to members."),
                        errhint("Set synchronous_standby_names on the registry, or pass without_standby => true and "
                                "check uid_fleet after each unplanned failover.")));
}

void return_node(const ReturnSetInfo *result, const core::Layout &layout, const core::NodeRow &row) {
    const int32_t bits = core::drawn_worker_bits(layout);
    Datum values[] = {Int64GetDatum(row.node), Int32GetDatum(static_cast<int32_t>(row.node >> bits)),
                      Int32GetDatum(static_cast<int32_t>(row.node & core::largest(bits))),
                      time_datum(core::start_of(layout, row.from)), time_datum(core::start_of(layout, row.until))};
    bool nulls[lengthof(values)] = {};
    tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
}

// A reservation is a newcomer's grant. All of them, or none: an error rolls back.
void reserve(const Registry &registry, int32_t pool, int32_t count, const ReturnSetInfo *result) {
    Call call = {};
    FleetRequest &r = call.request;
    NodeRecord node;
    r.layout = required_pool(pool);
    r.generator.lowest = Max(core::tick_at(r.layout, registry.state.view.now_us), 0);
    // How far ahead it may draw, which take_over() reads from this, it does not say.
    r.generator.length = 2 * core::longest_ticks(r.layout, registry.state.view);
    r.generator.clock_us = registry.state.view.now_us;
    r.policy = "reserved";
    r.datacenter_id = any_datacenter;
    call.pool = pool;
    check(registry, core::judge(r.layout, registry.state.view, r.generator, {}).why, call);
    for (int32_t i = 0; i < count; i++) {
        if (!find_node(registry, call, &node))
            ereport(ERROR,
                    (errcode(ERRCODE_CONFIGURATION_LIMIT_EXCEEDED), errmsg("pool %d has only %d free nodes", pool, i),
                     errhint("Reserve fewer nodes, or use a layout with more datacenter and worker bits.")));
        core::NodeRow row = core::granted(r.layout, registry.state.view, r.generator, node.row);
        row.until = core::largest(r.layout.time_bits) + 1;
        put_member(registry, call, row);
        return_node(result, r.layout, row);
    }
}

} // namespace

UIDGEN_SQL_FUNCTION(uid_fleet_refuses) {
    const core::Refusal why = reason_for_newcomers(state_in(PG_GETARG_HEAPTUPLEHEADER(0)));
    if (why == core::Refusal::none)
        PG_RETURN_NULL();
    PG_RETURN_TEXT_P(cstring_to_text(core::row_of(why).word));
}

UIDGEN_SQL_FUNCTION(uid_fleet_call) {
    if (PG_ARGISNULL(0))
        ereport(ERROR, (errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED), errmsg("requests must not be null")));
    const bytea *message = PG_GETARG_BYTEA_PP(0);
    Registry registry = open_registry(fcinfo);
    const Calls calls = take_calls(registry, message);
    enter_registry(&registry);
    // A role that was expelled while its transaction was open has passed PostgreSQL's check, which reads what is
    // cached. The lock has brought the cache up to date.
    if (!DatumGetBool(OidFunctionCall3(F_HAS_FUNCTION_PRIVILEGE_OID_OID_TEXT, ObjectIdGetDatum(registry.role),
                                       ObjectIdGetDatum(fcinfo->flinfo->fn_oid), CStringGetTextDatum("EXECUTE"))))
        aclcheck_error(ACLCHECK_NO_PRIV, OBJECT_PROCEDURE, "uid_fleet_call");
    const bytea *answers = answer_calls(&registry, calls);
    const Datum result = SPI_datumTransfer(make_row(row_type(fcinfo), {PointerGetDatum(answers)}), false, -1);
    commit_registry(registry);
    return result;
}

UIDGEN_SQL_FUNCTION(uid_fleet_admit) {
    const Oid role = PG_ARGISNULL(0) ? InvalidOid : PG_GETARG_OID(0);
    const char *name = quote_identifier(GetUserNameFromId(role, false));
    if (superuser_arg(role))
        ereport(ERROR, (errcode(ERRCODE_INVALID_GRANT_OPERATION), errmsg("role %s is a superuser", name),
                        errhint("Create a role for the members: CREATE ROLE uid_fleet LOGIN.")));
    Registry registry = open_registry(fcinfo);
    const bool exists = lock_and_read_state(&registry);
    run(psprintf("GRANT EXECUTE ON PROCEDURE uid_internal.uid_fleet_call TO %s", name));
    if (exists)
        settle_environment(&registry);
    const auto text_at = [fcinfo](int i) { return PG_ARGISNULL(i) ? nullptr : text_to_cstring(PG_GETARG_TEXT_PP(i)); };
    const auto number_at = [fcinfo](int i) { return PG_ARGISNULL(i) ? 0 : PG_GETARG_INT64(i); };
    establish(&registry, exists, text_at(1), {number_at(2), number_at(3), text_at(4)});
    close_registry(registry);
    PG_RETURN_VOID();
}

UIDGEN_SQL_FUNCTION(uid_fleet_expel) {
    const Oid role = PG_GETARG_OID(0);
    const char *name = quote_identifier(GetUserNameFromId(role, false));
    Registry registry = open_registry(fcinfo);
    (void)lock_and_read_state(&registry); // first, as uid_fleet_admit() does
    check_admitted(role, name);
    run(psprintf("REVOKE EXECUTE ON PROCEDURE uid_internal.uid_fleet_call FROM %s CASCADE", name));
    revoke_segments(role, name);
    drop_claims(GetUserNameFromId(role, false));
    close_registry(registry);
    PG_RETURN_VOID();
}

UIDGEN_SQL_FUNCTION(uid_fleet_key) {
    Registry registry = open_registry(fcinfo);
    lock_registry(&registry);
    const char *key = registry.state.key != nullptr ? registry.state.key : "";
    const Datum result = SPI_datumTransfer(CStringGetTextDatum(key), false, -1);
    close_registry(registry);
    return result;
}

// A copy that was promoted, or that differs from the original in another way, has no members.
UIDGEN_SQL_FUNCTION(uid_fleet_fork) {
    Registry registry = open_registry(fcinfo);
    lock_registry(&registry);
    const FleetState &state = registry.state;
    const bool was_called = core::is_closed(registry.state.view) ||
                            (state.view.started_us == server_start_us() && state.view.serial_at_start <= 0);
    settle_environment(&registry);
    if (was_called && registry.unclaimed == nullptr && read_latest_grants(state.view).latest_end_us > state.view.now_us)
        ereport(ERROR,
                (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE), errmsg("this registry has members"),
                 errdetail("They could no longer draw once their grants end."),
                 errhint("Change uidgen.registry on all members first, or wait until their grants have ended.")));
    begin_fleet(&registry);
    close_registry(registry);
    PG_RETURN_VOID();
}

UIDGEN_SQL_FUNCTION(uid_fleet_fence) {
    const bool cancel = PG_GETARG_BOOL(0);
    Registry registry = enter(fcinfo);
    check_may_open(registry);
    if (cancel)
        declare_nothing_lost(&registry, "uid_fleet_fence(cancel => true) was called");
    else
        draw_term(&registry, Commits::may_be_lost, "uid_fleet_fence() was called");
    close_registry(registry);
    const core::RegistryView &view = registry.state.view;
    return time_datum(cancel ? view.now_us : core::fence_end_us(view));
}

// A switchover may take five minutes.
UIDGEN_SQL_FUNCTION(uid_fleet_handover) {
    const bool cancel = PG_GETARG_BOOL(0);
    Registry registry = enter(fcinfo);
    core::RegistryView &view = registry.state.view;
    if (cancel && core::is_closed(view)) {
        check_may_open(registry);
        check(registry, registry.unclaimed != nullptr ? core::Refusal::unclaimed : core::judge_server(view, {}));
        draw_term(&registry, Commits::may_be_lost, "the handover was canceled");
    } else if (!cancel) {
        check_knows_all(registry);
        view.closed_until_us = Max(view.closed_until_us, view.now_us + 300 * us_per_second);
        write_state(registry.state);
    }
    close_registry(registry);
    PG_RETURN_VOID();
}

UIDGEN_SQL_FUNCTION(uid_fleet_takeover) {
    Registry registry = enter_open(fcinfo);
    const int64_t free_at_us = take_over(registry, PG_GETARG_INT32(0), PG_GETARG_INT64(1));
    close_registry(registry);
    return time_datum(free_at_us);
}

UIDGEN_SQL_FUNCTION(uid_fleet_reserve) {
    constexpr int32_t most = 10000;
    if (PG_ARGISNULL(0) || PG_ARGISNULL(1) || PG_ARGISNULL(2))
        ereport(ERROR,
                (errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED), errmsg("pool, nodes and without_standby must not be null"),
                 errhint("Run SELECT pool, preset FROM uid_fleet_pools to list the pools.")));
    const int32_t count = PG_GETARG_INT32(1);
    if (count < 0 || count > most)
        ereport(ERROR,
                (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("invalid number of nodes to reserve: %d", count),
                 errhint("Use a number from 0 to %d.", most)));
    if (!PG_GETARG_BOOL(2)) // without_standby
        check_standby();
    InitMaterializedSRF(fcinfo, 0);
    Registry registry = enter_open(fcinfo);
    reserve(registry, PG_GETARG_INT32(0), count, reinterpret_cast<ReturnSetInfo *>(fcinfo->resultinfo));
    close_registry(registry);
    return static_cast<Datum>(0);
}

UIDGEN_SQL_FUNCTION(uid_fleet_drop_pool) {
    const int32_t pool = PG_GETARG_INT32(0);
    Registry registry = enter_open(fcinfo);
    const core::Layout layout = required_pool(pool);
    const int64_t now = core::tick_at(layout, registry.state.view.now_us);
    if (count_nodes(all_nodes(pool, layout), now, 1) > 0)
        ereport(ERROR, (errcode(ERRCODE_OBJECT_IN_USE), errmsg("nodes of pool %d are in use", pool),
                        errhint("Drop its generators, and wait until uid_fleet shows no node of it that is not free. "
                                "End reservations with uid_fleet_takeover().")));
    drop_pool(pool);
    close_registry(registry);
    PG_RETURN_VOID();
}

} // namespace uidgen::pg
