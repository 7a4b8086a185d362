#include "memberships.hpp"

namespace uidgen::pg {
namespace {

// Whether the membership follows from the one that the place has. If too many lives have passed without an answer,
// begin_incarnation() begins a new line, which has no former ones.
bool follows(const core::Membership &next, const core::Membership &present) {
    if (next.incarnation == present.incarnation || present.former_count == core::most_former)
        return true;
    for (uint32_t i = 0; i < next.former_count; i++)
        if (next.former[i] == present.incarnation)
            return true;
    return false;
}

void publish(Place *place, const core::Membership &membership) {
    const bool renewed = membership.holds && membership.held.serial != place->membership.held.serial;
    place->renewals += renewed ? 1 : 0;
    place->membership = membership;
    const core::GrantView view = view_of(membership);
    if (renewed)
        place->error = {};
    if (view.granted && view.until > place->wanted.load(std::memory_order_relaxed))
        place->wanted.store(0, std::memory_order_relaxed);
    place->view.publish(view);
}

} // namespace

bool grants_copy(int place, Member *copy) {
    lock_places(LW_SHARED);
    const Place &from = *place_at(place);
    const bool used = place < grants_places() && from.used;
    if (used)
        *copy = {from.key,
                 from.ordered,
                 from.order,
                 from.membership,
                 from.wanted.load(std::memory_order_relaxed),
                 from.used_at_us.load(std::memory_order_relaxed),
                 from.renewals,
                 from.error};
    unlock_places();
    return used;
}

core::FleetSeen grants_fleet_seen() {
    lock_places(LW_SHARED);
    const core::FleetSeen seen = places_header()->seen;
    unlock_places();
    return seen;
}

bool grants_restore(SlotKey key, const core::Layout &layout, const core::Membership &membership) {
    lock_places(LW_EXCLUSIVE);
    Place *place = find_place(key);
    if (place == nullptr)
        place = take_unused_place(key);
    if (place != nullptr) {
        place->order = {};
        place->order.layout = layout;
        place->membership = membership;
        place->view.publish(view_of(membership));
    }
    unlock_places();
    return place != nullptr;
}

void grants_restore_fleet(const core::FleetSeen &seen) {
    lock_places(LW_EXCLUSIVE);
    places_header()->seen = seen;
    unlock_places();
}

bool grants_publish(int place, SlotKey key, const core::Membership &membership, const core::FleetSeen &seen) {
    lock_places(LW_EXCLUSIVE);
    Place *published = place_of(place, key);
    if (published != nullptr && !follows(membership, published->membership))
        published = nullptr;
    if (published != nullptr) {
        publish(published, membership);
        places_header()->seen = seen;
    }
    unlock_places();
    if (published != nullptr)
        ConditionVariableBroadcast(&published->changed);
    return published != nullptr;
}

void grants_unwant(int place, SlotKey key, int64_t wanted) {
    lock_places(LW_SHARED);
    Place *unwanted = place_of(place, key);
    if (unwanted != nullptr)
        (void)unwanted->wanted.compare_exchange_strong(wanted, 0, std::memory_order_relaxed);
    unlock_places();
}

// All at once, so that no answer of the former fleet is published in between. The numbers are made before.
void grants_begin_lines() {
    const int32_t count = grants_places();
    auto *fresh = static_cast<uint64_t *>(palloc(sizeof(uint64_t) * static_cast<Size>(count + 1)));
    for (int32_t i = 0; i < count; i++)
        fresh[i] = fresh_incarnation();
    lock_places(LW_EXCLUSIVE);
    places_header()->seen = {};
    for (int32_t i = 0; i < count; i++)
        if (place_at(i)->used)
            begin_line_at(place_at(i), fresh[i]);
    unlock_places();
    for (int32_t i = 0; i < count; i++)
        ConditionVariableBroadcast(&place_at(i)->changed);
}

bool grants_may_follow(const Member &present, SlotKey key, const core::Membership &next) {
    return same_key(present.key, key) && follows(next, present.membership);
}

} // namespace uidgen::pg
