// Every interleaving of a few callers on the generator's word and on a segment's.
//
// Each scenario ends in an outcome, a line of text. The tables list the acceptable outcomes: all of them must occur,
// and no others. The forbidden ones are named above each table.
#include "expect_outcomes.hpp"
#include "range.hpp"
#include "position_allocator.hpp"
#include "window.hpp"
#include "worlds.hpp"

#include <gtest/gtest.h>

#include <mutex>
#include <set>
#include <shared_mutex>
#include <string>
#include <vector>

using namespace uidgen::core;
using namespace uidgen::test;

namespace {

// A call and when it ran: two calls are ordered if one ended before the other began.
struct Call {
    Run run;
    uint64_t began;
    uint64_t ended;
};

template <typename Word> Call timed_take(Word &word, uint64_t floor, uint64_t limit, uint64_t want) {
    Explorer &explorer = *Explorer::active;
    explorer.begin();
    const Run run = word.take(floor, limit, want);
    return {run, explorer.first_step(), explorer.last_step()};
}

// An atomic whose compare-and-swap is two operations: the mutant for code that relies on a single one.
template <typename T> class Torn : public Stepped<T> {
  public:
    bool compare_exchange_weak(T &expected, T desired, std::memory_order order, std::memory_order) {
        const T seen = this->load(order);
        if (seen != expected) {
            expected = seen;
            return false;
        }
        this->store(desired, order);
        return true;
    }
};

using Word = PositionAllocator<Stepped>;
using TornWord = PositionAllocator<Torn>;

// ---------------------------------------------------------------------------------------------------------
// Tests of the explorer itself, on which all other tests rely.

struct Counter {
    Stepped<uint64_t> value;
    SteppedLock lock;
    SteppedLock other;

