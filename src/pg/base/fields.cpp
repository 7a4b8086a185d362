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
    if (field.type == FieldType::text)
        field_in<const char *>(record, field) = nullptr;
    else if (field.type == FieldType::list)
        field_in<core::Former>(record, field).count = 0;
    else
        set_number(record, field, field.none);
}

bool is_null_in(const void *record, const Field &field) {
    if (field.type == FieldType::text)
        return field_in<const char *>(record, field) == nullptr;
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
    elog(ERROR, "column \"%s\" is missing or of another type", field.name);
}

void read_list(const Field &field, core::Former *list, Datum value) {
    Datum *values = nullptr;
    bool *nulls = nullptr;
    int count = 0;
    ArrayType *array = DatumGetArrayTypeP(value);
    deconstruct_array(array, INT8OID, 8, true, TYPALIGN_DOUBLE, &values, &nulls, &count);
    if (count > static_cast<int>(core::most_former) || ARR_NDIM(array) > 1)
        report_field(field.name, "too many values");
    list->count = static_cast<uint32_t>(count);
    for (int i = 0; i < count; i++) {
        if (nulls[i] || DatumGetInt64(values[i]) <= 0)
            report_field(field.name, "not all values are positive");
        list->incarnations[i] = static_cast<uint64_t>(DatumGetInt64(values[i]));
    }
}

Datum field_datum(const void *record, const Field &field) {
    if (field.type == FieldType::text)
        return CStringGetTextDatum(field_in<const char *>(record, field));
    const int64_t number = number_in(record, field);
    return Int64GetDatum(field.type == FieldType::time ? to_timestamptz(number) : number);
}

// What is left of a message.
struct Input {
    const char *next;
    int64_t bytes;
};

// An integer of so many bytes, the most significant one first. False: there are not so many.
bool take_number(Input *input, int64_t bytes, int64_t *number) {
    if (bytes < 1 || bytes > static_cast<int64_t>(sizeof(*number)) || bytes > input->bytes)
        return false;
    *number = static_cast<signed char>(*input->next) < 0 ? -1 : 0;
    for (int64_t i = 0; i < bytes; i++)
        *number = static_cast<int64_t>(static_cast<uint64_t>(*number) << 8) | static_cast<uint8_t>(*input->next++);
    input->bytes -= bytes;
    return true;
}

bool take_text(Input *input, int64_t bytes, const char **text) {
    if (bytes > input->bytes)
        return false;
    *text = pnstrdup(input->next, static_cast<Size>(bytes));
    input->next += bytes;
    input->bytes -= bytes;
    return true;
}

} // namespace

void report_field(const char *name, const char *what) {
    ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("invalid value for \"%s\": %s", name, what)));
}

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
        else if (field.type == FieldType::text)
            field_in<const char *>(into, field) = TextDatumGetCString(value);
        else if (field.type == FieldType::list)
            read_list(field, &field_in<core::Former>(into, field), value);
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

void append_json(StringInfo into, const Fields &fields, const void *from) {
    char before = '{';
    for (int i = 0; i < fields.count; i++) {
        const Field &field = fields.fields[i];
        if (is_null_in(from, field))
            continue;
        appendStringInfo(into, "%c\"%s\":", before, field.name);
        before = ',';
        if (field.type == FieldType::text) {
            escape_json(into, field_in<const char *>(from, field));
        } else if (field.type == FieldType::list) {
            const core::Former &list = field_in<core::Former>(from, field);
            for (uint32_t k = 0; k < list.count; k++)
                appendStringInfo(into, "%c" UINT64_FORMAT, k > 0 ? ',' : '[', list.incarnations[k]);
            appendStringInfoString(into, list.count > 0 ? "]" : "[]");
        } else {
            appendStringInfo(into, INT64_FORMAT, number_in(from, field));
        }
    }
    appendStringInfoChar(into, '}');
}

bool parse_fields(const Fields &fields, void *into, const char *row, int bytes) {
    Input input = {row, bytes};
    int64_t columns = 0;
    if (!take_number(&input, sizeof(int32_t), &columns) || columns < fields.count)
        return false;
    for (int i = 0; i < fields.count; i++) {
        const Field &field = fields.fields[i];
        int64_t type = 0;
        int64_t length = 0;
        int64_t number = 0;
        if (!take_number(&input, sizeof(int32_t), &type) || !take_number(&input, sizeof(int32_t), &length) ||
            type != field_type_oid(field.type) || (length < 0 && field.none == required))
            return false;
        if (length < 0)
            set_null(into, field);
        else if (field.type == FieldType::text && take_text(&input, length, &field_in<const char *>(into, field)))
            continue;
        else if (field.type != FieldType::text && take_number(&input, length, &number))
            set_number(into, field, number);
        else
            return false;
    }
    return true;
}

} // namespace uidgen::pg
