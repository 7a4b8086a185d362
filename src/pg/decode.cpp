// uid_decode(), uid_encode(), uid_timestamp(): arithmetic on ids. They need no shared memory, so they work
// where nothing can be drawn: not preloaded, on a standby.

#include "config_table.hpp"
#include "errors.hpp"
#include "time_source.hpp"

namespace uidgen::pg {
namespace {

// The layout used last, of a named generator or of the default one. Layouts never
// change; a generator that goes away, or the extension, sends an invalidation.
struct CachedLayout {
    bool valid;
    Oid generator;
    Oid function_schema;
    core::Layout layout;
};
CachedLayout cached;

void relation_invalidated(Datum, Oid) { cached.valid = false; }

// The default generator, as an argument; a caller's generator is never this.
constexpr Oid the_default = InvalidOid;

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
        CacheRegisterRelcacheCallback(relation_invalidated, 0);
        registered = true;
    }
    GeneratorConfig config;
    const Oid sequence = generator != the_default ? generator : read_default_generator(schema);
    if (!read_generator_config(schema, sequence, &config))
        report_not_a_generator(sequence);
    cached = {true, generator, schema, config.layout};
    return cached.layout;
}

core::Parts parts_of(const core::Layout &layout, int64_t id) {
    const core::Decoded decoded = core::decode(layout, id);
    if (decoded.fault != core::DecodeFault::none)
        report_decode(layout, id, decoded.fault);
    return decoded.parts;
}

Datum decode(FunctionCallInfo fcinfo, Oid generator) {
    const core::Layout &layout = layout_of(generator, fcinfo->flinfo->fn_oid);
    const core::Parts parts = parts_of(layout, PG_GETARG_INT64(0));
    TupleDesc desc;
    if (get_call_result_type(fcinfo, nullptr, &desc) != TYPEFUNC_COMPOSITE)
        elog(ERROR, "uid_decode must return a row");
    Datum values[] = {
        TimestampTzGetDatum(to_timestamptz(core::start_of(layout, parts.tick))),
        Int32GetDatum(static_cast<int32>(parts.datacenter)),
        Int32GetDatum(static_cast<int32>(parts.worker)),
        Int32GetDatum(static_cast<int32>(parts.sequence)),
    };
    bool nulls[lengthof(values)] = {};
    return HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(desc), values, nulls));
}

Datum encode(FunctionCallInfo fcinfo, Oid generator) {
    const core::Layout &layout = layout_of(generator, fcinfo->flinfo->fn_oid);
    const TimestampTz time = PG_GETARG_TIMESTAMPTZ(0);
    // No instant of a layout is that far away, so an infinite time is out of range like any other.
    const int64_t tick = TIMESTAMP_NOT_FINITE(time) || time > to_timestamptz(core::max_instant_us)
                             ? -1
                             : core::tick_at(layout, to_unix_us(time));
    const core::Parts parts = {tick, PG_GETARG_INT32(1), PG_GETARG_INT32(2), PG_GETARG_INT32(3)};
    const core::Encoded encoded = core::encode(layout, parts);
    if (encoded.fault != core::EncodeFault::none)
        report_encode(layout, parts, encoded.fault);
    return Int64GetDatum(encoded.id);
}

Datum timestamp_of(FunctionCallInfo fcinfo, Oid generator) {
    const core::Layout &layout = layout_of(generator, fcinfo->flinfo->fn_oid);
    return TimestampTzGetDatum(to_timestamptz(core::start_of(layout, parts_of(layout, PG_GETARG_INT64(0)).tick)));
}

} // namespace
} // namespace uidgen::pg

using namespace uidgen::pg;

extern "C" {

UIDGEN_SQL_FUNCTION(uid_decode_default);
UIDGEN_SQL_FUNCTION(uid_decode_of);
UIDGEN_SQL_FUNCTION(uid_encode_default);
UIDGEN_SQL_FUNCTION(uid_encode_of);
UIDGEN_SQL_FUNCTION(uid_timestamp_default);
UIDGEN_SQL_FUNCTION(uid_timestamp_of);

Datum uid_decode_default(PG_FUNCTION_ARGS) { return decode(fcinfo, the_default); }
Datum uid_decode_of(PG_FUNCTION_ARGS) { return decode(fcinfo, named(PG_GETARG_OID(1))); }
Datum uid_encode_default(PG_FUNCTION_ARGS) { return encode(fcinfo, the_default); }
Datum uid_encode_of(PG_FUNCTION_ARGS) { return encode(fcinfo, named(PG_GETARG_OID(4))); }
Datum uid_timestamp_default(PG_FUNCTION_ARGS) { return timestamp_of(fcinfo, the_default); }
Datum uid_timestamp_of(PG_FUNCTION_ARGS) { return timestamp_of(fcinfo, named(PG_GETARG_OID(1))); }
}
