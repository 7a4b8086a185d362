// The policy: a table of decisions with their numbers; every state of small policies, checked against what any answer
// must satisfy; and random histories of a model generator with a clock that jumps and crashes that lose what was not
// durable.
#include "clock_policy.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <ostream>
#include <random>
#include <vector>

namespace uidgen::core {

std::ostream &operator<<(std::ostream &out, const ClockPolicy &p) {
    static const char *const full[] = {"wait", "borrow", "backup"};
    static const char *const back[] = {"hold", "wait", "backup", "error", "new_worker"};
    return out << "bits " << p.sequence_bits << " end " << p.end << " lease " << p.lease << " max_ahead " << p.max_ahead
               << " when_full " << full[static_cast<int>(p.when_full)] << " when_back "
               << back[static_cast<int>(p.when_back)] << " tolerance " << p.tolerance << " spread " << p.spread.count;
}

std::ostream &operator<<(std::ostream &out, const Decision &d) {
    static const char *const names[] = {"take",   "confirm",    "reserve",  "wait", "exhausted",
                                        "backup", "clock_back", "new_term", "ask"};
    return out << names[static_cast<int>(d.action)] << " floor " << d.floor << " limit " << d.limit << " reserve_until "
               << d.reserve_until << " wait_ticks " << d.wait_ticks << " wanted " << d.wanted;
}

} // namespace uidgen::core

using namespace uidgen::core;

