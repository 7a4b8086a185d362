// Every interleaving of a process that publishes grants and one that reads them without a lock.
#include "expect_outcomes.hpp"
#include "grant_view.hpp"

#include <gtest/gtest.h>

#include <string>

using namespace uidgen::core;
using namespace uidgen::test;

namespace {

constexpr GrantView first_grant = {true, 1, 10, 20};
constexpr GrantView second_grant = {true, 2, 30, 40};

std::string show(const GrantView &view) {
    if (same_view(view, first_grant))
        return "first";
    if (same_view(view, second_grant))
        return "second";
    return same_view(view, no_grant) ? "none" : "torn";
}

using View = SharedGrantView<Stepped>;

// A reader tries twice while one grant is followed by another.
//
//   acceptable  a try reads a grant that was published, or finds the writer at work ("busy"); no grant comes back
//   forbidden   fields of two grants; the first grant after the second

const Table one_publication = {
    "first first",   "first busy",  "first second", // the writer begins after the first try
    "busy busy",     "busy second",                 // during it
    "second second",                                // before it
};

template <typename SharedView> struct ReadAndPublish {
    SharedView view;
    std::string tries[2];

    ReadAndPublish() {
        view.reset();
        view.publish(first_grant);
    }
    static void publisher(ReadAndPublish &w) { w.view.publish(second_grant); }
    static void reader(ReadAndPublish &w) {
        for (auto &outcome : w.tries) {
            GrantView view = no_grant;
            outcome = w.view.try_read(&view) ? show(view) : "busy";
        }
    }
    std::string outcome() const { return tries[0] + " " + tries[1]; }
    static Explored run() { return explore<ReadAndPublish>(one_publication, {publisher, reader}); }
};

TEST(GrantView, IsReadAsAWhole) { expect_exactly(ReadAndPublish<View>::run(), one_publication); }

struct DoesNotLookAgain : View {
    bool try_read(GrantView *view) const {
        (void)View::try_read(view);
        return true;
    }
};

struct PublishesInParts : View {
    void publish(const GrantView &view) {
        View::publish({view.granted, view.node, read_locked().from, read_locked().until});
        View::publish(view);
    }
};

TEST(GrantView, DoesNotLookAgainMutantIsCaught) { expect_caught(ReadAndPublish<DoesNotLookAgain>::run()); }
TEST(GrantView, PublishesInPartsMutantIsCaught) { expect_caught(ReadAndPublish<PublishesInParts>::run()); }

// The end of a grant without another one, and a writer that stops for ever: a reader never reads half of it.
const Table withdrawal = {"first", "busy", "none"};

struct ReadAndWithdraw {
    View view;
    std::string read;

    ReadAndWithdraw() {
        view.reset();
        view.publish(first_grant);
    }
    static void publisher(ReadAndWithdraw &w) { w.view.publish(no_grant); }
    static void reader(ReadAndWithdraw &w) {
        GrantView view = no_grant;
        w.read = w.view.try_read(&view) ? show(view) : "busy";
    }
    std::string outcome() const { return read; }
};

TEST(GrantView, IsWithdrawnAsAWhole) {
    expect_exactly(explore<ReadAndWithdraw>(withdrawal, {ReadAndWithdraw::publisher, ReadAndWithdraw::reader}),
                   withdrawal);
    const Table halted = {"first", "busy", "none"};
    expect_exactly(explore_halted<ReadAndWithdraw>(halted, {ReadAndWithdraw::publisher, ReadAndWithdraw::reader}, 0),
                   halted);
}

} // namespace
