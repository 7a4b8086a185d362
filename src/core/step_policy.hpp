// How many values a segment reserves at a time: Meituan Leaf's dynamic step (2017).
//
// A range that would be used up within 15 minutes is too small: the step doubles, up to a maximum. A range that would
// last 30 minutes or more is too large: the step halves, down to the base. So records are rare where values are in
// demand, and a restart loses little where they are not. Time is an argument.
//
// How long a range lasts follows from the pace: the values drawn between two reservations, and the time between them.
// The time alone is not enough, because a range is reserved ahead, when a tenth of the one in use is drawn. The first
// interval covers a tenth of a range. The interval after the step has doubled covers 1.1 ranges of the former size.
// Leaf compares the time, and does not count the first interval. In the steady state both rules agree, because then as
// many values are drawn between two reservations as a range has.
#pragma once

#include <algorithm>
#include <cstdint>

namespace uidgen::core {

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

constexpr int64_t bounded_by_sequence(int64_t step, uint64_t values) noexcept {
    const uint64_t most = values / least_ranges_in_sequence;
    if (most >= static_cast<uint64_t>(step))
        return step;
    return most > 0 ? static_cast<int64_t>(most) : 1;
}

// A member of a fleet that shows a value beyond the registry's counter says that the registry has lost blocks. A
// failover loses those of a few seconds. A loss of more blocks is not believed, because the claim uses up what lies
// below it.
constexpr uint64_t most_lost_blocks = 16;

constexpr bool is_credible_loss(uint64_t values, const StepBounds &bounds) noexcept {
    return values / most_lost_blocks <= static_cast<uint64_t>(bounds.most);
}

// How long a range of that step lasts. The pace is at least one value.
constexpr int64_t lasts_us(int64_t step, const Pace &pace) noexcept {
    const double us = static_cast<double>(pace.us) * static_cast<double>(step) / static_cast<double>(pace.values);
    return us < static_cast<double>(INT64_MAX) ? static_cast<int64_t>(us) : INT64_MAX;
}

// The step of the next range, if one of the present step lasts that long.
constexpr int64_t next_step(int64_t step, const StepBounds &bounds, int64_t range_us) noexcept {
    if (range_us < short_range_us)
        return std::max(step, step > bounds.most / 2 ? bounds.most : step * 2);
    if (range_us >= long_range_us)
        return std::min(step, std::max(step / 2, bounds.base));
    return step;
}

// The same, from the pace since the last reservation. An interval without a draw changes nothing.
constexpr int64_t next_step(int64_t step, const StepBounds &bounds, const Pace &pace) noexcept {
    return pace.values == 0 ? step : next_step(step, bounds, lasts_us(step, pace));
}

// Each time another session moves the counter, up to two ranges are lost. So the step is halved each time. If nextval
// also draws from the sequence, this bounds the total loss by about four times the step. The step grows back by
// next_step() afterwards.
constexpr int64_t disturbed_step(int64_t step) noexcept { return std::max(step / 2, INT64_C(1)); }

} // namespace uidgen::core
