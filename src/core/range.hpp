// A segment's ranges: values of a PostgreSQL sequence, reserved many at a time and handed out one by one.
//
// plan_range() is the sequence arithmetic (START, INCREMENT, MINVALUE, MAXVALUE, CYCLE as nextval has them).
// The positions of a segment's word (position_allocator.hpp) are *ordinals*, which only ever grow. A range maps its
// ordinals to values. A word with absolute values could hold the same value twice, under CYCLE or after a downward
// setval.
#pragma once

#include <algorithm>
#include <cstdint>

namespace uidgen::core {

struct SequenceState {
    int64_t last_value;
    bool is_called;
};

struct SequenceRule {
    int64_t increment; // never 0
    int64_t min_value;
    int64_t max_value;
    bool cycle;
};

// Whether a value lies beyond all that a sequence has handed out.
constexpr bool lies_beyond(const SequenceState &state, int64_t increment, int64_t value) noexcept {
    if (value == state.last_value)
        return !state.is_called;
    return increment > 0 ? value > state.last_value : value < state.last_value;
}

constexpr uint64_t stride_of(const SequenceRule &rule) noexcept {
    return rule.increment > 0 ? static_cast<uint64_t>(rule.increment)
                              : UINT64_C(0) - static_cast<uint64_t>(rule.increment);
}

// How many values a sequence has after its first one.
constexpr uint64_t values_in(const SequenceRule &rule) noexcept {
    return (static_cast<uint64_t>(rule.max_value) - static_cast<uint64_t>(rule.min_value)) / stride_of(rule);
}

// How many values lie between a value and one that comes later.
constexpr uint64_t values_up_to(int64_t value, const SequenceRule &rule, int64_t later) noexcept {
    const auto from = static_cast<uint64_t>(value);
    const auto to = static_cast<uint64_t>(later);
    // NOLINTNEXTLINE(clang-analyzer-core.DivideZero): no sequence has an increment of 0
    return (rule.increment > 0 ? to - from : from - to) / stride_of(rule);
}

struct PlannedRange {
    uint64_t count; // 0: the sequence is used up
    int64_t first;
    int64_t last;
};

// The next range of at most `count` (>= 1) values, cut short at the sequence's bound.
constexpr PlannedRange plan_range(const SequenceState &state, const SequenceRule &rule, uint64_t count) noexcept {
    const bool up = rule.increment > 0;
    const int64_t bound = up ? rule.max_value : rule.min_value;
    const auto left_after = [&](int64_t value) -> uint64_t {
        return (up ? value > bound : value < bound) ? 0 : values_up_to(value, rule, bound);
    };

    int64_t first = state.last_value;
    if (state.is_called) {
        if (left_after(state.last_value) > 0)
            first =
                static_cast<int64_t>(static_cast<uint64_t>(state.last_value) + static_cast<uint64_t>(rule.increment));
        else if (rule.cycle)
            first = up ? rule.min_value : rule.max_value;
        else
            return {};
    }
    const uint64_t taken = std::min(left_after(first), count - 1);
    const uint64_t last = static_cast<uint64_t>(first) + taken * static_cast<uint64_t>(rule.increment);
    return {.count = taken + 1, .first = first, .last = static_cast<int64_t>(last)};
}

// Ordinals [begin, end) stand for first, first + increment, ... That never changes, so a copy of a Range stays right
// forever.
struct Range {
    uint64_t begin;
    uint64_t end;
    int64_t first;
    int64_t increment;

    constexpr bool holds(uint64_t ordinal) const noexcept { return ordinal - begin < end - begin; }
    constexpr int64_t value(uint64_t ordinal) const noexcept {
        return static_cast<int64_t>(static_cast<uint64_t>(first) +
                                    (ordinal - begin) * static_cast<uint64_t>(increment));
    }
};

// The range in use and the one reserved ahead (Leaf's double buffer). All zeros: none yet.
//
// Numbered invariants
//   1. Ranges tile the ordinals: each begins where the one before it ended, at the end of what was published to the
//      segment's word.
//   2. A range is replaced only when the word has left it, because the caller asks room() before append().
//
// They are written under the exclusive lock of the sequence's page, and read under that lock, shared or exclusive.
struct Ranges {
    Range former;
    Range latest;

    // The range that holds the ordinal. False: none does.
    constexpr bool find(uint64_t ordinal, Range *out) const noexcept {
        *out = former.holds(ordinal) ? former : latest;
        return out->holds(ordinal);
    }

    // Whether another range may be added while `next` is the next ordinal: at most one is reserved ahead.
    constexpr bool room(uint64_t next) const noexcept { return former.end <= next; }

