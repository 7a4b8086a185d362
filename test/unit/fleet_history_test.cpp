// Random histories of generators in a fleet: several lines draw ids of one layout inside grants of few nodes. Grants
// come late, end while the registry is away, and change node. Clocks jump and differ, servers crash, and calls overlap:
// a call may execute its decision after its grant was followed by another one.
//
// The registry is a table with the rules of grant.hpp. The caller's loop is that of src/pg/draw/draw_generator.cpp.
#include "clock_policy.hpp"
#include "grant_view.hpp"
#include "history_caller.hpp"
#include "layout.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <memory>
#include <random>
#include <string>
#include <unordered_set>
#include <vector>

using namespace uidgen::core;

namespace {

// What a broken generator does otherwise.
enum class Mutant {
    none,
    node_after_take, // gives a position the node of the grant that is in force afterwards
    ignores_until,
    ignores_from,
    leases_beyond,
    keeps_line_in_term, // draws in a new term with the grant of the one before
};

struct Counts {
    uint64_t ids = 0;
    uint64_t backups = 0;
    uint64_t grants = 0;
    uint64_t other_nodes = 0; // grants that do not continue the last one
    uint64_t gaps = 0;        // leases that begin above the last one
    uint64_t refused = 0;     // draws that ended without a grant
    uint64_t late = 0;        // draws with a grant that was followed by another one
    uint64_t crashes = 0;
    uint64_t terms = 0;
    uint64_t later_ids = 0; // ids of a later term than the first
    std::string unsound;    // the first promise that was broken
};

struct Fleet {
    Layout layout;
    ClockPolicy policy;
    Mutant mutant;
    std::mt19937_64 random;
    std::vector<int64_t> until; // of each node
    std::vector<uint64_t> line; // its last holder
    uint64_t lines = 0;
    int64_t now = 5; // the registry's clock
    std::unordered_set<int64_t> ids;
    Counts counts;

    void expect(bool holds, const char *promise) {
        if (!holds && counts.unsound.empty())
            counts.unsound = promise;
    }
};

constexpr int64_t bound = 4;

class Member : public uidgen::test::HistoryCaller<Member> {
  public:
    explicit Member(Fleet *fleet) : HistoryCaller(fleet->policy), f_(*fleet), line_(++fleet->lines) { restart(); }

    void draw(uint64_t want) {
        for (int steps = 0; f_.counts.unsound.empty(); steps++) {
            if (steps > 12)
                f_.expect(false, "a call ends");
            if (perform(look(want)))
                return;
        }
    }

    void begin_call(uint64_t want) { under_way_.push_back(look(want)); }
    void go_on_with_call() {
        if (under_way_.empty())
            return;
        const size_t which = f_.random() % under_way_.size();
        const Call call = under_way_[which];
        under_way_.erase(under_way_.begin() + static_cast<std::ptrdiff_t>(which));
        late_ = true;
        perform(call);
        late_ = false;
    }

    void move_clock(int64_t by) { now_ += by; }

    // The registrar asks ahead of use.
    void renew() { (void)get_grant(std::max(now_, INT64_C(1))); }

    // The grant is in a file, which a newcomer does not have.
    void crash(bool as_newcomer) {
        f_.counts.crashes++;
        lose_what_is_not_durable(f_.random);
        under_way_.clear();
        if (as_newcomer) {
            grant_ = no_grant;
            line_ = ++f_.lines;
        }
        restart();
    }

    // A session that has read the word in an earlier term begins a line for it, when the next term is in use already.
    void find_place_late() {
        if (term() > 0)
            find_place(term() - 1);
    }

    int64_t now() const { return now_; }

  private:
    friend HistoryCaller<Member>;

    struct Call {
        ClockState view;
        GrantView grant;
        Decision decision;
        uint64_t want;
    };

    int64_t term() const { return tick_of(word_.last()) / p_.end; }

    // A line is for one term.
    void find_place(int64_t term) {
        if (place_term_ != term && f_.mutant != Mutant::keeps_line_in_term) {
            grant_ = no_grant;
            line_ = ++f_.lines;
        }
        place_term_ = term;
    }

