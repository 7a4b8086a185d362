// The memory of rings: a segment of dynamic shared memory for each. It is made with the generator's slot and returned
// with it. (A process that has it mapped keeps it until its next use of the generator, or until it ends.)
#pragma once

#include "slots.hpp"

namespace uidgen::pg {

// Makes memory with that many empty cells. It lasts until ring_memory_drop(), or as long as the slot that takes it
// over.
dsm_handle ring_memory_make(uint64_t cells);
void ring_memory_drop(dsm_handle memory);

// This process's view of a ring, mapped until ring_memory_unmap(). If the ring was dropped, the view has no cells.
core::Ring<> ring_memory_map(dsm_handle memory, core::RingHints<> *hints, uint64_t cells);
void ring_memory_unmap(dsm_handle memory);

} // namespace uidgen::pg
