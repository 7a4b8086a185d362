// Ids as UUIDs of version 7: the form, round trips in many layouts, order, and what is refused.
#include "id_forms.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>
#include <utility>
#include <vector>

using namespace uidgen::core;

namespace {

constexpr int64_t ms = 1000;
constexpr int64_t second = 1000 * ms;
constexpr int64_t new_year_2026 = INT64_C(1767225600) * second;

constexpr Layout snowflake = {new_year_2026, ms, 41, 5, 5, 12};
constexpr Layout js53 = {new_year_2026, second, 32, 0, 5, 16, false, true};
constexpr Layout sonyflake = {INT64_C(1409529600) * second, 10 * ms, 39, 0, 16, 8, true};
constexpr Layout baidu = {new_year_2026, second, 28, 0, 22, 13};

// Ticks shorter than 1 ms, of lengths that do not divide it, from an epoch within a millisecond; every field at its
// ends; widths that leave the fewest bits.
const std::vector<Layout> layouts = {
    snowflake,
    js53,
    sonyflake,
    baidu,
    {new_year_2026 + 1, 1, 47, 0, 4, 12},
    {new_year_2026 + 999, 1, 47, 5, 5, 6},
    {new_year_2026 + 500, 3, 44, 0, 7, 12},
    {new_year_2026 + 7, 250, 43, 0, 8, 12},
    {new_year_2026 + 1, 700, 42, 3, 6, 12},
    {new_year_2026 + 123, 999, 41, 5, 5, 12},
    {new_year_2026 + 123, 1001, 41, 5, 5, 12},
    {new_year_2026 + 999, 1500, 41, 5, 5, 12, true},
    {0, 1, 1, 0, 31, 31},
    {0, 1, 10, 0, 22, 31},
    {0, max_tick_us, 31, 0, 0, 0},
    {0, ms, 47, 0, 0, 0},
};

bool operator<(const Uuid &a, const Uuid &b) { return std::pair(a.high, a.low) < std::pair(b.high, b.low); }

// Ids of a layout in ascending order: of its first and last ticks, of ticks around milliseconds, and some between.
std::vector<int64_t> ids_of(const Layout &l, std::mt19937_64 *random) {
    std::set<int64_t> ids;
    const int64_t last_tick =
        std::min(largest(l.time_bits), ((INT64_C(1) << unix_ms_bits) * us_in_ms - l.epoch_us - 1) / l.tick_us);
    const int64_t below = largest(time_shift(l));
    const auto add = [&](int64_t tick) {
        if (tick < 0 || tick > last_tick)
            return;
        for (const int64_t low : {INT64_C(0), std::min(INT64_C(1), below), below})
            ids.insert(tick << time_shift(l) | low);
        ids.insert(tick << time_shift(l) | (static_cast<int64_t>((*random)()) & below));
    };
    for (int64_t i = 0; i < 2100; i++) {
        add(i);
        add(last_tick - i);
        add(static_cast<int64_t>((*random)() % (static_cast<uint64_t>(last_tick) + 1)));
    }
    return {ids.begin(), ids.end()};
}

// Tables hold such UUIDs, so a change of the form would make them unreadable. The values are those of a second
// implementation, in Python, written from the comment at the top of uuid_form.hpp.
TEST(UuidForm, NeverChanges) {
    const auto expect = [](const Layout &l, int64_t id, uint64_t random, uint64_t high, uint64_t low) {
        const Uuid uuid = uuid_of(l, id, random).uuid;
        EXPECT_EQ(uuid.high, high) << std::hex << uuid.high;
        EXPECT_EQ(uuid.low, low) << std::hex << uuid.low;
        EXPECT_EQ(id_of(l, {high, low}).id, id);
    };
    expect(snowflake, 117443343637549056, 0, 0x01a1fbd30d2b7004, 0x8000000000009cdb);
    expect(snowflake, 117443343637549056, UINT64_C(0xfedcba9876543210), 0x01a1fbd30d2b7004, 0x8008765432101932);
    expect(js53, 181195177993, 0, 0x019b7c0104007980, 0x8120000000007c7b);
    expect(sonyflake, 6039798221313, 0, 0x01482eb9c6807070, 0xa80400000000623b);
    expect(baidu, 34359738368040963, 0, 0x019bb27572007000, 0x8050018000003aaf);
    expect(layouts[4], INT64_C(80908587233), 0, 0x019b76daacd278e0, 0x90e1000000000db1);
}

TEST(UuidForm, ReadsWhatItMakes) {
    std::mt19937_64 random(1);
    for (const Layout &l : layouts) {
        ASSERT_EQ(check(l), LayoutFault::none);
        for (const int64_t id : ids_of(l, &random)) {
            const MadeUuid made = uuid_of(l, id, random());
            ASSERT_TRUE(made.in_range);
            const ReadUuid read = id_of(l, made.uuid);
            ASSERT_EQ(read.fault, UuidFault::none) << "id " << id << ", tick_us " << l.tick_us;
            ASSERT_EQ(read.id, id);
        }
    }
}

TEST(UuidForm, SortsAsIdsDoWhateverIsRandom) {
    std::mt19937_64 random(2);
    for (const Layout &l : layouts) {
        Uuid former = {};
        for (const int64_t id : ids_of(l, &random)) {
            const Uuid least = uuid_of(l, id, 0).uuid;
            const Uuid greatest = uuid_of(l, id, UINT64_MAX).uuid;
            ASSERT_TRUE(former < least) << "id " << id << ", tick_us " << l.tick_us;
            former = least < greatest ? greatest : least;
        }
    }
}

TEST(UuidForm, HasTheMillisecondOfTheTick) {
    std::mt19937_64 random(3);
    for (const Layout &l : layouts)
        for (const int64_t id : ids_of(l, &random))
            ASSERT_EQ(static_cast<int64_t>(uuid_of(l, id, 0).uuid.high >> 16),
                      start_of(l, id >> time_shift(l)) / us_in_ms);
}

TEST(UuidForm, TimesBeyond48BitsAreRefused) {
    constexpr Layout late = {INT64_C(9000000000000) * ms, 3600 * second, 31, 0, 0, 0};
    static_assert(check(late) == LayoutFault::none);
    const int64_t last = ((INT64_C(1) << unix_ms_bits) * us_in_ms - 1 - late.epoch_us) / late.tick_us;
    EXPECT_TRUE(uuid_of(late, last, 0).in_range);
    EXPECT_FALSE(uuid_of(late, last + 1, 0).in_range);
    EXPECT_FALSE(uuid_of(late, largest(31), 0).in_range);
}

TEST(UuidForm, OtherVersionsAndVariantsAreRefused) {
    const Uuid good = uuid_of(snowflake, 117443343637549056, 0).uuid;
    for (uint64_t version = 0; version < 16; version++) {
        const Uuid uuid = {(good.high & ~UINT64_C(0xf000)) | version << 12, good.low};
        EXPECT_EQ(id_of(snowflake, uuid).fault, version == 7 ? UuidFault::none : UuidFault::version);
    }
    for (uint64_t variant = 0; variant < 4; variant++) {
        const Uuid uuid = {good.high, good.low << 2 >> 2 | variant << 62};
        EXPECT_EQ(id_of(snowflake, uuid).fault, variant == 2 ? UuidFault::none : UuidFault::version);
    }
    EXPECT_EQ(id_of(snowflake, {0, 0}).fault, UuidFault::version);
    EXPECT_EQ(id_of(snowflake, {UINT64_MAX, UINT64_MAX}).fault, UuidFault::version);
}

// The example of RFC 9562, A.6, and 400,000 random UUIDs of version 7, of which about 6 have the right check bits.
TEST(UuidForm, UuidsOfOthersAreRefused) {
    EXPECT_EQ(id_of(snowflake, {0x017f22e279b07cc3, 0x98c4dc0c0c07398f}).fault, UuidFault::foreign);
    std::mt19937_64 random(4);
    int accepted = 0;
    for (int i = 0; i < 400000; i++) {
        const uint64_t unix_ms = 1767225600000 + random() % 1000000000000;
        const Uuid uuid = {unix_ms << 16 | 0x7000 | (random() & 0xfff), UINT64_C(2) << 62 | random() >> 2};
        accepted += id_of(snowflake, uuid).fault == UuidFault::none ? 1 : 0;
        EXPECT_EQ(id_of(js53, uuid).fault, UuidFault::foreign) << "few are at the start of a second";
    }
    EXPECT_GT(accepted, 0);
    EXPECT_LT(accepted, 50);
}

TEST(UuidForm, AnyChangedBitIsNoticedExceptOnceIn65536) {
    std::mt19937_64 random(5);
    int changed = 0;
    int accepted = 0;
    for (int i = 0; i < 1000; i++) {
        const Uuid good = uuid_of(snowflake, static_cast<int64_t>(random() >> 1), random()).uuid;
        for (int bit = 0; bit < 128; bit++) {
            const uint64_t one = UINT64_C(1) << (bit % 64);
            const Uuid uuid = {good.high ^ (bit < 64 ? one : 0), good.low ^ (bit < 64 ? 0 : one)};
            accepted += id_of(snowflake, uuid).fault == UuidFault::none ? 1 : 0;
            changed++;
        }
    }
    EXPECT_LT(accepted, changed / 65536 + 15);
}

TEST(UuidForm, UuidsOfAnotherLayoutAreRefused) {
    const int64_t id = 117443343637549056;
    const Uuid uuid = uuid_of(snowflake, id, 12345).uuid;
    const auto expect_foreign = [&uuid](Layout l) { EXPECT_EQ(id_of(l, uuid).fault, UuidFault::foreign); };
    expect_foreign({new_year_2026 - ms, ms, 41, 5, 5, 12});
    expect_foreign({new_year_2026, ms / 2, 41, 5, 5, 12});
    expect_foreign({new_year_2026, ms, 40, 5, 5, 12});
    expect_foreign({new_year_2026, ms, 41, 6, 4, 12});
    expect_foreign({new_year_2026, ms, 41, 5, 6, 11});
    expect_foreign({new_year_2026, ms, 41, 5, 5, 12, true});
    expect_foreign({new_year_2026, ms, 41, 5, 5, 12, false, true});
}

} // namespace
