// uid_fleet_call(): what members call on the registry. One call asks for a grant, extends it, or is refused.

#include "base/faults.hpp"
#include "base/settings.hpp"
#include "base/time_source.hpp"
#include "fleet_arguments.hpp"
#include "fleet_reply.hpp"
#include "memory/memberships.hpp"

namespace uidgen::pg {
namespace {

// ---------------------------------------------------------------------------------------------------------
// The answer.
// ---------------------------------------------------------------------------------------------------------

// Whether the generators of this server draw in another fleet. Its own ids then may be equal to those of this fleet.
bool is_in_other_fleet(const Registry *registry) {
    if (fleet_epoch() == 0)
        return false;
    const uint64_t fleet = fleet_seen().fleet;
    return fleet != 0 && fleet != registry->state.view.fleet;
}

struct Exchange {
    Call *call;
    Reply reply;
    int32_t pool;
};

void warn_of_clock(const Registry *registry, const Call &call, const NodeRecord *before) {
    const int64_t bound_us = registry->state.view.bound_us;
    const auto is_off = [bound_us](const Holder &h) { return Max(h.clock_offset_us, -h.clock_offset_us) > bound_us; };
    if (is_off(call.holder) && (before == nullptr || !is_off(before->holder)))
        ereport(LOG,
                (errmsg("clock of %s:%s differs from the registry's by %.3f s", call.holder.host, call.holder.port,
                        static_cast<double>(call.holder.clock_offset_us) / 1e6),
                 errdetail("The limit is uidgen.registry_clock_bound, %.3f s.", static_cast<double>(bound_us) / 1e6)));
}

Holder holder_of(const Call &call) {
    Holder holder = call.holder;
    holder.asked_length = call.ask.length;
    return holder;
}

// False: another session has changed the row.
bool extend(const Registry *registry, const Exchange &e, const core::Ask &ask, const NodeRecord *before,
            core::NodeRow *row) {
    const Call &call = *e.call;
    const core::RegistryView &view = registry->state.view;
    *row = core::extended(call.layout, view, ask, before == nullptr ? nullptr : &before->row);
    const NodeRecord after = {*row, false, holder_of(call)};
    const bool written =
        before == nullptr ? insert_node(e.pool, after, view.now_us) : update_node(e.pool, *before, after, view.now_us);
    if (written)
        warn_of_clock(registry, call, before);
    return written;
}

Reply admit_newcomer(Registry *registry, const Exchange &e) {
    NodeRecord granted;
    const Call &call = *e.call;
    if (!grant_node(registry, e.pool, call, &granted))
        return {call.policy == WorkerPolicy::fixed ? refuse_taken(registry, call, granted)
                                                   : refuse_none_free(registry, e.pool, call),
                {}};
    warn_of_clock(registry, call, nullptr);
    return {{}, granted.row};
}

// The node of an answer that the asker missed.
bool read_missed(const Exchange &e, const core::Ask &ask, NodeRecord *record) {
    const int64_t but_node = ask.holds ? ask.held.node : no_node;
    return read_node_of_incarnation(e.pool, ask.incarnation, but_node, record) && core::is_missed(ask, record->row);
}

// What an asker is judged by: the row that it may keep, if there is one, and the ask as it is judged against that.
struct Case {
    core::Ask ask;
    bool has_row;
    NodeRecord record;
    core::Judgement judgement;
};

void judge_against(const Registry *registry, const Exchange &e, Case *c) {
    core::NodeRow row = c->record.row;
    if (fault_is(Fault::late_asks))
        row.incarnation = c->ask.incarnation;
    c->judgement = core::judge(e.call->layout, registry->state.view, c->ask, c->has_row ? &row : nullptr);
}

// As core::judge() describes it.
Case judge_call(const Registry *registry, const Exchange &e) {
    Case c = {e.call->ask, false, {}, {}};
    NodeRecord missed;
    c.has_row = c.ask.holds ? read_node(e.pool, c.ask.held.node, &c.record) : read_missed(e, c.ask, &c.record);
    judge_against(registry, e, &c);
    if (c.ask.holds && c.judgement.verdict == core::Verdict::newcomer && read_missed(e, c.ask, &missed)) {
        c = {core::without_held(c.ask), true, missed, {}};
        judge_against(registry, e, &c);
    }
    return c;
}

// The asker drew with a node before it joined the fleet.
void note_use_before(const Registry *registry, const Exchange &e) {
    const Call &call = *e.call;
    for (;;) {
        NodeRecord known = {};
        if (!read_node(e.pool, call.former_node, &known))
            known.row.node = call.former_node;
        const core::NodeRow after =
            core::used_before(call.layout, registry->state.view, call.ask, known.row, call.former_until);
        if (after.until == known.row.until || write_use_before(e.pool, known.row, after))
            return;
        CHECK_FOR_INTERRUPTS();
    }
}

// The view shows the clock of a holder that is refused. It is logged once, because the row remembers it.
void note_refused(const Registry *registry, const Exchange &e, const Case &c) {
    const bool is_holder = c.has_row && (!c.ask.holds || c.record.row.line == c.ask.held.line);
    if (!is_holder || (c.judgement.why != core::Refusal::ahead && c.judgement.why != core::Refusal::fenced))
        return;
    warn_of_clock(registry, *e.call, &c.record);
    write_clock_offset(e.pool, c.record.row.node, e.call->holder.clock_offset_us, registry->state.view.now_us);
}

// False: the call needs the exclusive lock, and has written nothing.
bool answer_in_pool(Registry *registry, Exchange *e) {
    const Call &call = *e->call;
    bool joins = call.former_node != no_node && !fault_is(Fault::hide_use);
    if (joins && core::claims_too_much(call.layout, registry->state.view, call.ask, call.former_until)) {
        e->reply.refusal = refuse_judged(registry, call, core::Refusal::ahead);
        return true;
    }
    for (;;) {
        const Case c = judge_call(registry, *e);
        if (c.judgement.verdict == core::Verdict::fence) {
            if (!registry->exclusive)
                return false;
            raise_fence(registry, "a member has shown an answer that this registry has lost");
        } else if (joins) {
            note_use_before(registry, *e);
            joins = false;
        } else if (c.judgement.verdict == core::Verdict::refuse) {
            note_refused(registry, *e, c);
            e->reply.refusal = refuse_judged(registry, call, c.judgement.why);
            return true;
        } else if (c.judgement.verdict == core::Verdict::newcomer && is_in_other_fleet(registry)) {
            e->reply.refusal = refuse_in_other_fleet();
            return true;
        } else if (c.judgement.verdict == core::Verdict::newcomer) {
            e->reply = admit_newcomer(registry, *e);
            return true;
        } else if (extend(registry, *e, c.ask, c.has_row ? &c.record : nullptr, &e->reply.row)) {
            return true;
        } else {
            renew_serial(registry);
        }
        CHECK_FOR_INTERRUPTS();
    }
}

// Of a layout that is new to the fleet. What is refused makes no pool, because a pool stays.
MemberRefusal refuse_pool(const Registry *registry, const Call &call, const char *login) {
    const core::RegistryView &view = registry->state.view;
    const core::Judgement judgement = core::judge(call.layout, view, call.ask, nullptr);
    if (judgement.verdict == core::Verdict::refuse)
        return refuse_judged(registry, call, judgement.why);
    if (judgement.verdict == core::Verdict::newcomer && is_in_other_fleet(registry))
        return refuse_in_other_fleet();
    if (core::ends_too_soon(call.layout, view))
        return refuse_ended(call);
    return count_pools(login) >= most_pools ? refuse_layout(call, login) : MemberRefusal{};
}

// The same contract.
bool answer(Registry *registry, void *arg) {
    auto *e = static_cast<Exchange *>(arg);
    Call &call = *e->call;
    const core::RegistryView &view = registry->state.view;
    e->reply = {};
    call.holder.clock_offset_us = call.ask.clock_us - view.now_us;
    MemberRefusal &refusal = e->reply.refusal;
    const Caller caller = {call.ask.fleet,   call.ask.term,    call.ask.serial,     call.ask.seal,
                           call.holder.host, call.holder.port, call.holder.database};
    if (!refuse_member(registry, caller, &refusal))
        return false;
    if (refusal.name == nullptr && call.ask.holds &&
        call.ask.held.seal != seal_of_grant(registry->state, call.layout, call.ask.held))
        refusal = refuse_unproven(caller);
    if (refusal.name != nullptr)
        return true;
    e->pool = find_pool(call.layout);
    int64_t epoch_us = 0;
    if (e->pool == no_pool && strcmp(call.preset, "custom") != 0 &&
        find_other_epoch(call.layout, call.preset, &epoch_us)) {
        refusal = refuse_epoch(call, epoch_us);
        return true;
    }
    if (e->pool == no_pool) {
        const char *login = GetUserNameFromId(registry->role, false);
        refusal = refuse_pool(registry, call, login);
        if (refusal.name != nullptr)
            return true;
        if (!registry->exclusive)
            return false;
        e->pool = insert_pool(call.layout, call.preset, login);
    }
    return answer_in_pool(registry, e);
}

// If an incarnation asks again while its first call still runs, the second call waits, and finds what the first one was
// granted.
void lock_incarnation(uint64_t incarnation) {
    constexpr uint16 lock_class = 3; // the classes 1 and 2 are those of pg_advisory_lock()
    LOCKTAG tag;
    SET_LOCKTAG_ADVISORY(tag, MyDatabaseId, static_cast<uint32>(incarnation >> 32), static_cast<uint32>(incarnation),
                         lock_class);
    (void)LockAcquire(&tag, ExclusiveLock, false, false);
}

// A clock, a high-water mark or a use before it joined that no grant reaches. The row of a holder shows its clock.
void log_absurd(const Call &call, const MemberRefusal &refusal) {
    if (!call.ask.holds && refusal.name != nullptr && strcmp(refusal.name, "ahead") == 0)
        ereport(LOG, (errmsg("registry refuses generator \"%s\" in database \"%s\" on %s:%s: %s", call.holder.generator,
                             call.holder.database, call.holder.host, call.holder.port, refusal.message)));
}

core::Grant grant_of(const core::NodeRow &row) {
    return {row.node, row.from, row.until, row.line, row.term, row.serial};
}

Answer answer_of(const Registry &registry, const core::Layout &layout, const Reply &reply) {
    const MemberRefusal &refusal = reply.refusal;
    const bool granted = refusal.name == nullptr;
    const core::RegistryView &view = registry.state.view;
    const core::NodeRow &row = reply.row;
    Answer answer = {};
    add_number(&answer, static_cast<int64_t>(view.fleet));
    add_number(&answer, view.term);
    add_number(&answer, view.own_serial); // of a refusal it may come again after a crash
    add_number(&answer, seal_of_stamp(registry.state, view.term, granted ? view.own_serial : 0));
    add_number(&answer, granted ? seal_of_grant(registry.state, layout, grant_of(row)) : 0, granted);
    add_text(&answer, refusal.name);
    add_text(&answer, refusal.message);
    add_text(&answer, refusal.hint);
    add_number(&answer, refusal.retry_after_ms, !granted && refusal.retry_after_ms != never);
    add_number(&answer, row.node, granted);
    add_number(&answer, row.from, granted);
    add_number(&answer, row.until, granted);
    add_number(&answer, static_cast<int64_t>(row.line), granted);
    add_number(&answer, view.now_us);
    add_text(&answer, registry.state.version);
    return answer;
}

} // namespace
} // namespace uidgen::pg

using namespace uidgen::pg;

extern "C" {

UIDGEN_SQL_FUNCTION(uid_fleet_call);

Datum uid_fleet_call(PG_FUNCTION_ARGS) {
    Call call = read_call(fcinfo);
    Registry registry;
    Exchange exchange = {&call, {}, no_pool};
    open_registry(&registry, fcinfo);
    lock_incarnation(call.ask.incarnation);
    run_in_registry(&registry, answer, &exchange);
    log_absurd(call, exchange.reply.refusal);
    return commit_answer(&registry, fcinfo, answer_of(registry, call.layout, exchange.reply));
}
}
