// The definition of a generator, a segment or a key, as a session reads it: the security label of its sequence
// (core/definition_text.hpp). Texts are in the current memory context.
//
// Labels are read with a new snapshot, as all catalogs are. So a generator that another session has just committed is
// visible to a transaction with an older snapshot too, as its sequence is.
#pragma once

#include "core/definition_text.hpp"
#include "extension.hpp"
#include "memory/slots.hpp"

namespace uidgen::pg {

constexpr char label_provider[] = "uidgen";

// A scan over the labels of one sequence, or of all of them.
struct LabelScan {
    Relation catalog;
    SysScanDesc scan;
    Oid sequence; // of the label that was read
    HeapTuple tuple;
};
LabelScan begin_labels(Oid sequence = InvalidOid, Snapshot snapshot = nullptr);
// False at the end, which ends the scan.
bool move_next(LabelScan *scan);
// Of a version that no transaction sees the text may be gone.
const char *label_in(const LabelScan &scan);

core::DefinitionFault parse_label(const char *label, core::Definition *definition);
const char *print_label(const core::Definition &definition);
// The fault that a definition has.
[[noreturn]] void report_fault(const core::Definition &definition, const core::DefinitionFault &fault);

// The definition of a sequence. Its kind is none if it has no label, or one of another kind than that. Error if the
// label cannot be read. To draw from the open sequence `to_draw`, also an error if the open transaction has altered the
// definition, or made one for a sequence that existed before.
core::Definition read_definition(Oid sequence, core::DefinitionKind kind, Relation to_draw = nullptr);

struct Label {
    const char *text;     // null: the sequence has none
    bool is_written_here; // by the open transaction
    bool is_updated;      // it was another one before
};
Label label_of(Oid sequence);
inline bool has_label(Oid sequence) { return label_of(sequence).text != nullptr; }

// Calls visit(sequence, definition) for each definition of that kind that can be read.
template <typename Visit> void for_each_definition(core::DefinitionKind kind, Visit visit) {
    LabelScan scan = begin_labels();
    while (move_next(&scan)) {
        core::Definition definition;
        if (parse_label(label_in(scan), &definition).kind == core::FaultKind::none && definition.kind == kind)
            visit(scan.sequence, definition);
    }
}

// Sets one field, or those that the row has columns of. The value is of a type that the install script gives the field.
// An error names a value that is none of the field's.
void set_field(core::Definition *definition, const core::Field &field, Datum value, Oid type);
void set_fields(core::Definition *definition, HeapTuple row, TupleDesc desc);
// The type must be blessed.
Datum row_of_definition(const core::Definition &definition, TupleDesc desc);

// ---------------------------------------------------------------------------------------------------------
// Generators
// ---------------------------------------------------------------------------------------------------------

GeneratorConfig generator_config_of(const core::Definition &definition);

// The configuration of a generator. Error if the sequence is not a generator's; to_draw as above.
GeneratorConfig read_generator_config(Oid generator, Relation to_draw = nullptr);

// A sequence of a generator that has no label, as after a restore without labels; InvalidOid: there is none.
Oid find_lost_generator();

// Error if there is one: for the first draw from the builtin generator, which is the default
// in a database that was restored without labels, whatever was the default in the dump.
void refuse_lost_definitions(Oid to_draw);

// The generator that belongs to the extension.
Oid builtin_generator();

// The default generator's lease sequence. If it was dropped: InvalidOid, or an error.
Oid find_default_generator();
Oid read_default_generator();

// ---------------------------------------------------------------------------------------------------------
// Segments
// ---------------------------------------------------------------------------------------------------------

// A segment's definition. Of a plain sequence the name is null, and so is all that may be.
core::SegmentDefinition read_segment(Oid sequence);
inline bool is_attached(const core::SegmentDefinition &segment) { return segment.registry_name != nullptr; }

// Its own name is the relation's, in the schema uid_segments; or another one that the table uid_segment_row finds,
// because it is longer than an identifier, or the sequence was renamed or moved.
Oid own_sequence_of(const text *name);
Oid find_segment(const text *name); // InvalidOid: there is none of that name
uint64_t hash_of_name(const text *name);

// The table with one row for each segment. InvalidOid if it does not exist.
Oid segment_row_table();

} // namespace uidgen::pg
