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

using Kind = StepKind;

struct Steps {
    std::vector<Step> list;

    Steps &of(std::initializer_list<int> members, std::initializer_list<Kind> kinds) {
        for (const int member : members)
            for (const Kind kind : kinds)
                list.push_back({kind, static_cast<int8_t>(member), 0});
        return *this;
    }
    Steps &with(Kind kind, std::initializer_list<int> args = {0}, int member = 0) {
        for (const int arg : args)
            list.push_back({kind, static_cast<int8_t>(member), static_cast<int8_t>(arg)});
        return *this;
    }
    operator std::vector<Step>() const { return list; }
};

constexpr Size small_size = {};

Size never_superseded() {
    Size size;
    size.never_superseded = true;
    return size;
}

// No fence is needed, so none may be raised.
Scenario without_fences(Scenario scenario) {
    scenario.size.never_lost = true;
    return scenario;
}

// With one node members meet sooner, so the search goes deeper.
Size one_node(int64_t length, int64_t longest, int8_t ahead = 99) {
    Size size;
    size.nodes = 1;
    size.length = length;
    size.longest = longest;
    size.ahead = ahead;
    return size;
}

// Member B begins without a way to those servers.
Size beginning_cut(Size size, int8_t cut) {
    size.cut = cut;
    return size;
}

// The registry's clock begins as far ahead as the bound allows.
Size ahead_by_a_tick(Size size) {
    size.registry_offset = 1;
    return size;
}

// Clocks are wrong by any amount, the registry's too. Answers get lost, and lives end.
const Scenario no_loss = {"no loss",
                          never_superseded(),
                          2,
                          0,
                          Steps()
                              .of({0, 1}, {Kind::ask, Kind::ask_unanswered, Kind::draw, Kind::draw_all, Kind::restart})
                              .with(Kind::deliver)
                              .with(Kind::advance, {1, 4})
                              .with(Kind::set_clock, {0, 9, -9})
                              .with(Kind::set_registry, {0, 9, -9}),
                          7};

const Scenario no_alarm = without_fences(no_loss);

// Requests arrive after later ones, also those of a life that has ended.
const Scenario late = {"late",
                       small_size,
                       2,
                       0,
                       Steps()
                           .of({0}, {Kind::ask, Kind::ask_slowly, Kind::draw, Kind::draw_all, Kind::restart})
                           .of({1}, {Kind::ask, Kind::draw_all})
                           .with(Kind::arrive)
                           .with(Kind::deliver)
                           .with(Kind::advance, {1, 4})
                           .with(Kind::replicate)
                           .with(Kind::fail_over),
                       7};

// The registry loses commits. Its clocks, before and after, agree within the bound. A member's clock need not.
const Scenario loss = {"loss",
                       never_superseded(),
                       2,
                       0,
                       Steps()
                           .of({0, 1}, {Kind::ask, Kind::ask_unanswered, Kind::draw_all, Kind::restart})
                           .with(Kind::deliver)
                           .with(Kind::advance, {1, 3})
                           .with(Kind::set_clock, {0, 9})
                           .with(Kind::set_registry, {0, 1})
                           .with(Kind::replicate)
                           .with(Kind::fail_over)
                           .with(Kind::lose_silently),
                       6};

// The same without answers under way, and deeper.
const Scenario repeated_loss = {"repeated loss",
                                never_superseded(),
                                2,
                                0,
                                Steps()
                                    .of({0, 1}, {Kind::ask, Kind::draw_all})
                                    .with(Kind::advance, {1, 3})
                                    .with(Kind::set_registry, {0, 1})
                                    .with(Kind::replicate)
                                    .with(Kind::fail_over)
                                    .with(Kind::lose_silently)
                                    .with(Kind::fence_by_hand),
                                9};

// The same with one node, grants as long as the longest, and clocks ahead of the registry's.
const Scenario tight_loss = {"tight loss",
                             ahead_by_a_tick(one_node(3, 3)),
                             2,
                             0,
                             Steps()
                                 .of({0, 1}, {Kind::ask, Kind::draw_all})
                                 .with(Kind::advance, {1, 3})
                                 .with(Kind::set_clock, {2, 9}, 1)
                                 .with(Kind::set_registry, {0, 1})
                                 .with(Kind::replicate)
                                 .with(Kind::fail_over),
                             10};

// A membership that gets a node twice, with another membership in between.
const Scenario twice = {"twice",
                        one_node(4, 4),
                        2,
                        0,
                        Steps()
                            .of({0, 1}, {Kind::ask, Kind::draw_all})
                            .with(Kind::advance, {1, 4})
                            .with(Kind::replicate)
                            .with(Kind::fail_over),
                        10};

// Fences after which no commit is lost, with wrong clocks.
const Scenario fences = {"fences",
                         one_node(2, 6),
                         2,
                         0,
                         Steps()
                             .of({0, 1}, {Kind::ask, Kind::draw_all})
                             .with(Kind::advance, {1, 3})
                             .with(Kind::set_clock, {0, 9, -9})
                             .with(Kind::set_registry, {0, 9, -9})
                             .with(Kind::fence_by_hand),
                         9};

