#include "trusted_clock.hpp"

#include "server_state.hpp"

namespace uidgen::pg {

// Relaxed: the offset guards no other data.
int64_t trusted_clock_offset_us() { return server_state->clock.offset_us.load(std::memory_order_relaxed); }
bool trust_clock_offset(int64_t before_us, int64_t offset_us) {
    return server_state->clock.offset_us.compare_exchange_strong(before_us, offset_us, std::memory_order_relaxed);
}

int64_t clock_moved_us() { return clock_offset_us() - server_state->clock.at_start_us; }

} // namespace uidgen::pg
