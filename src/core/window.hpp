// A window: values that a session may draw by one swap each, without a further look.
//
// A word in shared memory holds the last position handed out (generators) or the next ordinal (segments). A draw swaps the
// word's value n for n + 1; what it draws is origin + n * step. A session opens a window after a draw on the slow path, and
// closes it, or lets it end, when something must be looked at again: the window holds what the slow path has found out.
//
// Numbered invariants
//   1. Every n of a window stands for a value that was reserved and is as durable as the session asks, of one tick, run or
//      range. What a window says never becomes wrong while it is open; that others draw meanwhile only moves the word on.
//   2. No word has a value twice. So a swap from n to n + 1 succeeds for one session only, and hands out one value once.
//   3. The swap is tried with the expected value first: the one that this session's last draw left behind. If no other
//      session has drawn since, that saves a load that the swap would have to wait for; if one has, the swap fails and
//      returns what is there. A wrong expectation costs a retry, never a value (2).
//
// A run of the session's own has no word: nobody else draws from it, so the expected value is the one.
#pragma once

#include <atomic>
#include <cstdint>

namespace uidgen::core {

template <template <typename> class Atom = std::atomic> struct Window {
    Atom<uint64_t> *word; // null: a run of the session's own
    uint64_t expected;    // first .. limit
    uint64_t first;       // the window's lowest n
    uint64_t limit;       // the first n beyond it; equal to expected: closed
    uint64_t origin;
    uint64_t step;

    void close() noexcept { limit = expected; }
    bool is_open() const noexcept { return expected != limit; }

    // Draws the next value; false: the window has none. Relaxed: the word orders only itself, and what is known of its
    // values was learnt when the window was opened. (A word that others acquire keeps what was released to it: a swap
    // continues the release sequence.)
    bool take(int64_t *value) noexcept {
        uint64_t n = expected;
        if (n == limit)
            return false;
        if (word != nullptr && !swap(&n) && !retry(&n))
            return false;
        expected = n + 1;
        *value = static_cast<int64_t>(origin + n * step);
        return true;
    }

  private:
    bool swap(uint64_t *n) noexcept {
        return word->compare_exchange_weak(*n, *n + 1, std::memory_order_relaxed, std::memory_order_relaxed);
    }

    // Other sessions have drawn, and *n is what they left.
    bool retry(uint64_t *n) noexcept {
        do
            if (*n - first >= limit - first)
                return false;
        while (!swap(n));
        return true;
    }
};

} // namespace uidgen::core
