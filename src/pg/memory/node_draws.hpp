// The nodes that a generator draws with: one for each formula that sessions have had (core/node.hpp), because their
// uidgen.datacenter_id may differ, and change at any time; and one for the grants of its registry. Each has a row in
// worker_node.
//
//   1. A place keeps its node from its draw until the slot is made ready again, expires or is freed. So sessions with
//      another formula, or with a window from before a change, draw with nodes that no other generator of the layout is
//      given meanwhile (take_node()).
//   2. Places are filled and emptied under the state's lock, and emptied by a session that excludes users of the slot.
//      `drawn_for` is set last, so a session that uses the slot reads `node` without the lock.
//   3. Their memory stays the slot's, so a transaction that ends may note that it has used one.
#pragma once

#include "core/node.hpp"
#include "slots.hpp"

namespace uidgen::pg {

// What a place is for, besides core::used_datacenter_id().
constexpr int64_t for_grants = -2;
constexpr int64_t for_nothing = -3; // it is empty
constexpr int64_t for_one_to_come = -4;

struct NodeDraw {
    std::atomic<dsa_pointer> next;  // of the same slot; never changes once it is set
    std::atomic<int64_t> drawn_for; // release pairs with find_node_draw()
    core::Node node;
    core::Layout layout;
    bool is_taken GUARDED_BY(state_lock); // take_node(), even after the place was emptied
    // The row of worker_node (node_writer.cpp).
    std::atomic<int64_t> row; // its id; 0: none
    int64_t at_us GUARDED_BY(state_lock);
    std::atomic<int64_t> row_due;               // a timestamptz: a transaction that begins after it has the row written
    std::atomic<int64_t> row_owed;              // a timestamptz: the use that the row is owed for; 0: none
    int64_t retry_at_us GUARDED_BY(state_lock); // on the monotonic clock; 0: no attempt has failed
};

// The first place, which is in the generator's slot itself: only an address, so no lock is needed.
NodeDraw *first_node_draw(Slot *slot);

// The next place of the slot, in the area; null at the end. Needs no lock: places are never taken away.
inline NodeDraw *next_node_draw(const NodeDraw *draw) {
    return in_area<NodeDraw>(draw->next.load(std::memory_order_acquire));
}

// The slot's node for that, by atomics; null: none. For a session that uses the slot, or under the state's lock.
inline NodeDraw *find_node_draw(Slot *slot, int64_t drawn_for) {
    NodeDraw *draw = first_node_draw(slot);
    while (draw != nullptr && unlikely(draw->drawn_for.load(std::memory_order_acquire) != drawn_for))
        draw = next_node_draw(draw);
    return draw;
}

// A place of the slot for a draw to come, which no other session gets: found or added under the state's lock. Error if
// the area gets no memory for another one. The caller fills it or gives it up, and raises no error before, except for
// want of memory in the area (take_node()), which leaves the place claimed until the slot is made ready again or freed.
NodeDraw *claim_node_place(Slot *slot) EXCLUDES(state_lock);
// Gives up a place that was claimed: it is empty, under the state's lock.
void give_up_node_place(NodeDraw *claimed) EXCLUDES(state_lock);

// The row of worker_node of a draw.
struct DrawnRow {
    int64_t id;
    int64_t at_us;
};

// Fills the place that was claimed, and returns it; or gives it up, and returns the one that another session has filled
// for the same. Under the state's lock, which it takes.
NodeDraw *fill_node_place(Slot *slot, NodeDraw *claimed, int64_t drawn_for, const core::Node &node, const DrawnRow &row)
    EXCLUDES(state_lock);

// The generator's row shows the node of a grant from now on, and not `shown`: the slot's place for grants, which is the
// claimed one if there is none yet, has the row, which the node writer will write. False: another session was first.
// Under the state's lock, so that the slot and the place agree.
bool show_granted_node(Slot *slot, NodeDraw *claimed, int64_t shown, const core::Node &node, const DrawnRow &row)
    EXCLUDES(state_lock);
// It shows none of a grant any more, but that row of the place `own`, unless that is null. False: another session was
// first. Under the state's lock.
bool show_own_node(Slot *slot, NodeDraw *own, const DrawnRow &row) EXCLUDES(state_lock);

// For slots.cpp, as the next one. Both do nothing for a segment. The nodes of emptied places are given back when the
// locks are released.
void empty_node_places(Slot *slot) REQUIRES(state_lock);
// Gives the nodes of emptied places back to the table of slots, which counts who has which (give_back_node()): each
// under the state's lock, and then that of the table's row.
void give_back_nodes(Slot *slot) EXCLUDES(page_lock, table_lock, slot_lock, state_lock);

} // namespace uidgen::pg
