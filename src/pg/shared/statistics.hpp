// What the views uid_stat and uid_stat_server show of the counters: their growth since the last reset.
//
// A reset changes no counter. It notes what the counters say, so it loses nothing that is counted meanwhile. One LWLock
// guards these notes, in the slots and here. The directory lock is taken under it.
#pragma once

#include "slots.hpp"

namespace uidgen::pg {

// Counts of the server that no slot has.
enum class ServerStat : uint32_t { refused_standby, refused_no_slot, slots_reclaimed };
constexpr uint32_t server_stat_count = 3;

// The whole server since its start, or since the last reset.
struct ServerStats {
    Stats stats;
    uint64_t values[server_stat_count];
    int64_t reset_at_us;
};

// One slot, since it was made or its statistics were reset.
struct SlotStats {
    SlotKey key;
    SlotKind kind;
    Stats stats;
    int64_t reset_at_us;
};

void statistics_request_memory(); // from shmem_request_hook
void statistics_attach_memory();  // from shmem_startup_hook

void count(ServerStat stat);

ServerStats server_stats();

// Calls visit(slot, arg) for every slot in use. visit must not raise an error.
void visit_slot_stats(void (*visit)(const SlotStats &slot, void *arg), void *arg);

// The sequence need not have a slot.
void reset_stats_of(SlotKey key);
void reset_all_stats();

} // namespace uidgen::pg
