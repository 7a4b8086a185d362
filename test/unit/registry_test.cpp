// A fleet: no tick of a node is drawn by two generators, whatever messages, clocks, crashes, copies and lost commits do.
//
// The states of each scenario (registry_scenarios.hpp) are searched level by level, and seeded walks go deeper. Then the
// rules are taken away one at a time, and the search, a walk or a told story must notice it.
#include <gtest/gtest.h>

#include <iostream>

#include "registry_scenarios.hpp"

using namespace uidgen;
using namespace uidgen::test;

namespace {

struct Story {
    const char *name;
    const char *size;
    const char *steps; // in their order, but for those that do not apply
    bool must_end;     // the last step must apply
};

// What is not covered, and said so: the search finds it, or the story tells it.
const Story not_covered[] = {
    {"AFormerPrimaryAlone", "whole_calls 1, nodes 1, registry_clocks 0 1, dies 1, returns 1, stop 1", "", false},
    {"AMemberReachesOneOfTwo", "whole_calls 1, nodes 1, partition 1, registry_clocks 0 1, split 1", "", false},
    {"ASnapshotWithoutFence", "whole_calls 1, nodes 1, keeps 2, put_back 1, newcomer 1", "", false},
    {"ASnapshotWhereRestartsAreKept", "whole_calls 1, nodes 1, put_back 1, newcomer 1", "", false},
    {"TheStandbyIsOffBeforeThePromise",
     "whole_calls 1, nodes 1, keeps 2, late_promise 1, failover 1, promise_restarts 1", "", false},
    {"NothingWasLostIsFalse", "whole_calls 1, nodes 1, failover 1, false_lift 1", "", false},
    {"ACloneAndALoss", "whole_calls 1, nodes 1, members 1, failover 1, clone 1",
     "A asks: gets; A draws; the registry's standby follows; C is a clone; A asks to extend: gets; the standby takes over; "
     "C asks to extend: gets; time; time; time; A draws; C draws",
     true},
    // Until the term is shown.
    {"ALeaderHasItsLockBackUnseen", "whole_calls 1, nodes 1, dies 1, returns 1, stop 1",
     "A asks: gets; A draws; the registry's standby follows; the primary ends for now; A asks to extend: gets; "
     "the former primary starts; the registry stops; time; time; time; B asks the other registry; B draws; A draws",
     true},
};

const Story stories[] = {
    // A call has read that there is no fence, and waits. Rows are restored, and a fence is raised.
    {"AFenceWhileACallWaits", "nodes 1, keeps 2, restore_running 1, waits 1",
     "the registry is backed up; A asks; the registry answers A; A has its answer; B asks; the call of B waits; "
     "rows are restored; the registry answers B; B has its answer; B draws; A draws",
     false},
    // A member is cloned while its call is under way. The clone joins, and gets the same node.
    {"ACloneJoins", "whole_calls 1, nodes 1, members 1, clone 1",
     "A asks: gets; time; A asks to extend: gets node 0 until 4, but the answer is lost; C is a clone; A asks to extend: gets; "
     "time; A asks to extend: gets node 0 until 5, but the answer is lost; C asks to extend: taken; time; time; time; "
     "C asks: gets; A asks to extend; A draws; C draws",
     true},
    // A newcomer is cloned while its call is under way.
    {"ACloneOfANewcomer", "whole_calls 1, nodes 2, members 1, clone 1",
     "A asks: gets node 0 until 3, but the answer is lost; C is a clone; C asks: gets; A asks: gets; A draws; C draws",
     true},
    // A grant is lost, and the holder of another one shows a later end than the registry has. Then a newcomer calls.
    {"AProofFences", "whole_calls 1, keeps 2, put_back 1, newcomer 1",
     "A asks: gets node 0; the registry is backed up; B asks: gets node 1; time; A asks to extend: gets; "
     "a snapshot of the registry's disk is put back; time; A asks to extend; C is a new member; C asks; C draws; B draws",
     false},
    // The same, when what was lost has a fence in it.
    {"ALostFenceHidesNone", "whole_calls 1, keeps 2, end 20, put_back 1, newcomer 1, invent_term 1",
     "A asks: gets node 0; time; A asks to extend: gets; the registry is backed up; a stranger invents a term; time; "
     "A asks to extend: gets; time; time; A asks to extend: gets; time; time; A asks to extend: gets; B asks: gets node 1; "
     "a snapshot of the registry's disk is put back; time; A asks to extend; C is a new member; C asks; C draws; A draws; B draws",
     false},
    // One fence covers what several members have lost.
    {"WhatIsKnownFencesOnce", "whole_calls 1, end 20, failover 1, newcomer 1",
     "A asks: gets node 0; B asks: gets node 1; the registry's standby follows; time; A asks to extend: gets; "
     "B asks to extend: gets; the standby takes over as it is; C is a new member; C asks: fenced; time; "
     "A asks to extend: gets; B asks to extend: gets",
     true},
    {"AfterAProofNothingWasLostIsRefused", "whole_calls 1, keeps 2, put_back 1, newcomer 1, false_lift 1",
     "A asks: gets node 0; the registry is backed up; B asks: gets node 1; time; A asks to extend: gets; "
     "a snapshot of the registry's disk is put back; time; A asks to extend; nothing_was_lost(); C is a new member; "
     "C asks; C draws; B draws",
     false},
    // A former primary is alone, after the other one has given its node to another member.
    {"AMemberDoesNotGoBack", "whole_calls 1, nodes 1, split 1, stop 2",
     "A asks: gets; the registry's standby follows; time; time; time; time; the standby is promoted; "
     "A asks to extend: no renewal; time; time; time; time; time; B asks: gets; B draws; the registry stops; "
     "A asks the other registry; A draws",
     false},
    // A grant of before the present fence is shown, which the registry lacks. So that fence is not for nothing.
    {"AProofOfTheFenceBefore", "whole_calls 1, failover 1, false_lift 1, newcomer 1",
     "A asks: gets node 0; the registry's standby follows; B asks: gets node 1; time; A asks to extend: gets; "
     "the standby takes over as it is; C is a new member; C asks: fenced; time; A asks to extend: gets; nothing_was_lost(); "
     "C asks; C draws; B draws",
     false},
    // A leader has its lock back, and lacks what the other one has granted.
    {"ALargerTermFences", "whole_calls 1, nodes 1, dies 1, take_back 1",
     "A asks: gets; A draws; the registry's standby follows; the primary ends for now; A asks to extend: gets; "
     "the former primary has its lock back; time; time; time; B asks; B draws; A draws",
     false},
    // A stranger has shown it a term that no registry has.
    {"AnInventedTermHidesNone", "whole_calls 1, nodes 1, dies 1, take_back 1, invent_term 1",
     "A asks: gets; A draws; a stranger invents a term; the registry's standby follows; the primary ends for now; "
     "A asks to extend: gets; time; time; A asks to extend: gets; time; time; A asks to extend: gets; "
     "the former primary has its lock back; time; B asks; B draws; A draws",
     false},
    // It is shown the other one's term again, which may have granted since.
    {"ALargerTermFencesWhileItIsShown", "whole_calls 1, dies 1, take_back 1, newcomer 1",
     "A asks: gets; time; the registry's standby follows; the primary ends for now; A asks to extend; "
     "the former primary has its lock back; time; time; time; A asks: outdated; time; time; C is a new member; "
     "C asks: fenced",
     true},
    // A member says hello to a server that takes over. Its clock is set back before the first call.
    {"AHelloDoesNotCount", "registry_clocks 0 -4, hello 1, switchover 1, registry_clock_step 1",
     "A asks; the registry answers A; A has its answer; time; time; time; time; time; the standby takes over; "
     "A says hello; the registry's clock is off by -4; B asks; the registry answers B; A asks to extend; "
     "the registry answers A: ahead",
     true},
    // Servers take over whose clocks are behind, or whose state is old. No member is locked out.
    {"ATakeoverIsAboveTheRow", "whole_calls 1, registry_clocks 0 -6, switchover 2",
     "A asks: gets; time; time; time; time; time; the standby takes over; A asks to extend: no renewal; "
     "the standby takes over with all commits, with a clock off by -6; B asks; A asks: ahead",
     true},
    {"ATakeoverIsAboveWhatTheCallerHasSeen", "whole_calls 1, registry_clocks 0 -4, failover 2",
     "A asks: gets; time; time; time; time; time; the standby takes over; A asks to extend: no renewal; "
     "the standby takes over as it is, with a clock off by -4; A asks: ahead",
     true},
    {"ATakeoverIsAboveTheClock", "whole_calls 1, switchover 2, failover 1",
     "A asks: gets; time; time; time; time; time; the standby takes over with all commits; "
     "A asks to extend: no renewal; the standby takes over with all commits; A asks: fenced; time; time; "
     "the standby takes over as it is; B asks; A asks: fenced",
     true},
    // A member and a newcomer have asked with clocks that were ahead, and are corrected.
    {"AClockWasAhead", "whole_calls 1, clocks 0 8, clock_step 4",
     "A asks: gets; the clock of A is off by 8; A asks to extend: ahead; the clock of A is off by 0; time; "
     "A asks to extend: gets; the clock of B is off by 8; B asks: ahead; the clock of B is off by 0; B asks: gets",
     true},
    // A fence was raised by a clock that was ahead.
    {"AStatementFencesByTheClock",
     "whole_calls 1, registry_clocks 0 8, switchover 1, registry_clock_step 1, restore_running 1",
     "A asks: gets; time; the standby takes over with all commits, with a clock off by 8; A asks to extend: no renewal; "
     "the registry's clock is off by 0; the registry is backed up; rows are restored; time; time; time; time; time; "
     "B asks: gets",
     true},
};

constexpr uint64_t quick = 50000, walked = 200000, deep = 1000000;

const Rules shipped;

std::string size_named(const std::string &name) {
    for (const Scenario &scenario : scenarios)
        if (name == scenario.name)
            return scenario.size;
    for (const Story &story : stories)
        if (name == story.name)
            return story.size;
    throw std::invalid_argument("no scenario " + name);
}

class Fleet : public ::testing::TestWithParam<size_t> {};

TEST_P(Fleet, IsSound) {
    const Scenario &of = scenarios[GetParam()];
    const World world(shipped, size_of(of.size));
    const Found found = search(world, quick), far = walk(world, 1, walked, 60);
    EXPECT_EQ(found.broken, "") << found.path;
    EXPECT_EQ(far.broken, "") << far.path;
    EXPECT_EQ((found.events | far.events) & of.events, of.events);
}

INSTANTIATE_TEST_SUITE_P(Scenarios, Fleet, ::testing::Range<size_t>(0, std::size(scenarios)),
                         [](const auto &of) { return scenarios[of.param].name; });

// What is not covered can happen, so the search is able to find it.
TEST(Fleets, WhatIsNotCoveredIsFound) {
    for (const Story &of : not_covered) {
        const World world(shipped, size_of(of.size));
        Found found = of.must_end ? tell(world, of.steps) : search(world, quick);
        if (found.broken.empty() && !of.must_end)
            found = walk(world, 1, 5 * walked, 60);
        EXPECT_EQ(found.broken, "a tick was drawn twice") << of.name;
    }
}

TEST(Fleets, StoriesAreSound) {
    for (const Story &story : stories) {
        const Found found = tell(World(shipped, size_of(story.size)), story.steps);
        EXPECT_EQ(found.broken, "") << story.name << ": " << found.path;
        EXPECT_TRUE(found.has_end || !story.must_end) << story.name << ": " << found.path;
    }
}

// The same scenarios at depths that take minutes.
TEST(Fleets, DeeperSearches) {
    for (const Scenario &of : scenarios) {
        const World world(shipped, size_of(of.size));
        const Found found = search(world, deep), far = walk(world, 2, 3 * deep, 80);
        EXPECT_EQ(found.broken, "") << of.name << ": " << found.path;
        EXPECT_EQ(far.broken, "") << of.name << ": " << far.path;
        std::cout << "  " << of.name << ": " << found.states << " states, " << (found.is_all ? "all, " : "") << "depth "
                  << found.depth << std::endl;
    }
}

enum class By { search, walks, story };

struct Mutant {
    bool Rules::*rule;
    const char *what; // without it
    const char *where;
    By by;
};

const Mutant mutants[] = {
    {&Rules::commits_before_answer, "1: an answer whose commit fails", "CopiesAreNewcomers", By::search},
    {&Rules::reads_fence_again, "1: a call that has waited does not see a new fence", "AFenceWhileACallWaits",
     By::story},
    {&Rules::until_grows, "2: a newcomer gets a node before its end", "CopiesAreNewcomers", By::search},
    {&Rules::stays_inside_grant, "3: a lease outside the grant", "CopiesAreNewcomers", By::walks},
    {&Rules::keeps_mark, "3: a start without the high-water mark", "CopiesAreNewcomers", By::search},
    {&Rules::compares_token, "4: a former holder extends", "CopiesAreNewcomers", By::walks},
    {&Rules::draws_fresh_token, "4: a clone and its original extend", "FailoversAreKept", By::walks},
    {&Rules::has_own_token, "4: two generators of a server have one token", "CopiesAreNewcomers", By::search},
    {&Rules::ignores_given_up, "4: the answer to a call that was given up counts", "MessagesAreLostAndLate", By::walks},
    {&Rules::earliest_never_falls, "4: a repeat asks for an earlier time", "NoClockMatters", By::walks},
    {&Rules::forgets_time_when_ahead, "4: a renewal asks again for a time that was ahead", "AClockWasAhead", By::story},
    {&Rules::begins_where_answer_says, "4: a grant begins before the answer says", "NoClockMatters", By::walks},
    {&Rules::stores_call, "4: the fresh token is not stored before the call", "CopiesAreNewcomers", By::search},
    {&Rules::joins_with_fresh_token, "4: a member joins with the token of its renewal", "ACloneJoins", By::story},
    {&Rules::starts_with_fresh_token, "4: a clone joins with the token of its original", "ACloneOfANewcomer",
     By::story},
    {&Rules::taken_means_followed, "4: each refusal of a renewal is taken", "OfTwoClonesOneContinues", By::search},
    {&Rules::stops_when_taken, "4: a member draws on when its node is taken", "OfTwoClonesOneContinues", By::search},
    {&Rules::caps_beginning, "5: a grant begins where the member says", "NoClockMatters", By::search},
    {&Rules::caps_shown, "5: what is shown has no cap", "GrantsAreInvented", By::search},
    {&Rules::fences, "6: no fence", "LostCommitsAreFenced", By::search},
    {&Rules::fences_starts, "6: no fence at a start where nothing is kept", "ASnapshotWhereNothingIsKept", By::search},
    {&Rules::fences_systems, "6: no fence in another system", "ADumpWhereFailoversAreKept", By::search},
    {&Rules::fences_anew, "6: a registry made anew begins without a fence", "ARegistryIsMadeAnew", By::search},
    {&Rules::fences_proofs, "6: a proof raises no fence", "AProofFences", By::story},
    {&Rules::counts_what_is_known, "6: each lost grant raises a fence", "WhatIsKnownFencesOnce", By::story},
    {&Rules::proves_fence_before, "6: a lost grant of before the fence says nothing of it", "AProofOfTheFenceBefore",
     By::story},
    {&Rules::holds_newcomers, "6: newcomers in a fence", "LostCommitsAreFenced", By::search},
    {&Rules::has_full_length, "6: a fence without the longest grant", "CommitsAreLostAgain", By::search},
    {&Rules::has_two_bounds, "6: a fence with one bound", "ALeaderHasItsLockBack", By::walks},
    {&Rules::remembers_former, "6: nothing_was_lost() forgets the loss before", "NothingWasLost", By::walks},
    {&Rules::proof_forbids_lift, "6: nothing_was_lost() after a proof", "AfterAProofNothingWasLostIsRefused",
     By::story},
    {&Rules::promise_compares, "6: a promise is changed without a look", "APromiseChanges", By::search},
    {&Rules::statement_fences_by_clock, "6: fence() cannot lower", "AStatementFencesByTheClock", By::story},
    {&Rules::lasts_beyond, "7: each holder keeps its node", "CommitsAreLostAgain", By::walks},
    {&Rules::judges_row_by_fence, "7: a row of before the fence counts", "CommitsAreLostAgain", By::walks},
    {&Rules::later_grant_counts, "7: any grant that is shown counts", "OfTwoClonesOneContinues", By::walks},
    {&Rules::goes_to_largest, "8: a member asks the first host", "TwoRegistriesAreReachable", By::walks},
    {&Rules::never_goes_back, "8: answers of a smaller term count", "AMemberDoesNotGoBack", By::story},
    {&Rules::hello_counts_not, "8: a hello's term counts", "AHelloDoesNotCount", By::story},
    {&Rules::term_above_row, "8: a takeover below the row's term", "ATakeoverIsAboveTheRow", By::story},
    {&Rules::term_above_seen, "8: a takeover below what the caller has seen", "ATakeoverIsAboveWhatTheCallerHasSeen",
     By::story},
    {&Rules::term_above_clock, "8: a takeover below the clock", "ATakeoverIsAboveTheClock", By::story},
    {&Rules::larger_term_fences, "8: a larger term raises no fence", "ALargerTermFences", By::story},
    {&Rules::fence_lasts_while_shown, "8: a larger term fences only when it is first shown",
     "ALargerTermFencesWhileItIsShown", By::story},
    {&Rules::smaller_value_counts, "8: an invented term hides a larger one", "AnInventedTermHidesNone", By::story},
    {&Rules::file_is_bound, "9: the file counts in a copy", "CopiesAreNewcomers", By::search},
    {&Rules::grant_needs_mark, "9: a grant counts without a mark", "CopiesAreNewcomers", By::search},
    {&Rules::compares_layouts, "10: two layouts of equal widths", "LayoutsOfEqualWidths", By::search},
    {&Rules::compares_fleet, "11: a registry of another fleet", "ALineIsWrong", By::search},
};

// Each rule has a mutant, and each mutant is noticed.
TEST(Fleets, MutantsAreNoticed) {
    std::set<size_t> dropped;
    for (const Mutant &mutant : mutants) {
        Rules rules;
        rules.*mutant.rule = false;
        dropped.insert(reinterpret_cast<const char *>(&(rules.*mutant.rule)) - reinterpret_cast<const char *>(&rules));
        const World world(rules, size_of(size_named(mutant.where)));
        Found found;
        if (mutant.by == By::story) {
            const auto &story = *std::find_if(std::begin(stories), std::end(stories),
                                              [&](const Story &s) { return std::string(mutant.where) == s.name; });
            found = tell(world, story.steps);
            if (story.must_end && !found.has_end)
                found.broken = "the story does not reach its end";
        } else
            found = mutant.by == By::search ? search(world, 2 * quick) : walk(world, 1, 5 * walked, 60);
        EXPECT_NE(found.broken, "") << mutant.what;
        std::cout << "  " << mutant.what << " | " << mutant.where << ", " << found.depth << " steps | " << found.broken
                  << " | " << found.path << std::endl;
    }
    EXPECT_EQ(dropped.size(), sizeof(Rules));
}

} // namespace
