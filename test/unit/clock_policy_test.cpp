// The policy: a table of decisions with their numbers, and every state of small policies, checked against what any answer
// must satisfy.
#include "clock_policy.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <ostream>
#include <vector>

namespace uidgen::core {

std::ostream &operator<<(std::ostream &out, const ClockPolicy &p) {
    static const char *const full[] = {"wait", "borrow", "backup"};
    static const char *const back[] = {"hold", "wait", "backup", "error"};
    return out << "bits " << p.sequence_bits << " end " << p.end << " lease " << p.lease << " max_ahead " << p.max_ahead
               << " when_full " << full[static_cast<int>(p.when_full)] << " when_back "
               << back[static_cast<int>(p.when_back)] << " tolerance " << p.tolerance << " spread " << p.spread.count;
}

std::ostream &operator<<(std::ostream &out, const Decision &d) {
    static const char *const names[] = {"take",      "confirm", "reserve",    "wait",
                                        "exhausted", "backup",  "clock_back", "ask"};
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

TEST(DecideTable, GivesTheExpectedStep) {
    for (const Case &c : cases)
        expect_decision(decide(plain, {c.now, nothing_seen, c.last, c.usable, c.written}), c.want, c.when);
}

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
    {"backup: full", two_workers, {110, 110, 443, 1200, 1244}, {ClockAction::backup, 440, 0, 0, 0, 111}},
    {"backup: one position left", two_workers, {110, 110, 442, 1200, 1244}, {ClockAction::take, 440, 444, 0, 0}},
    {"backup: already borrowing", two_workers, {110, 110, 459, 1200, 1244}, {ClockAction::backup, 440, 0, 0, 0, 115}},
    {"backup: ends a tick ahead", two_workers, {110, 110, 456, 1200, 1244}, {ClockAction::take, 440, 460, 0, 0}},
    {"backup: begins one after a start", two_workers, {110, -1, 455, 1200, 1244}, {ClockAction::take, 440, 460, 0, 0}},
    {"backup: too far ahead", two_workers, {80, 80, 1130, 1200, 1244}, {ClockAction::backup, 320, 0, 0, 0, 82}},

    // The clock is at 110, ids were made at 119, 120, 121: back by 9, 10, 11.
    {"hold: within", back_hold, {110, 119, 478, 1200, 1244}, {ClockAction::take, 440, 1200, 0, 0}},
    {"hold: at", back_hold, {110, 120, 482, 1200, 1244}, {ClockAction::take, 440, 1200, 0, 0}},
    {"hold: beyond", back_hold, {110, 121, 486, 1200, 1244}, {ClockAction::clock_back, 440, 0, 0, 11, 111}},
    {"hold: no limit", borrows, {110, 290, 1170, 1200, 1244}, {ClockAction::take, 440, 1200, 0, 0}},
    {"hold: up to max_ahead", borrows, {80, 290, 1122, 1200, 1244}, {ClockAction::take, 320, 1124, 0, 0}},
    {"hold: beyond max_ahead", borrows, {80, 290, 1170, 1200, 1244}, {ClockAction::wait, 320, 0, 0, 12}},
    {"wait: within", back_wait, {110, 119, 478, 1200, 1244}, {ClockAction::wait, 440, 0, 0, 9}},
    {"wait: at", back_wait, {110, 120, 482, 1200, 1244}, {ClockAction::wait, 440, 0, 0, 10}},
    {"wait: beyond", back_wait, {110, 121, 486, 1200, 1244}, {ClockAction::clock_back, 440, 0, 0, 11, 121}},
    {"backup: within", back_backup, {110, 119, 478, 1200, 1244}, {ClockAction::backup, 440, 0, 0, 9, 119}},
    {"backup: beyond, for its own ids count",
     back_backup,
     {110, 121, 486, 1200, 1244},
     {ClockAction::backup, 440, 0, 0, 11, 121}},
    {"error: by one tick", back_error, {110, 111, 446, 1200, 1244}, {ClockAction::clock_back, 440, 0, 0, 1, 111}},
    {"error: beyond", back_error, {110, 121, 486, 1200, 1244}, {ClockAction::clock_back, 440, 0, 0, 11, 121}},
    {"error: not back", back_error, {110, 110, 440, 1200, 1244}, {ClockAction::take, 440, 1200, 0, 0}},
    {"error: ahead by borrowing is not back",
     back_error,
     {110, 110, 900, 1200, 1244},
     {ClockAction::take, 440, 1200, 0, 0}},

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
     {ClockAction::backup, 440, 0, 0, 0, 119}},

