// The ring of cached mode: positions made ahead of time, taken without a lock and without a clock.
//
// Baidu's RingBuffer (uid-generator, 2017) with the ring itself as data and everything else as a hint. A cell is empty or
// holds the first position of a run; all runs of a ring have the same length. What must never go wrong hangs on single
// cells and nothing else:
//
// Numbered invariants
//   1. A run is in one place at a time: in one process's hands, or in one cell. The generator's word gives it to one process;
//      who has it in hand puts it into one cell, by one compare-and-swap from empty.
//   2. It leaves its cell by one compare-and-swap to empty, so into the hands of one taker, who hands it out, or puts it back.
//      So each position is handed out at most once.
//   3. `cursor` and `tail` only say where to look. Any value of theirs, also one that a process stopped long ago writes
//      late, costs time or room, never a position.
//
// What may happen to a process that stops for ever, at any step
//   a taker   before the swap: nothing; after it: its run is lost. The cell is empty for others.
//   a putter  before the swap: its run is lost; after it, before it moves the tail: the next putter moves it.
//   A putter that swaps late, when its cell has been filled by another and emptied again, leaves its run behind the cursor:
//   it is taken when the ring comes round, or thrown away as too old.
//
// Indices run from 0 to 2^64 - 1 and round; the number of cells is a power of two.
#pragma once

#include <algorithm>

#include "position_allocator.hpp"

