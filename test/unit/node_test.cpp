// Which node a generator's ids have, given what a person set and what was drawn.

#include "node.hpp"

#include "common.hpp"

#include <cmath>
#include <random>
#include <set>
#include <vector>

namespace uidgen::core {
namespace {

Layout layout(int32_t datacenter_bits, int32_t worker_bits, bool backup = false) {
    return {0, 1000, 30, datacenter_bits, worker_bits, 1, false, backup};
}

const Layout snowflake = layout(5, 5);
const Layout leaf = layout(0, 10);
const Layout js53 = layout(0, 5, true);
const Layout baidu = layout(0, 22);
const Layout sonyflake = layout(0, 16);
const Layout instagram = layout(13, 0);
const Layout bare = layout(0, 0);

constexpr uint64_t some_hash = UINT64_C(0xFEDCBA9876543210);

TEST(Node, SplitmixsReferenceValues) {
    // The first outputs of splitmix64 with seed 0: each adds 2^64 / golden ratio to its state and mixes it.
    uint64_t state = 0;
    for (const uint64_t expected : {UINT64_C(0xE220A8397B1DCDAF), UINT64_C(0x6E789E6AA1B965F4),
                                    UINT64_C(0x06C45D188009454F), UINT64_C(0xF88BB8A8724C81EC)})
        EXPECT_EQ(mix(state += UINT64_C(0x9E3779B97F4A7C15)), expected);
}

// The cells of the chi-square are as many as fit 1,000 databases: the node's low bits, and its high bits.
void expect_even(const std::vector<uint64_t> &hashes, int32_t bits) {
    const Layout l = layout(bits / 2, bits - bits / 2);
    const int32_t cell_bits = std::min(bits, 5);
    std::vector<int64_t> low(static_cast<size_t>(1) << cell_bits);
    std::vector<int64_t> high(low.size());
    std::set<int64_t> nodes;
    for (const uint64_t hash : hashes) {
        const int64_t node = node_of(l, {-1, hash, false}, 1).value;
        ASSERT_GE(node, 0);
        ASSERT_LE(node, largest(bits));
        low[static_cast<size_t>(node & largest(cell_bits))]++;
        high[static_cast<size_t>(node >> (bits - cell_bits))]++;
        nodes.insert(node);
    }
    const double expected = static_cast<double>(hashes.size()) / static_cast<double>(low.size());
    for (const auto *counts : {&low, &high}) {
        // With 31 degrees of freedom, a ratio outside these bounds has a probability of 1 in 10,000 or less.
        EXPECT_LT(chi_square_ratio(*counts, expected), 2.3) << bits;
        EXPECT_GT(chi_square_ratio(*counts, expected), 0.2) << bits;
    }
    // How many different nodes n random draws from m have on average: m (1 - (1 - 1/m)^n).
    const auto m = static_cast<double>(largest(bits) + 1);
    const double different = m * (1 - std::pow(1 - 1 / m, static_cast<double>(hashes.size())));
    EXPECT_NEAR(static_cast<double>(nodes.size()), different, 40) << bits;
}

TEST(Node, AThousandDatabasesAreSpreadEvenly) {
    std::mt19937_64 random(20260121);
    std::vector<uint64_t> servers;   // one database each, as initdb leaves it; identifiers begin with the time
    std::vector<uint64_t> databases; // of one server, with successive oids
    const uint64_t started_s = 1767225600;
    for (uint32_t i = 0; i < 1000; i++) {
        const uint64_t at_us = random() % 1000000;
        const uint64_t system_identifier = (started_s + i * 3600) << 32 | at_us << 12 | random() % 4096;
        servers.push_back(database_hash(system_identifier, 5, 7));
        databases.push_back(database_hash(UINT64_C(7591234567890123456), 16384 + i, 7));
    }
    for (const int32_t bits : {5, 10, 16, 22}) {
        expect_even(servers, bits);
        expect_even(databases, bits);
    }
}

struct SetCase {
    const char *what;
    Layout layout;
    int64_t datacenter_id;
    Protection protection;
    NodeFields fields; // with the number 7
};

const SetCase set_cases[] = {
    {"the field holds it", snowflake, 0, Protection::set, {0, 7}},
    {"the field holds it", snowflake, 31, Protection::set, {31, 7}},
    {"no worker field", instagram, 5000, Protection::set, {5000, 0}},
    {"the whole node", leaf, 0, Protection::set, {0, 0}},
    {"the whole node", leaf, 32, Protection::set, {0, 32}},
    {"the whole node", baidu, 5000, Protection::set, {0, 5000}},
    {"the whole node", sonyflake, 65535, Protection::set, {0, 65535}},
    {"below the backup bit", js53, 15, Protection::set, {0, 15}},
    {"too large", js53, 16, Protection::automatic, {0, (0x0 + 7) & 15}},
    {"too large", leaf, 1024, Protection::automatic, {0, (0x210 + 7) & 1023}},
    {"too large", snowflake, 32, Protection::automatic, {0x10, 0x10 + 7}},
    {"none", snowflake, -1, Protection::automatic, {0x10, 0x10 + 7}},
    {"no node bits", bare, 0, Protection::set, {0, 0}},
    {"no node bits", bare, 1, Protection::automatic, {0, 0}},
};

TEST(Node, ADatacenterIdIsUsedWhereTheLayoutHoldsIt) {
    for (const SetCase &c : set_cases) {
        const Node node = node_of(c.layout, {c.datacenter_id, some_hash, false}, 7);
        EXPECT_EQ(node.protection, c.protection) << c.what << " " << c.datacenter_id;
        const NodeFields fields = fields_of_node(c.layout, node.value);
        EXPECT_EQ(fields.datacenter, c.fields.datacenter) << c.what << " " << c.datacenter_id;
        EXPECT_EQ(fields.worker, c.fields.worker) << c.what << " " << c.datacenter_id;
    }
}

// Databases with different ids share no node, whatever each of them draws.
TEST(Node, DifferentDatacenterIdsHaveDifferentNodes) {
    for (const Layout &l : {layout(2, 3), layout(0, 4), layout(3, 0), layout(0, 5, true), layout(2, 3, true)}) {
        std::vector<int64_t> owner(static_cast<size_t>(largest(drawn_node_bits(l))) + 1, -1);
        for (int64_t id = 0; holds_datacenter_id(l, id); id++)
            for (int64_t number = 0; number < 40; number++) {
                int64_t &has =
                    owner[static_cast<size_t>(node_of(l, {id, mix(static_cast<uint64_t>(id)), false}, number).value)];
                EXPECT_TRUE(has == -1 || has == id);
                has = id;
            }
    }
}

// The worker field is the number that was given, in every layout, with every datacenter id.
TEST(Node, AGivenWorkerIdIsTheWorkerField) {
    for (const Layout &l : {snowflake, leaf, layout(1, 4)})
        for (const int64_t datacenter_id : {-1, 0, 1, 5000}) {
            const NodeSource source = {datacenter_id, some_hash, true};
            const NodeFields fields = fields_of_node(l, node_of(l, source, 9).value);
            EXPECT_EQ(fields.worker, 9);
            EXPECT_LE(fields.datacenter, largest(l.datacenter_bits));
            if (l.datacenter_bits > 0 && holds_datacenter_id(l, datacenter_id)) {
                EXPECT_EQ(fields.datacenter, datacenter_id);
            }
            EXPECT_EQ(bits_by_number(l, source), 0);
        }
    EXPECT_EQ(node_of(leaf, {-1, some_hash, true}, 9).protection, Protection::set) << "nothing is left to chance";
    EXPECT_EQ(node_of(snowflake, {-1, some_hash, true}, 9).protection, Protection::automatic);
}

TEST(Node, TheNumberOfAFormerNodeGivesItAgain) {
    std::mt19937_64 random(20260122);
    for (const Layout &l : {snowflake, leaf, js53, baidu, instagram, layout(31, 31)})
        for (int i = 0; i < 1000; i++) {
            const int64_t node = static_cast<int64_t>(random() >> 1) & largest(drawn_node_bits(l));
            const NodeSource hashed = {-1, random(), false};
            EXPECT_EQ(node_of(l, hashed, number_of(l, hashed, node)).value, node);
            const NodeSource given = {fields_of_node(l, node).datacenter, random(), false};
            if (l.datacenter_bits > 0) {
                EXPECT_EQ(node_of(l, given, number_of(l, given, node)).value, node);
            }
        }
}

// What a slot keeps a node by: two datacenter ids are the same one exactly if every number gives both the same node.
TEST(Node, OneNodeForEachDatacenterIdInUse) {
    for (const Layout &l : {snowflake, leaf, js53, instagram, bare, layout(2, 3), layout(3, 0)})
        for (const bool is_given : {false, true})
            for (const int64_t one : {-1, 0, 3, 100, 5000})
                for (const int64_t other : {-1, 0, 3, 100, 5000}) {
                    bool is_same = true;
                    for (int64_t number = 0; number <= largest(drawn_node_bits(l)); number++)
                        is_same = is_same && node_of(l, {one, some_hash, is_given}, number).value ==
                                                 node_of(l, {other, some_hash, is_given}, number).value;
                    const bool is_one = used_datacenter_id(l, one, is_given) == used_datacenter_id(l, other, is_given);
                    EXPECT_TRUE(is_same || !is_one) << one << " " << other;
                    // A number may be the datacenter id that the hash gives, or have no bits to be in.
                    const bool is_by_chance = is_given || drawn_node_bits(l) == 0;
                    EXPECT_TRUE(is_one || !is_same || is_by_chance) << one << " " << other;
                }
}

// Numbers that differ in the bits that bits_by_number() counts give different nodes, and no others do.
TEST(Node, AsManyNodesAsTheNumberDecides) {
    for (const Layout &l : {snowflake, leaf, js53, instagram, layout(2, 3), layout(3, 0)})
        for (const int64_t datacenter_id : {-1, 0, 2, 100})
            for (const bool is_given : {false, true}) {
                const NodeSource source = {datacenter_id, some_hash, is_given};
                std::set<int64_t> nodes;
                for (int64_t number = 0; number < 2 << drawn_node_bits(l); number++)
                    nodes.insert(node_of(l, source, is_given ? 3 : number).value);
                EXPECT_EQ(static_cast<int64_t>(nodes.size()), largest(bits_by_number(l, source)) + 1);
            }
}

} // namespace
} // namespace uidgen::core
