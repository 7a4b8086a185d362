// uid_to_uuid(), uid_from_uuid(): between ids and UUIDs of version 7. Arithmetic only, as in decode.cpp.

#include "tables/cached_layout.hpp"
#include "base/compat.hpp"
#include "base/errors.hpp"
#include "base/uuid_datum.hpp"

namespace uidgen::pg {
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

UIDGEN_SQL_FUNCTION(uid_to_uuid_default);
UIDGEN_SQL_FUNCTION(uid_to_uuid_of);
UIDGEN_SQL_FUNCTION(uid_from_uuid_default);
UIDGEN_SQL_FUNCTION(uid_from_uuid_of);

Datum uid_to_uuid_default(PG_FUNCTION_ARGS) { return to_uuid(fcinfo, the_default); }
Datum uid_to_uuid_of(PG_FUNCTION_ARGS) { return to_uuid(fcinfo, named(PG_GETARG_OID(1))); }
Datum uid_from_uuid_default(PG_FUNCTION_ARGS) { return from_uuid(fcinfo, the_default); }
Datum uid_from_uuid_of(PG_FUNCTION_ARGS) { return from_uuid(fcinfo, named(PG_GETARG_OID(1))); }
}
