// Remembers for which generators the server has warned, since its start, that their time will end.
#pragma once

#include "base/compat.hpp"

namespace uidgen::pg {

void end_warnings_request_memory(); // from shmem_request_hook
void end_warnings_attach_memory();  // from shmem_startup_hook

// True if the server has not warned yet of this end of a generator's time. It remembers the last 64 warnings,
// independently of the generators' slots.
bool is_first_end_warning(Oid generator, int64_t end_us);

} // namespace uidgen::pg
