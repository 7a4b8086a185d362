// Random histories of generators of every kind, alone and in a fleet: ids, not positions, with the field order and the
// backup worker that a layout has. Clocks jump and differ, servers crash and lose what was not durable, and calls
// overlap: a call may execute its decision after other calls have gone ahead, or after its grant was followed by another
// one. In a fleet several lines draw ids of one layout inside grants of few nodes, which come late, end while the registry
// is away, and change node. The registry is a table with the rules of grant.hpp. Some generators are in cached mode:
// their ids may be behind the clock, and a ring limits what a call takes, with a bound that is far off now and then.
//
// The caller's loop is that of src/pg/generator/draw.cpp.
#include "clock_policy.hpp"
#include "node.hpp"
#include "layout.hpp"

#include "common.hpp"

#include <algorithm>
#include <iterator>
#include <memory>
#include <random>
#include <string>
#include <unordered_set>
#include <vector>

using namespace uidgen::core;

namespace {

struct Counts {
    uint64_t ids = 0;
    uint64_t backups = 0;
    uint64_t records = 0;
    uint64_t waits = 0;
    uint64_t clock_errors = 0;
    uint64_t crashes = 0;
    uint64_t late = 0; // executed after other calls had gone ahead
    uint64_t exhausted = 0;
    uint64_t grants = 0;
    uint64_t other_nodes = 0;   // grants that do not continue the last one
    uint64_t gaps = 0;          // leases that begin above the last one
    uint64_t refused = 0;       // draws that ended without a grant
    uint64_t late_in_grant = 0; // draws with a grant that was followed by another one
    uint64_t behind = 0;        // ids with a tick before the clock's
    uint64_t empty = 0;         // draws that found the ring empty
};

// What the generators of a history share.
struct World {
    Layout layout;
    ClockPolicy policy;
    bool registry;
    GrantView alone; // the node of a generator without a registry
    std::mt19937_64 random = {};
    std::vector<int64_t> until = {}; // of each node
    std::vector<uint64_t> line = {}; // its last holder
    uint64_t lines = 0;
    int64_t now = 5; // the registry's clock
    std::unordered_set<int64_t> ids = {};
    Counts counts = {};
    std::string unsound = {}; // the first promise that was broken

    void expect(bool holds, const char *promise) {
        if (!holds && unsound.empty())
            unsound = promise;
    }
    int64_t up_to(int64_t most) { return static_cast<int64_t>(random() % static_cast<uint64_t>(most + 1)); }
};

constexpr int64_t bound = 4; // of the clocks of a fleet

class Generator {
  public:
    explicit Generator(World *world) : w_(*world), p_(world->policy), line_(++world->lines) { restart(); }

    // One call: until it has ids, or an error.
    void draw(uint64_t want) {
        for (int steps = 0; w_.unsound.empty() && !perform(look(want)); steps++)
            w_.expect(steps < 12, "a call ends");
    }

    // A call that pauses, after its decision or before it reads the clock.
    void begin_call(uint64_t want) {
        under_way_.push_back(look(want));
        under_way_.back().decided = w_.random() % 2 == 0;
    }
    void go_on_with_call() {
        if (under_way_.empty())
            return;
        w_.counts.late++;
        const size_t which = w_.random() % under_way_.size();
        Call call = under_way_[which];
        under_way_.erase(under_way_.begin() + static_cast<std::ptrdiff_t>(which));
        if (!call.decided) {
            call.view.now = now_;
            call.shown = shown_;
            call.decision = decide(p_, call.view);
        }
        late_ = true;
        perform(call);
        late_ = false;
    }

    void move_clock(int64_t by) {
        now_ += by;
        shown_ = std::max(shown_, now_);
    }

    // The registrar asks ahead of use.
    void renew() {
        if (w_.registry)
            (void)get_grant(std::max(now_, INT64_C(1)));
    }

