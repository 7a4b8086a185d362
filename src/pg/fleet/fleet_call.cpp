// uid_fleet_call(): what members call on the registry. One call asks for a grant, extends it, or is refused.

#include "base/settings.hpp"
#include "base/time_source.hpp"
#include "fleet_arguments.hpp"

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

// A refusal that passes when the clock reaches `at_us`. Calls that come too early only cost a call.
int64_t retry_at(const Registry *registry, int64_t at_us) {
    constexpr int64_t least_ms = 100;
    return Max((at_us - registry->state.view.now_us + us_per_ms - 1) / us_per_ms, least_ms);
}

const char *show_time(int64_t unix_us) { return pstrdup(timestamptz_to_str(to_timestamptz(unix_us))); }

Reply refuse_judged(const Registry *registry, const Call &call, core::Refusal why) {
    const core::RegistryView &view = registry->state.view;
    const core::Layout &layout = call.layout;
    const int64_t from = core::beginning(layout, view, call.ask);
    switch (why) {
    case core::Refusal::other_fleet:
        return {"other_fleet",
                "the registry belongs to another fleet",
                "Correct uidgen.registry, or run SELECT uid_fleet_move() to join the fleet of this registry.",
                never,
                {}};
    case core::Refusal::stale_registry:
        return {"stale_registry",
                "the registry has lost its latest term, or another server is the registry now",
                "Make sure that no other server is the registry, and run SELECT uid_fleet_fence() on this one.",
                never,
                {}};
    case core::Refusal::superseded:
        return {"superseded",
                "another server goes on with the grant of this generator, or it was taken over",
                "If this server is a copy of another one, run SELECT uid_fleet_move() here.",
                never,
                {}};
    case core::Refusal::fenced: {
        const int64_t missing_us = (core::fence_tick(layout, view) - from) * layout.tick_us;
        return {"fenced",
                "the registry may have lost grants and accepts no newcomer yet",
                psprintf("It accepts newcomers from %s on.", show_time(view.now_us + missing_us)),
                retry_at(registry, view.now_us + missing_us),
                {}};
    }
    case core::Refusal::ahead: {
        const int64_t missing_us = (call.ask.lowest - from) * layout.tick_us;
        return {"ahead",
                psprintf("the generator is too far ahead of the clocks of the fleet, by %.3f s",
                         static_cast<double>(missing_us + view.bound_us) / 1e6),
                "Correct the clock of this server or of the registry. If the clock was ahead when ids were drawn, wait "
                "until it has caught up.",
                retry_at(registry, view.now_us + missing_us),
                {}};
    }
    case core::Refusal::none:
        break;
    }
    elog(ERROR, "unexpected refusal: %d", static_cast<int>(why));
}

Reply refuse_none_free(const Registry *registry, int32_t pool, const Call &call) {
    const NodeRange range = nodes_for(call);
    const long long nodes = static_cast<long long>(range.last - range.first + 1);
    int64_t until = 0;
    Reply reply = {"none_free",
                   psprintf("all %lld nodes of the layout are in use", nodes),
                   "Use a layout with more datacenter and worker bits.",
                   never,
                   {}};
    if (call.datacenter_id != any_datacenter)
        reply.message = psprintf("all %lld nodes with datacenter id %d are in use", nodes, call.datacenter_id);
    if (read_next_until(pool, range, &until)) {
        const int64_t missing_us =
            (until - core::beginning(call.layout, registry->state.view, call.ask)) * call.layout.tick_us;
        reply.retry_after_ms = retry_at(registry, registry->state.view.now_us + missing_us);
        reply.hint = psprintf("The grant of a node ends in %.0f s. Use a layout with more datacenter and worker bits.",
                              static_cast<double>(Max(missing_us, 0)) / 1e6);
    }
    return reply;
}

const char *text_or(const char *value, const char *other) { return value == nullptr ? other : value; }