    // After a restart no clock was seen and nothing of the lease is left. A generator's own lease ends at most
    // max_ahead above a clock that went on: the word is at 311 when that clock shows 110, and no error about the clock
    // is raised.
    {"hold: own lease", back_hold, {110, -1, 1243, 1244, 1244}, {ClockAction::wait, 440, 0, 0, 7}},
    {"wait: own lease", wait_wait, {110, -1, 1243, 1244, 1244}, {ClockAction::wait, 440, 0, 0, 201}},
    {"error: own lease", wait_error, {110, -1, 1243, 1244, 1244}, {ClockAction::wait, 440, 0, 0, 201}},
    {"error: own lease, half of it", wait_error, {210, -1, 1243, 1244, 1244}, {ClockAction::wait, 840, 0, 0, 101}},
    {"error: own lease, waited out", wait_error, {311, -1, 1243, 1244, 1244}, {ClockAction::reserve, 1244, 0, 411, 0}},
    {"error: own lease, borrowing", back_error, {117, -1, 1243, 1244, 1244}, {ClockAction::reserve, 468, 0, 318, 0}},
    {"backup: own lease", both_backup, {110, -1, 1243, 1244, 1244}, {ClockAction::backup, 440, 0, 0, 0, 117}},
    // One tick more means that the clock went back by one while the server was down. The word is at 312, 321, 322. The
    // lease is waited for, too.
    {"hold: by the mark", back_hold, {110, -1, 1247, 1248, 1248}, {ClockAction::wait, 440, 0, 0, 8}},
    {"hold: by the mark, beyond",
     back_hold,
     {110, -1, 1287, 1288, 1288},
     {ClockAction::clock_back, 440, 0, 0, 11, 128}},
    {"wait: by the mark", wait_wait, {110, -1, 1247, 1248, 1248}, {ClockAction::wait, 440, 0, 0, 202}},
    {"wait: by the mark, beyond",
     wait_wait,
     {110, -1, 1287, 1288, 1288},
     {ClockAction::clock_back, 440, 0, 0, 11, 322}},
    {"error: by the mark", wait_error, {110, -1, 1247, 1248, 1248}, {ClockAction::clock_back, 440, 0, 0, 1, 312}},
    {"backup: by the mark", both_backup, {110, -1, 1247, 1248, 1248}, {ClockAction::backup, 440, 0, 0, 1, 118}},
    {"wait and hold: the mark is waited out", waits, {110, -1, 1287, 1288, 1288}, {ClockAction::wait, 440, 0, 0, 212}},

    // A clock before the epoch, in each policy.
    {"wait: before the epoch", waits, {-5, -1, 3, 780, 784}, {ClockAction::wait, 0, 0, 0, 6}},
    {"borrow: before the epoch", borrows, {-5, -1, 3, 780, 784}, {ClockAction::take, 0, 780, 0, 0}},
    {"backup: before the epoch", two_workers, {-5, -1, 3, 780, 784}, {ClockAction::take, 0, 8, 0, 0}},
    {"hold: before the epoch, within", back_hold, {-5, 5, 23, 780, 784}, {ClockAction::take, 0, 780, 0, 0}},
    {"hold: before the epoch, beyond", back_hold, {-5, 6, 27, 780, 784}, {ClockAction::clock_back, 0, 0, 0, 11, -4}},
    {"wait: before the epoch, back", back_wait, {-5, 5, 23, 780, 784}, {ClockAction::wait, 0, 0, 0, 10}},
    {"backup: before the epoch, back", back_backup, {-5, 5, 23, 780, 784}, {ClockAction::backup, 0, 0, 0, 10, 5}},
    {"error: before the epoch, back", back_error, {-5, 5, 23, 780, 784}, {ClockAction::clock_back, 0, 0, 0, 10, 5}},

    // Ids of a tick that the clock has just reached begin at its start: 2, because 110 x 0.618034 is 67.98, and 0.98 x
    // 3 is 2.9.
    {"spread: quiet", spread_out, {110, 109, 400, 1200, 1244}, {ClockAction::take, 442, 1200, 0, 0}},
    {"spread: busy", spread_out, {110, 110, 442, 1200, 1244}, {ClockAction::take, 442, 1200, 0, 0}},
    {"spread: ahead of the clock", spread_out, {110, 110, 500, 1200, 1244}, {ClockAction::take, 442, 1200, 0, 0}},
    {"spread: before the epoch", spread_out, {-5, -1, 3, 780, 784}, {ClockAction::take, 0, 780, 0, 0}},
    {"spread: beyond the end", spread_out, {1000, 110, 500, 1200, 1244}, {ClockAction::exhausted, 4000, 0, 0, 0}},
};

