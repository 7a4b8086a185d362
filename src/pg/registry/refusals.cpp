#include "fleet_call.hpp"

#include "base/time_source.hpp"

namespace uidgen::pg {
namespace {

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
    const RefusalRow *row = find_refusal(why);
    if (row != nullptr && row->message != nullptr)
        return refuse(answer, row->name, row->message, row->hint);
    switch (why) {
    case core::Refusal::starting:
        return refuse(answer, "starting", "the registry has started, and no member whose grant lasts has called yet",
                      psprintf("Wait for one, or until %s. If no other server can be the registry, run SELECT "
                               "uid_fleet_fence(cancel => true) on it.",
                               show_time(registry.state.started_us + core::wait_us(view))));
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
    return refuse(&call->answer, "unproven", "this server shows what the registry has not given to it",
                  find_refusal(core::Refusal::superseded)->hint);
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

// The statement has all of the layout, because a member may have replaced any field of its preset. By position it fits
// the message of a member.
bool refuse_equal_ids(Call *call, const core::Layout &of_pool) {
    const FleetRequest &r = call->request;
    const core::Layout &l = of_pool;
    const bool has_epoch = r.layout.epoch_us == l.epoch_us;
    const char *preset = strcmp(r.preset, "custom") == 0 ? "snowflake" : r.preset;
    return refuse(&call->answer, has_epoch ? "split_differs" : "epoch_differs",
                  psprintf("generators of the same widths in this fleet have another %s",
                           has_epoch ? "split of the node into datacenter and worker bits" : "epoch"),
                  psprintf("Drop it, and run SELECT uid_generator_create('name', %s, NULL, %s, " INT64_FORMAT
                           ", %d, %d, %d, %d, %s, %s). Or pass own_pool => true (docs/fleet.md).",
                           quote_literal_cstr(preset), quote_literal_cstr(show_time(l.epoch_us)), l.tick_us,
                           l.time_bits, l.datacenter_bits, l.worker_bits, l.sequence_bits,
                           l.sequence_first ? "true" : "false", l.backup ? "true" : "false"));
}

const char *show_time(int64_t unix_us) { return pstrdup(timestamptz_to_str(to_timestamptz(unix_us))); }

} // namespace uidgen::pg
