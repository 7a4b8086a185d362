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
    {0, max_tick_us, 26, 0, 0, 0},
    {0, ms, 47, 0, 0, 0},
};

bool operator<(const Uuid &a, const Uuid &b) { return std::pair(a.high, a.low) < std::pair(b.high, b.low); }

// Ids of a layout in ascending order: of its first and last ticks, of ticks around milliseconds, and some between.
std::vector<int64_t> ids_of(const Layout &l, std::mt19937_64 *random) {
    std::set<int64_t> ids;
    const int64_t last_tick = largest(l.time_bits);
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
// implementation, in Python, written from the comment in id_forms.hpp.
TEST(UuidForm, NeverChanges) {
    const auto expect = [](const Layout &l, int64_t id, uint64_t random, uint64_t high, uint64_t low) {
        const Uuid uuid = uuid_of(l, id, random);
        EXPECT_EQ(uuid.high, high) << std::hex << uuid.high;
        EXPECT_EQ(uuid.low, low) << std::hex << uuid.low;
        EXPECT_EQ(id_of(l, {high, low}), id);
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
        ASSERT_EQ(find_layout_fault(l), LayoutFault::none);
        for (const int64_t id : ids_of(l, &random)) {
            ASSERT_EQ(id_of(l, uuid_of(l, id, random())), id) << "tick_us " << l.tick_us;
        }
    }
}

TEST(UuidForm, SortsAsIdsDoWhateverIsRandom) {
    std::mt19937_64 random(2);
    for (const Layout &l : layouts) {
        Uuid former = {};
        for (const int64_t id : ids_of(l, &random)) {
            const Uuid least = uuid_of(l, id, 0);
            const Uuid greatest = uuid_of(l, id, UINT64_MAX);
            ASSERT_TRUE(former < least) << "id " << id << ", tick_us " << l.tick_us;
            former = least < greatest ? greatest : least;
        }
    }
}

TEST(UuidForm, HasTheMillisecondOfTheTick) {
    std::mt19937_64 random(3);
    for (const Layout &l : layouts)
        for (const int64_t id : ids_of(l, &random))
            ASSERT_EQ(static_cast<int64_t>(uuid_of(l, id, 0).high >> 16), start_of(l, id >> time_shift(l)) / us_in_ms);
}

// The last instant of all layouts is the last one that fits.
TEST(UuidForm, TheLastTickFits) {
    constexpr Layout late = {max_instant_us - 2 * ms, ms, 1, 0, 0, 0};
    static_assert(find_layout_fault(late) == LayoutFault::none);
    EXPECT_EQ(uuid_of(late, 1, 0).high >> 16, (UINT64_C(1) << 48) - 1);
    EXPECT_EQ(id_of(late, uuid_of(late, 1, 0)), 1);
}

TEST(UuidForm, OtherVersionsAndVariantsAreRefused) {
    const Uuid good = uuid_of(snowflake, 117443343637549056, 0);
    for (uint64_t version = 0; version < 16; version++) {
        const Uuid uuid = {(good.high & ~UINT64_C(0xf000)) | version << 12, good.low};
        EXPECT_EQ(id_of(snowflake, uuid) != no_id, version == 7);
    }
    for (uint64_t variant = 0; variant < 4; variant++) {
        const Uuid uuid = {good.high, good.low << 2 >> 2 | variant << 62};
        EXPECT_EQ(id_of(snowflake, uuid) != no_id, variant == 2);
    }
    EXPECT_EQ(id_of(snowflake, {0, 0}), no_id);
    EXPECT_EQ(id_of(snowflake, {UINT64_MAX, UINT64_MAX}), no_id);
}

// The example of RFC 9562, A.6, and 400,000 random UUIDs of version 7, of which about 6 have the right check bits.
TEST(UuidForm, UuidsOfOthersAreRefused) {
    EXPECT_EQ(id_of(snowflake, {0x017f22e279b07cc3, 0x98c4dc0c0c07398f}), no_id);
    std::mt19937_64 random(4);
    int accepted = 0;
    for (int i = 0; i < 400000; i++) {
        const uint64_t unix_ms = 1767225600000 + random() % 1000000000000;
        const Uuid uuid = {unix_ms << 16 | 0x7000 | (random() & 0xfff), UINT64_C(2) << 62 | random() >> 2};
        accepted += id_of(snowflake, uuid) != no_id ? 1 : 0;
        EXPECT_EQ(id_of(js53, uuid), no_id) << "few are at the start of a second";
    }
    EXPECT_GT(accepted, 0);
    EXPECT_LT(accepted, 50);
}

TEST(UuidForm, AnyChangedBitIsNoticedExceptOnceIn65536) {
    std::mt19937_64 random(5);
    int changed = 0;
    int accepted = 0;
    for (int i = 0; i < 1000; i++) {
        const Uuid good = uuid_of(snowflake, static_cast<int64_t>(random() >> 1), random());
        for (int bit = 0; bit < 128; bit++) {
            const uint64_t one = UINT64_C(1) << (bit % 64);
            const Uuid uuid = {good.high ^ (bit < 64 ? one : 0), good.low ^ (bit < 64 ? 0 : one)};
            accepted += id_of(snowflake, uuid) != no_id ? 1 : 0;
            changed++;
        }
    }
    EXPECT_LT(accepted, changed / 65536 + 15);
}

TEST(UuidForm, UuidsOfAnotherLayoutAreRefused) {
    const int64_t id = 117443343637549056;
    const Uuid uuid = uuid_of(snowflake, id, 12345);
    const auto expect_foreign = [&uuid](Layout l) { EXPECT_EQ(id_of(l, uuid), no_id); };
    expect_foreign({new_year_2026 - ms, ms, 41, 5, 5, 12});
    expect_foreign({new_year_2026, ms / 2, 41, 5, 5, 12});
    expect_foreign({new_year_2026, ms, 40, 5, 5, 12});
    expect_foreign({new_year_2026, ms, 41, 6, 4, 12});
    expect_foreign({new_year_2026, ms, 41, 5, 6, 11});
    expect_foreign({new_year_2026, ms, 41, 5, 5, 12, true});
    expect_foreign({new_year_2026, ms, 41, 5, 5, 12, false, true});
}

} // namespace
