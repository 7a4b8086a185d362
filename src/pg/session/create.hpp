// The sequences of generators, segments and keys: how one is made in the schema of its kind, unless it is there.
#pragma once

#include "config/label.hpp"

namespace uidgen::pg {

struct SequenceOptions {
    int64_t start = 1;
    int64_t increment = 1;
    int64_t min_value = 1;
    int64_t max_value = PG_INT64_MAX;
    bool cycle = false;
};

// The sequence of that name, of at most 63 bytes. The caller creates and owns it, unless there is one, and waits for a
// session that is creating it. Needs an active snapshot.
Oid create_sequence(core::DefinitionKind kind, const char *name, const SequenceOptions &options);

// The definition of a segment that has all defaults.
core::Definition new_segment(const char *name);

// Creates a segment and its sequence, and returns that. A sequence of the caller's that has no label, because it was
// restored without it, becomes the segment as it is. Error if the segment exists, or with if_not_exists a NOTICE. After
// hold_names().
Oid create_segment(const core::Definition &definition, const SequenceOptions &options, bool if_not_exists);

// Makes a sequence without a label a segment.
void define_segment(Oid sequence, const core::Definition &definition);

} // namespace uidgen::pg
