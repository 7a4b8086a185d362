#include "newcomer.hpp"

#include "base/settings.hpp"
#include "base/identity.hpp"

namespace uidgen::pg {
namespace {

NodeRange nodes_of_datacenter(const core::Layout &layout, int64_t datacenter) {
    const int64_t first = datacenter << core::drawn_worker_bits(layout);
    return {first, first + core::largest(core::drawn_worker_bits(layout))};
}

// A node that was never used, if it is near a random one; then the one whose grant ended first. The last ones that were
// never used may be far.
bool find_disposable(int32_t pool, NodeRange range, int64_t from, NodeRecord *found) {
    const int64_t start = range.first + (random_number() & (range.last - range.first)); // a power of two of nodes
    return find_unused_node(pool, {start, Min(start + 7, range.last)}, found) ||
           read_oldest_node(pool, range, from, found) || find_unused_node(pool, {start, range.last}, found) ||
           find_unused_node(pool, range, found);
}

} // namespace

NodeRange nodes_for(const FleetRequest &request) {
    if (request.datacenter_id == any_datacenter)
        return {0, core::largest(core::drawn_node_bits(request.layout))};
    return nodes_of_datacenter(request.layout, request.datacenter_id);
}

bool find_node(const Registry &registry, const Call &call, NodeRecord *found) {
    const FleetRequest &r = call.request;
    const int32_t pool = call.pool;
    const NodeRange range = nodes_for(r);
    const auto is_free = [&] { return core::is_free(r.layout, registry.state.view, r.generator, found->row); };
    if (call.policy == WorkerPolicy::fixed) {
        const NodeRange of_datacenter = nodes_of_datacenter(r.layout, Max(r.datacenter_id, 0));
        (void)read_node(pool, of_datacenter.first + r.worker_number, found);
        return is_free();
    }
    if (call.policy == WorkerPolicy::sticky && read_sticky_node(pool, r, call.login, found) &&
        found->row.node >= range.first && found->row.node <= range.last && is_free())
        return true;
    const int64_t from =
        fault_is(Fault::forget_until) ? PG_INT64_MAX : core::free_from(r.layout, registry.state.view, r.generator);
    return find_disposable(pool, range, from, found);
}

// The lookups stop as soon as the answer is known, because a login may have many nodes, and a pool millions.
bool exceeds_quota(const Registry &registry, const Call &call, Newcomers *known) {
    const int32_t pool = call.pool;
    const core::Layout &layout = call.request.layout;
    const NodeRange range = nodes_for(call.request);
    const int64_t nodes = range.last - range.first + 1;
    const int64_t now = core::tick_at(layout, registry.state.view.now_us);
    const auto count = [&](NodeRange of) { return count_nodes_of(call.login, pool, of, now); };
    if (call.login == nullptr)
        return false;
    if (known->pool != pool || known->range.first != range.first || known->range.last != range.last) {
        const NodeRange all = {0, core::largest(core::drawn_node_bits(layout))};
        const int64_t own = count(range);
        *known = {known->full, pool, range, call.request.datacenter_id == any_datacenter ? own : count(all),
                  own,         -1,   -1};
    }
    if (known->own_of_pool >= core::most_nodes)
        return true;
    if (known->own > 0 && known->logins < 0)
        known->logins = count_logins(pool, range, now);
    if (known->own == 0 || !core::is_full_share(nodes, known->own, known->logins))
        return false;
    if (known->used < 0)
        known->used = count_nodes(pool, range, now, nodes);
    return core::are_few_left(nodes, known->used);
}

// What a caller says of itself is bounded before it is stored: a holder draws no further ahead of its clock than a
// grant lasts, and a clock that is off by more than a day is just wrong.
void put_member(const Registry &registry, const Call &call, const core::NodeRow &row) {
    const FleetRequest &r = call.request;
    const core::RegistryView &view = registry.state.view;
    const int64_t offset_us = std::clamp(r.generator.clock_us - view.now_us, -us_per_day, us_per_day);
    const int64_t length = Min(r.generator.length, 2 * core::longest_ticks(r.layout, view));
    put_node({call.pool, row, r.host, r.port, r.database, r.name, r.version, r.policy, call.login, offset_us, length,
              view.now_us});
}

} // namespace uidgen::pg
