/* What other functions are measured against: a call that does nothing, and one that reads the clock. */
#include "postgres.h"

#include <time.h>

#include "fmgr.h"
#include "replication/syncrep.h"

PG_MODULE_MAGIC;

PG_FUNCTION_INFO_V1(bench_noop);
PG_FUNCTION_INFO_V1(bench_swap);
PG_FUNCTION_INFO_V1(bench_clock);
PG_FUNCTION_INFO_V1(bench_cpu);
PG_FUNCTION_INFO_V1(bench_settle);

Datum bench_noop(PG_FUNCTION_ARGS) { PG_RETURN_INT64(1); }

/* The next value of a word that others may move, and nothing else. */
Datum bench_swap(PG_FUNCTION_ARGS) {
    static uint64 word;
    uint64 seen = __atomic_load_n(&word, __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(&word, &seen, seen + 1, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
    }
    PG_RETURN_INT64((int64)seen);
}

Datum bench_clock(PG_FUNCTION_ARGS) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    PG_RETURN_INT64(now.tv_sec * INT64CONST(1000000000) + now.tv_nsec);
}

/* Processor time that this process has used, in nanoseconds: other processes of a busy machine do not count. */
Datum bench_cpu(PG_FUNCTION_ARGS) {
    struct timespec used;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    PG_RETURN_INT64(used.tv_sec * INT64CONST(1000000000) + used.tv_nsec);
}

/* What the checkpointer does soon after a server's start, for postgres --single, which has none: from then on
 * shared memory says whether commits wait for a standby. */
Datum bench_settle(PG_FUNCTION_ARGS) {
    SyncRepUpdateSyncStandbysDefined();
    PG_RETURN_VOID();
}