    Call look(uint64_t want) {
        ClockState view = read_state(now_);
        if (found_for_ != term())
            find_place(term());
        found_for_ = term();
        view.granted_from = f_.mutant == Mutant::ignores_from ? 0 : grant_.from;
        view.granted_until = f_.mutant == Mutant::ignores_until && grant_.granted ? no_limit : grant_.until;
        return {view, grant_, decide(p_, view), want};
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
            reserve(call, d.reserve_until);
            return false;
        case ClockAction::wait:
            if (!late_)
                now_ += d.wait_ticks;
            return late_;
        case ClockAction::backup:
            return take_backup(call, d.wait_ticks);
        case ClockAction::ask:
            return ask(d.wanted);
        case ClockAction::clock_back:
        case ClockAction::exhausted:
            return true;
        case ClockAction::new_term:
            begin_term(call, d);
            return false;
        }
        return true;
    }

    bool take(const Call &call, const Decision &d) {
        if (d.reserve_until > 0)
            reserve(call, d.reserve_until);
        const Run run = word_.take(d.floor, d.limit, call.want);
        if (run.count == 0)
            return false;
        seen_ = std::max(seen_, begin_of(call) + call.view.now);
        hand_out(call, run, false);
        return true;
    }

    // True: the registry is away, or refuses.
    bool ask(int64_t wanted) {
        if (f_.random() % 4 != 0 && get_grant(wanted))
            return false;
        f_.counts.refused++;
        return true;
    }

    // The first tick of the term that the call draws in.
    int64_t begin_of(const Call &call) const { return tick_of(call.view.last) / p_.end * p_.end; }

    // Outside of any grant: the line of the new term has none yet.
    void begin_term(const Call &call, const Decision &d) {
        const uint64_t written = word_.written_range().until;
        if (written >= position(d.reserve_until))
            return;
        f_.expect(d.reserve_until % p_.end <= call.view.now + p_.max_ahead + 1, "P4: the first lease of a term");
        f_.counts.terms++;
        marks_.push_back(d.reserve_until);
        word_.publish(std::max(d.floor, written), position(d.reserve_until), marks_.size());
    }

    // Another call may have written this lease, or a longer one.
    void reserve(const Call &call, int64_t until) {
        const uint64_t written = word_.written_range().until;
        if (f_.mutant == Mutant::leases_beyond)
            until = std::min(until + 1, begin_of(call) + p_.end);
        if (written >= position(until))
            return;
        const uint64_t from = std::max(granted_begin(p_, call.view), written);
        f_.counts.gaps += from > written ? 1 : 0;
        const int64_t begin = begin_of(call);
        f_.expect(until - begin <= call.grant.until, "a lease ends inside the grant");
        f_.expect(tick_of(from) - begin >= call.grant.from || f_.mutant == Mutant::ignores_from,
                  "a lease begins inside the grant");
        f_.expect(until - begin <= call.view.now + p_.max_ahead + 1 || f_.mutant == Mutant::leases_beyond,
                  "P4: the lease");
        marks_.push_back(until);
        if (from > 0)
            backup_.discard_below(from);
        word_.publish(from, position(until), marks_.size());
    }

    void hand_out(const Call &call, const Run &run, bool backup) {
        const int64_t node = f_.mutant == Mutant::node_after_take ? grant_.node : call.grant.node;
        f_.counts.late += run.count > 0 && !same_view(call.grant, grant_) ? 1 : 0;
        for (uint64_t i = 0; i < run.count; i++) {
            const uint64_t pos = run.first + i;
            const int64_t term = tick_of(pos) / p_.end;
            const int64_t id = encode(encoder_of(f_.layout, node, backup, term), pos);
            f_.expect(f_.ids.insert(id).second, "P1: no id twice in the fleet");
            f_.expect(tick_of(pos) % p_.end <= call.view.now + p_.max_ahead, "P4");
            f_.counts.later_ids += term > 0 ? 1 : 0;
            f_.expect(tick_of(pos) < marks_[durable_ - 1], "an id is durable before it is handed out");
            f_.expect(backup || pos > last_, "P2");
            last_ = backup ? last_ : pos;
            ++(backup ? f_.counts.backups : f_.counts.ids);
        }
    }

