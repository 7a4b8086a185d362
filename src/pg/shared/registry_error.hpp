// Why the registry of the fleet gave nothing, as sessions show it; and how its registrar is woken.
#pragma once

#include "base/postgres.hpp"

namespace uidgen::pg {

// The registry's message or libpq's, without a password. Empty: no answer yet.
struct GrantError {
    char message[512];
    char hint[256];
    int64_t at_us;   // 0: none
    bool names_host; // not for every role
};

// The error as the current user may see it. Where the registry is, only readers of uid_registry_status learn.
GrantError error_for_user(const GrantError &error);

// Wakes the registrar, or starts it if none runs. False: it cannot be started, and *error says why.
bool wake_registrar(GrantError *error);

} // namespace uidgen::pg
