// Ids as short texts and as UUIDs: uid_to_base62(), uid_to_uuid(), their inverses and their kin.

#include "core/id_forms.hpp"
#include "base/compat.hpp"
#include "config/layouts.hpp"
#include "base/errors.hpp"

namespace uidgen::pg {
namespace {

// Positions in messages count characters from 1.
[[noreturn]] void report_short_form(const text *value, const core::ReadShort &read) {
    const char *bytes = VARDATA_ANY(value);
    const int size = static_cast<int>(VARSIZE_ANY_EXHDR(value));
    const auto at = static_cast<int>(read.at);
    const int position = pg_mbstrlen_with_len(bytes, at) + 1;
    switch (read.fault) {
    case core::ShortFault::foreign:
        ereport(ERROR, (errcode(ERRCODE_INVALID_TEXT_REPRESENTATION),
                        errmsg("invalid character \"%s\" at position %d of base62 text",
                               pnstrdup(bytes + at, Min(pg_mblen(bytes + at), size - at)), position),
                        errdetail("The digits of base62 are 0 to 9, A to Z and a to z."),
                        errhint("Pass a text that uid_to_base62() has returned.")));
    case core::ShortFault::too_large:
        ereport(ERROR, (errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE),
                        errmsg("base62 text is out of range for an id at position %d", position),
                        errhint("The largest id is \"AzL8n0Y58m7\".")));
    case core::ShortFault::empty:
    case core::ShortFault::none:
        break;
    }
    ereport(ERROR, (errcode(ERRCODE_INVALID_TEXT_REPRESENTATION), errmsg("base62 text must not be empty"),
                    errhint("Pass a text that uid_to_base62() has returned.")));
}

// Arithmetic only, as in decode.cpp. The same id gives the same uuid: its random bits are 0.
Datum to_uuid(FunctionCallInfo fcinfo, Oid generator) {
    const core::Layout &layout = layout_of(generator);
    const int64_t id = PG_GETARG_INT64(0);
    parts_of(layout, id); // error if it is not an id of this layout
    return id_as_uuid(layout, id, 0);
}

Datum from_uuid(FunctionCallInfo fcinfo, Oid generator) {
    const core::Layout &layout = layout_of(generator);
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

Datum uid_to_base62(PG_FUNCTION_ARGS) {
    const int64_t id = PG_GETARG_INT64(0);
    if (id < 0)
        ereport(ERROR, (errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE),
                        errmsg("cannot convert %lld to base62", static_cast<long long>(id)),
                        errdetail("An id is never negative."), errhint("Use a number from 0 to 9223372036854775807.")));
    char characters[uidgen::core::short_form_width];
    uidgen::core::write_short_form(id, characters);
    return PointerGetDatum(cstring_to_text_with_len(characters, uidgen::core::short_form_width));
}

Datum uid_from_base62(PG_FUNCTION_ARGS) {
    const text *value = PG_GETARG_TEXT_PP(0);
    const uidgen::core::ReadShort found = uidgen::core::read_short_form(VARDATA_ANY(value), VARSIZE_ANY_EXHDR(value));
    if (found.fault != uidgen::core::ShortFault::none)
        report_short_form(value, found);
    PG_RETURN_INT64(found.id);
}

UIDGEN_SQL_FUNCTION(uid_to_uuid_default);
UIDGEN_SQL_FUNCTION(uid_to_uuid_of);
UIDGEN_SQL_FUNCTION(uid_from_uuid_default);
UIDGEN_SQL_FUNCTION(uid_from_uuid_of);

Datum uid_to_uuid_default(PG_FUNCTION_ARGS) { return to_uuid(fcinfo, the_default); }
Datum uid_to_uuid_of(PG_FUNCTION_ARGS) { return to_uuid(fcinfo, named(PG_GETARG_OID(1))); }
Datum uid_from_uuid_default(PG_FUNCTION_ARGS) { return from_uuid(fcinfo, the_default); }
Datum uid_from_uuid_of(PG_FUNCTION_ARGS) { return from_uuid(fcinfo, named(PG_GETARG_OID(1))); }
}
