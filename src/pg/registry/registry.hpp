// A transaction of a fleet's registry: what every function that grants, fences or revokes begins and ends with.
//
// Contract
//   1. The transaction is the function's own, so that its commit follows at once: no transaction block, no
//      subtransaction, nothing written before. Its commit is flushed, and a synchronous standby has it, before the
//      client may count the answer.
//   2. The registry's lock is taken before the clock and the rows are read. Calls share it, and lock the rows that they
//      write. What changes the fleet as a whole takes it exclusively: a fence, a handover, a new pool. A fence sees
//      every grant that was answered. The lock is one on uid_fleet_state, in modes that do not conflict with reading.
//   3. Before the exclusive lock is asked for, the shared one is released, and nothing has been written. So two calls
//      never wait for each other.
#pragma once

#include "fleet_tables.hpp"

namespace uidgen::pg {

struct Registry {
    Oid schema;
    Oid state_table;
    Oid serial_sequence;
    bool exclusive;
    FleetState state; // with the clock, the serials and, once it was needed, the median
    int guc_level;
    MemoryContext caller;
};

// A closed registry grants nothing. The server that takes over knows of the closing, and so of every grant, and needs
// no fence. That is only so as long as the former server cannot be open again, so the closing has an end:
//   - the one that takes over counts on it while its clock + the bound is below closed_until
//   - the former one may be opened again when its clock has passed closed_until by twice the bound
inline bool is_closed(const Registry &registry) { return registry.state.closed_until_us != 0; }

// An error if the transaction is not the function's own. `function` leads to the extension's tables.
void open_registry(Registry *registry, Oid function);

// What comes out of it must be in registry->caller's memory by then.
void close_registry(Registry *registry);

// Runs `work` under the shared lock. If it returns false, because it needs the exclusive lock, it has written nothing,
// and runs again under that. If the server has changed, a fence is raised first, unless it knows that the former one is
// closed.
using RegistryWork = bool (*)(Registry *registry, void *arg);
void run_in_registry(Registry *registry, RegistryWork work, void *arg, bool exclusive = false);

// Error: the member speaks another version of a call's protocol than the registry.
void check_protocol_version(int32_t asked, int32_t spoken);

// Why the registry answers no member, or not one that has seen that term of that fleet (0: of none yet).
struct MemberRefusal {
    const char *name; // null: it answers
    const char *message;
    const char *hint;
    bool passes; // by itself
};

// False: needs the exclusive lock.
bool refuse_member(Registry *registry, uint64_t fleet, int64_t term, MemberRefusal *refusal);

// Another session has written the row that this call has judged. The judgement is made again, for an answer that comes
// after that session's, so it must have a later serial.
void renew_serial(Registry *registry);

// Under the exclusive lock. The reason is for the log.
void raise_fence(Registry *registry, const char *reason);

// The median of the members' clocks costs more than the rest of a call. It matters only if a clock is far ahead of the
// registry's.
void read_median(Registry *registry);

} // namespace uidgen::pg
