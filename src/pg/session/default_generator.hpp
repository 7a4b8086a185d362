// The generator behind uid_next(), as this session knows it: looked up once, and again after uid_generator changes.
#pragma once

#include "session.hpp"

namespace uidgen::pg {

// The default generator's entry, opened for the current user and transaction.
SessionEntry *open_default(Oid function);

// For session_events.cpp.
void default_relation_changed(Oid relation);

} // namespace uidgen::pg
