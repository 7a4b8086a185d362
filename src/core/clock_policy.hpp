// What a generator does next, given the clock: the whole policy as pure functions of values.
//
// The clock never decides uniqueness, only how truthful an id's time is (P4) and how long a caller waits.
// All times are ticks of the layout; `now` may be negative (a clock before the epoch).
//
// A generator that may begin again after a clock that was wrong (new_worker) counts *terms*: within a term ticks run
// from 0 to end - 1, and the word counts term x end + tick, so it still only grows. All others stay in term 0.
#pragma once

#include <algorithm>
#include <cstdint>

#include "position_allocator.hpp"

namespace uidgen::core {

// When the sequence numbers of the clock's tick are used up.
enum class WhenFull : uint8_t {
    wait,   // for the next tick
    borrow, // go on with the next tick, up to max_ahead above the clock
    backup, // the backup worker's numbers of this tick first, then borrow
};

// When the clock is below the latest reading that an id was made with.
enum class WhenBack : uint8_t {
    hold,       // go on as if it stood still at that reading, if it is back by no more than the tolerance; else an error
    wait,       // until it is there again, if it is back by no more than the tolerance; else an error
    backup,     // the backup worker, if its own ids are ahead of the clock by no more than the tolerance; else an error
    error,      // at once
    new_worker, // hold within the tolerance; beyond it begin again at the clock with a worker id never used before
};

constexpr int64_t no_limit = INT64_C(1) << 60;

// From where in a tick ids begin when the clock moves on to it: low bits that are always 0 would be a trap for whoever
// takes ids modulo n.
struct Spread {
    uint64_t count; // starts in [0, count); 0 or 1: always at 0

    // Multiplying by 2^64 / golden ratio visits [0, 1) evenly for ticks in any arithmetic progression (Knuth, The Art of
    // Computer Programming 3, 6.4).
    constexpr uint64_t start(int64_t tick) const noexcept {
        const uint64_t mixed = static_cast<uint64_t>(tick) * UINT64_C(0x9E3779B97F4A7C15);
        return ((mixed >> 32) * count) >> 32;
    }
};

// The widest spread for a tick of 2^bits ids: divisible by 24 and 1000 where there is room, so that every residue modulo
// 2, 3, 8, 1000 comes up equally often, and at least a quarter of the tick is left for the busy.
constexpr Spread spread_for(int32_t sequence_bits) noexcept {
    if (sequence_bits >= 12)
        return {3000};
    return {(UINT64_C(3) << sequence_bits) / 4};
}

struct ClockPolicy {
    int32_t sequence_bits;
    int64_t end;       // 2^time_bits: the first tick that the layout can't hold
    int64_t lease;     // ticks that one record adds, >= 1
    int64_t max_ahead; // ticks an id may be ahead of the clock, >= lease
    WhenFull when_full = WhenFull::borrow;
    WhenBack when_back = WhenBack::hold;
    int64_t tolerance = no_limit; // ticks, of when_back
    Spread spread = {0};
};

enum class ClockAction : uint8_t {
    take,       // hand out positions in [floor, limit)
    confirm,    // make the written record durable, then decide again
    reserve,    // write a record up to reserve_until, then decide again
    wait,       // the clock must advance by wait_ticks first
    exhausted,  // the time bits are used up
    backup,     // ask the backup worker: decide_backup()
    clock_back, // an error: the clock went back by wait_ticks
    new_term,   // begin a term at the tick of `floor`, with a record up to reserve_until
};

struct Decision {
    ClockAction action;
    uint64_t floor; // no position below it: the clock's own tick
    uint64_t limit; // take: first position not to be handed out
    // take: if above 0, the next lease should be written now, without waiting for it; reserve, new_term: the first tick
    // after the new lease.
    int64_t reserve_until;
    int64_t wait_ticks; // wait: how far the clock is behind; clock_back, backup: how far it went back (backup: 0 if not)
};

// What a decision looks at. The bounds are read from the generator's word in this order of growth: usable <=
// written. The answer stays right when the word moves on: limits only shrink what may be taken. The clock is read after
// them: others may have seen a later reading than one taken before, and it would seem to have gone back.
struct ClockState {
    int64_t now;
    int64_t seen; // the latest tick of the clock that an id was made with, counted as the word's; before any: a negative one
    uint64_t last;
    uint64_t usable;
    uint64_t written;
    bool inherited_floor = false; // written is others' mark: it says nothing about what the clock showed this generator
};

constexpr int64_t nothing_seen = -1;

namespace detail {

// A lease shorter than this is not worth a record: it bounds the records a second under a bulk load that
// lives at max_ahead to 16 a lease.
constexpr int64_t least_extension(const ClockPolicy &p) noexcept { return (p.lease + 15) / 16; }

// A view in the word's own count, with what follows from it.
struct Term {
    int64_t begin; // its first tick
    int64_t end;   // the first tick after it
    int64_t now;
    uint64_t floor;
    int64_t back; // how far the clock went back; at most 0: it did not

