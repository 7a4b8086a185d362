// Deletes rows of uid_generator and uid_segment with their sequence. An oid left behind could later be another
// sequence's.
//
// There are two callers. The event trigger uid_forget_dropped() runs at the end of the command that drops, even if the
// library is not preloaded. drop_hooks.cpp runs before the commit, even if event triggers are off, as in single-user
// mode.
#pragma once

#include "base/postgres.hpp"

namespace uidgen::pg {

// The sequence is no longer in the catalog. Deletes its rows, if this database has the extension and such rows. If the
// default generator's row is deleted, the database has no default: a WARNING, because no other generator may replace it
// unasked.
void forget_dropped_sequence(Oid sequence);

} // namespace uidgen::pg
