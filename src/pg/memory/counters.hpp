// Counters: what the views uid_stat and uid_stat_server show. They only grow.
//
// Nothing is counted on the fast path. What a session draws through a window is known afterwards: the word says how far
// it has moved, and PassedOver how much of that was not handed out. All else happens on the slow path, which counts
// with relaxed atomics: no counter depends on another.
#pragma once

#include <atomic>

#include "base/base.hpp"

namespace uidgen::pg {

// Each is a column of the same name. Here `ids` are those of words that were reset, and of blocks. Behind each kind of
// waits is their time, in microseconds.
// clang-format off
#define UIDGEN_STATS(stat)                        \
    stat(ids)                                     \
    stat(records)                                 \
    stat(refused_clock)                           \
    stat(refused_rate)                            \
    stat(refused_registry)                        \
    stat(refused_ring)                            \
    stat(refused_used_up)                         \
    stat(flush_waits) stat(flush_wait_time)       \
    stat(standby_waits) stat(standby_wait_time)   \
    stat(clock_waits) stat(clock_wait_time)       \
    stat(registry_waits) stat(registry_wait_time) \
    stat(ring_waits) stat(ring_wait_time)
// clang-format on

#define UIDGEN_STAT(name) name,
enum class Stat : uint32_t { UIDGEN_STATS(UIDGEN_STAT) };
#undef UIDGEN_STAT

#define UIDGEN_STAT(name) #name,
constexpr const char *stat_names[] = {UIDGEN_STATS(UIDGEN_STAT)};
#undef UIDGEN_STAT

constexpr uint32_t stat_count = sizeof(stat_names) / sizeof(stat_names[0]);

constexpr uint32_t index(Stat stat) { return static_cast<uint32_t>(stat); }

constexpr bool is_time(Stat stat) {
    return stat > Stat::flush_waits && (index(stat) - index(Stat::flush_waits)) % 2 == 1;
}

// The Stat of the time that is spent in such waits.
constexpr Stat time_of(Stat waits) { return static_cast<Stat>(index(waits) + 1); }

// Values of all counters at one moment.
struct Stats {
    uint64_t values[stat_count];
};

inline void add_stats(Stats *to, const Stats &more) {
    for (uint32_t i = 0; i < stat_count; i++)
        to->values[i] += more.values[i];
}

struct Counters {
    std::atomic<uint64_t> values[stat_count];

    // In shared memory, of a slot or of the server: atomic, without a lock, as the next two.
    void count(Stat stat, uint64_t by = 1) { values[index(stat)].fetch_add(by, std::memory_order_relaxed); }

    // Adds the time of a nap or a flush that began then, on the monotonic clock, and ends now. Atomic, without a lock.
    // The nap that a cancel ends is not counted.
    void count_time(Stat waits, int64_t began_us) {
        count(time_of(waits), static_cast<uint64_t>(Max(monotonic_us() - began_us, 0)));
    }

    // One counter now. Atomic, without a lock.
    uint64_t counted(Stat stat) const { return values[index(stat)].load(std::memory_order_relaxed); }
};

// How many values a word has passed over without handing them out; all before its first one count as passed over.
//
// Numbered invariants
//   1. The count is never below what the word has passed over. Before a process moves the word further than by what it
//      takes, it adds the most that it can pass over; afterwards it takes back the excess. So handed_out() never says
//      too much, and says the truth while no process is between the two.
//   2. A reader that sees the word moved sees what was added before. The release fence pairs with the acquire fence in
//      handed_out(), through the word: every other move of it is a swap, which continues the release sequence.
class PassedOver {
  public:
    // While no other process can reach it. `next` is the first value that the word will hand out.
    void reset(uint64_t next) { count_.store(next, std::memory_order_relaxed); }

    // The word is before `next` or beyond it, and may be moved to hand out `target` next. Returns what settle()
    // must be given. Changes the slot's atomic without a lock, and does not move the word.
    uint64_t expect(uint64_t next, uint64_t target) {
        if (likely(target <= next))
            return 0;
        count_.fetch_add(target - next, std::memory_order_relaxed);
        std::atomic_thread_fence(std::memory_order_release);
        return target - next;
    }

    // After the word was moved: takes back from the slot's atomic, without a lock, what expect() added too much.
    void settle(uint64_t expected, uint64_t passed_over) {
        if (expected != passed_over)
            count_.fetch_sub(expected - passed_over, std::memory_order_relaxed);
    }

    // How many values the word has handed out, without a lock. `next` is the next one, read before the call.
    uint64_t handed_out(uint64_t next) const {
        std::atomic_thread_fence(std::memory_order_acquire);
        const uint64_t passed_over = count_.load(std::memory_order_relaxed);
        return next > passed_over ? next - passed_over : 0;
    }

  private:
    std::atomic<uint64_t> count_;
};

} // namespace uidgen::pg
