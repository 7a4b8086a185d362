// Ids: the entry points that draw them, and those that compute with them.

#include "array.hpp"
#include "generator/draw.hpp"
#include "session/names.hpp"
#include "config/label.hpp"
#include "core/clock_policy.hpp"
#include "core/id_forms.hpp"
#include "node/worker_node.hpp"

namespace uidgen::pg {
namespace {

// Keeps it for uid_last(), in the session's memory.
Datum return_id(int64_t id) {
    last_id = id;
    return Int64GetDatum(id);
}

// The entry of the generator that is the first argument, else of the default one (open_default()), opened under
// RowExclusiveLock (open_entry()).
SessionEntry *open_generator(FunctionCallInfo fcinfo, bool is_named) {
    return is_named ? open_entry(PG_GETARG_OID(0), SlotKind::generator) : open_default();
}

// From an open entry: by its window, else by draw_ids(), which moves the word, and may write a lease, flush or wait.
// Keeps the id for uid_last(). An entry that was opened again may still have its window. So transactions of one call
// each use it too.
Datum draw_one(SessionEntry *entry) {
    int64_t id;
    if (draw_next<SlotKind::generator>(entry, GetUserId(), &id))
        return return_id(id);
    const Drawn drawn = draw_ids(entry, 1);
    return return_id(core::encode(drawn.encoder, drawn.run.first));
}

// Opens the entry (open_default()), under RowExclusiveLock, then draw_one(). Not inlined, as the next one, so that the
// fast path has fewer registers to save.
[[gnu::noinline]] Datum next_default_id() { return draw_one(open_default()); }
// Opens the entry of the argument, under RowExclusiveLock, then draw_one().
[[gnu::noinline]] Datum next_id_of(FunctionCallInfo fcinfo) {
    last_used.generator = open_entry(PG_GETARG_OID(0), SlotKind::generator);
    return draw_one(last_used.generator);
}

// A DrawSome, from an open entry: by draw_ids(), which moves the word, and may write a lease, flush or wait.
uint64_t draw_some_ids(SessionEntry *entry, uint64_t want, int64_t *out) {
    const Drawn drawn = draw_ids(entry, want);
    for (uint64_t i = 0; i < drawn.run.count; i++)
        out[i] = core::encode(drawn.encoder, drawn.run.first + i);
    return drawn.run.count;
}

// ---------------------------------------------------------------------------------------------------------
// Functions that only compute. They need no shared memory, so they work where no id can be drawn: without preloading,
// and on a standby.
// ---------------------------------------------------------------------------------------------------------

// The layout used last, of a named generator or of the default one.
struct KeptLayout {
    uint64_t as_of; // of definition_changes; 0: never up to date
    Oid generator;  // InvalidOid: the default one
    core::Layout layout;
};
KeptLayout kept = {};

// The layout of the generator that is an argument (NULL: the default one), as of its last change, until the next call:
// by its label, which this session keeps. No lock on the generator, and no slot. Null if an argument before it is NULL:
// the functions are not STRICT, because the generator may be NULL.
const core::Layout *layout_argument(FunctionCallInfo fcinfo, int argument) {
    if (std::any_of(fcinfo->args, fcinfo->args + argument, [](const NullableDatum &a) { return a.isnull; }))
        return nullptr;
    const bool is_named = !PG_ARGISNULL(argument);
    const Oid generator = is_named ? PG_GETARG_OID(argument) : InvalidOid;
    if (is_named && !OidIsValid(generator))
        report_not_a_generator(generator);
    if (kept.as_of == definition_changes && kept.generator == generator)
        return &kept.layout;
    core::Layout layout = {};
    const uint64_t as_of = read_unchanged([&] {
        const Oid sequence = is_named ? generator : read_default_generator();
        watch_sequence(sequence);
        layout = read_generator_config(sequence).layout;
    });
    kept = {.as_of = as_of, .generator = generator, .layout = layout};
    return &kept.layout;
}

// Error if it is not one of the layout.
void check_id(const core::Layout &layout, int64_t id) {
    const int64_t largest = core::largest(core::id_bits(layout));
    if (!core::is_id_of(layout, id))
        ereport(ERROR, (errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE),
                        errmsg("value %lld is not an id of this generator", static_cast<long long>(id)),
                        errdetail("Its ids are from 0 to %lld.", static_cast<long long>(largest)),
                        errhint("Pass the generator that issued the id as the second argument.")));
}

// The parts of the id that is the first argument; error if it is not of the layout. False: it is below every id.
bool find_parts(FunctionCallInfo fcinfo, const core::Layout &layout, core::Parts *parts) {
    const int64_t id = PG_GETARG_INT64(0);
    check_id(layout, id);
    *parts = core::decode(layout, id);
    return !core::precedes_every_id(core::time_field(layout), id);
}

// Error if a part does not fit its field.
void check_parts(const core::Layout &layout, const core::Parts &parts) {
    const struct {
        const char *name;
        int64_t value;
        int32_t bits;
    } fields[] = {
        {"datacenter_id", parts.datacenter, layout.datacenter_bits},
        {"worker_id", parts.worker, layout.worker_bits},
        {"sequence", parts.sequence, layout.sequence_bits},
    };
    if (parts.tick < 0 || parts.tick > core::largest(layout.time_bits))
        ereport(ERROR, (errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE),
                        errmsg("value of \"generated_at\" is out of range for the generator's layout"),
                        errhint("Use a timestamp not before %s and before %s.", instant_text(layout.epoch_us),
                                instant_text(core::start_of(layout, core::largest(layout.time_bits) + 1)))));
    for (const auto &field : fields)
        if (field.value < 0 || field.value > core::largest(field.bits))
            ereport(ERROR,
                    (errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE),
                     errmsg("value %lld of \"%s\" is out of range for the generator's layout",
                            static_cast<long long>(field.value), field.name),
                     errhint("Use a number from 0 to %lld.", static_cast<long long>(core::largest(field.bits)))));
}

