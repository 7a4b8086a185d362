// uid_conceal(), uid_reveal(), uid_key_create(), uid_key_rotate(). They need no shared memory. So they work where no id
// can be drawn: without preloading, and on a standby.

#include "base/compat.hpp"
#include "base/errors.hpp"
#include "config/extension.hpp"
#include "config/rows.hpp"
#include "keys.hpp"
#include "sequence/sequence.hpp"

namespace uidgen::pg {
namespace {

using core::largest_id;
using core::largest_value;

constexpr char key_table_name[] = "uid_key";

[[noreturn]] void report_no_concealed_id(const text *name, int64_t value, const char *detail) {
    ereport(ERROR,
            (errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE),
             errmsg("value %lld is not an id concealed with key \"%s\"", static_cast<long long>(value), shown(name)),
             errdetail_internal("%s", detail)));
}

// The caller creates the sequence, and the owner of uid_key inserts the row. A trigger checks the numbers.
Oid create_key(FunctionCallInfo fcinfo) {
    const char *name = PG_ARGISNULL(0) ? "" : text_to_cstring(PG_GETARG_TEXT_PP(0));
    if (name[0] == '\0' || strlen(name) >= NAMEDATALEN)
        ereport(ERROR, (errcode(ERRCODE_INVALID_NAME),
                        errmsg("invalid key name: \"%s\"", PG_ARGISNULL(0) ? "<NULL>" : shown(PG_GETARG_TEXT_PP(0))),
                        errhint("Use a text of 1 to 63 bytes.")));
    const char *create = psprintf("CREATE SEQUENCE %s", quote_qualified_identifier("uid_keys", name));
    check_spi(SPI_connect(), "SPI_connect", create);
    check_spi(SPI_execute(create, false, 0), "SPI_execute", create);
    check_spi(SPI_finish(), "SPI_finish", create);
    const Oid sequence = get_relname_relid(name, get_namespace_oid("uid_keys", false));
    Oid types[] = {OIDOID, INT4OID, INT4OID};
    Datum values[] = {ObjectIdGetDatum(sequence), fcinfo->args[1].value, fcinfo->args[2].value};
    const char nulls[] = {' ', PG_ARGISNULL(1) ? 'n' : ' ', PG_ARGISNULL(2) ? 'n' : ' '};
    write_as_owner(required_table(schema_of_keys(), key_table_name),
                   "INSERT INTO %1$s (sequence, width, version_bits) VALUES ($1, $2, $3)", lengthof(types), types,
                   values, nulls);
    return sequence;
}

// Each version has a secret of its own, which a trigger makes. Two rotations at a time make one version.
int32_t rotate_key(const text *name) {
    const Oid sequence = key_named(name);
    const Oid table = required_table(schema_of_keys(), key_table_name);
    check_owner(sequence, table);
    lock_sequence(sequence, AccessShareLock);
    const int32_t newest = versions_of_key(name, sequence) + 1;
    Oid types[] = {OIDOID, INT4OID};
    Datum values[] = {ObjectIdGetDatum(sequence), Int32GetDatum(newest)};
    if (write_as_owner(table, "UPDATE %1$s SET versions = $2 WHERE sequence::pg_catalog.oid OPERATOR(pg_catalog.=) $1",
                       lengthof(types), types, values) == 0)
        report_newer_row(sequence, key_table_name);
    return newest;
}

} // namespace
} // namespace uidgen::pg

using namespace uidgen::pg;

extern "C" {

UIDGEN_SQL_FUNCTION(uid_conceal);
UIDGEN_SQL_FUNCTION(uid_reveal);
UIDGEN_SQL_FUNCTION(uid_key_create);
UIDGEN_SQL_FUNCTION(uid_key_rotate);

Datum uid_conceal(PG_FUNCTION_ARGS) {
    const int64_t id = PG_GETARG_INT64(0);
    const text *name = PG_GETARG_TEXT_PP(1);
    const Key &key = open_key(name, newest_version);
    if (id < 0 || id > largest_id(key.format))
        ereport(ERROR, (errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE),
                        errmsg("key \"%s\" cannot conceal %lld", shown(name), static_cast<long long>(id)),
                        errdetail("It conceals ids from 0 to %lld.", static_cast<long long>(largest_id(key.format))),
                        id < 0 ? 0 : errhint("Create a key with a larger width, or with fewer version bits.")));
    PG_RETURN_INT64(uidgen::core::conceal(key.format, key.permutation, key.version, id, key));
}

Datum uid_reveal(PG_FUNCTION_ARGS) {
    const int64_t value = PG_GETARG_INT64(0);
    const text *name = PG_GETARG_TEXT_PP(1);
    const Key &newest = open_key(name, newest_version);
    if (value < 0 || value > largest_value(newest.format))
        report_no_concealed_id(
            name, value,
            psprintf("Its concealed ids are from 0 to %lld.", static_cast<long long>(largest_value(newest.format))));
    const int32_t version = uidgen::core::version_in(newest.format, value);
    if (version > newest.versions)
        report_no_concealed_id(
            name, value,
            psprintf("The value has version %d, and the newest version of the key is %d.", version, newest.versions));
    const Key &key = version == newest.version ? newest : open_key(name, version);
    PG_RETURN_INT64(uidgen::core::reveal(key.format, key.permutation, value, key));
}

Datum uid_key_create(PG_FUNCTION_ARGS) { PG_RETURN_OID(create_key(fcinfo)); }
Datum uid_key_rotate(PG_FUNCTION_ARGS) { PG_RETURN_INT32(rotate_key(PG_GETARG_TEXT_PP(0))); }
}
