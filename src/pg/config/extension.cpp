#include "extension.hpp"

#include "rows.hpp"
#include "sequence/sequence.hpp"

namespace uidgen::pg {

uint64_t relation_changes = 1;
uint64_t definition_changes = 1;

namespace {

// Sequences share places, so a change of another one may count, too.
bool watched[1024] = {};
// In this process's own memory.
bool *watch_place(Oid sequence) { return &watched[murmurhash32(sequence) % lengthof(watched)]; }

} // namespace

void watch_sequence(Oid sequence) { *watch_place(sequence) = true; }

void note_change(Oid relation) {
    relation_changes++;
    if ((!OidIsValid(relation) || *watch_place(relation)) && !fault_is("stale_names"))
        definition_changes++;
}

void forget_all_names() {
    relation_changes++;
    definition_changes++;
}

Extension find_extension() {
    Extension found = {};
    const ScanKeyData key = equals(Anum_pg_extension_extname, F_NAMEEQ, CStringGetDatum("uidgen"));
    for_each_row(table_open(ExtensionRelationId, AccessShareLock), ExtensionNameIndexId, &key, [&](Row row) {
        const auto *extension = reinterpret_cast<Form_pg_extension>(GETSTRUCT(row.tuple));
        found = {.oid = extension->oid, .schema = extension->extnamespace, .owner = extension->extowner};
    });
    return found;
}

Oid schema_of_secrets() { return get_namespace_oid("uid_secrets", true); }

void check_spi(int result, const char *function, const char *statement) {
    if (result < 0)
        elog(ERROR, "%s failed for \"%s\": %s", function, statement, SPI_result_code_string(result));
}

namespace {

// The owner in the row of a catalog, by its cache; InvalidOid if there is no such row.
Oid owner_in(SysCacheIdentifier cache, Oid object, AttrNumber column) {
    HeapTuple tuple = SearchSysCache1(cache, ObjectIdGetDatum(object));
    if (!HeapTupleIsValid(tuple))
        return InvalidOid;
    bool null = false;
    const Oid owner = DatumGetObjectId(SysCacheGetAttr(cache, tuple, column, &null));
    ReleaseSysCache(tuple);
    return owner;
}

} // namespace

Oid owner_of(Oid relation) {
    const Oid owner = owner_in(RELOID, relation, Anum_pg_class_relowner);
    if (!OidIsValid(owner))
        elog(ERROR, "cache lookup failed for relation %u", relation);
    return owner;
}

uint64 select_rows(const char *statement, Arguments arguments) {
    constexpr int most_arguments = 16;
    Oid types[most_arguments] = {};
    Datum values[most_arguments] = {};
    char nulls[most_arguments] = {};
    int count = 0;
    for (const Argument &argument : arguments) {
        types[count] = argument.type;
        values[count] = argument.value;
        nulls[count++] = argument.is_null ? 'n' : ' ';
    }
    check_spi(SPI_connect(), "SPI_connect", statement);
    check_spi(SPI_execute_with_args(statement, count, types, values, nulls, false, 0), "SPI_execute_with_args",
              statement);
    return SPI_processed;
}

void finish_statement() { check_spi(SPI_finish(), "SPI_finish", ""); }

uint64 run_statement(const char *statement, Arguments arguments) {
    const uint64 rows = select_rows(statement, arguments);
    finish_statement();
    return rows;
}

uint64 execute_as(Oid owner, const char *statement, Arguments arguments) {
    Oid role = InvalidOid;
    int security = 0;
    const int nest_level = NewGUCNestLevel();
    set_config_option("search_path", "pg_catalog, pg_temp", PGC_USERSET, PGC_S_SESSION, GUC_ACTION_SAVE, true, 0,
                      false);
    GetUserIdAndSecContext(&role, &security);
    SetUserIdAndSecContext(owner, security | SECURITY_LOCAL_USERID_CHANGE | SECURITY_RESTRICTED_OPERATION);
    const uint64 rows = run_statement(statement, arguments);
    SetUserIdAndSecContext(role, security);
    AtEOXact_GUC(true, nest_level);
    return rows;
}

namespace {

// Whether a role, or for pg_database_owner the owner of this database, is a superuser, by the catalogs.
bool is_superusers(Oid owner) {
    const bool is_databases = owner == ROLE_PG_DATABASE_OWNER;
    const Oid role = is_databases ? owner_in(DATABASEOID, MyDatabaseId, Anum_pg_database_datdba) : owner;
    return OidIsValid(role) && superuser_arg(role);
}

} // namespace

void report_dropped() {
    ereport(ERROR, (errcode(ERRCODE_UNDEFINED_OBJECT), errmsg("extension uidgen was dropped by another session"),
                    errhint("Run CREATE EXTENSION uidgen.")));
}

const char *quoted_schema(Oid schema) {
    const char *name = get_namespace_name(schema);
    if (name == nullptr)
        report_dropped();
    return quote_identifier(name);
}

Oid hold_names() {
    const Extension extension = find_extension();
    const Oid schema = extension.schema;
    uint64 held = OidIsValid(schema) ? 1 : 0;
    if ((!is_superusers(owner_in(NAMESPACEOID, schema, Anum_pg_namespace_nspowner)) ||
         !is_superusers(extension.owner)) &&
        !fault_is("free_names")) {
        PreventCommandIfReadOnly("this function of uidgen");
        held = execute_as(BOOTSTRAP_SUPERUSERID,
                          "SELECT FROM pg_catalog.pg_extension e JOIN pg_catalog.pg_namespace n "
                          "ON n.oid OPERATOR(pg_catalog.=) e.extnamespace "
                          "WHERE e.extname OPERATOR(pg_catalog.=) 'uidgen'::pg_catalog.name "
                          "AND n.oid OPERATOR(pg_catalog.=) $1 FOR KEY SHARE",
                          {{OIDOID, ObjectIdGetDatum(schema)}});
    }
    AcceptInvalidationMessages();
    if (held == 0)
        report_dropped();
    return schema;
}

uint64 write_as_owner(Oid table, const char *statement, Arguments arguments) {
    hold_names();
    if (get_rel_name(table) == nullptr)
        report_dropped();
    return execute_as(owner_of(table), psprintf(statement, qualified_name(table)), arguments);
}

void check_owner(Oid sequence) {
    if (get_rel_relkind(sequence) == '\0')
        report_no_sequence(sequence);
    if (!has_privs_of_role(GetUserId(), owner_of(sequence)) && !fault_is("any_owner"))
        aclcheck_error(ACLCHECK_NOT_OWNER, OBJECT_SEQUENCE, get_rel_name(sequence));
}

void check_owner_of_new(Oid sequence) {
    check_owner(sequence);
    const Oid owner = owner_of(sequence);
    if (owner != GetUserId())
        ereport(WARNING, (errcode(ERRCODE_WARNING),
                          errmsg("sequence \"%s\" belongs to role \"%s\"", get_rel_name(sequence),
                                 GetUserNameFromId(owner, false)),
                          errhint("If that role is not to own it, drop the sequence, and create it again.")));
}

} // namespace uidgen::pg