static_assert(UUID_LEN == 2 * sizeof(uint64_t), "a uuid is two numbers of eight bytes, the first one big-endian");

// The id as a uuid with these random bits.
Datum id_as_uuid(const core::Layout &layout, int64_t id, uint64_t random) {
    const core::Uuid made = core::uuid_of(layout, id, random);
    const uint64_t bytes[] = {pg_hton64(made.high), pg_hton64(made.low)};
    auto *uuid = static_cast<pg_uuid_t *>(palloc(sizeof(pg_uuid_t)));
    memcpy(uuid->data, bytes, sizeof bytes);
    return UUIDPGetDatum(uuid);
}

// 64 bits of the server's cryptographic random number generator. One call of it costs as much as dozens of ids, so it
// fills the pool of this backend. A number is erased when it is used. No process is forked from a backend, so no two
// have the same pool.
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

// The entry that the id came from is still open, so its slot has the id's layout: no lock.
Datum drawn_as_uuid(const SessionEntry *entry, Datum id) {
    return id_as_uuid(generator_of(entry->slot).config.layout, DatumGetInt64(id), strong_random_bits());
}

// No instant of a layout is later than max_instant_us. So what is later, and infinity, is beyond its end like any other
// time.
int64_t to_bounded_unix_us(TimestampTz time) { return to_unix_us(Min(time, to_timestamptz(core::max_instant_us))); }

int64_t lower_bound_at(const core::TimeField &field, TimestampTz time) {
    if (TIMESTAMP_IS_NOBEGIN(time))
        return 0;
    return core::lower_bound(field, to_bounded_unix_us(time) - (fault_is("early_bound") ? field.tick_us - 1 : 0));
}

// From the arguments epoch, tick_us and shift, which begin with the second one; error if one is out of range.
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
    return {.epoch_us = epoch_us, .tick_us = tick_us, .shift = shift, .end = Min(in_calendar, in_id) + 1};
}

} // namespace

// Fast path: one swap of the word in shared memory, without a lock; else next_default_id(). Not STRICT: a test of one
// argument costs less than the executor's loop over all.
UIDGEN_SQL_FUNCTION(uid_next_default) {
    const Oid role = GetUserId();
    int64_t id;
    SessionEntry *entry = last_used.default_generator;
    return likely(draw_next<SlotKind::generator>(entry, role, &id)) ? return_id(id) : next_default_id();
}

