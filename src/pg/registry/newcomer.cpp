#include "fleet_call.hpp"

#include "base/settings.hpp"
#include "base/identity.hpp"

namespace uidgen::pg {
namespace {

// How many random nodes may have been used before.
constexpr int draws = 8;

NodeRange nodes_of_datacenter(const core::Layout &layout, int64_t datacenter) {
    const int64_t first = datacenter << core::drawn_worker_bits(layout);
    return {first, first + core::largest(core::drawn_worker_bits(layout))};
}

bool is_free(const Newcomer &n, const NodeRecord &record) {
    const FleetRequest &request = *n.request;
    return core::is_free(request.layout, n.registry->state.view, request.generator, record.row);
}

// The last node that was never used reads the whole pool, so it comes last.
bool find_disposable(const Newcomer &n, NodeRecord *found) {
    const NodeRange range = nodes_for(*n.request);
    const int64_t from = fault_is(Fault::forget_until)
                             ? PG_INT64_MAX
                             : core::beginning(n.request->layout, n.registry->state.view, n.request->generator);
    for (int i = 0; i < draws; i++) // a power of two of nodes
        if (!read_node(n.pool, range.first + (random_number() & (range.last - range.first)), found))
            return true;
    return read_oldest_node(n.pool, range, from, found) || find_unused_node(n.pool, range, found);
}

bool find_sticky(const Newcomer &n, NodeRecord *found) {
    const NodeRange range = nodes_for(*n.request);
    return read_sticky_node(n.pool, *n.request, found) && found->row.node >= range.first &&
           found->row.node <= range.last && is_free(n, *found);
}

bool find_static(const Newcomer &n, NodeRecord *found) {
    const FleetRequest &r = *n.request;
    (void)read_node(n.pool, nodes_of_datacenter(r.layout, Max(r.datacenter_id, 0)).first + r.worker_number, found);
    return is_free(n, *found);
}

bool find_node(const Newcomer &n, NodeRecord *found) {
    if (n.policy == WorkerPolicy::fixed)
        return find_static(n, found);
    return (n.policy == WorkerPolicy::sticky && find_sticky(n, found)) || find_disposable(n, found);
}

} // namespace

NodeRange nodes_for(const FleetRequest &request) {
    if (request.datacenter_id == any_datacenter)
        return {0, core::largest(core::drawn_node_bits(request.layout))};
    return nodes_of_datacenter(request.layout, request.datacenter_id);
}

bool grant_node(const Newcomer &n, NodeRecord *granted) {
    const FleetRequest &r = *n.request;
    if (!find_node(n, granted))
        return false;
    *granted =
        record_of(*n.registry, n.pool, r, core::granted(r.layout, n.registry->state.view, r.generator, granted->row));
    if (n.reserves) {
        granted->row.membership = granted->row.incarnation = 0;
        granted->row.until = core::largest(r.layout.time_bits) + 1;
    }
    put_node(*granted);
    return true;
}

NodeRecord record_of(const Registry &registry, int32_t pool, const FleetRequest &request, const core::NodeRow &row) {
    const int64_t now_us = registry.state.view.now_us;
    return {pool,
            row,
            request.host,
            request.port,
            request.database,
            request.name,
            request.version,
            request.policy,
            request.generator.clock_us - now_us,
            request.generator.length,
            now_us};
}

} // namespace uidgen::pg
