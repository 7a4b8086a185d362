// The memory of rings: a segment of dynamic shared memory each, made with the generator's slot and given back with it.
// (A process that has it mapped keeps it until it notices, at its next use of the generator or at its end.)
#pragma once

#include "slots.hpp"

namespace uidgen::pg {

// New memory with that many empty cells. It lasts until ring_memory_drop(), or as long as a slot that has taken it over.
dsm_handle ring_memory_make(uint64_t cells);
void ring_memory_drop(dsm_handle memory);

// This process's view of a ring, mapped until ring_memory_unmap(); a ring of no cells if it is gone.
core::Ring<> ring_memory_map(dsm_handle memory, core::RingHints<> *hints, uint64_t cells);
void ring_memory_unmap(dsm_handle memory);

} // namespace uidgen::pg
