// What a server shows of its registry: the status in the view uid_registry_status, and one line in the log when
// something changes, both by the registrar. No message and no view shows uidgen.registry whole. But PostgreSQL logs the
// setting when it changes, so the documents put the password into a file.
#pragma once

#include "connection.hpp"

namespace uidgen::pg {

// What may be shown of a connection string, which may contain a password: service, host, port, dbname and user, as far
// as it names them. In the place of a database's name may be a connection string, too.
const char *conninfo_redacted(const char *conninfo);

void note_connected(const Found &found); // a host has answered as the registry
void note_back();                        // and what was asked there was not refused as by a former registry
void note_disconnected();                // the setting has changed, or the registrar ends
void note_away(const GrantError &error); // the registry cannot be used

// What the server knows of its fleet has changed.
void note_fleet(const core::FleetSeen &before, const core::FleetSeen &seen);

// Keeps the error of one member or block for the view; its line in the log is the caller's.
void note_error(const GrantError &error);

// By the registry's reading of its clock, in an answer to what was sent then. One line each time that the clocks begin
// to differ by more than those of registries may by default.
void note_clocks(int64_t sent_us, int64_t registry_clock_us);

} // namespace uidgen::pg
