#include "node_draws.hpp"

#include "generator_state.hpp"

namespace uidgen::pg {
namespace {

// A place that may be filled again: none of its draws is in use, and its node was given back. Null: there is none.
NodeDraw *find_empty_place(Slot *slot) REQUIRES(state_lock) {
    NodeDraw *draw = first_node_draw(slot);
    while (draw != nullptr && (draw->drawn_for.load(std::memory_order_relaxed) != for_nothing || draw->is_taken))
        draw = next_node_draw(draw);
    return draw;
}

// Sets the row of a place. Relaxed: the row's writer reads it under the state's lock.
void store_node_row(NodeDraw *draw, const DrawnRow &row) REQUIRES(state_lock) {
    draw->row.store(row.id, std::memory_order_relaxed);
    draw->at_us = row.at_us;
    draw->row_due.store(0, std::memory_order_relaxed);
    draw->retry_at_us = 0;
}

// Fills a place that is claimed, or the one for grants again: a grant's node is the registry's, and is not given back.
void fill_place(Slot *slot, NodeDraw *place, int64_t drawn_for, const core::Node &node, const DrawnRow &row)
    REQUIRES(state_lock) {
    place->node = node;
    place->layout = generator_of(slot).config.layout;
    place->is_taken = drawn_for != for_grants;
    store_node_row(place, row);
    place->drawn_for.store(drawn_for, std::memory_order_release);
}

// Adds a place to those of the slot.
void append_node_draw(Slot *slot, dsa_pointer place) REQUIRES(state_lock) {
    NodeDraw *last = first_node_draw(slot);
    while (NodeDraw *next = next_node_draw(last))
        last = next;
    last->next.store(place, std::memory_order_release);
}

} // namespace

NodeDraw *first_node_draw(Slot *slot) { return &reinterpret_cast<GeneratorSlot *>(slot)->draws; }

NodeDraw *claim_node_place(Slot *slot) {
    lock_state();
    NodeDraw *place = find_empty_place(slot);
    if (place != nullptr)
        place->drawn_for.store(for_one_to_come, std::memory_order_relaxed);
    unlock_state();
    if (place != nullptr)
        return place;
    const dsa_pointer memory = allocate_in_area(sizeof(NodeDraw), "nodes of a generator");
    place = in_area<NodeDraw>(memory);
    place->drawn_for.store(for_one_to_come, std::memory_order_relaxed);
    lock_state();
    append_node_draw(slot, memory);
    unlock_state();
    return place;
}

void give_up_node_place(NodeDraw *claimed) {
    lock_state();
    claimed->drawn_for.store(for_nothing, std::memory_order_relaxed);
    unlock_state();
}

NodeDraw *fill_node_place(Slot *slot, NodeDraw *claimed, int64_t drawn_for, const core::Node &node,
                          const DrawnRow &row) {
    lock_state();
    NodeDraw *place = find_node_draw(slot, drawn_for);
    if (place != nullptr) {
        claimed->drawn_for.store(for_nothing, std::memory_order_relaxed);
    } else {
        place = claimed;
        fill_place(slot, place, drawn_for, node, row);
    }
    unlock_state();
    return place;
}

bool show_granted_node(Slot *slot, NodeDraw *claimed, int64_t shown, const core::Node &node, const DrawnRow &row) {
    std::atomic<int64_t> &granted_node = generator_of(slot).granted_node;
    lock_state();
    const bool is_first = granted_node.load(std::memory_order_relaxed) == shown;
    NodeDraw *place = find_node_draw(slot, for_grants);
    if (!is_first || place != nullptr)
        claimed->drawn_for.store(for_nothing, std::memory_order_relaxed);
    if (is_first) {
        fill_place(slot, place != nullptr ? place : claimed, for_grants, node, row);
        granted_node.store(node.value, std::memory_order_relaxed);
    }
    unlock_state();
    return is_first;
}

bool show_own_node(Slot *slot, NodeDraw *own, const DrawnRow &row) {
    lock_state();
    const bool is_first =
        generator_of(slot).granted_node.exchange(core::no_node, std::memory_order_relaxed) != core::no_node;
    if (is_first && own != nullptr)
        store_node_row(own, row);
    unlock_state();
    return is_first;
}

void empty_node_places(Slot *slot) {
    if (slot->kind != SlotKind::generator)
        return;
    for (NodeDraw *draw = first_node_draw(slot); draw != nullptr; draw = next_node_draw(draw)) {
        draw->row.store(0, std::memory_order_relaxed);
        draw->row_owed.store(0, std::memory_order_relaxed);
        draw->drawn_for.store(for_nothing, std::memory_order_relaxed);
    }
}

void give_back_nodes(Slot *slot) {
    if (slot->kind != SlotKind::generator)
        return;
    for (NodeDraw *draw = first_node_draw(slot); draw != nullptr; draw = next_node_draw(draw)) {
        lock_state();
        const bool gives_back = draw->is_taken && draw->drawn_for.load(std::memory_order_relaxed) == for_nothing;
        const core::Layout layout = draw->layout;
        const int64_t node = draw->node.value;
        if (gives_back)
            draw->is_taken = false;
        unlock_state();
        if (gives_back)
            give_back_node(layout, node);
    }
}

} // namespace uidgen::pg
