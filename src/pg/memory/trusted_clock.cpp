#include "trusted_clock.hpp"

#include "server_state.hpp"

namespace uidgen::pg {

// Relaxed: the offset guards no other data.
int64_t trusted_clock_offset_us() { return server_state->clock.offset_us.load(std::memory_order_relaxed); }
void trust_clock_offset(int64_t offset_us) {
    server_state->clock.offset_us.store(offset_us, std::memory_order_relaxed);
}

bool clock_is_as_at_start() {
    const int64_t change_us = clock_offset_us() - server_state->clock.at_start_us;
    return change_us < suspicious_jump_us && change_us > -suspicious_jump_us;
}

} // namespace uidgen::pg
