// At a clean stop the postmaster saves the rest of segments' ranges, and blocks that are ready (saved_ranges.hpp).
#pragma once

#include "saved_ranges.hpp"

namespace uidgen::pg {

void clean_stop_register(); // from shmem_startup_hook

// A block that was saved is ready again: for saved_ranges_attach_memory(), when the memory of blocks is there.
void clean_stop_restore_block(const SavedRanges &entry);

} // namespace uidgen::pg
