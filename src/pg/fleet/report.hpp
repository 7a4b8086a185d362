// What a server shows of its registry: the status in the view uid_registry_status, and one line in the log when
// something changes, both by the registrar. No message and no view shows uidgen.registry whole. But PostgreSQL logs the
// setting when it changes, so the documents put the password into a file.
#pragma once

#include "connection.hpp"

namespace uidgen::pg {

// What may be shown of a connection string, which may contain a password: service, host, port, dbname and user, as far
// as it names them. In the place of a database's name may be a connection string, too. Views call it, too.
const char *conninfo_redacted(const char *conninfo);

// A host has answered as the registry: sets the status in shared memory.
void note_connected(const Found &found) EXCLUDES(state_lock);
// The registry has answered a call, and not as a former registry does: if it was away, logs it and sets the status.
void note_back() EXCLUDES(state_lock);
// The setting has changed, or the registrar ends: sets the status, as those below do (registrar_status_set()).
void note_disconnected() EXCLUDES(state_lock);
// The registry cannot be used: sets the status, and logs it the first time.
void note_away(const GrantError &error) EXCLUDES(state_lock);

// What the server knows of its fleet has changed: logs another fleet or term, and touches nothing else.
void note_fleet(const core::FleetSeen &before, const core::FleetSeen &seen);

// Sets the error of one member or block in the status, for the view; its line in the log is the caller's.
void note_error(const GrantError &error) EXCLUDES(state_lock);

// Sets the clocks' difference in the status, by the registry's reading of its clock in an answer to what was sent then.
// Logs one line each time that the clocks begin to differ by more than those of registries may by default.
void note_clocks(int64_t sent_us, int64_t registry_clock_us) EXCLUDES(state_lock);

} // namespace uidgen::pg
