#include "refiller.hpp"

#include "base/time_source.hpp"
#include "node_grant.hpp"

namespace uidgen::pg {
namespace {

constexpr int64_t shortest_nap_ms = 10;
constexpr int64_t longest_nap_ms = 1000;

// A refill goes on until the ring is full.
bool is_due(GeneratorState *generator, const core::Ring<> &ring) {
    const CachedConfig &cached = generator->config.cached;
    const int64_t refilled_at = generator->ring.refilled_ring_at_us.load(std::memory_order_relaxed);
    const bool is_scheduled = cached.schedule_us > 0 && monotonic_us() - refilled_at >= cached.schedule_us;
    generator->ring.is_refilled = ring.wants_runs(generator->ring.is_refilled || is_scheduled, cached.threshold);
    return generator->ring.is_refilled;
}

// As in Baidu's original, a tick is taken whole, and what does not fit into the ring is thrown away.
void discard_rest_of_tick(GeneratorState *generator, uint64_t limit) {
    const uint64_t mask = (UINT64_C(1) << generator->config.policy.sequence_bits) - 1;
    const uint64_t rest = mask - (generator->ticks.last() & mask);
    const core::Run thrown = rest > 0 ? generator->ticks.take(0, limit, rest) : core::Run{0, 0};
    generator->ring.rejected_puts.fetch_add(thrown.count, std::memory_order_relaxed);
}

bool has_ring(const Slot *slot) REQUIRES_SHARED(slot_lock) {
    return slot->phase == SlotPhase::ready && generator_of(slot).config.cached.on;
}

// Under the slot's lock, which keeps the ring: no wait, no allocation, no error. Returns how many runs were moved. One
// that finds no room because callers refill, too, is thrown away.
uint64_t refill_some(Slot *slot) REQUIRES_SHARED(slot_lock) {
    GeneratorState &generator = generator_of(slot);
    const core::Ring<> ring = ring_of(slot);
    if (!is_due(&generator, ring))
        return 0;
    const int64_t now_us = wall_clock_us();
    const GrantView grant = present_grant(slot).view;
    const uint64_t limit = refill_limit(generator, grant, now_us);
    const uint64_t floor =
        Max(fresh_from(generator, now_us), static_cast<uint64_t>(grant.from) << generator.config.policy.sequence_bits);
    uint64_t left_over = 0;
    const uint64_t moved = refill_ring(&generator, ring, floor, limit, &generator.ring.refills, &left_over);
    if (left_over != 0)
        generator.ring.rejected_puts.fetch_add(generator.config.cached.run, std::memory_order_relaxed);
    if (generator.config.cached.discards && ring.filled() == ring.cells())
        discard_rest_of_tick(&generator, limit);
    return moved;
}

// A session makes a slot ready under the slot's lock, and wakes the refiller afterwards.
bool has_any_ring() {
    bool any = false;
    for_each_slot(SlotKind::generator,
                  [&any](const Slot *slot) REQUIRES_SHARED(slot_lock) { any = any || has_ring(slot); });
    return any;
}

// Runs until asked to stop, or until no generator in cached mode is in use.
void refill_rings() {
    for (int64_t nap_ms = 0; !ShutdownRequestPending;) {
        bool found = false;
        uint64_t moved = 0;
        for_each_slot(SlotKind::generator, [&](Slot *slot) REQUIRES_SHARED(slot_lock) {
            if (!has_ring(slot))
                return;
            found = true;
            moved = Max(moved, refill_some(slot));
        });
        if (!found && worker_may_end(SingleWorker::refiller, has_any_ring))
            return;
        nap_ms = moved > 0 ? 0 : Min(Max(2 * nap_ms, shortest_nap_ms), longest_nap_ms);
        sleep_for(nap_ms * us_per_ms, wait_event("UidgenRefiller"));
    }
}

} // namespace

uint64_t refill_limit(const GeneratorState &generator, const GrantView &grant, int64_t now_us) {
    const core::ClockPolicy &policy = generator.config.policy;
    const int64_t now = core::tick_at(generator.config.layout, now_us);
    const int64_t end = Min(Min(now + policy.max_ahead + 1, policy.end), grant.until);
    const uint64_t allowance = end > 0 ? static_cast<uint64_t>(end) << policy.sequence_bits : 0;
    return Min(generator.ticks.usable(core::Durability::local), allowance);
}

uint64_t refill_ring(GeneratorState *generator, core::Ring<> ring, uint64_t floor, uint64_t limit,
                     std::atomic<uint64_t> *refills, uint64_t *left_over) {
    RingState &state = generator->ring;
    const uint64_t run = generator->config.cached.run;
    uint64_t moved = 0;
    while (moved < runs_at_a_time && ring.filled() < ring.cells()) {
        const core::Run taken = generator->ticks.take(floor, limit, run);
        if (taken.count == 0)
            break; // all takes are of whole runs, and a limit is the start of a tick
        if (!ring.put(taken.first)) {
            *left_over = taken.first;
            break;
        }
        moved++;
    }
    if (moved == 0)
        return 0;
    state.went_stale.store(false, std::memory_order_relaxed);
    // Release: a caller that sees it finds the runs (at_empty_ring()).
    state.refilled_ring_at_us.store(monotonic_us(), std::memory_order_release);
    refills->fetch_add(1, std::memory_order_relaxed);
    return moved;
}

uint64_t fresh_from(const GeneratorState &generator, int64_t now_us) {
    const core::Layout &layout = generator.config.layout;
    const int64_t tick = core::tick_at(layout, now_us - generator.config.cached.fresh_us) + 1;
    return tick > 0 ? static_cast<uint64_t>(Min(tick, generator.config.policy.end)) << layout.sequence_bits : 0;
}

} // namespace uidgen::pg

using namespace uidgen::pg;

extern "C" {

PGDLLEXPORT void uidgen_refiller_main(Datum argument);

void uidgen_refiller_main(Datum) {
    pqsignal(SIGTERM, SignalHandlerForShutdownRequest);
    pqsignal(SIGHUP, no_signal_handler());
    begin_as_worker(SingleWorker::refiller);
    refill_rings();
    proc_exit(0);
}
}
