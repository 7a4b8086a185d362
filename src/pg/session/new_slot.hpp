// How a slot is made from a sequence: the checks of the sequence, its row's configuration, its first position.
#pragma once

#include "core/high_water_mark.hpp"
#include "memory/slots.hpp"
#include "tables/config_table.hpp"

namespace uidgen::pg {

Slot *new_generator_slot(Relation rel, Oid function);
Slot *new_segment_slot(Relation rel, Oid function);

// The step bounds of a segment: those of its row, else of the settings, and bounded by the size of the sequence.
core::StepBounds step_bounds(const SegmentRow &row, const core::SequenceRule &rule);

// The last tick of generators of this layout that the database has lost since the server's start; negative: none.
int64_t last_tick_of_lost(Oid generator, const GeneratorConfig &config);

// The same for a generator without history to start above. If it is further ahead of the clock than max_ahead, it does
// not count, and a WARNING says so.
int64_t last_tick_to_pass(Oid generator, const GeneratorConfig &config);

// A WARNING if the layout has ended or ends within two years: when a generator gets it, and when a slot is made.
void warn_of_end(Oid generator, const core::Layout &layout);

// Error if the open transaction gave the sequence a new file. A rollback would restore the old page, below what was
// leased on the new one. (A segment behaves as nextval does.)
void refuse_rewritten(Relation rel);

} // namespace uidgen::pg
