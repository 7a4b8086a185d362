// uid_default_set(): chooses the generator behind uid_next().

#include "base/errors.hpp"
#include "session/locked_generator.hpp"
#include "session/session.hpp"
#include "tables/builtin.hpp"
#include "tables/config_table.hpp"
#include "tables/owner_rights.hpp"

namespace uidgen::pg {
namespace {

void check_may_choose_default(Oid table) {
    if (!has_privs_of_role(GetUserId(), owner_of(table)) && !has_privs_of_role(GetUserId(), ROLE_PG_DATABASE_OWNER))
        ereport(ERROR,
                (errcode(ERRCODE_INSUFFICIENT_PRIVILEGE), errmsg("permission denied to choose the default generator"),
                 errdetail("Only the owner of the database or of the extension may choose it.")));
}

// Compares the number of rows that each statement writes with the present state of the table: the transaction may have
// an older snapshot.
void write_default(Oid table, uint64 former_rows, Oid generator) {
    const char *unset = "UPDATE %1$s SET is_default = false WHERE is_default";
    const char *set = "UPDATE %1$s SET is_default = true WHERE generator::pg_catalog.oid OPERATOR(pg_catalog.=) $1";
    Oid types[] = {OIDOID};
    Datum values[] = {ObjectIdGetDatum(generator)};
    const bool done = write_as_owner(table, unset, 0, nullptr, nullptr) == former_rows &&
                      write_as_owner(table, set, lengthof(types), types, values) == 1;
    if (!done)
        ereport(ERROR, (errcode(ERRCODE_T_R_SERIALIZATION_FAILURE),
                        errmsg("could not choose the default generator due to a concurrent change"),
                        errhint("Retry the transaction.")));
}

// Has the new default start above every id that the former one can have issued. Under lock_generator() of both.
void raise_above_former(Oid schema, Oid former, Oid generator) {
    const int64_t mark = high_water_mark_of(former);
    if (mark == core::no_lease_yet)
        return;
    // Read under the locks, because both may have been altered.
    const GeneratorConfig config = read_generator_config(schema, generator);
    const GeneratorConfig former_config = read_generator_config(schema, former);
    const int64_t largest = core::largest_leased_id(former_config.layout, former_config.policy, mark);
    const char *hint =
        psprintf("A default must start above every id that the former one can have issued. To draw from this generator "
                 "in some tables, pass it to uid_adopt(), or set DEFAULT uid_next(%s) on their columns.",
                 quote_literal_cstr(qualified_name(generator)));
    raise_above_id(generator, config, largest, hint);
}

} // namespace
} // namespace uidgen::pg

using namespace uidgen::pg;

extern "C" {

UIDGEN_SQL_FUNCTION(uid_default_set);

Datum uid_default_set(PG_FUNCTION_ARGS) {
    const Oid generator = PG_GETARG_OID(0);
    const Oid schema = schema_of_function(fcinfo->flinfo->fn_oid);
    const Oid table = required_table(schema, "uid_generator");
    check_may_choose_default(table);
    read_generator_config(schema, generator); // raises an error if it is no generator
    if (RecoveryInProgress())
        report_in_recovery();
    LockRelationOid(table, ShareUpdateExclusiveLock); // one choice at a time; rows may be added meanwhile
    Oid former = find_default_generator(schema);      // none if it was dropped
    if (former == generator)
        PG_RETURN_VOID();
    if (OidIsValid(former)) {
        LockRelationOid(former, excludes_draws);
        former = find_default_generator(schema); // another session may have dropped it meanwhile
    }
    lock_generator(generator);
    if (OidIsValid(former))
        raise_above_former(schema, former, generator);
    const uint64 former_rows = OidIsValid(former) && has_generator_row(schema, former) ? 1 : 0;
    const Oid builtin = builtin_generator();
    if (OidIsValid(builtin) && !has_generator_row(schema, builtin))
        insert_builtin_row(table, false); // so that it is not the default if the new one is dropped
    write_default(table, former_rows, generator);
    default_changed_in = transaction_number;
    PG_RETURN_VOID();
}
}
