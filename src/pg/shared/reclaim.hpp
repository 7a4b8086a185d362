// Takes a slot from a sequence that no session uses at the moment, when another sequence needs one.
//
// Why this is safe:
//   1. A slot is used under RowExclusiveLock on its sequence. A session that gets ExclusiveLock without waiting knows
//      that no transaction uses the slot. (AccessExclusiveLock would take a transaction id.)
//   2. Everything needed about the sequence is on its page. The values reserved in the slot become a gap.
//   3. A transaction's own locks never conflict with each other. So a transaction does not reclaim what it has used
//      itself.
//   4. Nor do the locks of its parallel workers conflict. So nothing is reclaimed in parallel mode.
#pragma once

#include "slots.hpp"

namespace uidgen::pg {

// Frees a slot of any database, so that one for `wanted_for` can be made: of a segment before that of a generator, and
// within a kind the longest unused. `used_here` says whether the open transaction uses a sequence of this database; it
// must not fail. False: no slot could be freed.
bool reclaim_slot(SlotKind wanted_for, bool (*used_here)(Oid sequence));

} // namespace uidgen::pg
