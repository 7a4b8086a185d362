// uid_fleet_call(): what members call on the registry. One call says hello, asks for a grant or extends it, or asks for
// a block of a segment.

#include "base/settings.hpp"
#include "base/time_source.hpp"
#include "fleet_call.hpp"

namespace uidgen::pg {
namespace {

// ---------------------------------------------------------------------------------------------------------
// What a member shows.
// ---------------------------------------------------------------------------------------------------------

// The registry closes itself, or to newcomers, and says at once who has shown it that there is another one.
void note_shown(Registry *registry, const FleetRequest &r) {
    FleetState &state = registry->state;
    const core::Term &shown = r.generator.seen.term;
    const bool is_later = shown.number > state.view.term.number;
    state.view.shown = shown;
    write_state(state);
    ereport(LOG,
            (is_later ? errmsg("registry grants nothing any more: %s:%s has shown it a later term", r.host, r.port)
                      : errmsg("registry accepts no newcomers: %s:%s has shown it that there is another registry",
                               r.host, r.port),
             errdetail("This registry is in term " INT64_FORMAT ", and that server has seen term " INT64_FORMAT "%s.",
                       state.view.term.number, shown.number, is_later ? "" : " of another one"),
             errhint("If another server is the registry, stop this one. Otherwise run SELECT uid_fleet_fence() "
                     "here.")));
}

void note_member(Registry *registry, const FleetRequest &r) {
    FleetState &state = registry->state;
    const core::RegistryView before = state.view;
    if (r.generator.seen.fleet == state.view.fleet && core::is_news(state.view, r.generator.seen.term))
        note_shown(registry, r);
    if (state.serial_at_start != 0 && r.generator.seen.fleet == state.view.fleet &&
        core::judge_server(state.view, r.generator.seen) == core::Refusal::none &&
        core::is_from_before(state.view, r.generator.seen, state.serial_at_start)) {
        state.serial_at_start = 0;
        state.view.awaits_member = false;
        write_state(state);
    }
    if (r.other.term != state.view.term) // else this one has said it, before a handover was canceled
        state.view = core::told_of_other(state.view, r.other.granted_us);
    if (state.view.covered_us == before.covered_us)
        return;
    write_state(state);
    ereport(LOG, (errmsg("registry accepts no newcomers for %.0f s: another one has granted until %s",
                         static_cast<double>(core::fence_end_us(state.view) - state.view.now_us) / 1e6,
                         show_time(r.other.granted_us)),
                  errdetail("%s:%s has found it, in term " INT64_FORMAT ".", r.host, r.port, r.other.term.number)));
}

// ---------------------------------------------------------------------------------------------------------
// Whether the registry answers anyone.
// ---------------------------------------------------------------------------------------------------------

// One line in the log when it begins, and one when it ends.
void note_refusal(Registry *registry, const FleetAnswer &answer) {
    FleetState &state = registry->state;
    const char *why = answer.refusal;
    if ((why == nullptr) == (state.refuses == nullptr) && (why == nullptr || strcmp(why, state.refuses) == 0))
        return;
    state.refuses = why;
    write_state(state);
    if (why == nullptr)
        ereport(LOG, (errmsg("registry answers its members again")));
    else
        ereport(LOG, (errmsg("registry refuses all members: %s", answer.message),
                      registry->unclaimed != nullptr ? errdetail("It differs: %s.", registry->unclaimed) : 0,
                      errhint("%s", answer.hint)));
}

// ---------------------------------------------------------------------------------------------------------
// A generator.
// ---------------------------------------------------------------------------------------------------------

void grant(const Registry &registry, int32_t pool, Call *call, const core::NodeRow &row) {
    core::Grant *given = &call->answer.given.grant;
    *given = {row.node, row.from, row.until, row.membership, row.term, row.serial};
    given->seal = seal_of_grant(registry.state, call->request.layout, *given);
    put_member(registry, pool, *call, row);
}

bool refuse_newcomer(const Registry &registry, int32_t pool, Call *call) {
    const FleetRequest &r = call->request;
    NodeRecord node;
    if (exceeds_quota(registry, pool, *call))
        return refuse_quota(call);
    if (!find_node(registry, pool, *call, &node))
        return call->policy == WorkerPolicy::fixed ? refuse_taken(call, node) : refuse_none_free(pool, call);
    grant(registry, pool, call, core::granted(r.layout, registry.state.view, r.generator, node.row));
    return false;
}

// The member drew with a node before it joined the fleet. The node is one of its login's until then, because anyone can
// say so.
void note_use_before(const Registry &registry, int32_t pool, const Call &call) {
    const FleetRequest &r = call.request;
    NodeRecord known;
    if (exceeds_quota(registry, pool, call))
        return;
    (void)read_node(pool, r.former_node, &known);
    const int64_t until = known.row.until;
    known.row = core::used_before(r.layout, registry.state.view, r.generator, known.row, r.former_until);
    known.login = call.login;
    if (known.row.until != until)
        put_node(known);
}

// What a member is judged by, as core::decide() describes it.
struct Case {
    NodeRecord held;
    NodeRecord missed;
    core::Ruling ruling;
};

void judge(const Registry &registry, int32_t pool, const FleetRequest &r, Case *c) {
    const core::Request &g = r.generator;
    const bool has_held = g.holds && read_node(pool, g.held.node, &c->held);
    const int64_t but_node = g.holds ? g.held.node : no_node;
    const bool has_missed =
        read_node_of_incarnation(pool, g.incarnation, but_node, &c->missed) && core::is_missed(g, c->missed.row);
    if (fault_is(Fault::late_asks))
        c->held.row.incarnation = g.incarnation;
    c->ruling = core::decide(r.layout, registry.state.view, g, has_held ? &c->held.row : nullptr,
                             has_missed ? &c->missed.row : nullptr);
}

// Both draw the same ids there, unless one of them has ended.
void log_collision(const Call &call, const NodeRecord &known) {
    const FleetRequest &r = call.request;
    const core::Grant &shown = r.generator.held;
    const int64_t from = Max(shown.from, known.row.from);
    const int64_t until = Min(shown.until, known.row.until);
    if (!r.generator.holds || call.claims_unseen || known.row.membership == 0 ||
        known.row.membership == shown.membership || from >= until)
        return;
    const auto time_of = [&r](int64_t tick) { return show_time(core::start_of(r.layout, tick)); };
    ereport(LOG, (errmsg("two generators hold node " INT64_FORMAT " of pool %d from %s to %s", shown.node, known.pool,
                         time_of(from), time_of(until)),
                  errdetail(
                      "They are \"%s\" in database \"%s\" on %s:%s with login \"%s\", and \"%s\" in database \"%s\" on "
                      "%s:%s with login \"%s\".",
                      r.name, r.database, r.host, r.port, call.login, known.generator, known.database, known.host,
                      known.port, known.login),
                  errhint("Compare the ids that both have issued in that time.")));
}

bool refuse_generator(Registry *registry, int32_t pool, Call *call) {
    const FleetRequest &r = call->request;
    const bool joins = r.former_node != no_node && !r.generator.holds && !fault_is(Fault::hide_use);
    if (joins && core::claims_too_much(r.layout, registry->state.view, r.generator, r.former_until))
        return refuse_judged(*registry, call, core::Refusal::ahead);
    Case c = {};
    judge(*registry, pool, r, &c);
    log_collision(*call, c.held);
    if (c.ruling.judgement.verdict == core::Verdict::fence) {
        draw_term(registry, true, "a member has shown an answer that this registry has lost");
        judge(*registry, pool, r, &c);
    }
    if (joins) {
        note_use_before(*registry, pool, *call);
        judge(*registry, pool, r, &c);
    }
    switch (c.ruling.judgement.verdict) {
    case core::Verdict::extend:
        grant(*registry, pool, call, core::extended(r.layout, registry->state.view, c.ruling.request, c.ruling.row));
        return false;
    case core::Verdict::newcomer:
        return refuse_newcomer(*registry, pool, call);
    default:
        return refuse_judged(*registry, call, c.ruling.judgement.why);
    }
}

// A layout that is not in use costs a row for good, so a login cannot make any number of them.
constexpr int64_t most_pools = 1000;

// Of a layout that is new to the fleet. What is refused makes no pool, because a pool stays.
bool refuse_pool(const Registry &registry, Call *call) {
    const FleetRequest &r = call->request;
    const int64_t epoch_us = other_epoch(r.layout, r.preset);
    if (epoch_us >= 0)
        return refuse_epoch(call, epoch_us);
    return refuse_judged(registry, call, core::judge(r.layout, registry.state.view, r.generator, nullptr).why) ||
           (count_pools(call->login) >= most_pools && refuse_judged(registry, call, core::Refusal::too_many_layouts));
}

void answer_generator(Registry *registry, Call *call) {
    int32_t pool = find_pool(call->request.layout);
    if (pool == no_pool) {
        if (refuse_pool(*registry, call))
            return;
        pool = insert_pool(call->request.layout, call->request.preset, call->login);
    }
    (void)refuse_generator(registry, pool, call);
}

// ---------------------------------------------------------------------------------------------------------
// The answer.
// ---------------------------------------------------------------------------------------------------------

// Another server, or this one after a start, has another number.
uint64_t number_of_server() {
    const uint64_t parts[] = {GetSystemIdentifier(), static_cast<uint64_t>(PgStartTime),
                              static_cast<uint64_t>(PostmasterPid), static_cast<uint64_t>(MyDatabaseId)};
    return hash_bytes_extended(reinterpret_cast<const unsigned char *>(parts), sizeof(parts), 0) >> 1 | 1;
}

void complete(const Registry &registry, const FleetRequest &request, FleetAnswer *answer) {
    const FleetState &state = registry.state;
    const core::RegistryView &view = state.view;
    answer->given.fleet = view.fleet;
    answer->given.grant.term = view.term;
    answer->given.grant.serial = view.own_serial;
    answer->given.seal = seal_of_number(state, "stamp", view.term, view.own_serial);
    answer->clock_us = view.now_us;
    answer->server = number_of_server();
    answer->is_open = registry.unclaimed == nullptr && state.refuses == nullptr;
    // If it grants nothing any more, a hello asks when it granted last.
    const bool is_hello = request.generator.incarnation == 0 && request.segment == nullptr;
    const bool is_over = is_closed(registry) || view.shown.number > view.term.number;
    const int64_t last_us = is_hello && is_over ? read_latest_grants(view).last_us : 0;
    answer->granted_last = {last_us, {}, seal_of_number(state, "last", view.term, last_us)};
}

void answer_call(Registry *registry, const SegmentOfCall &segment, Call *call) {
    FleetRequest &r = call->request;
    if (fault_is(Fault::any_fleet) && r.generator.seen.fleet != 0)
        registry->state.view.fleet = r.generator.seen.fleet;
    const bool is_known = r.generator.seen.fleet == 0 || r.generator.seen.fleet == registry->state.view.fleet;
    if (is_known && !is_proven(registry->state, call)) {
        (void)refuse_unproven(call);
        return;
    }
    if (is_known && registry->unclaimed == nullptr)
        note_member(registry, r);
    const core::RegistryView &view = registry->state.view;
    const bool refused = refuse_judged(*registry, call, refuses_all(*registry));
    note_refusal(registry, call->answer);
    if (refused || refuse_judged(*registry, call, core::judge_server(view, r.generator.seen)))
        return;
    if (r.generator.incarnation != 0)
        answer_generator(registry, call);
    else if (r.segment != nullptr && r.count > 0 && view.shown.number != 0) // its rival may give the same values
        (void)refuse_judged(*registry, call, core::Refusal::rival);
    else if (r.segment != nullptr)
        (void)refuse_segment(*registry, segment, call);
}

// A role that was expelled while its transaction was open has passed PostgreSQL's check, which reads what is cached.
// The lock has brought the cache up to date.
void check_admitted(const Registry &registry, Oid procedure) {
    if (procedure_aclcheck(procedure, registry.role) != ACLCHECK_OK)
        aclcheck_error(ACLCHECK_NO_PRIV, OBJECT_PROCEDURE, "uid_fleet_call");
}

Datum result_of(const Registry &registry, FunctionCallInfo fcinfo, const FleetAnswer &answer) {
    TupleDesc desc;
    MemoryContext working = MemoryContextSwitchTo(registry.caller);
    if (get_call_result_type(fcinfo, nullptr, &desc) != TYPEFUNC_COMPOSITE || desc->natts != 1)
        elog(ERROR, "uid_fleet_call must return one column");
    TupleDesc of_answer = lookup_rowtype_tupdesc(TupleDescAttr(desc, 0)->atttypid, -1);
    Datum value = heap_copy_tuple_as_datum(form_fields(answer_fields, &answer, of_answer), of_answer);
    bool is_null = false;
    ReleaseTupleDesc(of_answer);
    const Datum row = HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(desc), &value, &is_null));
    MemoryContextSwitchTo(working);
    return row;
}

} // namespace
} // namespace uidgen::pg

using namespace uidgen::pg;

extern "C" {

UIDGEN_SQL_FUNCTION(uid_fleet_call);

Datum uid_fleet_call(PG_FUNCTION_ARGS) {
    Registry registry;
    auto *call = static_cast<Call *>(palloc0(sizeof(Call)));
    read_call(fcinfo, call);
    clear_fields(answer_fields, &call->answer);
    open_registry(&registry, fcinfo);
    const SegmentOfCall segment = open_segment(registry, call->request);
    enter_registry(&registry);
    check_admitted(registry, fcinfo->flinfo->fn_oid);
    call->login = GetUserNameFromId(registry.role, false);
    answer_call(&registry, segment, call);
    complete(registry, call->request, &call->answer);
    const Datum result = result_of(registry, fcinfo, call->answer);
    commit_registry(&registry);
    return result;
}
}
