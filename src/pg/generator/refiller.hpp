// The refiller: a background process that fills the rings of generators in cached mode ahead of time. It only moves
// positions inside a durable lease from the generator's word into the ring. It cannot extend a lease; callers do.
#pragma once

#include "memory/generator_state.hpp"

namespace uidgen::pg {

// The limit of what may be taken from the generator's word now: durable on this server, at most max_ahead above the
// clock, and inside the grant.
uint64_t refill_limit(const GeneratorState &generator, const GrantView &grant, int64_t now_us);

// A refill: moves runs from the generator's word into its ring, with positions from `floor` on and below `limit`, and
// counts itself in one of the ring's counters. Returns how many, runs_at_a_time or fewer. *left_over becomes the first
// position of a run that found no room, because other processes refilled too.
constexpr uint64_t runs_at_a_time = 256; // some ten microseconds
uint64_t refill_ring(GeneratorState *generator, core::Ring<> ring, uint64_t floor, uint64_t limit,
                     std::atomic<uint64_t> *refills, uint64_t *left_over);

// The first position that is fresh enough to be handed out now.
uint64_t fresh_from(const GeneratorState &generator, int64_t now_us);

} // namespace uidgen::pg