    // Every confirmed record survives. Of the later ones, those up to some point survive. Calls end. The grant is in a
    // file, which a newcomer does not have.
    void crash(bool as_newcomer) {
        w_.counts.crashes++;
        marks_.resize(durable_ + w_.random() % (marks_.size() - durable_ + 1));
        under_way_.clear();
        if (as_newcomer && w_.registry) {
            grant_ = no_grant;
            line_ = ++w_.lines;
        }
        restart();
    }

    // Another session moves the counter, and the next caller finds that (adopt_page()). ALTER of a policy does the
    // same.
    void discard(int64_t by) {
        const int64_t mark = std::min(marks_.back() + by, p_.end);
        write(position(mark), mark);
        word_.discard_below(position(mark));
        backup_.discard_below(position(mark));
        discarded_below_ = position(mark);
        // As if the clock had been where it could lease so much.
        shown_ = std::max(shown_, mark == p_.end ? p_.end : mark - 1 - p_.max_ahead);
    }

    // A session flushes for another reason.
    void confirm() {
        const WrittenRange written = word_.written_range();
        durable_ = std::max(durable_, static_cast<size_t>(written.lsn));
        word_.confirm(Durability::local, written.until);
    }

    int64_t now() const { return now_; }

  private:
    struct Call {
        ClockState view;
        GrantView grant;
        Decision decision;
        uint64_t want;
        int64_t shown; // the latest that the clock had shown before it was read
        bool decided;
    };

    uint64_t position(int64_t tick) const { return static_cast<uint64_t>(tick) << p_.sequence_bits; }
    int64_t tick_of(uint64_t pos) const { return static_cast<int64_t>(pos >> p_.sequence_bits); }

    Call look(uint64_t want) {
        ClockState view{};
        view.now = now_;
        view.seen = seen_;
        view.last = word_.last();
        view.usable = word_.usable(Durability::local);
        view.written = word_.written_range().until;
        view.granted_from = grant_.from;
        view.granted_until = grant_.until;
        return {view, grant_, decide(p_, view), want, shown_, true};
    }

    bool perform(const Call &call) { return perform(call, call.decision); }

    // True: the call has ended.
    bool perform(const Call &call, const Decision &d) {
        switch (d.action) {
        case ClockAction::take:
            return take(call, d);
        case ClockAction::confirm:
            confirm();
            return false;
        case ClockAction::reserve:
            reserve(call, d.reserve_until);
            return false;
        case ClockAction::wait:
            return wait(d.wait_ticks);
        case ClockAction::backup:
            return take_backup(call, d);
        case ClockAction::ask:
            return ask(d.wanted);
        case ClockAction::clock_back:
            return report_clock_back(call, d);
        case ClockAction::exhausted:
            w_.counts.exhausted++;
            return true;
        }
        return true;
    }

    uint64_t limit_to_ring(const Call &call, const Decision &d) {
        const uint64_t next = std::max(call.view.last + 1, d.floor);
        if (w_.policy.behind == 0)
            return d.limit;
        w_.counts.empty += made_until_ <= next ? 1 : 0;
        if (made_until_ <= next || w_.random() % 16 == 0)
            made_until_ = next + 1 + w_.random() % (w_.random() % 8 == 0 ? UINT64_C(1) << 40 : 64);
        return std::min(d.limit, made_until_);
    }

    bool take(const Call &call, const Decision &d) {
        if (d.reserve_until > 0)
            reserve(call, d.reserve_until);
        const Run run = word_.take(d.floor, limit_to_ring(call, d), call.want);
        if (run.count == 0)
            return false;
        seen_ = std::max(seen_, call.view.now);
        w_.expect(run.first >= d.floor, "nothing below the floor");
        hand_out(call, run, false);
        return true;
    }

    bool take_backup(const Call &call, const Decision &asked) {
        ClockState view = call.view;
        view.last = backup_.last();
        const Decision d = decide_backup(p_, view, asked);
        if (d.action == ClockAction::take) {
            const Run run = backup_.take(d.floor, d.limit, call.want);
            hand_out(call, run, true);
            return run.count > 0;
        }
        return perform(call, d);
    }