    constexpr Term(const ClockPolicy &p, const ClockState &v) noexcept
        : begin(static_cast<int64_t>(v.last >> p.sequence_bits) / p.end * p.end), end(begin + p.end),
          now(begin + std::min(v.now, p.end)), floor(0), back(0) {
        if (v.now > 0) // the last tick starts at 0, for there is none after it to borrow from
            floor = (static_cast<uint64_t>(now) << p.sequence_bits) + (v.now < p.end - 1 ? p.spread.start(v.now) : 0);
        // A lease was never written further than max_ahead above the clock, so the mark itself tells of a clock that
        // went back while the server was down.
        const int64_t marked = v.inherited_floor ? nothing_seen : static_cast<int64_t>(v.written >> p.sequence_bits) - 1 - p.max_ahead;
        back = std::max(v.seen, marked) - now;
        if (std::max(v.seen, marked) < begin)
            back = 0;
    }

    // The tick that ids go on with when a clock that went back is taken to stand still; else that of the clock.
    constexpr int64_t held() const noexcept { return now + std::max(back, INT64_C(0)); }

    // Up to which tick a lease that starts at `from` may go: never more than max_ahead above the clock (P4).
    constexpr int64_t lease_end(const ClockPolicy &p, int64_t from) const noexcept {
        return std::min({from + p.lease, now + p.max_ahead + 1, end});
    }
};

// Positions from `next` on, if that needs no tick more than `ahead` above the clock, or else none above `held`.
constexpr Decision draw(const ClockPolicy &p, const ClockState &v, const Term &t, uint64_t next, int64_t ahead,
                        int64_t held) noexcept {
    const auto position = [&p](int64_t tick) { return static_cast<uint64_t>(tick) << p.sequence_bits; };
    const auto tick = [&p](uint64_t pos) { return static_cast<int64_t>(pos >> p.sequence_bits); };
    const int64_t next_tick = tick(next);
    const int64_t allowed = std::max(t.now + ahead, held);

    // How much must fit below the clock's bound: the tick itself, or a record that is worth writing.
    const int64_t ticks = next < v.written ? 1 : least_extension(p);
    const int64_t beyond_lease = std::min(next_tick + ticks, t.end) - (t.now + p.max_ahead + 1);
    // What is held does not move while the clock comes up to it, so it shortens no wait.
    const int64_t beyond_clock = next_tick > allowed ? next_tick - (t.now + ahead) : 0;
    const int64_t behind = std::max(beyond_lease, beyond_clock);
    if (behind > 0)
        return {ClockAction::wait, t.floor, 0, 0, behind};

    if (next < v.usable) {
        // The allowance ends with a tick above that of `next`, so it is above 0.
        const uint64_t allowance = position(std::min(std::min(allowed, t.now + p.max_ahead) + 1, t.end));
        const uint64_t limit = std::min(v.usable, allowance);
        if (v.written > v.usable)
            return {ClockAction::take, t.floor, limit, 0, 0};
        // A quarter of the lease is used: three quarters are left for the WAL writer to make the next durable.
        const int64_t prefetch_tick = tick(v.usable) - p.lease + p.lease / 4;
        if (next_tick < prefetch_tick) {
            const uint64_t prefetch_at = position(prefetch_tick);
            return {ClockAction::take, t.floor, std::min(limit, prefetch_at), 0, 0};
        }
        const int64_t until = t.lease_end(p, tick(v.written));
        const bool worth = until - tick(v.written) >= least_extension(p);
        return {ClockAction::take, t.floor, limit, worth ? until : 0, 0};
    }
    if (next < v.written)
        return {ClockAction::confirm, t.floor, 0, 0, 0};
    return {ClockAction::reserve, t.floor, 0, t.lease_end(p, next_tick), 0};
}

// The clock went back by t.back. False: go on as if it had not.
constexpr bool answer_clock_back(const ClockPolicy &p, const Term &t, Decision *answer) noexcept {
    const bool tolerated = t.back <= p.tolerance;
    switch (p.when_back) {
    case WhenBack::hold:
        *answer = {ClockAction::clock_back, t.floor, 0, 0, t.back};
        return !tolerated;
    case WhenBack::wait:
        *answer = {tolerated ? ClockAction::wait : ClockAction::clock_back, t.floor, 0, 0, t.back};
        return true;
    case WhenBack::backup:
        *answer = {ClockAction::backup, t.floor, 0, 0, t.back};
        return true;
    case WhenBack::error:
        *answer = {ClockAction::clock_back, t.floor, 0, 0, t.back};
        return true;
    case WhenBack::new_worker:
        break;
    }
    // A term begins above the position that ends the one before, so its first tick is not 0.
    const int64_t from = t.end + (t.now - t.begin);
    *answer = {ClockAction::new_term, static_cast<uint64_t>(from) << p.sequence_bits, 0,
               std::min(from + p.lease, t.end + p.end), t.back};
    return !tolerated && t.now > t.begin;
}

} // namespace detail

// `may_borrow`: the backup worker has nothing left in the clock's tick either.
constexpr Decision decide(const ClockPolicy &p, const ClockState &v, bool may_borrow = false) noexcept {
    const detail::Term t(p, v);
    const uint64_t next = std::max(v.last + 1, t.floor);
    const auto next_tick = static_cast<int64_t>(next >> p.sequence_bits);
    if (next_tick >= t.end)
        return {ClockAction::exhausted, t.floor, 0, 0, 0};

    Decision answer{};
    if (t.back > 0 && detail::answer_clock_back(p, t, &answer))
        return answer;
    const bool borrows = p.when_full == WhenFull::borrow || (p.when_full == WhenFull::backup && may_borrow);
    const int64_t held = t.held();
    if (p.when_full == WhenFull::backup && !borrows && next_tick > held)
        return {ClockAction::backup, t.floor, 0, 0, 0};
    return detail::draw(p, v, t, next, borrows ? p.max_ahead : 0, held);
}

// The same for the backup worker, whose word is `last` in this view; `back` is the Decision's wait_ticks that sent the
// caller here. wait means that it has nothing in the clock's tick; clock_back that it is too far ahead itself.
constexpr Decision decide_backup(const ClockPolicy &p, const ClockState &v, int64_t back) noexcept {
    const detail::Term t(p, v);
    const uint64_t next = std::max(v.last + 1, t.floor);
    const auto next_tick = static_cast<int64_t>(next >> p.sequence_bits);
    if (next_tick >= t.end)
        return {ClockAction::exhausted, t.floor, 0, 0, 0};
    if (back <= 0)
        return detail::draw(p, v, t, next, 0, t.held());
    const int64_t ahead = std::min(p.tolerance, p.max_ahead);
    if (next_tick > t.now + ahead)
        return {ClockAction::clock_back, t.floor, 0, 0, back};
    return detail::draw(p, v, t, next, ahead, t.now);
}

} // namespace uidgen::core
