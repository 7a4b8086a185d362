// The library's start: settings; when the server is starting, shared memory; and the events that it receives:
// invalidations of relations, ends of transactions, drops, and DISCARD.

#include "fleet/grant_file.hpp"
#include "node/worker_node.hpp"
#include "session/define.hpp"
#include "session/session.hpp"

namespace uidgen::pg {
namespace {

shmem_request_hook_type next_shmem_request_hook = nullptr;
shmem_startup_hook_type next_shmem_startup_hook = nullptr;

// Hook of the postmaster: reserves the main shared memory of the server's state.
void request_memory() {
    if (next_shmem_request_hook != nullptr)
        next_shmem_request_hook();
    server_state_request_memory();
}

// Hook of the server's start: makes that memory (server_state_preload()). The postmaster, or single-user mode, also
// discards a file of grants that does not count (grant_file_discard_invalid()).
void attach_memory() {
    if (next_shmem_startup_hook != nullptr)
        next_shmem_startup_hook();
    server_state_preload();
    if (!IsUnderPostmaster)
        grant_file_discard_invalid();
}

// Callback of an invalidation; InvalidOid: of any relation. Voids what this session's memory has of names, definitions
// and entries.
void relation_changed(Datum, Oid relation) {
    note_change(relation);
    session_relation_changed(relation);
}

// Voids the session's names and definitions: a name that was looked up may mean another sequence.
void schema_changed(Datum, SysCacheIdentifier, uint32) { forget_all_names(); }

// Voids the session's entries, on all changes that PostgreSQL's own memory of memberships depends on.
void roles_changed(Datum, SysCacheIdentifier, uint32) { session_roles_changed(); }

// Before the transaction's locks are released: voids the checks of this session's entries, and notes in slots which
// rows of worker_node are owed; by atomics; wakes the node writer (node_writer_transaction_ended()). After a rollback,
// a PREPARE, or in a parallel worker, as session_rolls_back() does, marks slots stale of sequences that the transaction
// has created, each under its lock and the state's.
void transaction_event(XactEvent event, void *) {
    if (event == XACT_EVENT_PRE_COMMIT || event == XACT_EVENT_PRE_PREPARE || event == XACT_EVENT_PARALLEL_PRE_COMMIT)
        return;
    if (event != XACT_EVENT_COMMIT) // what is prepared may be rolled back by any session, and a worker's by the leader
        session_rolls_back(TopSubTransactionId);
    node_writer_transaction_ended();
    session_transaction_ended();
}

// At the rollback of a savepoint: voids the checks of this session's entries, and marks slots stale of sequences that
// it has created, each under its lock and the state's (session_rolls_back()).
void subtransaction_event(SubXactEvent event, SubTransactionId mine, SubTransactionId, void *) {
    if (event == SUBXACT_EVENT_ABORT_SUB)
        session_rolls_back(mine);
}

ProcessUtility_hook_type next_process_utility = nullptr;

// Whether it is DISCARD ALL or DISCARD SEQUENCES.
bool ends_last_values(Node *statement) {
    if (!IsA(statement, DiscardStmt))
        return false;
    const DiscardMode target = castNode(DiscardStmt, statement)->target;
    return target == DISCARD_ALL || target == DISCARD_SEQUENCES;
}

// Hook of utility statements. DISCARD ALL and DISCARD SEQUENCES reset uid_last() and segment_last() as they reset
// currval() and lastval(). Behind a pooler the next client of the session must not read the values of another client.
// No other hook sees a DISCARD.
void process_utility(PlannedStmt *planned, const char *query, bool read_only_tree, ProcessUtilityContext context,
                     ParamListInfo params, QueryEnvironment *environment, DestReceiver *receiver,
                     QueryCompletion *completion) {
    const bool ends = ends_last_values(planned->utilityStmt); // the tree may be freed afterwards
    const auto next = next_process_utility != nullptr ? next_process_utility : standard_ProcessUtility;
    next(planned, query, read_only_tree, context, params, environment, receiver, completion);
    if (unlikely(ends) && !fault_is("keep_last"))
        forget_last_values();
}

object_access_hook_type next_object_access = nullptr;

// Hook: PostgreSQL drops whatever it drops by one function, which comes here before each object, under the lock of
// DROP. forget_dropped() then ends what the extension has of a relation.
void object_access(ObjectAccessType access, Oid catalog, Oid object, int column, void *argument) {
    if (next_object_access != nullptr)
        next_object_access(access, catalog, object, column, argument);
    if (access == OAT_DROP && catalog == RelationRelationId && column == 0 && !fault_is("forget_drops"))
        forget_dropped(object);
}

// Registers the callbacks and hooks of this process. PostgreSQL has few places for callbacks, and none can be given
// back. So the library has one of each kind, and its parts receive an event in a fixed order.
void receive_events() {
    static bool received = false; // by a load that failed afterwards
    if (received)
        return;
    received = true;
    CacheRegisterRelcacheCallback(relation_changed, 0);
    CacheRegisterSyscacheCallback(NAMESPACEOID, schema_changed, 0);
    CacheRegisterSyscacheCallback(AUTHOID, roles_changed, 0);
    CacheRegisterSyscacheCallback(AUTHMEMROLEMEM, roles_changed, 0);
    CacheRegisterSyscacheCallback(DATABASEOID, roles_changed, 0);
    RegisterXactCallback(transaction_event, nullptr);
    RegisterSubXactCallback(subtransaction_event, nullptr);
    next_process_utility = ProcessUtility_hook;
    ProcessUtility_hook = process_utility;
    next_object_access = object_access_hook;
    object_access_hook = object_access;
    register_label_provider(label_provider, accept_label);
}

// By the server's version alone. An older one may have another meaning for its memory, such as that of standbys.
void warn_of_older_server() {
    const char *is = GetConfigOption("server_version", false, false);
    if (atoi(GetConfigOption("server_version_num", false, false)) < UIDGEN_MINOR_RELEASE)
        ereport(WARNING, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                          errmsg("uidgen was built for a later minor release than that of this server, %s", is),
                          errdetail("Draws may not wait for a synchronous standby."),
                          errhint("Update the server, or build uidgen for its release (docs/install.md).")));
}

} // namespace
} // namespace uidgen::pg

using namespace uidgen::pg;

extern "C" {

UIDGEN_MODULE_MAGIC;

PGDLLEXPORT void _PG_init(void);

// Sets this process's hooks and settings; the hooks make shared memory later. A library that is loaded later must not
// fail once it has defined a setting, because the next attempt would fail to define it again. So settings come last,
// and no WARNING about one lets a cancel through, or an error of a parallel worker.
void _PG_init(void) {
    receive_events();
    area_restore_by(grant_file_restore);
    if (process_shared_preload_libraries_in_progress) {
        next_shmem_request_hook = shmem_request_hook;
        shmem_request_hook = request_memory;
        next_shmem_startup_hook = shmem_startup_hook;
        shmem_startup_hook = attach_memory;
    }
    HOLD_INTERRUPTS();
    settings::define(close_all_windows, [](bool in_fleet) {
        set_in_fleet(in_fleet);
        close_all_windows();
    });
    warn_of_older_server();
    RESUME_INTERRUPTS();
}
}
