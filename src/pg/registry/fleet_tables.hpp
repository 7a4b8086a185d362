// The tables of a fleet's registry: its state, its pools and its nodes. The caller holds the registry's lock
// (registry.hpp), which it took before it reads. Each statement has a snapshot of its own, from after the lock.
#pragma once

#include "fleet/message.hpp"

namespace uidgen::pg {

// What shows that the registry is the same server as at the last call. Other values may mean that commits were lost, or
// that there are two.
struct Environment {
    int64_t system_identifier;
    int32_t timeline;
    const char *host;
    const char *data_directory;
    int64_t birth;    // of the data directory, as a number (base/file_identity.hpp)
    int64_t database; // OIDs
    int64_t table;    // uid_fleet_state
};

// The row of uid_fleet_state.
struct FleetState {
    core::RegistryView view; // without the clock, the serials and what is awaited
    int64_t first_epoch;     // the number of the first epoch that this registry has a key for
    bool synchronous;        // it grants nothing without a synchronous standby
    int64_t closed_until_us; // for a handover; 0: the registry is open
    int64_t granted_last_us; // of a registry that is closed or shown a later epoch: when it granted last
    int64_t started_us;      // when the server started, as of the last call
    int64_t serial_at_start; // the last serial before; 0: a member has called since
    const char *refuses;     // why it refuses everyone; null: it does not
    Environment environment;
    const char *key; // of seals; null: lost
};

// A row of uid_fleet_node, with what the member says of itself. Without a member texts are null.
struct NodeRecord {
    int32_t pool;
    core::NodeRow row;
    bool reserved; // for a generator outside, to the end of the layout
    const char *host;
    const char *port;
    const char *database;
    const char *generator;
    const char *version;
    const char *policy;
    int64_t clock_offset_us;
    int64_t asked_length;  // ticks that it asked for
    int64_t last_heard_us; // 0: never
};

// A range of nodes, both ends included.
struct NodeRange {
    int64_t first;
    int64_t last;
};

// The schema of the extension, for all that follows.
void tables_use_schema(Oid schema);

// False: there is no fleet in this database.
bool read_state(FleetState *state);
void write_state(const FleetState &state); // whether there was one or not
void forget_grants();                      // those of another fleet, and its key

constexpr int32_t no_pool = 0;
int32_t find_pool(const core::Layout &layout);
int64_t count_pools(const char *login);
// `login` is the role whose call brings the layout; null: an administrator's.
int32_t insert_pool(const core::Layout &layout, const char *preset, const char *login);
bool read_pool(int32_t pool, core::Layout *layout);
// The layout of a preset in uid_preset. False: there is no such preset. Without an epoch of its own, epoch_us is -1.
bool read_preset(const char *preset, core::Layout *layout);
// The first pool of this preset and widths whose epoch is another one. False: there is none.
bool find_other_epoch(const core::Layout &layout, const char *preset, int64_t *epoch_us);

// When the last grant of a member ends, by the ends of all of them and by core::latest_end_us(), and when the last one
// was made.
struct LatestGrants {
    int64_t end_us; // 0: there is none
    core::KnownGrants known;
};
LatestGrants read_latest_grants(const core::RegistryView &view);

bool read_node(int32_t pool, int64_t node, NodeRecord *record);
// The node that this incarnation was answered with last, but for that one.
bool read_node_of_incarnation(int32_t pool, uint64_t incarnation, int64_t but_node, NodeRecord *record);
// The node that this generator of this server held last under the policy sticky.
bool read_sticky_node(int32_t pool, const FleetRequest &request, NodeRecord *record);
// The first node by core::comes_before() whose `until` is at most `from`, among those in the table.
bool read_oldest_node(int32_t pool, NodeRange range, int64_t from, NodeRecord *record);
// A node that never was in the table.
bool find_unused_node(int32_t pool, NodeRange range, int64_t *node);
// When a node in use ends whose holder does not renew any more, in ticks: it would have renewed half of its grant by
// tick `now`, and an eighth of that later. False: all are reserved, or their holders renew them.
bool read_next_free(int32_t pool, NodeRange range, int64_t now, int64_t longest, int64_t *until);
// Writes the row, whether there is one or not.
void put_node(const NodeRecord &record);

// The last value that members were given of a segment of this name, whether it is still there or not. False: none.
bool read_given(const char *segment, int64_t *last);
void put_given(const char *segment, int64_t last);

} // namespace uidgen::pg
