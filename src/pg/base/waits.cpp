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

void wait_as_registrar(WaitingSocket *sockets, int count, int64_t us) {
    static uint32 event = 0;
    const int64_t ms = (us + us_per_ms - 1) / us_per_ms;
    const Size bytes = sizeof(WaitEvent) * static_cast<Size>(count + 1);
    auto *ready = static_cast<WaitEvent *>(palloc(bytes));
    WaitEventSet *set = new_wait_event_set(count + 2);
    AddWaitEventToSet(set, WL_LATCH_SET, PGINVALID_SOCKET, MyLatch, nullptr);
    AddWaitEventToSet(set, WL_EXIT_ON_PM_DEATH, PGINVALID_SOCKET, nullptr, nullptr);
    for (int i = 0; i < count; i++) {
        sockets[i].ready = false;
        AddWaitEventToSet(set, sockets[i].events, sockets[i].socket, nullptr, &sockets[i]);
    }
    const int happened =
        WaitEventSetWait(set, static_cast<long>(ms), ready, count + 1, once(&event, "UidgenRegistrar"));
    for (int i = 0; i < happened; i++)
        if ((ready[i].events & WL_LATCH_SET) != 0)
            ResetLatch(MyLatch);
        else
            static_cast<WaitingSocket *>(ready[i].user_data)->ready = true;
    FreeWaitEventSet(set);
    pfree(ready);
    CHECK_FOR_INTERRUPTS();
}

bool sleep_for_grant(ConditionVariable *changed, int64_t us) {
    static uint32 event = 0;
    const int64_t ms = (us + us_per_ms - 1) / us_per_ms;
    return ConditionVariableTimedSleep(changed, static_cast<long>(ms), once(&event, "UidgenGrant"));
}

void sleep_for_standby(int64_t us) { sleep_through_interrupts(us, WAIT_EVENT_SYNC_REP); }

} // namespace uidgen::pg
