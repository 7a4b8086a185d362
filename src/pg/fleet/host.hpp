// One host of the connection string: a connection of the registrar by libpq in its asynchronous form.
//
// It connects, and then makes one call after another. The caller waits for the socket. Errors hold no password: libpq's
// messages about a connection name host, port, database and user only.
#pragma once

#include "message.hpp"
#include "memory/server_state.hpp"

namespace uidgen::pg {

enum class Stage : uint8_t {
    closed, // the error says why, if it was open
    connecting,
    calling,
    idle,
};

struct Requests {
    const FleetRequest *requests;
    int count;
};

struct Answers {
    FleetAnswer *answers;
    int count;
};

struct Host {
    const char *conninfo;
    const char *name; // "host:port"
    const char *host; // its part of each list in the connection string, as the next two
    const char *address;
    const char *port;
    PGconn *connection;
    Stage stage;
    uint32 events;     // to wait for
    Requests requests; // to send once it is connected
    PGresult *result;
    Answers answers;  // to the last call, in the memory context of then; none: it was not answered
    GrantError error; // then why
};

inline bool is_busy(const Host &host) { return host.stage != Stage::closed && host.stage != Stage::idle; }

inline bool is_idle(const Host &host) { return host.stage == Stage::idle; }

// Makes a call, and connects first if need be. While the host is busy, advance() does what can be done without waiting.
// While it is idle, advance() notices the end of the connection.
void call_host(Host *host, const Requests &requests);
void advance(Host *host);
void close_host(Host *host);
void time_out(Host *host); // it did not answer in time

// The first answer of the last call; null: it was not answered.
inline const FleetAnswer *answer_of(const Host &host) {
    return host.answers.count > 0 ? host.answers.answers : nullptr;
}

// Why an answer refuses; at_us 0: it does not.
GrantError refusal_error(const FleetAnswer &answer);

// The error of an answer that no registry gives.
GrantError not_a_registry();

} // namespace uidgen::pg
