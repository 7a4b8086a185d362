// What ids say and how they are written: functions that only compute. They need no shared memory, so they work without
// preloading and on a standby.
#pragma once

#include "core/layout.hpp"
#include "core/id_forms.hpp"
#include "base/postgres.hpp"

namespace uidgen::pg {

// Stands for the default generator as an argument. A caller's argument never has this value: named() refuses it.
constexpr Oid the_default = InvalidOid;
Oid named(Oid generator);

// The layout of a generator, as of the last change of uid_generator. Valid until the next call.
const core::Layout &layout_of(Oid generator);

// The parts of an id; error if it is not one of the layout.
core::Parts parts_of(const core::Layout &layout, int64_t id);

// The id as a uuid with these random bits; error if its time is too late for one.
Datum id_as_uuid(const core::Layout &layout, int64_t id, uint64_t random);

core::Uuid uuid_of_datum(Datum value);

// 64 bits of the server's cryptographic random number generator.
uint64_t strong_random_bits();

} // namespace uidgen::pg
