// A generator that takes over at the clock: what is known of the nodes of the other one's ids ahead of it. A table; and
// random histories of numbers and rows, in which every node that the new generator is told to be free is compared with
// those that the ids ahead really have.
#include "other_nodes.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>
#include <vector>

namespace uidgen::core {
namespace {

constexpr int64_t s = 1000000;
constexpr int64_t lead_ms = longest_ahead_ms;
constexpr Layout small = {0, 1000, 41, 0, 4, 12};  // 16 nodes
constexpr Layout fields = {0, 1000, 41, 2, 4, 12}; // 16 worker ids in each datacenter
constexpr uint64_t hash = 5;

OtherNodes drawn(const std::vector<DrawnNode> &rows, int64_t last_number, int64_t now_ms) {
    const NodesOf generator = {{-1, hash, false}, false, -1};
    return {small, generator, generator, rows.data(), static_cast<int32_t>(rows.size()), false, last_number, now_ms};
}

DrawnNode row(int64_t id, int64_t at_s) { return {id, at_s * s, node_of(small, {-1, hash, false}, id).value}; }

void expect(const OtherNodes &o, NodesMeet when, int64_t left = 0) {
    const Meeting got = judge_nodes(o);
    EXPECT_EQ(static_cast<int>(got.when), static_cast<int>(when));
    if (when == NodesMeet::later) {
        EXPECT_EQ(got.left, left);
    }
}

// Row 3 is older than the clock by more than a lease can be ahead of it, row 4 is not.
const std::vector<DrawnNode> some_rows = {row(2, 100), row(3, 1000), row(4, 1900), row(6, 90000)};
constexpr int64_t now_ms = 2000 * 1000;

TEST(JudgeNodes, NumbersComeRound) {
    expect(drawn(some_rows, 6, now_ms), NodesMeet::later, 12); // 3 to 6, and 12 more
    expect(drawn(some_rows, 17, now_ms), NodesMeet::later, 1);
    expect(drawn(some_rows, 18, now_ms), NodesMeet::perhaps);
    expect(drawn(some_rows, 6, 1000 * 1000 + lead_ms), NodesMeet::later, 12);
    expect(drawn(some_rows, 6, 1000 * 1000 + lead_ms - 1), NodesMeet::later, 11);
    expect(drawn({row(4, 1900)}, 6, now_ms), NodesMeet::later, 10); // all numbers count
    expect(drawn({row(4, 1900)}, 16, now_ms), NodesMeet::perhaps);
}

// Its ids may be those of the database that a dump was made of.
TEST(JudgeNodes, NothingWasDrawnHere) {
    OtherNodes o = drawn({}, 6, now_ms);
    expect(o, NodesMeet::perhaps);
    o.former.number = 6;
    expect(o, NodesMeet::later, 10);
}

TEST(JudgeNodes, ANumberThatTheNewGeneratorHas) {
    OtherNodes o = drawn(some_rows, 6, now_ms);
    o.next.number = 5;
    expect(o, NodesMeet::later, 12);
    o.next.number = 1;
    expect(o, NodesMeet::later, 10);
    for (const int64_t number : {3, 4, 6, 19}) {
        o.next.number = number;
        expect(o, NodesMeet::now);
    }
    o.next.number = 2; // of a former incarnation: its ids lie below the clock
    expect(o, NodesMeet::later, 11);
    o.former.number = 2;
    expect(o, NodesMeet::now);
}

TEST(JudgeNodes, StickyReturnsToEarlierNodes) {
    OtherNodes o = drawn(some_rows, 6, now_ms);
    o.former.sticky = true;
    expect(o, NodesMeet::later, 10);
    o.former.sticky = false;
    o.next.sticky = true;
    expect(o, NodesMeet::later, 10);
}

TEST(JudgeNodes, NothingIsKnown) {
    OtherNodes o = drawn(some_rows, 6, now_ms);
    o.rows_of_another = true;
    expect(o, NodesMeet::perhaps);
    o = drawn(some_rows, 6, now_ms);
    o.next.source.datacenter_id = 7; // the whole node, but what of the ids of the former one?
    expect(o, NodesMeet::given);
    o.layout = fields;
    o.next.source.datacenter_id = 1;
    expect(o, NodesMeet::perhaps);
    o = drawn(some_rows, 6, now_ms);
    o.former.source.worker_is_given = true;
    o.former.number = 3;
    expect(o, NodesMeet::perhaps);
    // A grant of the registry.
    std::vector<DrawnNode> rows = some_rows;
    rows.push_back({7, 2000 * s, row(15, 0).node});
    expect(drawn(rows, 7, now_ms), NodesMeet::perhaps);
}

TEST(JudgeNodes, AWorkerIdThatWasGiven) {
    OtherNodes o = drawn(some_rows, 6, now_ms);
    o.next.source.worker_is_given = true;
    for (const int64_t number : {row(3, 0).node, row(4, 0).node, row(6, 0).node}) {
        o.next.number = number;
        expect(o, NodesMeet::now);
    }
    for (const int64_t number : {row(2, 0).node, row(5, 0).node, row(7, 0).node}) {
        o.next.number = number;
        expect(o, NodesMeet::given);
    }
    o.former = {{-1, hash, true}, false, 9};
    o.next.number = 9;
    expect(o, NodesMeet::now);
    o.next.number = 10;
    expect(o, NodesMeet::given);
}

// TRUNCATE worker_node RESTART IDENTITY
TEST(JudgeNodes, TheSequenceWasSetBack) {
    OtherNodes o = drawn({}, 0, now_ms);
    o.former.number = 6;
    expect(o, NodesMeet::perhaps);
    o.former.number = 0;
    o.next.number = 5;
    expect(o, NodesMeet::perhaps);
    expect(drawn(some_rows, 5, now_ms), NodesMeet::perhaps);
}

// Of both generators a datacenter id is the whole node.
TEST(JudgeNodes, ADatacenterIdWithoutAField) {
    OtherNodes o = drawn({}, 0, now_ms);
    o.former.source.datacenter_id = o.next.source.datacenter_id = 7;
    expect(o, NodesMeet::now);
    o.next.source.datacenter_id = 8;
    expect(o, NodesMeet::given);
}

TEST(JudgeNodes, ADatacenterIdWithAField) {
    OtherNodes o = drawn({}, 3, now_ms);
    o.former.number = 3;
    o.layout = fields;
    o.former.source.datacenter_id = o.next.source.datacenter_id = 1;
    expect(o, NodesMeet::later, 13);
}

// The clock is right, then ahead, and back. The server starts several times in either time, and rows get lost. The ids of
// a start may reach as far as the first lease of the next one may begin.
struct Starts {
    std::vector<int64_t> numbers;
    std::vector<int64_t> clocks_s;

