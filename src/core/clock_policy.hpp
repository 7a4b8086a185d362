// What a generator does next, given the clock: the whole policy as pure functions.
//
// The clock never decides uniqueness. It decides how truthful an id's time is (P4), and how long a caller waits. All
// times are ticks of the layout; `now` is negative while the clock is before the epoch.
//
// In a fleet a generator draws inside *grants* (grant.hpp): the ticks granted_from <= t < granted_until of a node. A
// generator without a registry has one grant of all ticks. Why each id lies inside a grant of its node is in
// docs/design.md, P1 16. What a decision does for it:
//
//   1. The positions that it allows, those of a backup worker too, are at or above `floor`, which is at or above the
//      first position of granted_from, and below `limit`, which is at or below that of granted_until.
//   2. A lease ends at or below granted_until. What it adds to the leased ticks begins at or above granted_begin(),
//      because the caller publishes it from there, and raises both words over the gap below.
//   3. If the next position is at or above granted_until, the answer is `ask`, as soon as the clock allows that tick.
//      So a grant that ends ends the draws, and a clock that is behind is reported as such.
#pragma once

#include <algorithm>
#include <cstdint>

#include "layout.hpp"
#include "position_allocator.hpp"

namespace uidgen::core {

// When the sequence numbers of the clock's tick are used up.
enum class WhenFull : uint8_t {
    wait,   // wait for the next tick
    borrow, // continue with the next tick, up to max_ahead above the clock
    backup, // use the backup worker, which borrows; this one stays in the clock's tick
};

// When the clock is below the latest reading that an id was made with.
enum class WhenBack : uint8_t {
    hold,   // within the tolerance: continue as if the clock stood still at that reading; beyond it: an error
    wait,   // within the tolerance: wait until the clock shows that reading again; beyond it: an error
    backup, // use the backup worker, while its ids are ahead of the clock by at most the tolerance; else an error
    error,  // raise an error at once
};

constexpr int64_t no_limit = INT64_C(1) << 60;

// The first sequence number of a tick that the clock moves on to. At low demand most ids are the first of their tick;
// if they all had the number 0, ids modulo n would not be evenly distributed. And two databases that share a node by
// chance would draw the same ids whenever both draw in the same tick.
struct Spread {
    uint64_t count;    // the first number is in [0, count); 0 or 1: always 0
    uint64_t salt = 0; // the incarnation's own random number

