// Histories: what a few processes do with one class of src/core, on the atomics of weak_memory.hpp.
//
// Each is a world with its actors, and the table of its acceptable outcomes; the forbidden ones are named above it. The
// table lists no outcome that never comes.
#pragma once

#include <algorithm>
#include <cctype>
#include <mutex>
#include <set>
#include <shared_mutex>
#include <string>
#include <vector>

#include "position_allocator.hpp"
#include "range.hpp"
#include "ring.hpp"
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

// ---------------------------------------------------------------------------------------------------------
// The ring. `known[run]` stands for what the putter of a run knows of it, namely that it is durable.

constexpr uint64_t nothing = empty_cell;

template <uint64_t count> struct RingOf {
    RingHints<Weak> hints;
    Weak<uint64_t> cells[count];
    Ring<Weak> ring{&hints, cells, count};
    Weak<uint64_t> known[4];
    std::string taken[2];
    std::string refused;
    bool unknown[2] = {false, false};

    // The indices wrap after two puts.
    RingOf() {
        hints.reset(UINT64_MAX - 1);
        ring.clear();
    }
    void put(uint64_t run) {
        known[run].store(1, relaxed);
        if (!ring.put(run))
            refused += " " + std::to_string(run);
    }
    uint64_t take(int self, uint64_t floor = 0) {
        uint64_t too_old = 0;
        const uint64_t run = ring.take(floor, &too_old);
        if (run != nothing && known[run].load(relaxed) == 0)
            unknown[self] = true;
        taken[self] += run == nothing ? " none" : " " + std::to_string(run);
        taken[self] += too_old == 0 ? "" : " old " + std::to_string(too_old);
        return run;
    }
    template <int self, int times> static void taker(RingOf &w) {
        for (int i = 0; i < times; i++)
            w.take(self);
    }
    template <uint64_t first, uint64_t times = 1> static void putter(RingOf &w) {
        for (uint64_t i = 0; i < times; i++)
            w.put(first + i);
    }
    // Which runs are in cells between cursor and tail, which cells there are empty, and which runs are elsewhere.
    std::string rest() const {
        std::string text;
        const uint64_t cursor = hints.cursor.load(relaxed);
        const uint64_t tail = hints.tail.load(relaxed);
        for (uint64_t i = 0; i < count; i++) {
            const uint64_t run = cells[(cursor + i) % count].load(relaxed);
            if (i < tail - cursor)
                text += run == nothing ? " HOLE" : " left " + std::to_string(run);
            else if (run != nothing)
                text += " behind " + std::to_string(run);
        }
        return text;
    }
    std::string outcome() const {
        return "a" + taken[0] + (taken[1].empty() ? "" : " b" + taken[1]) + rest() +
               (refused.empty() ? "" : " refused" + refused) + (unknown[0] || unknown[1] ? " UNKNOWN" : "");
    }
};

// One putter and one taker. The taker finds each run whose put it has seen, and the putter each cell whose take it has
// seen: no run is left behind the cursor, and no hole before the tail.
struct PutAndTake : RingOf<2> {
    static Table outcomes() { return {"a none none left 1", "a none 1", "a 1 none"}; }
    static Actors<PutAndTake> actors() {
        return {[](PutAndTake &w) { putter<1>(w); }, [](PutAndTake &w) { taker<0, 2>(w); }};
    }
};

// The same in a full ring.
struct FullRing : RingOf<2> {
    FullRing() { putter<0, 2>(*this); }
    static Table outcomes() {
        return {"a 0 1 refused 2 3", "a 0 1 left 3 refused 2", "a 0 1 left 2 refused 3", "a 0 1 left 2 left 3"};
    }
    static Actors<FullRing> actors() {
        return {[](FullRing &w) { putter<2, 2>(w); }, [](FullRing &w) { taker<0, 2>(w); }};
    }
};

// Two putters and a taker. A putter may move the tail over another one's run. The taker then learns of the run from one
// of them, and from its cell what the other one knew.
//
//   acceptable  a run behind the cursor: its putter swapped late
//   forbidden   a run twice or nowhere; one that is not known to be durable
struct TwoPutters : RingOf<2> {
    static Table outcomes() {
        return {"a 1 2",
                "a 1 none left 2",
                "a 1 none behind 2",
                "a none 1 left 2",
                "a none 1 behind 2",
                "a 2 1",
                "a 2 none left 1",
                "a 2 none behind 1",
                "a none 2 left 1",
                "a none 2 behind 1",
                "a none none left 1 left 2",
                "a none none left 2 left 1"};
    }
    static Actors<TwoPutters> actors() {
        return {[](TwoPutters &w) { putter<1>(w); }, [](TwoPutters &w) { putter<2>(w); },
                [](TwoPutters &w) { taker<0, 2>(w); }};
    }
};

