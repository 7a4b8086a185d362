// A window: values that a session may draw by one swap each, without the slow path.
//
// A word in shared memory holds the last position that was handed out. A draw swaps its value n for n + 1, and returns
// origin + n * step. A session opens a window after a draw on the slow path. The window keeps what the slow path has
// checked. The session closes it, or lets it end, when something must be checked again.
//
// Numbered invariants
//   1. Every n of a window stands for a value that was reserved, is as durable as the session asks, and belongs to one
//      tick, run or range. None of this becomes wrong while the window is open. Draws of other sessions only move the
//      word on.
//   2. No word has a value twice. So a swap from n to n + 1 succeeds for one session only, and each value is handed out
//      once.
//   3. The swap tries the expected value first: the value that this session's last draw left in the word. If no other
//      session has drawn since, this saves a load before the swap. Otherwise the swap fails and returns the present
//      value. A wrong expectation costs a retry, never a value (2).
#pragma once

#include <atomic>
#include <cstdint>

namespace uidgen::core {

template <template <typename> class Atom = std::atomic> struct Window {
    Atom<uint64_t> *word;
    uint64_t expected; // first .. limit
    uint64_t first;    // the window's lowest n
    uint64_t limit;    // the first n beyond it; equal to expected: closed
    uint64_t origin;
    uint64_t step;

    void close() noexcept { limit = expected; }

    // Draws the next value. False: the window has none. Relaxed: the word orders only itself, and what is known of its
    // values was learnt when the window was opened. (A swap continues the release sequence, so a reader that acquires
    // the word still sees what was released to it.)
    bool take(int64_t *value) noexcept {
        uint64_t n = expected;
        if (n == limit)
            return false;
        if (!swap(&n) && !retry(&n))
            return false;
        expected = n + 1;
        *value = static_cast<int64_t>(origin + n * step);
        return true;
    }

  private:
    // Swaps the word's value *n for the next one. False: *n is the word's value now. Weak: it may not have changed.
    bool swap(uint64_t *n) noexcept {
        return word->compare_exchange_weak(*n, *n + 1, std::memory_order_relaxed, std::memory_order_relaxed);
    }

    // Retries from *n, the value that the word has.
    bool retry(uint64_t *n) noexcept {
        do
            if (*n - first >= limit - first)
                return false;
        while (!swap(n));
        return true;
    }
};

} // namespace uidgen::core
