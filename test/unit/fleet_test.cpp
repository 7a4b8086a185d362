// A fleet: no pair (node, tick) is drawn by two memberships, whatever messages, clocks, crashes, copies and lost commits do.
//
// Each scenario is a choice of steps. All their sequences are searched up to the scenario's depth, and seeded walks
// with more members and more time go deeper. Then the rules of the protocol are taken away one at a time. The search
// must find what breaks without each of them.
#include <gtest/gtest.h>

#include <iostream>

#include "fleet_search.hpp"

using namespace uidgen;
using namespace uidgen::core;
using namespace uidgen::test;

namespace {

// Their names are in docs/design.md.
const std::vector<Scenario> scenarios = {
    // Clocks are wrong by any amount, the registry's too. Answers get lost, and lives end. No fence is needed, so none may
    // be raised.
    {"WithoutLostCommitsNoClockMatters", "never_superseded 1, never_lost 1", 7,
     granted_newcomer | extended_grant | refused(Refusal::ahead),
     "ask AB, ask_unanswered AB, draw AB, draw_all AB, restart AB, deliver, advance 1 4, clock A 0 9 -9, "
     "registry_clock 0 9 -9"},
    // Requests arrive after later ones, also those of a life that has ended.
    {"LateAsksHarmNobody", "", 7,
     granted_newcomer | extended_grant | late_ask | late_answer_ignored | refused(Refusal::superseded),
     "ask AB, ask_slowly A, draw A, draw_all AB, restart A, arrive, deliver, advance 1 4, replicate, fail_over"},
    // The registry loses commits. Its clocks, before and after, agree within the bound. A member's clock need not.
    {"LostCommitsAreFenced", "never_superseded 1", 6,
     survived_fence | row_from_member | fence_by_environment | fence_by_member | refused(Refusal::fenced),
     "ask AB, ask_unanswered AB, draw_all AB, restart AB, deliver, advance 1 3, clock A 0 9, registry_clock 0 1, "
     "replicate, fail_over, lose"},
    // The same without answers under way, and deeper.
    {"CommitsAreLostAgain", "never_superseded 1", 9,
     survived_fence | newcomer_after_fence | fence_by_member | refused(Refusal::stale_registry) |
         refused(Refusal::fenced),
     "ask AB, draw_all AB, advance 1 3, registry_clock 0 1, replicate, fail_over, lose, fence"},
    // The same with one node, with which members meet sooner, grants as long as the longest, and the registry's clock
    // ahead.
    {"FencesAreTight", "nodes 1, length 3, longest 3, registry_offset 1", 10,
     survived_fence | newcomer_after_fence | fence_by_environment | refused(Refusal::fenced) | refused(Refusal::ahead),
     "ask AB, draw_all AB, advance 1 3, clock B 2 9, registry_clock 0 1, replicate, fail_over"},
    // Two members ask in one call, of which one may show what the other one must not get. The registry may crash inside.
    {"ABatchIsOneCall", "members 3, length 3, longest 3", 6,
     granted_together | fence_by_later_one | survived_fence | refused(Refusal::starting) | refused(Refusal::fenced),
     "ask ABC, ask_together AB 0 1 2, draw_all ABC, advance 3, replicate, lose"},
    // A membership that gets a node twice, with another membership in between.
    {"AMembershipGetsANodeTwice", "nodes 1, length 4, longest 4", 10,
     survived_fence | newcomer_after_fence | fence_by_environment,
     "ask AB, draw_all AB, advance 1 4, replicate, fail_over"},
    // Fences after which no commit is lost, with wrong clocks.
    {"FencesHarmNobodyWhateverTheClocks", "nodes 1, length 2, longest 6", 9,
     survived_fence | newcomer_after_fence | refused(Refusal::fenced) | refused(Refusal::ahead),
     "ask AB, draw_all AB, advance 1 3, clock A 0 9 -9, registry_clock 0 9 -9, fence"},
    // A member's disk is copied, its directory is copied, its standby is promoted, and it is dropped and made anew.
    {"OfTwoCopiesOneGoesOn", "members 1", 6, refused(Refusal::superseded) | drew_by_both_copies,
     "ask AC, draw AC, restart AC, ask_unanswered A, remake A, copy_disk A, copy_directory A, draw_all C, deliver, "
     "advance 1 4, replicate, fail_over"},
    // A holder is declared dead. It was ahead of its clock, which agrees with the registry's within the bound.
    {"ADeadHoldersNodeIsGrantedAgain", "nodes 1, length 3, longest 4, ahead 1", 8, was_revoked | granted_newcomer,
     "ask AB, draw_all AB, ask_slowly A, arrive, advance 1 3, clock A 0 1, registry_clock 0 1, revoke 0, replicate, "
     "fail_over"},
    // A member joins that used node 0 before.
    {"AJoiningMembersNodeIsRaised", "joining 1", 6, joined | granted_newcomer | refused(Refusal::ahead),
     "ask ABC, draw_all ABC, join C 0 9, advance 1 4, clock A 0 -4, replicate, fail_over"},
    // Members reach the registry of another fleet.
    {"AnotherFleetIsRefused", "", 5, refused(Refusal::other_fleet) | other_fleet_ignored | granted_newcomer,
     "ask AB, ask_unanswered AB, ask_other_fleet AB, draw_all AB, deliver, advance 1 4"},
    // The former primary starts again beside the one that took over. One member cannot reach the new one for a while.
    {"AFormerPrimaryComesBack", "nodes 1, length 3, longest 4, cut 2", 10,
     refused(Refusal::stale_registry) | closed_other | refused(Refusal::starting) | newcomer_after_fence |
         survived_fence,
     "ask AB, draw_all AB, cut B 0 2, advance 3, registry_clock 0 1, replicate, fail_over, come_back"},
    // A standby is promoted while the primary goes on. One member cannot reach the primary for a while.
    {"TwoRegistriesAreAlive", "nodes 1, length 2, longest 4, cut 1", 9,
     closed_other | fence_by_other | refused(Refusal::fenced) | newcomer_after_fence | survived_fence,
     "ask AB, draw_all AB, cut B 0 1, advance 1 4, registry_clock 0 1, replicate, fence, split"},
    // The same, and the former primary has drawn a term that the standby does not know. An administrator chooses.
    {"TwoRegistriesHaveOneNumber", "nodes 1, length 3, longest 3", 10,
     refused(Refusal::rival) | refused(Refusal::stale_registry) | newcomer_after_fence | survived_fence,
     "ask AB, draw_all AB, restart A, cut B 0 1, advance 5, replicate, fence, split"},
    // The registry moves to another server with all commits, and the former one starts again.
    {"ARegistryMoves", "nodes 1, length 3, longest 3, end 20", 9, closed_other | extended_grant | granted_newcomer,
     "ask AB, draw_all AB, cut B 0 1, advance 3 7, move, come_back"},
    // The registry's disk is cloned below the file system. Both servers answer.
    {"OfAClonedRegistryNewcomersGetNothing", "nodes 1, length 3, longest 3, end 20", 9, not_alone | extended_grant,
     "ask AB, draw_all AB, advance 2 3, clone"},
    // The registry's directory is put back, and an administrator says what it is.
    {"ADirectoryIsPutBack", "nodes 1, length 3, longest 3", 9,
     refused(Refusal::unclaimed) | survived_fence | newcomer_after_fence,
     "ask AB, draw_all AB, advance 1 3, registry_clock 0 1, replicate, put_back, claim"},
    // A member is pointed at a restored copy by mistake.
    {"ARestoredCopyGrantsNothing", "nodes 1, length 3, longest 3, never_lost 1", 9,
     refused(Refusal::unclaimed) | extended_grant | granted_newcomer,
     "ask AB, draw_all AB, cut B 0 1, advance 1 3, replicate, restore_copy"},
    // The registry's database is dropped and made anew, and follows the former one by an administrator's word.
    {"ARegistryIsMadeAnew", "nodes 1, length 3, longest 3", 9,
     row_from_member | refused(Refusal::fenced) | newcomer_after_fence,
     "ask AB, draw_all AB, advance 1 3, registry_clock 0 1, make_anew, claim"},
    // The former primary starts again when its grants have ended, and the new one stops. Members that the new one has
    // answered show it to the former one, unless they are down.
    {"AFormerPrimaryReturnsLate", "nodes 1, length 3, longest 3, end 10", 10,
     closed_other | refused(Refusal::stale_registry) | refused(Refusal::starting) | newcomer_after_fence,
     "ask AB, draw_all AB, advance 2 5, fail_over, come_back, stop, start"},
    // The registry is lost, and one with another key is made anew. Lines lead to the new one alone. The former one starts
    // again, and the new one stops.
    {"ARegistryIsLost", "nodes 1, length 8, longest 8, end 24", 9, row_from_member | newcomer_after_fence,
     "ask AB, draw_all AB, advance 2 3 7, lose_registry 0, claim, come_back, stop, start"},
    // The same with the former one's key, so that lines may lead to both.
    {"ARegistryIsLostButForItsKey", "nodes 1, length 3, longest 3", 9,
     row_from_member | closed_other | refused(Refusal::stale_registry) | newcomer_after_fence,
     "ask AB, draw_all AB, advance 1 3, lose_registry 1, claim, come_back, stop, start"},
    // Somebody shows a larger number without a proof. An administrator may say that there is nothing to it.
    {"AnUnprovedTermIsShown", "nodes 1, length 3, longest 3, end 16", 7,
     refused(Refusal::claimed) | extended_grant | granted_newcomer | newcomer_after_fence,
     "ask AB, draw_all AB, restart A, advance 1 5, show_claim 4 9, fence"},
    // Backups and standbys of one state take over one after another.
    {"ACopyOfAnEarlierStateTakesOver", "nodes 1, length 3, longest 3, clocks_are_right 1", 8,
     refused(Refusal::stale_registry) | refused(Refusal::unclaimed) | survived_fence | newcomer_after_fence,
     "ask AB, draw_all AB, advance 1 3, back_up, replicate, fail_over, promote_copy 0 1, claim, come_back"},
    // An administrator ends fences, and is right. The former primary comes back.
    {"AFenceIsCanceled", "longest 3, members 3", 7, kept_hello | closed_other | refused(Refusal::starting),
     "ask ABC, hello A, draw_all BC, advance 3, replicate, fail_over, cancel, stop, come_back"},
    // The registry is handed over, or not after all. The former one starts again.
    {"ARegistryIsHandedOver", "nodes 1, length 3, longest 3, end 16", 8,
     handed_over | fence_by_environment | refused(Refusal::handing_over) | refused(Refusal::fenced),
     "ask AB, draw_all AB, advance 3, registry_clock 0 1, hand_over, open, replicate, fail_over, come_back"},
    // The one that took over is lost, and the former one is the registry again.
    {"AFormerPrimaryIsTheRegistryAgain", "length 5, longest 5, end 20, closing 6", 8,
     handed_over | fence_by_environment | refused(Refusal::handing_over) | refused(Refusal::starting),
     "ask AB, advance 1 7, hand_over, open, replicate, fail_over, stop, come_back, turn_back"},
    // Somebody shows grants that no registry gave, before and after a larger number.
    {"GrantsAreInvented", "nodes 1, length 3, longest 3, end 16", 7,
     invented | refused(Refusal::claimed) | row_from_member | survived_fence,
     "ask AB, draw_all AB, advance 1 3, lose_registry 0, claim, show_claim 4, fence, invent 0"},
};

// Longer than a search is deep: steps in their order. A step that a rule prevents does not apply.
const std::vector<Scenario> stories = {
    // The former primary comes back. A member has only said hello to the new one.
    {"AHelloIsKept", "length 8, longest 8, members 3, end 24", 0, kept_hello,
     "ask A, replicate, fail_over, cancel, hello A, ask B, stop, come_back, ask A, ask C, draw_all B, draw_all C"},
    // The same. The new one, whose number is above its clock, was closed by then.
    {"TheHelloOfAClosedRegistryIsKept", "length 8, longest 8, members 3, end 24", 0, kept_hello,
     "ask A, replicate, fail_over, cancel, ask B, hand_over, hello A, stop, come_back, ask A, ask C, draw_all B, "
     "draw_all C"},
    {"TheHelloOfACopyIsNotKept", "", 0, granted_newcomer,
     "ask A, advance 3, replicate, fail_over, lack_standby 1, hello A"},
    {"TheHelloOfAnUnclaimedCopyIsNotKept", "", 0, granted_newcomer,
     "ask A, replicate, advance 1, fail_over, hello B, replicate, restore_copy, cut A 2, hello A"},
    // A refusal is lost with the grant before it, and the registry moves.
    {"AHelloShowsWhatWasLost", "nodes 1, length 8, longest 8, end 24", 0, fence_by_hello,
     "replicate, ask A, ask B, lose, move, hello B, ask B, draw_all AB"},
    // The former primary starts with a wrong clock, which is set right then. The new one has admitted a newcomer.
    {"AClockIsSetRightAfterAStart", "nodes 1, length 3, longest 3, members 3, end 24", 0, refused(Refusal::starting),
     "ask A, replicate, registry_clock -9, fail_over, advance 7, ask B, draw_all B, stop, come_back, turn_back, "
     "registry_clock 0, ask C, draw_all C"},
    // A member calls the former primary, which is closed, before another one takes over.
    {"AClosedRegistryIsAsked", "never_lost 1", 0, handed_over | granted_newcomer,
     "ask A, hand_over, replicate, ask A, hello A, fail_over, ask AB"},
    // The former primary extends a grant when its handover was canceled. A standby that has the closing takes over.
    {"AHandoverIsCanceledAtOnce", "nodes 1, length 8, longest 8, closing 20, end 24", 0, handed_over,
     "ask A, hand_over, replicate, advance 4, open, ask A, draw_all A, restart A, fail_over, hello B, advance 6, ask B, "
     "draw_all B"},
    {"AHandoverHasEnded", "nodes 1, length 8, longest 8, closing 2, end 24", 0, fence_by_environment,
     "ask A, hand_over, replicate, advance 4, open, ask A, draw_all A, restart A, fail_over, hello B, advance 6, ask B, "
     "draw_all B"},
    {"AHandoverEndsByTwoClocks", "nodes 1, length 8, longest 8, closing 4, end 24", 0, fence_by_environment,
     "ask A, hand_over, replicate, advance 3, registry_clock 1, open, ask A, draw_all A, restart A, fail_over, hello B, "
     "advance 7, ask B, draw_all B"},
    // A server takes over without a fence, admits a newcomer, and is gone. A member that has not reached it calls the
    // former primary.
    {"AHandoverIsCanceledTooLate", "length 8, longest 8, closing 2, members 3, end 24", 0, handed_over,
     "ask A, hand_over, replicate, fail_over, ask B, draw_all B, restart B, stop, come_back, turn_back, advance 4, "
     "open, ask A, ask C, draw_all C"},
    {"ASynchronousRegistryIsLost", "synchronous 1, length 8, longest 8, members 3, end 24", 0, handed_over,
     "ask A, fail_over, ask B, draw_all B, restart B, stop, come_back, ask A, ask C, draw_all C"},
    // The former primary, which starts again, is the registry again. A standby of it takes over.
    {"AClosedRegistryIsHandedOverAgain", "length 8, longest 8, closing 6, members 3, end 24", 0, handed_over,
     "ask A, hand_over, replicate, fail_over, ask B, draw_all B, restart B, stop, come_back, "
     "turn_back, advance 5, hand_over, "
     "replicate, fail_over, ask C, draw_all C"},
    {"ARegistryThatWaitsIsHandedOver", "length 8, longest 8, members 3, end 24", 0, fence_by_environment,
     "ask A, replicate, fail_over, cancel, ask B, draw_all B, restart B, stop, come_back, turn_back, hand_over, "
     "replicate, fail_over, ask C, draw_all C"},
    {"AHandedOverRegistryMeetsAnotherOne", "length 3, longest 3, closing 30, members 3, end 40", 0,
     fence_by_environment | kept_hello,
     "ask A, replicate, hand_over, fail_over, advance 6, ask AB, draw_all AB, come_back, hello A, stop, turn_back, "
     "replicate, fail_over, ask C, draw_all C"},
    // The same with a synchronous standby.
    {"AClosedRegistryFails", "synchronous 1, length 8, longest 8, closing 2, members 3, end 24", 0, handed_over,
     "ask A, hand_over, fail_over, ask B, draw_all B, restart B, stop, come_back, "
     "turn_back, advance 2, replicate, fail_over, "
     "ask C, draw_all C"},
    {"AnOpenedRegistryFails", "synchronous 1, length 8, longest 8, closing 2, members 3, end 24", 0, handed_over,
     "ask A, hand_over, fail_over, ask B, draw_all B, restart B, stop, come_back, "
     "turn_back, advance 4, open, replicate, "
     "fail_over, ask C, draw_all C"},
    {"ARegistryThatWaitsFails", "synchronous 1, length 8, longest 8, members 3, end 24", 0, handed_over,
     "ask A, fail_over, ask B, draw_all B, restart B, stop, come_back, "
     "turn_back, ask C, replicate, fail_over, ask C, draw_all C"},
    // The new one has extended a grant, and is lost. The former primary starts, and starts again in its wait.
    {"ARegistryStartsAgainInItsWait", "length 8, longest 8, members 3, end 30, ahead 1", 0, extended_grant,
     "ask A, ask B, restart A, replicate, fail_over, advance 4, ask B, draw B, restart B, stop, come_back, turn_back, "
     "ask A, advance 4, ask A, advance 1, ask A, stop, start, ask A, ask C, draw C, advance 1, draw C, draw B"},
    // The former primary starts with a clock that is behind. By that one a grant lasts that has ended.
    {"AGrantLastsByAWrongClock", "length 3, longest 3, members 3, end 24, ahead 1", 0, refused(Refusal::starting),
     "ask A, restart A, replicate, registry_clock -5, fail_over, hello B, advance 6, ask B, draw B, restart B, stop, "
     "come_back, turn_back, ask A, registry_clock 0, ask C, draw C"},
    // Its clock was ahead when it granted last.
    {"AClockWasAhead", "length 8, longest 8, members 3, end 24", 0, refused(Refusal::starting),
     "ask A, registry_clock 9, ask B, restart A, replicate, fail_over, advance 4, ask B, draw_all B, restart B, stop, "
     "come_back, turn_back, registry_clock 0, ask A, advance 4, ask C, advance 1, ask C, draw_all C"},
    // The former primary comes back. Its member does not run while there is another one.
    {"AMemberKnowsNothingOfTheNewOne", "nodes 1, length 3, longest 3, end 24", 0, refused(Refusal::starting),
     "ask A, draw_all A, restart A, replicate, fail_over, hello B, advance 6, ask B, draw_all B, stop, come_back, "
     "ask A, draw_all A"},
    {"AnEndedGrantBeginsNow", "nodes 1, length 3, longest 3, end 24", 0, extended_grant,
     "ask A, restart A, replicate, fail_over, hello B, advance 6, ask B, draw_all B, restart B, stop, come_back, "
     "hello A, advance 7, ask A, draw_all A"},
};

Scenario scenario(const std::string &name) {
    const auto is = [&](const Scenario &s) { return s.name == name; };
    const auto found = std::find_if(scenarios.begin(), scenarios.end(), is);
    return found != scenarios.end() ? *found : *std::find_if(stories.begin(), stories.end(), is);
}

const Protocol shipped;

class Fleet : public ::testing::TestWithParam<size_t> {};

// Nothing is broken to the scenario's depth.
TEST_P(Fleet, IsSound) {
    const Scenario &of = scenarios[GetParam()];
    const Found found = search(shipped, of, of.depth);
    std::cout << "  " << found.states << " states, depth " << found.depth << std::endl;
    EXPECT_EQ(found.broken, "") << found.path;
    EXPECT_EQ(found.events & of.events, of.events);
}

TEST(Stories, AreSound) {
    for (const Scenario &story : stories) {
        const Found found = tell(shipped, story);
        EXPECT_EQ(found.broken, "") << story.name << ": " << found.path;
        EXPECT_EQ(found.events & story.events, story.events) << story.name << ": " << found.path;
    }
}

INSTANTIATE_TEST_SUITE_P(Scenarios, Fleet, ::testing::Range<size_t>(0, scenarios.size()),
                         [](const auto &of) { return scenarios[of.param].name; });

// Deeper than is needed to find what breaks without a rule.
TEST(Fleets, DeeperSearches) {
    const std::pair<const char *, int> all[] = {
        {"LateAsksHarmNobody", 8},   {"LostCommitsAreFenced", 7},        {"AMembershipGetsANodeTwice", 11},
        {"OfTwoCopiesOneGoesOn", 7}, {"AJoiningMembersNodeIsRaised", 8}, {"AnotherFleetIsRefused", 8},
        {"AFenceIsCanceled", 8},     {"ARegistryIsHandedOver", 9},       {"AFormerPrimaryIsTheRegistryAgain", 9},
        {"GrantsAreInvented", 8}};
    for (const auto &[name, depth] : all) {
        const Found found = search(shipped, scenario(name), depth);
        EXPECT_EQ(found.broken, "") << name << ": " << found.path;
    }
}

// More time, longer grants, and these steps as well.
Scenario far(Scenario of, const std::string &steps) {
    of.size.longest = of.size.length = 5;
    of.size.end = 28;
    const std::vector<Step> more = steps_of(steps);
    of.steps.insert(of.steps.end(), more.begin(), more.end());
    return of;
}

void expect_sound_walks(Scenario of, const std::string &steps, uint64_t seed, int walks, int length) {
    of = far(of, steps);
    const Found found = walk(shipped, of, seed, walks, length);
    EXPECT_EQ(found.broken, "") << found.path;
    std::cout << "  " << found.states << " steps, " << found.needless_fences << " needless fences" << std::endl;
}

TEST(Fleets, WalkFarWithoutLostCommits) {
    Scenario of = scenario("WithoutLostCommitsNoClockMatters");
    of.size.members = 3;
    expect_sound_walks(of, "ask C, ask_unanswered C, draw C, draw_all C, restart C, clock C 0 1 5", 20260121, 40000,
                       60);
}

TEST(Fleets, WalkFarWithLostCommits) {
    Scenario of = scenario("LostCommitsAreFenced");
    of.size.never_superseded = 0;
    expect_sound_walks(of,
                       "draw AB, ask_slowly AB, remake AB, copy_disk AB, copy_directory AB, ask C, ask_unanswered C, "
                       "draw C, draw_all C, restart C, arrive, fence, clock B 0 1 -9, ask_together ABC 0 1 2",
                       20260122, 80000, 80);
}

TEST(Fleets, WalkFarWithTwoRegistries) {
    Scenario of = scenario("TwoRegistriesAreAlive");
    of.size.members = 3;
    of.size.nodes = 2;
    of.steps.clear();
    expect_sound_walks(of,
                       "ask ABC, draw ABC, draw_all ABC, restart ABC, remake ABC, ask_unanswered AB, deliver, "
                       "cut BC 0 1 2, advance 1 1 3, clock B 0 1 -9, registry_clock 0 1, replicate, fail_over, split, "
                       "come_back, move, put_back, claim, restore_copy, fence",
                       20260123, 80000, 80);
}

// Members are down for a while, and so does either registry.
constexpr char far_former[] =
    "ask ABC, draw_all ABC, restart ABC, advance 1 1 1 3, come_back, stop, start, replicate, fail_over";

Scenario with_three(Scenario of) {
    of.size.members = 3;
    of.size.nodes = 2;
    if (of.name == "AFormerPrimaryReturnsLate")
        of.steps.clear();
    return of;
}

TEST(Fleets, WalkFarWithFormerPrimaries) {
    expect_sound_walks(with_three(scenario("AFormerPrimaryReturnsLate")),
                       std::string(far_former) + ", registry_clock 0 -1", 20261126, 60000, 60);
}

TEST(Fleets, WalkFarWithLostRegistries) {
    for (const char *lost : {"lose_registry 0", "lose_registry 1", "back_up, promote_copy 0 1"})
        expect_sound_walks(with_three(scenario("AFormerPrimaryReturnsLate")),
                           std::string(far_former) + ", registry_clock 0 1, claim, fence, " + lost, 20261127, 40000,
                           60);
}

TEST(Fleets, WalkFarWithHandovers) {
    for (const char *more : {"hand_over, open, replicate, fail_over, turn_back, cancel 0 1, registry_clock 0 1",
                             "lose_registry 0, claim"}) {
        Scenario of = with_three(scenario("AFormerPrimaryIsTheRegistryAgain"));
        of.steps.clear();
        expect_sound_walks(of,
                           "ask ABC, hello ABC, draw_all ABC, restart ABC, advance 1 1 1 3, come_back, stop, start, "
                           "fence, show_claim 4, invent 0 1, " +
                               std::string(more),
                           20261128, 40000, 60);
    }
}

// ---------------------------------------------------------------------------------------------------------
// What the model does not reach.

constexpr int64_t s_us = INT64_C(1000) * 1000;
constexpr int64_t now_us = INT64_C(1800000000) * s_us;
constexpr Layout leaf = {INT64_C(1288834974657) * 1000, 1000, 41, 0, 10, 12};
constexpr Layout hours = {INT64_C(1767225600) * s_us, max_tick_us, 20, 0, 10, 12};

RegistryView registry_at(int64_t clock_us) {
    RegistryView r = {};
    r.fleet = this_fleet;
    r.term = {1, 1};
    r.first = 1;
    r.own_serial = 2;
    r.longest_us = 600 * s_us;
    r.bound_us = 10 * s_us;
    r.now_us = clock_us;
    return r;
}

RegistryView fenced(const RegistryView &r, int64_t latest_end_us = 0) {
    return succeeded(r, {r.term.nonce + 1, 1}, Commits::may_be_lost, {latest_end_us, 0});
}

TEST(Grant, FencesOnlyRise) {
    const RegistryView first = fenced(registry_at(now_us));
    RegistryView later = first;
    later.now_us = now_us - 3600 * s_us;
    EXPECT_EQ(fenced(later).fence_base_us, now_us);
}

TEST(Term, NumbersAreTheClocksUnlessItIsBehind) {
    RegistryView r = fenced(registry_at(now_us));
    EXPECT_EQ(r.term.number, now_us);
    r.now_us += s_us;
    EXPECT_EQ(fenced(r).term.number, now_us + s_us);
    r.now_us -= 3600 * s_us;
    EXPECT_EQ(fenced(r).term.number, now_us + 1) << "and above the former one, by the random step";
    r.shown = {now_us + 7, 1};
    EXPECT_EQ(fenced(r).term.number, now_us + 8);
    EXPECT_EQ(fenced(r).shown.number, 0);
    EXPECT_EQ(fenced(r).first, 1);
    r.claimed = now_us + 9;
    EXPECT_EQ(fenced(r).term.number, now_us + 10);
    EXPECT_EQ(fenced(r).claimed, 0);
    EXPECT_EQ(fenced(r).first, now_us + 10) << "what the other registry gives cannot be proved";
}

// No clock has drawn a number that is more than a day ahead.
TEST(Term, ANumberFarAheadDoesNotExist) {
    const int64_t far_us = now_us + 2 * 86400 * s_us;
    RegistryView r = registry_at(now_us);
    EXPECT_TRUE(is_claim(r, {now_us + 3600 * s_us, 1}));
    EXPECT_FALSE(is_claim(r, {far_us, 1}));
    EXPECT_FALSE(is_claim(r, {largest_term, 1}));
    EXPECT_TRUE(is_news(r, {now_us + 3600 * s_us, 1}));
    EXPECT_FALSE(is_news(r, {far_us, 1})) << "one member would stop the fleet";
    const int64_t latest_us = now_us + 43200 * s_us - r.bound_us - longest_step;
    EXPECT_TRUE(is_claim(r, {latest_us, 1}));
    EXPECT_FALSE(is_claim(r, {latest_us + 1, 1}));
    r.claimed = latest_us;
    EXPECT_EQ(fenced(fenced(r)).term.number, latest_us + 2) << "the number would fall";
    r.claimed = far_us;
    EXPECT_EQ(fenced(r).term.number, now_us);
    r.term.number = far_us; // by a wrong clock, so that no member has taken it
    EXPECT_EQ(fenced(r).term.number, now_us);
    EXPECT_TRUE(is_news(r, {far_us, r.term.nonce + 1})) << "a rival has it, too";
}

TEST(Term, AClaimEnds) {
    RegistryView r = registry_at(now_us);
    r.claimed = now_us;
    EXPECT_EQ(judge_admission(r), Refusal::claimed);
    r.claimed = 0;
    EXPECT_EQ(judge_admission(r), Refusal::none);
    EXPECT_EQ(claim_us(r), 620 * s_us);
}

// Its clock may be set right then, and neither ends nor prolongs it.
TEST(Term, AStartIsFollowedByAWait) {
    RegistryView r = registry_at(now_us);
    r.started_us = now_us + 3600 * s_us;
    r.up_us = 920 * s_us - 1;
    EXPECT_TRUE(is_in_wait(r));
    EXPECT_EQ(wait_end_us(r), now_us + 1);
    r.up_us++;
    EXPECT_FALSE(is_in_wait(r));
}

// A registry refuses a grant of a later term than the stamp as invalid.
TEST(Grant, IsShownWithAStampAlone) {
    Request ask = {};
    ask.holds = true;
    ask.held.term = {4, 1};
    ask.seen = {1, {4, 1}, 1, 9};
    EXPECT_TRUE(with_proof(ask).holds);
    ask.seen.seal = 0;
    EXPECT_EQ(with_proof(ask).seen.term.number, 0);
    EXPECT_FALSE(with_proof(ask).holds);
}

// A clock that is behind: the rows show how late it is at least.
TEST(Grant, RowsMakeUpForAClockThatIsBehind) {
    const RegistryView r = registry_at(now_us - 3600 * s_us);
    const NodeRow row = {5, 0, tick_at(leaf, now_us + r.longest_us), 1, 1, {1, 1}, 1, 0};
    EXPECT_EQ(fenced(r, latest_end_us(leaf, r, row.until)).fence_base_us, now_us);
}

// A grant has at least two ticks, which may be longer than the longest grant. That must not move the fence.
TEST(Grant, LongTicksDoNotMoveTheFence) {
    const RegistryView r = registry_at(now_us);
    const int64_t tick = tick_at(hours, now_us);
    const NodeRow row = {5, tick, tick + 2, 1, 1, {1, 1}, 1, 0};
    EXPECT_EQ(fenced(r, latest_end_us(hours, r, row.until)).fence_base_us, now_us);
}

// That is no fence, whether there was one or not.
TEST(Grant, BeforeTheEpochTheAskerIsAhead) {
    Layout soon = leaf;
    soon.epoch_us = now_us + 30 * s_us;
    Request ask = {};
    ask.incarnation = 1;
    ask.length = 600000;
    RegistryView r = registry_at(now_us);
    for (const int64_t base_us : {INT64_C(0), now_us - 3600 * s_us, now_us}) {
        r.fence_base_us = base_us;
        EXPECT_EQ(judge(soon, r, ask, {}).verdict, Verdict::refuse);
        EXPECT_EQ(judge(soon, r, ask, {}).why, Refusal::ahead);
    }
    r = registry_at(now_us + 20 * s_us);
    EXPECT_EQ(judge(soon, r, ask, {}).verdict, Verdict::newcomer) << "within the bound of the epoch";
}

TEST(Grant, EndsWithTheLayout) {
    const RegistryView r = registry_at(start_of(leaf, largest(leaf.time_bits)) - s_us);
    Request a = {};
    a.incarnation = 1;
    a.length = 60000;
    a.lowest = tick_at(leaf, r.now_us);
    const NodeRow row = granted(leaf, r, a, {5, 0, 0, 0, 0, {}, 0, 0});
    EXPECT_EQ(row.until, largest(leaf.time_bits) + 1);
    EXPECT_EQ(extended(leaf, r, a, row).until, largest(leaf.time_bits) + 1);
}

TEST(Grant, WhoseHolderIsRevokedIsRefused) {
    const RegistryView r = registry_at(now_us);
    Request a = {};
    a.incarnation = 1;
    a.lowest = tick_at(leaf, now_us);
    a.length = 60000;
    const NodeRow row = granted(leaf, r, a, {5, 0, 0, 0, 0, {}, 0, 0});
    a.holds = true;
    a.held = {5, row.from, row.until, row.membership, row.term, 1};
    ASSERT_EQ(judge(leaf, r, a, row).verdict, Verdict::extend);
    const NodeRow after = revoked(leaf, r, row, 2000);
    EXPECT_EQ(after.until, tick_at(leaf, now_us + r.bound_us) + 2001);
    EXPECT_EQ(judge(leaf, r, a, after).why, Refusal::superseded);
}

// A server has met a registry with another key, and no registry of its grant's key since.
TEST(Grant, CountsByItsOwnProof) {
    RegistryView r = registry_at(now_us);
    Request a = {};
    a.seen = {r.fleet, {7, 1}, 9, 1};
    a.holds = true;
    a.held = {5, 10, 20, 1, {2, 1}, 1};
    r.first = 8;
    EXPECT_TRUE(without_proof(leaf, r, a, true).holds);
    EXPECT_EQ(without_proof(leaf, r, a, true).seen.term.number, 0);
    EXPECT_FALSE(without_proof(leaf, r, a, false).holds);
}

TEST(Membership, AnotherNodesGrantEndsWhereItSays) {
    Membership m = {};
    FleetSeen seen = {};
    begin_membership(&m, 1);
    ASSERT_TRUE(accept(&m, &seen, {Refusal::none, 1, 1, {4, 10, 90, 1, {1, 1}, 1}}));
    ASSERT_TRUE(accept(&m, &seen, {Refusal::none, 1, 1, {6, 20, 50, 1, {1, 1}, 2}}));
    EXPECT_EQ(m.held.until, 50);
    ASSERT_TRUE(accept(&m, &seen, {Refusal::none, 1, 1, {6, 20, 40, 1, {1, 1}, 3}}));
    EXPECT_EQ(m.held.until, 50) << "what was granted stays granted";
}

TEST(Membership, TooManyLivesWithoutAnAnswerBeginAMembership) {
    Membership m = {};
    begin_membership(&m, 1);
    m.holds = true;
    for (uint64_t life = 2; life < 2 + most_former; life++)
        begin_incarnation(&m, life);
    EXPECT_TRUE(m.holds);
    EXPECT_EQ(m.former.incarnations[most_former - 1], most_former);
    begin_incarnation(&m, 1000);
    EXPECT_FALSE(m.holds);
    EXPECT_EQ(m.former.count, 0u);
    EXPECT_EQ(m.incarnation, 1000u);
}

// ---------------------------------------------------------------------------------------------------------
// Mutants: the protocol without one of its rules.

constexpr int by_walks = -1;
constexpr int by_story = -2;

struct Mutant {
    const char *name;
    const char *scenario;
    Protocol protocol;
    int depth = 0;         // 0: the scenario's; by_walks: seeded walks go further; by_story: the story is told
    bool by_alarm = false; // what breaks is a fence that is not needed
};

// The protocol that ships, or another one, with one thing replaced.
template <typename T> Protocol with(T Protocol::*field, std::common_type_t<T> value, Protocol protocol = {}) {
    protocol.*field = value;
    return protocol;
}

bool accept_as(Membership *m, FleetSeen *seen, const Answer &answer, void (*blind)(Membership *, FleetSeen *)) {
    Membership blind_m = *m;
    FleetSeen blind_seen = *seen;
    blind(&blind_m, &blind_seen);
    const FleetSeen before = blind_seen;
    const bool result = accept(&blind_m, &blind_seen, answer);
    if (result || blind_m.superseded || blind_seen.term != before.term || blind_seen.serial != before.serial) {
        *m = blind_m;
        *seen = blind_seen;
    }
    return result;
}

Judgement extended_anyway(Judgement j, bool anyway) {
    return anyway && j.verdict != Verdict::fence ? Judgement{Verdict::extend, Refusal::none} : j;
}

bool is_in_doubt(const RegistryView &r, const Request &a, const NodeRow &row) { return a.holds && row.term != r.term; }

RegistryView without_cap(RegistryView r) {
    r.now_us += 1000;
    return r;
}

bool unused_or_beyond_fence(const Layout &l, const RegistryView &r, const Request &a, const NodeRow &row) {
    return row.until == 0 || (is_free(l, r, a, row) && beginning(l, r, a) >= fence_tick(l, r));
}

// Of newcomers. Does not say whether there is another one.
Best last_registry(const Hello *hellos, int count, const FleetSeen &seen) {
    const Best best = best_registry(hellos, count, seen);
    if (seen.fleet != 0)
        return best;
    const bool is_like_last =
        best.index != no_registry && hellos[count - 1].answers && hellos[count - 1].term == hellos[best.index].term;
    return {is_like_last ? count - 1 : best.index, true};
}

bool free_inside_fence(const Layout &l, const RegistryView &r, const Request &a, const NodeRow &row) {
    return is_free(l, r, a, row) && beginning(l, r, a) < fence_tick(l, r);
}

bool free_or_own_inside_fence(const Layout &l, const RegistryView &r, const Request &a, const NodeRow &row) {
    return is_free(l, r, a, row) || (row.node == 0 && beginning(l, r, a) < fence_tick(l, r));
}

NodeRow granted_until_the_later(const Layout &l, const RegistryView &r, const Request &a, const NodeRow &row) {
    NodeRow after = granted(l, r, a, row);
    after.until = std::max(after.until, row.until);
    return after;
}

Judgement judge_without_fence(const Layout &l, const RegistryView &r, const Request &a, const NodeRow &row) {
    const Judgement j = judge(l, r, a, row);
    return j.why == Refusal::fenced ? Judgement{Verdict::newcomer, Refusal::none} : j;
}

Commits knowing(const RegistryView &r, bool is_synchronous) {
    RegistryView sure = r;
    sure.granted_at_start_us = 0;
    return commits_of_former(sure, is_synchronous);
}

const Mutant mutants[] = {
    // What the registry decides.
    {"a newcomer below until", "WithoutLostCommitsNoClockMatters",
     with(&Protocol::is_free, [](auto &, auto &, auto &, auto &) { return true; })},
    {"a newcomer one tick below until", "WithoutLostCommitsNoClockMatters",
     with(&Protocol::is_free,
          [](auto &l, auto &r, auto &a, auto &row) { return row.until <= beginning(l, r, a) + 1; })},
    {"a node that another membership got is kept", "FencesHarmNobodyWhateverTheClocks",
     with(&Protocol::judge,
          [](auto &l, auto &r, auto &a, auto &row) { return extended_anyway(judge(l, r, a, row), a.holds); })},
    {"until + length", "FencesAreTight",
     with(&Protocol::extended,
          [](auto &l, auto &r, auto &a, auto &row) {
              NodeRow after = extended(l, r, a, row);
              if (row.until != 0)
                  after.until = std::max(after.until, row.until + grant_ticks(l, r, a));
              return after;
          })},
    {"a repeated request is a newcomer's", "WithoutLostCommitsNoClockMatters",
     with(&Protocol::is_missed, [](auto &, auto &) { return false; })},
    {"an earlier life's answer is taken for a missed one", "OfTwoCopiesOneGoesOn",
     with(
         &Protocol::judge,
         [](auto &l, auto &r, auto &a, auto &row) {
             Request b = a;
             if (!a.holds && row.membership != 0)
                 b.incarnation = row.incarnation;
             return judge(l, r, b, row);
         },
         with(&Protocol::is_missed, [](auto &a, auto &row) { return !a.holds && is_same_life(a, row); }))},
    {"a superseded life is extended", "OfTwoCopiesOneGoesOn",
     with(&Protocol::judge,
          [](auto &l, auto &r, auto &a, auto &row) {
              const Judgement j = judge(l, r, a, row);
              return extended_anyway(j, j.why == Refusal::superseded && row.membership == a.held.membership);
          })},
    {"after a fence a superseded life is extended", "OfTwoCopiesOneGoesOn",
     with(&Protocol::judge,
          [](auto &l, auto &r, auto &a, auto &row) {
              const Judgement j = judge(l, r, a, row);
              return extended_anyway(j, j.why == Refusal::superseded && row.membership == a.held.membership &&
                                            row.term != r.term);
          })},
    // Fences.
    {"no fence: the timeline is not compared", "LostCommitsAreFenced", with(&Protocol::compares_timeline, false)},
    {"a fence without the clock", "LostCommitsAreFenced",
     with(&Protocol::succeeded,
          [](RegistryView r, auto &drawn, Commits commits, auto &known) {
              RegistryView after = succeeded(r, drawn, commits, known);
              after.fence_base_us = std::max(r.fence_base_us, known.latest_end_us - r.longest_us);
              return after;
          })},
    {"a fence without a new term", "LostCommitsAreFenced",
     with(&Protocol::succeeded,
          [](RegistryView r, auto &drawn, Commits commits, auto &known) {
              RegistryView after = succeeded(r, drawn, commits, known);
              after.term = r.term;
              return after;
          })},
    {"a fence without the longest grant, by one tick", "FencesAreTight",
     with(&Protocol::judge,
          [](auto &l, auto &r, auto &a, auto &row) {
              const Judgement j = judge(l, r, a, row);
              const bool passes = j.why == Refusal::fenced && beginning(l, r, a) + 1 >= fence_tick(l, r);
              return passes ? Judgement{Verdict::newcomer, Refusal::none} : j;
          })},
    {"a fence with one bound, not two", "FencesAreTight",
     with(&Protocol::judge,
          [](auto &l, auto &r, auto &a, auto &row) {
              RegistryView lower = r;
              lower.fence_base_us -= lower.fence_base_us != 0 ? r.bound_us : 0;
              return judge(l, lower, a, row);
          })},
    {"a survivor's grant begins where the registry says", "AMembershipGetsANodeTwice",
     with(&Protocol::extended,
          [](auto &l, auto &r, auto &a, auto &row) {
              NodeRow after = extended(l, r, a, row);
              if (row.membership == after.membership)
                  after.from = row.from;
              return after;
          })},
    {"a fence that does not bind unused nodes", "LostCommitsAreFenced",
     with(&Protocol::is_free, unused_or_beyond_fence, with(&Protocol::judge, judge_without_fence))},
    // A registry whose own server is a member could keep a node for itself alone, so that it
    // would need to wait for no fence (docs/design.md).
    {"a node that only the server of a promoted registry gets, inside the fence", "ACopyOfAnEarlierStateTakesOver",
     with(&Protocol::is_free, free_inside_fence, with(&Protocol::judge, judge_without_fence))},
    {"the node of the former primary's own generator passes to that of a promoted registry",
     "AMembershipGetsANodeTwice",
     with(&Protocol::is_free, free_or_own_inside_fence,
          with(&Protocol::granted, granted_until_the_later, with(&Protocol::judge, judge_without_fence)))},
    {"no cap", "FencesAreTight",
     with(
         &Protocol::granted, [](auto &l, auto &r, auto &a, auto &row) { return granted(l, without_cap(r), a, row); },
         with(
             &Protocol::is_free,
             [](auto &l, auto &r, auto &a, auto &row) { return is_free(l, without_cap(r), a, row); },
             with(
                 &Protocol::extended,
                 [](auto &l, auto &r, auto &a, auto &row) { return extended(l, without_cap(r), a, row); },
                 with(&Protocol::judge,
                      [](auto &l, auto &r, auto &a, auto &row) { return judge(l, without_cap(r), a, row); }))))},
    {"survivors are extended unconditionally", "FencesAreTight",
     with(&Protocol::judge,
          [](auto &l, auto &r, auto &a, auto &row) {
              RegistryView open = r;
              open.fence_base_us = is_in_doubt(r, a, row) ? 0 : r.fence_base_us;
              return judge(l, open, a, row);
          })},
    {"survivors are extended one tick too low", "FencesAreTight",
     with(&Protocol::judge,
          [](auto &l, auto &r, auto &a, auto &row) {
              RegistryView lower = r;
              lower.fence_base_us -= is_in_doubt(r, a, row) ? r.bound_us : 0;
              const Judgement j = judge(l, lower, a, row);
              return j.verdict == Verdict::extend ? j : judge(l, r, a, row);
          })},
    {"survivors are not extended", "LostCommitsAreFenced",
     with(&Protocol::judge,
          [](auto &l, auto &r, auto &a, auto &row) {
              const Judgement j = judge(l, r, a, row);
              return j.verdict == Verdict::extend && is_in_doubt(r, a, row)
                         ? Judgement{Verdict::newcomer, Refusal::none}
                         : j;
          })},
    {"of two memberships the one that asks first is extended", "FencesHarmNobodyWhateverTheClocks",
     with(&Protocol::judge,
          [](auto &l, auto &r, auto &a, auto &row) {
              const bool other_membership = is_in_doubt(r, a, row) && row.membership != a.held.membership;
              return judge(l, r, a, other_membership ? NodeRow{} : row);
          })},
    {"what members show is not compared", "CommitsAreLostAgain",
     with(&Protocol::judge,
          [](auto &l, auto &r, auto &a, auto &row) {
              Request b = a;
              b.seen.serial = std::min(a.seen.serial, r.own_serial - 1);
              if (a.holds && a.held.term == r.term && row.term != r.term)
                  b.held.term = {};
              else if (a.holds && a.held.term == r.term)
                  b.held.serial = std::min(a.held.serial, row.serial);
              return judge(l, r, b, row);
          })},
    {"an old registry goes on", "CommitsAreLostAgain",
     with(&Protocol::judge,
          [](auto &l, auto &r, auto &a, auto &row) {
              RegistryView blind = r;
              blind.shown = {};
              Request b = a;
              if (a.seen.term.number > r.term.number)
                  b.seen = {a.seen.fleet, r.term, 0, 0};
              return judge(l, blind, b, row);
          })},
    {"a later term that was shown is forgotten", "CommitsAreLostAgain",
     with(&Protocol::is_news, [](auto &, auto &) { return false; })},
    // Dead holders and joining members.
    {"a dead holder's node is granted without the bound", "ADeadHoldersNodeIsGrantedAgain",
     with(&Protocol::revoked,
          [](auto &l, auto &r, auto &row, int64_t ahead) {
              RegistryView exact = r;
              exact.bound_us = 0;
              return revoked(l, exact, row, ahead);
          })},
    {"a dead holder was never ahead of its clock", "ADeadHoldersNodeIsGrantedAgain",
     with(&Protocol::revoked, [](auto &l, auto &r, auto &row, int64_t) { return revoked(l, r, row, 0); })},
    {"a dead membership is extended after a fence", "ADeadHoldersNodeIsGrantedAgain",
     with(&Protocol::judge,
          [](auto &l, auto &r, auto &a, auto &row) {
              const bool later = is_in_doubt(r, a, row) && row.until != 0 && a.held.until > row.until;
              return extended_anyway(judge(l, r, a, row), later && a.held.until > last_lost_beginning(l, r));
          })},
    {"a joining member's node is not raised", "AJoiningMembersNodeIsRaised",
     with(&Protocol::used_before, [](auto &, auto &, auto &, NodeRow row, int64_t) { return row; })},
    {"a joining member's node is raised, and keeps its membership", "AJoiningMembersNodeIsRaised",
     with(&Protocol::used_before,
          [](auto &l, auto &r, auto &a, NodeRow row, int64_t until) {
              if (is_free(l, r, a, row))
                  row.until = std::max(row.until, until);
              return row;
          })},
    {"another fleet's members get nodes", "AnotherFleetIsRefused",
     with(&Protocol::judge,
          [](auto &l, auto &r, auto &a, auto &row) {
              Request b = a;
              b.seen.fleet = r.fleet;
              return judge(l, r, b, row);
          })},
    // Two registries.
    {"a newcomer asks the first registry that answers, and no other", "AFormerPrimaryComesBack",
     with(
         &Protocol::best_registry,
         [](const Hello *hellos, int,
            const FleetSeen &) -> Best { return {hellos[0].answers   ? 0
                                                 : hellos[1].answers ? 1
                                                                     : no_registry,
                                                 true}; },
         with(
             &Protocol::told_of_other, [](RegistryView r, int64_t) { return r; },
             with(&Protocol::shows_others, false)))},
    {"a registry is not shown that another one has taken over", "TwoRegistriesAreAlive",
     with(&Protocol::shows_others, false)},
    {"a registry is not told when another one granted last", "TwoRegistriesAreAlive",
     with(&Protocol::told_of_other, [](RegistryView r, int64_t) { return r; }), by_walks},
    {"a registry that starts admits newcomers at once", "AFormerPrimaryComesBack",
     with(&Protocol::with_wait, [](RegistryView r) { return r; })},
    {"a newcomer opens a registry that starts, by what that has told it", "AFormerPrimaryComesBack",
     with(&Protocol::ends_wait, [](auto &, auto &, auto &a, int64_t) { return a.seen.term.number != 0; })},
    {"a registry that starts when its grants have ended admits newcomers at once", "AFormerPrimaryReturnsLate",
     with(&Protocol::always_waits, false)},
    {"a registry that starts waits for the longest grant only", "AFormerPrimaryReturnsLate",
     with(&Protocol::with_wait, [](RegistryView r) { return r.up_us < r.longest_us ? with_wait(r) : r; }), by_walks},
    {"a registry that starts waits by a clock that is set right then", "AClockIsSetRightAfterAStart",
     with(&Protocol::with_wait,
          [](RegistryView r) {
              r.up_us = r.now_us - r.started_us;
              return with_wait(r);
          }),
     by_story},
    {"a member that opens a registry that starts opens all nodes", "AFormerPrimaryReturnsLate",
     with(&Protocol::is_free,
          [](auto &l, auto &r, auto &a, auto &row) {
              RegistryView open = r;
              open.ended_by_us = 0;
              return is_free(l, open, a, row);
          }),
     by_walks},
    {"a grant that has ended begins where it began", "AnEndedGrantBeginsNow",
     with(&Protocol::extended,
          [](auto &l, auto &r, auto &a, auto &row) {
              NodeRow after = extended(l, r, a, row);
              after.from = a.holds ? a.held.from : row.from;
              return after;
          }),
     by_story},
    {"a member whose grant has ended opens a registry that starts", "AMemberKnowsNothingOfTheNewOne",
     with(&Protocol::ends_wait,
          [](auto &l, auto &r, auto &a, int64_t last_serial) {
              Request live = a;
              live.held.until = largest(l.time_bits);
              return ends_wait(l, r, live, last_serial);
          }),
     by_story},
    {"a grant that has ended is extended although no newcomer is admitted", "AMemberKnowsNothingOfTheNewOne",
     with(&Protocol::judge,
          [](auto &l, auto &r, auto &a, auto &row) {
              RegistryView open = r;
              open.awaits_member = false;
              const Judgement j = judge(l, open, a, row);
              return j.verdict == Verdict::extend ? j : judge(l, r, a, row);
          }),
     by_story},
    {"a member that is connected asks no other registry", "AFormerPrimaryReturnsLate", with(&Protocol::looks, false),
     13},
    {"a member goes back to an earlier registry", "AFormerPrimaryReturnsLate",
     with(&Protocol::best_registry,
          [](const Hello *hellos, int count, const FleetSeen &seen) {
              FleetSeen blind = seen;
              blind.term.number = 0;
              return best_registry(hellos, count, blind);
          })},
    {"a line leads to a registry that was lost", "ARegistryIsLost", with(&Protocol::has_other_line, false), 11},
    {"an unproved number is ignored", "AnUnprovedTermIsShown",
     with(&Protocol::is_claim, [](auto &, auto &) { return false; })},
    {"under an unproved number a grant that has ended is extended", "AnUnprovedTermIsShown",
     with(&Protocol::judge,
          [](auto &l, auto &r, auto &a, auto &row) {
              RegistryView open = r;
              open.claimed = 0;
              const Judgement j = judge(l, open, a, row);
              return j.verdict == Verdict::extend ? j : judge(l, r, a, row);
          })},
    {"an unproved number stops a member whose grant lasts", "AnUnprovedTermIsShown",
     with(&Protocol::judge,
          [](auto &l, auto &r, auto &a, auto &row) {
              return r.claimed > r.term.number ? Judgement{Verdict::refuse, Refusal::claimed} : judge(l, r, a, row);
          })},
    // Invented grants.
    {"an invented grant counts in each fence", "GrantsAreInvented",
     with(&Protocol::without_proof,
          [](auto &l, auto &r, Request a, bool is_held_proven) {
              RegistryView open = r;
              open.unproven_base_us = r.fence_base_us;
              return without_proof(l, open, a, is_held_proven);
          })},
    {"an invented grant counts in the fence of a claim", "GrantsAreInvented",
     with(&Protocol::succeeded,
          [](RegistryView r, auto &drawn, Commits commits, auto &known) {
              RegistryView after = succeeded(r, drawn, commits, known);
              after.unproven_base_us = r.unproven_base_us;
              return after;
          })},
    {"an invented grant counts to its end", "GrantsAreInvented",
     with(&Protocol::without_proof,
          [](auto &l, auto &r, Request a, bool is_held_proven) {
              Request b = without_proof(l, r, a, is_held_proven);
              b.held.until = b.holds ? a.held.until : 0;
              return b;
          })},
    // Hellos.
    {"a later term does not count from the hello on", "AHelloIsKept",
     with(&Protocol::seen_after_hello, [](auto &seen, auto &) { return seen; }), by_story},
    {"of a closed registry the clock says whether it has granted", "TheHelloOfAClosedRegistryIsKept",
     with(
         &Protocol::may_have_granted,
         [](auto &hello, int64_t last_us) { return hello.why == Refusal::none || last_us >= hello.grant.term.number; }),
     by_story},
    {"the hello of a copy without a standby is kept", "TheHelloOfACopyIsNotKept",
     with(&Protocol::may_have_granted, [](auto &hello, int64_t) { return hello.why != Refusal::unclaimed; }), by_story},
    {"the hello of an unclaimed copy is kept", "TheHelloOfAnUnclaimedCopyIsNotKept",
     with(&Protocol::may_have_granted, [](auto &, int64_t) { return true; }), by_story},
    {"a hello is no evidence of lost commits", "AHelloShowsWhatWasLost", with(&Protocol::hello_is_evidence, false),
     by_story},
    // Handovers.
    {"a registry that is handed over goes on", "ARegistryIsHandedOver", with(&Protocol::closes, false)},
    {"a registry that is handed over is opened at once", "AHandoverIsCanceledAtOnce",
     with(&Protocol::may_open_us, [](auto &) -> int64_t { return 0; }), by_story},
    {"a handover counts when it has ended", "AHandoverHasEnded",
     with(&Protocol::commits_of_former,
          [](auto &r, bool) { return is_closed(r) ? Commits::are_known : Commits::may_be_lost; }),
     by_story},
    {"a handover ends without the bound", "AHandoverEndsByTwoClocks",
     with(
         &Protocol::may_open_us, [](auto &r) { return r.closed_until_us; },
         with(&Protocol::commits_of_former,
              [](auto &r, bool) { return r.now_us < r.closed_until_us ? Commits::are_known : Commits::may_be_lost; })),
     by_story},
    {"a closed registry shows the serials that it draws", "AClosedRegistryIsAsked",
     with(&Protocol::answered_serial, [](auto &r) { return r.own_serial; }), by_story, true},
    {"a closed registry that has started is handed over", "AClosedRegistryIsHandedOverAgain",
     with(&Protocol::judge_handover, [](auto &r, int64_t) { return judge_handover(r, r.started_us); }), by_story},
    {"a registry that waits is handed over, and the next one raises no fence", "ARegistryThatWaitsIsHandedOver",
     with(
         &Protocol::judge_handover, [](auto &, int64_t) { return Refusal::none; },
         with(&Protocol::commits_of_former, knowing)),
     by_story},
    {"a handover counts although the registry has met another one", "AHandedOverRegistryMeetsAnotherOne",
     with(&Protocol::commits_of_former,
          [](auto &r, bool) { return is_handed_over(r) ? Commits::are_known : Commits::may_be_lost; }),
     by_story},
    {"a closed registry loses nothing", "AClosedRegistryFails",
     with(&Protocol::commits_of_former,
          [](auto &r, bool is_synchronous) {
              RegistryView open = r;
              open.closed_until_us = 0;
              return commits_of_former(open, is_synchronous);
          }),
     by_story},
    {"a handover is canceled without a fence", "AHandoverIsCanceledTooLate",
     with(&Protocol::after_cancel, Commits::are_known), by_story},
    {"a start in a wait forgets that one", "ARegistryStartsAgainInItsWait",
     with(&Protocol::started,
          [](RegistryView r, int64_t at_us, int64_t granted_us, bool is_synchronous) {
              r.granted_at_start_us = 0;
              return started(r, at_us, granted_us, is_synchronous);
          }),
     by_story},
    {"a member ends the wait by the registry's clock alone", "AGrantLastsByAWrongClock",
     with(&Protocol::ends_wait,
          [](auto &l, auto &r, auto &a, int64_t last_serial) {
              Request late = a;
              late.clock_us = 0;
              return ends_wait(l, r, late, last_serial);
          }),
     by_story},
    {"a member ends the wait although the clock was ahead", "AClockWasAhead",
     with(&Protocol::started,
          [](RegistryView r, int64_t at_us, int64_t granted_us, bool) {
              r = started(r, at_us, granted_us, false);
              r.serial_at_start = std::max(r.own_serial - 1, INT64_C(1));
              return r;
          }),
     by_story},
    {"a member ends the wait of a synchronous registry", "ASynchronousRegistryIsLost",
     with(&Protocol::started,
          [](RegistryView r, int64_t at_us, int64_t granted_us, bool) { return started(r, at_us, granted_us, false); }),
     by_story},
    {"a server that takes over from one that waits raises no fence", "ARegistryThatWaitsFails",
     with(&Protocol::commits_of_former, knowing), by_story},
    {"the numbers of terms are counted", "ACopyOfAnEarlierStateTakesOver",
     with(&Protocol::succeeded,
          [](RegistryView r, auto &drawn, Commits commits, auto &known) {
              RegistryView after = succeeded(r, drawn, commits, known);
              after.term.number = std::max(r.term.number, r.shown.number) + 1;
              return after;
          })},
    {"terms have no nonce, and of two registries with one newcomers use one", "TwoRegistriesHaveOneNumber",
     with(&Protocol::best_registry, last_registry, with(&Protocol::draws_nonces, false))},
    {"a registry with a rival admits newcomers", "TwoRegistriesHaveOneNumber",
     with(&Protocol::judge,
          [](auto &l, auto &r, auto &a, auto &row) {
              RegistryView blind = r;
              blind.shown = are_rivals(r.shown, r.term) ? Term{} : r.shown;
              return judge(l, blind, a, row);
          })},
    {"a takeover without lost commits draws no term", "ARegistryMoves",
     with(&Protocol::succeeded,
          [](RegistryView r, auto &drawn, Commits commits, auto &known) {
              RegistryView after = succeeded(r, drawn, commits, known);
              after.term = commits == Commits::may_be_lost ? after.term : r.term;
              return after;
          })},
    {"of two registries with one term newcomers use one", "OfAClonedRegistryNewcomersGetNothing",
     with(&Protocol::best_registry, last_registry), 10},
    {"a directory that was put back is not noticed", "ADirectoryIsPutBack", with(&Protocol::compares_directory, false)},
    {"a restored copy is not noticed", "ARestoredCopyGrantsNothing", with(&Protocol::compares_directory, false),
     by_walks},
    {"a registry made anew does not know that it follows another", "ARegistryIsMadeAnew",
     with(&Protocol::says_which_is_new, false)},
    // What the registry's caller does.
    {"an answer before the commit", "WithoutLostCommitsNoClockMatters", with(&Protocol::answers_before_commit, true)},
    {"a request of a batch is answered before the batch is durable", "ABatchIsOneCall",
     with(&Protocol::answers_inside_batch, true)},
    {"what a batch shows is read after its first grant", "ABatchIsOneCall",
     with(&Protocol::reads_evidence_first, false)},
    {"synchronous_commit off", "LostCommitsAreFenced", with(&Protocol::flushes, false)},
    // What a member does.
    {"a lease outside the grant", "WithoutLostCommitsNoClockMatters", with(&Protocol::stays_inside_grant, false)},
    {"no mark of its own", "WithoutLostCommitsNoClockMatters", with(&Protocol::keeps_mark, false)},
    {"directory, host and timeline are not compared", "OfTwoCopiesOneGoesOn",
     with(&Protocol::start_elsewhere, begin_incarnation)},
    {"a standby has the file", "OfTwoCopiesOneGoesOn", with(&Protocol::start_elsewhere, [](Membership *, uint64_t) {})},
    {"a generator without a mark keeps its grant", "OfTwoCopiesOneGoesOn",
     with(&Protocol::start_without_mark, begin_incarnation)},
    {"a start is not a new incarnation", "OfTwoCopiesOneGoesOn",
     with(&Protocol::restart, [](Membership *, uint64_t) {})},
    {"a start forgets the incarnation before it", "WithoutLostCommitsNoClockMatters",
     with(&Protocol::restart, [](Membership *m, uint64_t fresh) { m->incarnation = fresh; })},
    {"a start forgets all incarnations but the one before it", "WithoutLostCommitsNoClockMatters",
     with(&Protocol::restart,
          [](Membership *m, uint64_t fresh) {
              m->former.count = 0;
              begin_incarnation(m, fresh);
          })},
    {"one incarnation a server", "WithoutLostCommitsNoClockMatters", with(&Protocol::own_incarnation, false)},
    {"what an unclaimed registry answers is carried to the registry", "ARestoredCopyGrantsNothing",
     with(&Protocol::accept,
          [](Membership *m, FleetSeen *seen, auto &answer) {
              Answer other = answer;
              other.why = answer.why == Refusal::unclaimed ? Refusal::fenced : answer.why;
              return accept(m, seen, other);
          }),
     0, true},
    {"an answer to an earlier life is accepted", "WithoutLostCommitsNoClockMatters",
     with(&Protocol::accept,
          [](Membership *m, FleetSeen *seen, auto &answer) {
              Answer own = answer;
              own.incarnation = m->incarnation;
              return accept(m, seen, own);
          })},
    {"an older answer is accepted", "WithoutLostCommitsNoClockMatters",
     with(&Protocol::accept,
          [](Membership *m, FleetSeen *seen, auto &answer) {
              return accept_as(m, seen, answer, [](Membership *blind, FleetSeen *) { blind->held.serial = -1; });
          })},
    {"an answer of an earlier term is accepted", "LostCommitsAreFenced",
     with(&Protocol::accept,
          [](Membership *m, FleetSeen *seen, auto &answer) {
              return accept_as(m, seen, answer, [](Membership *, FleetSeen *blind) { blind->term = {}; });
          })},
    {"a refusal has no serial", "OfTwoCopiesOneGoesOn",
     with(&Protocol::accept,
          [](Membership *m, FleetSeen *seen, auto &answer) {
              Answer bare = answer;
              bare.grant.serial = answer.why == Refusal::none ? answer.grant.serial : 0;
              return accept(m, seen, bare);
          })},
    {"another fleet's answer is accepted", "AnotherFleetIsRefused",
     with(&Protocol::accept,
          [](Membership *m, FleetSeen *seen, auto &answer) {
              return accept_as(m, seen, answer, [](Membership *, FleetSeen *blind) { blind->fleet = 0; });
          })},
    {"a superseded life continues after a late answer", "OfTwoCopiesOneGoesOn",
     with(&Protocol::accept,
          [](Membership *m, FleetSeen *seen, auto &answer) {
              return accept_as(m, seen, answer, [](Membership *blind, FleetSeen *) { blind->superseded = false; });
          })},
};

TEST(Fleets, MutantsAreCaught) {
    for (const Mutant &mutant : mutants) {
        Scenario of = scenario(mutant.scenario);
        of.size.never_lost = mutant.by_alarm ? 1 : 0;
        const Found found = mutant.depth == by_walks
                                ? walk(mutant.protocol, far(with_three(of), far_former), 20261126, 250000, 60)
                            : mutant.depth == by_story ? tell(mutant.protocol, of)
                                                       : search(mutant.protocol, of, std::max(of.depth, mutant.depth));
        EXPECT_NE(found.broken, "") << mutant.name;
        std::cout << "  " << mutant.name << " | " << of.name << ", depth " << found.depth << " | " << found.broken
                  << " | " << found.path << std::endl;
    }
}

} // namespace
