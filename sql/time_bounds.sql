-- Times as bounds of ids: half-open ranges, partitions, indexes, generated columns.
\a \t
CREATE EXTENSION uidgen;
SET timezone = 'UTC';
SET datestyle = 'ISO';

-- The bound of an instant is the least id of the first tick that begins at it or after it. An id is as old as its tick's start.
SELECT uid_lower_bound('2026-03-01 00:00') = uid_encode('2026-03-01 00:00', 0, 0, 0) AS at_tick,
       uid_lower_bound('2026-03-01 00:00:00.000001') = uid_encode('2026-03-01 00:00:00.001', 0, 0, 0) AS within_tick,
       uid_lower_bound('2026-03-01 00:00:00.001') = uid_encode('2026-03-01 00:00:00.001', 0, 0, 0) AS next_tick,
       uid_encode('2026-02-28 23:59:59.999', 31, 31, 4095) = uid_lower_bound('2026-03-01 00:00') - 1 AS none_between;
-- Half-open: of two ranges that meet, each id is in one; the one at the border in the later.
SELECT d, i >= uid_lower_bound('2026-02-01') AND i < uid_lower_bound('2026-03-01') AS february, i >= uid_lower_bound('2026-03-01') AND i < uid_lower_bound('2026-04-01') AS march
  FROM (VALUES ('2026-01-31 23:59:59.999'), ('2026-02-01 00:00'), ('2026-02-28 23:59:59.999'), ('2026-03-01 00:00'), ('2026-03-31 23:59:59.999'), ('2026-04-01 00:00')) AS t(d),
       uid_encode(d::timestamptz, 31, 31, 4095) AS i;
-- The ends.
SELECT uid_lower_bound('-infinity') AS minus_infinity, uid_lower_bound('2025-12-31 23:59:59.999999') AS before_epoch, uid_lower_bound('2026-01-01') AS epoch,
       uid_lower_bound('2026-01-01 00:00:00.000001') AS first, uid_lower_bound('2095-09-07 15:47:35.551') AS last_tick,
       uid_lower_bound('2095-09-07 15:47:35.552') AS after_it, uid_lower_bound('infinity') AS infinity, uid_lower_bound('4713-01-01 BC') AS bc, uid_lower_bound(NULL) AS "null";
SELECT uid_encode('294246-01-01', 0, 0, 0);
SELECT uid_encode('infinity', 0, 0, 0);
SELECT uid_encode('-infinity', 0, 0, 0);
SELECT uid_generator_create('js53', 'js53'), uid_generator_create('sonyflake', 'sonyflake');
SELECT uid_lower_bound('infinity', 'uid_generators.js53') = 1::bigint << 53 AS one_more_than_the_largest, uid_lower_bound('2026-01-02 00:00:00.5', 'uid_generators.js53') = 86401::bigint << 21 AS rounded_up,
       uid_lower_bound('2014-09-01 00:00:00.005', 'uid_generators.sonyflake') = 1 << 24 AS ten_ms;
SELECT uid_lower_bound('2026-02-01', 'worker_node_id_seq');
SELECT uid_lower_bound('2026-02-01', 0);
-- The IMMUTABLE forms say the same.
SELECT g.generator, bool_and(uid_lower_bound(t, g.generator) = uid_lower_bound(t, g.epoch, g.tick_us, s)) AS lower_bound,
       bool_and(uid_timestamp(uid_lower_bound(t, g.generator), g.epoch, g.tick_us, s) = uid_timestamp(uid_lower_bound(t, g.generator), g.generator)) AS timestamp,
       bool_and(uid_timestamp(uid_lower_bound(t, g.generator), g.generator) >= t AND uid_timestamp(uid_lower_bound(t, g.generator) - 1, g.generator) < t) AS bounds, count(*)
  FROM uid_generator AS g, LATERAL (SELECT datacenter_bits + worker_bits + sequence_bits) AS b(s),
       generate_series('2026-01-01 00:00:00.0005'::timestamptz, '2095-01-01', interval '17 d 3 h 0.123457 s') AS t
 GROUP BY g.generator ORDER BY g.generator::text;
SELECT uid_lower_bound(NULL, '2026-01-01', 1000, 22) IS NULL AND uid_lower_bound('2026-01-01', NULL, 1000, 22) IS NULL AND uid_timestamp(5, NULL, 1000, 22) IS NULL AS nulls;

