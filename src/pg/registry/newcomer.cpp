#include "newcomer.hpp"

#include "base/faults.hpp"
#include "node/worker_node.hpp"

namespace uidgen::pg {
namespace {

// A newcomer about to be placed.
struct Newcomer {
    Registry *registry;
    int32_t pool;
    const Call *call;
    int64_t from; // the first tick of its grant
};

// How many draws may meet a node that was used before. Each is a record in the log.
constexpr int draws = 8;

NodeRange nodes_of_datacenter(const core::Layout &layout, int64_t datacenter) {
    const int64_t first = datacenter << core::drawn_worker_bits(layout);
    return {first, first + core::largest(core::drawn_worker_bits(layout))};
}

NodeRecord record_after_grant(const Newcomer &n, const core::NodeRow &before) {
    const core::RegistryView &view = n.registry->state.view;
    NodeRecord record = {core::granted(n.call->layout, view, n.call->ask, before), n.call->reserves, n.call->holder};
    if (n.call->reserves) {
        record.row.line = record.row.incarnation = 0;
        record.row.until = core::largest(n.call->layout.time_bits) + 1;
    }
    record.holder.asked_length = n.call->ask.length;
    return record;
}

// False: the node is in the table.
bool take_unused(const Newcomer &n, int64_t node, NodeRecord *granted) {
    core::NodeRow unused = {};
    unused.node = node;
    *granted = record_after_grant(n, unused);
    return insert_node(n.pool, *granted, n.registry->state.view.now_us);
}

// False: the row has changed.
bool take_used(const Newcomer &n, const NodeRecord &before, NodeRecord *granted) {
    *granted = record_after_grant(n, before.row);
    return update_node(n.pool, before, *granted, n.registry->state.view.now_us);
}

bool is_in(NodeRange range, int64_t node) { return node >= range.first && node <= range.last; }

bool is_free(const Newcomer &n, const NodeRecord &record) {
    return !record.reserved && core::is_free(n.call->layout, n.registry->state.view, n.call->ask, record.row);
}

int64_t node_of_draw(const Newcomer &n, int64_t id) {
    const NodeRange range = nodes_for(*n.call);
    return range.first + (id & (range.last - range.first)); // a power of two of them
}

bool take_by_draw(const Newcomer &n, NodeRecord *granted) {
    for (int i = 0; i < draws; i++) {
        if (take_unused(n, node_of_draw(n, draw_node_id(n.registry->schema)), granted))
            return true;
    }
    return false;
}

bool take_oldest(const Newcomer &n, NodeRecord *granted) {
    NodeRecord oldest;
    return lock_oldest_node(n.pool, nodes_for(*n.call), n.from, &oldest) &&
           take_used(n, oldest, granted); // the row is locked, so it has not changed
}

// The last node that no draw has met. Reads the whole pool, so it comes last.
bool take_any_unused(const Newcomer &n, NodeRecord *granted) {
    int64_t node = no_node;
    while (find_unused_node(n.pool, nodes_for(*n.call), &node)) {
        if (take_unused(n, node, granted))
            return true;
        CHECK_FOR_INTERRUPTS(); // another session has taken it
    }
    return false;
}

bool take_disposable(const Newcomer &n, NodeRecord *granted) {
    return take_by_draw(n, granted) || take_oldest(n, granted) || take_any_unused(n, granted);
}

bool take_sticky(const Newcomer &n, NodeRecord *granted) {
    NodeRecord last;
    return read_sticky_node(n.pool, n.call->holder, &last) && is_in(nodes_for(*n.call), last.row.node) &&
           is_free(n, last) && take_used(n, last, granted);
}

// A session that takes or raises the node at the same time makes this one look again.
bool take_static(const Newcomer &n, NodeRecord *granted) {
    const core::Layout &layout = n.call->layout;
    const int64_t datacenter = n.call->datacenter_id == any_datacenter ? 0 : n.call->datacenter_id;
    const int64_t node = nodes_of_datacenter(layout, datacenter).first + n.call->worker_number;
    for (;;) {
        NodeRecord row;
        if (!read_node(n.pool, node, &row)) {
            if (take_unused(n, node, granted))
                return true;
        } else if (!is_free(n, row)) {
            *granted = row;
            return false;
        } else if (take_used(n, row, granted))
            return true;
        renew_serial(n.registry);
        CHECK_FOR_INTERRUPTS();
    }
}

} // namespace

NodeRange nodes_for(const Call &call) {
    if (call.datacenter_id == any_datacenter)
        return {0, core::largest(core::drawn_node_bits(call.layout))};
    return nodes_of_datacenter(call.layout, call.datacenter_id);
}

bool grant_node(Registry *registry, int32_t pool, const Call &call, NodeRecord *granted) {
    const int64_t from = core::beginning(call.layout, registry->state.view, call.ask);
    const Newcomer n = {registry, pool, &call, fault_is(Fault::forget_until) ? PG_INT64_MAX : from};
    if (call.policy == WorkerPolicy::fixed)
        return take_static(n, granted);
    return (call.policy == WorkerPolicy::sticky && take_sticky(n, granted)) || take_disposable(n, granted);
}

} // namespace uidgen::pg