namespace {

uint64_t position(const ClockPolicy &p, int64_t tick) { return static_cast<uint64_t>(tick) << p.sequence_bits; }
int64_t tick_of(const ClockPolicy &p, uint64_t pos) { return static_cast<int64_t>(pos >> p.sequence_bits); }

// ---------------------------------------------------------------------------------------------------------
// The table. A tick has 4 positions: tick t begins at 4t. A lease of 100 ticks is prefetched after 25 of them, and a
// record that adds fewer than 7 is not worth writing.

constexpr ClockPolicy plain = {2, 1000, 100, 200};

struct Case {
    const char *when;
    int64_t now;
    uint64_t last;
    uint64_t usable;
    uint64_t written;
    Decision want;
};

void expect_decision(const Decision &got, const Decision &want, const char *when) {
    EXPECT_EQ(got.action, want.action) << when << ": " << got;
    EXPECT_EQ(got.floor, want.floor) << when << ": " << got;
    EXPECT_EQ(got.limit, want.limit) << when << ": " << got;
    EXPECT_EQ(got.reserve_until, want.reserve_until) << when << ": " << got;
    EXPECT_EQ(got.wait_ticks, want.wait_ticks) << when << ": " << got;
    EXPECT_EQ(got.wanted, want.wanted) << when << ": " << got;
}

class DecideTable : public ::testing::TestWithParam<Case> {};

TEST_P(DecideTable, GivesTheExpectedStep) {
    const Case &c = GetParam();
    expect_decision(decide(plain, {c.now, nothing_seen, c.last, c.usable, c.written}), c.want, c.when);
}

const Case cases[] = {
    // A take stops at tick 125, where the prefetch is due, so that the prefetch is not skipped.
    {"lease fresh, clock ahead of the word", 110, 403, 800, 800, {ClockAction::take, 440, 500, 0, 0}},
    {"lease fresh, word ahead of the clock", 100, 450, 800, 800, {ClockAction::take, 400, 500, 0, 0}},
    {"last position before the prefetch", 100, 498, 800, 800, {ClockAction::take, 400, 500, 0, 0}},
    {"prefetch due", 124, 499, 800, 800, {ClockAction::take, 496, 800, 300, 0}},
    {"next lease already written", 124, 499, 800, 1200, {ClockAction::take, 496, 800, 0, 0}},
    // The prefetched lease may not end above now + max_ahead + 1 = 261, 204, 211.
    {"prefetch cut short by the clock", 60, 600, 800, 800, {ClockAction::take, 240, 800, 261, 0}},
    {"prefetch of 4 ticks is not worth a record", 3, 600, 800, 800, {ClockAction::take, 12, 800, 0, 0}},
    {"prefetch of 11 ticks is", 10, 600, 800, 800, {ClockAction::take, 40, 800, 211, 0}},
    // The usable positions end above the allowance: now + max_ahead + 1 = 151, which begins at 604.
    {"the allowance is the limit", -50, 600, 800, 1200, {ClockAction::take, 0, 604, 0, 0}},
    {"one position of the allowance left", -50, 602, 800, 1200, {ClockAction::take, 0, 604, 0, 0}},
    {"allowance used up", -50, 603, 800, 1200, {ClockAction::wait, 0, 0, 0, 1}},
    {"clock far back", -10000, 603, 800, 1200, {ClockAction::wait, 0, 0, 0, 9951}},
    // Everything leased is used up. The wait lasts until a record of 7 ticks fits, here up to 307.
    {"too little room for a record", 105, 1199, 1200, 1200, {ClockAction::wait, 420, 0, 0, 1}},
    {"just enough room for a record", 106, 1199, 1200, 1200, {ClockAction::reserve, 424, 0, 307, 0}},
    {"ahead of the clock, and nothing leased", 90, 1199, 1200, 1200, {ClockAction::wait, 360, 0, 0, 16}},
    {"clock at the epoch", 0, 3, 800, 1200, {ClockAction::take, 0, 800, 0, 0}},
    {"written but not usable", 190, 799, 800, 1200, {ClockAction::confirm, 760, 0, 0, 0}},
    {"nothing usable after a long rest", 290, 500, 800, 1200, {ClockAction::confirm, 1160, 0, 0, 0}},
    {"everything written is used up", 250, 1199, 1200, 1200, {ClockAction::reserve, 1000, 0, 400, 0}},
    {"clock beyond all leases", 600, 1199, 1200, 1200, {ClockAction::reserve, 2400, 0, 700, 0}},
    {"lease cut short by the clock", 150, 1199, 1200, 1200, {ClockAction::reserve, 600, 0, 351, 0}},
    // Tick 999 is the last one. A record that ends with it is worth writing, however short.
    {"lease cut short by the end of time", 950, 3799, 3800, 3800, {ClockAction::reserve, 3800, 0, 1000, 0}},
    {"lease of the last tick", 999, 3995, 3996, 3996, {ClockAction::reserve, 3996, 0, 1000, 0}},
    {"prefetch cut short by the end of time", 940, 3700, 3800, 3800, {ClockAction::take, 3760, 3800, 1000, 0}},
    {"last position of the last tick", 990, 3998, 4000, 4000, {ClockAction::take, 3960, 4000, 0, 0}},
    {"time used up", 990, 3999, 4000, 4000, {ClockAction::exhausted, 3960, 0, 0, 0}},
    {"time used up, clock back", 5, 3999, 4000, 4000, {ClockAction::exhausted, 20, 0, 0, 0}},
    {"clock at the end", 1000, 400, 800, 800, {ClockAction::exhausted, 4000, 0, 0, 0}},
    {"clock beyond the end", INT64_C(1) << 50, 400, 800, 800, {ClockAction::exhausted, 4000, 0, 0, 0}},
};

INSTANTIATE_TEST_SUITE_P(Cases, DecideTable, ::testing::ValuesIn(cases));

// The widest layouts: the end stands at position 2^63.
TEST(Decide, TheWidestTimeField) {
    const ClockPolicy p = {16, INT64_C(1) << 47, 1000, 2000};
    const uint64_t end = UINT64_C(1) << 63;
    const Decision take = decide(p, {p.end - 1, nothing_seen, end - 2, end, end});
    EXPECT_EQ(take.action, ClockAction::take);
    EXPECT_EQ(take.limit, end);
    EXPECT_EQ(decide(p, {p.end - 1, nothing_seen, end - 1, end, end}).action, ClockAction::exhausted);
}

// ---------------------------------------------------------------------------------------------------------
// The table of policies. Ticks and leases as above; the tolerance of those that have one is 10 ticks.

constexpr ClockPolicy with(WhenFull full, WhenBack back, int64_t tolerance = no_limit) {
    return {2, 1000, 100, 200, full, back, tolerance, {0}};
}

constexpr ClockPolicy waits = with(WhenFull::wait, WhenBack::hold);
constexpr ClockPolicy borrows = with(WhenFull::borrow, WhenBack::hold);
constexpr ClockPolicy two_workers = with(WhenFull::backup, WhenBack::hold);

constexpr ClockPolicy back_hold = with(WhenFull::borrow, WhenBack::hold, 10);
constexpr ClockPolicy back_wait = with(WhenFull::borrow, WhenBack::wait, 10);
constexpr ClockPolicy back_backup = with(WhenFull::borrow, WhenBack::backup, 10);
constexpr ClockPolicy back_error = with(WhenFull::borrow, WhenBack::error, 10);
constexpr ClockPolicy back_new = with(WhenFull::borrow, WhenBack::new_worker, 10);

// Twitter's and Leaf's policy: one tick at a time, and never ahead of the clock.
constexpr ClockPolicy wait_error = with(WhenFull::wait, WhenBack::error);
constexpr ClockPolicy wait_wait = with(WhenFull::wait, WhenBack::wait, 10);
constexpr ClockPolicy wait_hold = with(WhenFull::wait, WhenBack::hold, 10);
constexpr ClockPolicy both_backup = with(WhenFull::backup, WhenBack::backup, 10);

// Each tick's ids begin at its second or third position (0 .. 2 of 4).
constexpr ClockPolicy spread_out = {2, 1000, 100, 200, WhenFull::borrow, WhenBack::hold, no_limit, {3}};

struct PolicyCase {
    const char *when;
    const ClockPolicy &policy;
    ClockState view; // now, seen, last, usable, written
    Decision want;
};

class PolicyTable : public ::testing::TestWithParam<PolicyCase> {};

TEST_P(PolicyTable, GivesTheExpectedStep) {
    const PolicyCase &c = GetParam();
    expect_decision(decide(c.policy, c.view), c.want, c.when);
}

// Usually the ticks below 300 are durable (position 1200), and the next record is written up to 311, as far as a clock
// at 110 allows (1244). Ticks 110 and 120 begin at 440 and 480.
const PolicyCase policy_cases[] = {
    // The tick is full: 443 is its last position.
    {"wait: full", waits, {110, 110, 443, 1200, 1244}, {ClockAction::wait, 440, 0, 0, 1}},
    {"wait: one position left", waits, {110, 110, 442, 1200, 1244}, {ClockAction::take, 440, 444, 0, 0}},
    {"wait: fresh", waits, {110, 110, 400, 1200, 1244}, {ClockAction::take, 440, 444, 0, 0}},
    {"wait: the next lease is written as usual",
     waits,
     {250, 250, 1001, 1200, 1200},
     {ClockAction::take, 1000, 1004, 400, 0}},
    {"wait: nothing leased", waits, {310, 250, 1003, 1200, 1200}, {ClockAction::reserve, 1240, 0, 410, 0}},
    {"wait: nothing durable", waits, {310, 250, 1003, 1200, 1600}, {ClockAction::confirm, 1240, 0, 0, 0}},
    {"borrow: full", borrows, {110, 110, 443, 1200, 1244}, {ClockAction::take, 440, 1200, 0, 0}},
    {"borrow: max_ahead is the end of it", borrows, {90, 90, 443, 1200, 1244}, {ClockAction::take, 360, 1164, 0, 0}},
    {"borrow: used up", borrows, {90, 90, 1163, 1200, 1244}, {ClockAction::wait, 360, 0, 0, 1}},
    {"backup: full", two_workers, {110, 110, 443, 1200, 1244}, {ClockAction::backup, 440, 0, 0, 0}},
    {"backup: one position left", two_workers, {110, 110, 442, 1200, 1244}, {ClockAction::take, 440, 444, 0, 0}},
    {"backup: already borrowing", two_workers, {110, 110, 459, 1200, 1244}, {ClockAction::backup, 440, 0, 0, 0}},

    // The clock is at 110, ids were made at 119, 120, 121: back by 9, 10, 11.
    {"hold: within", back_hold, {110, 119, 478, 1200, 1244}, {ClockAction::take, 440, 1200, 0, 0}},
    {"hold: at", back_hold, {110, 120, 482, 1200, 1244}, {ClockAction::take, 440, 1200, 0, 0}},
    {"hold: beyond", back_hold, {110, 121, 486, 1200, 1244}, {ClockAction::clock_back, 440, 0, 0, 11}},
    {"hold: no limit", borrows, {110, 290, 1170, 1200, 1244}, {ClockAction::take, 440, 1200, 0, 0}},
    {"hold: up to max_ahead", borrows, {80, 290, 1122, 1200, 1244}, {ClockAction::take, 320, 1124, 0, 0}},
    {"hold: beyond max_ahead", borrows, {80, 290, 1170, 1200, 1244}, {ClockAction::wait, 320, 0, 0, 12}},
    {"wait: within", back_wait, {110, 119, 478, 1200, 1244}, {ClockAction::wait, 440, 0, 0, 9}},
    {"wait: at", back_wait, {110, 120, 482, 1200, 1244}, {ClockAction::wait, 440, 0, 0, 10}},
    {"wait: beyond", back_wait, {110, 121, 486, 1200, 1244}, {ClockAction::clock_back, 440, 0, 0, 11}},
    {"backup: within", back_backup, {110, 119, 478, 1200, 1244}, {ClockAction::backup, 440, 0, 0, 9}},
    {"backup: beyond, for its own ids count",
     back_backup,
     {110, 121, 486, 1200, 1244},
     {ClockAction::backup, 440, 0, 0, 11}},
    {"error: by one tick", back_error, {110, 111, 446, 1200, 1244}, {ClockAction::clock_back, 440, 0, 0, 1}},
    {"error: beyond", back_error, {110, 121, 486, 1200, 1244}, {ClockAction::clock_back, 440, 0, 0, 11}},
    {"error: not back", back_error, {110, 110, 440, 1200, 1244}, {ClockAction::take, 440, 1200, 0, 0}},
    {"error: ahead by borrowing is not back",
     back_error,
     {110, 110, 900, 1200, 1244},
     {ClockAction::take, 440, 1200, 0, 0}},
    {"new_worker: within", back_new, {110, 120, 482, 1200, 1244}, {ClockAction::take, 440, 1200, 0, 0}},
    // Term 1 begins at tick 1000; its lease is one lease long, from the clock's own tick.
    {"new_worker: beyond", back_new, {110, 121, 486, 1200, 1244}, {ClockAction::new_term, 4440, 0, 1210, 11}},
    {"new_worker: at the end of the term",
     back_new,
     {950, 999, 3998, 4000, 4000},
     {ClockAction::new_term, 7800, 0, 2000, 49}},

    // A held tick is full. The clock must pass it, and nothing changes while the clock approaches it.
    {"wait and hold: room in the tick held",
     wait_hold,
     {110, 118, 474, 1200, 1244},
     {ClockAction::take, 440, 476, 0, 0}},
    {"wait and hold: the tick held is full", wait_hold, {110, 118, 475, 1200, 1244}, {ClockAction::wait, 440, 0, 0, 9}},
    {"backup and hold: room in the tick held",
     two_workers,
     {110, 118, 474, 1200, 1244},
     {ClockAction::take, 440, 476, 0, 0}},
    {"backup and hold: the tick held is full",
     two_workers,
     {110, 118, 475, 1200, 1244},
     {ClockAction::backup, 440, 0, 0, 0}},

    // After a restart no clock was seen and nothing of the lease is left. A generator's own lease ends at most
    // max_ahead above a clock that went on: the word is at 311 when that clock shows 110, and no error about the clock
    // is raised.
    {"hold: own lease", back_hold, {110, -1, 1243, 1244, 1244}, {ClockAction::wait, 440, 0, 0, 7}},
    {"wait: own lease", wait_wait, {110, -1, 1243, 1244, 1244}, {ClockAction::wait, 440, 0, 0, 201}},
    {"error: own lease", wait_error, {110, -1, 1243, 1244, 1244}, {ClockAction::wait, 440, 0, 0, 201}},
    {"error: own lease, half of it", wait_error, {210, -1, 1243, 1244, 1244}, {ClockAction::wait, 840, 0, 0, 101}},
    {"error: own lease, waited out", wait_error, {311, -1, 1243, 1244, 1244}, {ClockAction::reserve, 1244, 0, 411, 0}},
    {"error: own lease, borrowing", back_error, {117, -1, 1243, 1244, 1244}, {ClockAction::reserve, 468, 0, 318, 0}},
    {"new_worker: own lease", back_new, {110, -1, 1243, 1244, 1244}, {ClockAction::wait, 440, 0, 0, 7}},
    {"backup: own lease", both_backup, {110, -1, 1243, 1244, 1244}, {ClockAction::backup, 440, 0, 0, 0}},
    // One tick more means that the clock went back by one while the server was down. The word is at 312, 321, 322.
    {"hold: by the mark", back_hold, {110, -1, 1247, 1248, 1248}, {ClockAction::wait, 440, 0, 0, 8}},
    {"hold: by the mark, beyond", back_hold, {110, -1, 1287, 1288, 1288}, {ClockAction::clock_back, 440, 0, 0, 11}},
    {"wait: by the mark", wait_wait, {110, -1, 1247, 1248, 1248}, {ClockAction::wait, 440, 0, 0, 1}},
    {"wait: by the mark, beyond", wait_wait, {110, -1, 1287, 1288, 1288}, {ClockAction::clock_back, 440, 0, 0, 11}},
    {"error: by the mark", wait_error, {110, -1, 1247, 1248, 1248}, {ClockAction::clock_back, 440, 0, 0, 1}},
    {"backup: by the mark", both_backup, {110, -1, 1247, 1248, 1248}, {ClockAction::backup, 440, 0, 0, 1}},
    {"new_worker: by the mark, at", back_new, {110, -1, 1283, 1284, 1284}, {ClockAction::wait, 440, 0, 0, 17}},
    {"new_worker: by the mark, beyond",
     back_new,
     {110, -1, 1287, 1288, 1288},
     {ClockAction::new_term, 4440, 0, 1210, 11}},
    {"wait and hold: the mark is waited out", waits, {110, -1, 1287, 1288, 1288}, {ClockAction::wait, 440, 0, 0, 212}},

    // The second term: ticks 1000 .. 1999, positions from 4000 on. The clock's tick 110 begins at 4440.
    {"term 1: confirm", back_new, {110, 121, 4439, 1200, 4840}, {ClockAction::confirm, 4440, 0, 0, 0}},
    {"term 1: what was seen in term 0 is over",
     back_new,
     {110, 999, 4439, 4840, 4840},
     {ClockAction::take, 4440, 4540, 0, 0}},
    {"term 1: prefetch", back_new, {140, 1139, 4560, 4840, 4840}, {ClockAction::take, 4560, 4840, 1310, 0}},
    {"term 1: prefetch ends with the term",
     back_new,
     {950, 1950, 7800, 7840, 7840},
     {ClockAction::take, 7800, 7840, 2000, 0}},
    {"term 1: reserve", back_new, {250, 1140, 4839, 4840, 4840}, {ClockAction::reserve, 5000, 0, 1350, 0}},
    {"term 1: within", back_new, {110, 1120, 4500, 4840, 4840}, {ClockAction::take, 4440, 4540, 0, 0}},
    {"term 1: beyond", back_new, {110, 1121, 4500, 4840, 4840}, {ClockAction::new_term, 8440, 0, 2210, 11}},
    {"term 1: by the mark", back_new, {110, -1, 5287, 5288, 5288}, {ClockAction::new_term, 8440, 0, 2210, 11}},
    {"term 1: at its end", back_new, {999, 1999, 7999, 8000, 8000}, {ClockAction::exhausted, 7996, 0, 0, 0}},
    {"term 1: the clock is beyond the end",
     back_new,
     {1000, 1110, 4500, 4840, 4840},
     {ClockAction::exhausted, 8000, 0, 0, 0}},
    // Terms end and do not run into each other: position 4000 would be the first one of term 1.
    {"the end of term 0", back_new, {999, 999, 3999, 4000, 4000}, {ClockAction::exhausted, 3996, 0, 0, 0}},
    {"the end of term 0, clock back", back_new, {500, 999, 3999, 4000, 4000}, {ClockAction::exhausted, 2000, 0, 0, 0}},
    {"the last position of term 0", back_new, {999, 999, 3998, 4000, 4000}, {ClockAction::take, 3996, 4000, 0, 0}},

    // A clock before the epoch, in each policy. A term cannot begin there.
    {"wait: before the epoch", waits, {-5, -1, 3, 780, 784}, {ClockAction::wait, 0, 0, 0, 6}},
    {"borrow: before the epoch", borrows, {-5, -1, 3, 780, 784}, {ClockAction::take, 0, 780, 0, 0}},
    {"backup: before the epoch", two_workers, {-5, -1, 3, 780, 784}, {ClockAction::backup, 0, 0, 0, 0}},
    {"hold: before the epoch, within", back_hold, {-5, 5, 23, 780, 784}, {ClockAction::take, 0, 780, 0, 0}},
    {"hold: before the epoch, beyond", back_hold, {-5, 6, 27, 780, 784}, {ClockAction::clock_back, 0, 0, 0, 11}},
    {"wait: before the epoch, back", back_wait, {-5, 5, 23, 780, 784}, {ClockAction::wait, 0, 0, 0, 10}},
    {"backup: before the epoch, back", back_backup, {-5, 5, 23, 780, 784}, {ClockAction::backup, 0, 0, 0, 10}},
    {"error: before the epoch, back", back_error, {-5, 5, 23, 780, 784}, {ClockAction::clock_back, 0, 0, 0, 10}},
    {"new_worker: before the epoch", back_new, {-5, 100, 403, 780, 784}, {ClockAction::take, 0, 780, 0, 0}},
    {"new_worker: at the epoch", back_new, {0, 100, 403, 780, 784}, {ClockAction::take, 0, 780, 0, 0}},
    {"new_worker: a tick after it", back_new, {1, 100, 403, 780, 784}, {ClockAction::new_term, 4004, 0, 1101, 99}},
    {"new_worker: before the epoch, term 1",
     back_new,
     {-5, 1100, 4403, 4800, 4840},
     {ClockAction::take, 0, 4784, 0, 0}},

    // Ids of a tick that the clock has just reached begin at its start: 2, because 110 x 0.618034 is 67.98, and 0.98 x
    // 3 is 2.9.
    {"spread: quiet", spread_out, {110, 109, 400, 1200, 1244}, {ClockAction::take, 442, 1200, 0, 0}},
    {"spread: busy", spread_out, {110, 110, 442, 1200, 1244}, {ClockAction::take, 442, 1200, 0, 0}},
    {"spread: ahead of the clock", spread_out, {110, 110, 500, 1200, 1244}, {ClockAction::take, 442, 1200, 0, 0}},
    {"spread: before the epoch", spread_out, {-5, -1, 3, 780, 784}, {ClockAction::take, 0, 780, 0, 0}},
    {"spread: beyond the end", spread_out, {1000, 110, 500, 1200, 1244}, {ClockAction::exhausted, 4000, 0, 0, 0}},
};

INSTANTIATE_TEST_SUITE_P(Cases, PolicyTable, ::testing::ValuesIn(policy_cases));

// Inside a grant of the ticks from .. until - 1. Otherwise as above: ticks below 300 are usable (position 1200), and
// the next lease is written up to 311.
struct GrantCase {
    const char *when;
    const ClockPolicy &policy;
    ClockState view;
    int64_t from;
    int64_t until;
    Decision want;
};

ClockState granted(ClockState view, int64_t from, int64_t until) {
    view.granted_from = from;
    view.granted_until = until;
    return view;
}

class GrantTable : public ::testing::TestWithParam<GrantCase> {};

TEST_P(GrantTable, GivesTheExpectedStep) {
    const GrantCase &c = GetParam();
    expect_decision(decide(c.policy, granted(c.view, c.from, c.until)), c.want, c.when);
}

const GrantCase grant_cases[] = {
    {"all ticks", plain, {110, -1, 443, 1200, 1244}, 0, 1000, {ClockAction::take, 440, 1200, 0, 0}},
    {"the limit is the grant's end", plain, {110, -1, 443, 1200, 1244}, 50, 120, {ClockAction::take, 440, 480, 0, 0}},
    {"its last tick", plain, {119, -1, 476, 1200, 1244}, 50, 120, {ClockAction::take, 476, 480, 0, 0}},
    {"used up", plain, {119, -1, 479, 1200, 1244}, 50, 120, {ClockAction::ask, 476, 0, 0, 0, 120}},
    {"the clock is beyond it", plain, {150, -1, 479, 1200, 1244}, 50, 120, {ClockAction::ask, 600, 0, 0, 0, 150}},
    {"none yet", plain, {110, -1, 443, 1200, 1244}, 0, 0, {ClockAction::ask, 440, 0, 0, 0, 111}},
    {"none yet, before the epoch", plain, {-5, -1, 3, 4, 4}, 0, 0, {ClockAction::ask, 0, 0, 0, 0, 1}},
    // The positions below tick 115 stay what they are: leased, and never drawn.
    {"begins above the clock", plain, {110, -1, 443, 1200, 1244}, 115, 500, {ClockAction::take, 460, 1200, 0, 0}},
    {"begins above the lease", plain, {290, -1, 443, 1200, 1244}, 311, 500, {ClockAction::reserve, 1244, 0, 411, 0}},
    {"begins too far ahead", plain, {110, -1, 443, 1200, 1244}, 320, 500, {ClockAction::wait, 1280, 0, 0, 16}},
    {"begins too far ahead, leased", plain, {110, -1, 443, 1600, 1600}, 320, 500, {ClockAction::wait, 1280, 0, 0, 10}},
    // A lease ends with the grant, however short it then is. A prefetch so short is not worth a record.
    {"lease cut short", plain, {310, -1, 1240, 1244, 1244}, 50, 330, {ClockAction::take, 1240, 1244, 330, 0}},
    {"lease of the last tick", plain, {329, -1, 1315, 1316, 1316}, 50, 330, {ClockAction::reserve, 1316, 0, 330, 0}},
    {"short prefetch", plain, {324, -1, 1298, 1300, 1300}, 50, 330, {ClockAction::take, 1296, 1300, 0, 0}},
    {"leased beyond the grant", plain, {110, -1, 443, 480, 1244}, 50, 118, {ClockAction::take, 440, 472, 0, 0}},
    {"leased beyond the grant, used up",
     plain,
     {117, -1, 471, 480, 1244},
     50,
     118,
     {ClockAction::ask, 468, 0, 0, 0, 118}},
    {"not durable", plain, {110, -1, 443, 440, 1244}, 50, 118, {ClockAction::confirm, 440, 0, 0, 0}},
    // The clock comes first: nothing is asked for that could not be used.
    {"too far ahead of the clock", plain, {90, -1, 1163, 1200, 1244}, 50, 291, {ClockAction::wait, 360, 0, 0, 1}},
    {"waits for the tick", waits, {119, 119, 479, 1200, 1244}, 50, 120, {ClockAction::wait, 476, 0, 0, 1}},
    {"clock back", back_error, {110, 111, 446, 1200, 1244}, 50, 100, {ClockAction::clock_back, 440, 0, 0, 1}},
    {"backup worker first", two_workers, {119, 119, 479, 1200, 1244}, 50, 120, {ClockAction::backup, 476, 0, 0, 0}},
    {"spread, and the start of a grant",
     spread_out,
     {110, 109, 400, 1200, 1244},
     110,
     500,
     {ClockAction::take, 442, 1200, 0, 0}},
    {"the end of time", plain, {999, -1, 3999, 4000, 4000}, 900, 1000, {ClockAction::exhausted, 3996, 0, 0, 0}},
    {"up to the end of time", plain, {990, -1, 3998, 4000, 4000}, 900, no_limit, {ClockAction::take, 3960, 4000, 0, 0}},
    // In a term the ticks of a grant count from the term's beginning.
    {"term 1", back_new, {110, 1110, 4442, 4840, 4840}, 50, 120, {ClockAction::take, 4440, 4480, 0, 0}},
    {"term 1: used up", back_new, {119, 1119, 4479, 4840, 4840}, 50, 120, {ClockAction::ask, 4476, 0, 0, 0, 120}},
    {"term 1: from", back_new, {110, 1110, 4442, 4840, 4840}, 112, 200, {ClockAction::take, 4448, 4540, 0, 0}},
};

INSTANTIATE_TEST_SUITE_P(Cases, GrantTable, ::testing::ValuesIn(grant_cases));

// The clock is behind what it has shown, and after a restart behind what no lease above it can explain. At the latest
// reading it has caught up. A term that was begun since has no reading yet.
TEST(TicksBack, IsPositiveWhileTheClockIsBehind) {
    EXPECT_EQ(ticks_back(plain, {99, 100, 400, 800, 800}), 1);
    EXPECT_LE(ticks_back(plain, {100, 100, 400, 800, 800}), 0);
    EXPECT_LE(ticks_back(plain, {0, nothing_seen, 799, 800, 800}), 0);
    EXPECT_EQ(ticks_back(plain, {0, nothing_seen, 1199, 1200, 1200}), 99);
    EXPECT_LE(ticks_back(plain, {0, nothing_seen, 1199, 1200, 1200, true}), 0);
    EXPECT_LE(ticks_back(plain, {5, 100, 4020, 4400, 4400}), 0);
}

TEST(GrantBegin, CountsFromTheTerm) {
    EXPECT_EQ(granted_begin(plain, granted({110, -1, 443, 1200, 1244}, 115, 500)), 460u);
    EXPECT_EQ(granted_begin(back_new, granted({110, -1, 4443, 1200, 1244}, 115, 500)), 4460u);
    EXPECT_EQ(granted_begin(plain, {110, -1, 443, 1200, 1244}), 0u);
}

// The backup worker asks only if its own next position lies beyond the grant.
TEST(GrantTableOfBackup, GivesTheExpectedStep) {
    const ClockState v = {119, 119, 470, 1200, 1244};
    expect_decision(decide_backup(two_workers, granted(v, 50, 120), 0), {ClockAction::take, 476, 480, 0, 0}, "inside");
    expect_decision(decide_backup(two_workers, granted(v, 50, 119), 0), {ClockAction::ask, 476, 0, 0, 0, 119},
                    "beyond");
    expect_decision(decide_backup(two_workers, granted(v, 120, 130), 0), {ClockAction::wait, 480, 0, 0, 1}, "below");
    expect_decision(decide_backup(both_backup, granted({110, 160, 40, 1200, 1244}, 50, 115), 50),
                    {ClockAction::take, 440, 460, 0, 0}, "clock back");
}

// The backup worker: `last` is its own word, and `back` is the reason for which the caller asks it.
struct BackupCase {
    const char *when;
    const ClockPolicy &policy;
    ClockState view;
    int64_t back;
    Decision want;
};

class BackupTable : public ::testing::TestWithParam<BackupCase> {};

TEST_P(BackupTable, GivesTheExpectedStep) {
    const BackupCase &c = GetParam();
    expect_decision(decide_backup(c.policy, c.view, c.back), c.want, c.when);
}

const BackupCase backup_cases[] = {
    {"tick fresh", two_workers, {110, 110, 40, 1200, 1244}, 0, {ClockAction::take, 440, 444, 0, 0}},
    {"one position left", two_workers, {110, 110, 442, 1200, 1244}, 0, {ClockAction::take, 440, 444, 0, 0}},
    {"tick full: the primary borrows", two_workers, {110, 110, 443, 1200, 1244}, 0, {ClockAction::wait, 440, 0, 0, 1}},
    {"the tick held", two_workers, {110, 118, 474, 1200, 1244}, 0, {ClockAction::take, 440, 476, 0, 0}},
    {"the tick held is full", two_workers, {110, 118, 475, 1200, 1244}, 0, {ClockAction::wait, 440, 0, 0, 9}},
    {"not durable", two_workers, {300, 300, 40, 1200, 1600}, 0, {ClockAction::confirm, 1200, 0, 0, 0}},
    {"nothing leased", two_workers, {300, 300, 40, 1200, 1200}, 0, {ClockAction::reserve, 1200, 0, 400, 0}},
    {"time used up", two_workers, {999, 999, 3999, 4000, 4000}, 0, {ClockAction::exhausted, 3996, 0, 0, 0}},
    // The clock at 110 went back by 50. The backup worker's own ids are at 120 at most; otherwise they are too far
    // ahead.
    {"clock back", both_backup, {110, 160, 40, 1200, 1244}, 50, {ClockAction::take, 440, 484, 0, 0}},
    {"clock back, own ids within", both_backup, {110, 160, 482, 1200, 1244}, 50, {ClockAction::take, 440, 484, 0, 0}},
    {"clock back, own ids beyond",
     both_backup,
     {110, 160, 483, 1200, 1244},
     50,
     {ClockAction::clock_back, 440, 0, 0, 50}},
    {"clock back, by the mark", both_backup, {110, -1, 1247, 1248, 1248}, 1, {ClockAction::clock_back, 440, 0, 0, 1}},
    {"clock back, no tolerance",
     with(WhenFull::borrow, WhenBack::backup, 0),
     {110, 160, 442, 1200, 1244},
     50,
     {ClockAction::take, 440, 444, 0, 0}},
    {"clock back, no limit",
     with(WhenFull::borrow, WhenBack::backup),
     {90, 160, 442, 1200, 1244},
     70,
     {ClockAction::take, 360, 1164, 0, 0}},
    {"clock back, no limit but max_ahead",
     with(WhenFull::borrow, WhenBack::backup),
     {90, 160, 1163, 1200, 1244},
     70,
     {ClockAction::clock_back, 360, 0, 0, 70}},
    {"clock back before the epoch", both_backup, {-5, 160, 3, 1200, 1244}, 165, {ClockAction::take, 0, 24, 0, 0}},
};

INSTANTIATE_TEST_SUITE_P(Cases, BackupTable, ::testing::ValuesIn(backup_cases));

// The backup worker has nothing left either: what the primary does then.
TEST(DecideBorrowing, WhenTheBackupWordIsFullToo) {
    expect_decision(decide(two_workers, {110, 110, 443, 1200, 1244}, true), {ClockAction::take, 440, 1200, 0, 0},
                    "borrows");
    expect_decision(decide(two_workers, {90, 90, 1163, 1200, 1244}, true), {ClockAction::wait, 360, 0, 0, 1},
                    "max_ahead used up");
    expect_decision(decide(both_backup, {110, 160, 643, 1200, 1244}, true), {ClockAction::backup, 440, 0, 0, 50},
                    "clock back");
}

// The policy borrows, not the caller.
TEST(DecideBorrowing, OnlyWithABackupWorker) {
    expect_decision(decide(waits, {110, 110, 443, 1200, 1244}, true), {ClockAction::wait, 440, 0, 0, 1}, "waits");
}

// ---------------------------------------------------------------------------------------------------------
// Every state of small policies.

uint64_t next_of(const ClockPolicy &p, int64_t now, uint64_t last) {
    const uint64_t floor = now > 0 ? position(p, std::min(now, p.end)) : 0;
    return std::max(last + 1, floor);
}

struct Bounds {
    int64_t now;
    uint64_t last;
    uint64_t usable;
    uint64_t written;
};

Decision decide(const ClockPolicy &p, const Bounds &s, int64_t later = 0) {
    return decide(p, ClockState{s.now + later, nothing_seen, s.last, s.usable, s.written});
}

int64_t latest_lease_end(const ClockPolicy &p, int64_t now) { return std::min(now + p.max_ahead + 1, p.end); }

void expect_sound_take(const ClockPolicy &p, const Bounds &s, const Decision &d) {
    EXPECT_GT(d.limit, next_of(p, s.now, s.last));
    EXPECT_LE(d.limit, s.usable);
    EXPECT_LE(tick_of(p, d.limit - 1), s.now + p.max_ahead);
    if (d.reserve_until == 0)
        return;
    EXPECT_GT(d.reserve_until, tick_of(p, s.written));
    EXPECT_LE(d.reserve_until, latest_lease_end(p, s.now));
}

void expect_sound_reserve(const ClockPolicy &p, const Bounds &s, const Decision &d) {
    const uint64_t next = next_of(p, s.now, s.last);
    EXPECT_GE(next, s.written);
    EXPECT_GT(d.reserve_until, tick_of(p, next)) << "the record would not help the caller";
    EXPECT_LE(d.reserve_until, latest_lease_end(p, s.now));
}

// A wait is exactly as long as it must be: no caller waits twice, or for nothing.
void expect_sound_wait(const ClockPolicy &p, const Bounds &s, const Decision &d) {
    ASSERT_GT(d.wait_ticks, 0);
    EXPECT_NE(decide(p, s, d.wait_ticks).action, ClockAction::wait) << "waits again";
    EXPECT_EQ(decide(p, s, d.wait_ticks - 1).action, ClockAction::wait) << "waits too long";
}

void expect_sound(const ClockPolicy &p, const Bounds &s) {
    const Decision d = decide(p, s);
    const uint64_t next = next_of(p, s.now, s.last);
    EXPECT_EQ(d.action == ClockAction::exhausted, tick_of(p, next) >= p.end);
    if (d.action == ClockAction::take)
        expect_sound_take(p, s, d);
    else if (d.action == ClockAction::confirm)
        EXPECT_TRUE(s.usable <= next && next < s.written);
    else if (d.action == ClockAction::reserve)
        expect_sound_reserve(p, s, d);
    else if (d.action == ClockAction::wait)
        expect_sound_wait(p, s, d);
    if (::testing::Test::HasFailure())
        ADD_FAILURE() << p << ", now " << s.now << " last " << s.last << " usable " << s.usable << " written "
                      << s.written << ": " << d;
}

// All combinations of bounds that a word may have. `last` may be anywhere below or above the bounds.
void expect_sound_everywhere(const ClockPolicy &p, int64_t stride) {
    for (int64_t now = -p.max_ahead - 3; now <= p.end + 2; now++)
        for (int64_t written = 0; written <= p.end; written += stride)
            for (int64_t usable = 0; usable <= written; usable += stride)
                for (uint64_t last = 0; last < position(p, p.end); last += static_cast<uint64_t>(stride)) {
                    expect_sound(p, {now, last, position(p, usable), position(p, written)});
                    if (::testing::Test::HasFailure())
                        return;
                }
}

TEST(Decide, EveryStateOfSmallPolicies) {
    for (int64_t lease : {1, 2, 4})
        for (int64_t more : {0, 1, 3})
            for (int32_t bits : {0, 1})
                expect_sound_everywhere({bits, 10, lease, lease + more}, 1);
}

// Leases whose records have a least length of more than one tick.
TEST(Decide, EveryStateOfLongerLeases) {
    for (int64_t lease : {17, 33, 48})
        expect_sound_everywhere({0, 64, lease, lease + 5}, 4);
}

// ---------------------------------------------------------------------------------------------------------
// Every state of small policies of every kind, in two terms. The expected values are computed here a second time, from
// the definitions: a first term of `end` ticks, and a second one.

// null: sound. Not EXPECT_: these are tens of millions of checks.
using Unsound = const char *;

struct Facts {
    int64_t begin;
    int64_t end;
    int64_t now;  // in the word's count
    int64_t back; // how far the clock is below what was seen, or below the earliest clock that could have leased so far
    uint64_t next;
    int64_t granted_end;

