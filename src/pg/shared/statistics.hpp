// Counts of the server that no slot has. They only grow, from the start of the server on.
#pragma once

#include "base/compat.hpp"

namespace uidgen::pg {

// In the order of the columns of uid_stat_server (sql/stat.cpp).
enum class ServerStat : uint32_t { refused_standby, refused_no_slot, slots_reclaimed, clock_jumps };
constexpr uint32_t server_stat_count = 4;

void statistics_request_memory(); // from shmem_request_hook
void statistics_attach_memory();  // from shmem_startup_hook

void count(ServerStat stat);
uint64_t counted(ServerStat stat);

} // namespace uidgen::pg