namespace uidgen::core {

constexpr uint64_t empty_cell = UINT64_MAX; // no position: those have 63 bits

// Where to look, in shared memory for as long as the ring.
template <template <typename> class Atom = std::atomic> struct RingHints {
    alignas(cache_line) Atom<uint64_t> cursor; // next to take
    alignas(cache_line) Atom<uint64_t> tail;   // next to put

    // Only while nobody else can reach the ring.
    void reset(uint64_t first) noexcept {
        cursor.store(first, std::memory_order_relaxed);
        tail.store(first, std::memory_order_release);
    }
};

// What a taker got: the first position of a run, or empty_cell; and how many runs it threw away as too old.
struct TakenRun {
    uint64_t first;
    uint64_t too_old;
};

// A process's view of a ring. Cheap to copy.
template <template <typename> class Atom = std::atomic> class Ring {
  public:
    Ring() noexcept = default;
    Ring(RingHints<Atom> *hints, Atom<uint64_t> *cells, uint64_t count) noexcept
        : hints_(hints), cells_(cells), mask_(count - 1) {}

    // Only while nobody else can reach the ring.
    void clear() noexcept {
        for (uint64_t i = 0; i <= mask_; i++)
            cells_[i].store(empty_cell, std::memory_order_relaxed);
    }

    // The oldest run at or above `floor`; older ones on the way are thrown away. Acquire pairs with put(): who takes a run
    // knows what its putter knew, that it is durable.
    TakenRun take(uint64_t floor) noexcept {
        uint64_t too_old = 0;
        // In this order: the tail only grows, and no cursor goes beyond a tail that its taker read, so the tail is not behind
        // the cursor. The other way round, a cursor that moved on in between would look like a late one and cost a lap.
        uint64_t i = hints_->cursor.load(std::memory_order_acquire);
        const uint64_t tail = hints_->tail.load(std::memory_order_acquire);
        if (tail - i > mask_ + 1)
            i = tail - (mask_ + 1); // a late cursor
        for (; i != tail; i++) {
            Atom<uint64_t> &cell = cells_[i & mask_];
            uint64_t seen = cell.load(std::memory_order_relaxed);
            if (seen == empty_cell || !cell.compare_exchange_strong(seen, empty_cell, std::memory_order_acquire,
                                                                    std::memory_order_relaxed))
                continue; // somebody else has it
            if (seen >= floor) {
                hints_->cursor.store(i + 1, std::memory_order_release); // who reads it sees the tail that was read here
                return {seen, too_old};
            }
            too_old++;
        }
        hints_->cursor.store(i, std::memory_order_release);
        return {empty_cell, too_old};
    }

    // The run that take() would give, about, or empty_cell. It stays where it is.
    uint64_t peek(uint64_t floor) const noexcept {
        uint64_t i = hints_->cursor.load(std::memory_order_acquire); // first, as in take()
        const uint64_t tail = hints_->tail.load(std::memory_order_acquire);
        if (tail - i > mask_ + 1)
            i = tail - (mask_ + 1);
        for (; i != tail; i++) {
            const uint64_t seen = cells_[i & mask_].load(std::memory_order_relaxed);
            if (seen != empty_cell && seen >= floor)
                return seen;
        }
        return empty_cell;
    }

    // False: the ring is full.
    bool put(uint64_t first) noexcept {
        for (;;) {
            uint64_t tail = hints_->tail.load(std::memory_order_relaxed);
            if (tail - hints_->cursor.load(std::memory_order_acquire) > mask_) {
                // Not if others have put since, and takers have gone beyond the tail as it was.
                if (hints_->tail.load(std::memory_order_relaxed) != tail)
                    continue;
                return false;
            }
            uint64_t seen = empty_cell;
            const bool ours = cells_[tail & mask_].compare_exchange_strong(seen, first, std::memory_order_release,
                                                                           std::memory_order_relaxed);
            // Ours, or another putter's who has not got that far, or one left from the last lap: the tail goes over it.
            hints_->tail.compare_exchange_strong(tail, tail + 1, std::memory_order_release, std::memory_order_relaxed);
            if (ours)
                return true;
        }
    }

    // How many runs there are, about.
    uint64_t filled() const noexcept {
        const uint64_t cursor = hints_->cursor.load(std::memory_order_acquire); // first, as in take()
        const uint64_t runs = hints_->tail.load(std::memory_order_relaxed) - cursor;
        return std::min(runs, mask_ + 1);
    }

    uint64_t cells() const noexcept { return cells_ != nullptr ? mask_ + 1 : 0; }

  private:
    RingHints<Atom> *hints_ = nullptr;
    Atom<uint64_t> *cells_ = nullptr;
    uint64_t mask_ = 0;
};

// The run that all sessions draw from where none takes a run for itself: cells of single ids would go to and fro between
// processors.
//
// Numbered invariants
//   1. A run is installed by one compare-and-swap, by who has taken it out of the ring, so once.
//   2. Within a run the word only grows, by what one swap hands out, up to the run's last: each position at most once.
//   3. As no position comes a second time, neither does a value of the word: a swap that succeeds late is none.
template <template <typename> class Atom = std::atomic> class SharedRun {
  public:
    // Only while nobody else can reach it. Nothing is in it.
    void reset(uint64_t run) noexcept { last_.store(run - 1, std::memory_order_relaxed); }

    // Up to `want` positions, if the next one is at or above `floor`; none: the run is used up, or too old. *seen is what
    // install() is to replace then. Acquire pairs with install(): the run is durable.
    Run take(uint64_t floor, uint64_t run, uint64_t want, uint64_t *seen) noexcept {
        *seen = last_.load(std::memory_order_acquire);
        while (has_next(*seen, floor, run)) {
            const uint64_t left = run - 1 - (*seen & (run - 1));
            const uint64_t count = std::min(left, want);
            const uint64_t first = *seen + 1;
            if (last_.compare_exchange_weak(*seen, *seen + count, std::memory_order_acq_rel, std::memory_order_acquire))
                return {first, count};
        }
        return {*seen + 1, 0};
    }

    // For windows (window.hpp) on the run that take() or install() has found.
    Atom<uint64_t> *word() noexcept { return &last_; }

    // Replaces what take() has seen by another run, of which the positions up to `last` are the caller's; false: somebody
    // else was lost_race, and the run is still the caller's. Release: who draws from it knows what the caller knew.
    bool install(uint64_t seen, uint64_t last) noexcept {
        return last_.compare_exchange_strong(seen, last, std::memory_order_acq_rel, std::memory_order_relaxed);
    }

    uint64_t last() const noexcept { return last_.load(std::memory_order_relaxed); }

    // The last position of the run that holds this one; runs begin at multiples of their length.
    static uint64_t end_of_run(uint64_t position, uint64_t run) noexcept { return position | (run - 1); }

    // Whether there is a position after `last` in its run, and not too old.
    static bool has_next(uint64_t last, uint64_t floor, uint64_t run) noexcept {
        return last != end_of_run(last, run) && last + 1 >= floor;
    }

  private:
    alignas(cache_line) Atom<uint64_t> last_;
};

} // namespace uidgen::core
