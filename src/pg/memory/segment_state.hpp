// What the slot of a segment has: its word, its ranges and its configuration (slots.hpp says who may touch what).
#pragma once

#include "core/position_allocator.hpp"
#include "core/range.hpp"
#include "memberships.hpp"

namespace uidgen::pg {

// The ranges of a segment, and how many values the next one gets. They change under the page's lock and the slot's, so
// either will do to read them: a view that took the page's would read the page into the buffer cache.
struct SegmentRanges {
    core::Ranges ranges;
    core::Steps steps;
};

struct SegmentState {
    core::PositionAllocator<> ordinals; // the segment's word
    SegmentRanges reserved GUARDED_BY(page_lock);
    int64_t block_at_us GUARDED_BY(page_lock); // when the last block was reserved, on the monotonic clock; 0: never
    SegmentConfig config GUARDED_BY(slot_lock);
};

struct SegmentSlot {
    BlockSlot slot;
    SegmentState segment;
};

static_assert(std::is_standard_layout_v<SegmentSlot> && std::is_trivially_destructible_v<SegmentSlot>);

// The part of a slot that only a segment's has: an address, so no lock is needed.
inline SegmentState &segment_of(Slot *slot) { return reinterpret_cast<SegmentSlot *>(slot)->segment; }
inline const SegmentState &segment_of(const Slot *slot) { return segment_of(const_cast<Slot *>(slot)); }

static_assert(std::has_unique_object_representations_v<SegmentConfig>, "compared as bytes");

// Whether the slot is a segment's, and has that definition.
inline bool has_definition(const Slot *slot, const SegmentConfig &config) REQUIRES_SHARED(slot_lock) {
    return slot->kind == SlotKind::segment && memcmp(&segment_of(slot).config, &config, sizeof(config)) == 0;
}

// A copy. They change under the page's lock and the slot's, so the slot's will do.
inline SegmentRanges ranges_under_slot(const Slot *slot) REQUIRES_SHARED(slot_lock) UNCHECKED {
    return segment_of(slot).reserved;
}

// Calls change(&reserved) of the slot under the page's lock, which the caller holds, and the slot's, which this takes.
template <typename Change>
void change_ranges(Slot *slot, Change change) REQUIRES(page_lock) EXCLUDES(slot_lock, state_lock) {
    lock_slot(slot);
    change(&segment_of(slot).reserved);
    unlock_slot(slot);
}

// For a session that holds a lock on the sequence, of a segment's slot that is ready or altered.
inline bool slot_has_definition(const Slot *slot, const SegmentConfig &config) EXCLUDES(slot_lock, state_lock) {
    lock_slot_shared(slot);
    const bool has = slot->phase >= SlotPhase::altered && has_definition(slot, config);
    unlock_slot(slot);
    return has;
}

} // namespace uidgen::pg
