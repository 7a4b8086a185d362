// The connection string in uidgen.registry. It may contain a password, so no message and no view of uidgen shows it
// whole. PostgreSQL logs it when it changes, so the documents put the password into a file.
#pragma once

#include "base/postgres.hpp"

namespace uidgen::pg {

// Whether libpq can parse it. One that it cannot counts as that of a registry that cannot be reached.
bool conninfo_is_valid(const char *conninfo);

// What may be shown of a connection string: host, port, dbname and user, as far as it names them. In the current memory
// context.
const char *conninfo_redacted(const char *conninfo);

} // namespace uidgen::pg
