// At a clean stop the postmaster saves the rest of segments' ranges (saved_ranges.hpp).
#pragma once

namespace uidgen::pg {

void clean_stop_register(); // from shmem_startup_hook

} // namespace uidgen::pg
