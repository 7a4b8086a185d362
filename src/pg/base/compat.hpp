// What differs between the supported majors of PostgreSQL, and nothing else.
#pragma once

#include "postgres.hpp"

#if PG_VERSION_NUM < 150000
#error "uidgen needs PostgreSQL 15 or later"
#endif

#if SIZEOF_VOID_P != 8
#error "uidgen needs a 64-bit platform"
#endif

// With the version, where pg_get_loaded_modules() shows it.
#ifdef PG_MODULE_MAGIC_EXT
#define UIDGEN_MODULE_MAGIC PG_MODULE_MAGIC_EXT(.name = "uidgen", .version = UIDGEN_VERSION)
#else
#define UIDGEN_MODULE_MAGIC PG_MODULE_MAGIC
#endif

// The release that this is built with. A test build may be for another one.
#ifndef UIDGEN_MINOR_RELEASE
#define UIDGEN_MINOR_RELEASE PG_VERSION_NUM
#endif

// The head of an entry point of SQL. PostgreSQL 15's own macro would leave the function hidden in the library.
#define UIDGEN_SQL_FUNCTION(name)                                                                                      \
    extern "C" {                                                                                                       \
    PGDLLEXPORT Datum name(PG_FUNCTION_ARGS);                                                                          \
    PG_FUNCTION_INFO_V1(name);                                                                                         \
    }                                                                                                                  \
    Datum name(PG_FUNCTION_ARGS)

