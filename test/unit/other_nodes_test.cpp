// A generator that takes over at the clock: what is known of the nodes of the other one's ids ahead of it. A table; and
// random histories of numbers and rows, in which every node that the new generator is told to be free is compared with
// those that the ids ahead really have.
#include "other_nodes.hpp"

#include <gtest/gtest.h>

#include <random>
#include <set>
#include <vector>

namespace uidgen::core {
namespace {

constexpr Layout small = {0, 1000, 41, 0, 4, 12};  // 16 nodes
constexpr Layout fields = {0, 1000, 41, 2, 4, 12}; // 16 worker ids in each datacenter
constexpr uint64_t hash = 5;

OtherNodes drawn(const std::vector<DrawnNode> &rows, int64_t last_number) {
    const NodesOf generator = {{-1, hash, false}, 0, false};
    return {small, generator, generator, rows.data(), static_cast<int32_t>(rows.size()), false, false, last_number};
}

DrawnNode row(int64_t id) { return {id, node_of(small, {-1, hash, false}, id).value}; }

constexpr int64_t equal = -1;

// How many numbers are left; `equal`, if the nodes are.
int64_t judged(const OtherNodes &o) {
    const Meeting got = judge_nodes(o);
    return got.is_met ? equal : got.left;
}

const std::vector<DrawnNode> some_rows = {row(2), row(3), row(4), row(6)};

TEST(JudgeNodes, NumbersComeRound) {
    EXPECT_EQ(judged(drawn(some_rows, 6)), 10);
    EXPECT_EQ(judged(drawn(some_rows, 15)), 1);
    EXPECT_EQ(judged(drawn(some_rows, 16)), 0);
    EXPECT_EQ(judged(drawn({row(4)}, 6)), 10); // rows may be missing
}

// Its ids may be those of the database that a dump was made of.
TEST(JudgeNodes, NothingWasDrawnHere) { EXPECT_EQ(judged(drawn({}, 6)), 0); }

// It may come back to the node of an earlier row, which the other one may have been given since.
TEST(JudgeNodes, AStickyGenerator) {
    OtherNodes o = drawn(some_rows, 6);
    o.next.is_sticky = true;
    EXPECT_EQ(judged(o), 0);
    o = drawn(some_rows, 6);
    o.former.is_sticky = true;
    EXPECT_EQ(judged(o), 10);
}

TEST(JudgeNodes, NothingIsKnown) {
    OtherNodes o = drawn(some_rows, 6);
    o.rows_of_another = true;
    EXPECT_EQ(judged(o), 0);
    o = drawn(some_rows, 6);
    o.rows_of_elsewhere = true; // another hash: these rows have the nodes of numbers by chance
    EXPECT_EQ(judged(o), 0);
    o = drawn(some_rows, 6);
    o.next.source.datacenter_id = 10; // the whole node, but what of the ids of the other one?
    EXPECT_EQ(judged(o), 0);
    o.layout = fields;
    o.next.source.datacenter_id = 1;
    EXPECT_EQ(judged(o), 0);
    o = drawn(some_rows, 6);
    o.former.source.worker_is_given = true;
    o.former.given = 3;
    EXPECT_EQ(judged(o), 0);
    std::vector<DrawnNode> rows = some_rows;
    rows.push_back({7, row(15).node}); // a grant of the registry
    EXPECT_EQ(judged(drawn(rows, 7)), 0);
}

TEST(JudgeNodes, AWorkerIdThatWasGiven) {
    OtherNodes o = drawn(some_rows, 6);
    o.next.source.worker_is_given = true;
    for (const int64_t number : {2, 3, 4, 6}) {
        o.next.given = row(number).node;
        EXPECT_EQ(judged(o), equal);
    }
    for (const int64_t number : {5, 7}) {
        o.next.given = row(number).node;
        EXPECT_EQ(judged(o), 0);
    }
    o.former = {{-1, hash, true}, 9, false};
    o.next.given = 9;
    EXPECT_EQ(judged(o), equal);
}

// TRUNCATE worker_node RESTART IDENTITY
TEST(JudgeNodes, TheSequenceWasSetBack) { EXPECT_EQ(judged(drawn(some_rows, 5)), 0); }

// Of both generators a datacenter id is the whole node.
TEST(JudgeNodes, ADatacenterIdWithoutAField) {
    OtherNodes o = drawn({}, 0);
    o.former.source.datacenter_id = o.next.source.datacenter_id = 7;
    EXPECT_EQ(judged(o), equal);
    o.next.source.datacenter_id = 8;
    EXPECT_EQ(judged(o), 0);
}

TEST(JudgeNodes, ADatacenterIdWithAField) {
    const NodeSource source = {1, hash, false};
    const std::vector<DrawnNode> rows = {{3, node_of(fields, source, 3).value}};
    OtherNodes o = drawn(rows, 3);
    o.layout = fields;
    o.former.source = o.next.source = source;
    EXPECT_EQ(judged(o), 13);
    o.rows_of_elsewhere = true; // no node follows from the hash
    EXPECT_EQ(judged(o), 13);
}

TEST(JudgeNodes, RandomHistories) {
    std::mt19937_64 random(20261123);
    int told = 0;
    for (int history = 0; history < 20000; history++) {
        std::vector<DrawnNode> rows;
        std::set<int64_t> ids; // nodes in ids of the other generator
        int64_t last = 0;
        for (uint64_t start = 0; start <= random() % 5; start++) {
            last += 1 + static_cast<int64_t>(random() % 5);
            ids.insert(row(last).node);
            if (random() % 3 > 0)
                rows.push_back(row(last));
        }
        const int64_t left = judged(drawn(rows, last));
        if (left <= 0)
            continue;
        told++;
        for (int64_t next = 1; next <= left; next++)
            ASSERT_EQ(ids.count(row(last + next).node), 0U) << "history " << history << " number " << next;
    }
    EXPECT_GT(told, 1000);
}

} // namespace
} // namespace uidgen::core
