// Structs whose fields are columns: of a table, of a composite type, of a message. Which field is which column is said
// once, in a table of fields. Each function here goes one way.
#pragma once

#include <cstddef>
#include <type_traits>

#include "core/grant.hpp"
#include "postgres.hpp"

namespace uidgen::pg {

enum class FieldType : uint8_t {
    int32,
    int64, // or uint64_t, as bigint
    boolean,
    time, // int64_t: microseconds since 1970-01-01; as timestamptz
    text,
    refusal, // core::Refusal, as its word
    list,    // core::Former; in messages only, as bytea
};
constexpr Oid field_type_oid(FieldType type) {
    constexpr Oid types[] = {INT4OID, INT8OID, BOOLOID, TIMESTAMPTZOID, TEXTOID, TEXTOID, BYTEAOID};
    return types[static_cast<int>(type)];
}

struct Field {
    const char *name;
    FieldType type;
    uint16 offset;
    int64_t none; // the value that is SQL's NULL; required: there is none. Of text NULL is a null pointer.
};

constexpr int64_t required = PG_INT64_MIN;
constexpr int most_fields = 64;

// A table of fields.
struct Fields {
    const Field *fields;
    int count;
};
template <size_t n> constexpr Fields fields_in(const Field (&fields)[n]) {
    static_assert(n <= most_fields);
    return {fields, static_cast<int>(n)};
}

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
    Field { name, field_type<decltype(Struct::member)>(), offsetof(Struct, member), none }
#define UIDGEN_TIME_FIELD(Struct, member, name, none)                                                                  \
    Field { name, FieldType::time, offsetof(Struct, member), none }

// Sets all fields to NULL.
void clear_fields(const Fields &fields, void *record);

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
