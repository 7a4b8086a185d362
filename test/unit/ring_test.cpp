// The ring of cached mode, its shared run and its windows, with one caller. memory_order_test has several.
#include "ring.hpp"
#include "window.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <vector>

using namespace uidgen::core;

namespace {

constexpr uint64_t nothing = empty_cell;

// The indices start at 0, and also so high that they wrap after each of the first few puts.

struct Start {
    uint64_t first;
};
void PrintTo(const Start &start, std::ostream *out) { *out << "first index " << start.first; }

template <uint64_t count> struct PlainRing {
    RingHints<> hints;
    std::atomic<uint64_t> cells[count];
    Ring<> ring{&hints, cells, count};

    explicit PlainRing(Start start) {
        hints.reset(start.first);
        ring.clear();
    }
    uint64_t cursor() const { return hints.cursor.load(); }
    uint64_t tail() const { return hints.tail.load(); }

    // As many runs as there is room for, at most `most`.
    uint64_t put_all(uint64_t first, uint64_t most) {
        for (uint64_t i = 0; i < most; i++)
            if (!ring.put(first + i))
                return i;
        return most;
    }
    uint64_t take() {
        uint64_t too_old = 0;
        return ring.take(0, &too_old);
    }
    std::vector<uint64_t> take_all(uint64_t floor = 0) {
        std::vector<uint64_t> all;
        for (;;) {
            uint64_t too_old = 0;
            const uint64_t run = ring.take(floor, &too_old);
            thrown_away += too_old;
            if (run == nothing)
                return all;
            all.push_back(run);
        }
    }
    uint64_t thrown_away = 0;
};

using Positions = std::vector<uint64_t>;

class RingAlone : public ::testing::TestWithParam<Start> {};
INSTANTIATE_TEST_SUITE_P(Starts, RingAlone,
                         ::testing::Values(Start{0}, Start{1}, Start{UINT64_MAX}, Start{UINT64_MAX - 1},
                                           Start{UINT64_MAX - 2}, Start{UINT64_MAX - 3}, Start{UINT64_MAX - 6}));

// Runs in the order in which they are put; of the first and the last positions there are.
uint64_t run_of(uint64_t i) { return i == 0 ? 0 : (UINT64_C(1) << 63) - 9 + i; }

// Every sequence of eight puts and takes. A take throws away nothing, all runs but the newest, or all.
template <uint64_t count> void expect_queue(Start start) {
    for (int sequence = 0; sequence < 1 << 16; sequence++) {
        PlainRing<count> r(start);
        std::deque<uint64_t> runs;
        uint64_t next = 0;
        for (int i = 0; i < 8; i++) {
            const int what = sequence >> (2 * i) & 3;
            if (what == 3) {
                ASSERT_EQ(r.ring.put(run_of(next)), runs.size() < count) << sequence;
                if (runs.size() < count)
                    runs.push_back(run_of(next++));
            } else {
                const uint64_t floor = what == 0 || runs.empty() ? 0 : runs.back() + (what == 1 ? 0 : 1);
                uint64_t thrown_away = 0;
                const uint64_t taken = r.ring.take(floor, &thrown_away);
                uint64_t too_old = 0;
                for (; !runs.empty() && runs.front() < floor; runs.pop_front())
                    too_old++;
                ASSERT_EQ(thrown_away, too_old) << sequence;
                ASSERT_EQ(taken, runs.empty() ? nothing : runs.front()) << sequence;
                if (!runs.empty())
                    runs.pop_front();
            }
            ASSERT_EQ(r.ring.filled(), runs.size()) << sequence;
        }
    }
}

TEST_P(RingAlone, IsAQueue) {
    expect_queue<1>(GetParam());
    expect_queue<4>(GetParam());
}

// A ring that holds fewer than two of four runs is refilled until it is full.
TEST_P(RingAlone, WantsRunsFromTheThresholdOnUntilItIsFull) {
    PlainRing<4> r(GetParam());
    for (bool is_refilled : {false, true})
        EXPECT_TRUE(r.ring.wants_runs(is_refilled, 2));
    r.put_all(1, 1);
    EXPECT_TRUE(r.ring.wants_runs(false, 2));
    r.put_all(2, 1);
    EXPECT_FALSE(r.ring.wants_runs(false, 2));
    EXPECT_TRUE(r.ring.wants_runs(true, 2));
    r.put_all(3, 2);
    EXPECT_FALSE(r.ring.wants_runs(true, 2));
    EXPECT_FALSE(r.ring.wants_runs(true, 4));
}

// Invariant 3: any value of the cursor costs time or room. Here it is up to three laps off its place, behind and ahead,
// and half the range of indices away. The ring holds from none to all of its runs.
TEST_P(RingAlone, RecoversFromAnyCursor) {
    const uint64_t half = UINT64_C(1) << 63;
    for (uint64_t runs = 0; runs <= 4; runs++)
        for (const uint64_t offset : {UINT64_C(1), UINT64_C(2), UINT64_C(4), UINT64_C(5), UINT64_C(12), half - 1, half,
                                      half + 1, -UINT64_C(12), -UINT64_C(5), -UINT64_C(4)}) {
            PlainRing<4> r(GetParam());
            r.put_all(91, 3);
            r.take_all();
            Positions expected;
            for (uint64_t i = 1; i <= runs; i++)
                expected.push_back(i);
            ASSERT_EQ(r.put_all(1, runs), runs);

            r.hints.cursor.store(r.tail() - runs - offset);
            EXPECT_LE(r.ring.filled(), 4u);
            if (r.ring.put(77)) // it may seem full when it is not, but never the reverse
                expected.push_back(77);
            Positions taken = r.take_all();
            std::sort(taken.begin(), taken.end()); // the order may change
            EXPECT_EQ(taken, expected) << runs << " runs, cursor off by " << offset;

            EXPECT_EQ(r.ring.filled(), 0u);
            EXPECT_EQ(r.put_all(11, 9), 4u);
            EXPECT_EQ(r.take_all(), (Positions{11, 12, 13, 14}));
        }
}

// A putter that swapped late: its run is behind the cursor. Here in cell 1 of 4, as many indices back as possible.
template <uint64_t empty_before> PlainRing<4> &with_leftover(PlainRing<4> &r) {
    r.put_all(81, empty_before);
    r.take_all();
    r.cells[(r.tail() - 1) & 3].store(55);
    return r;
}

TEST_P(RingAlone, TakesALeftoverWhenItComesRound) {
    PlainRing<4> r(GetParam());
    with_leftover<1>(r);
    EXPECT_EQ(r.take(), nothing) << "not in reach yet";
    EXPECT_EQ(r.put_all(1, 9), 3u) << "the fourth cell is the leftover's";
    EXPECT_EQ(r.take_all(), (Positions{1, 2, 3, 55}));
    EXPECT_EQ(r.put_all(11, 9), 4u);
    EXPECT_EQ(r.take_all(), (Positions{11, 12, 13, 14}));
}

TEST_P(RingAlone, ThrowsAwayALeftoverThatIsTooOld) {
    PlainRing<4> r(GetParam());
    with_leftover<2>(r);
    EXPECT_EQ(r.put_all(101, 9), 3u);
    EXPECT_EQ(r.take_all(60), (Positions{101, 102, 103}));
    EXPECT_EQ(r.thrown_away, 1u);
    EXPECT_EQ(r.put_all(111, 9), 4u);
}

// A putter that has filled its cell and done no more: the run is out of reach until the next put, which comes after it.
TEST_P(RingAlone, TheNextPutterMovesTheTail) {
    PlainRing<4> r(GetParam());
    r.cells[r.tail() & 3].store(1);
    EXPECT_EQ(r.take(), nothing);
    EXPECT_TRUE(r.ring.put(2));
    EXPECT_EQ(r.take_all(), (Positions{1, 2}));
}

TEST_P(RingAlone, TheNextPutterMovesTheTailOverTheLastCell) {
    PlainRing<4> r(GetParam());
    EXPECT_EQ(r.put_all(1, 3), 3u);
    r.cells[r.tail() & 3].store(4);
    EXPECT_FALSE(r.ring.put(5));
    EXPECT_EQ(r.take_all(), (Positions{1, 2, 3, 4}));
}

// ---------------------------------------------------------------------------------------------------------
// Windows and the shared run.

TEST(WindowAlone, DrawsWhatIsLeftOfIt) {
    std::atomic<uint64_t> word{10};
    Window<> window = {&word, 10, 10, 13, 100, 5};
    const auto take = [&] {
        int64_t value = -1;
        return window.take(&value) ? value : -1;
    };
    EXPECT_EQ(take(), 150);
    EXPECT_EQ(word, 11u);
    word = 12; // another session has drawn
    EXPECT_EQ(take(), 160) << "what the failed swap returned is taken";
    EXPECT_EQ(take(), -1) << "used up";
    EXPECT_EQ(word, 13u);
    window = {&word, 10, 10, 13, 100, 5};
    EXPECT_EQ(take(), -1) << "the word stands at the limit";
    word = 9;
    EXPECT_EQ(take(), -1) << "below the window: of another run";
    word = 10;
    window.close();
    EXPECT_EQ(take(), -1);
    EXPECT_EQ(word, 10u);
}

TEST(SharedRunAlone, ThrowsAwayWhatIsTooOld) {
    SharedRun<> word;
    uint64_t seen = 0;
    const auto take = [&](uint64_t floor, uint64_t want) {
        const auto run = word.take(floor, 4, want, &seen);
        return std::pair<uint64_t, uint64_t>(run.count > 0 ? run.first : nothing, run.count);
    };
    using Got = std::pair<uint64_t, uint64_t>;
    const Got none = {nothing, 0};
    word.reset(4);
    EXPECT_EQ(take(0, 1), none) << "empty at first";
    ASSERT_TRUE(word.install(seen, 8));
    EXPECT_EQ(take(0, 1), Got(9, 1));
    EXPECT_EQ(take(12, 1), none) << "10 and 11 are below the floor";
    EXPECT_NE(seen, SharedRun<>::end_of_run(seen, 4));
    EXPECT_FALSE(word.install(8, 12)) << "that is not what is there";
    ASSERT_TRUE(word.install(seen, 12));
    EXPECT_EQ(take(12, 2), Got(13, 2));
    EXPECT_EQ(take(12, 9), Got(15, 1)) << "no further than the run";
    EXPECT_EQ(take(12, 9), none);
    EXPECT_EQ(seen, SharedRun<>::end_of_run(seen, 4));
    ASSERT_TRUE(word.install(seen, 16));
    EXPECT_EQ(take(0, 1), Got(17, 1));
    EXPECT_EQ(word.last(), 17u);
    EXPECT_FALSE(SharedRun<>::has_next(17, 19, 4)) << "18 is too old";
    EXPECT_TRUE(SharedRun<>::has_next(17, 18, 4));
    EXPECT_FALSE(SharedRun<>::has_next(19, 18, 4)) << "used up";
}

} // namespace
