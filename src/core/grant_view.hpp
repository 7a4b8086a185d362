// The grant that a generator draws with, published by one process at a time and read by many without a lock.
//
// Numbered invariants
//   1. `version` is odd while a writer changes the fields, and even otherwise. It only grows.
//   2. A reader that finds the same even version before and after it reads the fields has read one published view:
//      all of its fields, and of no other view.
//   3. A view that has become old is still right: its ticks belong to its node forever. So a reader may act on what it
//      has read, however late it is.
//
// A writer that stops forever leaves an odd version. A reader that fails too often must read under the writer's lock.
//
// A test may replace Atom by its own atomic that explores interleavings.
#pragma once

#include <atomic>
#include <cstdint>

namespace uidgen::core {

// The right to use the ticks from <= t < until of a node (grant.hpp).
struct GrantView {
    bool granted;
    int64_t node;
    int64_t from;  // ticks of the layout
    int64_t until; // the first tick beyond
};

constexpr GrantView no_grant = {false, 0, 0, 0};

constexpr bool same_view(const GrantView &a, const GrantView &b) noexcept {
    return a.granted == b.granted && a.node == b.node && a.from == b.from && a.until == b.until;
}

template <template <typename> class Atom = std::atomic> class SharedGrantView {
  public:
    // Only while no other process can reach it.
    void reset() noexcept {
        version_.store(0, std::memory_order_relaxed);
        set(no_grant);
    }

    // One writer at a time. The fields are stored with release: a reader that sees one of them also sees the odd
    // version when it loads it again. The even version is stored with release, so a reader that sees it sees the
    // fields.
    void publish(const GrantView &view) noexcept {
        const uint64_t version = version_.load(std::memory_order_relaxed);
        version_.store(version + 1, std::memory_order_relaxed);
        set(view);
        version_.store(version + 2, std::memory_order_release);
    }

    // False: a writer was at work, so *view is worth nothing. The fields are loaded with acquire (pairs with set()),
    // which keeps the second load of the version behind them; the first one pairs with publish().
    bool try_read(GrantView *view) const noexcept {
        const uint64_t before = version_.load(std::memory_order_acquire);
        view->node = node_.load(std::memory_order_acquire);
        view->from = from_.load(std::memory_order_acquire);
        view->until = until_.load(std::memory_order_acquire);
        view->granted = view->until > view->from;
        return before % 2 == 0 && version_.load(std::memory_order_relaxed) == before;
    }

    // For the writer, and for a reader under the writer's lock.
    GrantView read_locked() const noexcept {
        GrantView view = no_grant;
        (void)try_read(&view);
        return view;
    }

  private:
    // A grant has at least one tick, so an empty range means that there is none.
    void set(const GrantView &view) noexcept {
        node_.store(view.granted ? view.node : 0, std::memory_order_release);
        from_.store(view.granted ? view.from : 0, std::memory_order_release);
        until_.store(view.granted ? view.until : 0, std::memory_order_release);
    }

    Atom<uint64_t> version_;
    Atom<int64_t> node_;
    Atom<int64_t> from_;
    Atom<int64_t> until_;
};

} // namespace uidgen::core