// How far a call looks beside another one: at the runs that there were, and not at a whole lap of empty cells. A cursor
// is never ahead of the tail that is read after it.
struct ShortLooks : RingOf<4> {
    uint64_t steps = 0;

    static void looker(ShortLooks &w) {
        const uint64_t before = Explorer::active->own_steps();
        uint64_t too_old = 0;
        w.ring.take(0, &too_old);
        w.steps = Explorer::active->own_steps() - before;
    }
    // Cursor and tail, the run's cell seen and lost, the cursor again.
    std::string outcome() const { return steps <= 2 + 2 + 1 ? "quick" : "SLOW"; }
    static Table outcomes() { return {"quick"}; }
    static Actors<ShortLooks> actors() {
        return {looker, [](ShortLooks &w) { RingOf<4>::putter<1>(w); },
                [](ShortLooks &w) { RingOf<4>::taker<0, 2>(w); }};
    }
};

// What filled() says beside a put and a take.
struct FilledAtTake : RingOf<4> {
    uint64_t seen = 0;

    static void watcher(FilledAtTake &w) { w.seen = w.ring.filled(); }
    std::string outcome() const { return std::to_string(seen); }
    static Table outcomes() { return {"0", "1"}; }
    static Actors<FilledAtTake> actors() {
        return {watcher, [](FilledAtTake &w) {
                    w.put(1);
                    w.take(0);
                }};
    }
};

// More actors on the ring: two putters and two takers, or one putter of two runs and two takers.
//
//   forbidden   a run twice or nowhere; one that is not known to be durable
template <uint64_t count> struct BusyRing : RingOf<count> {
    std::string outcome() const {
        std::multiset<char> runs;
        for (const char c : this->taken[0] + this->taken[1] + this->rest() + this->refused)
            if (isdigit(static_cast<unsigned char>(c)) != 0)
                runs.insert(c);
        return (this->unknown[0] || this->unknown[1] ? "UNKNOWN " : "") + std::string(runs.begin(), runs.end());
    }
};

struct TwoAndTwo : BusyRing<2> {
    TwoAndTwo() { put(0); }
    static Table outcomes() { return {"012"}; }
    static Actors<TwoAndTwo> actors() {
        return {[](TwoAndTwo &w) { putter<1>(w); }, [](TwoAndTwo &w) { putter<2>(w); },
                [](TwoAndTwo &w) { taker<0, 1>(w); }, [](TwoAndTwo &w) { taker<1, 1>(w); }};
    }
};

// A ring of one cell holds a run. One taker may pause between its swap and its store of the cursor, while another caller
// puts and takes more than a lap.
//
//   acceptable  a run refused by a ring that seems full
//   forbidden   a run twice or nowhere; none for the second caller, which has just put one that the other did not take
struct LateCursor : BusyRing<1> {
    bool missed[3] = {false, false, false}; // what it had put

    LateCursor() { put(0); }
    static void sleeper(LateCursor &w) { w.take(0); }
    static void busy(LateCursor &w) {
        for (const uint64_t run : {1, 2}) {
            const std::string refused_before = w.refused;
            w.put(run);
            const bool is_there = w.refused == refused_before;
            const uint64_t got = w.take(1);
            w.missed[run] = is_there && got == nothing;
        }
        w.put(3);
    }
    std::string outcome() const {
        const bool starves = (missed[1] && taken[0] != " 1") || (missed[2] && taken[0] != " 2");
        return BusyRing::outcome() + (starves ? " STARVED" : "");
    }
    static Table outcomes() { return {"0123"}; }
    static Actors<LateCursor> actors() { return {sleeper, busy}; }
};

// Of two runs one taker takes one and puts it back, perhaps into the cell where the other taker has just seen it.
//
//   forbidden   a run twice or nowhere, or refused by the ring that it came from
struct ComesBack : BusyRing<2> {
    ComesBack() { putter<0, 2>(*this); }
    static void hesitant(ComesBack &w) {
        uint64_t too_old = 0;
        const uint64_t run = w.ring.take(0, &too_old);
        if (run != nothing && !w.ring.put(run))
            w.refused = " REFUSED";
    }
    static Table outcomes() { return {"01"}; }
    static Actors<ComesBack> actors() {
        return {hesitant, [](ComesBack &w) { taker<0, 2>(w); }};
    }
};

