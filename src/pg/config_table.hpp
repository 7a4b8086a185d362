// Reading the extension's own tables: uid_generator and uid_segment.
//
// Read with a snapshot made now, as catalogs are: a generator that another session has just committed is
// there for a transaction with an older snapshot too, since its sequence is.
#pragma once

#include "slots.hpp"

namespace uidgen::pg {

// The schema that the extension's tables live in: that of the SQL function which was called.
Oid schema_of_function(Oid function);

// A table of the extension; InvalidOid if it is not there.
Oid extension_table(Oid schema, const char *name);
Oid required_table(Oid schema, const char *name); // error if it is not there

// The layout and bounds of a generator, checked; false if the sequence is none.
bool read_generator_config(Oid schema, Oid generator, GeneratorConfig *config);

// The default generator's lease sequence; error if there is none.
Oid read_default_generator(Oid schema);

// The sequence of a named segment; InvalidOid if there is none of that name.
Oid read_segment_by_name(Oid schema, const text *name);

// The step bounds of a segment's row, 0 where it has none of its own.
struct SegmentSteps {
    int64_t step;
    int64_t max_step;
};
SegmentSteps read_segment_steps(Oid schema, Oid sequence);

} // namespace uidgen::pg