// Fast path: one swap of the word in shared memory, without a lock; else next_id_of().
UIDGEN_SQL_FUNCTION(uid_next_of) {
    const Oid role = GetUserId();
    int64_t id;
    if (unlikely(PG_ARGISNULL(0)))
        PG_RETURN_NULL();
    SessionEntry *entry = known_entry<SlotKind::generator>(PG_GETARG_OID(0));
    return likely(draw_next<SlotKind::generator>(entry, role, &id)) ? return_id(id) : next_id_of(fcinfo);
}

// Draws an id, by the fast path or, with the entry opened (open_generator()), by draw_one(), and adds random bits. A
// draw may process invalidations, which clear last_used. So the entry is kept here.
UIDGEN_SQL_FUNCTION(uid_next_uuid) {
    const bool is_named = PG_NARGS() > 0;
    SessionEntry *entry = is_named ? known_entry<SlotKind::generator>(PG_GETARG_OID(0)) : last_used.default_generator;
    int64_t id;
    if (draw_next<SlotKind::generator>(entry, GetUserId(), &id))
        return drawn_as_uuid(entry, return_id(id));
    entry = open_generator(fcinfo, is_named);
    return drawn_as_uuid(entry, draw_one(entry));
}

// Opens the entry (open_generator()), and draws by draw_ids() alone. A call that fails leaves the last id.
UIDGEN_SQL_FUNCTION(uid_next_array) {
    const bool is_named = PG_NARGS() > 1;
    SessionEntry *entry = open_generator(fcinfo, is_named);
    return PointerGetDatum(draw_array(entry, PG_GETARG_INT64(is_named ? 1 : 0), draw_some_ids, &last_id));
}

// From the session's memory.
UIDGEN_SQL_FUNCTION(uid_last) {
    (void)fcinfo;
    if (last_id < 0)
        ereport(ERROR,
                (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                 errmsg("uid_last is not yet defined in this session"), errhint("Draw an id with uid_next() first.")));
    PG_RETURN_INT64(last_id);
}

// By the layout in the generator's label. No lock, no slot.
UIDGEN_SQL_FUNCTION(uid_decode) {
    TupleDesc desc = row_type(fcinfo);
    core::Parts parts;
    const core::Layout *layout = layout_argument(fcinfo, 1);
    if (layout == nullptr || !find_parts(fcinfo, *layout, &parts))
        PG_RETURN_NULL();
    const int64_t backup = fault_is("keep_bit") ? 0 : core::backup_bit(*layout);
    return make_row(desc,
                    {TimestampTzGetDatum(to_timestamptz(core::start_of(*layout, parts.tick))),
                     Int32GetDatum(static_cast<int32>(parts.datacenter)),
                     Int32GetDatum(static_cast<int32>(parts.worker & ~backup)),
                     Int32GetDatum(static_cast<int32>(parts.sequence)), BoolGetDatum((parts.worker & backup) != 0)});
}

// By the layout in the generator's label. No lock, no slot.
UIDGEN_SQL_FUNCTION(uid_encode) {
    const core::Layout *layout = layout_argument(fcinfo, 4);
    if (layout == nullptr)
        PG_RETURN_NULL();
    const TimestampTz time = PG_GETARG_TIMESTAMPTZ(0);
    const int64_t tick = TIMESTAMP_IS_NOBEGIN(time) ? -1 : core::tick_at(*layout, to_bounded_unix_us(time));
    const core::Parts parts = {
        .tick = tick, .datacenter = PG_GETARG_INT32(1), .worker = PG_GETARG_INT32(2), .sequence = PG_GETARG_INT32(3)};
    check_parts(*layout, parts);
    return Int64GetDatum(core::encode(*layout, parts));
}

// By the layout in the generator's label. No lock, no slot.
UIDGEN_SQL_FUNCTION(uid_timestamp) {
    core::Parts parts;
    const core::Layout *layout = layout_argument(fcinfo, 1);
    if (layout == nullptr || !find_parts(fcinfo, *layout, &parts))
        PG_RETURN_NULL();
    return TimestampTzGetDatum(to_timestamptz(core::start_of(*layout, parts.tick)));
}