    Facts(const ClockPolicy &p, const ClockState &v) : begin(0), end(p.end), now(0), back(0), next(0), granted_end(0) {
        for (; tick_of(p, v.last) >= end; end += p.end)
            begin += p.end;
        now = begin + std::min(v.now, p.end);
        if (v.now > 0)
            next = position(p, now) + (v.now < p.end ? p.spread.start(v.now) : 0);
        next = std::max({next, v.last + 1, position(p, begin + std::min(v.granted_from, p.end))});
        granted_end = begin + std::min(v.granted_until, p.end);
        for (const int64_t shown : {v.seen, tick_of(p, v.written) - 1 - p.max_ahead})
            if (shown >= begin)
                back = std::max(back, shown - now);
    }
    int64_t held() const { return now + back; }
    int64_t lease_end(const ClockPolicy &p) const { return std::min({now + p.max_ahead + 1, end, granted_end}); }
};

ClockState later(ClockState v, int64_t by) {
    v.now += by;
    return v;
}

Unsound judge_take(const ClockPolicy &p, const ClockState &v, const Facts &f, const Decision &d, int64_t highest) {
    if (d.limit <= f.next)
        return "take: nothing below the limit";
    if (d.limit > v.usable)
        return "take: not durable";
    if (tick_of(p, d.limit - 1) > f.now + p.max_ahead)
        return "take: too far ahead of the clock";
    if (tick_of(p, d.limit - 1) > highest)
        return "take: a tick that the policy does not allow";
    if (tick_of(p, d.limit - 1) >= f.end)
        return "take: beyond the term";
    if (tick_of(p, d.limit - 1) >= f.granted_end || std::max(v.last + 1, d.floor) < granted_begin(p, v))
        return "take: outside the grant";
    if (d.reserve_until != 0 && (d.reserve_until <= tick_of(p, v.written) || d.reserve_until > f.lease_end(p)))
        return "take: no lease for a record";
    return nullptr;
}

Unsound judge_record(const ClockPolicy &p, const ClockState &v, const Facts &f, const Decision &d) {
    if (d.action == ClockAction::confirm)
        return v.usable <= f.next && f.next < v.written ? nullptr : "confirm: not what is missing";
    if (f.next < v.written)
        return "reserve: there is a record";
    if (d.reserve_until <= tick_of(p, f.next))
        return "reserve: does not help the caller";
    if (d.reserve_until > f.lease_end(p))
        return "reserve: too far ahead of the clock, or beyond the term";
    if (d.reserve_until > tick_of(p, f.next) + p.lease)
        return "reserve: more than a lease";
    return nullptr;
}

// A wait is exactly as long as it must be. Only a caller that waited for a clock that went back may have to wait again,
// for the next tick. A term can begin as soon as the clock has passed the epoch, wherever else it is.
Unsound judge_wait(const ClockPolicy &p, const ClockState &v, const Facts &f, const Decision &d, bool may_borrow) {
    if (d.wait_ticks <= 0)
        return "wait: for nothing";
    const bool for_clock = f.back > 0 && p.when_back == WhenBack::wait;
    if (for_clock && (f.back > p.tolerance || d.wait_ticks != f.back))
        return "wait: for a clock that is back too far, or not as long as it is";
    if (!for_clock && decide(p, later(v, d.wait_ticks), may_borrow).action == ClockAction::wait)
        return "wait: not long enough";
    const bool before_epoch = p.when_back == WhenBack::new_worker && f.back > p.tolerance && v.now <= 0;
    if (!before_epoch && decide(p, later(v, d.wait_ticks - 1), may_borrow).action != ClockAction::wait)
        return "wait: too long";
    return nullptr;
}

// An ask comes exactly when the next tick lies beyond the grant and nothing else is in its way.
Unsound judge_ask(const ClockPolicy &p, ClockState v, const Facts &f, const Decision &d, bool may_borrow) {
    if (tick_of(p, f.next) < f.granted_end)
        return "ask: there is a grant";
    if (d.wanted != tick_of(p, f.next) - f.begin)
        return "ask: for another tick";
    v.granted_until = no_limit;
    const ClockAction then = decide(p, v, may_borrow).action;
    if (then != ClockAction::take && then != ClockAction::confirm && then != ClockAction::reserve &&
        then != ClockAction::wait)
        return "ask: in vain";
    return nullptr;
}

Unsound judge_clock_back(const ClockPolicy &p, const Facts &f, const Decision &d) {
    if (f.back <= 0)
        return "clock_back: it is not";
    if (d.wait_ticks != f.back)
        return "clock_back: by another time";
    const bool patient = p.when_back == WhenBack::hold || p.when_back == WhenBack::wait;
    if (p.when_back == WhenBack::error || (patient && f.back > p.tolerance))
        return nullptr;
    return "clock_back: the policy is another";
}

Unsound judge_backup(const ClockPolicy &p, const Facts &f, const Decision &d, bool may_borrow) {
    if (f.back > 0 && p.when_back == WhenBack::backup)
        return d.wait_ticks == f.back ? nullptr : "backup: clock back by another time";
    if (p.when_full != WhenFull::backup || may_borrow || d.wait_ticks != 0)
        return "backup: the policy is another";
    return tick_of(p, f.next) > f.held() ? nullptr : "backup: the tick is not full";
}

Unsound judge_new_term(const ClockPolicy &p, const ClockState &v, const Facts &f, const Decision &d) {
    const int64_t from = f.end + v.now;
    if (p.when_back != WhenBack::new_worker || f.back <= p.tolerance || d.wait_ticks != f.back)
        return "new_term: no reason";
    if (v.now < 1 || d.floor != position(p, from))
        return "new_term: not at the clock's tick, above the term's first";
    if (d.reserve_until <= from || d.reserve_until > from + p.lease || d.reserve_until > f.end + p.end)
        return "new_term: not a lease";
    return nullptr;
}

// Up to which tick the primary worker may go, apart from the clock's bound.
int64_t highest_of_primary(const ClockPolicy &p, const Facts &f, bool may_borrow) {
    const bool borrows = p.when_full == WhenFull::borrow || (p.when_full == WhenFull::backup && may_borrow);
    return borrows ? f.end : f.held();
}

bool goes_on_when_back(const ClockPolicy &p, const ClockState &v, const Facts &f) {
    if (p.when_back == WhenBack::hold)
        return f.back <= p.tolerance;
    return p.when_back == WhenBack::new_worker && (f.back <= p.tolerance || v.now <= 0);
}

Unsound judge(const ClockPolicy &p, const ClockState &v, bool may_borrow, const Decision &d) {
    const Facts f(p, v);
    if ((d.action == ClockAction::exhausted) != (tick_of(p, f.next) >= f.end))
        return "exhausted: if and only if no tick is left";
    const bool goes_on =
        d.action == ClockAction::take || d.action == ClockAction::reserve || d.action == ClockAction::confirm;
    if (goes_on && f.back > 0 && !goes_on_when_back(p, v, f))
        return "goes on although the clock went back";
    switch (d.action) {
    case ClockAction::take:
        return judge_take(p, v, f, d, highest_of_primary(p, f, may_borrow));
    case ClockAction::confirm:
    case ClockAction::reserve:
        return judge_record(p, v, f, d);
    case ClockAction::wait:
        return judge_wait(p, v, f, d, may_borrow);
    case ClockAction::backup:
        return judge_backup(p, f, d, may_borrow);
    case ClockAction::clock_back:
        return judge_clock_back(p, f, d);
    case ClockAction::new_term:
        return judge_new_term(p, v, f, d);
    case ClockAction::ask:
        return judge_ask(p, v, f, d, may_borrow);
    case ClockAction::exhausted:
        break;
    }
    return nullptr;
}

// The backup worker's decision, for a state with its own word.
Unsound judge_backup_worker(const ClockPolicy &p, const ClockState &v, int64_t back, const Decision &d) {
    const Facts f(p, v);
    const int64_t highest = back > 0 ? f.now + std::min(p.tolerance, p.max_ahead) : f.held();
    if ((d.action == ClockAction::exhausted) != (tick_of(p, f.next) >= f.end))
        return "exhausted: if and only if no tick is left";
    switch (d.action) {
    case ClockAction::take:
        return judge_take(p, v, f, d, highest);
    case ClockAction::confirm:
    case ClockAction::reserve:
        return judge_record(p, v, f, d);
    case ClockAction::clock_back:
        return back > 0 && d.wait_ticks == back && tick_of(p, f.next) > highest
                   ? nullptr
                   : "clock_back: its own ids are not ahead";
    case ClockAction::wait:
        // Leases of 16 ticks or fewer may be extended by one.
        return d.wait_ticks > 0 && tick_of(p, f.next) > std::min(highest, f.now + p.max_ahead)
                   ? nullptr
                   : "wait: its tick is not full, and not too far ahead of the clock";
    case ClockAction::exhausted:
        return nullptr;
    case ClockAction::ask:
        return tick_of(p, f.next) >= f.granted_end && d.wanted == tick_of(p, f.next) - f.begin
                   ? nullptr
                   : "ask: there is a grant, or for another tick";
    default:
        return "a decision that the backup worker cannot make";
    }
}

struct State {
    ClockState view;
    uint64_t backup_last;
};

ClockState backup_view(const State &s) {
    ClockState v = s.view;
    v.last = s.backup_last;
    return v;
}

// Executes a decision as src/pg/draw/draw_generator.cpp does. True: the call has ended, with ids, a wait or an error.
bool ends_call(const ClockPolicy &p, State *s, const Decision &d) {
    ClockState &v = s->view;
    switch (d.action) {
    case ClockAction::confirm:
        v.usable = v.written;
        return false;
    case ClockAction::new_term:
        v.last = std::max(v.last, d.floor - 1);
        [[fallthrough]];
    case ClockAction::reserve:
        v.written = std::max(v.written, position(p, d.reserve_until));
        return false;
    default:
        return true;
    }
}

// A call with a clock that stands still. It reaches an end, and each decision on the way is sound.
Unsound judge_call(const ClockPolicy &p, State s) {
    for (int steps = 0; steps < 4; steps++) {
        Decision d = decide(p, s.view);
        if (const Unsound unsound = judge(p, s.view, false, d))
            return unsound;
        if (d.action == ClockAction::backup) {
            const int64_t back = d.wait_ticks;
            d = decide_backup(p, backup_view(s), back);
            if (const Unsound unsound = judge_backup_worker(p, backup_view(s), back, d))
                return unsound;
            if (d.action == ClockAction::wait && back == 0) {
                d = decide(p, s.view, true);
                if (const Unsound unsound = judge(p, s.view, true, d))
                    return unsound;
                if (d.action == ClockAction::backup)
                    return "backup: asked for again";
            }
        }
        if (ends_call(p, &s, d))
            return nullptr;
    }
    return "a call that does not end";
}

class EveryState {
  public:
    explicit EveryState(const ClockPolicy &policy, int64_t from = 0, int64_t until = no_limit)
        : p_(policy), terms_(p_.when_back == WhenBack::new_worker ? 2 : 1), from_(from), until_(until) {}

