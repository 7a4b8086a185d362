// A generator under a lock that excludes every session that draws from it: what may be done then.
//
// The lock is on the generator's sequence and lasts to the end of the transaction. No session holds the generator's
// slot, so the slot may be reset. The next draw makes again what it draws with, from the row that was committed, above
// the high-water mark.
#pragma once

#include "core/clock_policy.hpp"
#include "memory/slots.hpp"

namespace uidgen::pg {

constexpr LOCKMODE excludes_draws = ShareRowExclusiveLock;

// Error if the sequence was dropped meanwhile, or never was one.
void lock_generator(Oid generator);

// The same for a call that only the owner may make, and not on a standby. Returns the generator's configuration.
GeneratorConfig lock_own_generator(Oid schema, Oid generator);

// Discards what the generator has leased. Under lock_generator().
void end_lease(Oid generator);

// The same for a generator that this transaction has dropped, or, as an orphan, for one that had the oid of a generator
// whose row it makes.
void end_generator(Oid generator, SlotPhase phase);

// What the generator's sequence says; without a sequence, that it never wrote a lease. (A row may outlive its sequence
// where event triggers are off.) It may rise at once, except under lock_generator().
int64_t high_water_mark_of(Oid generator);

// Whether every id to come can be above `id`: the layout has such ids, and they are not too far ahead of the clock.
bool may_start_above(const GeneratorConfig &config, int64_t id);

// Raises the high-water mark, so that every id to come is above `id`, and makes it durable. A first mark is also above
// the ids of lost generators, unless `below_lost`. Error with the hint if the layout has no such ids, or none yet; the
// usual hint is about layouts. Under lock_generator().
void raise_above_id(Oid generator, const GeneratorConfig &config, int64_t id, const char *hint = nullptr,
                    bool below_lost = false);

} // namespace uidgen::pg
