// uid_fleet_call(): what members call on the registry. One call asks for a grant, extends it, or is refused.

#include "base/faults.hpp"
#include "base/settings.hpp"
#include "base/time_source.hpp"
#include "fleet_arguments.hpp"
#include "shared/grants.hpp"
#include "shared/memberships.hpp"
#include "shared/refusals.hpp"

namespace uidgen::pg {
namespace {

// ---------------------------------------------------------------------------------------------------------
// The reply.
// ---------------------------------------------------------------------------------------------------------

struct Reply {
    const char *refusal; // null: `row` is granted
    const char *message;
    const char *hint;
    int64_t retry_after_ms; // never: it does not pass by itself
    core::NodeRow row;
};
constexpr int64_t never = -1;
constexpr int64_t handover_pause_ms = 1000;

// A refusal that passes when the clock reaches `at_us`. Calls that come too early only cost a call.
int64_t retry_at(const Registry *registry, int64_t at_us) {
    constexpr int64_t least_ms = 100;
    return Max((at_us - registry->state.view.now_us + us_per_ms - 1) / us_per_ms, least_ms);
}

// How long until the asker can have the node, by its own clock.
int64_t missing_us(const Registry *registry, const Call &call, const core::NodeRow &row) {
    const core::RegistryView &view = registry->state.view;
    return core::free_at_us(call.layout, view, row) -
           core::start_of(call.layout, core::beginning(call.layout, view, call.ask));
}

const char *show_time(int64_t unix_us) { return pstrdup(timestamptz_to_str(to_timestamptz(unix_us))); }

Reply refuse_judged(const Registry *registry, const Call &call, core::Refusal why) {
    const core::RegistryView &view = registry->state.view;
    const core::Layout &layout = call.layout;
    switch (why) {
    case core::Refusal::superseded:
        return {"superseded",
                "another server continues as this generator, or its node was taken over",
                "If this server must issue ids, run SELECT uid_fleet_move() on it. Its generators then get new nodes.",
                never,
                {}};
    case core::Refusal::fenced: {
        const int64_t at_us = view.now_us + missing_us(registry, call, {});
        return {"fenced",
                "the registry may have lost grants and accepts no newcomer yet",
                psprintf("Try again after %s.", show_time(at_us)),
                retry_at(registry, at_us),
                {}};
    }
    case core::Refusal::ahead: {
        if (core::is_before_epoch(layout, view))
            return {"ahead",
                    psprintf("the epoch of the generator is %.3f s ahead of the clocks of the fleet",
                             static_cast<double>(layout.epoch_us - core::clock_of(view)) / 1e6),
                    "Wait until the epoch, or correct the clock of the registry.",
                    retry_at(registry, view.now_us + layout.epoch_us - view.bound_us - core::clock_of(view)),
                    {}};
        const int64_t ahead_us = (call.ask.lowest - core::beginning(layout, view, call.ask)) * layout.tick_us;
        return {"ahead",
                psprintf("the generator is too far ahead of the clocks of the fleet, by %.3f s",
                         static_cast<double>(ahead_us + view.bound_us) / 1e6),
                "Correct the clock of this server or of the registry. If the clock was ahead when ids were drawn, wait "
                "until it has caught up.",
                retry_at(registry, view.now_us + ahead_us),
                {}};
    }
    case core::Refusal::other_fleet:
    case core::Refusal::stale_registry: // refuse_member()
    case core::Refusal::none:
        break;
    }
    elog(ERROR, "unexpected refusal: %d", static_cast<int>(why));
}

// Whether the generators of this server draw in another fleet. Its own ids then may be equal to those of this fleet.
bool is_in_other_fleet(const Registry *registry) {
    if (places_header() == nullptr || grants_epoch() == 0)
        return false;
    const uint64_t fleet = grants_fleet_seen().fleet;
    return fleet != 0 && fleet != registry->state.view.fleet;
}

Reply refuse_in_other_fleet() {
    return {"in_other_fleet",
            "the server of the registry is itself a member of another fleet",
            "Correct uidgen.registry on this server, so that it names the registry of that fleet. Or correct it on the "
            "registry's server, and run SELECT uid_fleet_move() there.",
            never,
            {}};
}

Reply refuse_none_free(const Registry *registry, int32_t pool, const Call &call) {
    const NodeRange range = nodes_for(call);
    const long long nodes = static_cast<long long>(range.last - range.first + 1);
    core::NodeRow next = {};
    Reply reply = {"none_free",
                   psprintf("all %lld nodes of the layout are in use", nodes),
                   "Use a layout with more datacenter and worker bits.",
                   never,
                   {}};
    if (call.datacenter_id != any_datacenter)
        reply.message = psprintf("all %lld nodes with datacenter id %d are in use", nodes, call.datacenter_id);
    if (read_next_until(pool, range, &next.until)) {
        const int64_t left_us = missing_us(registry, call, next);
        reply.retry_after_ms = retry_at(registry, registry->state.view.now_us + left_us);
        reply.hint = psprintf("The grant of a node ends in %.0f s. Use a layout with more datacenter and worker bits.",
                              static_cast<double>(Max(left_us, 0)) / 1e6);
    }
    return reply;
}

const char *text_or(const char *value, const char *other) { return value == nullptr ? other : value; }

Reply refuse_taken(const Registry *registry, const Call &call, const NodeRecord &taken) {
    if (taken.reserved)
        return {"node_taken",
                psprintf("worker number %d is reserved for a generator outside PostgreSQL", call.worker_number),
                "Use another worker_number.",
                never,
                {}};
    const char *until = show_time(core::start_of(call.layout, taken.row.until));
    const int64_t retry_ms = retry_at(registry, registry->state.view.now_us + missing_us(registry, call, taken.row));
    if (taken.row.line == 0)
        return {"node_taken",
                psprintf("worker number %d may have been used until %s", call.worker_number, until),
                "Wait, or use another worker_number.",
                retry_ms,
                {}};
    return {
        "node_taken",
        psprintf("worker number %d is held by generator \"%s\" of database \"%s\" on %s:%s until %s",
                 call.worker_number, text_or(taken.holder.generator, ""), text_or(taken.holder.database, ""),
                 text_or(taken.holder.host, ""), text_or(taken.holder.port, ""), until),
        "Use another worker_number. If the holder no longer runs, wait, or run SELECT uid_fleet_takeover(pool, node) "
        "on the registry.",
        retry_ms,
        {}};
}

// The last part of a qualified name; the whole text if it is no such name.
const char *last_part(const char *qualified) {
    List *parts = NIL;
    if (!SplitIdentifierString(pstrdup(qualified), '.', &parts) || parts == NIL)
        return qualified;
    return static_cast<const char *>(llast(parts));
}

Reply refuse_epoch(const Call &call, int64_t epoch_us) {
    const auto literal = [](const char *value) { return quote_literal_cstr(value); };
    return {"epoch_differs",
            psprintf("the generators of preset \"%s\" in this fleet have another epoch", call.preset),
            psprintf("Drop the generator, and run SELECT uid_generator_create(%s, preset => %s, epoch => %s).",
                     literal(last_part(call.holder.generator)), literal(call.preset), literal(show_time(epoch_us))),
            never,
            {}};
}

// ---------------------------------------------------------------------------------------------------------
// The answer.
// ---------------------------------------------------------------------------------------------------------

struct Exchange {
    Call *call;
    Reply reply;
    int32_t pool;
    bool refuses_newcomer; // because no node is free, or because of a fence
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

// A holder renews at half of its grant, which then must reach above core::last_lost_beginning() to survive a fence.
bool is_too_short(const core::RegistryView &view, const core::Layout &layout, core::Ask ask, int64_t length) {
    ask.length = length;
    return core::grant_ticks(layout, view, ask) * layout.tick_us / 2 <= 2 * view.bound_us;
}

// Once for each member: a row that the member extends remembers the length that it asked for.
void note_short_grant(const Registry *registry, const Call &call, const NodeRecord *before) {
    const core::RegistryView &view = registry->state.view;
    if (!is_too_short(view, call.layout, call.ask, call.ask.length) ||
        (before != nullptr && is_too_short(view, call.layout, call.ask, before->holder.asked_length)))
        return;
    ereport(LOG,
            (errmsg("grants of generator \"%s\" in database \"%s\" on %s:%s are too short to outlast lost commits",
                    call.holder.generator, call.holder.database, call.holder.host, call.holder.port),
             errdetail("They last %.3f s. After a failover that loses commits the generator waits for a new node.",
                       static_cast<double>(core::grant_ticks(call.layout, view, call.ask) * call.layout.tick_us) / 1e6),
             errhint("Set uidgen.registry_lease there to at least six times uidgen.registry_clock_bound.")));
}

// A grant that the registry does not know, because it has lost it, ends no later than this.
void check_shown(const Registry *registry, const Call &call, const NodeRecord *before) {
    const core::RegistryView &view = registry->state.view;
    const int64_t known = before == nullptr ? 0 : before->row.until;
    const int64_t latest = core::tick_at(call.layout, core::clock_of(view) + 2 * view.bound_us) + 1 +
                           core::longest_ticks(call.layout, view);
    if (call.ask.holds && call.ask.held.until > Max(known, latest))
        ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                        errmsg("the grant of generator \"%s\" ends later than any grant of this fleet",
                               call.holder.generator)));
}

Holder holder_of(const Call &call, int64_t node) {
    Holder holder = call.holder;
    holder.asked_length = call.ask.length;
    holder.asked_datacenter =
        call.datacenter_id != any_datacenter && node >> core::drawn_worker_bits(call.layout) == call.datacenter_id;
    return holder;
}

// False: another session has changed the row.
bool extend(const Registry *registry, const Exchange &e, const core::Ask &ask, const NodeRecord *before,
            core::NodeRow *row) {
    const Call &call = *e.call;
    const core::RegistryView &view = registry->state.view;
    check_shown(registry, call, before);
    *row = core::extended(call.layout, view, ask, before == nullptr ? nullptr : &before->row);
    const NodeRecord after = {*row, false, holder_of(call, row->node)};
    const bool written =
        before == nullptr ? insert_node(e.pool, after, view.now_us) : update_node(e.pool, *before, after, view.now_us);
    if (written) {
        warn_of_clock(registry, call, before);
        note_short_grant(registry, call, before);
    }
    return written;
}

Reply admit_newcomer(Registry *registry, const Exchange &e) {
    NodeRecord granted;
    const Call &call = *e.call;
    if (!grant_node(registry, e.pool, call, &granted))
        return call.policy == WorkerPolicy::fixed ? refuse_taken(registry, call, granted)
                                                  : refuse_none_free(registry, e.pool, call);
    warn_of_clock(registry, call, nullptr);
    note_short_grant(registry, call, nullptr);
    return {nullptr, nullptr, nullptr, 0, granted.row};
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

// The clock of a holder that is refused counts for the median. Otherwise a registry whose clock is behind, and which
// refuses all members therefore, could not learn it.
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
            e->refuses_newcomer = c.judgement.why == core::Refusal::fenced;
            e->reply = refuse_judged(registry, call, c.judgement.why);
            return true;
        } else if (c.judgement.verdict == core::Verdict::newcomer && is_in_other_fleet(registry)) {
            e->reply = refuse_in_other_fleet();
            return true;
        } else if (c.judgement.verdict == core::Verdict::newcomer) {
            e->reply = admit_newcomer(registry, *e);
            e->refuses_newcomer = e->reply.refusal != nullptr;
            return true;
        } else if (extend(registry, *e, c.ask, c.has_row ? &c.record : nullptr, &e->reply.row)) {
            return true;
        } else {
            renew_serial(registry);
        }
        CHECK_FOR_INTERRUPTS();
    }
}