    void judge_all() {
        const int64_t end = terms_ * p_.end;
        for (int64_t written = 0; written <= end; written++)
            for (int64_t usable = 0; usable <= written; usable++)
                for (uint64_t last = 0; last < position(p_, end); last++)
                    judge_clocks(last, position(p_, usable), position(p_, written));
    }
    uint64_t judged() const { return judged_; }

  private:
    void judge_clocks(uint64_t last, uint64_t usable, uint64_t written) {
        for (int64_t now = -p_.max_ahead - 2; now <= p_.end + 1; now++)
            for (int64_t seen = nothing_seen; seen < terms_ * p_.end; seen += seen < 0 ? 2 : 1)
                judge_backups({granted({now, seen, last, usable, written}, from_, until_), 0});
    }
    void judge_backups(State s) {
        const bool two_workers = p_.when_full == WhenFull::backup || p_.when_back == WhenBack::backup;
        const uint64_t lasts[] = {s.view.last, 0, std::max(s.view.written, UINT64_C(1)) - 1};
        for (size_t i = 0; i < (two_workers ? std::size(lasts) : 1); i++) {
            s.backup_last = lasts[i];
            judge_one(s);
        }
    }
    void judge_one(const State &s) {
        judged_++;
        const Unsound unsound = judge_call(p_, s);
        if (unsound != nullptr && !::testing::Test::HasFailure())
            ADD_FAILURE() << unsound << ": " << p_ << ", now " << s.view.now << " seen " << s.view.seen << " last "
                          << s.view.last << " backup " << s.backup_last << " usable " << s.view.usable << " written "
                          << s.view.written << " granted " << from_ << " to " << until_ << ": " << decide(p_, s.view);
    }

