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

// The sequence of that name, of at most 63 bytes. The caller creates and owns it, unless there is one: by statements
// (CREATE SEQUENCE, setval for a generator), under a lock on the name (lock_name()). Needs an active snapshot.
Oid create_sequence(core::DefinitionKind kind, const char *name, const SequenceOptions &options)
    EXCLUDES(page_lock, table_lock, slot_lock, state_lock);

// The definition of a segment that has all defaults.
core::Definition new_segment(const char *name);

// Creates a segment and its sequence (create_sequence(), define_segment()), unless find_segment() finds it, and returns
// that. A sequence of the caller's that has no label, because it was restored without it, becomes the segment as it is.
// Error if the segment exists, or with if_not_exists a NOTICE. The caller has called
// hold_names().
Oid create_segment(const core::Definition &definition, const SequenceOptions &options, bool if_not_exists)
    EXCLUDES(page_lock, table_lock, slot_lock, state_lock);

// Makes a sequence without a label a segment, by define_sequence(), which locks it. Error unless the caller owns it.
void define_segment(Oid sequence, const core::Definition &definition)
    EXCLUDES(page_lock, table_lock, slot_lock, state_lock);

} // namespace uidgen::pg
