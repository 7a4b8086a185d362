// Whether a generator may take over at the clock while ids of another one of its layout lie ahead of the clock.
//
// Those ids stay. Until the clock has passed them, an id of the new generator may have the tick of one of them. So its
// node must be one that none of them has. What is known of their nodes:
//
//   1. Numbers come from one sequence, and each is drawn for one generator before its first lease. So while the server
//      stays on one host and in one directory (node.hpp), the nodes of all ids follow from the numbers up to the
//      sequence's last, whichever rows of worker_node are missing.
//   2. Successive numbers have different nodes until 2^bits_by_number() were drawn. So while fewer were drawn, the node
//      of a number belongs to one generator, and the numbers after the last one meet no node of (1) until then.
//   3. The new generator draws a number above the last one when it first draws as the default, unless its policy is
//      sticky: then it may come back to the node of an earlier row of its own, and nothing is known.
//   4. Without a row the other generator may not have drawn here at all: its ids may have come with a restore, from
//      another database. Then nothing is known.
//   5. If a row shows a node that follows from none of the numbers of (1), nothing is known. Such is the node of a
//      grant, or of another datacenter id. If a row of any generator shows that the server was elsewhere, nothing is
//      known of nodes that follow from the hash. Not covered: all rows from elsewhere are missing.
//   6. A row with a number above the sequence's last shows that it was set back. Then (2) does not hold.
//
// A node that a person gave follows from no number. Whether an id has it, only the rows tell, as far as they are there.
#pragma once

#include <algorithm>

#include "node.hpp"

namespace uidgen::core {

// A row of worker_node, drawn by the other generator in this database on this server.
struct DrawnNode {
    int64_t id; // the number, unless the policy is sticky or static
    int64_t node;
};

// What the nodes of one of the two generators follow from.
struct NodesOf {
    NodeSource source;
    int64_t given; // the number, with worker_policy static
    bool is_sticky;
};

struct OtherNodes {
    Layout layout;
    NodesOf former;
    NodesOf next;
    const DrawnNode *rows;
    int32_t row_count;
    bool rows_of_another;   // worker_node has rows of another database or server, as after a restore
    bool rows_of_elsewhere; // this server drew in another place (node.hpp)
    int64_t last_number;    // of worker_node's sequence
};

struct Meeting {
    bool is_met;  // an id of the other generator has the new generator's node
    int64_t left; // otherwise: none has the node of as many numbers to be drawn; 0: not known
};

namespace detail {

constexpr int64_t given_node(const OtherNodes &o, const NodesOf &g) noexcept {
    return bits_by_number(o.layout, g.source) == 0 ? node_of(o.layout, g.source, g.given).value : no_node;
}

constexpr bool follows(const OtherNodes &o, int64_t node) noexcept {
    const int64_t number = number_of(o.layout, o.former.source, node);
    return number > 0 && number <= o.last_number && node_of(o.layout, o.former.source, number).value == node;
}

constexpr bool hash_has_changed(const OtherNodes &o) noexcept {
    return o.rows_of_elsewhere && protection_of(o.layout, o.former.source) == Protection::automatic;
}

} // namespace detail

constexpr Meeting judge_nodes(const OtherNodes &o) noexcept {
    const int64_t node = detail::given_node(o, o.next);
    bool is_met = detail::given_node(o, o.former) == node;
    bool is_known = o.row_count > 0 && !o.rows_of_another && !detail::hash_has_changed(o) && !o.next.is_sticky &&
                    o.former.source.datacenter_id == o.next.source.datacenter_id &&
                    bits_by_number(o.layout, o.former.source) > 0;
    for (int32_t i = 0; i < o.row_count; i++) {
        is_met = is_met || o.rows[i].node == node;
        is_known = is_known && o.rows[i].id <= o.last_number && detail::follows(o, o.rows[i].node);
    }
    if (node != no_node && is_met)
        return {true, 0};
    const int64_t left = largest(bits_by_number(o.layout, o.next.source)) + 1 - o.last_number;
    return {false, is_known ? std::max(left, INT64_C(0)) : 0};
}

} // namespace uidgen::core
