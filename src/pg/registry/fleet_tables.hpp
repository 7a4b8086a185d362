// The tables of a fleet's registry: its state, its pools and its nodes. Read and written by saved plans of SPI.
//
// Contract
//   1. The caller is connected to SPI, its search_path is pg_catalog alone, and it holds the registry's lock
//      (registry.hpp), which it took before it reads. Each statement has a snapshot of its own, from after the lock.
//   2. A node's row is read without a lock. write_node() writes it only if it was not changed since.
#pragma once

#include "base/compat.hpp"
#include "core/grant.hpp"
#include "memory/slots.hpp"

namespace uidgen::pg {

// What shows that the registry is the same server as at the last call. Other values may mean that commits were lost.
struct Environment {
    int64_t system_identifier;
    int32_t timeline;
    const char *host; // null: not recorded yet, because there was no call
    const char *data_directory;
    Oid database;
    Oid table; // uid_fleet_state
};

struct FleetState {
    core::RegistryView view; // without the clock and the serials; with the clock bound as it is stored
    int64_t closed_until_us; // for a handover; 0: the registry is open
    Environment environment;
    const char *version; // of the extension
    const char *key;     // of seals
};

// The member that holds a node, as it describes itself. Null and 0 in a row that was never granted.
struct Holder {
    const char *host;
    const char *port;
    int64_t system_identifier;
    int32_t timeline;
    const char *database;
    const char *generator;
    const char *version;
    const char *policy;
    int64_t clock_offset_us;
    int64_t asked_length; // ticks that it asked for
};

struct NodeRecord {
    core::NodeRow row;
    bool reserved; // for a generator outside, to the end of the layout
    Holder holder;
};

// A range of nodes, both ends included.
struct NodeRange {
    int64_t first;
    int64_t last;
};

// False: there is no fleet in this database.
bool read_state(FleetState *state);
// But for what is constant, and the clock bound.
void write_state(const FleetState &state);
void write_clock_bound(int64_t bound_us);

constexpr int32_t no_pool = 0;
int32_t find_pool(const core::Layout &layout);
int64_t count_pools(const char *login);
// `login` is the role whose call brings the layout; null: an administrator's.
int32_t insert_pool(const core::Layout &layout, const char *preset, const char *login);
bool read_pool(int32_t pool, core::Layout *layout);
// The pool with the next higher number. False: there is none.
bool read_pool_after(int32_t pool, int32_t *next, core::Layout *layout);
// The layout of a preset in uid_preset. False: there is no such preset. Without an epoch of its own, epoch_us is 0.
bool read_preset(const char *preset, core::Layout *layout, bool *has_epoch);
// The pool of this preset and widths whose epoch is another one. False: there is none.
bool find_other_epoch(const core::Layout &layout, const char *preset, int64_t *epoch_us);

bool read_node(int32_t pool, int64_t node, NodeRecord *record);
// The node that this incarnation was answered with last, but for that one.
bool read_node_of_incarnation(int32_t pool, uint64_t incarnation, int64_t but_node, NodeRecord *record);
// Of the nodes that a line has, the one with the latest end.
bool read_latest_node(int32_t pool, NodeRecord *record);
// The latest end of all nodes, reserved ones too; 0: there is none.
// The node that this generator of this server held last under the policy sticky.
bool read_sticky_node(int32_t pool, const Holder &holder, NodeRecord *record);
// The first node by core::comes_before() whose `until` is at most `from`, among those in the table that no other
// session is about to take. Locks it.
bool lock_oldest_node(int32_t pool, NodeRange range, int64_t from, NodeRecord *record);
// A node that never was in the table.
bool find_unused_node(int32_t pool, NodeRange range, int64_t *node);
// When the next node ends; false: all are reserved.
bool read_next_until(int32_t pool, NodeRange range, int64_t *until);

// False: the node is there already.
bool insert_node(int32_t pool, const NodeRecord &record, int64_t now_us);
// False: the row has changed since `before` was read.
bool update_node(int32_t pool, const NodeRecord &before, const NodeRecord &after, int64_t now_us);
// What core::used_before() made of a row that is in the table, or is not. It does not answer the holder of the row.
// False: the row has changed since `before` was read.
bool write_use_before(int32_t pool, const core::NodeRow &before, const core::NodeRow &after);
// The clock of the holder of a node, which is refused an answer.
void write_clock_offset(int32_t pool, int64_t node, int64_t offset_us, int64_t now_us);

} // namespace uidgen::pg
