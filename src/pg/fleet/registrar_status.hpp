// What the server's registrar last knew of the registry, in shared memory, for a view.
#pragma once

#include "shared/places.hpp"

namespace uidgen::pg {

struct RegistrarStatus {
    bool connected;
    int64_t away_since_us; // since when the registry cannot be used; 0: it can, or nobody has tried
    GrantError last_error; // of the registry as a whole, or of any member
    bool compared_clocks;
    int64_t clock_offset_us; // this server's clock less the registry's, at the last answer
};

void registrar_status_request_memory(); // from shmem_request_hook
void registrar_status_attach_memory();  // from shmem_startup_hook

RegistrarStatus registrar_status();
void registrar_status_set(const RegistrarStatus &status); // for the registrar

} // namespace uidgen::pg
