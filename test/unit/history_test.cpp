// Random histories of a generator of every kind: ids, not positions, with the field order, the backup worker and the
// terms that its layout and policy have. The clock jumps, the server crashes and loses what was not durable, and
// several calls overlap: a call may execute its decision after other calls have gone ahead.
//
// The caller's loop is that of src/pg/draw/draw_generator.cpp.
#include "clock_policy.hpp"
#include "history_caller.hpp"
#include "layout.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <unordered_set>
#include <vector>

using namespace uidgen::core;

namespace {

struct Config {
    Layout layout;
    ClockPolicy policy;
    int64_t datacenter;
    int64_t worker; // that of term 0
};

struct Counts {
    uint64_t primary = 0;
    uint64_t backup = 0;
    uint64_t waits = 0;
    uint64_t clock_errors = 0;
    uint64_t terms = 0;
    uint64_t crashes = 0;
    uint64_t late = 0; // executed after other calls had gone ahead
    uint64_t ended = 0;

    void add(const Counts &c) {
        primary += c.primary;
        backup += c.backup;
        waits += c.waits;
        clock_errors += c.clock_errors;
        terms += c.terms;
        crashes += c.crashes;
        late += c.late;
        ended += c.ended;
    }
};

class Generator : public uidgen::test::HistoryCaller<Generator> {
  public:
    explicit Generator(const Config &config, uint64_t seed) : HistoryCaller(config.policy), c_(config), random_(seed) {
        restart();
    }

    // One call: until it has ids, or an error.
    void draw(uint64_t want) {
        for (int steps = 0; !::testing::Test::HasFailure(); steps++) {
            ASSERT_LE(steps, 8) << "a call that does not end: when_full " << static_cast<int>(p_.when_full)
                                << ", when_back " << static_cast<int>(p_.when_back);
            if (perform(look(want)))
                return;
        }
    }

