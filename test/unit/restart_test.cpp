// A restart of a generator whose clock was far ahead: every history of a small generator, in which no pair (node, tick)
// may come twice. A step is a draw, a restart, or a number that another generator draws, each at one of a few clocks,
// with and without a new incarnation, with and without the row of worker_node. Each mutant of the argument must break
// it.
#include "restart.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace uidgen::core {
namespace {

// With a tick of ten minutes the longest lead of a lease is one tick. Each tick has one id.
constexpr int64_t tick_us = longest_ahead_ms * 1000;

enum class Mutant {
    none,
    forgets_former, // the nodes of earlier restarts
    forgets_until,  // the end of the ids before an earlier restart
    loses_a_number, // the record of a number is not durable
    counts_no_lead, // a row counts although its lease was ahead of the clock
    unpins_early,   // a new incarnation draws a node of its own
    trusts_rows,    // as if none were missing
    forgets_sticky, // rows that a sticky generator takes its node from
};

struct Kind {
    const char *name;
    int32_t datacenter_bits;
    int32_t worker_bits;
    int64_t datacenter_id;
    Numbers numbers;
};

struct World {
    Layout layout;
    ClockPolicy policy;
    NodeSource source;
    Numbers numbers;
    Mutant mutant;

    int64_t mark = no_lease_yet;
    int64_t last_number = 0;
    int64_t pinned = no_node;
    std::vector<int64_t> former;
    std::vector<DrawnNode> rows;
    std::optional<int64_t> node; // of the incarnation
    int64_t next = 0;            // its next tick
    std::set<std::pair<int64_t, int64_t>> used;
    bool twice = false;
    int restarts = 0;

    World(const Kind &kind, Mutant m)
        : layout{0, tick_us, 5, kind.datacenter_bits, kind.worker_bits, 0}, policy{0, 32, 1, 1},
          source{kind.datacenter_id, 2, kind.numbers == Numbers::given}, numbers(kind.numbers), mutant(m) {}

    std::string key() const {
        std::string text;
        const auto put = [&text](int64_t value) { text += std::to_string(value) + ","; };
        for (const int64_t value :
             {mark, last_number, pinned, node.value_or(no_node), next, policy.restart.mark, policy.restart.until})
            put(value);
        for (const int64_t value : former)
            put(value);
        for (const DrawnNode &row : rows)
            text += "r", put(row.id), put(row.created_us), put(row.node);
        for (const auto &[of, tick] : used)
            text += "u", put(of), put(tick);
        return text;
    }

    int64_t draw_node(int64_t now, bool row_is_written) {
        const int64_t number = ++last_number;
        int64_t drawn = node_of(layout, source, number).value;
        for (const DrawnNode &row : rows) // a sticky generator moves between two hosts
            if (numbers == Numbers::sticky && row.id % 2 == number % 2)
                drawn = row.node;
        if (pinned != no_node && is_pinned(policy, next) && mutant != Mutant::unpins_early)
            drawn = pinned;
        if (row_is_written)
            rows.push_back({number, now * tick_us, drawn});
        return drawn;
    }

    void draw(int64_t now, bool new_incarnation, bool row_is_written) {
        if (new_incarnation || !node)
            next = ticks_of_mark(layout, policy, mark) + 1, node.reset();
        const int64_t tick = std::max(next, now);
        if (tick > now + policy.max_ahead || tick >= policy.end)
            return;
        if (!node)
            node = draw_node(now, row_is_written);
        next = tick + 1;
        mark = mark_of_ticks(policy, tick);
        twice = twice || !used.insert({*node, tick}).second;
    }

    RestartFault restart(int64_t now, int64_t wanted = no_node) {
        const NodeSet none = {};
        NodeSet kept = {};
        for (const int64_t of : former)
            kept.add(of);
        std::vector<DrawnNode> seen = rows;
        for (DrawnNode &row : seen)
            if (mutant == Mutant::counts_no_lead)
                row.created_us -= tick_us;
        if (mutant == Mutant::forgets_former)
            kept = {};
        RestartState state = {layout,
                              policy,
                              source,
                              numbers,
                              0,
                              mark,
                              now,
                              pinned,
                              &kept,
                              seen.data(),
                              static_cast<int32_t>(seen.size()),
                              last_number,
                              false,
                              &none};
        if (mutant == Mutant::loses_a_number && last_number > 0)
            state.last_number--;
        if (mutant == Mutant::trusts_rows)
            state.last_number = seen.empty() ? 0 : seen.back().id;
        if (mutant == Mutant::forgets_sticky)
            state.numbers = Numbers::drawn;
        NodeSet next_former = {};
        const RestartPlan plan = plan_restart(state, wanted, &next_former);
        if (plan.fault != RestartFault::none)
            return plan.fault;
        policy.restart = plan.restart;
        if (mutant == Mutant::forgets_until)
            policy.restart.until = std::min(policy.restart.until, ticks_of_mark(layout, policy, 0) + 3);
        pinned = plan.node;
        former.assign(next_former.nodes, next_former.nodes + next_former.count);
        node.reset();
        restarts++;
        return plan.fault;
    }
};

struct Search {
    std::set<std::string> seen;
    int64_t restarts = 0;
    bool twice = false;

