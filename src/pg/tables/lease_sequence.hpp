// Which sequences may hold a generator's high-water mark: those that nextval cannot move, because one increment exceeds
// their maximum.
#pragma once

#include "core/range.hpp"
#include "base/postgres.hpp"

namespace uidgen::pg {

// The definition of a sequence.
core::SequenceRule sequence_rule(Oid sequence);

bool is_lease_sequence(Oid sequence);
void check_lease_sequence(Oid sequence);               // error if it is not
[[noreturn]] void report_lease_sequence(Oid sequence); // the caller expected a segment

} // namespace uidgen::pg
