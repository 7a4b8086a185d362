// uid_next(), uid_next_batch(), uid_next_array(), uid_last(): the entry points that draw ids.

#include "attach.hpp"
#include "batch.hpp"
#include "cached.hpp"
#include "config_table.hpp"
#include "errors.hpp"
#include "lease.hpp"
#include "reserve.hpp"
#include "time_source.hpp"

namespace uidgen::pg {
namespace {

// The default generator, as this session knows it; InvalidOid: look it up.
Oid default_sequence = InvalidOid;
// Relcache changes of uid_generator (a new extension, another default) end default_sequence.
Oid default_table = InvalidOid;
uint64_t default_invalidations = 0;
// A look-up ends at some time even if each hears of something (debug_discard_caches).
constexpr int most_rounds = 8;

void generator_table_invalidated(Datum, Oid relation) {
    if (relation == default_table || !OidIsValid(relation)) {
        default_invalidations++;
        default_sequence = InvalidOid;
        generator_front.default_role = cached_front.default_role = shared_front.default_role = InvalidOid;
    }
}

void look_up_default(Oid function) {
    static bool registered = false;
    if (!registered) {
        CacheRegisterRelcacheCallback(generator_table_invalidated, 0);
        registered = true;
    }
    const Oid schema = schema_of_function(function);
    default_table = extension_table(schema, "uid_generator");
    Oid found = InvalidOid;
    uint64_t seen = 0;
    int rounds = 0;
    do { // a change that is heard of during the look-up may have come too late for it
        seen = default_invalidations;
        found = read_default_generator(schema);
    } while (seen != default_invalidations && ++rounds < most_rounds);
    default_sequence = found;
}

Attached *attach_default(Oid function) {
    if (!slots_exist())
        return attach(InvalidOid, SlotKind::generator, function); // reports
    if (default_changed_in == transaction_number)
        report_default_changed_here();
    for (int round = 1;; round++) {
        if (default_sequence == InvalidOid)
            look_up_default(function);
        const Oid sequence = default_sequence;
        Attached *a = attach(sequence, SlotKind::generator, function);
        // Taking the lock may have waited for uid_default_set(), and then has heard of it.
        if (likely(sequence == default_sequence) || round == most_rounds)
            return a;
    }
}

// A position from the window, if the clock is still in its tick and the word has room below its limit.
inline core::Run take_in_window(core::TickWord<> *word, const Window &window) {
    // One comparison for both ways out of the tick: a clock that went back gives a huge difference.
    const uint64_t since = wall_clock_ns_modulo() - window.from_ns;
    if (unlikely(since >= window.length_ns))
        return {0, 0};
    return word->take(window.floor, window.limit, 1);
}

inline Datum hand_out(const core::Shape &shape, uint64_t position) {
    last_id = core::join(shape, position);
    return Int64GetDatum(last_id);
}

bool is_cached(const Attached *a) { return a->slot->generator.config.cached.on; }

// What next_at_front() leaves out: another generator, a window of another durability, no window, no room.
Datum next_id(Attached *a) {
    if (is_cached(a)) {
        const Drawn drawn = draw_cached(a, 1);
        bring_cached_to_front(a, drawn, a->sequence == default_sequence);
        return hand_out(drawn.shape, drawn.run.first);
    }
    Drawn drawn = {{0, 0}, a->window.shape};
    if (a->window.level == wanted_durability())
        drawn.run = take_in_window(&a->slot->generator.ticks, a->window);
    if (drawn.run.count == 0)
        drawn = draw(a, 1);
    bring_to_front(a);
    if (a->sequence == default_sequence && generator_front.key != 0)
        generator_front.default_role = GetUserId();
    return hand_out(drawn.shape, drawn.run.first);
}

// The common case, in few instructions: the caller's rights were checked in this transaction, and no standby is
// awaited, so a window of any durability will do.
inline bool next_in_window(StandbyMark no_standby, core::TickWord<> *word, const Window &window, Datum *id) {
    if (unlikely(!surely_no_standby_is_awaited(no_standby)))
        return false;
    const core::Run run = take_in_window(word, window);
    if (unlikely(run.count == 0))
        return false;
    *id = hand_out(window.shape, run.first);
    return true;
}
inline bool next_at_front(Datum *id) {
    return next_in_window(generator_front.no_standby, generator_front.word, generator_front.window, id);
}

// The rest of the two entry points, in functions that they end with a call of: the shortest way through them, that of
// cached mode, has fewest registers to save.
[[gnu::noinline]] Datum next_default_id(FunctionCallInfo fcinfo) {
    return next_id(attach_default(fcinfo->flinfo->fn_oid));
}
[[gnu::noinline]] Datum next_id_of(FunctionCallInfo fcinfo) {
    return next_id(attach(PG_GETARG_OID(0), SlotKind::generator, fcinfo->flinfo->fn_oid));
}

// Of a generator that is not at the front; its next window brings it there.
[[gnu::noinline]] Datum next_id_of_another(FunctionCallInfo fcinfo, uint64_t key) {
    Attached *a = probably_attached(key);
    Datum id;
    if (likely(a != nullptr) && likely(next_in_window(standby_mark(), &a->slot->generator.ticks, a->window, &id)))
        return id;
    return next_id_of(fcinfo);
}

[[gnu::noinline]] Datum next_default_by_clock(FunctionCallInfo fcinfo, Oid role) {
    Datum id;
    if (likely(generator_front.default_role == role) && likely(next_at_front(&id)))
        return id;
    return next_default_id(fcinfo);
}
[[gnu::noinline]] Datum next_by_clock(FunctionCallInfo fcinfo, uint64_t key) {
    Datum id;
    if (unlikely(generator_front.key != key))
        return next_id_of_another(fcinfo, key);
    return likely(next_at_front(&id)) ? id : next_id_of(fcinfo);
}

// From the run in hand; no standby is awaited.
inline bool next_in_run(Datum *id) {
    CachedFront &front = cached_front;
    if (unlikely(front.next_id == front.end_id) || unlikely(!cached_fronts_are_fresh()) ||
        unlikely(!surely_no_standby_is_awaited(front.no_standby)))
        return false;
    last_id = front.next_id;
    front.next_id += front.step;
    *id = Int64GetDatum(last_id);
    return true;
}

// From the run that all share, if nobody else has drawn since. The standby as in next_at_front() of segment.cpp.
inline bool next_in_shared_run(Datum *id, uint64_t *last) {
    SharedFront &front = shared_front;
    *last = front.believed;
    const uint64_t taken = *last + 1;
    if (unlikely(!cached_fronts_are_fresh()) || unlikely(!front.run->take_after(last, taken)) ||
        unlikely(!surely_no_standby_is_awaited(front.no_standby)))
        return false;
    last_id = front.id(taken);
    front.follow(taken);
    *id = Int64GetDatum(last_id);
    return true;
}

// The same when others have drawn since, perhaps from another run; `seen` is what the swap has told.
bool next_behind_others(uint64_t seen, Datum *id) {
    SharedFront &front = shared_front;
    if (!cached_fronts_are_fresh() || !surely_no_standby_is_awaited(front.no_standby))
        return false;
    const core::Run run = front.run->take_as_seen(front.floor, front.length, 1, &seen);
    if (run.count == 0)
        return false;
    *id = hand_out(front.shape, run.first);
    front.follow_another(run.first);
    return true;
}
[[gnu::noinline]] Datum next_default_behind_others(FunctionCallInfo fcinfo, uint64_t seen) {
    Datum id;
    return likely(next_behind_others(seen, &id)) ? id : next_default_id(fcinfo);
}
[[gnu::noinline]] Datum next_id_behind_others(FunctionCallInfo fcinfo, uint64_t seen) {
    Datum id;
    return likely(next_behind_others(seen, &id)) ? id : next_id_of(fcinfo);
}

void draw_ids(Attached *a, Batch *batch, uint64_t count) {
    while (count > 0) {
        const Drawn drawn = is_cached(a) ? draw_cached(a, count) : draw(a, count);
        batch_add(batch, {drawn.run.first, 1, drawn.run.count, true, drawn.shape});
        count -= drawn.run.count;
    }
    if (batch->used > 0)
        last_id = batch_last(batch);
}

// A set-returning function keeps its state in fn_extra, so a batch attaches anew.
void draw_ids_default(FunctionCallInfo fcinfo, Batch *batch, uint64_t count) {
    draw_ids(attach_default(fcinfo->flinfo->fn_oid), batch, count);
}

void draw_ids_of(FunctionCallInfo fcinfo, Batch *batch, uint64_t count) {
    draw_ids(attach(PG_GETARG_OID(0), SlotKind::generator, fcinfo->flinfo->fn_oid), batch, count);
}

} // namespace
} // namespace uidgen::pg

