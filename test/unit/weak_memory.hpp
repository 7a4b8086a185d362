// Atomics that return every value that the memory model allows, for the explorer.
//
// The model is RC11 without sequentially consistent operations and without fences, neither of which src/core has. It is
// run as a machine of views:
//
//   - A location keeps all values that were written to it, in modification order. A view says for each location how
//     much of that order is known.
//   - Each actor has a view. It may read any value that its view does not make outdated, and then knows it.
//   - A value that was written with release carries the writer's view. An actor that reads it with acquire knows what
//     the writer knew. A value that was written relaxed carries nothing.
//   - A store may come anywhere in the modification order that is new to the actor's view, but not between a
//     read-modify-write and the value that this one read.
//   - A read-modify-write comes directly after the value that it read, and carries on its view (a release sequence, as
//     C++20 has it: a relaxed store by the same actor does not continue one).
//   - A compare-and-swap that fails is a load. A weak one may also fail although it has read what it expected.
//
// RC11 excludes load buffering: no load returns what a later operation of its own actor has caused. C++ and arm64 allow
// it for a relaxed load and a later relaxed write that does not depend on it. docs/design.md names such pairs in
// src/core, and says why they are harmless.
//
// Each operation finds out by its default arguments where it stands in the source. So a test can weaken one of them,
// and can tell which ones it has not seen.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <unordered_set>
#include <vector>

#include "explorer.hpp"

namespace uidgen::test {

// An operation's memory order, where it is asked for.
struct OrderSite {
    const char *file;
    int line;
    std::memory_order order;
    enum { access, swap, failed_swap } of = access;

    friend bool operator==(const OrderSite &a, const OrderSite &b) {
        return a.line == b.line && a.order == b.order && a.of == b.of && strcmp(a.file, b.file) == 0;
    }
};

class WeakMemory {
  public:
    using View = std::array<uint8_t, 24>; // by location

    // How often a schedule's weak swaps may fail although they have read what they expected.
    static constexpr int most_spurious_failures = 1;

    std::vector<OrderSite> seen_sites;
    const OrderSite *weakened = nullptr; // this one's order is
    std::memory_order weakened_to = std::memory_order_relaxed;
    const OrderSite *torn = nullptr; // this swap is a load and a store

    // Before a world is made.
    void clear() {
        locations_count_ = 0;
        locks_count_ = 0;
        spurious_failures_ = 0;
        actors_ = {};
    }

    size_t add_location() {
        Location &location = locations_.at(locations_count_);
        location.values.assign(1, Value{});
        return locations_count_++;
    }

    size_t add_lock() {
        locks_.at(locks_count_) = {};
        return locks_count_++;
    }

    uint64_t load(size_t where, std::memory_order order) {
        if (Explorer::active == nullptr)
            return last(where).word;
        Explorer::active->step();
        const size_t oldest = actor().view[where];
        return read(where, oldest + pick(values(where).size() - oldest), order);
    }

    void store(size_t where, uint64_t word, std::memory_order order) {
        if (Explorer::active == nullptr) {
            last(where).word = word;
            return;
        }
        Explorer::active->step();
        size_t places[most_values];
        size_t count = 0;
        for (size_t i = actor().view[where] + 1u; i <= values(where).size(); i++)
            if (i == values(where).size() || !values(where)[i].by_swap)
                places[count++] = i;
        write(where, places[pick(count)], {word, {}, false}, order);
        observe(1);
    }

    bool compare_exchange(size_t where, uint64_t *expected, uint64_t desired, std::memory_order success,
                          std::memory_order failure, bool weak) {
        if (Explorer::active == nullptr) {
            const bool same = last(where).word == *expected;
            (same ? last(where).word : *expected) = same ? desired : last(where).word;
            return same;
        }
        Explorer::active->step();
        SwapResult results[2 * most_values];
        const size_t count = results_of_swap(where, *expected, weak, results);
        const SwapResult result = results[pick(count)];
        if (result.swaps) {
            swap(where, result.read, desired, success);
            return true;
        }
        spurious_failures_ += values(where)[result.read].word == *expected ? 1 : 0;
        *expected = read(where, result.read, failure);
        return false;
    }