    // The registry: a grant that reaches above `lowest`. Sometimes a fence takes the node from the line.
    bool get_grant(int64_t lowest) {
        const int64_t from = std::min(lowest, f_.now + bound);
        const auto length = static_cast<int64_t>(2 + f_.random() % static_cast<uint64_t>(3 * p_.max_ahead));
        const int64_t until = std::min(from + length, p_.end);
        const auto own = static_cast<size_t>(grant_.node);
        if (grant_.granted && f_.line[own] == line_ && f_.random() % 4 != 0) {
            f_.until[own] = std::max(f_.until[own], until);
            grant_.until = f_.until[own];
            f_.counts.grants++;
            return grant_.until > lowest;
        }
        for (size_t tries = 0; until > lowest && tries < f_.until.size(); tries++) {
            const size_t node = f_.random() % f_.until.size();
            if (f_.until[node] > from)
                continue;
            f_.until[node] = until;
            f_.line[node] = line_;
            grant_ = {true, static_cast<int64_t>(node), from, until};
            f_.counts.grants++;
            f_.counts.other_nodes++;
            return true;
        }
        return false;
    }

    Fleet &f_;
    uint64_t line_;
    GrantView grant_ = no_grant;
    int64_t place_term_ = 0; // the term that the line was begun for
    int64_t found_for_ = 0;  // the term that a session has found the place for
    int64_t now_ = 5;
    uint64_t last_ = 0;
    bool late_ = false;
    std::vector<Call> under_way_;
};

// Few nodes and short grants, so that nodes come round.
void set_up(Fleet *fleet, WhenFull full, WhenBack back) {
    std::mt19937_64 &random = fleet->random;
    const bool two_workers = full == WhenFull::backup || back == WhenBack::backup;
    const auto up_to = [&random](int32_t most) { return static_cast<int32_t>(random() % (most + 1)); };
    Layout &l = fleet->layout;
    const int32_t more = two_workers ? 1 : back == WhenBack::new_worker ? 2 : 0; // a term needs a node of its own
    l = {0, 1, 12, up_to(1), 1 + up_to(1) + more, up_to(3)};
    l.sequence_first = random() % 2 == 0;
    l.backup = two_workers;
    static const int64_t leases[] = {1, 2, 5, 17};
    const int64_t lease = leases[random() % std::size(leases)];
    const int64_t ahead = lease + up_to(static_cast<int32_t>(2 * lease));
    const int64_t tolerances[] = {0, lease, no_limit};
    fleet->policy = {
        l.sequence_bits, largest(l.time_bits) + 1, lease, ahead, full, back, tolerances[random() % 3], {0}};
    if (random() % 2 == 0)
        fleet->policy.spread = spread_for(l.sequence_bits);
    fleet->until.resize(static_cast<size_t>(largest(drawn_node_bits(l)) + 1));
    fleet->line.resize(fleet->until.size());
}

void random_event(Fleet *fleet, Member *member) {
    std::mt19937_64 &random = fleet->random;
    const ClockPolicy &p = fleet->policy;
    const uint64_t dice = random() % 100;
    const uint64_t want = random() % 4 == 0 ? 1 + random() % (UINT64_C(3) << p.sequence_bits) : 1 + random() % 2;
    const int64_t reach = random() % 10 == 0 ? 4 * p.max_ahead : p.lease;
    if (dice < 42)
        member->draw(want);
    else if (dice < 54)
        member->begin_call(want);
    else if (dice < 66)
        member->go_on_with_call();
    else if (dice < 84)
        member->move_clock(static_cast<int64_t>(random() % static_cast<uint64_t>(2 * reach + 1)) - reach * 3 / 5);
    else if (dice < 92)
        member->renew();
    else if (dice < 95)
        member->crash(random() % 3 == 0);
    else if (dice < 96)
        member->find_place_late();
    else
        member->confirm();
}

