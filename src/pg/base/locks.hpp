// What clang's thread safety analysis needs to know of the locks of src/pg. The contract is in memory/server_state.hpp.
// test/rules runs the analysis. All other compilations see nothing of it.
//
// A process holds at most one lock of each kind, so all locks of a kind are one to the analysis. It does not notice if
// a function reads a slot under the lock of another slot. It looks at one function at a time. So each declaration says
// which locks the function requires and forbids; src/README.md, Who may touch what, says how to read it.
#pragma once

#include "postgres.hpp"

#ifdef UIDGEN_CHECK_LOCKS
#define UIDGEN_LOCKS(attribute) __attribute__((attribute))
#else
#define UIDGEN_LOCKS(attribute)
#endif

#define GUARDED_BY(lock) UIDGEN_LOCKS(guarded_by(lock))
#define REQUIRES(...) UIDGEN_LOCKS(requires_capability(__VA_ARGS__))
#define REQUIRES_SHARED(...) UIDGEN_LOCKS(requires_shared_capability(__VA_ARGS__))
#define ACQUIRE(...) UIDGEN_LOCKS(acquire_capability(__VA_ARGS__))
#define ACQUIRE_SHARED(...) UIDGEN_LOCKS(acquire_shared_capability(__VA_ARGS__))
#define RELEASE(...) UIDGEN_LOCKS(release_generic_capability(__VA_ARGS__))
#define EXCLUDES(...) UIDGEN_LOCKS(locks_excluded(__VA_ARGS__))
#define UNCHECKED UIDGEN_LOCKS(no_thread_safety_analysis) // the function's body

#ifdef UIDGEN_CHECK_LOCKS
namespace uidgen::pg {
struct UIDGEN_LOCKS(capability("lock")) LockKind {};
extern LockKind page_lock, grant_file_lock, table_lock, slot_lock, state_lock;
} // namespace uidgen::pg

// No error and no allocation under a page, and no wait under any of these locks. Heavyweight locks come first.
extern "C" {
bool errstart(int, const char *) EXCLUDES(uidgen::pg::page_lock);
bool errstart_cold(int, const char *) EXCLUDES(uidgen::pg::page_lock);
void *palloc(Size) EXCLUDES(uidgen::pg::page_lock);
char *psprintf(const char *, ...) EXCLUDES(uidgen::pg::page_lock);
#define EXCLUDES_ALL                                                                                                   \
    EXCLUDES(uidgen::pg::page_lock, uidgen::pg::table_lock, uidgen::pg::slot_lock, uidgen::pg::state_lock)
void LockRelationOid(Oid, LOCKMODE) EXCLUDES_ALL;
bool ConditionalLockRelationOid(Oid, LOCKMODE) EXCLUDES_ALL;
void LockDatabaseObject(Oid, Oid, uint16, LOCKMODE) EXCLUDES_ALL;
Relation relation_open(Oid, LOCKMODE) EXCLUDES_ALL;
void XLogFlush(XLogRecPtr) EXCLUDES_ALL;
int WaitLatch(Latch *, int, long, uint32) EXCLUDES_ALL;
}
#endif
