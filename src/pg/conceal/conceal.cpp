// uid_conceal() and uid_reveal(). They need no shared memory. So they work where no id can be drawn: without
// preloading, and on a standby.

#include "base/compat.hpp"
#include "base/errors.hpp"
#include "keys.hpp"

namespace uidgen::pg {
namespace {

using core::largest_id;
using core::largest_value;

[[noreturn]] void report_no_concealed_id(const text *name, int64_t value, const char *detail) {
    ereport(ERROR,
            (errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE),
             errmsg("value %lld is no id that key \"%s\" has concealed", static_cast<long long>(value), shown(name)),
             errdetail_internal("%s", detail)));
}

} // namespace
} // namespace uidgen::pg

using namespace uidgen::pg;

extern "C" {

UIDGEN_SQL_FUNCTION(uid_conceal);
UIDGEN_SQL_FUNCTION(uid_reveal);

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
}
