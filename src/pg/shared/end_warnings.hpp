// Of which generators' ends of time the server has warned since its start.
#pragma once

#include "base/compat.hpp"

namespace uidgen::pg {

void end_warnings_request_memory(); // from shmem_request_hook
void end_warnings_attach_memory();  // from shmem_startup_hook

// True if the server has not warned of that end of a generator's time yet. It remembers the last 64 warnings, whatever
// becomes of the generators' slots.
bool is_first_end_warning(Oid generator, int64_t end_us);

} // namespace uidgen::pg
