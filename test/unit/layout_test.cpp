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
    const int64_t id = encode(l, parts);
    EXPECT_TRUE(is_id_of(l, id));
    expect_parts(decode(l, id), parts);
    const int64_t drawn = parts.worker & largest(drawn_worker_bits(l));
    const int64_t node = node_of_fields(l, {parts.datacenter, drawn});
    const IdEncoder encoder = encoder_of(l, node, parts.worker != drawn);
    EXPECT_EQ(encode(encoder, position_of(l, parts)), id);
}

Layout with_backup(Layout l) {
    l.backup = true;
    return l;
}

constexpr int64_t life_us = (INT64_C(1) << 30) * second;

const struct {
    Layout layout;
    LayoutFault fault;
} checks[] = {
    {twitter, LayoutFault::none}, // 41 + 5 + 5 + 12 = 63
    {with(&Layout::tick_us, 0), LayoutFault::tick_length},
    {with(&Layout::tick_us, -1), LayoutFault::tick_length},
    {with(&Layout::tick_us, INT64_MIN), LayoutFault::tick_length},
    {with(&Layout::tick_us, 1), LayoutFault::none},
    {{0, max_tick_us, 26, 0, 22, 13}, LayoutFault::none},
    {{0, max_tick_us + 1, 26, 0, 22, 13}, LayoutFault::tick_length},
    {with(&Layout::epoch_us, -1), LayoutFault::epoch},
    {with(&Layout::epoch_us, INT64_MIN), LayoutFault::epoch},
    {with(&Layout::epoch_us, 0), LayoutFault::none},
    {with(&Layout::epoch_us, max_instant_us + 1), LayoutFault::epoch},
    // At the last instant the epoch itself is fine, but no tick fits behind it.
    {with(&Layout::epoch_us, max_instant_us), LayoutFault::beyond_calendar},
    {widths(0, 5, 5, 12), LayoutFault::widths},
    {widths(-1, 5, 5, 12), LayoutFault::widths},
    {widths(1, 5, 5, 12), LayoutFault::none},
    {widths(47, 0, 0, 16), LayoutFault::none},
    {widths(48, 0, 0, 15), LayoutFault::widths},
    {widths(INT32_MAX, 0, 0, 0), LayoutFault::widths},
    // The sign bit stays free.
    {widths(1, 31, 31, 0), LayoutFault::none},   // 63
    {widths(1, 31, 31, 1), LayoutFault::widths}, // 64
    {widths(47, 31, 31, 31), LayoutFault::widths},
    {with(&Layout::worker_bits, 6), LayoutFault::widths},
    // The last tick ends inside the calendar. 2^47 hours do not even fit 64 bits of microseconds.
    {{max_instant_us - life_us, second, 30, 0, 0, 0}, LayoutFault::none},
    {{max_instant_us - life_us + 1, second, 30, 0, 0, 0}, LayoutFault::beyond_calendar},
    {{0, max_tick_us, 47, 0, 0, 0}, LayoutFault::beyond_calendar},
    // A backup worker needs a bit.
    {with_backup(widths(41, 10, 0, 12)), LayoutFault::widths},
    {with_backup(widths(41, 10, 1, 12)), LayoutFault::widths},
    {with_backup(widths(41, 9, 1, 12)), LayoutFault::none},
};

TEST(Layout, EachFault) {
    for (const auto &c : checks)
        EXPECT_EQ(find_layout_fault(c.layout), c.fault) << "case " << &c - checks;
    for (int32_t Layout::*field : {&Layout::datacenter_bits, &Layout::worker_bits, &Layout::sequence_bits}) {
        Layout l = widths(1, 0, 0, 0);
        for (const int32_t bits : {0, 1, 30, 31, -1, 32, INT32_MIN, INT32_MAX}) {
            l.*field = bits;
            EXPECT_EQ(find_layout_fault(l), bits >= 0 && bits <= 31 ? LayoutFault::none : LayoutFault::widths);
        }
    }
}

