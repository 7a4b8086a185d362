// The registrar's connection to the registry. Waits react to the process's latch, and end early when it is asked to
// end.
//
// A connection string may name several hosts. An inquiry asks all of them at the same time, and keeps the connection to
// the one that is the registry (core/holding.hpp). A host that does not answer is waited for for a moment only.
//
// A call that is given up may still run, for as long as the registry waits for a standby. libpq's cancel may block for
// as long. So the next hello to that host ends the calls of this server that still run there.
#pragma once

#include "core/holding.hpp"
#include "host.hpp"

namespace uidgen::pg {

// Limits what memory this process may take from now on (setrlimit), where a file of /proc tells what it has. libpq
// keeps a message of any length, and copies it. Without the memory it gives the connection up.
void connection_limit_memory();

// The registry that an inquiry has found.
struct Found {
    const char *host; // "host:port"
    core::Hello hello;
    int64_t sent_us; // the wall clock when the hello was sent
};

// From now on the hosts are those of that connection string. Closes one to others. False: it was the same.
bool connection_use(const char *conninfo);

// Connects to all hosts, says hello, waits, and keeps the connection to the registry. False: *error says why not.
bool connection_inquire(const core::FleetSeen &seen, Found *found, GrantError *error)
    EXCLUDES(grant_file_lock, slot_lock, state_lock);

// Closes the connections to all hosts, without waiting.
void connection_close();
// Whether the connection to the registry is open, as far as the process has noticed.
bool connection_is_open();

// Waits for the latch while nothing is asked, and notices the end of the connection.
void connection_nap(int64_t us) EXCLUDES(grant_file_lock, slot_lock, state_lock);

// Runs a statement on the open connection to the registry, and waits. Null: *error says why, and the connection may
// have been closed. The rows last until the next statement.
const PGresult *connection_run(const Statement &statement, GrantError *error)
    EXCLUDES(grant_file_lock, slot_lock, state_lock);

} // namespace uidgen::pg
