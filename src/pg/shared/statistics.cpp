#include "statistics.hpp"

#include "base/guarded_struct.hpp"
#include "base/time_source.hpp"

namespace uidgen::pg {
namespace {

constexpr char name[] = "uidgen statistics";

struct Statistics {
    std::atomic<uint64_t> counted[server_stat_count];
    ServerStats at_reset; // guarded by the lock
};
Statistics *statistics = nullptr;
LWLock *lock = nullptr;

// Since the server's start.
ServerStats all_counted() {
    ServerStats now = {slots_counted(), {}, 0};
    for (uint32_t i = 0; i < server_stat_count; i++)
        now.values[i] = statistics->counted[i].load(std::memory_order_relaxed);
    return now;
}

struct Visit {
    void (*visit)(const SlotStats &slot, void *arg);
    void *arg;
};

void visit_one(Slot *slot, void *arg) {
    const auto *to = static_cast<const Visit *>(arg);
    SlotStats now = {slot->key, slot->kind, slot_counted(slot), slot->reset_at_us};
    subtract(&now.stats, slot->at_reset);
    to->visit(now, to->arg);
}

struct Reset {
    SlotKey key; // of all slots, if its sequence is InvalidOid
    int64_t now_us;
};

void reset_one(Slot *slot, void *arg) {
    const auto *reset = static_cast<const Reset *>(arg);
    const SlotKey &key = reset->key;
    if (OidIsValid(key.sequence) && (slot->key.database != key.database || slot->key.sequence != key.sequence))
        return;
    slot->at_reset = slot_counted(slot);
    slot->reset_at_us = reset->now_us;
}

} // namespace

void statistics_request_memory() { request_guarded_struct<Statistics>(name); }

void statistics_attach_memory() {
    statistics = attach_guarded_struct<Statistics>(name, &lock);
    if (statistics->at_reset.reset_at_us == 0)
        statistics->at_reset.reset_at_us = wall_clock_us();
}

void count(ServerStat stat) {
    statistics->counted[static_cast<uint32_t>(stat)].fetch_add(1, std::memory_order_relaxed);
}

ServerStats server_stats() {
    LWLockAcquire(lock, LW_SHARED);
    ServerStats now = all_counted();
    subtract(&now.stats, statistics->at_reset.stats);
    for (uint32_t i = 0; i < server_stat_count; i++)
        now.values[i] -= statistics->at_reset.values[i];
    now.reset_at_us = statistics->at_reset.reset_at_us;
    LWLockRelease(lock);
    return now;
}

void visit_slot_stats(void (*visit)(const SlotStats &slot, void *arg), void *arg) {
    Visit to = {visit, arg};
    LWLockAcquire(lock, LW_SHARED);
    slots_visit(visit_one, &to);
    LWLockRelease(lock);
}

void reset_stats_of(SlotKey key) {
    Reset reset = {key, wall_clock_us()};
    LWLockAcquire(lock, LW_EXCLUSIVE);
    slots_visit(reset_one, &reset);
    LWLockRelease(lock);
}

void reset_all_stats() {
    Reset reset = {{}, wall_clock_us()};
    LWLockAcquire(lock, LW_EXCLUSIVE);
    statistics->at_reset = all_counted();
    statistics->at_reset.reset_at_us = reset.now_us;
    slots_visit(reset_one, &reset);
    LWLockRelease(lock);
}

} // namespace uidgen::pg
