#include "draw.hpp"

namespace uidgen::pg {
namespace {

// The ring of cached mode. The refiller and callers make ids ahead of the calls that take them, as in Baidu's
// uid-generator (2017). Ids of a ring are consecutive, so a ring is a bound: the positions below `until` that the
// generator's word has not passed. What a caller takes, it takes from the word, inside a lease and by windows, as in
// snowflake mode. So the ring decides when ids are made, and who waits for that, but never which ids there are.

// Adds the positions from <= n < until to a counter of the ring, an atomic in the slot.
void count_too_old(RingState *ring, uint64_t from, uint64_t until) {
    if (until > from)
        ring->too_old.fetch_add(until - from, std::memory_order_relaxed);
}

// Fills the ring from position `next` on, and counts itself in one of its counters, unless another process has. If all
// that is left in it is below, that is too old. Atomics of the slot: an open entry's, or under the slot's lock.
void fill_ring(GeneratorState *generator, uint64_t next, std::atomic<uint64_t> *refills) {
    RingState &ring = generator->ring;
    uint64_t until = ring.until.load(std::memory_order_relaxed);
    const uint64_t full = next + generator->config.cached.size;
    if (full <= until || !ring.until.compare_exchange_strong(until, full, std::memory_order_relaxed))
        return;
    if (until < next) {
        const uint64_t from = ring.from.exchange(next, std::memory_order_relaxed);
        count_too_old(&ring, Max(from, generator->ticks.last() + 1), until);
    }
    ring.refilled_at_us.store(monotonic_us(), std::memory_order_relaxed);
    refills->fetch_add(1, std::memory_order_relaxed);
}

constexpr int64_t nap_us = 5 * us_per_ms;

// Counts the refusal in the slot, and raises the error.
[[noreturn]] void refuse_empty_ring(const SessionEntry *entry, int64_t waited_us) {
    entry->slot->counters.count(Stat::refused_ring);
    ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                    errmsg("the ring of generator \"%s\" is empty", get_rel_name(entry->sequence)),
                    errdetail("Sessions draw ids faster than the refiller makes them, or the refiller is not running. "
                              "The call waited %lld ms and took no id.",
                              static_cast<long long>(waited_us / us_per_ms)),
                    errhint("Call again, or run SELECT uid_generator_alter(%s, when_ring_empty => 'pad').",
                            quote_literal_cstr(qualified_name(entry->sequence)))));
}

// Counts a call that found the ring empty, in an atomic of the slot.
void count_rejected_take(const DrawCall &call) {
    generator_of(call.entry->slot).ring.rejected_takes.fetch_add(1, std::memory_order_relaxed);
}

// Sleeps once until the refiller may have filled the ring, and counts that. Error if the call has waited for
// uidgen.max_wait.
void wait_for_refiller(DrawCall *call) EXCLUDES(page_lock, table_lock, slot_lock, state_lock) {
    const uint64_t waits = call->waits;
    const bool may_wait = wait_once(call, Stat::ring_waits,
                                    [](int64_t left_us) { sleep_for(Min(left_us, nap_us), wait_event("UidgenRing")); });
    if (call->waits != waits) // the call's first wait for the ring
        count_rejected_take(*call);
    if (!may_wait)
        refuse_empty_ring(call->entry, measure_wait_us(call));
}

// Wakes the refiller, and by the policy fills the ring in the slot, sleeps once (wait_for_refiller()), or raises an
// error.
void handle_empty_ring(DrawCall *call, uint64_t next, WhenRingEmpty policy)
    EXCLUDES(page_lock, table_lock, slot_lock, state_lock) {
    GeneratorState &generator = generator_of(call->entry->slot);
    (void)wake_worker(SingleWorker::refiller);
    switch (policy) {
    case WhenRingEmpty::pad:
        return fill_ring(&generator, next, &generator.ring.refills_by_caller);
    case WhenRingEmpty::wait:
        return wait_for_refiller(call);
    case WhenRingEmpty::error:
        count_rejected_take(*call);
        refuse_empty_ring(call->entry, 0);
    }
}

} // namespace

uint64_t ids_in_ring(const GeneratorState &generator) {
    const RingState &ring = generator.ring;
    const uint64_t from = Max(generator.ticks.last() + 1, ring.from.load(std::memory_order_relaxed));
    const uint64_t until = ring.until.load(std::memory_order_relaxed);
    return until > from ? Min(until - from, generator.config.cached.size) : 0;
}

void note_passed_over(GeneratorState *generator, const core::Run &run) {
    RingState &ring = generator->ring;
    const uint64_t from = Max(run.first - run.passed_over, ring.from.load(std::memory_order_relaxed));
    count_too_old(&ring, from, Min(run.first, ring.until.load(std::memory_order_relaxed)));
}

