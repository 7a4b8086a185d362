// The word of a generator or a segment: one atomic that hands out each position at most once.
//
// A *position* of a generator is tick << sequence_bits | sequence (layout.hpp), and that of a segment an ordinal
// (range.hpp). The word holds the last position handed out. A lease (of a segment: a range) is durable before it is
// usable. The next one is written while the current one is in use.
//
// Numbered invariants
//   1. `last` never decreases. take() and raise() are its only writers, and both compare-and-swap upward.
//   2. Every position is handed out at most once. take() moves `last` from below the position to it or above it in one
//      step, and by (1) no later step starts below it.
//   3. usable[d] <= written for each d, and none of them ever decreases, but in require().
//   4. A position is handed out at level d only if it is below usable[d] and was leased. When publish() skips from the
//      old `written` to a higher `from`, it raises `last` to from - 1 before it moves `written`. So no caller can reach
//      the gap between them.
//   5. `lsn` covers at least every record up to the `written` that a reader has seen. publish() stores lsn first and
//      written last (release). written_range() loads in the opposite order (acquire).
//
// Writers: any process moves `last`. One process at a time calls publish(), discard_below() and require(): the holder
// of the exclusive lock of the sequence's page. Any process that has made `lsn` durable calls confirm().
//
// A test may replace Atom by its own atomic that explores interleavings.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace uidgen::core {

// How durable the record of a range is: the levels that a caller's synchronous_commit may ask for.
enum class Durability : uint32_t {
    local,      // flushed on this server
    on_standby, // and on the synchronous standby
};

constexpr uint32_t durability_levels = 2;

constexpr uint32_t index(Durability level) noexcept { return static_cast<uint32_t>(level); }

constexpr size_t cache_line = 64;

struct Run {
    uint64_t first;           // the first position; if count is 0, where the next one would be
    uint64_t count;           // how many consecutive positions; 0: none is left below the limit
    uint64_t passed_over = 0; // how many positions before the first one this take made unusable
};

struct WrittenRange {
    uint64_t until; // first position that no record covers yet
    uint64_t lsn;   // end of a record that covers every position below until; 0: nothing to wait for
};

// Raises an atomic to at least `value`. Returns by how much. Relaxed is enough for callers that publish nothing else by
// it.
template <typename Atomic, typename Value>
inline Value raise_to(Atomic &atomic, Value value, std::memory_order order) noexcept {
    Value seen = atomic.load(std::memory_order_relaxed);
    while (seen < value && !atomic.compare_exchange_weak(seen, value, order, std::memory_order_relaxed)) {
    }
    return seen < value ? value - seen : 0;
}

// A backup worker has a word of its own, an allocator whose bounds count for nothing. Its positions are handed out
// under the same leases as the primary worker's, with another worker id, so each worker may hand out each position of a
// tick once. They are below the primary word's usable[d], and above every tick that was leased before reset(). A
// process that discards leases raises this word too.
template <template <typename> class Atom = std::atomic> class PositionAllocator {
  public:
    // Only while no other process can reach the word. `next` (>= 1) is the first position to hand out. Nothing is
    // leased. Relaxed: processes find the word under a lock, and that orders these stores before all that they do.
    void reset(uint64_t next) noexcept {
        last_.store(next - 1, std::memory_order_relaxed);
        lsn_.store(0, std::memory_order_relaxed);
        for (auto &usable : usable_)
            usable.store(next, std::memory_order_relaxed);
        written_.store(next, std::memory_order_relaxed);
    }

    // Hands out up to `want` consecutive positions, none below `floor`, all below `limit`. The caller guarantees limit
    // <= usable(level). Relaxed: the word orders only itself (1, 2). The acquire in usable(), from which `limit` comes,
    // has shown that the positions are durable.
    Run take(uint64_t floor, uint64_t limit, uint64_t want) noexcept {
        uint64_t seen = last_.load(std::memory_order_relaxed);
        for (;;) {
            const uint64_t first = std::max(seen + 1, floor);
            if (first >= limit)
                return {.first = first, .count = 0};
            const uint64_t count = std::min(limit - first, want);
            if (last_.compare_exchange_weak(seen, first + count - 1, std::memory_order_relaxed,
                                            std::memory_order_relaxed))
                return {.first = first, .count = count, .passed_over = first - seen - 1};
        }
    }

    // A record for [from, until) has been written, ending at `lsn` (0: needs none). One caller at a time. Returns how
    // many positions were passed over.
    uint64_t publish(uint64_t from, uint64_t until, uint64_t lsn) noexcept {
        const uint64_t passed_over = from > written_.load(std::memory_order_relaxed) ? raise(from - 1) : 0;
        if (lsn > lsn_.load(std::memory_order_relaxed))
            lsn_.store(lsn, std::memory_order_relaxed);
        if (until > written_.load(std::memory_order_relaxed))
            written_.store(until, std::memory_order_release); // pairs with written_range()
        return passed_over;
    }

    // Discards everything below `next` (>= 1): no such position is handed out any more. One caller at a time, and not
    // concurrently with publish(). Returns how many positions were passed over.
    uint64_t discard_below(uint64_t next) noexcept {
        const uint64_t passed_over = raise(next - 1);
        return passed_over + publish(next, next, 0);
    }

    // Only while no process draws: what is written is usable when a later record is durable, which ends at `lsn`.
    // Relaxed: processes come to the word under a lock, as after reset().
    void require(uint64_t lsn) noexcept {
        lsn_.store(lsn, std::memory_order_relaxed);
        for (auto &usable : usable_)
            usable.store(last() + 1, std::memory_order_relaxed);
    }

    // The record for positions below `until` is durable at `level`. Release: pairs with usable().
    void confirm(Durability level, uint64_t until) noexcept {
        raise_to(usable_[index(level)], until, std::memory_order_release);
    }

    uint64_t last() const noexcept { return last_.load(std::memory_order_relaxed); }

    // For windows (window.hpp). A window draw is take() for one position, with floor and limit checked in advance.
    Atom<uint64_t> *word() noexcept { return &last_; }

    // Acquire: a reader of the bound also sees that its record is durable (pairs with confirm()).
    uint64_t usable(Durability level) const noexcept { return usable_[index(level)].load(std::memory_order_acquire); }

    WrittenRange written_range() const noexcept {
        const uint64_t until = written_.load(std::memory_order_acquire); // first: invariant 5
        return {until, lsn_.load(std::memory_order_relaxed)};
    }

  private:
    uint64_t raise(uint64_t position) noexcept { return raise_to(last_, position, std::memory_order_relaxed); }

    // Alone on its cache line: every call writes it, and the bounds are read far more often than they change.
    alignas(cache_line) Atom<uint64_t> last_;
    alignas(cache_line) Atom<uint64_t> usable_[durability_levels];
    Atom<uint64_t> written_;
    Atom<uint64_t> lsn_;
};

static_assert(std::atomic<uint64_t>::is_always_lock_free,
              "the word is shared between processes: an atomic with a hidden lock would not be");
static_assert(sizeof(PositionAllocator<>) == 2 * cache_line, "a third cache line would be touched by every call");

} // namespace uidgen::core
