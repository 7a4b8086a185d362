// The policy: examples with their numbers, and the decision in every state of small policies, computed a second time.
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
// Examples. A tick has 4 positions: tick t begins at 4t. A lease of 100 ticks is prefetched after 25 of them, and a
// record that adds fewer than 7 is not worth writing. The tolerance of policies that have one is 10 ticks.

constexpr ClockPolicy plain = {2, 1000, 100, 200};

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
constexpr ClockPolicy both_backup = with(WhenFull::backup, WhenBack::backup, 10);

// Each tick's ids begin at its second or third position (0 .. 2 of 4).
constexpr ClockPolicy spread_out = {2, 1000, 100, 200, WhenFull::borrow, WhenBack::hold, no_limit, {3}};

using Do = ClockAction;

struct Case {
    const char *when;
    const ClockPolicy &policy;
    ClockState view; // now, seen, last, usable, written; and the grant
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
    {"lease fresh, clock ahead of the word", plain, {110, -1, 403, 800, 800}, {Do::take, 440, 500, 0, 0}},
    {"prefetch due", plain, {124, -1, 499, 800, 800}, {Do::take, 496, 800, 300, 0}},
    {"next lease already written", plain, {124, -1, 499, 800, 1200}, {Do::take, 496, 800, 0, 0}},
    // The prefetched lease may not end above now + max_ahead + 1 = 204.
    {"prefetch of 4 ticks is not worth a record", plain, {3, -1, 600, 800, 800}, {Do::take, 12, 800, 0, 0}},
    // The usable positions end above the allowance: now + max_ahead + 1 = 151, which begins at 604.
    {"one position of the allowance left", plain, {-50, -1, 602, 800, 1200}, {Do::take, 0, 604, 0, 0}},
    // Everything leased is used up. The wait lasts until a record of 7 ticks fits, here up to 307.
    {"too little room for a record", plain, {105, -1, 1199, 1200, 1200}, {Do::wait, 420, 0, 0, 1}},
    {"just enough room for a record", plain, {106, -1, 1199, 1200, 1200}, {Do::reserve, 424, 0, 307, 0}},
    {"written but not usable", plain, {190, -1, 799, 800, 1200}, {Do::confirm, 760, 0, 0, 0}},
    // Tick 999 is the last one. A record that ends with it is worth writing, however short.
    {"lease of the last tick", plain, {999, -1, 3995, 3996, 3996}, {Do::reserve, 3996, 0, 1000, 0}},
    {"time used up", plain, {990, -1, 3999, 4000, 4000}, {Do::exhausted, 3960, 0, 0, 0}},
    {"clock beyond the end", plain, {INT64_C(1) << 50, -1, 400, 800, 800}, {Do::exhausted, 4000, 0, 0, 0}},

    // Usually the ticks below 300 are durable (position 1200), and the next record is written up to 311, as far as a
    // clock at 110 allows (1244). Ticks 110 and 120 begin at 440 and 480. The tick is full: 443 is its last position.
    {"wait: full", waits, {110, 110, 443, 1200, 1244}, {Do::wait, 440, 0, 0, 1}},
    {"borrow: max_ahead is the end of it", borrows, {90, 90, 443, 1200, 1244}, {Do::take, 360, 1164, 0, 0}},
    {"backup: already borrowing", two_workers, {110, 110, 459, 1200, 1244}, {Do::backup, 440, 0, 0, 0, 115}},
    {"backup: ends a tick ahead", two_workers, {110, 110, 456, 1200, 1244}, {Do::take, 440, 460, 0, 0}},

