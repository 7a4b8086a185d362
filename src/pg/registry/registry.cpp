#include "registry.hpp"

#include "base/faults.hpp"
#include "base/settings.hpp"
#include "base/this_server.hpp"
#include "base/time_source.hpp"
#include "tables/config_table.hpp"
#include "tables/owner_rights.hpp"

namespace uidgen::pg {
namespace {

constexpr LOCKMODE shared_mode = RowShareLock;
constexpr LOCKMODE exclusive_mode = ExclusiveLock;

// Level 1 is the transaction's. A function with a SET clause, or a subtransaction, has a level of its own.
bool is_outermost_guc_level() {
    const int level = NewGUCNestLevel();
    AtEOXact_GUC(false, level);
    return level == 2;
}

void check_own_transaction(Oid function) {
    const char *name = get_func_name(function);
    if (RecoveryInProgress())
        ereport(ERROR, (errcode(ERRCODE_READ_ONLY_SQL_TRANSACTION), errmsg("cannot run %s() during recovery", name),
                        errhint("Connect to the registry's primary: target_session_attrs=read-write.")));
    if (IsTransactionBlock() || IsSubTransaction() || !is_outermost_guc_level() ||
        TransactionIdIsValid(GetTopTransactionIdIfAny()))
        ereport(ERROR, (errcode(ERRCODE_ACTIVE_SQL_TRANSACTION),
                        errmsg("%s() must be the only statement of a "
                               "transaction",
                               name),
                        errdetail("Its result counts only once it is committed."),
                        errhint("Run it outside of transaction blocks and of other functions.")));
    if (IsolationUsesXactSnapshot())
        ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                        errmsg("%s() must run at isolation level READ COMMITTED", name),
                        errhint("Run SET default_transaction_isolation = 'read committed'.")));
}

void set_locally(const char *name, const char *value, GucAction action) {
    (void)set_config_option(name, value, PGC_USERSET, PGC_S_SESSION, action, true, 0, false);
}

// The data directory stays the same in another mount of the same path.
Environment current_environment(Oid state_table) {
    char host[256];
    char directory[MAXPGPATH];
    (void)read_host_name(host, sizeof(host));
    const bool resolved = read_data_directory(directory, sizeof(directory));
    return {static_cast<int64_t>(GetSystemIdentifier()),
            static_cast<int32_t>(GetWALInsertionTimeLine()),
            pstrdup(host),
            pstrdup(resolved ? directory : DataDir),
            MyDatabaseId,
            state_table};
}

// Null: nothing has changed.
const char *change_between(const Environment &before, const Environment &now) {
    if (before.system_identifier != now.system_identifier)
        return psprintf("the system identifier has changed from %lld to %lld",
                        static_cast<long long>(before.system_identifier),
                        static_cast<long long>(now.system_identifier));
    if (before.timeline != now.timeline)
        return psprintf("the timeline has changed from %d to %d", before.timeline, now.timeline);
    // A dump holds the row with the OIDs of the database and the table that it was made of.
    if (before.database != now.database)
        return psprintf("the database's OID has changed from %u to %u", before.database, now.database);
    if (before.table != now.table)
        return psprintf("the OID of uid_fleet_state has changed from %u to %u", before.table, now.table);
    if (before.host == nullptr)
        return nullptr;
    if (strcmp(before.host, now.host) != 0)
        return psprintf("the host has changed from \"%s\" to \"%s\"", before.host, now.host);
    if (strcmp(before.data_directory, now.data_directory) != 0)
        return psprintf("the data directory has changed from \"%s\" to \"%s\"", before.data_directory,
                        now.data_directory);
    return nullptr;
}

// False: needs the exclusive lock.
bool settle_environment(Registry *registry) {
    const Environment now = current_environment(registry->state_table);
    const core::RegistryView &view = registry->state.view;
    const bool is_recorded = registry->state.environment.host != nullptr;
    const char *change = fault_is(Fault::no_fence) ? nullptr : change_between(registry->state.environment, now);
    if (change == nullptr && is_recorded)
        return true;
    if (!registry->exclusive)
        return false;
    write_environment(now);
    registry->state.environment = now;
    if (change == nullptr)
        return true;
    const bool still_closed = view.now_us + view.bound_us < registry->state.closed_until_us ||
                              (fault_is(Fault::any_closing) && registry->state.closed_until_us > 0);
    if (is_closed(*registry)) {
        write_closed_until(0);
        registry->state.closed_until_us = 0;
    }
    if (still_closed)
        ereport(LOG, (errmsg("registry is open again after a handover: %s", change)));
    else
        raise_fence(registry, change);
    return true;
}

// The servers that follow must assume the same bound, or a greater one. So a greater setting is stored. It counts from
// the next call on, because nothing may be granted under it before it is committed. False: needs the exclusive lock.
bool settle_clock_bound(const Registry *registry) {
    const int64_t setting_us = settings::registry_clock_bound_ms * us_per_ms;
    if (setting_us <= registry->state.view.bound_us)
        return true;
    if (registry->exclusive)
        write_clock_bound(setting_us);
    return registry->exclusive;
}

bool settle(Registry *registry) { return settle_clock_bound(registry) && settle_environment(registry); }

void lock_registry(Registry *registry, bool exclusive) {
    LockRelationOid(registry->state_table, exclusive ? exclusive_mode : shared_mode);
    registry->exclusive = exclusive;
    const int64_t now_us = wall_clock_us();
    if (!read_state(&registry->state))
        ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                        errmsg("database \"%s\" is not the registry of a fleet", get_database_name(MyDatabaseId)),
                        errhint("Run SELECT uid_fleet_admit('role') to make it one.")));
    registry->state.view.now_us = now_us;
    renew_serial(registry);
}