    // A call that decided long ago may wait for a clock that has gone on since.
    bool wait(int64_t ticks) {
        w_.counts.waits++;
        w_.expect(ticks > 0, "nobody waits for nothing");
        if (!late_)
            move_clock(ticks);
        return late_;
    }

    // A clock that never went back is never reported to have gone back, whatever was leased, lost and restarted. A grant
    // may begin above what the clock explains.
    bool report_clock_back(const Call &call, const Decision &d) {
        w_.counts.clock_errors++;
        w_.expect(w_.registry || call.shown > call.view.now, "the clock did not go back");
        w_.expect(w_.registry || d.wait_ticks <= call.shown - call.view.now, "the clock went back by less");
        return true;
    }

    // True: the registry is away, or refuses.
    bool ask(int64_t wanted) {
        w_.expect(w_.registry, "only a member asks");
        if (w_.random() % 4 != 0 && get_grant(wanted))
            return false;
        w_.counts.refused++;
        return true;
    }

    // Another call may have written this lease, or a longer one.
    void reserve(const Call &call, int64_t until) {
        const uint64_t written = word_.written_range().until;
        if (written >= position(until))
            return;
        const uint64_t granted = granted_begin(p_, call.view);
        w_.counts.gaps += granted > written ? 1 : 0;
        w_.expect(until <= call.grant.until, "a lease ends inside the grant");
        w_.expect(tick_of(std::max(granted, written)) >= call.grant.from, "a lease begins inside the grant");
        w_.expect(until <= call.view.now + p_.max_ahead + 1, "P4: the lease");
        if (w_.registry)
            backup_.discard_below(granted);
        write(std::max(granted, written), until);
    }

    void write(uint64_t from, int64_t until) {
        w_.counts.records++;
        marks_.push_back(until);
        word_.publish(from, position(until), marks_.size());
    }

    void hand_out(const Call &call, const Run &run, bool backup) {
        w_.expect(run.count <= call.want, "no more than was wanted");
        w_.counts.late_in_grant += run.count > 0 && !same_view(call.grant, grant_) ? 1 : 0;
        for (uint64_t i = 0; i < run.count && w_.unsound.empty(); i++)
            hand_out(call, run.first + i, backup);
    }

    void hand_out(const Call &call, uint64_t pos, bool backup) {
        const int64_t node = call.grant.node;
        const NodeFields fields = fields_of_node(w_.layout, node);
        const int64_t id = encode(encoder_of(w_.layout, node, backup), pos);
        const Parts d = decode(w_.layout, id);
        w_.expect(is_id_of(w_.layout, id) && d.tick == tick_of(pos) && d.datacenter == fields.datacenter &&
                      d.worker == (fields.worker | (backup ? backup_bit(w_.layout) : 0)),
                  "P3");
        w_.expect(w_.ids.insert(id).second, "P1: no id twice");
        w_.expect(late_ || pos >= discarded_below_, "nothing that was given up before the call");
        w_.expect(tick_of(pos) <= call.view.now + p_.max_ahead, "P4");
        w_.expect(tick_of(pos) >= std::min(call.view.now - p_.behind, p_.end), "P4: not too old");
        w_.counts.behind += tick_of(pos) < call.view.now ? 1 : 0;
        w_.expect(tick_of(pos) < marks_[durable_ - 1], "an id is durable before it is handed out");
        w_.expect(p_.when_full != WhenFull::wait || backup || w_.registry || tick_of(pos) <= shown_,
                  "when_full wait: no tick that the clock never showed");
        w_.expect(backup || pos > last_, "P2");
        last_ = backup ? last_ : pos;
        ++(backup ? w_.counts.backups : w_.counts.ids);
    }

