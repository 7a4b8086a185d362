// What a sequence is. A generator's high-water mark is held by one that nextval cannot move, because one increment
// exceeds its maximum.
#pragma once

#include "core/range.hpp"
#include "base/postgres.hpp"

namespace uidgen::pg {

void check_is_sequence(Oid relation); // error if it is not

// Error if another session drops the sequence while this one waits for the lock.
void lock_sequence(Oid sequence, LOCKMODE mode);

// The definition of a sequence.
core::SequenceRule sequence_rule(Oid sequence);

bool is_lease_sequence(Oid sequence);
void check_lease_sequence(Oid sequence);               // error if it is not
[[noreturn]] void report_lease_sequence(Oid sequence); // the caller expected a segment

} // namespace uidgen::pg
