// uid_conceal() and uid_reveal(). They need no shared memory. So they work where no id can be drawn: without
// preloading, and on a standby.

#include "base/compat.hpp"
#include "session/keys.hpp"

namespace uidgen::pg {
namespace {

using core::largest_id;
using core::largest_value;

// Versions of a key count from 1, so newest_version is no argument.
int32_t version_argument(FunctionCallInfo fcinfo) {
    const int32_t version = PG_GETARG_INT32(2);
    if (version < 1)
        ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("invalid version %d of a key", version),
                        errhint("Use a version from 1 on. Without a version, the newest one conceals.")));
    return version;
}

Datum conceal(FunctionCallInfo fcinfo, int32_t version) {
    const int64_t id = PG_GETARG_INT64(0);
    const text *name = PG_GETARG_TEXT_PP(1);
    const Key &key = open_key(fcinfo->flinfo->fn_oid, name, version);
    if (id < 0 || id > largest_id(key.format))
        ereport(ERROR, (errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE),
                        errmsg("key \"%s\" cannot conceal %lld", key_name(name), static_cast<long long>(id)),
                        errdetail("It conceals ids from 0 to %lld.", static_cast<long long>(largest_id(key.format))),
                        id < 0 ? 0 : errhint("Create a key with a larger width, or with fewer version bits.")));
    PG_RETURN_INT64(core::conceal(key.format, key.permutation, key.version, id, key));
}

[[noreturn]] void report_no_concealed_id(const text *name, int64_t value, const char *detail) {
    ereport(ERROR,
            (errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE),
             errmsg("value %lld is no id that key \"%s\" has concealed", static_cast<long long>(value), key_name(name)),
             errdetail_internal("%s", detail)));
}

void check_value(const Key &key, const text *name, int64_t value) {
    if (value < 0 || value > largest_value(key.format))
        report_no_concealed_id(
            name, value,
            psprintf("Its concealed ids are from 0 to %lld.", static_cast<long long>(largest_value(key.format))));
}

Datum reveal_with(const Key &key, int64_t value) {
    PG_RETURN_INT64(core::reveal(key.format, key.permutation, value, key));
}

} // namespace
} // namespace uidgen::pg

using namespace uidgen::pg;

extern "C" {

UIDGEN_SQL_FUNCTION(uid_conceal);
UIDGEN_SQL_FUNCTION(uid_conceal_version);
UIDGEN_SQL_FUNCTION(uid_reveal);
UIDGEN_SQL_FUNCTION(uid_reveal_version);

Datum uid_conceal(PG_FUNCTION_ARGS) { return conceal(fcinfo, newest_version); }
Datum uid_conceal_version(PG_FUNCTION_ARGS) { return conceal(fcinfo, version_argument(fcinfo)); }

Datum uid_reveal(PG_FUNCTION_ARGS) {
    const int64_t value = PG_GETARG_INT64(0);
    const text *name = PG_GETARG_TEXT_PP(1);
    const Oid function = fcinfo->flinfo->fn_oid;
    const Key &newest = open_key(function, name, newest_version);
    check_value(newest, name, value);
    if (newest.format.version_bits == 0 && newest.versions > 1)
        ereport(ERROR, (errcode(ERRCODE_AMBIGUOUS_PARAMETER),
                        errmsg("key \"%s\" has %d versions, and its concealed ids do not show which one applies",
                               key_name(name), newest.versions),
                        errhint("Pass the version as the third argument of uid_reveal().")));
    const int32_t version = uidgen::core::version_in(newest.format, value);
    if (version == newest.version || newest.format.version_bits == 0)
        return reveal_with(newest, value);
    if (version > newest.versions)
        report_no_concealed_id(
            name, value,
            psprintf("The value has version %d, and the newest version of the key is %d.", version, newest.versions));
    return reveal_with(open_key(function, name, version), value);
}

Datum uid_reveal_version(PG_FUNCTION_ARGS) {
    const int64_t value = PG_GETARG_INT64(0);
    const text *name = PG_GETARG_TEXT_PP(1);
    const int32_t version = version_argument(fcinfo);
    const Key &key = open_key(fcinfo->flinfo->fn_oid, name, version);
    check_value(key, name, value);
    const int32_t shown = uidgen::core::version_in(key.format, value);
    if (key.format.version_bits > 0 && shown != version)
        report_no_concealed_id(name, value, psprintf("The value has version %d.", shown));
    return reveal_with(key, value);
}
}