TEST(PolicyTable, GivesTheExpectedStep) {
    for (const PolicyCase &c : policy_cases)
        expect_decision(decide(c.policy, c.view), c.want, c.when);
}

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
    {"clock back", back_error, {110, 111, 446, 1200, 1244}, 50, 100, {ClockAction::clock_back, 440, 0, 0, 1, 111}},
    {"backup worker first",
     two_workers,
     {119, 119, 479, 1200, 1244},
     50,
     120,
     {ClockAction::backup, 476, 0, 0, 0, 120}},
    {"begun by the primary worker",
     two_workers,
     {110, 110, 443, 1200, 1244},
     115,
     500,
     {ClockAction::take, 460, 464, 0, 0}},
    {"spread, and the start of a grant",
     spread_out,
     {110, 109, 400, 1200, 1244},
     110,
     500,
     {ClockAction::take, 442, 1200, 0, 0}},
    {"the end of time", plain, {999, -1, 3999, 4000, 4000}, 900, 1000, {ClockAction::exhausted, 3996, 0, 0, 0}},
    {"up to the end of time", plain, {990, -1, 3998, 4000, 4000}, 900, no_limit, {ClockAction::take, 3960, 4000, 0, 0}},
};

TEST(GrantTable, GivesTheExpectedStep) {
    for (const GrantCase &c : grant_cases)
        expect_decision(decide(c.policy, granted(c.view, c.from, c.until)), c.want, c.when);
}

// The clock is behind what it has shown, and after a restart behind what no lease above it can explain. At the latest
// reading it has caught up.

TEST(TicksBack, IsPositiveWhileTheClockIsBehind) {
    EXPECT_EQ(ticks_back(plain, {99, 100, 400, 800, 800}), 1);
    EXPECT_LE(ticks_back(plain, {100, 100, 400, 800, 800}), 0);
    EXPECT_LE(ticks_back(plain, {0, nothing_seen, 799, 800, 800}), 0);
    EXPECT_EQ(ticks_back(plain, {0, nothing_seen, 1199, 1200, 1200}), 99);
}

TEST(GrantBegin, IsItsFirstPosition) {
    EXPECT_EQ(granted_begin(plain, granted({110, -1, 443, 1200, 1244}, 115, 500)), 460u);
    EXPECT_EQ(granted_begin(plain, {110, -1, 443, 1200, 1244}), 0u);
}

// The backup worker asks only if its own next position lies beyond the grant.
TEST(GrantTableOfBackup, GivesTheExpectedStep) {
    const ClockState v = {119, 119, 470, 1200, 1244};
    const Decision full = {ClockAction::backup, 476, 0, 0, 0, 120};
    expect_decision(decide_backup(two_workers, granted(v, 50, 120), full), {ClockAction::take, 476, 480, 0, 0},
                    "inside");
    expect_decision(decide_backup(two_workers, granted(v, 50, 119), full), {ClockAction::ask, 476, 0, 0, 0, 119},
                    "beyond");
    expect_decision(decide_backup(two_workers, granted(v, 120, 130), full), {ClockAction::take, 480, 520, 0, 0},
                    "below");
    expect_decision(decide_backup(both_backup, granted({110, 160, 40, 1200, 1244}, 50, 115),
                                  {ClockAction::backup, 440, 0, 0, 50, 160}),
                    {ClockAction::take, 440, 460, 0, 0}, "clock back");
}

// The backup worker: `last` is its own word. It is asked because the clock went back by `back`, or because the tick is
// full. From `primary` on the primary worker can draw.
struct BackupCase {
    const char *when;
    const ClockPolicy &policy;
    ClockState view;
    int64_t back;
    int64_t primary;
    Decision want;
};

constexpr ClockPolicy no_tolerance = with(WhenFull::borrow, WhenBack::backup, 0);
constexpr ClockPolicy no_bound = with(WhenFull::borrow, WhenBack::backup);