    std::string outcome() const { return std::to_string(value.load(std::memory_order_relaxed)); }
};

void add_by_load_and_store(Counter &c) {
    c.value.store(c.value.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
}

void raise_by_swap(Counter &c) { raise_to(c.value, 5, std::memory_order_relaxed); }

void add_under_lock(Counter &c) {
    const std::lock_guard<SteppedLock> guard(c.lock);
    add_by_load_and_store(c);
}

TEST(Explorer, OneActorHasOneSchedule) {
    const Explored result = explore<Counter>({"1"}, {add_by_load_and_store});
    EXPECT_EQ(result.schedules, 1u);
    expect_exactly(result, {"1"});
}

// Actors of 2 operations each: 4! / (2! 2!) and 6! / (2! 2! 2!) orders.
TEST(Explorer, RunsEachOrderOnce) {
    const auto add = add_by_load_and_store;
    EXPECT_EQ(explore<Counter>({"1", "2"}, {add, add}).schedules, 6u);
    EXPECT_EQ(explore<Counter>({"1", "2", "3"}, {add, add, add}).schedules, 90u);
}

void expect_outcomes(const Table &all, const Actors<Counter> &actors) {
    expect_exactly(explore<Counter>(all, actors), all);
}

TEST(Explorer, FindsTheLostUpdate) { expect_outcomes({"1", "2"}, {add_by_load_and_store, add_by_load_and_store}); }

TEST(Explorer, EndsAtAForbiddenOutcome) {
    const Explored result = explore<Counter>({"2"}, {add_by_load_and_store, add_by_load_and_store});
    expect_caught(result);
    EXPECT_LT(result.schedules, 6u);
}

// Without preemption two actors run one after the other. One preemption is enough for the lost update.
TEST(Explorer, BoundsPreemptions) {
    const Actors<Counter> actors = {add_by_load_and_store, add_by_load_and_store};
    EXPECT_EQ(explore<Counter>({"2"}, actors, 0).schedules, 2u);
    expect_exactly(explore<Counter>({"2"}, actors, 0), {"2"});
    EXPECT_EQ(explore<Counter>({"1", "2"}, actors, 1).schedules, 4u);
    expect_exactly(explore<Counter>({"1", "2"}, actors, 1), {"1", "2"});
}

TEST(Explorer, ALockExcludes) { expect_outcomes({"2"}, {add_under_lock, add_under_lock}); }

TEST(Explorer, SharedLocksDoNotExcludeEachOther) {
    const auto reader = [](Counter &c) {
        const std::shared_lock<SteppedLock> guard(c.lock);
        add_by_load_and_store(c);
    };
    expect_outcomes({"1", "2"}, {reader, reader});
    expect_outcomes({"2"}, {reader, add_under_lock});
}

TEST(Explorer, FindsTheDeadlock) {
    const auto one_way = [](Counter &c) {
        c.lock.lock();
        c.other.lock();
        c.other.unlock();
        c.lock.unlock();
    };
    const auto other_way = [](Counter &c) {
        c.other.lock();
        c.lock.lock();
        c.lock.unlock();
        c.other.unlock();
    };
    expect_outcomes({"0", "DEADLOCK"}, {one_way, other_way});
}

void add_twice(Counter &c) {
    add_by_load_and_store(c);
    add_by_load_and_store(c);
}

// One addition has two operations. The halted actor makes none, one, or both.
TEST(Explorer, HaltsAnActorAtEachOfItsSteps) {
    const Table all = {"1", "2", "3"};
    const Explored result = explore_halted<Counter>(all, {add_by_load_and_store, add_twice}, 1);
    expect_exactly(result, all);
    EXPECT_GT(result.halted, 0u);
}

TEST(Explorer, OthersWaitForTheHaltedOnesLock) {
    const Table all = {"1", "2", "DEADLOCK"};
    expect_exactly(explore_halted<Counter>(all, {add_under_lock, add_under_lock}, 1), all);
}

TEST(Explorer, FindsTheEndlessLoop) {
    const auto waiter = [](Counter &c) {
        while (c.value.load(std::memory_order_relaxed) == 0) {
        }
    };
    expect_outcomes({"ENDLESS"}, {waiter});
}

TEST(Explorer, SwapsAreWhole) { expect_outcomes({"5"}, {raise_by_swap, raise_by_swap}); }

// ---------------------------------------------------------------------------------------------------------
// take against take. Positions 10, 11, 12 are usable, and two callers try twice each.
//
//   acceptable  each position once, each caller's own in ascending order, and one attempt finds none
//   forbidden   a position twice; 13; none while a position is left

const Table two_takers = {
    "10 11 | 12 none", // aabb: the order in which the attempts took effect
    "10 12 | 11 none", // abab
    "10 none | 11 12", // abba
    "11 12 | 10 none", // baab
    "11 none | 10 12", // baba
    "12 none | 10 11", // bbaa
};

template <typename Word> struct TwoTakers {
    Word word;
    std::vector<Run> runs[2];

    TwoTakers() {
        word.reset(10);
        word.publish(10, 13, 0);
        word.confirm(local, 13);
    }
    template <int self> static void actor(TwoTakers &w) {
        for (int i = 0; i < 2; i++)
            w.runs[self].push_back(w.word.take(0, w.word.usable(local), 1));
    }
    std::string outcome() const {
        return show(runs[0][0]) + " " + show(runs[0][1]) + " | " + show(runs[1][0]) + " " + show(runs[1][1]);
    }
    static Explored run() { return explore<TwoTakers>(two_takers, {actor<0>, actor<1>}); }
};

TEST(TakeAndTake, EachPositionOnce) { expect_exactly(TwoTakers<Word>::run(), two_takers); }
TEST(TakeAndTake, TornSwapMutantIsCaught) { expect_caught(TwoTakers<TornWord>::run()); }

// Checks for room first, and takes afterwards without checking again.
struct ChecksThenTakes : Word {
    Run take(uint64_t floor, uint64_t limit, uint64_t want) {
        return last() + 1 < limit ? Word::take(floor, limit + 100, want) : Run{limit, 0};
    }
};

TEST(TakeAndTake, ChecksThenTakesMutantIsCaught) { expect_caught(TwoTakers<ChecksThenTakes>::run()); }

// Three callers with batches of 2 over the positions 10 .. 16, the first with a floor of 12.
//
//   acceptable  every position at most once, batches whole or cut at the limit, none below a floor; a call that ended
//               before another began has the lower positions (P2)
//   forbidden   anything else

const Table three_takers = {"sound"};

template <typename Word> struct ThreeTakers {
    Word word;
    std::vector<Call> calls;
    bool floor_held = true;

    ThreeTakers() {
        word.reset(10);
        word.publish(10, 17, 0);
        word.confirm(local, 17);
    }
    static void with_floor(ThreeTakers &w) {
        w.calls.push_back(timed_take(w.word, 12, 17, 2));
        w.floor_held = w.calls.back().run.first >= 12;
    }
    static void twice(ThreeTakers &w) {
        for (int i = 0; i < 2; i++) {
            const Call call = timed_take(w.word, 0, 17, 2);
            w.calls.push_back(call);
        }
    }
    bool ordered() const {
        for (const Call &a : calls)
            for (const Call &b : calls)
                if (a.ended < b.began && a.run.first + a.run.count > b.run.first)
                    return false;
        return true;
    }
    bool distinct() const {
        std::set<uint64_t> seen;
        for (const Call &call : calls)
            for (uint64_t i = 0; i < call.run.count; i++)
                if (!seen.insert(call.run.first + i).second)
                    return false;
        return true;
    }
    std::string outcome() const {
        if (!distinct())
            return "a position twice";
        if (!ordered())
            return "out of order";
        return floor_held ? "sound" : "below the floor";
    }
    static Explored run() { return explore<ThreeTakers>(three_takers, {with_floor, twice, twice}); }
};

TEST(TakeAndTake, ThreeCallersInOrder) { expect_exactly(ThreeTakers<Word>::run(), three_takers); }
TEST(TakeAndTake, ThreeCallersTornSwapMutantIsCaught) { expect_caught(ThreeTakers<TornWord>::run()); }

struct IgnoresFloor : Word {
    Run take(uint64_t, uint64_t limit, uint64_t want) { return Word::take(0, limit, want); }
};

TEST(TakeAndTake, IgnoresFloorMutantIsCaught) { expect_caught(ThreeTakers<IgnoresFloor>::run()); }

// ---------------------------------------------------------------------------------------------------------
// take against publish with a gap. Positions 10 and 11 are usable; a lease of 20 .. 23 is published and
// confirmed by a third actor. The caller asks for 8 at once.
//
//   acceptable  what is left of the old lease, or the new lease, or none while the new one is not usable
//   forbidden   any of 12 .. 19, which no record covers; a batch that spans the gap

const Table take_and_gap = {
    "10..11", // before the word is raised
    "none",   // the word is raised, the new lease is not usable yet
    "20..23", // after the new lease is confirmed
};

const Table take_and_gap_twice = {
    "10..11 none",   // the second call before the confirmation
    "10..11 20..23", // and after it
    "none none",     // both between raising and confirming
    "none 20..23",   // one there, one after the confirmation
    "20..23 none",   // the first call took the whole new lease
};

template <typename Word> struct TakeAndGap {
    Word word;
    std::vector<Run> runs;

    TakeAndGap() {
        word.reset(10);
        word.publish(10, 12, 5);
        word.confirm(local, 12);
    }
    static void publisher(TakeAndGap &w) { w.word.publish(20, 24, 7); }
    static void confirmer(TakeAndGap &w) { w.word.confirm(local, w.word.written_range().until); }
    static void publisher_and_confirmer(TakeAndGap &w) {
        publisher(w);
        confirmer(w);
    }
    static void taker(TakeAndGap &w) {
        const uint64_t limit = w.word.usable(local);
        w.runs.push_back(w.word.take(0, limit, 8));
    }
    static void taker_twice(TakeAndGap &w) {
        taker(w);
        taker(w);
    }
    std::string outcome() const {
        std::string all = show(runs[0]);
        for (size_t i = 1; i < runs.size(); i++)
            all += " " + show(runs[i]);
        return all;
    }
    static Explored run() { return explore<TakeAndGap>(take_and_gap, {publisher, confirmer, taker}); }
    static Explored run_twice() {
        return explore<TakeAndGap>(take_and_gap_twice, {publisher_and_confirmer, taker_twice});
    }
};

struct IgnoresGap : Word {
    void publish(uint64_t, uint64_t until, uint64_t lsn) { Word::publish(0, until, lsn); }
};

struct RaisesAfterPublishing : Word {
    void publish(uint64_t from, uint64_t until, uint64_t lsn) {
        const bool gap = from > written_range().until;
        Word::publish(0, until, lsn);
        if (gap)
            discard_below(from);
    }
};

TEST(TakeAndPublish, NothingFromTheGap) { expect_exactly(TakeAndGap<Word>::run(), take_and_gap); }
TEST(TakeAndPublish, NothingFromTheGapInTwoCalls) { expect_exactly(TakeAndGap<Word>::run_twice(), take_and_gap_twice); }
TEST(TakeAndPublish, IgnoresGapMutantIsCaught) { expect_caught(TakeAndGap<IgnoresGap>::run()); }
TEST(TakeAndPublish, RaisesAfterPublishingMutantIsCaught) { expect_caught(TakeAndGap<RaisesAfterPublishing>::run()); }
TEST(TakeAndPublish, ChecksThenTakesMutantIsCaught) { expect_caught(TakeAndGap<ChecksThenTakes>::run()); }

// ---------------------------------------------------------------------------------------------------------
// take against discard_below. Positions 10 .. 15 are usable, and everything below `next` is discarded.
//
//   acceptable  positions below `next` for calls that began before the discard ended
//   forbidden   such positions for later calls; a position twice; `written` below what it was or below `next`

const Table discard_part = {
    "10 11 written 16", // both calls before it, or the second overlaps it
    "10 14 written 16", // between them
    "14 15 written 16", // before both
};

const Table discard_all = {
    "10 11 written 20",
    "10 none written 20",
    "none none written 20",
};

const Table discard_below_a_batch = {
    "10..15 none written 16", // the batch is above `next` before the discard reads the word: nothing to raise
    "14..15 none written 16",
};

template <typename Word, uint64_t next, uint64_t want> struct TakeAndDiscard {
    Word word;
    std::vector<Call> calls;
    uint64_t discarded = UINT64_MAX;

    TakeAndDiscard() {
        word.reset(10);
        word.publish(10, 16, 5);
        word.confirm(local, 16);
    }
    static void giver(TakeAndDiscard &w) {
        w.word.discard_below(next);
        w.discarded = Explorer::active->last_step();
    }
    static void taker(TakeAndDiscard &w) {
        for (int i = 0; i < 2; i++) {
            const uint64_t limit = w.word.usable(local);
            const Call call = timed_take(w.word, 0, limit, want);
            w.calls.push_back(call);
        }
    }
    bool late(const Call &call) const { return call.run.count > 0 && call.run.first < next && call.began > discarded; }
    std::string outcome() const {
        if (late(calls[0]) || late(calls[1]))
            return "a position that was given up";
        return show(calls[0].run) + " " + show(calls[1].run) + " written " + std::to_string(word.written_range().until);
    }
    static Explored run(const Table &acceptable) { return explore<TakeAndDiscard>(acceptable, {giver, taker}); }
};

TEST(TakeAndDiscard, PartOfTheLease) { expect_exactly(TakeAndDiscard<Word, 14, 1>::run(discard_part), discard_part); }
TEST(TakeAndDiscard, MoreThanTheLease) { expect_exactly(TakeAndDiscard<Word, 20, 1>::run(discard_all), discard_all); }
TEST(TakeAndDiscard, NeverTakesTheWordBack) {
    expect_exactly(TakeAndDiscard<Word, 14, 6>::run(discard_below_a_batch), discard_below_a_batch);
}
TEST(TakeAndDiscard, TornSwapMutantIsCaught) {
    expect_caught(TakeAndDiscard<TornWord, 14, 6>::run(discard_below_a_batch));
}

struct DiscardsNothing : Word {
    void discard_below(uint64_t) {}
};

TEST(TakeAndDiscard, DiscardsNothingMutantIsCaught) {
    expect_caught(TakeAndDiscard<DiscardsNothing, 14, 1>::run(discard_part));
}

// ---------------------------------------------------------------------------------------------------------
// The backup worker's word: take against take, as above. Positions 10, 11, 12 are usable in the primary's word.
//
//   acceptable  as for the primary's word
//   forbidden   a position twice; 13; none while a position is left

template <typename Word> struct TwoBackupTakers {
    Word word;
    std::vector<Run> runs[2];

    TwoBackupTakers() { word.reset(10); }
    template <int self> static void actor(TwoBackupTakers &w) {
        for (int i = 0; i < 2; i++)
            w.runs[self].push_back(w.word.take(0, 13, 1));
    }
    std::string outcome() const {
        return show(runs[0][0]) + " " + show(runs[0][1]) + " | " + show(runs[1][0]) + " " + show(runs[1][1]);
    }
    static Explored run() { return explore<TwoBackupTakers>(two_takers, {actor<0>, actor<1>}); }
};

using Backup = BackupAllocator<Stepped>;
using TornBackup = BackupAllocator<Torn>;

struct BackupChecksThenTakes : Backup {
    Run take(uint64_t floor, uint64_t limit, uint64_t want) {
        return last() + 1 < limit ? Backup::take(floor, limit + 100, want) : Run{limit, 0};
    }
};

TEST(BackupTakeAndTake, EachPositionOnce) { expect_exactly(TwoBackupTakers<Backup>::run(), two_takers); }
TEST(BackupTakeAndTake, TornSwapMutantIsCaught) { expect_caught(TwoBackupTakers<TornBackup>::run()); }
TEST(BackupTakeAndTake, ChecksThenTakesMutantIsCaught) { expect_caught(TwoBackupTakers<BackupChecksThenTakes>::run()); }

// take against discard_below. The lease ends at 16, everything below `next` is discarded, and the word never falls
// back.
//
//   acceptable  positions below `next` for calls that began before the discard ended, nothing below it afterwards
//   forbidden   such positions for later calls; a position twice; a next position below `next`

const Table backup_discard_part = {
    "10 11 next 14", // both calls before it, or the second overlaps it
    "10 14 next 15", // between them
    "14 15 next 16", // before both
};

const Table backup_discard_all = {
    "10 11 next 20",
    "10 none next 20",
    "none none next 20",
};

const Table backup_discard_below_a_batch = {
    "10..15 none next 16", // the batch is above `next` before the discard reads the word: nothing to raise
    "14..15 none next 16",
};

template <typename Word, uint64_t next, uint64_t want> struct BackupTakeAndDiscard {
    Word word;
    std::vector<Call> calls;
    uint64_t discarded = UINT64_MAX;

    BackupTakeAndDiscard() { word.reset(10); }
    static void giver(BackupTakeAndDiscard &w) {
        w.word.discard_below(next);
        w.discarded = Explorer::active->last_step();
    }
    static void taker(BackupTakeAndDiscard &w) {
        for (int i = 0; i < 2; i++) {
            const Call call = timed_take(w.word, 0, 16, want);
            w.calls.push_back(call);
        }
    }
    bool late(const Call &call) const { return call.run.count > 0 && call.run.first < next && call.began > discarded; }
    std::string outcome() const {
        if (late(calls[0]) || late(calls[1]))
            return "a position that was given up";
        return show(calls[0].run) + " " + show(calls[1].run) + " next " + std::to_string(word.last() + 1);
    }
    static Explored run(const Table &acceptable) { return explore<BackupTakeAndDiscard>(acceptable, {giver, taker}); }
};

struct BackupDiscardsNothing : Backup {
    void discard_below(uint64_t) {}
};

// Stores `next` instead of raising the word to it.
template <template <typename> class Atom> struct BackupFallsBack : BackupAllocator<Atom> {
    void discard_below(uint64_t next) { BackupAllocator<Atom>::reset(next); }
};

TEST(BackupTakeAndDiscard, PartOfTheLease) {
    expect_exactly(BackupTakeAndDiscard<Backup, 14, 1>::run(backup_discard_part), backup_discard_part);
}
TEST(BackupTakeAndDiscard, MoreThanTheLease) {
    expect_exactly(BackupTakeAndDiscard<Backup, 20, 1>::run(backup_discard_all), backup_discard_all);
}
TEST(BackupTakeAndDiscard, NeverTakesTheWordBack) {
    expect_exactly(BackupTakeAndDiscard<Backup, 14, 6>::run(backup_discard_below_a_batch),
                   backup_discard_below_a_batch);
}
TEST(BackupTakeAndDiscard, TornSwapMutantIsCaught) {
    expect_caught(BackupTakeAndDiscard<TornBackup, 14, 6>::run(backup_discard_below_a_batch));
}
TEST(BackupTakeAndDiscard, FallsBackMutantIsCaught) {
    expect_caught(BackupTakeAndDiscard<BackupFallsBack<Stepped>, 14, 6>::run(backup_discard_below_a_batch));
}
TEST(BackupTakeAndDiscard, DiscardsNothingMutantIsCaught) {
    expect_caught(BackupTakeAndDiscard<BackupDiscardsNothing, 14, 1>::run(backup_discard_part));
}

// The two words under one lease, which is discarded while a caller takes from both. The worker tells their ids apart,
// so each word may hand out the same position once.
//
//   acceptable  each word's own positions, below 14 only for calls that began before the word's discard ended
//   forbidden   a position of the old lease from the backup word for a call that began after both were discarded

const Table both_words = {
    "10 10", // before
    "10 14", // the primary before, the backup after
    "14 10", // between the two
    "14 14", // after
};

template <typename Primary, typename Second> struct BothWords {
    Primary primary;
    Second backup;
    Run runs[2]{};
    bool late = false;
    uint64_t discarded = UINT64_MAX;

    BothWords() {
        primary.reset(10);
        primary.publish(10, 16, 5);
        primary.confirm(local, 16);
        backup.reset(10);
    }
    static void giver(BothWords &w) {
        w.primary.discard_below(14);
        w.backup.discard_below(14);
        w.discarded = Explorer::active->last_step();
    }
    static void taker(BothWords &w) {
        const uint64_t limit = w.primary.usable(local);
        w.runs[0] = w.primary.take(0, limit, 1);
        const Call call = timed_take(w.backup, 0, limit, 1);
        w.runs[1] = call.run;
        w.late = call.run.first < 14 && call.began > w.discarded;
    }
    std::string outcome() const { return late ? "a position that was given up" : show(runs[0]) + " " + show(runs[1]); }
    static Explored run() { return explore<BothWords>(both_words, {giver, taker}); }
};

TEST(BothWords, AreGivenUpTogether) { expect_exactly(BothWords<Word, Backup>::run(), both_words); }
TEST(BothWords, ForgetsTheBackupMutantIsCaught) { expect_caught(BothWords<Word, BackupDiscardsNothing>::run()); }

// ---------------------------------------------------------------------------------------------------------
// discard_below against publish: both under the page's lock, because both read `written` before they move it.
//
//   acceptable  the lease above the discard, or the discard above the lease; `written` is the higher of the two
//   forbidden   `written` 20 although a lease up to 24 was published

const Table discard_and_publish = {"24"};

template <bool locked> struct DiscardAndPublish {
    Word word;
    SteppedLock page;

    DiscardAndPublish() { word.reset(10); }
    std::unique_lock<SteppedLock> lock_page() {
        return locked ? std::unique_lock<SteppedLock>(page) : std::unique_lock<SteppedLock>();
    }
    static void giver(DiscardAndPublish &w) {
        const std::unique_lock<SteppedLock> guard = w.lock_page();
        w.word.discard_below(20);
    }
    static void publisher(DiscardAndPublish &w) {
        const std::unique_lock<SteppedLock> guard = w.lock_page();
        w.word.publish(10, 24, 5);
    }
    std::string outcome() const { return std::to_string(word.written_range().until); }
    static Explored run() { return explore<DiscardAndPublish>(discard_and_publish, {giver, publisher}); }
};

TEST(DiscardAndPublish, UnderTheLock) { expect_exactly(DiscardAndPublish<true>::run(), discard_and_publish); }
TEST(DiscardAndPublish, WithoutTheLockMutantIsCaught) { expect_caught(DiscardAndPublish<false>::run()); }

// ---------------------------------------------------------------------------------------------------------
// confirm against take, through usable(). A lease of 10 .. 15 is written. One actor makes its first two ticks durable,
// another all of it, as when both have read written_range() at different times.
//
//   acceptable  positions below what is durable
//   forbidden   a position that is not durable yet; a bound that falls back; a level that was not confirmed

const Table confirm_and_take = {
    "none usable 16, elsewhere 10",
    "10..11 usable 16, elsewhere 10",
    "10..15 usable 16, elsewhere 10",
};

template <typename Word> struct ConfirmAndTake {
    Word word;
    Stepped<uint64_t> durable;
    Run taken{};
    bool was_durable = true;

    ConfirmAndTake() {
        word.reset(10);
        word.publish(10, 16, 5);
    }
    template <uint64_t until> static void confirmer(ConfirmAndTake &w) {
        raise_to(w.durable, until, std::memory_order_relaxed);
        w.word.confirm(local, until);
    }
    static void taker(ConfirmAndTake &w) {
        const uint64_t limit = w.word.usable(local);
        w.taken = w.word.take(0, limit, 8);
        const uint64_t durable = w.durable.load(std::memory_order_relaxed);
        w.was_durable = w.taken.count == 0 || w.taken.first + w.taken.count <= durable;
    }
    std::string outcome() const {
        return show(taken) + (was_durable ? "" : " not durable") + " usable " + std::to_string(word.usable(local)) +
               ", elsewhere " + std::to_string(word.usable(Durability::remote_flushed));
    }
    static Explored run() { return explore<ConfirmAndTake>(confirm_and_take, {confirmer<12>, confirmer<16>, taker}); }
};

TEST(ConfirmAndTake, OnlyWhatIsDurable) { expect_exactly(ConfirmAndTake<Word>::run(), confirm_and_take); }
TEST(ConfirmAndTake, TornSwapMutantIsCaught) { expect_caught(ConfirmAndTake<TornWord>::run()); }

// Confirms what is written instead of what the caller has made durable.
struct ConfirmsAllWritten : Word {
    void confirm(Durability level, uint64_t) { Word::confirm(level, written_range().until); }
};

TEST(ConfirmAndTake, ConfirmsAllWrittenMutantIsCaught) { expect_caught(ConfirmAndTake<ConfirmsAllWritten>::run()); }

// ---------------------------------------------------------------------------------------------------------
// publish against written_range. The records end at log positions 5 and 7 and cover positions up to 12 and 14.
//
//   acceptable  a log position as new as the bound needs, or newer
//   forbidden   12 with less than 5, 14 with less than 7: the caller would flush too little

const Table publish_and_read = {
    "10 needs 0",
    "10 needs 5", // the log position is stored first
    "10 needs 7", "12 needs 5", "12 needs 7", "14 needs 7",
};

template <typename Word> struct PublishAndRead {
    Word word;
    WrittenRange read{};

    PublishAndRead() { word.reset(10); }
    static void publisher(PublishAndRead &w) {
        w.word.publish(10, 12, 5);
        w.word.publish(12, 14, 7);
    }
    static void reader(PublishAndRead &w) { w.read = w.word.written_range(); }
    std::string outcome() const { return std::to_string(read.until) + " needs " + std::to_string(read.lsn); }
    static Explored run() { return explore<PublishAndRead>(publish_and_read, {publisher, reader}); }
};

struct StoresLsnLast : Word {
    void publish(uint64_t from, uint64_t until, uint64_t lsn) {
        Word::publish(from, until, 0);
        Word::publish(from, until, lsn);
    }
};

struct ReadsLsnFirst : Word {
    WrittenRange written_range() const {
        const uint64_t lsn = Word::written_range().lsn;
        return {Word::written_range().until, lsn};
    }
};

TEST(PublishAndRead, TheLogPositionCoversTheBound) { expect_exactly(PublishAndRead<Word>::run(), publish_and_read); }
TEST(PublishAndRead, StoresLsnLastMutantIsCaught) { expect_caught(PublishAndRead<StoresLsnLast>::run()); }
TEST(PublishAndRead, ReadsLsnFirstMutantIsCaught) { expect_caught(PublishAndRead<ReadsLsnFirst>::run()); }

// ---------------------------------------------------------------------------------------------------------
// Whole calls on a generator's word. Too long for all interleavings: preemptions are bounded.
//
//   acceptable  each caller has one of the first positions of the first lease
//   forbidden   a position twice, or not durable, or of a lease that no caller needed

const Table whole_calls = {"10 11, records 1", "11 10, records 1"};

template <typename Word> struct WholeCalls : LeasedTicks<Word, Stepped, SteppedLock> {
    uint64_t positions[2] = {0, 0};
    bool was_durable = true;

    template <int self> static void caller(WholeCalls &w) {
        const uint64_t position = w.draw([] {});
        w.positions[self] = position;
        w.was_durable = w.was_durable && w.knows(WholeCalls::record_of(position));
    }
    std::string outcome() const {
        return std::to_string(positions[0]) + " " + std::to_string(positions[1]) + (was_durable ? "" : " not durable") +
               ", records " + std::to_string(this->log_end);
    }
    static Explored run() { return explore<WholeCalls>(whole_calls, {caller<0>, caller<1>}, 4); }
};

TEST(WholeCalls, EachPositionOnceAndDurable) { expect_exactly(WholeCalls<Word>::run(), whole_calls); }
TEST(WholeCalls, TornSwapMutantIsCaught) { expect_caught(WholeCalls<TornWord>::run()); }
TEST(WholeCalls, StoresLsnLastMutantIsCaught) { expect_caught(WholeCalls<StoresLsnLast>::run()); }

// ---------------------------------------------------------------------------------------------------------
// A segment's word.

template <typename Word> struct Segment : Ranges<Word, Stepped, SteppedLock> {
    bool was_durable = true;

    Segment() : Ranges<Word, Stepped, SteppedLock>(true) {}
    int64_t draw() {
        return Ranges<Word, Stepped, SteppedLock>::draw([] {}, &was_durable);
    }
    std::string suffix() const { return was_durable ? "" : " not durable"; }
};

using PlainSegment = SegmentWord<Stepped>;
using TornSegment = SegmentWord<Torn>;

// Two callers, the last value of the first range, and a successor being published.
//
//   acceptable  the values in order; none for a caller that came before the successor
//   forbidden   a value twice; 120, which is beyond the range; 200 before 110; 200 before its record is durable

const Table segment_takers = {"110 200", "200 110", "110 0", "0 110"};

template <typename Word> struct SegmentTakers : Segment<Word> {
    int64_t values[2] = {0, 0};

    SegmentTakers() { this->word.take(2, 1); }
    template <int self> static void caller(SegmentTakers &w) { w.values[self] = w.draw(); }
    static void publisher(SegmentTakers &w) { w.publish_successor(); }
    std::string outcome() const { return std::to_string(values[0]) + " " + std::to_string(values[1]) + this->suffix(); }
    static Explored run() { return explore<SegmentTakers>(segment_takers, {caller<0>, caller<1>, publisher}); }
};

// Finds the ordinal in the range first, and takes afterwards without checking again.
struct ChecksThenTakesSegment : PlainSegment {
    Run take(uint64_t limit, uint64_t want) {
        return next() < limit ? PlainSegment::take(limit + 100, want) : Run{limit, 0};
    }
};

// Callers with a window on the rest of the first range, the ordinal 1.
template <typename Word> struct TakesByWindow : Word {
    Run take(uint64_t limit, uint64_t want) {
        int64_t ordinal = 0;
        Window<Stepped> window = {Word::word(), 1, 1, 2, 0, 1};
        return limit == 2 && window.take(&ordinal) ? Run{static_cast<uint64_t>(ordinal), 1} : Word::take(limit, want);
    }
};

TEST(SegmentTakeAndTake, EachValueOnceByWindows) {
    expect_exactly(SegmentTakers<TakesByWindow<PlainSegment>>::run(), segment_takers);
}
TEST(SegmentTakeAndTake, EachValueOnce) { expect_exactly(SegmentTakers<PlainSegment>::run(), segment_takers); }
TEST(SegmentTakeAndTake, TornSwapMutantIsCaught) { expect_caught(SegmentTakers<TornSegment>::run()); }
TEST(SegmentTakeAndTake, ChecksThenTakesMutantIsCaught) { expect_caught(SegmentTakers<ChecksThenTakesSegment>::run()); }

// One caller twice, against a successor being published and a discard, in either order.
//
//   acceptable  the values in order; after the discard only those of a range published later; none if there is no such
//               range
//   forbidden   a discarded value for a call that began after the discard; a value twice

const Table segment_discard = {
    "100 110", // both before the discard
    "100 200", // the successor published after it
    "100 0",   // between the calls: nothing left
    "200 210", // the discard, the successor, both calls
    "0 200",   // the discard, the first call, the successor, the second
    "0 0",     // everything discarded before both
};

template <typename Word> struct SegmentDiscard : Segment<Word> {
    int64_t values[2] = {0, 0};
    uint64_t discarded = UINT64_MAX;
    int64_t first_after = 0;
    bool late = false;

    static void caller(SegmentDiscard &w) {
        Explorer &explorer = *Explorer::active;
        for (int64_t &value : w.values) {
            explorer.begin();
            value = w.draw();
            w.late = w.late || (value != 0 && value < w.first_after && explorer.first_step() > w.discarded);
        }
    }
    static void publisher(SegmentDiscard &w) { w.publish_successor(); }
    static void giver(SegmentDiscard &w) {
        const std::lock_guard<SteppedLock> guard(w.page);
        w.word.discard();
        w.first_after = w.next_value;
        w.discarded = Explorer::active->last_step();
    }
    std::string outcome() const {
        return std::to_string(values[0]) + " " + std::to_string(values[1]) + (late ? " given up" : "") + this->suffix();
    }
    static Explored run() { return explore<SegmentDiscard>(segment_discard, {caller, publisher, giver}); }
};

struct DiscardsNothingSegment : PlainSegment {
    void discard() {}
};

TEST(SegmentTakeAndDiscard, NothingThatWasGivenUp) {
    expect_exactly(SegmentDiscard<PlainSegment>::run(), segment_discard);
}
TEST(SegmentTakeAndDiscard, DiscardsNothingMutantIsCaught) {
    expect_caught(SegmentDiscard<DiscardsNothingSegment>::run());
}

// A caller twice against two publications: the second has no room while the first range is in use.
//
//   acceptable  the values in order
//   forbidden   none, or 200 first: a range in use was overwritten

const Table segment_room = {"100 110"};

template <typename Word> struct SegmentRoom : Segment<Word> {
    int64_t values[2] = {0, 0};

    static void caller(SegmentRoom &w) {
        for (int64_t &value : w.values)
            value = w.draw();
    }
    static void publisher(SegmentRoom &w) {
        w.publish_successor();
        w.publish_successor();
    }
    std::string outcome() const { return std::to_string(values[0]) + " " + std::to_string(values[1]) + this->suffix(); }
    static Explored run() { return explore<SegmentRoom>(segment_room, {caller, publisher}); }
};

struct AlwaysHasRoom : PlainSegment {
    bool room() const { return true; }
};

TEST(SegmentPublish, KeepsTheRangeInUse) { expect_exactly(SegmentRoom<PlainSegment>::run(), segment_room); }
TEST(SegmentPublish, AlwaysHasRoomMutantIsCaught) { expect_caught(SegmentRoom<AlwaysHasRoom>::run()); }

} // namespace
