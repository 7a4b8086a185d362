#include "registry.hpp"

#include "config/rows.hpp"
#include "memory/memberships.hpp"
#include "sequence/sequence.hpp"

namespace uidgen::pg {
namespace {

// A member waits five seconds for an answer. It should learn what the registry waits for.
constexpr int64_t longest_wait_us = 3 * us_per_second;

// ---------------------------------------------------------------------------------------------------------
// The transaction.
// ---------------------------------------------------------------------------------------------------------

// A commit runs the queries of open cursors to their ends, and empties temporary tables: statements of the caller. They
// run in a transaction of their own, before the registry has its lock and an answer whose durability they could change.
// The defaults of the caller's transactions do not count.
void begin_own_transaction(const CallContext *call) {
    if (call->atomic || IsSubTransaction())
        ereport(ERROR, (errcode(ERRCODE_ACTIVE_SQL_TRANSACTION),
                        errmsg("uid_fleet_call() must be the only statement of a transaction"),
                        errdetail("Its result counts only once it is committed."),
                        errhint("Run it outside of transaction blocks and of functions.")));
    SPI_commit();
    XactIsoLevel = XACT_READ_COMMITTED;
    XactReadOnly = false;
    EnsurePortalSnapshotExists();
}

void set_locally(const char *name, const char *value, GucAction action) {
    (void)set_config_option(name, value, PGC_SUSET, PGC_S_SESSION, action, true, 0, false);
}

// Until the function ends. A member's login may set anything. It must not keep the registry's lock by a plan that reads
// whole tables, nor by messages that its client does not read. Of a thousand sessions that wait for the lock, each
// would look at all others for a deadlock. There is none: the lock is the first one. A member connects again after five
// seconds without an answer. By then a call that waits for one lock or for the standby has failed. One that has
// waited for its turn to plan before may still get the lock, and grant: an incarnation that asks again gets the answer.
void set_for_statements(bool is_procedure) {
    const char *const settings[][2] = {{"search_path", "pg_catalog, pg_temp"},
                                       // Plans are made before the tables have grown, and are kept. Each has an index,
                                       // which no costs of the caller make dearer than a scan that is off.
                                       {"enable_seqscan", "off"},
                                       {"enable_bitmapscan", "off"},
                                       {"enable_indexscan", "on"},
                                       {"random_page_cost", "4"},
                                       {"cpu_tuple_cost", "0.01"},
                                       {"cpu_index_tuple_cost", "0.005"},
                                       {"cpu_operator_cost", "0.0025"},
                                       {"jit", "off"},
                                       {"deadlock_timeout", "60s"}};
    for (const auto &setting : settings)
        set_locally(setting[0], setting[1], GUC_ACTION_SAVE);
    if (!is_procedure)
        return;
    set_locally("client_min_messages", "error", GUC_ACTION_SAVE);
    set_locally("lock_timeout", "4s", GUC_ACTION_SAVE);
}

void wait_until_durable(uint64_t lsn, core::Durability level) {
    const int64_t began_us = monotonic_us();
    XLogFlush(lsn);
    while (!is_durable(lsn, level)) {
        const int64_t waited_us = monotonic_us() - began_us;
        if (waited_us >= longest_wait_us)
            report_not_durable();
        sleep_for(Max(waited_us / 8, us_per_ms), WAIT_EVENT_SYNC_REP);
    }
}

// ---------------------------------------------------------------------------------------------------------
// The environment.
// ---------------------------------------------------------------------------------------------------------

// What differs; null: nothing. A dump holds the row with the OIDs of the database and the table that it was made of. A
// copy that was put in the directory's place differs in its birth.
const char *change_of(const Environment &before, const Environment &now) {
    const char *const parts[][3] = {
        {"database", before.database, now.database},
        {"timeline", psprintf("%d", before.timeline), psprintf("%d", now.timeline)},
        {"directory", before.directory, now.directory},
    };
    for (const auto &part : parts)
        if (strcmp(part[1], part[2]) != 0)
            return psprintf("%s has changed from %s to %s", part[0], part[1], part[2]);
    return nullptr;
}

// PG_VERSION is written once in the life of a data directory.
Environment present_environment(const Registry &registry) {
    char host[256];
    char directory[MAXPGPATH] = "";
    uint64 birth = 0;
    (void)read_host_name(host, sizeof(host));
    (void)read_data_directory(directory, sizeof(directory));
    (void)birth_of("PG_VERSION", &birth);
    return {static_cast<int32_t>(GetWALInsertionTimeLine()),
            psprintf(UINT64_FORMAT "/%u/%u", GetSystemIdentifier(), MyDatabaseId, registry.state_table),
            psprintf("%s:%s:" UINT64_FORMAT, host, directory, birth)};
}

} // namespace

int64_t server_start_us() { return to_unix_us(PgStartTime); }

int64_t server_up_us() { return monotonic_us() - settings::preloaded_us; }

[[noreturn]] void report_not_durable() {
    ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                    errmsg("the registry waits for its synchronous standby"),
                    errdetail("The registry answers when its commit has reached the standby: "
                              "synchronous_standby_names is \"%s\".",
                              SyncRepStandbyNames != nullptr ? SyncRepStandbyNames : ""),
                    errhint("Bring the standby back, or remove it from synchronous_standby_names on the registry.")));
}

