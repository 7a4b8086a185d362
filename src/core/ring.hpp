// The ring of cached mode: positions made ahead of time, taken without a lock and without a clock.
//
// As in Baidu's RingBuffer (uid-generator, 2017), but the cells are the only data, and everything else is a hint. A
// cell is empty or holds the first position of a run. All runs of a ring have the same length. Correctness depends on
// single cells and on nothing else.
//
// Numbered invariants
//   1. A run is in one place at a time: held by one process, or in one cell. The generator's word gives it to one
//      process, which puts it into one cell by one compare-and-swap from empty.
//   2. A run leaves its cell by one compare-and-swap to empty, so one taker gets it. The taker hands it out or puts it
//      back. So each position is handed out at most once.
//   3. `cursor` and `tail` only say where to look. Any value of theirs costs time or room, never a position. This
//      includes a value that a process stopped long ago writes late.
//
// A process that stops forever, at any step:
//   a taker   before the swap: loses nothing; after it: loses its run. The cell is empty for others.
//   a putter  before the swap: loses its run; after it, before it moves the tail: the next putter moves the tail.
// A putter may swap late, when another process has filled its cell and a taker has emptied it. Then its run is behind
// the cursor. It is taken on the ring's next lap, or thrown away as too old.
//
// Indices wrap from 2^64 - 1 to 0. The number of cells is a power of two.
#pragma once

#include <algorithm>

#include "position_allocator.hpp"