    // What a swap is not.
    bool load_and_store(size_t where, uint64_t *expected, uint64_t desired, std::memory_order order) {
        const uint64_t seen = load(where, std::memory_order_acquire);
        if (seen != *expected) {
            *expected = seen;
            return false;
        }
        store(where, desired, order);
        return true;
    }

    void lock(size_t which) {
        const Lock &lock = locks_[which];
        wait([&lock] { return !lock.exclusive && lock.shared == 0; });
        locks_[which].exclusive = true;
        join(&actor().view, lock.left_by_writers);
        join(&actor().view, lock.left_by_readers);
        observe(lock.guarded);
    }
    void unlock(size_t which) {
        join(&locks_[which].left_by_writers, actor().view);
        locks_[which].guarded = actor().observed;
        locks_[which].exclusive = false;
    }
    void lock_shared(size_t which) {
        const Lock &lock = locks_[which];
        wait([&lock] { return !lock.exclusive; });
        locks_[which].shared++;
        join(&actor().view, lock.left_by_writers);
        observe(lock.guarded);
    }
    void unlock_shared(size_t which) {
        join(&locks_[which].left_by_readers, actor().view);
        locks_[which].shared--;
    }

    // The caller has forgotten what it has read, except for what these bits say. It is at the head of a loop, which
    // would otherwise make endlessly many states.
    void start_over(uint64_t bits) { actor().observed = mix(0, bits); }

    std::memory_order order_at(const OrderSite &site) {
        if (std::find(seen_sites.begin(), seen_sites.end(), site) == seen_sites.end())
            seen_sites.push_back(site);
        return weakened != nullptr && *weakened == site ? weakened_to : site.order;
    }

    // All that can influence what comes. An actor does the same whenever it has read the same, so its reads stand for
    // it; and what a lock guards is what its last writer made of its own reads.
    uint64_t state() const {
        uint64_t hash = mix(0, spurious_failures_);
        for (const Actor &actor : actors_)
            hash = mix(mix_view(hash, actor.view), actor.observed);
        for (size_t i = 0; i < locations_count_; i++) {
            hash = mix(hash, locations_[i].values.size());
            for (const Value &value : locations_[i].values)
                hash = mix(mix_view(hash, value.view), 2 * value.word + (value.by_swap ? 1 : 0));
        }
        for (size_t i = 0; i < locks_count_; i++) {
            const Lock &lock = locks_[i];
            hash = mix_view(mix_view(mix(hash, lock.guarded), lock.left_by_writers), lock.left_by_readers);
            hash = mix(hash, 2 * static_cast<uint64_t>(lock.shared) + (lock.exclusive ? 1 : 0));
        }
        return hash;
    }

  private:
    static constexpr size_t most_values = 32;

    struct Value {
        uint64_t word = 0;
        View view = {}; // that a reader gets by acquire
        bool by_swap = false;
    };

    struct Location {
        std::vector<Value> values; // in modification order
    };

    struct Actor {
        View view = {};
        uint64_t observed = 0; // a hash of all that it has read
    };

    struct Lock {
        bool exclusive = false;
        int shared = 0;
        View left_by_writers = {};
        View left_by_readers = {};
        uint64_t guarded = 0; // a hash of the data that the lock guards
    };

    struct SwapResult {
        size_t read;
        bool swaps;
    };

