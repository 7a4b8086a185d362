#include "trusted_clock.hpp"

#include <atomic>

#include "base/time_source.hpp"

namespace uidgen::pg {
namespace {

constexpr char name[] = "uidgen trusted clock";

std::atomic<int64_t> *trusted_offset_us = nullptr;

} // namespace

void trusted_clock_request_memory() { RequestAddinShmemSpace(sizeof(*trusted_offset_us)); }

void trusted_clock_attach_memory() {
    bool found = false;
    LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
    trusted_offset_us = static_cast<std::atomic<int64_t> *>(ShmemInitStruct(name, sizeof(*trusted_offset_us), &found));
    if (!found)
        trust_clock_offset(clock_offset_us());
    LWLockRelease(AddinShmemInitLock);
}

// Relaxed: the offset guards no other data.
int64_t trusted_clock_offset_us() { return trusted_offset_us->load(std::memory_order_relaxed); }
void trust_clock_offset(int64_t offset_us) { trusted_offset_us->store(offset_us, std::memory_order_relaxed); }

} // namespace uidgen::pg
