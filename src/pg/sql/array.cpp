#include "array.hpp"

namespace uidgen::pg {
namespace {

void check_count(int64_t count) {
    constexpr int64_t most = (MaxAllocSize - ARR_OVERHEAD_NONULLS(1)) / sizeof(int64_t);
    if (count < 0)
        ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                        errmsg("batch count must not be negative: %lld", static_cast<long long>(count)),
                        errhint("Use a count of 0 or more.")));
    if (count > most)
        ereport(ERROR, (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
                        errmsg("array size exceeds the maximum allowed (%lld)", static_cast<long long>(most)),
                        errhint("Use a smaller count, or draw a value for each row of generate_series().")));
}

// In the current memory context, its values not set yet. construct_array() would copy the values, which may take a GB.
ArrayType *new_array(int64_t count) {
    const Size size = ARR_OVERHEAD_NONULLS(1) + static_cast<Size>(count) * sizeof(int64_t);
    auto *array = static_cast<ArrayType *>(palloc(size));
    SET_VARSIZE(array, size);
    array->ndim = 1;
    array->dataoffset = 0;
    array->elemtype = INT8OID;
    *ARR_DIMS(array) = static_cast<int>(count);
    *ARR_LBOUND(array) = 1;
    return array;
}

// Calls draw(), with its locks and waits, until all values are there. What a draw leaves in memory is of no use any
// more, and a long array takes many draws.
void fill_array(SessionEntry *entry, uint64_t count, DrawSome draw, int64_t *values) {
    MemoryContext scratch = AllocSetContextCreate(CurrentMemoryContext, "uidgen batch", ALLOCSET_DEFAULT_SIZES);
    MemoryContext caller = MemoryContextSwitchTo(scratch);
    for (uint64_t drawn = 0; drawn < count;) {
        drawn += draw(entry, count - drawn, values + drawn);
        CHECK_FOR_INTERRUPTS();
        MemoryContextReset(scratch);
    }
    MemoryContextSwitchTo(caller);
    MemoryContextDelete(scratch);
}

} // namespace

ArrayType *draw_array(SessionEntry *entry, int64_t count, DrawSome draw, int64_t *last) {
    check_count(count);
    if (count == 0)
        return construct_empty_array(INT8OID);
    ArrayType *array = new_array(count);
    auto *values = reinterpret_cast<int64_t *>(ARR_DATA_PTR(array));
    fill_array(entry, static_cast<uint64_t>(count), draw, values);
    *last = values[count - 1];
    return array;
}

} // namespace uidgen::pg
