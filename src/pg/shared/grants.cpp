#include "grants.hpp"

#include "base/time_source.hpp"
#include "base/waits.hpp"

namespace uidgen::pg {
namespace {

// So often a reader tries without the lock.
constexpr int most_tries = 100;

// used_at_us is at most this late.
constexpr int64_t use_resolution_us = 1000 * us_per_ms;

// Whether the order is for the line that the place has. What a file without a mark says is not the generator's own.
bool is_for_line(const Place &place, const GrantOrder &order, bool has_mark) {
    return core::same_layout(place.order.layout, order.layout) && (place.ordered || has_mark);
}

// A session that has found the place already does not know the node that the generator had before. While there is no
// grant the order still must name it.
GrantOrder with_former(GrantOrder order, const Place &place) {
    const GrantOrder &before = place.order;
    if (!place.ordered || place.membership.holds || before.former_node < 0 || order.former_node >= 0 ||
        !core::same_layout(before.layout, order.layout))
        return order;
    order.former_node = before.former_node;
    order.former_until = Max(order.former_until, before.former_until);
    return order;
}

void wake_registrar_for(int place) {
    GrantError error = {};
    if (!wake_registrar(&error))
        grants_note_error(place, place_at(place)->key, error);
}

} // namespace

// Acquire: a session that sees the fleet in force reads the high-water mark afterwards (node_grant.cpp).
uint32_t grants_epoch() { return places_header()->epoch.load(std::memory_order_acquire); }

// The setting is first assigned before there is shared memory. Relaxed stores into the epoch would do: what a session
// concludes from it rests on the order of its own loads.
void grants_set_fleet(bool in_fleet) {
    if (IsUnderPostmaster || places_header() == nullptr)
        return;
    places_header()->changes++;
    places_header()->epoch.store(in_fleet ? places_header()->changes : 0, std::memory_order_release);
}

int grants_place(SlotKey generator, const GrantOrder &order, bool has_mark) {
    const uint64_t fresh = fresh_incarnation(); // may do I/O
    lock_places(LW_EXCLUSIVE);
    Place *place = find_place(generator);
    if (place == nullptr || !is_for_line(*place, order, has_mark)) {
        place = place != nullptr ? place : take_place(generator);
        begin_line_at(place, fresh);
    }
    place->order = with_former(order, *place);
    place->ordered = true;
    unlock_places();
    const int index = index_of(place);
    grants_note_use(index, wall_clock_us());
    wake_registrar_for(index); // a grant from the file must be renewed
    return index;
}

GrantView grants_view(int place) {
    GrantView view = core::no_grant;
    for (int i = 0; i < most_tries; i++)
        if (place_at(place)->view.try_read(&view))
            return view;
    lock_places(LW_SHARED);
    view = place_at(place)->view.read_locked();
    unlock_places();
    return view;
}

// Relaxed here and below: each value stands alone.
void grants_note_use(int place, int64_t now_us) {
    std::atomic<int64_t> &used_at_us = place_at(place)->used_at_us;
    const int64_t since_us = now_us - used_at_us.load(std::memory_order_relaxed);
    if (since_us > use_resolution_us || since_us < 0)
        used_at_us.store(now_us, std::memory_order_relaxed);
}

void grants_want(int place, int64_t lowest) {
    place_at(place)->wanted.store(Max(lowest, 1), std::memory_order_relaxed);
    grants_note_use(place, wall_clock_us());
    wake_registrar_for(place);
}

void grants_wait(int place, const GrantView &seen, int64_t timeout_us) {
    Place *waited_for = place_at(place);
    const uint64_t errors = waited_for->errors.load(std::memory_order_relaxed);
    const int64_t until_us = monotonic_us() + timeout_us;
    ConditionVariablePrepareToSleep(&waited_for->changed);
    while (core::same_view(grants_view(place), seen) && waited_for->errors.load(std::memory_order_relaxed) == errors) {
        const int64_t left_us = until_us - monotonic_us();
        if (left_us <= 0 || sleep_for_grant(&waited_for->changed, left_us))
            break;
    }
    ConditionVariableCancelSleep();
}

GrantError grants_last_error(int place) {
    lock_places(LW_SHARED);
    const GrantError error = place_at(place)->error;
    unlock_places();
    return error;
}

// A place of the generator that the caller could not see would have been made under a lock on the sequence, which the
// caller excludes.
void grants_forget(SlotKey generator) {
    if (grants_places() == 0)
        return;
    lock_places(LW_EXCLUSIVE);
    Place *place = find_place(generator);
    if (place != nullptr)
        give_up_place(place);
    unlock_places();
}

} // namespace uidgen::pg
