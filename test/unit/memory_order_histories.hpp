// Histories: what a few processes do with one class of src/core, on the atomics of weak_memory.hpp.
//
// Each is a world with its actors, and the table of its acceptable outcomes; the forbidden ones are named above it. The
// table lists no outcome that never comes.
#pragma once

#include <algorithm>
#include <mutex>
#include <set>
#include <shared_mutex>
#include <string>
#include <vector>

#include "position_allocator.hpp"
#include "range.hpp"
#include "weak_memory.hpp"
#include "window.hpp"

namespace uidgen::test {

using namespace core;

constexpr auto relaxed = std::memory_order_relaxed;
constexpr auto acquire = std::memory_order_acquire;
constexpr auto release = std::memory_order_release;

// ---------------------------------------------------------------------------------------------------------
// The generator's word.
//
// `flushed` stands for all that a process knows of a record that it has made durable. Another process that uses the
// record's positions or values must know it too. `start_over` is called before each try of a draw. `told` stands for what
// sessions say to each other: what was drawn or discarded before a call began.

constexpr Durability local = Durability::local;

inline std::string show(const Run &run) {
    if (run.count == 0)
        return "none";
    const std::string first = std::to_string(run.first);
    return run.count == 1 ? first : first + ".." + std::to_string(run.first + run.count - 1);
}

inline void know(Weak<uint64_t> *flushed, uint64_t lsn) {
    uint64_t seen = flushed->load(relaxed);
    while (seen < lsn && !flushed->compare_exchange_strong(seen, lsn, relaxed, relaxed)) {
    }
}

struct WeakTicks {
    PositionAllocator<Weak> word;
    Weak<uint64_t> flushed;

    void confirm() {
        const WrittenRange written = word.written_range();
        know(&flushed, written.lsn);
        word.confirm(local, written.until);
    }
    Run take(uint64_t want) {
        const uint64_t limit = word.usable(local);
        return word.take(0, limit, want);
    }
    bool knows(uint64_t lsn) { return flushed.load(relaxed) >= lsn; }
};

// Whole calls: take, else confirm, else reserve under the page's lock. Nothing is leased at the start, and a lease has
// two positions.
struct LeasedTicks : WeakTicks {
    WeakLock page;
    uint64_t log_end = 0; // under the page's lock

    LeasedTicks() { word.reset(10); }
    void reserve(uint64_t seen) {
        const std::lock_guard<WeakLock> guard(page);
        if (word.written_range().until == seen)
            word.publish(seen, seen + 2, ++log_end);
    }
    template <typename StartOver> uint64_t draw(StartOver start_over) {
        for (;;) {
            start_over();
            const Run run = take(1);
            if (run.count > 0)
                return run.first;
            const uint64_t last = word.last();
            const uint64_t written = word.written_range().until;
            if (last + 1 < written)
                confirm();
            else
                reserve(written);
        }
    }
    // The record of the lease that a position is of.
    static uint64_t record_of(uint64_t position) { return (position - 10) / 2 + 1; }
};

// A lease of 10 .. 15 is written. One process makes its first two ticks durable, another all of it.
//
//   forbidden   a position that is not known to be durable; a bound that falls back; another level confirmed
struct ConfirmAndTake : WeakTicks {
    Run taken{};
    bool unknown = false;

    ConfirmAndTake() {
        word.reset(10);
        word.publish(10, 16, 5);
    }
    template <uint64_t until> static void confirmer(ConfirmAndTake &w) {
        know(&w.flushed, until);
        w.word.confirm(local, until);
    }
    static void taker(ConfirmAndTake &w) {
        w.taken = w.take(8);
        w.unknown = w.taken.count > 0 && !w.knows(w.taken.first + w.taken.count);
    }
    std::string outcome() const {
        return show(taken) + (unknown ? " UNKNOWN" : "") + " usable " + std::to_string(word.usable(local)) +
               " elsewhere " + std::to_string(word.usable(Durability::on_standby));
    }
    static Table outcomes() {
        return {"none usable 16 elsewhere 10", "10..11 usable 16 elsewhere 10", "10..15 usable 16 elsewhere 10"};
    }
    static Actors<ConfirmAndTake> actors() { return {confirmer<12>, confirmer<16>, taker}; }
};

// Leases of 10 .. 15 and 20 .. 23, with a gap between them that is discarded. Their records end at 5 and 7.
//
//   forbidden   a bound whose record ends above the log position that was read with it
struct PublishAndRead {
    PositionAllocator<Weak> word;
    WrittenRange read{};

