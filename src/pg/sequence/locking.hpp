// Locks on sequences. The modes that exclude draws are waited for in short attempts.
#pragma once

#include <initializer_list>

#include "base/base.hpp"

namespace uidgen::pg {

// Error if another session drops the sequence while this one waits for the lock.
void lock_sequence(Oid sequence, LOCKMODE mode);

// Takes a lock in a short attempt, and looks for a deadlock soon. The other session in it looks once, after
// deadlock_timeout, which may be between two attempts of this one. If it is the attempt's first lock, nothing is held
// yet that its end would release, so a deadlock that is found would last.
void lock_first(Oid relation, LOCKMODE mode);

// Takes a lock that excludes draws, on all of these or on none, without making sessions that draw queue behind it for
// longer than half a second: it waits in short attempts, and lets them draw between two attempts, for as long as
// lock_timeout says (0: without limit). Where draws wait for the clock or for a grant, attempts are as long as their
// waits. Error if the first one was dropped meanwhile.
void lock_sequences(std::initializer_list<Oid> sequences, LOCKMODE mode);

} // namespace uidgen::pg
