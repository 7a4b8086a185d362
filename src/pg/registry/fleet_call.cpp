// What members call on the registry. A request says hello, asks for a grant or extends it, or asks for a block of a
// segment. A call has all requests that wait at a server, and is one transaction.
//
// The requests are judged one after another, as if each were a call of its own, except for this:
//   1. What they all show of other registries and of lost commits is read before the first one gets anything.
//   2. One that is not valid is refused, and changes nothing for the others.
//   3. The registry answers as many as it can in the time for which a call may have its lock.

#include <utility>

#include "fleet_block.hpp"
#include "newcomer.hpp"

namespace uidgen::pg {
namespace {

// All of it runs under the registry's lock.

// ---------------------------------------------------------------------------------------------------------
// What a member shows. Functions named note... write it into the tables, and log it.
// ---------------------------------------------------------------------------------------------------------

// The registry closes itself, or to newcomers, and says at once who has shown it that there is another one.
void note_shown(Registry *registry, const FleetRequest &r) {
    FleetState &state = registry->state;
    const core::Term &shown = r.generator.seen.term;
    const bool is_later = shown.number > state.view.term.number;
    state.view.shown = shown;
    write_state(state);
    ereport(LOG,
            (is_later ? errmsg("registry no longer grants anything: %s:%s has shown it a later term", r.host, r.port)
                      : errmsg("registry accepts no newcomers: %s:%s has shown it that there is another registry",
                               r.host, r.port),
             errdetail("This registry is in term " INT64_FORMAT ", and that server has seen term " INT64_FORMAT "%s.",
                       state.view.term.number, shown.number, is_later ? "" : " of another one"),
             errhint("If another server is the registry, stop this one. Otherwise run SELECT uid_fleet_fence() "
                     "here.")));
}

bool was_ignored = false; // a term was, in this session

// Another registry may have another key, or the caller has invented the number. A login that shows one again and again
// is logged once. One that no clock has drawn is logged once in a session, which a member keeps.
void note_claim(Registry *registry, const Call &call) {
    core::RegistryView &view = registry->state.view;
    const FleetRequest &r = call.request;
    const int64_t number = r.generator.seen.term.number;
    const bool exists = core::is_claim(view, r.generator.seen.term);
    if (exists)
        view.claimed = Max(view.claimed, number);
    if (number <= view.term.number)
        return;
    const bool was_logged = exists ? !put_claim(view, call.login, number, r) : std::exchange(was_ignored, true);
    if (was_logged)
        return;
    ereport(LOG, (exists ? errmsg("registry accepts no newcomers: login \"%s\" shows a later term without a proof",
                                  call.login)
                         : errmsg("ignoring a term that login \"%s\" shows: it is over half a day ahead of the clock",
                                  call.login),
                  errdetail("The login says that it is on %s:%s. This registry is in term " INT64_FORMAT
                            ", and the login shows term " INT64_FORMAT ".",
                            r.host, r.port, view.term.number, number),
                  exists ? errhint("If another server is the registry, stop this one. Otherwise run SELECT "
                                   "uid_fleet_fence() here, or expel the login.")
                         : 0));
}

void note_member(Registry *registry, const FleetRequest &r) {
    FleetState &state = registry->state;
    const core::RegistryView before = state.view;
    if (r.generator.seen.fleet == state.view.fleet && core::is_news(state.view, r.generator.seen.term))
        note_shown(registry, r);
    if (state.view.serial_at_start != 0 && r.generator.incarnation != 0 && r.generator.seen.fleet == state.view.fleet &&
        core::ends_wait(r.layout, state.view, r.generator, state.view.serial_at_start)) {
        state.view.serial_at_start = 0;
        state.view = core::with_wait(state.view);
        write_state(state);
    }
    if (r.other.term != state.view.term) // else a copy of this one has said it
        state.view = core::told_of_other(state.view, r.other.granted_us);
    if (state.view.covered_us == before.covered_us)
        return;
    write_state(state);
    ereport(LOG, (errmsg("registry accepts no newcomers for %.0f s: another one has granted until %s",
                         seconds(core::fence_end_us(state.view) - state.view.now_us), instant(r.other.granted_us)),
                  errdetail("%s:%s has found it, in term " INT64_FORMAT ".", r.host, r.port, r.other.term.number)));
}

// ---------------------------------------------------------------------------------------------------------
// Whether the registry answers anyone.
// ---------------------------------------------------------------------------------------------------------

// One line in the log when it begins, and one when it ends.
void note_refusal(Registry *registry) {
    FleetState &state = registry->state;
    const core::Refusal why = reason_for_all(*registry);
    Call all = {};
    if (why == state.refuses)
        return;
    state.refuses = why;
    write_state(state);
    if (refuse_if_judged(*registry, &all, why))
        ereport(LOG, (errmsg("registry refuses all members: %s", all.answer.message),
                      registry->unclaimed != nullptr ? errdetail("It differs: %s.", registry->unclaimed) : 0,
                      errhint("%s", all.answer.hint)));
    else
        ereport(LOG, (errmsg("registry answers its members again")));
}

// ---------------------------------------------------------------------------------------------------------
// A generator.
// ---------------------------------------------------------------------------------------------------------

// Both draw the same ids there, unless one of them has ended.
void log_collision(const Registry &registry, const Call &call, const NodeRecord &known) {
    const FleetRequest &r = call.request;
    const core::Grant &shown = r.generator.held;
    const int64_t from = Max(shown.from, known.row.from);
    const int64_t until = Min(shown.until, known.row.until);
    if (!r.generator.holds || known.row.membership == 0 || known.row.membership == shown.membership || from >= until ||
        shown.seal != seal_of_grant(registry.state, r.layout, shown)) // it may be invented
        return;
    const auto time_of = [&r](int64_t tick) { return instant(core::start_of(r.layout, tick)); };
    ereport(LOG, (errmsg("two generators hold node " INT64_FORMAT " of pool %d from %s to %s", shown.node, known.pool,
                         time_of(from), time_of(until)),
                  errdetail(
                      "They are \"%s\" in database \"%s\" on %s:%s with login \"%s\", and \"%s\" in database \"%s\" on "
                      "%s:%s with login \"%s\".",
                      r.name, r.database, r.host, r.port, call.login, known.generator, known.database, known.host,
                      known.port, known.login),
                  errhint("Compare the ids that both have issued in that time.")));
}

// By the rows that core::decide() describes. Also logs it if another member holds the node.
core::Ruling judge(const Registry &registry, const Call &call) {
    const FleetRequest &r = call.request;
    const core::Request &g = r.generator;
    NodeRecord held = {};
    NodeRecord missed = {};
    if (g.holds)
        (void)read_node(call.pool, g.held.node, &held);
    (void)read_node_of_incarnation(call.pool, g.incarnation, g.holds ? g.held.node : no_node, &missed);
    log_collision(registry, call, held);
    if (fault_is("late_asks"))
        held.row.incarnation = g.incarnation;
    if (fault_is("extend_ended"))
        held.row.until = Max(held.row.until, core::tick_at(r.layout, registry.state.view.now_us) + 1);
    return core::decide(r.layout, registry.state.view, g, held.row, missed.row);
}

// The statement has all of the layout, because a member may have replaced any field of its preset. By position it fits
// the message of a member.
void refuse_equal_ids(Call *call, const core::Layout &of_pool) {
    const FleetRequest &r = call->request;
    const core::Layout &l = of_pool;
    const char *preset = strcmp(r.preset, "custom") == 0 ? "snowflake" : r.preset;
    refuse(call, r.layout.epoch_us == l.epoch_us ? core::Refusal::split_differs : core::Refusal::epoch_differs, nullptr,
           psprintf("Drop it, and run SELECT uid_generator_create('name', %s, NULL, %s, " INT64_FORMAT
                    ", %d, %d, %d, %d, %s, %s). Or pass own_pool => true (docs/fleet.md).",
                    quote_literal_cstr(preset), quote_literal_cstr(instant(l.epoch_us)), l.tick_us, l.time_bits,
                    l.datacenter_bits, l.worker_bits, l.sequence_bits, l.sequence_first ? "true" : "false",
                    l.backup ? "true" : "false"));
}

// Of a layout that is new to the fleet. What is refused makes no pool, because a pool stays.
void make_pool(const Registry &registry, Call *call) {
    const FleetRequest &r = call->request;
    core::Layout other;
    if (!r.own_pool && !fault_is("any_epoch") && find_pool_with_equal_ids(r.layout, r.preset, &other))
        return refuse_equal_ids(call, other);
    if (refuse_if_judged(registry, call, core::judge(r.layout, registry.state.view, r.generator, {}).why))
        return;
    call->pool = insert_pool(r.layout, r.preset, call->login);
    if (call->pool == no_pool)
        refuse(call, core::Refusal::too_many_layouts);
}

// Grants, or refuses; it may make a pool. What is wrong is found before anything is written.
void answer_generator(const Registry &registry, const Call **full, Call *call) {
    const FleetRequest &r = call->request;
    const core::RegistryView &view = registry.state.view;
    const bool joins = r.former_node != no_node && !r.generator.holds && !fault_is("hide_use");
    if (joins && core::claims_too_much(r.layout, view, r.generator, r.former_until)) {
        (void)refuse_if_judged(registry, call, core::Refusal::ahead);
        return;
    }
    call->pool = find_pool(r.layout, DroppedPool::is_ignored);
    if (call->pool == no_pool)
        make_pool(registry, call);
    if (call->pool == no_pool)
        return;
    if (joins)
        note_use_before(registry, *call);
    const core::Ruling ruling = judge(registry, *call);
    if (ruling.judgement.verdict == core::Verdict::extend)
        grant(registry, call, core::extended(r.layout, view, ruling.request, ruling.row));
    else if (ruling.judgement.verdict == core::Verdict::newcomer)
        admit_newcomer(registry, full, call);
    else
        (void)refuse_if_judged(registry, call, ruling.judgement.why);
}

// ---------------------------------------------------------------------------------------------------------
// The answer.
// ---------------------------------------------------------------------------------------------------------

void complete(const Registry &registry, const FleetRequest &request, FleetAnswer *answer) {
    const FleetState &state = registry.state;
    const core::RegistryView &view = state.view;
    const int64_t serial = core::answered_serial(view);
    answer->given.fleet = view.fleet;
    answer->given.grant.term = view.term;
    answer->given.grant.serial = serial;
    answer->given.seal = seal_of_number(state, "stamp", view.term, serial);
    answer->clock_us = view.now_us;
    // Another server, or this one after a start, has another one. Nobody learns the salt.
    answer->server = static_cast<uint64_t>(
        seal_of_number(state, "server", {MyDatabaseId, 0}, static_cast<int64_t>(server_state->salt)));
    answer->is_open = state.refuses == core::Refusal::none;
    answer->awaits_member = view.awaits_member;
    answer->longest_us = view.longest_us;
    // If it grants nothing, a hello asks when it granted last.
    const bool is_over = core::is_closed(registry.state.view) || view.shown.number > view.term.number ||
                         state.refuses == core::Refusal::no_standby;
    const int64_t last_us = is_hello(request) && is_over ? read_latest_grants(view).last_us : 0;
    answer->granted_last = {last_us, {}, seal_of_number(state, "last", view.term, last_us)};
}

// ---------------------------------------------------------------------------------------------------------
// A call.
// ---------------------------------------------------------------------------------------------------------

bool shows_lost_commits(const Registry &registry, const Call &call) {
    const FleetRequest &r = call.request;
    const core::Request &g = r.generator;
    NodeRecord held = {};
    if (g.incarnation == 0)
        return core::shows_lost_answer(registry.state.view, g.seen);
    if (g.holds)
        (void)read_node(find_pool(r.layout, DroppedPool::counts), g.held.node, &held);
    return core::judge(r.layout, registry.state.view, g, held.row).verdict == core::Verdict::fence;
}

void refuse_unproven(Call *call) {
    const FleetRequest &request = call->request;
    ereport(LOG, (errmsg("login \"%s\" presented a proof that this registry did not issue", call->login),
                  errdetail("The login says that it is on %s:%s.", request.host, request.port),
                  errhint("If the key of the registry was changed, run SELECT uid_fleet_move() on the member.")));
    refuse(call, core::Refusal::unproven);
}

// What a request shows counts before anything is granted, whatever its place in the call.
void note_evidence(Registry *registry, Call *call) {
    FleetRequest &r = call->request;
    const core::RegistryView &view = registry->state.view;
    const core::FleetSeen &seen = r.generator.seen;
    if (fault_is("any_fleet") && seen.fleet != 0)
        registry->state.view.fleet = seen.fleet;
    if (seen.fleet != 0 && seen.fleet != view.fleet)
        return;
    if (seen.fleet != 0 && registry->unclaimed == nullptr && !is_stamp_proven(registry->state, r))
        note_claim(registry, *call);
    if (!keep_what_is_proven(registry->state, call))
        refuse_unproven(call);
    else if (registry->unclaimed == nullptr)
        note_member(registry, r);
}

void note_all_evidence(Registry *registry, const Calls &calls) {
    const auto end = calls.calls + calls.count;
    for (Call *call = calls.calls; call < end; call++)
        if (!is_refused(*call))
            note_evidence(registry, call);
    note_refusal(registry);
    for (const Call *call = calls.calls; call < end && registry->state.refuses == core::Refusal::none; call++)
        if (!is_refused(*call) && shows_lost_commits(*registry, *call)) {
            draw_term(registry, Commits::may_be_lost, "a member has shown an answer that this registry has lost");
            return;
        }
}

void answer(const Registry &registry, const Call **full, Call *call) {
    const FleetRequest &r = call->request;
    const core::RegistryView &view = registry.state.view;
    if (is_refused(*call) || refuse_if_judged(registry, call, registry.state.refuses) ||
        refuse_if_judged(registry, call, core::judge_server(view, r.generator.seen)))
        return;
    if (r.generator.incarnation != 0)
        answer_generator(registry, full, call);
    else if (r.segment != nullptr && (r.count == 0 || !refuse_if_judged(registry, call, core::judge_rivals(view))))
        give_block(call);
}

// Other members wait for the lock meanwhile, and give up after four seconds.
constexpr int64_t longest_lock_us = 100 * us_per_ms;

} // namespace

// As many as there is time for, and at least one. The member asks for the others again.
const bytea *answer_calls(Registry *registry, const Calls &calls) {
    StringInfoData answers;
    const Call *full = nullptr;
    const int64_t began_us = monotonic_us();
    initStringInfo(&answers);
    note_all_evidence(registry, calls);
    for (int i = 0; i < calls.count && (i == 0 || monotonic_us() - began_us < longest_lock_us); i++) {
        Call *call = &calls.calls[i];
        if (i > 0)
            registry->state.view.own_serial = draw_serial();
        answer(*registry, &full, call);
        complete(*registry, call->request, &call->answer);
        append_row(&answers, answer_fields, &call->answer);
    }
    return cstring_to_text_with_len(answers.data, answers.len); // a text is the same
}

} // namespace uidgen::pg
