#include "clean_stop.hpp"

#include "saved_ranges.hpp"
#include "slots.hpp"

namespace uidgen::pg {
namespace {

RangeLeft range_left(const core::Range &range, uint64_t next) {
    const uint64_t from = Max(range.begin, next);
    if (from >= range.end)
        return {0, 0, 0};
    return {range.end - from, range.value(from), range.increment};
}

// Fills *entry with the rest of the next segment's ranges, from place *cursor on. Only after all backends have ended.
bool next_saved(SavedRanges *entry, int *cursor) {
    while (*cursor < slots_ever_used()) {
        const Slot &slot = *slot_at((*cursor)++);
        if (slot.kind != SlotKind::segment)
            continue;
        core::Range ranges[2];
        slot.segment.word.ranges(ranges);
        const uint64_t next = slot.segment.word.next();
        *entry = {slot.key.database,
                  slot.key.sequence,
                  slot.file,
                  slot.expected.counter.last_value,
                  slot.expected.lsn,
                  InvalidXLogRecPtr,
                  {range_left(ranges[0], next), range_left(ranges[1], next)}};
        if (entry->left[0].count > 0 || entry->left[1].count > 0)
            return true;
    }
    return false;
}

void save_ranges(int code, Datum) {
    if (code == 0)
        saved_ranges_write(next_saved);
}

} // namespace

void clean_stop_register() {
    if (!IsUnderPostmaster)
        on_shmem_exit(save_ranges, 0);
}

} // namespace uidgen::pg
