// core's UUIDs as values of PostgreSQL's type uuid.
#pragma once

#include "core/uuid_form.hpp"
#include "postgres.hpp"

namespace uidgen::pg {

// The id as a uuid with these random bits; error if its time is too late for one.
Datum id_as_uuid(const core::Layout &layout, int64_t id, uint64_t random);

core::Uuid uuid_of_datum(Datum value);

// 64 bits of the server's cryptographic random number generator.
uint64_t strong_random_bits();

} // namespace uidgen::pg
