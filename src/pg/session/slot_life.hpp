// The life of a slot: how it is made from a sequence (the checks of the sequence, its definition, its first
// position), and how it is freed when the sequence is not there any more.
#pragma once

#include "core/clock_policy.hpp"
#include "config/label.hpp"

namespace uidgen::pg {

// The slot of an open sequence, to be drawn from, under RowExclusiveLock. It is made (make_slot()) if there is none, or
// if what it was made from has changed. Then it reads the label, the page and other slots (init_generator()), on a
// segment takes ShareUpdateExclusiveLock for the moment if that is free (hold_label()), and frees slots whose sequences
// are gone (sweep_slots()). It is not ready if that may change again at any moment: an alteration of a segment has not
// ended.
Slot *find_or_make_slot(Relation rel, SlotKind kind) EXCLUDES(page_lock, table_lock, slot_lock, state_lock);

// A WARNING if the layout has ended, ends within two years or has not begun: when a generator is defined, and when a
// slot is made.
void warn_of_end(Oid generator, const core::Layout &layout);

// ---------------------------------------------------------------------------------------------------------
// A generator under a lock on its sequence, to the end of the transaction, that excludes every session that draws from
// it. So the slot may be reset. The next draw makes again what it draws with, from the committed definition, above the
// high-water mark.
// ---------------------------------------------------------------------------------------------------------

constexpr LOCKMODE excludes_draws = ShareRowExclusiveLock;

// Takes that lock, `excludes_draws`, to the end of the transaction, by lock_sequences(). Error if the sequence was
// dropped meanwhile, or never was one.
void lock_generator(Oid generator) EXCLUDES(page_lock, table_lock, slot_lock, state_lock);

// Marks the slot stale of a generator that is altered (expire_slot()), which discards its lease. Under
// lock_generator().
void end_lease(Oid generator) EXCLUDES(page_lock, table_lock, slot_lock, state_lock);

// Marks the slot dropped of a generator that is dropped, and notes in the server state how far its ids reach
// (drop_slot()). Under a lock on the sequence that excludes draws.
void lose_generator(Oid generator) EXCLUDES(page_lock, table_lock, slot_lock, state_lock);

// Notes in the server state (note_dropped()) how far the ids reach of all generators of this database whose sequences
// are gone, by their slots, each under its lock. Locks no sequence. A session that has not loaded the library drops
// without the above.
void note_all_lost() EXCLUDES(slot_lock, state_lock);

// For a sequence that becomes a generator's: notes all that are lost (note_all_lost()), and frees the slot of a
// generator that had its oid (free_slot()). Under a lock on the sequence that excludes draws.
void forget_generator(Oid generator) EXCLUDES(page_lock, table_lock, slot_lock, state_lock);

// What the generator's sequence says, or this incarnation knows; without a sequence, that it never wrote a lease. It
// may rise at once, except under lock_generator(). Reads the page and the slot, each under its lock, with
// AccessShareLock on the sequence for the moment.
int64_t high_water_mark_of(Oid generator) EXCLUDES(page_lock, table_lock, slot_lock, state_lock);

// The last tick of ids of lost generators of this layout (docs/design.md, P1 10), for a generator to start above;
// negative: none. What is further ahead of the clock than max_ahead does not count, which a WARNING says. Looks at
// other slots, each under its lock.
int64_t find_tick_to_pass(Oid generator, const GeneratorConfig &config) EXCLUDES(slot_lock, state_lock);

// Whether every id to come can be above `id`: the layout has such ids, and they are not too far ahead of the clock.
bool may_start_above(const GeneratorConfig &config, int64_t id);

constexpr char use_other_layout[] = "Use a layout with more bits, an earlier epoch or shorter ticks.";

// Raises the high-water mark on the page, so that every id to come is above `id`, makes it durable, and ends the lease
// (end_lease()). Error with the hint if the layout has no such ids, or none yet. Under lock_generator().
void raise_above_id(Oid generator, const GeneratorConfig &config, int64_t id, const char *hint = use_other_layout)
    EXCLUDES(page_lock, table_lock, slot_lock, state_lock);

} // namespace uidgen::pg
