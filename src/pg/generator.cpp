// uid_next(), uid_next_batch(), uid_last(): the entry points that draw ids.

#include "attach.hpp"
#include "config_table.hpp"
#include "drop_hooks.hpp"
#include "lease.hpp"
#include "reserve.hpp"
#include "time_source.hpp"

namespace uidgen::pg {
namespace {

int64_t last_id = -1; // what uid_last() returns; ids are never negative

// The session's entry of the default generator; null: look it up.
Attached *default_entry = nullptr;
// Relcache changes of uid_generator (a new extension, another default) end default_entry.
Oid default_table = InvalidOid;

void generator_table_invalidated(Datum, Oid relation) {
    if (relation == default_table || !OidIsValid(relation))
        default_entry = nullptr;
}

Attached *attach_default(Oid function) {
    if (default_entry != nullptr)
        return attach(default_entry->sequence, SlotKind::generator, function);
    if (!slots_exist())
        return attach(InvalidOid, SlotKind::generator, function); // reports
    static bool registered = false;
    if (!registered) {
        CacheRegisterRelcacheCallback(generator_table_invalidated, 0);
        registered = true;
    }
    const Oid schema = schema_of_function(function);
    default_table = extension_table(schema, "uid_generator");
    Attached *a = attach(read_default_generator(schema), SlotKind::generator, function);
    default_entry = a;
    return a;
}

// A position from the window, if the clock is still in its tick and the word has room below its limit.
inline core::Run take_in_window(const Attached *a) {
    const Window &window = a->window;
    // One comparison for both ways out of the tick: a clock that went back gives a huge difference.
    const auto since = static_cast<uint64_t>(wall_clock_ns() - window.from_ns);
    if (unlikely(since >= window.length_ns))
        return {0, 0};
    return a->slot->generator.ticks.take(window.floor, window.limit, 1);
}

inline Datum hand_out(const Attached *a, uint64_t position) {
    last_id = core::join(a->window.shape, position);
    return Int64GetDatum(last_id);
}

// What next_id() leaves out: a window of another durability, no window, no room.
[[gnu::noinline]] Datum next_id_slowly(Attached *a) {
    core::Run run = {0, 0};
    if (a->window.level == wanted_durability())
        run = take_in_window(a);
    if (run.count == 0)
        run = draw(a, 1);
    return hand_out(a, run.first);
}

// The common case, in few instructions: the caller's rights were checked in this transaction, and no standby
// is awaited, so a window of any durability will do.
inline bool next_id(const Attached *a, Oid role, Datum *id) {
    if (unlikely(a == nullptr) || !attached(a, role) || unlikely(!surely_no_standby_is_awaited()))
        return false;
    const core::Run run = take_in_window(a);
    if (unlikely(run.count == 0))
        return false;
    *id = hand_out(a, run.first);
    return true;
}

// A batch: runs of consecutive positions, all taken before the first id is returned.
struct Batch {
    core::Run *runs;
    int used;
    int capacity;
    core::Shape shape;
    int at;          // the run being returned
    uint64_t offset; // within it
};

void add_run(Batch *batch, core::Run run) {
    if (batch->used == batch->capacity) {
        batch->capacity *= 2;
        batch->runs = static_cast<core::Run *>(
            repalloc(batch->runs, static_cast<Size>(batch->capacity) * sizeof(core::Run)));
    }
    batch->runs[batch->used++] = run;
}

Batch *draw_batch(Attached *a, int32 count) {
    constexpr int first_capacity = 4;
    auto *batch = static_cast<Batch *>(palloc0(sizeof(Batch)));
    batch->capacity = first_capacity;
    batch->runs = static_cast<core::Run *>(palloc(first_capacity * sizeof(core::Run)));
    for (auto left = static_cast<uint64_t>(count); left > 0;) {
        const core::Run run = draw(a, left);
        add_run(batch, run);
        left -= run.count;
    }
    batch->shape = a->window.shape;
    if (batch->used > 0) {
        const core::Run &final_run = batch->runs[batch->used - 1];
        hand_out(a, final_run.first + final_run.count - 1);
    }
    return batch;
}

Datum return_batch(FunctionCallInfo fcinfo, Attached *(*attach_to)(FunctionCallInfo), int count_argument) {
    if (SRF_IS_FIRSTCALL()) {
        const int32 count = PG_GETARG_INT32(count_argument);
        if (count < 0)
            ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                            errmsg("count %d of a batch is negative", count), errhint("Give a count of 0 or more.")));
        Attached *a = attach_to(fcinfo);
        FuncCallContext *context = SRF_FIRSTCALL_INIT();
        MemoryContext caller = MemoryContextSwitchTo(context->multi_call_memory_ctx);
        context->user_fctx = draw_batch(a, count);
        MemoryContextSwitchTo(caller);
    }
    FuncCallContext *context = SRF_PERCALL_SETUP();
    auto *batch = static_cast<Batch *>(context->user_fctx);
    if (batch->at == batch->used)
        SRF_RETURN_DONE(context);
    const core::Run &run = batch->runs[batch->at];
    const int64_t id = core::join(batch->shape, run.first + batch->offset);
    if (++batch->offset == run.count) {
        batch->at++;
        batch->offset = 0;
    }
    SRF_RETURN_NEXT(context, Int64GetDatum(id));
}

} // namespace
} // namespace uidgen::pg

using namespace uidgen::pg;

extern "C" {

UIDGEN_SQL_FUNCTION(uid_next_default);
UIDGEN_SQL_FUNCTION(uid_next_of);
UIDGEN_SQL_FUNCTION(uid_next_batch_default);
UIDGEN_SQL_FUNCTION(uid_next_batch_of);
UIDGEN_SQL_FUNCTION(uid_last);

// In both, GetUserId() comes first: fewer registers to save around the only call of the common case but the
// clock's.

Datum uid_next_default(PG_FUNCTION_ARGS) {
    const Oid role = GetUserId();
    Datum id;
    if (likely(next_id(default_entry, role, &id)))
        return id;
    return next_id_slowly(attach_default(fcinfo->flinfo->fn_oid));
}

Datum uid_next_of(PG_FUNCTION_ARGS) {
    const Oid role = GetUserId();
    const Oid generator = PG_GETARG_OID(0);
    auto *a = static_cast<Attached *>(fcinfo->flinfo->fn_extra); // of the previous call by this expression
    Datum id;
    if (likely(a != nullptr && a->sequence == generator) && likely(next_id(a, role, &id)))
        return id;
    a = attach(generator, SlotKind::generator, fcinfo->flinfo->fn_oid);
    fcinfo->flinfo->fn_extra = a;
    return next_id_slowly(a);
}

// A set-returning function keeps its state in fn_extra, so these attach anew for each batch.
Datum uid_next_batch_default(PG_FUNCTION_ARGS) {
    return return_batch(fcinfo, [](FunctionCallInfo call) { return attach_default(call->flinfo->fn_oid); }, 0);
}

Datum uid_next_batch_of(PG_FUNCTION_ARGS) {
    return return_batch(
        fcinfo,
        [](FunctionCallInfo call) {
            return attach(DatumGetObjectId(call->args[0].value), SlotKind::generator, call->flinfo->fn_oid);
        },
        1);
}

Datum uid_last(PG_FUNCTION_ARGS) {
    (void)fcinfo;
    if (last_id < 0)
        ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                        errmsg("uid_last is not yet defined in this session"),
                        errhint("Draw an id with uid_next() first.")));
    PG_RETURN_INT64(last_id);
}
}