// The same contract.
bool answer(Registry *registry, void *arg) {
    auto *e = static_cast<Exchange *>(arg);
    Call &call = *e->call;
    core::RegistryView &view = registry->state.view;
    e->reply = {};
    call.holder.clock_offset_us = call.ask.clock_us - view.now_us;
    MemberRefusal refusal = {};
    if (!refuse_member(registry, call.ask.fleet, call.ask.term, &refusal))
        return false;
    if (refusal.name != nullptr) {
        e->reply = {refusal.name, refusal.message, refusal.hint, refusal.passes ? handover_pause_ms : never, {}};
        return true;
    }
    if (call.ask.lowest > core::tick_at(call.layout, view.now_us + view.bound_us))
        read_median(registry);
    e->pool = find_pool(call.layout);
    int64_t epoch_us = 0;
    if (e->pool == no_pool && strcmp(call.preset, "custom") != 0 &&
        find_other_epoch(call.layout, call.preset, &epoch_us)) {
        e->reply = refuse_epoch(call, epoch_us);
        return true;
    }
    if (e->pool == no_pool && !registry->exclusive)
        return false;
    if (e->pool == no_pool)
        e->pool = insert_pool(call.layout, call.preset);
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

Datum row_of(FunctionCallInfo fcinfo, const Registry &registry, const Reply &reply) {
    constexpr int columns = 13;
    TupleDesc desc;
    Datum values[columns] = {};
    bool nulls[columns] = {};
    int used = 0;
    if (get_call_result_type(fcinfo, nullptr, &desc) != TYPEFUNC_COMPOSITE || desc->natts != columns)
        elog(ERROR, "uid_fleet_call must return %d columns", columns);
    const auto text = [&](const char *value) {
        nulls[used] = value == nullptr;
        values[used++] = value == nullptr ? static_cast<Datum>(0) : CStringGetTextDatum(value);
    };
    const auto number = [&](int64_t value, bool is_null) {
        nulls[used] = is_null;
        values[used++] = Int64GetDatum(value);
    };
    const bool refused = reply.refusal != nullptr;
    const core::RegistryView &view = registry.state.view;
    text(reply.refusal);
    text(reply.message);
    text(reply.hint);
    number(reply.retry_after_ms, !refused || reply.retry_after_ms == never);
    number(reply.row.node, refused);
    number(reply.row.from, refused);
    number(reply.row.until, refused);
    number(static_cast<int64_t>(reply.row.line), refused);
    number(static_cast<int64_t>(view.fleet), false);
    number(view.term, false);
    number(view.own_serial, false); // of a refusal it may come again after a crash
    number(view.now_us, false);
    text(registry.state.version);
    return HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(desc), values, nulls));
}

} // namespace
} // namespace uidgen::pg

using namespace uidgen::pg;

extern "C" {

UIDGEN_SQL_FUNCTION(uid_fleet_call);

Datum uid_fleet_call(PG_FUNCTION_ARGS) {
    Call call = read_call(fcinfo);
    Registry registry;
    Exchange exchange = {&call, {}, no_pool, false};
    open_registry(&registry, fcinfo->flinfo->fn_oid);
    lock_incarnation(call.ask.incarnation);
    run_in_registry(&registry, answer, &exchange);
    if (exchange.refuses_newcomer)
        count_refusal({MyDatabaseId, registry.state_table, exchange.pool});
    MemoryContext working = MemoryContextSwitchTo(registry.caller);
    const Datum row = row_of(fcinfo, registry, exchange.reply);
    MemoryContextSwitchTo(working);
    close_registry(&registry);
    return row;
}
}
