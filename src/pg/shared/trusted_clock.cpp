#include "trusted_clock.hpp"

#include <atomic>

#include "base/time_source.hpp"

namespace uidgen::pg {
namespace {

constexpr char name[] = "uidgen trusted clock";

struct TrustedClock {
    std::atomic<int64_t> offset_us;
    int64_t at_start_us; // never changes
};
TrustedClock *trusted = nullptr;

} // namespace

void trusted_clock_request_memory() { RequestAddinShmemSpace(sizeof(*trusted)); }

void trusted_clock_attach_memory() {
    bool found = false;
    LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
    trusted = static_cast<TrustedClock *>(ShmemInitStruct(name, sizeof(*trusted), &found));
    if (!found) {
        trusted->at_start_us = clock_offset_us();
        trust_clock_offset(trusted->at_start_us);
    }
    LWLockRelease(AddinShmemInitLock);
}

// Relaxed: the offset guards no other data.
int64_t trusted_clock_offset_us() { return trusted->offset_us.load(std::memory_order_relaxed); }
void trust_clock_offset(int64_t offset_us) { trusted->offset_us.store(offset_us, std::memory_order_relaxed); }

bool clock_is_as_at_start() {
    const int64_t change_us = clock_offset_us() - trusted->at_start_us;
    return change_us < suspicious_jump_us && change_us > -suspicious_jump_us;
}

} // namespace uidgen::pg