// A caller fills the ring whatever the policy if it was never filled, or if all that is left in it is too old: no other
// process had a chance to.
bool limit_to_ring(DrawCall *call, const core::ClockState &state, core::Decision *decision) {
    const GeneratorState &generator = generator_of(call->entry->slot);
    const CachedConfig &cached = generator.config.cached;
    const bool takes = decision->action == core::ClockAction::take;
    if (!takes && (decision->action != core::ClockAction::wait || cached.when_empty != WhenRingEmpty::error))
        return true;
    const uint64_t until = generator.ring.until.load(std::memory_order_relaxed);
    if (fault_is("keep_stale") && until > 0)
        decision->floor = generator.ring.from.load(std::memory_order_relaxed);
    const uint64_t next = Max(state.last + 1, decision->floor);
    if (next >= until) {
        const bool is_new = until == 0 || state.last + 1 < until;
        handle_empty_ring(call, next, is_new ? WhenRingEmpty::pad : cached.when_empty);
        return false;
    }
    // Below the threshold calls wake the refiller, so no window reaches over it.
    const uint64_t threshold = until - cached.threshold;
    if (next >= threshold)
        (void)wake_worker(SingleWorker::refiller);
    if (!fault_is("ring_beyond"))
        decision->limit = Min(decision->limit, next < threshold ? threshold : until);
    return true;
}

namespace {

// The refiller: a background process that fills rings before callers find them empty. Callers wake it.

constexpr int64_t longest_nap_us = 1000 * us_per_ms;

// Whether the slot is of a generator in cached mode that is in use.
bool has_ring(const Slot *slot) REQUIRES_SHARED(slot_lock) {
    return slot->phase == SlotPhase::ready && generator_of(slot).config.cached.on;
}

// Fills the ring of a slot if it is due. Returns after how long it must look again.
int64_t refill_ring(GeneratorState *generator) REQUIRES_SHARED(slot_lock) {
    const CachedConfig &cached = generator->config.cached;
    const int64_t refilled_at_us = generator->ring.refilled_at_us.load(std::memory_order_relaxed);
    const int64_t scheduled_us =
        cached.schedule_us > 0 ? Max(refilled_at_us + cached.schedule_us - monotonic_us(), 0) : longest_nap_us;
    const uint64_t ids = ids_in_ring(*generator);
    if (ids >= cached.threshold && scheduled_us > 0)
        return Min(scheduled_us, longest_nap_us);
    const int64_t now = core::tick_at(generator->config.layout, wall_clock_us());
    const uint64_t oldest = core::oldest_allowed(generator->config.policy, now);
    fill_ring(generator, Max(generator->ticks.last() + 1, oldest), &generator->ring.refills);
    return cached.schedule_us > 0 ? Min(cached.schedule_us, longest_nap_us) : longest_nap_us;
}

// Whether any is in use: looks at each slot under its lock. A session that makes one ready wakes the refiller
// afterwards.
bool has_any_ring() EXCLUDES(slot_lock, state_lock) {
    bool any = false;
    for_each_slot(SlotKind::generator,
                  [&any](const Slot *slot) REQUIRES_SHARED(slot_lock) { any = any || has_ring(slot); });
    return any;
}

// The refiller's loop: fills the ring of each slot under the slot's lock, and sleeps without it. Runs until asked to
// stop, or until no generator in cached mode is in use: then it resigns (worker_resigns()).
void refill_rings() EXCLUDES(page_lock, table_lock, slot_lock, state_lock) {
    while (!ShutdownRequestPending) {
        bool found = false;
        int64_t sleep_us = longest_nap_us;
        for_each_slot(SlotKind::generator, [&](Slot *slot) REQUIRES_SHARED(slot_lock) {
            if (!has_ring(slot))
                return;
            found = true;
            sleep_us = Min(sleep_us, refill_ring(&generator_of(slot)));
        });
        if (!found && worker_resigns(SingleWorker::refiller, has_any_ring))
            return;
        sleep_for(sleep_us, wait_event("UidgenRefiller"));
    }
}

} // namespace

// The process of the refiller: begin_as_worker(), then refill_rings(), without a database connection.
UIDGEN_WORKER_MAIN(uidgen_refiller_main) {
    pqsignal(SIGTERM, SignalHandlerForShutdownRequest);
    pqsignal(SIGHUP, no_signal_handler());
    begin_as_worker(SingleWorker::refiller);
    refill_rings();
    proc_exit(0);
}

} // namespace uidgen::pg
