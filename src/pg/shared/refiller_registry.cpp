#include "refiller_registry.hpp"

#include <atomic>

#include "base/time_source.hpp"

namespace uidgen::pg {
namespace {

constexpr char name[] = "uidgen refiller registry";
constexpr int64_t pause_us = 1000 * us_per_ms;

struct Registry {
    std::atomic<Latch *> refiller;
    std::atomic<int64_t> started_at_us; // on the monotonic clock; 0: a refiller may be started at once
};
Registry *registry = nullptr;

} // namespace

void refiller_registry_request_memory() { RequestAddinShmemSpace(sizeof(Registry)); }

void refiller_registry_attach_memory() {
    bool found = false;
    LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
    registry = static_cast<Registry *>(ShmemInitStruct(name, sizeof(Registry), &found));
    if (!found) {
        registry->refiller.store(nullptr, std::memory_order_relaxed);
        registry->started_at_us.store(0, std::memory_order_relaxed);
    }
    LWLockRelease(AddinShmemInitLock);
}

// Acquire pairs with the release in become_refiller(), so that the latch is seen initialized.
Latch *running_refiller() { return registry->refiller.load(std::memory_order_acquire); }

// Release also in resign_as_refiller(): a caller that sees no refiller sees what the last one wrote before.
bool become_refiller(Latch *latch) {
    Latch *none = nullptr;
    return registry->refiller.compare_exchange_strong(none, latch, std::memory_order_acq_rel,
                                                      std::memory_order_relaxed);
}

void resign_as_refiller(Latch *latch) {
    registry->refiller.compare_exchange_strong(latch, nullptr, std::memory_order_acq_rel, std::memory_order_relaxed);
}

// Relaxed: the time guards no other data, and the swap alone lets one backend through.
bool may_start_refiller(int64_t now_us) {
    int64_t last = registry->started_at_us.load(std::memory_order_relaxed);
    return (last == 0 || now_us - last > pause_us) &&
           registry->started_at_us.compare_exchange_strong(last, now_us, std::memory_order_relaxed);
}

void refiller_found_nothing() { registry->started_at_us.store(0, std::memory_order_relaxed); }

} // namespace uidgen::pg
