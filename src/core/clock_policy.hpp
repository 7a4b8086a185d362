// What a generator does next, given the clock: the whole policy as one pure function of values.
//
// The clock never decides uniqueness, only how truthful an id's time is (P4) and how long a caller waits.
// All times are ticks of the layout; `now` may be negative (a clock before the epoch).
#pragma once

#include <cstdint>

#include "tick_word.hpp"

namespace uidgen::core {

struct ClockPolicy {
    int32_t sequence_bits;
    int64_t end;       // 2^time_bits: the first tick that the layout can't hold
    int64_t lease;     // ticks that one record adds, >= 1
    int64_t max_ahead; // ticks an id may be ahead of the clock, >= lease
};

enum class Step : uint8_t {
    take,      // hand out positions in [floor, limit)
    confirm,   // make the written record durable, then decide again
    reserve,   // write a record up to reserve_until, then decide again
    wait,      // the clock must advance by wait_ticks first
    exhausted, // the time bits are used up
};

struct Decision {
    Step step;
    uint64_t floor; // no position below it: the clock's own tick
    uint64_t limit; // take: first position not to be handed out
    // take: if above 0, the next lease should be written now, without waiting for it; reserve: the first tick
    // after the new lease.
    int64_t reserve_until;
    int64_t wait_ticks; // wait: how far the clock is behind
};

namespace detail {

constexpr int64_t lesser(int64_t a, int64_t b) noexcept { return a < b ? a : b; }

// A lease shorter than this is not worth a record: it bounds the records a second under a bulk load that
// lives at max_ahead to 16 a lease.
constexpr int64_t least_extension(const ClockPolicy &p) noexcept { return (p.lease + 15) / 16; }

// Up to which tick a lease that starts at `from` may go: never more than max_ahead above the clock (P4).
constexpr int64_t lease_end(const ClockPolicy &p, int64_t from, int64_t now) noexcept {
    return lesser(lesser(from + p.lease, now + p.max_ahead + 1), p.end);
}

} // namespace detail

// `last`, `usable` and `written` are read from the generator's word in this order of growth: usable <=
// written. The answer stays right when the word moves on: limits only shrink what may be taken.
constexpr Decision decide(const ClockPolicy &p, int64_t now, uint64_t last, uint64_t usable,
                          uint64_t written) noexcept {
    const auto position = [&p](int64_t tick) { return static_cast<uint64_t>(tick) << p.sequence_bits; };
    const auto tick = [&p](uint64_t pos) { return static_cast<int64_t>(pos >> p.sequence_bits); };

    const uint64_t floor = now > 0 ? position(detail::lesser(now, p.end)) : 0;
    const uint64_t next = last + 1 > floor ? last + 1 : floor;
    const int64_t next_tick = tick(next);

    if (next_tick >= p.end)
        return {Step::exhausted, floor, 0, 0, 0};
    // How much must fit below the clock's bound: the tick itself, or a record that is worth writing.
    const int64_t ticks = next < written ? 1 : detail::least_extension(p);
    const int64_t behind = detail::lesser(next_tick + ticks, p.end) - (now + p.max_ahead + 1);
    if (behind > 0)
        return {Step::wait, floor, 0, 0, behind};

    if (next < usable) {
        // The allowance ends with the tick now + max_ahead, which is below p.end + max_ahead and above 0.
        const uint64_t allowance = position(detail::lesser(now + p.max_ahead + 1, p.end));
        const uint64_t limit = usable < allowance ? usable : allowance;
        if (written > usable)
            return {Step::take, floor, limit, 0, 0};
        // A quarter of the lease is used: three quarters are left for the WAL writer to make the next durable.
        const int64_t prefetch_tick = tick(usable) - p.lease + p.lease / 4;
        if (next_tick < prefetch_tick) {
            const uint64_t prefetch_at = position(prefetch_tick);
            return {Step::take, floor, limit < prefetch_at ? limit : prefetch_at, 0, 0};
        }
        const int64_t until = detail::lease_end(p, tick(written), now);
        const bool worth = until - tick(written) >= detail::least_extension(p);
        return {Step::take, floor, limit, worth ? until : 0, 0};
    }
    if (next < written)
        return {Step::confirm, floor, 0, 0, 0};

    return {Step::reserve, floor, 0, detail::lease_end(p, next_tick, now), 0};
}

} // namespace uidgen::core
