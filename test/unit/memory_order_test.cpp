// The memory orders of src/core: with atomics that return every value that the memory model allows (weak_memory.hpp),
// all interleavings of a few processes on each class.
//
//   1. The code as it stands: each history has the outcomes of its table and no others, and a process that ends for ever
//      at any step harms no other one.
//   2. Each order stronger than relaxed: weakened, it makes some history fail. No order is stronger than it must be.
//   3. Each swap: as a load and a store, it makes some history fail.
#include "memory_order_histories.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <string>
#include <vector>

using namespace uidgen::test;

namespace {

const Explored &counted(const Explored &result) {
    std::cout << "  " << result.schedules << " schedules" << std::endl;
    return result;
}

// All outcomes of the table, and no others.
void expect_exactly(const Explored &result, const Table &acceptable) {
    EXPECT_EQ(counted(result).forbidden, "");
    EXPECT_EQ(result.seen, acceptable) << "some acceptable outcomes never came";
}

struct History {
    std::string subject; // the file in src/core that it is about
    std::string name;
    Table outcomes;
    Explored (*run)();
};

template <typename World> History history(const char *subject, const char *name) {
    return {subject, name, World::outcomes(), [] { return explore_weakly<World>(World::outcomes(), World::actors()); }};
}

const std::vector<History> &histories() {
    const char *const allocator = "position_allocator.hpp";
    static const std::vector<History> all = {
        history<ConfirmAndTake>(allocator, "ConfirmAndTake"),
        history<PublishAndRead>(allocator, "PublishAndRead"),
        history<TakeAndDiscard<14>>(allocator, "TakeAndDiscardPart"),
        history<TakeAndDiscard<20>>(allocator, "TakeAndDiscardAll"),
        history<DrawByWindows>(allocator, "DrawByWindows"),
        history<BackupDraws>(allocator, "BackupDraws"),
        history<CallersInOrder>(allocator, "CallersInOrder"),
        history<WholeCalls>(allocator, "WholeCalls"),
        history<SegmentTakers>(allocator, "SegmentTakers"),
        history<SegmentDiscard>(allocator, "SegmentDiscard"),
        history<SegmentRoom>(allocator, "SegmentRoom"),
        history<SegmentWindows>(allocator, "SegmentWindows"),
    };
    return all;
}

// A history of the code as it stands, run once, and the orders that it asked for.
struct Played {
    Explored result;
    std::vector<OrderSite> sites;
};

const Played &played(size_t which) {
    static const std::vector<Played> all = [] {
        std::vector<Played> list;
        for (const History &history : histories()) {
            weak_memory.seen_sites.clear();
            const Explored result = history.run();
            list.push_back({result, weak_memory.seen_sites});
        }
        return list;
    }();
    return all[which];
}

class MemoryOrder : public ::testing::TestWithParam<size_t> {};

TEST_P(MemoryOrder, IsEnough) { expect_exactly(played(GetParam()).result, histories()[GetParam()].outcomes); }

INSTANTIATE_TEST_SUITE_P(Histories, MemoryOrder, ::testing::Range<size_t>(0, histories().size()),
                         [](const auto &of) { return histories()[of.param].name; });

template <typename World> void expect_survival(const Table &outcomes) {
    for (size_t actor = 0; actor < World::actors().size(); actor++) {
        const Explored result = explore_halted<World>(outcomes, World::actors(), actor);
        EXPECT_EQ(counted(result).forbidden, "");
        EXPECT_GT(result.halted, 0u);
    }
}

// Nobody is halted under a lock: PostgreSQL itself restarts when a process dies there.
TEST(MemoryOrder, AHaltedProcessHarmsNobody) {
    expect_survival<DrawByWindows>({"0", "1", "2", "3", "4"});
    expect_survival<TakeAndDiscard<20>>({"sound, written 16", "sound, written 20", "sound, written 22"});
}

std::string show(std::memory_order order) {
    switch (order) {
    case std::memory_order_relaxed:
        return "relaxed";
    case std::memory_order_acquire:
        return "acquire";
    case std::memory_order_release:
        return "release";
    case std::memory_order_acq_rel:
        return "acq_rel";
    default:
        return "another order";
    }
}

std::string show(const OrderSite &site) {
    return std::filesystem::path(site.file).filename().string() + ":" + std::to_string(site.line) + " " +
           show(site.order) + (site.of == OrderSite::failed_swap ? " (if the swap fails)" : "");
}

std::vector<std::memory_order> weaker_than(std::memory_order order) {
    if (order == std::memory_order_relaxed)
        return {};
    if (order == std::memory_order_acq_rel)
        return {std::memory_order_acquire, std::memory_order_release};
    return {std::memory_order_relaxed};
}

bool is_in_core(const OrderSite &site) { return std::string(site.file).find("src/core/") != std::string::npos; }

// The name of the history that fails with weak_memory as it is set; "": none.
std::string caught_by(const std::string &subject, const OrderSite &site) {
    for (size_t i = 0; i < histories().size(); i++) {
        const std::vector<OrderSite> &sites = played(i).sites;
        if (histories()[i].subject != subject || std::find(sites.begin(), sites.end(), site) == sites.end())
            continue;
        const Explored result = histories()[i].run();
        if (!result.forbidden.empty())
            return histories()[i].name + ": " + result.forbidden;
    }
    return "";
}

void expect_caught(const std::string &subject, const OrderSite &site, const std::string &what) {
    const std::string caught = caught_by(subject, site);
    EXPECT_NE(caught, "") << what << " makes no history fail";
    std::cout << "  " << what << ": " << caught << std::endl;
}

// An order that one class asks for by a function of another file is weakened for each class by itself.
TEST(MemoryOrders, EachIsNeeded) {
    std::set<std::string> done;
    for (size_t i = 0; i < histories().size(); i++)
        for (const OrderSite &site : played(i).sites)
            for (const std::memory_order weaker : weaker_than(site.order)) {
                const std::string &subject = histories()[i].subject;
                const std::string what = subject + ": " + show(site) + " as " + show(weaker);
                if (!is_in_core(site) || !done.insert(what).second)
                    continue;
                weak_memory.weakened = &site;
                weak_memory.weakened_to = weaker;
                expect_caught(subject, site, what);
                weak_memory.weakened = nullptr;
            }
}

TEST(MemoryOrders, EachSwapIsNeeded) {
    std::set<std::string> done;
    for (size_t i = 0; i < histories().size(); i++)
        for (const OrderSite &site : played(i).sites) {
            const std::string &subject = histories()[i].subject;
            const std::string what = subject + ": " + show(site) + " as a load and a store";
            if (site.of != OrderSite::swap || !is_in_core(site) || !done.insert(what).second)
                continue;
            weak_memory.torn = &site;
            expect_caught(subject, site, what);
            weak_memory.torn = nullptr;
        }
}

} // namespace
