#include "registry_status.hpp"

#include "server_state.hpp"

namespace uidgen::pg {
namespace {

// Copies a text as printable ASCII on one line. Touches its arguments only.
void copy_clean(char *into, size_t bytes, const char *text) {
    size_t length = 0;
    for (; *text != '\0' && length + 1 < bytes; text++) {
        const auto byte = static_cast<unsigned char>(*text);
        const bool is_space = byte <= ' ';
        if (is_space && (length == 0 || into[length - 1] == ' '))
            continue;
        into[length++] = is_space ? ' ' : byte > '~' ? '?' : *text;
    }
    while (length > 0 && into[length - 1] == ' ')
        length--;
    into[length] = '\0';
}

} // namespace

GrantError make_error(const char *message, const char *hint, core::Why why) {
    GrantError error = {};
    copy_clean(error.message, sizeof(error.message), message);
    if (error.message[0] == '\0')
        strlcpy(error.message, "the registry gave no reason", sizeof(error.message));
    copy_clean(error.hint, sizeof(error.hint), hint);
    error.why = why;
    error.at_us = wall_clock_us();
    return error;
}

RegistrarStatus registrar_status() {
    lock_state_shared();
    const RegistrarStatus copy = server_state->fleet.registrar;
    unlock_state();
    return copy;
}

void registrar_status_set(const RegistrarStatus &status) {
    lock_state();
    server_state->fleet.registrar = status;
    unlock_state();
}

GrantError error_for_user(const GrantError &error) {
    if (!error.names_host || has_privs_of_role(GetUserId(), ROLE_PG_MONITOR))
        return error;
    GrantError shown =
        make_error("the registry cannot be reached", "The view uid_registry_status tells members of pg_monitor why.");
    shown.at_us = error.at_us;
    return shown;
}

int error_details(const GrantError &error, int64_t waited_us, const char *hint) {
    const GrantError shown = error_for_user(error);
    if (shown.message[0] != '\0')
        errdetail("The last request to the registry failed: %s", shown.message);
    else
        errdetail("The registry has not answered yet. The call waited %lld ms.",
                  static_cast<long long>(waited_us / us_per_ms));
    if (hint == nullptr)
        hint = shown.hint[0] != '\0' ? shown.hint
                                     : "Check uidgen.registry, max_worker_processes and the view uid_registry_status.";
    return errhint("%s", hint);
}

} // namespace uidgen::pg
