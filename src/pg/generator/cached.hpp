// Drawing from a generator in cached mode: from the run that all sessions share, else from the ring, else by the
// generator's policy for an empty ring.
//
// When the wall clock is read:
//   1. The fast path does not read it, only the coarse monotonic clock (3).
//   2. The slow path (a transaction's first call, a new run, an empty ring) reads it, and throws away what is older
//      than half of max_staleness.
//   3. The fast path may then continue for the other half. It measures that time by the coarse monotonic clock,
//      because the wall clock may be set meanwhile.
// So no id is older than max_staleness when it is handed out, even without a refiller.
#pragma once

#include "draw.hpp"

namespace uidgen::pg {

// As draw(). Leaves a window on the rest of the run.
Drawn draw_cached(SessionEntry *e, uint64_t want);

// ---------------------------------------------------------------------------------------------------------
// The refiller: a background process that fills the rings of generators in cached mode ahead of time.
//
// The first caller that finds no refiller starts it. It ends when no such generator is in use. It has no database
// connection, so it blocks no other command. It only works in shared memory: it moves positions inside a durable lease
// from the generator's word into the ring. It cannot extend a lease; callers do. Correctness does not depend on it: a
// caller that finds the ring empty refills it, unless the generator's row says otherwise.
// ---------------------------------------------------------------------------------------------------------

// Starts the refiller if there is none, and wakes it.
void wake_refiller();

// The limit of what may be taken from the generator's word now: durable on this server, at most max_ahead above the
// clock, and inside the grant.
uint64_t refill_limit(const GeneratorState &generator, const GrantView &grant, int64_t now_us);

// Moves at most `most` runs from the generator's word into its ring, with positions from `floor` on and below `limit`.
// Returns how many. *left_over is the first position of a run that found no room because other processes refilled too,
// or empty_cell.
uint64_t refill_ring(GeneratorState *generator, core::Ring<> ring, uint64_t floor, uint64_t limit, uint64_t most,
                     uint64_t *left_over);

// Counts a refill. The first one counts as the initial one, whichever process did it.
void note_ring_refill(RingState *ring, RingRefill why);

// The first position that is fresh enough to be handed out now.
uint64_t fresh_from(const GeneratorState &generator, int64_t now_us);

} // namespace uidgen::pg
