#include "fields.hpp"

#include "time_source.hpp"

namespace uidgen::pg {
namespace {

template <typename T> T &field_in(void *record, const Field &field) {
    return *reinterpret_cast<T *>(static_cast<char *>(record) + field.offset);
}
template <typename T> const T &field_in(const void *record, const Field &field) {
    return *reinterpret_cast<const T *>(static_cast<const char *>(record) + field.offset);
}

// Null: the field is NULL, or it is no text.
const char *text_in(const void *record, const Field &field) {
    if (field.type == FieldType::text)
        return field_in<const char *>(record, field);
    if (field.type != FieldType::refusal || field_in<core::Refusal>(record, field) == core::Refusal::none)
        return nullptr;
    return core::row_of(field_in<core::Refusal>(record, field)).word;
}

// A null pointer is NULL.
void set_text(void *record, const Field &field, const char *text) {
    if (field.type == FieldType::text)
        field_in<const char *>(record, field) = text;
    else
        field_in<core::Refusal>(record, field) = text == nullptr ? core::Refusal::none : core::refusal_of(text);
}

bool is_text(const Field &field) { return field.type == FieldType::text || field.type == FieldType::refusal; }

// Of a field that is neither text nor a list.
int64_t number_in(const void *record, const Field &field) {
    switch (field.type) {
    case FieldType::int32:
        return field_in<int32_t>(record, field);
    case FieldType::boolean:
        return field_in<bool>(record, field) ? 1 : 0;
    default:
        return field_in<int64_t>(record, field);
    }
}

void set_number(void *record, const Field &field, int64_t value) {
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

void set_null(void *record, const Field &field) {
    if (is_text(field))
        set_text(record, field, nullptr);
    else if (field.type == FieldType::list)
        field_in<core::Former>(record, field).count = 0;
    else
        set_number(record, field, field.none);
}

bool is_null_in(const void *record, const Field &field) {
    if (is_text(field))
        return text_in(record, field) == nullptr;
    return field.type != FieldType::list && field.none != required && number_in(record, field) == field.none;
}

// Every integer fits a number, because its Datum is sign-extended.
static_assert(sizeof(Datum) == sizeof(int64_t));

int column_of(const Field &field, TupleDesc desc) {
    const int column = SPI_fnumber(desc, field.name);
    if (column > 0) {
        const FormData_pg_attribute *attribute = TupleDescAttr(desc, column - 1);
        const bool is_number = field.type <= FieldType::boolean && attribute->attbyval;
        if (is_number || attribute->atttypid == field_type_oid(field.type))
            return column;
    }
    ereport(ERROR,
            (errcode(ERRCODE_DATATYPE_MISMATCH), errmsg("column \"%s\" is missing or of another type", field.name)));
}

Datum field_datum(const void *record, const Field &field) {
    if (is_text(field))
        return CStringGetTextDatum(text_in(record, field));
    const int64_t number = number_in(record, field);
    return Int64GetDatum(field.type == FieldType::time ? to_timestamptz(number) : number);
}

// How many bytes a number has in a message.
int64_t size_of(FieldType type) { return type == FieldType::boolean ? 1 : type == FieldType::int32 ? 4 : 8; }

// The most significant byte comes first.
void append_number(StringInfo into, int64_t number, int64_t bytes) {
    for (int64_t i = bytes - 1; i >= 0; i--)
        appendStringInfoChar(into, static_cast<char>(static_cast<uint64>(number) >> 8 * i));
}

void append_value(StringInfo into, const void *record, const Field &field) {
    if (is_text(field)) {
        const char *text = text_in(record, field);
        append_number(into, static_cast<int64_t>(strlen(text)), 4);
        appendStringInfoString(into, text);
    } else if (field.type == FieldType::list) {
        const core::Former &list = field_in<core::Former>(record, field);
        append_number(into, 8 * static_cast<int64_t>(list.count), 4);
        for (uint32_t i = 0; i < list.count; i++)
            append_number(into, static_cast<int64_t>(list.incarnations[i]), 8);
    } else {
        append_number(into, size_of(field.type), 4);
        append_number(into, number_in(record, field), size_of(field.type));
    }
}

// The next bytes of a message. Null: there are not so many.
const char *take(Message *from, int64_t bytes) {
    const char *next = from->next;
    if (bytes < 0 || bytes > from->bytes)
        return nullptr;
    from->next += bytes;
    from->bytes -= bytes;
    return next;
}

bool take_number(Message *from, int64_t bytes, int64_t *number) {
    const char *next = take(from, bytes);
    if (next == nullptr)
        return false;
    *number = static_cast<signed char>(*next) < 0 ? -1 : 0;
    for (int64_t i = 0; i < bytes; i++)
        *number = static_cast<int64_t>(static_cast<uint64_t>(*number) << 8) | static_cast<uint8_t>(next[i]);
    return true;
}

// Of positive numbers.
bool take_list(Message *from, int64_t bytes, core::Former *list) {
    if (bytes < 0 || bytes % 8 != 0 || bytes / 8 > static_cast<int64_t>(core::most_former))
        return false;
    list->count = static_cast<uint32_t>(bytes / 8);
    for (uint32_t i = 0; i < list->count; i++) {
        int64_t number = 0;
        if (!take_number(from, 8, &number) || number <= 0)
            return false;
        list->incarnations[i] = static_cast<uint64_t>(number);
    }
    return true;
}

// A value of so many bytes; -1: NULL.
bool take_value(Message *from, int64_t bytes, void *record, const Field &field) {
    int64_t number = 0;
    if (bytes == -1) {
        set_null(record, field);
        return field.none != required;
    }
    if (is_text(field)) {
        const char *text = take(from, bytes);
        if (text == nullptr)
            return false;
        set_text(record, field, pnstrdup(text, static_cast<Size>(bytes)));
        return true;
    }
    if (field.type == FieldType::list)
        return take_list(from, bytes, &field_in<core::Former>(record, field));
    if (bytes != size_of(field.type) || !take_number(from, bytes, &number))
        return false;
    set_number(record, field, number);
    return true;
}

} // namespace

void clear_fields(const Fields &fields, void *record) {
    for (int i = 0; i < fields.count; i++)
        set_null(record, fields.fields[i]);
}

void read_fields(const Fields &fields, void *into, HeapTuple tuple, TupleDesc desc) {
    for (int i = 0; i < fields.count; i++) {
        const Field &field = fields.fields[i];
        bool null = true;
        const Datum value = heap_getattr(tuple, column_of(field, desc), desc, &null);
        if (null && field.none == required)
            ereport(ERROR, (errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED), errmsg("\"%s\" must not be null", field.name)));
        if (null)
            set_null(into, field);
        else if (is_text(field))
            set_text(into, field, TextDatumGetCString(value));
        else
            set_number(into, field,
                       field.type == FieldType::time ? to_unix_us(DatumGetTimestampTz(value)) : DatumGetInt64(value));
    }
}

HeapTuple form_fields(const Fields &fields, const void *from, TupleDesc desc) {
    Datum values[most_fields] = {};
    bool nulls[most_fields];
    if (desc->natts > most_fields)
        elog(ERROR, "too many columns: %d", desc->natts);
    memset(nulls, true, sizeof(nulls));
    for (int i = 0; i < fields.count; i++) {
        const Field &field = fields.fields[i];
        const int column = column_of(field, desc);
        nulls[column - 1] = is_null_in(from, field);
        if (!nulls[column - 1])
            values[column - 1] = field_datum(from, field);
    }
    return heap_form_tuple(desc, values, nulls);
}

char *field_names(const Fields &fields, const char *before) {
    StringInfoData list;
    initStringInfo(&list);
    for (int i = 0; i < fields.count; i++)
        appendStringInfo(&list, "%s%s%s", i > 0 ? ", " : "", before, fields.fields[i].name);
    return list.data;
}

void append_row(StringInfo into, const Fields &fields, const void *from) {
    append_number(into, fields.count, 4);
    for (int i = 0; i < fields.count; i++) {
        const Field &field = fields.fields[i];
        append_number(into, field_type_oid(field.type), 4);
        if (is_null_in(from, field))
            append_number(into, -1, 4);
        else
            append_value(into, from, field);
    }
}

bool take_row(Message *from, const Fields &fields, void *into) {
    int64_t columns = 0;
    if (!take_number(from, 4, &columns) || columns < fields.count)
        return false;
    for (int64_t i = 0; i < columns; i++) {
        int64_t type = 0;
        int64_t bytes = 0;
        if (!take_number(from, 4, &type) || !take_number(from, 4, &bytes))
            return false;
        const Field *field = i < fields.count ? &fields.fields[i] : nullptr;
        const bool taken = field == nullptr
                               ? bytes == -1 || take(from, bytes) != nullptr
                               : type == field_type_oid(field->type) && take_value(from, bytes, into, *field);
        if (!taken)
            return false;
    }
    return true;
}

} // namespace uidgen::pg
