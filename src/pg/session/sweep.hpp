// Frees the slots of sequences that are not there any more: dropped, rolled back with their creation, or of a database
// that was dropped.
//
// A slot that outlives its sequence harms nobody. A sequence that gets the same oid has another page. If it is of the
// other kind, it gets another slot; and a generator's row that is inserted has the slot made anew. Databases of one oid
// have different keys (area.hpp). So slots need not go with their sequences. They are looked at in turn when others are
// made, and cannot become more than those.
//
// A slot also says how far the ids of a generator reached that was dropped. So it stays for ten minutes after these
// times, because a generator of the same layout that is made meanwhile starts above them (docs/design.md, P1 10). Then
// its last time is remembered for the database, whatever the layout.
#pragma once

#include "memory/slots.hpp"

namespace uidgen::pg {

// At the making of a slot: looks at the next few of each kind. It leaves those whose sequence any transaction has
// locked, this one included, and does nothing in parallel mode, because locks of parallel workers do not conflict.
void sweep_slots();

// How far ids of lost generators of this database reach, in microseconds; 0: there are none. They are those of
// generators of that layout whose sequence the transaction does not see (a DROP in the same transaction counts), or
// which had the oid of this one, and what is remembered for the database. Times before the clock's tick are of any
// generator of that layout: a start above them delays nothing, and to look for many sequences takes time.
struct LostTimes {
    int64_t latest_us;
    int64_t latest_within_us; // of those up to the limit
};
LostTimes lost_times(Oid generator, const core::Layout &layout, int64_t limit_us);

} // namespace uidgen::pg
