// What the slot of a segment has: its word and its ranges (slots.hpp says who may touch what).
#pragma once

#include "core/position_allocator.hpp"
#include "core/range.hpp"
#include "memberships.hpp"

namespace uidgen::pg {

struct SegmentState {
    core::PositionAllocator<> ordinals; // the segment's word
    core::Ranges ranges GUARDED_BY(page_lock);
    core::StepBounds bounds GUARDED_BY(page_lock); // those of the last range
    int64_t step GUARDED_BY(page_lock);            // of the last range
    bool disturbed GUARDED_BY(page_lock);     // another command has moved the counter since the last range was reserved
    bool was_disturbed GUARDED_BY(page_lock); // the same at the time when the last range was reserved
    uint64_t name_hash GUARDED_BY(slot_lock); // of a named segment's name; 0: it has none, or it may be rolled back
    uint64_t fleet
        GUARDED_BY(page_lock); // the fleet whose registry gave its ranges; 0: they are of the sequence itself
    // Start of the interval that the next pace is measured over. It is the time of a reservation on the monotonic
    // clock (0: none yet), and the next ordinal at that time plus the ordinals invalidated since. A reservation begins
    // a new interval only if a value was drawn in the present one.
    int64_t reserved_at_us GUARDED_BY(page_lock);
    uint64_t reserved_at GUARDED_BY(page_lock);
    int64_t block_at_us GUARDED_BY(page_lock); // when the last block was reserved, on the monotonic clock; 0: never
    uint64_t refills_late
        GUARDED_BY(page_lock); // ranges that callers had to wait for, because the one before was used up
    uint64_t refills_disturbed GUARDED_BY(page_lock); // ranges reserved because another command had moved the counter
};

struct SegmentSlot {
    BlockSlot slot;
    SegmentState segment;
};

static_assert(std::is_standard_layout_v<SegmentSlot> && std::is_trivially_destructible_v<SegmentSlot>);

inline SegmentState &segment_of(Slot *slot) { return reinterpret_cast<SegmentSlot *>(slot)->segment; }
inline const SegmentState &segment_of(const Slot *slot) { return segment_of(const_cast<Slot *>(slot)); }

} // namespace uidgen::pg