Reply refuse_taken(const Registry *registry, const Call &call, const NodeRecord &taken) {
    if (taken.reserved)
        return {"node_taken",
                psprintf("worker number %d is reserved for a generator outside", call.worker_number),
                "Use another worker_number.",
                never,
                {}};
    const char *until = show_time(core::start_of(call.layout, taken.row.until));
    const int64_t missing_us =
        (taken.row.until - core::beginning(call.layout, registry->state.view, call.ask)) * call.layout.tick_us;
    const int64_t retry_ms = retry_at(registry, registry->state.view.now_us + missing_us);
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

constexpr Reply handing_over = {"handing_over",
                                "the registry is being handed over to another server",
                                "Wait for the switchover. To stay with this server, run "
                                "SELECT uid_fleet_handover(cancel => true) there.",
                                1000,
                                {}};

// ---------------------------------------------------------------------------------------------------------
// The answer.
// ---------------------------------------------------------------------------------------------------------

struct Exchange {
    Call *call;
    Reply reply;
    int32_t pool;
};

bool is_newcomers(const core::Judgement &j) {
    return j.verdict == core::Verdict::newcomer || j.why == core::Refusal::fenced || j.why == core::Refusal::ahead;
}

void warn_of_clock(const Registry *registry, const Call &call, const NodeRecord *before) {
    const int64_t bound_us = registry->state.view.bound_us;
    const auto is_off = [bound_us](const Holder &h) { return Max(h.clock_offset_us, -h.clock_offset_us) > bound_us; };
    if (is_off(call.holder) && (before == nullptr || !is_off(before->holder)))
        ereport(LOG,
                (errmsg("clock of %s:%s differs from the registry's by %.3f s", call.holder.host, call.holder.port,
                        static_cast<double>(call.holder.clock_offset_us) / 1e6),
                 errdetail("The limit is uidgen.registry_clock_bound, %.3f s.", static_cast<double>(bound_us) / 1e6)));
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
    if (before == nullptr || before->row.incarnation != ask.incarnation)
        clear_incarnation(e.pool, ask.incarnation, row->node);
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
        return call.policy == WorkerPolicy::fixed ? refuse_taken(registry, call, granted)
                                                  : refuse_none_free(registry, e.pool, call);
    warn_of_clock(registry, call, nullptr);
    Reply reply = {};
    reply.row = granted.row;
    return reply;
}

// The row to judge by, and the judgement. An incarnation that has lost the answer with another node shows the former
// one. It has given that up, so it is asked for the new one.
core::Judgement judge_call(const Registry *registry, const Exchange &e, core::Ask *ask, NodeRecord *record,
                           bool *has_row) {
    const core::RegistryView &view = registry->state.view;
    const core::Layout &layout = e.call->layout;
    const auto judged = [&]() { return core::judge(layout, view, *ask, *has_row ? &record->row : nullptr); };
    *has_row = ask->holds ? read_node(e.pool, ask->held.node, record) : read_node_of_incarnations(e.pool, *ask, record);
    const core::Judgement first = judged();
    NodeRecord later;
    if (!ask->holds || first.verdict != core::Verdict::newcomer || !read_node_of_incarnations(e.pool, *ask, &later) ||
        later.row.node == ask->held.node)
        return first;
    ask->holds = false;
    *record = later;
    *has_row = true;
    return judged();
}

// False: the call needs the exclusive lock, and has written nothing.
bool answer_in_pool(Registry *registry, Exchange *e) {
    const Call &call = *e->call;
    for (;;) {
        core::Ask ask = call.ask;
        NodeRecord record;
        bool has_row = false;
        const core::Judgement judgement = judge_call(registry, *e, &ask, &record, &has_row);
        if (judgement.verdict == core::Verdict::fence) {
            if (!registry->exclusive)
                return false;
            raise_fence(registry, "a member has shown an answer that this registry has lost");
            continue;
        }
        if (call.former_node != no_node && is_newcomers(judgement))
            raise_until(e->pool, call.former_node, call.former_until,
                        core::beginning(call.layout, registry->state.view, ask), registry->state.view);
        if (judgement.verdict == core::Verdict::refuse) {
            e->reply = refuse_judged(registry, call, judgement.why);
            return true;
        }
        if (judgement.verdict == core::Verdict::newcomer) {
            e->reply = admit_newcomer(registry, *e);
            return true;
        }
        if (extend(registry, *e, ask, has_row ? &record : nullptr, &e->reply.row))
            return true;
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
    if (registry->state.closed) {
        e->reply = handing_over;
        return true;
    }
    if (call.ask.lowest > core::tick_at(call.layout, view.now_us + view.bound_us))
        read_median(registry);
    const core::Refusal of_fleet = core::judge(call.layout, view, call.ask, nullptr).why;
    const bool is_stale = of_fleet == core::Refusal::stale_registry;
    if (is_stale && call.ask.term > view.term_shown) {
        if (!registry->exclusive)
            return false;
        write_term_shown(call.ask.term);
    }
    if (is_stale || of_fleet == core::Refusal::other_fleet) {
        e->reply = refuse_judged(registry, call, of_fleet);
        return true;
    }
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
    // A refusal commits nothing, so the serial drawn for it may come again after a crash.
    number(refused ? 0 : view.own_serial, false);
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
    Exchange exchange = {&call, {}, no_pool};
    open_registry(&registry, fcinfo->flinfo->fn_oid);
    lock_incarnation(call.ask.incarnation);
    run_in_registry(&registry, answer, &exchange);
    MemoryContext working = MemoryContextSwitchTo(registry.caller);
    const Datum row = row_of(fcinfo, registry, exchange.reply);
    MemoryContextSwitchTo(working);
    close_registry(&registry);
    return row;
}
}