    // The clock is at 110, ids were made at 119, 120, 121: back by 9, 10, 11.
    {"hold: at", back_hold, {110, 120, 482, 1200, 1244}, {Do::take, 440, 1200, 0, 0}},
    {"hold: beyond", back_hold, {110, 121, 486, 1200, 1244}, {Do::clock_back, 440, 0, 0, 11, 111}},
    {"hold: beyond max_ahead", borrows, {80, 290, 1170, 1200, 1244}, {Do::wait, 320, 0, 0, 12}},
    {"wait: at", back_wait, {110, 120, 482, 1200, 1244}, {Do::wait, 440, 0, 0, 10}},
    {"wait: beyond", back_wait, {110, 121, 486, 1200, 1244}, {Do::clock_back, 440, 0, 0, 11, 121}},
    {"backup: beyond, own ids count", back_backup, {110, 121, 486, 1200, 1244}, {Do::backup, 440, 0, 0, 11, 121}},
    {"error: by one tick", back_error, {110, 111, 446, 1200, 1244}, {Do::clock_back, 440, 0, 0, 1, 111}},
    {"error: ahead by borrowing is not back", back_error, {110, 110, 900, 1200, 1244}, {Do::take, 440, 1200, 0, 0}},

    // A held tick is full. The clock must pass it, and nothing changes while the clock approaches it.
    {"backup and hold: a full tick", two_workers, {110, 118, 475, 1200, 1244}, {Do::backup, 440, 0, 0, 0, 119}},

    // After a restart no clock was seen and nothing of the lease is left. A generator's own lease ends at most
    // max_ahead above a clock that went on: the word is at 311 when that clock shows 110, and no error about the clock
    // is raised.
    {"error: own lease", wait_error, {110, -1, 1243, 1244, 1244}, {Do::wait, 440, 0, 0, 201}},
    {"error: own lease, waited out", wait_error, {311, -1, 1243, 1244, 1244}, {Do::reserve, 1244, 0, 411, 0}},
    // One tick more means that the clock went back by one while the server was down. The word is at 312, 321, 322. The
    // lease is waited for, too.
    {"hold: by the mark, beyond", back_hold, {110, -1, 1287, 1288, 1288}, {Do::clock_back, 440, 0, 0, 11, 128}},
    {"error: by the mark", wait_error, {110, -1, 1247, 1248, 1248}, {Do::clock_back, 440, 0, 0, 1, 312}},
    {"backup: by the mark", both_backup, {110, -1, 1247, 1248, 1248}, {Do::backup, 440, 0, 0, 1, 118}},

    // A clock before the epoch, in each policy.
    {"wait: before the epoch", waits, {-5, -1, 3, 780, 784}, {Do::wait, 0, 0, 0, 6}},

    // Ids of a tick that the clock has just reached begin at its start: 2, because 110 x 0.618034 is 67.98, and 0.98 x
    // 3 is 2.9.
    {"spread: quiet", spread_out, {110, 109, 400, 1200, 1244}, {Do::take, 442, 1200, 0, 0}},
    {"spread: ahead of the clock", spread_out, {110, 110, 500, 1200, 1244}, {Do::take, 442, 1200, 0, 0}},

    // Inside a grant of the ticks from .. until - 1. Otherwise as above: ticks below 300 are usable (position 1200),
    // and the next lease is written up to 311.
    {"its last tick", plain, {119, -1, 476, 1200, 1244, 50, 120}, {Do::take, 476, 480, 0, 0}},
    {"used up", plain, {119, -1, 479, 1200, 1244, 50, 120}, {Do::ask, 476, 0, 0, 0, 120}},
    {"none yet", plain, {110, -1, 443, 1200, 1244, 0, 0}, {Do::ask, 440, 0, 0, 0, 111}},
    // The positions below tick 115 stay what they are: leased, and never drawn.
    {"begins above the clock", plain, {110, -1, 443, 1200, 1244, 115, 500}, {Do::take, 460, 1200, 0, 0}},
    {"begins above the lease", plain, {290, -1, 443, 1200, 1244, 311, 500}, {Do::reserve, 1244, 0, 411, 0}},
    // A lease ends with the grant, however short it then is. A prefetch so short is not worth a record.
    {"lease cut short", plain, {310, -1, 1240, 1244, 1244, 50, 330}, {Do::take, 1240, 1244, 330, 0}},
    // The clock comes first: nothing is asked for that could not be used.
    {"clock back", back_error, {110, 111, 446, 1200, 1244, 50, 100}, {Do::clock_back, 440, 0, 0, 1, 111}},
    {"the end of time", plain, {999, -1, 3999, 4000, 4000, 900, 1000}, {Do::exhausted, 3996, 0, 0, 0}},
};