    constexpr void append(const Range &range) noexcept {
        former = latest;
        latest = range;
    }
};

// ---------------------------------------------------------------------------------------------------------
// How many values a segment reserves at a time: Meituan Leaf's dynamic step (2017).
//
// A range that would be used up within 15 minutes is too small: the step doubles, up to a maximum. A range that would
// last 30 minutes or more is too large: the step halves, down to the base. So records are rare where values are in
// demand, and a restart loses little where they are not. Time is an argument.
//
// How long a range lasts follows from the pace: the values drawn between two reservations, and the time between them.
// Leaf compares the time alone, which is not enough, because a range is reserved ahead: the first interval covers a
// tenth of a range, and the one after the step has doubled 1.1 ranges of the former size. In the steady state both
// rules agree.
// ---------------------------------------------------------------------------------------------------------

struct StepBounds {
    int64_t base; // >= 1
    int64_t most; // >= base
};

// The values drawn in an interval.
struct Pace {
    uint64_t values;
    int64_t us;
};

constexpr int64_t short_range_us = INT64_C(15) * 60 * 1000 * 1000;
constexpr int64_t long_range_us = 2 * short_range_us;

// The sequence's bounds limit the step too. A restart loses two ranges at most, and a small sequence must survive many
// restarts.
constexpr uint64_t least_ranges_in_sequence = 1024;

// Keeps ordinals, which are 64 bits wide, from wrapping: that would take 2^24 ranges of this size.
constexpr int64_t largest_step = INT64_C(1) << 40;

constexpr int64_t bounded_by_sequence(int64_t step, uint64_t values) noexcept {
    const uint64_t most = std::max(values / least_ranges_in_sequence, UINT64_C(1));
    return static_cast<int64_t>(std::min(most, static_cast<uint64_t>(step)));
}

// Those of a definition or a setting, as the sequence bounds them.
constexpr StepBounds step_bounds(int64_t base, int64_t most, const SequenceRule &rule) noexcept {
    const uint64_t values = values_in(rule);
    return {bounded_by_sequence(std::min(base, largest_step), values),
            bounded_by_sequence(std::min(std::max(most, base), largest_step), values)};
}

// A member of a fleet that shows a value beyond the registry's counter says that the registry has lost blocks. A
// failover loses those of a few seconds. A loss of more blocks is not believed, because the claim uses up what lies
// below it.
constexpr uint64_t most_lost_blocks = 16;

constexpr bool is_credible_loss(uint64_t values, const StepBounds &bounds) noexcept {
    return values / most_lost_blocks <= static_cast<uint64_t>(bounds.most);
}

// The step of the next range, by the pace since the last reservation. An interval without a draw changes nothing.
constexpr int64_t next_step(int64_t step, const StepBounds &bounds, const Pace &pace) noexcept {
    // The time of a step of values, compared without a division.
    const double us = static_cast<double>(pace.us) * static_cast<double>(step);
    const auto values = static_cast<double>(pace.values);
    if (pace.values > 0 && us < values * static_cast<double>(short_range_us))
        return std::max(step, step > bounds.most / 2 ? bounds.most : step * 2);
    if (pace.values > 0 && us >= values * static_cast<double>(long_range_us))
        return std::min(step, std::max(step / 2, bounds.base));
    return step;
}

// Each time another session moves the counter, up to two ranges are lost. So the step is halved each time. If nextval
// also draws from the sequence, this bounds the total loss by about four times the step. The step grows back by
// next_step() afterwards.
constexpr int64_t disturbed_step(int64_t step) noexcept { return std::max(step / 2, INT64_C(1)); }

// What a segment's slot keeps for this. The holder of the exclusive lock of the sequence's page changes it.
struct Steps {
    int64_t step;       // of the last range; 0: none yet
    int64_t base;       // of the bounds that it had
    bool disturbed;     // another command has moved the counter since the last range was reserved
    bool was_disturbed; // the same at the time when the last range was reserved
    // Start of the interval that the next pace is measured over: the time of a reservation on the monotonic clock (0:
    // none yet), and the next ordinal at that time plus the ordinals lost since. A reservation begins a new interval
    // only if a value was drawn in the present one.
    int64_t begun_us;
    uint64_t begun_at;
    uint64_t refills_late;      // ranges that callers had to wait for, because the one before was used up
    uint64_t refills_disturbed; // ranges reserved because another command had moved the counter

    // How many values the next range gets. `next` is the next ordinal.
    constexpr int64_t next_length(const StepBounds &bounds, uint64_t next, int64_t now_us) const noexcept {
        int64_t values = step > 0 ? step : bounds.base;
        if (!disturbed && begun_us != 0)
            values = next_step(values, bounds, {next - begun_at, now_us - begun_us});
        // The bounds may have changed. A raised base takes effect at once. A step below an unchanged base is recovering
        // from a disturbance.
        if (bounds.base > base && !disturbed)
            values = std::max(values, bounds.base);
        return std::min(values, bounds.most);
    }

    // A range is reserved with that step; late: a caller waits for it.
    constexpr void note_range(int64_t values, const StepBounds &bounds, uint64_t next, int64_t now_us,
                              bool is_late) noexcept {
        refills_disturbed += disturbed ? 1 : 0;
        refills_late += !disturbed && begun_us != 0 && is_late ? 1 : 0;
        step = values;
        base = bounds.base;
        was_disturbed = disturbed;
        disturbed = false;
        if (begun_us != 0 && next == begun_at)
            return; // counted in the next interval
        begun_us = now_us;
        begun_at = next;
    }

    // Another command has moved the counter, and so many values are lost. A counter that moved while nothing was
    // reserved costs nothing.
    constexpr void disturb(uint64_t values) noexcept {
        if (values > 0 && step > 0)
            step = disturbed_step(step);
        begun_at += values;
        disturbed = true;
    }
};

} // namespace uidgen::core
