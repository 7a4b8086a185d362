// A generator that begins again at the clock after the clock was far ahead: which node its ids have from then on.
//
// The ids that the generator made ahead of the clock stay. Until the clock has passed them, a new id may have the tick
// of an old one, so it needs a node that none of these has. A restart begins a *term* (high_water_mark.hpp) and *pins*
// one node. Why no pair (node, tick) comes twice:
//
//   1. All ids of earlier terms lie below `until`. The new ids begin at the clock's tick at the restart, `now`. The
//      generator keeps the pinned node as long as its next tick is below `until`. From there on it may have any node.
//   2. Within a term ticks only grow, so the ids from `now` on are the last ones of their term. A row of worker_node is
//      drawn before the first lease of its number, with a reading of the clock, and that lease begins at most max_ahead
//      above it (P4). So if a row was drawn so long before `now`, all ids made with earlier numbers lie below `now`.
//   3. Numbers come from one sequence, and its record is written before a lease that uses the number. So the ids from
//      `now` on have the nodes of the numbers from that row's to the sequence's last. These are a superset of the nodes
//      in question, however many rows are missing. If there is no such row, all numbers count.
//   4. The nodes of earlier restarts are kept in the row, as long as their ids may lie above the clock. They are those
//      of ids from the last restart's tick on. If the clock is before that, numbers count again as in 3. From the
//      second restart on that is not enough, because the row may have dropped nodes. Then each node may be in use.
//   5. A sticky or static generator takes nodes that do not follow from these numbers. They are in rows: of a sticky
//      one in any row, because it takes them from there.
//
// With when_back new_worker nothing is pinned, because each term has a worker id of its own (node.hpp, 3).
#pragma once

#include "high_water_mark.hpp"
#include "node.hpp"

namespace uidgen::core {

// Nodes that a restart may not choose. If there are too many to list, all.
struct NodeSet {
    static constexpr int32_t room = 1024;
    int64_t nodes[room];
    int32_t count;
    bool all;

    constexpr bool lists(int64_t node) const noexcept {
        int32_t i = 0;
        while (i < count && nodes[i] != node)
            i++;
        return i < count;
    }

    constexpr void add(int64_t node) noexcept {
        if (lists(node))
            return;
        if (count == room)
            all = true;
        else
            nodes[count++] = node;
    }

