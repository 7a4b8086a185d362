// uid_default_set(): chooses the generator behind uid_next().

#include "base/errors.hpp"
#include "base/time_source.hpp"
#include "session/locked_generator.hpp"
#include "session/session.hpp"
#include "shared/grants.hpp"
#include "shared/memberships.hpp"
#include "shared/nodes.hpp"
#include "tables/builtin.hpp"
#include "tables/config_table.hpp"
#include "tables/owner_rights.hpp"
#include "tables/similar_generator.hpp"
#include "tables/worker_node.hpp"

namespace uidgen::pg {
namespace {

void check_may_choose_default(Oid table) {
    if (!has_privs_of_role(GetUserId(), owner_of(table)) && !has_privs_of_role(GetUserId(), ROLE_PG_DATABASE_OWNER))
        ereport(ERROR,
                (errcode(ERRCODE_INSUFFICIENT_PRIVILEGE), errmsg("permission denied to choose the default generator"),
                 errdetail("Only the owner of the database or of the extension may choose it.")));
}

// Compares the number of rows that each statement writes with the present state of the table: the transaction may have
// an older snapshot.
void write_default(Oid table, uint64 former_rows, Oid generator) {
    const char *unset = "UPDATE %1$s SET is_default = false WHERE is_default";
    const char *set = "UPDATE %1$s SET is_default = true WHERE generator::pg_catalog.oid OPERATOR(pg_catalog.=) $1";
    Oid types[] = {OIDOID};
    Datum values[] = {ObjectIdGetDatum(generator)};
    const bool done = write_as_owner(table, unset, 0, nullptr, nullptr) == former_rows &&
                      write_as_owner(table, set, lengthof(types), types, values) == 1;
    if (!done)
        ereport(ERROR, (errcode(ERRCODE_T_R_SERIALIZATION_FAILURE),
                        errmsg("could not choose the default generator due to a concurrent change"),
                        errhint("Retry the transaction.")));
}

// The former default and the new one. Read under lock_generator() of both, because both may have been altered.
struct Change {
    Oid schema;
    Oid former;
    Oid next;
    GeneratorConfig former_config;
    GeneratorConfig config;
    int64_t mark; // of the former one
    int64_t now;  // the clock's tick
};

int64_t number_of(Oid generator, const GeneratorConfig &config) {
    if (config.worker_policy == WorkerPolicy::fixed)
        return config.worker_number;
    const Slot *slot = slot_find({MyDatabaseId, generator});
    return slot != nullptr ? slot->generator.number.load(std::memory_order_acquire) : no_number;
}

core::Meeting judge_nodes(const Change &c) {
    const auto nodes_of = [](Oid generator, const GeneratorConfig &config) {
        return core::NodesOf{node_source(config), config.worker_policy == WorkerPolicy::sticky,
                             number_of(generator, config)};
    };
    const NodeHistory history = node_history(c.schema, c.former, c.former_config.layout);
    return core::judge_nodes({c.config.layout, nodes_of(c.former, c.former_config), nodes_of(c.next, c.config),
                              history.rows, history.count, history.rows_of_another, last_node_id(c.schema), c.now});
}

// In a fleet: whether the ids of the former default ahead of the clock lie in its present grant. Then no other grant of
// the node begins before they end. Without a grant, or with one that began later, they may be older than the fleet.
bool is_granted(const Change &c) {
    Member member;
    const int places = grants_places();
    for (int place = 0; place < places; place++)
        if (grants_copy(place, &member) && same_key(member.key, {MyDatabaseId, c.former}))
            return member.membership.holds && member.membership.held.from <= c.now &&
                   c.mark < member.membership.held.until;
    return false;
}

const char *show_tick(const Change &c, int64_t tick) {
    return pstrdup(timestamptz_to_str(to_timestamptz(core::start_of(c.former_config.layout, tick))));
}

const char *ask_for_worker(const Change &c) {
    return psprintf("Choose a worker id N that no id from %lld on has, and run SELECT uid_generator_alter(%s, "
                    "worker_policy => 'static', worker_number => N).",
                    static_cast<long long>(core::first_id_of(c.config.layout, c.now)),
                    quote_literal_cstr(qualified_name(c.next)));
}

void refuse_other_layout(const Change &c) {
    if (core::same_layout(c.former_config.layout, c.config.layout))
        return;
    ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                    errmsg("generator \"%s\" cannot start below ids of generator \"%s\"", get_rel_name(c.next),
                           get_rel_name(c.former)),
                    errdetail("Its layout is another one, so its ids could be equal to those."),
                    errhint("Use a generator of the same layout: %s", similar_generator(c.former).statements)));
}

