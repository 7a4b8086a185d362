// Structs whose fields are columns of rows, or names and values in a text. Which field is which is said once, in a
// table of fields.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace uidgen::core {

enum class FieldType : uint8_t {
    int32,
    int64, // or uint64_t, as bigint
    boolean,
    flag,   // int64_t, 0 or 1; as boolean
    time,   // int64_t: microseconds since 1970-01-01 UTC; as timestamptz
    text,   // NULL is a null pointer
    choice, // int64_t, the number of one of `choices`; as text
};

struct Field {
    const char *name;
    FieldType type;
    size_t offset; // in its struct
    bool nullable;
    int64_t none; // the number that is SQL's NULL
    // Of a definition:
    int64_t least; // of a text: bytes
    int64_t most;
    const char *const *choices; // of a choice or flag
};

struct Fields {
    const Field *first;
    const Field *last; // one beyond

    constexpr const Field *begin() const noexcept { return first; }
    constexpr const Field *end() const noexcept { return last; }
    constexpr int64_t count() const noexcept { return last - first; }
};
template <size_t count> constexpr Fields fields_in(const Field (&fields)[count]) { return {fields, fields + count}; }

// The field in a struct of which it is. (Its type is the caller's to know.)
template <typename T> T &field_in(void *record, const Field &field) noexcept {
    return *reinterpret_cast<T *>(static_cast<char *>(record) + field.offset);
}
template <typename T> const T &field_in(const void *record, const Field &field) noexcept {
    return *reinterpret_cast<const T *>(static_cast<const char *>(record) + field.offset);
}

inline const char *text_in(const void *record, const Field &field) noexcept {
    return field_in<const char *>(record, field);
}

// Of all types but text, as the next one.
inline int64_t number_in(const void *record, const Field &field) noexcept {
    switch (field.type) {
    case FieldType::int32:
        return field_in<int32_t>(record, field);
    case FieldType::boolean:
        return field_in<bool>(record, field) ? 1 : 0;
    default:
        return field_in<int64_t>(record, field);
    }
}

inline void set_number(void *record, const Field &field, int64_t value) noexcept {
    switch (field.type) {
    case FieldType::int32:
        field_in<int32_t>(record, field) = static_cast<int32_t>(value);
        break;
    case FieldType::boolean:
        field_in<bool>(record, field) = value != 0;
        break;
    default:
        field_in<int64_t>(record, field) = value;
    }
}

inline bool is_null(const void *record, const Field &field) noexcept {
    return field.type == FieldType::text ? text_in(record, field) == nullptr : number_in(record, field) == field.none;
}
inline void set_null(void *record, const Field &field) noexcept {
    if (field.type == FieldType::text)
        field_in<const char *>(record, field) = nullptr;
    else
        set_number(record, field, field.none);
}

// Whether the `size` bytes at `at` are that text.
inline bool is_same_text(const char *text, const char *at, size_t size) noexcept {
    return strncmp(text, at, size) == 0 && text[size] == '\0';
}

// Null if there is none of that name.
inline const Field *find_field(const Fields &fields, const char *name, size_t size) noexcept {
    for (const Field &field : fields)
        if (is_same_text(field.name, name, size))
            return &field;
    return nullptr;
}
inline const Field *find_field(const Fields &fields, const char *name) noexcept {
    return find_field(fields, name, strlen(name));
}

// The number of one of a field's choices; -1 if it is none of them.
inline int64_t choice_of(const Field &field, const char *at, size_t size) noexcept {
    for (int64_t i = 0; i <= field.most; i++)
        if (is_same_text(field.choices[i], at, size))
            return i;
    return -1;
}

} // namespace uidgen::core