// What a row says of the clock that its grant was made by. Rows that the median proves wrong are passed over.
int64_t latest_end_of_pool(const core::RegistryView &view, int32_t pool, const core::Layout &layout) {
    int64_t end_us = 0;
    NodeRecord record;
    record.row.until = PG_INT64_MAX;
    while (end_us == 0 && read_latest_node(pool, record.row.until, &record))
        end_us = core::latest_end_us(layout, view, record.row);
    return end_us;
}

int64_t latest_end_of_fleet(const core::RegistryView &view) {
    int64_t end_us = 0;
    int32_t pool = no_pool;
    core::Layout layout;
    while (read_pool_after(pool, &pool, &layout))
        end_us = Max(end_us, latest_end_of_pool(view, pool, layout));
    return end_us;
}

} // namespace

void open_registry(Registry *registry, Oid function) {
    *registry = {};
    check_own_transaction(function);
    registry->caller = CurrentMemoryContext;
    registry->schema = schema_of_function(function);
    hold_names(registry->schema);
    registry->state_table = required_table(registry->schema, "uid_fleet_state");
    registry->serial_sequence = required_table(registry->schema, "uid_fleet_serial", RELKIND_SEQUENCE);
    if (fault_is(Fault::unsafe_grant) && !standbys_are_awaited())
        set_locally("synchronous_commit", "off", GUC_ACTION_LOCAL);
    else if (synchronous_commit < SYNCHRONOUS_COMMIT_REMOTE_FLUSH)
        set_locally("synchronous_commit", "on", GUC_ACTION_LOCAL);
    registry->guc_level = NewGUCNestLevel();
    set_locally("search_path", "pg_catalog, pg_temp", GUC_ACTION_SAVE);
    // The plans are made before the tables have grown, and are kept. Each has an index in the order that it needs.
    set_locally("enable_seqscan", "off", GUC_ACTION_SAVE);
    set_locally("enable_bitmapscan", "off", GUC_ACTION_SAVE);
    set_locally("jit", "off", GUC_ACTION_SAVE);
    check_spi(SPI_connect(), "SPI_connect", "");
    fleet_use_schema(registry->schema);
}

void close_registry(Registry *registry) {
    check_spi(SPI_finish(), "SPI_finish", "");
    AtEOXact_GUC(true, registry->guc_level);
}

void run_in_registry(Registry *registry, RegistryWork work, void *arg, bool exclusive) {
    if (!exclusive) {
        lock_registry(registry, false);
        if (settle(registry) && work(registry, arg))
            return;
        UnlockRelationOid(registry->state_table, shared_mode);
    }
    lock_registry(registry, true);
    (void)settle(registry);
    if (!work(registry, arg))
        elog(ERROR, "the registry's exclusive lock was not enough");
}

bool refuse_member(Registry *registry, uint64_t fleet, int64_t term, MemberRefusal *refusal) {
    if (fault_is(Fault::any_fleet) && fleet != 0)
        registry->state.view.fleet = fleet;
    const core::RegistryView &view = registry->state.view;
    const core::Refusal why = core::judge_fleet(view, fleet, term);
    if (is_closed(*registry)) {
        *refusal = {
            "handing_over", "the registry is being handed over to another server",
            "Wait for the switchover. To stay with that server, wait until uid_fleet_state.closed_until and run "
            "SELECT uid_fleet_handover(cancel => true) there.",
            true};
    } else if (why == core::Refusal::other_fleet) {
        *refusal = {"other_fleet", "the registry belongs to another fleet",
                    "Correct uidgen.registry, or run SELECT uid_fleet_move() on this server to move it to that fleet.",
                    false};
    } else if (why == core::Refusal::stale_registry) {
        // The refusal of this asker must last for all others, so it is committed before it is answered.
        if (fleet == view.fleet && term > view.term_shown) {
            if (!registry->exclusive)
                return false;
            write_term_shown(term);
        }
        *refusal = {"stale_registry", "the registry has lost its latest term, or another server is the registry now",
                    "Check that no other server is the registry, and run SELECT uid_fleet_fence() on this one.", false};
    }
    return true;
}

void check_protocol_version(int32_t asked, int32_t spoken) {
    if (asked != spoken)
        ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
                        errmsg("protocol version %d of the member is not supported by the registry", asked),
                        errdetail("The registry speaks version %d.", spoken),
                        errhint("Upgrade the registry first, then the members.")));
}

void renew_serial(Registry *registry) {
    core::RegistryView &view = registry->state.view;
    view.own_serial = nextval_internal(registry->serial_sequence, false);
    view.serial = view.own_serial - 1;
}

void raise_fence(Registry *registry, const char *reason) {
    core::RegistryView &view = registry->state.view;
    Assert(registry->exclusive);
    read_median(registry);
    view = core::fenced(view, latest_end_of_fleet(view));
    if (fault_is(Fault::no_wait))
        view.fence_base_us = 0;
    write_fence(view);
    ereport(LOG,
            (errmsg("registry accepts no newcomers for %.0f s: %s",
                    static_cast<double>(view.fence_base_us + 2 * view.bound_us + view.longest_us - view.now_us) / 1e6,
                    reason),
             errdetail("Grants may have been lost. Members that renew theirs in time keep their nodes."),
             errhint("If nodes are reserved for generators outside, make sure that uid_fleet lists all of them. A lost "
                     "reservation must be replaced by another node.")));
}

void read_median(Registry *registry) {
    core::RegistryView &view = registry->state.view;
    int64_t offset_us = 0;
    if (view.median_us == 0 && read_median_offset(view.now_us - view.longest_us, view.now_us, &offset_us))
        view.median_us = view.now_us + offset_us;
}

} // namespace uidgen::pg