// A member's disk is copied, its directory is copied, its standby is promoted, and it is dropped and made anew.
const Scenario copies = {"copies",
                         small_size,
                         1,
                         0,
                         Steps()
                             .of({0, 2}, {Kind::ask, Kind::draw, Kind::restart})
                             .of({0}, {Kind::ask_unanswered, Kind::remake, Kind::copy_file, Kind::copy_above})
                             .of({2}, {Kind::draw_all})
                             .with(Kind::deliver)
                             .with(Kind::advance, {1, 4})
                             .with(Kind::replicate)
                             .with(Kind::fail_over),
                         6};

// A holder is declared dead. It was ahead of its clock, which agrees with the registry's within the bound.
const Scenario revocation = {"revoke",
                             one_node(3, 4, 1),
                             2,
                             0,
                             Steps()
                                 .of({0, 1}, {Kind::ask, Kind::draw_all})
                                 .with(Kind::ask_slowly)
                                 .with(Kind::arrive)
                                 .with(Kind::advance, {1, 3})
                                 .with(Kind::set_clock, {0, 1})
                                 .with(Kind::set_registry, {0, 1})
                                 .with(Kind::revoke, {0})
                                 .with(Kind::replicate)
                                 .with(Kind::fail_over),
                             8};

// A member joins that used node 0 before.
const Scenario joining = {"join",
                          small_size,
                          2,
                          1,
                          Steps()
                              .of({0, 1, 2}, {Kind::ask, Kind::draw_all})
                              .with(Kind::join, {0, 9}, 2)
                              .with(Kind::advance, {1, 4})
                              .with(Kind::set_clock, {0, -4})
                              .with(Kind::replicate)
                              .with(Kind::fail_over),
                          6};

// Members reach the registry of another fleet.
const Scenario two_fleets = {"two fleets",
                             small_size,
                             2,
                             0,
                             Steps()
                                 .of({0, 1}, {Kind::ask, Kind::ask_unanswered, Kind::ask_other_fleet, Kind::draw_all})
                                 .with(Kind::deliver)
                                 .with(Kind::advance, {1, 4}),
                             5};

// The former primary starts again beside the one that took over. One member cannot reach the new one for a while.
const Scenario comeback = {"comeback",
                           beginning_cut(one_node(3, 4), 2),
                           2,
                           0,
                           Steps()
                               .of({0, 1}, {Kind::ask, Kind::draw_all})
                               .with(Kind::cut, {0, 2}, 1)
                               .with(Kind::advance, {3})
                               .with(Kind::set_registry, {0, 1})
                               .with(Kind::replicate)
                               .with(Kind::fail_over)
                               .with(Kind::come_back),
                           10};

// A standby is promoted while the primary goes on. One member cannot reach the primary for a while.
const Scenario split = {"split",
                        beginning_cut(one_node(2, 2), 1),
                        2,
                        0,
                        Steps()
                            .of({0, 1}, {Kind::ask, Kind::draw_all})
                            .with(Kind::cut, {0, 1}, 1)
                            .with(Kind::advance, {1, 4})
                            .with(Kind::set_registry, {0, 1})
                            .with(Kind::replicate)
                            .with(Kind::fence_by_hand)
                            .with(Kind::split),
                        9};

// The same, and the former primary has drawn an epoch that the standby does not know. An administrator chooses.
const Scenario rivals = {"rivals",
                         one_node(3, 3),
                         2,
                         0,
                         Steps()
                             .of({0, 1}, {Kind::ask, Kind::draw_all})
                             .of({0}, {Kind::restart})
                             .with(Kind::cut, {0, 1}, 1)
                             .with(Kind::advance, {5})
                             .with(Kind::replicate)
                             .with(Kind::fence_by_hand)
                             .with(Kind::split),
                         10};

// The registry moves to another server with all commits, and the former one starts again.
const Scenario moving = {"move",
                         one_node(3, 3),
                         2,
                         0,
                         Steps()
                             .of({0, 1}, {Kind::ask, Kind::draw_all})
                             .with(Kind::cut, {0, 1}, 1)
                             .with(Kind::advance, {1, 3})
                             .with(Kind::move)
                             .with(Kind::come_back),
                         9};

// The registry's disk is cloned below the file system. Both servers answer.
const Scenario clones = {"clone",
                         one_node(3, 3),
                         2,
                         0,
                         Steps().of({0, 1}, {Kind::ask, Kind::draw_all}).with(Kind::advance, {1, 3}).with(Kind::clone),
                         9};

// The registry's directory is put back, and an administrator says what it is.
const Scenario put_back = {"put back",
                           one_node(3, 3),
                           2,
                           0,
                           Steps()
                               .of({0, 1}, {Kind::ask, Kind::draw_all})
                               .with(Kind::advance, {1, 3})
                               .with(Kind::set_registry, {0, 1})
                               .with(Kind::replicate)
                               .with(Kind::put_back)
                               .with(Kind::claim),
                           9};

// A member is pointed at a restored copy by mistake.
const Scenario copied = {"restored copy",
                         one_node(3, 3),
                         2,
                         0,
                         Steps()
                             .of({0, 1}, {Kind::ask, Kind::draw_all})
                             .with(Kind::cut, {0, 1}, 1)
                             .with(Kind::advance, {1, 3})
                             .with(Kind::replicate)
                             .with(Kind::restore_copy),
                         9};