    PublishAndRead() { word.reset(10); }
    static void publisher(PublishAndRead &w) {
        w.word.publish(10, 16, 5);
        w.word.discard_below(20);
        w.word.publish(20, 24, 7);
    }
    static void reader(PublishAndRead &w) { w.read = w.word.written_range(); }
    std::string outcome() const { return std::to_string(read.until) + " needs " + std::to_string(read.lsn); }
    static Table outcomes() {
        return {"10 needs 0", "10 needs 5", "10 needs 7", "16 needs 5",
                "16 needs 7", "20 needs 5", "20 needs 7", "24 needs 7"};
    }
    static Actors<PublishAndRead> actors() { return {publisher, reader}; }
};

// Everything below 14 or 20 is discarded from a lease of 10 .. 15, beside calls and a confirmation. The process that
// discards goes on with a lease of its own.
//
//   forbidden   16 .. 19, which no record covers; 20 and above without its record; a position twice; a bound that
//               falls back; a position below `next` for a call that began after the discard
template <uint64_t next> struct TakeAndDiscard : WeakTicks {
    Weak<uint64_t> told;
    Run taken[2] = {};
    bool unknown = false;
    bool given_up = false;

    TakeAndDiscard() {
        word.reset(10);
        word.publish(10, 16, 0);
        word.confirm(local, 12);
    }
    static void discarder(TakeAndDiscard &w) {
        w.word.discard_below(next);
        w.told.store(1, release);
        w.word.publish(20, 22, 7);
    }
    static void confirmer(TakeAndDiscard &w) { w.confirm(); }
    static void taker(TakeAndDiscard &w) {
        for (Run &run : w.taken) {
            const bool late = w.told.load(acquire) != 0;
            run = w.take(3);
            w.given_up = w.given_up || (late && run.count > 0 && run.first < next);
            w.unknown = w.unknown || (run.count > 0 && run.first >= 20 && !w.knows(7));
        }
    }
    bool sound(const Run &run) const {
        return run.count == 0 || run.first + run.count <= 16 || (run.first >= 20 && run.first + run.count <= 22);
    }
    std::string outcome() const {
        const bool twice = taken[0].count > 0 && taken[1].count > 0 && taken[1].first < taken[0].first + taken[0].count;
        return std::string(sound(taken[0]) && sound(taken[1]) && !twice ? "sound" : "UNSOUND") +
               (unknown ? " UNKNOWN" : "") + (given_up ? " GIVEN UP" : "") + ", written " +
               std::to_string(word.written_range().until);
    }
    static Table outcomes() { return {"sound, written 22"}; }
    static Actors<TakeAndDiscard> actors() { return {discarder, confirmer, taker}; }
};

// Two sessions draw two positions each: by windows, and by calls when these are used up. The lease of 10 .. 13 is
// confirmed meanwhile.
//
//   forbidden   a position twice; one that is not known to be durable
struct DrawByWindows : WeakTicks {
    struct Session {
        Window<Weak> window = {nullptr, 0, 0, 0, 0, 0};
        std::vector<uint64_t> positions;
        bool unknown = false;
    };
    Session sessions[2];