const BackupCase backup_cases[] = {
    // It borrows, up to max_ahead above the clock: tick 310, whose end is position 1244.
    {"tick fresh", two_workers, {110, 110, 40, 1200, 1244}, 0, 111, {ClockAction::take, 440, 1200, 0, 0}},
    {"tick full", two_workers, {110, 110, 443, 1200, 1244}, 0, 111, {ClockAction::take, 440, 1200, 0, 0}},
    {"the tick held", two_workers, {110, 118, 474, 1200, 1244}, 0, 119, {ClockAction::take, 440, 1200, 0, 0}},
    {"borrowed all", two_workers, {90, 90, 1163, 1200, 1244}, 0, 120, {ClockAction::wait, 360, 0, 0, 1}},
    {"the primary comes first", two_workers, {80, 80, 1163, 1200, 1244}, 0, 81, {ClockAction::wait, 320, 0, 0, 1}},
    {"not durable", two_workers, {300, 300, 40, 1200, 1600}, 0, 301, {ClockAction::confirm, 1200, 0, 0, 0}},
    {"nothing leased", two_workers, {300, 300, 40, 1200, 1200}, 0, 301, {ClockAction::reserve, 1200, 0, 400, 0}},
    {"time used up", two_workers, {999, 999, 3999, 4000, 4000}, 0, 1000, {ClockAction::exhausted, 3996, 0, 0, 0}},
    // The clock at 110 went back by 50. The backup worker's own ids are at 120 at most; otherwise they are too far
    // ahead.
    {"back", both_backup, {110, 160, 40, 1200, 1244}, 50, 160, {ClockAction::take, 440, 484, 0, 0}},
    {"back, own ids within", both_backup, {110, 160, 482, 1200, 1244}, 50, 160, {ClockAction::take, 440, 484, 0, 0}},
    {"back, own ids beyond",
     both_backup,
     {110, 160, 483, 1200, 1244},
     50,
     160,
     {ClockAction::clock_back, 440, 0, 0, 50, 111}},
    {"back, by the mark",
     both_backup,
     {110, -1, 1247, 1248, 1248},
     1,
     118,
     {ClockAction::clock_back, 440, 0, 0, 1, 118}},
    {"back, no tolerance", no_tolerance, {110, 160, 442, 1200, 1244}, 50, 160, {ClockAction::take, 440, 444, 0, 0}},
    {"back, no limit", no_bound, {90, 160, 442, 1200, 1244}, 70, 160, {ClockAction::take, 360, 1164, 0, 0}},
    {"back, no limit but max_ahead",
     no_bound,
     {90, 160, 1163, 1200, 1244},
     70,
     160,
     {ClockAction::clock_back, 360, 0, 0, 70, 91}},
    {"back before the epoch", both_backup, {-5, 160, 3, 1200, 1244}, 165, 160, {ClockAction::take, 0, 24, 0, 0}},
};

TEST(BackupTable, GivesTheExpectedStep) {
    for (const BackupCase &c : backup_cases)
        expect_decision(decide_backup(c.policy, c.view, {ClockAction::backup, 0, 0, 0, c.back, c.primary}), c.want,
                        c.when);
}

// ---------------------------------------------------------------------------------------------------------
// Every state of small policies. The expected values are computed here a second time, from the
// definitions.

// null: sound. Not EXPECT_: these are tens of millions of checks.
using Unsound = const char *;

struct Facts {
    int64_t end;
    int64_t now;
    int64_t back; // how far the clock is below what was seen, or below the earliest clock that could have leased so far
    uint64_t next;
    int64_t granted_end;

