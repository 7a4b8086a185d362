// The settings of a server: its datacenter id, its registry, how long callers wait; and the faults of a test build.
#pragma once

#include <cstdint>
#include <cstring>

namespace uidgen::pg::settings {

extern int datacenter_id;    // uidgen.datacenter_id
extern int max_wait_ms;      // uidgen.max_wait
extern int max_clock_jump_s; // uidgen.max_clock_jump; 0: no limit
extern int segment_step;     // uidgen.segment_step
extern int segment_max_step; // uidgen.segment_max_step

extern char *registry;        // uidgen.registry; empty: this server belongs to no fleet
extern int registry_lease_ms; // uidgen.registry_lease; 0: the longest grant

extern bool is_preloaded;
extern int64_t preloaded_us; // when it was, on the monotonic clock

// The setting that keeps databases apart, uidgen.registry or uidgen.datacenter_id, if one of them is set although the
// library is not preloaded; else null. What a session reads of them then cannot be relied on: a client may pass another
// value before the library is loaded, and a parallel worker has an old one.
const char *unreliable_setting();

// Whether this session sees a value of uidgen.registry or uidgen.datacenter_id.
bool is_set();

// From _PG_init: defines all settings, which assigns them. `changed` is called when ids must carry another datacenter
// id from now on, even in the middle of a transaction. `registry_changed` is called before uidgen.registry changes.
void define(void (*changed)(), void (*registry_changed)(bool in_fleet));

} // namespace uidgen::pg::settings

// ---------------------------------------------------------------------------------------------------------
// Guarantees that a test build can break, one at a time, to prove that a test notices it (test/faults.tsv). Only a
// build with UIDGEN_FAULTS has the setting `uidgen.fault`; in every other build fault_is() is the constant false and
// leaves no trace in the machine code.
// ---------------------------------------------------------------------------------------------------------

namespace uidgen::pg {

#ifdef UIDGEN_FAULTS
extern char *active_fault; // written by the setting
// Whether the setting uidgen.fault names that guarantee, so that this build breaks it.
inline bool fault_is(const char *fault) { return active_fault != nullptr && strcmp(active_fault, fault) == 0; }
#else
constexpr bool fault_is(const char *) { return false; }
#endif

} // namespace uidgen::pg
