// uid_decode(), uid_encode(), uid_timestamp(), uid_lower_bound(): arithmetic on ids; uid_layout(). These functions need
// no shared memory. So they work where no id can be drawn: without preloading, and on a standby.

#include "config/layouts.hpp"
#include "base/errors.hpp"
#include "base/time_source.hpp"
#include "core/clock_policy.hpp"
#include "node/worker_node.hpp"

namespace uidgen::pg {
namespace {

Datum decode(FunctionCallInfo fcinfo, Oid generator) {
    // First, because the layout may wait until another session has dropped this function and created it again.
    TupleDesc desc;
    if (get_call_result_type(fcinfo, nullptr, &desc) != TYPEFUNC_COMPOSITE)
        elog(ERROR, "uid_decode must return a row");
    const core::Layout &layout = layout_of(generator);
    const core::Parts parts = parts_of(layout, PG_GETARG_INT64(0));
    if (core::precedes_every_id(core::time_field(layout), PG_GETARG_INT64(0)))
        PG_RETURN_NULL();
    Datum values[] = {
        TimestampTzGetDatum(to_timestamptz(core::start_of(layout, parts.tick))),
        Int32GetDatum(static_cast<int32>(parts.datacenter)),
        Int32GetDatum(static_cast<int32>(parts.worker & ~core::backup_bit(layout))),
        Int32GetDatum(static_cast<int32>(parts.sequence)),
        BoolGetDatum((parts.worker & core::backup_bit(layout)) != 0),
    };
    bool nulls[lengthof(values)] = {};
    return HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(desc), values, nulls));
}

// No instant of a layout is later than max_instant_us. So what is later, and infinity, is beyond its end like any other
// time.
int64_t to_bounded_unix_us(TimestampTz time) { return to_unix_us(Min(time, to_timestamptz(core::max_instant_us))); }

Datum encode(FunctionCallInfo fcinfo, Oid generator) {
    const core::Layout &layout = layout_of(generator);
    const TimestampTz time = PG_GETARG_TIMESTAMPTZ(0);
    const int64_t tick = TIMESTAMP_IS_NOBEGIN(time) ? -1 : core::tick_at(layout, to_bounded_unix_us(time));
    const core::Parts parts = {tick, PG_GETARG_INT32(1), PG_GETARG_INT32(2), PG_GETARG_INT32(3)};
    const core::Encoded encoded = core::encode(layout, parts);
    if (encoded.fault != core::EncodeFault::none)
        report_encode(layout, parts, encoded.fault);
    return Int64GetDatum(encoded.id);
}

Datum timestamp_of(FunctionCallInfo fcinfo, Oid generator) {
    const core::Layout &layout = layout_of(generator);
    const core::Parts parts = parts_of(layout, PG_GETARG_INT64(0));
    if (core::precedes_every_id(core::time_field(layout), PG_GETARG_INT64(0)))
        PG_RETURN_NULL();
    return TimestampTzGetDatum(to_timestamptz(core::start_of(layout, parts.tick)));
}

int64_t lower_bound_at(const core::TimeField &field, TimestampTz time) {
    return TIMESTAMP_IS_NOBEGIN(time) ? 0 : core::lower_bound(field, to_bounded_unix_us(time));
}

Datum lower_bound(FunctionCallInfo fcinfo, Oid generator) {
    const core::TimeField field = core::time_field(layout_of(generator));
    PG_RETURN_INT64(lower_bound_at(field, PG_GETARG_TIMESTAMPTZ(0)));
}

// From the arguments epoch, tick_us and shift, which begin with the second one.
core::TimeField field_of_arguments(FunctionCallInfo fcinfo) {
    const TimestampTz epoch = PG_GETARG_TIMESTAMPTZ(1);
    const int64_t tick_us = PG_GETARG_INT64(2);
    const int32_t shift = PG_GETARG_INT32(3);
    const int64_t epoch_us = TIMESTAMP_NOT_FINITE(epoch) ? -1 : to_unix_us(epoch);
    if (epoch_us < 0 || epoch_us > core::max_instant_us)
        report_generator_field("epoch", timestamptz_to_str(epoch),
                               "Use a timestamp not before 1970-01-01 00:00:00+00.");
    if (tick_us < 1 || tick_us > core::max_tick_us)
        report_generator_field("tick_us", psprintf("%lld", static_cast<long long>(tick_us)),
                               "Use a number from 1 to 3600000000.");
    if (shift < 0 || shift >= core::max_id_bits)
        report_generator_field("shift", psprintf("%d", shift),
                               "Use a number from 0 to 62, the sum of datacenter_bits, worker_bits and sequence_bits.");
    const int64_t in_calendar = (core::max_instant_us - epoch_us) / tick_us;
    const int64_t in_id = PG_INT64_MAX >> shift;
    return {epoch_us, tick_us, shift, Min(in_calendar, in_id) + 1};
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

UIDGEN_SQL_FUNCTION(uid_timestamp_fixed);
UIDGEN_SQL_FUNCTION(uid_lower_bound_default);
UIDGEN_SQL_FUNCTION(uid_lower_bound_of);
UIDGEN_SQL_FUNCTION(uid_layout);
UIDGEN_SQL_FUNCTION(uid_lower_bound_fixed);

Datum uid_decode_default(PG_FUNCTION_ARGS) { return decode(fcinfo, the_default); }
Datum uid_decode_of(PG_FUNCTION_ARGS) { return decode(fcinfo, named(PG_GETARG_OID(1))); }
Datum uid_encode_default(PG_FUNCTION_ARGS) { return encode(fcinfo, the_default); }
Datum uid_encode_of(PG_FUNCTION_ARGS) { return encode(fcinfo, named(PG_GETARG_OID(4))); }
Datum uid_timestamp_default(PG_FUNCTION_ARGS) { return timestamp_of(fcinfo, the_default); }
Datum uid_timestamp_of(PG_FUNCTION_ARGS) { return timestamp_of(fcinfo, named(PG_GETARG_OID(1))); }

Datum uid_layout(PG_FUNCTION_ARGS) { return CStringGetTextDatum(layout_text(layout_of(named(PG_GETARG_OID(0))))); }

Datum uid_timestamp_fixed(PG_FUNCTION_ARGS) {
    const uidgen::core::TimeField field = field_of_arguments(fcinfo);
    const int64_t id = PG_GETARG_INT64(0);
    if (id < 0 || id >> field.shift >= field.end)
        ereport(ERROR, (errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE),
                        errmsg("value %lld is not an id of this layout", static_cast<long long>(id)),
                        errhint("Pass the epoch, tick_us and shift of the generator that issued the id.")));
    if (uidgen::core::precedes_every_id(field, id))
        PG_RETURN_NULL();
    PG_RETURN_TIMESTAMPTZ(to_timestamptz(field.epoch_us + (id >> field.shift) * field.tick_us));
}

Datum uid_lower_bound_default(PG_FUNCTION_ARGS) { return lower_bound(fcinfo, the_default); }
Datum uid_lower_bound_of(PG_FUNCTION_ARGS) { return lower_bound(fcinfo, named(PG_GETARG_OID(1))); }
Datum uid_lower_bound_fixed(PG_FUNCTION_ARGS) {
    PG_RETURN_INT64(lower_bound_at(field_of_arguments(fcinfo), PG_GETARG_TIMESTAMPTZ(0)));
}
}
