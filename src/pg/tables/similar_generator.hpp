// Statements that a hint shows: another generator like one that cannot draw.
#pragma once

#include "base/postgres.hpp"

namespace uidgen::pg {

// Creates a generator with the layout of that one, and its preset's policies. The name is one that is free.
struct SimilarGenerator {
    const char *name; // qualified, as a literal
    const char *statements;
};
SimilarGenerator similar_generator(Oid generator);

} // namespace uidgen::pg
