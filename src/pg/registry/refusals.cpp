#include "fleet_call.hpp"

#include "base/time_source.hpp"

namespace uidgen::pg {
namespace {

struct Words {
    core::Refusal why;
    const char *name;
    const char *message;
    const char *hint;
};

constexpr char move_hint[] =
    "If this server must issue ids, run SELECT uid_fleet_move() on it. Its generators then get new nodes.";

constexpr Words words[] = {
    {core::Refusal::other_fleet, "other_fleet", "the registry belongs to another fleet",
     "Correct uidgen.registry, or run SELECT uid_fleet_move() on this server to move it to that fleet."},
    {core::Refusal::stale_registry, "stale_registry",
     "another server is the registry by now, or this one has lost commits",
     "Check that uidgen.registry names the current primary server of the registry. If it does, run "
     "SELECT uid_fleet_fence() there."},
    {core::Refusal::unclaimed, "unclaimed",
     "the registry is not the server that it was, and nobody has said what it is",
     "On the registry, as its owner, run SELECT uid_fleet_admit('role', 'successor') if it follows the former one, "
     "with 'unchanged' if nothing was lost and the former one has ended, or with 'new' if it is a copy with members of "
     "its own."},
    {core::Refusal::handing_over, "handing_over", "the registry is being handed over to another server",
     "Wait for the switchover. If it does not happen, run SELECT uid_fleet_handover(cancel => true) on the registry."},
    {core::Refusal::no_standby, "no_standby", "the registry has no synchronous standby",
     "Set synchronous_standby_names on the registry. Or, if it may lose commits, run UPDATE uid_fleet_state SET "
     "synchronous = false there, and make its standbys again."},
    {core::Refusal::rival, "rival", "there are two registries of this fleet",
     "Stop one of them, and run SELECT uid_fleet_fence() on the other one."},
    {core::Refusal::superseded, "superseded", "another server continues as this generator, or its node was taken over",
     move_hint},
    {core::Refusal::in_other_fleet, "in_other_fleet", "the server of the registry is itself a member of another fleet",
     "Correct uidgen.registry on this server, so that it names the registry of that fleet. Or correct it on the "
     "registry's server, and run SELECT uid_fleet_move() there."},
    {core::Refusal::too_many_layouts, "too_many_layouts",
     "this server's login has brought 1,000 layouts to the fleet already",
     "Use a layout that the fleet has, or name another role in uidgen.registry."}};

bool refuse_ahead(const Registry &registry, Call *call) {
    const core::RegistryView &view = registry.state.view;
    const FleetRequest &r = call->request;
    const int64_t claimed = r.former_node == no_node ? r.generator.lowest : Max(r.generator.lowest, r.former_until);
    const int64_t ahead_us = (claimed - core::beginning(r.layout, view, r.generator)) * r.layout.tick_us;
    const char *message = psprintf("the generator is too far ahead of the clocks of the fleet, by %.3f s",
                                   static_cast<double>(ahead_us + view.bound_us) / 1e6);
    return refuse(&call->answer, "ahead", message,
                  "Correct the clock of this server or of the registry. If the clock was ahead when ids were drawn, or "
                  "the epoch of the generator is, wait until then.");
}

} // namespace

bool refuse(FleetAnswer *answer, const char *name, const char *message, const char *hint) {
    answer->refusal = name;
    answer->message = message;
    answer->hint = hint;
    return true;
}

bool refuse_judged(const Registry &registry, Call *call, core::Refusal why) {
    FleetAnswer *answer = &call->answer;
    const core::RegistryView &view = registry.state.view;
    for (const Words &w : words)
        if (w.why == why)
            return refuse(answer, w.name, w.message, w.hint);
    switch (why) {
    case core::Refusal::starting:
        return refuse(
            answer, "starting", "the registry has started, and none of its members has called yet",
            psprintf("If another server is the registry by now, correct uidgen.registry. Otherwise wait until a "
                     "member has called, or until %s.",
                     show_time(registry.state.started_us + view.longest_us)));
    case core::Refusal::fenced:
        return refuse(answer, "fenced", "the registry may have lost grants and accepts no newcomer yet",
                      psprintf("Try again after %s.", show_time(core::fence_end_us(view))));
    case core::Refusal::ahead:
        return refuse_ahead(registry, call);
    default:
        return false;
    }
}

core::Refusal refuses_all(const Registry &registry) {
    if (registry.unclaimed != nullptr)
        return core::Refusal::unclaimed;
    if (is_closed(registry))
        return core::Refusal::handing_over;
    if (registry.state.synchronous && !standbys_are_awaited())
        return core::Refusal::no_standby;
    return core::judge_server(registry.state.view, {});
}

bool refuse_unproven(Call *call) {
    const FleetRequest &request = call->request;
    ereport(LOG, (errmsg("a member shows what the registry of this fleet has not given"),
                  errdetail("It says that it is on %s:%s.", request.host, request.port),
                  errhint("If the key of the registry was changed, run SELECT uid_fleet_move() on the member.")));
    return refuse(&call->answer, "unproven", "this server shows what the registry has not given to it", move_hint);
}

bool refuse_none_free(Call *call) {
    const FleetRequest &request = call->request;
    const NodeRange range = nodes_for(request);
    const char *of_datacenter =
        request.datacenter_id == any_datacenter ? "" : psprintf(" with datacenter id %d", request.datacenter_id);
    NodeRecord first;
    (void)read_oldest_node(call->pool, range, PG_INT64_MAX, &first);
    const int64_t end_us = core::start_of(request.layout, first.row.until);
    return refuse(&call->answer, "none_free",
                  psprintf("all %lld nodes%s of the layout are in use",
                           static_cast<long long>(range.last - range.first + 1), of_datacenter),
                  psprintf("The first grant ends at %s, unless its holder renews it. Use a layout with more datacenter "
                           "and worker bits, or stop a generator: its node is free when its grant has ended.",
                           show_time(end_us)));
}

bool refuse_quota(Call *call) {
    return refuse(&call->answer, "too_many_nodes",
                  "this server's login holds its share of the nodes of the layout already",
                  "Use a layout with more datacenter and worker bits, or stop a generator. \"Nodes of a login\" in "
                  "docs/security.md says how large a share is.");
}

bool refuse_taken(Call *call, const NodeRecord &taken) {
    const FleetRequest &request = call->request;
    return refuse(&call->answer, "node_taken",
                  psprintf("worker number %d is in use until %s", request.worker_number,
                           show_time(core::start_of(request.layout, taken.row.until))),
                  "Use another worker_number. If its holder no longer runs, wait, or ask the administrator of the "
                  "registry, whose view uid_fleet shows the holder, to run uid_fleet_takeover().");
}

// The statement fits the message of a member.
bool refuse_equal_ids(Call *call, const core::Layout &of_pool) {
    const FleetRequest &r = call->request;
    const core::Layout &l = of_pool;
    const bool has_epoch = r.layout.epoch_us == l.epoch_us;
    const char *base = psprintf("preset => %s", quote_literal_cstr(r.preset));
    const char *backup = "";
    if (strcmp(r.preset, "custom") == 0)
        base = psprintf("tick_us => " INT64_FORMAT ", time_bits => %d, sequence_bits => %d%s", l.tick_us, l.time_bits,
                        l.sequence_bits, l.sequence_first ? ", sequence_first => true" : "");
    if (r.layout.backup != l.backup)
        backup = psprintf(", backup_worker => %s", l.backup ? "true" : "false");
    return refuse(&call->answer, has_epoch ? "split_differs" : "epoch_differs",
                  psprintf("generators of the same widths in this fleet have another %s",
                           has_epoch ? "split of the node into datacenter and worker bits" : "epoch"),
                  psprintf("Drop it, and run SELECT uid_generator_create(name, %s, epoch => %s, datacenter_bits => %d, "
                           "worker_bits => %d%s). Or pass own_pool => true (docs/fleet.md).",
                           base, quote_literal_cstr(show_time(l.epoch_us)), l.datacenter_bits, l.worker_bits, backup));
}

const char *show_time(int64_t unix_us) { return pstrdup(timestamptz_to_str(to_timestamptz(unix_us))); }

} // namespace uidgen::pg
