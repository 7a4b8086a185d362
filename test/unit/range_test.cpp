// Ranges of a sequence. plan_range() is compared with a second implementation of nextval that takes one step at a time
// in 128-bit arithmetic. The mapping from ordinals to values is tested near its bounds.
#include "range.hpp"

#include <gtest/gtest.h>

#include <ostream>
#include <random>
#include <vector>

using namespace uidgen::core;

namespace {

using Wide = __int128;

struct Sequence {
    SequenceState state;
    SequenceRule rule;
};

std::ostream &operator<<(std::ostream &out, const Sequence &s) {
    return out << "last_value " << s.state.last_value << (s.state.is_called ? " (called)" : "") << " increment "
               << s.rule.increment << " from " << s.rule.min_value << " to " << s.rule.max_value
               << (s.rule.cycle ? " cycle" : "");
}

bool beyond(const SequenceRule &r, Wide value) { return r.increment > 0 ? value > r.max_value : value < r.min_value; }

// One nextval. False: it would report that the sequence reached its bound. `came_round` is set by a cycle.
bool naive_nextval(Sequence &s, int64_t *value, bool *came_round) {
    *came_round = false;
    if (!s.state.is_called) {
        s.state.is_called = true;
        *value = s.state.last_value;
        return true;
    }
    Wide next = static_cast<Wide>(s.state.last_value) + s.rule.increment;
    if (beyond(s.rule, next)) {
        if (!s.rule.cycle)
            return false;
        next = s.rule.increment > 0 ? s.rule.min_value : s.rule.max_value;
        *came_round = true;
    }
    s.state.last_value = static_cast<int64_t>(next);
    *value = s.state.last_value;
    return true;
}

// The values of `count` calls of nextval, until the sequence is used up or cycles after the first value.
std::vector<int64_t> naive_range(Sequence s, uint64_t count) {
    std::vector<int64_t> values;
    int64_t value = 0;
    bool came_round = false;
    while (values.size() < count && naive_nextval(s, &value, &came_round)) {
        if (came_round && !values.empty())
            break;
        values.push_back(value);
    }
    return values;
}

Range as_range(const PlannedRange &planned, const SequenceRule &rule) {
    return {0, planned.count, planned.first, rule.increment};
}

void expect_like_nextval(const Sequence &s, uint64_t count) {
    const PlannedRange planned = plan_range(s.state, s.rule, count);
    const std::vector<int64_t> want = naive_range(s, count);
    ASSERT_EQ(planned.count, want.size()) << s << " count " << count;
    if (want.empty())
        return;
    EXPECT_EQ(planned.first, want.front()) << s << " count " << count;
    EXPECT_EQ(planned.last, want.back()) << s << " count " << count;
    const Range range = as_range(planned, s.rule);
    for (uint64_t i = 0; i < want.size(); i++)
        ASSERT_EQ(range.value(i), want[i]) << s << " count " << count;
}

void expect_planned(const Sequence &s, uint64_t count, const PlannedRange &want) {
    const PlannedRange got = plan_range(s.state, s.rule, count);
    EXPECT_EQ(got.count, want.count) << s;
    EXPECT_EQ(got.first, want.first) << s;
    EXPECT_EQ(got.last, want.last) << s;
}

TEST(PlanRange, TheWholeOfInt64InOneRange) {
    expect_planned({{INT64_MIN, false}, {1, INT64_MIN, INT64_MAX, false}}, UINT64_MAX,
                   {UINT64_MAX, INT64_MIN, INT64_MAX - 1});
    expect_planned({{INT64_MAX, false}, {-1, INT64_MIN, INT64_MAX, false}}, UINT64_MAX,
                   {UINT64_MAX, INT64_MAX, INT64_MIN + 1});
    expect_planned({{INT64_MIN, true}, {1, INT64_MIN, INT64_MAX, false}}, UINT64_MAX,
                   {UINT64_MAX, INT64_MIN + 1, INT64_MAX});
}

// The sequence of a generator's leases: nextval always fails on it, and a segment must fail too.
TEST(PlanRange, ALeaseSequenceGivesNothing) {
    const SequenceRule rule = {INT64_MAX, 1, INT64_MAX, false};
    for (int64_t last : {INT64_C(1), INT64_C(2), INT64_C(1) << 47, INT64_MAX})
        expect_planned({{last, true}, rule}, 1000, {0, 0, 0});
}

int64_t random_value(std::mt19937_64 &random) {
    const int64_t small = static_cast<int64_t>(random() % 41) - 20;
    switch (random() % 5) {
    case 0:
        return INT64_MAX - 20 + std::abs(small);
    case 1:
        return INT64_MIN + 20 - std::abs(small);
    case 2:
        return static_cast<int64_t>(random());
    default:
        return small;
    }
}

int64_t random_increment(std::mt19937_64 &random) {
    for (;;) {
        const int64_t increment = random_value(random);
        if (increment != 0)
            return increment;
    }
}

Sequence random_sequence(std::mt19937_64 &random) {
    for (;;) {
        const int64_t low = random_value(random);
        const int64_t high = random_value(random);
        const int64_t last = random_value(random);
        if (low <= last && last <= high)
            return {{last, random() % 2 == 0}, {random_increment(random), low, high, random() % 2 == 0}};
    }
}

TEST(PlanRange, RandomStatesLikeNextval) {
    std::mt19937_64 random(20260103);
    for (int i = 0; i < 200000 && !HasFatalFailure(); i++)
        expect_like_nextval(random_sequence(random), 1 + random() % 30);
}

TEST(PlanRange, EverySmallSequenceLikeNextval) {
    for (int64_t low = -4; low <= 4; low++)
        for (int64_t high = low; high <= 4; high++)
            for (int64_t last = low; last <= high; last++)
                for (int64_t increment = -5; increment <= 5; increment++)
                    for (int flags = 0; flags < 4 && increment != 0 && !HasFatalFailure(); flags++)
                        for (uint64_t count = 1; count <= 6; count++)
                            expect_like_nextval({{last, (flags & 1) != 0}, {increment, low, high, (flags & 2) != 0}},
                                                count);
}

TEST(IsBeyond, AllThatWasHandedOut) {
    EXPECT_TRUE(lies_beyond({5, true}, 1, 6));
    EXPECT_FALSE(lies_beyond({5, true}, 1, 5));
    EXPECT_FALSE(lies_beyond({5, true}, 1, 4));
    EXPECT_TRUE(lies_beyond({5, true}, -1, 4));
    EXPECT_FALSE(lies_beyond({5, true}, -1, 5));
    EXPECT_FALSE(lies_beyond({5, true}, -1, 6));
    // A sequence that was never called has not handed out its last_value.
    EXPECT_TRUE(lies_beyond({5, false}, 1, 5));
    EXPECT_TRUE(lies_beyond({5, false}, -1, 5));
    EXPECT_FALSE(lies_beyond({5, false}, 1, 4));
    EXPECT_TRUE(lies_beyond({INT64_MIN, true}, 1, INT64_MAX));
    EXPECT_TRUE(lies_beyond({INT64_MAX, true}, -1, INT64_MIN));
}

TEST(ValuesIn, FromTheFirstToTheLast) {
    EXPECT_EQ(values_in({1, 1, 100, false}), 99U);
    EXPECT_EQ(values_in({-10, 1, 100, false}), 9U);
    EXPECT_EQ(values_in({1, INT64_MIN, INT64_MAX, false}), UINT64_MAX);
    EXPECT_EQ(values_in({INT64_MIN, INT64_MIN, INT64_MAX, false}), 1U);
}

TEST(Range, HoldsItsOrdinalsAndNoOthers) {
    for (uint64_t begin : {UINT64_C(0), UINT64_C(1), (UINT64_C(1) << 63) - 2, UINT64_MAX - 10}) {
        const Range range = {begin, begin + 3, 100, 10};
        EXPECT_FALSE(range.holds(begin - 1));
        EXPECT_TRUE(range.holds(begin));
        EXPECT_TRUE(range.holds(begin + 2));
        EXPECT_FALSE(range.holds(begin + 3));
        EXPECT_FALSE(range.holds(begin + (UINT64_C(1) << 63)));
        const Range empty = {begin, begin, 0, 0};
        EXPECT_FALSE(empty.holds(begin - 1) || empty.holds(begin) || empty.holds(begin + 1));
        EXPECT_EQ(range.value(begin), 100);
        EXPECT_EQ(range.value(begin + 2), 120);
    }
}

TEST(Range, ValuesReachBothEndsOfInt64) {
    const uint64_t begin = UINT64_MAX - 5;
    const Range up = {begin, begin + 3, INT64_MIN, INT64_MAX};
    EXPECT_EQ(up.value(begin), INT64_MIN);
    EXPECT_EQ(up.value(begin + 1), -1);
    EXPECT_EQ(up.value(begin + 2), INT64_MAX - 1);
    const Range down = {begin, begin + 2, INT64_MAX, INT64_MIN};
    EXPECT_EQ(down.value(begin), INT64_MAX);
    EXPECT_EQ(down.value(begin + 1), -1);
}

TEST(Range, TheLongestRange) {
    const Range range = {0, UINT64_MAX, INT64_MIN, 1};
    EXPECT_TRUE(range.holds(UINT64_MAX - 1));
    EXPECT_FALSE(range.holds(UINT64_MAX));
    EXPECT_EQ(range.value(UINT64_MAX - 1), INT64_MAX - 1);
}

TEST(ValuesUpTo, CountsInBothDirections) {
    const SequenceRule up = {1, INT64_MIN, INT64_MAX, false};
    const SequenceRule down = {-5, INT64_MIN, INT64_MAX, false};
    EXPECT_EQ(values_up_to(10, up, 13), 3u);
    EXPECT_EQ(values_up_to(10, down, -90), 20u);
    EXPECT_EQ(values_up_to(INT64_MIN, up, INT64_MAX), UINT64_MAX);
    EXPECT_EQ(values_up_to(INT64_MAX, down, INT64_MIN), UINT64_MAX / 5);
}

} // namespace