const Scenario copied_in_peace = without_fences(copied);

// The registry's database is dropped and made anew, and follows the former one by an administrator's word.
const Scenario anew = {"made anew",
                       one_node(3, 3),
                       2,
                       0,
                       Steps()
                           .of({0, 1}, {Kind::ask, Kind::draw_all})
                           .with(Kind::advance, {1, 3})
                           .with(Kind::set_registry, {0, 1})
                           .with(Kind::make_anew)
                           .with(Kind::claim),
                       9};

class Announced : public ::testing::Environment {
  public:
    void TearDown() override { std::cout << "fleet states searched: " << states << std::endl; }
    static inline uint64_t states = 0;
};
const auto *const announced = ::testing::AddGlobalTestEnvironment(new Announced);

const Found &announce(const Found &found) {
    Announced::states += found.states;
    return found;
}

// Nothing is broken to the scenario's depth, and `events` are among what happened.
Found expect_sound(const Scenario &scenario, uint32_t events) {
    static const Protocol shipped;
    const Found found = announce(search(shipped, scenario, scenario.depth));
    std::cout << "  " << found.states << " states, depth " << found.depth << std::endl;
    EXPECT_EQ(found.broken, "") << found.path;
    EXPECT_EQ(found.events & events, events);
    return found;
}

TEST(Fleet, WithoutLostCommitsNoClockMatters) {
    expect_sound(no_alarm, granted_newcomer | extended_grant | refused_ahead);
}

TEST(Fleet, LateAsksHarmNobody) {
    expect_sound(late, granted_newcomer | extended_grant | late_ask | late_answer_ignored | refused_superseded);
}

TEST(Fleet, LostCommitsAreFenced) {
    expect_sound(loss, survived_fence | row_from_member | fence_by_environment | fence_by_member | refused_fenced);
}

TEST(Fleet, CommitsAreLostAgain) {
    expect_sound(repeated_loss,
                 survived_fence | newcomer_after_fence | fence_by_member | refused_stale | refused_fenced);
}

TEST(Fleet, FencesAreTight) {
    expect_sound(tight_loss,
                 survived_fence | newcomer_after_fence | fence_by_environment | refused_fenced | refused_ahead);
}

TEST(Fleet, AMembershipGetsANodeTwice) {
    expect_sound(twice, survived_fence | newcomer_after_fence | fence_by_environment);
}

TEST(Fleet, FencesHarmNobodyWhateverTheClocks) {
    expect_sound(fences, survived_fence | newcomer_after_fence | refused_fenced | refused_ahead);
}

TEST(Fleet, OfTwoCopiesOneGoesOn) { expect_sound(copies, refused_superseded | drew_by_both_copies); }

TEST(Fleet, ADeadHoldersNodeIsGrantedAgain) { expect_sound(revocation, was_revoked | granted_newcomer); }

TEST(Fleet, AJoiningMembersNodeIsRaised) { expect_sound(joining, joined | granted_newcomer | refused_ahead); }

TEST(Fleet, AnotherFleetIsRefused) {
    expect_sound(two_fleets, refused_other_fleet | other_fleet_ignored | granted_newcomer);
}

TEST(Fleet, AFormerPrimaryComesBack) {
    expect_sound(comeback, refused_stale | closed_other | refused_starting | newcomer_after_fence | survived_fence);
}

TEST(Fleet, TwoRegistriesAreAlive) {
    expect_sound(split, closed_other | fence_by_other | refused_fenced | newcomer_after_fence | survived_fence);
}

TEST(Fleet, TwoRegistriesHaveOneNumber) {
    expect_sound(rivals, refused_rival | refused_stale | newcomer_after_fence | survived_fence);
}

TEST(Fleet, ARegistryMoves) { expect_sound(moving, closed_other | extended_grant | granted_newcomer); }

TEST(Fleet, OfAClonedRegistryNewcomersGetNothing) { expect_sound(clones, not_alone | extended_grant); }

TEST(Fleet, ADirectoryIsPutBack) { expect_sound(put_back, refused_unclaimed | survived_fence | newcomer_after_fence); }

TEST(Fleet, ARestoredCopyGrantsNothing) {
    expect_sound(copied_in_peace, refused_unclaimed | extended_grant | granted_newcomer);
}

TEST(Fleet, ARegistryIsMadeAnew) { expect_sound(anew, row_from_member | refused_fenced | newcomer_after_fence); }

// Deeper than is needed to find what breaks without a rule.
TEST(Fleet, DeeperSearches) {
    static const Protocol shipped;
    const std::pair<const Scenario &, int> all[] = {{late, 8},   {loss, 7},    {twice, 11},
                                                    {copies, 7}, {joining, 8}, {two_fleets, 8}};
    for (const auto &[scenario, depth] : all) {
        const Found found = announce(search(shipped, scenario, depth));
        EXPECT_EQ(found.broken, "") << scenario.name << ": " << found.path;
    }
}

// ---------------------------------------------------------------------------------------------------------
// Walks.

