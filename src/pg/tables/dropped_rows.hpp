// Rows of uid_generator and uid_segment go with their sequence: an oid left behind would one day be another sequence's.
//
// Two callers see to it. The event trigger uid_forget_dropped() does at the end of the command that drops, also where the
// library is not preloaded. drop_hooks.cpp does before the commit, also where event triggers are off, as in single-user mode.
#pragma once

#include "base/postgres.hpp"

namespace uidgen::pg {

// The sequence is gone from the catalog. Deletes its rows, if this database has the extension and there are any. With the
// default generator's row goes the default: a WARNING, because no other generator may take its place unasked.
void forget_dropped_sequence(Oid sequence);

} // namespace uidgen::pg
