#include "layout_cache.hpp"

#include "rows.hpp"
#include "base/errors.hpp"
#include "base/relation_events.hpp"

namespace uidgen::pg {
namespace {

// The layout used last, of a named generator or of the default one. Any change or removal of a row of uid_generator, or
// of the extension, sends an invalidation.
struct CachedLayout {
    bool valid;
    Oid generator;
    Oid function_schema;
    core::Layout layout;
};
CachedLayout cached = {};

uint64_t invalidations = 0;

void relation_invalidated(Oid) {
    cached.valid = false;
    invalidations++;
}

} // namespace

Oid named(Oid generator) {
    if (generator == the_default)
        report_not_a_generator(generator);
    return generator;
}

const core::Layout &layout_of(Oid generator, Oid function) {
    const Oid schema = schema_of_function(function);
    if (cached.valid && cached.generator == generator && cached.function_schema == schema)
        return cached.layout;
    static bool registered = false;
    if (!registered) {
        on_relation_changed(relation_invalidated);
        registered = true;
    }
    constexpr int most_rounds = 8; // bounds the look-up if each round gets an invalidation (debug_discard_caches)
    for (int round = 1;; round++) {
        const uint64_t seen = invalidations;
        const Oid sequence = generator != the_default ? generator : read_default_generator(schema);
        const core::Layout layout = read_generator_config(schema, sequence).layout;
        cached = {seen == invalidations, generator, schema, layout};
        if (cached.valid || round == most_rounds) // else an invalidation came during the look-up
            return cached.layout;
    }
}

core::Parts parts_of(const core::Layout &layout, int64_t id) {
    const core::Decoded decoded = core::decode(layout, id);
    if (decoded.fault != core::DecodeFault::none)
        report_decode(layout, id, decoded.fault);
    return decoded.parts;
}

} // namespace uidgen::pg
