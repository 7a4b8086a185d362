// What this server knows of the registry of its fleet: why it gave nothing, and what the registrar last knew of it.
#pragma once

#include "base/base.hpp"
#include "core/holding.hpp"

namespace uidgen::pg {

// Why the registry gave nothing, as sessions show it: its message or libpq's, without a password. Empty: no answer yet.
struct GrantError {
    char message[512];
    char hint[256];
    core::Why why;    // granted: it is no refusal of the registry
    int64_t until_us; // of `fenced`
    int64_t at_us;    // 0: none
    bool names_host;  // not for every role
};

// An error of now, made of its arguments and the wall clock only. What is not printable ASCII is replaced, since
// sessions in databases of every encoding show it, and line breaks become spaces.
GrantError make_error(const char *message, const char *hint, core::Why why = core::Why::granted);

// What the registrar last knew of the registry, for a view.
struct RegistrarStatus {
    char host[256];        // the one that answered last; empty: none yet
    int64_t heard_at_us;   // when it did; 0: never
    int64_t away_since_us; // since when the registry cannot be used; 0: it can, or was not tried
    int64_t back_at_us;    // when it could be used again; errors from before do not count any more
    GrantError last_error; // of the registry as a whole, or of any member
    bool compared_clocks;
    int64_t clock_offset_us; // this server's clock less the registry's, at the last answer
};

// The error as the current user may see it, by the roles in the catalogs. Where the registry is, only readers of
// uid_registry_status learn.
GrantError error_for_user(const GrantError &error);

// Inside of ereport(): the DETAIL and the HINT of an error of a caller that got nothing from the registry, as
// error_for_user() says. With `hint`, that is the HINT.
int error_details(const GrantError &error, int64_t waited_us, const char *hint = nullptr);

// What the registrar last knew of the registry: a copy, out of the server state.
RegistrarStatus registrar_status() EXCLUDES(state_lock);
// For the registrar: sets that in the server state, and writes no file.
void registrar_status_set(const RegistrarStatus &status) EXCLUDES(state_lock);

} // namespace uidgen::pg
