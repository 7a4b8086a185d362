#include "batch.hpp"

namespace uidgen::pg {
namespace {

constexpr uint64_t first_capacity = 4;

int64_t value_at(const BatchRun &run, uint64_t offset) {
    const uint64_t value = run.first + offset * run.increment;
    return run.has_encoder ? core::encode(run.encoder, value) : static_cast<int64_t>(value);
}

// The functions of uidgen 0.1.0 take an integer, and a Datum need not extend its sign.
int64 count_argument(FunctionCallInfo fcinfo, int argument) {
    const bool is_integer = get_fn_expr_argtype(fcinfo->flinfo, argument) == INT4OID;
    return is_integer ? PG_GETARG_INT32(argument) : PG_GETARG_INT64(argument);
}

uint64_t checked_count(FunctionCallInfo fcinfo, int argument) {
    const int64 count = count_argument(fcinfo, argument);
    if (count < 0)
        ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                        errmsg("batch count must not be negative: %lld", static_cast<long long>(count)),
                        errhint("Use a count of 0 or more.")));
    return static_cast<uint64_t>(count);
}

Batch *drawn_batch(FunctionCallInfo fcinfo, uint64_t count, DrawBatch draw) {
    auto *batch = static_cast<Batch *>(palloc0(sizeof(Batch)));
    batch->capacity = first_capacity;
    batch->runs = static_cast<BatchRun *>(palloc(first_capacity * sizeof(BatchRun)));
    batch->scratch = AllocSetContextCreate(CurrentMemoryContext, "uidgen batch", ALLOCSET_DEFAULT_SIZES);
    MemoryContext caller = MemoryContextSwitchTo(batch->scratch);
    draw(fcinfo, batch, count);
    MemoryContextSwitchTo(caller);
    MemoryContextDelete(batch->scratch);
    return batch;
}

bool follows(const BatchRun &last, const BatchRun &run) {
    return !run.has_encoder && !last.has_encoder && run.increment == last.increment &&
           run.first == last.first + last.count * last.increment;
}

void grow(Batch *batch) {
    if (2 * batch->capacity * sizeof(BatchRun) > MaxAllocSize)
        ereport(ERROR,
                (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
                 errmsg("batch has more than %llu runs of values", static_cast<unsigned long long>(batch->capacity)),
                 errdetail("The values are not used: they are a gap."), errhint("Use a smaller count.")));
    batch->capacity *= 2;
    batch->runs = static_cast<BatchRun *>(repalloc(batch->runs, batch->capacity * sizeof(BatchRun)));
}

} // namespace

// Values of ranges that follow each other are one run, so that a long batch of a segment needs no more memory than a
// short one. What a draw has left in the scratch context is of no use any more.
void batch_add(Batch *batch, const BatchRun &run) {
    CHECK_FOR_INTERRUPTS();
    MemoryContextReset(batch->scratch);
    if (batch->used > 0 && follows(batch->runs[batch->used - 1], run)) {
        batch->runs[batch->used - 1].count += run.count;
        return;
    }
    if (batch->used == batch->capacity)
        grow(batch);
    batch->runs[batch->used++] = run;
}

int64_t batch_last(const Batch *batch) {
    const BatchRun &run = batch->runs[batch->used - 1];
    return value_at(run, run.count - 1);
}

Datum return_rows(FunctionCallInfo fcinfo, int count_argument, DrawBatch draw) {
    if (SRF_IS_FIRSTCALL()) {
        const uint64_t count = checked_count(fcinfo, count_argument);
        FuncCallContext *context = SRF_FIRSTCALL_INIT();
        MemoryContext caller = MemoryContextSwitchTo(context->multi_call_memory_ctx);
        context->user_fctx = drawn_batch(fcinfo, count, draw);
        MemoryContextSwitchTo(caller);
    }
    FuncCallContext *context = SRF_PERCALL_SETUP();
    auto *batch = static_cast<Batch *>(context->user_fctx);
    if (batch->at == batch->used)
        SRF_RETURN_DONE(context);
    const BatchRun &run = batch->runs[batch->at];
    const int64_t value = value_at(run, batch->offset);
    if (++batch->offset == run.count) {
        batch->at++;
        batch->offset = 0;
    }
    SRF_RETURN_NEXT(context, Int64GetDatum(value));
}

Datum return_array(FunctionCallInfo fcinfo, int count_argument, DrawBatch draw) {
    const uint64_t count = checked_count(fcinfo, count_argument);
    constexpr uint64_t most = (MaxAllocSize - ARR_OVERHEAD_NONULLS(1)) / sizeof(int64_t);
    if (count > most)
        ereport(ERROR, (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
                        errmsg("array size exceeds the maximum allowed (%llu)", static_cast<unsigned long long>(most)),
                        errhint("Use a smaller count, or draw rows with uid_next_batch() or segment_next_batch().")));
    const Batch *batch = drawn_batch(fcinfo, count, draw); // even for 0 values, to check the caller's privilege
    if (count == 0)
        PG_RETURN_ARRAYTYPE_P(construct_empty_array(INT8OID));
    const Size size = ARR_OVERHEAD_NONULLS(1) + count * sizeof(int64_t);
    auto *array = static_cast<ArrayType *>(palloc(size));
    SET_VARSIZE(array, size);
    array->ndim = 1;
    array->dataoffset = 0;
    array->elemtype = INT8OID;
    *ARR_DIMS(array) = static_cast<int>(count);
    *ARR_LBOUND(array) = 1;
    auto *out = reinterpret_cast<int64_t *>(ARR_DATA_PTR(array));
    for (uint64_t i = 0; i < batch->used; i++)
        for (uint64_t offset = 0; offset < batch->runs[i].count; offset++)
            *out++ = value_at(batch->runs[i], offset);
    PG_RETURN_ARRAYTYPE_P(array);
}

} // namespace uidgen::pg
