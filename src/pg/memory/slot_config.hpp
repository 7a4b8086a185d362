// What a generator's or a segment's definition says, as its slot has it.
#pragma once

#include "base/base.hpp"
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

constexpr int longest_registry_name = 255; // bytes

// What a segment's definition says; zeros for a plain sequence.
struct SegmentConfig {
    int64_t step; // 0: the setting, as the next one
    int64_t max_step;
    char name[2 * NAMEDATALEN]; // shortened if need be, to more than a sequence's; empty: it has none
    uint64_t fleet;             // whose registry gives its values; 0: they are of the sequence itself
    int64_t increment;          // there, as the next one
    char registry_name[longest_registry_name + 1]; // in UTF-8

    bool is_attached() const { return fleet != 0; }
};

} // namespace uidgen::pg
