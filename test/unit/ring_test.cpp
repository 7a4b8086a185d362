// The ring of cached mode: alone, in every interleaving of a few callers, and with one of them halted for ever at each
// of its steps.
//
// The tables list the acceptable outcomes. Forbidden everywhere, and named in capitals in an outcome: a position
// TWICE; a position NEVER PUT; a position LOST though nobody was halted; a ring that is STUCK afterwards; an ENDLESS
// loop.
#include "expect_outcomes.hpp"
#include "ring.hpp"

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
// One caller. The indices start at 0, and so that they go round after each of the first few puts.

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
    // Three laps and more, at each height of the water.
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

// Invariant 3: any value of the cursor costs time or room. Here it stands up to three laps off its place, behind and
// ahead, and half the ring of indices away; the ring holds from none to all of its runs.
TEST_P(RingAlone, RecoversFromAnyCursor) {
    const uint64_t half = UINT64_C(1) << 63;
    for (uint64_t runs = 0; runs <= 4; runs++)
        for (const uint64_t offset :
             {UINT64_C(1), UINT64_C(2), UINT64_C(4), UINT64_C(5), UINT64_C(12), half - 1, half, half + 1, -UINT64_C(12),
              -UINT64_C(5), -UINT64_C(4)}) {
            PlainRing<4> r(GetParam());
            r.put_all(91, 3);
            r.take_all();
            Positions expected;
            for (uint64_t i = 1; i <= runs; i++)
                expected.push_back(i);
            ASSERT_EQ(r.put_all(1, runs), runs);

            r.hints.cursor.store(r.tail() - runs - offset);
            EXPECT_LE(r.ring.filled(), 4u);
            if (r.ring.put(77)) // it may think that it is full, but not that there is room where there is none
                expected.push_back(77);
            Positions taken = r.take_all();
            std::sort(taken.begin(), taken.end()); // order may suffer
            EXPECT_EQ(taken, expected) << runs << " runs, cursor off by " << offset;

            EXPECT_EQ(r.ring.filled(), 0u);
            EXPECT_EQ(r.put_all(11, 9), 4u);
            EXPECT_EQ(r.take_all(), (Positions{11, 12, 13, 14}));
        }
}

// A cursor that is one lap or less behind goes over cells that others have emptied.
TEST_P(RingAlone, GoesOverEmptyCells) {
    PlainRing<4> r(GetParam());
    r.put_all(1, 4);
    const uint64_t before = r.cursor();
    r.ring.take(0);
    r.ring.take(0);
    r.hints.cursor.store(before);
    EXPECT_EQ(r.take_all(), (Positions{3, 4}));
}

// A putter that swapped late: its run stands behind the cursor. Cell 1 of 4 here, as many indices back as may be.
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

// A putter that has filled its cell and no more: the run is out of reach until the next put, which comes after it.
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

// A ring, its hints and its cells, of atoms that give way.
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

// What the mutants of the ring's own steps need.
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

// Takes a cursor that is out of reach for an empty ring.
struct GivesUpRing : OpenRing {
    using OpenRing::OpenRing;
    TakenRun take(uint64_t floor) {
        const uint64_t i = cursor.load(relaxed);
        const uint64_t end = tail.load(relaxed);
        return end - i > count ? TakenRun{empty_cell, 0} : take_between(i, end, floor);
    }
};
using GivesUpOnLateCursor = Kind<Stepped, GivesUpRing>;

// Believes that the cursor is never ahead of the tail that it read before.
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

    // How many runs are gone: the halted actor's own, at most.
    std::string losses() {
        const Found found = find_rest();
        const uint64_t lost = lost_runs(found);
        return (lost == 0 ? "none lost" : lost == 1 ? "one lost" : "MORE LOST") + faults(found);
    }

  private:
    struct Found {
        Positions left;   // what takers find
        Positions behind; // what they will find when the ring has come round
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

    // Whatever happened before, the ring works, and two laps bring out what was behind the cursor. It may seem full until
    // somebody has taken.
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

// A scenario: World, its actors, and how many preemptions are enough. Whoever is halted loses at most its own run, and
// the others end in a bounded number of steps.
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
    template <uint64_t first, uint64_t count = 1> static void puts(Filled &w) {
        w.template put_times<first, count>(w);
    }
};

// ---------------------------------------------------------------------------------------------------------
// take against take. Three runs, of which one taker wants two and the other one.
//
//   acceptable  each run once, each taker's own in the order in which they were put
//   forbidden   none, while there is a run

const Table two_takers = {"1 2 | 3", "1 3 | 2", "2 3 | 1"};

template <typename Kind, uint64_t first_index = 0> Cast<Filled<Kind, 4, 3, first_index>> two_takers_cast() {
    using World = Filled<Kind, 4, 3, first_index>;
    return {{World::template takes<0, 2>, World::template takes<1, 1>}};
}

TEST(RingTakeAndTake, EachRunOnce) { expect_exactly(play(two_takers, two_takers_cast<Sound>()), two_takers); }
TEST(RingTakeAndTake, EachRunOnceWhenIndicesGoRound) {
    expect_exactly(play(two_takers, two_takers_cast<Sound, UINT64_MAX - 1>()), two_takers);
}
TEST(RingTakeAndTake, SurvivesAHaltedTaker) { expect_survival(two_takers_cast<Sound>()); }
TEST(RingTakeAndTake, TornTakeMutantIsCaught) { expect_caught(play(two_takers, two_takers_cast<TornTake>())); }

// ---------------------------------------------------------------------------------------------------------
// take against put, with room to spare. The first run is there, a putter brings the second, and a taker takes twice.
//
//   acceptable  the runs in order, the second if it came before
//   forbidden   a run behind the cursor

const Table taker_and_putter = {"1 2", "1 none left 2"};

template <typename Kind> Cast<Filled<Kind, 4, 1>> taker_and_putter_cast() {
    using World = Filled<Kind, 4, 1>;
    return {{World::template takes<0, 2>, World::template puts<2>}};
}

TEST(RingTakeAndPut, InOrder) { expect_exactly(play(taker_and_putter, taker_and_putter_cast<Sound>()), taker_and_putter); }
TEST(RingTakeAndPut, SurvivesAHaltedOne) { expect_survival(taker_and_putter_cast<Sound>()); }
TEST(RingTakeAndPut, TailFirstMutantIsCaught) {
    expect_caught(play(taker_and_putter, taker_and_putter_cast<TailFirst>()));
}

} // namespace