TEST(DecideTable, GivesTheExpectedStep) {
    for (const Case &c : cases)
        expect_decision(decide(c.policy, c.view), c.want, c.when);
}

// The widest layouts: the end stands at position 2^63.
TEST(Decide, TheWidestTimeField) {
    const ClockPolicy p = {16, INT64_C(1) << 47, 1000, 2000};
    const uint64_t end = UINT64_C(1) << 63;
    const Decision take = decide(p, {p.end - 1, nothing_seen, end - 2, end, end});
    EXPECT_EQ(take.action, Do::take);
    EXPECT_EQ(take.limit, end);
    EXPECT_EQ(decide(p, {p.end - 1, nothing_seen, end - 1, end, end}).action, Do::exhausted);
}

// The clock is behind what it has shown, and after a restart behind what no lease above it can explain. At the latest
// reading it has caught up.

TEST(TicksBack, IsPositiveWhileTheClockIsBehind) {
    EXPECT_EQ(ticks_back(plain, {99, 100, 400, 800, 800}), 1);
    EXPECT_LE(ticks_back(plain, {100, 100, 400, 800, 800}), 0);
    EXPECT_LE(ticks_back(plain, {0, nothing_seen, 799, 800, 800}), 0);
    EXPECT_EQ(ticks_back(plain, {0, nothing_seen, 1199, 1200, 1200}), 99);
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
    {"tick full", two_workers, {110, 110, 443, 1200, 1244}, 0, 111, {Do::take, 440, 1200, 0, 0}},
    {"time used up", two_workers, {999, 999, 3999, 4000, 4000}, 0, 1000, {Do::exhausted, 3996, 0, 0, 0}},
    {"the primary comes first", two_workers, {80, 80, 1163, 1200, 1244}, 0, 81, {Do::wait, 320, 0, 0, 1}},
    // The clock at 110 went back by 50. The backup worker's own ids are at 120 at most; otherwise they are too far
    // ahead.
    {"back, own ids within", both_backup, {110, 160, 482, 1200, 1244}, 50, 160, {Do::take, 440, 484, 0, 0}},
    {"back, own ids beyond", both_backup, {110, 160, 483, 1200, 1244}, 50, 160, {Do::clock_back, 440, 0, 0, 50, 111}},
    {"back, by the mark", both_backup, {110, -1, 1247, 1248, 1248}, 1, 118, {Do::clock_back, 440, 0, 0, 1, 118}},
    {"back, no limit but max_ahead",
     no_bound,
     {90, 160, 1163, 1200, 1244},
     70,
     160,
     {Do::clock_back, 360, 0, 0, 70, 91}},
};

TEST(BackupTable, GivesTheExpectedStep) {
    for (const BackupCase &c : backup_cases)
        expect_decision(decide_backup(c.policy, c.view, {Do::backup, 0, 0, 0, c.back, c.primary}), c.want, c.when);
}

// ---------------------------------------------------------------------------------------------------------
// Every state of small policies. The expected values are computed here a second time, from the
// definitions.

ClockState granted(ClockState view, int64_t from, int64_t until) {
    view.granted_from = from;
    view.granted_until = until;
    return view;
}

// null: sound. Not EXPECT_: these are tens of millions of checks.
using Unsound = const char *;

struct Facts {
    int64_t end;
    int64_t now;
    int64_t back; // how far the clock is below what was seen, or below the earliest clock that could have leased so far
    uint64_t floor;
    uint64_t next;
    int64_t granted_end;