    const ClockPolicy p_;
    const int64_t terms_;
    const int64_t from_; // the grant
    const int64_t until_;
    uint64_t judged_ = 0;
};

uint64_t judge_every_state(const ClockPolicy &policy, int64_t from = 0, int64_t until = no_limit) {
    EveryState all(policy, from, until);
    all.judge_all();
    return all.judged();
}

constexpr WhenFull all_full[] = {WhenFull::wait, WhenFull::borrow, WhenFull::backup};
constexpr WhenBack all_back[] = {WhenBack::hold, WhenBack::wait, WhenBack::backup, WhenBack::error,
                                 WhenBack::new_worker};

TEST(EveryPolicy, EveryStateIsSoundAndEveryCallEnds) {
    uint64_t judged = 0;
    for (WhenFull full : all_full)
        for (WhenBack back : all_back)
            for (int64_t tolerance : {INT64_C(0), INT64_C(1), no_limit})
                for (const Spread spread : {Spread{0}, Spread{2}}) {
                    const int64_t end = back == WhenBack::new_worker ? 3 : 5;
                    judged += judge_every_state({1, end, 1, 2, full, back, tolerance, spread});
                    judged += judge_every_state({0, end + 1, 2, 2, full, back, tolerance, {0}});
                }
    EXPECT_GT(judged, 1000000u);
}

// Every grant of the small layouts, also one that begins where the layout ends, and none.
TEST(EveryPolicy, EveryStateInsideEveryGrantIsSoundAndEveryCallEnds) {
    uint64_t judged = 0;
    for (WhenFull full : all_full)
        for (WhenBack back : all_back)
            for (int64_t tolerance : {INT64_C(1), no_limit}) {
                const int64_t end = back == WhenBack::new_worker ? 2 : 4;
                for (int64_t from = 0; from <= end; from++)
                    for (int64_t until = from; until <= end; until++)
                        judged += judge_every_state({0, end, 2, 2, full, back, tolerance, {0}}, from, until);
            }
    EXPECT_GT(judged, 1000000u);
}

// ---------------------------------------------------------------------------------------------------------
// A model generator: the word, the page that keeps the high-water mark, and what a crash leaves of both.

struct History {
    uint64_t taken = 0;
    uint64_t records = 0;
    uint64_t waits = 0;
    uint64_t crashes = 0;
    bool exhausted = false;
};

class Generator {
  public:
    Generator(const ClockPolicy &policy, uint64_t seed) : policy_(policy), random_(seed) { restart(); }