    // A call that pauses, after its decision or after it has read the word but not yet the clock.
    void begin_call(uint64_t want) {
        under_way_.push_back(look(want));
        under_way_.back().decided = random_() % 2 == 0;
    }
    void go_on_with_call() {
        if (under_way_.empty())
            return;
        counts_.late++;
        const size_t which = random_() % under_way_.size();
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

    // Calls end.
    void crash() {
        counts_.crashes++;
        lose_what_is_not_durable(random_);
        under_way_.clear();
        restart();
    }

    // Another session moves the counter, and the next caller finds that (adopt_page()). ALTER of a policy does the
    // same.
    void discard(int64_t by) {
        const int64_t term_end = ((marks_.back() - 1) / p_.end + 1) * p_.end;
        const int64_t mark = std::min(marks_.back() + by, term_end);
        write(mark, mark);
        word_.discard_below(position(mark));
        backup_.discard_below(position(mark));
        discarded_below_ = position(mark);
        // As if the clock had been where it could lease so much.
        shown_ = std::max(shown_, mark % p_.end == 0 ? p_.end : mark % p_.end - 1 - p_.max_ahead);
    }

    const Counts &counts() const { return counts_; }
    int64_t now() const { return now_; }
    const ClockPolicy &policy() const { return p_; }

  private:
    friend HistoryCaller<Generator>;

    struct Call {
        ClockState view;
        Decision decision;
        uint64_t want;
        bool decided;
        int64_t shown; // the latest that the clock had shown before it was read
    };

    int64_t term_of(uint64_t pos) const { return static_cast<int64_t>(pos >> p_.sequence_bits) / p_.end; }
    int64_t terms() const { return p_.when_back == WhenBack::new_worker ? largest(c_.layout.worker_bits) + 1 : 1; }

    Call look(uint64_t want) const {
        const ClockState view = read_state(now_);
        return {view, decide(p_, view), want, true, shown_};
    }

    bool perform(const Call &call) { return perform(call, call.decision); }

    bool perform(const Call &call, const Decision &d) {
        switch (d.action) {
        case ClockAction::take:
            return take(call, d);
        case ClockAction::confirm:
            confirm();
            return false;
        case ClockAction::reserve:
            reserve(call, 0, d.reserve_until);
            return false;
        case ClockAction::wait:
            wait(d.wait_ticks);
            return false;
        case ClockAction::backup:
            return take_backup(call, d.wait_ticks);
        case ClockAction::new_term:
            return begin_term(call, d);
        case ClockAction::clock_back:
            return expect_clock_back(call, d);
        case ClockAction::ask:
            ADD_FAILURE() << "there is no fleet";
            break;
        case ClockAction::exhausted:
            break;
        }
        counts_.ended++;
        return true;
    }

    bool take(const Call &call, const Decision &d) {
        if (d.reserve_until > 0)
            reserve(call, 0, d.reserve_until);
        const Run run = word_.take(d.floor, d.limit, call.want);
        if (run.count == 0)
            return false;
        seen_ = std::max(seen_, term_of(run.first) * p_.end + call.view.now);
        hand_out(call, run, false);
        return true;
    }

    bool begin_term(const Call &call, const Decision &d) {
        if (term_of(d.floor) >= terms()) {
            counts_.ended++;
            return true; // no worker id left
        }
        EXPECT_GT(call.shown, call.view.now + p_.tolerance)
            << "a term begins although the clock did not go back so far";
        counts_.terms++;
        reserve(call, d.floor, d.reserve_until);
        return false;
    }

    // A clock that never went back is never reported to have gone back, whatever was leased, lost and restarted.
    bool expect_clock_back(const Call &call, const Decision &d) {
        EXPECT_GT(call.shown, call.view.now) << "the clock did not go back";
        EXPECT_LE(d.wait_ticks, call.shown - call.view.now) << "not by so much";
        counts_.clock_errors++;
        return true;
    }

    // Another call may have written this lease, or a longer one.
    void reserve(const Call &call, uint64_t from, int64_t until) {
        const uint64_t written = word_.written_range().until;
        if (written >= position(until))
            return;
        EXPECT_LE(until % p_.end == 0 ? p_.end : until % p_.end, call.view.now + p_.max_ahead + 1)
            << "P4: a lease too far ahead";
        write(until, static_cast<int64_t>(std::max(from, written) >> p_.sequence_bits));
    }

    void write(int64_t until, int64_t from) {
        marks_.push_back(until);
        word_.publish(position(from), position(until), marks_.size());
    }

    void wait(int64_t ticks) {
        counts_.waits++;
        ASSERT_GT(ticks, 0);
        // A call that decided long ago may wait for a clock that has gone on since.
        if (!late_)
            move_clock(ticks);
    }

    void hand_out(const Call &call, const Run &run, bool backup) {
        for (uint64_t i = 0; i < run.count && !::testing::Test::HasFailure(); i++)
            hand_out(call, run.first + i, backup);
    }

    void hand_out(const Call &call, uint64_t pos, bool backup) {
        const Layout &l = c_.layout;
        const int64_t term = term_of(pos);
        const NodeFields fields = {c_.datacenter, (c_.worker + term) & largest(drawn_worker_bits(l))};
        const int64_t worker = fields.worker | (backup ? backup_bit(l) : 0);
        const int64_t id = encode(encoder_of(l, node_of_fields(l, fields), backup, term), pos);
        const Decoded d = decode(l, id);
        ASSERT_EQ(d.fault, DecodeFault::none) << "P3";
        EXPECT_TRUE(ids_.insert(id).second) << "P1: twice: " << id;
        EXPECT_TRUE(late_ || pos >= discarded_below_) << "an id of what was given up before the call";
        EXPECT_EQ(d.parts.tick, static_cast<int64_t>(pos >> p_.sequence_bits) - term * p_.end);
        EXPECT_EQ(d.parts.worker, worker);
        EXPECT_EQ(d.parts.datacenter, c_.datacenter);
        EXPECT_LE(d.parts.tick, call.view.now + p_.max_ahead) << "P4";
        EXPECT_LT(static_cast<int64_t>(pos >> p_.sequence_bits), marks_[durable_ - 1])
            << "handed out before it is durable";
        EXPECT_TRUE(p_.when_full != WhenFull::wait || backup || d.parts.tick <= shown_)
            << "when_full wait: a tick that the clock never showed";
        if (!backup)
            expect_order(id, term);
        ++(backup ? counts_.backup : counts_.primary);
    }

    void expect_order(int64_t id, int64_t term) {
        const auto last = last_.find(term);
        EXPECT_TRUE(last == last_.end() || id > last->second) << "P2";
        EXPECT_TRUE(last_.empty() || term >= last_.rbegin()->first) << "P2: a term that was over";
        last_[term] = id;
    }

    void restart() {
        HistoryCaller::restart();
        discarded_below_ = 0;
    }

    const Config c_;
    std::mt19937_64 random_;
    int64_t now_ = 5;
    int64_t shown_ = 5; // the latest that the clock ever showed
    std::vector<Call> under_way_;
    bool late_ = false;
    uint64_t discarded_below_ = 0;
    std::unordered_set<int64_t> ids_;
    std::map<int64_t, int64_t> last_; // a term's last id of the primary worker
    Counts counts_;
};

int32_t up_to(std::mt19937_64 &random, int32_t most) { return static_cast<int32_t>(random() % (most + 1)); }

// Few numbers in a tick, few ticks in a lease and until the end: histories reach the end of everything.
Config random_config(std::mt19937_64 &random, WhenFull full, WhenBack back) {
    Config c{};
    const bool two_workers = full == WhenFull::backup || back == WhenBack::backup;
    Layout &l = c.layout;
    l = {0, 1, random() % 4 == 0 ? 6 : 12, up_to(random, 2), 1 + up_to(random, 3), up_to(random, 4)};
    l.sequence_first = random() % 2 == 0;
    l.backup = two_workers;
    c.datacenter = static_cast<int64_t>(random()) & largest(l.datacenter_bits);
    c.worker = static_cast<int64_t>(random()) & largest(drawn_worker_bits(l));
    static const int64_t leases[] = {1, 2, 5, 16, 17, 33};
    const int64_t lease = leases[random() % std::size(leases)];
    const int64_t ahead = lease + up_to(random, static_cast<int32_t>(2 * lease));
    const int64_t tolerances[] = {0, 1, lease, 3 * ahead, no_limit};
    c.policy = {l.sequence_bits, largest(l.time_bits) + 1, lease, ahead, full, back, tolerances[random() % 5], {0}};
    if (random() % 2 == 0)
        c.policy.spread = spread_for(l.sequence_bits);
    return c;
}

// Forward more often than back, sometimes by far more than max_ahead.
int64_t random_jump(std::mt19937_64 &random, const ClockPolicy &p) {
    const int64_t reach = random() % 10 == 0 ? 5 * p.max_ahead : random() % 2 == 0 ? p.lease : 1;
    return static_cast<int64_t>(random() % static_cast<uint64_t>(2 * reach + 1)) - reach * 4 / 5;
}

void random_event(Generator &generator, std::mt19937_64 &random) {
    const ClockPolicy &p = generator.policy();
    const uint64_t dice = random() % 100;
    const uint64_t want = random() % 4 == 0 ? 1 + random() % (UINT64_C(3) << p.sequence_bits) : 1 + random() % 2;
    if (dice < 50)
        generator.draw(want);
    else if (dice < 58)
        generator.begin_call(want);
    else if (dice < 68)
        generator.go_on_with_call();
    else if (dice < 90)
        generator.move_clock(random_jump(random, p));
    else if (dice < 94)
        generator.crash();
    else if (dice < 99)
        generator.confirm();
    else
        generator.discard(1 + static_cast<int64_t>(random() % static_cast<uint64_t>(p.lease)));
}

Counts run_histories(WhenFull full, WhenBack back, int histories) {
    std::mt19937_64 random(20260110 + static_cast<uint64_t>(full) * 10 + static_cast<uint64_t>(back));
    Counts all;
    for (int i = 0; i < histories && !::testing::Test::HasFailure(); i++) {
        Generator generator(random_config(random, full, back), random());
        for (int j = 0; j < 300 && !::testing::Test::HasFailure(); j++)
            random_event(generator, random);
        all.add(generator.counts());
    }
    return all;
}

class Histories : public ::testing::TestWithParam<std::tuple<WhenFull, WhenBack>> {};

// Checks that the histories contain all the cases that this test is about.
TEST_P(Histories, StayUniqueOrderedInRangeAndTruthful) {
    const WhenFull full = std::get<0>(GetParam());
    const WhenBack back = std::get<1>(GetParam());
    const bool two_workers = full == WhenFull::backup || back == WhenBack::backup;
    const bool waits = full == WhenFull::wait || back == WhenBack::wait;
    const Counts all = run_histories(full, back, 800);
    EXPECT_GT(all.primary, 40000u);
    EXPECT_EQ(all.backup > 0, two_workers);
    EXPECT_GT(all.waits, waits ? 10000u : 2000u);
    EXPECT_EQ(all.clock_errors > 0, back != WhenBack::new_worker);
    EXPECT_EQ(all.terms > 0, back == WhenBack::new_worker);
    EXPECT_GT(all.crashes, 6000u);
    EXPECT_GT(all.late, 10000u);
    EXPECT_GT(all.ended, 100u);
}

constexpr WhenFull all_full[] = {WhenFull::wait, WhenFull::borrow, WhenFull::backup};
constexpr WhenBack all_back[] = {WhenBack::hold, WhenBack::wait, WhenBack::backup, WhenBack::error};
constexpr WhenFull without_backup[] = {WhenFull::wait, WhenFull::borrow};

INSTANTIATE_TEST_SUITE_P(Kinds, Histories,
                         ::testing::Combine(::testing::ValuesIn(all_full), ::testing::ValuesIn(all_back)));
INSTANTIATE_TEST_SUITE_P(Terms, Histories,
                         ::testing::Combine(::testing::ValuesIn(without_backup),
                                            ::testing::Values(WhenBack::new_worker)));

// ---------------------------------------------------------------------------------------------------------
// The start of a tick's ids.

constexpr int64_t ms = 1000;
constexpr Layout quiet_layout = {INT64_C(1767225600000) * ms, ms, 41, 5, 5, 12};

TEST(Spread, StartsInsideItsCount) {
    std::mt19937_64 random(20260111);
    for (int32_t bits = 0; bits <= max_field_bits; bits++) {
        const Spread spread = {spread_for(bits).count, random()};
        EXPECT_LE(spread.count, (UINT64_C(3) << bits) / 4) << "a quarter of the tick is left";
        for (int i = 0; i < 2000; i++) {
            const auto tick = static_cast<int64_t>(random() >> (1 + random() % 40));
            ASSERT_LT(spread.start(tick), std::max(spread.count, UINT64_C(1))) << tick;
        }
    }
    EXPECT_EQ((Spread{0, UINT64_MAX}.start(12345)), 0u);
    EXPECT_EQ((Spread{1, UINT64_MAX}.start(12345)), 0u);
}

TEST(Spread, ReachesEveryStart) {
    for (int32_t bits : {1, 2, 5, 8, 11, 12, 13, 22}) {
        const Spread spread = {spread_for(bits).count, UINT64_C(0xD1B54A32D192ED03)};
        std::vector<bool> reached(spread.count);
        for (int64_t tick = 0; tick < 20 * static_cast<int64_t>(spread.count); tick++)
            reached[spread.start(tick)] = true;
        EXPECT_EQ(std::count(reached.begin(), reached.end(), false), 0) << bits;
    }
}

// How evenly ids modulo n are distributed: chi-square over n - 1, which is about 1 for ids drawn at random. Evenly
// spread starts give less. A low bit that is always 0 gives the number of ids over n, and more.
double chi_square_ratio(const std::vector<int64_t> &ids, int64_t n) {
    std::vector<int64_t> counts(static_cast<size_t>(n));
    for (const int64_t id : ids)
        counts[static_cast<size_t>(id % n)]++;
    const double expected = static_cast<double>(ids.size()) / static_cast<double>(n);
    double sum = 0;
    for (const int64_t count : counts)
        sum += (static_cast<double>(count) - expected) * (static_cast<double>(count) - expected) / expected;
    return sum / static_cast<double>(n - 1);
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

TEST(Spread, IdsOfAQuietGeneratorAreEvenModuloN) {
    for (uint64_t salt : {UINT64_C(0), UINT64_C(0x0123456789ABCDEF), UINT64_MAX})
        for (int64_t step : {1, 10, 1000, 60000, 3600000}) {
            int64_t tick = 12345678;
            const Spread spread = {spread_for(12).count, salt};
            expect_even(first_ids(quiet_layout, spread, [&] { return tick += step; }), std::to_string(step).c_str());
        }
    std::mt19937_64 random(20260112);
    expect_even(first_ids(quiet_layout, spread_for(12), [&] { return static_cast<int64_t>(random() >> 23); }),
                "random");
    int64_t tick = 0;
    expect_even(
        first_ids(quiet_layout, spread_for(12), [&] { return tick += static_cast<int64_t>(1 + random() % 5000); }),
        "random distances");
}

// Two incarnations with the same node and different salts: the starts of their ticks are as far apart in every tick, so
// two quiet ones that do not meet in one tick meet in none. How far is even over the salts.
TEST(Spread, ASaltMovesEveryStartByTheSameDistance) {
    std::mt19937_64 random(20260113);
    const uint64_t count = spread_for(12).count;
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

// The test notices a missing spread: all ids are even then, and all have one residue modulo 8.
TEST(Spread, WithoutOneTheyAreNot) {
    int64_t tick = 12345678;
    const std::vector<int64_t> ids = first_ids(quiet_layout, {0}, [&] { return tick += 1000; });
    for (int64_t n : {2, 8, 1000})
        EXPECT_GT(chi_square_ratio(ids, n), 100) << n;
}

// Takes everything that a clock which goes on tick by tick allows. Returns how many positions that were.
uint64_t saturate(const ClockPolicy &p, int64_t ticks) {
    PositionAllocator<> word;
    const auto position = [&p](int64_t tick) { return static_cast<uint64_t>(tick) << p.sequence_bits; };
    word.reset(position(1));
    uint64_t taken = 0;
    for (int64_t now = 1; now <= ticks; now++)
        for (Decision d{}; d.action != ClockAction::wait;) {
            d = decide(p, {now, now - 1, word.last(), word.usable(Durability::local), word.written_range().until});
            if (d.reserve_until > 0)
                word.publish(0, position(d.reserve_until), 0);
            if (d.action == ClockAction::confirm)
                word.confirm(Durability::local, word.written_range().until);
            if (d.action == ClockAction::take)
                taken += word.take(d.floor, d.limit, UINT64_MAX).count;
        }
    return taken;
}

// A generator at full speed is ahead of the clock, where only the positions before its first tick's start are left out.
TEST(Spread, TheBusyLoseNothing) {
    ClockPolicy p = {12, INT64_C(1) << 41, 10, 20};
    const uint64_t plain = saturate(p, 200);
    p.spread = spread_for(12);
    EXPECT_EQ(saturate(p, 200), plain - p.spread.start(1));
    EXPECT_GE(plain, UINT64_C(220) << 12);
}

// A caller that waits for each tick begins it at its start.
TEST(Spread, WhoWaitsLosesWhatIsBelowTheStart) {
    ClockPolicy p = {12, INT64_C(1) << 41, 10, 20, WhenFull::wait};
    EXPECT_EQ(saturate(p, 200), UINT64_C(200) << 12);
    p.spread = spread_for(12);
    uint64_t below = 0;
    for (int64_t tick = 1; tick <= 200; tick++)
        below += p.spread.start(tick);
    EXPECT_EQ(saturate(p, 200), (UINT64_C(200) << 12) - below);
}

} // namespace
