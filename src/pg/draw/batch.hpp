// Batches: many values taken before the first one is returned, as rows or as an array.
#pragma once

#include "core/layout.hpp"
#include "session/session.hpp"

namespace uidgen::pg {

// A run stands for first, first + increment, ...: positions if it has an encoder, else values.
struct BatchRun {
    uint64_t first;
    uint64_t increment;
    uint64_t count;
    bool has_encoder;
    core::IdEncoder encoder;
};

struct Batch {
    BatchRun *runs;
    uint64_t used;
    uint64_t capacity;
    uint64_t at;           // the run being returned
    uint64_t offset;       // within it
    MemoryContext scratch; // that the batch is drawn in; reset after each run
};

void batch_add(Batch *batch, const BatchRun &run);
int64_t batch_last(const Batch *batch); // the batch must not be empty

// How a batch draws, given the call: opens the entry, then fills the batch with `count` values.
using DrawBatch = void (*)(FunctionCallInfo fcinfo, Batch *batch, uint64_t count);

// The whole of an entry point that returns rows, and of one that returns bigint[]. `count_argument` is the number of
// the argument with the count. Negative counts are refused.
Datum return_rows(FunctionCallInfo fcinfo, int count_argument, DrawBatch draw);
Datum return_array(FunctionCallInfo fcinfo, int count_argument, DrawBatch draw);

} // namespace uidgen::pg
