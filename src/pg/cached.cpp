#include "cached.hpp"

#include "errors.hpp"
#include "padder.hpp"
#include "time_source.hpp"
#include "waits.hpp"

namespace uidgen::pg {
namespace {

// A caller that pads moves so many runs: enough for a while, and done within some ten microseconds.
constexpr uint64_t runs_by_caller = 256;
constexpr int64_t nap_us = 5 * us_per_ms;

// Runs in a signal handler, between any two instructions of the session.
void expire_fronts() { cached_fronts_expired.store(true, std::memory_order_relaxed); }

// A front that has expired stays ended when another one comes in its place. In one step, so that a timer that fires meanwhile
// either has ended it before, or ends the new one too.
void forget_expired_fronts() {
    if (!cached_fronts_expired.exchange(false, std::memory_order_relaxed))
        return;
    cached_front.key = shared_front.key = 0;
    cached_front.default_role = shared_front.default_role = InvalidOid;
}

// The front counts ids; the entry's run follows when it is asked for.
void take_back_from_front(Attached *a) {
    if (cached_front.entry != a)
        return;
    const auto left = static_cast<uint64_t>((cached_front.end_id - cached_front.next_id) / cached_front.step);
    a->chunk_first = a->chunk_end - left;
    cached_front.entry = nullptr;
    cached_front.key = 0;
    cached_front.default_role = InvalidOid;
}

void drop_what_is_too_old(Attached *a, uint64_t floor) {
    RingState &ring = a->slot->generator.ring;
    if (a->chunk_first >= a->chunk_end || a->chunk_first >= floor)
        return;
    const uint64_t kept_from = Min(Max(a->chunk_first, floor), a->chunk_end);
    ring.too_old.fetch_add(kept_from - a->chunk_first, std::memory_order_relaxed);
    a->chunk_first = kept_from;
}

// The padder can't: has the next lease written while there is something left, without waiting for it.
void keep_lease(Call *call, const core::Decision &decision) {
    if (decision.step == core::Step::reserve || decision.reserve_until > 0)
        reserve_if_believed(call, decision.reserve_until);
    else if (decision.step == core::Step::confirm &&
             call->a->slot->generator.ticks.written_range().lsn <= GetFlushRecPtr(nullptr))
        confirm_lease(call, core::Durability::local);
}

void hold_run(Attached *a, uint64_t first) {
    a->chunk_first = first;
    a->chunk_end = first + a->slot->generator.config.cached.run;
}

bool take_run(Call *call, uint64_t floor) {
    Attached *a = call->a;
    GeneratorState &generator = a->slot->generator;
    const CachedConfig &cached = generator.config.cached;
    const core::TakenRun taken = a->ring.take(floor);
    if (taken.too_old > 0)
        generator.ring.too_old.fetch_add(taken.too_old * cached.run, std::memory_order_relaxed);
    if (taken.too_old > 0 && taken.first == core::empty_cell)
        generator.ring.went_stale.store(true, std::memory_order_relaxed);
    if (a->ring.filled() < cached.threshold)
        wake_padder();
    if (taken.first == core::empty_cell)
        return false;
    hold_run(a, taken.first);
    return true;
}

void wait_for_padder(Call *call) {
    int64_t waited_us = 0;
    if (!call->wait.counted)
        call->a->slot->generator.ring.rejected_takes.fetch_add(1, std::memory_order_relaxed);
    const int64_t left_us = left_to_wait_us(call, &waited_us);
    if (left_us <= 0)
        report_ring_empty(call->a->sequence, waited_us / us_per_ms);
    wake_padder();
    sleep_for_ring(Min(left_us, nap_us));
}

// The clock bounds what may be put into the ring; ticks behind it are used, too, from `floor` on.
void pad_by_caller(Attached *a, const core::Decision &decision, uint64_t floor) {
    GeneratorState &generator = a->slot->generator;
    uint64_t left_over = core::empty_cell;
    if (pad_ring(&generator, a->ring, floor, decision.limit, runs_by_caller, &left_over) > 0)
        note_padding(&generator.ring, Padding::by_caller);
    if (left_over != core::empty_cell)
        hold_run(a, left_over);
}

// The first time, and when everything was too old, it is padded at the call whatever the policy: nobody had a chance to.
WhenRingEmpty policy_now(const GeneratorState &generator) {
    const bool never_padded = generator.ring.padded_at_us.load(std::memory_order_relaxed) == 0;
    const bool went_stale = generator.ring.went_stale.load(std::memory_order_relaxed);
    return never_padded || went_stale ? WhenRingEmpty::pad : generator.config.cached.when_empty;
}

void at_empty_ring(Call *call, const core::Decision &decision, uint64_t floor) {
    GeneratorState &generator = call->a->slot->generator;
    const WhenRingEmpty policy = policy_now(generator);
    if (policy == WhenRingEmpty::error && decision.step != core::Step::exhausted) {
        generator.ring.rejected_takes.fetch_add(1, std::memory_order_relaxed);
        keep_lease(call, decision);
        wake_padder();
        report_ring_empty(call->a->sequence, 0);
    }
    if (decision.step != core::Step::take) {
        perform(call, decision); // the lease, or the clock: callers' work in every policy
    } else if (policy == WhenRingEmpty::wait) {
        wait_for_padder(call);
    } else {
        pad_by_caller(call->a, decision, floor);
    }
}

// When the session last looked at the clock for an id of cached mode, on the clock that never steps.
int64_t looked_at_us = 0;

// Ends the fast path when the last look at the clock is too long ago: at once if waiting for a standby has taken so long. A
// timer that is under way for a longer time, of another generator, is set anew.
void look_again_after(int64_t us) {
    static bool registered = false;
    static TimeoutId timer;
    static int64_t due_us = 0;
    if (!registered) {
        timer = RegisterTimeout(USER_TIMEOUT, expire_fronts);
        registered = true;
    }
    const int64_t left_us = looked_at_us + us - monotonic_us();
    if (left_us < us_per_ms) {
        expire_fronts();
        return;
    }
    if (get_timeout_active(timer) && due_us <= looked_at_us + us)
        return;
    due_us = looked_at_us + us;
    enable_timeout_after(timer, static_cast<int>(left_us / us_per_ms));
}

// What is padded is durable here; a standby that is awaited is asked before anything is handed out. True: time has passed.
bool need_durable(Call *call, uint64_t end) {
    if (call->a->slot->generator.ticks.usable(call->level) >= end)
        return false;
    confirm_lease(call, call->level);
    return true;
}

// Before a run is taken out of the ring: if a standby has not got it, it is waited for with the run where others can have it
// who need not wait. True: time has passed.
bool waited_for_standby(Call *call, uint64_t floor) {
    if (call->level == core::Durability::local)
        return false;
    const uint64_t first = call->a->ring.peek(floor);
    return first != core::empty_cell && need_durable(call, first + call->a->slot->generator.config.cached.run);
}

// What the session has in hand itself, if anything.
core::Run take_own(Call *call) {
    Attached *a = call->a;
    if (a->chunk_first >= a->chunk_end)
        return {0, 0};
    const core::Run run = {a->chunk_first, Min(call->want, a->chunk_end - a->chunk_first)};
    need_durable(call, run.first + run.count);
    a->chunk_first += run.count;
    return run;
}

// From the run that all share. If that is used up, the run that the session has in hand becomes the shared one, unless
// somebody else's has; then *quicker, so look again.
core::Run take_shared(Call *call, uint64_t floor, bool *quicker) {
    Attached *a = call->a;
    RingState &ring = a->slot->generator.ring;
    const uint64_t length = a->slot->generator.config.cached.run;
    uint64_t seen = 0;
    const core::Run run = ring.shared.take(floor, length, call->want, &seen);
    if (run.count > 0) {
        need_durable(call, run.first + run.count);
        return run;
    }
    if (a->chunk_first >= a->chunk_end)
        return {0, 0};
    need_durable(call, a->chunk_end);
    const core::Run first = {a->chunk_first, Min(call->want, a->chunk_end - a->chunk_first)};
    *quicker = !ring.shared.install(seen, first.first + first.count - 1);
    if (*quicker) {
        if (a->ring.put(a->chunk_first)) // for others
            a->chunk_first = a->chunk_end;
        return {0, 0};
    }
    ring.too_old.fetch_add(length - 1 - (seen & (length - 1)), std::memory_order_relaxed);
    a->chunk_first = a->chunk_end;
    return first;
}

// Somebody may have taken the last run out of the ring for all.
bool shared_run_has_next(const GeneratorState &generator, uint64_t floor) {
    const CachedConfig &cached = generator.config.cached;
    return cached.shares && core::SharedRun<>::has_next(generator.ring.shared.last(), floor, cached.run);
}

// The next position that the call would be given, as far as it is known; 0: nothing is in hand.
uint64_t next_in_hand(const Attached *a, uint64_t floor) {
    const GeneratorState &generator = a->slot->generator;
    if (shared_run_has_next(generator, floor))
        return generator.ring.shared.last() + 1;
    return a->chunk_first < a->chunk_end ? a->chunk_first : 0;
}

// The end of what the call would be given from that position on.
uint64_t end_in_hand(const Call &call, uint64_t next) {
    return Min(next + call.want, core::SharedRun<>::end_of_run(next, call.a->slot->generator.config.cached.run) + 1);
}

// How far a position is further ahead of the clock than it may be; at most 0: it is not.
int64_t ticks_too_far(const Call &call, uint64_t position) {
    const core::ClockPolicy &policy = call.a->slot->generator.config.policy;
    return static_cast<int64_t>(position >> policy.sequence_bits) - call.view.now - policy.max_ahead;
}

} // namespace

Drawn draw_cached(Attached *a, uint64_t want) {
    check_datacenter(a);
    take_back_from_front(a);
    GeneratorState &generator = a->slot->generator;
    Call call = {};
    call.a = a;
    call.want = want;
    for (;; before_next_try(&call)) {
        look(&call);
        looked_at_us = call.now_us - call.offset_us;
        if (!clock_is_believed(&call)) // it would throw everything away
            continue;
        const uint64_t floor = Max(fresh_from(generator, call.now_us),
                                   generator.ring.given_up_below.load(std::memory_order_relaxed));
        a->fresh_floor = floor;
        drop_what_is_too_old(a, floor);
        need_worker_id(a);
        const uint64_t next = next_in_hand(a, floor);
        const int64_t too_far = next > 0 ? ticks_too_far(call, next) : 0;
        if (too_far > 0) {
            perform(&call, {core::Step::wait, 0, 0, 0, too_far}); // the clock went back since it was padded
            continue;
        }
        if (next > 0 && need_durable(&call, end_in_hand(call, next))) // it may be too old by now
            continue;
        bool quicker = false;
        const core::Run run =
            generator.config.cached.shares ? take_shared(&call, floor, &quicker) : take_own(&call);
        if (run.count > 0)
            return {run, shape_at(generator, run.first, false)};
        if (quicker)
            continue;
        if (waited_for_standby(&call, floor))
            continue;
        const core::Decision decision = core::decide(generator.config.policy, call.view);
        keep_lease(&call, decision);
        if (!take_run(&call, floor) && !shared_run_has_next(generator, floor))
            at_empty_ring(&call, decision, floor);
    }
}

namespace {

void bring_run_to_front(Attached *a, const core::Shape &shape, bool is_default) {
    if (cached_front.entry != nullptr)
        take_back_from_front(cached_front.entry);
    const int64_t step = INT64_C(1) << core::sequence_shift(a->slot->generator.config.layout);
    const uint64_t left = a->chunk_end - a->chunk_first;
    const StandbyMark mark = standby_mark();
    const uint64_t key = front_key_of(a, mark);
    const int64_t next = left > 0 ? core::join(shape, a->chunk_first) : 0;
    cached_front = {key, is_default && key != 0 ? GetUserId() : InvalidOid, mark, next, next + static_cast<int64_t>(left) * step, step, a};
}

void bring_shared_to_front(Attached *a, const Drawn &drawn, bool is_default) {
    GeneratorState &generator = a->slot->generator;
    const StandbyMark mark = standby_mark();
    const uint64_t key = front_key_of(a, mark);
    shared_front = {key, is_default && key != 0 ? GetUserId() : InvalidOid, mark, &generator.ring.shared, 0, 0, 0,
                    UINT64_C(1) << core::sequence_shift(generator.config.layout), generator.config.cached.run, a->fresh_floor,
                    drawn.shape};
    shared_front.follow_another(drawn.run.first + drawn.run.count - 1);
}

} // namespace

// A timer may fire at each point. Before the fronts that have expired are forgotten: then it is not active any more when it is
// looked at, and is started again. After that: then it ends the new front, which costs the next call a look. The front is
// filled between the two, and the fences keep the compiler to that.
void bring_cached_to_front(Attached *a, const Drawn &drawn, bool is_default) {
    const CachedConfig &cached = a->slot->generator.config.cached;
    forget_expired_fronts();
    std::atomic_signal_fence(std::memory_order_seq_cst);
    if (cached.shares)
        bring_shared_to_front(a, drawn, is_default);
    else
        bring_run_to_front(a, drawn.shape, is_default);
    std::atomic_signal_fence(std::memory_order_seq_cst);
    look_again_after(cached.fresh_us);
}

} // namespace uidgen::pg
