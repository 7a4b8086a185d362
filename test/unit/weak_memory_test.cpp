// The model of weak_memory.hpp, on the litmus tests of the literature, by their names there.
#include "expect_outcomes.hpp"
#include "weak_memory.hpp"

#include <gtest/gtest.h>

#include <mutex>
#include <shared_mutex>
#include <string>

using namespace uidgen::test;

namespace {

constexpr auto relaxed = std::memory_order_relaxed;
constexpr auto acquire = std::memory_order_acquire;
constexpr auto release = std::memory_order_release;

struct Litmus {
    Weak<uint64_t> x, y;
    uint64_t r[4] = {0, 0, 0, 0};

    uint64_t number() const { return r[0] * 1000 + r[1] * 100 + r[2] * 10 + r[3]; }
    std::string outcome() const { return std::to_string(number()); }
};

using Actor = void (*)(Litmus &);

void expect_litmus(const Table &outcomes, const Actors<Litmus> &actors) {
    expect_exactly(explore_weakly<Litmus>(outcomes, actors), outcomes);
}

template <std::memory_order of_y> void write_both(Litmus &l) {
    l.x.store(1, relaxed);
    l.y.store(1, of_y);
}
template <std::memory_order of_y> void read_y_and_x(Litmus &l) {
    l.r[2] = l.y.load(of_y);
    l.r[3] = l.x.load(relaxed);
}

TEST(WeakMemory, MessagePassing) {
    const Table weak = {"0", "1", "10", "11"};
    expect_litmus({"0", "1", "11"}, {write_both<release>, read_y_and_x<acquire>});
    expect_litmus(weak, {write_both<relaxed>, read_y_and_x<acquire>});
    expect_litmus(weak, {write_both<release>, read_y_and_x<relaxed>});
}

TEST(WeakMemory, StoreBuffering) {
    const Actor one = [](Litmus &l) {
        l.x.store(1, release);
        l.r[2] = l.y.load(acquire);
    };
    const Actor other = [](Litmus &l) {
        l.y.store(1, release);
        l.r[3] = l.x.load(acquire);
    };
    expect_litmus({"0", "1", "10", "11"}, {one, other});
}

// The model's limit: C++ allows 11 here.
TEST(WeakMemory, LoadBufferingIsExcluded) {
    const Actor one = [](Litmus &l) {
        l.r[2] = l.x.load(relaxed);
        l.y.store(1, relaxed);
    };
    const Actor other = [](Litmus &l) {
        l.r[3] = l.y.load(relaxed);
        l.x.store(1, relaxed);
    };
    expect_litmus({"0", "1", "10"}, {one, other});
}

// Two readers may disagree on the order of two writes.
TEST(WeakMemory, IndependentReadsOfIndependentWrites) {
    const Actor of_x = [](Litmus &l) { l.x.store(1, release); };
    const Actor of_y = [](Litmus &l) { l.y.store(1, release); };
    const Actor x_and_y = [](Litmus &l) {
        l.r[0] = l.x.load(acquire);
        l.r[1] = l.y.load(acquire);
    };
    const Actor y_and_x = [](Litmus &l) {
        l.r[2] = l.y.load(acquire);
        l.r[3] = l.x.load(acquire);
    };
    Table all;
    for (const char *text : {"0", "1", "10", "11", "100", "101", "110", "111", "1000", "1001", "1010", "1011", "1100",
                             "1101", "1110", "1111"})
        all.insert(text);
    expect_litmus(all, {of_x, of_y, x_and_y, y_and_x});
}

TEST(WeakMemory, ALocationHasOneOrder) {
    const Actor writer = [](Litmus &l) {
        l.x.store(1, relaxed);
        l.x.store(2, relaxed);
    };
    const Actor reader = [](Litmus &l) {
        l.r[2] = l.x.load(relaxed);
        l.r[3] = l.x.load(relaxed);
    };
    expect_litmus({"0", "1", "2", "11", "12", "22"}, {writer, reader});
}

// 2+2W: both locations may end with the value that its actor wrote first.
TEST(WeakMemory, TwoWritesTwice) {
    struct Ends : Litmus {
        std::string outcome() const { return std::to_string(x.load(relaxed) * 10 + y.load(relaxed)); }
    };
    const Table all = {"11", "12", "21", "22"};
    const Actors<Ends> actors = {[](Ends &l) {
                                     l.x.store(1, relaxed);
                                     l.y.store(2, relaxed);
                                 },
                                 [](Ends &l) {
                                     l.y.store(1, relaxed);
                                     l.x.store(2, relaxed);
                                 }};
    expect_exactly(explore_weakly<Ends>(all, actors), all);
}

// What one actor has told another is told to a third.
TEST(WeakMemory, WriteToReadCausality) {
    const Actor writer = [](Litmus &l) { l.x.store(1, relaxed); };
    const Actor between = [](Litmus &l) {
        l.r[1] = l.x.load(relaxed);
        l.y.store(1, release);
    };
    expect_litmus({"0", "1", "10", "11", "100", "101", "111"}, {writer, between, read_y_and_x<acquire>});
}

bool swap(Weak<uint64_t> &of, uint64_t from, uint64_t to, std::memory_order order) {
    return of.compare_exchange_strong(from, to, order, relaxed);
}

// y = 1 by release, then 2 by another actor, or by the same one.
TEST(WeakMemory, ASwapContinuesAReleaseSequence) {
    const Actor relaxed_swap = [](Litmus &l) { l.r[0] = swap(l.y, 1, 2, relaxed) ? 1 : 0; };
    expect_litmus({"0", "1", "11", "1000", "1001", "1011", "1021"},
                  {write_both<release>, relaxed_swap, read_y_and_x<acquire>});
}

TEST(WeakMemory, AStoreEndsAReleaseSequence) {
    const Actor writer = [](Litmus &l) {
        write_both<release>(l);
        l.y.store(2, relaxed);
    };
    expect_litmus({"0", "1", "11", "20", "21"}, {writer, read_y_and_x<acquire>});
}

TEST(WeakMemory, ASwapIsWhole) {
    const Actor one = [](Litmus &l) { l.r[2] = swap(l.x, 0, 1, relaxed) ? 1 : 0; };
    const Actor other = [](Litmus &l) { l.r[3] = swap(l.x, 0, 2, relaxed) ? 1 : 0; };
    expect_litmus({"1", "10"}, {one, other});
}

// A store may come before a swap that was seen first, but not between it and what it replaced.
TEST(WeakMemory, NoStoreComesIntoASwap) {
    struct Ends : Litmus {
        std::string outcome() const { return std::to_string(r[2] * 10 + x.load(relaxed)); }
    };
    const Table all = {"2", "12"};
    const Actors<Ends> actors = {[](Ends &l) { l.x.store(2, relaxed); },
                                 [](Ends &l) { l.r[2] = swap(l.x, 0, 1, relaxed) ? 1 : 0; }};
    expect_exactly(explore_weakly<Ends>(all, actors), all);
}

TEST(WeakMemory, AWeakSwapMayFail) {
    const Actor swapper = [](Litmus &l) {
        uint64_t expected = 0;
        l.r[3] = l.x.compare_exchange_weak(expected, 1, relaxed, relaxed) ? 1 : 0;
    };
    expect_litmus({"0", "1"}, {swapper});
}

TEST(WeakMemory, ALockTellsTheNextHolder) {
    struct Locked : Litmus {
        WeakLock lock;
    };
    const Table all = {"0", "11"};
    const Actors<Locked> actors = {[](Locked &l) {
                                       const std::lock_guard<WeakLock> guard(l.lock);
                                       write_both<relaxed>(l);
                                   },
                                   [](Locked &l) {
                                       const std::shared_lock<WeakLock> guard(l.lock);
                                       read_y_and_x<relaxed>(l);
                                   }};
    expect_exactly(explore_weakly<Locked>(all, actors), all);
}

TEST(WeakMemory, FindsTheDeadlock) {
    struct TwoLocks {
        WeakLock one, other;
        std::string outcome() const { return "done"; }
    };
    const Table all = {"done", "DEADLOCK"};
    const Actors<TwoLocks> actors = {[](TwoLocks &l) {
                                         const std::lock_guard<WeakLock> first(l.one);
                                         const std::lock_guard<WeakLock> second(l.other);
                                     },
                                     [](TwoLocks &l) {
                                         const std::lock_guard<WeakLock> first(l.other);
                                         const std::lock_guard<WeakLock> second(l.one);
                                     }};
    expect_exactly(explore_weakly<TwoLocks>(all, actors), all);
}

TEST(WeakMemory, FindsTheEndlessLoop) {
    expect_litmus({"ENDLESS"}, {[](Litmus &l) {
                      while (l.x.load(relaxed) == 0) {
                      }
                  }});
}

// The halted actor makes none of its stores, one, or both.
TEST(WeakMemory, HaltsAnActorAtEachOfItsSteps) {
    const Table all = {"0", "1", "11"};
    const Actors<Litmus> actors = {write_both<release>, [](Litmus &l) {
                                       l.r[2] = l.y.load(acquire);
                                       l.r[3] = l.x.load(acquire);
                                   }};
    const Explored result = explore_halted<Litmus>(all, actors, 0);
    expect_exactly(result, all);
    EXPECT_GT(result.halted, 0u);
}

// A schedule that comes to a known state is not run to its end. That loses no outcome.
TEST(WeakMemory, LosesNothingByKnownStates) {
    struct Raised : Litmus {
        std::string outcome() const { return std::to_string(number()) + " " + std::to_string(x.load(relaxed)); }
    };
    const auto raise = [](Raised &l) {
        uint64_t seen = l.x.load(relaxed);
        while (seen < 3 && !l.x.compare_exchange_weak(seen, seen + 1, release, relaxed)) {
        }
        l.r[0] = seen;
    };
    const auto raise_once_more = [](Raised &l) {
        l.y.store(1, relaxed);
        l.r[1] = swap(l.x, 1, 2, release) ? 1 : 0;
    };
    const auto reader = [](Raised &l) {
        l.r[2] = l.x.load(acquire);
        l.r[3] = l.y.load(relaxed);
    };
    const Actors<Raised> actors = {raise, raise_once_more, reader};
    Table any;
    for (Explored found = explore_weakly<Raised>(any, actors); !found.forbidden.empty();
         found = explore_weakly<Raised>(any, actors))
        any.insert(found.forbidden.substr(0, found.forbidden.find(',')));
    const Explored all = explore_weakly<Raised>(any, actors, {}, Known::run_again);
    const Explored some = explore_weakly<Raised>(any, actors);
    expect_exactly(all, any);
    expect_exactly(some, any);
    EXPECT_LT(some.schedules, all.schedules);
}

} // namespace