    Facts(const ClockPolicy &p, const ClockState &v)
        : end(p.end), now(std::min(v.now, p.end)), back(0), floor(0), granted_end(std::min(v.granted_until, p.end)) {
        if (v.now > 0) // from the last tick nobody can borrow, so it is used from its first position on
            floor = position(p, now) + (v.now < p.end - 1 ? p.spread.start(v.now) : 0);
        floor = std::max(floor, position(p, std::min(v.granted_from, p.end)));
        next = std::max(floor, v.last + 1);
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

// Whether the clock allows the next tick, up to `highest`, and room for a record where one is needed: of a sixteenth of
// a lease, or of what is left of the grant.
bool may_draw(const ClockPolicy &p, const ClockState &v, const Facts &f, int64_t highest) {
    const int64_t tick = tick_of(p, f.next);
    const int64_t least_end = std::min(tick + (p.lease + 15) / 16, f.granted_end);
    return tick <= std::min(highest, f.now + p.max_ahead) &&
           (f.next < v.written || least_end <= f.now + p.max_ahead + 1);
}

bool goes_on(const Decision &d) {
    return d.action == ClockAction::take || d.action == ClockAction::reserve || d.action == ClockAction::confirm ||
           d.action == ClockAction::ask;
}

// It takes all that is durable, allowed, and before the place where the next lease is to be written. That is written
// when three quarters of the last one are left, unless it would be shorter than a sixteenth.
Unsound judge_take(const ClockPolicy &p, const ClockState &v, const Facts &f, const Decision &d, int64_t highest) {
    uint64_t limit =
        std::min(v.usable, position(p, std::min({highest + 1, f.now + p.max_ahead + 1, f.granted_end, f.end})));
    int64_t reserve_until = 0;
    const int64_t leased = tick_of(p, v.written);
    const int64_t full = std::min(f.lease_end(p), leased + p.lease);
    const int64_t prefetch = tick_of(p, v.usable) - (p.lease - p.lease / 4);
    if (v.usable == v.written && tick_of(p, f.next) < prefetch)
        limit = std::min(limit, position(p, prefetch));
    else if (v.usable == v.written && 16 * (full - leased) >= p.lease)
        reserve_until = full;
    if (d.limit <= f.next)
        return "take: nothing below the limit";
    if (d.limit != limit)
        return "take: another limit";
    return d.reserve_until == reserve_until ? nullptr : "take: another lease for the record";
}

Unsound judge_record(const ClockPolicy &p, const ClockState &v, const Facts &f, const Decision &d) {
    if (d.action == ClockAction::confirm)
        return v.usable <= f.next && f.next < v.written ? nullptr : "confirm: not what is missing";
    if (f.next < v.written)
        return "reserve: there is a record";
    if (d.reserve_until <= tick_of(p, f.next))
        return "reserve: does not help the caller";
    if (d.reserve_until != std::min(f.lease_end(p), tick_of(p, f.next) + p.lease))
        return "reserve: not a lease, as far as clock, layout and grant allow";
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
    if (d.floor != f.floor)
        return "another floor";
    if ((d.action == ClockAction::exhausted) != (tick_of(p, f.next) >= f.end))
        return "exhausted: if and only if no tick is left";
    const int64_t highest = highest_of_primary(p, v, f);
    const bool answers_back = f.back > 0 && !goes_on_when_back(p, f);
    if (goes_on(d) && answers_back)
        return "goes on although the clock went back";
    if (d.action != ClockAction::exhausted && !answers_back && goes_on(d) != may_draw(p, v, f, highest))
        return "goes on if and only if clock and room allow it";
    switch (d.action) {
    case ClockAction::take:
        return judge_take(p, v, f, d, highest);
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
    if (d.floor != f.floor)
        return "another floor";
    if ((d.action == ClockAction::exhausted) != (tick_of(p, f.next) >= f.end))
        return "exhausted: if and only if no tick is left";
    if (d.action != ClockAction::exhausted && goes_on(d) != may_draw(p, v, f, highest))
        return "goes on if and only if clock and room allow it";
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
    // Other policies than this one do not ask the backup worker while the clock is back. It may draw sooner than they
    // say.
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
            for (int64_t seen = nothing_seen; seen < p_.end; seen += seen < 0 ? 1 : stride_ * stride_)
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
                for (const Spread spread : {Spread{0}, Spread{2, UINT64_C(1) << 63}}) {
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
