#include "time_source.hpp"

namespace uidgen::pg {

void sleep_for(int64_t us, uint32 event) {
    (void)WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH, wait_ms(us), event);
    ResetLatch(MyLatch);
    CHECK_FOR_INTERRUPTS();
}

} // namespace uidgen::pg
