// The registrar's connection to the registry. The process always reacts to its latch, and waits end early when it is
// asked to end.
//
// A connection string may name several hosts. An inquiry asks all of them at the same time, and keeps the connection to
// the one that is the registry (core/membership.hpp, 5). A host that does not answer is waited for for a moment only.
#pragma once

#include "host.hpp"

namespace uidgen::pg {

// Limits what memory this process may take from now on, where the system tells what it has. libpq keeps a message of
// any length, and copies it. Without the memory it gives the connection up.
void connection_limit_memory();

// What an inquiry has found.
struct Found {
    bool is_alone;  // false: newcomers must wait, because there is another registry that cannot be told from this one
    int registries; // that answered, of whatever fleet
    core::Answer hello;     // of the registry, if it may have granted in its term; fleet 0: there is none
    GrantedLast other;      // of a registry with another term
    const char *host;       // "host:port" of the registry; null: none
    bool awaits_member;     // the registry waits for a member whose grant lasts
    int64_t longest_us;     // the longest grant of the fleet
    const char *refused_by; // the first that refuses this server; null: none
    char others[256];       // of the other registries; empty: there are none
};

// From now on the hosts are those of that connection string. Closes the connection if that was another one. False: it
// was the same.
bool connection_use(const char *conninfo);

// Says hello to all hosts, and connects to the registry, if that was another one before. False: there is none, and
// *error says why.
bool connection_inquire(const FleetRequest &hello, const core::FleetSeen &seen, Found *found, GrantError *error);

void connection_close();
bool connection_is_open();

// Waits while nothing is asked, and notices the end of the connection.
void connection_nap(int64_t us);

// Sends requests on the open connection, in one call. The registry answers the first ones, perhaps all. The answers
// count only after the server was ready for the next statement. Their texts are in the current memory context. None:
// *error says why; then the connection may have been closed.
Answers connection_call(const Requests &requests, GrantError *error);

} // namespace uidgen::pg