Counts run_history(WhenFull full, WhenBack back, Mutant mutant, uint64_t seed) {
    Fleet fleet = {};
    fleet.mutant = mutant;
    fleet.random.seed(seed);
    set_up(&fleet, full, back);
    std::vector<std::unique_ptr<Member>> members;
    for (int i = 0; i < 3; i++)
        members.push_back(std::make_unique<Member>(&fleet));
    for (int i = 0; i < 600 && fleet.counts.unsound.empty(); i++) {
        const auto &member = members[fleet.random() % members.size()];
        random_event(&fleet, member.get());
        fleet.now = std::max(fleet.now, member->now() - static_cast<int64_t>(fleet.random() % 8));
    }
    return fleet.counts;
}

Counts run_histories(WhenFull full, WhenBack back, Mutant mutant, int histories) {
    Counts all;
    for (int i = 0; i < histories && all.unsound.empty(); i++) {
        const Counts one = run_history(full, back, mutant, 20260201 + static_cast<uint64_t>(i));
        all.ids += one.ids;
        all.backups += one.backups;
        all.grants += one.grants;
        all.other_nodes += one.other_nodes;
        all.gaps += one.gaps;
        all.refused += one.refused;
        all.late += one.late;
        all.crashes += one.crashes;
        all.terms += one.terms;
        all.later_ids += one.later_ids;
        all.unsound = one.unsound;
    }
    return all;
}

class FleetHistories : public ::testing::TestWithParam<std::tuple<WhenFull, WhenBack>> {};

// Checks that the histories contain all the cases that this test is about.
TEST_P(FleetHistories, NoIdComesTwiceInTheFleet) {
    const WhenFull full = std::get<0>(GetParam());
    const WhenBack back = std::get<1>(GetParam());
    const Counts all = run_histories(full, back, Mutant::none, 600);
    EXPECT_EQ(all.unsound, "");
    EXPECT_GT(all.ids, 50000u);
    EXPECT_EQ(all.backups > 0, full == WhenFull::backup || back == WhenBack::backup);
    EXPECT_GT(all.grants, 20000u);
    EXPECT_GT(all.other_nodes, 3000u);
    EXPECT_GT(all.gaps, 100u);
    EXPECT_GT(all.refused, 3000u);
    EXPECT_GT(all.late, 100u);
    EXPECT_GT(all.crashes, 5000u);
    if (back == WhenBack::new_worker) {
        EXPECT_GT(all.terms, 2000u);
        EXPECT_GT(all.later_ids, 30000u);
    }
}

constexpr WhenFull all_full[] = {WhenFull::wait, WhenFull::borrow, WhenFull::backup};
constexpr WhenBack all_back[] = {WhenBack::hold, WhenBack::wait, WhenBack::backup, WhenBack::error};

INSTANTIATE_TEST_SUITE_P(Kinds, FleetHistories,
                         ::testing::Combine(::testing::ValuesIn(all_full), ::testing::ValuesIn(all_back)));

INSTANTIATE_TEST_SUITE_P(Terms, FleetHistories,
                         ::testing::Combine(::testing::Values(WhenFull::wait, WhenFull::borrow),
                                            ::testing::Values(WhenBack::new_worker)));

void expect_caught(Mutant mutant, const char *promise) {
    const Counts all = run_histories(WhenFull::backup, WhenBack::backup, mutant, 5000);
    EXPECT_EQ(all.unsound, promise);
}

TEST(FleetHistories, NodeAfterTakeMutantIsCaught) {
    expect_caught(Mutant::node_after_take, "P1: no id twice in the fleet");
}
TEST(FleetHistories, IgnoresUntilMutantIsCaught) {
    EXPECT_NE(run_histories(WhenFull::borrow, WhenBack::hold, Mutant::ignores_until, 600).unsound, "");
}
TEST(FleetHistories, IgnoresFromMutantIsCaught) { expect_caught(Mutant::ignores_from, "P1: no id twice in the fleet"); }
TEST(FleetHistories, KeepsLineInTermMutantIsCaught) {
    EXPECT_EQ(run_histories(WhenFull::borrow, WhenBack::new_worker, Mutant::keeps_line_in_term, 600).unsound,
              "P1: no id twice in the fleet");
}
TEST(FleetHistories, LeasesBeyondMutantIsCaught) {
    expect_caught(Mutant::leases_beyond, "a lease ends inside the grant");
}

} // namespace
