// How a slot is made from a sequence: what the sequence must be, what its row says, where it starts.
//
// Each of these takes a slot away from another sequence when none is left (reclaim.hpp); `used_here` tells whether
// the open transaction uses a sequence of this database.
#pragma once

#include "core/high_water_mark.hpp"
#include "shared/slots.hpp"

namespace uidgen::pg {

using UsedHere = bool (*)(Oid sequence);

Slot *new_generator_slot(Relation rel, Oid function, UsedHere used_here);
Slot *new_segment_slot(Relation rel, Oid function, UsedHere used_here);

// The definition of a sequence.
core::SequenceRule sequence_rule(Oid sequence);

// The step bounds of a segment: of its row, or of the settings, or of a sequence too small for them.
core::StepBounds step_bounds(Oid sequence, Oid function);

// The last tick of the generators of that layout that the database has lost since the server's start; negative: there is
// none.
int64_t last_tick_of_lost(const GeneratorConfig &config);

// Whether a sequence is made so that nextval can't move it: one step leads beyond its last value. Only such a
// sequence can keep a generator's leases.
bool is_lease_sequence(Oid sequence);
void check_lease_sequence(Relation rel);              // error if it is not
[[noreturn]] void report_lease_sequence(Oid sequence); // what was asked is for segments

// A transaction that gave the sequence a new file and rolls back brings the old page back, below what was
// leased on the new one. So a generator takes no lease in that transaction. (A segment behaves as nextval.)
void refuse_rewritten(Relation rel);

} // namespace uidgen::pg
