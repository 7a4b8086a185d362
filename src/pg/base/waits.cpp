#include "waits.hpp"

#include "compat.hpp"
#include "time_source.hpp"

namespace uidgen::pg {

namespace {

void sleep_through_interrupts(int64_t us, uint32 event) {
    const int64_t ms = (us + us_per_ms - 1) / us_per_ms;
    (void)WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH, static_cast<long>(ms), event);
    ResetLatch(MyLatch);
}

void sleep_for(int64_t us, uint32 event) {
    sleep_through_interrupts(us, event);
    CHECK_FOR_INTERRUPTS();
}

// Registers the name at the first wait.
uint32 once(uint32 *event, const char *name) {
    if (*event == 0)
        *event = wait_event(name);
    return *event;
}

} // namespace

void sleep_for_clock(int64_t us) {
    static uint32 event = 0;
    sleep_for(us, once(&event, "UidgenClock"));
}

void sleep_for_ring(int64_t us) {
    static uint32 event = 0;
    sleep_for(us, once(&event, "UidgenRing"));
}

void sleep_as_refiller(int64_t us) {
    static uint32 event = 0;
    sleep_for(us, once(&event, "UidgenRefiller"));
}

uint32 wait_as_registrar(pgsocket socket, uint32 events, int64_t us) {
    static uint32 event = 0;
    const int64_t ms = (us + us_per_ms - 1) / us_per_ms;
    const int wanted = static_cast<int>(events) | WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH;
    const int ready =
        WaitLatchOrSocket(MyLatch, wanted, socket, static_cast<long>(ms), once(&event, "UidgenRegistrar"));
    if ((ready & WL_LATCH_SET) != 0)
        ResetLatch(MyLatch);
    CHECK_FOR_INTERRUPTS();
    return static_cast<uint32>(ready);
}

bool sleep_for_grant(ConditionVariable *changed, int64_t us) {
    static uint32 event = 0;
    const int64_t ms = (us + us_per_ms - 1) / us_per_ms;
    return ConditionVariableTimedSleep(changed, static_cast<long>(ms), once(&event, "UidgenGrant"));
}

void sleep_for_standby(int64_t us) { sleep_through_interrupts(us, WAIT_EVENT_SYNC_REP); }

} // namespace uidgen::pg
