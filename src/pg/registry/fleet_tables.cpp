#include "fleet_tables.hpp"

#include "base/time_source.hpp"
#include "fleet_query.hpp"

namespace uidgen::pg {
namespace {

Oid oid_of(int column) { return static_cast<Oid>(bigint_of(column)); }

// ---------------------------------------------------------------------------------------------------------
// The parts of a node's row, in one order for all statements.
// ---------------------------------------------------------------------------------------------------------

#define NODE_COLUMNS                                                                                                   \
    "node, granted_from, granted_until, line, incarnation, term, serial, revoked, reserved, host, port, "              \
    "system_identifier, timeline, database, generator, version, policy, clock_offset_us, "                             \
    "asked_length"

NodeRecord node_record() {
    NodeRecord r = {};
    r.row = {bigint_of(1),
             bigint_of(2),
             bigint_of(3),
             static_cast<uint64_t>(bigint_of(4)),
             static_cast<uint64_t>(bigint_of(5)),
             bigint_of(6),
             bigint_of(7),
             static_cast<uint64_t>(bigint_of(8))};
    r.reserved = boolean_of(9);
    r.holder = {text_of(10), text_of(11), bigint_of(12), integer_of(13), text_of(14),
                text_of(15), text_of(16), text_of(17),   bigint_of(18),  bigint_of(19)};
    return r;
}

bool read_record(Query *query, const Parameters &p, NodeRecord *record) {
    if (execute(query, p) == 0)
        return false;
    *record = node_record();
    return true;
}

// $1 is the pool.
Parameters parameters_of(int32_t pool, const NodeRecord &record, int64_t now_us) {
    const core::NodeRow &row = record.row;
    const Holder &holder = record.holder;
    return parameters(pool, row.node, row.from, row.until, row.line, row.incarnation, row.term, row.serial, row.revoked,
                      record.reserved, holder.host, holder.port, holder.system_identifier, holder.timeline,
                      holder.database, holder.generator, holder.version, holder.policy, holder.clock_offset_us,
                      holder.asked_length, Time{now_us});
}

Parameters in_range(int32_t pool, NodeRange range) { return parameters(pool, range.first, range.last); }

// ---------------------------------------------------------------------------------------------------------
// The parts of a layout.
// ---------------------------------------------------------------------------------------------------------

Parameters widths_of(const core::Layout &layout) {
    return parameters(layout.tick_us, layout.time_bits, layout.datacenter_bits, layout.worker_bits,
                      layout.sequence_bits, layout.sequence_first, layout.backup, Time{layout.epoch_us});
}

#define SAME_WIDTHS                                                                                                    \
    "tick_us = $1 AND time_bits = $2 AND datacenter_bits = $3 AND worker_bits = $4 AND sequence_bits = $5 AND "        \
    "sequence_first = $6 AND backup_worker = $7"

#define LAYOUT_COLUMNS                                                                                                 \
    "tick_us, time_bits::int, datacenter_bits::int, worker_bits::int, sequence_bits::int, sequence_first, "            \
    "backup_worker, epoch"

core::Layout layout_of_row() {
    return {time_of(8),    bigint_of(1),  integer_of(2), integer_of(3),
            integer_of(4), integer_of(5), boolean_of(6), boolean_of(7)};
}

} // namespace

// ---------------------------------------------------------------------------------------------------------
// The state.
// ---------------------------------------------------------------------------------------------------------

bool read_state(FleetState *state) {
    static Query query = {
        "SELECT fleet, term, term_shown, fence_base, "
        "(EXTRACT(epoch FROM longest_grant) * 1000000)::bigint, closed_until, system_identifier, timeline, "
        "host, data_directory, (SELECT extversion FROM pg_extension WHERE extname = 'uidgen'), "
        "(EXTRACT(epoch FROM clock_bound) * 1000000)::bigint, database_oid::bigint, table_oid::bigint, "
        "(SELECT encode(seal_key, 'hex') FROM uid_secrets.uid_fleet_key) "
        "FROM %1$s.uid_fleet_state"};
    if (execute(&query) == 0)
        return false;
    *state = {};
    state->view.fleet = static_cast<uint64_t>(bigint_of(1));
    state->view.term = bigint_of(2);
    state->view.term_shown = bigint_of(3);
    state->view.fence_base_us = time_of(4);
    state->view.longest_us = bigint_of(5);
    state->closed_until_us = time_of(6);
    state->environment = {bigint_of(7), integer_of(8), text_of(9), text_of(10), oid_of(13), oid_of(14)};
    state->version = text_of(11);
    state->view.bound_us = bigint_of(12);
    state->key = text_of(15);
    return true;
}

void write_state(const FleetState &state) {
    static Query query = {
        "UPDATE %1$s.uid_fleet_state SET term = $1, term_shown = $2, "
        "fence_base = nullif($3, timestamptz 'epoch'), closed_until = nullif($4, timestamptz 'epoch'), "
        "system_identifier = $5, timeline = $6, host = $7, data_directory = $8, database_oid = $9, "
        "table_oid = $10"};
    const core::RegistryView &view = state.view;
    const Environment &e = state.environment;
    execute(&query, parameters(view.term, view.term_shown, Time{view.fence_base_us}, Time{state.closed_until_us},
                               e.system_identifier, e.timeline, e.host, e.data_directory, e.database, e.table));
}

void write_clock_bound(int64_t bound_us) {
    static Query query = {"UPDATE %1$s.uid_fleet_state SET clock_bound = $1 * interval '1 microsecond'"};
    execute(&query, parameters(bound_us));
}

// ---------------------------------------------------------------------------------------------------------
// Pools.
// ---------------------------------------------------------------------------------------------------------

int32_t find_pool(const core::Layout &layout) {
    static Query query = {"SELECT pool FROM %1$s.uid_fleet_pool WHERE " SAME_WIDTHS " AND epoch = $8"};
    return execute(&query, widths_of(layout)) == 0 ? no_pool : integer_of(1);
}

int64_t count_pools(const char *login) {
    static Query query = {"SELECT count(*) FROM %1$s.uid_fleet_pool WHERE login = $1"};
    execute(&query, parameters(login));
    return bigint_of(1);
}

int32_t insert_pool(const core::Layout &layout, const char *preset, const char *login) {
    static Query query = {"INSERT INTO %1$s.uid_fleet_pool (pool, preset, epoch, tick_us, time_bits, datacenter_bits, "
                          "worker_bits, sequence_bits, sequence_first, backup_worker, login) "
                          "SELECT coalesce(max(pool), 0) + 1, $9, $8, $1, $2, $3, $4, $5, $6, $7, $10 "
                          "FROM %1$s.uid_fleet_pool RETURNING pool"};
    Parameters p = widths_of(layout);
    add(&p, preset);
    add(&p, login);
    execute(&query, p);
    return integer_of(1);
}

bool read_pool(int32_t pool, core::Layout *layout) {
    static Query query = {"SELECT " LAYOUT_COLUMNS " FROM %1$s.uid_fleet_pool WHERE pool = $1"};
    if (execute(&query, parameters(pool)) == 0)
        return false;
    *layout = layout_of_row();
    return true;
}

bool read_pool_after(int32_t pool, int32_t *next, core::Layout *layout) {
    static Query query = {"SELECT " LAYOUT_COLUMNS ", pool FROM %1$s.uid_fleet_pool WHERE pool > $1 "
                          "ORDER BY pool LIMIT 1"};
    if (execute(&query, parameters(pool)) == 0)
        return false;
    *layout = layout_of_row();
    *next = integer_of(9);
    return true;
}

bool read_preset(const char *preset, core::Layout *layout, bool *has_epoch) {
    static Query query = {"SELECT " LAYOUT_COLUMNS " FROM %1$s.uid_preset WHERE preset = $1"};
    if (execute(&query, parameters(preset)) == 0)
        return false;
    *layout = layout_of_row();
    *has_epoch = !is_null_of(8);
    return true;
}

bool find_other_epoch(const core::Layout &layout, const char *preset, int64_t *epoch_us) {
    static Query query = {"SELECT epoch FROM %1$s.uid_fleet_pool WHERE " SAME_WIDTHS " AND epoch <> $8 "
                          "AND preset = $9 ORDER BY pool LIMIT 1"};
    Parameters p = widths_of(layout);
    add(&p, preset);
    if (execute(&query, p) == 0)
        return false;
    *epoch_us = time_of(1);
    return true;
}

// ---------------------------------------------------------------------------------------------------------
// Nodes.
// ---------------------------------------------------------------------------------------------------------

bool read_node(int32_t pool, int64_t node, NodeRecord *record) {
    static Query query = {"SELECT " NODE_COLUMNS " FROM %1$s.uid_fleet_node WHERE pool = $1 AND node = $2"};
    return read_record(&query, parameters(pool, node), record);
}

bool read_node_of_incarnation(int32_t pool, uint64_t incarnation, int64_t but_node, NodeRecord *record) {
    static Query query = {"SELECT " NODE_COLUMNS " FROM %1$s.uid_fleet_node WHERE pool = $1 AND incarnation = $2 "
                          "AND incarnation <> 0 AND node <> $3 ORDER BY term DESC, serial DESC LIMIT 1"};
    return read_record(&query, parameters(pool, incarnation, but_node), record);
}

bool read_latest_node(int32_t pool, NodeRecord *record) {
    static Query query = {"SELECT " NODE_COLUMNS " FROM %1$s.uid_fleet_node WHERE pool = $1 AND line <> 0 "
                          "ORDER BY granted_until DESC LIMIT 1"};
    return read_record(&query, parameters(pool), record);
}

bool read_sticky_node(int32_t pool, const Holder &holder, NodeRecord *record) {
    static Query query = {"SELECT " NODE_COLUMNS " FROM %1$s.uid_fleet_node WHERE pool = $1 AND generator = $2 "
                          "AND database = $3 AND host = $4 AND port = $5 AND policy = 'sticky' "
                          "ORDER BY term DESC, serial DESC LIMIT 1"};
    return read_record(&query, parameters(pool, holder.generator, holder.database, holder.host, holder.port), record);
}

bool lock_oldest_node(int32_t pool, NodeRange range, int64_t from, NodeRecord *record) {
    static Query query = {"SELECT " NODE_COLUMNS " FROM %1$s.uid_fleet_node WHERE pool = $1 AND node BETWEEN $2 AND $3 "
                          "AND granted_until <= $4 ORDER BY granted_until, node LIMIT 1 FOR UPDATE SKIP LOCKED"};
    Parameters p = in_range(pool, range);
    add(&p, from);
    return read_record(&query, p, record);
}

bool find_unused_node(int32_t pool, NodeRange range, int64_t *node) {
    static Query query = {"SELECT $2 WHERE NOT EXISTS (SELECT FROM %1$s.uid_fleet_node WHERE pool = $1 AND node = $2) "
                          "UNION ALL (SELECT n.node + 1 FROM %1$s.uid_fleet_node n WHERE n.pool = $1 "
                          "AND n.node >= $2 AND n.node < $3 AND NOT EXISTS (SELECT FROM %1$s.uid_fleet_node m "
                          "WHERE m.pool = $1 AND m.node = n.node + 1) LIMIT 1) LIMIT 1"};
    if (execute(&query, in_range(pool, range)) == 0)
        return false;
    *node = bigint_of(1);
    return true;
}

bool read_next_until(int32_t pool, NodeRange range, int64_t *until) {
    static Query query = {"SELECT granted_until FROM %1$s.uid_fleet_node WHERE pool = $1 "
                          "AND node BETWEEN $2 AND $3 AND NOT reserved ORDER BY granted_until LIMIT 1"};
    if (execute(&query, in_range(pool, range)) == 0)
        return false;
    *until = bigint_of(1);
    return true;
}

bool insert_node(int32_t pool, const NodeRecord &record, int64_t now_us) {
    static Query query = {"INSERT INTO %1$s.uid_fleet_node (pool, " NODE_COLUMNS ", last_heard) VALUES ($1, $2, $3, "
                          "$4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21) "
                          "ON CONFLICT DO NOTHING"};
    return execute(&query, parameters_of(pool, record, now_us)) > 0;
}

bool update_node(int32_t pool, const NodeRecord &before, const NodeRecord &after, int64_t now_us) {
    static Query query = {"UPDATE %1$s.uid_fleet_node SET (" NODE_COLUMNS ", last_heard) = ($2, $3, $4, $5, $6, $7, "
                          "$8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21) "
                          "WHERE pool = $1 AND node = $2 AND serial = $22 AND granted_until = $23 "
                          "AND incarnation = $24 AND line = $25"};
    Parameters p = parameters_of(pool, after, now_us);
    add(&p, before.row.serial);
    add(&p, before.row.until);
    add(&p, before.row.incarnation);
    add(&p, before.row.line);
    return execute(&query, p) > 0;
}

bool write_use_before(int32_t pool, const core::NodeRow &before, const core::NodeRow &after) {
    static Query query = {"INSERT INTO %1$s.uid_fleet_node AS n (pool, node, granted_until, term, serial) "
                          "VALUES ($1, $2, $3, $4, $5) ON CONFLICT (pool, node) DO UPDATE SET granted_until = $3, "
                          "line = 0, incarnation = 0 WHERE n.serial = $5 AND n.granted_until = $6 "
                          "AND n.incarnation = $7 AND n.line = $8"};
    return execute(&query, parameters(pool, after.node, after.until, before.term, before.serial, before.until,
                                      before.incarnation, before.line)) > 0;
}

void write_clock_offset(int32_t pool, int64_t node, int64_t offset_us, int64_t now_us) {
    static Query query = {"UPDATE %1$s.uid_fleet_node SET clock_offset_us = $3, last_heard = $4 "
                          "WHERE pool = $1 AND node = $2"};
    execute(&query, parameters(pool, node, offset_us, Time{now_us}));
}

} // namespace uidgen::pg
