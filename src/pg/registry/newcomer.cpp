#include "newcomer.hpp"

#include "base/settings.hpp"

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
    return !record.reserved && core::is_free(request.layout, n.registry->state.view, request.generator, record.row);
}

bool take(const Newcomer &n, const core::NodeRow &before, NodeRecord *granted) {
    const FleetRequest &request = *n.request;
    *granted = record_of(*n.registry, n.pool, request,
                         core::granted(request.layout, n.registry->state.view, request.generator, before));
    if (n.reserves) {
        granted->reserved = true;
        granted->row.membership = granted->row.incarnation = 0;
        granted->row.until = core::largest(request.layout.time_bits) + 1;
    }
    put_node(*granted);
    return true;
}

bool take_unused(const Newcomer &n, int64_t node, NodeRecord *granted) {
    core::NodeRow unused = {};
    unused.node = node;
    return take(n, unused, granted);
}

bool take_at_random(const Newcomer &n, NodeRecord *granted) {
    const NodeRange range = nodes_for(*n.request);
    for (int i = 0; i < draws; i++) {
        const int64_t node = range.first + (random_number() & (range.last - range.first)); // a power of two of them
        if (!read_node(n.pool, node, granted))
            return take_unused(n, node, granted);
    }
    return false;
}

// The last node that was never used reads the whole pool, so it comes last.
bool take_disposable(const Newcomer &n, NodeRecord *granted) {
    const NodeRange range = nodes_for(*n.request);
    const int64_t from = fault_is(Fault::forget_until)
                             ? PG_INT64_MAX
                             : core::beginning(n.request->layout, n.registry->state.view, n.request->generator);
    int64_t node = no_node;
    if (take_at_random(n, granted))
        return true;
    if (read_oldest_node(n.pool, range, from, granted))
        return take(n, granted->row, granted);
    return find_unused_node(n.pool, range, &node) && take_unused(n, node, granted);
}

bool take_sticky(const Newcomer &n, NodeRecord *granted) {
    const NodeRange range = nodes_for(*n.request);
    return read_sticky_node(n.pool, *n.request, granted) && granted->row.node >= range.first &&
           granted->row.node <= range.last && is_free(n, *granted) && take(n, granted->row, granted);
}

bool take_static(const Newcomer &n, NodeRecord *granted) {
    const int64_t node = static_node(*n.request);
    if (!read_node(n.pool, node, granted))
        return take_unused(n, node, granted);
    return is_free(n, *granted) && take(n, granted->row, granted);
}

} // namespace

NodeRange nodes_for(const FleetRequest &request) {
    if (request.datacenter_id == any_datacenter)
        return {0, core::largest(core::drawn_node_bits(request.layout))};
    return nodes_of_datacenter(request.layout, request.datacenter_id);
}

int64_t static_node(const FleetRequest &request) {
    return nodes_of_datacenter(request.layout, Max(request.datacenter_id, 0)).first + request.worker_number;
}

bool grant_node(const Newcomer &newcomer, NodeRecord *granted) {
    if (newcomer.policy == WorkerPolicy::fixed)
        return take_static(newcomer, granted);
    return (newcomer.policy == WorkerPolicy::sticky && take_sticky(newcomer, granted)) ||
           take_disposable(newcomer, granted);
}

NodeRecord record_of(const Registry &registry, int32_t pool, const FleetRequest &request, const core::NodeRow &row) {
    const int64_t now_us = registry.state.view.now_us;
    return {pool,
            row,
            false,
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