TEST(Fleet, WalksFarWithoutLostCommits) {
    Scenario scenario = no_alarm;
    scenario.members = 3;
    scenario.size.longest = scenario.size.length = 5;
    scenario.size.end = 25;
    scenario.steps = Steps{no_loss.steps}
                         .of({2}, {Kind::ask, Kind::ask_unanswered, Kind::draw, Kind::draw_all, Kind::restart})
                         .with(Kind::set_clock, {0, 1, 5}, 2);
    static const Protocol shipped;
    const Found found = announce(walk(shipped, scenario, 20260121, 40000, 60));
    EXPECT_EQ(found.broken, "") << found.path;
}

TEST(Fleet, WalksFarWithLostCommits) {
    Scenario scenario = loss;
    scenario.size.never_superseded = false;
    scenario.size.longest = scenario.size.length = 5;
    scenario.size.end = 25;
    scenario.steps = Steps{loss.steps}
                         .of({0, 1}, {Kind::draw, Kind::ask_slowly, Kind::remake, Kind::copy_file, Kind::copy_above})
                         .of({2}, {Kind::ask, Kind::ask_unanswered, Kind::draw, Kind::draw_all, Kind::restart})
                         .with(Kind::arrive)
                         .with(Kind::fence_by_hand)
                         .with(Kind::set_clock, {0, 1, -9}, 1);
    static const Protocol shipped;
    const Found found = announce(walk(shipped, scenario, 20260122, 80000, 80));
    EXPECT_EQ(found.broken, "") << found.path;
    std::cout << "  " << found.states << " steps, " << found.needless_fences << " needless fences" << std::endl;
}

TEST(Fleet, WalksFarWithTwoRegistries) {
    Scenario scenario = split;
    scenario.members = 3;
    scenario.size.nodes = 2;
    scenario.size.longest = scenario.size.length = 5;
    scenario.size.end = 28;
    scenario.steps = Steps()
                         .of({0, 1, 2}, {Kind::ask, Kind::draw, Kind::draw_all, Kind::restart, Kind::remake})
                         .of({0, 1}, {Kind::ask_unanswered})
                         .with(Kind::deliver)
                         .with(Kind::cut, {0, 1, 2}, 1)
                         .with(Kind::cut, {0, 1, 2}, 2)
                         .with(Kind::advance, {1, 1, 3})
                         .with(Kind::set_clock, {0, 1, -9}, 1)
                         .with(Kind::set_registry, {0, 1})
                         .with(Kind::replicate)
                         .with(Kind::fail_over)
                         .with(Kind::split)
                         .with(Kind::come_back)
                         .with(Kind::move)
                         .with(Kind::put_back)
                         .with(Kind::claim)
                         .with(Kind::restore_copy)
                         .with(Kind::fence_by_hand);
    static const Protocol shipped;
    const Found found = announce(walk(shipped, scenario, 20260123, 80000, 80));
    EXPECT_EQ(found.broken, "") << found.path;
    std::cout << "  " << found.states << " steps" << std::endl;
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
    r.epoch = {1, 1};
    r.serial = r.own_serial = 1;
    r.longest_us = 600 * s_us;
    r.bound_us = 10 * s_us;
    r.now_us = clock_us;
    return r;
}

RegistryView fenced(const RegistryView &r, int64_t latest_end_us = 0) {
    return succeeded(r, r.epoch.nonce + 1, true, {latest_end_us, 0});
}

TEST(Grant, FencesOnlyRise) {
    const RegistryView first = fenced(registry_at(now_us));
    RegistryView later = first;
    later.now_us = now_us - 3600 * s_us;
    EXPECT_EQ(fenced(later).fence_base_us, now_us);
    EXPECT_EQ(fenced(later).epoch.number, 3);
    later.shown = {7, 1};
    EXPECT_EQ(fenced(later).epoch.number, 8);
    EXPECT_EQ(fenced(later).shown.number, 0);
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
        EXPECT_EQ(judge(soon, r, ask, nullptr).verdict, Verdict::refuse);
        EXPECT_EQ(judge(soon, r, ask, nullptr).why, Refusal::ahead);
    }
    r = registry_at(now_us + 20 * s_us);
    EXPECT_EQ(judge(soon, r, ask, nullptr).verdict, Verdict::newcomer) << "within the bound of the epoch";
}

TEST(Grant, TheNodeThatWasUsedLongestAgoComesFirst) {
    const NodeRow unused = {9, 0, 0, 0, 0, {}, 0, 0};
    const NodeRow old = {7, 0, 50, 1, 1, {1, 1}, 1, 0};
    const NodeRow young = {3, 0, 80, 2, 2, {1, 1}, 2, 0};
    const NodeRow twin = {8, 0, 50, 3, 3, {1, 1}, 3, 0};
    EXPECT_TRUE(comes_before(unused, old) && comes_before(old, young) && comes_before(old, twin));
    EXPECT_FALSE(comes_before(old, unused) || comes_before(young, old) || comes_before(twin, old));
    EXPECT_FALSE(comes_before(old, old));
}

