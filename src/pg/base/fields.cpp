#include "fields.hpp"

#include "base.hpp"

namespace uidgen::pg {
namespace {

using core::field_in;
using core::number_in;
using core::set_number;

bool goes_as_text(const Field &field) { return field.type >= FieldType::text && field.type <= FieldType::refusal; }

// Of a text; null: the field is NULL.
const char *text_of(const void *record, const Field &field) {
    if (field.type == FieldType::text)
        return core::text_in(record, field);
    if (field.type == FieldType::choice)
        return number_in(record, field) == field.none ? nullptr : field.words[number_in(record, field)];
    const auto refusal = field_in<core::Refusal>(record, field);
    return refusal == core::Refusal::none ? nullptr : core::row_of(refusal).word;
}

bool set_text(void *record, const Field &field, const char *text) {
    if (field.type == FieldType::text)
        field_in<const char *>(record, field) = text;
    else if (field.type == FieldType::refusal)
        field_in<core::Refusal>(record, field) = core::refusal_of(text);
    else
        set_number(record, field, core::choice_of(field, text, strlen(text)));
    return field.type != FieldType::choice || number_in(record, field) >= 0;
}

void put_null(void *record, const Field &field) {
    if (field.type == FieldType::refusal)
        field_in<core::Refusal>(record, field) = core::Refusal::none;
    else if (field.type == FieldType::list)
        field_in<core::Former>(record, field).count = 0;
    else
        core::set_null(record, field);
}

bool is_null_in(const void *record, const Field &field) {
    if (goes_as_text(field))
        return text_of(record, field) == nullptr;
    return field.type != FieldType::list && field.nullable && core::is_null(record, field);
}

// Every integer fits a number, because its Datum is sign-extended.
static_assert(sizeof(Datum) == sizeof(int64_t));

// `likely` is looked at first.
int column_of(const Field &field, TupleDesc desc, int likely) {
    const bool is_there =
        likely <= desc->natts && namestrcmp(&TupleDescAttr(desc, likely - 1)->attname, field.name) == 0;
    const int column = is_there ? likely : SPI_fnumber(desc, field.name);
    if (column > 0) {
        const FormData_pg_attribute *attribute = TupleDescAttr(desc, column - 1);
        const bool is_number = field.type <= FieldType::flag && attribute->attbyval;
        if (is_number || attribute->atttypid == field_type_oid(field.type))
            return column;
    }
    ereport(ERROR,
            (errcode(ERRCODE_DATATYPE_MISMATCH), errmsg("column \"%s\" is missing or of another type", field.name)));
}

Datum field_datum(const void *record, const Field &field) {
    if (goes_as_text(field))
        return CStringGetTextDatum(text_of(record, field));
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
    if (goes_as_text(field)) {
        const char *text = text_of(record, field);
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
const char *take_bytes(Message *from, int64_t bytes) {
    const char *next = from->next;
    if (bytes < 0 || bytes > from->bytes)
        return nullptr;
    from->next += bytes;
    from->bytes -= bytes;
    return next;
}

bool take_number(Message *from, int64_t bytes, int64_t *number) {
    const char *next = take_bytes(from, bytes);
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
        put_null(record, field);
        return field.nullable;
    }
    if (goes_as_text(field)) {
        const char *text = take_bytes(from, bytes);
        if (text == nullptr)
            return false;
        return set_text(record, field, pnstrdup(text, static_cast<Size>(bytes)));
    }
    if (field.type == FieldType::list)
        return take_list(from, bytes, &field_in<core::Former>(record, field));
    if (bytes != size_of(field.type) || !take_number(from, bytes, &number))
        return false;
    set_number(record, field, number);
    return true;
}

} // namespace

bool set_value(void *record, const Field &field, Datum value) {
    if (goes_as_text(field))
        return set_text(record, field, TextDatumGetCString(value));
    const bool is_time = field.type == FieldType::time;
    const int64_t number = is_time ? to_unix_us(DatumGetTimestampTz(value)) : DatumGetInt64(value);
    set_number(record, field, number);
    return number != field.none && (!is_time || number >= 0); // infinity wraps
}

void clear_fields(const Fields &fields, void *record) {
    for (const Field &field : fields)
        put_null(record, field);
}

void read_fields(const Fields &fields, void *into, HeapTuple tuple, TupleDesc desc) {
    int column = 0;
    for (const Field &field : fields) {
        bool null = true;
        column = column_of(field, desc, column + 1);
        const Datum value = heap_getattr(tuple, column, desc, &null);
        if (null && !field.nullable)
            ereport(ERROR, (errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED), errmsg("\"%s\" must not be null", field.name)));
        if (null)
            put_null(into, field);
        else
            (void)set_value(into, field, value);
    }
}

HeapTuple form_fields(const Fields &fields, const void *from, TupleDesc desc) {
    Datum values[most_fields] = {};
    bool nulls[most_fields];
    int column = 0;
    if (desc->natts > most_fields)
        elog(ERROR, "too many columns: %d", desc->natts);
    memset(nulls, true, sizeof(nulls));
    for (const Field &field : fields) {
        column = column_of(field, desc, column + 1);
        nulls[column - 1] = is_null_in(from, field);
        if (!nulls[column - 1])
            values[column - 1] = field_datum(from, field);
    }
    return heap_form_tuple(desc, values, nulls);
}

char *field_names(const Fields &fields, const char *before) {
    StringInfoData list;
    initStringInfo(&list);
    for (const Field &field : fields)
        appendStringInfo(&list, "%s%s%s", list.len > 0 ? ", " : "", before, field.name);
    return list.data;
}

void append_row(StringInfo into, const Fields &fields, const void *from) {
    append_number(into, fields.count(), 4);
    for (const Field &field : fields) {
        append_number(into, field_type_oid(field.type), 4);
        if (is_null_in(from, field))
            append_number(into, -1, 4);
        else
            append_value(into, from, field);
    }
}

bool take_row(Message *from, const Fields &fields, void *into) {
    int64_t columns = 0;
    if (!take_number(from, 4, &columns) || columns < fields.count())
        return false;
    for (int64_t i = 0; i < columns; i++) {
        int64_t type = 0;
        int64_t bytes = 0;
        if (!take_number(from, 4, &type) || !take_number(from, 4, &bytes))
            return false;
        const Field *field = i < fields.count() ? &fields.first[i] : nullptr;
        const bool taken = field == nullptr
                               ? bytes == -1 || take_bytes(from, bytes) != nullptr
                               : type == field_type_oid(field->type) && take_value(from, bytes, into, *field);
        if (!taken)
            return false;
    }
    return true;
}

} // namespace uidgen::pg
