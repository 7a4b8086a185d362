#include "places.hpp"

#include "base/settings.hpp"

namespace uidgen::pg {
namespace {

constexpr char places_name[] = "uidgen grants";

Directory directory;
LWLock *places_lock = nullptr;
LWLock *file_lock = nullptr;
PlacesHeader *header = nullptr;
Place *places = nullptr;

Size places_bytes() {
    const Size bytes = mul_size(static_cast<Size>(settings::max_slots), sizeof(Place));
    return add_size(add_size(bytes, sizeof(PlacesHeader)), core::cache_line);
}

// A place that was never used is not touched before, so that a table of many places costs no memory.
void initialize(Place *place) {
    place->has_slot = false;
    place->view.reset();
    place->wanted.store(0, std::memory_order_relaxed);
    place->used_at_us.store(0, std::memory_order_relaxed);
    place->errors.store(0, std::memory_order_relaxed);
    ConditionVariableInit(&place->changed);
}

void note_slot(Slot *slot, void *) {
    Place *place = find_place(slot->key);
    if (place != nullptr)
        place->has_slot = true;
}

// Of the places whose generator has no slot, the one that was unused longest. All slots are looked at in one moment. So
// there is always one: of as many generators as there are slots, one has none, because the caller's has one.
Place *longest_unused() {
    Place *chosen = nullptr;
    const int count = grants_places();
    slots_visit(note_slot, nullptr);
    for (int i = 0; i < count; i++) {
        Place *place = &places[i];
        const int64_t used_at_us = place->used_at_us.load(std::memory_order_relaxed);
        if (!place->has_slot && (chosen == nullptr || used_at_us < chosen->used_at_us.load(std::memory_order_relaxed)))
            chosen = place;
        place->has_slot = false;
    }
    return chosen;
}

} // namespace

void places_request_memory() {
    Directory::request_memory();
    RequestAddinShmemSpace(places_bytes());
    RequestNamedLWLockTranche(places_name, 2);
}

void places_attach_memory() {
    bool found = false;
    LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
    places_lock = &GetNamedLWLockTranche(places_name)[0].lock;
    file_lock = &GetNamedLWLockTranche(places_name)[1].lock;
    directory.attach(places_name);
    char *memory = static_cast<char *>(ShmemInitStruct(places_name, places_bytes(), &found));
    header = reinterpret_cast<PlacesHeader *>(memory);
    places = reinterpret_cast<Place *>(TYPEALIGN(core::cache_line, memory + sizeof(PlacesHeader)));
    if (!found) {
        header->seen = {};
        header->changes = 1;
        header->epoch.store(settings::registry[0] != '\0' ? 1 : 0, std::memory_order_relaxed);
    }
    LWLockRelease(AddinShmemInitLock);
}

PlacesHeader *places_header() { return header; }
int grants_places() { return header != nullptr ? directory.ever_used() : 0; }

Place *place_at(int index) { return &places[index]; }
int index_of(const Place *place) { return static_cast<int>(place - places); }

void lock_places(LWLockMode mode) { LWLockAcquire(places_lock, mode); }
void unlock_places() { LWLockRelease(places_lock); }

void lock_grant_file() { LWLockAcquire(file_lock, LW_EXCLUSIVE); }
void unlock_grant_file() { LWLockRelease(file_lock); }

void grants_note_error(int place, SlotKey key, const GrantError &error) {
    lock_places(LW_EXCLUSIVE);
    Place *noted = place_of(place, key);
    if (noted != nullptr) {
        noted->error = error;
        noted->errors.fetch_add(1, std::memory_order_relaxed);
    }
    unlock_places();
    if (noted != nullptr)
        ConditionVariableBroadcast(&noted->changed);
}

bool try_fresh_incarnation(uint64_t *fresh) {
    do
        if (!pg_strong_random(fresh, sizeof(*fresh)))
            return false;
    while ((*fresh &= static_cast<uint64_t>(PG_INT64_MAX)) == 0);
    return true;
}

uint64_t fresh_incarnation() {
    uint64_t fresh = 0;
    if (!try_fresh_incarnation(&fresh))
        ereport(ERROR, (errcode(ERRCODE_INTERNAL_ERROR), errmsg("could not generate random values")));
    return fresh;
}

Place *find_place(const SlotKey &key) {
    const int32_t index = directory.find(key);
    return index != no_cell ? &places[index] : nullptr;
}

Place *place_of(int index, const SlotKey &key) {
    const bool is_its_own = places[index].used && same_key(places[index].key, key);
    return is_its_own ? &places[index] : nullptr;
}

Place *take_unused_place(const SlotKey &key) {
    const Directory::Taken taken = directory.take(key);
    if (taken.cell == no_cell)
        return nullptr;
    Place *place = &places[taken.cell];
    if (taken.is_fresh)
        initialize(place);
    place->used = true;
    place->ordered = false;
    place->key = key;
    place->renewals = 0;
    place->error = {};
    place->wanted.store(0, std::memory_order_relaxed);
    place->used_at_us.store(0, std::memory_order_relaxed);
    return place;
}

Place *take_place(const SlotKey &key) {
    Place *place = take_unused_place(key);
    if (place != nullptr)
        return place;
    give_up_place(longest_unused());
    return take_unused_place(key);
}

void give_up_place(Place *place) {
    place->view.publish(core::no_grant);
    place->used = false;
    directory.give_up(place->key);
}

void begin_line_at(Place *place, uint64_t fresh) {
    core::begin_line(&place->membership, fresh);
    place->view.publish(core::no_grant);
    place->error = {};
}

// A membership that was superseded draws nothing.
core::GrantView view_of(const core::Membership &membership) {
    if (!membership.holds || membership.superseded)
        return core::no_grant;
    return {true, membership.held.node, membership.held.from, membership.held.until};
}

} // namespace uidgen::pg
