// How a slot is made from a sequence: what the sequence must be, what its row says, where it starts.
//
// Each of these takes a slot away from another sequence when none is left (reclaim.hpp); `used_here` tells whether
// the open transaction uses a sequence of this database.
#pragma once

#include "shared/slots.hpp"

namespace uidgen::pg {

using UsedHere = bool (*)(Oid sequence);

Slot *new_generator_slot(Relation rel, Oid function, UsedHere used_here);
Slot *new_segment_slot(Relation rel, Oid function, UsedHere used_here);

// The definition of a sequence.
core::SequenceRule sequence_rule(Oid sequence);

// The step bounds of a segment: of its row, or of the settings, or of a sequence too small for them.
core::StepBounds step_bounds(Oid sequence, Oid function);

// A lease sequence counts term x 2^47 + tick (max_time_bits), so that its format does not depend on the layout; the word
// counts term x 2^time_bits + tick. A counter beyond what the generator can use stands for its end.
int64_t ticks_of_counter(const GeneratorConfig &config, int64_t last_value);
int64_t counter_of_ticks(const GeneratorConfig &config, int64_t ticks);

// How many terms a generator has: one, or with when_back new_worker one a worker id, at most 2^16.
int64_t terms_of(const GeneratorConfig &config);

// The last tick of the generators of that layout that the database has lost since the server's start; negative: there is
// none.
int64_t last_tick_of_lost(const GeneratorConfig &config);

// The first position above everything that a page with that last_value says was ever leased.
uint64_t position_above(const GeneratorConfig &config, int64_t last_value);

// Whether a sequence is made so that nextval can't move it: one step leads beyond its last value. Only such a
// sequence can keep a generator's leases.
bool is_lease_sequence(Oid sequence);
void check_lease_sequence(Relation rel);              // error if it is not
[[noreturn]] void report_lease_sequence(Oid sequence); // what was asked is for segments

// A transaction that gave the sequence a new file and rolls back brings the old page back, below what was
// leased on the new one. So a generator takes no lease in that transaction. (A segment behaves as nextval.)
void refuse_rewritten(Relation rel);

} // namespace uidgen::pg