namespace uidgen::core {

constexpr uint64_t empty_cell = UINT64_MAX; // no position: those have 63 bits

// Where to look: in shared memory, for as long as the ring exists.
template <template <typename> class Atom = std::atomic> struct RingHints {
    alignas(cache_line) Atom<uint64_t> cursor; // next to take
    alignas(cache_line) Atom<uint64_t> tail;   // next to put

    // Only while no other process can reach the ring, which they find under a lock; so relaxed.
    void reset(uint64_t first) noexcept {
        cursor.store(first, std::memory_order_relaxed);
        tail.store(first, std::memory_order_relaxed);
    }
};

// A process's view of a ring. Cheap to copy.
template <template <typename> class Atom = std::atomic> class Ring {
  public:
    Ring() noexcept = default;
    Ring(RingHints<Atom> *hints, Atom<uint64_t> *cells, uint64_t count) noexcept
        : hints_(hints), cells_(cells), mask_(count - 1) {}

    // Only while no other process can reach the ring.
    void clear() noexcept {
        for (uint64_t i = 0; i <= mask_; i++)
            cells_[i].store(empty_cell, std::memory_order_relaxed);
    }

    // Takes the oldest run at or above `floor`, and throws away *too_old runs below it on the way. Returns its first
    // position, or empty_cell. Acquire pairs with put(): the taker of a run knows what the putter knew, namely that the
    // run is durable.
    uint64_t take(uint64_t floor, uint64_t *too_old) noexcept {
        *too_old = 0;
        // The cursor is read first. The tail only grows, and no cursor goes beyond a tail that its taker read, so the
        // tail read here is not behind the cursor. In the other order, a cursor that moved in between would look late
        // and cost a lap.
        uint64_t i = hints_->cursor.load(std::memory_order_acquire);
        const uint64_t tail = hints_->tail.load(std::memory_order_acquire);
        if (tail - i > mask_ + 1)
            i = tail - (mask_ + 1); // a late cursor
        for (; i != tail; i++) {
            Atom<uint64_t> &cell = cells_[i & mask_];
            uint64_t seen = cell.load(std::memory_order_relaxed);
            if (seen == empty_cell ||
                !cell.compare_exchange_strong(seen, empty_cell, std::memory_order_acquire, std::memory_order_relaxed))
                continue; // another process has it
            if (seen >= floor) {
                hints_->cursor.store(i + 1, std::memory_order_release); // a reader of it sees the tail read here
                return seen;
            }
            ++*too_old;
        }
        hints_->cursor.store(i, std::memory_order_release);
        return empty_cell;
    }

    // False: the ring is full.
    bool put(uint64_t first) noexcept {
        for (;;) {
            uint64_t tail = hints_->tail.load(std::memory_order_relaxed);
            if (tail - hints_->cursor.load(std::memory_order_acquire) > mask_) {
                // Not full if other putters have moved the tail since, and takers have gone beyond the old one.
                if (hints_->tail.load(std::memory_order_relaxed) != tail)
                    continue;
                return false;
            }
            uint64_t seen = empty_cell;
            const bool ours = cells_[tail & mask_].compare_exchange_strong(seen, first, std::memory_order_release,
                                                                           std::memory_order_relaxed);
            // The cell now holds this run, or that of a putter that has not moved the tail yet, or one left from the
            // last lap. The tail moves past it in each case.
            hints_->tail.compare_exchange_strong(tail, tail + 1, std::memory_order_release, std::memory_order_relaxed);
            if (ours)
                return true;
        }
    }

    // How many runs there are, approximately.
    uint64_t filled() const noexcept {
        const uint64_t cursor = hints_->cursor.load(std::memory_order_acquire); // first, as in take()
        const uint64_t runs = hints_->tail.load(std::memory_order_relaxed) - cursor;
        return std::min(runs, mask_ + 1);
    }

    // Whether a refill is to begin, or to continue. It begins below the threshold, and ends when the ring is full.
    bool wants_runs(bool is_refilled, uint64_t threshold) const noexcept {
        return filled() < (is_refilled ? cells() : threshold);
    }

    uint64_t cells() const noexcept { return cells_ != nullptr ? mask_ + 1 : 0; }

  private:
    RingHints<Atom> *hints_ = nullptr;
    Atom<uint64_t> *cells_ = nullptr;
    uint64_t mask_ = 0;
};

// The run that all sessions draw from. Ring cells that hold single ids would move between processors all the time.
//
// Numbered invariants
//   1. A run is installed by one compare-and-swap, by the process that took it out of the ring, so once.
//   2. Within a run the word only grows, by what one swap hands out, up to the run's last position. So each position is
//      handed out at most once.
//   3. No position is issued twice, so the word never has the same value twice. A swap with an outdated expected value
//      fails.
template <template <typename> class Atom = std::atomic> class SharedRun {
  public:
    // Only while no other process can reach it. It starts empty.
    void reset(uint64_t run) noexcept { last_.store(run - 1, std::memory_order_relaxed); }

    // Takes up to `want` positions if the next one is at or above `floor`. None: the run is used up or too old, and
    // *seen is what install() must replace. Acquire pairs with install(): the run is durable. Only the swap needs it:
    // no position is handed out without one.
    Run take(uint64_t floor, uint64_t run, uint64_t want, uint64_t *seen) noexcept {
        *seen = last_.load(std::memory_order_relaxed);
        while (has_next(*seen, floor, run)) {
            const uint64_t left = run - 1 - (*seen & (run - 1));
            const uint64_t count = std::min(left, want);
            const uint64_t first = *seen + 1;
            if (last_.compare_exchange_weak(*seen, *seen + count, std::memory_order_acquire, std::memory_order_relaxed))
                return {first, count};
        }
        return {*seen + 1, 0};
    }

    // For windows (window.hpp) on the run that take() or install() has found.
    Atom<uint64_t> *word() noexcept { return &last_; }

    // Replaces the value that take() has seen by another run, of which the caller keeps the positions up to `last`.
    // False: another session won the race, and the run is still the caller's. Release: sessions that draw from the run
    // know what the caller knew. The caller needs nothing of those who used up the run before.
    bool install(uint64_t seen, uint64_t last) noexcept {
        return last_.compare_exchange_strong(seen, last, std::memory_order_release, std::memory_order_relaxed);
    }

    uint64_t last() const noexcept { return last_.load(std::memory_order_relaxed); }

    // The last position of the run that holds this one. Runs begin at multiples of their length.
    static uint64_t end_of_run(uint64_t position, uint64_t run) noexcept { return position | (run - 1); }

    // Whether `last` has a successor in its run that is not too old.
    static bool has_next(uint64_t last, uint64_t floor, uint64_t run) noexcept {
        return last != end_of_run(last, run) && last + 1 >= floor;
    }

  private:
    alignas(cache_line) Atom<uint64_t> last_;
};

} // namespace uidgen::core
