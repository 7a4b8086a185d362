// Layouts: which ones are valid; and that encode(), decode() and lower_bound() agree with each other. sql/layouts.sql has
// published ids.
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

uint64_t position_of(const Layout &l, const Parts &p) {
    return static_cast<uint64_t>(p.tick) << l.sequence_bits | static_cast<uint64_t>(p.sequence);
}

// Encodes the parts, decodes the id, and encodes the position: three ways that must agree.
void expect_round_trip(const Layout &l, const Parts &parts) {
    const Encoded e = encode(l, parts);
    ASSERT_EQ(e.fault, EncodeFault::none);
    EXPECT_GE(e.id, 0);
    EXPECT_LE(e.id, largest(id_bits(l)));
    const Decoded d = decode(l, e.id);
    ASSERT_EQ(d.fault, DecodeFault::none);
    expect_parts(d.parts, parts);
    const int64_t drawn = parts.worker & largest(drawn_worker_bits(l));
    const int64_t node = node_of_fields(l, {parts.datacenter, drawn});
    const IdEncoder encoder = encoder_of(l, node, parts.worker != drawn);
    EXPECT_EQ(encode(encoder, position_of(l, parts)), e.id);
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

TEST(Layout, ABackupWorkerNeedsABit) {
    Layout l = widths(41, 10, 0, 12);
    l.backup = true;
    EXPECT_EQ(check(l), LayoutFault::no_backup_bit);
    l.worker_bits = 1; // too wide is reported first: it is true with and without the backup worker
    EXPECT_EQ(check(l), LayoutFault::too_wide);
    l.datacenter_bits = 9;
    EXPECT_EQ(check(l), LayoutFault::none);
}

// The backup bit is the top one of the worker field. Worker ids are drawn from the bits below it.
TEST(Layout, TheBackupBitIsTakenFromTheWorkerField) {
    for (int32_t bits : {1, 2, 5, 31}) {
        Layout l = widths(20, 3, bits, 5);
        EXPECT_EQ(drawn_worker_bits(l), bits);
        EXPECT_EQ(backup_bit(l), 0);
        l.backup = true;
        EXPECT_EQ(drawn_worker_bits(l), bits - 1);
        EXPECT_EQ(largest(drawn_worker_bits(l)) + 1, backup_bit(l));
        EXPECT_EQ(largest(drawn_worker_bits(l)) | backup_bit(l), largest(bits));
        for (int64_t drawn : {INT64_C(0), largest(bits - 1)}) {
            expect_round_trip(l, {7, 1, drawn | backup_bit(l), 3});
            const uint64_t position = position_of(l, {7, 0, 0, 3});
            const int64_t node = node_of_fields(l, {1, drawn});
            EXPECT_EQ(encode(encoder_of(l, node, true), position) - encode(encoder_of(l, node), position),
                      backup_bit(l) << worker_shift(l));
        }
    }
}

// A node makes its two fields and is made of them, whether or not the layout has a backup bit.
TEST(Layout, ANodeIsItsTwoFields) {
    for (const bool backup : {false, true}) {
        for (const auto &bits : {std::pair{0, 5}, {5, 5}, {13, 1}, {31, 31}}) {
            Layout l = widths(1, bits.first, bits.second, 0);
            l.backup = backup;
            const int32_t width = bits.first + bits.second - (backup ? 1 : 0);
            EXPECT_EQ(drawn_node_bits(l), width);
            for (const int64_t node : {INT64_C(0), largest(width) / 3, largest(width)}) {
                const NodeFields fields = fields_of_node(l, node);
                EXPECT_EQ(node_of_fields(l, fields), node);
                EXPECT_LE(fields.datacenter, largest(l.datacenter_bits));
                EXPECT_EQ(fields.worker & backup_bit(l), 0);
                const Decoded d = decode(l, encode(encoder_of(l, node, backup), 1));
                expect_parts(d.parts, {1, fields.datacenter, fields.worker | backup_bit(l), 0});
            }
        }
    }
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

// A field has its own bits and no others: all ones in one field, zeros in the others. In both orders.
TEST(Layout, FieldsDoNotOverlap) {
    for (bool sequence_first : {false, true}) {
        Layout l = widths(20, 7, 9, 11);
        l.sequence_first = sequence_first;
        const int64_t time = encode(l, {largest(20), 0, 0, 0}).id;
        const int64_t datacenter = encode(l, {0, largest(7), 0, 0}).id;
        const int64_t worker = encode(l, {0, 0, largest(9), 0}).id;
        const int64_t sequence = encode(l, {0, 0, 0, largest(11)}).id;
        EXPECT_EQ(time + datacenter + worker + sequence, largest(47));
        EXPECT_EQ(time | datacenter | worker | sequence, largest(47));
        EXPECT_EQ(sequence > worker, sequence_first);
    }
}

TEST(Layout, PositionsOrderIds) {
    const IdEncoder node = encoder_of(twitter, largest(10));
    EXPECT_LT(encode(node, 4095), encode(node, 4096));
    EXPECT_LT(encode(node, (UINT64_C(1) << 53) - 2), encode(node, (UINT64_C(1) << 53) - 1));
    EXPECT_EQ(encode(node, (UINT64_C(1) << 53) - 1), INT64_MAX);
}

TEST(Layout, PositionsOrderIdsWithTheSequenceFirst) {
    Layout l = twitter;
    l.sequence_first = true;
    const IdEncoder node = encoder_of(l, largest(10));
    for (uint64_t position : {UINT64_C(0), UINT64_C(4094), UINT64_C(4095), UINT64_C(4096), (UINT64_C(1) << 53) - 2})
        EXPECT_EQ(encode(node, position + 1) - encode(node, position), 1 << 10);
    EXPECT_EQ(encode(node, (UINT64_C(1) << 53) - 1), INT64_MAX);
}

// The widest possible node: the tick moves up by 62 bits, and its one bit is the id's highest.
TEST(Layout, TheWidestNode) {
    const Layout l = widths(1, 31, 31, 0);
    expect_round_trip(l, {1, largest(31), largest(31), 0});
    expect_round_trip(l, {1, 0, 0, 0});
    EXPECT_EQ(encode(encoder_of(l, largest(62)), 1), INT64_MAX);
}

Layout random_layout(std::mt19937_64 &random) {
    const auto up_to = [&random](int32_t most) { return static_cast<int32_t>(random() % (most + 1)); };
    for (;;) {
        Layout l = {static_cast<int64_t>(random() % (INT64_C(2000000000) * second)),
                    static_cast<int64_t>(1 + random() % second),
                    1 + up_to(46),
                    up_to(31),
                    up_to(31),
                    up_to(31)};
        l.sequence_first = random() % 2 == 0;
        l.backup = random() % 2 == 0;
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

Parts random_parts(std::mt19937_64 &random, const Layout &l) {
    return {random_field(random, l.time_bits), random_field(random, l.datacenter_bits),
            random_field(random, l.worker_bits), random_field(random, l.sequence_bits)};
}

TEST(Layout, RandomRoundTrips) {
    std::mt19937_64 random(20260101);
    int sequence_first = 0;
    for (int i = 0; i < 2000; i++) {
        const Layout l = random_layout(random);
        sequence_first += l.sequence_first ? 1 : 0;
        for (int j = 0; j < 20 && !HasFatalFailure(); j++)
            expect_round_trip(l, random_parts(random, l));
    }
    EXPECT_GT(sequence_first, 500);
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

// ---------------------------------------------------------------------------------------------------------
// lower_bound: the ids of [t0, t1) are those from lower_bound(t0) on and below lower_bound(t1).

TEST(LowerBound, OnEachSideOfATick) {
    const TimeField f = time_field(twitter);
    const int64_t tick = INT64_C(367597485448);
    const int64_t start = INT64_C(1656432460105) * ms;
    EXPECT_EQ(lower_bound(f, start), tick << 22);
    EXPECT_EQ(lower_bound(f, start - 1), tick << 22); // the tick before began earlier
    EXPECT_EQ(lower_bound(f, start + 1), (tick + 1) << 22);
    EXPECT_EQ(lower_bound(f, start - ms), (tick - 1) << 22);
}

TEST(LowerBound, ClampsAtTheEpoch) {
    const TimeField f = time_field(twitter);
    for (int64_t early : {f.epoch_us, f.epoch_us - 1, INT64_C(0), INT64_C(-1), INT64_MIN})
        EXPECT_EQ(lower_bound(f, early), 0) << early;
    EXPECT_EQ(lower_bound(f, f.epoch_us + 1), 1 << 22);
    EXPECT_EQ(lower_bound(time_field(widths(41, 5, 5, 12)), 0), 0); // the epoch of 1970
}

TEST(LowerBound, ClampsAtTheEnd) {
    const Layout narrow = {0, second, 32, 0, 5, 16}; // 53 bits
    const TimeField f = time_field(narrow);
    const int64_t last = largest(32) * second;
    const int64_t end = INT64_C(1) << 53;
    EXPECT_EQ(lower_bound(f, last), largest(32) << 21);
    for (int64_t late : {last + 1, last + second, max_instant_us, INT64_MAX})
        EXPECT_EQ(lower_bound(f, late), end) << late;
}

// One past the largest id of 63 bits does not fit a bigint.
TEST(LowerBound, ClampsAtTwoToThe63) {
    for (const Layout &l : {twitter, widths(47, 0, 0, 16), widths(1, 31, 31, 0)}) {
        const TimeField f = time_field(l);
        const int64_t last = start_of(l, largest(l.time_bits));
        EXPECT_EQ(lower_bound(f, last), largest(l.time_bits) << time_shift(l));
        for (int64_t late : {last + 1, last + l.tick_us, INT64_MAX})
            EXPECT_EQ(lower_bound(f, late), INT64_MAX) << late;
    }
}

TEST(LowerBound, IsTheFirstIdOfItsTick) {
    std::mt19937_64 random(20260104);
    for (int i = 0; i < 20000; i++) {
        const Layout l = random_layout(random);
        const int64_t tick = random_field(random, l.time_bits);
        EXPECT_EQ(lower_bound(time_field(l), start_of(l, tick)), first_id_of(l, tick));
    }
}

// An instant, near the id's own tick more often than anywhere else.
int64_t random_instant(std::mt19937_64 &random, const Layout &l, int64_t tick) {
    switch (random() % 4) {
    case 0:
        return start_of(l, tick) + static_cast<int64_t>(random() % 3) - 1;
    case 1:
        return start_of(l, tick) + static_cast<int64_t>(random() % (4 * static_cast<uint64_t>(l.tick_us))) -
               2 * l.tick_us;
    case 2:
        return static_cast<int64_t>(random());
    default:
        return l.epoch_us + static_cast<int64_t>(random() % (static_cast<uint64_t>(l.tick_us) << 20));
    }
}

// An id is at or above the bound if and only if its tick began at the instant or later. The one exception is the id
// that the clamped bound cannot exclude.
TEST(LowerBound, DividesTheIdsOfRandomLayouts) {
    std::mt19937_64 random(20260106);
    int above = 0, below = 0;
    for (int i = 0; i < 100000; i++) {
        const Layout l = random_layout(random);
        const Parts parts = random_parts(random, l);
        const int64_t id = encode(l, parts).id;
        const int64_t instant = random_instant(random, l, parts.tick);
        if (id == INT64_MAX)
            continue;
        const bool later = start_of(l, parts.tick) >= instant;
        ASSERT_EQ(id >= lower_bound(time_field(l), instant), later) << id << " at " << instant;
        ++(later ? above : below);
    }
    EXPECT_GT(above, 10000);
    EXPECT_GT(below, 10000);
}

} // namespace
