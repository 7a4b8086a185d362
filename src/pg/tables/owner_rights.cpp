#include "owner_rights.hpp"

namespace uidgen::pg {

void check_spi(int result, const char *function, const char *statement) {
    if (result < 0)
        elog(ERROR, "%s failed for \"%s\": %s", function, statement, SPI_result_code_string(result));
}

Oid owner_of(Oid relation) {
    HeapTuple tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(relation));
    if (!HeapTupleIsValid(tuple))
        elog(ERROR, "cache lookup failed for relation %u", relation);
    const Oid owner = reinterpret_cast<Form_pg_class>(GETSTRUCT(tuple))->relowner;
    ReleaseSysCache(tuple);
    return owner;
}

uint64 execute_as_owner(Oid table, const char *statement, int arguments, Oid *types, Datum *values, const char *nulls) {
    Oid role = InvalidOid;
    int security = 0;
    const Oid owner = owner_of(table);
    const int nest_level = NewGUCNestLevel();
    set_config_option("search_path", "pg_catalog, pg_temp", PGC_USERSET, PGC_S_SESSION, GUC_ACTION_SAVE, true, 0,
                      false);
    GetUserIdAndSecContext(&role, &security);
    SetUserIdAndSecContext(owner, security | SECURITY_LOCAL_USERID_CHANGE | SECURITY_RESTRICTED_OPERATION);
    check_spi(SPI_connect(), "SPI_connect", statement);
    check_spi(SPI_execute_with_args(statement, arguments, types, values, nulls, false, 0), "SPI_execute_with_args",
              statement);
    const uint64 rows = SPI_processed;
    check_spi(SPI_finish(), "SPI_finish", statement);
    SetUserIdAndSecContext(role, security);
    AtEOXact_GUC(true, nest_level);
    return rows;
}

} // namespace uidgen::pg
