// uid_default_set(): chooses the generator behind uid_next().

#include "base/errors.hpp"
#include "base/time_source.hpp"
#include "session/define.hpp"
#include "session/slot_life.hpp"
#include "session/session.hpp"
#include "base/settings.hpp"
#include "memory/memberships.hpp"
#include "node/worker_node.hpp"
#include "config/rows.hpp"
#include "config/extension.hpp"
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

// The new default, and a generator that may have been the default before it, with ids ahead of the clock.
struct Change {
    Oid schema;
    Oid other;
    Oid next;
    GeneratorConfig other_config;
    GeneratorConfig config;
    int64_t mark;        // of the other one
    NodeHistory history; // of the other one, if it has the same layout
    int64_t now;         // the clock's tick in the layout of the new one
    int64_t highest;     // the new one starts above this id; -1: there is none
    bool is_at_clock;    // and at the clock, below ids of others
    const char *hint;    // if it cannot

    bool has_same_layout() const { return core::same_layout(other_config.layout, config.layout); }
};

core::NodesOf nodes_of(const GeneratorConfig &config) {
    return {node_source(config), config.worker_number, config.worker_policy == WorkerPolicy::sticky};
}

const char *show_tick(const core::Layout &layout, int64_t tick) {
    return pstrdup(timestamptz_to_str(to_timestamptz(core::start_of(layout, tick))));
}

int64_t end_of_other(const Change &c) { return core::tick_of_mark(c.other_config.policy, c.mark) + 1; }

const char *ask_for_node(const Change &c) {
    const bool has_workers = core::drawn_worker_bits(c.config.layout) > 0;
    return psprintf("Choose a %s id N that no id from %lld on has, and run SELECT uid_generator_alter(%s, %s => N).",
                    has_workers ? "worker" : "datacenter",
                    static_cast<long long>(core::first_id_of(c.config.layout, c.now)),
                    quote_literal_cstr(qualified_name(c.next)),
                    has_workers ? "worker_policy => 'static', worker_number" : "datacenter_id");
}

// Another generator that can take over from the other one.
const char *ask_for_generator(const Change &c) {
    const core::Layout &layout = c.other_config.layout;
    const SimilarGenerator similar =
        similar_generator(c.other, layout, core::start_of(layout, end_of_other(c)) - wall_clock_us());
    return psprintf("Use a generator %s: %s", similar.is_above ? "with an earlier epoch" : "of the same layout",
                    similar.statements);
}

[[noreturn]] void report_cannot_start_below(const Change &c, const char *why, const char *hint) {
    ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                    errmsg("generator \"%s\" cannot start below ids of generator \"%s\"", get_rel_name(c.next),
                           get_rel_name(c.other)),
                    errdetail("%s, so its ids could be equal to those.", why), errhint("%s", hint)));
}

// What is known of the nodes, as a sentence; error if they are known to be equal. `hint` stays null if nothing is left
// to do.
const char *say_nodes(const Change &c, const char **hint) {
    if (core::drawn_node_bits(c.config.layout) == 0)
        report_cannot_start_below(c, "The layout has no datacenter and worker bits", ask_for_generator(c));
    // The grants of the old ids may have ended, and the server does not remember when it joined the fleet.
    if (settings::is_preloaded && fleet_version() != 0) {
        *hint = ask_for_node(c);
        return "They are unique if this server was in its fleet when those were drawn, because the registry then "
               "grants another node.";
    }
    const NodeHistory &history = c.history;
    const core::Meeting meeting =
        core::judge_nodes({c.config.layout, nodes_of(c.other_config), nodes_of(c.config), history.rows, history.count,
                           history.rows_of_another, history.rows_of_elsewhere, last_node_id(c.schema)});
    if (meeting.is_met)
        report_cannot_start_below(c, "Both have the same datacenter and worker id", ask_for_node(c));
    if (meeting.left > 0)
        return psprintf("They are unique, because the next %lld worker ids to be drawn differ from theirs, unless "
                        "those had another uidgen.datacenter_id, the server was moved, or worker_node_id_seq was set "
                        "back since.",
                        static_cast<long long>(meeting.left));
    *hint = ask_for_node(c);
    return "They are unique if the worker ids differ, which is not known.";
}

// The new default begins at the clock, although ids of the other generator lie ahead of it.
void warn_of_clock(const Change &c) {
    const char *hint = nullptr;
    const char *nodes =
        c.has_same_layout() ? say_nodes(c, &hint) : "If that generator was the default, new ids can be equal to those.";
    ereport(WARNING, (errmsg("generator \"%s\" starts at the clock, below ids of generator \"%s\"",
                             get_rel_name(c.next), get_rel_name(c.other)),
                      errdetail("From %s to %s, new ids do not sort after those. %s", show_tick(c.config.layout, c.now),
                                show_tick(c.other_config.layout, end_of_other(c)), nodes),
                      hint != nullptr ? errhint("%s", hint) : 0));
}

constexpr char why_above[] = "A default must start above every id that the former one can have issued%s. To draw from "
                             "this generator in some tables only, pass it to uid_adopt().";

// Whether a generator that is not the former default has ids that the new one may issue, too. In another layout those
// of a generator that is no further ahead than it may be do not count: without a change of the clock, a default of one
// layout never begins among the ids of another one.
bool may_meet(const Change &c) {
    const int64_t now = core::tick_at(c.other_config.layout, wall_clock_us());
    return c.has_same_layout() || c.mark > now + c.other_config.policy.max_ahead;
}

