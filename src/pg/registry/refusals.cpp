#include "refusals.hpp"

#include "base/time_source.hpp"

namespace uidgen::pg {
namespace {

// How long until the member can have the node, by its own clock.
int64_t missing_us(const Registry &registry, const FleetRequest &request, const core::NodeRow &row) {
    const core::RegistryView &view = registry.state.view;
    return core::free_at_us(request.layout, view, row) -
           core::start_of(request.layout, core::beginning(request.layout, view, request.generator));
}

// The last part of a qualified name; the whole text if it is no such name.
const char *last_part(const char *qualified) {
    List *parts = NIL;
    if (!SplitIdentifierString(pstrdup(qualified), '.', &parts) || parts == NIL)
        return qualified;
    return static_cast<const char *>(llast(parts));
}

bool refuse_ahead(const Registry &registry, Call *call) {
    const core::RegistryView &view = registry.state.view;
    const FleetRequest &request = call->request;
    const core::Layout &layout = request.layout;
    if (core::is_before_epoch(layout, view))
        return refuse(&call->answer, "ahead",
                      psprintf("the epoch of the generator is %.3f s ahead of the clocks of the fleet",
                               static_cast<double>(layout.epoch_us - view.now_us) / 1e6),
                      "Wait until the epoch, or correct the clock of the registry.");
    const int64_t claimed = Max(request.generator.lowest, request.former_until);
    const int64_t ahead_us = (claimed - core::beginning(layout, view, request.generator)) * layout.tick_us;
    return refuse(
        &call->answer, "ahead",
        psprintf("the generator is too far ahead of the clocks of the fleet, by %.3f s",
                 static_cast<double>(ahead_us + view.bound_us) / 1e6),
        "Correct the clock of this server or of the registry. If the clock was ahead when ids were drawn, wait "
        "until it has caught up.");
}

} // namespace

bool refuse(FleetAnswer *answer, const char *name, const char *message, const char *hint) {
    answer->refusal = name;
    answer->message = message;
    answer->hint = hint;
    return true;
}

const char *show_time(int64_t unix_us) { return pstrdup(timestamptz_to_str(to_timestamptz(unix_us))); }

bool refuse_unproven(Call *call) {
    const FleetRequest &request = call->request;
    const char *who = request.database != nullptr ? psprintf("database \"%s\"", request.database) : "a server";
    ereport(LOG, (errmsg("a member shows what the registry of this fleet has not given"),
                  errdetail("It says that it is %s on %s:%s.", who, request.host, request.port),
                  errhint("If the key of the registry was changed, run SELECT uid_fleet_move() on the member.")));
    return refuse(
        &call->answer, "unproven", "this server shows what the registry has not given to it",
        "If this server must issue ids, run SELECT uid_fleet_move() on it. Its generators then get new nodes.");
}

bool refuse_judged(const Registry &registry, Call *call, core::Refusal why) {
    FleetAnswer *answer = &call->answer;
    const core::RegistryView &view = registry.state.view;
    switch (why) {
    case core::Refusal::other_fleet:
        return refuse(
            answer, "other_fleet", "the registry belongs to another fleet",
            "Correct uidgen.registry, or run SELECT uid_fleet_move() on this server to move it to that fleet.");
    case core::Refusal::stale_registry:
        return refuse(answer, "stale_registry", "another server is the registry by now, or this one has lost commits",
                      "Check that uidgen.registry names the current primary server of the registry. If it does, run "
                      "SELECT uid_fleet_fence() there.");
    case core::Refusal::unclaimed:
        return refuse(
            answer, "unclaimed", "the registry is not the server that it was, and nobody has said what it is",
            "On the registry, as its owner, run SELECT uid_fleet_admit('role', 'successor') if it follows the "
            "former one, with 'unchanged' if nothing was lost and the former one has ended, or with 'new' if "
            "it is a copy with members of its own.");
    case core::Refusal::rival:
        return refuse(answer, "rival", "there are two registries of this fleet",
                      "Stop one of them, and run SELECT uid_fleet_fence() on the other one.");
    case core::Refusal::superseded:
        return refuse(answer, "superseded", "another server continues as this generator, or its node was taken over",
                      "If this server must issue ids, run SELECT uid_fleet_move() on it. Its generators then get new "
                      "nodes.");
    case core::Refusal::starting:
        return refuse(
            answer, "starting", "the registry has started, and none of its members has called yet",
            psprintf("If another server is the registry by now, correct uidgen.registry. Otherwise wait until a "
                     "member has called, or until %s.",
                     show_time(registry.state.started_us + view.longest_us)));
    case core::Refusal::fenced: {
        const int64_t at_us = view.now_us + missing_us(registry, call->request, {});
        return refuse(answer, "fenced", "the registry may have lost grants and accepts no newcomer yet",
                      psprintf("Try again after %s.", show_time(at_us)));
    }
    case core::Refusal::ahead:
        return refuse_ahead(registry, call);
    case core::Refusal::none:
        break;
    }
    return false;
}

bool refuse_everyone(const Registry &registry, Call *call) {
    const FleetState &state = registry.state;
    FleetAnswer *answer = &call->answer;
    if (registry.unclaimed != nullptr)
        return refuse_judged(registry, call, core::Refusal::unclaimed);
    if (is_closed(registry))
        return refuse(
            answer, "handing_over", "the registry is being handed over to another server",
            "Wait for the switchover. If it does not happen, run SELECT uid_fleet_handover(cancel => true) on "
            "the registry.");
    if (state.synchronous && !standbys_are_awaited())
        return refuse(answer, "no_standby", "the registry has no synchronous standby",
                      "Set synchronous_standby_names on the registry. Or, if it may lose commits, run UPDATE "
                      "uid_fleet_state SET synchronous = false there, and make its standbys again.");
    return false;
}

bool refuse_in_other_fleet(FleetAnswer *answer) {
    return refuse(
        answer, "in_other_fleet", "the server of the registry is itself a member of another fleet",
        "Correct uidgen.registry on this server, so that it names the registry of that fleet. Or correct it on "
        "the registry's server, and run SELECT uid_fleet_move() there.");
}

bool refuse_none_free(const Registry &registry, int32_t pool, Call *call) {
    const FleetRequest &request = call->request;
    const NodeRange range = nodes_for(request);
    const auto nodes = static_cast<long long>(range.last - range.first + 1);
    const char *message =
        request.datacenter_id == any_datacenter
            ? psprintf("all %lld nodes of the layout are in use", nodes)
            : psprintf("all %lld nodes with datacenter id %d are in use", nodes, request.datacenter_id);
    core::NodeRow next = {};
    if (!read_next_free(pool, range, core::tick_at(request.layout, registry.state.view.now_us),
                        core::longest_ticks(request.layout, registry.state.view), &next.until))
        return refuse(&call->answer, "none_free", message,
                      "All their holders live. Use a layout with more datacenter and worker bits, or stop a generator: "
                      "its node is free when its grant has ended.");
    const int64_t left_us = missing_us(registry, request, next);
    return refuse(
        &call->answer, "none_free", message,
        psprintf("The next node is free in %.0f s, unless its holder is back. Use a layout with more datacenter "
                 "and worker bits.",
                 static_cast<double>(Max(left_us, 0)) / 1e6));
}

bool refuse_taken(Call *call, const NodeRecord &taken) {
    const int32_t number = call->request.worker_number;
    if (taken.reserved)
        return refuse(&call->answer, "node_taken",
                      psprintf("worker number %d is reserved for a generator outside PostgreSQL", number),
                      "Use another worker_number.");
    const char *until = show_time(core::start_of(call->request.layout, taken.row.until));
    if (taken.row.membership == 0)
        return refuse(&call->answer, "node_taken",
                      psprintf("worker number %d may have been used until %s", number, until),
                      "Wait, or use another worker_number.");
    return refuse(&call->answer, "node_taken",
                  psprintf("worker number %d is held by another generator until %s", number, until),
                  "Use another worker_number. If the holder no longer runs, wait, or ask the administrator of the "
                  "registry, whose view uid_fleet shows the holder, to run uid_fleet_takeover().");
}

bool refuse_epoch(Call *call, int64_t epoch_us) {
    const auto literal = [](const char *value) { return quote_literal_cstr(value); };
    const FleetRequest &request = call->request;
    return refuse(&call->answer, "epoch_differs",
                  psprintf("the generators of preset \"%s\" in this fleet have another epoch", request.preset),
                  psprintf("Drop the generator, and run SELECT uid_generator_create(%s, preset => %s, epoch => %s).",
                           literal(last_part(request.name)), literal(request.preset), literal(show_time(epoch_us))));
}

bool refuse_ended(Call *call) {
    const core::Layout &layout = call->request.layout;
    return refuse(&call->answer, "layout_ended",
                  psprintf("the layout is new to the fleet, and its time bits end at %s, before a grant could",
                           show_time(core::start_of(layout, core::largest(layout.time_bits) + 1))),
                  "Drop the generator, and create it with a later epoch or with more time bits.");
}

bool refuse_layout(Call *call, const char *login) {
    const FleetRequest &request = call->request;
    ereport(LOG, (errmsg("role \"%s\" cannot bring more than %lld layouts", login, static_cast<long long>(most_pools)),
                  errdetail("Generator \"%s\" in database \"%s\" on %s:%s asks for it.", request.name, request.database,
                            request.host, request.port)));
    return refuse(&call->answer, "too_many_layouts",
                  psprintf("this server's login has brought %lld layouts to the fleet already",
                           static_cast<long long>(most_pools)),
                  "Use a layout that the fleet has, or name another role in uidgen.registry.");
}

} // namespace uidgen::pg