using namespace uidgen::pg;

extern "C" {

UIDGEN_SQL_FUNCTION(uid_next_default);
UIDGEN_SQL_FUNCTION(uid_next_of);
UIDGEN_SQL_FUNCTION(uid_next_batch_default);
UIDGEN_SQL_FUNCTION(uid_next_batch_of);
UIDGEN_SQL_FUNCTION(uid_next_array_default);
UIDGEN_SQL_FUNCTION(uid_next_array_of);
UIDGEN_SQL_FUNCTION(uid_last);

// In both, GetUserId() comes first: fewer registers to save around the only call of the common case but the
// clock's. Not STRICT: a test of one argument costs less than the executor's loop over all. What is likely is what costs least.

Datum uid_next_default(PG_FUNCTION_ARGS) {
    const Oid role = GetUserId();
    Datum id;
    uint64_t last;
    if (shared_front.default_role == role)
        return likely(next_in_shared_run(&id, &last)) ? id : next_default_behind_others(fcinfo, last);
    if (likely(cached_front.default_role == role))
        return likely(next_in_run(&id)) ? id : next_default_id(fcinfo);
    return next_default_by_clock(fcinfo, role);
}

Datum uid_next_of(PG_FUNCTION_ARGS) {
    const Oid role = GetUserId();
    Datum id;
    uint64_t last;
    if (unlikely(PG_ARGISNULL(0)))
        PG_RETURN_NULL();
    const uint64_t key = front_key(role, PG_GETARG_DATUM(0));
    if (shared_front.key == key)
        return likely(next_in_shared_run(&id, &last)) ? id : next_id_behind_others(fcinfo, last);
    if (likely(cached_front.key == key))
        return likely(next_in_run(&id)) ? id : next_id_of(fcinfo);
    return next_by_clock(fcinfo, key);
}

Datum uid_next_batch_default(PG_FUNCTION_ARGS) { return return_rows(fcinfo, 0, draw_ids_default); }
Datum uid_next_batch_of(PG_FUNCTION_ARGS) { return return_rows(fcinfo, 1, draw_ids_of); }
Datum uid_next_array_default(PG_FUNCTION_ARGS) { return return_array(fcinfo, 0, draw_ids_default); }
Datum uid_next_array_of(PG_FUNCTION_ARGS) { return return_array(fcinfo, 1, draw_ids_of); }

Datum uid_last(PG_FUNCTION_ARGS) {
    (void)fcinfo;
    if (last_id < 0)
        ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                        errmsg("uid_last is not yet defined in this session"),
                        errhint("Draw an id with uid_next() first.")));
    PG_RETURN_INT64(last_id);
}
}