    void from(const World &world, int depth) {
        if (twice || depth == 0 || !seen.insert(std::to_string(depth) + ":" + world.key()).second)
            return;
        const auto go = [&](const std::function<void(World *)> &step) {
            World after = world;
            step(&after);
            twice = twice || after.twice;
            restarts += after.restarts > world.restarts ? 1 : 0;
            from(after, depth - 1);
        };
        for (const int64_t now : {1, 2, 4, 6})
            for (const bool row_is_written : {true, false})
                go([&](World *w) { w->draw(now, true, row_is_written); });
        go([](World *w) { w->draw(6, false, true); });
        for (const int64_t now : {2, 3})
            go([&](World *w) { (void)w->restart(now); });
        if (world.last_number < 4)
            go([](World *w) { w->last_number++; });
    }
};

Search search(const Kind &kind, Mutant mutant, int depth) {
    Search all;
    all.from(World(kind, mutant), depth);
    return all;
}

const Kind by_hash = {"by hash", 0, 1, -1, Numbers::drawn};
const Kind four_nodes = {"four nodes", 1, 1, -1, Numbers::drawn};
const Kind by_datacenter = {"by datacenter", 1, 1, 1, Numbers::drawn};
const Kind without_worker = {"without worker", 1, 0, -1, Numbers::drawn};
const Kind sticky = {"sticky", 0, 2, -1, Numbers::sticky};

constexpr int depth = 6;

TEST(Restart, NoNodeHasATickTwice) {
    for (const Kind &kind : {by_hash, four_nodes, by_datacenter, without_worker, sticky}) {
        SCOPED_TRACE(kind.name);
        const Search all = search(kind, Mutant::none, depth);
        EXPECT_FALSE(all.twice);
        EXPECT_GT(all.restarts, 0);
    }
}

TEST(Restart, EachMutantIsCaught) {
    EXPECT_TRUE(search(by_hash, Mutant::forgets_former, depth).twice);
    EXPECT_TRUE(search(by_hash, Mutant::forgets_until, depth).twice);
    EXPECT_TRUE(search(by_hash, Mutant::loses_a_number, depth).twice);
    EXPECT_TRUE(search(by_hash, Mutant::counts_no_lead, depth).twice);
    EXPECT_TRUE(search(by_hash, Mutant::unpins_early, depth).twice);
    EXPECT_TRUE(search(by_hash, Mutant::trusts_rows, depth).twice);
    EXPECT_TRUE(search(sticky, Mutant::forgets_sticky, depth).twice);
}

// What the search cannot reach: each refusal, and what a person may ask for.
TEST(Restart, IsRefusedAtTheWrongMoment) {
    World world(by_hash, Mutant::none);
    EXPECT_EQ(world.restart(2), RestartFault::not_ahead); // it has no ids
    world.draw(6, true, true);
    EXPECT_EQ(world.restart(6), RestartFault::not_ahead);
    EXPECT_EQ(world.restart(5), RestartFault::not_ahead); // within max_ahead
    EXPECT_EQ(world.restart(0), RestartFault::before_epoch);
    EXPECT_EQ(world.restart(-1), RestartFault::before_epoch);
    EXPECT_EQ(world.restart(4), RestartFault::none);
    EXPECT_EQ(world.restart(4), RestartFault::not_ahead);
}

TEST(Restart, FailsOnceEachNodeMayBeInUse) {
    World world(four_nodes, Mutant::none);
    world.draw(6, true, true);
    for (int i = 0; i < 3; i++) {
        EXPECT_EQ(world.restart(2), RestartFault::none);
        world.draw(6, true, true);
    }
    EXPECT_EQ(world.restart(2), RestartFault::no_node_left);
    EXPECT_EQ(world.restart(2, world.pinned), RestartFault::node_in_use);
    world.draw(8, true, true); // beyond the ids of the earlier terms, so their nodes count no longer
    world.draw(12, false, true);
    EXPECT_EQ(world.restart(9), RestartFault::none);
    EXPECT_FALSE(world.twice);
}

TEST(Restart, TakesTheNodeThatAPersonGives) {
    World world({"static", 0, 2, -1, Numbers::given}, Mutant::none); // its number is 0
    world.draw(6, true, false);
    EXPECT_EQ(world.restart(2), RestartFault::needs_node);
    EXPECT_EQ(world.restart(2, 0), RestartFault::node_in_use);
    EXPECT_EQ(world.restart(2, 3), RestartFault::none);
    EXPECT_EQ(world.pinned, 3);
    world.draw(6, true, false);
    EXPECT_EQ(world.restart(2, 3), RestartFault::node_in_use);
    EXPECT_EQ(world.restart(2, 0), RestartFault::node_in_use);
    EXPECT_EQ(world.restart(2, 1), RestartFault::none);
}

TEST(Restart, RefusesTheOnlyNodeWithoutARow) {
    World world({"one node", 0, 2, 3, Numbers::drawn}, Mutant::none); // the datacenter id is the whole node
    world.draw(6, true, false);
    EXPECT_EQ(world.restart(2), RestartFault::needs_node);
    EXPECT_EQ(world.restart(2, 3), RestartFault::node_in_use);
    EXPECT_EQ(world.restart(2, 1), RestartFault::none);
}

// The search does not reach these: the clock is before the last restart, and all nodes have been drawn.
TEST(Restart, CountsIdsBeforeTheLastRestart) {
    World world(four_nodes, Mutant::none);
    world.draw(2, true, true);
    world.draw(2, true, true); // this row shows that no id from tick 3 on has the first number
    world.draw(6, false, true);
    EXPECT_EQ(world.restart(3), RestartFault::none);
    world.draw(5, true, true);
    world.last_number++;
    EXPECT_EQ(world.restart(1), RestartFault::no_node_left);
    world.draw(2, true, true);
    EXPECT_FALSE(world.twice);
}

TEST(Restart, KnowsNoNodeThatTheLastOneDropped) {
    World world(four_nodes, Mutant::none);
    world.draw(4, true, true);
    EXPECT_EQ(world.restart(2), RestartFault::none);
    world.draw(2, true, true);
    world.draw(8, false, true);
    EXPECT_EQ(world.restart(6), RestartFault::none); // beyond the first one's ids
    world.last_number += 2;
    EXPECT_EQ(world.restart(2), RestartFault::no_node_left);
    world.draw(4, true, true);
    EXPECT_FALSE(world.twice);
}

TEST(Restart, OfNewWorkerBeginsTheNextTerm) {
    World world(by_hash, Mutant::none);
    world.policy.when_back = WhenBack::new_worker; // two worker ids, so two terms
    world.draw(6, true, true);
    EXPECT_EQ(world.restart(2, 0), RestartFault::asks_no_node);
    EXPECT_EQ(world.restart(2), RestartFault::none);
    EXPECT_EQ(world.pinned, no_node);
    EXPECT_EQ(ticks_of_mark(world.layout, world.policy, world.mark), world.policy.end + 1);
    EXPECT_EQ(first_term(world.policy), 0);
    world.mark = mark_of_ticks(world.policy, world.policy.end + 9);
    EXPECT_EQ(world.restart(2), RestartFault::no_term);
}

TEST(Restart, KnowsNoNumbersOfAnotherDatabase) {
    const World world(four_nodes, Mutant::none);
    const NodeSet none = {};
    RestartState state = {
        world.layout, world.policy, world.source, Numbers::drawn, 0, 9, 2, no_node, &none, nullptr, 0, 1, true, &none};
    NodeSet former = {};
    EXPECT_EQ(plan_restart(state, no_node, &former).fault, RestartFault::no_node_left);
    EXPECT_EQ(plan_restart(state, 3, &former).fault, RestartFault::none); // by the word of a person
    EXPECT_TRUE(former.all);                                              // so the next one needs one, too
    state.rows_of_another = false;
    former = {};
    EXPECT_EQ(plan_restart(state, no_node, &former).fault, RestartFault::none);
}

TEST(Restart, HasNoTermAboveAMarkThatTheOwnerRaisedTooFar) {
    World world(by_hash, Mutant::none);
    world.mark = INT64_MAX;
    EXPECT_EQ(world.restart(2), RestartFault::no_term);
    world.mark = INT64_C(5) << max_time_bits;
    EXPECT_EQ(world.restart(2), RestartFault::none);
    EXPECT_EQ(first_term(world.policy), 6);
}

TEST(Restart, TheLargestIdIsThatOfAnyTerm) {
    World world(by_hash, Mutant::none);
    world.draw(6, true, true);
    const int64_t largest_before = largest_leased_id(world.layout, world.policy, world.mark);
    EXPECT_EQ(world.restart(2), RestartFault::none);
    EXPECT_EQ(largest_leased_id(world.layout, world.policy, world.mark), largest_before);
}

} // namespace
} // namespace uidgen::core
