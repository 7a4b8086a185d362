#include "columns.hpp"

#include "base.hpp"

namespace uidgen::pg {
namespace {

using core::field_in;
using core::number_in;
using core::set_number;

// Whether the column of such a field has type text.
bool goes_as_text(const Field &field) { return field.type >= FieldType::text; }

// The field as the text that its column has; null: the column is NULL.
const char *column_text(const void *record, const Field &field) {
    if (field.type == FieldType::text)
        return core::text_in(record, field);
    return number_in(record, field) == field.none ? nullptr : field.choices[number_in(record, field)];
}

// Sets a field by the text of its column. False: it is none of the choices.
bool set_text(void *record, const Field &field, const char *text) {
    if (field.type == FieldType::text)
        field_in<const char *>(record, field) = text;
    else
        set_number(record, field, core::choice_of(field, text, strlen(text)));
    return field.type != FieldType::choice || number_in(record, field) >= 0;
}

bool is_null_in(const void *record, const Field &field) {
    if (goes_as_text(field))
        return column_text(record, field) == nullptr;
    return field.nullable && core::is_null(record, field);
}

// Every integer fits a number, because its Datum is sign-extended.
static_assert(sizeof(Datum) == sizeof(int64_t));

// The number of the column with the field's name in the row type `desc`, where `likely` is looked at first. Error if it
// is missing or of another type.
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

// The value of the column; a text is a copy in the current memory context.
Datum field_datum(const void *record, const Field &field) {
    if (goes_as_text(field))
        return CStringGetTextDatum(column_text(record, field));
    const int64_t number = number_in(record, field);
    return Int64GetDatum(field.type == FieldType::time ? to_timestamptz(number) : number);
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
        core::set_null(record, field);
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

} // namespace uidgen::pg
