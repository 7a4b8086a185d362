// The ring of cached mode: alone, in every interleaving of a few callers, and with one of them halted for ever at each
// of its steps.
//
// The tables list the acceptable outcomes. The following are forbidden everywhere, and named in capitals in an outcome:
// a position TWICE; a position NEVER PUT; a position LOST although no actor was halted; a ring that is STUCK
// afterwards; an ENDLESS loop.
#include "expect_outcomes.hpp"
#include "ring.hpp"
#include "window.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

using namespace uidgen::core;
using namespace uidgen::test;

namespace {

constexpr uint64_t nothing = empty_cell;
constexpr auto relaxed = std::memory_order_relaxed;

// ---------------------------------------------------------------------------------------------------------
// One caller. The indices start at 0, and also so high that they wrap after each of the first few puts.

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
    std::vector<uint64_t> take_all(uint64_t floor = 0) {
        std::vector<uint64_t> all;
        for (;;) {
            const TakenRun run = ring.take(floor);
            thrown_away += run.too_old;
            if (run.first == nothing)
                return all;
            all.push_back(run.first);
        }
    }
    uint64_t thrown_away = 0;
};

using Positions = std::vector<uint64_t>;

class RingAlone : public ::testing::TestWithParam<Start> {};
INSTANTIATE_TEST_SUITE_P(Starts, RingAlone,
                         ::testing::Values(Start{0}, Start{1}, Start{UINT64_MAX}, Start{UINT64_MAX - 1},
                                           Start{UINT64_MAX - 2}, Start{UINT64_MAX - 3}, Start{UINT64_MAX - 6}));

TEST_P(RingAlone, GivesRunsInTheOrderInWhichTheyCame) {
    PlainRing<4> r(GetParam());
    uint64_t next_put = 100, next_take = 100;
    // Three laps and more, at each level of filling.
    for (uint64_t height = 1; height <= 4; height++)
        for (int i = 0; i < 13; i++) {
            while (next_put - next_take < height)
                ASSERT_TRUE(r.ring.put(next_put++));
            ASSERT_EQ(r.ring.take(0).first, next_take++);
        }
}

TEST_P(RingAlone, RefusesWhatHasNoRoom) {
    PlainRing<4> r(GetParam());
    EXPECT_EQ(r.put_all(1, 9), 4u);
    EXPECT_FALSE(r.ring.put(5));
    EXPECT_EQ(r.ring.take(0).first, 1u);
    EXPECT_TRUE(r.ring.put(6));
    EXPECT_FALSE(r.ring.put(7));
    EXPECT_EQ(r.take_all(), (Positions{2, 3, 4, 6}));
}

TEST_P(RingAlone, OfOneCell) {
    PlainRing<1> r(GetParam());
    for (uint64_t i = 0; i < 9; i++) {
        EXPECT_EQ(r.ring.take(0).first, nothing);
        EXPECT_TRUE(r.ring.put(i));
        EXPECT_FALSE(r.ring.put(50));
        EXPECT_EQ(r.ring.filled(), 1u);
        EXPECT_EQ(r.ring.take(0).first, i);
        EXPECT_EQ(r.ring.filled(), 0u);
    }
}

TEST_P(RingAlone, HasNothingWhenEmpty) {
    PlainRing<4> r(GetParam());
    EXPECT_EQ(r.ring.take(0).first, nothing);
    EXPECT_EQ(r.ring.take(0).too_old, 0u);
    r.put_all(1, 2);
    EXPECT_EQ(r.take_all(), (Positions{1, 2}));
    EXPECT_EQ(r.ring.take(0).first, nothing);
    EXPECT_EQ(r.cursor(), r.tail());
}

TEST_P(RingAlone, SaysHowManyRunsThereAre) {
    PlainRing<4> r(GetParam());
    EXPECT_EQ(r.ring.cells(), 4u);
    for (uint64_t i = 0; i < 4; i++) {
        EXPECT_EQ(r.ring.filled(), i);
        r.ring.put(i);
    }
    for (uint64_t i = 4; i > 0; i--) {
        EXPECT_EQ(r.ring.filled(), i);
        r.ring.take(0);
    }
    EXPECT_EQ(r.ring.filled(), 0u);
}

TEST_P(RingAlone, ThrowsAwayAndCountsWhatIsTooOld) {
    PlainRing<4> r(GetParam());
    r.put_all(1, 4);
    const TakenRun third = r.ring.take(3);
    EXPECT_EQ(third.first, 3u); // at the floor, not below it
    EXPECT_EQ(third.too_old, 2u);
    EXPECT_EQ(r.ring.filled(), 1u);
    EXPECT_EQ(r.put_all(5, 9), 3u) << "room again where the old ones were";

    const TakenRun none = r.ring.take(100);
    EXPECT_EQ(none.first, nothing);
    EXPECT_EQ(none.too_old, 4u);
    EXPECT_EQ(r.ring.filled(), 0u);
    EXPECT_EQ(r.put_all(9, 9), 4u);
    EXPECT_EQ(r.take_all(), (Positions{9, 10, 11, 12}));
}

