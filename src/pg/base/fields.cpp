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

int64_t number_of(Datum value, Oid type) {
    switch (type) {
    case INT2OID:
        return DatumGetInt16(value);
    case INT4OID:
        return DatumGetInt32(value);
    case OIDOID:
        return DatumGetObjectId(value);
    case BOOLOID:
        return DatumGetBool(value) ? 1 : 0;
    case TIMESTAMPTZOID:
        return to_unix_us(DatumGetTimestampTz(value));
    default:
        return DatumGetInt64(value);
    }
}

Oid field_type_oid(FieldType type) {
    switch (type) {
    case FieldType::int32:
        return INT4OID;
    case FieldType::boolean:
        return BOOLOID;
    case FieldType::text:
        return TEXTOID;
    case FieldType::time:
        return TIMESTAMPTZOID;
    case FieldType::list:
        return INT8ARRAYOID;
    default:
        return INT8OID;
    }
}

bool is_read_from(FieldType type, Oid column) {
    if (type == FieldType::text || type == FieldType::list)
        return column == field_type_oid(type);
    const Oid numbers[] = {INT2OID, INT4OID, INT8OID, OIDOID, BOOLOID, TIMESTAMPTZOID};
    for (const Oid number : numbers)
        if (column == number)
            return true;
    return false;
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

Datum list_datum(const core::Former &list) {
    Datum values[core::most_former];
    for (uint32_t i = 0; i < list.count; i++)
        values[i] = Int64GetDatum(static_cast<int64_t>(list.incarnations[i]));
    return PointerGetDatum(construct_array(values, static_cast<int>(list.count), INT8OID, 8, true, TYPALIGN_DOUBLE));
}

Datum field_datum(const void *record, const Field &field) {
    switch (field.type) {
    case FieldType::text:
        return CStringGetTextDatum(field_in<const char *>(record, field));
    case FieldType::list:
        return list_datum(field_in<core::Former>(record, field));
    case FieldType::boolean:
        return BoolGetDatum(field_in<bool>(record, field));
    case FieldType::int32:
        return Int32GetDatum(field_in<int32_t>(record, field));
    case FieldType::time:
        return TimestampTzGetDatum(to_timestamptz(field_in<int64_t>(record, field)));
    default:
        return Int64GetDatum(field_in<int64_t>(record, field));
    }
}

// The next column of a row as text, unquoted in place; null: NULL. Moves *next beyond it. False: it does not end.
bool next_column(char **next, char **column) {
    char *in = *next;
    char *out = in;
    bool quoted = false;
    bool was_quoted = false;
    *column = in;
    for (; quoted || (*in != ',' && *in != ')'); in++) {
        if (*in == '\0')
            return false;
        if (*in == '"' && quoted && in[1] == '"')
            *out++ = *in++;
        else if (*in == '"')
            quoted = !quoted, was_quoted = true;
        else if (*in == '\\' && in[1] != '\0')
            *out++ = *++in;
        else
            *out++ = *in;
    }
    *next = *in == ',' ? in + 1 : in;
    if (out == *column && !was_quoted)
        *column = nullptr;
    *out = '\0';
    return true;
}

// False: it is no number.
bool parse_number(const char *text, const Field &field, int64_t *number) {
    char *end = nullptr;
    errno = 0;
    if (field.type == FieldType::boolean) {
        *number = *text == 't' ? 1 : 0;
        return true;
    }
    *number = strtoll(text, &end, 10);
    return end != text && *end == '\0' && errno == 0;
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
        const int column = SPI_fnumber(desc, field.name);
        bool null = true;
        const Datum value = column > 0 ? heap_getattr(tuple, column, desc, &null) : static_cast<Datum>(0);
        if (column <= 0 || !is_read_from(field.type, TupleDescAttr(desc, column - 1)->atttypid))
            elog(ERROR, "column \"%s\" is missing or of another type", field.name);
        if (null && field.none == required)
            ereport(ERROR, (errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED), errmsg("\"%s\" must not be null", field.name)));
        if (null)
            set_null(into, field);
        else if (field.type == FieldType::text)
            field_in<const char *>(into, field) = TextDatumGetCString(value);
        else if (field.type == FieldType::list)
            read_list(field, &field_in<core::Former>(into, field), value);
        else
            set_number(into, field, number_of(value, TupleDescAttr(desc, column - 1)->atttypid));
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
        const int column = SPI_fnumber(desc, field.name);
        if (column <= 0 || TupleDescAttr(desc, column - 1)->atttypid != field_type_oid(field.type))
            elog(ERROR, "column \"%s\" is missing or of another type", field.name);
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
            appendStringInfoChar(into, '[');
            for (uint32_t k = 0; k < list.count; k++)
                appendStringInfo(into, "%s" UINT64_FORMAT, k > 0 ? "," : "", list.incarnations[k]);
            appendStringInfoChar(into, ']');
        } else if (field.type == FieldType::boolean) {
            appendStringInfoString(into, field_in<bool>(from, field) ? "true" : "false");
        } else {
            appendStringInfo(into, INT64_FORMAT, number_in(from, field));
        }
    }
    appendStringInfoChar(into, '}');
}

bool parse_fields(const Fields &fields, void *into, char *text) {
    char *next = text + 1;
    if (*text != '(')
        return false;
    for (int i = 0; i < fields.count; i++) {
        const Field &field = fields.fields[i];
        char *column = nullptr;
        int64_t number = 0;
        if (!next_column(&next, &column) || (column == nullptr && field.none == required))
            return false;
        if (column == nullptr)
            set_null(into, field);
        else if (field.type == FieldType::text)
            field_in<const char *>(into, field) = column;
        else if (parse_number(column, field, &number))
            set_number(into, field, number);
        else
            return false;
    }
    return true;
}

} // namespace uidgen::pg
