#include "clock.hpp"

namespace uidgen::pg {
namespace {

// The first position that is fresh enough to be handed out now.
uint64_t fresh_from(const GeneratorState &generator, int64_t now_us) {
    const core::Layout &layout = generator.config.layout;
    const int64_t tick = core::tick_at(layout, now_us - generator.config.cached.fresh_us) + 1;
    return tick > 0 ? static_cast<uint64_t>(Min(tick, generator.config.policy.end)) << layout.sequence_bits : 0;
}

// The limit of what may be taken from the generator's word now: durable on this server, at most max_ahead above the
// clock, and inside the grant.
uint64_t refill_limit(const GeneratorState &generator, const GrantView &grant, int64_t now_us) {
    const core::ClockPolicy &policy = generator.config.policy;
    const int64_t now = core::tick_at(generator.config.layout, now_us);
    const int64_t end = Min(Min(now + policy.max_ahead + 1, policy.end), grant.until);
    const uint64_t allowance = end > 0 ? static_cast<uint64_t>(end) << policy.sequence_bits : 0;
    return Min(generator.ticks.usable(core::Durability::local), allowance);
}

// Moves runs from the generator's word into its ring, with positions from `floor` on and below `limit`, and counts
// itself in one of the ring's counters. Returns how many, runs_at_a_time or fewer. *left_over becomes the first
// position of a run that found no room, because other processes refilled too.
constexpr uint64_t runs_at_a_time = 256; // some ten microseconds
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
    // Release: a caller that sees it finds the runs (handle_empty_ring()).
    state.refilled_ring_at_us.store(monotonic_us(), std::memory_order_release);
    refills->fetch_add(1, std::memory_order_relaxed);
    return moved;
}

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
    if (fault_is("put_back"))
        (void)ring.put(first);
    return true;
}

bool shared_run_has_next(const GeneratorState &generator, uint64_t floor) {
    const CachedConfig &cached = generator.config.cached;
    return core::SharedRun<>::has_next(generator.ring.shared.last(), floor, cached.run);
}

// Takes a run, or finds that another session has installed the last run of the ring as the shared run.
bool take_or_find_run(SessionEntry *e, uint64_t floor) {
    return take_run(e, floor) || shared_run_has_next(generator_of(e->slot), floor);
}

[[noreturn]] void refuse_empty_ring(const SessionEntry *e, int64_t waited_us) {
    e->slot->counters.count(Stat::refused_ring);
    ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                    errmsg("the ring of generator \"%s\" is empty", get_rel_name(e->sequence)),
                    errdetail("Sessions draw ids faster than the refiller makes them, or the refiller is not running. "
                              "The call waited %lld ms and took no id.",
                              static_cast<long long>(waited_us / us_per_ms)),
                    errhint("Call again, or run SELECT uid_generator_alter(%s, when_ring_empty => 'pad').",
                            quote_literal_cstr(qualified_name(e->sequence)))));
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
        refuse_empty_ring(call->e, measure_wait_us(call));
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
        (void)conclude(call, reading, decision, execute(call, reading, {decision}, &none));
}

// By the policy: refills the ring, waits for the refiller, or raises an error.
void handle_empty_ring(DrawCall *call, const Reading &reading, const core::Decision &decision, uint64_t floor) {
    GeneratorState &generator = generator_of(call->e->slot);
    const WhenRingEmpty policy = policy_now(generator);
    const bool may_go_on = decision.action != core::ClockAction::exhausted && decision.action != core::ClockAction::ask;
    if (policy == WhenRingEmpty::error && may_go_on) {
        // The ring may have been refilled since the caller looked, for the first time, too. So the caller looks again
        // now that it knows that the ring is not new.
        if (take_or_find_run(call->e, floor))
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
    ring.shared_before.fetch_add(drawn_before, std::memory_order_release); // pairs with drawn_from_shared_runs()
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
// found that: another session may have joined one since, and may have filled the ring inside its grant. A run lies in
// one tick, so what holds for one of its positions holds for all.
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
        const core::IdEncoder encoder = fix_node(e, reading);
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
        if (!take_or_find_run(e, floor))
            handle_empty_ring(&call, reading, decision, floor);
    }
}

namespace {

// The refiller: a background process that fills the rings of generators in cached mode ahead of time. It only moves
// positions inside a durable lease from the generator's word into the ring. It cannot extend a lease; callers do.

constexpr int64_t shortest_nap_ms = 10;
constexpr int64_t longest_nap_ms = 1000;

// A refill goes on until the ring is full. Returns whether one is under way.
bool begin_or_end_refill(GeneratorState *generator, const core::Ring<> &ring) {
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
    if (!begin_or_end_refill(&generator, ring))
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
        if (!found && worker_resigns(SingleWorker::refiller, has_any_ring))
            return;
        nap_ms = moved > 0 ? 0 : Min(Max(2 * nap_ms, shortest_nap_ms), longest_nap_ms);
        sleep_for(nap_ms * us_per_ms, wait_event("UidgenRefiller"));
    }
}

} // namespace

UIDGEN_WORKER_MAIN(uidgen_refiller_main) {
    pqsignal(SIGTERM, SignalHandlerForShutdownRequest);
    pqsignal(SIGHUP, no_signal_handler());
    begin_as_worker(SingleWorker::refiller);
    refill_rings();
    proc_exit(0);
}

} // namespace uidgen::pg
