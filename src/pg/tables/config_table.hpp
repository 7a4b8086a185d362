// Reading the extension's own tables: uid_generator and uid_segment.
//
// Tables are read with a new snapshot, as catalogs are. So a generator that another session has just committed is
// visible to a transaction with an older snapshot too, as its sequence is.
#pragma once

#include "row.hpp"
#include "shared/slots.hpp"

namespace uidgen::pg {

// The schema of the extension's tables: that of the SQL function that was called.
Oid schema_of_function(Oid function);

// A table of the extension; InvalidOid if it does not exist.
Oid extension_table(Oid schema, const char *name);
Oid required_table(Oid schema, const char *name); // error if it does not exist

// Copies a name into a field of that size, without cutting a character in two.
void copy_clipped(char *to, const char *from, size_t size);

// The configuration in a row of uid_generator; error if it is not valid.
GeneratorConfig generator_config_of(Row row);

bool has_generator_row(Oid schema, Oid generator);

// The configuration of a generator. The builtin one needs no row. Error if the sequence is not a generator's.
GeneratorConfig read_generator_config(Oid schema, Oid generator);
// The same for a slot. False if the sequence is not a generator's. Error if the open transaction has altered the
// generator, or made one of a sequence that existed before.
bool read_generator_to_draw(Oid schema, Relation sequence, GeneratorConfig *config);

// The default generator's lease sequence: the one that was chosen, or the builtin one while it has no row. Otherwise
// the chosen one was dropped: InvalidOid, or an error.
Oid find_default_generator(Oid schema);
Oid read_default_generator(Oid schema);

// The sequence of a named segment; InvalidOid if there is none of that name.
Oid read_segment_by_name(Oid schema, const text *name);

// Whether a sequence belongs to a named segment.
bool has_segment(Oid schema, Oid sequence);

// The step bounds in a segment's row; 0 where the row has none.
struct SegmentSteps {
    int64_t step;
    int64_t max_step;
};
SegmentSteps read_segment_steps(Oid schema, Oid sequence);

} // namespace uidgen::pg