void read_other(Change *c, Oid other, const GeneratorConfig &config) {
    c->other = other;
    c->other_config = config;
    c->mark = high_water_mark_of(other);
}

int64_t largest_of_other(const Change &c) {
    return core::largest_leased_id(c.other_config.layout, c.other_config.policy, c.mark);
}

void read_history(Change *c) {
    if (c->has_same_layout())
        c->history = node_history(c->schema, c->other, c->other_config.layout);
}

void start_at_clock(Change *c) {
    warn_of_clock(*c);
    c->is_at_clock = true;
}

// Has the new default start above ids of the generators that may have been the default before the former one. Where
// it cannot, it starts at the clock. No lock keeps them from drawing, since what they draw now is not the default's.
void start_beside_others(Change *c, Oid former) {
    for_each_definition(core::DefinitionKind::generator, [&](Oid other, const core::Definition &definition) {
        if (other == former || other == c->next)
            return;
        read_other(c, other, generator_config_of(definition));
        if (c->mark == core::no_lease_yet)
            return;
        const int64_t largest = largest_of_other(*c);
        if (may_start_above(c->config, largest)) {
            c->highest = Max(c->highest, largest);
        } else if (may_meet(*c)) {
            read_history(c);
            start_at_clock(c);
        }
    });
}

// The same for the former default, under its lock. Above it the new one must start, unless `above` is false.
void start_beside_former(Change *c, Oid former, bool above) {
    read_other(c, former, read_generator_config(former));
    if (c->mark == core::no_lease_yet)
        return;
    const int64_t largest = largest_of_other(*c);
    const bool same = c->has_same_layout();
    c->hint = psprintf(why_above, above && same ? ", unless you pass above => false" : "");
    if (above || may_start_above(c->config, largest)) {
        c->highest = Max(c->highest, largest);
        return;
    }
    if (!same)
        report_cannot_start_below(*c, "Its layout is another one", ask_for_generator(*c));
    start_at_clock(c);
}

// A lost generator may have been the default, and one with a mark looks for none at its first draw.
void start_above_lost(Change *c) {
    if (high_water_mark_of(c->next) == core::no_lease_yet)
        return;
    const int64_t tick = find_tick_to_pass(c->next, c->config);
    if (tick >= c->now)
        c->highest = Max(c->highest, core::first_id_of(c->config.layout, tick + 1) - 1);
}

// At the clock it does not start below, even if that goes back once more before it draws.
void start(Change *c, bool above) {
    if (c->is_at_clock)
        end_lease(c->next); // it draws another number (core/other_nodes.hpp, 3)
    if (c->is_at_clock || (!above && c->now < c->config.policy.end))
        c->highest = Max(c->highest, core::first_id_of(c->config.layout, Max(c->now, 0)) - 1);
    if (c->highest >= 0)
        raise_above_id(c->next, c->config, c->highest, c->hint);
}

// Returns the former default, which is `chosen` unless another session has dropped it meanwhile. Both are locked then,
// for as long as it takes to write.
Oid lock_and_start(Oid schema, Oid generator, Oid chosen, bool above) {
    lock_sequences({generator}, ShareUpdateExclusiveLock); // is not altered meanwhile, but drawn from
    Change c = {};
    c.schema = schema;
    c.next = generator;
    c.config = read_generator_config(generator);
    c.now = core::tick_at(c.config.layout, wall_clock_us());
    c.highest = -1;
    c.hint = use_other_layout;
    start_beside_others(&c, chosen);
    if (OidIsValid(chosen) && !above) { // before the lock, because it takes long where worker_node is long
        read_other(&c, chosen, read_generator_config(chosen));
        read_history(&c);
    }
    // Both at once: no session that draws from the former one waits for a transaction that draws from the new one.
    if (OidIsValid(chosen))
        lock_sequences({generator, chosen}, excludes_draws);
    lock_generator(generator);
    // Another session may have dropped it meanwhile.
    const bool is_there = read_definition(chosen, core::DefinitionKind::generator).generator.is_default != 0;
    const Oid former = is_there ? chosen : InvalidOid;
    c.now = core::tick_at(c.config.layout, wall_clock_us());
    start_above_lost(&c);
    if (OidIsValid(former))
        start_beside_former(&c, former, above);
    start(&c, above);
    return former;
}

} // namespace
} // namespace uidgen::pg

using namespace uidgen::pg;

extern "C" {

UIDGEN_SQL_FUNCTION(uid_default_set);

Datum uid_default_set(PG_FUNCTION_ARGS) {
    const Oid generator = PG_GETARG_OID(0);
    const bool above = PG_GETARG_BOOL(1);
    const Oid schema = extension_schema();
    check_may_choose_default();
    read_generator_config(generator); // raises an error if it is no generator
    if (RecoveryInProgress())
        report_in_recovery();
    lock_choice_of_default(true);                // one choice at a time
    const Oid chosen = find_default_generator(); // none if it was dropped
    if (chosen == generator)
        PG_RETURN_VOID();
    const Oid former = lock_and_start(schema, generator, chosen, above);
    if (OidIsValid(former))
        set_default(former, false);
    set_default(generator, true);
    note_default_moved(generator);
    note_default_changed();
    PG_RETURN_VOID();
}
}
