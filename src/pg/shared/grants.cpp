#include "grants.hpp"

#include <atomic>

#include "single_worker.hpp"
#include "base/settings.hpp"
#include "base/time_source.hpp"
#include "base/waits.hpp"

namespace uidgen::pg {
namespace {

constexpr char directory_name[] = "uidgen grants directory";
constexpr char places_name[] = "uidgen grants";

// So often a reader tries without the lock.
constexpr int most_tries = 100;

// used_at_us is at most this late.
constexpr int64_t use_resolution_us = 1000 * us_per_ms;

struct DirectoryEntry {
    SlotKey key; // must come first: dynahash's key
    int32_t index;
};

// All but the atomics, the view and the condition variable is guarded by the grants lock.
struct Place {
    bool used;
    bool ordered;        // else it comes from the file, and no session has used it yet
    int32_t next_unused; // of an unused place; -1: none
    SlotKey key;
    GrantOrder order;
    core::Membership membership;
    int64_t renewals;
    GrantError error;
    core::SharedGrantView<> view;
    std::atomic<int64_t> wanted;
    std::atomic<int64_t> used_at_us;
    std::atomic<uint64_t> errors; // counts the errors that were noted
    ConditionVariable changed;
};

// Stands before the places. Guarded by the lock, but for the atomics.
struct Header {
    core::FleetSeen seen;
    int32_t unused;                 // the first of a list of places that were given up; -1: none
    std::atomic<int32_t> ever_used; // the places before it were taken once; written under the lock
    std::atomic<uint32_t> epoch;    // grants_epoch(); written by the postmaster
    uint32_t changes;               // of the setting; the postmaster's
};

HTAB *directory = nullptr; // in shared memory
LWLock *grants_lock = nullptr;
LWLock *file_lock = nullptr;
Header *header = nullptr;
Place *places = nullptr;

Size places_bytes() {
    const Size bytes = mul_size(static_cast<Size>(settings::max_slots), sizeof(Place));
    return add_size(add_size(bytes, sizeof(Header)), core::cache_line);
}

DirectoryEntry *lookup(const SlotKey &key, HASHACTION action) {
    return static_cast<DirectoryEntry *>(hash_search(directory, &key, action, nullptr));
}

Place *find_place(const SlotKey &key) {
    const DirectoryEntry *entry = lookup(key, HASH_FIND);
    return entry != nullptr ? &places[entry->index] : nullptr;
}

bool same_key(const SlotKey &a, const SlotKey &b) { return a.database == b.database && a.sequence == b.sequence; }

// Null unless the place still belongs to that generator.
Place *place_of(int place, const SlotKey &key) {
    const bool is_its_own = places[place].used && same_key(places[place].key, key);
    return is_its_own ? &places[place] : nullptr;
}

// A membership that was superseded draws nothing.
GrantView view_of(const core::Membership &membership) {
    if (!membership.holds || membership.superseded)
        return core::no_grant;
    return {true, membership.held.node, membership.held.from, membership.held.until};
}

void begin_line(Place *place, uint64_t fresh) {
    core::begin_line(&place->membership, fresh);
    place->view.publish(core::no_grant);
    place->error = {};
}

// Whether the order is for the line that the place has. What a file without a mark says is not the generator's own.
bool is_for_line(const Place &place, const GrantOrder &order, bool has_mark) {
    return core::same_layout(place.order.layout, order.layout) && place.order.term == order.term &&
           (place.ordered || has_mark);
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

void wake_registrar(int place) {
    GrantError error = {};
    if (wake_worker(SingleWorker::registrar))
        return;
    strlcpy(error.message, "no background worker slot is free for the registrar", sizeof(error.message));
    strlcpy(error.hint, "Increase max_worker_processes in postgresql.conf and restart the server.", sizeof(error.hint));
    error.at_us = wall_clock_us();
    grants_note_error(place, places[place].key, error);
}

// A place that was never used is not touched before, so that a table of many places costs no memory.
void initialize(Place *place) {
    place->view.reset();
    place->wanted.store(0, std::memory_order_relaxed);
    place->used_at_us.store(0, std::memory_order_relaxed);
    place->errors.store(0, std::memory_order_relaxed);
    ConditionVariableInit(&place->changed);
}

// Null: there is none.
Place *take_unused(const SlotKey &key) {
    int32_t index = header->unused;
    if (index >= 0) {
        header->unused = places[index].next_unused;
    } else if (header->ever_used.load(std::memory_order_relaxed) < settings::max_slots) {
        index = header->ever_used.fetch_add(1, std::memory_order_relaxed);
        initialize(&places[index]);
    } else {
        return nullptr;
    }
    Place *place = &places[index];
    place->used = true;
    place->ordered = false;
    place->key = key;
    place->renewals = 0;
    place->error = {};
    place->wanted.store(0, std::memory_order_relaxed);
    place->used_at_us.store(0, std::memory_order_relaxed);
    lookup(key, HASH_ENTER)->index = index;
    return place;
}

void give_up(Place *place) {
    lookup(place->key, HASH_REMOVE);
    place->view.publish(core::no_grant);
    place->used = false;
    place->next_unused = header->unused;
    header->unused = static_cast<int32_t>(place - places);
}

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
    const GrantView view = view_of(membership);
    if (renewed)
        place->error = {};
    if (view.granted && view.until > place->wanted.load(std::memory_order_relaxed))
        place->wanted.store(0, std::memory_order_relaxed);
    place->view.publish(view);
}

} // namespace

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

void grants_request_memory() {
    const Size entries = hash_estimate_size(static_cast<long>(settings::max_slots), sizeof(DirectoryEntry));
    RequestAddinShmemSpace(add_size(places_bytes(), entries));
    RequestNamedLWLockTranche(places_name, 2);
}

void grants_attach_memory() {
    bool found = false;
    LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
    grants_lock = &GetNamedLWLockTranche(places_name)[0].lock;
    file_lock = &GetNamedLWLockTranche(places_name)[1].lock;

    HASHCTL control = {};
    control.keysize = sizeof(SlotKey);
    control.entrysize = sizeof(DirectoryEntry);
    directory = shared_hash_table(directory_name, settings::max_slots, &control, HASH_ELEM | HASH_BLOBS);

    char *memory = static_cast<char *>(ShmemInitStruct(places_name, places_bytes(), &found));
    header = reinterpret_cast<Header *>(memory);
    places = reinterpret_cast<Place *>(TYPEALIGN(core::cache_line, memory + sizeof(Header)));
    if (!found) {
        header->seen = {};
        header->unused = -1;
        header->ever_used.store(0, std::memory_order_relaxed);
        header->changes = 1;
        header->epoch.store(settings::registry[0] != '\0' ? 1 : 0, std::memory_order_relaxed);
    }
    LWLockRelease(AddinShmemInitLock);
}

// Acquire: a session that sees the fleet in force reads the high-water mark afterwards (node_grant.cpp).
uint32_t grants_epoch() { return header->epoch.load(std::memory_order_acquire); }

// The setting is first assigned before there is shared memory. Relaxed stores into the epoch would do: what a session
// concludes from it rests on the order of its own loads.
void grants_set_fleet(bool in_fleet) {
    if (IsUnderPostmaster || header == nullptr)
        return;
    header->changes++;
    header->epoch.store(in_fleet ? header->changes : 0, std::memory_order_release);
}

// ---------------------------------------------------------------------------------------------------------
// For the sessions.
// ---------------------------------------------------------------------------------------------------------

int grants_place(SlotKey generator, const GrantOrder &order, bool has_mark) {
    const uint64_t fresh = fresh_incarnation(); // may do I/O
    LWLockAcquire(grants_lock, LW_EXCLUSIVE);
    Place *place = find_place(generator);
    if (place == nullptr) {
        place = take_unused(generator);
        if (place != nullptr)
            begin_line(place, fresh);
    } else if (!is_for_line(*place, order, has_mark)) {
        begin_line(place, fresh);
    }
    if (place != nullptr) {
        place->order = with_former(order, *place);
        place->ordered = true;
    }
    LWLockRelease(grants_lock);
    if (place == nullptr)
        return no_place;
    const auto index = static_cast<int>(place - places);
    grants_note_use(index, wall_clock_us());
    wake_registrar(index); // a grant from the file must be renewed
    return index;
}

GrantView grants_view(int place) {
    GrantView view = core::no_grant;
    for (int i = 0; i < most_tries; i++)
        if (places[place].view.try_read(&view))
            return view;
    LWLockAcquire(grants_lock, LW_SHARED);
    view = places[place].view.read_locked();
    LWLockRelease(grants_lock);
    return view;
}

// Relaxed here and below: each value stands alone.
void grants_note_use(int place, int64_t now_us) {
    std::atomic<int64_t> &used_at_us = places[place].used_at_us;
    const int64_t since_us = now_us - used_at_us.load(std::memory_order_relaxed);
    if (since_us > use_resolution_us || since_us < 0)
        used_at_us.store(now_us, std::memory_order_relaxed);
}

void grants_want(int place, int64_t lowest) {
    places[place].wanted.store(Max(lowest, 1), std::memory_order_relaxed);
    grants_note_use(place, wall_clock_us());
    wake_registrar(place);
}

void grants_wait(int place, const GrantView &seen, int64_t timeout_us) {
    Place *waited_for = &places[place];
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
    LWLockAcquire(grants_lock, LW_SHARED);
    const GrantError error = places[place].error;
    LWLockRelease(grants_lock);
    return error;
}

// A place of the generator that the caller could not see would have been made under a lock on the sequence, which the
// DROP has waited for.
void grants_forget(SlotKey generator) {
    if (grants_places() == 0)
        return;
    LWLockAcquire(grants_lock, LW_EXCLUSIVE);
    Place *place = find_place(generator);
    if (place != nullptr)
        give_up(place);
    LWLockRelease(grants_lock);
}

void grants_forget_database(Oid database) {
    const int32_t count = grants_places();
    if (count == 0)
        return;
    LWLockAcquire(grants_lock, LW_EXCLUSIVE);
    for (int32_t i = 0; i < count; i++)
        if (places[i].used && places[i].key.database == database)
            give_up(&places[i]);
    LWLockRelease(grants_lock);
}

// All at once, so that no answer of the former fleet is published in between. The numbers are made before.
void grants_begin_lines() {
    const int32_t count = grants_places();
    auto *fresh = static_cast<uint64_t *>(palloc(sizeof(uint64_t) * static_cast<Size>(count + 1)));
    for (int32_t i = 0; i < count; i++)
        fresh[i] = fresh_incarnation();
    LWLockAcquire(grants_lock, LW_EXCLUSIVE);
    header->seen = {};
    for (int32_t i = 0; i < count; i++)
        if (places[i].used)
            begin_line(&places[i], fresh[i]);
    LWLockRelease(grants_lock);
    for (int32_t i = 0; i < count; i++)
        ConditionVariableBroadcast(&places[i].changed);
}

// ---------------------------------------------------------------------------------------------------------
// For the registrar and the status view.
// ---------------------------------------------------------------------------------------------------------

int grants_places() { return header != nullptr ? header->ever_used.load(std::memory_order_relaxed) : 0; }

bool grants_copy(int place, Member *copy) {
    LWLockAcquire(grants_lock, LW_SHARED);
    const Place &from = places[place];
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
    LWLockRelease(grants_lock);
    return used;
}

core::FleetSeen grants_fleet_seen() {
    LWLockAcquire(grants_lock, LW_SHARED);
    const core::FleetSeen seen = header->seen;
    LWLockRelease(grants_lock);
    return seen;
}

bool grants_restore(SlotKey key, const core::Layout &layout, int64_t term, const core::Membership &membership) {
    LWLockAcquire(grants_lock, LW_EXCLUSIVE);
    Place *place = find_place(key);
    if (place == nullptr)
        place = take_unused(key);
    if (place != nullptr) {
        place->order = {};
        place->order.layout = layout;
        place->order.term = term;
        place->membership = membership;
        place->view.publish(view_of(membership));
    }
    LWLockRelease(grants_lock);
    return place != nullptr;
}

void grants_restore_fleet(const core::FleetSeen &seen) {
    LWLockAcquire(grants_lock, LW_EXCLUSIVE);
    header->seen = seen;
    LWLockRelease(grants_lock);
}

bool grants_publish(int place, SlotKey key, const core::Membership &membership, const core::FleetSeen &seen) {
    LWLockAcquire(grants_lock, LW_EXCLUSIVE);
    Place *published = place_of(place, key);
    if (published != nullptr && !follows(membership, published->membership))
        published = nullptr;
    if (published != nullptr) {
        publish(published, membership);
        header->seen = seen;
    }
    LWLockRelease(grants_lock);
    if (published != nullptr)
        ConditionVariableBroadcast(&published->changed);
    return published != nullptr;
}

void grants_note_error(int place, SlotKey key, const GrantError &error) {
    LWLockAcquire(grants_lock, LW_EXCLUSIVE);
    Place *noted = place_of(place, key);
    if (noted != nullptr) {
        noted->error = error;
        noted->errors.fetch_add(1, std::memory_order_relaxed);
    }
    LWLockRelease(grants_lock);
    if (noted != nullptr)
        ConditionVariableBroadcast(&noted->changed);
}

void grants_unwant(int place, SlotKey key, int64_t wanted) {
    LWLockAcquire(grants_lock, LW_SHARED);
    Place *unwanted = place_of(place, key);
    if (unwanted != nullptr)
        (void)unwanted->wanted.compare_exchange_strong(wanted, 0, std::memory_order_relaxed);
    LWLockRelease(grants_lock);
}

bool grants_may_follow(const Member &present, SlotKey key, const core::Membership &next) {
    return same_key(present.key, key) && follows(next, present.membership);
}

void grants_lock_file() { LWLockAcquire(file_lock, LW_EXCLUSIVE); }
void grants_unlock_file() { LWLockRelease(file_lock); }

} // namespace uidgen::pg