    DrawByWindows() {
        word.reset(10);
        word.publish(10, 14, 5);
    }
    void draw(Session &session) {
        int64_t position = 0;
        if (session.window.take(&position)) {
            session.positions.push_back(static_cast<uint64_t>(position));
            return;
        }
        const uint64_t limit = word.usable(local);
        const Run run = word.take(0, limit, 1);
        if (run.count == 0)
            return;
        session.positions.push_back(run.first);
        session.window = {word.word(), run.first, run.first, limit - 1, 1, 1};
    }
    template <int self> static void drawer(DrawByWindows &w) {
        w.draw(w.sessions[self]);
        w.draw(w.sessions[self]);
        w.sessions[self].unknown = !w.sessions[self].positions.empty() && !w.knows(5);
    }
    static void confirmer(DrawByWindows &w) { w.confirm(); }
    std::string outcome() const {
        std::multiset<uint64_t> all;
        for (const Session &session : sessions)
            all.insert(session.positions.begin(), session.positions.end());
        const std::set<uint64_t> once(all.begin(), all.end());
        const bool in_lease = all.empty() || (*all.begin() >= 10 && *all.rbegin() < 14);
        return std::to_string(all.size()) + (once.size() < all.size() ? " TWICE" : "") +
               (sessions[0].unknown || sessions[1].unknown ? " UNKNOWN" : "") + (in_lease ? "" : " OUTSIDE");
    }
    static Table outcomes() { return {"0", "1", "2", "3", "4"}; }
    static Actors<DrawByWindows> actors() { return {drawer<0>, drawer<1>, confirmer}; }
};

// The backup worker's word: two callers and a discard, under the primary's bound, which is confirmed meanwhile.
//
//   forbidden   a position twice; one that is not known to be durable; one below 13 for a call that began after the
//               discard; a word that falls back
struct BackupDraws : WeakTicks {
    PositionAllocator<Weak> backup;
    Weak<uint64_t> told;
    Run taken[2] = {};
    bool unknown[2] = {false, false};
    bool given_up = false;

    BackupDraws() {
        word.reset(10);
        backup.reset(10);
        word.publish(10, 16, 5);
    }
    template <int self> static void taker(BackupDraws &w) {
        const uint64_t limit = w.word.usable(local);
        const bool late = self == 0 && w.told.load(acquire) != 0;
        w.taken[self] = w.backup.take(0, limit, 2);
        w.given_up = w.given_up || (late && w.taken[self].count > 0 && w.taken[self].first < 13);
        w.unknown[self] = w.taken[self].count > 0 && !w.knows(5);
    }
    static void confirmer(BackupDraws &w) { w.confirm(); }
    static void discarder(BackupDraws &w) {
        w.backup.discard_below(13);
        w.told.store(1, release);
    }
    std::string outcome() const {
        const bool both = taken[0].count > 0 && taken[1].count > 0;
        const bool twice = both && taken[0].first < taken[1].first + taken[1].count &&
                           taken[1].first < taken[0].first + taken[0].count;
        uint64_t next = 13;
        for (const Run &run : taken)
            next = std::max(next, run.count > 0 ? run.first + run.count : 0);
        return std::string(twice ? "TWICE" : "sound") + (unknown[0] || unknown[1] ? " UNKNOWN" : "") +
               (given_up ? " GIVEN UP" : "") + (backup.last() + 1 < next ? " BELOW" : "");
    }
    static Table outcomes() { return {"sound"}; }
    static Actors<BackupDraws> actors() { return {taker<0>, taker<1>, confirmer, discarder}; }
};

// Three callers, the first with a floor of 12. Each says what it has drawn, and hears the others before its call.
//
//   acceptable  positions at most once, and above those that were drawn before the call began (P2)
//   forbidden   a position twice, out of order, below the floor, or beyond the lease
struct CallersInOrder : WeakTicks {
    Weak<uint64_t> told[3];
    Run runs[3] = {};
    bool in_order = true;

    CallersInOrder() {
        word.reset(10);
        word.publish(10, 15, 0);
        word.confirm(local, 15);
    }
    template <size_t self> static void caller(CallersInOrder &w) {
        uint64_t heard = 0;
        for (size_t i = 0; i < 3; i++)
            heard = i == self ? heard : std::max(heard, w.told[i].load(acquire));
        const Run run = w.word.take(self == 0 ? 12 : 0, 15, 2);
        w.runs[self] = run;
        w.in_order = w.in_order && (run.count == 0 || run.first > heard);
        w.told[self].store(run.first + run.count - 1, release);
    }
    std::string outcome() const {
        std::set<uint64_t> once;
        uint64_t all = 0;
        for (const Run &run : runs)
            for (uint64_t i = 0; i < run.count; i++, all++)
                once.insert(run.first + i);
        const bool inside = *once.begin() >= 10 && *once.rbegin() < 15 && (runs[0].count == 0 || runs[0].first >= 12);
        return std::string(inside ? "sound" : "OUTSIDE") + (once.size() < all ? " TWICE" : "") +
               (in_order ? "" : " OUT OF ORDER");
    }
    static Table outcomes() { return {"sound"}; }
    static Actors<CallersInOrder> actors() { return {caller<0>, caller<1>, caller<2>}; }
};

// Whole calls. Nothing is leased at the start, and a lease has two positions.
//
//   forbidden   a position twice; one that is not known to be durable; a lease that no caller needed
struct WholeCalls : LeasedTicks {
    uint64_t positions[2] = {};
    bool unknown[2] = {false, false};

