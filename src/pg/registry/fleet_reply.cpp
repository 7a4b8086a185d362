#include "fleet_reply.hpp"

#include "base/time_source.hpp"

namespace uidgen::pg {
namespace {

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

// The last part of a qualified name; the whole text if it is no such name.
const char *last_part(const char *qualified) {
    List *parts = NIL;
    if (!SplitIdentifierString(pstrdup(qualified), '.', &parts) || parts == NIL)
        return qualified;
    return static_cast<const char *>(llast(parts));
}

} // namespace

void add_number(Answer *answer, int64_t value, bool known) {
    answer->nulls[answer->count] = !known;
    answer->values[answer->count++] = Int64GetDatum(value);
}

void add_text(Answer *answer, const char *value) {
    answer->nulls[answer->count] = value == nullptr;
    answer->values[answer->count++] = value == nullptr ? static_cast<Datum>(0) : CStringGetTextDatum(value);
}

Datum commit_answer(Registry *registry, FunctionCallInfo fcinfo, Answer answer) {
    TupleDesc desc;
    MemoryContext working = MemoryContextSwitchTo(registry->caller);
    if (get_call_result_type(fcinfo, nullptr, &desc) != TYPEFUNC_COMPOSITE || desc->natts != answer.count)
        elog(ERROR, "%s must return %d columns", get_func_name(fcinfo->flinfo->fn_oid), answer.count);
    const Datum row = HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(desc), answer.values, answer.nulls));
    MemoryContextSwitchTo(working);
    commit_registry(registry);
    return row;
}

const char *show_time(int64_t unix_us) { return pstrdup(timestamptz_to_str(to_timestamptz(unix_us))); }

MemberRefusal refuse_judged(const Registry *registry, const Call &call, core::Refusal why) {
    const core::RegistryView &view = registry->state.view;
    const core::Layout &layout = call.layout;
    switch (why) {
    case core::Refusal::superseded:
        return {"superseded", "another server continues as this generator, or its node was taken over",
                "If this server must issue ids, run SELECT uid_fleet_move() on it. Its generators then get new nodes."};
    case core::Refusal::fenced: {
        const int64_t at_us = view.now_us + missing_us(registry, call, {});
        return {"fenced", "the registry may have lost grants and accepts no newcomer yet",
                psprintf("Try again after %s.", show_time(at_us)), retry_at(registry, at_us)};
    }
    case core::Refusal::ahead: {
        if (core::is_before_epoch(layout, view))
            return {"ahead",
                    psprintf("the epoch of the generator is %.3f s ahead of the clocks of the fleet",
                             static_cast<double>(layout.epoch_us - view.now_us) / 1e6),
                    "Wait until the epoch, or correct the clock of the registry.",
                    retry_at(registry, layout.epoch_us - view.bound_us)};
        const int64_t claimed = Max(call.ask.lowest, call.former_until);
        const int64_t ahead_us = (claimed - core::beginning(layout, view, call.ask)) * layout.tick_us;
        return {"ahead",
                psprintf("the generator is too far ahead of the clocks of the fleet, by %.3f s",
                         static_cast<double>(ahead_us + view.bound_us) / 1e6),
                "Correct the clock of this server or of the registry. If the clock was ahead when ids were drawn, wait "
                "until it has caught up.",
                retry_at(registry, view.now_us + ahead_us)};
    }
    case core::Refusal::other_fleet:
    case core::Refusal::stale_registry: // refuse_member()
    case core::Refusal::none:
        break;
    }
    elog(ERROR, "unexpected refusal: %d", static_cast<int>(why));
}

MemberRefusal refuse_in_other_fleet() {
    return {"in_other_fleet", "the server of the registry is itself a member of another fleet",
            "Correct uidgen.registry on this server, so that it names the registry of that fleet. Or correct it on the "
            "registry's server, and run SELECT uid_fleet_move() there."};
}

MemberRefusal refuse_none_free(const Registry *registry, int32_t pool, const Call &call) {
    const NodeRange range = nodes_for(call);
    const long long nodes = static_cast<long long>(range.last - range.first + 1);
    core::NodeRow next = {};
    MemberRefusal refusal = {"none_free", psprintf("all %lld nodes of the layout are in use", nodes),
                             "Use a layout with more datacenter and worker bits."};
    if (call.datacenter_id != any_datacenter)
        refusal.message = psprintf("all %lld nodes with datacenter id %d are in use", nodes, call.datacenter_id);
    if (read_next_until(pool, range, &next.until)) {
        const int64_t left_us = missing_us(registry, call, next);
        refusal.retry_after_ms = retry_at(registry, registry->state.view.now_us + left_us);
        refusal.hint =
            psprintf("The grant of a node ends in %.0f s. Use a layout with more datacenter and worker bits.",
                     static_cast<double>(Max(left_us, 0)) / 1e6);
    }
    return refusal;
}

MemberRefusal refuse_taken(const Registry *registry, const Call &call, const NodeRecord &taken) {
    if (taken.reserved)
        return {"node_taken",
                psprintf("worker number %d is reserved for a generator outside PostgreSQL", call.worker_number),
                "Use another worker_number."};
    const char *until = show_time(core::start_of(call.layout, taken.row.until));
    const int64_t retry_ms = retry_at(registry, registry->state.view.now_us + missing_us(registry, call, taken.row));
    if (taken.row.line == 0)
        return {"node_taken", psprintf("worker number %d may have been used until %s", call.worker_number, until),
                "Wait, or use another worker_number.", retry_ms};
    return {"node_taken", psprintf("worker number %d is held by another generator until %s", call.worker_number, until),
            "Use another worker_number. If the holder no longer runs, wait, or ask the administrator of the registry, "
            "whose view uid_fleet shows the holder, to run uid_fleet_takeover().",
            retry_ms};
}

MemberRefusal refuse_epoch(const Call &call, int64_t epoch_us) {
    const auto literal = [](const char *value) { return quote_literal_cstr(value); };
    return {"epoch_differs", psprintf("the generators of preset \"%s\" in this fleet have another epoch", call.preset),
            psprintf("Drop the generator, and run SELECT uid_generator_create(%s, preset => %s, epoch => %s).",
                     literal(last_part(call.holder.generator)), literal(call.preset), literal(show_time(epoch_us)))};
}

MemberRefusal refuse_ended(const Call &call) {
    const int64_t end_us = core::start_of(call.layout, core::largest(call.layout.time_bits) + 1);
    return {"layout_ended",
            psprintf("the layout is new to the fleet, and its time bits end at %s, before a grant could",
                     show_time(end_us)),
            "Drop the generator, and create it with a later epoch or with more time bits."};
}

MemberRefusal refuse_layout(const Call &call, const char *login) {
    ereport(LOG, (errmsg("role \"%s\" cannot bring more than %lld layouts", login, static_cast<long long>(most_pools)),
                  errdetail("Generator \"%s\" in database \"%s\" on %s:%s asks for it.", call.holder.generator,
                            call.holder.database, call.holder.host, call.holder.port)));
    return {"too_many_layouts",
            psprintf("this server's login has brought %lld layouts to the fleet already",
                     static_cast<long long>(most_pools)),
            "Use a layout that the fleet has, or name another role in uidgen.registry."};
}

} // namespace uidgen::pg
