#include "fleet_tables.hpp"

#include "config/rows.hpp"

namespace uidgen::pg {
namespace {

// The extension's schema. Its name replaces '@' in statements.
Oid home = InvalidOid;

Argument argument(Argument value) { return value; }
Argument argument(int64_t value) { return {INT8OID, Int64GetDatum(value)}; }
Argument argument(int32_t value) { return {INT4OID, Int32GetDatum(value)}; }
Argument argument(const char *value) {
    return {TEXTOID, value == nullptr ? static_cast<Datum>(0) : CStringGetTextDatum(value), value == nullptr};
}

// One of the type of a table's rows, with the columns that are fields.
Argument row_of(const char *table, const Fields &fields, const void *from) {
    const Oid type = get_rel_type_id(required_table(home, table));
    TupleDesc desc = lookup_rowtype_tupdesc(type, -1);
    const Datum row = heap_copy_tuple_as_datum(form_fields(fields, from, desc), desc);
    ReleaseTupleDesc(desc);
    return {type, row};
}

// Kept in the session. Another extension's row types are not the same.
struct Plan {
    char *sql;
    SPIPlanPtr plan;
};
constexpr int most_plans = 64;
Plan plans[most_plans];
bool are_planned = false; // the usual statements
bool only_plans = false;  // statements are not run

// A generic plan: a member calls seldom, so a connection would never leave the custom plans behind.
SPIPlanPtr plan_of(const char *sql, int count, Oid *types) {
    Plan *kept = plans;
    for (; kept < plans + most_plans && kept->plan != nullptr; kept++)
        if (strcmp(kept->sql, sql) == 0 && (count == 0 || SPI_getargtypeid(kept->plan, 0) == types[0]))
            return kept->plan;
    SPIPlanPtr made = SPI_prepare_cursor(sql, count, types, CURSOR_OPT_GENERIC_PLAN);
    if (made == nullptr)
        check_spi(SPI_result, "SPI_prepare_cursor", sql);
    char *copy = MemoryContextStrdup(TopMemoryContext, sql);
    check_spi(SPI_keepplan(made), "SPI_keepplan", sql);
    if (kept == plans + most_plans)
        SPI_freeplan((--kept)->plan);
    *kept = {copy, made};
    return made;
}

// A statement that only newcomers run would stay invalid, and a plan for a dropped extension does.
void drop_invalid_plans() {
    Plan *kept = plans;
    for (Plan *p = plans; p < plans + most_plans && p->plan != nullptr; p++) {
        const Plan plan = *p;
        *p = {};
        if (SPI_plan_is_valid(plan.plan)) {
            *kept++ = plan;
        } else {
            SPI_freeplan(plan.plan);
            pfree(plan.sql);
        }
    }
}

// Returns the number of rows, which are in SPI_tuptable. '@' stands for the schema.
template <typename... Values> uint64 execute(const char *statement, Values... arguments) {
    constexpr int count = sizeof...(Values);
    const Argument all[count + 1] = {argument(arguments)..., {}};
    Oid types[count + 1];
    Datum values[count + 1];
    char nulls[count + 1]; // as SPI wants them
    for (int i = 0; i <= count; i++) {
        types[i] = all[i].type;
        values[i] = all[i].value;
        nulls[i] = all[i].is_null ? 'n' : ' ';
    }
    const char *prefix = psprintf("%s.", quoted_schema(home));
    const Datum sql = DirectFunctionCall3Coll(replace_text, C_COLLATION_OID, CStringGetTextDatum(statement),
                                              CStringGetTextDatum("@"), CStringGetTextDatum(prefix));
    SPIPlanPtr plan = plan_of(TextDatumGetCString(sql), count, types);
    if (only_plans) {
        ReleaseCachedPlan(SPI_plan_get_cached_plan(plan), CurrentResourceOwner);
        return 0;
    }
    check_spi(SPI_execute_plan(plan, values, nulls, false, 0), "SPI_execute_plan", statement);
    return SPI_processed;
}

// A row that the last statement has returned.
void read_row(const Fields &fields, void *into, uint64 row = 0) {
    read_fields(fields, into, SPI_tuptable->vals[row], SPI_tuptable->tupdesc);
}

// The number that the statement returns. NULL is 0, and so is no row.
template <typename... Values> int64_t select_number(const char *statement, Values... arguments) {
    bool is_null = false;
    if (execute(statement, arguments...) == 0)
        return 0;
    const Datum value = SPI_getbinval(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 1, &is_null);
    return is_null ? 0 : DatumGetInt64(value);
}

// The fields of the first row. `from` is what follows SELECT *. False: there is none.
template <typename... Values> bool select(const Fields &fields, void *into, const char *from, Values... arguments) {
    if (execute(psprintf("SELECT * %s", from), arguments...) == 0)
        return false;
    read_row(fields, into);
    return true;
}

// Writes the row, whether there is one or not. `key` is its primary key.
void put(const char *table, const char *key, const Fields &fields, const void *from) {
    const char *names = field_names(fields);
    execute(psprintf("INSERT INTO @%s (%s) SELECT %s ON CONFLICT (%s) DO UPDATE SET (%s) = ROW(%s)", table, names,
                     field_names(fields, "($1)."), key, names, field_names(fields, "EXCLUDED.")),
            row_of(table, fields, from));
}

// ---------------------------------------------------------------------------------------------------------
// Which field is which column.
// ---------------------------------------------------------------------------------------------------------

#define STATE(member, name, none) UIDGEN_FIELD(FleetState, member, name, none)
#define STATE_TIME(member, name) UIDGEN_TIME_FIELD(FleetState, member, name, 0)
constexpr Field of_state[] = {
    STATE(view.fleet, "fleet", required), STATE(view.term.number, "term", required),
    STATE(view.term.nonce, "term_nonce", required), STATE(view.first, "first_term", required),
    STATE_TIME(view.unproven_base_us, "unproven_base"), STATE(view.former.number, "former_term", 0),
    STATE(view.former.nonce, "former_term_nonce", 0), STATE(view.former_serial, "former_serial", 0),
    STATE(view.shown.number, "shown_term", 0), STATE_TIME(view.fence_base_us, "fence_base"),
    STATE_TIME(view.covered_us, "covered_until"), STATE_TIME(view.closed_until_us, "closed_until"),
    STATE_TIME(view.started_us, "started"), STATE(view.serial_at_start, "serial_at_start", 0),
    STATE_TIME(view.granted_at_start_us, "granted_at_start"), STATE(refuses, "refuses", 0),
    STATE(environment.timeline, "timeline", required), STATE(environment.database, "database", required),
    STATE(environment.directory, "directory", required),
    // Of the view only: what an administrator sets, and claims.
    STATE(synchronous, "synchronous", required), STATE(view.longest_us, "longest_us", required),
    STATE(view.bound_us, "bound_us", required), STATE(view.claimed, "claimed", 0)};
constexpr Fields state_fields = fields_in(of_state);
constexpr Fields written_state_fields = {state_fields.first, state_fields.last - 4};

#define NODE(member, name, none) UIDGEN_FIELD(NodeRecord, member, name, none)
constexpr Field of_node[] = {NODE(pool, "pool", required),
                             NODE(row.node, "node", required),
                             NODE(row.from, "granted_from", required),
                             NODE(row.until, "granted_until", required),
                             NODE(row.membership, "membership", required),
                             NODE(row.incarnation, "incarnation", required),
                             NODE(row.term.number, "term", required),
                             NODE(row.term.nonce, "term_nonce", required),
                             NODE(row.serial, "serial", required),
                             NODE(row.revoked, "revoked", required),
                             NODE(host, "host", 0),
                             NODE(port, "port", 0),
                             NODE(database, "database", 0),
                             NODE(generator, "generator", 0),
                             NODE(version, "version", 0),
                             NODE(policy, "policy", 0),
                             NODE(login, "login", 0),
                             NODE(asked_length, "asked_length", required),
                             NODE(clock_offset_us, "clock_offset_us", required),
                             UIDGEN_TIME_FIELD(NodeRecord, last_heard_us, "last_heard", 0)};
constexpr Fields node_fields = fields_in(of_node);

#define LAYOUT(member, name) UIDGEN_FIELD(core::Layout, member, name, required)
constexpr Field of_layout[] = {LAYOUT(tick_us, "tick_us"),
                               LAYOUT(time_bits, "time_bits"),
                               LAYOUT(datacenter_bits, "datacenter_bits"),
                               LAYOUT(worker_bits, "worker_bits"),
                               LAYOUT(sequence_bits, "sequence_bits"),
                               LAYOUT(sequence_first, "sequence_first"),
                               LAYOUT(backup, "backup_worker"),
                               UIDGEN_TIME_FIELD(core::Layout, epoch_us, "epoch", -1)};
constexpr Fields layout_fields = fields_in(of_layout);

// Whether the row has the values of $1.
const char *has_same(const Fields &fields) {
    return psprintf("(%s) = (%s)", field_names(fields), field_names(fields, "($1)."));
}

Argument row_of(const core::Layout &layout) { return row_of("uid_fleet_pool", layout_fields, &layout); }

} // namespace

bool use_tables(Oid schema) {
    home = schema;
    only_plans = false; // an error may have ended plan_statements()
    for (const Plan *p = plans; p < plans + most_plans && p->plan != nullptr; p++)
        are_planned = are_planned && SPI_plan_is_valid(p->plan);
    return are_planned;
}

// A member says hello first, which needs no more than the state.
void plan_statements() {
    FleetState state;
    NodeRecord record = {};
    const bool is_hello = plans[0].plan == nullptr;
    only_plans = true;
    (void)read_state(&state);
    if (!is_hello) {
        (void)find_pool({}, DroppedPool::is_ignored);
        (void)read_node_of_incarnation(0, 0, 0, &record);
        (void)count_nodes_of("", {}, 0);
        (void)count_logins({}, 0);
        (void)find_unused_node({}, &record); // which reads a node, too
        put_node(record);
    }
    drop_invalid_plans(); // otherwise each call would plan again
    are_planned = !is_hello;
    only_plans = false;
}

// ---------------------------------------------------------------------------------------------------------
// The state.
// ---------------------------------------------------------------------------------------------------------

bool read_state(FleetState *state) {
    constexpr Field of_key[] = {STATE(key, "key", 0)};
    *state = {};
    (void)select(fields_in(of_key), state,
                 "FROM (SELECT encode(seal_key, 'hex') AS key FROM uid_secrets.uid_fleet_key) k");
    return select(state_fields, state, "FROM uid_internal.fleet_state");
}

FleetState state_in(HeapTupleHeader row) {
    FleetState state = {};
    HeapTupleData tuple = {};
    TupleDesc desc = lookup_rowtype_tupdesc(HeapTupleHeaderGetTypeId(row), HeapTupleHeaderGetTypMod(row));
    tuple.t_len = HeapTupleHeaderGetDatumLength(row);
    tuple.t_data = row;
    read_fields(state_fields, &state, &tuple, desc);
    ReleaseTupleDesc(desc);
    return state;
}

void write_state(const FleetState &state) { put("uid_fleet_state", "only_row", written_state_fields, &state); }

void put_clock_bound(int64_t us) {
    execute("UPDATE @uid_fleet_state SET clock_bound = $1 * interval '1 microsecond'", us);
}

int64_t draw_serial() { return draw_number_of(home, "uid_fleet_serial"); }

void forget_grants(const char *key) {
    execute("DELETE FROM @uid_fleet_node");
    execute("DELETE FROM @uid_fleet_pool");
    execute("DELETE FROM uid_secrets.uid_fleet_key");
    execute("INSERT INTO uid_secrets.uid_fleet_key (seal_key) VALUES (coalesce(decode($1, 'hex'), "
            "uuid_send(gen_random_uuid())))",
            key);
}

bool put_claim(const core::RegistryView &view, const char *login, int64_t term, const FleetRequest &shown_by) {
    return select_number("INSERT INTO @uid_fleet_claim AS c (login, term, shown_at, host, port) VALUES ($1, $2, "
                         "to_timestamp($3::float8 / 1000000), $4, $5) ON CONFLICT (login) DO UPDATE "
                         "SET (term, shown_at, host, port) = (greatest(c.term, EXCLUDED.term), EXCLUDED.shown_at, "
                         "EXCLUDED.host, EXCLUDED.port) RETURNING (SELECT count(*) FROM @uid_fleet_claim "
                         "WHERE login = $1 AND shown_at > to_timestamp($6::float8 / 1000000))",
                         login, term, view.now_us, shown_by.host, shown_by.port,
                         view.now_us - core::claim_us(view)) == 0;
}

void drop_claims(const char *login) { execute("DELETE FROM @uid_fleet_claim WHERE login = $1 OR $1 IS NULL", login); }

// ---------------------------------------------------------------------------------------------------------
// Pools.
// ---------------------------------------------------------------------------------------------------------

int32_t find_pool(const core::Layout &layout, DroppedPool dropped) {
    return static_cast<int32_t>(
        select_number(psprintf("SELECT pool::bigint FROM @uid_fleet_pool WHERE %s%s",
                               dropped == DroppedPool::counts ? "" : "NOT dropped AND ", has_same(layout_fields)),
                      row_of(layout)));
}

int32_t insert_pool(const core::Layout &layout, const char *preset, const char *login) {
    constexpr int64_t most = 1000;
    const char *names = field_names(layout_fields);
    return static_cast<int32_t>(select_number(
        psprintf("INSERT INTO @uid_fleet_pool (%s, preset, login, pool) SELECT %s, $2, $3, coalesce(max(pool), 0) + 1 "
                 "FROM @uid_fleet_pool HAVING count(*) FILTER (WHERE login = $3 AND NOT dropped) < $4 ON CONFLICT (%s) "
                 "DO UPDATE SET (preset, login, dropped) = ROW(EXCLUDED.preset, EXCLUDED.login, false) "
                 "RETURNING pool::bigint",
                 names, field_names(layout_fields, "($1)."), names),
        row_of(layout), preset, login, most));
}

bool read_pool(int32_t pool, core::Layout *layout) {
    return select(layout_fields, layout, "FROM @uid_fleet_pool WHERE pool = $1 AND NOT dropped", pool);
}

bool find_pool_with_equal_ids(const core::Layout &layout, const char *preset, core::Layout *found) {
    return select(layout_fields, found,
                  "FROM @uid_fleet_pool p WHERE NOT dropped AND (tick_us, time_bits, datacenter_bits + worker_bits, "
                  "sequence_bits, sequence_first) = (($1).tick_us, ($1).time_bits, ($1).datacenter_bits + "
                  "($1).worker_bits, ($1).sequence_bits, ($1).sequence_first) ORDER BY preset = $2 DESC, pool LIMIT 1",
                  row_of(layout), preset);
}

void drop_pool(int32_t pool) { execute("UPDATE @uid_fleet_pool SET dropped = true WHERE pool = $1", pool); }

core::KnownGrants read_latest_grants(const core::RegistryView &view) {
    constexpr Field of_end[] = {NODE(row.until, "granted_until", required)};
    core::KnownGrants latest = {};
    core::Layout layout;
    NodeRecord last;
    const uint64 rows =
        execute(psprintf("SELECT %s, granted_until FROM @uid_fleet_pool p CROSS JOIN LATERAL (SELECT n.granted_until "
                         "FROM @uid_fleet_node n WHERE n.pool::bigint = p.pool AND n.membership <> 0 "
                         "ORDER BY n.granted_until DESC LIMIT 1) l",
                         field_names(layout_fields)));
    for (uint64 i = 0; i < rows; i++) {
        read_row(layout_fields, &layout, i);
        read_row(fields_in(of_end), &last, i);
        latest.latest_end_us = Max(latest.latest_end_us, core::latest_end_us(layout, view, last.row.until));
    }
    latest.last_us =
        select_number("SELECT (EXTRACT(epoch FROM max(last_heard)) * 1000000)::bigint FROM @uid_fleet_node");
    return latest;
}

// ---------------------------------------------------------------------------------------------------------
// Nodes. While the table is empty, when plans are made, one index costs as much as another. So each statement uses only
// expressions that the right one has.
// ---------------------------------------------------------------------------------------------------------

bool read_node(int32_t pool, int64_t node, NodeRecord *record) {
    *record = {};
    record->pool = pool;
    record->row.node = node;
    return select(node_fields, record, "FROM @uid_fleet_node WHERE pool = $1 AND node = $2", pool, node);
}

bool read_node_of_incarnation(int32_t pool, uint64_t incarnation, int64_t but_node, NodeRecord *record) {
    return select(node_fields, record,
                  "FROM @uid_fleet_node WHERE incarnation = $2 AND incarnation <> 0 AND pool - 0 = $1 AND node <> $3 "
                  "ORDER BY term DESC, serial DESC LIMIT 1",
                  pool, static_cast<int64_t>(incarnation), but_node);
}

bool read_sticky_node(int32_t pool, const FleetRequest &r, const char *login, NodeRecord *record) {
    return select(node_fields, record,
                  "FROM @uid_fleet_node WHERE pool - 0 = $1 AND generator = $2 AND database = $3 AND host = $4 "
                  "AND port = $5 AND login || '' = $6 AND policy = 'sticky' ORDER BY term DESC, serial DESC LIMIT 1",
                  pool, r.name, r.database, r.host, r.port, login);
}

bool read_oldest_node(NodeRange range, int64_t from, NodeRecord *record) {
    return select(node_fields, record,
                  "FROM @uid_fleet_node WHERE pool::bigint = $1 AND node + 0 BETWEEN $2 AND $3 "
                  "AND granted_until <= $4 ORDER BY granted_until LIMIT 1",
                  range.pool, range.first, range.last, from);
}

// With OFFSET the planner makes no join of it, which could compare all nodes with all.
bool find_unused_node(NodeRange range, NodeRecord *record) {
    const int64_t node =
        select_number("SELECT coalesce((SELECT $2 WHERE NOT EXISTS (SELECT FROM @uid_fleet_node WHERE pool = $1 "
                      "AND node = $2) UNION ALL (SELECT n.node + 1 FROM @uid_fleet_node n WHERE n.pool = $1 "
                      "AND n.node >= $2 AND n.node < $3 AND NOT EXISTS (SELECT FROM @uid_fleet_node m "
                      "WHERE m.pool = $1 AND m.node = n.node + 1 OFFSET 0) LIMIT 1) LIMIT 1), $4)",
                      range.pool, range.first, range.last, no_node);
    return node != no_node && !read_node(range.pool, node, record);
}

void put_node(const NodeRecord &record) { put("uid_fleet_node", "pool, node", node_fields, &record); }

int64_t count_nodes_of(const char *login, NodeRange range, int64_t tick) {
    return select_number("SELECT count(*) FROM (SELECT FROM @uid_fleet_node WHERE login = $6 AND pool + 0 = $1 "
                         "AND granted_until + 0 > $4 AND node + 0 BETWEEN $2 AND $3 LIMIT $5) n",
                         range.pool, range.first, range.last, tick, core::most_nodes, login);
}

int64_t count_nodes(NodeRange range, int64_t tick, int64_t most) {
    return select_number("SELECT count(*) FROM (SELECT FROM @uid_fleet_node WHERE pool::bigint = $1 "
                         "AND granted_until > $4 AND node + 0 BETWEEN $2 AND $3 LIMIT $5) n",
                         range.pool, range.first, range.last, tick, most);
}

// From one login to the next in the index, because one may have many nodes; OFFSET as in find_unused_node().
int64_t count_logins(NodeRange range, int64_t tick) {
    return select_number(
        "WITH RECURSIVE l AS (SELECT '' AS login UNION ALL SELECT (SELECT n.login FROM @uid_fleet_node n "
        "WHERE n.pool + 0 = $1 AND n.login > l.login ORDER BY n.login LIMIT 1) FROM l WHERE l.login IS NOT NULL) "
        "SELECT count(*) FROM l WHERE EXISTS (SELECT FROM @uid_fleet_node n WHERE n.login = l.login "
        "AND n.pool + 0 = $1 AND n.granted_until + 0 > $4 AND n.node + 0 BETWEEN $2 AND $3 OFFSET 0)",
        range.pool, range.first, range.last, tick);
}

// ---------------------------------------------------------------------------------------------------------
// Segments.
// ---------------------------------------------------------------------------------------------------------

int64_t read_given(const char *segment, int64_t none) {
    return select_number("SELECT coalesce((SELECT last_value FROM @uid_fleet_segment WHERE name = $1), $2)", segment,
                         none);
}

void put_given(const char *segment, int64_t last) {
    execute("INSERT INTO @uid_fleet_segment (name, last_value) VALUES ($1, $2) "
            "ON CONFLICT (name) DO UPDATE SET last_value = EXCLUDED.last_value",
            segment, last);
}

} // namespace uidgen::pg
