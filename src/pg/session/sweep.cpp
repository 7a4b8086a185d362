#include "sweep.hpp"

#include "base/time_source.hpp"
#include "tables/row.hpp"

namespace uidgen::pg {
namespace {

constexpr int looks = 2;

// What a slot says at one moment.
struct Look {
    bool used;
    SlotKey key;
    core::Layout layout; // of a generator
    int64_t until_us;    // the latest time in its ids; 0: none
};

Look look_at(Slot *slot) {
    Look look = {};
    LWLockAcquire(&slot->lock, LW_SHARED);
    look.used = slot->phase != SlotPhase::free;
    look.key = slot->key;
    if (slot->kind == SlotKind::generator) {
        look.layout = slot->generator.config.layout;
        look.until_us = slot_last_time(*slot);
    }
    LWLockRelease(&slot->lock);
    return look;
}

constexpr int64_t kept_for_us = core::longest_ahead_ms * us_per_ms;

bool has_database(const SlotKey &key) {
    return key.database == MyDatabaseId ? is_of_this_database(key) : is_database(key.database);
}

void sweep_under_lock(Slot *slot, const Look &look) {
    if (!has_database(look.key)) {
        free_slot(look.key, 0);
        forget_database(look.key);
    } else if (look.key.database == MyDatabaseId && !is_relation(look.key.sequence)) {
        if (look.until_us + kept_for_us <= wall_clock_us())
            free_slot(look.key, look.until_us);
        else
            end_slot(slot, SlotPhase::dropped);
    }
}

void sweep(Slot *slot) {
    LOCKTAG tag;
    const Look look = look_at(slot);
    if (!look.used)
        return;
    SET_LOCKTAG_RELATION(tag, look.key.database, look.key.sequence);
    if (holds_lock(tag) || LockAcquire(&tag, ExclusiveLock, false, true) == LOCKACQUIRE_NOT_AVAIL)
        return;
    const Look locked = look_at(slot); // another session may have freed it meanwhile
    if (locked.used && same_key(locked.key, look.key))
        sweep_under_lock(slot, locked);
    LockRelease(&tag, ExclusiveLock, false);
}

} // namespace

void sweep_slots() {
    Slot *slots[looks];
    if (IsInParallelMode())
        return;
    for (const SlotKind kind : {SlotKind::generator, SlotKind::segment}) {
        const int count = slots_to_look_at(kind, slots, looks);
        for (int i = 0; i < count; i++)
            sweep(slots[i]);
    }
}

LostTimes lost_times(Oid generator, const core::Layout &layout, int64_t limit_us) {
    LostTimes lost = {};
    const auto note = [&](int64_t until_us) {
        lost.latest_us = Max(lost.latest_us, until_us);
        if (until_us <= limit_us)
            lost.latest_within_us = Max(lost.latest_within_us, until_us);
    };
    const int64_t present_us = core::start_of(layout, core::tick_at(layout, wall_clock_us()));
    note(lost_until_us());
    for (Slot *slot = first_slot(SlotKind::generator); slot != nullptr; slot = next_slot(slot)) {
        const Look look = look_at(slot);
        if (look.used && core::same_layout(look.layout, layout) && is_of_this_database(look.key) &&
            (look.until_us < present_us || look.key.sequence == generator || !is_relation(look.key.sequence)))
            note(look.until_us);
    }
    return lost;
}

} // namespace uidgen::pg
