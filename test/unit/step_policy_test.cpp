// The dynamic step: Leaf's rule between bounds, with time as an argument.

#include <vector>

#include <gtest/gtest.h>

#include "range.hpp"

namespace {

using namespace uidgen::core;

constexpr int64_t minute_us = INT64_C(60) * 1000 * 1000;
constexpr StepBounds bounds = {1000, 1000000};

// A whole range of the step was drawn in that time.
Pace whole(int64_t step, int64_t us) { return {static_cast<uint64_t>(step), us}; }

// Below 15 minutes it doubles, from 30 minutes on it is halved, between its bounds.
TEST(NextStep, FollowsHowLongARangeLasted) {
    const struct {
        int64_t step, lasted_us, next;
    } cases[] = {{1000, -1, 2000}, // the clock has not advanced
                 {1000, 0, 2000},
                 {1000, 15 * minute_us - 1, 2000},
                 {4000, 15 * minute_us, 4000},
                 {4000, 30 * minute_us - 1, 4000},
                 {4000, 30 * minute_us, 2000},
                 {4001, INT64_MAX, 2000},
                 {600000, 0, 1000000},
                 {1000000, 0, 1000000},
                 {1500, 30 * minute_us, 1000},
                 {1000, 30 * minute_us, 1000}};
    for (const auto &c : cases)
        EXPECT_EQ(next_step(c.step, bounds, whole(c.step, c.lasted_us)), c.next) << c.step << " " << c.lasted_us;
    const StepBounds wide = {1, INT64_MAX};
    for (const int64_t step : {INT64_MAX, INT64_MAX / 2 + 1})
        EXPECT_EQ(next_step(step, wide, whole(step, 0)), INT64_MAX);
}

TEST(NextStep, AStepBelowTheBaseGrowsAndDoesNotShrink) {
    EXPECT_EQ(next_step(10, bounds, whole(10, 0)), 20);
    // Halving may not raise the step: below the base, a slow range keeps it or raises it to the base, never more.
    EXPECT_LE(next_step(10, bounds, whole(10, INT64_MAX)), bounds.base);
}

TEST(DisturbedStep, HalvesDownToOne) {
    int64_t step = 1000;
    int64_t lost = 0;
    while (step > 1) {
        lost += 2 * step; // the range in use and the one reserved ahead
        step = disturbed_step(step);
    }
    EXPECT_LE(lost, 4 * 1000);
    EXPECT_EQ(disturbed_step(1), 1);
}

TEST(BoundedBySequence, AtMostOneIn1024) {
    EXPECT_EQ(bounded_by_sequence(1000, 32767), 31);
    EXPECT_EQ(bounded_by_sequence(1000, UINT64_C(2147483647)), 1000);
    EXPECT_EQ(bounded_by_sequence(10000000, UINT64_C(2147483647)), 2097151);
    EXPECT_EQ(bounded_by_sequence(1000, 1024000), 1000);
    EXPECT_EQ(bounded_by_sequence(1000, 10), 1);
    EXPECT_EQ(bounded_by_sequence(1000, 1), 1);
    EXPECT_EQ(bounded_by_sequence(INT64_MAX, UINT64_MAX), static_cast<int64_t>(UINT64_MAX / 1024));
}

// A tenth of the first range is drawn when the second one is reserved.
TEST(NextStep, ATenthOfARangeIsNotTakenForTheWhole) {
    EXPECT_EQ(next_step(1000, bounds, Pace{100, minute_us}), 2000);
    EXPECT_EQ(next_step(1000, bounds, Pace{100, 2 * minute_us}), 1000);
    EXPECT_EQ(next_step(4000, bounds, Pace{400, 14 * minute_us}), 2000);
}

TEST(NextStep, NothingDrawnTellsNothing) {
    EXPECT_EQ(next_step(1000, bounds, Pace{0, 0}), 1000);
    EXPECT_EQ(next_step(4000, bounds, Pace{0, 100 * minute_us}), 4000);
}

// Ranges reserved ahead at a steady demand, as draw_segment.cpp does: the reservation comes after a tenth of the range
// in use. Returns the steps in the order of the reservations.
std::vector<int64_t> reserve_at(double values_per_second, int reservations) {
    const auto at = [&](int64_t value) {
        return static_cast<int64_t>(static_cast<double>(value) / values_per_second * 1e6);
    };
    std::vector<int64_t> steps = {bounds.base};
    int64_t begin = 0;
    int64_t reserved_at = 0;
    for (int i = 1; i < reservations; i++) {
        const int64_t now = begin + steps[static_cast<size_t>(i) - 1] / 10;
        const Pace pace = {static_cast<uint64_t>(now - reserved_at), at(now) - at(reserved_at)};
        begin += steps[static_cast<size_t>(i) - 1];
        reserved_at = now;
        steps.push_back(next_step(steps.back(), bounds, pace));
    }
    return steps;
}

// No interval, not even the first one, leads to a step at which a range lasts longer than 30 minutes.
TEST(NextStep, GrowsOnlyWhereARangeIsTooSmall) {
    for (const double rate : {0.1, 0.5, 1.0, 1.2, 2.0, 10.0, 1000.0}) {
        const std::vector<int64_t> steps = reserve_at(rate, 20);
        for (size_t i = 1; i < steps.size(); i++) {
            const double before_us = static_cast<double>(steps[i - 1]) / rate * 1e6;
            EXPECT_EQ(steps[i] > steps[i - 1], before_us < short_range_us && steps[i - 1] < bounds.most)
                << rate << ": " << i;
        }
    }
}

// A day of demand, from one value an hour to ten million a second: the step settles where a range lasts 15 to 30
// minutes, or at a bound.
TEST(NextStep, SettlesAtTheDemand) {
    for (const double rate : {1.0 / 3600, 0.1, 1.0, 10.0, 100.0, 1000.0, 1e5, 1e7}) {
        int64_t step = bounds.base;
        for (int i = 0; i < 40; i++)
            step = next_step(step, bounds, whole(step, static_cast<int64_t>(static_cast<double>(step) / rate * 1e6)));
        const double lasts_us = static_cast<double>(step) / rate * 1e6;
        const bool in_band = lasts_us >= short_range_us && lasts_us < long_range_us;
        EXPECT_TRUE(in_band || step == bounds.base || step == bounds.most) << rate << ": " << step;
    }
}

// What a claim can use up is bounded by what a range may have, not by what is claimed.
TEST(Loss, IsCredibleUpToSomeBlocks) {
    for (const int64_t most : {INT64_C(1), INT64_C(29), INT64_C(10000000), INT64_C(1) << 40}) {
        const StepBounds of = {1, most};
        const auto blocks = static_cast<uint64_t>(most) * most_lost_blocks;
        EXPECT_TRUE(is_credible_loss(0, of) && is_credible_loss(blocks, of));
        EXPECT_FALSE(is_credible_loss(blocks + 2 * most_lost_blocks, of) || is_credible_loss(UINT64_MAX, of));
    }
}

} // namespace
