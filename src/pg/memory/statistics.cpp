// What slots have counted, for the views uid_stat and uid_stat_server.

#include "slots.hpp"

namespace uidgen::pg {

namespace {

// How many ids of a generator's ring the sessions have drawn from shared runs. Acquire pairs with take_shared() in
// cached.cpp: the run that is read next is not one of those before.
uint64_t drawn_from_shared_runs(const RingState &ring, uint64_t run) {
    const uint64_t before = ring.shared_before.load(std::memory_order_acquire);
    return before + (ring.shared.last() & (run - 1)) + 1;
}

} // namespace

uint64_t ids_by_words(const Slot &slot) {
    if (slot.kind == SlotKind::segment)
        return slot.segment.passed_over.handed_out(slot.segment.word.next());
    const GeneratorState &generator = slot.generator;
    const CachedConfig &cached = generator.config.cached;
    const uint64_t backup = generator.clock.backup_ids.load(std::memory_order_relaxed);
    if (cached.on)
        return cached.shares ? drawn_from_shared_runs(generator.ring, cached.run) : 0;
    return generator.passed_over.handed_out(generator.ticks.last() + 1) + backup;
}

// The words may say less than a moment ago (PassedOver, invariant 1), but a counter must not go back.
Stats slot_counted(Slot *slot) {
    Stats now;
    for (uint32_t i = 0; i < stat_count; i++)
        now.values[i] = slot->counters.values[i].load(std::memory_order_relaxed);
    uint64_t &ids = now.values[index(Stat::ids)];
    ids += ids_by_words(*slot);
    core::raise_to(slot->ids_shown, ids, std::memory_order_relaxed);
    ids = Max(ids, slot->ids_shown.load(std::memory_order_relaxed));
    return now;
}

// Under no lock for long, because there may be many slots. What is freed after the first lines is missing: the sum is
// never too high, but it may be less than a moment ago.
Stats slots_counted() {
    lock_state(LW_SHARED);
    Stats sum = server_state->freed;
    unlock_state();
    for_each_slot([&sum](Slot *slot) { add(&sum, slot_counted(slot)); });
    for (uint32_t i = 0; i < stat_count; i++) {
        std::atomic<uint64_t> &shown = server_state->shown.values[i];
        core::raise_to(shown, sum.values[i], std::memory_order_relaxed);
        sum.values[i] = shown.load(std::memory_order_relaxed);
    }
    return sum;
}

} // namespace uidgen::pg