    // One call for `want` positions. It ends with them, or with the end of time.
    void draw(uint64_t want) {
        int idle = 0;
        bool waited = false;
        while (want > 0 && !history_.exhausted && !::testing::Test::HasFailure()) {
            const Decision d = decision();
            EXPECT_FALSE(waited && d.action == ClockAction::wait) << "waits again: " << policy_ << ": " << d;
            waited = d.action == ClockAction::wait;
            const uint64_t got = perform(d, want);
            want -= got;
            idle = got > 0 ? 0 : idle + 1;
            ASSERT_LE(idle, 3) << "no position after wait, reserve, confirm: " << policy_ << ": " << d;
        }
    }

    void move_clock(int64_t by) { now_ += by; }

    // The server dies. Every confirmed record survives. Of the later ones, those up to some point survive.
    void crash() {
        history_.crashes++;
        marks_.resize(durable_ + random_() % (marks_.size() - durable_ + 1));
        restart();
    }

    // Another session moves the counter up, as setval or a restore does.
    void move_counter(int64_t by) {
        const int64_t mark = std::min(marks_.back() + by, policy_.end);
        write(mark, mark);
        word_.discard_below(position(policy_, mark));
    }

    // A backend flushes for another reason.
    void confirm() {
        const WrittenRange written = word_.written_range();
        durable_ = std::max(durable_, static_cast<size_t>(written.lsn));
        word_.confirm(Durability::local, written.until);
    }