    // A multiplication by 2^64 / golden ratio spreads ticks of any arithmetic progression evenly over [0, 1) (Knuth,
    // The Art of Computer Programming 3, 6.4). The salt turns that circle by a fixed angle, so the starts are as even
    // with it as without. And two incarnations keep their distance in all ticks: a salt that were mixed with the tick
    // would bring them together in one tick of `count`.
    constexpr uint64_t start(int64_t tick) const noexcept {
        const uint64_t mixed = static_cast<uint64_t>(tick) * UINT64_C(0x9E3779B97F4A7C15) + salt;
        return ((mixed >> 32) * count) >> 32;
    }
};

// The widest spread for a tick of 2^sequence_bits ids. Where there is room it is divisible by 24 and 1000, so that
// every residue modulo 2, 3, 8 and 1000 is equally frequent. At least a quarter of the tick remains for bursts. If a
// full tick is waited out, its first numbers are lost at any load, so it is Leaf's spread of 100 then.
constexpr Spread spread_for(int32_t sequence_bits, WhenFull when_full) noexcept {
    const uint64_t widest = sequence_bits >= 12 ? 3000 : (UINT64_C(3) << sequence_bits) / 4;
    return {when_full == WhenFull::wait ? std::min(widest, UINT64_C(100)) : widest};
}

// No id is further ahead of the clock, unless a tick is longer.
constexpr int64_t longest_ahead_ms = 600000;

struct ClockPolicy {
    int32_t sequence_bits;
    int64_t end;       // 2^time_bits: the first tick that the layout cannot hold
    int64_t lease;     // ticks that one record adds, >= 1
    int64_t max_ahead; // ticks an id may be ahead of the clock, >= lease
    WhenFull when_full = WhenFull::borrow;
    WhenBack when_back = WhenBack::hold;
    int64_t tolerance = no_limit; // of when_back, in ticks
    Spread spread = {0};
    int64_t behind = 0; // ticks that an id may be behind the clock: cached mode
};

enum class ClockAction : uint8_t {
    take,       // hand out positions in [floor, limit)
    confirm,    // make the written lease durable, then decide again
    reserve,    // write a lease up to reserve_until, then decide again
    wait,       // wait until the clock has advanced by wait_ticks
    exhausted,  // an error: the time bits are used up
    backup,     // use the backup worker: decide_backup()
    clock_back, // an error: the clock moved backwards by wait_ticks
    ask,        // no grant holds the next tick: get one that reaches above the tick `wanted`, then decide again
};

struct Decision {
    ClockAction action;
    uint64_t floor;     // no position below it is handed out: the start of the clock's tick, or `behind` ticks below it
    uint64_t limit = 0; // take: the first position that may not be handed out
    // reserve: the first tick after the new lease. take: the same, if the next lease should be written now,
    // without waiting for its flush; else 0.
    int64_t reserve_until = 0;
    int64_t wait_ticks = 0; // wait: how far the clock is behind; clock_back, backup: how far it moved backwards, or 0
    // ask: the lowest tick that can be used. clock_back: the tick of the clock at which there are ids again; backup:
    // the same without the backup worker.
    int64_t wanted = 0;
};

// The input of a decision.
//
//   1. `usable` is read before `written`, so that usable <= written.
//   2. A decision stays valid when the word moves on, because floor and limit only restrict what may be taken.
//   3. `now` is read last. Otherwise another session could record a later reading in `seen`, and the clock would seem
//      to have moved backwards.
struct ClockState {
    int64_t now;
    int64_t seen; // the latest tick of the clock that an id was made with; negative: none yet
    uint64_t last;
    uint64_t usable;
    uint64_t written;
    int64_t granted_from = 0;
    int64_t granted_until = no_limit; // the first tick beyond; at or below granted_from: there is no grant
};

constexpr int64_t nothing_seen = -1;

// The first position of the grant: no lease begins below it.
constexpr uint64_t granted_begin(const ClockPolicy &policy, const ClockState &state) noexcept {
    return static_cast<uint64_t>(std::min(state.granted_from, policy.end)) << policy.sequence_bits;
}

// The lowest position that is not too far behind the clock.
constexpr uint64_t oldest_allowed(const ClockPolicy &policy, int64_t now) noexcept {
    const int64_t tick = std::min(now - policy.behind, policy.end);
    if (tick <= 0)
        return 0;
    // The last tick starts at 0, because no tick is left to borrow from.
    return (static_cast<uint64_t>(tick) << policy.sequence_bits) +
           (tick < policy.end - 1 ? policy.spread.start(tick) : 0);
}

namespace detail {

// The shortest extension of a lease. It bounds the records of a bulk load that draws at max_ahead: at most 16 in the
// time of a lease.
constexpr int64_t least_extension(const ClockPolicy &policy) noexcept { return (policy.lease + 15) / 16; }

// What the clock and the grant allow.
struct Bounds {
    int64_t until; // the first tick after the grant, at most the layout's end
    int64_t now;
    uint64_t floor;
    int64_t back; // how far the clock moved backwards; 0 or less: it did not
    int64_t held; // where ids continue if a clock that moved backwards counts as standing still; else the clock's tick
};

constexpr Bounds bounds_of(const ClockPolicy &policy, const ClockState &state) noexcept {
    const int64_t now = std::min(state.now, policy.end);
    // No lease is written further than max_ahead above the clock. So a high-water mark beyond that shows a clock that
    // moved backwards while the server was down.
    const auto last_leased = static_cast<int64_t>(state.written >> policy.sequence_bits) - 1;
    const int64_t latest = std::max(state.seen, last_leased - policy.max_ahead);
    const int64_t back = latest >= 0 ? latest - now : 0;
    return {.until = std::min(state.granted_until, policy.end),
            .now = now,
            .floor = std::max(oldest_allowed(policy, state.now), granted_begin(policy, state)),
            .back = back,
            .held = std::max(now, now + back)};
}

constexpr Decision take(const Bounds &bounds, uint64_t limit, int64_t reserve_until = 0) noexcept {
    return {.action = ClockAction::take, .floor = bounds.floor, .limit = limit, .reserve_until = reserve_until};
}
constexpr Decision confirm(const Bounds &bounds) noexcept {
    return {.action = ClockAction::confirm, .floor = bounds.floor};
}
constexpr Decision reserve(const Bounds &bounds, int64_t until) noexcept {
    return {.action = ClockAction::reserve, .floor = bounds.floor, .reserve_until = until};
}
constexpr Decision wait(const Bounds &bounds, int64_t ticks) noexcept {
    return {.action = ClockAction::wait, .floor = bounds.floor, .wait_ticks = ticks};
}
constexpr Decision ask(const Bounds &bounds, int64_t wanted) noexcept {
    return {.action = ClockAction::ask, .floor = bounds.floor, .wanted = wanted};
}
constexpr Decision exhausted(const Bounds &bounds) noexcept {
    return {.action = ClockAction::exhausted, .floor = bounds.floor};
}
constexpr Decision ask_backup(const Bounds &bounds, int64_t back, int64_t resumes) noexcept {
    return {.action = ClockAction::backup, .floor = bounds.floor, .wait_ticks = back, .wanted = resumes};
}
constexpr Decision clock_back(const Bounds &bounds, int64_t back, int64_t resumes) noexcept {
    return {.action = ClockAction::clock_back, .floor = bounds.floor, .wait_ticks = back, .wanted = resumes};
}

// The end of a lease that starts at `from`: never more than max_ahead above the clock (P4).
constexpr int64_t lease_end(const ClockPolicy &policy, const Bounds &bounds, int64_t from) noexcept {
    return std::min({from + policy.lease, bounds.now + policy.max_ahead + 1, bounds.until});
}

// What to do to draw from `next` on, in ticks up to `ahead` above the clock, or up to `held` if that is later.
constexpr Decision decide_draw(const ClockPolicy &policy, const ClockState &state, const Bounds &bounds, uint64_t next,
                               int64_t ahead, int64_t held) noexcept {
    const auto position = [&policy](int64_t tick) { return static_cast<uint64_t>(tick) << policy.sequence_bits; };
    const auto tick = [&policy](uint64_t pos) { return static_cast<int64_t>(pos >> policy.sequence_bits); };
    const int64_t next_tick = tick(next);
    const int64_t allowed = std::max(bounds.now + ahead, held);

    // What must fit below max_ahead: one tick of the present lease, or the shortest extension. The last lease of a
    // grant may be shorter.
    const int64_t ticks = next < state.written ? 1 : least_extension(policy);
    const int64_t last_end = std::max(std::min(next_tick + ticks, bounds.until), next_tick + 1);
    const int64_t beyond_lease = last_end - (bounds.now + policy.max_ahead + 1);
    // `held` does not move while the clock approaches it, so it shortens no wait.
    const int64_t beyond_clock = next_tick > allowed ? next_tick - (bounds.now + ahead) : 0;
    const int64_t behind = std::max(beyond_lease, beyond_clock);
    if (behind > 0)
        return wait(bounds, behind);
    if (next_tick >= bounds.until)
        return ask(bounds, next_tick);

    if (next < state.usable) {
        // The allowance ends above the tick of `next`, so it is above 0.
        const uint64_t allowance =
            position(std::min(std::min(allowed, bounds.now + policy.max_ahead) + 1, bounds.until));
        const uint64_t limit = std::min(state.usable, allowance);
        if (state.written > state.usable)
            return take(bounds, limit);
        // The next lease is written when a quarter of this one is used. The WAL writer has three quarters to flush it.
        const int64_t prefetch_tick = tick(state.usable) - policy.lease + policy.lease / 4;
        if (next_tick < prefetch_tick)
            return take(bounds, std::min(limit, position(prefetch_tick)));
        const int64_t until = lease_end(policy, bounds, tick(state.written));
        const bool worth = until - tick(state.written) >= least_extension(policy);
        return take(bounds, limit, worth ? until : 0);
    }
    if (next < state.written)
        return confirm(bounds);
    return reserve(bounds, lease_end(policy, bounds, next_tick));
}

// The tick of the clock at which a decision to wait has waited enough.
constexpr int64_t end_of_wait(const Bounds &bounds, const Decision &decision) noexcept {
    return bounds.now + (decision.action == ClockAction::wait ? decision.wait_ticks : 0);
}

// The answer to a clock that moved backwards by bounds.back; `drawn` is the decision as if it had not. It is not for
// `hold` within the tolerance.
constexpr Decision answer_clock_back(const ClockPolicy &policy, const Bounds &bounds, const Decision &drawn) noexcept {
    const int64_t held = policy.when_back == WhenBack::hold ? bounds.held - policy.tolerance : bounds.held;
    const int64_t resumes = std::max(held, end_of_wait(bounds, drawn));
    if (policy.when_back == WhenBack::wait && bounds.back <= policy.tolerance)
        return wait(bounds, resumes - bounds.now);
    if (policy.when_back == WhenBack::backup)
        return ask_backup(bounds, bounds.back, resumes);
    return clock_back(bounds, bounds.back, resumes);
}

} // namespace detail

// By how many ticks the clock is behind the latest reading that the generator has used; 0 or less: it is not. While it
// is, when_back applies.
constexpr int64_t ticks_back(const ClockPolicy &policy, const ClockState &state) noexcept {
    return detail::bounds_of(policy, state).back;
}

// The generator's next step.
constexpr Decision decide(const ClockPolicy &policy, const ClockState &state) noexcept {
    const detail::Bounds bounds = detail::bounds_of(policy, state);
    const uint64_t next = std::max(state.last + 1, bounds.floor);
    const auto next_tick = static_cast<int64_t>(next >> policy.sequence_bits);
    if (next_tick >= policy.end)
        return detail::exhausted(bounds);

    // After a start, or in a new grant, the first tick may be ahead of the clock although no number was used up. Ids
    // stay in order if the primary worker begins that tick, and ends it.
    const bool begun = state.seen < 0 || next > state.last + 1 ||
                       static_cast<int64_t>(state.last >> policy.sequence_bits) == next_tick;
    const bool ends_tick = policy.when_full == WhenFull::backup && begun;
    const Decision drawn =
        detail::decide_draw(policy, state, bounds, next, policy.when_full == WhenFull::borrow ? policy.max_ahead : 0,
                            ends_tick ? std::max(bounds.held, next_tick) : bounds.held);
    if (bounds.back > 0 && (policy.when_back != WhenBack::hold || bounds.back > policy.tolerance))
        return detail::answer_clock_back(policy, bounds, drawn);
    if (policy.when_full == WhenFull::backup && drawn.action == ClockAction::wait)
        return detail::ask_backup(bounds, 0, detail::end_of_wait(bounds, drawn));
    return drawn;
}

// The backup worker's next step. `state.last` is the backup worker's word; `asked` is the decision to use it. It may be
// ahead of the clock by max_ahead, but only by the tolerance if the clock moved backwards. clock_back: it is further.
constexpr Decision decide_backup(const ClockPolicy &policy, const ClockState &state, const Decision &asked) noexcept {
    const detail::Bounds bounds = detail::bounds_of(policy, state);
    const uint64_t next = std::max(state.last + 1, bounds.floor);
    const auto next_tick = static_cast<int64_t>(next >> policy.sequence_bits);
    if (next_tick >= policy.end)
        return detail::exhausted(bounds);
    const bool is_back = asked.wait_ticks > 0;
    const int64_t ahead = is_back ? std::min(policy.tolerance, policy.max_ahead) : policy.max_ahead;
    const Decision drawn = detail::decide_draw(policy, state, bounds, next, ahead, is_back ? bounds.now : bounds.held);
    if (drawn.action != ClockAction::wait)
        return drawn;

    // Draws succeed again when this worker or the primary one may draw. When the clock is not back any more, this one
    // may only because the tick is full, but then further ahead.
    int64_t resumes = asked.wanted;
    if (detail::end_of_wait(bounds, drawn) < bounds.held)
        resumes = std::min(resumes, detail::end_of_wait(bounds, drawn));
    if (policy.when_full == WhenFull::backup) {
        const Decision when_full = detail::decide_draw(policy, state, bounds, next, policy.max_ahead, bounds.held);
        resumes = std::min(resumes, std::max(detail::end_of_wait(bounds, when_full), bounds.held));
    }
    if (is_back && next_tick > bounds.now + ahead)
        return detail::clock_back(bounds, asked.wait_ticks, resumes);
    return detail::wait(bounds, resumes - bounds.now);
}

// ---------------------------------------------------------------------------------------------------------
// The high-water mark: what a generator's sequence says was leased, as a tick of its layout, and what that means for
// the generator's word and ids. A layout and a policy that are passed together belong to one generator: the policy's
// `end` is 2^time_bits, and its sequence_bits are the layout's.
// ---------------------------------------------------------------------------------------------------------

// The mark of a generator that never wrote a lease: the first value of its sequence.
constexpr int64_t no_lease_yet = 1;

// No generator issues an id of a tick up to the mark with which it begins. So a number that small is a sequence's.
constexpr bool precedes_every_id(const TimeField &field, int64_t id) noexcept {
    return id >> field.shift <= no_lease_yet;
}

// The last tick leased. A mark beyond what the generator can use stands for its end.
constexpr int64_t tick_of_mark(const ClockPolicy &policy, int64_t high_water_mark) noexcept {
    return std::min(std::max(high_water_mark, INT64_C(0)), policy.end - 1);
}

// The first position above all that was leased.
constexpr uint64_t position_above(const ClockPolicy &policy, int64_t high_water_mark) noexcept {
    return static_cast<uint64_t>(tick_of_mark(policy, high_water_mark) + 1) << policy.sequence_bits;
}

// The largest id that the generator can have issued.
constexpr int64_t largest_leased_id(const Layout &layout, const ClockPolicy &policy, int64_t high_water_mark) noexcept {
    const int64_t first_above = first_id_of(layout, tick_of_mark(policy, high_water_mark) + 1);
    return first_above == INT64_MAX ? first_above : first_above - 1;
}

} // namespace uidgen::core