    Facts(const ClockPolicy &p, const ClockState &v)
        : end(p.end), now(std::min(v.now, p.end)), back(0), next(0), granted_end(std::min(v.granted_until, p.end)) {
        if (v.now > 0)
            next = position(p, now) + (v.now < p.end ? p.spread.start(v.now) : 0);
        next = std::max({next, v.last + 1, position(p, std::min(v.granted_from, p.end))});
        for (const int64_t shown : {v.seen, tick_of(p, v.written) - 1 - p.max_ahead})
            if (shown >= 0)
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
        return "take: beyond the layout";
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
        return "reserve: too far ahead of the clock, or beyond the layout";
    if (d.reserve_until > tick_of(p, f.next) + p.lease)
        return "reserve: more than a lease";
    return nullptr;
}

// An ask comes exactly when the next tick lies beyond the grant and nothing else is in its way.
Unsound judge_ask(const ClockPolicy &p, ClockState v, const Facts &f, const Decision &d) {
    if (tick_of(p, f.next) < f.granted_end)
        return "ask: there is a grant";
    if (d.wanted != tick_of(p, f.next))
        return "ask: for another tick";
    v.granted_until = no_limit;
    const ClockAction then = decide(p, v).action;
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

// Whether the primary worker draws, or only the registry or the end of time keeps it from that.
bool primary_draws(const Decision &d) {
    return d.action != ClockAction::wait && d.action != ClockAction::clock_back && d.action != ClockAction::backup;
}

Unsound judge_backup(const ClockPolicy &p, const ClockState &v, const Facts &f, const Decision &d) {
    if (f.back > 0 && p.when_back == WhenBack::backup ? d.wait_ticks != f.back
                                                      : p.when_full != WhenFull::backup || d.wait_ticks != 0)
        return "backup: the policy is another, or the clock went back by another time";
    if (!primary_draws(decide(p, later(v, d.wanted - f.now))) ||
        primary_draws(decide(p, later(v, d.wanted - f.now - 1))))
        return "backup: the primary worker can draw at another time";
    return nullptr;
}

// Up to which tick the primary worker may go, apart from the clock's bound.
int64_t highest_of_primary(const ClockPolicy &p, const ClockState &v, const Facts &f) {
    const bool begun = v.seen < 0 || tick_of(p, v.last) == tick_of(p, f.next) || f.next > v.last + 1;
    if (p.when_full == WhenFull::backup && begun)
        return std::max(f.held(), tick_of(p, f.next));
    return p.when_full == WhenFull::borrow ? f.end : f.held();
}

bool goes_on_when_back(const ClockPolicy &p, const Facts &f) {
    return p.when_back == WhenBack::hold && f.back <= p.tolerance;
}

Unsound judge(const ClockPolicy &p, const ClockState &v, const Decision &d) {
    const Facts f(p, v);
    if ((d.action == ClockAction::exhausted) != (tick_of(p, f.next) >= f.end))
        return "exhausted: if and only if no tick is left";
    const bool goes_on =
        d.action == ClockAction::take || d.action == ClockAction::reserve || d.action == ClockAction::confirm;
    if (goes_on && f.back > 0 && !goes_on_when_back(p, f))
        return "goes on although the clock went back";
    switch (d.action) {
    case ClockAction::take:
        return judge_take(p, v, f, d, highest_of_primary(p, v, f));
    case ClockAction::confirm:
    case ClockAction::reserve:
        return judge_record(p, v, f, d);
    case ClockAction::backup:
        return judge_backup(p, v, f, d);
    case ClockAction::clock_back:
        return judge_clock_back(p, f, d);
    case ClockAction::ask:
        return judge_ask(p, v, f, d);
    case ClockAction::wait:
    case ClockAction::exhausted:
        break;
    }
    return nullptr;
}

// The backup worker's decision, for a state with its own word.
Unsound judge_backup_worker(const ClockPolicy &p, const ClockState &v, int64_t back, const Decision &d) {
    const Facts f(p, v);
    const int64_t highest = f.now + (back > 0 ? std::min(p.tolerance, p.max_ahead) : p.max_ahead);
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
    case ClockAction::exhausted:
        return nullptr;
    case ClockAction::ask:
        return tick_of(p, f.next) >= f.granted_end && d.wanted == tick_of(p, f.next)
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

// Executes a decision as src/pg/generator/draw.cpp does. True: the call has ended, with ids, a wait or an error.
bool ends_call(const ClockPolicy &p, State *s, const Decision &d) {
    ClockState &v = s->view;
    switch (d.action) {
    case ClockAction::confirm:
        v.usable = v.written;
        return false;
    case ClockAction::reserve:
        v.written = std::max(v.written, position(p, d.reserve_until));
        return false;
    default:
        return true;
    }
}

// The decision that ends a call.
Decision last_decision(const ClockPolicy &p, State s) {
    for (;;) {
        Decision d = decide(p, s.view);
        if (d.action == ClockAction::backup)
            d = decide_backup(p, backup_view(s), d);
        if (ends_call(p, &s, d))
            return d;
    }
}

// A wait is exactly as long as it must be, and an error about the clock names the instant at which it ends.
Unsound judge_end(const ClockPolicy &p, const State &s, const Decision &d) {
    if (d.action != ClockAction::wait && d.action != ClockAction::clock_back)
        return nullptr;
    const int64_t by = d.action == ClockAction::wait ? d.wait_ticks : d.wanted - Facts(p, s.view).now;
    if (by <= 0)
        return "wait: for nothing";
    const auto draws_after = [&](int64_t ticks) {
        return primary_draws(last_decision(p, {later(s.view, ticks), s.backup_last}));
    };
    if (!draws_after(by))
        return "wait: not long enough";
    // Other policies than this one do not ask the backup worker while the clock is back. It may draw sooner than they say.
    const bool is_bound =
        Facts(p, s.view).back > 0 && p.when_full == WhenFull::backup && p.when_back != WhenBack::backup;
    return !is_bound && draws_after(by - 1) ? "wait: too long" : nullptr;
}

// A call with a clock that stands still. It reaches an end, and each decision on the way is sound.
Unsound judge_call(const ClockPolicy &p, State s) {
    for (int steps = 0; steps < 4; steps++) {
        Decision d = decide(p, s.view);
        if (const Unsound unsound = judge(p, s.view, d))
            return unsound;
        if (d.action == ClockAction::backup) {
            const int64_t back = d.wait_ticks;
            d = decide_backup(p, backup_view(s), d);
            if (const Unsound unsound = judge_backup_worker(p, backup_view(s), back, d))
                return unsound;
        }
        if (ends_call(p, &s, d))
            return judge_end(p, s, d);
    }
    return "a call that does not end";
}

class EveryState {
  public:
    explicit EveryState(const ClockPolicy &policy, int64_t from = 0, int64_t until = no_limit, int64_t stride = 1)
        : p_(policy), from_(from), until_(until), stride_(stride) {}

    void judge_all() {
        for (int64_t written = 0; written <= p_.end; written += stride_)
            for (int64_t usable = 0; usable <= written; usable += stride_)
                for (uint64_t last = 0; last < position(p_, p_.end); last += static_cast<uint64_t>(stride_))
                    judge_clocks(last, position(p_, usable), position(p_, written));
    }
    uint64_t judged() const { return judged_; }

  private:
    void judge_clocks(uint64_t last, uint64_t usable, uint64_t written) {
        for (int64_t now = -p_.max_ahead - 2; now <= p_.end + 1; now++)
            for (int64_t seen = nothing_seen; seen < p_.end; seen += seen < 0 ? stride_ + 1 : stride_ * stride_)
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
    const int64_t from_; // the grant
    const int64_t until_;
    const int64_t stride_;
    uint64_t judged_ = 0;
};

uint64_t judge_every_state(const ClockPolicy &policy, int64_t from = 0, int64_t until = no_limit, int64_t stride = 1) {
    EveryState all(policy, from, until, stride);
    all.judge_all();
    return all.judged();
}

constexpr WhenFull all_full[] = {WhenFull::wait, WhenFull::borrow, WhenFull::backup};
constexpr WhenBack all_back[] = {WhenBack::hold, WhenBack::wait, WhenBack::backup, WhenBack::error};

TEST(EveryPolicy, EveryStateIsSoundAndEveryCallEnds) {
    uint64_t judged = 0;
    for (WhenFull full : all_full)
        for (WhenBack back : all_back)
            for (int64_t tolerance : {INT64_C(0), INT64_C(1), no_limit})
                for (const Spread spread : {Spread{0}, Spread{2}}) {
                    judged += judge_every_state({1, 5, 1, 2, full, back, tolerance, spread});
                    judged += judge_every_state({0, 6, 2, 2, full, back, tolerance, {0}});
                }
    EXPECT_GT(judged, 1000000u);
}

// Leases whose records have a least length, of one tick and of more. Not every state, but every clock.
TEST(EveryPolicy, LongerLeasesAreSoundAndEveryCallEnds) {
    for (int64_t lease : {4, 33})
        judge_every_state({0, 64, lease, lease + 5, WhenFull::borrow, WhenBack::hold, no_limit, {0}}, 0, no_limit, 4);
}

// Every grant of the small layouts, also one that begins where the layout ends, and none.
TEST(EveryPolicy, EveryStateInsideEveryGrantIsSoundAndEveryCallEnds) {
    uint64_t judged = 0;
    for (WhenFull full : all_full)
        for (WhenBack back : all_back)
            for (int64_t tolerance : {INT64_C(1), no_limit})
                for (int64_t from = 0; from <= 4; from++)
                    for (int64_t until = from; until <= 4; until++)
                        judged += judge_every_state({0, 4, 2, 2, full, back, tolerance, {0}}, from, until);
    EXPECT_GT(judged, 1000000u);
}

} // namespace
