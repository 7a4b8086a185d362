// What a member asks of the registry. A role that may call may pass anything, so each field is checked.
#pragma once

#include "refusals.hpp"

namespace uidgen::pg {

// The first argument of a call. Error for fields that are not valid.
void read_call(FunctionCallInfo fcinfo, Call *call);

// Whether a registry of this fleet has given what the member shows (seal.hpp). What a registry has given whose key is
// lost has no such proof. It counts while the fence lasts that this one began with; then drop_unproven() forgets it.
bool is_proven(const Registry &registry, const FleetRequest &request);
void drop_unproven(const Registry &registry, FleetRequest *request);

} // namespace uidgen::pg
