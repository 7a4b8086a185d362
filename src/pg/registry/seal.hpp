// Seals: how the registry of a fleet knows again what it has given (core/grant.hpp, 8).
//
// A seal is a keyed hash (HMAC-SHA-256, cut to 63 bits). The key is in a table, so that a server that takes
// over, or a restored dump, accepts the seals of the former one.
#pragma once

#include "fleet_tables.hpp"

namespace uidgen::pg {

// Of a stamp: that the registry has answered in that term, and granted with that serial (0: refused).
int64_t seal_of_stamp(const FleetState &state, int64_t term, int64_t serial);

int64_t seal_of_grant(const FleetState &state, const core::Layout &layout, const core::Grant &grant);

// Whether a stamp is this registry's. One that says nothing needs no seal.
bool is_sealed(const FleetState &state, int64_t term, int64_t serial, int64_t seal);

} // namespace uidgen::pg
