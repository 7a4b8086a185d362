// The last times of lost generators, so that a generator that is created again starts above them (docs/design.md,
// P1 10). In shared memory only: an incarnation starts with none.
//
// A generator is lost when it is dropped, or when its creation is rolled back. A generator that was altered, or whose
// slot was reclaimed, lives on, and its own high-water mark covers its ids. Its last time is remembered under its oid,
// and limits no other generator until it is dropped.
//
// There is room for the 1024 latest times of the server. A generator never starts below the clock, so the earliest time
// matters least, and is replaced first.
#pragma once

#include "core/layout.hpp"
#include "base/compat.hpp"

namespace uidgen::pg {

struct LastTime {
    Oid database;
    Oid generator; // lives on; InvalidOid: lost
    core::Layout layout;
    int64_t until_us; // start of the latest tick in an id
};

void lost_generators_request_memory(); // from shmem_request_hook
void lost_generators_attach_memory();  // from shmem_startup_hook

// The latest time in an id of a lost generator of this database with that layout; 0: none.
int64_t lost_until_us(const core::Layout &layout);

void remember_last_time(const LastTime &last);

// The generator is dropped: what is remembered under its oid counts from now on.
void generator_is_lost(Oid database, Oid generator);

// The generators of this database that are remembered under their oids: up to `most`. Returns how many.
constexpr int most_last_times = 1024;
int remembered_generators(Oid *generators, int most);

} // namespace uidgen::pg
