// Why the registry of the fleet gave nothing, as sessions show it.
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

} // namespace uidgen::pg
