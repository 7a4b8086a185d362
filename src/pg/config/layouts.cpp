#include "layouts.hpp"

#include "base/errors.hpp"
#include "extension.hpp"
#include "rows.hpp"

namespace uidgen::pg {
namespace {

// The layout used last, of a named generator or of the default one.
struct KeptLayout {
    uint64_t as_of; // of relation_changes; 0: never up to date
    Oid generator;
    core::Layout layout;
};
KeptLayout kept = {};

} // namespace

Oid named(Oid generator) {
    if (generator == the_default)
        report_not_a_generator(generator);
    return generator;
}

const core::Layout &layout_of(Oid generator) {
    if (kept.as_of == relation_changes && kept.generator == generator)
        return kept.layout;
    core::Layout layout = {};
    const uint64_t as_of = read_unchanged([&] {
        const Oid schema = extension_schema();
        const Oid sequence = generator != the_default ? generator : read_default_generator(schema);
        layout = read_generator_config(schema, sequence).layout;
    });
    kept = {as_of, generator, layout};
    return kept.layout;
}

core::Parts parts_of(const core::Layout &layout, int64_t id) {
    const core::Decoded decoded = core::decode(layout, id);
    if (decoded.fault != core::DecodeFault::none)
        report_decode(layout, id, decoded.fault);
    return decoded.parts;
}

static_assert(UUID_LEN == 2 * sizeof(uint64_t), "a uuid is two numbers of eight bytes, the first one big-endian");

Datum id_as_uuid(const core::Layout &layout, int64_t id, uint64_t random) {
    const core::MadeUuid made = core::uuid_of(layout, id, random);
    if (!made.in_range)
        report_too_late_for_uuid(layout, id);
    const uint64_t bytes[] = {pg_hton64(made.uuid.high), pg_hton64(made.uuid.low)};
    auto *uuid = static_cast<pg_uuid_t *>(palloc(sizeof(pg_uuid_t)));
    memcpy(uuid->data, bytes, sizeof bytes);
    return UUIDPGetDatum(uuid);
}

core::Uuid uuid_of_datum(Datum value) {
    uint64_t bytes[2];
    memcpy(bytes, DatumGetUUIDP(value)->data, sizeof bytes);
    return {pg_ntoh64(bytes[0]), pg_ntoh64(bytes[1])};
}

// One call of the generator costs as much as dozens of ids, so it fills the pool of this backend. A number is erased
// when it is used. No process is forked from a backend, so no two have the same pool.
uint64_t strong_random_bits() {
    static uint64_t pool[64];
    static size_t left = 0;
    if (left == 0) {
        if (!pg_strong_random(pool, sizeof pool))
            ereport(ERROR, (errcode(ERRCODE_SYSTEM_ERROR), errmsg("could not generate random bits"),
                            errhint("Check the operating system's source of random numbers.")));
        left = lengthof(pool);
    }
    const uint64_t bits = pool[--left];
    pool[left] = 0;
    return bits;
}

} // namespace uidgen::pg