// A node makes its two fields and is made of them, whether or not the top bit of the worker field is the backup bit.
TEST(Layout, ANodeIsItsTwoFields) {
    for (const bool backup : {false, true}) {
        for (const auto &bits : {std::pair{0, 5}, {5, 5}, {13, 1}, {31, 31}}) {
            Layout l = widths(1, bits.first, bits.second, 0);
            l.backup = backup;
            const int32_t width = bits.first + bits.second - (backup ? 1 : 0);
            EXPECT_EQ(drawn_node_bits(l), width);
            EXPECT_EQ(backup_bit(l), backup ? INT64_C(1) << (bits.second - 1) : 0);
            for (const int64_t node : {INT64_C(0), largest(width) / 3, largest(width)}) {
                const NodeFields fields = fields_of_node(l, node);
                EXPECT_EQ(node_of_fields(l, fields), node);
                EXPECT_LE(fields.datacenter, largest(l.datacenter_bits));
                EXPECT_EQ(fields.worker & backup_bit(l), 0);
                const Parts parts = decode(l, encode(encoder_of(l, node, backup), 1));
                expect_parts(parts, {1, fields.datacenter, fields.worker | backup_bit(l), 0});
            }
        }
    }
}

TEST(Layout, IdsAreThoseOfItsBits) {
    const Layout narrow = widths(32, 0, 5, 16); // 53 bits: what a double holds exactly
    for (const int64_t id : {INT64_C(0), (INT64_C(1) << 53) - 1})
        EXPECT_TRUE(is_id_of(narrow, id));
    for (const int64_t id : {INT64_C(1) << 53, INT64_MAX, INT64_C(-1), INT64_MIN})
        EXPECT_FALSE(is_id_of(narrow, id));
    // Of a layout of 63 bits every number is an id that is not negative.
    EXPECT_TRUE(is_id_of(twitter, INT64_MAX));
    EXPECT_FALSE(is_id_of(twitter, INT64_MIN));
}

// Two layouts are the same if no field differs.
TEST(Layout, IsTheSameIfNoFieldDiffers) {
    EXPECT_TRUE(same_layout(twitter, with(&Layout::epoch_us, twitter.epoch_us)));
    for (int64_t Layout::*field : {&Layout::epoch_us, &Layout::tick_us})
        EXPECT_FALSE(same_layout(twitter, with(field, twitter.*field + 1)));
    for (int32_t Layout::*field :
         {&Layout::time_bits, &Layout::datacenter_bits, &Layout::worker_bits, &Layout::sequence_bits})
        EXPECT_FALSE(same_layout(twitter, with(field, twitter.*field - 1)));
    for (bool Layout::*field : {&Layout::sequence_first, &Layout::backup}) {
        Layout other = twitter;
        other.*field = true;
        EXPECT_FALSE(same_layout(twitter, other));
        EXPECT_FALSE(same_layout(other, twitter));
    }
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
        if (find_layout_fault(l) == LayoutFault::none)
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

// Each field holds its largest value; and the sequence number is the lowest or the second field.
void expect_bounds(const Layout &l) {
    const struct {
        int64_t Parts::*field;
        int32_t bits;
    } fields[] = {
        {&Parts::tick, l.time_bits},
        {&Parts::datacenter, l.datacenter_bits},
        {&Parts::worker, l.worker_bits},
        {&Parts::sequence, l.sequence_bits},
    };
    for (const auto &f : fields) {
        Parts parts = {0, 0, 0, 0};
        parts.*f.field = largest(f.bits);
        expect_round_trip(l, parts);
    }
    const IdEncoder encoder = encoder_of(l, largest(drawn_node_bits(l)));
    if (l.sequence_bits > 0) {
        EXPECT_EQ(encode(encoder, 1) - encode(encoder, 0),
                  l.sequence_first ? INT64_C(1) << (l.datacenter_bits + l.worker_bits) : 1);
    }
    const uint64_t end = (static_cast<uint64_t>(largest(l.time_bits)) + 1) << l.sequence_bits;
    for (const uint64_t position : {UINT64_C(0), (UINT64_C(1) << l.sequence_bits) - 1, end - 2})
        EXPECT_LT(encode(encoder, position), encode(encoder, position + 1));
}

TEST(Layout, RandomRoundTrips) {
    std::mt19937_64 random(20260101);
    int sequence_first = 0;
    expect_bounds(widths(1, 31, 31, 0));
    for (int i = 0; i < 2000; i++) {
        const Layout l = random_layout(random);
        sequence_first += l.sequence_first ? 1 : 0;
        expect_bounds(l);
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
        const int64_t id = encode(l, parts);
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