    // The registry: a grant that reaches above `lowest`. Sometimes a fence takes the node from the line.
    bool get_grant(int64_t lowest) {
        const int64_t from = std::min(lowest, w_.now + bound);
        const int64_t until = std::min(from + 2 + w_.up_to(3 * p_.max_ahead - 1), p_.end);
        const auto own = static_cast<size_t>(grant_.node);
        if (grant_.granted && w_.line[own] == line_ && w_.random() % 4 != 0) {
            w_.until[own] = std::max(w_.until[own], until);
            grant_.until = w_.until[own];
            w_.counts.grants++;
            return grant_.until > lowest;
        }
        for (size_t tries = 0; until > lowest && tries < w_.until.size(); tries++) {
            const size_t node = w_.random() % w_.until.size();
            if (w_.until[node] > from)
                continue;
            w_.until[node] = until;
            w_.line[node] = line_;
            grant_ = {true, static_cast<int64_t>(node), from, until};
            w_.counts.grants++;
            w_.counts.other_nodes++;
            return true;
        }
        return false;
    }

    void restart() {
        durable_ = marks_.size();
        word_.reset(position(marks_.back()));
        backup_.reset(position(marks_.back()));
        seen_ = nothing_seen;
        discarded_below_ = 0;
    }

    World &w_;
    const ClockPolicy &p_;
    uint64_t line_;
    GrantView grant_ = w_.registry ? no_grant : w_.alone;
    PositionAllocator<> word_;
    PositionAllocator<> backup_;
    int64_t seen_ = nothing_seen;
    std::vector<int64_t> marks_{1}; // the first tick that is not leased, after each record
    size_t durable_ = 1;            // how many of the records are
    int64_t now_ = 5;
    int64_t shown_ = 5; // the latest that the clock ever showed
    uint64_t last_ = 0; // the primary worker's last position
    uint64_t discarded_below_ = 0;
    uint64_t made_until_ = 0;
    bool late_ = false;
    std::vector<Call> under_way_;
};

// Few numbers in a tick, few ticks in a lease and until the end: histories reach the end of everything. In a fleet few
// nodes and short grants, so that nodes come round.
World random_world(uint64_t seed, bool registry, WhenFull full, WhenBack back) {
    World w = {};
    w.registry = registry;
    w.random.seed(seed);
    const bool two_workers = full == WhenFull::backup || back == WhenBack::backup;
    const auto up_to = [&w](int64_t most) { return static_cast<int32_t>(w.up_to(most)); };
    Layout &l = w.layout;
    l = {0, 1, !registry && w.random() % 4 == 0 ? 6 : 12, up_to(1), 1 + up_to(1) + (two_workers ? 1 : 0), up_to(4)};
    l.sequence_first = w.random() % 2 == 0;
    l.backup = two_workers;
    static const int64_t leases[] = {1, 2, 5, 16, 17, 33};
    const int64_t lease = leases[w.random() % std::size(leases)];
    const int64_t ahead = lease + w.up_to(2 * lease);
    const int64_t tolerances[] = {0, 1, lease, 3 * ahead, no_limit};
    w.policy = {l.sequence_bits, largest(l.time_bits) + 1, lease, ahead, full, back, tolerances[w.random() % 5], {0}};
    const bool may_be_cached = full == WhenFull::borrow && back == WhenBack::hold;
    if (may_be_cached && w.random() % 2 == 0) {
        w.policy.tolerance = no_limit;
        w.policy.behind = 1 + w.up_to(2 * ahead);
    } else if (w.random() % 2 == 0) {
        w.policy.spread = spread_for(l.sequence_bits, w.policy.when_full);
    }
    w.until.resize(static_cast<size_t>(largest(drawn_node_bits(l)) + 1));
    w.line.resize(w.until.size());
    w.alone = {true, w.up_to(largest(drawn_node_bits(l))), 0, no_limit};
    return w;
}

// Forward more often than back, sometimes by far more than max_ahead.
int64_t random_jump(World *w) {
    const int64_t reach = w->random() % 10 == 0 ? 5 * w->policy.max_ahead : w->random() % 2 == 0 ? w->policy.lease : 1;
    return w->up_to(2 * reach) - reach * 3 / 4;
}

void random_event(World *w, Generator *generator) {
    const uint64_t dice = w->random() % 100;
    const auto many = static_cast<uint64_t>(1 + w->up_to((INT64_C(3) << w->policy.sequence_bits) - 1));
    const uint64_t want = w->random() % 4 == 0 ? many : 1 + w->random() % 2;
    if (dice < 44)
        generator->draw(want);
    else if (dice < 54)
        generator->begin_call(want);
    else if (dice < 65)
        generator->go_on_with_call();
    else if (dice < 83)
        generator->move_clock(random_jump(w));
    else if (dice < 90)
        generator->renew();
    else if (dice < 94)
        generator->crash(w->random() % 3 == 0);
    else if (dice < 99 || w->registry)
        generator->confirm();
    else
        generator->discard(1 + w->up_to(w->policy.lease - 1));
}

void run_history(World *w) {
    std::vector<std::unique_ptr<Generator>> generators;
    for (int i = 0; i < (w->registry ? 3 : 1); i++)
        generators.push_back(std::make_unique<Generator>(w));
    for (int i = 0; i < (w->registry ? 600 : 300) && w->unsound.empty(); i++) {
        Generator *generator = generators[w->random() % generators.size()].get();
        random_event(w, generator);
        w->now = std::max(w->now, generator->now() - w->up_to(7));
    }
}

struct Histories {
    Counts counts;
    std::string unsound;

