// The tables of a fleet's registry: its state, its pools and its nodes. The caller holds the registry's lock
// (registry.hpp), which it took before it reads. Each statement has a snapshot of its own, from after the lock.
// Functions named read, find or count only read; those named put, write, insert, forget or drop write.
#pragma once

#include "fleet/message.hpp"

namespace uidgen::pg {

// What shows that the registry is the same server as at the last call. Other values may mean that commits were lost, or
// that there are two.
struct Environment {
    int32_t timeline;
    const char *database;  // the system identifier, and the OIDs of the database and of uid_fleet_state
    const char *directory; // the host, the path of the data directory, and its birth (base/identity.hpp)
};

// The row of uid_fleet_state.
struct FleetState {
    core::RegistryView view; // without the clock, the serials and what is awaited
    bool synchronous;        // it grants nothing without a synchronous standby
    core::Refusal refuses;   // why it refuses everyone
    Environment environment;
    const char *key; // of seals; null: lost
};

// A row of uid_fleet_node, with what the member says of itself. Without a member texts are null.
struct NodeRecord {
    int32_t pool;
    core::NodeRow row;
    const char *host;
    const char *port;
    const char *database;
    const char *generator;
    const char *version;
    const char *policy; // reserved: for a generator outside, to the end of the layout
    const char *login;  // the role that the holder connected with, or that said the node was used; null: none
    int64_t clock_offset_us;
    int64_t asked_length;  // ticks that it asked for
    int64_t last_heard_us; // 0: never
};

// Nodes of a pool, both ends included.
struct NodeRange {
    int32_t pool;
    int64_t first;
    int64_t last;
};
inline NodeRange all_nodes(int32_t pool, const core::Layout &l) {
    return {pool, 0, core::largest(core::drawn_node_bits(l))};
}

// The tables in the extension's schema, for all that follows. False: the usual statements are not planned.
bool use_tables(Oid schema);
void plan_statements();

// False: there is no fleet in this database.
bool read_state(FleetState *state);
FleetState state_in(HeapTupleHeader row);  // of the view uid_internal.fleet_state, without the lock
void write_state(const FleetState &state); // whether there was one or not; but for what follows it there
void put_clock_bound(int64_t us);
int64_t draw_serial();               // of the next answer
void forget_grants(const char *key); // those of another fleet; and another key, a new one if it is null

// Of a number without a proof (core/term.hpp, 14). True: none that the login has shown before counts any more.
bool put_claim(const core::RegistryView &view, const char *login, int64_t term, const FleetRequest &shown_by);
void drop_claims(const char *login); // null: all

constexpr int32_t no_pool = 0;
enum class DroppedPool : uint8_t { is_ignored, counts };
int32_t find_pool(const core::Layout &layout, DroppedPool dropped);
// `login` is the role whose call brings the layout, maybe one that was dropped. A layout that is not in use costs a row
// for good, so a login cannot make any number of them; no_pool: it has brought as many as it may.
int32_t insert_pool(const core::Layout &layout, const char *preset, const char *login);
bool read_pool(int32_t pool, core::Layout *layout);
// A pool whose ids can be equal to those of the layout: the same widths and tick, but another epoch or another split of
// the node; if there is one, that of the preset. False: there is none.
bool find_pool_with_equal_ids(const core::Layout &layout, const char *preset, core::Layout *found);
// Its rows stay, so it continues as it was if a member brings the layout again.
void drop_pool(int32_t pool);

core::KnownGrants read_latest_grants(const core::RegistryView &view);

// False: it was never granted, so the record has no more than its number.
bool read_node(int32_t pool, int64_t node, NodeRecord *record);
// The node that this incarnation was answered with last, but for that one.
bool read_node_of_incarnation(int32_t pool, uint64_t incarnation, int64_t but_node, NodeRecord *record);
// The node that this generator of this server held last under the policy sticky, with that login.
bool read_sticky_node(int32_t pool, const FleetRequest &request, const char *login, NodeRecord *record);
// The node whose `until` is lowest, and at most `from`, among those in the table.
bool read_oldest_node(NodeRange range, int64_t from, NodeRecord *record);
// A node that never was in the table, as read_node() leaves it.
bool find_unused_node(NodeRange range, NodeRecord *record);
// Writes the row, whether there is one or not.
void put_node(const NodeRecord &record);

// How many nodes of the range have a grant that ends above the tick, at most `most`, or most_nodes of the login.
int64_t count_nodes_of(const char *login, NodeRange range, int64_t tick);
int64_t count_nodes(NodeRange range, int64_t tick, int64_t most);
// How many logins have such a node.
int64_t count_logins(NodeRange range, int64_t tick);

// The last value that members were given of a segment of this name, whether it is still there or not; `none`: there is
// none.
int64_t read_given(const char *segment, int64_t none);
void put_given(const char *segment, int64_t last);

} // namespace uidgen::pg
