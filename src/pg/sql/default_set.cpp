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
#include "generator/draw.hpp"

namespace uidgen::pg {
namespace {

void check_may_choose_default() {
    if (!has_privs_of_role(GetUserId(), find_extension().owner) &&
        !has_privs_of_role(GetUserId(), ROLE_PG_DATABASE_OWNER))
        ereport(ERROR,
                (errcode(ERRCODE_INSUFFICIENT_PRIVILEGE), errmsg("permission denied to choose the default generator"),
                 errdetail("Only the owner of the database or of the extension may choose it.")));
}

void set_default(Oid generator, bool is_default) {
    const core::Definition former = lock_definition(generator, core::DefinitionKind::generator);
    core::Definition next = former;
    next.generator.is_default = is_default ? 1 : 0;
    redefine(generator, former, next);
}

// The new default, and a generator that may have been the default before it, with ids ahead of the clock.
struct Change {
    Oid schema;
    Oid other;
    Oid next;
    GeneratorConfig other_config;
    GeneratorConfig config;
    int64_t mark; // of the other one
    int64_t now;  // the clock's tick in the layout of the new one

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
    if (settings::is_preloaded && fleet_epoch() != 0) {
        *hint = ask_for_node(c);
        return "They are unique if this server was in its fleet when those were drawn, because the registry then "
               "grants another node.";
    }
    const NodeHistory history = node_history(c.schema, c.other, c.other_config.layout);
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
void begin_at_clock(const Change &c) {
    const char *hint = nullptr;
    const char *nodes =
        c.has_same_layout() ? say_nodes(c, &hint) : "If that generator was the default, new ids can be equal to those.";
    end_lease(c.next); // it draws another number (core/other_nodes.hpp, 3)
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

// Has the new default start above the ids of all generators, because any of them may have been the default. Where it
// cannot, it starts at the clock: not below, even if the clock goes back once more before it draws. Above the former
// default it must start, unless `above` is false. raise_above_id() says it if lost generators are further ahead.
void start_beside_others(Oid schema, Oid former, Oid generator, bool above) {
    Change c = {schema, InvalidOid, generator, {}, read_generator_config(generator), 0, 0};
    c.now = core::tick_at(c.config.layout, wall_clock_us());
    const int64_t below_clock = core::first_id_of(c.config.layout, Max(c.now, 0)) - 1;
    int64_t highest = above || c.now >= c.config.policy.end ? -1 : below_clock;
    const char *hint = use_other_layout;
    for_each_definition(core::DefinitionKind::generator, [&](Oid other, const core::Definition &definition) {
        c.other = other;
        c.other_config = generator_config_of(definition);
        c.mark = c.other == generator ? core::no_lease_yet : high_water_mark_of(c.other);
        if (c.mark == core::no_lease_yet)
            return;
        const int64_t largest = core::largest_leased_id(c.other_config.layout, c.other_config.policy, c.mark);
        const bool is_former = c.other == former;
        if (is_former)
            hint = psprintf(why_above, above && c.has_same_layout() ? ", unless you pass above => false" : "");
        if ((is_former && above) || may_start_above(c.config, largest)) {
            highest = Max(highest, largest);
            return;
        }
        if (is_former && !c.has_same_layout())
            report_cannot_start_below(c, "Its layout is another one", ask_for_generator(c));
        if (is_former || may_meet(c)) {
            begin_at_clock(c);
            highest = Max(highest, below_clock);
        }
    });
    if (highest >= 0)
        raise_above_id(generator, c.config, highest, hint);
}

} // namespace
} // namespace uidgen::pg

using namespace uidgen::pg;

extern "C" {

UIDGEN_SQL_FUNCTION(uid_default_set);

Datum uid_default_set(PG_FUNCTION_ARGS) {
    const Oid generator = PG_GETARG_OID(0);
    const Oid schema = extension_schema();
    check_may_choose_default();
    read_generator_config(generator); // raises an error if it is no generator
    if (RecoveryInProgress())
        report_in_recovery();
    lock_choice_of_default(true);                // one choice at a time
    const Oid chosen = find_default_generator(); // none if it was dropped
    if (chosen == generator)
        PG_RETURN_VOID();
    // Both at once: no session that draws from the former one waits for a transaction that draws from the new one.
    if (OidIsValid(chosen))
        lock_sequences({generator, chosen}, excludes_draws);
    lock_generator(generator);
    const Oid former = find_default_generator(); // another session may have dropped it meanwhile
    start_beside_others(schema, former, generator, PG_GETARG_BOOL(1));
    if (OidIsValid(former))
        set_default(former, false);
    set_default(generator, true);
    write_as_owner(required_table(get_namespace_oid("uid_internal", false), "uid_no_default"), "DELETE FROM %1$s", 0,
                   nullptr, nullptr);
    note_default_changed();
    PG_RETURN_VOID();
}
}
