// Whether a generator may take over at the clock while ids of another one of its layout lie ahead of the clock.
//
// Those ids stay. Until the clock has passed them, an id of the new generator may have the tick of one of them. So its
// node must be one that none of them has. What is known of their nodes, if both generators draw numbers:
//
//   1. Ticks of a generator only grow. A row of worker_node is drawn before the first lease of its incarnation, with a
//      reading of the clock, and the lease begins at most max_ahead above it (P4). So if a row was drawn so long before
//      `now`, ids with earlier numbers lie below `now`.
//   2. Numbers come from one sequence, whose record is written before a lease that uses the number. So ids ahead of
//      `now` were made with the numbers from that row's to the sequence's last, whichever rows are missing. Without
//      such a row all numbers count. They also do for sticky, which returns to nodes of earlier numbers.
//   3. Successive numbers have different nodes until 2^bits_by_number() were drawn. So the numbers after the last one
//      meet the nodes of (2) only when so many were drawn.
//   4. Without a row and without a number in its slot the former generator may not have drawn here at all: its ids may
//      have come with a restore, from another database. Then nothing is known.
//   5. If a row shows a node that follows from none of the numbers of (2), nothing is known. Such is the node of a
//      grant, or of another datacenter id.
//   6. A number above the sequence's last, of a generator or a row, shows that it was set back. Then (3) does not hold.
//
// A node that a person gave follows from no number. Only the rows tell whether one of the ids has it.
#pragma once

#include "clock_policy.hpp"
#include "node.hpp"

namespace uidgen::core {

// A row of worker_node, drawn by the former generator in this database on this server.
struct DrawnNode {
    int64_t id; // the number, unless the policy is sticky or static
    int64_t created_us;
    int64_t node;
};

// What the nodes of one of the two generators follow from.
struct NodesOf {
    NodeSource source;
    bool sticky;
    int64_t number; // the one in its slot, or given; negative: none yet
};

struct OtherNodes {
    Layout layout;
    NodesOf former;
    NodesOf next;
    const DrawnNode *rows;
    int32_t row_count;
    bool rows_of_another; // worker_node has rows of another database or server, as after a restore
    int64_t last_number;  // of worker_node's sequence
    int64_t now;          // the clock's tick
};

enum class NodesMeet : uint8_t {
    later,   // not before `left` numbers were drawn
    given,   // the new generator's node was given, and as far as is known no id ahead of the clock has it
    perhaps, // nothing is known
    now,     // ids ahead of the clock have the new generator's node
};

struct Meeting {
    NodesMeet when;
    int64_t left;
};

namespace detail {

// The first number of (2).
constexpr int64_t first_number(const OtherNodes &o) noexcept {
    const int64_t lead = std::max(longest_ahead_ms * 1000 / o.layout.tick_us, INT64_C(1));
    int64_t first = 1;
    for (int32_t i = 0; i < o.row_count; i++)
        if (tick_at(o.layout, o.rows[i].created_us) + lead <= o.now)
            first = std::max(first, o.rows[i].id);
    return first;
}

constexpr bool is_given(const OtherNodes &o, const NodesOf &g) noexcept {
    return bits_by_number(o.layout, g.source) == 0;
}

constexpr int64_t present_node(const OtherNodes &o, const NodesOf &g) noexcept {
    const bool has_one = g.number >= 0 || is_given(o, g);
    return has_one ? node_of(o.layout, g.source, std::max(g.number, INT64_C(0))).value : no_node;
}

constexpr bool is_shown(const OtherNodes &o, int64_t first, int64_t node) noexcept {
    bool shown = present_node(o, o.former) == node;
    for (int32_t i = 0; i < o.row_count; i++)
        shown = shown || (o.rows[i].id >= first && o.rows[i].node == node);
    return shown;
}

// Whether the node follows from one of the numbers from `since` to the last one.
constexpr bool follows(const OtherNodes &o, int64_t since, int64_t node) noexcept {
    const auto mask = static_cast<uint64_t>(largest(bits_by_number(o.layout, o.former.source)));
    const int64_t number = number_of(o.layout, o.former.source, node);
    const uint64_t above = (static_cast<uint64_t>(number) - static_cast<uint64_t>(since)) & mask;
    return node_of(o.layout, o.former.source, number).value == node &&
           above <= static_cast<uint64_t>(o.last_number - since);
}

constexpr bool was_set_back(const OtherNodes &o) noexcept {
    int64_t highest = std::max(o.former.number, o.next.number);
    for (int32_t i = 0; i < o.row_count; i++)
        highest = std::max(highest, o.rows[i].id);
    return highest > o.last_number;
}

} // namespace detail

constexpr Meeting judge_nodes(const OtherNodes &o) noexcept {
    const int64_t first = detail::first_number(o);
    const int64_t present = detail::present_node(o, o.next);
    if (present != no_node && detail::is_shown(o, first, present))
        return {NodesMeet::now, 0};
    if (detail::is_given(o, o.next))
        return {NodesMeet::given, 0};
    const bool has_drawn_here = o.row_count > 0 || o.former.number >= 0;
    if (!has_drawn_here || o.rows_of_another || o.former.source.datacenter_id != o.next.source.datacenter_id ||
        detail::is_given(o, o.former) || detail::was_set_back(o))
        return {NodesMeet::perhaps, 0};
    // The new generator may have drawn its number before.
    const int64_t drawn = o.next.number >= 0 ? o.next.number : first;
    const int64_t since = o.former.sticky || o.next.sticky ? 1 : std::min(first, drawn);
    for (int32_t i = 0; i < o.row_count; i++)
        if (o.rows[i].id >= first && !detail::follows(o, since, o.rows[i].node))
            return {NodesMeet::perhaps, 0};
    const int64_t left = largest(bits_by_number(o.layout, o.next.source)) + 1 - (o.last_number - since + 1);
    return {left > 0 ? NodesMeet::later : NodesMeet::perhaps, left};
}

} // namespace uidgen::core
