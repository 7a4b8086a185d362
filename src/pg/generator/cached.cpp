#include "draw.hpp"

#include "base/errors.hpp"
#include "base/settings.hpp"
#include "base/time_source.hpp"

namespace uidgen::pg {
namespace {

constexpr int64_t nap_us = 5 * us_per_ms;

// A run lies in one tick, and a floor is the start of one.
void drop_stale_run(SessionEntry *e, uint64_t floor) {
    GeneratorState &generator = generator_of(e->slot);
    if (e->run_in_hand == 0 || e->run_in_hand >= floor)
        return;
    generator.ring.too_old.fetch_add(generator.config.cached.run, std::memory_order_relaxed);
    e->run_in_hand = 0;
}

// The refiller cannot write leases. So a caller has the next lease written while the current one lasts, without waiting
// for it.
void keep_lease(DrawCall *call, const core::Decision &decision) {
    if (decision.action == core::ClockAction::reserve || decision.reserve_until > 0) {
        if (clock_is_plausible(call))
            reserve_in_grant(call, decision.reserve_until, true);
    } else if (decision.action == core::ClockAction::confirm &&
               generator_of(call->e->slot).ticks.written_range().lsn <= GetFlushRecPtr(nullptr)) {
        confirm_lease(call, core::Durability::local);
    }
}

bool take_run(DrawCall *call, uint64_t floor) {
    SessionEntry *e = call->e;
    GeneratorState &generator = generator_of(e->slot);
    const CachedConfig &cached = generator.config.cached;
    core::Ring<> ring = ring_of(e->slot);
    uint64_t too_old = 0;
    const uint64_t first = ring.take(floor, &too_old);
    if (too_old > 0)
        generator.ring.too_old.fetch_add(too_old * cached.run, std::memory_order_relaxed);
    if (too_old > 0 && first == core::empty_cell)
        generator.ring.went_stale.store(true, std::memory_order_relaxed);
    if (ring.filled() < cached.threshold)
        (void)wake_worker(SingleWorker::refiller);
    if (first == core::empty_cell)
        return false;
    e->run_in_hand = first;
    if (fault_is(Fault::put_back))
        (void)ring.put(first);
    return true;
}

bool shared_run_has_next(const GeneratorState &generator, uint64_t floor) {
    const CachedConfig &cached = generator.config.cached;
    return core::SharedRun<>::has_next(generator.ring.shared.last(), floor, cached.run);
}

// Takes a run, unless another session has installed the last run of the ring as the shared run.
bool find_run(DrawCall *call, uint64_t floor) {
    return take_run(call, floor) || shared_run_has_next(generator_of(call->e->slot), floor);
}

void wait_for_refiller(DrawCall *call) {
    Slot *slot = call->e->slot;
    int64_t waited_us = 0;
    const uint64_t waits = call->waits;
    const int64_t left_us = left_to_wait_us(call, Stat::ring_waits, &waited_us);
    if (call->waits != waits) // the call's first wait for the ring
        generator_of(slot).ring.rejected_takes.fetch_add(1, std::memory_order_relaxed);
    if (left_us <= 0) {
        count(&slot->counters, Stat::refused_ring);
        report_ring_empty(call->e->sequence, waited_us / us_per_ms);
    }
    (void)wake_worker(SingleWorker::refiller);
    const int64_t began_us = monotonic_us();
    sleep_for(Min(left_us, nap_us), wait_event("UidgenRing"));
    count_time(&slot->counters, Stat::ring_waits, began_us);
}

// Fills the ring as far as the lease reaches, not only to where the next one is due. Ticks below the clock's are used
// too, from `floor` on.
void refill_by_caller(const DrawCall &call, const core::Decision &decision, uint64_t floor) {
    GeneratorState &generator = generator_of(call.e->slot);
    // What a standby has counts for its own level only, but is durable here, too.
    const uint64_t limit = Max(decision.limit, refill_limit(generator, call.grant.view, call.now_us));
    refill_ring(&generator, ring_of(call.e->slot), floor, limit, &generator.ring.refills_by_caller,
                &call.e->run_in_hand);
}

// A caller refills the ring whatever the policy when the ring is new, or when everything in it was too old: no other
// process had a chance to refill it.
WhenRingEmpty policy_now(const GeneratorState &generator) {
    const bool never_refilled = generator.ring.refilled_ring_at_us.load(std::memory_order_acquire) == 0;
    const bool went_stale = generator.ring.went_stale.load(std::memory_order_relaxed);
    return never_refilled || went_stale ? WhenRingEmpty::pad : generator.config.cached.when_empty;
}

void at_empty_ring(DrawCall *call, const core::Decision &decision, uint64_t floor) {
    GeneratorState &generator = generator_of(call->e->slot);
    const WhenRingEmpty policy = policy_now(generator);
    const bool may_go_on = decision.action != core::ClockAction::exhausted && decision.action != core::ClockAction::ask;
    if (policy == WhenRingEmpty::error && may_go_on) {
        // The ring may have been refilled since the caller looked, for the first time, too. So the caller looks again
        // now that it knows that the ring is not new.
        if (find_run(call, floor))
            return;
        generator.ring.rejected_takes.fetch_add(1, std::memory_order_relaxed);
        keep_lease(call, decision);
        (void)wake_worker(SingleWorker::refiller);
        count(&call->e->slot->counters, Stat::refused_ring);
        report_ring_empty(call->e->sequence, 0);
    }
    if (decision.action != core::ClockAction::take) {
        execute(call, decision); // the lease, or the clock: a caller's work in every policy
    } else if (policy == WhenRingEmpty::wait) {
        wait_for_refiller(call);
    } else {
        refill_by_caller(*call, decision, floor);
    }
}

// Refilled runs are durable on this server. If the session waits for a standby, it does so before it hands out a value
// of the run of that position. True: time has passed.
bool need_durable(DrawCall *call, uint64_t position) {
    const GeneratorState &generator = generator_of(call->e->slot);
    const uint64_t last = core::SharedRun<>::end_of_run(position, generator.config.cached.run);
    if (generator.ticks.usable(call->level) > last)
        return false;
    confirm_lease(call, call->level);
    return true;
}

// Takes from the shared run. If that is used up, the run in hand is installed as the shared run. Sets *retry if another
// session won the race, or if waiting for a standby took time, in which ids may have become too old.
core::Run take_shared(DrawCall *call, uint64_t floor, bool *retry) {
    SessionEntry *e = call->e;
    RingState &ring = generator_of(e->slot).ring;
    const uint64_t length = generator_of(e->slot).config.cached.run;
    uint64_t seen = 0;
    const core::Run run = ring.shared.take(floor, length, call->want, &seen);
    if (run.count > 0) {
        *retry = need_durable(call, run.first); // another session may have installed it
        if (!*retry)
            return run;
        ring.too_old.fetch_add(run.count, std::memory_order_relaxed);
        return {0, 0};
    }
    if (e->run_in_hand == 0)
        return {0, 0};
    const core::Run first = {e->run_in_hand, Min(call->want, length)};
    *retry = need_durable(call, first.first);
    if (*retry)
        return {0, 0};
    *retry = !ring.shared.install(seen, first.first + first.count - 1);
    if (*retry) {
        if (ring_of(e->slot).put(e->run_in_hand)) // for other sessions
            e->run_in_hand = 0;
        return {0, 0};
    }
    const uint64_t drawn_before = (seen & (length - 1)) + 1;
    ring.shared_before.fetch_add(drawn_before, std::memory_order_release); // pairs with slot_counted()
    ring.too_old.fetch_add(length - drawn_before, std::memory_order_relaxed);
    e->run_in_hand = 0;
    return first;
}

// The next position that the call would get, as far as it is known; 0: there is no run.
uint64_t next_available(const SessionEntry *e, uint64_t floor) {
    const GeneratorState &generator = generator_of(e->slot);
    return shared_run_has_next(generator, floor) ? generator.ring.shared.last() + 1 : e->run_in_hand;
}

// By how much a position is further ahead of the clock than allowed; at most 0: it is not.
int64_t ticks_too_far(const DrawCall &call, uint64_t position) {
    const core::ClockPolicy &policy = generator_of(call.e->slot).config.policy;
    return static_cast<int64_t>(position >> policy.sequence_bits) - call.view.now - policy.max_ahead;
}

// Opens a window on the rest of the run that was drawn from, if it is durable, until the clock must be read again. The
// word holds the last position.
void open_window_on_run(const DrawCall &call) {
    SessionEntry *e = call.e;
    GeneratorState &generator = generator_of(e->slot);
    const CachedConfig &cached = generator.config.cached;
    const uint64_t last = call.drawn.run.first + call.drawn.run.count - 1;
    const uint64_t last_of_run = core::SharedRun<>::end_of_run(last, cached.run);
    if (last == last_of_run || last_of_run >= generator.ticks.usable(call.level))
        return;
    const uint64_t step = UINT64_C(1) << core::sequence_shift(generator.config.layout);
    const uint64_t origin = static_cast<uint64_t>(core::encode(call.drawn.encoder, last + 1)) - last * step;
    open_window_for(e, {generator.ring.shared.word(), last, last, last_of_run, origin, step},
                    call.now_us - call.offset_us, cached.fresh_us);
}

// No position below it is handed out: it would be too old, was invalidated, or lies below the grant.
uint64_t floor_of(const DrawCall &call) {
    const GeneratorState &generator = generator_of(call.e->slot);
    const uint64_t fresh = fresh_from(generator, call.now_us);
    return Max(Max(fresh, generator.ring.discarded_below.load(std::memory_order_relaxed)),
               core::granted_begin(generator.config.policy, call.view));
}

// The node of this try is that of no position from here on. In no fleet it is the end of what was leased when the try
// found that: another session may have joined one since, and may have filled the ring inside its
// grant. A run lies in one tick, so what holds for one of its positions holds for all.
uint64_t end_of_grant(const DrawCall &call) {
    const core::ClockPolicy &policy = generator_of(call.e->slot).config.policy;
    if (likely(!call.grant.in_fleet))
        return call.view.written;
    return static_cast<uint64_t>(Min(call.grant.view.until, policy.end)) << policy.sequence_bits;
}

// The next position lies beyond the grant, or there is none (position 0). In no fleet the next try sees more.
void get_later_end(DrawCall *call, uint64_t position) {
    if (!call->grant.in_fleet)
        return;
    const core::ClockPolicy &policy = generator_of(call->e->slot).config.policy;
    const auto tick = static_cast<int64_t>(position >> policy.sequence_bits);
    execute(call, {core::ClockAction::ask, 0, 0, 0, 0, Max(tick, call->view.now)});
}

} // namespace

Drawn draw_cached(SessionEntry *e, uint64_t want) {
    GeneratorState &generator = generator_of(e->slot);
    DrawCall call = {};
    call.e = e;
    call.want = want;
    for (;; before_next_try(&call)) {
        read_state(&call);
        if (!clock_is_plausible(&call)) // a wrong clock would make everything too old
            continue;
        call.view.seen = core::nothing_seen; // when_back does not apply, but for the lease
        const uint64_t floor = floor_of(call);
        const uint64_t end = end_of_grant(call);
        drop_stale_run(e, floor);
        const uint64_t next = next_available(e, floor);
        if (next >= end) {
            get_later_end(&call, next);
            continue;
        }
        const core::IdEncoder encoder = encoder_for(call, false);
        const int64_t too_far = next > 0 ? ticks_too_far(call, next) : 0;
        if (too_far > 0) {
            execute(&call, {core::ClockAction::wait, 0, 0, 0, too_far}); // the clock went back since the refill
            continue;
        }
        if (next > 0 && need_durable(&call, next)) // it may be too old now
            continue;
        bool retry = false;
        const core::Run run = take_shared(&call, floor, &retry);
        if (run.count > 0 && run.first >= end) {
            generator.ring.too_old.fetch_add(run.count, std::memory_order_relaxed);
            continue; // another session installed a later run meanwhile
        }
        if (run.count > 0) {
            call.drawn = {run, encoder};
            core::raise_to(generator.seen, call.view.now, std::memory_order_relaxed);
            open_window_on_run(call);
            return call.drawn;
        }
        if (retry)
            continue;
        const core::Decision decision = core::decide(generator.config.policy, call.view);
        keep_lease(&call, decision);
        if (!find_run(&call, floor))
            at_empty_ring(&call, decision, floor);
    }
}

} // namespace uidgen::pg
