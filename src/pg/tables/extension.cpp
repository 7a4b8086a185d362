#include "extension.hpp"

namespace uidgen::pg {

Extension find_extension() {
    Extension found = {InvalidOid, InvalidOid, InvalidOid};
    ScanKeyData key;
    ScanKeyInit(&key, Anum_pg_extension_extname, BTEqualStrategyNumber, F_NAMEEQ, CStringGetDatum("uidgen"));
    Relation rel = table_open(ExtensionRelationId, AccessShareLock);
    SysScanDesc scan = systable_beginscan(rel, ExtensionNameIndexId, true, nullptr, 1, &key);
    HeapTuple tuple = systable_getnext(scan);
    if (HeapTupleIsValid(tuple)) {
        const auto *extension = reinterpret_cast<Form_pg_extension>(GETSTRUCT(tuple));
        found = {extension->oid, extension->extnamespace, extension->extowner};
    }
    systable_endscan(scan);
    table_close(rel, AccessShareLock);
    return found;
}

Oid schema_of_keys() { return get_namespace_oid("uid_secrets", true); }

} // namespace uidgen::pg
