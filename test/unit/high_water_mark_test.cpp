// The high-water mark: from a sequence's counter to the word's ticks and back, for every layout at its bounds, and for
// small generators at every tick.
#include "high_water_mark.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <ostream>
#include <vector>

namespace uidgen::core {

std::ostream &operator<<(std::ostream &out, const Layout &l) {
    return out << "time " << l.time_bits << " worker " << l.worker_bits << " sequence " << l.sequence_bits;
}

} // namespace uidgen::core

using namespace uidgen::core;

namespace {

struct Generator {
    Layout layout;
    ClockPolicy policy;
};

Generator generator(int32_t time_bits, int32_t worker_bits, int32_t sequence_bits, WhenBack when_back) {
    ClockPolicy policy = {sequence_bits, largest(time_bits) + 1, 1, 1};
    policy.when_back = when_back;
    return {{0, 1, time_bits, 0, worker_bits, sequence_bits}, policy};
}

int64_t terms_of(const Generator &g) { return terms_of(g.layout, g.policy); }
int64_t ticks_of(const Generator &g, int64_t mark) { return ticks_of_mark(g.layout, g.policy, mark); }
int64_t mark_of(const Generator &g, int64_t ticks) { return mark_of_ticks(g.policy, ticks); }
uint64_t above(const Generator &g, int64_t mark) { return position_above(g.layout, g.policy, mark); }
int64_t largest_id(const Generator &g, int64_t mark) { return largest_leased_id(g.layout, g.policy, mark); }

// Twitter's layout, with terms and without.
const Generator one_term = generator(41, 10, 12, WhenBack::hold);
const Generator many_terms = generator(41, 10, 12, WhenBack::new_worker);

constexpr int64_t term_1 = INT64_C(1) << 47;

// Calls check(generator) for every layout that core accepts, with one term and with many.
template <typename Check> void for_every_layout(Check check) {
    for (int32_t time = 1; time <= max_time_bits; time++)
        for (int32_t worker = 0; worker <= max_field_bits; worker++)
            for (int32_t sequence = 0; sequence <= std::min(max_field_bits, max_id_bits - time - worker); sequence++)
                for (const WhenBack when_back : {WhenBack::hold, WhenBack::new_worker})
                    check(generator(time, worker, sequence, when_back));
}

// The ticks at which something changes: the first and the last of the first, the second and the last term.
std::vector<int64_t> ticks_at_bounds(const Generator &g) {
    const int64_t terms = terms_of(g);
    const int64_t end = g.policy.end;
    std::vector<int64_t> ticks = {0, 1, end - 1};
    if (terms > 1)
        ticks.insert(ticks.end(), {end, end + 1, 2 * end - 1, (terms - 1) * end, terms * end - 1});
    return ticks;
}

TEST(Terms, AreOneUnlessAClockThatWentBackBeginsAnother) {
    for (const WhenBack when_back : {WhenBack::hold, WhenBack::wait, WhenBack::backup, WhenBack::error})
        EXPECT_EQ(terms_of(generator(41, 10, 12, when_back)), 1);
    EXPECT_EQ(terms_of(many_terms), 512);
}

TEST(Terms, AreOneAWorkerIdWhereThereIsRoom) {
    EXPECT_EQ(terms_of(generator(30, 0, 12, WhenBack::new_worker)), 1);
    EXPECT_EQ(terms_of(generator(30, 1, 12, WhenBack::new_worker)), 2);
    EXPECT_EQ(terms_of(generator(30, 16, 12, WhenBack::new_worker)), INT64_C(1) << 16);
    EXPECT_EQ(terms_of(generator(30, 17, 12, WhenBack::new_worker)), INT64_C(1) << 16); // the mark's room
    EXPECT_EQ(terms_of(generator(47, 10, 6, WhenBack::new_worker)), INT64_C(1) << 9);   // the word's room
    EXPECT_EQ(terms_of(generator(47, 1, 15, WhenBack::new_worker)), 1);
    EXPECT_EQ(terms_of(generator(47, 0, 16, WhenBack::new_worker)), 1);
}

TEST(Terms, FitTheMarkAndTheWordOfEveryLayout) {
    for_every_layout([](const Generator &g) {
        const int64_t terms = terms_of(g);
        ASSERT_GE(terms, 1) << g.layout;
        ASSERT_LE(terms, INT64_C(1) << g.layout.worker_bits) << g.layout;
        ASSERT_LE(terms, INT64_C(1) << 16) << g.layout;
        // The end of the last term, as a position; a word with several terms keeps its top bit and the next one clear.
        const __int128 end = static_cast<__int128>(terms * g.policy.end) << g.policy.sequence_bits;
        const __int128 most = static_cast<__int128>(1) << (terms == 1 ? 63 : 62);
        ASSERT_LE(end, most) << g.layout;
        ASSERT_EQ(static_cast<__int128>(above(g, INT64_MAX)), end) << g.layout;
    });
}

TEST(TicksOfMark, AreTermAndTick) {
    EXPECT_EQ(ticks_of(one_term, no_lease_yet), 1);
    EXPECT_EQ(ticks_of(one_term, 1234567), 1234567);
    EXPECT_EQ(ticks_of(many_terms, 1234567), 1234567);
    EXPECT_EQ(ticks_of(many_terms, term_1), INT64_C(1) << 41);
    EXPECT_EQ(ticks_of(many_terms, 3 * term_1 + 5), (INT64_C(3) << 41) + 5);
}

TEST(TicksOfMark, NeverGoBelowZero) {
    for (const Generator &g : {one_term, many_terms})
        for (const int64_t mark : {INT64_MIN, INT64_C(-1), INT64_C(0)})
            EXPECT_EQ(ticks_of(g, mark), 0);
}

TEST(TicksOfMark, BeyondALayoutsTimeStandForTheEndOfTheTerm) {
    const int64_t end = INT64_C(1) << 41;
    EXPECT_EQ(ticks_of(many_terms, end - 1), end - 1);
    EXPECT_EQ(ticks_of(many_terms, end), end - 1);
    EXPECT_EQ(ticks_of(many_terms, term_1 - 1), end - 1);
    EXPECT_EQ(ticks_of(many_terms, 2 * term_1 - 1), 2 * end - 1);
}

TEST(TicksOfMark, BeyondTheLastTermStandForItsEnd) {
    const int64_t end = INT64_C(1) << 41;
    for (const int64_t mark : {term_1, term_1 + 5, INT64_MAX})
        EXPECT_EQ(ticks_of(one_term, mark), end - 1);
    EXPECT_EQ(ticks_of(many_terms, 511 * term_1 + 7), 511 * end + 7);
    for (const int64_t mark : {512 * term_1, 512 * term_1 + 7, INT64_MAX})
        EXPECT_EQ(ticks_of(many_terms, mark), 512 * end - 1);
}

TEST(MarkOfTicks, DoesNotDependOnTheLayout) {
    EXPECT_EQ(mark_of(one_term, 1234567), 1234567);
    EXPECT_EQ(mark_of(many_terms, (INT64_C(3) << 41) + 5), 3 * term_1 + 5);
    EXPECT_EQ(mark_of(generator(30, 10, 12, WhenBack::new_worker), (INT64_C(3) << 30) + 5), 3 * term_1 + 5);
}

TEST(MarkOfTicks, IsTheInverseAtEveryLayoutsBounds) {
    for_every_layout([](const Generator &g) {
        for (const int64_t ticks : ticks_at_bounds(g)) {
            const int64_t mark = mark_of(g, ticks);
            ASSERT_GE(mark, 0) << g.layout << " ticks " << ticks;
            ASSERT_EQ(ticks_of(g, mark), ticks) << g.layout;
        }
    });
}

// Small generators: up to 2^3 ticks and 2^3 terms, every tick of every term.
TEST(MarkOfTicks, IsTheInverseAndGrowsAtEveryTick) {
    for (int32_t time = 1; time <= 3; time++)
        for (int32_t worker = 0; worker <= 3; worker++) {
            const Generator g = generator(time, worker, 2, WhenBack::new_worker);
            int64_t before = -1;
            for (int64_t ticks = 0; ticks < terms_of(g) * g.policy.end; ticks++) {
                const int64_t mark = mark_of(g, ticks);
                ASSERT_GT(mark, before) << g.layout << " ticks " << ticks;
                ASSERT_EQ(mark, (ticks >> time) * term_1 + (ticks & largest(time))) << g.layout;
                ASSERT_EQ(ticks_of(g, mark), ticks) << g.layout;
                before = mark;
            }
        }
}

// A counter that only grows never takes a generator back, not even one that no lease wrote.
TEST(TicksOfMark, NeverShrinkAsTheMarkGrows) {
    for_every_layout([](const Generator &g) {
        std::vector<int64_t> marks = {INT64_MIN, -1};
        for (const int64_t term : {INT64_C(0), INT64_C(1), terms_of(g) - 1, terms_of(g), INT64_C(65535)})
            for (const int64_t tick : {INT64_C(0), INT64_C(1), g.policy.end - 1, g.policy.end, term_1 - 1})
                if (tick < term_1)
                    marks.push_back(term << max_time_bits | tick);
        std::sort(marks.begin(), marks.end());
        for (size_t i = 1; i < marks.size(); i++)
            ASSERT_LE(ticks_of(g, marks[i - 1]), ticks_of(g, marks[i])) << g.layout << " mark " << marks[i];
    });
}

TEST(PositionAbove, IsTheFirstOfTheNextTick) {
    EXPECT_EQ(above(one_term, 0), UINT64_C(1) << 12);
    EXPECT_EQ(above(one_term, no_lease_yet), UINT64_C(2) << 12);
    EXPECT_EQ(above(many_terms, 3 * term_1 + 5), ((UINT64_C(3) << 41) + 6) << 12);
    for_every_layout([](const Generator &g) {
        for (const int64_t ticks : ticks_at_bounds(g)) {
            const uint64_t last = (static_cast<uint64_t>(ticks) << g.policy.sequence_bits) +
                                  static_cast<uint64_t>(largest(g.policy.sequence_bits));
            ASSERT_EQ(above(g, mark_of(g, ticks)), last + 1) << g.layout;
        }
    });
}

TEST(LargestLeasedId, IsTheLastOfTheLastTick) {
    EXPECT_EQ(largest_id(one_term, 0), (INT64_C(1) << 22) - 1);
    EXPECT_EQ(largest_id(one_term, 7), (INT64_C(8) << 22) - 1);
    EXPECT_EQ(largest_id(many_terms, 7), (INT64_C(8) << 22) - 1);
    for_every_layout([](const Generator &g) {
        for (const int64_t tick : {INT64_C(0), INT64_C(1), g.policy.end - 1}) {
            const Layout &l = g.layout;
            const Encoded last = encode(l, {tick, 0, largest(l.worker_bits), largest(l.sequence_bits)});
            ASSERT_EQ(last.fault, EncodeFault::none) << g.layout;
            ASSERT_EQ(largest_id(g, tick), last.id) << g.layout << " tick " << tick;
        }
    });
}

TEST(LargestLeasedId, IsTheLayoutsLastFromTheSecondTermOn) {
    for (const int64_t mark : {term_1, 3 * term_1 + 5, INT64_MAX})
        EXPECT_EQ(largest_id(many_terms, mark), INT64_MAX);
    EXPECT_EQ(largest_id(generator(30, 10, 12, WhenBack::new_worker), term_1), (INT64_C(1) << 52) - 1);
}

} // namespace
