// The worlds of histories that run on two kinds of atomics: stepped ones (explorer.hpp), which show every interleaving,
// and weak ones (weak_memory.hpp), which show every value that the memory model allows.
//
// `flushed` stands for all that a process knows of a record that it has made durable. Another process that uses the
// record's positions or values must know it too. `start_over` is called before each try of a draw.
#pragma once

#include <algorithm>
#include <mutex>
#include <shared_mutex>
#include <string>

#include "position_allocator.hpp"
#include "range.hpp"

namespace uidgen::test {

constexpr core::Durability local = core::Durability::local;

inline std::string show(const core::Run &run) {
    if (run.count == 0)
        return "none";
    const std::string first = std::to_string(run.first);
    return run.count == 1 ? first : first + ".." + std::to_string(run.first + run.count - 1);
}

// The generator's word.
template <typename Word, template <typename> class Atom> struct Ticks {
    Word word;
    Atom<uint64_t> flushed;

    void confirm() {
        const core::WrittenRange written = word.written_range();
        core::raise_to(flushed, written.lsn, std::memory_order_relaxed);
        word.confirm(local, written.until);
    }
    core::Run take(uint64_t want) {
        const uint64_t limit = word.usable(local);
        return word.take(0, limit, want);
    }
    bool knows(uint64_t lsn) { return flushed.load(std::memory_order_relaxed) >= lsn; }
};

// Whole calls: take, else confirm, else reserve under the page's lock. Nothing is leased at the start, and a lease has
// two positions.
template <typename Word, template <typename> class Atom, typename Lock> struct LeasedTicks : Ticks<Word, Atom> {
    Lock page;
    uint64_t log_end = 0; // under the page's lock

    LeasedTicks() { this->word.reset(10); }
    void reserve(uint64_t seen) {
        const std::lock_guard<Lock> guard(page);
        if (this->word.written_range().until == seen)
            this->word.publish(seen, seen + 2, ++log_end);
    }
    template <typename StartOver> uint64_t draw(StartOver start_over) {
        for (;;) {
            start_over();
            const core::Run run = this->take(1);
            if (run.count > 0)
                return run.first;
            const uint64_t last = this->word.last();
            const uint64_t written = this->word.written_range().until;
            if (last + 1 < written)
                this->confirm();
            else
                reserve(written);
        }
    }
    // The record of the lease that a position is of.
    static uint64_t record_of(uint64_t position) { return (position - 10) / 2 + 1; }
};

// The segment's word, with its ranges under the page's lock. The first range stands for 100 and 110. Plain nextval has
// drawn the values after it, so the next ones stand for 200 and 210, 220 and 230.
template <typename Word, template <typename> class Atom, typename Lock> struct Ranges {
    Word word;
    Lock page;
    uint64_t log_end = 1; // under the page's lock, as is next_value
    int64_t next_value = 200;
    Atom<uint64_t> flushed;

    explicit Ranges(bool first_is_durable) {
        word.reset(0);
        word.publish(2, 100, 10, 1);
        if (!first_is_durable)
            return;
        word.confirm(local, 2);
        flushed.store(1, std::memory_order_relaxed);
    }
    void publish_successor() {
        const std::lock_guard<Lock> guard(page);
        if (!word.room())
            return;
        word.publish(2, next_value, 10, ++log_end);
        next_value += 20;
    }
    void discard() {
        const std::lock_guard<Lock> guard(page);
        word.discard();
    }
    bool current(core::Range *range) {
        const std::shared_lock<Lock> guard(page);
        return word.current(range);
    }
    // The limit is what was usable before the take, and at most the range's end.
    uint64_t limit_in(const core::Range &range) {
        if (word.usable(local) < range.end) {
            core::raise_to(flushed, range.lsn, std::memory_order_relaxed);
            word.confirm(local, range.end);
        }
        return std::min(word.usable(local), range.end);
    }
    // A value, or 0: no published range has one left. *durable becomes false if the range is not known to be durable.
    template <typename StartOver> int64_t draw(StartOver start_over, bool *durable) {
        core::Range range{};
        for (;;) {
            start_over();
            if (!current(&range))
                return 0;
            const core::Run run = word.take(limit_in(range), 1);
            if (run.count == 0)
                continue;
            *durable = *durable && flushed.load(std::memory_order_relaxed) >= range.lsn;
            return range.value(run.first);
        }
    }
};

} // namespace uidgen::test