-- A table partitioned by month on its id. (The default generator of here has Twitter's epoch, so that all months are past.)
SELECT uid_generator_create('old', 'twitter');
SELECT uid_default_set('uid_generators.old');
CREATE TABLE event (id bigint PRIMARY KEY, note text) PARTITION BY RANGE (id);
SELECT format('CREATE TABLE event_%s PARTITION OF event FOR VALUES FROM (uid_lower_bound(%L, %L, 1000, 22)) TO (uid_lower_bound(%L, %L, 1000, 22))',
              to_char(m, 'YYYY_MM'), m, '2010-11-04 01:42:54.657+00', m + interval '1 month', '2010-11-04 01:42:54.657+00')
  FROM generate_series(timestamptz '2025-01-01', '2025-06-01', interval '1 month') AS m \gexec
CREATE TABLE event_later PARTITION OF event FOR VALUES FROM (uid_lower_bound('2025-07-01', '2010-11-04 01:42:54.657+00', 1000, 22)) TO (MAXVALUE);
SELECT pg_get_expr(relpartbound, oid) FROM pg_class WHERE relname = 'event_2025_02';
INSERT INTO event SELECT uid_encode(t, 0, 1, 7), to_char(t, 'YYYY_MM') FROM generate_series(timestamptz '2025-01-01', '2025-08-31 23:59:59.999', interval '1 h') AS t;
INSERT INTO event VALUES (uid_encode('2025-02-28 23:59:59.999', 31, 31, 4095), '2025_02'), (uid_encode('2025-03-01 00:00', 0, 0, 0), '2025_03');
SELECT tableoid::regclass, min(note), max(note), count(*) FROM event GROUP BY 1 ORDER BY tableoid::regclass::text;
ANALYZE event;
-- From constants the planner leaves out other months, and so does a bound by the generator when the plan is started.
EXPLAIN (COSTS OFF) SELECT count(*) FROM event WHERE id >= uid_lower_bound('2025-03-01', '2010-11-04 01:42:54.657+00', 1000, 22) AND id < uid_lower_bound('2025-04-01', '2010-11-04 01:42:54.657+00', 1000, 22);
EXPLAIN (COSTS OFF) SELECT count(*) FROM event WHERE id >= uid_lower_bound('2025-03-01') AND id < uid_lower_bound('2025-04-01');
SELECT count(*), min(note), max(note) FROM event WHERE id >= uid_lower_bound('2025-03-01') AND id < uid_lower_bound('2025-04-01');
SELECT count(*) FROM event WHERE uid_timestamp(id) >= '2025-03-01' AND uid_timestamp(id) < '2025-04-01';
-- now() is known at the start of the executor: nothing is of a month that is before the last day.
SET enable_seqscan = off;
SET enable_bitmapscan = off;
EXPLAIN (COSTS OFF) SELECT * FROM event WHERE id >= uid_lower_bound(now() - interval '1 day');
PREPARE recent(interval) AS SELECT count(*) FROM event WHERE id >= uid_lower_bound(now() - $1);
SET plan_cache_mode = force_generic_plan;
EXPLAIN (COSTS OFF) EXECUTE recent('1 day');
EXECUTE recent('1 day');
EXECUTE recent(now() - '2025-05-30');
RESET plan_cache_mode;
-- A range by time is a range of the index.
EXPLAIN (COSTS OFF) SELECT * FROM event_2025_02 WHERE id >= uid_lower_bound('2025-02-10') AND id < uid_lower_bound('2025-02-11') ORDER BY id;
SELECT count(*), min(uid_timestamp(id)), max(uid_timestamp(id)) FROM event_2025_02 WHERE id >= uid_lower_bound('2025-02-10') AND id < uid_lower_bound('2025-02-11');

-- A generated column and an expression index.
CREATE TABLE ticket (id bigint PRIMARY KEY DEFAULT uid_next(), made timestamptz GENERATED ALWAYS AS (uid_timestamp(id, '2010-11-04 01:42:54.657+00', 1000, 22)) STORED);
INSERT INTO ticket SELECT id FROM event;
INSERT INTO ticket DEFAULT VALUES;
CREATE INDEX ticket_made ON ticket (made);
CREATE INDEX ticket_day ON ticket (((uid_timestamp(id, '2010-11-04 01:42:54.657+00', 1000, 22) AT TIME ZONE 'UTC')::date));
ANALYZE ticket;
SELECT bool_and(made = uid_timestamp(id)) AS made, max(made) > clock_timestamp() - interval '1 min' AS now FROM ticket;
EXPLAIN (COSTS OFF) SELECT id FROM ticket WHERE made BETWEEN '2025-02-01' AND '2025-02-02';
SELECT count(*) FROM ticket WHERE made BETWEEN '2025-02-01' AND '2025-02-02';
CREATE INDEX ticket_time ON ticket (uid_timestamp(id, '2010-11-04 01:42:54.657+00', 1000, 22));
EXPLAIN (COSTS OFF) SELECT id FROM ticket WHERE uid_timestamp(id, '2010-11-04 01:42:54.657+00', 1000, 22) < '2025-01-01 05:00';
SELECT count(*) FROM ticket WHERE uid_timestamp(id, '2010-11-04 01:42:54.657+00', 1000, 22) < '2025-01-01 05:00';
EXPLAIN (COSTS OFF) SELECT id FROM ticket WHERE (uid_timestamp(id, '2010-11-04 01:42:54.657+00', 1000, 22) AT TIME ZONE 'UTC')::date = '2025-02-28';
SELECT count(*) FROM ticket WHERE (uid_timestamp(id, '2010-11-04 01:42:54.657+00', 1000, 22) AT TIME ZONE 'UTC')::date = '2025-02-28';
-- The forms that read uid_generator are not IMMUTABLE.
\set VERBOSITY sqlstate
CREATE INDEX ON ticket (uid_timestamp(id));
\set VERBOSITY default
CREATE TABLE bound (made timestamptz, id bigint GENERATED ALWAYS AS (uid_lower_bound(made)) STORED);

DROP TABLE event, ticket;
SET client_min_messages = warning;
DROP EXTENSION uidgen CASCADE;
