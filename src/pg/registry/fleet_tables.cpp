#include "fleet_tables.hpp"

#include "base/time_source.hpp"
#include "fleet_query.hpp"

namespace uidgen::pg {
namespace {

int64_t stored(uint64_t number) { return static_cast<int64_t>(number); }
Oid oid_of(int column) { return static_cast<Oid>(bigint_of(column)); }

// ---------------------------------------------------------------------------------------------------------
// The parts of a node's row, in one order for all statements.
// ---------------------------------------------------------------------------------------------------------

#define NODE_COLUMNS                                                                                                   \
    "node, granted_from, granted_until, line, incarnation, term, serial, revoked, reserved, host, port, "              \
    "system_identifier, timeline, database, generator, version, policy, asked_datacenter, clock_offset_us, "           \
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
    r.holder = {text_of(10), text_of(11), bigint_of(12),  integer_of(13), text_of(14),  text_of(15),
                text_of(16), text_of(17), boolean_of(18), bigint_of(19),  bigint_of(20)};
    return r;
}

bool read_record(Query *query, const Parameters &parameters, NodeRecord *record) {
    if (execute(query, parameters) == 0)
        return false;
    *record = node_record();
    return true;
}

// $1 is the pool.
Parameters parameters_of(int32_t pool, const NodeRecord &record, int64_t now_us) {
    const core::NodeRow &row = record.row;
    const Holder &holder = record.holder;
    Parameters p = {};
    add_integer(&p, pool);
    add_bigint(&p, row.node);
    add_bigint(&p, row.from);
    add_bigint(&p, row.until);
    add_bigint(&p, stored(row.line));
    add_bigint(&p, stored(row.incarnation));
    add_bigint(&p, row.term);
    add_bigint(&p, row.serial);
    add_bigint(&p, stored(row.revoked));
    add_boolean(&p, record.reserved);
    add_text(&p, holder.host);
    add_text(&p, holder.port);
    add_bigint(&p, holder.system_identifier);
    add_integer(&p, holder.timeline);
    add_text(&p, holder.database);
    add_text(&p, holder.generator);
    add_text(&p, holder.version);
    add_text(&p, holder.policy);
    add_boolean(&p, holder.asked_datacenter);
    add_bigint(&p, holder.clock_offset_us);
    add_bigint(&p, holder.asked_length);
    add_time(&p, now_us);
    return p;
}

Parameters in_range(int32_t pool, NodeRange range) {
    Parameters p = {};
    add_integer(&p, pool);
    add_bigint(&p, range.first);
    add_bigint(&p, range.last);
    return p;
}

// ---------------------------------------------------------------------------------------------------------
// The parts of a layout.
// ---------------------------------------------------------------------------------------------------------

Parameters widths_of(const core::Layout &layout) {
    Parameters p = {};
    add_bigint(&p, layout.tick_us);
    add_integer(&p, layout.time_bits);
    add_integer(&p, layout.datacenter_bits);
    add_integer(&p, layout.worker_bits);
    add_integer(&p, layout.sequence_bits);
    add_boolean(&p, layout.sequence_first);
    add_boolean(&p, layout.backup);
    add_time(&p, layout.epoch_us);
    return p;
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

void fleet_use_schema(Oid schema) { query_use_schema(schema); }

// ---------------------------------------------------------------------------------------------------------
// The state.
// ---------------------------------------------------------------------------------------------------------

bool read_state(FleetState *state) {
    static Query query = {
        "SELECT fleet, term, term_shown, fence_base, "
        "(EXTRACT(epoch FROM longest_grant) * 1000000)::bigint, closed_until, system_identifier, timeline, "
        "host, data_directory, (SELECT extversion FROM pg_extension WHERE extname = 'uidgen'), "
        "(EXTRACT(epoch FROM clock_bound) * 1000000)::bigint, database_oid::bigint, table_oid::bigint "
        "FROM %1$s.uid_fleet_state",
        nullptr, 0};
    const Parameters none = {};
    if (execute(&query, none) == 0)
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
    return true;
}

void write_term_shown(int64_t term) {
    static Query query = {"UPDATE %1$s.uid_fleet_state SET term_shown = $1", nullptr, 0};
    Parameters p = {};
    add_bigint(&p, term);
    execute(&query, p);
}

void write_clock_bound(int64_t bound_us) {
    static Query query = {"UPDATE %1$s.uid_fleet_state SET clock_bound = $1 * interval '1 microsecond'", nullptr, 0};
    Parameters p = {};
    add_bigint(&p, bound_us);
    execute(&query, p);
}

void write_fence(const core::RegistryView &fenced) {
    static Query query = {"UPDATE %1$s.uid_fleet_state SET term = $1, fence_base = $2", nullptr, 0};
    Parameters p = {};
    add_bigint(&p, fenced.term);
    add_time(&p, fenced.fence_base_us);
    execute(&query, p);
}

void write_environment(const Environment &environment) {
    static Query query = {"UPDATE %1$s.uid_fleet_state SET system_identifier = $1, timeline = $2, host = $3, "
                          "data_directory = $4, database_oid = $5, table_oid = $6",
                          nullptr, 0};
    Parameters p = {};
    add_bigint(&p, environment.system_identifier);
    add_integer(&p, environment.timeline);
    add_text(&p, environment.host);
    add_text(&p, environment.data_directory);
    add_bigint(&p, environment.database);
    add_bigint(&p, environment.table);
    execute(&query, p);
}

void write_closed_until(int64_t closed_until_us) {
    static Query query = {"UPDATE %1$s.uid_fleet_state SET closed_until = CASE WHEN $1 THEN $2 END", nullptr, 0};
    Parameters p = {};
    add_boolean(&p, closed_until_us != 0);
    add_time(&p, closed_until_us);
    execute(&query, p);
}

// ---------------------------------------------------------------------------------------------------------
// Pools.
// ---------------------------------------------------------------------------------------------------------

int32_t find_pool(const core::Layout &layout) {
    static Query query = {"SELECT pool FROM %1$s.uid_fleet_pool WHERE " SAME_WIDTHS " AND epoch = $8", nullptr, 0};
    return execute(&query, widths_of(layout)) == 0 ? no_pool : integer_of(1);
}

int32_t insert_pool(const core::Layout &layout, const char *preset) {
    static Query query = {"INSERT INTO %1$s.uid_fleet_pool (pool, preset, epoch, tick_us, time_bits, datacenter_bits, "
                          "worker_bits, sequence_bits, sequence_first, backup_worker) "
                          "SELECT coalesce(max(pool), 0) + 1, $9, $8, $1, $2, $3, $4, $5, $6, $7 "
                          "FROM %1$s.uid_fleet_pool RETURNING pool",
                          nullptr, 0};
    Parameters p = widths_of(layout);
    add_text(&p, preset);
    execute(&query, p);
    return integer_of(1);
}

bool read_pool(int32_t pool, core::Layout *layout) {
    static Query query = {"SELECT " LAYOUT_COLUMNS " FROM %1$s.uid_fleet_pool WHERE pool = $1", nullptr, 0};
    Parameters p = {};
    add_integer(&p, pool);
    if (execute(&query, p) == 0)
        return false;
    *layout = layout_of_row();
    return true;
}

bool read_pool_after(int32_t pool, int32_t *next, core::Layout *layout) {
    static Query query = {"SELECT " LAYOUT_COLUMNS ", pool FROM %1$s.uid_fleet_pool WHERE pool > $1 "
                          "ORDER BY pool LIMIT 1",
                          nullptr, 0};
    Parameters p = {};
    add_integer(&p, pool);
    if (execute(&query, p) == 0)
        return false;
    *layout = layout_of_row();
    *next = integer_of(9);
    return true;
}

bool read_preset(const char *preset, core::Layout *layout, bool *has_epoch) {
    static Query query = {"SELECT " LAYOUT_COLUMNS " FROM %1$s.uid_preset WHERE preset = $1", nullptr, 0};
    Parameters p = {};
    add_text(&p, preset);
    if (execute(&query, p) == 0)
        return false;
    *layout = layout_of_row();
    *has_epoch = !is_null_of(8);
    return true;
}

bool find_other_epoch(const core::Layout &layout, const char *preset, int64_t *epoch_us) {
    static Query query = {"SELECT epoch FROM %1$s.uid_fleet_pool WHERE " SAME_WIDTHS " AND epoch <> $8 "
                          "AND preset = $9 ORDER BY pool LIMIT 1",
                          nullptr, 0};
    Parameters p = widths_of(layout);
    add_text(&p, preset);
    if (execute(&query, p) == 0)
        return false;
    *epoch_us = time_of(1);
    return true;
}

// ---------------------------------------------------------------------------------------------------------
// Nodes.
// ---------------------------------------------------------------------------------------------------------

bool read_node(int32_t pool, int64_t node, NodeRecord *record) {
    static Query query = {"SELECT " NODE_COLUMNS " FROM %1$s.uid_fleet_node WHERE pool = $1 AND node = $2", nullptr, 0};
    Parameters p = {};
    add_integer(&p, pool);
    add_bigint(&p, node);
    return read_record(&query, p, record);
}

bool read_node_of_incarnation(int32_t pool, uint64_t incarnation, int64_t but_node, NodeRecord *record) {
    static Query query = {"SELECT " NODE_COLUMNS " FROM %1$s.uid_fleet_node WHERE pool = $1 AND incarnation = $2 "
                          "AND incarnation <> 0 AND node <> $3 ORDER BY term DESC, serial DESC LIMIT 1",
                          nullptr, 0};
    Parameters p = {};
    add_integer(&p, pool);
    add_bigint(&p, stored(incarnation));
    add_bigint(&p, but_node);
    return read_record(&query, p, record);
}

bool read_latest_node(int32_t pool, int64_t until, NodeRecord *record) {
    static Query query = {"SELECT " NODE_COLUMNS " FROM %1$s.uid_fleet_node WHERE pool = $1 AND granted_until < $2 "
                          "AND line <> 0 ORDER BY granted_until DESC LIMIT 1",
                          nullptr, 0};
    Parameters p = {};
    add_integer(&p, pool);
    add_bigint(&p, until);
    return read_record(&query, p, record);
}

bool read_sticky_node(int32_t pool, const Holder &holder, NodeRecord *record) {
    static Query query = {"SELECT " NODE_COLUMNS " FROM %1$s.uid_fleet_node WHERE pool = $1 AND generator = $2 "
                          "AND database = $3 AND host = $4 AND port = $5 AND policy = 'sticky' "
                          "ORDER BY term DESC, serial DESC LIMIT 1",
                          nullptr, 0};
    Parameters p = {};
    add_integer(&p, pool);
    add_text(&p, holder.generator);
    add_text(&p, holder.database);
    add_text(&p, holder.host);
    add_text(&p, holder.port);
    return read_record(&query, p, record);
}

bool lock_oldest_node(int32_t pool, NodeRange range, int64_t from, bool avoid_asked, NodeRecord *record) {
    static Query query = {
        "SELECT " NODE_COLUMNS " FROM %1$s.uid_fleet_node n WHERE pool = $1 AND node BETWEEN $2 AND $3 "
        "AND granted_until <= $4 AND NOT ($5 AND EXISTS (SELECT FROM %1$s.uid_fleet_node a "
        "JOIN %1$s.uid_fleet_pool p USING (pool) WHERE a.pool = $1 AND a.asked_datacenter "
        "AND a.granted_until > $4 AND a.node >> p.drawn_worker_bits = n.node >> p.drawn_worker_bits)) "
        "ORDER BY granted_until, node LIMIT 1 FOR UPDATE OF n SKIP LOCKED",
        nullptr, 0};
    Parameters p = in_range(pool, range);
    add_bigint(&p, from);
    add_boolean(&p, avoid_asked);
    return read_record(&query, p, record);
}

bool find_unused_node(int32_t pool, NodeRange range, int64_t *node) {
    static Query query = {"SELECT $2 WHERE NOT EXISTS (SELECT FROM %1$s.uid_fleet_node WHERE pool = $1 AND node = $2) "
                          "UNION ALL (SELECT n.node + 1 FROM %1$s.uid_fleet_node n WHERE n.pool = $1 "
                          "AND n.node >= $2 AND n.node < $3 AND NOT EXISTS (SELECT FROM %1$s.uid_fleet_node m "
                          "WHERE m.pool = $1 AND m.node = n.node + 1) LIMIT 1) LIMIT 1",
                          nullptr, 0};
    if (execute(&query, in_range(pool, range)) == 0)
        return false;
    *node = bigint_of(1);
    return true;
}

bool read_next_until(int32_t pool, NodeRange range, int64_t *until) {
    static Query query = {"SELECT granted_until FROM %1$s.uid_fleet_node WHERE pool = $1 "
                          "AND node BETWEEN $2 AND $3 AND NOT reserved ORDER BY granted_until LIMIT 1",
                          nullptr, 0};
    if (execute(&query, in_range(pool, range)) == 0)
        return false;
    *until = bigint_of(1);
    return true;
}

bool is_asked_for(int32_t pool, NodeRange range, int64_t from) {
    static Query query = {"SELECT FROM %1$s.uid_fleet_node WHERE pool = $1 AND node BETWEEN $2 AND $3 "
                          "AND asked_datacenter AND granted_until > $4 LIMIT 1",
                          nullptr, 0};
    Parameters p = in_range(pool, range);
    add_bigint(&p, from);
    return execute(&query, p) > 0;
}

bool insert_node(int32_t pool, const NodeRecord &record, int64_t now_us) {
    static Query query = {"INSERT INTO %1$s.uid_fleet_node (pool, " NODE_COLUMNS ", last_heard) VALUES ($1, $2, $3, "
                          "$4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22) "
                          "ON CONFLICT DO NOTHING",
                          nullptr, 0};
    return execute(&query, parameters_of(pool, record, now_us)) > 0;
}

bool update_node(int32_t pool, const NodeRecord &before, const NodeRecord &after, int64_t now_us) {
    static Query query = {"UPDATE %1$s.uid_fleet_node SET (" NODE_COLUMNS ", last_heard) = ($2, $3, $4, $5, $6, $7, "
                          "$8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22) "
                          "WHERE pool = $1 AND node = $2 AND serial = $23 AND granted_until = $24 "
                          "AND incarnation = $25 AND line = $26",
                          nullptr, 0};
    Parameters p = parameters_of(pool, after, now_us);
    add_bigint(&p, before.row.serial);
    add_bigint(&p, before.row.until);
    add_bigint(&p, stored(before.row.incarnation));
    add_bigint(&p, stored(before.row.line));
    return execute(&query, p) > 0;
}

bool write_use_before(int32_t pool, const core::NodeRow &before, const core::NodeRow &after) {
    static Query query = {"INSERT INTO %1$s.uid_fleet_node AS n (pool, node, granted_until, term, serial) "
                          "VALUES ($1, $2, $3, $4, $5) ON CONFLICT (pool, node) DO UPDATE SET granted_until = $3, "
                          "line = 0, incarnation = 0 WHERE n.serial = $5 AND n.granted_until = $6 "
                          "AND n.incarnation = $7 AND n.line = $8",
                          nullptr, 0};
    Parameters p = {};
    add_integer(&p, pool);
    add_bigint(&p, after.node);
    add_bigint(&p, after.until);
    add_bigint(&p, before.term);
    add_bigint(&p, before.serial);
    add_bigint(&p, before.until);
    add_bigint(&p, stored(before.incarnation));
    add_bigint(&p, stored(before.line));
    return execute(&query, p) > 0;
}

void write_clock_offset(int32_t pool, int64_t node, int64_t offset_us, int64_t now_us) {
    static Query query = {"UPDATE %1$s.uid_fleet_node SET clock_offset_us = $3, last_heard = $4 "
                          "WHERE pool = $1 AND node = $2",
                          nullptr, 0};
    Parameters p = {};
    add_integer(&p, pool);
    add_bigint(&p, node);
    add_bigint(&p, offset_us);
    add_time(&p, now_us);
    execute(&query, p);
}

void insert_worker_node(int64_t id, const core::Layout &layout, int64_t node, const Holder &holder, int64_t now_us) {
    static Query query = {"INSERT INTO %1$s.worker_node (id, host_name, port, type, launch_date, modified, created, "
                          "generator, worker_id, datacenter_id, system_identifier, timeline) "
                          "VALUES ($1, left($2, 64), left($3, 64), 2, $4::date, $4, $4, $5, $6, $7, $8, $9) "
                          "ON CONFLICT DO NOTHING",
                          nullptr, 0};
    const int32_t bits = core::drawn_worker_bits(layout);
    Parameters p = {};
    add_bigint(&p, id);
    add_text(&p, holder.host);
    add_text(&p, holder.port);
    add_time(&p, now_us);
    add_text(&p, holder.generator);
    add_integer(&p, static_cast<int32_t>(node & core::largest(bits)));
    add_integer(&p, static_cast<int32_t>(node >> bits));
    add_bigint(&p, holder.system_identifier);
    add_integer(&p, holder.timeline);
    execute(&query, p);
}

bool read_median_offset(int64_t since_us, int64_t now_us, int64_t *offset_us) {
    // Of a large fleet the five hundred heard last are enough, and bound the cost.
    static Query query = {"SELECT count(*), percentile_disc(0.5) WITHIN GROUP (ORDER BY clock_offset_us) "
                          "FROM (SELECT DISTINCT ON (host, system_identifier) clock_offset_us FROM "
                          "(SELECT host, system_identifier, clock_offset_us, last_heard FROM %1$s.uid_fleet_node "
                          "WHERE last_heard > $1 AND last_heard <= $2 AND host IS NOT NULL "
                          "ORDER BY last_heard DESC LIMIT 500) heard "
                          "ORDER BY host, system_identifier, last_heard DESC) servers",
                          nullptr, 0};
    constexpr int64_t fewest = 3;
    Parameters p = {};
    add_time(&p, since_us);
    add_time(&p, now_us);
    execute(&query, p);
    *offset_us = bigint_of(2);
    return bigint_of(1) >= fewest;
}

} // namespace uidgen::pg
