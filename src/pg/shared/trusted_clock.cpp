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
        trusted->offset_us.store(trusted->at_start_us, std::memory_order_relaxed);
    }
    LWLockRelease(AddinShmemInitLock);
}

// Relaxed: the offset guards no other data.
int64_t trusted_clock_offset_us() { return trusted->offset_us.load(std::memory_order_relaxed); }
bool trust_clock_offset(int64_t before_us, int64_t offset_us) {
    return trusted->offset_us.compare_exchange_strong(before_us, offset_us, std::memory_order_relaxed);
}

int64_t clock_moved_us() { return clock_offset_us() - trusted->at_start_us; }

} // namespace uidgen::pg
