// uid_next(), uid_next_uuid(), uid_next_array(), uid_last(): the entry points that draw ids.

#include "session/session.hpp"
#include "session/names.hpp"
#include "base/errors.hpp"
#include "config/layouts.hpp"
#include "generator/draw.hpp"

namespace uidgen::pg {
namespace {

Datum hand_out(int64_t id) {
    last_id = id;
    return Int64GetDatum(id);
}

Drawn draw_ids(SessionEntry *e, uint64_t want) {
    return e->slot->generator.config.cached.on ? draw_cached(e, want) : draw(e, want);
}

// An entry that was opened again may still have its window, except in cached mode. So transactions of one call each use
// it too.
Datum draw_one(SessionEntry *e) {
    int64_t id;
    if (e->outlives_transaction && draw_next_id(e, GetUserId(), &id))
        return hand_out(id);
    const Drawn drawn = draw_ids(e, 1);
    return hand_out(core::encode(drawn.encoder, drawn.run.first));
}

// Not inlined, so that the fast path has fewer registers to save.
[[gnu::noinline]] Datum next_default_id() { return draw_one(open_default()); }
[[gnu::noinline]] Datum next_id_of(FunctionCallInfo fcinfo) {
    last_used.generator = open_entry(PG_GETARG_OID(0), SlotKind::generator);
    return draw_one(last_used.generator);
}

// The entry that the id came from is still open, so its slot has the id's layout.
Datum drawn_as_uuid(const SessionEntry *e, Datum id) {
    return id_as_uuid(e->slot->generator.config.layout, DatumGetInt64(id), strong_random_bits());
}

uint64_t draw_some_ids(SessionEntry *e, uint64_t want, int64_t *out) {
    const Drawn drawn = draw_ids(e, want);
    for (uint64_t i = 0; i < drawn.run.count; i++)
        out[i] = core::encode(drawn.encoder, drawn.run.first + i);
    return drawn.run.count;
}

// The last id is that of the last call that did not fail.
Datum next_ids(SessionEntry *e, int64_t count) {
    return PointerGetDatum(draw_array(e, count, draw_some_ids, &last_id));
}

} // namespace
} // namespace uidgen::pg

using namespace uidgen::pg;

extern "C" {

UIDGEN_SQL_FUNCTION(uid_next_default);
UIDGEN_SQL_FUNCTION(uid_next_of);
UIDGEN_SQL_FUNCTION(uid_next_uuid_default);
UIDGEN_SQL_FUNCTION(uid_next_uuid_of);
UIDGEN_SQL_FUNCTION(uid_next_array_default);
UIDGEN_SQL_FUNCTION(uid_next_array_of);
UIDGEN_SQL_FUNCTION(uid_last);

// Not STRICT: a test of one argument costs less than the executor's loop over all.
Datum uid_next_default(PG_FUNCTION_ARGS) {
    const Oid role = GetUserId();
    int64_t id;
    return likely(draw_next_id(last_used.default_generator, role, &id)) ? hand_out(id) : next_default_id();
}

Datum uid_next_of(PG_FUNCTION_ARGS) {
    const Oid role = GetUserId();
    int64_t id;
    if (unlikely(PG_ARGISNULL(0)))
        PG_RETURN_NULL();
    return likely(draw_next_id(generator_entry(PG_GETARG_OID(0)), role, &id)) ? hand_out(id) : next_id_of(fcinfo);
}

// A draw may process invalidations, which clear last_used. So the entry is kept here.
Datum uid_next_uuid_default(PG_FUNCTION_ARGS) {
    SessionEntry *e = last_used.default_generator;
    int64_t id;
    if (draw_next_id(e, GetUserId(), &id))
        return drawn_as_uuid(e, hand_out(id));
    e = open_default();
    return drawn_as_uuid(e, draw_one(e));
}

Datum uid_next_uuid_of(PG_FUNCTION_ARGS) {
    SessionEntry *e = generator_entry(PG_GETARG_OID(0));
    int64_t id;
    if (draw_next_id(e, GetUserId(), &id))
        return drawn_as_uuid(e, hand_out(id));
    e = open_entry(PG_GETARG_OID(0), SlotKind::generator);
    return drawn_as_uuid(e, draw_one(e));
}

Datum uid_next_array_default(PG_FUNCTION_ARGS) { return next_ids(open_default(), PG_GETARG_INT64(0)); }

Datum uid_next_array_of(PG_FUNCTION_ARGS) {
    return next_ids(open_entry(PG_GETARG_OID(0), SlotKind::generator), PG_GETARG_INT64(1));
}

Datum uid_last(PG_FUNCTION_ARGS) {
    (void)fcinfo;
    if (last_id < 0)
        ereport(ERROR,
                (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                 errmsg("uid_last is not yet defined in this session"), errhint("Draw an id with uid_next() first.")));
    PG_RETURN_INT64(last_id);
}
}