TEST(Grant, EndsWithTheLayout) {
    const RegistryView r = registry_at(start_of(leaf, largest(leaf.time_bits)) - s_us);
    Request a = {};
    a.incarnation = 1;
    a.length = 60000;
    a.lowest = tick_at(leaf, r.now_us);
    const NodeRow row = granted(leaf, r, a, {5, 0, 0, 0, 0, {}, 0, 0});
    EXPECT_EQ(row.until, largest(leaf.time_bits) + 1);
    EXPECT_EQ(extended(leaf, r, a, &row).until, largest(leaf.time_bits) + 1);
}

TEST(Grant, WhoseHolderIsRevokedIsRefused) {
    const RegistryView r = registry_at(now_us);
    Request a = {};
    a.incarnation = 1;
    a.lowest = tick_at(leaf, now_us);
    a.length = 60000;
    const NodeRow row = granted(leaf, r, a, {5, 0, 0, 0, 0, {}, 0, 0});
    a.holds = true;
    a.held = {5, row.from, row.until, row.membership, row.epoch, 1};
    ASSERT_EQ(judge(leaf, r, a, &row).verdict, Verdict::extend);
    const NodeRow after = revoked(leaf, r, row, 2000);
    EXPECT_EQ(after.until, tick_at(leaf, now_us + r.bound_us) + 2001);
    EXPECT_EQ(judge(leaf, r, a, &after).why, Refusal::superseded);
}

