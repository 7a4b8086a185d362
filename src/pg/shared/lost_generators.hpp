// The latest time in an id of each database's generators of a layout whose slots were freed, so that one that is
// created again starts above its former ids (docs/design.md, P1 10). In shared memory only: an incarnation starts with
// none.
//
// One time for those that were dropped and those that live on, whose own high-water marks cover them. It delays nobody,
// because it does not count beyond max_ahead (new_slot.cpp). There is room for 1024 times. A generator never starts
// below the clock, so the earliest one matters least, and is replaced first.
#pragma once

#include "base/compat.hpp"
#include "core/layout.hpp"
#include "directory.hpp"

namespace uidgen::pg {

void lost_generators_request_memory(); // from shmem_request_hook
void lost_generators_attach_memory();  // from shmem_startup_hook

// Of this database, in microseconds; 0: none.
int64_t lost_until_us(const core::Layout &layout);

// A generator's slot is freed, and its ids have times up to that one.
void remember_last_time(const SlotKey &generator, const core::Layout &layout, int64_t until_us);

} // namespace uidgen::pg
