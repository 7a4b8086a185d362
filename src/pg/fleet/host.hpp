// One host of the connection string: a connection of the registrar by libpq in its asynchronous form.
//
// It connects, looks the extension up, and then makes one call after another. advance() does what can be done without
// waiting; the caller waits for the socket. Errors hold no password: libpq's messages about a connection name host,
// port, database and user only.
#pragma once

#include "message.hpp"
#include "memory/server_state.hpp"

namespace uidgen::pg {

enum class Stage : uint8_t {
    closed, // the error says why, if it was open
    connecting,
    looking_up, // the extension
    calling,
    idle, // the result counts
};

struct Host {
    char *name; // "host:port"
    PGconn *connection;
    Stage stage;
    bool is_silent;   // did not answer the last inquiry
    uint32 events;    // to wait for
    const char *call; // what to send once it is looked up: the request as JSON
    PGresult *result;
    GrantError error;
    char schema[2 * NAMEDATALEN + 3]; // of uidgen there, quoted
};

inline bool is_busy(const Host &host) { return host.stage != Stage::closed && host.stage != Stage::idle; }
inline bool is_there(const Host &host) { return host.stage == Stage::idle; }

// The keywords and values of PQconnectStartParams().
void start_connecting(Host *host, const char *const *keywords, const char *const *values);
void send_call(Host *host);
void advance(Host *host);
void close_host(Host *host);
void time_out(Host *host); // it did not answer in time

// Sets an error's text and time. What is not printable ASCII is replaced, since sessions in databases of every encoding
// show it, and line breaks become spaces.
void set_error(GrantError *error, const char *message, const char *hint);

// The same for a refusal of the registry.
void set_refusal(GrantError *error, const FleetAnswer &answer);

// The error of an answer that no registry gives.
void set_not_a_registry(GrantError *error);

} // namespace uidgen::pg
