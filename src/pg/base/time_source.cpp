#include "time_source.hpp"

#include "compat.hpp"

namespace uidgen::pg {

static long ms_of(int64_t us) { return static_cast<long>((us + us_per_ms - 1) / us_per_ms); }

void sleep_for(int64_t us, uint32 event) {
    (void)WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH, ms_of(us), event);
    ResetLatch(MyLatch);
    CHECK_FOR_INTERRUPTS();
}

void wait_as_registrar(WaitingSocket *sockets, int count, int64_t us) {
    auto *ready = static_cast<WaitEvent *>(palloc(sizeof(WaitEvent) * static_cast<Size>(count + 1)));
    WaitEventSet *set = new_wait_event_set(count + 2);
    AddWaitEventToSet(set, WL_LATCH_SET, PGINVALID_SOCKET, MyLatch, nullptr);
    AddWaitEventToSet(set, WL_EXIT_ON_PM_DEATH, PGINVALID_SOCKET, nullptr, nullptr);
    for (int i = 0; i < count; i++) {
        sockets[i].ready = false;
        AddWaitEventToSet(set, sockets[i].events, sockets[i].socket, nullptr, &sockets[i]);
    }
    const int happened = WaitEventSetWait(set, ms_of(us), ready, count + 1, wait_event("UidgenRegistrar"));
    for (int i = 0; i < happened; i++)
        if ((ready[i].events & WL_LATCH_SET) != 0)
            ResetLatch(MyLatch);
        else
            static_cast<WaitingSocket *>(ready[i].user_data)->ready = true;
    FreeWaitEventSet(set);
    pfree(ready);
    CHECK_FOR_INTERRUPTS();
}

} // namespace uidgen::pg