// By its arguments alone.
UIDGEN_SQL_FUNCTION(uid_timestamp_fixed) {
    const core::TimeField field = field_of_arguments(fcinfo);
    const int64_t id = PG_GETARG_INT64(0);
    if (id < 0 || id >> field.shift >= field.end)
        ereport(ERROR, (errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE),
                        errmsg("value %lld is not an id of this layout", static_cast<long long>(id)),
                        errhint("Pass the epoch, tick_us and shift of the generator that issued the id.")));
    if (core::precedes_every_id(field, id))
        PG_RETURN_NULL();
    PG_RETURN_TIMESTAMPTZ(to_timestamptz(field.epoch_us + (id >> field.shift) * field.tick_us));
}

// By the layout in the generator's label. No lock, no slot.
UIDGEN_SQL_FUNCTION(uid_lower_bound) {
    const core::Layout *layout = layout_argument(fcinfo, 1);
    if (layout == nullptr)
        PG_RETURN_NULL();
    PG_RETURN_INT64(lower_bound_at(core::time_field(*layout), PG_GETARG_TIMESTAMPTZ(0)));
}

// By its arguments alone.
UIDGEN_SQL_FUNCTION(uid_lower_bound_fixed) {
    PG_RETURN_INT64(lower_bound_at(field_of_arguments(fcinfo), PG_GETARG_TIMESTAMPTZ(0)));
}

// The text of the layout in the generator's label.
UIDGEN_SQL_FUNCTION(uid_layout) { return CStringGetTextDatum(layout_text(*layout_argument(fcinfo, 0))); }

UIDGEN_SQL_FUNCTION(uid_to_base62) {
    const int64_t id = PG_GETARG_INT64(0);
    if (id < 0)
        ereport(ERROR, (errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE),
                        errmsg("cannot convert %lld to base62", static_cast<long long>(id)),
                        errdetail("An id is never negative."), errhint("Use a number from 0 to 9223372036854775807.")));
    char characters[core::short_form_width];
    core::write_short_form(id, characters);
    const int zeros = fault_is("no_zeros") && characters[0] == '0' ? 1 : 0;
    return PointerGetDatum(cstring_to_text_with_len(characters + zeros, core::short_form_width - zeros));
}

UIDGEN_SQL_FUNCTION(uid_from_base62) {
    const text *value = PG_GETARG_TEXT_PP(0);
    const int64_t id = core::read_short_form(VARDATA_ANY(value), VARSIZE_ANY_EXHDR(value));
    if (id == core::no_id)
        ereport(ERROR,
                (errcode(ERRCODE_INVALID_TEXT_REPRESENTATION), errmsg("invalid base62 text: \"%s\"", clipped(value)),
                 errdetail("The digits of base62 are 0 to 9, A to Z and a to z. The largest id is \"AzL8n0Y58m7\"."),
                 errhint("Pass a text that uid_to_base62() has returned.")));
    PG_RETURN_INT64(id);
}

// By the layout in the generator's label. The same id gives the same uuid: its random bits are 0.
UIDGEN_SQL_FUNCTION(uid_to_uuid) {
    const core::Layout *layout = layout_argument(fcinfo, 1);
    if (layout == nullptr)
        PG_RETURN_NULL();
    check_id(*layout, PG_GETARG_INT64(0));
    return id_as_uuid(*layout, PG_GETARG_INT64(0), 0);
}

// By the layout in the generator's label. No lock, no slot.
UIDGEN_SQL_FUNCTION(uid_from_uuid) {
    const core::Layout *layout = layout_argument(fcinfo, 1);
    if (layout == nullptr)
        PG_RETURN_NULL();
    uint64_t bytes[2];
    memcpy(bytes, PG_GETARG_UUID_P(0)->data, sizeof bytes);
    const int64_t id = core::id_of(*layout, {pg_ntoh64(bytes[0]), pg_ntoh64(bytes[1])});
    if (id == core::no_id)
        ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                        errmsg("uuid %s was not made from an id of this generator",
                               DatumGetCString(DirectFunctionCall1(uuid_out, PG_GETARG_DATUM(0)))),
                        errdetail("Its version, time or check bits do not fit the generator's layout."),
                        errhint("Pass the generator that issued the id as the second argument.")));
    PG_RETURN_INT64(id);
}

} // namespace uidgen::pg
