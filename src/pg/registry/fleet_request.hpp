// What a member asks of the registry, and how the registry knows again what it has given (core/grant.hpp, 8).
//
// A role that may call may pass anything, so each field is checked. What it shows has a seal, a keyed hash
// (HMAC-SHA-256, cut to 63 bits). The key is in a table, so that a server that takes over, or a restored dump, accepts
// the seals of the former one.
#pragma once

#include "refusals.hpp"

namespace uidgen::pg {

// The first argument of a call. Error for fields that are not valid.
void read_call(FunctionCallInfo fcinfo, Call *call);

// Seals of the registry's answers: that it has answered in that epoch with that serial; a grant; that the registry of
// that epoch granted last at that time.
int64_t seal_of_stamp(const FleetState &state, const core::Epoch &epoch, int64_t serial);
int64_t seal_of_grant(const FleetState &state, const core::Layout &layout, const core::Grant &grant);
int64_t seal_of_last(const FleetState &state, const core::Epoch &epoch, int64_t granted_last_us);

// Whether a registry of this fleet has given what the member shows. What a registry has given whose key is
// lost has no such proof. It counts while the fence lasts that this one began with; then drop_unproven() forgets it.
bool is_proven(const Registry &registry, const FleetRequest &request);
void drop_unproven(const Registry &registry, FleetRequest *request);

} // namespace uidgen::pg