[[noreturn]] void report_same_node(const Change &c) {
    ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                    errmsg("generator \"%s\" cannot start below ids of generator \"%s\"", get_rel_name(c.next),
                           get_rel_name(c.former)),
                    errdetail("Both have the same datacenter and worker id, so its ids could be equal to those."),
                    errhint("%s", ask_for_worker(c))));
}

// What is known of the nodes, as a sentence. `hint` stays null if nothing is left to do.
const char *say_nodes(const Change &c, const core::Meeting &meeting, const char **hint) {
    switch (meeting.when) {
    case core::NodesMeet::later:
        return psprintf("They are unique, because the next %lld worker ids to be drawn differ from theirs.",
                        static_cast<long long>(meeting.left));
    case core::NodesMeet::given:
        *hint = psprintf("Make sure that no id from %lld on has the worker id of the new generator.",
                         static_cast<long long>(core::first_id_of(c.config.layout, c.now)));
        return "They are unique if the worker ids differ. As far as is known, they do.";
    case core::NodesMeet::now:
        report_same_node(c);
    case core::NodesMeet::perhaps:
        break;
    }
    *hint = ask_for_worker(c);
    return "They are unique if the worker ids differ, which is not known.";
}

// The new default begins at the clock, although ids of the former one lie ahead of it.
void begin_at_clock(const Change &c) {
    refuse_other_layout(c);
    const char *hint = nullptr;
    const bool in_fleet = grants_epoch() != 0;
    const char *nodes =
        in_fleet && is_granted(c)
            ? "They are unique, because the registry grants another node."
            : say_nodes(c, in_fleet ? core::Meeting{core::NodesMeet::perhaps, 0} : judge_nodes(c), &hint);
    ereport(WARNING, (errmsg("generator \"%s\" starts at the clock, below ids of generator \"%s\"",
                             get_rel_name(c.next), get_rel_name(c.former)),
                      errdetail("From %s to %s, new ids do not sort after those. %s", show_tick(c, c.now),
                                show_tick(c, core::tick_of_mark(c.former_config.policy, c.mark) + 1), nodes),
                      hint != nullptr ? errhint("%s", hint) : 0));
}

const char *why_above(const Change &c) {
    const char *next = quote_literal_cstr(qualified_name(c.next));
    const char *unless = core::same_layout(c.former_config.layout, c.config.layout)
                             ? psprintf(", unless you call uid_default_set(%s, above => false)", next)
                             : "";
    return psprintf("A default must start above every id that the former one can have issued%s. To draw from this "
                    "generator in some tables, pass it to uid_adopt(), or set DEFAULT uid_next(%s) on their columns.",
                    unless, next);
}

// Has the new default start above every id that the former one can have issued. With `above` false, only where it can.
void follow(Oid schema, Oid former, Oid generator, bool above) {
    const int64_t mark = high_water_mark_of(former);
    if (mark == core::no_lease_yet)
        return;
    Change c = {
        schema, former, generator, read_generator_config(schema, former), read_generator_config(schema, generator),
        mark,   0};
    c.now = core::tick_at(c.config.layout, wall_clock_us());
    const int64_t largest = core::largest_leased_id(c.former_config.layout, c.former_config.policy, mark);
    if (above || may_start_above(c.config, largest))
        raise_above_id(generator, c.config, largest, why_above(c));
    else
        begin_at_clock(c);
}

} // namespace
} // namespace uidgen::pg

using namespace uidgen::pg;

extern "C" {

UIDGEN_SQL_FUNCTION(uid_default_set);

Datum uid_default_set(PG_FUNCTION_ARGS) {
    const Oid generator = PG_GETARG_OID(0);
    const Oid schema = schema_of_function(fcinfo->flinfo->fn_oid);
    const Oid table = required_table(schema, "uid_generator");
    check_may_choose_default(table);
    read_generator_config(schema, generator); // raises an error if it is no generator
    if (RecoveryInProgress())
        report_in_recovery();
    LockRelationOid(table, ShareUpdateExclusiveLock); // one choice at a time; rows may be added meanwhile
    Oid former = find_default_generator(schema);      // none if it was dropped
    if (former == generator)
        PG_RETURN_VOID();
    if (OidIsValid(former)) {
        LockRelationOid(former, excludes_draws);
        former = find_default_generator(schema); // another session may have dropped it meanwhile
    }
    lock_generator(generator);
    if (OidIsValid(former))
        follow(schema, former, generator, PG_GETARG_BOOL(1));
    const uint64 former_rows = OidIsValid(former) && has_generator_row(schema, former) ? 1 : 0;
    const Oid builtin = builtin_generator();
    if (OidIsValid(builtin) && !has_generator_row(schema, builtin))
        insert_builtin_row(table, false); // so that it is not the default if the new one is dropped
    write_default(table, former_rows, generator);
    default_changed_in = transaction_number;
    PG_RETURN_VOID();
}
}
