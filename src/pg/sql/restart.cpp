// uid_generator_restart(): a generator whose clock was far ahead begins again at the clock, with another node
// (core/restart.hpp).
//
// The restart is a change of the generator's row, so it is durable, replicated and rolled back with its transaction.
// The sequence follows with the first lease of the new term. No session can draw before the commit: the lock excludes
// other sessions, and the transaction that has altered a generator cannot draw from it.

#include "base/errors.hpp"
#include "base/settings.hpp"
#include "base/time_source.hpp"
#include "core/restart.hpp"
#include "session/locked_generator.hpp"
#include "shared/nodes.hpp"
#include "tables/config_table.hpp"
#include "tables/owner_rights.hpp"
#include "tables/worker_node.hpp"

namespace uidgen::pg {
namespace {

struct Request {
    Oid generator;
    core::RestartState state;
    int64_t wanted; // the node that was asked for, or core::no_node
};

core::Numbers numbers_of(WorkerPolicy policy) {
    switch (policy) {
    case WorkerPolicy::disposable:
        return core::Numbers::drawn;
    case WorkerPolicy::sticky:
        return core::Numbers::sticky;
    case WorkerPolicy::fixed:
        break;
    }
    return core::Numbers::given;
}

int64_t node_with_worker(const GeneratorConfig &config, int64_t worker) {
    const int64_t most = core::largest(core::drawn_worker_bits(config.layout));
    if (worker < 0 || worker > most)
        report_generator_field("worker_number", psprintf("%lld", static_cast<long long>(worker)),
                               psprintf("Use a number from 0 to %lld.", static_cast<long long>(most)));
    core::NodeSource source = node_source(config);
    source.worker_is_given = true;
    return core::node_of(config.layout, source, worker).value;
}

core::RestartState state_of(Oid schema, Oid generator, const GeneratorConfig &config) {
    const NodeHistory history = node_history(schema, generator, config.layout);
    auto *former = static_cast<core::NodeSet *>(palloc(sizeof(core::NodeSet)));
    *former = read_former_nodes(schema, generator);
    core::RestartState state = {};
    state.layout = config.layout;
    state.policy = config.policy;
    state.source = node_source(config);
    state.numbers = numbers_of(config.worker_policy);
    state.given_number = config.worker_number;
    state.mark = high_water_mark_of(generator);
    state.now = core::tick_at(config.layout, wall_clock_us());
    state.pinned = config.pinned_node;
    state.former = former;
    state.rows = history.rows;
    state.row_count = history.count;
    state.last_number = last_node_id(schema);
    state.rows_of_another = history.rows_of_another;
    auto *others = static_cast<core::NodeSet *>(palloc(sizeof(core::NodeSet)));
    *others = read_other_pins(schema, generator);
    state.others = others;
    return state;
}

const char *show_tick(const core::Layout &layout, int64_t tick) {
    return pstrdup(timestamptz_to_str(to_timestamptz(core::start_of(layout, tick))));
}

// The first tick of the term that a restart begins.
int64_t begin_of(const core::Restart &restart) { return (restart.mark & core::largest(core::max_time_bits)) + 1; }

// The first tick above all ids of the generator.
int64_t end_of_ids(const core::RestartState &s) {
    return Max(s.policy.restart.until, core::ticks_of_mark(s.layout, s.policy, s.mark) % s.policy.end + 1);
}

const char *call_with_worker(const Request &r) {
    return psprintf("Run SELECT uid_generator_restart(%s, worker_number => N) with a worker id N that no id from %lld "
                    "on has.",
                    quote_literal_cstr(qualified_name(r.generator)),
                    static_cast<long long>(core::first_id_of(r.state.layout, r.state.now)));
}

[[noreturn]] void report_not_ahead(const Request &r, const char *name) {
    const int64_t ahead =
        core::ticks_of_mark(r.state.layout, r.state.policy, r.state.mark) % r.state.policy.end - r.state.now;
    const double tick_s = static_cast<double>(r.state.layout.tick_us) / 1e6;
    ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                    errmsg("generator \"%s\" is not too far ahead of the clock", name),
                    r.state.mark <= core::no_lease_yet
                        ? errdetail("It has not issued ids yet.")
                        : errdetail("Its lease ends %.3f s ahead of the clock, and it may be %.3f s ahead.",
                                    static_cast<double>(Max(ahead, 0)) * tick_s,
                                    static_cast<double>(r.state.policy.max_ahead) * tick_s),
                    errhint("If the clock is still ahead, set it first. Otherwise the generator needs no restart.")));
}

