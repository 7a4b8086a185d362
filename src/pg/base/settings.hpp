// The settings of a server: sizes of shared memory, its datacenter id, how long callers wait.
#pragma once

namespace uidgen::pg::settings {

extern int max_slots;        // uidgen.max_slots
extern int datacenter_id;    // uidgen.datacenter_id
extern int max_wait_ms;      // uidgen.max_wait
extern int max_clock_jump_s; // uidgen.max_clock_jump; 0: no limit
extern int segment_step;     // uidgen.segment_step
extern int segment_max_step; // uidgen.segment_max_step

extern char *registry;              // uidgen.registry; empty: this server belongs to no fleet
extern int registry_lease_ms;       // uidgen.registry_lease
extern int registry_clock_bound_ms; // uidgen.registry_clock_bound

// Called while shared_preload_libraries are loaded, and also for a library loaded later. The latter cannot have shared
// memory, so it defines no setting for it. `changed` is called when ids must carry another datacenter id from now on,
// even in the middle of a transaction. `registry_changed` is called before uidgen.registry changes.
void define(bool preloading, void (*changed)(), void (*registry_changed)(bool in_fleet));

} // namespace uidgen::pg::settings
