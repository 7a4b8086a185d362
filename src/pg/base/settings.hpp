// The settings of a server: its datacenter id, its registry, how long callers wait.
#pragma once

namespace uidgen::pg::settings {

extern int datacenter_id;    // uidgen.datacenter_id
extern int max_wait_ms;      // uidgen.max_wait
extern int max_clock_jump_s; // uidgen.max_clock_jump; 0: no limit
extern int segment_step;     // uidgen.segment_step
extern int segment_max_step; // uidgen.segment_max_step

extern char *registry;              // uidgen.registry; empty: this server belongs to no fleet
extern int registry_lease_ms;       // uidgen.registry_lease
extern int registry_clock_bound_ms; // uidgen.registry_clock_bound

extern bool is_preloaded;

// The setting that keeps databases apart, uidgen.registry or uidgen.datacenter_id, if one of them is set although the
// library is not preloaded; else null. What a session reads of them then cannot be relied on: a client may pass another
// value before the library is loaded, and a parallel worker has an old one.
const char *set_without_preload();

// `changed` is called when ids must carry another datacenter id from now on, even in the middle of a transaction.
// `registry_changed` is called before uidgen.registry changes.
void define(void (*changed)(), void (*registry_changed)(bool in_fleet));

} // namespace uidgen::pg::settings