[[noreturn]] void report_fault(const Request &r, core::RestartFault fault) {
    const char *name = get_rel_name(r.generator);
    const core::Layout &layout = r.state.layout;
    switch (fault) {
    case core::RestartFault::not_ahead:
    case core::RestartFault::none:
        report_not_ahead(r, name);
    case core::RestartFault::before_epoch:
        ereport(ERROR,
                (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                 errmsg("the clock is before the epoch of generator \"%s\"", name),
                 errdetail("The epoch is %s.", show_tick(layout, 0)), errhint("Set the clock, and call again.")));
    case core::RestartFault::no_term:
        ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                        errmsg("generator \"%s\" has no term left to restart with", name),
                        errhint("Create another generator, with another layout or datacenter id, with "
                                "uid_generator_create().")));
    case core::RestartFault::asks_no_node:
        ereport(ERROR,
                (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                 errmsg("cannot choose the worker id of generator \"%s\"", name),
                 errdetail("With when_back new_worker, each term has the next worker id."),
                 errhint("Run SELECT uid_generator_restart(%s).", quote_literal_cstr(qualified_name(r.generator)))));
    case core::RestartFault::needs_node:
        ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                        errmsg("generator \"%s\" needs another worker id to restart", name),
                        errdetail("Its worker id is set, not drawn."), errhint("%s", call_with_worker(r))));
    case core::RestartFault::no_node_left:
        ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                        errmsg("generator \"%s\" has no worker id left to restart with", name),
                        errdetail("As far as is known, ids above the clock may have any worker id. The generator draws "
                                  "ids again from %s on.",
                                  show_tick(layout, end_of_ids(r.state) - r.state.policy.max_ahead)),
                        errhint("%s Otherwise wait.", call_with_worker(r))));
    case core::RestartFault::node_in_use:
        break;
    }
    ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                    errmsg("ids of generator \"%s\" above the clock may have worker id %lld already", name,
                           static_cast<long long>(core::fields_of_node(layout, r.wanted).worker)),
                    errhint("%s", call_with_worker(r))));
}

// A NULL at the end stands for all other nodes. The counterpart of read_former_nodes().
Datum array_of(const core::NodeSet &nodes) {
    const Size room = static_cast<Size>(nodes.count) + 1;
    auto *elements = static_cast<Datum *>(palloc0(sizeof(Datum) * room));
    auto *nulls = static_cast<bool *>(palloc0(sizeof(bool) * room));
    for (int32_t i = 0; i < nodes.count; i++)
        elements[i] = Int64GetDatum(nodes.nodes[i]);
    nulls[nodes.count] = true;
    int count = nodes.count + (nodes.all ? 1 : 0);
    int first = 1;
    return PointerGetDatum(construct_md_array(elements, nulls, 1, &count, &first, INT8OID, sizeof(int64),
                                              FLOAT8PASSBYVAL, TYPALIGN_DOUBLE));
}

