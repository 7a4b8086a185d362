// Frees the slots of sequences that are not there any more: dropped, rolled back with their creation, or of a database
// that was dropped.
//
// A slot that outlives its sequence harms nobody. A sequence that gets the same oid has another page, a generator's row
// that is inserted has its slot made anew, and databases of one oid have different keys (directory.hpp). So slots need
// not go with their sequences. They are looked at in turn when others are made, and cannot become more than those.
#pragma once

#include "slots.hpp"

namespace uidgen::pg {

// Frees a slot, and forgets what is kept beside it for the fleet. Under a lock that excludes all users.
void give_up_slot(const SlotKey &key);

// At the making of a slot: looks at the next few. It leaves those whose sequence any transaction has locked, this one
// included, and does nothing in parallel mode, because locks of parallel workers do not conflict.
void sweep_slots();

// The latest time in an id of a generator of this database and that layout that has a slot, and whose sequence the
// transaction does not see: so one that is made after a DROP in the same transaction starts above it, too. 0: none is
// ahead of the clock.
int64_t unseen_until_us(const core::Layout &layout);

} // namespace uidgen::pg
