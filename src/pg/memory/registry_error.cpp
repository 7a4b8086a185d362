#include "registry_error.hpp"

namespace uidgen::pg {

GrantError error_for_user(const GrantError &error) {
    if (!error.names_host || has_privs_of_role(GetUserId(), ROLE_PG_MONITOR))
        return error;
    GrantError shown = {};
    strlcpy(shown.message, "the registry cannot be reached", sizeof(shown.message));
    strlcpy(shown.hint, "The view uid_registry_status tells members of pg_monitor why.", sizeof(shown.hint));
    shown.at_us = error.at_us;
    return shown;
}

} // namespace uidgen::pg
