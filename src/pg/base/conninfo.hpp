// The connection string in uidgen.registry. It may contain a password, which must stand in no message and in no view.
#pragma once

#include "postgres.hpp"

namespace uidgen::pg {

// The check hook of the setting. Its message quotes neither the string nor libpq, whose messages quote parts of it.
bool conninfo_check(char **value, void **extra, GucSource source);

// What may be shown of a connection string: host, port, dbname and user, as far as it names them. In the current memory
// context.
const char *conninfo_redacted(const char *conninfo);

// At a reload the postmaster logs the changed settings of its file with their values. From now on that message names
// uidgen.registry without its value.
void conninfo_keep_out_of_log();

} // namespace uidgen::pg
