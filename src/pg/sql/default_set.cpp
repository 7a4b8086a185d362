// uid_default_set(): chooses the generator behind uid_next().

#include "session/define.hpp"
#include "session/slot_life.hpp"
#include "node/worker_node.hpp"
#include "generator/clock.hpp"

namespace uidgen::pg {
namespace {

void check_may_choose_default() {
    if (!has_privs_of_role(GetUserId(), find_extension().owner) &&
        !has_privs_of_role(GetUserId(), ROLE_PG_DATABASE_OWNER))
        ereport(ERROR,
                (errcode(ERRCODE_INSUFFICIENT_PRIVILEGE), errmsg("permission denied to choose the default generator"),
                 errdetail("Only the owner of the database or of the extension may choose it.")));
}

// The new default.
struct NewDefault {
    Oid schema;
    Oid next;
    GeneratorConfig config;
    int64_t now;      // the clock's tick in its layout
    int64_t highest;  // it starts above this id; -1: there is none
    bool is_at_clock; // and at the clock, below ids of others
};

// A generator that may have been the default before it.
struct Other {
    Oid generator;
    GeneratorConfig config;
    int64_t mark;
    int64_t largest; // of the ids that it can have issued; -1: none
    bool has_same_layout;
};

Other read_other(const NewDefault &c, Oid generator, const GeneratorConfig &config) {
    const int64_t mark = high_water_mark_of(generator);
    const bool has_ids = mark > core::no_lease_yet;
    return {generator, config, mark, has_ids ? core::largest_leased_id(config.layout, config.policy, mark) : -1,
            core::same_layout(config.layout, c.config.layout)};
}

core::NodesOf nodes_of(const GeneratorConfig &config) {
    return {node_source(config), config.worker_number, config.worker_policy == WorkerPolicy::sticky};
}

int64_t end_us_of(const Other &o) {
    return core::start_of(o.config.layout, core::tick_of_mark(o.config.policy, o.mark) + 1);
}

const char *ask_for_node(const NewDefault &c) {
    const bool has_workers = core::drawn_worker_bits(c.config.layout) > 0;
    return psprintf("Choose a %s id N that no id from %lld on has, and run SELECT uid_generator_alter(%s, %s => N).",
                    has_workers ? "worker" : "datacenter",
                    static_cast<long long>(core::first_id_of(c.config.layout, c.now)),
                    quote_literal_cstr(qualified_name(c.next)),
                    has_workers ? "worker_policy => 'static', worker_number" : "datacenter_id");
}

// Another generator that can take over from the other one.
const char *ask_for_generator(const Other &o) {
    const SimilarGenerator similar = similar_generator(o.generator, o.config.layout, end_us_of(o) - wall_clock_us());
    return psprintf("Use a generator %s: %s", similar.is_above ? "with an earlier epoch" : "of the same layout",
                    similar.statements);
}

[[noreturn]] void report_cannot_start_below(const NewDefault &c, const Other &o, const char *why, const char *hint) {
    ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                    errmsg("generator \"%s\" cannot start below ids of generator \"%s\"", get_rel_name(c.next),
                           get_rel_name(o.generator)),
                    errdetail("%s, so its ids could be equal to those.", why), errhint("%s", hint)));
}

// What is known of the nodes, as a sentence; error if they are known to be equal. `hint` stays null if nothing is left
// to do.
const char *say_nodes(const NewDefault &c, const Other &o, const NodeHistory &history, const char **hint) {
    if (core::drawn_node_bits(c.config.layout) == 0)
        report_cannot_start_below(c, o, "The layout has no datacenter and worker bits", ask_for_generator(o));
    // The grants of the old ids may have ended, and the server does not remember when it joined the fleet.
    if (settings::is_preloaded && is_in_fleet()) {
        *hint = ask_for_node(c);
        return "They are unique if this server was in its fleet when those were drawn, because the registry then "
               "grants another node.";
    }
    const core::Meeting meeting =
        core::judge_nodes({c.config.layout, nodes_of(o.config), nodes_of(c.config), history.rows, history.count,
                           history.rows_of_another, history.rows_of_elsewhere, last_node_id(c.schema)});
    if (meeting.is_met)
        report_cannot_start_below(c, o, "Both have the same datacenter and worker id", ask_for_node(c));
    if (meeting.left > 0)
        return psprintf("They are unique, because the next %lld worker ids to be drawn differ from theirs, unless "
                        "those had another uidgen.datacenter_id, the server was moved, or worker_node_id_seq was set "
                        "back since.",
                        static_cast<long long>(meeting.left));
    *hint = ask_for_node(c);
    return "They are unique if the worker ids differ, which is not known.";
}

// The new default begins at the clock, although ids of the other generator lie ahead of it.
void start_at_clock(NewDefault *c, const Other &o, const NodeHistory &history) {
    const char *hint = nullptr;
    const char *nodes = o.has_same_layout ? say_nodes(*c, o, history, &hint)
                                          : "If that generator was the default, new ids can be equal to those.";
    const char *from = instant(core::start_of(c->config.layout, c->now));
    ereport(WARNING,
            (errmsg("generator \"%s\" starts at the clock, below ids of generator \"%s\"", get_rel_name(c->next),
                    get_rel_name(o.generator)),
             errdetail("From %s to %s, new ids do not sort after those. %s", from, instant(end_us_of(o)), nodes),
             hint != nullptr ? errhint("%s", hint) : 0));
    c->is_at_clock = true;
}

