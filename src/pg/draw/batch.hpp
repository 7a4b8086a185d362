// Batches: many values taken before the first is returned, as rows or as an array.
#pragma once

#include "core/layout.hpp"
#include "session/session.hpp"

namespace uidgen::pg {

// A run stands for first, first + increment, ...; positions when it has a encoder, else values.
struct BatchRun {
    uint64_t first;
    uint64_t increment;
    uint64_t count;
    bool has_encoder;
    core::IdEncoder encoder;
};

struct Batch {
    BatchRun *runs;
    int used;
    int capacity;
    int at;          // the run being returned
    uint64_t offset; // within it
};

void batch_add(Batch *batch, const BatchRun &run);
int64_t batch_last(const Batch *batch); // of a batch that is not empty

// What a batch draws from, given the call: attaches, then fills the batch with `count` values.
using DrawBatch = void (*)(FunctionCallInfo fcinfo, Batch *batch, uint64_t count);

// The whole of a set-returning entry point, and of one that returns bigint[]. The count is the argument of that
// number; negative ones are refused.
Datum return_rows(FunctionCallInfo fcinfo, int count_argument, DrawBatch draw);
Datum return_array(FunctionCallInfo fcinfo, int count_argument, DrawBatch draw);

} // namespace uidgen::pg