    static uint64_t mix(uint64_t hash, uint64_t more) {
        // First what there is: mix(h, h) must not be the same for each h.
        hash = ((hash * UINT64_C(0xD1B54A32D192ED03) ^ more) + 1) * UINT64_C(0x9E3779B97F4A7C15);
        return hash ^ hash >> 29;
    }
    static uint64_t mix_view(uint64_t hash, const View &view) {
        uint64_t words[sizeof(View) / sizeof(uint64_t)];
        memcpy(words, view.data(), sizeof(View));
        for (const uint64_t word : words)
            hash = mix(hash, word);
        return hash;
    }
    static void join(View *to, const View &from) {
        for (size_t i = 0; i < from.size(); i++)
            (*to)[i] = std::max((*to)[i], from[i]);
    }
    static bool acquires(std::memory_order order) {
        return order == std::memory_order_acquire || order == std::memory_order_acq_rel;
    }
    static bool releases(std::memory_order order) {
        return order == std::memory_order_release || order == std::memory_order_acq_rel;
    }
    static size_t pick(size_t options) { return Explorer::active->pick(options); }

    static void wait(const std::function<bool()> &free) {
        if (Explorer::active == nullptr)
            abort(); // a world is made without its locks
        Explorer::active->step_when(free);
    }

    Actor &actor() { return actors_[Explorer::active->actor()]; }
    std::vector<Value> &values(size_t where) { return locations_[where].values; }
    Value &last(size_t where) { return values(where).back(); }
    void observe(uint64_t what) { actor().observed = mix(actor().observed, what); }

    uint64_t read(size_t where, size_t which, std::memory_order order) {
        const Value &value = values(where)[which];
        actor().view[where] = static_cast<uint8_t>(which);
        if (acquires(order))
            join(&actor().view, value.view);
        observe(value.word);
        return value.word;
    }

    // All views of the values behind the new one move with them.
    void write(size_t where, size_t place, Value value, std::memory_order order) {
        if (values(where).size() == most_values)
            abort();
        for (Actor &actor : actors_)
            make_room(&actor.view, where, place);
        for (size_t i = 0; i < locks_count_; i++) {
            make_room(&locks_[i].left_by_writers, where, place);
            make_room(&locks_[i].left_by_readers, where, place);
        }
        for (size_t i = 0; i < locations_count_; i++)
            for (Value &other : locations_[i].values)
                make_room(&other.view, where, place);
        make_room(&value.view, where, place);
        actor().view[where] = static_cast<uint8_t>(place);
        if (releases(order))
            join(&value.view, actor().view);
        value.view[where] = static_cast<uint8_t>(place);
        values(where).insert(values(where).begin() + static_cast<ptrdiff_t>(place), value);
    }

    static void make_room(View *view, size_t where, size_t place) {
        if ((*view)[where] >= place)
            (*view)[where]++;
    }

    // The caller has expected what the new value replaces, so that it needs not be observed.
    void swap(size_t where, size_t read, uint64_t word, std::memory_order order) {
        const Value &before = values(where)[read];
        if (acquires(order))
            join(&actor().view, before.view);
        write(where, read + 1, {word, before.view, true}, order);
        observe(1);
    }

    size_t results_of_swap(size_t where, uint64_t expected, bool weak, SwapResult *results) {
        size_t count = 0;
        for (size_t i = actor().view[where]; i < values(where).size(); i++) {
            const bool is_taken = i + 1 < values(where).size() && values(where)[i + 1].by_swap;
            if (values(where)[i].word != expected)
                results[count++] = {i, false};
            else if (!is_taken)
                results[count++] = {i, true};
            if (values(where)[i].word == expected && weak && spurious_failures_ < most_spurious_failures)
                results[count++] = {i, false};
        }
        return count;
    }

