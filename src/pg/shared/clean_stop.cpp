#include "clean_stop.hpp"

#include "blocks.hpp"
#include "slots.hpp"

namespace uidgen::pg {
namespace {

RangeLeft range_left(const core::Range &range, uint64_t next) {
    const uint64_t from = Max(range.begin, next);
    if (from >= range.end)
        return {0, 0, 0};
    return {range.end - from, range.value(from), range.increment};
}

// Fills *entry with the rest of the next segment's ranges, from place *place on.
bool next_ranges(SavedRanges *entry, int32_t *place) {
    while (*place < slots_ever_used()) {
        const Slot &slot = *slot_at((*place)++);
        if (slot.kind != SlotKind::segment)
            continue;
        core::Range ranges[2];
        slot.segment.word.ranges(ranges);
        const uint64_t next = slot.segment.word.next();
        *entry = {slot.key.database,  slot.key.sequence, false,
                  slot.segment.fleet, slot.file,         slot.expected.counter.last_value,
                  slot.expected.lsn,  InvalidXLogRecPtr, {range_left(ranges[0], next), range_left(ranges[1], next)}};
        if (entry->left[0].count > 0 || entry->left[1].count > 0)
            return true;
    }
    return false;
}

bool next_block(SavedRanges *entry, int32_t *cell) {
    SlotKey segment;
    FleetBlock block;
    if (!blocks_next_ready(cell, &segment, &block))
        return false;
    *entry = {segment.database, segment.sequence, true, block.fleet, {}, 0, 0, 0, {}};
    entry->left[0] = {block.count, block.first, block.increment};
    return true;
}

// The ranges of all slots, then all blocks. Only after all backends have ended.
bool next_saved(SavedRanges *entry, SavedCursor *cursor) {
    return next_ranges(entry, &cursor->place) || next_block(entry, &cursor->cell);
}

void save_ranges(int code, Datum) {
    if (code == 0)
        saved_ranges_write(next_saved);
}

} // namespace

void clean_stop_restore_block(const SavedRanges &entry) {
    const RangeLeft &values = entry.left[0];
    blocks_restore({entry.database, entry.sequence}, {entry.fleet, values.first, values.count, values.increment});
}

void clean_stop_register() {
    if (!IsUnderPostmaster)
        on_shmem_exit(save_ranges, 0);
}

} // namespace uidgen::pg
