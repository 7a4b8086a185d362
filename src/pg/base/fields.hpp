// Structs whose fields are columns: of a table, of a composite type, of a message (core/field.hpp). Each function here
// goes one way.
#pragma once

#include <type_traits>

#include "core/field.hpp"
#include "core/grant.hpp"
#include "postgres.hpp"

namespace uidgen::pg {

using core::Field;
using core::Fields;
using core::fields_in;
using core::FieldType;

constexpr Oid field_type_oid(FieldType type) {
    constexpr Oid types[] = {INT4OID, INT8OID, BOOLOID, BOOLOID, TIMESTAMPTZOID, TEXTOID, TEXTOID, TEXTOID, BYTEAOID};
    return types[static_cast<int>(type)];
}

constexpr int64_t required = PG_INT64_MIN; // the `none` of a field that is never NULL
constexpr int most_fields = 64;

template <typename T> constexpr FieldType field_type() {
    if constexpr (std::is_same_v<T, int32_t>)
        return FieldType::int32;
    else if constexpr (std::is_same_v<T, int64_t> || std::is_same_v<T, uint64_t>)
        return FieldType::int64;
    else if constexpr (std::is_same_v<T, bool>)
        return FieldType::boolean;
    else if constexpr (std::is_same_v<T, core::Former>)
        return FieldType::list;
    else if constexpr (std::is_same_v<T, core::Refusal>)
        return FieldType::refusal;
    else
        return FieldType::text;
}

#define UIDGEN_FIELD(Struct, member, name, none)                                                                       \
    Field { name, field_type<decltype(Struct::member)>(), offsetof(Struct, member), (none) != required, none }
#define UIDGEN_TIME_FIELD(Struct, member, name, none)                                                                  \
    Field { name, FieldType::time, offsetof(Struct, member), (none) != required, none }

// Sets all fields to NULL.
void clear_fields(const Fields &fields, void *record);

// Sets the field to a value of the type that such columns have. A text is in the current memory context. False: the
// field cannot have that value, and is something else now.
bool set_value(void *record, const Field &field, Datum value);

// Reads the columns of those names into the struct. A column may have another type of integer than the field. Texts are
// in the current memory context. An error names the column if it is NULL and required.
void read_fields(const Fields &fields, void *into, HeapTuple tuple, TupleDesc desc);

// A row with the columns of those names. Others are NULL.
HeapTuple form_fields(const Fields &fields, const void *from, TupleDesc desc);

// "name, name, ..." with a text before each of them.
char *field_names(const Fields &fields, const char *before = "");

// A message is one row after another in PostgreSQL's binary format. What is left of it:
struct Message {
    const char *next;
    int64_t bytes;
};

void append_row(StringInfo into, const Fields &fields, const void *from);

// Takes the next row. It may have more columns than fields: a later version has appended them. Texts are in the current
// memory context. False: it is no such row.
bool take_row(Message *from, const Fields &fields, void *into);

} // namespace uidgen::pg