Registry open_registry(FunctionCallInfo fcinfo) {
    if (!settings::is_preloaded) // a caller could pass settings
        report_not_preloaded();
    PreventCommandDuringRecovery(psprintf("%s()", get_func_name(fcinfo->flinfo->fn_oid)));
    const bool is_procedure = fcinfo->context != nullptr && IsA(fcinfo->context, CallContext);
    Registry r = {};
    check_spi(SPI_connect_ext(is_procedure ? SPI_OPT_NONATOMIC : 0), "SPI_connect_ext", "");
    for (bool is_planned = !is_procedure;; is_planned = true) {
        if (is_procedure)
            begin_own_transaction(reinterpret_cast<const CallContext *>(fcinfo->context));
        if (IsolationUsesXactSnapshot()) // the rows that are read would be older than the lock
            ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                            errmsg("functions of the registry must run at isolation level READ COMMITTED"),
                            errhint("Run SET default_transaction_isolation = 'read committed'.")));
        set_locally("synchronous_commit", "on", GUC_ACTION_LOCAL);
        if (is_procedure)
            set_locally("idle_session_timeout", "0", GUC_ACTION_SET); // a member keeps its connection between calls
        r.guc_level = NewGUCNestLevel();
        set_for_statements(is_procedure);
        const Oid schema = hold_names();
        is_planned = use_tables(schema) || is_planned;
        r.state_table = required_table(schema, "uid_fleet_state");
        GetUserIdAndSecContext(&r.role, &r.security);
        SetUserIdAndSecContext(owner_of(r.state_table),
                               r.security | SECURITY_LOCAL_USERID_CHANGE | SECURITY_RESTRICTED_OPERATION);
        if (is_planned)
            return r;
        // In a transaction of its own, because the registry's lock is the first one. A few at a time: if a thousand
        // sessions planned at once, none would be done before its member gives up.
        LockDatabaseObject(RelationRelationId, r.state_table, 1 + MyProcPid % 4, ExclusiveLock);
        plan_statements();
        SetUserIdAndSecContext(r.role, r.security);
        set_locally("synchronous_commit", "off", GUC_ACTION_LOCAL); // hold_names() may have locked rows
    }
}

bool lock_and_read_state(Registry *registry) {
    LockRelationOid(registry->state_table, ExclusiveLock);
    if (get_rel_name(registry->state_table) == nullptr)
        report_dropped();
    const int64_t now_us = wall_clock_us();
    const bool exists = read_state(&registry->state);
    registry->state.view.now_us = now_us;
    registry->state.view.up_us = server_up_us();
    if (exists)
        registry->state.view.own_serial = draw_serial();
    return exists;
}

// A server on a later timeline was promoted. A closed server is not handed over to itself: only its place has changed.
void settle_environment(Registry *registry) {
    FleetState &state = registry->state;
    const Environment now = present_environment(*registry);
    const bool moved = strcmp(now.database, state.environment.database) != 0;
    const bool promoted = now.timeline > state.environment.timeline && !moved;
    const char *change = change_of(state.environment, now);
    if (change == nullptr || fault_is("no_fence"))
        return;
    if (fault_is("any_closing") && core::is_closed(registry->state.view))
        state.view.closed_until_us = PG_INT64_MAX;
    if (promoted || (moved && core::is_handed_over(state.view)))
        draw_term(registry, core::commits_of_former(state.view, state.synchronous), change);
    else
        registry->unclaimed = change;
}