    const History &history() const { return history_; }
    int64_t now() const { return now_; }
    uint64_t last() const { return word_.last(); }

  private:
    Decision decision() const {
        const uint64_t last = word_.last();
        const uint64_t usable = word_.usable(Durability::local);
        return decide(policy_, Bounds{now_, last, usable, word_.written_range().until});
    }

    uint64_t perform(const Decision &d, uint64_t want) {
        switch (d.action) {
        case ClockAction::take:
            return take(d, want);
        case ClockAction::confirm:
            confirm();
            break;
        case ClockAction::reserve:
            reserve(d.reserve_until);
            break;
        case ClockAction::wait:
            history_.waits++;
            now_ += d.wait_ticks;
            break;
        case ClockAction::exhausted:
            EXPECT_TRUE(now_ >= policy_.end || tick_of(policy_, word_.last() + 1) >= policy_.end) << policy_;
            history_.exhausted = true;
            break;
        case ClockAction::backup:
        case ClockAction::clock_back:
        case ClockAction::new_term:
        case ClockAction::ask:
            ADD_FAILURE() << "not for a generator that borrows and holds, in no fleet: " << d;
        }
        return 0;
    }

    uint64_t take(const Decision &d, uint64_t want) {
        if (d.reserve_until != 0)
            reserve(d.reserve_until);
        const Run run = word_.take(d.floor, d.limit, want);
        if (run.count > 0)
            expect_sound_run(run, d.floor, want);
        return run.count;
    }

