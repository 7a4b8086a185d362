// The memory orders of src/core: with atomics that return every value that the memory model allows (weak_memory.hpp),
// all interleavings of a few processes on each class.
//
//   1. The code as it stands: each history has the outcomes of its table and no others.
//   2. Each order stronger than relaxed: weakened, it makes some history fail. No order is stronger than it must be.
//   3. Each atomic operation in src/core occurs in some history. They are counted in the source.
//
// UIDGEN_LONG=1 adds histories that take minutes.
#include "atomic_sites.hpp"
#include "expect_outcomes.hpp"
#include "memory_order_histories.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <string>
#include <vector>

using namespace uidgen::test;

namespace {

struct History {
    std::string subject; // the file in src/core that it is about
    std::string name;
    Table outcomes;
    Explored (*run)();
};

template <typename World> History history(const char *subject, const char *name) {
    return {subject, name, World::outcomes(), [] { return explore_weakly<World>(World::outcomes(), World::actors()); }};
}

bool is_long_run() { return std::getenv("UIDGEN_LONG") != nullptr; }

const std::vector<History> &histories() {
    static const std::vector<History> all = [] {
        const char *const allocator = "position_allocator.hpp";
        const char *const range = "range.hpp";
        const char *const grant = "grant_view.hpp";
        const char *const ring = "ring.hpp";
        std::vector<History> list = {
            history<ConfirmAndTake>(allocator, "ConfirmAndTake"),
            history<PublishAndRead>(allocator, "PublishAndRead"),
            history<TakeAndGap>(allocator, "TakeAndGap"),
            history<TakeAndDiscard<14>>(allocator, "TakeAndDiscardPart"),
            history<TakeAndDiscard<20>>(allocator, "TakeAndDiscardAll"),
            history<DrawByWindows>(allocator, "DrawByWindows"),
            history<BackupDraws>(allocator, "BackupDraws"),
            history<WholeCalls<1>>(allocator, "WholeCalls"),
            history<SegmentTakers>(range, "SegmentTakers"),
            history<SegmentDiscard>(range, "SegmentDiscard"),
            history<SegmentWindows>(range, "SegmentWindows"),
            history<ReadTwice>(grant, "ReadTwice"),
            history<ReadAndWithdraw>(grant, "ReadAndWithdraw"),
            history<TwoWriters>(grant, "TwoWriters"),
            history<PutAndTake>(ring, "PutAndTake"),
            history<FullRing>(ring, "FullRing"),
            history<TwoPutters>(ring, "TwoPutters"),
            history<TwoAndTwo>(ring, "TwoAndTwo"),
            history<FullAndMore<1>>(ring, "FullAndMore"),
            history<TwoTakers>(ring, "TwoTakers"),
            history<ShortLooks<Look::take>>(ring, "ShortTakes"),
            history<ShortLooks<Look::peek>>(ring, "ShortPeeks"),
            history<PeekAtPut>(ring, "PeekAtPut"),
            history<FilledAtTake>(ring, "FilledAtTake"),
            history<SharedRuns>(ring, "SharedRuns"),
        };
        if (is_long_run()) {
            weak_memory.most_spurious_failures = 2;
            list.push_back(history<WholeCalls<2>>(allocator, "WholeCallsTwice"));
            list.push_back(history<FullAndMore<2>>(ring, "FullAndMoreTwice"));
        }
        return list;
    }();
    return all;
}

// A history of the code as it stands, run once, and the orders that it asked for.
struct Played {
    Explored result;
    std::vector<OrderSite> sites;
};

const Played &played(size_t which) {
    static std::map<size_t, Played> all;
    if (all.count(which) == 0) {
        weak_memory.seen_sites.clear();
        const Explored result = histories()[which].run();
        all[which] = {result, weak_memory.seen_sites};
    }
    return all[which];
}

class MemoryOrder : public ::testing::TestWithParam<size_t> {};

TEST_P(MemoryOrder, IsEnough) { expect_exactly(played(GetParam()).result, histories()[GetParam()].outcomes); }

INSTANTIATE_TEST_SUITE_P(Histories, MemoryOrder, ::testing::Range<size_t>(0, histories().size()),
                         [](const auto &of) { return histories()[of.param].name; });

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
           show(site.order) + (site.if_swap_fails ? " (if the swap fails)" : "");
}

