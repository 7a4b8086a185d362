// Seals: how the registry of a fleet knows again what it has given (core/grant.hpp, 8).
//
// A seal is a keyed hash (HMAC-SHA-256, cut to 63 bits). The key is in a table, so that a server that takes
// over, or a restored dump, accepts the seals of the former one.
#pragma once

#include "fleet_tables.hpp"

namespace uidgen::pg {

// That the registry has answered in that epoch, with that serial.
int64_t seal_of_stamp(const FleetState &state, const core::Epoch &epoch, int64_t serial);

int64_t seal_of_grant(const FleetState &state, const core::Layout &layout, const core::Grant &grant);

// That the registry of that epoch granted last at that time.
int64_t seal_of_last(const FleetState &state, const core::Epoch &epoch, int64_t granted_last_us);

} // namespace uidgen::pg
