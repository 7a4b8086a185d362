// Ids as short texts and as UUIDs: uid_to_base62(), uid_to_uuid(), their inverses and their kin.

#include "core/id_forms.hpp"
#include "base/compat.hpp"
#include "config/layouts.hpp"
#include "base/errors.hpp"

namespace uidgen::pg {

namespace {

// A form as messages name it.
struct Form {
    const char *name;
    const char *digits;
    const char *largest; // 2^63 - 1
};

constexpr Form base62 = {"base62", "0 to 9, A to Z and a to z", "AzL8n0Y58m7"};
constexpr Form base32 = {
    "base32", "0 to 9 and A to Z without U; I and L are read as 1, O as 0, and hyphens are ignored", "7ZZZZZZZZZZZZ"};

int64_t checked_id(FunctionCallInfo fcinfo, const Form &form) {
    const int64_t id = PG_GETARG_INT64(0);
    if (id < 0)
        ereport(ERROR, (errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE),
                        errmsg("cannot convert %lld to %s", static_cast<long long>(id), form.name),
                        errdetail("An id is never negative."), errhint("Use a number from 0 to 9223372036854775807.")));
    return id;
}

// Positions in messages count characters from 1.
[[noreturn]] void report_short_form(const Form &form, const text *value, const core::ReadShort &read) {
    const char *bytes = VARDATA_ANY(value);
    const int size = static_cast<int>(VARSIZE_ANY_EXHDR(value));
    const auto at = static_cast<int>(read.at);
    const int position = pg_mbstrlen_with_len(bytes, at) + 1;
    switch (read.fault) {
    case core::ShortFault::foreign:
        ereport(ERROR, (errcode(ERRCODE_INVALID_TEXT_REPRESENTATION),
                        errmsg("invalid character \"%s\" at position %d of %s text",
                               pnstrdup(bytes + at, Min(pg_mblen(bytes + at), size - at)), position, form.name),
                        errdetail("The digits of %s are %s.", form.name, form.digits),
                        errhint("Pass a text that uid_to_%s() has returned.", form.name)));
    case core::ShortFault::too_large:
        ereport(ERROR, (errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE),
                        errmsg("%s text is out of range for an id at position %d", form.name, position),
                        errhint("The largest id is \"%s\".", form.largest)));
    case core::ShortFault::empty:
    case core::ShortFault::none:
        break;
    }
    ereport(ERROR, (errcode(ERRCODE_INVALID_TEXT_REPRESENTATION),
                    errmsg("%s text ends before its first digit, at position %d", form.name, position),
                    errhint("Pass a text that uid_to_%s() has returned.", form.name)));
}

Datum number_as_text(FunctionCallInfo fcinfo, const Form &form, const core::Alphabet &alphabet) {
    char characters[core::longest_short_form];
    core::write_number(alphabet, checked_id(fcinfo, form), characters);
    return PointerGetDatum(cstring_to_text_with_len(characters, static_cast<int>(alphabet.width)));
}

Datum number_of_text(FunctionCallInfo fcinfo, const Form &form, const core::Alphabet &alphabet) {
    const text *value = PG_GETARG_TEXT_PP(0);
    const core::ReadShort found = core::read_number(alphabet, VARDATA_ANY(value), VARSIZE_ANY_EXHDR(value));
    if (found.fault != core::ShortFault::none)
        report_short_form(form, value, found);
    PG_RETURN_INT64(found.id);
}

} // namespace

// uid_to_uuid(), uid_from_uuid(): between ids and UUIDs of version 7. Arithmetic only, as in decode.cpp.

namespace {

// The same id gives the same uuid: its random bits are 0.
Datum to_uuid(FunctionCallInfo fcinfo, Oid generator) {
    const core::Layout &layout = layout_of(generator, fcinfo->flinfo->fn_oid);
    const int64_t id = PG_GETARG_INT64(0);
    parts_of(layout, id); // error if it is not an id of this layout
    return id_as_uuid(layout, id, 0);
}

Datum from_uuid(FunctionCallInfo fcinfo, Oid generator) {
    const core::Layout &layout = layout_of(generator, fcinfo->flinfo->fn_oid);
    const core::ReadUuid read = core::id_of(layout, uuid_of_datum(PG_GETARG_DATUM(0)));
    if (read.fault != core::UuidFault::none)
        report_uuid(DatumGetCString(DirectFunctionCall1(uuid_out, PG_GETARG_DATUM(0))), read.fault);
    PG_RETURN_INT64(read.id);
}

} // namespace

} // namespace uidgen::pg

using namespace uidgen::pg;

extern "C" {

UIDGEN_SQL_FUNCTION(uid_to_base62);
UIDGEN_SQL_FUNCTION(uid_from_base62);
UIDGEN_SQL_FUNCTION(uid_to_base32);
UIDGEN_SQL_FUNCTION(uid_from_base32);

Datum uid_to_base62(PG_FUNCTION_ARGS) { return number_as_text(fcinfo, base62, uidgen::core::base62); }
Datum uid_from_base62(PG_FUNCTION_ARGS) { return number_of_text(fcinfo, base62, uidgen::core::base62); }
Datum uid_to_base32(PG_FUNCTION_ARGS) { return number_as_text(fcinfo, base32, uidgen::core::base32); }
Datum uid_from_base32(PG_FUNCTION_ARGS) { return number_of_text(fcinfo, base32, uidgen::core::base32); }

UIDGEN_SQL_FUNCTION(uid_to_uuid_default);
UIDGEN_SQL_FUNCTION(uid_to_uuid_of);
UIDGEN_SQL_FUNCTION(uid_from_uuid_default);
UIDGEN_SQL_FUNCTION(uid_from_uuid_of);

Datum uid_to_uuid_default(PG_FUNCTION_ARGS) { return to_uuid(fcinfo, the_default); }
Datum uid_to_uuid_of(PG_FUNCTION_ARGS) { return to_uuid(fcinfo, named(PG_GETARG_OID(1))); }
Datum uid_from_uuid_default(PG_FUNCTION_ARGS) { return from_uuid(fcinfo, the_default); }
Datum uid_from_uuid_of(PG_FUNCTION_ARGS) { return from_uuid(fcinfo, named(PG_GETARG_OID(1))); }
}