// The first and the last position there are.
TEST_P(RingAlone, HoldsAnyPosition) {
    PlainRing<4> r(GetParam());
    const uint64_t last = (UINT64_C(1) << 63) - 1;
    r.ring.put(0);
    r.ring.put(last);
    EXPECT_EQ(r.take_all(), (Positions{0, last}));
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

// A cursor that is one lap or less behind passes cells that other callers have emptied.
TEST_P(RingAlone, GoesOverEmptyCells) {
    PlainRing<4> r(GetParam());
    r.put_all(1, 4);
    const uint64_t before = r.cursor();
    r.ring.take(0);
    r.ring.take(0);
    r.hints.cursor.store(before);
    EXPECT_EQ(r.ring.peek(0), 3);
    EXPECT_EQ(r.ring.peek(4), 4);
    EXPECT_EQ(r.ring.peek(5), empty_cell);
    EXPECT_EQ(r.take_all(), (Positions{3, 4}));
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
    EXPECT_EQ(r.ring.take(0).first, nothing) << "not in reach yet";
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
    EXPECT_EQ(r.ring.take(0).first, nothing);
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
// Mutants: of an atomic, and of the ring's two calls.

// A ring, its hints and its cells, of atomics that yield.
template <template <typename> class Atom, typename RingType = Ring<Atom>> struct Kind {
    using Ring = RingType;
    using Hints = RingHints<Atom>;
    using Cell = Atom<uint64_t>;
};
using Sound = Kind<Stepped>;

// take() empties a cell by a load and a store.
template <typename T> struct TearsTakes : Stepped<T> {
    bool compare_exchange_strong(T &expected, T desired, std::memory_order success, std::memory_order failure) {
        if (desired != empty_cell)
            return Stepped<T>::compare_exchange_strong(expected, desired, success, failure);
        if (this->load(failure) != expected)
            return false;
        this->store(desired, success);
        return true;
    }
};
using TornTake = Kind<TearsTakes>;

// put() stores its run, whatever the cell holds.
template <typename T> struct StoresPuts : Stepped<T> {
    bool compare_exchange_strong(T &expected, T desired, std::memory_order success, std::memory_order failure) {
        if (expected != empty_cell)
            return Stepped<T>::compare_exchange_strong(expected, desired, success, failure);
        this->store(desired, success);
        return true;
    }
};
using StoredPut = Kind<StoresPuts>;

// Shared by the mutants of the ring's own steps.
struct OpenRing : Ring<Stepped> {
    OpenRing(RingHints<Stepped> *hints, Stepped<uint64_t> *cells, uint64_t count)
        : Ring<Stepped>(hints, cells, count), cursor(hints->cursor), tail(hints->tail), cells_of(cells), count(count) {}
    Stepped<uint64_t> &cell(uint64_t index) { return cells_of[index & (count - 1)]; }
    bool swap(Stepped<uint64_t> &word, uint64_t from, uint64_t to) {
        return word.compare_exchange_strong(from, to, relaxed, relaxed);
    }
    TakenRun take_between(uint64_t i, uint64_t end, uint64_t floor) {
        uint64_t too_old = 0;
        for (; i != end; i++) {
            const uint64_t seen = cell(i).load(relaxed);
            if (seen == empty_cell || !swap(cell(i), seen, empty_cell))
                continue;
            if (seen >= floor) {
                cursor.store(i + 1, relaxed);
                return {seen, too_old};
            }
            too_old++;
        }
        cursor.store(i, relaxed);
        return {empty_cell, too_old};
    }

    Stepped<uint64_t> &cursor;
    Stepped<uint64_t> &tail;
    Stepped<uint64_t> *cells_of;
    uint64_t count;
};

// Moves the tail first and fills the cell afterwards.
struct TailFirstRing : OpenRing {
    using OpenRing::OpenRing;
    bool put(uint64_t first) {
        for (;;) {
            const uint64_t end = tail.load(relaxed);
            if (end - cursor.load(relaxed) >= count)
                return false;
            if (swap(tail, end, end + 1) && swap(cell(end), empty_cell, first))
                return true;
        }
    }
};
using TailFirst = Kind<Stepped, TailFirstRing>;

// Waits until the putter that filled the cell has moved the tail itself.
struct WaitingRing : OpenRing {
    using OpenRing::OpenRing;
    bool put(uint64_t first) {
        for (;;) {
            const uint64_t end = tail.load(relaxed);
            if (end - cursor.load(relaxed) >= count)
                return false;
            if (swap(cell(end), empty_cell, first)) {
                swap(tail, end, end + 1);
                return true;
            }
        }
    }
};
using WaitsForPutter = Kind<Stepped, WaitingRing>;

// Treats a cursor that is out of reach as an empty ring.
struct GivesUpRing : OpenRing {
    using OpenRing::OpenRing;
    TakenRun take(uint64_t floor) {
        const uint64_t i = cursor.load(relaxed);
        const uint64_t end = tail.load(relaxed);
        return end - i > count ? TakenRun{empty_cell, 0} : take_between(i, end, floor);
    }
};
using GivesUpOnLateCursor = Kind<Stepped, GivesUpRing>;

// Assumes that the cursor is never ahead of the tail that it read before.
struct TailReadFirstRing : OpenRing {
    using OpenRing::OpenRing;
    TakenRun take(uint64_t floor) {
        const uint64_t end = tail.load(relaxed);
        return take_between(cursor.load(relaxed), end, floor);
    }
};
using TailReadFirst = Kind<Stepped, TailReadFirstRing>;

// Reads the tail before the cursor, and goes a lap back when the cursor is ahead of it: sound, but slow.
struct LapBackRing : OpenRing {
    using OpenRing::OpenRing;
    TakenRun take(uint64_t floor) {
        const uint64_t end = tail.load(relaxed);
        const uint64_t i = cursor.load(relaxed);
        return take_between(end - i > count ? end - count : i, end, floor);
    }
};
using GoesALapBack = Kind<Stepped, LapBackRing>;

// Refuses when the cursor is ahead of a tail that has moved on since it was read.
struct HastyRing : OpenRing {
    using OpenRing::OpenRing;
    bool put(uint64_t first) {
        for (;;) {
            const uint64_t end = tail.load(relaxed);
            if (end - cursor.load(relaxed) >= count)
                return false;
            const bool ours = swap(cell(end), empty_cell, first);
            swap(tail, end, end + 1);
            if (ours)
                return true;
        }
    }
    uint64_t filled() const {
        const uint64_t end = tail.load(relaxed);
        return std::min(end - cursor.load(relaxed), count);
    }
};
using BelievesAnOldTail = Kind<Stepped, HastyRing>;

// ---------------------------------------------------------------------------------------------------------
// A ring and what became of each position.

template <typename Kind, uint64_t cell_count, uint64_t first_index = 0> struct RingWorld {
    typename Kind::Hints hints;
    typename Kind::Cell cells[cell_count];
    typename Kind::Ring ring{&hints, cells, cell_count};

    Positions given; // to putters
    Positions refused;
    Positions taken[2]; // by two takers
    uint64_t thrown_away = 0;

    RingWorld() {
        hints.reset(first_index);
        ring.clear();
    }

    void put(uint64_t first) {
        given.push_back(first);
        if (!ring.put(first))
            refused.push_back(first);
    }
    uint64_t take(unsigned taker, uint64_t floor = 0) {
        const TakenRun run = ring.take(floor);
        thrown_away += run.too_old;
        taken[taker].push_back(run.first);
        return run.first;
    }
    template <unsigned taker, unsigned times, uint64_t floor = 0> static void take_times(RingWorld &w) {
        for (unsigned i = 0; i < times; i++)
            w.take(taker, floor);
    }
    template <uint64_t first, uint64_t count> static void put_times(RingWorld &w) {
        for (uint64_t i = 0; i < count; i++)
            w.put(first + i);
    }

    // Every run, where it was: "1 none | 2 left 3".
    std::string outcome() {
        std::string text = show(taken[0]);
        text += taken[1].empty() ? "" : " | " + show(taken[1]);
        const Found found = find_rest();
        text += found.left.empty() ? "" : " left " + show(found.left);
        text += found.behind.empty() ? "" : " behind " + show(found.behind);
        text += refused.empty() ? "" : " refused " + show(refused);
        text += thrown_away == 0 ? "" : " thrown away " + std::to_string(thrown_away);
        const uint64_t lost = lost_runs(found);
        return text + (lost == 0 ? "" : " LOST " + std::to_string(lost)) + faults(found);
    }

    // How many runs were lost: at most the halted actor's own.
    std::string losses() {
        const Found found = find_rest();
        const uint64_t lost = lost_runs(found);
        return (lost == 0 ? "none lost" : lost == 1 ? "one lost" : "MORE LOST") + faults(found);
    }

    // The same without the runs below `young`. A halted taker may have thrown them away without counting them.
    std::string lost_from(uint64_t young) {
        const Found found = find_rest();
        const Positions out = all_out(found);
        const std::set<uint64_t> once(out.begin(), out.end());
        const auto lost =
            std::count_if(given.begin(), given.end(), [&](uint64_t p) { return p >= young && once.count(p) == 0; });
        return (lost == 0 ? "none lost" : lost == 1 ? "one lost" : "MORE LOST") + faults(found);
    }

  private:
    struct Found {
        Positions left;   // what takers find
        Positions behind; // what they find on the ring's next lap
    };

    static std::string show(const Positions &positions) {
        std::string text;
        for (const uint64_t position : positions)
            text += (text.empty() ? "" : " ") + (position == nothing ? "none" : std::to_string(position));
        return text;
    }

    Positions take_rest() {
        Positions rest;
        for (TakenRun run = ring.take(0); run.first != nothing; run = ring.take(0))
            rest.push_back(run.first);
        return rest;
    }

    Found find_rest() {
        Found found = {take_rest(), {}};
        for (const auto &cell : cells)
            if (cell.load(relaxed) != empty_cell)
                found.behind.push_back(cell.load(relaxed));
        return found;
    }

    Positions all_out(const Found &found) const {
        Positions all = found.left;
        for (const Positions &more : {taken[0], taken[1], found.behind, refused})
            std::copy_if(more.begin(), more.end(), std::back_inserter(all), [](uint64_t p) { return p != nothing; });
        return all;
    }

    uint64_t lost_runs(const Found &found) const {
        const Positions out = all_out(found);
        const std::set<uint64_t> once(out.begin(), out.end());
        return given.size() - std::min(given.size(), once.size() + thrown_away);
    }

    std::string faults(const Found &found) {
        const Positions out = all_out(found);
        const std::set<uint64_t> once(out.begin(), out.end());
        std::string text = once.size() < out.size() ? " TWICE" : "";
        for (const uint64_t position : once)
            if (std::find(given.begin(), given.end(), position) == given.end())
                text += " NEVER PUT " + std::to_string(position);
        return text + (goes_round(found.behind) ? "" : " STUCK");
    }

    // Whatever happened before, the ring works, and two laps bring out the runs behind the cursor. It may seem full
    // until a caller has taken.
    bool goes_round(Positions missing) {
        for (uint64_t i = 0; i < 2 * cell_count; i++) {
            missing.push_back(900 + i);
            if (!ring.put(900 + i)) {
                erase_all(missing, take_rest());
                if (!ring.put(900 + i))
                    return false;
            }
            erase_all(missing, take_rest());
        }
        return missing.empty();
    }

    static void erase_all(Positions &from, const Positions &what) {
        from.erase(std::remove_if(from.begin(), from.end(),
                                  [&](uint64_t p) { return std::find(what.begin(), what.end(), p) != what.end(); }),
                   from.end());
    }
};

// A scenario: World, its actors, and how many preemptions are enough. A halted actor loses at most its own run, and the
// others end in a bounded number of steps.
template <typename World> struct Cast {
    Actors<World> actors;
    size_t preemptions = Explorer::unbounded;
    size_t preemptions_halted = preemptions;
};

template <typename World> Explored play(const Table &acceptable, const Cast<World> &cast) {
    return explore<World>(acceptable, cast.actors, cast.preemptions);
}

const Table at_most_one_lost = {"none lost", "one lost"};

template <typename World> Explored halt(const Cast<World> &cast, size_t actor) {
    return explore_halted<World>(at_most_one_lost, cast.actors, actor, &World::losses, cast.preemptions_halted);
}

template <typename World> void expect_survival(const Cast<World> &cast) {
    for (size_t actor = 0; actor < cast.actors.size(); actor++) {
        const Explored result = halt(cast, actor);
        expect_exactly(result, at_most_one_lost);
        EXPECT_GT(result.halted, 0u);
    }
}

// The ring with some runs put before the actors come, from 1 on.
template <typename Kind, uint64_t cell_count, uint64_t runs, uint64_t first_index = 0>
struct Filled : RingWorld<Kind, cell_count, first_index> {
    Filled() { this->template put_times<1, runs>(*this); }
    template <unsigned taker, unsigned times, uint64_t floor = 0> static void takes(Filled &w) {
        w.template take_times<taker, times, floor>(w);
    }
    template <uint64_t first, uint64_t count = 1> static void puts(Filled &w) { w.template put_times<first, count>(w); }
};

// ---------------------------------------------------------------------------------------------------------
// take against take. There are three runs. One taker wants two of them and the other one.
//
//   acceptable  each run once, each taker's own in the order in which they were put
//   forbidden   none, while there is a run

const Table two_takers = {"1 2 | 3", "1 3 | 2", "2 3 | 1"};

template <typename Kind, uint64_t first_index = 0> Cast<Filled<Kind, 4, 3, first_index>> two_takers_cast() {
    using World = Filled<Kind, 4, 3, first_index>;
    return {{World::template takes<0, 2>, World::template takes<1, 1>}, Explorer::unbounded, 3};
}

TEST(RingTakeAndTake, EachRunOnce) { expect_exactly(play(two_takers, two_takers_cast<Sound>()), two_takers); }
TEST(RingTakeAndTake, EachRunOnceWhenIndicesGoRound) {
    expect_exactly(play(two_takers, two_takers_cast<Sound, UINT64_MAX - 1>()), two_takers);
}
TEST(RingTakeAndTake, SurvivesAHaltedTaker) { expect_survival(two_takers_cast<Sound>()); }
TEST(RingTakeAndTake, TornTakeMutantIsCaught) { expect_caught(play(two_takers, two_takers_cast<TornTake>())); }

// ---------------------------------------------------------------------------------------------------------
// take against put, with room left. The first run is in the ring, a putter adds the second, and a taker takes twice.
//
//   acceptable  the runs in order, the second if it was put in time
//   forbidden   a run behind the cursor

const Table taker_and_putter = {"1 2", "1 none left 2"};

template <typename Kind> Cast<Filled<Kind, 4, 1>> taker_and_putter_cast() {
    using World = Filled<Kind, 4, 1>;
    return {{World::template takes<0, 2>, World::template puts<2>}};
}

TEST(RingTakeAndPut, InOrder) {
    expect_exactly(play(taker_and_putter, taker_and_putter_cast<Sound>()), taker_and_putter);
}
TEST(RingTakeAndPut, SurvivesAHaltedOne) { expect_survival(taker_and_putter_cast<Sound>()); }
TEST(RingTakeAndPut, TailFirstMutantIsCaught) {
    expect_caught(play(taker_and_putter, taker_and_putter_cast<TailFirst>()));
}

// ---------------------------------------------------------------------------------------------------------
// put against put, two runs each into an empty ring.
//
//   acceptable  all four, each putter's own in order
//   forbidden   one refused

const Table two_putters = {
    " left 1 2 3 4", " left 1 3 2 4", " left 1 3 4 2", " left 3 1 2 4", " left 3 1 4 2", " left 3 4 1 2",
};

template <typename Kind, uint64_t first_index = 0> Cast<Filled<Kind, 4, 0, first_index>> two_putters_cast() {
    using World = Filled<Kind, 4, 0, first_index>;
    return {{World::template puts<1, 2>, World::template puts<3, 2>}, 4, 3};
}

TEST(RingPutAndPut, EachRunInItsOwnCell) { expect_exactly(play(two_putters, two_putters_cast<Sound>()), two_putters); }
TEST(RingPutAndPut, EachRunInItsOwnCellWhenIndicesGoRound) {
    expect_exactly(play(two_putters, two_putters_cast<Sound, UINT64_MAX - 1>()), two_putters);
}
TEST(RingPutAndPut, SurvivesAHaltedPutter) { expect_survival(two_putters_cast<Sound>()); }
TEST(RingPutAndPut, StoredPutMutantIsCaught) { expect_caught(play(two_putters, two_putters_cast<StoredPut>())); }
TEST(RingPutAndPut, WaitsForPutterMutantIsCaught) { expect_caught(halt(two_putters_cast<WaitsForPutter>(), 0)); }

// ---------------------------------------------------------------------------------------------------------
// Two putters and a taker, in a ring that cannot get full.
//
//   acceptable  a run that was put late, behind the cursor, where it stays until the ring's next lap
//   forbidden   one refused

const Table putters_and_taker = {
    "1 2",
    "2 1",
    "1 none left 2",
    "2 none left 1",
    "none 1 left 2",
    "none 2 left 1",
    "none none left 1 2",
    "none none left 2 1",
    "1 none behind 2",
    "2 none behind 1",
    "none 1 behind 2",
    "none 2 behind 1",
};

template <typename Kind> Cast<Filled<Kind, 4, 0>> putters_and_taker_cast() {
    using World = Filled<Kind, 4, 0>;
    return {{World::template puts<1>, World::template puts<2>, World::template takes<0, 2>}, 4, 2};
}

TEST(RingPuttersAndTaker, NoneRefused) {
    expect_exactly(play(putters_and_taker, putters_and_taker_cast<Sound>()), putters_and_taker);
}
TEST(RingPuttersAndTaker, SurviveAHaltedOne) { expect_survival(putters_and_taker_cast<Sound>()); }
TEST(RingPuttersAndTaker, BelievesAnOldTailMutantIsCaught) {
    expect_caught(play(putters_and_taker, putters_and_taker_cast<BelievesAnOldTail>()));
}

// ---------------------------------------------------------------------------------------------------------
// A full ring of two cells: two putters have one run each, a taker takes one.
//
//   acceptable  the oldest run; at most one of the new ones finds room
//   forbidden   both find room; a run overwritten

const Table full_ring = {
    "1 left 2 3 refused 4",
    "1 left 2 4 refused 3",
    "1 left 2 refused 3 4",
    "1 left 2 refused 4 3",
};

template <typename Kind> Cast<Filled<Kind, 2, 2>> full_ring_cast() {
    using World = Filled<Kind, 2, 2>;
    return {{World::template puts<3>, World::template puts<4>, World::template takes<0, 1>}, 3, 2};
}

TEST(RingFull, HasRoomForOneMoreThanWasTaken) { expect_exactly(play(full_ring, full_ring_cast<Sound>()), full_ring); }
TEST(RingFull, SurvivesAHaltedOne) { expect_survival(full_ring_cast<Sound>()); }
TEST(RingFull, StoredPutMutantIsCaught) { expect_caught(play(full_ring, full_ring_cast<StoredPut>())); }

// ---------------------------------------------------------------------------------------------------------
// Small rings: three runs through one cell, and through two. Both callers go on whether or not a run is refused.
//
//   acceptable  the runs in order, without those that were refused
//   forbidden   out of order; behind the cursor, because there is one putter

const Table one_cell = {
    "1 2 3",
    "1 2 none left 3",
    "1 2 none refused 3",
    "1 3 none refused 2",
    "1 none 2 left 3",
    "1 none 2 refused 3",
    "1 none 3 refused 2",
    "1 none none left 2 refused 3",
    "1 none none left 3 refused 2",
    "1 none none refused 2 3",
    "none 1 2 left 3",
    "none 1 2 refused 3",
    "none 1 3 refused 2",
    "none 1 none left 2 refused 3",
    "none 1 none left 3 refused 2",
    "none 1 none refused 2 3",
    "none none 1 left 2 refused 3",
    "none none 1 left 3 refused 2",
    "none none 1 refused 2 3",
    "none none none left 1 refused 2 3",
};
const Table two_cells = {
    "1 2 3",
    "1 2 none left 3",
    "1 2 none refused 3",
    "1 none 2 left 3",
    "1 none none left 2 3",
    "none 1 2 left 3",
    "none 1 2 refused 3",
    "none 1 none left 2 3",
    "none none 1 left 2 3",
    "none none 1 left 2 refused 3",
    "none none none left 1 2 refused 3",
};

template <typename Kind, uint64_t cell_count, uint64_t first_index = 0>
Cast<Filled<Kind, cell_count, 0, first_index>> small_cast() {
    using World = Filled<Kind, cell_count, 0, first_index>;
    return {{World::template puts<1, 3>, World::template takes<0, 3>}, 4, 2};
}

TEST(RingSmall, OneCell) { expect_exactly(play(one_cell, small_cast<Sound, 1>()), one_cell); }
TEST(RingSmall, OneCellWhenIndicesGoRound) {
    expect_exactly(play(one_cell, small_cast<Sound, 1, UINT64_MAX>()), one_cell);
}
TEST(RingSmall, TwoCells) { expect_exactly(play(two_cells, small_cast<Sound, 2>()), two_cells); }
TEST(RingSmall, TwoCellsWhenIndicesGoRound) {
    expect_exactly(play(two_cells, small_cast<Sound, 2, UINT64_MAX>()), two_cells);
}
TEST(RingSmall, SurviveAHaltedOne) {
    expect_survival(small_cast<Sound, 1>());
    expect_survival(small_cast<Sound, 2>());
}
TEST(RingSmall, TailFirstMutantIsCaught) { expect_caught(play(one_cell, small_cast<TailFirst, 1>())); }

// ---------------------------------------------------------------------------------------------------------
// A late cursor. A ring of one cell holds a run. One taker may pause between its swap and its store of the cursor,
// while another caller puts and takes more than a lap.
//
//   acceptable  a run refused by a ring that seems full
//   forbidden   no run for the second caller, which has just put one that the other did not take

const Table late_cursor = {
    "1 | 2 3 left 4",
    "1 | none 3 left 4 refused 2",
    "1 | none 3 refused 2 4",
    "3 | 1 none left 4 refused 2",
    "3 | 1 none refused 2 4",
    "4 | 1 3 refused 2",
    "none | 1 3 left 4 refused 2",
    "none | 1 3 refused 2 4",
};

template <typename Kind, uint64_t first_index = 0> struct LateCursor : Filled<Kind, 1, 1, first_index> {
    static void sleeper(LateCursor &w) { w.take(0); }
    static void busy(LateCursor &w) {
        for (const uint64_t run : {2, 3}) {
            w.put(run);
            w.take(1);
        }
        w.put(4);
    }
};

template <typename Kind, uint64_t first_index = 0> Cast<LateCursor<Kind, first_index>> late_cursor_cast() {
    using World = LateCursor<Kind, first_index>;
    return {{World::sleeper, World::busy}, 5, 3};
}

TEST(RingLateCursor, CostsNoRun) { expect_exactly(play(late_cursor, late_cursor_cast<Sound>()), late_cursor); }
TEST(RingLateCursor, CostsNoRunWhenIndicesGoRound) {
    expect_exactly(play(late_cursor, late_cursor_cast<Sound, UINT64_MAX - 1>()), late_cursor);
}
TEST(RingLateCursor, SurvivesAHaltedOne) { expect_survival(late_cursor_cast<Sound>()); }
TEST(RingLateCursor, GivesUpMutantIsCaught) {
    expect_caught(play(late_cursor, late_cursor_cast<GivesUpOnLateCursor>()));
}

// ---------------------------------------------------------------------------------------------------------
// A run that returns. Of two runs one taker takes one and puts it back, perhaps into the cell where the other taker has
// just seen it. The other takes twice.
//
//   acceptable  each run once; none while the other taker holds the last one
//   forbidden   a run in two places, or refused by the ring that it came from

const Table comes_back = {"1 2", "2 1", "2 none left 1", "1 none left 2"};

template <typename Kind> struct ComesBack : Filled<Kind, 2, 2> {
    static void hesitant(ComesBack &w) {
        const TakenRun run = w.ring.take(0);
        if (run.first != nothing && !w.ring.put(run.first))
            w.refused.push_back(run.first);
    }
    static void taker(ComesBack &w) {
        w.take(0);
        w.take(0);
    }
};

template <typename Kind> Cast<ComesBack<Kind>> comes_back_cast() {
    return {{ComesBack<Kind>::hesitant, ComesBack<Kind>::taker}, Explorer::unbounded, 3};
}

TEST(RingComesBack, EachRunOnce) { expect_exactly(play(comes_back, comes_back_cast<Sound>()), comes_back); }
TEST(RingComesBack, SurvivesAHaltedOne) { expect_survival(comes_back_cast<Sound>()); }
TEST(RingComesBack, TornTakeMutantIsCaught) { expect_caught(play(comes_back, comes_back_cast<TornTake>())); }

// ---------------------------------------------------------------------------------------------------------
// A floor. Of the runs 1, 2, 3, 4 one taker wants none below 3.
//
//   acceptable  the other taker gets an old run if it is first; each old run is taken, or counted as thrown away
//   forbidden   an old run for the taker with the floor; a run thrown away that is not old

const Table floor_and_take = {
    "3 | 1 left 4 thrown away 1",
    "3 | 2 left 4 thrown away 1",
    "3 | 4 thrown away 2",
    "4 | 3 thrown away 2",
};

template <typename Kind> Cast<Filled<Kind, 4, 4>> floor_cast() {
    using World = Filled<Kind, 4, 4>;
    return {{World::template takes<0, 1, 3>, World::template takes<1, 1>}, Explorer::unbounded, 3};
}

TEST(RingFloor, ThrowsAwayWhatIsTooOld) { expect_exactly(play(floor_and_take, floor_cast<Sound>()), floor_and_take); }
TEST(RingFloor, TornTakeMutantIsCaught) { expect_caught(play(floor_and_take, floor_cast<TornTake>())); }

// An actor that is halted while it throws runs away loses only runs that were too old.
TEST(RingFloor, SurvivesAHaltedOne) {
    using World = Filled<Sound, 4, 4>;
    const Cast<World> cast = floor_cast<Sound>();
    const OutcomeOf<World> young = [](World &w) { return w.lost_from(3); };
    for (size_t actor = 0; actor < 2; actor++)
        expect_exactly(explore_halted<World>(at_most_one_lost, cast.actors, actor, young, cast.preemptions_halted),
                       at_most_one_lost);
}

// ---------------------------------------------------------------------------------------------------------
// How far a take searches in a large ring that is almost empty, while other callers put and take. A cursor that is
// ahead of the tail must not be treated as a late one: that would cost a whole lap.
//
//   acceptable  no more cells than there were runs
//   forbidden   a lap; an endless loop

const Table short_looks = {"quick"};

template <typename Kind> struct NearlyEmpty : RingWorld<Kind, 64, UINT64_MAX - 64> {
    uint64_t most_steps = 0;

    static void looker(NearlyEmpty &w) {
        const uint64_t before = Explorer::active->own_steps();
        w.take(0);
        w.most_steps = Explorer::active->own_steps() - before;
    }
    static void busy(NearlyEmpty &w) {
        for (const uint64_t run : {1, 2}) {
            w.put(run);
            w.take(1);
        }
    }
    // Cursor and tail, both runs' cells seen and lost, the cursor again.
    std::string outcome() { return most_steps <= 2 + 2 * 2 + 1 ? "quick" : "SLOW"; }
};

template <typename Kind> Cast<NearlyEmpty<Kind>> nearly_empty_cast() {
    using World = NearlyEmpty<Kind>;
    return {{World::looker, World::busy}, 3};
}

TEST(RingNearlyEmpty, TakersLookNoFurtherThanTheRuns) {
    expect_exactly(play(short_looks, nearly_empty_cast<Sound>()), short_looks);
}
TEST(RingNearlyEmpty, GoesALapBackMutantIsCaught) {
    expect_caught(play(short_looks, nearly_empty_cast<GoesALapBack>()));
}
TEST(RingNearlyEmpty, TailReadFirstMutantIsCaught) {
    expect_caught(play(short_looks, nearly_empty_cast<TailReadFirst>()));
}

// ---------------------------------------------------------------------------------------------------------
// filled() beside a put and a take, in a ring of four cells.
//
//   acceptable  none or one
//   forbidden   four: a putter would find the ring full

const Table runs_seen = {"0", "1"};

template <typename Kind> struct Watched : RingWorld<Kind, 4> {
    uint64_t seen = 0;

    static void watcher(Watched &w) { w.seen = w.ring.filled(); }
    static void busy(Watched &w) {
        w.put(1);
        w.take(0);
    }
    std::string outcome() { return std::to_string(seen); }
};

template <typename Kind> Cast<Watched<Kind>> watched_cast() { return {{Watched<Kind>::watcher, Watched<Kind>::busy}}; }

TEST(RingFilled, IsNeverFullOfNothing) { expect_exactly(play(runs_seen, watched_cast<Sound>()), runs_seen); }
TEST(RingFilled, BelievesAnOldTailMutantIsCaught) { expect_caught(play(runs_seen, watched_cast<BelievesAnOldTail>())); }

// ---------------------------------------------------------------------------------------------------------
// The shared run: runs of two, of which 3 is left of the first. Two callers take two ids each, one at a time or
// together. They have runs of their own, 4 and 12 or 8 and 16, to install when the shared one is used up. A caller that
// loses the race to install retries, and keeps its run for the next time. With windows, a caller first draws from the
// window that its last draw left, or, the first time, from one on the first run.
//
//   acceptable  four different ids out of 3 and of those runs
//   forbidden   one TWICE, one NEVER MADE

const Table shared_ids = {"each once"};

struct NoWindow {
    bool take(int64_t *) { return false; }
};

template <typename Word, uint64_t want, typename OfWindow = NoWindow> struct SharedByTwo {
    Word word;
    std::vector<uint64_t> ids[2];

    SharedByTwo() {
        word.reset(2);
        word.install(1, 2);
    }
    // What may be drawn after `last`: the word holds the last position, and a swap from n draws n + 1.
    OfWindow window_after([[maybe_unused]] uint64_t last) {
        if constexpr (std::is_same_v<OfWindow, NoWindow>)
            return {};
        else
            return {{word.word(), last, last, Word::end_of_run(last, 2), 1, 1}};
    }
    Run draw(uint64_t *own, uint64_t most, OfWindow *window) {
        int64_t id = 0;
        if (window->take(&id))
            return {static_cast<uint64_t>(id), 1};
        for (;;) {
            uint64_t seen = 0;
            Run run = word.take(0, 2, most, &seen);
            if (run.count == 0 && word.install(seen, *own + most - 1)) {
                run = {*own, most};
                *own += 8;
            }
            if (run.count > 0) {
                *window = window_after(run.first + run.count - 1);
                return run;
            }
        }
    }
    template <int self> static void caller(SharedByTwo &w) {
        uint64_t own = 4 + 4 * self;
        OfWindow window = w.window_after(2);
        while (w.ids[self].size() < 2) {
            const Run run = w.draw(&own, want < 2 - w.ids[self].size() ? want : 2 - w.ids[self].size(), &window);
            for (uint64_t i = 0; i < run.count; i++)
                w.ids[self].push_back(run.first + i);
        }
    }
    std::string outcome() const {
        const std::set<uint64_t> known = {3, 4, 5, 8, 9, 12, 13, 16, 17};
        std::set<uint64_t> drawn(ids[0].begin(), ids[0].end());
        drawn.insert(ids[1].begin(), ids[1].end());
        for (const uint64_t id : drawn)
            if (known.count(id) == 0)
                return "NEVER MADE: " + std::to_string(id);
        return drawn.size() == 4 ? "each once" : "TWICE";
    }
    static Explored run() { return explore<SharedByTwo>(shared_ids, {caller<0>, caller<1>}); }
};

// The mutants write a value that they read some time ago.
struct TornSharedTake : SharedRun<Stepped> {
    Run take(uint64_t, uint64_t run, uint64_t, uint64_t *seen) {
        *seen = last();
        if (*seen == end_of_run(*seen, run))
            return {0, 0};
        install(last(), *seen + 1);
        return {*seen + 1, 1};
    }
};
struct SoundWindow : Window<Stepped> {};
struct TornWindow : Window<Stepped> {
    bool take(int64_t *id) {
        if (expected == limit || word->load(std::memory_order_relaxed) != expected)
            return false;
        word->store(++expected, std::memory_order_relaxed);
        *id = static_cast<int64_t>(expected);
        return true;
    }
};
// Goes on beyond the run's end, into one that another session has installed or will.
struct EndlessWindow : Window<Stepped> {
    bool take(int64_t *id) {
        limit = expected + 2;
        return Window<Stepped>::take(id);
    }
};
// Goes on from whatever it finds in the word, even in another run.
struct AnyRunWindow : Window<Stepped> {
    bool take(int64_t *id) {
        first = 0;
        limit = UINT64_MAX;
        return Window<Stepped>::take(id);
    }
};
using SharedWord = SharedRun<Stepped>;
TEST(SharedRunOfTwo, EachIdOnce) { expect_exactly(SharedByTwo<SharedWord, 1>::run(), shared_ids); }
TEST(SharedRunOfTwo, EachIdOnceInPairs) { expect_exactly(SharedByTwo<SharedWord, 2>::run(), shared_ids); }
TEST(SharedRunOfTwo, EachIdOnceByWindows) {
    expect_exactly(SharedByTwo<SharedWord, 1, SoundWindow>::run(), shared_ids);
}
TEST(SharedRunOfTwo, TornTakeMutantIsCaught) { expect_caught(SharedByTwo<TornSharedTake, 1>::run()); }
TEST(SharedRunOfTwo, TornWindowMutantIsCaught) { expect_caught(SharedByTwo<SharedWord, 1, TornWindow>::run()); }
TEST(SharedRunOfTwo, EndlessWindowMutantIsCaught) { expect_caught(SharedByTwo<SharedWord, 1, EndlessWindow>::run()); }
TEST(SharedRunOfTwo, AnyRunWindowMutantIsCaught) { expect_caught(SharedByTwo<SharedWord, 1, AnyRunWindow>::run()); }

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
    EXPECT_FALSE(window.is_open());
    EXPECT_EQ(take(), -1);
    EXPECT_EQ(word, 10u);
}

TEST(WindowAlone, OnARunOfItsOwn) {
    Window<> window = {nullptr, 7, 7, 9, 0, 1};
    int64_t value = -1;
    EXPECT_TRUE(window.take(&value));
    EXPECT_EQ(value, 7);
    EXPECT_EQ(window.expected, 8u) << "where the rest begins";
    EXPECT_TRUE(window.take(&value));
    EXPECT_EQ(value, 8);
    EXPECT_FALSE(window.take(&value));
    EXPECT_FALSE(window.is_open());
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
