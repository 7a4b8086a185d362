// The high-water mark: from a sequence's counter to the word's positions and the generator's ids, for every layout at its
// bounds.
#include "clock_policy.hpp"

#include <gtest/gtest.h>

#include <algorithm>

using namespace uidgen::core;

namespace {

struct Generator {
    Layout layout;
    ClockPolicy policy;
};

Generator generator(int32_t time_bits, int32_t worker_bits, int32_t sequence_bits) {
    return {{0, 1, time_bits, 0, worker_bits, sequence_bits}, {sequence_bits, largest(time_bits) + 1, 1, 1}};
}

uint64_t above(const Generator &g, int64_t mark) { return position_above(g.policy, mark); }
int64_t largest_id(const Generator &g, int64_t mark) { return largest_leased_id(g.layout, g.policy, mark); }

const Generator twitter = generator(41, 10, 12);

// Calls check(generator) for every layout that core accepts.
template <typename Check> void for_every_layout(Check check) {
    for (int32_t time = 1; time <= max_time_bits; time++)
        for (int32_t worker = 0; worker <= max_field_bits; worker++)
            for (int32_t sequence = 0; sequence <= std::min(max_field_bits, max_id_bits - time - worker); sequence++)
                check(generator(time, worker, sequence));
}

TEST(TickOfMark, IsTheMarkInsideTheLayoutsTime) {
    const int64_t end = INT64_C(1) << 41;
    EXPECT_EQ(tick_of_mark(twitter.policy, no_lease_yet), 1);
    EXPECT_EQ(tick_of_mark(twitter.policy, 1234567), 1234567);
    EXPECT_EQ(tick_of_mark(twitter.policy, end - 1), end - 1);
    for (const int64_t mark : {end, end + 5, INT64_MAX})
        EXPECT_EQ(tick_of_mark(twitter.policy, mark), end - 1);
    for (const int64_t mark : {INT64_MIN, INT64_C(-1), INT64_C(0)})
        EXPECT_EQ(tick_of_mark(twitter.policy, mark), 0);
}

TEST(PositionAbove, IsTheFirstOfTheNextTick) {
    EXPECT_EQ(above(twitter, 0), UINT64_C(1) << 12);
    EXPECT_EQ(above(twitter, no_lease_yet), UINT64_C(2) << 12);
    for_every_layout([](const Generator &g) {
        for (const int64_t tick : {INT64_C(0), INT64_C(1), g.policy.end - 1}) {
            const uint64_t last = (static_cast<uint64_t>(tick) << g.policy.sequence_bits) +
                                  static_cast<uint64_t>(largest(g.policy.sequence_bits));
            ASSERT_EQ(above(g, tick), last + 1);
        }
        ASSERT_EQ(above(g, INT64_MAX), static_cast<uint64_t>(g.policy.end) << g.policy.sequence_bits);
    });
}

TEST(LargestLeasedId, IsTheLastOfTheLastTick) {
    EXPECT_EQ(largest_id(twitter, 0), (INT64_C(1) << 22) - 1);
    EXPECT_EQ(largest_id(twitter, 7), (INT64_C(8) << 22) - 1);
    for_every_layout([](const Generator &g) {
        for (const int64_t tick : {INT64_C(0), INT64_C(1), g.policy.end - 1}) {
            const Layout &l = g.layout;
            const int64_t last = encode(l, {tick, 0, largest(l.worker_bits), largest(l.sequence_bits)});
            ASSERT_EQ(largest_id(g, tick), last) << "tick " << tick;
        }
    });
}

TEST(PrecedesEveryId, UpToTheFirstTickThatIsIssued) {
    for_every_layout([](const Generator &g) {
        const TimeField field = time_field(g.layout);
        if (field.end <= no_lease_yet + 1)
            return; // such a layout has no ids
        const int64_t first = static_cast<int64_t>(above(g, no_lease_yet) >> g.policy.sequence_bits) << field.shift;
        ASSERT_TRUE(precedes_every_id(field, 0));
        ASSERT_TRUE(precedes_every_id(field, first - 1));
        ASSERT_FALSE(precedes_every_id(field, first));
    });
}

} // namespace