    template <uint64_t self> static void caller(WholeCalls &w) {
        w.positions[self] = w.draw([] { weak_memory.start_over(self); });
        w.unknown[self] = !w.knows(record_of(w.positions[self]));
    }
    std::string outcome() const {
        return std::string(positions[0] == positions[1] ? "TWICE" : "sound") +
               (unknown[0] || unknown[1] ? " UNKNOWN" : "") + " records " + std::to_string(log_end);
    }
    static Table outcomes() { return {"sound records 1"}; }
    static Actors<WholeCalls> actors() { return {caller<0>, caller<1>}; }
};

// ---------------------------------------------------------------------------------------------------------
// The segment's word.

// The word, with its ranges under the page's lock. The first range stands for 100 and 110. Plain nextval has
// drawn the values after it, so the next ones stand for 200 and 210, 220 and 230.
struct WeakRanges {
    PositionAllocator<Weak> word;
    Ranges ranges{}; // under the page's lock, as are the next two
    WeakLock page;
    uint64_t log_end = 0;
    int64_t next_value = 100;
    Weak<uint64_t> flushed;

    explicit WeakRanges(bool first_is_durable) {
        word.reset(1);
        publish();
        next_value = 200;
        if (!first_is_durable)
            return;
        word.confirm(local, 3);
        flushed.store(1, relaxed);
    }
    uint64_t end() const { return word.written_range().until; }
    void publish() {
        const uint64_t begin = end();
        ranges.append({begin, begin + 2, next_value, 10});
        word.publish(begin, begin + 2, ++log_end);
        next_value += 20;
    }
    void publish_successor() {
        const std::lock_guard<WeakLock> guard(page);
        if (ranges.room(word.last() + 1))
            publish();
    }
    // The first value that may come after it.
    uint64_t discard() {
        const std::lock_guard<WeakLock> guard(page);
        word.discard_below(end());
        return static_cast<uint64_t>(next_value);
    }
    bool current(Range *range) {
        const std::shared_lock<WeakLock> guard(page);
        return ranges.find(word.last() + 1, range);
    }
    // The limit is what was usable before the take, and at most the range's end.
    uint64_t limit_in(const Range &range) {
        if (word.usable(local) < range.end) {
            const WrittenRange written = word.written_range();
            know(&flushed, written.lsn);
            word.confirm(local, written.until);
        }
        return std::min(word.usable(local), range.end);
    }
    bool is_durable(const Range &range) { return flushed.load(relaxed) >= (range.end - 1) / 2; }
    // A value, or 0: no published range has one left. *durable becomes false if the range is not known to be durable.
    template <typename StartOver> int64_t draw(StartOver start_over, bool *durable) {
        Range range{};
        for (;;) {
            start_over();
            if (!current(&range))
                return 0;
            const Run run = word.take(0, limit_in(range), 1);
            if (run.count == 0)
                continue;
            *durable = *durable && is_durable(range);
            return range.value(run.first);
        }
    }
};

struct Segment : WeakRanges {
    bool durable[2] = {true, true}; // as far as the process knows

    using WeakRanges::WeakRanges;
    // The bits say what the caller has kept of earlier calls.
    int64_t draw(int self, uint64_t bits) {
        return WeakRanges::draw([bits] { weak_memory.start_over(bits); }, &durable[self]);
    }
    std::string suffix() const { return durable[0] && durable[1] ? "" : " UNKNOWN"; }
};

inline std::string show(const int64_t (&values)[2]) {
    return std::to_string(values[0]) + " " + std::to_string(values[1]);
}

// Two callers on the last value of the first range, and a successor being published.
//
//   forbidden   a value twice; 120, which is beyond the range; 200 before 110; a value that is not known to be durable
struct SegmentTakers : Segment {
    int64_t values[2] = {0, 0};