void write_restart(Oid schema, const Request &r, const core::RestartPlan &plan, const core::NodeSet &former) {
    const Oid table = required_table(schema, "uid_generator");
    const auto at = [&r](int64_t tick) {
        return TimestampTzGetDatum(to_timestamptz(core::start_of(r.state.layout, tick)));
    };
    const bool pins = plan.node != core::no_node;
    const char *statement = "UPDATE %1$s AS t SET restart_term = $2, restarted_at = $3, restart_until = $4, "
                            "restart_node = $5, former_nodes = $6 "
                            "WHERE t.generator::pg_catalog.oid OPERATOR(pg_catalog.=) $1";
    Oid types[] = {OIDOID, INT4OID, TIMESTAMPTZOID, TIMESTAMPTZOID, INT8OID, INT8ARRAYOID};
    Datum values[] = {
        ObjectIdGetDatum(r.generator), Int32GetDatum(static_cast<int32>(plan.restart.mark >> core::max_time_bits)),
        at(begin_of(plan.restart)),    at(plan.restart.until),
        Int64GetDatum(plan.node),      array_of(former)};
    const char nulls[] = {' ', ' ', ' ', ' ', pins ? ' ' : 'n', pins ? ' ' : 'n', '\0'};
    if (!has_or_gets_generator_row(schema, table, r.generator))
        report_not_a_generator(r.generator);
    if (write_as_owner(table, statement, lengthof(types), types, values, nulls) == 0)
        report_newer_row(r.generator, "uid_generator");
}

void warn_of_restart(const Request &r, const core::RestartPlan &plan) {
    const core::Layout &layout = r.state.layout;
    const core::NodeFields fields = core::fields_of_node(layout, Max(plan.node, 0));
    const char *by =
        plan.node == core::no_node
            ? psprintf("the worker id of term %lld", static_cast<long long>(plan.restart.mark >> core::max_time_bits))
            : psprintf("datacenter id %lld and worker id %lld", static_cast<long long>(fields.datacenter),
                       static_cast<long long>(fields.worker));
    ereport(WARNING, (errmsg("generator \"%s\" begins again at the clock, below ids that it has issued",
                             get_rel_name(r.generator)),
                      errdetail("From %s to %s its new ids do not sort after its earlier ones. They are unique by %s.",
                                show_tick(layout, begin_of(plan.restart)), show_tick(layout, plan.restart.until), by)));
}

// In a fleet another generator does the same: its node is free at the clock, because the registry says so.
void refuse_in_fleet(Oid generator) {
    if (settings::registry[0] == '\0')
        return;
    ereport(ERROR,
            (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
             errmsg("cannot restart generator \"%s\" in a fleet", get_rel_name(generator)),
             errdetail("The registry decides which node is free at the clock."),
             errhint("Run SELECT uid_generator_create('name'), and draw from that generator. The registry grants it "
                     "a node of its own.")));
}

// Under lock_generator().
void restart(Oid schema, const Request &r) {
    auto *former = static_cast<core::NodeSet *>(palloc0(sizeof(core::NodeSet)));
    const core::RestartPlan plan = core::plan_restart(r.state, r.wanted, former);
    if (plan.fault != core::RestartFault::none)
        report_fault(r, plan.fault);
    write_restart(schema, r, plan, *former);
    warn_of_restart(r, plan);
}

} // namespace
} // namespace uidgen::pg

using namespace uidgen::pg;

extern "C" {

UIDGEN_SQL_FUNCTION(uid_generator_restart);

Datum uid_generator_restart(PG_FUNCTION_ARGS) {
    if (PG_ARGISNULL(0))
        PG_RETURN_VOID();
    const Oid schema = schema_of_function(fcinfo->flinfo->fn_oid);
    const Oid generator = PG_GETARG_OID(0);
    const GeneratorConfig config = lock_own_generator(schema, generator);
    refuse_in_fleet(generator);
    const int64_t wanted = PG_ARGISNULL(1) ? uidgen::core::no_node : node_with_worker(config, PG_GETARG_INT32(1));
    restart(schema, {generator, state_of(schema, generator, config), wanted});
    PG_RETURN_VOID();
}
}
