#include "registry.hpp"

#include "base/errors.hpp"
#include "base/faults.hpp"
#include "base/settings.hpp"
#include "base/identity.hpp"
#include "base/time_source.hpp"
#include "fleet_query.hpp"
#include "config/rows.hpp"
#include "config/extension.hpp"
#include "sequence/sequence.hpp"

namespace uidgen::pg {
namespace {

constexpr LOCKMODE shared_mode = RowShareLock;
constexpr LOCKMODE exclusive_mode = ExclusiveLock;

constexpr int64_t handover_pause_ms = 1000;

// Level 1 is the transaction's. A function with a SET clause, or a subtransaction, has a level of its own.
bool is_outermost_guc_level() {
    const int level = NewGUCNestLevel();
    AtEOXact_GUC(false, level);
    return level == 2;
}

// Of a procedure; null: it is a function.
const CallContext *call_context(FunctionCallInfo fcinfo) {
    const bool is_call = fcinfo->context != nullptr && IsA(fcinfo->context, CallContext);
    return is_call ? reinterpret_cast<const CallContext *>(fcinfo->context) : nullptr;
}

bool is_own_transaction(FunctionCallInfo fcinfo) {
    const CallContext *call = call_context(fcinfo);
    return !IsTransactionBlock() && !IsSubTransaction() && !TransactionIdIsValid(GetTopTransactionIdIfAny()) &&
           (call != nullptr ? !call->atomic : is_outermost_guc_level());
}

void check_own_transaction(FunctionCallInfo fcinfo) {
    const char *name = get_func_name(fcinfo->flinfo->fn_oid);
    if (RecoveryInProgress())
        ereport(ERROR, (errcode(ERRCODE_READ_ONLY_SQL_TRANSACTION), errmsg("cannot run %s() during recovery", name),
                        errhint("Connect to the registry's primary: target_session_attrs=read-write.")));
    if (!is_own_transaction(fcinfo))
        ereport(ERROR, (errcode(ERRCODE_ACTIVE_SQL_TRANSACTION),
                        errmsg("%s() must be the only statement of a transaction", name),
                        errdetail("Its result counts only once it is committed."),
                        errhint("Run it outside of transaction blocks and of other functions.")));
    if (IsolationUsesXactSnapshot())
        ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                        errmsg("%s() must run at isolation level READ COMMITTED", name),
                        errhint("Run SET default_transaction_isolation = 'read committed'.")));
}

// A commit runs the queries of open cursors to their ends, and empties temporary tables: statements of the caller. They
// run in a transaction of their own, before the registry has locks and an answer whose durability they could change.
void end_work_of_caller(FunctionCallInfo fcinfo) {
    SPI_commit();
    check_own_transaction(fcinfo);
    EnsurePortalSnapshotExists();
}

void set_locally(const char *name, const char *value, GucAction action) {
    (void)set_config_option(name, value, PGC_USERSET, PGC_S_SESSION, action, true, 0, false);
}

