#include "refiller.hpp"

#include "shared/ring_memory.hpp"
#include "shared/single_worker.hpp"
#include "base/time_source.hpp"
#include "base/waits.hpp"

namespace uidgen::pg {
namespace {

// How many runs are moved under the directory lock at a time: some ten microseconds.
constexpr uint64_t runs_at_a_time = 256;
constexpr int64_t shortest_nap_ms = 10;
constexpr int64_t longest_nap_ms = 1000;

// What the refiller keeps about the ring in one slot, from one round to the next.
struct Known {
    uint64_t generation;
    dsm_handle memory;
    core::Ring<> ring;
    bool mapped;
    bool is_refilled;   // until it is full; a ring that is new to the refiller is filled, whoever began that
    uint64_t left_over; // a run to put first; empty_cell: none
    uint64_t round;     // the last round that visited the ring
};

// One visit to one ring.
struct Visit {
    Known *known;
    uint64_t refilled; // by this visit
    bool more;         // there is room, and more to put
    bool stale;        // `known` is about another ring
    uint64_t cells;    // of the ring in the slot now
    dsm_handle memory;
    core::RingHints<> *hints;
    uint64_t generation;
};

// note_ring_refill() knows the first refill.
bool is_due(const GeneratorState &generator, Known *known, RingRefill *why) {
    const CachedConfig &cached = generator.config.cached;
    const int64_t refilled_at = generator.ring.refilled_ring_at_us.load(std::memory_order_relaxed);
    const bool is_scheduled = cached.schedule_us > 0 && monotonic_us() - refilled_at >= cached.schedule_us;
    *why = is_scheduled ? RingRefill::schedule : RingRefill::threshold;
    known->is_refilled = known->ring.wants_runs(known->is_refilled || is_scheduled, cached.threshold);
    return known->is_refilled;
}

// As in Baidu's original, a tick is taken whole, and what does not fit into the ring is thrown away.
void discard_rest_of_tick(GeneratorState *generator, uint64_t limit) {
    const uint64_t mask = (UINT64_C(1) << generator->config.policy.sequence_bits) - 1;
    const uint64_t rest = mask - (generator->ticks.last() & mask);
    const core::Run thrown = rest > 0 ? generator->ticks.take(0, limit, rest) : core::Run{0, 0};
    generator->ring.rejected_puts.fetch_add(thrown.count, std::memory_order_relaxed);
}

// False: there is still no room for it.
bool put_left_over(Known *known, GeneratorState *generator, uint64_t floor) {
    if (known->left_over == core::empty_cell)
        return true;
    if (known->left_over < floor)
        generator->ring.too_old.fetch_add(generator->config.cached.run, std::memory_order_relaxed);
    else if (!known->ring.put(known->left_over))
        return false;
    known->left_over = core::empty_cell;
    return true;
}

// Under the directory lock: no wait, no allocation, no error.
void refill_one(Slot *slot, void *arg) {
    auto *look = static_cast<Visit *>(arg);
    GeneratorState &generator = slot->generator;
    look->generation = slot->generation.load(std::memory_order_relaxed);
    look->cells = generator.config.cached.cells;
    look->memory = generator.ring.memory;
    look->hints = &generator.ring.hints;
    look->stale = !look->known->mapped || look->known->generation != look->generation ||
                  look->known->memory != generator.ring.memory;
    if (look->stale)
        return;
    const core::Ring<> &ring = look->known->ring;
    RingRefill why = RingRefill::threshold;
    if (look->refilled == 0 && !is_due(generator, look->known, &why))
        return;
    const int64_t now_us = wall_clock_us();
    const GrantView grant = present_grant(generator).view;
    const uint64_t limit = refill_limit(generator, grant, now_us);
    const uint64_t floor =
        Max(fresh_from(generator, now_us), static_cast<uint64_t>(grant.from) << generator.config.policy.sequence_bits);
    if (!put_left_over(look->known, &generator, floor))
        return;
    const uint64_t moved = refill_ring(&generator, ring, floor, limit, runs_at_a_time, &look->known->left_over);
    if (moved > 0 && look->refilled == 0)
        note_ring_refill(&generator.ring, why);
    look->refilled += moved;
    look->more = moved == runs_at_a_time;
    if (!look->more && generator.config.cached.discards && ring.filled() == ring.cells())
        discard_rest_of_tick(&generator, limit);
}

// Maps the ring that a slot has now. No lock is held, so the ring may be freed meanwhile; the next round notices that.
void map_again(const Visit &look) {
    Known *known = look.known;
    if (known->mapped)
        ring_memory_unmap(known->memory);
    known->memory = look.memory;
    known->ring = ring_memory_map(look.memory, look.hints, look.cells);
    known->mapped = known->ring.cells() == look.cells;
    known->generation = look.generation;
    known->is_refilled = true;
    known->left_over = core::empty_cell;
}

// Fills the ring in that slot, if there still is one. Returns whether anything was moved.
bool visit(int32_t place, Known *known) {
    Visit look = {};
    look.known = known;
    bool there = slots_with_ring(place, refill_one, &look);
    if (there && look.stale) {
        map_again(look);
        there = slots_with_ring(place, refill_one, &look);
    }
    while (there && look.more)
        there = slots_with_ring(place, refill_one, &look);
    return look.refilled > 0;
}

void unmap_unvisited(Known *known, uint64_t round) {
    for (int32_t place = 0; place < slots_places(); place++)
        if (known[place].mapped && known[place].round != round) {
            ring_memory_unmap(known[place].memory);
            known[place].mapped = false;
        }
}

// Whether the refiller may end because there is no ring (single_worker.hpp). A session makes a ring under the directory
// lock, and the refiller looks for rings under the same lock.
bool may_end() {
    worker_found_nothing(SingleWorker::refiller);
    resign_as_worker(SingleWorker::refiller);
    return slots_next_ring(0) < 0 || !become_worker(SingleWorker::refiller);
}

// Runs until asked to stop, or until no generator in cached mode is in use.
void refill_rings(Known *known) {
    int64_t nap_ms = shortest_nap_ms;
    for (uint64_t round = 1; !ShutdownRequestPending; round++) {
        bool any = false;
        bool used = false;
        for (int32_t place = slots_next_ring(0); place >= 0; place = slots_next_ring(place + 1)) {
            any = true;
            known[place].round = round;
            used = visit(place, &known[place]) || used;
        }
        unmap_unvisited(known, round);
        if (!any && may_end())
            return;
        nap_ms = used || !any ? shortest_nap_ms : Min(2 * nap_ms, longest_nap_ms);
        sleep_as_refiller(nap_ms * us_per_ms);
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

uint64_t refill_ring(GeneratorState *generator, core::Ring<> ring, uint64_t floor, uint64_t limit, uint64_t most,
                     uint64_t *left_over) {
    const uint64_t run = generator->config.cached.run;
    uint64_t moved = 0;
    *left_over = core::empty_cell;
    while (moved < most && ring.filled() < ring.cells()) {
        const core::Run taken = generator->ticks.take(floor, limit, run);
        if (taken.count == 0)
            break; // all takes are of whole runs, and a limit is the start of a tick
        if (!ring.put(taken.first)) {
            *left_over = taken.first;
            break;
        }
        moved++;
    }
    return moved;
}

void note_ring_refill(RingState *ring, RingRefill why) {
    ring->went_stale.store(false, std::memory_order_relaxed);
    // Release: a caller that sees it finds the runs (at_empty_ring()).
    const int64_t before = ring->refilled_ring_at_us.exchange(monotonic_us(), std::memory_order_release);
    ring->ring_refills[static_cast<uint32_t>(before == 0 ? RingRefill::initial : why)].fetch_add(
        1, std::memory_order_relaxed);
}

uint64_t fresh_from(const GeneratorState &generator, int64_t now_us) {
    const core::Layout &layout = generator.config.layout;
    const int64_t tick = core::tick_at(layout, now_us - generator.config.cached.fresh_us) + 1;
    return tick > 0 ? static_cast<uint64_t>(Min(tick, generator.config.policy.end)) << layout.sequence_bits : 0;
}

void wake_refiller() { (void)wake_worker(SingleWorker::refiller); }

} // namespace uidgen::pg

using namespace uidgen::pg;

extern "C" {

PGDLLEXPORT void uidgen_refiller_main(Datum argument);

void uidgen_refiller_main(Datum) {
    pqsignal(SIGTERM, SignalHandlerForShutdownRequest);
    pqsignal(SIGHUP, no_signal_handler());
    begin_as_worker(SingleWorker::refiller);
    auto *known = static_cast<Known *>(
        MemoryContextAllocZero(TopMemoryContext, static_cast<Size>(slots_places()) * sizeof(Known)));
    refill_rings(known);
    proc_exit(0);
}
}
