// Reading the extension's own tables: uid_generator and uid_segment.
//
// Read with a snapshot made now, as catalogs are: a generator that another session has just committed is
// there for a transaction with an older snapshot too, since its sequence is.
#pragma once

#include "shared/slots.hpp"

namespace uidgen::pg {

// The schema that the extension's tables live in: that of the SQL function which was called.
Oid schema_of_function(Oid function);

// A table of the extension; InvalidOid if it is not there.
Oid extension_table(Oid schema, const char *name);
Oid required_table(Oid schema, const char *name); // error if it is not there

// What a row of uid_generator says; error if it makes no sense.
GeneratorConfig generator_config_of(HeapTuple row, TupleDesc desc);

// Whether two rows of uid_generator differ in what may change only before the first lease; in what never may.
bool layout_differs(HeapTuple a, HeapTuple b, TupleDesc desc);
bool identity_differs(HeapTuple a, HeapTuple b, TupleDesc desc);

// The generator that a row is of, and its marks.
Oid generator_of_row(HeapTuple row, TupleDesc desc);
bool is_builtin_row(HeapTuple row, TupleDesc desc);
bool is_default_row(HeapTuple row, TupleDesc desc);

bool has_generator_row(Oid schema, Oid generator);

// The configuration of a generator, the builtin one's also without a row; error if the sequence is none.
GeneratorConfig read_generator_config(Oid schema, Oid generator);
// For a slot; false if the sequence is none; error if the open transaction has altered the generator, or made one of a sequence that was there before.
bool read_generator_to_draw(Oid schema, Relation sequence, GeneratorConfig *config);

// The default generator's lease sequence. The one that was chosen; the builtin one while it has no row; else there is none:
// the chosen one was dropped. InvalidOid, or an error, if there is none.
Oid find_default_generator(Oid schema);
Oid read_default_generator(Oid schema);

// The unique index on that column alone; InvalidOid, which makes a scan read the whole table, if there is none.
Oid unique_index_on(Oid table, AttrNumber column_number);

// The sequence of a named segment; InvalidOid if there is none of that name.
Oid read_segment_by_name(Oid schema, const text *name);

// Whether a sequence is that of a named segment.
bool has_segment(Oid schema, Oid sequence);

// The step bounds of a segment's row, 0 where it has none of its own.
struct SegmentSteps {
    int64_t step;
    int64_t max_step;
};
SegmentSteps read_segment_steps(Oid schema, Oid sequence);

} // namespace uidgen::pg
