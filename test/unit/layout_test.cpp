// Layouts: which are accepted, and that encode, decode and join agree with each other and with ids computed
// by hand.
#include "layout.hpp"

#include <gtest/gtest.h>

#include <random>

using namespace uidgen::core;

namespace {

constexpr int64_t ms = 1000;
constexpr int64_t second = 1000 * ms;
constexpr Layout twitter = {INT64_C(1288834974657) * ms, ms, 41, 5, 5, 12};

Layout with(int64_t Layout::*field, int64_t value) {
    Layout l = twitter;
    l.*field = value;
    return l;
}

Layout with(int32_t Layout::*field, int32_t value) {
    Layout l = twitter;
    l.*field = value;
    return l;
}

Layout widths(int32_t time, int32_t datacenter, int32_t worker, int32_t sequence) {
    return {0, 1, time, datacenter, worker, sequence};
}

void expect_parts(const Parts &got, const Parts &want) {
    EXPECT_EQ(got.tick, want.tick);
    EXPECT_EQ(got.datacenter, want.datacenter);
    EXPECT_EQ(got.worker, want.worker);
    EXPECT_EQ(got.sequence, want.sequence);
}

// Encodes, decodes and joins the same parts: three ways that must agree.
void expect_round_trip(const Layout &l, const Parts &parts) {
    const Encoded e = encode(l, parts);
    ASSERT_EQ(e.fault, EncodeFault::none);
    EXPECT_GE(e.id, 0);
    EXPECT_LE(e.id, largest(id_bits(l)));
    const Decoded d = decode(l, e.id);
    ASSERT_EQ(d.fault, DecodeFault::none);
    expect_parts(d.parts, parts);
    const uint64_t position =
        static_cast<uint64_t>(parts.tick) << l.sequence_bits | static_cast<uint64_t>(parts.sequence);
    EXPECT_EQ(join(shape_of(l, parts.datacenter, parts.worker), position), e.id);
}

TEST(Layout, TickLengthIsBounded) {
    EXPECT_EQ(check(with(&Layout::tick_us, 0)), LayoutFault::tick_length);
    EXPECT_EQ(check(with(&Layout::tick_us, -1)), LayoutFault::tick_length);
    EXPECT_EQ(check(with(&Layout::tick_us, INT64_MIN)), LayoutFault::tick_length);
    EXPECT_EQ(check(with(&Layout::tick_us, 1)), LayoutFault::none);
    Layout hourly = widths(28, 0, 22, 13);
    hourly.tick_us = max_tick_us;
    EXPECT_EQ(check(hourly), LayoutFault::none);
    hourly.tick_us = max_tick_us + 1;
    EXPECT_EQ(check(hourly), LayoutFault::tick_length);
}

TEST(Layout, EpochIsBounded) {
    EXPECT_EQ(check(with(&Layout::epoch_us, -1)), LayoutFault::epoch);
    EXPECT_EQ(check(with(&Layout::epoch_us, INT64_MIN)), LayoutFault::epoch);
    EXPECT_EQ(check(with(&Layout::epoch_us, 0)), LayoutFault::none);
    EXPECT_EQ(check(with(&Layout::epoch_us, max_instant_us + 1)), LayoutFault::epoch);
    // At the last instant the epoch itself is fine, but no tick fits behind it.
    EXPECT_EQ(check(with(&Layout::epoch_us, max_instant_us)), LayoutFault::beyond_calendar);
}

TEST(Layout, TimeWidthIsBounded) {
    EXPECT_EQ(check(widths(0, 5, 5, 12)), LayoutFault::time_width);
    EXPECT_EQ(check(widths(-1, 5, 5, 12)), LayoutFault::time_width);
    EXPECT_EQ(check(widths(1, 5, 5, 12)), LayoutFault::none);
    EXPECT_EQ(check(widths(47, 0, 0, 16)), LayoutFault::none);
    EXPECT_EQ(check(widths(48, 0, 0, 15)), LayoutFault::time_width);
    EXPECT_EQ(check(widths(INT32_MAX, 0, 0, 0)), LayoutFault::time_width);
}

TEST(Layout, OtherWidthsAreBounded) {
    for (int32_t Layout::*field : {&Layout::datacenter_bits, &Layout::worker_bits, &Layout::sequence_bits}) {
        Layout l = widths(1, 0, 0, 0);
        for (int32_t good : {0, 1, 30, 31}) {
            l.*field = good;
            EXPECT_EQ(check(l), LayoutFault::none);
        }
        for (int32_t bad : {-1, 32, INT32_MIN, INT32_MAX}) {
            l.*field = bad;
            EXPECT_EQ(check(l), LayoutFault::field_width);
        }
    }
}

TEST(Layout, TheSignBitStaysFree) {
    EXPECT_EQ(check(widths(1, 31, 31, 0)), LayoutFault::none);     // 63
    EXPECT_EQ(check(widths(1, 31, 31, 1)), LayoutFault::too_wide); // 64
    EXPECT_EQ(check(widths(47, 31, 31, 31)), LayoutFault::too_wide);
    EXPECT_EQ(check(twitter), LayoutFault::none); // 41 + 5 + 5 + 12 = 63
    EXPECT_EQ(check(with(&Layout::worker_bits, 6)), LayoutFault::too_wide);
}

TEST(Layout, TheLastTickEndsInsideTheCalendar) {
    Layout l = widths(30, 0, 0, 0);
    l.tick_us = second;
    const int64_t life = (INT64_C(1) << 30) * second;
    l.epoch_us = max_instant_us - life;
    EXPECT_EQ(check(l), LayoutFault::none);
    EXPECT_EQ(start_of(l, largest(30)) + l.tick_us, max_instant_us);
    l.epoch_us++;
    EXPECT_EQ(check(l), LayoutFault::beyond_calendar);
    // 2^47 hours do not even fit 64 bits of microseconds.
    l = widths(47, 0, 0, 0);
    l.tick_us = max_tick_us;
    EXPECT_EQ(check(l), LayoutFault::beyond_calendar);
}

TEST(Layout, EachEncodeFault) {
    const struct {
        int64_t Parts::*field;
        int64_t most;
        EncodeFault fault;
    } cases[] = {
        {&Parts::tick, (INT64_C(1) << 41) - 1, EncodeFault::tick},
        {&Parts::datacenter, 31, EncodeFault::datacenter},
        {&Parts::worker, 31, EncodeFault::worker},
        {&Parts::sequence, 4095, EncodeFault::sequence},
    };
    for (const auto &c : cases) {
        for (int64_t good : {INT64_C(0), INT64_C(1), c.most - 1, c.most}) {
            Parts parts = {7, 7, 7, 7};
            parts.*c.field = good;
            expect_round_trip(twitter, parts);
        }
        for (int64_t bad : {INT64_C(-1), c.most + 1, INT64_MIN, INT64_MAX}) {
            Parts parts = {7, 7, 7, 7};
            parts.*c.field = bad;
            EXPECT_EQ(encode(twitter, parts).fault, c.fault);
            EXPECT_EQ(encode(twitter, parts).id, 0);
        }
    }
}

TEST(Layout, AFieldOfNoWidthHoldsOnlyZero) {
    const Layout l = widths(41, 0, 0, 0);
    expect_round_trip(l, {5, 0, 0, 0});
    EXPECT_EQ(encode(l, {5, 1, 0, 0}).fault, EncodeFault::datacenter);
    EXPECT_EQ(encode(l, {5, 0, 1, 0}).fault, EncodeFault::worker);
    EXPECT_EQ(encode(l, {5, 0, 0, 1}).fault, EncodeFault::sequence);
}

TEST(Layout, EachDecodeFault) {
    const Layout narrow = widths(32, 0, 5, 16); // 53 bits: what a double holds exactly
    EXPECT_EQ(decode(narrow, 0).fault, DecodeFault::none);
    EXPECT_EQ(decode(narrow, (INT64_C(1) << 53) - 1).fault, DecodeFault::none);
    EXPECT_EQ(decode(narrow, INT64_C(1) << 53).fault, DecodeFault::beyond_layout);
    EXPECT_EQ(decode(narrow, INT64_MAX).fault, DecodeFault::beyond_layout);
    EXPECT_EQ(decode(narrow, -1).fault, DecodeFault::negative);
    EXPECT_EQ(decode(narrow, INT64_MIN).fault, DecodeFault::negative);
    // A layout of 63 bits decodes every id that is not negative.
    EXPECT_EQ(decode(twitter, INT64_MAX).fault, DecodeFault::none);
    EXPECT_EQ(decode(twitter, INT64_MIN).fault, DecodeFault::negative);
    expect_parts(decode(narrow, -1).parts, {0, 0, 0, 0});
    expect_parts(decode(narrow, INT64_MAX).parts, {0, 0, 0, 0});
}

// A tweet of 28 June 2022, the worked example of most descriptions of the format.
//   1541815603606036480 / 2^22 = 367597485448, remainder 1548288 (2^22 = 4194304)
//   1548288 / 2^12             = 378,          remainder 0
//   378 / 2^5                  = 11 (datacenter), remainder 26 (worker)
//   367597485448 + 1288834974657 = 1656432460105 ms = 2022-06-28 16:07:40.105 UTC
TEST(Layout, ReferenceIdOfTwitter) {
    const int64_t id = INT64_C(1541815603606036480);
    expect_parts(decode(twitter, id).parts, {INT64_C(367597485448), 11, 26, 0});
    EXPECT_EQ(encode(twitter, {INT64_C(367597485448), 11, 26, 0}).id, id);
    EXPECT_EQ(start_of(twitter, INT64_C(367597485448)), INT64_C(1656432460105) * ms);
    EXPECT_EQ(tick_at(twitter, INT64_C(1656432460105) * ms + 999), INT64_C(367597485448));
}

// 28/0/22/13, seconds since 2016-05-20 00:00 UTC (1463673600).
//   tick 100000000 * 2^35 = 100000000 * 34359738368 = 3435973836800000000
//   worker 1000    * 2^13 = 1000 * 8192             =             8192000
//   sequence 5                                      =                   5
TEST(Layout, ReferenceIdOf28_0_22_13) {
    const Layout l = {INT64_C(1463673600) * second, second, 28, 0, 22, 13};
    ASSERT_EQ(check(l), LayoutFault::none);
    const int64_t id = INT64_C(3435973836808192005);
    EXPECT_EQ(encode(l, {100000000, 0, 1000, 5}).id, id);
    expect_parts(decode(l, id).parts, {100000000, 0, 1000, 5});
    EXPECT_EQ(start_of(l, 100000000), INT64_C(1563673600) * second);
}

// 32/0/5/16 in 53 bits, seconds since 1970.
//   tick 1700000000 * 2^21 = 1700000000 * 2097152 = 3565158400000000
//   worker 19       * 2^16 = 19 * 65536           =          1245184
//   sequence 65535                                =            65535
TEST(Layout, ReferenceIdOf32_0_5_16) {
    const Layout l = {0, second, 32, 0, 5, 16};
    ASSERT_EQ(check(l), LayoutFault::none);
    const int64_t id = INT64_C(3565158401310719);
    EXPECT_EQ(encode(l, {1700000000, 0, 19, 65535}).id, id);
    expect_parts(decode(l, id).parts, {1700000000, 0, 19, 65535});
    EXPECT_LT(id, INT64_C(1) << 53);
}

TEST(Layout, TickAtRoundsDownOnBothSidesOfTheEpoch) {
    const Layout l = {1000 * second, second, 32, 0, 5, 16};
    EXPECT_EQ(tick_at(l, 1000 * second), 0);
    EXPECT_EQ(tick_at(l, 1001 * second - 1), 0);
    EXPECT_EQ(tick_at(l, 1001 * second), 1);
    EXPECT_EQ(tick_at(l, 1000 * second - 1), -1);
    EXPECT_EQ(tick_at(l, 999 * second), -1);
    EXPECT_EQ(tick_at(l, 999 * second - 1), -2);
    EXPECT_EQ(tick_at(l, 0), -1000);
    EXPECT_EQ(start_of(l, tick_at(l, 1234 * second + 567)), 1234 * second);
}

TEST(Layout, TickAtIsNotBoundedByTheTimeField) {
    const Layout l = {0, second, 1, 0, 0, 0}; // ticks 0 and 1
    EXPECT_EQ(tick_at(l, 2 * second), 2);
    EXPECT_EQ(tick_at(l, max_instant_us), max_instant_us / second);
}

// A field's own bits and nobody else's: all ones in one field, zeros in the others.
TEST(Layout, FieldsDoNotOverlap) {
    const Layout l = widths(20, 7, 9, 11);
    const int64_t time = encode(l, {largest(20), 0, 0, 0}).id;
    const int64_t datacenter = encode(l, {0, largest(7), 0, 0}).id;
    const int64_t worker = encode(l, {0, 0, largest(9), 0}).id;
    const int64_t sequence = encode(l, {0, 0, 0, largest(11)}).id;
    EXPECT_EQ(time + datacenter + worker + sequence, largest(47));
    EXPECT_EQ(time | datacenter | worker | sequence, largest(47));
}

TEST(Layout, PositionsOrderIds) {
    const Shape node = shape_of(twitter, 31, 31);
    EXPECT_LT(join(node, 4095), join(node, 4096));
    EXPECT_LT(join(node, (UINT64_C(1) << 53) - 2), join(node, (UINT64_C(1) << 53) - 1));
    EXPECT_EQ(join(node, (UINT64_C(1) << 53) - 1), INT64_MAX);
}

// The node as wide as it can be: the tick moves up by 62 bits, and its one bit is the id's highest.
TEST(Layout, TheWidestNode) {
    const Layout l = widths(1, 31, 31, 0);
    expect_round_trip(l, {1, largest(31), largest(31), 0});
    expect_round_trip(l, {1, 0, 0, 0});
    EXPECT_EQ(join(shape_of(l, largest(31), largest(31)), 1), INT64_MAX);
}

Layout random_layout(std::mt19937_64 &random) {
    const auto up_to = [&random](int32_t most) { return static_cast<int32_t>(random() % (most + 1)); };
    for (;;) {
        Layout l = {static_cast<int64_t>(random() % (INT64_C(2000000000) * second)),
                    static_cast<int64_t>(1 + random() % second), 1 + up_to(46), up_to(31), up_to(31), up_to(31)};
        if (check(l) == LayoutFault::none)
            return l;
    }
}

int64_t random_field(std::mt19937_64 &random, int32_t bits) {
    switch (random() % 4) {
    case 0:
        return 0;
    case 1:
        return largest(bits);
    default:
        return static_cast<int64_t>(random()) & largest(bits);
    }
}

TEST(Layout, RandomRoundTrips) {
    std::mt19937_64 random(20260101);
    for (int i = 0; i < 2000; i++) {
        const Layout l = random_layout(random);
        for (int j = 0; j < 20 && !HasFatalFailure(); j++)
            expect_round_trip(l, {random_field(random, l.time_bits), random_field(random, l.datacenter_bits),
                                  random_field(random, l.worker_bits), random_field(random, l.sequence_bits)});
    }
}

TEST(Layout, RandomTicksContainTheirInstant) {
    std::mt19937_64 random(20260102);
    for (int i = 0; i < 50000; i++) {
        const Layout l = random_layout(random);
        const int64_t instant = static_cast<int64_t>(random() % (UINT64_C(4000000000) * second));
        const int64_t tick = tick_at(l, instant);
        EXPECT_LE(start_of(l, tick), instant);
        EXPECT_GT(start_of(l, tick + 1), instant);
    }
}

} // namespace