namespace uidgen::pg {

// The relcache notes a new file in two fields. The `first` one survives ROLLBACK TO a savepoint.
#if PG_VERSION_NUM >= 160000
using RelationFile = RelFileNumber;
using RelationPlace = RelFileLocator;
// The file of an open relation, by the relcache.
inline RelationPlace relation_place(Relation rel) { return rel->rd_locator; }
inline RelationFile file_of(const RelationPlace &place) { return place.relNumber; }
// Whether this transaction gave the open relation a new file, by the relcache.
inline bool rewritten_in_this_transaction(Relation rel) {
    return rel->rd_firstRelfilelocatorSubid != InvalidSubTransactionId;
}
#else
using RelationFile = Oid;
using RelationPlace = RelFileNode;
// The file of an open relation, by the relcache.
inline RelationPlace relation_place(Relation rel) { return rel->rd_node; }
inline RelationFile file_of(const RelationPlace &place) { return place.relNode; }
// Whether this transaction gave the open relation a new file, by the relcache.
inline bool rewritten_in_this_transaction(Relation rel) {
    return rel->rd_firstRelfilenodeSubid != InvalidSubTransactionId;
}
#endif
inline RelationFile file_of(Relation rel) { return file_of(relation_place(rel)); }

#if PG_VERSION_NUM >= 170000
using SearchPath = SearchPathMatcher;
// A copy of the session's search_path; and whether the session's is that one now.
inline SearchPath *copy_search_path(MemoryContext context) { return GetSearchPathMatcher(context); }
inline bool search_path_is(SearchPath *path) { return SearchPathMatchesCurrentEnvironment(path); }
inline WaitEventSet *new_wait_event_set(int events) { return CreateWaitEventSet(CurrentResourceOwner, events); }
// A wait event of that name, as PostgreSQL 17 and later show it. Before that it is Extension.
inline uint32 wait_event(const char *name) { return WaitEventExtensionNew(name); }
#else
using SearchPath = OverrideSearchPath;
// A copy of the session's search_path; and whether the session's is that one now.
inline SearchPath *copy_search_path(MemoryContext context) { return GetOverrideSearchPath(context); }
inline bool search_path_is(SearchPath *path) { return OverrideSearchPathMatchesCurrent(path); }
inline WaitEventSet *new_wait_event_set(int events) { return CreateWaitEventSet(CurrentMemoryContext, events); }
inline uint32 wait_event(const char *) { return PG_WAIT_EXTENSION; }
#endif

// Whether synchronous_standby_names makes commits wait, as SyncRepWaitForLSN decides it. Until the checkpointer has
// read the setting once, the session's own value counts.
#ifdef SYNC_STANDBY_DEFINED
// The server's word for that in shared memory, read without a lock.
inline uint32 standby_status() { return const_cast<volatile WalSndCtlData *>(WalSndCtl)->sync_standbys_status; }
inline bool surely_no_standby_is_awaited() { return standby_status() == SYNC_STANDBY_INIT; }
inline bool standbys_are_awaited(uint32 status) {
    return max_wal_senders > 0 &&
           ((status & SYNC_STANDBY_INIT) != 0 ? (status & SYNC_STANDBY_DEFINED) != 0
                                              : SyncRepStandbyNames != nullptr && SyncRepStandbyNames[0] != '\0');
}
#else
// The server's word for that in shared memory, read without a lock.
inline uint32 standby_status() { return const_cast<volatile WalSndCtlData *>(WalSndCtl)->sync_standbys_defined; }
inline bool surely_no_standby_is_awaited() { return standby_status() == 0; }
inline bool standbys_are_awaited(uint32 status) { return max_wal_senders > 0 && status != 0; }
#endif
inline bool standbys_are_awaited() { return standbys_are_awaited(standby_status()); }

// Whether this process holds a heavyweight lock of that mode, or of a stronger one.
inline bool holds_lock(const LOCKTAG &tag, LOCKMODE least) {
#if PG_VERSION_NUM >= 170000
    return LockHeldByMe(&tag, least, true);
#else
    bool holds = false;
    for (LOCKMODE mode = least; mode <= AccessExclusiveLock; mode++)
        holds = holds || LockHeldByMe(&tag, mode);
    return holds;
#endif
}

using SyncState = uint32;
// What synchronous replication requires of this session's commits, as one number to compare. Reads shared memory
// without a lock.
inline SyncState sync_state() { return standby_status() << 8 | static_cast<uint32>(synchronous_commit); }
inline uint32 status_of(SyncState state) { return state >> 8; }
inline int commit_of(SyncState state) { return static_cast<int>(state & 0xff); }

// PostgreSQL 17 lets the user of a shared hash table say how keys are copied.
#if PG_VERSION_NUM >= 170000
inline void set_copy_function(dshash_parameters *parameters) { parameters->copy_function = dshash_memcpy; }
#else
inline void set_copy_function(dshash_parameters *) {}
#endif

// PostgreSQL 17 has shared memory that the first process which needs it makes under a name. Before that there is none
// without the preload: null.
#if PG_VERSION_NUM >= 190000
inline void *named_memory(const char *name, size_t bytes, void (*initialize)(void *memory)) {
    bool found = false;
    const auto call = [](void *memory, void *arg) { reinterpret_cast<void (*)(void *)>(arg)(memory); };
    return GetNamedDSMSegment(name, bytes, call, &found, reinterpret_cast<void *>(initialize));
}
#elif PG_VERSION_NUM >= 170000
inline void *named_memory(const char *name, size_t bytes, void (*initialize)(void *memory)) {
    bool found = false;
    return GetNamedDSMSegment(name, bytes, initialize, &found);
}
#else
inline void *named_memory(const char *, size_t, void (*)(void *)) { return nullptr; }
#endif

// Whether the value of a parameter that is not defined yet may hide an administrator's, or be lost. SET hides none, as
// RESET brings it back. But a parallel query loses values when it loads a library, and its workers have the leader's.
// The name stays when the line is taken out of postgresql.conf.
#if PG_VERSION_NUM >= 170000
inline bool parameter_may_hide_another(const char *name) {
    const config_generic *parameter = find_option(name, false, true, ERROR);
    const bool in_query = IsParallelWorker() || IsInParallelMode();
    return parameter != nullptr && (in_query ? parameter->source : parameter->reset_source) != PGC_S_DEFAULT;
}
#else
inline bool parameter_may_hide_another(const char *name) { return GetConfigOption(name, true, false) != nullptr; }
#endif

// PostgreSQL 19 replaced some ints by types of their own, and keeps the names of locks in shared memory.
#if PG_VERSION_NUM >= 190000
inline pqsigfunc no_signal_handler() { return PG_SIG_IGN; }
// A new id for a tranche of LWLocks, from the server's shared memory; and its name in this process.
inline int new_tranche(const char *name) { return LWLockNewTrancheId(name); }
inline void name_tranche(int, const char *) {}
#else
using BufferLockMode = int;
using SysCacheIdentifier = int;
inline pqsigfunc no_signal_handler() { return SIG_IGN; }
// A new id for a tranche of LWLocks, from the server's shared memory; and its name in this process.
inline int new_tranche(const char *) { return LWLockNewTrancheId(); }
inline void name_tranche(int tranche, const char *name) { LWLockRegisterTranche(tranche, name); }
#endif

} // namespace uidgen::pg
