// uid_generator_raise(): the owner of a generator has its ids start above a given one.

#include "base/errors.hpp"
#include "session/locked_generator.hpp"
#include "tables/config_table.hpp"
#include "tables/owner_rights.hpp"

using namespace uidgen::pg;

extern "C" {

UIDGEN_SQL_FUNCTION(uid_generator_raise);

Datum uid_generator_raise(PG_FUNCTION_ARGS) {
    const Oid generator = PG_GETARG_OID(0);
    const Oid schema = schema_of_function(fcinfo->flinfo->fn_oid);
    read_generator_config(schema, generator); // raises an error if it is no generator
    if (!has_privs_of_role(GetUserId(), owner_of(generator)))
        aclcheck_error(ACLCHECK_NOT_OWNER, OBJECT_SEQUENCE, get_rel_name(generator));
    if (RecoveryInProgress())
        report_in_recovery();
    lock_generator(generator);
    // Read again under the lock, because it may have been altered.
    const GeneratorConfig config = read_generator_config(schema, generator);
    raise_above_id(generator, config, PG_GETARG_INT64(1));
    PG_RETURN_VOID();
}
}
