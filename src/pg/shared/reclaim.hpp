// Taking a slot away from a sequence that nobody uses at the moment, when others need one.
//
// Why that is safe: a slot is used under RowExclusiveLock on its sequence, so whoever gets ExclusiveLock without
// waiting knows that no transaction uses it. All there is to know about the sequence is on its page; what was in
// hand becomes a gap. Two cases need care. A transaction's own locks never stand in its own way, so it does not
// reclaim what it has used itself; and neither do those of its parallel workers, so nothing is reclaimed in parallel
// mode. (AccessExclusiveLock would take a transaction id.)
#pragma once

#include "slots.hpp"

namespace uidgen::pg {

// Frees a slot of any database, of a segment before that of a generator, and of those the one that was not used for the
// longest time, so that one of that kind can be made. `used_here` tells whether the open transaction uses a sequence of this database; it must not fail.
// False: none could be freed.
bool reclaim_slot(SlotKind wanted_for, bool (*used_here)(Oid sequence));

} // namespace uidgen::pg
