// The definition of a generator, a segment or a key, as a session reads it: the security label of its sequence
// (core/definition_text.hpp). Texts are in the current memory context.
//
// Labels are read with a new snapshot, as all catalogs are. So a generator that another session has just committed is
// visible to a transaction with an older snapshot too, as its sequence is.
#pragma once

#include "core/definition_text.hpp"
#include "rows.hpp"

namespace uidgen::pg {

constexpr char label_provider[] = "uidgen";

// Whether a row of pg_seclabel is the label of a sequence by uidgen.
bool is_label(Row row);
// A copy of that label's text, which of a version that no transaction sees may be gone.
const char *label_in(Row row);
// The sequence that the label is of.
inline Oid labeled_in(Row row) { return reinterpret_cast<const FormData_pg_seclabel *>(GETSTRUCT(row.tuple))->objoid; }

// Calls visit(row) for each label in pg_seclabel of a sequence, or of all (InvalidOid), under AccessShareLock on it.
template <typename Visit> void for_each_label(Oid sequence, Visit visit, Snapshot snapshot = nullptr) {
    const ScanKeyData key = equals(Anum_pg_seclabel_objoid, F_OIDEQ, ObjectIdGetDatum(sequence));
    const bool is_of_one = OidIsValid(sequence);
    const auto visit_label = [&](Row row) {
        if (is_label(row))
            visit(row);
    };
    for_each_row(table_open(SecLabelRelationId, AccessShareLock), is_of_one ? SecLabelObjectIndexId : InvalidOid,
                 is_of_one ? &key : nullptr, visit_label, snapshot);
}

// Parses the text of a label, and reads no catalog. The definition's texts are in the current memory context.
core::DefinitionFault parse_label(const char *label, core::Definition *definition);
// Whether the text of a label can be parsed, into *definition. Reads no catalog.
inline bool parses(const char *label, core::Definition *definition) {
    return parse_label(label, definition).kind == core::FaultKind::none;
}
// The text of a label that says this, in the current memory context.
const char *print_label(const core::Definition &definition);
// Raises the fault that a definition has, if any.
void check_fault(const core::Definition &definition, const core::DefinitionFault &fault);

// Reads the definition of a sequence from its label. Its kind is none if it has no label, or one of another kind
// than that. Error if the label cannot be read. To draw from the open sequence `to_draw`, also an error if the open
// transaction has altered the definition, or made one for a sequence that existed before.
core::Definition read_definition(Oid sequence, core::DefinitionKind kind, Relation to_draw = nullptr);

struct Label {
    const char *text;     // null: the sequence has none
    bool is_written_here; // by the open transaction
    bool is_updated;      // it was another one before
};
// Reads the label of a sequence from pg_seclabel, with a new snapshot.
Label label_of(Oid sequence);
inline bool has_label(Oid sequence) { return label_of(sequence).text != nullptr; }

// Reads all labels, and calls visit(sequence, definition) for each definition of that kind that can be read.
template <typename Visit> void for_each_definition(core::DefinitionKind kind, Visit visit) {
    for_each_label(InvalidOid, [&](Row row) {
        core::Definition definition;
        if (parses(label_in(row), &definition) && definition.kind == kind)
            visit(labeled_in(row), definition);
    });
}

// ---------------------------------------------------------------------------------------------------------
// Generators
// ---------------------------------------------------------------------------------------------------------

// What a generator's slot keeps of its definition, of which nothing else is read.
GeneratorConfig generator_config_of(const core::Definition &definition);

// The configuration of a generator, from its label. Error if the sequence is not a generator's; to_draw as in
// read_definition().
GeneratorConfig read_generator_config(Oid generator, Relation to_draw = nullptr);

// For the builtin generator, before its first lease after a server start: an error if it is the default and a generator
// of the database's owner has lost its label, which may have been the default of a database that was restored without
// labels. One of a role that may only create generators does not count, so that no such role stops the default. Reads
// pg_class and the labels of all generators.
void check_no_lost_definition(Oid builtin);

// The generator that belongs to the extension, by its name in the catalogs.
Oid builtin_generator();

// The default generator's lease sequence, from the labels of all; InvalidOid if it was dropped.
Oid find_default_generator();
// The default generator's lease sequence, from the labels of all; an error if it was dropped.
Oid read_default_generator();

// ---------------------------------------------------------------------------------------------------------
// Segments
// ---------------------------------------------------------------------------------------------------------

// A segment's definition, from its label. Of a plain sequence the name is null, and so is all that may be.
core::SegmentDefinition read_segment(Oid sequence);
// What a segment's slot keeps of its definition. Error if the name at the registry is too long.
SegmentConfig segment_config_of(const core::SegmentDefinition &segment);

// A segment has the name of its sequence, in the schema uid_segments. A name that is longer than an identifier is that
// of the label, and the sequence is named after its hash when it is made.
const char *relation_of(const char *name);
// The name that a segment has, by the catalogs and its definition.
const char *name_of_segment(Oid sequence, const core::SegmentDefinition &segment);
// The sequence that such a segment has, by the catalogs, whether or not it is a segment; InvalidOid: there is none.
Oid own_sequence_of(const text *name);
// The segment of that name, by the catalogs, and its slot or label; InvalidOid: there is none. Locks no sequence.
Oid find_segment(const text *name) EXCLUDES(table_lock, slot_lock, state_lock);

// After a rename, or a move to another schema, the label still says the former name, which must not come to mean
// another sequence without a word. A sequence whose label says a name that no segment has; InvalidOid: there is none,
// or it is what the name means. Reads all labels.
Oid find_renamed_segment(const text *name, Oid meant = InvalidOid);
// There is no segment of that name; says so with its new name if it was renamed.
[[noreturn]] void report_no_segment(const text *name, const char *hint);

} // namespace uidgen::pg