    constexpr void add(const NodeSet &other) noexcept {
        for (int32_t i = 0; i < other.count; i++)
            add(other.nodes[i]);
        all = all || other.all;
    }
};

// A row of worker_node, drawn by this generator in this database on this server.
struct DrawnNode {
    int64_t id; // the number, unless the policy is sticky or static
    int64_t created_us;
    int64_t node;
};

enum class Numbers : uint8_t {
    drawn,  // worker_policy disposable
    sticky, // drawn, or taken from a row
    given,  // static: no node follows from a number that was drawn
};

struct RestartState {
    Layout layout;
    ClockPolicy policy; // with the last restart
    NodeSource source;
    Numbers numbers;
    int64_t given_number; // static
    int64_t mark;         // the high-water mark
    int64_t now;          // the clock's tick
    int64_t pinned;       // by the last restart; no_node: nothing
    const NodeSet *former;
    const DrawnNode *rows;
    int32_t row_count;
    int64_t last_number;   // the last one that was drawn in this database
    bool rows_of_another;  // worker_node has rows of another database or server, as after a restore
    const NodeSet *others; // pinned by other generators of the database
};

enum class RestartFault : uint8_t {
    none,
    not_ahead,    // the generator draws, or will within max_ahead
    before_epoch, // so says the clock
    no_term,      // the terms are used up
    asks_no_node, // with new_worker the term decides
    needs_node,   // no node can be chosen, because none is drawn
    no_node_left, // each node may be in an id above the clock
    node_in_use,  // the one that was asked for
};

struct RestartPlan {
    RestartFault fault;
    Restart restart;
    int64_t node; // to pin; no_node: nothing
};

// The lowest number that an id from the clock's tick on can be made with; 0: not known.
constexpr int64_t first_number_above(const RestartState &s) noexcept {
    const int64_t lead = std::max(longest_ahead_ms * 1000 / s.layout.tick_us, INT64_C(1));
    int64_t first = s.rows_of_another ? 0 : 1;
    for (int32_t i = 0; i < s.row_count; i++)
        if (tick_at(s.layout, s.rows[i].created_us) + lead <= s.now)
            first = std::max(first, s.rows[i].id);
    return first;
}

// The present term has drawn with nodes other than the pinned one. The counterpart of is_pinned().
constexpr bool may_have_left_pin(const RestartState &s) noexcept {
    return s.pinned == no_node || ticks_of_mark(s.layout, s.policy, s.mark) + 1 >= s.policy.restart.until;
}

// The row's former nodes do not cover all ids above the clock.
constexpr bool is_before_last_restart(const RestartState &s) noexcept {
    return s.now <= (s.policy.restart.mark & largest(max_time_bits));
}

// The slot of a generator whose first tick this is keeps the pinned node.
constexpr bool is_pinned(const ClockPolicy &p, int64_t first_tick) noexcept { return first_tick < p.restart.until; }

// Nodes that ids above the clock are known to have, or that are not another one. `numbers`: also those that they can
// have. Not for new_worker.
constexpr void add_nodes_above(NodeSet *set, const RestartState &s, bool numbers) noexcept {
    if (s.now < s.policy.restart.until)
        set->add(*s.former);
    if (s.pinned != no_node)
        set->add(s.pinned);
    const bool before_last = is_before_last_restart(s);
    if (!may_have_left_pin(s) && !before_last)
        return;
    const int64_t first = first_number_above(s);
    for (int32_t i = 0; i < s.row_count; i++)
        if (s.rows[i].id >= first || s.numbers == Numbers::sticky)
            set->add(s.rows[i].node);
    // Whatever the rows say, the generator has this one.
    if (bits_by_number(s.layout, s.source) == 0)
        set->add(node_of(s.layout, s.source, s.given_number).value);
    if (!numbers || s.numbers == Numbers::given)
        return;
    const bool dropped = before_last && first_term(s.policy) > 1;
    if (first == 0 || dropped || s.last_number - first >= NodeSet::room)
        set->all = true;
    for (int64_t number = first; !set->all && number <= s.last_number; number++)
        set->add(node_of(s.layout, s.source, number).value);
}

// The first node beyond the last number's that the set does not hold, if possible one that no other generator has
// pinned; no_node: there is none. The generator will draw that number, so a small layout loses one node only.
constexpr int64_t free_node(const RestartState &s, const NodeSet &taken) noexcept {
    const int64_t nodes = INT64_C(1) << bits_by_number(s.layout, s.source);
    int64_t shared = no_node; // with another generator
    for (int64_t i = 1; !taken.all && i <= nodes; i++) {
        const int64_t node = node_of(s.layout, s.source, s.last_number + i).value;
        if (taken.lists(node))
            continue;
        if (!s.others->lists(node))
            return node;
        shared = node;
    }
    return shared;
}

// `wanted` is the node that was asked for, or no_node. On return `former` holds the nodes to keep in the row.
constexpr RestartPlan plan_restart(const RestartState &s, int64_t wanted, NodeSet *former) noexcept {
    const bool by_term = s.policy.when_back == WhenBack::new_worker;
    const int64_t ticks = ticks_of_mark(s.layout, s.policy, s.mark);
    const int64_t last = ticks % s.policy.end;
    const int64_t present = std::max(first_term(s.policy) + ticks / s.policy.end, s.mark >> max_time_bits);
    const int64_t term = present + 1;
    RestartPlan plan = {RestartFault::none, {}, no_node};
    const auto fails = [&plan](RestartFault fault) {
        plan.fault = fault;
        return plan;
    };
    if (s.mark <= no_lease_yet || last <= s.now + s.policy.max_ahead)
        return fails(RestartFault::not_ahead);
    if (s.now <= 0)
        return fails(RestartFault::before_epoch);
    if (term >= (by_term ? terms_of(s.layout, s.policy) : most_terms))
        return fails(RestartFault::no_term);
    plan.restart = {term << max_time_bits | (s.now - 1), std::max(s.policy.restart.until, last + 1)};
    if (by_term)
        return wanted == no_node ? plan : fails(RestartFault::asks_no_node);

    NodeSet known = {};
    add_nodes_above(&known, s, false);
    add_nodes_above(former, s, true);
    const bool chooses = s.numbers != Numbers::given && bits_by_number(s.layout, s.source) > 0;
    if (wanted == no_node && !chooses)
        return fails(RestartFault::needs_node);
    plan.node = wanted != no_node ? wanted : free_node(s, *former);
    if (plan.node == no_node)
        return fails(RestartFault::no_node_left);
    return wanted != no_node && known.lists(wanted) ? fails(RestartFault::node_in_use) : plan;
}

} // namespace uidgen::core