    Histories(int how_many, bool registry, WhenFull full, WhenBack back) : counts() {
        for (uint64_t seed = 20260110; seed < 20260110 + static_cast<uint64_t>(how_many) && unsound.empty(); seed++) {
            World w = random_world(seed, registry, full, back);
            w.counts = counts;
            run_history(&w);
            counts = w.counts;
            unsound = w.unsound.empty() ? "" : w.unsound + ", seed " + std::to_string(seed);
        }
    }
};

class EveryHistory : public ::testing::TestWithParam<std::tuple<WhenFull, WhenBack>> {};

// Checks that the histories contain all the cases that this test is about.
TEST_P(EveryHistory, IsUniqueOrderedInRangeAndTruthful) {
    const auto [full, back] = GetParam();
    const Histories all(600, false, full, back);
    EXPECT_EQ(all.unsound, "");
    EXPECT_GT(all.counts.ids, 30000u);
    EXPECT_EQ(all.counts.backups > 0, full == WhenFull::backup || back == WhenBack::backup);
    EXPECT_GT(all.counts.waits, full == WhenFull::wait || back == WhenBack::wait ? 5000u : 1000u);
    EXPECT_GT(all.counts.clock_errors, 0u);
    EXPECT_GT(all.counts.crashes, 4000u);
    EXPECT_GT(all.counts.late, 8000u);
    EXPECT_GT(all.counts.exhausted, 50u);
    const bool has_cached = full == WhenFull::borrow && back == WhenBack::hold;
    EXPECT_EQ(all.counts.behind > 1000, has_cached);
    EXPECT_EQ(all.counts.empty > 1000, has_cached);
}

TEST_P(EveryHistory, HasNoIdTwiceInAFleet) {
    const auto [full, back] = GetParam();
    const Histories all(300, true, full, back);
    EXPECT_EQ(all.unsound, "");
    EXPECT_GT(all.counts.ids, 20000u);
    EXPECT_EQ(all.counts.backups > 0, full == WhenFull::backup || back == WhenBack::backup);
    EXPECT_GT(all.counts.grants, 8000u);
    EXPECT_GT(all.counts.other_nodes, 1500u);
    EXPECT_GT(all.counts.gaps, 50u);
    EXPECT_GT(all.counts.refused, 1500u);
    EXPECT_GT(all.counts.late_in_grant, 50u);
    EXPECT_GT(all.counts.crashes, 2500u);
}

INSTANTIATE_TEST_SUITE_P(Kinds, EveryHistory,
                         ::testing::Combine(::testing::Values(WhenFull::wait, WhenFull::borrow, WhenFull::backup),
                                            ::testing::Values(WhenBack::hold, WhenBack::wait, WhenBack::backup,
                                                              WhenBack::error)));

// A generator of its own, with a clock that only its own waits move.
World alone(int32_t sequence_bits, int32_t time_bits, int64_t lease) {
    World w = {};
    w.layout = {0, 1, time_bits, 0, 1, sequence_bits};
    w.policy = {sequence_bits, INT64_C(1) << time_bits, lease, 2 * lease};
    w.alone = {true, 0, 0, no_limit};
    return w;
}

void draw_all(World *w, Generator *generator, uint64_t want) {
    const uint64_t until = w->counts.ids + want;
    while (w->counts.ids < until && w->counts.exhausted == 0 && w->unsound.empty())
        generator->draw(until - w->counts.ids);
    EXPECT_EQ(w->unsound, "");
}

// Under a clock that stands still a generator hands out what max_ahead allows, less at most the last sixteenth of a
// lease, for which it writes no record. Then it waits.
TEST(History, AStandingClockIsFollowedNotOutrun) {
    World w = alone(3, 41, 100);
    Generator generator(&w);
    const int64_t least_record = 7;
    draw_all(&w, &generator, static_cast<uint64_t>(w.policy.max_ahead + 1 - (least_record - 1)) << 3);
    EXPECT_EQ(w.counts.waits, 0u) << "max_ahead was not used up";
    draw_all(&w, &generator, least_record << 3);
    EXPECT_EQ(w.counts.waits, 1u);
}

// Every position up to the last one is handed out, and then none, whatever the clock shows.
TEST(History, TheEndOfTimeIsReachedAndStays) {
    for (int64_t lease : {1, 7, 16, 40}) {
        World w = alone(2, 8, lease);
        Generator generator(&w);
        const auto all = static_cast<uint64_t>(w.policy.end - generator.now()) << 2;
        draw_all(&w, &generator, all);
        EXPECT_EQ(w.counts.exhausted, 0u);
        generator.move_clock(-250);
        draw_all(&w, &generator, 1);
        EXPECT_EQ(w.counts.exhausted, 1u);
        EXPECT_EQ(w.counts.ids, all);
    }
}

// Under a bulk load that lives at max_ahead the clock sets the pace, and the records stay few.
TEST(History, BulkLoadWritesAtMostSixteenRecordsALease) {
    for (int64_t lease : {1, 2, 15, 16, 17, 20, 31, 32, 33, 100, 1000})
        for (uint64_t batch : {7u, 1000u}) {
            World w = alone(2, 41, lease);
            Generator generator(&w);
            const int64_t start = generator.now();
            while (generator.now() < start + 20 * lease && w.unsound.empty())
                generator.draw(batch);
            EXPECT_EQ(w.unsound, "");
            const int64_t passed = generator.now() + w.policy.max_ahead - start;
            EXPECT_LE(static_cast<int64_t>(w.counts.records), 16 * passed / lease + 4) << lease;
        }
}

// ---------------------------------------------------------------------------------------------------------
// The start of a tick's ids.

constexpr int64_t ms = 1000;
constexpr Layout quiet_layout = {INT64_C(1767225600000) * ms, ms, 41, 5, 5, 12};

TEST(Spread, StartsInsideItsCount) {
    std::mt19937_64 random(20260111);
    for (int32_t bits = 0; bits <= max_field_bits; bits++) {
        const Spread spread = {spread_for(bits, WhenFull::borrow).count, random()};
        EXPECT_LE(spread.count, (UINT64_C(3) << bits) / 4) << "a quarter of the tick is left";
        for (int i = 0; i < 2000; i++) {
            const auto tick = static_cast<int64_t>(random() >> (1 + random() % 40));
            ASSERT_LT(spread.start(tick), std::max(spread.count, UINT64_C(1))) << tick;
        }
    }
    EXPECT_EQ((Spread{0, UINT64_MAX}.start(12345)), 0u);
    EXPECT_EQ((Spread{1, UINT64_MAX}.start(12345)), 0u);
}

// How evenly ids modulo n are distributed. Evenly spread starts give less than 1. A low bit that is always 0 gives the
// number of ids over n, and more.
double chi_square_ratio(const std::vector<int64_t> &ids, int64_t n) {
    std::vector<int64_t> counts(static_cast<size_t>(n));
    for (const int64_t id : ids)
        counts[static_cast<size_t>(id % n)]++;
    return ::chi_square_ratio(counts, static_cast<double>(ids.size()) / static_cast<double>(n));
}

// The first id of each of many ticks.
template <typename NextTick> std::vector<int64_t> first_ids(const Layout &l, const Spread &spread, NextTick next_tick) {
    const IdEncoder encoder = encoder_of(l, node_of_fields(l, {3, 17}));
    std::vector<int64_t> ids;
    for (int i = 0; i < 60000; i++) {
        const int64_t tick = next_tick();
        ids.push_back(encode(encoder, (static_cast<uint64_t>(tick) << l.sequence_bits) + spread.start(tick)));
    }
    return ids;
}

void expect_even(const std::vector<int64_t> &ids, const char *what) {
    for (int64_t n : {2, 3, 8, 1000})
        EXPECT_LT(chi_square_ratio(ids, n), 1.5) << what << ", modulo " << n;
}

// Where a full tick is waited out, its first numbers are lost at any load: there it is Leaf's.
TEST(Spread, IsLeafsWhereATickIsWaitedOut) {
    EXPECT_EQ(spread_for(12, WhenFull::borrow).count, 3000U);
    EXPECT_EQ(spread_for(12, WhenFull::backup).count, 3000U);
    EXPECT_EQ(spread_for(12, WhenFull::wait).count, 100U);
    EXPECT_EQ(spread_for(4, WhenFull::wait).count, 12U);
}

TEST(Spread, IdsOfAQuietGeneratorAreEvenModuloN) {
    for (uint64_t salt : {UINT64_C(0), UINT64_C(0x0123456789ABCDEF), UINT64_MAX})
        for (int64_t step : {1, 10, 1000, 60000, 3600000}) {
            int64_t tick = 12345678;
            const Spread spread = {spread_for(12, WhenFull::borrow).count, salt};
            expect_even(first_ids(quiet_layout, spread, [&] { return tick += step; }), std::to_string(step).c_str());
        }
    std::mt19937_64 random(20260112);
    expect_even(
        first_ids(quiet_layout, spread_for(12, WhenFull::borrow), [&] { return static_cast<int64_t>(random() >> 23); }),
        "random");
    int64_t tick = 0;
    expect_even(first_ids(quiet_layout, spread_for(12, WhenFull::borrow),
                          [&] { return tick += static_cast<int64_t>(1 + random() % 5000); }),
                "random distances");
}

// Two incarnations with the same node and different salts: the starts of their ticks are as far apart in every tick, so
// two quiet ones that do not meet in one tick meet in none. How far is even over the salts.
TEST(Spread, ASaltMovesEveryStartByTheSameDistance) {
    std::mt19937_64 random(20260113);
    const uint64_t count = spread_for(12, WhenFull::borrow).count;
    std::vector<int64_t> distances;
    for (int i = 0; i < 20000; i++) {
        const Spread a = {count, random()};
        const Spread b = {count, random()};
        const auto distance = [&](int64_t tick) { return (b.start(tick) + count - a.start(tick)) % count; };
        const uint64_t first = distance(4711);
        distances.push_back(static_cast<int64_t>(first));
        for (int64_t tick : {INT64_C(0), INT64_C(1), INT64_C(123456789), largest(41)}) {
            const uint64_t off = (distance(tick) + count - first + 1) % count;
            ASSERT_LE(off, 2u) << "more than rounding";
        }
    }
    EXPECT_LT(chi_square_ratio(distances, 300), 1.5);
    EXPECT_GT(chi_square_ratio(distances, 300), 0.6);
}

} // namespace
