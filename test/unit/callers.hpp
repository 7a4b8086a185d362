// A generator and a segment as their callers use them: the word, the page's lock, the log, and the loop of one call.
// Shared by threads (stress_test) and by processes (process_test), so it holds no pointers.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <shared_mutex>
#include <vector>

#include "clock_policy.hpp"
#include "range.hpp"
#include "position_allocator.hpp"
#include "window.hpp"

namespace uidgen::test {

constexpr core::Durability local = core::Durability::local;

// A log of records, each of which covers all values below some bound. A caller that appends holds the page's lock; a
// caller that flushes holds none. A record's position in the log is its number, from 1 on.
class Log {
  public:
    uint64_t append(uint64_t covers) {
        const uint64_t lsn = ++end_;
        covers_[lsn % capacity].store(covers, std::memory_order_relaxed);
        return lsn;
    }
    void flush(uint64_t lsn) { core::raise_to(flushed_, lsn, std::memory_order_relaxed); }
    uint64_t durable_below() const {
        return covers_[flushed_.load(std::memory_order_relaxed) % capacity].load(std::memory_order_relaxed);
    }

  private:
    // A record's slot is reused after so many others: its reader would have to sleep through all of them.
    static constexpr uint64_t capacity = 1 << 16;

    uint64_t end_ = 0; // under the page's lock
    std::atomic<uint64_t> flushed_{0};
    std::atomic<uint64_t> covers_[capacity] = {};
};

struct Draw {
    uint64_t first;
    uint64_t count;
    bool durable; // whether the record was durable when the values were handed out
};

// The clock moves forward when a caller would have to wait for it, and back when the test moves it.
template <template <typename> class Atom, typename Lock> class Generator {
  public:
    Generator() { word_.reset(position(mark_)); }

    Draw draw(uint64_t want) {
        for (;;) {
            const core::Decision d = decide();
            if (d.reserve_until > 0)
                reserve(d.reserve_until);
            if (d.action == core::ClockAction::confirm)
                confirm();
            if (d.action == core::ClockAction::wait)
                clock_.fetch_add(d.wait_ticks, std::memory_order_relaxed);
            if (d.action != core::ClockAction::take)
                continue;
            const core::Run run = word_.take(d.floor, d.limit, want);
            if (run.count > 0)
                return {run.first, run.count, run.first + run.count <= log_.durable_below()};
        }
    }

    void step_back() { clock_.fetch_sub(policy.lease / 3, std::memory_order_relaxed); }

    // Another session moves the counter up. The callers must go on above it.
    void move_counter() {
        const std::lock_guard<Lock> guard(page_);
        mark_ += 3;
        log_.append(position(mark_));
        word_.discard_below(position(mark_));
    }

  private:
    // Few positions in a tick and short leases: every few calls reach the end of one of them.
    static constexpr core::ClockPolicy policy = {3, INT64_C(1) << 41, 40, 90};

    static uint64_t position(int64_t tick) { return static_cast<uint64_t>(tick) << policy.sequence_bits; }

    core::Decision decide() const {
        const int64_t now = clock_.load(std::memory_order_relaxed);
        const uint64_t last = word_.last();
        const uint64_t usable = word_.usable(local);
        return core::decide(policy, {now, core::nothing_seen, last, usable, word_.written_range().until});
    }

    void reserve(int64_t until) {
        const std::lock_guard<Lock> guard(page_);
        if (until <= mark_)
            return;
        const uint64_t lsn = log_.append(position(until));
        word_.publish(position(mark_), position(until), lsn);
        mark_ = until;
    }

    void confirm() {
        const core::WrittenRange written = word_.written_range();
        log_.flush(written.lsn);
        word_.confirm(local, written.until);
    }

    core::PositionAllocator<Atom> word_;
    std::atomic<int64_t> clock_{5};
    Lock page_;
    int64_t mark_ = 1; // under page_
    Log log_;
};

// A segment of the values 1, 2, 3, ... that are its ordinals plus 1.
template <template <typename> class Atom, typename Lock> class Segment {
  public:
    Segment() { word_.reset(0); }

    Draw draw(uint64_t want) {
        for (;;) {
            core::Range range{};
            if (!current(&range)) {
                reserve(false);
                continue;
            }
            confirm(range);
            const uint64_t limit = limit_in(range);
            const core::Run run = want == 1 ? take_one(range, limit) : word_.take(limit, want);
            if (run.count > 0)
                return {static_cast<uint64_t>(range.value(run.first)), run.count,
                        run.first + run.count <= log_.durable_below()};
        }
    }

    void step_back() {}

    // Another session moves the counter up. The rest of the ranges is discarded.
    void move_counter() {
        const std::lock_guard<Lock> guard(page_);
        word_.discard();
    }

  private:
    static constexpr core::SequenceRule rule = {1, 1, INT64_MAX, false};
    static constexpr uint64_t step = 20;

    bool current(core::Range *range) {
        const std::shared_lock<Lock> guard(page_);
        return word_.current(range);
    }

    // Draws by a window. Its expected value is one that some caller left behind: the present one or an older one.
    core::Run take_one(const core::Range &range, uint64_t limit) {
        const uint64_t next = word_.next();
        const uint64_t first = next < range.begin ? range.begin : next;
        const uint64_t left = left_.load();
        int64_t ordinal = 0;
        core::Window<Atom> window = {word_.word(), left >= first && left < limit ? left : first, first, limit, 0, 1};
        if (first >= limit || !window.take(&ordinal))
            return {limit, 0};
        left_.store(window.expected);
        return {static_cast<uint64_t>(ordinal), 1};
    }

    void confirm(const core::Range &range) {
        if (word_.usable(local) >= range.end)
            return;
        log_.flush(range.lsn);
        word_.confirm(local, range.end);
    }

    // The first tenth of a range has a limit of its own, so that some caller returns and prefetches the next range.
    uint64_t limit_in(const core::Range &range) {
        const uint64_t prefetch_at = range.begin + (range.end - range.begin) / 10;
        if (word_.next() < prefetch_at)
            return prefetch_at;
        reserve(true);
        return range.end;
    }

    void reserve(bool prefetch) {
        const std::lock_guard<Lock> guard(page_);
        core::Range in_use{};
        if (prefetch ? !word_.room() : word_.current(&in_use))
            return;
        const core::PlannedRange planned = core::plan_range(state_, rule, step);
        state_ = {planned.last, true};
        const uint64_t lsn = log_.append(word_.end() + planned.count);
        word_.publish(planned.count, planned.first, rule.increment, lsn);
    }

    core::SegmentWord<Atom> word_;
    Lock page_;
    core::SequenceState state_ = {1, false}; // under page_
    Log log_;
    std::atomic<uint64_t> left_{0}; // the value that some caller left behind
};

inline bool has_duplicates(std::vector<uint64_t> values) {
    std::sort(values.begin(), values.end());
    return std::adjacent_find(values.begin(), values.end()) != values.end();
}

} // namespace uidgen::test
