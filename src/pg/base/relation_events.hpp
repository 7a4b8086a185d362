// Invalidations of relations, as all parts of the library receive them. PostgreSQL has few places for such callbacks,
// and none can be given back, so the library has one.
#pragma once

#include "postgres.hpp"

namespace uidgen::pg {

// Calls changed(relation) for each relation that has changed, from now on; InvalidOid: any may have. It must not fail.
// Once in a process for each function.
void on_relation_changed(void (*changed)(Oid relation));

} // namespace uidgen::pg