// Whether a generator that is not the former default has ids that the new one may issue, too. In another layout those
// of a generator that is no further ahead than it may be do not count: without a change of the clock, a default of one
// layout never begins among the ids of another one.
bool may_meet(const Other &o) {
    return o.has_same_layout || o.mark > core::tick_at(o.config.layout, wall_clock_us()) + o.config.policy.max_ahead;
}

// Has the new default start above ids of the generators that may have been the default before the former one. Where
// it cannot, it starts at the clock. No lock keeps them from drawing, since what they draw now is not the default's.
void start_beside_others(NewDefault *c, Oid former) {
    for_each_definition(core::DefinitionKind::generator, [&](Oid generator, const core::Definition &definition) {
        if (generator == former || generator == c->next)
            return;
        const Other o = read_other(*c, generator, generator_config_of(definition));
        if (o.largest >= 0 && may_start_above(c->config, o.largest))
            c->highest = Max(c->highest, o.largest);
        else if (o.largest >= 0 && may_meet(o))
            start_at_clock(c, o, node_history(c->schema, generator, c->config.layout));
    });
}

// The same for the former default, under its lock. Above it the new one must start, unless `above` is false.
// Returns the hint for the case that it cannot.
const char *start_beside_former(NewDefault *c, const Other &o, const NodeHistory &history, bool above) {
    if (o.largest < 0)
        return use_other_layout;
    if (above || may_start_above(c->config, o.largest))
        c->highest = Max(c->highest, o.largest);
    else if (!o.has_same_layout)
        report_cannot_start_below(*c, o, "Its layout is another one", ask_for_generator(o));
    else
        start_at_clock(c, o, history);
    return psprintf("A default must start above every id that the former one can have issued%s. To draw from this "
                    "generator in some tables only, pass it to uid_adopt().",
                    above && o.has_same_layout ? ", unless you pass above => false" : "");
}

// A lost generator may have been the default. The first draw looks for those, too, but this start outlives a restart.
void start_above_lost(NewDefault *c) {
    note_all_lost();
    const int64_t tick = find_tick_to_pass(c->next, c->config);
    if (tick >= c->now)
        c->highest = Max(c->highest, core::first_id_of(c->config.layout, tick + 1) - 1);
}

// At the clock it does not start below, even if that goes back once more before it draws.
void start(NewDefault *c, bool above, const char *hint) {
    if (c->is_at_clock)
        end_lease(c->next); // it draws another number (core/other_nodes.hpp, 3)
    if (c->is_at_clock || (!above && c->now < c->config.policy.end))
        c->highest = Max(c->highest, core::first_id_of(c->config.layout, Max(c->now, 0)) - 1);
    if (c->highest >= 0)
        raise_above_id(c->next, c->config, c->highest, hint);
}

// Returns the former default, which is `chosen` unless another session has dropped it meanwhile. Both are locked then,
// for as long as it takes to write.
Oid lock_and_start(Oid schema, Oid generator, Oid chosen, bool above) {
    lock_sequences({generator}, ShareUpdateExclusiveLock); // is not altered meanwhile, but drawn from
    const GeneratorConfig config = read_generator_config(generator);
    const auto now = [&config] { return core::tick_at(config.layout, wall_clock_us()); };
    NewDefault c = {schema, generator, config, now(), -1, false};
    start_beside_others(&c, chosen);
    NodeHistory history = {};
    if (OidIsValid(chosen) && !above) // before the lock, because it takes long where worker_node is long
        history = node_history(schema, chosen, config.layout);
    // Both at once: no session that draws from the former one waits for a transaction that draws from the new one.
    if (OidIsValid(chosen))
        lock_sequences({generator, chosen}, excludes_draws);
    lock_generator(generator);
    // Another session may have dropped it meanwhile.
    const bool is_there = read_definition(chosen, core::DefinitionKind::generator).generator.is_default != 0;
    c.now = now();
    start_above_lost(&c);
    const char *hint =
        is_there ? start_beside_former(&c, read_other(c, chosen, read_generator_config(chosen)), history, above)
                 : use_other_layout;
    start(&c, above, hint);
    return is_there ? chosen : InvalidOid;
}

} // namespace

UIDGEN_SQL_FUNCTION(uid_default_set) {
    const Oid generator = PG_GETARG_OID(0);
    const bool above = PG_GETARG_BOOL(1);
    const Oid schema = extension_schema();
    check_may_choose_default();
    read_generator_config(generator); // raises an error if it is no generator
    if (RecoveryInProgress())
        report_in_recovery();
    lock_choice_of_default(LockWaitBlock);       // one choice at a time
    const Oid chosen = find_default_generator(); // none if it was dropped
    if (chosen == generator)
        PG_RETURN_VOID();
    move_default(lock_and_start(schema, generator, chosen, above), generator);
    set_is_default(generator, true);
    PG_RETURN_VOID();
}

} // namespace uidgen::pg
