// Threads on one word, for the thread sanitizer and for the machine's own memory order: every value unique, in order,
// and durable when handed out. Each caller draws a fixed number of values and waits only for locks, so the outcome does
// not depend on the speed of the machine.
#include "callers.hpp"
#include "ring.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <thread>

using namespace uidgen::core;
using namespace uidgen::test;

namespace {

constexpr unsigned callers = 4;
constexpr size_t draws = 10000;

using ThreadGenerator = Generator<std::atomic, std::shared_mutex>;
using ThreadSegment = Segment<std::atomic, std::shared_mutex>;

// What one thread drew.
struct Drawn {
    std::vector<uint64_t> values;
    bool durable = true;
    bool in_order = true;

    void add(const Draw &draw) {
        durable = durable && draw.durable;
        in_order = in_order && (values.empty() || values.back() < draw.first);
        for (uint64_t i = 0; i < draw.count; i++)
            values.push_back(draw.first + i);
    }
};

// Without the gate the first thread might be done before the last one is made.
template <typename Caller> std::vector<Drawn> run_callers(const Caller &caller) {
    std::vector<Drawn> drawn(callers);
    std::vector<std::thread> threads;
    std::atomic<unsigned> arrived{0};
    for (unsigned i = 0; i < callers; i++)
        threads.emplace_back([&, i] {
            arrived.fetch_add(1);
            while (arrived.load() < callers)
                std::this_thread::yield();
            caller(i, drawn[i]);
        });
    for (std::thread &thread : threads)
        thread.join();
    return drawn;
}

void expect_sound(const std::vector<Drawn> &drawn) {
    std::vector<uint64_t> all;
    for (const Drawn &one : drawn) {
        EXPECT_TRUE(one.durable) << "handed out before its record was durable";
        EXPECT_TRUE(one.in_order) << "a caller's own values out of order";
        EXPECT_GE(one.values.size(), draws);
        all.insert(all.end(), one.values.begin(), one.values.end());
    }
    EXPECT_FALSE(has_duplicates(all)) << "a value twice";
}

template <typename Counter> class Threads : public ::testing::Test {};
using Counters = ::testing::Types<ThreadGenerator, ThreadSegment>;
TYPED_TEST_SUITE(Threads, Counters);

TYPED_TEST(Threads, UniqueOrderedDurable) {
    const auto counter = std::make_unique<TypeParam>();
    expect_sound(run_callers([&counter](unsigned self, Drawn &drawn) {
        std::mt19937_64 random(self);
        for (size_t i = 0; i < draws; i++)
            drawn.add(counter->draw(1 + random() % 12));
    }));
}

TYPED_TEST(Threads, WhileTheClockStepsBackAndTheCounterMoves) {
    const auto counter = std::make_unique<TypeParam>();
    expect_sound(run_callers([&counter](unsigned self, Drawn &drawn) {
        std::mt19937_64 random(100 + self);
        for (size_t i = 0; i < draws; i++) {
            drawn.add(counter->draw(1 + random() % 12));
            if (random() % 50 == 0)
                counter->step_back();
            if (random() % 50 == 0)
                counter->move_counter();
        }
    }));
}

// P2: a value is above all values that were returned, to any caller, before its call began.
TYPED_TEST(Threads, OrderedAcrossCallers) {
    const auto counter = std::make_unique<TypeParam>();
    std::atomic<uint64_t> highest{0};
    std::atomic<uint64_t> out_of_order{0};
    expect_sound(run_callers([&](unsigned, Drawn &drawn) {
        for (size_t i = 0; i < draws; i++) {
            const uint64_t before = highest.load(std::memory_order_acquire);
            const Draw draw = counter->draw(1);
            if (draw.first <= before)
                out_of_order.fetch_add(1, std::memory_order_relaxed);
            raise_to(highest, draw.first, std::memory_order_release);
            drawn.add(draw);
        }
    }));
    EXPECT_EQ(out_of_order.load(), 0u);
}

// The bare word: threads without pauses take all positions of a lease, and none is lost.
TEST(Threads, ALeaseIsHandedOutWhole) {
    PositionAllocator<> word;
    constexpr uint64_t first = 1000, positions = callers * draws;
    word.reset(first);
    word.publish(first, first + positions, 1);
    word.confirm(local, first + positions);
    const std::vector<Drawn> drawn = run_callers([&word](unsigned, Drawn &mine) {
        for (;;) {
            const auto run = word.take(0, word.usable(local), 3);
            if (run.count == 0)
                return;
            mine.add({run.first, run.count, true});
        }
    });
    std::vector<uint64_t> all;
    for (const Drawn &one : drawn)
        all.insert(all.end(), one.values.begin(), one.values.end());
    EXPECT_EQ(all.size(), positions);
    EXPECT_FALSE(has_duplicates(all));
}

// A ring: two callers draw positions from a word and put them, two take them. The indices wrap after a few puts. The
// data of a position is plain memory, so the sanitizer checks that a run publishes what its putter wrote.
template <uint64_t cell_count> struct SharedRing {
    static constexpr uint64_t first = 1, end = first + callers * draws;

    RingHints<> hints;
    std::atomic<uint64_t> cells[cell_count];
    Ring<> ring{&hints, cells, cell_count};
    PositionAllocator<> word;
    std::vector<uint64_t> durable = std::vector<uint64_t>(end);
    std::atomic<unsigned> putters_left{callers / 2};

    SharedRing() {
        hints.reset(UINT64_MAX - 100);
        ring.clear();
        word.reset(first);
        word.publish(first, end, 1);
        word.confirm(local, end);
    }
    void put_all() {
        for (;;) {
            const auto run = word.take(0, word.usable(local), 1);
            if (run.count == 0)
                break;
            durable[run.first] = run.first;
            while (!ring.put(run.first))
                std::this_thread::yield();
        }
        putters_left.fetch_sub(1);
    }
    void take_all(Drawn &mine) {
        for (;;) {
            const bool last_look = putters_left.load() == 0;
            const TakenRun run = ring.take(0);
            if (run.first != empty_cell)
                mine.values.push_back(durable[run.first]);
            else if (last_look)
                return;
            else
                std::this_thread::yield();
        }
    }
    // Runs that were put late, behind the cursor.
    std::vector<uint64_t> rest() const {
        std::vector<uint64_t> left;
        for (const auto &cell : cells)
            if (cell.load() != empty_cell)
                left.push_back(cell.load());
        return left;
    }
};

template <typename T> class ThreadsOnARing : public ::testing::Test {};
using Rings = ::testing::Types<SharedRing<1>, SharedRing<2>, SharedRing<64>>;
TYPED_TEST_SUITE(ThreadsOnARing, Rings);

TYPED_TEST(ThreadsOnARing, EachPositionOnceAndNoneLost) {
    const auto shared = std::make_unique<TypeParam>();
    const std::vector<Drawn> drawn = run_callers([&shared](unsigned self, Drawn &mine) {
        if (self % 2 == 0)
            shared->put_all();
        else
            shared->take_all(mine);
    });
    std::vector<uint64_t> all = shared->rest();
    for (const Drawn &one : drawn)
        all.insert(all.end(), one.values.begin(), one.values.end());
    EXPECT_EQ(all.size(), callers * draws);
    EXPECT_FALSE(has_duplicates(all)) << "a position twice";
}

} // namespace
