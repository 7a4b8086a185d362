// What a generator's definition says, as its slot has it.
#pragma once

#include "base/postgres.hpp"
#include "core/definition.hpp"

namespace uidgen::pg {

using core::CachedConfig;
using core::WhenRingEmpty;
using core::worker_policy_names;
using core::WorkerPolicy;

// What the generator's definition says, copied when the slot is made; and the incarnation's salt.
struct GeneratorConfig {
    core::Layout layout;
    core::ClockPolicy policy;
    CachedConfig cached;
    WorkerPolicy worker_policy;
    int32_t worker_number; // of WorkerPolicy::fixed
    int32_t datacenter_id; // -1: none of its own
    bool own_pool;
    char preset[NAMEDATALEN]; // shortened if need be
};

} // namespace uidgen::pg
