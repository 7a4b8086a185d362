#include "waits.hpp"

#include "compat.hpp"
#include "time_source.hpp"

namespace uidgen::pg {

void sleep_for_clock(int64_t us) {
    static uint32 event = 0;
    if (event == 0)
        event = wait_event("UidgenClock");
    const int64_t ms = (us + us_per_ms - 1) / us_per_ms;
    (void)WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH, static_cast<long>(ms), event);
    ResetLatch(MyLatch);
    CHECK_FOR_INTERRUPTS();
}

} // namespace uidgen::pg