// Until the function ends. A member's login may set anything. It must not keep the locks of the registry by a plan that
// reads whole tables, nor by messages that its client does not read.
void set_for_statements(bool is_procedure) {
    const char *const settings[][2] = {{"search_path", "pg_catalog, pg_temp"},
                                       // Plans are made before the tables have grown, and are kept. Each has an index.
                                       {"enable_seqscan", "off"},
                                       {"enable_bitmapscan", "off"},
                                       {"enable_indexscan", "on"},
                                       {"jit", "off"}};
    for (const auto &setting : settings)
        set_locally(setting[0], setting[1], GUC_ACTION_SAVE);
    if (is_procedure)
        set_locally("client_min_messages", "error", GUC_ACTION_SAVE);
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

const char *show(int64_t number) { return psprintf(INT64_FORMAT, number); }
const char *show(const char *name) { return psprintf("\"%s\"", name == nullptr ? "" : name); }

// Null: nothing has changed. A dump holds the row with the OIDs of the database and the table that it was made of.
const char *change_between(const Environment &before, const Environment &now) {
    const struct {
        const char *what;
        const char *before;
        const char *now;
    } parts[] = {{"system identifier", show(before.system_identifier), show(now.system_identifier)},
                 {"timeline", show(before.timeline), show(now.timeline)},
                 {"database's OID", show(before.database), show(now.database)},
                 {"OID of uid_fleet_state", show(before.table), show(now.table)},
                 {"host", show(before.host), show(now.host)},
                 {"data directory", show(before.data_directory), show(now.data_directory)}};
    const int known = before.host == nullptr ? 4 : 6;
    for (int i = 0; i < known; i++)
        if (strcmp(parts[i].before, parts[i].now) != 0)
            return psprintf("the %s has changed from %s to %s", parts[i].what, parts[i].before, parts[i].now);
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
    registry->state.environment = now;
    if (change == nullptr) {
        write_state(registry->state);
        return true;
    }
    const bool still_closed = view.now_us + view.bound_us < registry->state.closed_until_us ||
                              (fault_is(Fault::any_closing) && registry->state.closed_until_us > 0);
    registry->state.closed_until_us = 0;
    if (still_closed) {
        write_state(registry->state);
        ereport(LOG, (errmsg("registry is open again after a handover: %s", change)));
    } else {
        raise_fence(registry, change);
    }
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

// What the rows say of the clocks that their grants were made by.
int64_t latest_end_of_fleet(const core::RegistryView &view) {
    int64_t end_us = 0;
    int32_t pool = no_pool;
    core::Layout layout;
    NodeRecord latest;
    while (read_pool_after(pool, &pool, &layout))
        if (read_latest_node(pool, &latest))
            end_us = Max(end_us, core::latest_end_us(layout, view, latest.row));
    return end_us;
}

} // namespace

void open_registry(Registry *registry, FunctionCallInfo fcinfo) {
    if (!settings::is_preloaded) // a caller could pass settings
        report_not_preloaded();
    const bool is_procedure = call_context(fcinfo) != nullptr;
    *registry = {};
    check_own_transaction(fcinfo);
    registry->caller = CurrentMemoryContext;
    check_spi(SPI_connect_ext(is_procedure ? SPI_OPT_NONATOMIC : 0), "SPI_connect_ext", "");
    if (is_procedure)
        end_work_of_caller(fcinfo);
    registry->schema = schema_of_function(fcinfo->flinfo->fn_oid);
    hold_names(registry->schema);
    registry->state_table = required_table(registry->schema, "uid_fleet_state");
    registry->serial_sequence = required_table(registry->schema, "uid_fleet_serial", RELKIND_SEQUENCE);
    const bool unsafe = fault_is(Fault::unsafe_grant) && !standbys_are_awaited();
    set_locally("synchronous_commit", unsafe ? "off" : "on", GUC_ACTION_LOCAL);
    registry->guc_level = NewGUCNestLevel();
    set_for_statements(is_procedure);
    query_use_schema(registry->schema);
    GetUserIdAndSecContext(&registry->role, &registry->security);
    SetUserIdAndSecContext(owner_of(registry->state_table),
                           registry->security | SECURITY_LOCAL_USERID_CHANGE | SECURITY_RESTRICTED_OPERATION);
}

void close_registry(Registry *registry) {
    SetUserIdAndSecContext(registry->role, registry->security);
    check_spi(SPI_finish(), "SPI_finish", "");
    AtEOXact_GUC(true, registry->guc_level);
}

void commit_registry(Registry *registry) {
    const bool writes = TransactionIdIsValid(GetTopTransactionIdIfAny());
    const core::Durability level = wanted_durability(); // with the setting that ends with the transaction
    SetUserIdAndSecContext(registry->role, registry->security);
    if (!fault_is(Fault::answer_early))
        SPI_commit();
    if (writes && !is_durable(XactLastCommitEnd, level))
        ereport(ERROR, (errcode(ERRCODE_QUERY_CANCELED), errmsg("canceling wait for a synchronous standby"),
                        errdetail("The registry's commit has not reached the standby, so it did not answer."),
                        errhint("Bring the standby back, or remove it from synchronous_standby_names.")));
    check_spi(SPI_finish(), "SPI_finish", "");
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

MemberRefusal refuse_unproven(const Caller &caller) {
    const char *message = "this fleet's registry has not given what the member shows";
    ereport(LOG, (errmsg("%s", message), errdetail("It identifies itself as database \"%s\" on %s:%s.", caller.database,
                                                   caller.host, caller.port)));
    return {"unproven", message, "Run SELECT uid_fleet_move() on this server. Its generators then get new nodes."};
}

bool refuse_member(Registry *registry, const Caller &caller, MemberRefusal *refusal) {
    if (fault_is(Fault::any_fleet) && caller.fleet != 0)
        registry->state.view.fleet = caller.fleet;
    const core::RegistryView &view = registry->state.view;
    const core::Refusal why = core::judge_fleet(view, caller.fleet, caller.term);
    if (is_closed(*registry)) {
        *refusal = {
            "handing_over", "the registry is being handed over to another server",
            "Wait for the switchover. To stay with that server, wait until uid_fleet_state.closed_until and run "
            "SELECT uid_fleet_handover(cancel => true) there.",
            handover_pause_ms};
    } else if (why == core::Refusal::other_fleet) {
        *refusal = {"other_fleet", "the registry belongs to another fleet",
                    "Correct uidgen.registry, or run SELECT uid_fleet_move() on this server to move it to that fleet."};
    } else if (!is_sealed(registry->state, caller.term, caller.serial, caller.seal)) {
        *refusal = refuse_unproven(caller);
    } else if (why == core::Refusal::stale_registry) {
        // The refusal of this asker must last for all others, so it is committed before it is answered.
        if (caller.term > view.term_shown) {
            if (!registry->exclusive)
                return false;
            registry->state.view.term_shown = caller.term;
            write_state(registry->state);
        }
        *refusal = {"stale_registry", "the registry has lost its latest term, or another server is the registry now",
                    "Check that no other server is the registry, and run SELECT uid_fleet_fence() on this one."};
    }
    return true;
}

void renew_serial(Registry *registry) {
    core::RegistryView &view = registry->state.view;
    view.own_serial = nextval_internal(registry->serial_sequence, false);
    view.serial = view.own_serial - 1;
}

void raise_fence(Registry *registry, const char *reason) {
    core::RegistryView &view = registry->state.view;
    Assert(registry->exclusive);
    view = core::fenced(view, latest_end_of_fleet(view));
    if (fault_is(Fault::no_wait))
        view.fence_base_us = 0;
    write_state(registry->state);
    ereport(LOG,
            (errmsg("registry accepts no newcomers for %.0f s: %s",
                    static_cast<double>(core::fence_end_us(view) - view.now_us) / 1e6, reason),
             errdetail("Grants may have been lost. Members that renew theirs in time keep their nodes."),
             errhint("If nodes are reserved for generators outside, make sure that uid_fleet lists all of them. A lost "
                     "reservation must be replaced by another node.")));
}

} // namespace uidgen::pg
