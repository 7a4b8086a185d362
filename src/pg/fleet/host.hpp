// One host of the connection string: a connection of the registrar by libpq in its asynchronous form.
//
// It connects, and then runs one statement after another, each a transaction of its own. The caller waits for the
// socket. A result counts only if the server is ready for the next statement, so the transaction has committed, and if
// no WARNING came with it: one says that a wait for a standby was canceled. Errors hold no password: libpq's messages
// about a connection name host, port, database and user only. To connect, libpq reads its files (of passwords, services
// and TLS), and waits for the look-up of a host's name that has no hostaddr.
#pragma once

#include "memory/registry_status.hpp"

namespace uidgen::pg {

enum class Stage : uint8_t {
    closed, // the error says why, if it was open
    connecting,
    calling,
    idle,
};

// What the members' role may call on a registry.
constexpr int most_parameters = 5;
struct Statement {
    const char *sql;
    int count;
    Oid types[most_parameters];
    const char *values[most_parameters]; // null: NULL
};

struct Host {
    const char *conninfo;
    const char *name; // "host:port"
    const char *host; // its part of each list in the connection string, as the next two
    const char *address;
    const char *port;
    PGconn *connection;
    Stage stage;
    uint32 events; // to wait for
    Statement statement;
    PGresult *result;  // of the last statement, if it counts
    bool was_given_up; // a statement may still run there, for which the registrar does not wait
    char warning[256]; // the first one that came with the result
    GrantError error;  // why there is no result
};

// Whether the host connects or runs a statement, by what the process knows of it.
inline bool is_busy(const Host &host) { return host.stage != Stage::closed && host.stage != Stage::idle; }

// Whether it is connected, and runs nothing.
inline bool is_idle(const Host &host) { return host.stage == Stage::idle; }

// Whether the last statement returned rows that count.
inline bool has_rows(const Host &host) { return host.stage == Stage::idle && host.result != nullptr; }

// Begins to run a statement, and connects first if need be. libpq then reads its files, and waits for the look-up of
// the host's name. Nothing else waits for the host: while that is busy, advance_host() continues.
void run_on_host(Host *host, const Statement &statement);
// While the host is busy: connects, sends and receives what it can without waiting. While it is idle: notices the end
// of the connection.
void advance_host(Host *host);
// Closes the connection, and frees the result.
void close_host(Host *host);
// The host did not answer in time: keeps that error, and closes the connection.
void time_out_host(Host *host);

// The error of an answer that no registry gives.
GrantError not_a_registry();

} // namespace uidgen::pg