    void expect_sound_run(const Run &run, uint64_t floor, uint64_t want) {
        const uint64_t last = run.first + run.count - 1;
        EXPECT_LE(run.count, want);
        EXPECT_GE(run.first, floor);
        EXPECT_GT(run.first, handed_out_) << "P1, P2: not above all earlier positions: " << policy_;
        EXPECT_LE(tick_of(policy_, last), now_ + policy_.max_ahead) << "P4: " << policy_;
        EXPECT_LT(tick_of(policy_, last), policy_.end) << "P3: " << policy_;
        EXPECT_LT(tick_of(policy_, last), marks_[durable_ - 1]) << "handed out before it is durable: " << policy_;
        handed_out_ = last;
        history_.taken += run.count;
    }

    void reserve(int64_t until) {
        EXPECT_LE(until, now_ + policy_.max_ahead + 1) << "P4: a lease ends too far ahead: " << policy_;
        EXPECT_LE(until, policy_.end) << policy_;
        EXPECT_GT(until, marks_.back()) << "the record adds nothing: " << policy_;
        write(until, marks_.back());
    }

    void write(int64_t until, int64_t from) {
        history_.records++;
        marks_.push_back(until);
        word_.publish(position(policy_, from), position(policy_, until), marks_.size());
    }

    // Whatever the log still holds was replayed, and is on disk.
    void restart() {
        durable_ = marks_.size();
        word_.reset(position(policy_, marks_.back()));
    }

    const ClockPolicy policy_;
    std::mt19937_64 random_;
    PositionAllocator<> word_;
    int64_t now_ = 5;
    std::vector<int64_t> marks_{1}; // the high-water mark after each record, whose lsn is its place from 1 on
    size_t durable_ = 1;            // how many of the records are durable
    uint64_t handed_out_ = 0;       // no lease holds position 0: the first mark is 1
    History history_;
};

ClockPolicy random_policy(std::mt19937_64 &random) {
    static const int64_t leases[] = {1, 2, 5, 15, 16, 17, 31, 32, 100, 1000};
    const int64_t lease = leases[random() % std::size(leases)];
    const int64_t max_ahead = lease + static_cast<int64_t>(random() % static_cast<uint64_t>(2 * lease));
    const int64_t end = random() % 2 == 0 ? INT64_C(1) << 41 : INT64_C(1) << (5 + random() % 12);
    return {static_cast<int32_t>(random() % 14), end, lease, max_ahead};
}

// Forward more often than back, sometimes by far more than max_ahead.
int64_t random_jump(std::mt19937_64 &random, const ClockPolicy &p) {
    const int64_t reach = random() % 10 == 0 ? 10 * p.max_ahead : p.lease;
    return static_cast<int64_t>(random() % static_cast<uint64_t>(2 * reach + 1)) - reach * 4 / 5;
}

uint64_t random_want(std::mt19937_64 &random, const ClockPolicy &p) {
    return random() % 4 == 0 ? 1 + random() % position(p, p.lease + 2) : 1 + random() % 3;
}

void random_event(Generator &generator, std::mt19937_64 &random, const ClockPolicy &p) {
    const uint64_t dice = random() % 100;
    if (dice < 70)
        generator.draw(random_want(random, p));
    else if (dice < 90)
        generator.move_clock(random_jump(random, p));
    else if (dice < 95)
        generator.crash();
    else if (dice < 99)
        generator.confirm();
    else
        generator.move_counter(1 + static_cast<int64_t>(random() % static_cast<uint64_t>(p.lease)));
}

void add(History &all, const History &one) {
    all.taken += one.taken;
    all.records += one.records;
    all.waits += one.waits;
    all.crashes += one.crashes;
}

TEST(Generator, RandomHistoriesStayUniqueOrderedAndTruthful) {
    std::mt19937_64 random(20260105);
    History all;
    int ended = 0;
    for (int i = 0; i < 3000 && !HasFailure(); i++) {
        const ClockPolicy policy = random_policy(random);
        Generator generator(policy, random());
        for (int j = 0; j < 300 && !HasFailure(); j++)
            random_event(generator, random, policy);
        add(all, generator.history());
        ended += generator.history().exhausted ? 1 : 0;
    }
    // The histories contained all the cases that this test is about.
    EXPECT_GT(all.taken, 1000000u);
    EXPECT_GT(all.records, 100000u);
    EXPECT_GT(all.waits, 10000u);
    EXPECT_GT(all.crashes, 10000u);
    EXPECT_GT(ended, 100);
}

// Under a clock that stands still a generator hands out what max_ahead allows, less at most the last sixteenth of a
// lease, for which it writes no record. Then it waits.
TEST(Generator, AStandingClockIsFollowedNotOutrun) {
    const ClockPolicy policy = {3, INT64_C(1) << 41, 100, 200};
    Generator generator(policy, 1);
    const int64_t least_record = 7;
    generator.draw(position(policy, policy.max_ahead + 1 - (least_record - 1)));
    EXPECT_EQ(generator.history().waits, 0u) << "max_ahead was not used up";
    generator.draw(position(policy, least_record));
    EXPECT_EQ(generator.history().waits, 1u);
}

// Every position up to the last one is handed out, and then none, whatever the clock shows.
TEST(Generator, TheEndOfTimeIsReachedAndStays) {
    for (int64_t lease : {1, 7, 16, 40}) {
        const ClockPolicy policy = {2, 256, lease, 2 * lease};
        Generator generator(policy, 1);
        const uint64_t all = position(policy, policy.end - generator.now());
        generator.draw(all);
        EXPECT_EQ(generator.history().taken, all);
        EXPECT_FALSE(generator.history().exhausted);
        generator.move_clock(-250);
        generator.draw(1);
        EXPECT_TRUE(generator.history().exhausted);
        EXPECT_EQ(generator.history().taken, all);
    }
}

// Under a bulk load that lives at max_ahead the clock sets the pace, and the records stay few.
TEST(Generator, BulkLoadWritesAtMostSixteenRecordsALease) {
    for (int64_t lease : {1, 2, 15, 16, 17, 20, 31, 32, 33, 100, 1000})
        for (uint64_t batch : {1u, 7u, 1000u}) {
            const ClockPolicy policy = {2, INT64_C(1) << 41, lease, 2 * lease};
            Generator generator(policy, 1);
            const int64_t leases = 20;
            const int64_t start = generator.now();
            while (generator.now() < start + leases * lease && !HasFailure())
                generator.draw(batch);
            const int64_t passed = generator.now() + policy.max_ahead - start;
            EXPECT_LE(static_cast<int64_t>(generator.history().records), 16 * passed / lease + 4) << policy;
        }
}

} // namespace