// One of two putters and a taker is halted for ever at one of its steps. The ring holds `before` runs at the start.
//
//   acceptable  that actor's own run is lost
//   forbidden   another one lost; a run twice; a ring that does not work afterwards
template <uint64_t before> struct Survivors : BusyRing<2> {
    Survivors() { putter<0, before>(*this); }
    bool goes_round() {
        uint64_t found = 0;
        for (uint64_t i = 0; i < 6; i++) {
            uint64_t too_old = 0;
            for (uint64_t run = ring.take(0, &too_old); run != nothing; run = ring.take(0, &too_old))
                found += run >= 100 ? 1 : 0;
            if (i < 5 && !ring.put(100 + i))
                return false;
        }
        return found == 5;
    }
    std::string outcome() {
        const std::string runs = BusyRing::outcome();
        const std::set<char> once(runs.begin(), runs.end());
        if (once.size() < runs.size() || once.size() + 1 < before + 2)
            return "UNSOUND " + runs;
        return goes_round() ? "sound" : "STUCK";
    }
    static Table outcomes() { return {"sound"}; }
    static Actors<Survivors> actors() {
        return {[](Survivors &w) { putter<before>(w); }, [](Survivors &w) { putter<before + 1>(w); },
                [](Survivors &w) { taker<0, 2>(w); }};
    }
};

// Two takers of three runs, of which the first is too old for one of them.
//
//   forbidden   a run twice, or lost although it is not too old
struct TwoTakers : RingOf<4> {
    TwoTakers() { putter<0, 3>(*this); }
    std::string outcome() const { return "a" + taken[0] + " b" + taken[1]; }
    static Table outcomes() {
        return {"a 1 b 0 2", "a 2 b 0 1", "a 1 old 1 b 2 none", "a 2 old 1 b 1 none", "a none old 1 b 1 2"};
    }
    static Actors<TwoTakers> actors() {
        return {[](TwoTakers &w) { w.take(0, 1); }, [](TwoTakers &w) { taker<1, 2>(w); }};
    }
};

// ---------------------------------------------------------------------------------------------------------
// The shared run. Runs have four positions. Two sessions have runs of their own to install, 4 .. 7 and 8 .. 11, and
// know that they are durable. A third one has none; it draws by a window, too.
//
//   forbidden   a position twice; one that is not known to be durable; one of no run

struct SharedRuns {
    static constexpr uint64_t length = 4;

    SharedRun<Weak> word;
    Weak<uint64_t> known[2];
    std::vector<uint64_t> taken[3];
    bool unknown = false;

    SharedRuns() { word.reset(length); }
    void note(uint64_t self, uint64_t position) {
        taken[self].push_back(position);
        const uint64_t owner = position / length - 1;
        unknown = unknown || (owner != self && known[owner].load(relaxed) == 0);
    }
    // False: there is none.
    bool take(uint64_t self, uint64_t *seen) {
        const Run run = word.take(0, length, 1, seen);
        if (run.count > 0)
            note(self, run.first);
        return run.count > 0;
    }
    template <uint64_t self> static void owner(SharedRuns &w) {
        uint64_t seen = 0;
        w.known[self].store(1, relaxed);
        if (!w.take(self, &seen) && w.word.install(seen, length * (self + 1)))
            w.note(self, length * (self + 1));
    }
    static void visitor(SharedRuns &w) {
        uint64_t seen = 0;
        if (!w.word.has_next(w.word.last(), 0, length) || !w.take(2, &seen))
            return;
        const uint64_t last = w.taken[2].back();
        Window<Weak> window = {w.word.word(), last, last, SharedRun<Weak>::end_of_run(last, length), 1, 1};
        int64_t position = 0;
        while (w.taken[2].size() < 4 && window.take(&position))
            w.note(2, static_cast<uint64_t>(position));
    }
    std::string outcome() const {
        std::multiset<uint64_t> all;
        std::string text;
        for (const auto &positions : taken) {
            all.insert(positions.begin(), positions.end());
            text += std::to_string(positions.size());
        }
        const bool twice = std::set<uint64_t>(all.begin(), all.end()).size() < all.size();
        return text + (twice ? " TWICE" : "") + (unknown ? " UNKNOWN" : "");
    }
    // How many positions each of them got. Who loses the race to install gets none.
    static Table outcomes() { return {"010", "013", "100", "103", "110", "112", "113"}; }
    static Actors<SharedRuns> actors() { return {owner<0>, owner<1>, visitor}; }
};

} // namespace uidgen::test
