// What the slot of a generator has: the words that its ids come from, its configuration, its ring and its node
// (slots.hpp says who may touch what).
#pragma once

#include "core/clock_policy.hpp"
#include "core/node.hpp"
#include "memberships.hpp"
#include "node_draws.hpp"

namespace uidgen::pg {

// The ring of cached mode: the positions from <= n < until, as far as the word has not passed them, are made ahead of
// the calls (generator/cached.cpp). Relaxed: a wrong bound costs time, never a position.
struct RingState {
    std::atomic<uint64_t> from;
    std::atomic<uint64_t> until;         // 0: nothing was ever made
    std::atomic<int64_t> refilled_at_us; // on the monotonic clock
    std::atomic<uint64_t> refills;       // by the refiller
    std::atomic<uint64_t> refills_by_caller;
    std::atomic<uint64_t> rejected_takes; // calls
    std::atomic<uint64_t> too_old;        // ids
};

struct GeneratorState {
    core::PositionAllocator<> ticks;     // leases are published in it under the page's lock
    core::PositionAllocator<> backup;    // of layouts with a backup worker; draws under the leases of `ticks`
    uint64_t records_before;             // what Stat::records counted when the slot was made ready
    int64_t former_until_us;             // slot_last_time() when the slot was made ready
    int64_t former_mark;                 // the high-water mark when the slot was made ready
    std::atomic<int64_t> seen;           // the latest tick of the clock that an id was made with
    GeneratorConfig config;              // changes under the lock of the slot and that of the state
    RingState ring;                      // of cached mode
    std::atomic<bool> warned;            // of a datacenter id that is not used
    std::atomic<int64_t> granted_node;   // the node of the registry that a row of worker_node shows; -1: none
    std::atomic<uint64_t> clock_changes; // odd while the clock is behind (generator/clock.hpp)
    std::atomic<uint64_t> backup_ids;    // of the backup worker
};

struct GeneratorSlot {
    MemberSlot slot;
    GeneratorState generator;
    NodeDraw draws; // the first place; not of one use of the slot, as the rest
};

static_assert(std::is_standard_layout_v<GeneratorSlot> && std::is_trivially_destructible_v<GeneratorSlot>);

// The part of a slot that only a generator's has: an address, so no lock is needed.
inline GeneratorState &generator_of(Slot *slot) { return reinterpret_cast<GeneratorSlot *>(slot)->generator; }
inline const GeneratorState &generator_of(const Slot *slot) { return generator_of(const_cast<Slot *>(slot)); }

} // namespace uidgen::pg
