// The last times of generators that the server has lost, so that a generator created again starts above them
// (docs/design.md, P1.10). In shared memory only: it ends with the incarnation.
//
// A generator is lost when it is dropped, or when its creation is rolled back. A generator whose slot was reclaimed, or
// ended by an alteration, lives on, and its own high-water mark covers its ids. Its last time is remembered under its oid
// and counts for nobody until the generator is dropped.
//
// There is room for the 1024 latest times of the server. A generator starts at the clock in any case, so the earliest
// time matters least, and is the one that makes room.
#pragma once

#include "core/layout.hpp"
#include "base/compat.hpp"

namespace uidgen::pg {

struct LastTime {
    Oid database;
    Oid generator; // that lives on; InvalidOid: it is lost
    core::Layout layout;
    int64_t until_us; // start of the last tick in an id
};

void lost_generators_request_memory(); // from shmem_request_hook
void lost_generators_attach_memory();  // from shmem_startup_hook

// The latest time in an id of that layout whose generator this database has lost; 0: none.
int64_t lost_until_us(const core::Layout &layout);

void remember_last_time(const LastTime &last);

// The generator is dropped: what is remembered under its oid counts from now on.
void generator_is_lost(Oid database, Oid generator);

void forget_last_times(Oid database);

} // namespace uidgen::pg
