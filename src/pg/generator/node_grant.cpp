#include "draw.hpp"

#include "core/clock_policy.hpp"
#include "session/slot_life.hpp"
#include "node/worker_node.hpp"

namespace uidgen::pg {
namespace {

constexpr NodeGrant outside_fleet = {.in_fleet = false, .view = {.granted = true, .until = core::no_limit}};

using core::no_node;

// The node that the generator may have drawn with outside the fleet. Without a number of this incarnation it is known
// from the policy, or from the generator's row. A generator with a grant has been outside since if it has a number of
// its own and shows no node of the fleet, or has leased ticks at or above the grant's end. Its grant covers the rest.
// Reads the slot, under its lock, and worker_node (former_node()).
int64_t node_before_joining(const SessionEntry *entry, int64_t mark)
    EXCLUDES(page_lock, table_lock, slot_lock, state_lock) {
    const GeneratorState &generator = generator_of(entry->slot);
    const GeneratorConfig &config = generator.config;
    Member member = {};
    if (membership_of(entry->slot).is_requested.load(std::memory_order_relaxed) || mark <= core::no_lease_yet)
        return no_node;
    const bool is_given = config.worker_policy == WorkerPolicy::fixed;
    const NodeDraw *drawn = own_node_so_far(entry->slot);
    const bool has_grant = membership_copy(entry->slot, &member) && member.holding.holds &&
                           core::same_layout(member.request.layout, config.layout);
    const bool is_beyond = core::tick_of_mark(config.policy, mark) >= grant_view_of(member).until;
    const bool shows_own = drawn != nullptr && generator.granted_node.load(std::memory_order_relaxed) == no_node;
    if (has_grant && !is_beyond && !shows_own)
        return no_node;
    int64_t node = no_node;
    if (is_given)
        node = own_node(config, config.worker_number).value;
    else if (drawn != nullptr)
        node = drawn->node.value;
    else
        node = former_node(extension_schema(), entry->sequence, config.layout, core::Protection::registry);
    return has_grant && !is_beyond && node == member.holding.grant.node ? no_node : node;
}

// What the registrar is to ask for the generator of an open entry, whose high-water mark is `mark`. By the slot,
// catalogs and node_before_joining().
GrantRequest request_of(const SessionEntry *entry, int64_t mark)
    EXCLUDES(page_lock, table_lock, slot_lock, state_lock) {
    const GeneratorConfig &config = generator_of(entry->slot).config;
    const core::ClockPolicy &policy = config.policy;
    GrantRequest request = {};
    request.layout = config.layout;
    request.least_length = 2 * (policy.max_ahead + policy.lease);
    request.own_pool = config.own_pool;
    request.policy = config.worker_policy;
    request.worker_number = config.worker_number;
    request.datacenter_id = datacenter_id_to_ask_for(config);
    request.former_node = node_before_joining(entry, mark);
    request.has_leased = mark > core::no_lease_yet;
    strlcpy(request.preset, config.preset, sizeof(request.preset));
    copy_clipped(request.generator, stored_name(entry->sequence), sizeof(request.generator));
    copy_clipped(request.database, get_database_name(MyDatabaseId), sizeof(request.database));
    return request;
}

// uidgen.registry was reset. Notes that in atomics of the slot, and draws the id of a row of worker_node that shows the
// generator's own node again (draw_own_row_again()).
void leave_fleet(SessionEntry *entry) EXCLUDES(page_lock, table_lock, slot_lock, state_lock) {
    membership_of(entry->slot).is_requested.store(false, std::memory_order_relaxed);
    draw_own_row_again(entry->slot);
}

} // namespace

NodeGrant join_or_leave_fleet(SessionEntry *entry) {
    MembershipState &membership = membership_of(entry->slot);
    const bool in_fleet = is_in_fleet();
    const bool is_requested = membership.is_requested.load(std::memory_order_relaxed);
    if (likely(!in_fleet)) {
        if (unlikely(is_requested || generator_of(entry->slot).granted_node.load(std::memory_order_relaxed) != no_node))
            leave_fleet(entry);
        return outside_fleet;
    }
    if (unlikely(!is_requested))
        membership_request(entry->slot,
                           request_of(entry, high_water_mark_of(entry->sequence))); // read after is_in_fleet()
    return {true, membership_view(entry->slot)};
}

// A try with an older view leaves the row to one with the present view.
void show_node(SessionEntry *entry, const GrantView &grant) {
    const int64_t shown = generator_of(entry->slot).granted_node.load(std::memory_order_relaxed);
    if (unlikely(shown != grant.node) && core::same_view(membership_view(entry->slot), grant))
        draw_row_of_grant(entry->slot, shown, grant.node);
    if (NodeDraw *row = find_node_draw(entry->slot, for_grants))
        note_node_in_use(row);
}

NodeGrant present_grant(const Slot *slot) {
    if (!is_in_fleet())
        return outside_fleet;
    const bool is_member = membership_of(slot).is_requested.load(std::memory_order_relaxed);
    return {true, is_member ? grant_view_of(membership_of(slot).fields) : core::no_grant};
}

} // namespace uidgen::pg