core::Refusal reason_for_newcomers(FleetState state) {
    state.view.now_us = wall_clock_us();
    state.view.up_us = server_up_us();
    if (state.view.started_us != server_start_us())
        state.view = core::started(state.view, server_start_us(), 0, state.synchronous);
    state.view = core::with_wait(state.view);
    if (state.refuses != core::Refusal::none)
        return state.refuses;
    if (state.synchronous && !standbys_are_awaited())
        return core::Refusal::no_standby;
    const core::Refusal why = core::judge_admission(state.view);
    return why == core::Refusal::none && core::fence_end_us(state.view) > state.view.now_us ? core::Refusal::fenced
                                                                                            : why;
}

void lock_registry(Registry *registry) {
    if (!lock_and_read_state(registry))
        ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                        errmsg("database \"%s\" is not the registry of a fleet", get_database_name(MyDatabaseId)),
                        errhint("To make it one, run SELECT uid_fleet_admit('role', 'new').")));
}

void enter_registry(Registry *registry) {
    FleetState &state = registry->state;
    const int64_t bound_us = settings::registry_clock_bound_ms * us_per_ms;
    if (is_in_fleet())
        open_area(); // which reads the file of grants
    lock_registry(registry);
    settle_environment(registry);
    // The servers that follow must assume the same bound, or a greater one, so a greater setting is stored. It counts
    // from the next call on, because nothing may be granted under it before it is committed.
    if (bound_us > state.view.bound_us)
        put_clock_bound(bound_us);
    core::RegistryView &view = state.view;
    const bool is_new_start = view.started_us != server_start_us() && !core::is_closed(view); // it grants nothing
    if (is_new_start)
        view = core::started(view, server_start_us(), read_latest_grants(view).last_us, state.synchronous);
    const bool ends_wait = view.granted_at_start_us != 0 && (fault_is("start_open") || !core::is_in_wait(view));
    if (ends_wait)
        view.granted_at_start_us = 0; // which a server that takes over must know
    if (is_new_start || ends_wait)
        write_state(state);
    view = core::with_wait(view);
    const uint64_t fleet = is_in_fleet() ? fleet_seen().fleet : 0;
    state.view.is_elsewhere = fleet != 0 && fleet != state.view.fleet;
}

void close_registry(const Registry &registry) {
    SetUserIdAndSecContext(registry.role, registry.security);
    check_spi(SPI_finish(), "SPI_finish", "");
    AtEOXact_GUC(true, registry.guc_level);
}

void commit_registry(const Registry &registry) {
    const core::Durability level = wanted_durability(); // by the setting that ends with the transaction
    const bool needs_standby = registry.state.synchronous && standbys_are_awaited();
    (void)GetTopTransactionId();
    SetUserIdAndSecContext(registry.role, registry.security);
    set_locally("synchronous_commit", "off", GUC_ACTION_LOCAL);
    if (!fault_is("answer_early"))
        SPI_commit();
    if (!fault_is("unsafe_grant") && !fault_is("answer_early"))
        wait_until_durable(XactLastCommitEnd, level);
    if (needs_standby && !standbys_are_awaited())
        report_not_durable(); // the setting was changed while this call waited
    check_spi(SPI_finish(), "SPI_finish", "");
}

void draw_term(Registry *registry, Commits of_former, const char *reason) {
    FleetState &state = registry->state;
    core::RegistryView &view = state.view;
    const core::RandomParts drawn = {random_number(), 1 + random_number() % core::longest_step};
    view = core::succeeded(view, drawn, of_former, read_latest_grants(view));
    drop_claims(nullptr);
    if (fault_is("clock_term"))
        view.term.number = view.now_us;
    if (fault_is("no_wait"))
        view.fence_base_us = 0;
    view.started_us = server_start_us();
    state.refuses = core::Refusal::none;
    state.environment = present_environment(*registry);
    registry->unclaimed = nullptr;
    write_state(state);
    if (of_former == Commits::may_be_lost)
        ereport(
            LOG,
            (errmsg("registry accepts no newcomers for %.0f s: %s", seconds(core::fence_end_us(view) - view.now_us),
                    reason),
             errdetail(
                 "Grants may have been lost. Members that renew theirs in time keep their nodes. The term is %lld.",
                 static_cast<long long>(view.term.number)),
             errhint("If members are attached to segments, run segment_set() with a value above all that they had. If "
                     "nodes are reserved for generators outside, replace each that uid_fleet does not list.")));
    else
        ereport(LOG,
                (errmsg("registry continues in term " INT64_FORMAT " without a fence: %s", view.term.number, reason)));
}

} // namespace uidgen::pg
