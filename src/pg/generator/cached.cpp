#include "cached.hpp"

#include "base/errors.hpp"
#include "clock.hpp"
#include "memory/workers.hpp"
#include "refiller.hpp"

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
void keep_lease(DrawCall *call, const Reading &reading, const core::Decision &decision) {
    if (decision.action == core::ClockAction::reserve || decision.reserve_until > 0) {
        if (verify_clock(call, reading, core::ClockAction::reserve))
            write_lease(*call, reading, decision.reserve_until, Needed::later);
    } else if (decision.action == core::ClockAction::confirm &&
               generator_of(call->e->slot).ticks.written_range().lsn <= GetFlushRecPtr(nullptr)) {
        confirm_lease(call, core::Durability::local);
    }
}

bool take_run(SessionEntry *e, uint64_t floor) {
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
bool find_run(SessionEntry *e, uint64_t floor) {
    return take_run(e, floor) || shared_run_has_next(generator_of(e->slot), floor);
}

[[noreturn]] void refuse_empty_ring(const SessionEntry *e, int64_t waited_us) {
    e->slot->counters.count(Stat::refused_ring);
    report_ring_empty(e->sequence, waited_us / us_per_ms);
}

void wait_for_refiller(DrawCall *call) {
    const uint64_t waits = call->waits;
    const bool may_wait = wait_once(call, Stat::ring_waits, [](int64_t left_us) {
        (void)wake_worker(SingleWorker::refiller);
        sleep_for(Min(left_us, nap_us), wait_event("UidgenRing"));
    });
    if (call->waits != waits) // the call's first wait for the ring
        generator_of(call->e->slot).ring.rejected_takes.fetch_add(1, std::memory_order_relaxed);
    if (!may_wait)
        refuse_empty_ring(call->e, waited_so_far_us(call));
}

// Fills the ring as far as the lease reaches, not only to where the next one is due. Ticks below the clock's are used
// too, from `floor` on.
void refill_by_caller(SessionEntry *e, const Reading &reading, const core::Decision &decision, uint64_t floor) {
    GeneratorState &generator = generator_of(e->slot);
    // What a standby has counts for its own level only, but is durable here, too.
    const uint64_t limit = Max(decision.limit, refill_limit(generator, reading.grant.view, reading.now_us));
    refill_ring(&generator, ring_of(e->slot), floor, limit, &generator.ring.refills_by_caller, &e->run_in_hand);
}

// A caller refills the ring whatever the policy when the ring is new, or when everything in it was too old: no other
// process had a chance to refill it.
WhenRingEmpty policy_now(const GeneratorState &generator) {
    const bool never_refilled = generator.ring.refilled_ring_at_us.load(std::memory_order_acquire) == 0;
    const bool went_stale = generator.ring.went_stale.load(std::memory_order_relaxed);
    return never_refilled || went_stale ? WhenRingEmpty::pad : generator.config.cached.when_empty;
}

// Carries out what is no draw: the lease, or the clock.
void carry_out(DrawCall *call, const Reading &reading, const core::Decision &decision) {
    Drawn none = {};
    if (verify_clock(call, reading, decision.action))
        (void)conclude(call, reading, decision, execute(call, reading, {decision, false}, &none));
}

void at_empty_ring(DrawCall *call, const Reading &reading, const core::Decision &decision, uint64_t floor) {
    GeneratorState &generator = generator_of(call->e->slot);
    const WhenRingEmpty policy = policy_now(generator);
    const bool may_go_on = decision.action != core::ClockAction::exhausted && decision.action != core::ClockAction::ask;
    if (policy == WhenRingEmpty::error && may_go_on) {
        // The ring may have been refilled since the caller looked, for the first time, too. So the caller looks again
        // now that it knows that the ring is not new.
        if (find_run(call->e, floor))
            return;
        generator.ring.rejected_takes.fetch_add(1, std::memory_order_relaxed);
        keep_lease(call, reading, decision);
        (void)wake_worker(SingleWorker::refiller);
        refuse_empty_ring(call->e, 0);
    }
    if (decision.action != core::ClockAction::take)
        carry_out(call, reading, decision); // a caller's work in every policy
    else if (policy == WhenRingEmpty::wait)
        wait_for_refiller(call);
    else
        refill_by_caller(call->e, reading, decision, floor);
}

// Refilled runs are durable on this server. If the session waits for a standby, it does so before it hands out a value
// of the run of that position. True: it has waited, and time has passed.
bool confirm_run(DrawCall *call, core::Durability level, uint64_t position) {
    const GeneratorState &generator = generator_of(call->e->slot);
    const uint64_t last = core::SharedRun<>::end_of_run(position, generator.config.cached.run);
    if (generator.ticks.usable(level) > last)
        return false;
    confirm_lease(call, level);
    return true;
}

// Takes from the shared run. If that is used up, the run in hand is installed as the shared run. Sets *retry if another
// session won the race, or if waiting for a standby took time, in which ids may have become too old.
core::Run take_shared(DrawCall *call, core::Durability level, uint64_t floor, bool *retry) {
    SessionEntry *e = call->e;
    RingState &ring = generator_of(e->slot).ring;
    const uint64_t length = generator_of(e->slot).config.cached.run;
    uint64_t seen = 0;
    const core::Run run = ring.shared.take(floor, length, call->want, &seen);
    if (run.count > 0) {
        *retry = confirm_run(call, level, run.first); // another session may have installed it
        if (!*retry)
            return run;
        ring.too_old.fetch_add(run.count, std::memory_order_relaxed);
        return {0, 0};
    }
    if (e->run_in_hand == 0)
        return {0, 0};
    const core::Run first = {e->run_in_hand, Min(call->want, length)};
    *retry = confirm_run(call, level, first.first);
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
int64_t ticks_too_far(const core::ClockPolicy &policy, const core::ClockState &state, uint64_t position) {
    return static_cast<int64_t>(position >> policy.sequence_bits) - state.now - policy.max_ahead;
}

// Opens a window on the rest of the run that was drawn from, if it is durable, until the clock must be read again. The
// word holds the last position.
void open_window_on_run(SessionEntry *e, const Reading &reading, const Drawn &drawn) {
    GeneratorState &generator = generator_of(e->slot);
    const CachedConfig &cached = generator.config.cached;
    const uint64_t last = drawn.run.first + drawn.run.count - 1;
    const uint64_t last_of_run = core::SharedRun<>::end_of_run(last, cached.run);
    if (last == last_of_run || last_of_run >= generator.ticks.usable(reading.level))
        return;
    const uint64_t step = UINT64_C(1) << core::sequence_shift(generator.config.layout);
    const uint64_t origin = static_cast<uint64_t>(core::encode(drawn.encoder, last + 1)) - last * step;
    open_window_for(e, {generator.ring.shared.word(), last, last, last_of_run, origin, step},
                    reading.now_us - reading.offset_us, cached.fresh_us);
}

// No position below it is handed out: it would be too old, was invalidated, or lies below the grant.
uint64_t floor_of(const GeneratorState &generator, const Reading &reading) {
    const uint64_t fresh = fresh_from(generator, reading.now_us);
    return Max(Max(fresh, generator.ring.discarded_below.load(std::memory_order_relaxed)),
               core::granted_begin(generator.config.policy, reading.state));
}

// The node of this try is that of no position from here on. In no fleet it is the end of what was leased when the try
// found that: another session may have joined one since, and may have filled the ring inside its
// grant. A run lies in one tick, so what holds for one of its positions holds for all.
uint64_t end_of_grant(const core::ClockPolicy &policy, const Reading &reading) {
    if (likely(!reading.grant.in_fleet))
        return reading.state.written;
    return static_cast<uint64_t>(Min(reading.grant.view.until, policy.end)) << policy.sequence_bits;
}

// The next position lies beyond the grant, or there is none (position 0). In no fleet the next try sees more.
void get_later_end(DrawCall *call, const Reading &reading, uint64_t position) {
    if (!reading.grant.in_fleet)
        return;
    const core::ClockPolicy &policy = generator_of(call->e->slot).config.policy;
    const auto tick = static_cast<int64_t>(position >> policy.sequence_bits);
    carry_out(call, reading, {core::ClockAction::ask, 0, 0, 0, 0, Max(tick, reading.state.now)});
}

} // namespace

Drawn draw_cached(SessionEntry *e, uint64_t want) {
    GeneratorState &generator = generator_of(e->slot);
    const core::ClockPolicy &policy = generator.config.policy;
    DrawCall call = {};
    call.e = e;
    call.want = want;
    for (;; before_next_try(&call)) {
        Reading reading = begin_try(&call);
        if (!verify_clock(&call, reading, core::ClockAction::reserve)) // a wrong clock would make everything too old
            continue;
        reading.state.seen = core::nothing_seen; // when_back does not apply, but for the lease
        const uint64_t floor = floor_of(generator, reading);
        const uint64_t end = end_of_grant(policy, reading);
        drop_stale_run(e, floor);
        const uint64_t next = next_available(e, floor);
        if (next >= end) {
            get_later_end(&call, reading, next);
            continue;
        }
        const core::IdEncoder encoder = fix_node(e, reading, false);
        const int64_t too_far = next > 0 ? ticks_too_far(policy, reading.state, next) : 0;
        if (too_far > 0) { // the clock went back since the refill
            carry_out(&call, reading, {core::ClockAction::wait, 0, 0, 0, too_far});
            continue;
        }
        if (next > 0 && confirm_run(&call, reading.level, next)) // it may be too old now
            continue;
        bool retry = false;
        const Drawn drawn = {take_shared(&call, reading.level, floor, &retry), encoder};
        if (drawn.run.count > 0 && drawn.run.first >= end) {
            generator.ring.too_old.fetch_add(drawn.run.count, std::memory_order_relaxed);
            continue; // another session installed a later run meanwhile
        }
        if (drawn.run.count > 0) {
            core::raise_to(generator.seen, reading.state.now, std::memory_order_relaxed);
            open_window_on_run(e, reading, drawn);
            return drawn;
        }
        if (retry)
            continue;
        const core::Decision decision = core::decide(policy, reading.state);
        keep_lease(&call, reading, decision);
        if (!find_run(e, floor))
            at_empty_ring(&call, reading, decision, floor);
    }
}

} // namespace uidgen::pg
