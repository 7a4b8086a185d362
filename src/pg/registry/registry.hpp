// A transaction of a fleet's registry: what every function that grants, fences or revokes begins and ends with.
//
// Contract
//   1. What members call is a procedure. Its transaction is its own: it commits when it begins, so that no statement of
//      the caller's runs while it has the lock, and before it answers. What an administrator calls is a function, whose
//      result counts once its transaction has committed. Until then members wait.
//   2. The registry's lock is taken before the clock and the rows are read. There is one at a time. It is a lock on
//      uid_fleet_state in a mode that does not conflict with reading.
//   3. A procedure commits asynchronously, so that it keeps the lock for the time of its statements only. Then it waits
//      until the commit is flushed, and a synchronous standby has it, and answers. A later call may rest on a commit
//      that is not durable yet. Its own commit follows in the log, so it is answered only when both are durable; and a
//      crash that loses the first one loses both. So every call commits something, even one that is refused.
#pragma once

#include "fleet_tables.hpp"

namespace uidgen::pg {

struct Registry {
    Oid state_table;
    Oid role; // the caller's
    int security;
    FleetState state;      // with the clock, the serials and what is awaited
    const char *unclaimed; // how this server differs from the one that was the registry; null: it does not
    int guc_level;
};

// Begins it, before the lock: a procedure's caller loses its transaction, and its usual statements are planned. From
// here on the session has the rights of the tables' owner, and settings of its own, until the registry is closed or
// committed.
Registry open_registry(FunctionCallInfo fcinfo);

// Takes the lock, which the transaction holds to its end; then reads the clock and the state, and draws the serial of
// the first answer. False: there is no fleet in this database, and the state has only the clock.
bool lock_and_read_state(Registry *registry);

// The same. Error if there is no fleet.
void lock_registry(Registry *registry);

// The same. It also settles the environment, and writes a server start, the end of its wait, and a greater clock bound.
void enter_registry(Registry *registry);

// Either of them ends it, and the memory of all that was read.
//   close   of a function
//   commit  of a procedure. An error if the commit is not durable in time: then nothing may be answered.
void close_registry(const Registry &registry);
void commit_registry(const Registry &registry);

// Why a newcomer would be refused now by a registry in that state, whatever it asks for. Reads and writes nothing else.
core::Refusal reason_for_newcomers(FleetState state);

// When the server started, by its clock then, which tells starts from one another; and how long ago that is.
int64_t server_start_us();
int64_t server_up_us();

// Error: the synchronous standby does not have what the registry has committed.
[[noreturn]] void report_not_durable();

// What follows is called under the lock.

// Compares this server with the one that was the registry. One that was promoted, or that takes over after a handover,
// draws a term, with a fence unless it knows of every grant. If it differs in another way, the registry is unclaimed.
void settle_environment(Registry *registry);

// Draws a term, writes this server into the state as the registry, and logs it. If commits may be lost, it raises a
// fence. The reason is for the log.
using core::Commits;
void draw_term(Registry *registry, Commits of_former, const char *reason);

} // namespace uidgen::pg
