// The row of this database's extension in pg_extension.
#pragma once

#include "base/postgres.hpp"

namespace uidgen::pg {

struct Extension {
    Oid oid; // InvalidOid: the database has no extension uidgen
    Oid schema;
    Oid owner;
};
Extension find_extension();

// The schema of the table uid_key. Only superusers can rename it. InvalidOid if it does not exist.
Oid schema_of_keys();

} // namespace uidgen::pg
