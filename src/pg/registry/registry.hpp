// A transaction of a fleet's registry: what every function that grants, fences or revokes begins and ends with.
//
// Contract
//   1. The transaction is the function's own: no transaction block, no subtransaction, nothing written before. What
//      members call is a procedure. It commits when it begins, so that no statement of the caller's runs while it has
//      locks, and before it answers. That commit is flushed, and a synchronous standby has it. What an administrator
//      calls is a function, whose commit follows at once.
//   2. The registry's lock is taken before the clock and the rows are read. Calls share it, and lock the rows that they
//      write. What changes the fleet as a whole takes it exclusively: a fence, a handover, a new pool. A fence sees
//      every grant that was answered. The lock is one on uid_fleet_state, in modes that do not conflict with reading.
//   3. Before the exclusive lock is asked for, the shared one is released, and nothing has been written. So two calls
//      never wait for each other.
#pragma once

#include "seal.hpp"

namespace uidgen::pg {

struct Registry {
    Oid schema;
    Oid state_table;
    Oid serial_sequence;
    Oid role; // the caller's
    int security;
    bool exclusive;
    FleetState state; // with the clock and the serials
    int guc_level;
    MemoryContext caller;
};

// A closed registry grants nothing. The server that takes over knows of the closing, and so of every grant, and needs
// no fence. That is only so as long as the former server cannot be open again, so the closing has an end:
//   - the one that takes over counts on it while its clock + the bound is below closed_until
//   - the former one may be opened again when its clock has passed closed_until by twice the bound
inline bool is_closed(const Registry &registry) { return registry.state.closed_until_us != 0; }

// An error if the transaction is not the function's own. From here on it has the rights of the tables' owner.
void open_registry(Registry *registry, FunctionCallInfo fcinfo);

// Either of them ends it. What comes out of it must be in registry->caller's memory by then.
//   close   of a function
//   commit  of a procedure: commits. Error if the wait for a synchronous standby was cancelled: then the commit may be
//           lost, so nothing may be answered.
void close_registry(Registry *registry);
void commit_registry(Registry *registry);

// Runs `work` under the shared lock. If it returns false, because it needs the exclusive lock, it has written nothing,
// and runs again under that. If the server has changed, a fence is raised first, unless it knows that the former one is
// closed.
using RegistryWork = bool (*)(Registry *registry, void *arg);
void run_in_registry(Registry *registry, RegistryWork work, void *arg, bool exclusive = false);

// What a member's server has seen of a fleet: the stamp of its latest answer. And which server it says it is.
struct Caller {
    uint64_t fleet; // 0: none yet
    int64_t term;
    int64_t serial;
    int64_t seal;
    const char *host;
    const char *port;
    const char *database;
};

// Why a member gets nothing.
constexpr int64_t never = -1;
struct MemberRefusal {
    const char *name; // null: it gets what it asks for
    const char *message;
    const char *hint;
    int64_t retry_after_ms = never; // it does not pass by itself
};

// Whether the registry answers members, and one that has seen that. False: needs the exclusive lock.
bool refuse_member(Registry *registry, const Caller &caller, MemberRefusal *refusal);

// Of a member that shows what this fleet's registry has not given. The log says it, too.
MemberRefusal refuse_unproven(const Caller &caller);

// Another session has written the row that this call has judged. The judgement is made again, for an answer that comes
// after that session's, so it must have a later serial.
void renew_serial(Registry *registry);

// Under the exclusive lock. The reason is for the log.
void raise_fence(Registry *registry, const char *reason);

} // namespace uidgen::pg
