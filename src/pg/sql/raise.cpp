// uid_generator_raise(): the owner of a generator has its ids start above a given one.

#include "session/locked_generator.hpp"
#include "tables/config_table.hpp"

using namespace uidgen::pg;

extern "C" {

UIDGEN_SQL_FUNCTION(uid_generator_raise);

Datum uid_generator_raise(PG_FUNCTION_ARGS) {
    const Oid generator = PG_GETARG_OID(0);
    const GeneratorConfig config = lock_own_generator(schema_of_function(fcinfo->flinfo->fn_oid), generator);
    raise_above_id(generator, config, PG_GETARG_INT64(1));
    PG_RETURN_VOID();
}
}
