// Statements that a hint shows: another generator like one that cannot draw.
#pragma once

#include "core/layout.hpp"
#include "base/postgres.hpp"

namespace uidgen::pg {

// Creates a generator with the layout of that one, and its preset's policies. The name is one that is free.
//
// Ids of one layout are kept apart by the node. A layout without node bits gets an epoch that is earlier by how far the
// generator is ahead of the clock. So the ids of the other generator are above those of this one.
struct SimilarGenerator {
    const char *name; // qualified, as a literal
    const char *statements;
    bool is_above;
};
SimilarGenerator similar_generator(Oid generator, const core::Layout &layout, int64_t ahead_us);

} // namespace uidgen::pg