std::vector<std::memory_order> weaker_than(std::memory_order order) {
    if (order == std::memory_order_relaxed)
        return {};
    if (order == std::memory_order_acq_rel)
        return {std::memory_order_acquire, std::memory_order_release};
    return {std::memory_order_relaxed};
}

bool is_in_core(const OrderSite &site) { return std::string(site.file).find("src/core/") != std::string::npos; }

// The name of the history that fails if that order is weakened; "": none.
std::string caught_by(const std::string &subject, const OrderSite &site, std::memory_order weaker) {
    for (size_t i = 0; i < histories().size(); i++) {
        const std::vector<OrderSite> &sites = played(i).sites;
        if (histories()[i].subject != subject || std::find(sites.begin(), sites.end(), site) == sites.end())
            continue;
        weak_memory.weakened = &site;
        weak_memory.weakened_to = weaker;
        const Explored result = histories()[i].run();
        weak_memory.weakened = nullptr;
        explored_schedules += result.schedules;
        if (!result.forbidden.empty())
            return histories()[i].name + ": " + result.forbidden;
    }
    return "";
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
                const std::string caught = caught_by(subject, site, weaker);
                EXPECT_NE(caught, "") << what << " makes no history fail";
                std::cout << "  " << what << ": " << caught << std::endl;
            }
}

// The sites that any history has asked, or one about that file.
bool is_asked(const std::string &subject, const std::string &file, int first_line, int last_line,
              const std::string &order) {
    for (size_t i = 0; i < histories().size(); i++)
        for (const OrderSite &site : played(i).sites)
            if ((subject.empty() || histories()[i].subject == subject) && is_in_core(site) &&
                std::filesystem::path(site.file).filename() == file && site.line >= first_line &&
                site.line <= last_line && show(site.order) == order)
                return true;
    return false;
}

const std::vector<AtomicSite> &sites_in_source() {
    static const std::vector<AtomicSite> all = atomic_sites("../../src/core");
    return all;
}

// Each occurs in a history with each order that its text names. An order that raise_to() passes on is looked for in
// raise_to(), in the histories about the file that calls it.
TEST(AtomicSites, EachIsInAHistory) {
    const auto &sites = sites_in_source();
    ASSERT_FALSE(sites.empty()) << "run this in test/unit";
    const auto raise = std::find_if(sites.begin(), sites.end(), [](const AtomicSite &site) {
        return site.file == "position_allocator.hpp" && site.call == "compare_exchange_weak";
    });
    ASSERT_NE(raise, sites.end());
    for (const AtomicSite &site : sites)
        for (const std::string &order : site.orders) {
            const bool passes = site.call == "raise_to";
            const AtomicSite &asked = passes ? *raise : site;
            EXPECT_TRUE(is_asked(passes ? site.file : "", asked.file, asked.first_line, asked.last_line, order))
                << site.place() << " is in no history with " << order;
        }
    std::cout << "  " << sites.size() << " atomic operations in src/core" << std::endl;
}

// What the model does not have, and what a history could not tell apart.
TEST(AtomicSites, AreWithinTheModel) {
    const AtomicSite *before = nullptr;
    for (const AtomicSite &site : sites_in_source()) {
        EXPECT_FALSE(site.orders.empty()) << site.place() << " names no order";
        for (const std::string &order : site.orders)
            EXPECT_TRUE(order == "relaxed" || order == "acquire" || order == "release" || order == "acq_rel")
                << site.place() << " has the order " << order << ", which weak_memory.hpp does not know";
        EXPECT_FALSE(before != nullptr && before->file == site.file && before->last_line >= site.first_line)
            << site.place() << " needs a line of its own";
        before = &site;
    }
    for (const auto &entry : std::filesystem::directory_iterator("../../src/core"))
        EXPECT_FALSE(std::regex_search(source_without_comments(entry.path()), std::regex("atomic_\\w+_fence")))
            << entry.path() << " has a fence, which weak_memory.hpp does not know";
}

} // namespace
