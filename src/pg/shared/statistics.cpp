#include "statistics.hpp"

#include <atomic>

namespace uidgen::pg {
namespace {

constexpr char name[] = "uidgen statistics";

struct Statistics {
    std::atomic<uint64_t> counted[server_stat_count];
};
Statistics *statistics = nullptr;

std::atomic<uint64_t> &counter(ServerStat stat) { return statistics->counted[static_cast<uint32_t>(stat)]; }

} // namespace

void statistics_request_memory() { RequestAddinShmemSpace(sizeof(Statistics)); }

void statistics_attach_memory() {
    bool found = false;
    LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
    statistics = static_cast<Statistics *>(ShmemInitStruct(name, sizeof(Statistics), &found));
    for (uint32_t i = 0; !found && i < server_stat_count; i++)
        statistics->counted[i].store(0, std::memory_order_relaxed);
    LWLockRelease(AddinShmemInitLock);
}

void count(ServerStat stat) { counter(stat).fetch_add(1, std::memory_order_relaxed); }
uint64_t counted(ServerStat stat) { return counter(stat).load(std::memory_order_relaxed); }

} // namespace uidgen::pg
