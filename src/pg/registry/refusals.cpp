#include "refusals.hpp"

#include "base/time_source.hpp"
#include "newcomer.hpp"

namespace uidgen::pg {
namespace {

const char *message_of_ahead(const core::RegistryView &view, const FleetRequest &r) {
    const int64_t claimed = r.former_node == no_node ? r.generator.lowest : Max(r.generator.lowest, r.former_until);
    const int64_t ahead_us = (claimed - core::beginning(r.layout, view, r.generator)) * r.layout.tick_us;
    return psprintf("the generator is too far ahead of the clocks of the fleet, by %.3f s",
                    static_cast<double>(ahead_us + view.bound_us) / 1e6);
}

} // namespace

void refuse(Call *call, core::Refusal why, const char *message, const char *hint) {
    const core::RefusalRow &row = core::row_of(why);
    call->answer.refusal = why;
    call->answer.message = message != nullptr ? message : row.message;
    call->answer.hint = hint != nullptr ? hint : row.hint;
}

bool refuse_if_judged(const Registry &registry, Call *call, core::Refusal why) {
    const core::RegistryView &view = registry.state.view;
    const char *message = nullptr;
    const char *hint = nullptr;
    if (why == core::Refusal::none)
        return false;
    if (why == core::Refusal::ahead)
        message = message_of_ahead(view, call->request);
    if (why == core::Refusal::starting) {
        message = "the registry has started, and no member whose grant lasts has called yet";
        hint = psprintf("Wait for one, or until %s. If no other server can be the registry, run SELECT "
                        "uid_fleet_fence(cancel => true) on it.",
                        show_time(registry.state.started_us + core::wait_us(view)));
    }
    if (why == core::Refusal::fenced) {
        message = "the registry may have lost grants and accepts no newcomer yet";
        hint = psprintf("Try again after %s.", show_time(core::fence_end_us(view)));
    }
    refuse(call, why, message, hint);
    return true;
}

core::Refusal reason_for_all(const Registry &registry) {
    if (registry.unclaimed != nullptr)
        return core::Refusal::unclaimed;
    if (is_closed(registry))
        return core::Refusal::handing_over;
    if (registry.state.synchronous && !standbys_are_awaited())
        return core::Refusal::no_standby;
    return core::judge_server(registry.state.view, {});
}

void refuse_unproven(Call *call) {
    const FleetRequest &request = call->request;
    ereport(LOG, (errmsg("a member shows what the registry of this fleet has not given"),
                  errdetail("It says that it is on %s:%s.", request.host, request.port),
                  errhint("If the key of the registry was changed, run SELECT uid_fleet_move() on the member.")));
    refuse(call, core::Refusal::unproven);
}

void refuse_none_free(Call *call) {
    const FleetRequest &request = call->request;
    const NodeRange range = nodes_for(request);
    const char *of_datacenter =
        request.datacenter_id == any_datacenter ? "" : psprintf(" with datacenter id %d", request.datacenter_id);
    NodeRecord first;
    (void)read_oldest_node(call->pool, range, PG_INT64_MAX, &first);
    const int64_t end_us = core::start_of(request.layout, first.row.until);
    refuse(call, core::Refusal::none_free,
           psprintf("all %lld nodes%s of the layout are in use", static_cast<long long>(range.last - range.first + 1),
                    of_datacenter),
           psprintf("The first grant ends at %s, unless its holder renews it. Use a layout with more datacenter and "
                    "worker bits, or stop a generator: its node is free when its grant has ended.",
                    show_time(end_us)));
}

void refuse_taken(Call *call, const NodeRecord &taken) {
    const FleetRequest &request = call->request;
    refuse(call, core::Refusal::node_taken,
           psprintf("worker number %d is in use until %s", request.worker_number,
                    show_time(core::start_of(request.layout, taken.row.until))));
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
                    quote_literal_cstr(preset), quote_literal_cstr(show_time(l.epoch_us)), l.tick_us, l.time_bits,
                    l.datacenter_bits, l.worker_bits, l.sequence_bits, l.sequence_first ? "true" : "false",
                    l.backup ? "true" : "false"));
}

const char *show_time(int64_t unix_us) { return pstrdup(timestamptz_to_str(to_timestamptz(unix_us))); }

} // namespace uidgen::pg
