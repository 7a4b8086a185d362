// The registrar's connection to the registry, by libpq in its asynchronous form, so that the process always reacts to
// its latch. There is one connection at most.
//
// Waits end early when the process is asked to end. Errors hold no password: libpq's messages about a connection name
// host, port, database and user only.
#pragma once

#include "memory/server_state.hpp"

namespace uidgen::pg {

// Limits what memory this process may take from now on, where the system tells what it has. libpq keeps a message of
// any length, and copies it. Without the memory it gives the connection up.
void connection_limit_memory();

// Connects to the first server of the connection string that may serve as a registry: one that accepts writes and has
// uidgen. Each of its hosts is tried once; libpq's asynchronous form has no time-out of its own for a host that does
// not answer. False: none may, and *error says why.
bool connection_open(const char *conninfo, GrantError *error);

void connection_close();
bool connection_is_open();

// The socket to wait on while nothing is asked, and what to do when it is ready: notices the end of the connection.
pgsocket connection_socket();
void connection_read_idle();

// Runs one statement, in a transaction of its own, with text parameters. The result counts only after the server was
// ready for the next statement. Null: it failed, and *error says why; then the connection may have been closed.
// Otherwise the caller frees it with PQclear().
PGresult *connection_query(const char *statement, int count, const char *const *values, GrantError *error);

// The schema of uidgen in the registry, quoted. Empty: not connected.
const char *connection_schema();

// Whether text in UTF-8 may be sent; otherwise only ASCII.
bool connection_takes_utf8();

// Sets an error's text and time. What is not printable ASCII is replaced, since sessions in databases of every encoding
// show it, and line breaks become spaces.
void set_error(GrantError *error, const char *message, const char *hint);

// The error of an answer that no registry gives.
void set_not_a_registry(GrantError *error);

} // namespace uidgen::pg
