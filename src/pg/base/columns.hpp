// Structs whose fields are columns of a row (core/field.hpp). Each function here goes one way.
#pragma once

#include "core/field.hpp"
#include "postgres.hpp"

namespace uidgen::pg {

using core::Field;
using core::Fields;
using core::FieldType;

// The type of the column of such a field.
constexpr Oid field_type_oid(FieldType type) {
    constexpr Oid types[] = {INT4OID, INT8OID, BOOLOID, BOOLOID, TIMESTAMPTZOID, TEXTOID, TEXTOID};
    return types[static_cast<int>(type)];
}

constexpr int most_fields = 64;

// Sets all fields of the struct to NULL.
void clear_fields(const Fields &fields, void *record);

// Sets the field to a value of the type that such columns have. A text is in the current memory context. False: the
// field cannot have that value, and is something else now.
bool set_value(void *record, const Field &field, Datum value);

// A row of that type: the fields are the columns of their names, and all other columns are NULL.
HeapTuple form_fields(const Fields &fields, const void *from, TupleDesc desc);

} // namespace uidgen::pg