    SegmentTakers() : Segment(true) { word.take(0, 3, 1); }
    template <int self> static void caller(SegmentTakers &w) { w.values[self] = w.draw(self, self); }
    static void publisher(SegmentTakers &w) { w.publish_successor(); }
    std::string outcome() const { return show(values) + suffix(); }
    static Table outcomes() { return {"110 200", "200 110", "110 0", "0 110"}; }
    static Actors<SegmentTakers> actors() { return {caller<0>, caller<1>, publisher}; }
};

// One caller twice, a discard and a successor.
//
//   forbidden   a value twice or out of order; none although one is left; a discarded one for a call that began after
//               the discard
struct SegmentDiscard : Segment {
    Weak<uint64_t> told; // the first value that may come after the discard
    int64_t values[2] = {0, 0};
    bool given_up = false;

    SegmentDiscard() : Segment(false) {}
    int64_t draw_undiscarded(uint64_t bits) {
        const uint64_t first = told.load(acquire);
        const int64_t value = draw(0, bits << 10 | first);
        given_up = given_up || (value != 0 && value < static_cast<int64_t>(first));
        return value;
    }
    static void caller(SegmentDiscard &w) {
        w.values[0] = w.draw_undiscarded(1);
        w.values[1] = w.draw_undiscarded(static_cast<uint64_t>(w.values[0]) << 1 | (w.durable[0] ? 0 : 1));
    }
    static void discarder(SegmentDiscard &w) {
        const uint64_t first = w.discard();
        w.told.store(first, release);
    }
    static void publisher(SegmentDiscard &w) { w.publish_successor(); }
    std::string outcome() const { return show(values) + (given_up ? " GIVEN UP" : "") + suffix(); }
    static Table outcomes() { return {"100 110", "100 200", "100 0", "200 210", "0 200", "0 0"}; }
    static Actors<SegmentDiscard> actors() { return {caller, discarder, publisher}; }
};

// One caller twice, against two publications. The second one has no room while the first range is in use.
//
//   forbidden   none, or 200 first: a range in use was overwritten
struct SegmentRoom : Segment {
    int64_t values[2] = {0, 0};

    SegmentRoom() : Segment(true) {}
    static void caller(SegmentRoom &w) {
        w.values[0] = w.draw(0, 1);
        w.values[1] = w.draw(0, static_cast<uint64_t>(w.values[0]));
    }
    static void publisher(SegmentRoom &w) {
        w.publish_successor();
        w.publish_successor();
    }
    std::string outcome() const { return show(values) + suffix(); }
    static Table outcomes() { return {"100 110"}; }
    static Actors<SegmentRoom> actors() { return {caller, publisher}; }
};

// Two sessions draw the first range's two values: one by a window that it opens, one by a call. Neither has made the
// range durable, so one of them learns that from the other.
//
//   forbidden   a value twice; a value that is not known to be durable
struct SegmentWindows : Segment {
    int64_t values[2] = {0, 0};
    int64_t third = 0;

    SegmentWindows() : Segment(false) {}
    static void by_window(SegmentWindows &w) {
        Range range{};
        if (!w.current(&range))
            return;
        const uint64_t limit = w.limit_in(range);
        const Run run = w.word.take(0, limit, 1);
        if (run.count == 0)
            return;
        w.values[0] = range.value(run.first);
        Window<Weak> window = {w.word.word(), run.first, run.first, limit - 1, 110 - 10 * range.begin, 10};
        if (!window.take(&w.third))
            w.third = 0;
        w.durable[0] = w.is_durable(range);
    }
    static void by_call(SegmentWindows &w) { w.values[1] = w.draw(1, 1); }
    std::string outcome() const { return show(values) + " " + std::to_string(third) + suffix(); }
    static Table outcomes() { return {"100 110 0", "100 0 110", "110 100 0"}; }
    static Actors<SegmentWindows> actors() { return {by_window, by_call}; }
};

} // namespace uidgen::test
