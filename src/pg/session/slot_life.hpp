// The life of a slot: how it is made from a sequence (the checks of the sequence, its row's configuration, its first
// position), and how it is freed when the sequence is not there any more.
#pragma once

#include "core/clock_policy.hpp"
#include "memory/slots.hpp"
#include "config/rows.hpp"

namespace uidgen::pg {

// The slot of an open sequence, made unless another session makes it first.
Slot *new_slot(Relation rel, SlotKind kind);

// The step bounds of a segment: those of its row, else of the settings, and bounded by the size of the sequence.
core::StepBounds step_bounds(const SegmentRow &row, const core::SequenceRule &rule);

// The last tick of generators of this layout that the database has lost since the server's start, for a generator
// without history to start above; negative: none. If it is further ahead of the clock than max_ahead, it does not
// count, and a WARNING says so.
int64_t last_tick_to_pass(Oid generator, const GeneratorConfig &config);

// A WARNING if the layout has ended or ends within two years: when a generator gets it, and when a slot is made.
void warn_of_end(Oid generator, const core::Layout &layout);

// Error if the open transaction gave the sequence a new file. A rollback would restore the old page, below what was
// leased on the new one. (A segment behaves as nextval does.)
void refuse_rewritten(Relation rel);

// ---------------------------------------------------------------------------------------------------------
// Frees the slots of sequences that are not there any more: dropped, rolled back with their creation, or of a database
// that was dropped.
//
// A slot that outlives its sequence does no harm (docs/design.md, P1 5), so slots need not go with their sequences.
// They are looked at in turn when others are made, and cannot become more than those. That of a generator stays for ten
// minutes after its last time, because it says how far the ids reached (P1 10). Then that time is remembered for the
// database, whatever the layout.
// ---------------------------------------------------------------------------------------------------------

// At the making of a slot: looks at the next few of each kind. It leaves those whose sequence any transaction has
// locked, this one included, and does nothing in parallel mode, because locks of parallel workers do not conflict.
void sweep_slots();

// How far ids of lost generators of this database reach, in microseconds; 0: there are none (docs/design.md, P1 10).
// They are those of generators of that layout whose sequence the transaction does not see, or which had the oid of this
// one, and what is remembered for the database.
struct LostTimes {
    int64_t latest_us;
    int64_t latest_within_us; // of those up to the limit
};
LostTimes lost_times(Oid generator, const core::Layout &layout, int64_t limit_us);

// ---------------------------------------------------------------------------------------------------------
// A generator under a lock on its sequence, to the end of the transaction, that excludes every session that draws from
// it. So the slot may be reset. The next draw makes again what it draws with, from the row that was committed, above
// the high-water mark.
// ---------------------------------------------------------------------------------------------------------

constexpr LOCKMODE excludes_draws = ShareRowExclusiveLock;

// Error if the sequence was dropped meanwhile, or never was one.
void lock_generator(Oid generator);

// The same for a call that only the owner may make, and not on a standby. Returns the generator's configuration.
GeneratorConfig lock_own_generator(Oid schema, Oid generator);

// Discards what the generator has leased. Under lock_generator().
void end_lease(Oid generator);

// The same for a generator that this transaction has dropped.
void end_generator(Oid generator);

// For a sequence that becomes a generator's: frees the slot of a generator or segment that had its oid. Under
// lock_generator().
void forget_generator(Oid generator);

// What the generator's sequence says; without a sequence, that it never wrote a lease. (A row may outlive its sequence
// where event triggers are off.) It may rise at once, except under lock_generator().
int64_t high_water_mark_of(Oid generator);

// Whether every id to come can be above `id`: the layout has such ids, and they are not too far ahead of the clock.
bool may_start_above(const GeneratorConfig &config, int64_t id);

// Raises the high-water mark, so that every id to come is above `id`, and makes it durable. A first mark is also above
// the ids of lost generators. Error with the hint if the layout has no such ids, or none yet; the
// usual hint is about layouts. Under lock_generator().
void raise_above_id(Oid generator, const GeneratorConfig &config, int64_t id, const char *hint = nullptr);

} // namespace uidgen::pg