    Starts(std::mt19937_64 &random, int64_t begin_s, int64_t ahead_s) {
        const uint64_t count = 1 + random() % 5;
        const uint64_t right = random() % (count + 1);
        for (uint64_t i = 0; i < count; i++) {
            const int64_t before = numbers.empty() ? static_cast<int64_t>(random() % 40) : numbers.back();
            const int64_t clock_s = clocks_s.empty() ? begin_s : clocks_s.back();
            numbers.push_back(before + 1 + static_cast<int64_t>(random() % 3));
            clocks_s.push_back(i < right ? clock_s + static_cast<int64_t>(random() % 3000) : ahead_s);
        }
    }
    bool reaches(size_t i, int64_t at_s) const {
        return i + 1 == numbers.size() || clocks_s[i + 1] + lead_ms / 1000 > at_s;
    }
};

TEST(JudgeNodes, RandomHistories) {
    std::mt19937_64 random(20261123);
    int told = 0;
    for (int history = 0; history < 20000; history++) {
        const Starts starts(random, 100000, 200000);
        const int64_t back_s = 100000 + static_cast<int64_t>(random() % 8000);
        std::vector<DrawnNode> rows;
        std::set<int64_t> ahead;
        for (size_t i = 0; i < starts.numbers.size(); i++) {
            const DrawnNode drawn_row = row(starts.numbers[i], starts.clocks_s[i]);
            if (starts.reaches(i, back_s))
                ahead.insert(drawn_row.node);
            if (random() % 3 > 0)
                rows.push_back(drawn_row);
        }
        const int64_t last = starts.numbers.back();
        const Meeting meeting = judge_nodes(drawn(rows, last, back_s * 1000));
        if (meeting.when != NodesMeet::later)
            continue;
        told++;
        for (int64_t next = 1; next <= meeting.left; next++)
            ASSERT_EQ(ahead.count(row(last + next, 0).node), 0u) << "history " << history << " number " << next;
    }
    EXPECT_GT(told, 1000);
}

} // namespace
} // namespace uidgen::core