    std::array<Location, std::tuple_size<View>::value> locations_;
    size_t locations_count_ = 0;
    std::array<Lock, 4> locks_;
    size_t locks_count_ = 0;
    std::array<Actor, 4> actors_;
    int spurious_failures_ = 0;
};

inline WeakMemory weak_memory;

// Stands in for std::atomic.
template <typename T> class Weak {
  public:
    Weak() : where_(weak_memory.add_location()) {}
    Weak(const Weak &) = delete;
    Weak &operator=(const Weak &) = delete;

    T load(std::memory_order order, const char *file = __builtin_FILE(), int line = __builtin_LINE()) const {
        return static_cast<T>(weak_memory.load(where_, weak_memory.order_at({file, line, order})));
    }
    void store(T value, std::memory_order order, const char *file = __builtin_FILE(), int line = __builtin_LINE()) {
        weak_memory.store(where_, static_cast<uint64_t>(value), weak_memory.order_at({file, line, order}));
    }
    bool compare_exchange_weak(T &expected, T desired, std::memory_order success, std::memory_order failure,
                               const char *file = __builtin_FILE(), int line = __builtin_LINE()) {
        return compare_exchange(expected, desired, {file, line, success, OrderSite::swap},
                                {file, line, failure, OrderSite::failed_swap}, true);
    }
    bool compare_exchange_strong(T &expected, T desired, std::memory_order success, std::memory_order failure,
                                 const char *file = __builtin_FILE(), int line = __builtin_LINE()) {
        return compare_exchange(expected, desired, {file, line, success, OrderSite::swap},
                                {file, line, failure, OrderSite::failed_swap}, false);
    }

  private:
    bool compare_exchange(T &expected, T desired, const OrderSite &success, const OrderSite &failure, bool weak) {
        auto word = static_cast<uint64_t>(expected);
        const std::memory_order order = weak_memory.order_at(success);
        const std::memory_order if_it_fails = weak_memory.order_at(failure);
        const bool swapped =
            weak_memory.torn != nullptr && *weak_memory.torn == success
                ? weak_memory.load_and_store(where_, &word, static_cast<uint64_t>(desired), order)
                : weak_memory.compare_exchange(where_, &word, static_cast<uint64_t>(desired), order, if_it_fails, weak);
        expected = static_cast<T>(word);
        return swapped;
    }

    const size_t where_;
};

// Stands in for a page's lock: what its holders did is known to the next.
class WeakLock {
  public:
    WeakLock() : which_(weak_memory.add_lock()) {}
    void lock() { weak_memory.lock(which_); }
    void unlock() { weak_memory.unlock(which_); }
    void lock_shared() { weak_memory.lock_shared(which_); }
    void unlock_shared() { weak_memory.unlock_shared(which_); }

  private:
    const size_t which_;
};

// Runs a scenario until no new state is left, or up to the first outcome that is not acceptable. With a bound, one actor
// is halted.
template <typename World>
Explored explore_weakly(const Table &acceptable, const Actors<World> &actors, Explorer::Bounds bounds = {}) {
    std::unordered_set<uint64_t> known;
    std::unique_ptr<World> world;
    std::vector<Explorer::Body> bodies;
    for (const auto actor : actors)
        bodies.push_back([&world, actor] { actor(*world); });
    bounds.is_known = [&known] { return !known.insert(weak_memory.state()).second; };
    Explorer explorer(bounds);
    Explored result;
    do {
        weak_memory.clear();
        world = std::make_unique<World>();
        const Explorer::End end = explorer.run(bodies);
        result.schedules++;
        if (end == Explorer::End::known)
            continue;
        const std::string outcome = end == Explorer::End::deadlock  ? "DEADLOCK"
                                    : end == Explorer::End::endless ? "ENDLESS"
                                                                    : world->outcome();
        result.halted += explorer.halted() ? 1 : 0;
        result.seen.insert(outcome);
        if (acceptable.count(outcome) == 0) {
            result.forbidden = outcome + ", by schedule " + explorer.schedule();
            break;
        }
    } while (explorer.advance());
    return result;
}

// The schedules of a scenario with one actor halted: before its first operation, after it, after its second, and so on
// until it always ends before.
template <typename World> Explored explore_halted(const Table &acceptable, const Actors<World> &actors, size_t halted) {
    Explored all;
    for (uint64_t after = 0;; after++) {
        const Explored result = explore_weakly<World>(acceptable, actors, {halted, after, nullptr});
        all.schedules += result.schedules;
        all.seen.insert(result.seen.begin(), result.seen.end());
        all.halted += result.halted;
        all.forbidden = result.forbidden;
        if (result.halted == 0 || !result.forbidden.empty())
            return all;
    }
}

} // namespace uidgen::test
