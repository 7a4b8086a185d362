// The refiller: a background process that fills the rings of generators in cached mode ahead of time.
//
// It is started by the first caller who misses it, and ends when no such generator is in use. It has no database
// connection, so it is in nobody's way, and it only moves what is in shared memory: positions inside a lease that is
// durable go from the generator's word into the ring. It can't extend a lease; callers do. Nothing rests on it: who finds
// the ring empty refills it himself (unless the generator's row says otherwise).
#pragma once

#include "shared/slots.hpp"

namespace uidgen::pg {

// Starts the refiller if there is none, and has it look at the rings soon.
void wake_refiller();

// Moves runs from the generator's word into its ring, as far as positions below `limit` reach, none below `floor`, and at
// most `most` of them. How many. *left_over is the first position of a run that found no place because others were refill
// too, or empty_cell.
uint64_t refill_ring(GeneratorState *generator, core::Ring<> ring, uint64_t floor, uint64_t limit, uint64_t most,
                  uint64_t *left_over);

// Counts a refill; the first one is the initial one, whoever did it.
void note_ring_refill(RingState *ring, RingRefill why);

// The first position that is fresh enough to be handed out now.
uint64_t fresh_from(const GeneratorState &generator, int64_t now_us);

} // namespace uidgen::pg