TEST(Membership, AnotherNodesGrantEndsWhereItSays) {
    Membership m = {};
    FleetSeen seen = {};
    begin_membership(&m, 1);
    ASSERT_EQ(accept(&m, &seen, {Refusal::none, 1, 1, {4, 10, 90, 1, {1, 1}, 1}}), Accepted::grant);
    ASSERT_EQ(accept(&m, &seen, {Refusal::none, 1, 1, {6, 20, 50, 1, {1, 1}, 2}}), Accepted::grant);
    EXPECT_EQ(m.held.until, 50);
    ASSERT_EQ(accept(&m, &seen, {Refusal::none, 1, 1, {6, 20, 40, 1, {1, 1}, 3}}), Accepted::grant);
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

struct Mutant {
    const char *name;
    void (*take_away)(Protocol &);
    const Scenario &scenario;
};

Accepted accept_as(Membership *m, FleetSeen *seen, const Answer &answer, void (*blind)(Membership *, FleetSeen *)) {
    Membership blind_m = *m;
    FleetSeen blind_seen = *seen;
    blind(&blind_m, &blind_seen);
    const Accepted result = accept(&blind_m, &blind_seen, answer);
    if (result == Accepted::grant || result == Accepted::refused) {
        *m = blind_m;
        *seen = blind_seen;
    }
    return result;
}

Judgement extended_anyway(Judgement j, bool anyway) {
    return anyway && j.verdict != Verdict::fence ? Judgement{Verdict::extend, Refusal::none} : j;
}

bool is_in_doubt(const RegistryView &r, const Request &a, const NodeRow *row) {
    return a.holds && (row == nullptr || row->epoch != r.epoch);
}

RegistryView without_cap(RegistryView r) {
    r.now_us += 1000;
    return r;
}

// Does not say whether there is another one.
Best last_registry(const Hello *hellos, int count, const FleetSeen &seen) {
    const Best best = best_registry(hellos, count, seen);
    const bool is_like_last =
        best.index != no_registry && hellos[count - 1].answers && hellos[count - 1].epoch == hellos[best.index].epoch;
    return {is_like_last ? count - 1 : best.index, true};
}

const Mutant mutants[] = {
    // What the registry decides.
    {"a newcomer below until",
     [](Protocol &p) {
         p.is_free = [](const Layout &, const RegistryView &, const Request &, const NodeRow &) { return true; };
     },
     no_loss},
    {"a newcomer one tick below until",
     [](Protocol &p) {
         p.is_free = [](const Layout &l, const RegistryView &r, const Request &a, const NodeRow &row) {
             return row.until <= beginning(l, r, a) + 1;
         };
     },
     no_loss},
    {"a node that another membership got is kept",
     [](Protocol &p) {
         p.judge = [](const Layout &l, const RegistryView &r, const Request &a, const NodeRow *row) {
             return extended_anyway(judge(l, r, a, row), a.holds);
         };
     },
     fences},
    {"until + length",
     [](Protocol &p) {
         p.extended = [](const Layout &l, const RegistryView &r, const Request &a, const NodeRow *row) {
             NodeRow after = extended(l, r, a, row);
             if (row != nullptr)
                 after.until = std::max(after.until, row->until + grant_ticks(l, r, a));
             return after;
         };
     },
     tight_loss},
    {"a repeated request is a newcomer's",
     [](Protocol &p) { p.is_missed = [](const Request &, const NodeRow &) { return false; }; }, no_loss},
    {"an earlier life's answer is taken for a missed one",
     [](Protocol &p) {
         p.is_missed = [](const Request &a, const NodeRow &row) { return !a.holds && is_same_life(a, row); };
         p.judge = [](const Layout &l, const RegistryView &r, const Request &a, const NodeRow *row) {
             Request b = a;
             if (!a.holds && row != nullptr)
                 b.incarnation = row->incarnation;
             return judge(l, r, b, row);
         };
     },
     copies},
    {"a superseded life is extended",
     [](Protocol &p) {
         p.judge = [](const Layout &l, const RegistryView &r, const Request &a, const NodeRow *row) {
             const Judgement j = judge(l, r, a, row);
             return extended_anyway(j, j.why == Refusal::superseded && row->membership == a.held.membership);
         };
     },
     copies},
    {"after a fence a superseded life is extended",
     [](Protocol &p) {
         p.judge = [](const Layout &l, const RegistryView &r, const Request &a, const NodeRow *row) {
             const Judgement j = judge(l, r, a, row);
             return extended_anyway(j, j.why == Refusal::superseded && row->membership == a.held.membership &&
                                           row->epoch != r.epoch);
         };
     },
     copies},
    // Fences.
    {"no fence: the timeline is not compared", [](Protocol &p) { p.compares_timeline = false; }, loss},
    {"a fence without the clock",
     [](Protocol &p) {
         p.succeeded = [](RegistryView r, int64_t nonce, bool lost, const KnownGrants &known) {
             RegistryView after = succeeded(r, nonce, lost, known);
             after.fence_base_us = std::max(r.fence_base_us, known.latest_end_us - r.longest_us);
             return after;
         };
     },
     loss},
    {"a fence without a new epoch",
     [](Protocol &p) {
         p.succeeded = [](RegistryView r, int64_t nonce, bool lost, const KnownGrants &known) {
             RegistryView after = succeeded(r, nonce, lost, known);
             after.epoch = r.epoch;
             return after;
         };
     },
     loss},
    {"a fence without the longest grant, by one tick",
     [](Protocol &p) {
         p.judge = [](const Layout &l, const RegistryView &r, const Request &a, const NodeRow *row) {
             const Judgement j = judge(l, r, a, row);
             const bool passes = j.why == Refusal::fenced && beginning(l, r, a) + 1 >= fence_tick(l, r);
             return passes ? Judgement{Verdict::newcomer, Refusal::none} : j;
         };
     },
     tight_loss},
    {"a fence with one bound, not two",
     [](Protocol &p) {
         p.judge = [](const Layout &l, const RegistryView &r, const Request &a, const NodeRow *row) {
             RegistryView lower = r;
             lower.fence_base_us -= lower.fence_base_us != 0 ? r.bound_us : 0;
             return judge(l, lower, a, row);
         };
     },
     tight_loss},
    {"a survivor's grant begins where the registry says",
     [](Protocol &p) {
         p.extended = [](const Layout &l, const RegistryView &r, const Request &a, const NodeRow *row) {
             NodeRow after = extended(l, r, a, row);
             if (row != nullptr && row->membership == after.membership)
                 after.from = row->from;
             return after;
         };
     },
     twice},
    {"a fence that does not bind unused nodes",
     [](Protocol &p) {
         p.judge = [](const Layout &l, const RegistryView &r, const Request &a, const NodeRow *row) {
             const Judgement j = judge(l, r, a, row);
             return j.why == Refusal::fenced ? Judgement{Verdict::newcomer, Refusal::none} : j;
         };
         p.is_free = [](const Layout &l, const RegistryView &r, const Request &a, const NodeRow &row) {
             return row.until == 0 || (is_free(l, r, a, row) && beginning(l, r, a) >= fence_tick(l, r));
         };
     },
     loss},
    {"no cap",
     [](Protocol &p) {
         p.judge = [](const Layout &l, const RegistryView &r, const Request &a, const NodeRow *row) {
             return judge(l, without_cap(r), a, row);
         };
         p.extended = [](const Layout &l, const RegistryView &r, const Request &a, const NodeRow *row) {
             return extended(l, without_cap(r), a, row);
         };
         p.is_free = [](const Layout &l, const RegistryView &r, const Request &a, const NodeRow &row) {
             return is_free(l, without_cap(r), a, row);
         };
         p.granted = [](const Layout &l, const RegistryView &r, const Request &a, const NodeRow &row) {
             return granted(l, without_cap(r), a, row);
         };
     },
     tight_loss},
    {"survivors are extended unconditionally",
     [](Protocol &p) {
         p.judge = [](const Layout &l, const RegistryView &r, const Request &a, const NodeRow *row) {
             RegistryView open = r;
             open.fence_base_us = is_in_doubt(r, a, row) ? 0 : r.fence_base_us;
             return judge(l, open, a, row);
         };
     },
     tight_loss},
    {"survivors are extended one tick too low",
     [](Protocol &p) {
         p.judge = [](const Layout &l, const RegistryView &r, const Request &a, const NodeRow *row) {
             RegistryView lower = r;
             lower.fence_base_us -= is_in_doubt(r, a, row) ? r.bound_us : 0;
             const Judgement j = judge(l, lower, a, row);
             return j.verdict == Verdict::extend ? j : judge(l, r, a, row);
         };
     },
     tight_loss},
    {"survivors are not extended",
     [](Protocol &p) {
         p.judge = [](const Layout &l, const RegistryView &r, const Request &a, const NodeRow *row) {
             const Judgement j = judge(l, r, a, row);
             return j.verdict == Verdict::extend && is_in_doubt(r, a, row) ? Judgement{Verdict::newcomer, Refusal::none}
                                                                           : j;
         };
     },
     loss},
    {"of two memberships the one that asks first is extended",
     [](Protocol &p) {
         p.judge = [](const Layout &l, const RegistryView &r, const Request &a, const NodeRow *row) {
             const bool other_membership =
                 is_in_doubt(r, a, row) && row != nullptr && row->membership != a.held.membership;
             return judge(l, r, a, other_membership ? nullptr : row);
         };
     },
     fences},
    {"what members show is not compared",
     [](Protocol &p) {
         p.judge = [](const Layout &l, const RegistryView &r, const Request &a, const NodeRow *row) {
             Request b = a;
             b.seen.serial = std::min(a.seen.serial, r.serial);
             if (a.holds && a.held.epoch == r.epoch && (row == nullptr || row->epoch != r.epoch))
                 b.held.epoch = {};
             else if (a.holds && a.held.epoch == r.epoch)
                 b.held.serial = std::min(a.held.serial, row->serial);
             return judge(l, r, b, row);
         };
     },
     repeated_loss},
    {"an old registry goes on",
     [](Protocol &p) {
         p.judge = [](const Layout &l, const RegistryView &r, const Request &a, const NodeRow *row) {
             RegistryView blind = r;
             blind.shown = {};
             Request b = a;
             if (a.seen.epoch.number > r.epoch.number)
                 b.seen = {a.seen.fleet, r.epoch, 0, 0};
             return judge(l, blind, b, row);
         };
     },
     repeated_loss},
    {"a later epoch that was shown is forgotten",
     [](Protocol &p) { p.is_news = [](const RegistryView &, const Epoch &) { return false; }; }, repeated_loss},
    // Dead holders and joining members.
    {"a dead holder's node is granted without the bound",
     [](Protocol &p) {
         p.revoked = [](const Layout &l, const RegistryView &r, const NodeRow &row, int64_t ahead) {
             RegistryView exact = r;
             exact.bound_us = 0;
             return revoked(l, exact, row, ahead);
         };
     },
     revocation},
    {"a dead holder was never ahead of its clock",
     [](Protocol &p) {
         p.revoked = [](const Layout &l, const RegistryView &r, const NodeRow &row, int64_t) {
             return revoked(l, r, row, 0);
         };
     },
     revocation},
    {"a dead membership is extended after a fence",
     [](Protocol &p) {
         p.judge = [](const Layout &l, const RegistryView &r, const Request &a, const NodeRow *row) {
             const bool later = is_in_doubt(r, a, row) && row != nullptr && a.held.until > row->until;
             return extended_anyway(judge(l, r, a, row), later && a.held.until > last_lost_beginning(l, r));
         };
     },
     revocation},
    {"a joining member's node is not raised",
     [](Protocol &p) {
         p.used_before = [](const Layout &, const RegistryView &, const Request &, NodeRow row, int64_t) {
             return row;
         };
     },
     joining},
    {"a joining member's node is raised, and keeps its membership",
     [](Protocol &p) {
         p.used_before = [](const Layout &l, const RegistryView &r, const Request &a, NodeRow row, int64_t until) {
             if (is_free(l, r, a, row))
                 row.until = std::max(row.until, until);
             return row;
         };
     },
     joining},
    {"another fleet's members get nodes",
     [](Protocol &p) {
         p.judge = [](const Layout &l, const RegistryView &r, const Request &a, const NodeRow *row) {
             Request b = a;
             b.seen.fleet = r.fleet;
             return judge(l, r, b, row);
         };
     },
     two_fleets},
    // Two registries.
    {"a newcomer asks the first registry that answers, and no other",
     [](Protocol &p) {
         p.shows_others = false;
         p.told_of_other = [](RegistryView r, int64_t) { return r; };
         p.best_registry = [](const Hello *hellos, int, const FleetSeen &) -> Best {
             return {hellos[0].answers ? 0 : hellos[1].answers ? 1 : no_registry, true};
         };
     },
     comeback},
    {"a registry is not shown that another one has taken over", [](Protocol &p) { p.shows_others = false; }, split},
    {"a registry is not told when another one granted last",
     [](Protocol &p) { p.told_of_other = [](RegistryView r, int64_t) { return r; }; }, split},
    {"a registry that starts admits newcomers at once",
     [](Protocol &p) { p.awaits_member = [](const RegistryView &, int64_t, int64_t, bool) { return false; }; },
     comeback},
    {"a newcomer opens a registry that starts, by what that has told it",
     [](Protocol &p) {
         p.is_from_before = [](const RegistryView &, const FleetSeen &seen, int64_t) { return seen.epoch.number != 0; };
     },
     comeback},
    {"epochs have no nonce, and of two registries with one newcomers use one",
     [](Protocol &p) {
         p.draws_nonces = false;
         p.best_registry = last_registry;
     },
     rivals},
    {"a registry with a rival admits newcomers",
     [](Protocol &p) {
         p.judge = [](const Layout &l, const RegistryView &r, const Request &a, const NodeRow *row) {
             RegistryView blind = r;
             blind.shown = are_rivals(r.shown, r.epoch) ? Epoch{} : r.shown;
             return judge(l, blind, a, row);
         };
     },
     rivals},
    {"a takeover without lost commits draws no epoch",
     [](Protocol &p) {
         p.succeeded = [](RegistryView r, int64_t nonce, bool lost, const KnownGrants &known) {
             RegistryView after = succeeded(r, nonce, lost, known);
             after.epoch = lost ? after.epoch : r.epoch;
             return after;
         };
     },
     moving},
    {"of two registries with one epoch newcomers use one", [](Protocol &p) { p.best_registry = last_registry; },
     clones},
    {"a directory that was put back is not noticed", [](Protocol &p) { p.compares_directory = false; }, put_back},
    {"a restored copy is not noticed", [](Protocol &p) { p.compares_directory = false; }, copied},
    {"a registry made anew does not know that it follows another", [](Protocol &p) { p.says_which_is_new = false; },
     anew},
    // What the registry's caller does.
    {"an answer before the commit", [](Protocol &p) { p.answers_before_commit = true; }, no_loss},
    {"synchronous_commit off", [](Protocol &p) { p.flushes = false; }, loss},
    // What a member does.
    {"a lease outside the grant", [](Protocol &p) { p.stays_inside_grant = false; }, no_loss},
    {"no mark of its own", [](Protocol &p) { p.keeps_mark = false; }, no_loss},
    {"directory, host and timeline are not compared", [](Protocol &p) { p.start_elsewhere = begin_incarnation; },
     copies},
    {"a standby has the file", [](Protocol &p) { p.start_elsewhere = [](Membership *, uint64_t) {}; }, copies},
    {"a generator without a mark keeps its grant", [](Protocol &p) { p.start_without_mark = begin_incarnation; },
     copies},
    {"a start is not a new incarnation", [](Protocol &p) { p.restart = [](Membership *, uint64_t) {}; }, copies},
    {"a start forgets the incarnation before it",
     [](Protocol &p) { p.restart = [](Membership *m, uint64_t fresh) { m->incarnation = fresh; }; }, no_loss},
    {"a start forgets all incarnations but the one before it",
     [](Protocol &p) {
         p.restart = [](Membership *m, uint64_t fresh) {
             m->former.count = 0;
             begin_incarnation(m, fresh);
         };
     },
     no_loss},
    {"one incarnation a server", [](Protocol &p) { p.own_incarnation = false; }, no_loss},
    {"what an unclaimed registry answers is carried to the registry",
     [](Protocol &p) {
         p.accept = [](Membership *m, FleetSeen *seen, const Answer &answer) {
             Answer other = answer;
             other.why = answer.why == Refusal::unclaimed ? Refusal::fenced : answer.why;
             return accept(m, seen, other);
         };
     },
     copied_in_peace},
    {"an answer to an earlier life is accepted",
     [](Protocol &p) {
         p.accept = [](Membership *m, FleetSeen *seen, const Answer &answer) {
             Answer own = answer;
             own.incarnation = m->incarnation;
             return accept(m, seen, own);
         };
     },
     no_loss},
    {"an older answer is accepted",
     [](Protocol &p) {
         p.accept = [](Membership *m, FleetSeen *seen, const Answer &answer) {
             return accept_as(m, seen, answer, [](Membership *blind, FleetSeen *) { blind->held.serial = -1; });
         };
     },
     no_loss},
    {"an answer of an earlier epoch is accepted",
     [](Protocol &p) {
         p.accept = [](Membership *m, FleetSeen *seen, const Answer &answer) {
             return accept_as(m, seen, answer, [](Membership *, FleetSeen *blind) { blind->epoch = {}; });
         };
     },
     loss},
    {"a refusal has no serial",
     [](Protocol &p) {
         p.accept = [](Membership *m, FleetSeen *seen, const Answer &answer) {
             Answer bare = answer;
             bare.grant.serial = answer.why == Refusal::none ? answer.grant.serial : 0;
             return accept(m, seen, bare);
         };
     },
     copies},
    {"another fleet's answer is accepted",
     [](Protocol &p) {
         p.accept = [](Membership *m, FleetSeen *seen, const Answer &answer) {
             return accept_as(m, seen, answer, [](Membership *, FleetSeen *blind) { blind->fleet = 0; });
         };
     },
     two_fleets},
    {"a superseded life continues after a late answer",
     [](Protocol &p) {
         p.accept = [](Membership *m, FleetSeen *seen, const Answer &answer) {
             return accept_as(m, seen, answer, [](Membership *blind, FleetSeen *) { blind->superseded = false; });
         };
     },
     copies},
};

TEST(Fleet, MutantsAreCaught) {
    for (const Mutant &mutant : mutants) {
        Protocol p;
        mutant.take_away(p);
        const Found found = announce(search(p, mutant.scenario, mutant.scenario.depth));
        EXPECT_NE(found.broken, "") << mutant.name;
        std::cout << "  " << mutant.name << " | " << mutant.scenario.name << ", depth " << found.depth << " | "
                  << found.broken << " | " << found.path << std::endl;
    }
}

} // namespace
