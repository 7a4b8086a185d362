-- What a user meets first: ids, their parts, batches, a segment.
\a \t
CREATE EXTENSION uidgen;

\getenv source PG_ABS_SRCDIR
\i :source/test/outcome.sql

-- Nothing drawn yet.
SELECT outcome('SELECT uid_last()');

-- A column's default.
CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT uid_next(), note text NOT NULL);
INSERT INTO orders (note) SELECT 'order ' || i FROM generate_series(1, 10000) AS i;
SELECT count(*), count(DISTINCT id) AS ids, min(id) > 0 AS positive FROM orders;
SELECT bool_and(id > before) AS increasing, uid_last() = max(id) AS last
  FROM (SELECT id, lag(id, 1, 0::bigint) OVER (ORDER BY ctid) AS before FROM orders) AS o;
INSERT INTO orders (note) VALUES ('one more') RETURNING id = uid_last() AS last;

-- The time in an id is the clock's, at most max_ahead above it.
SELECT date_trunc('milliseconds', clock_timestamp()) AS before \gset
SELECT uid_next() AS id \gset
SELECT generated_at BETWEEN :'before' AND clock_timestamp() + interval '2 s' AS truthful,
       datacenter_id BETWEEN 0 AND 31 AS datacenter_id, worker_id BETWEEN 0 AND 31 AS worker_id, sequence BETWEEN 0 AND 4095 AS sequence,
       abs(extract(epoch FROM clock_timestamp() - generated_at)) < 5 AS recent
  FROM uid_decode(:id);
SELECT uid_last() = :id AS last, count(*) AS round_trips
  FROM orders, uid_decode(id) AS d
 WHERE uid_encode(d.generated_at, d.datacenter_id, d.worker_id, d.sequence) = id
   AND uid_timestamp(id) = d.generated_at;

-- The server's ids carry one worker id, which worker_node leads back to.
\i :source/test/rows_of.sql
SELECT rows_of('%', 1);
SELECT count(DISTINCT (uid_decode(id)).worker_id) AS worker_ids FROM orders;
-- The day is that of the server's time zone, which is not the session's.
SELECT w.type IN (1, 2) AS type,
       abs(w.launch_date - pg_postmaster_start_time()::date) <= 1 AS launch_date,
       w.created <= w.modified AS times, w.generator, w.host_name <> '' AS host_name,
       w.port = current_setting('port') AS port,
       w.system_identifier = (SELECT system_identifier FROM pg_control_system()) AS system_identifier,
       w.timeline, s.protection, s.node = d.datacenter_id * 32 + d.worker_id AS node,
       (s.datacenter_id, s.worker_id) = (d.datacenter_id, d.worker_id) AS fields
  FROM worker_node AS w, uid_decode(uid_next()) AS d, uid_generator_status AS s
 WHERE (w.datacenter_id, w.worker_id) = (d.datacenter_id, d.worker_id)
   AND s.generator = 'uid_generators.uid_default'::regclass;
SELECT count(*) FROM worker_node;

-- Arithmetic at its bounds.
SELECT uid_encode('2026-01-01 00:00:00+00', 0, 0, 0) AS lowest, uid_encode('2095-09-07 15:47:35.551+00', 31, 31, 4095) AS highest,
       uid_encode('2026-01-01 00:00:00.001+00', 1, 2, 3) = (1::bigint << 22) + (1 << 17) + (2 << 12) + 3 AS fields,
       uid_encode('2026-01-01 00:00:00.0019+00', 0, 0, 0) = uid_encode('2026-01-01 00:00:00.001+00', 0, 0, 0) AS within_tick;
SELECT generated_at AT TIME ZONE 'UTC' AS generated_at, datacenter_id, worker_id, sequence
  FROM unnest('{8388608, 9223372036854775807}'::bigint[]) AS id, uid_decode(id);
SELECT uid_decode(0) IS NULL AS zero, uid_decode(8388607) IS NULL AS below, uid_timestamp(4711) IS NULL AS of_a_sequence;
SELECT uid_timestamp(8388608) AT TIME ZONE 'UTC' AS lowest, uid_timestamp(9223372036854775807) AT TIME ZONE 'UTC' AS highest;
\set ECHO none
SELECT * FROM outcomes('SELECT %s', 'uid_decode(-1)', 'uid_decode(-9223372036854775808)', 'uid_timestamp(-1)');
SELECT * FROM outcomes('SELECT uid_encode(%s, 0, 0, 0)', $$'2025-12-31 23:59:59.999+00'$$, $$'2095-09-07 15:47:35.552+00'$$,
  $$'infinity'$$, $$'-infinity'$$, $$'294276-12-31 23:59:59.999999+00'$$, $$'4713-01-01 00:00:00+00 BC'$$);
SELECT * FROM outcomes('SELECT uid_encode(''2026-01-01 00:00:00+00'', %s)', '32, 0, 0', '-1, 0, 0', '0, 32, 0', '0, -1, 0',
  '0, 0, 4096', '0, 0, -1', '2147483647, 2147483647, 2147483647');
\set ECHO all

-- A NULL gives a NULL and draws nothing.
SELECT uid_next() AS id \gset
SELECT uid_next(NULL) IS NULL AS next, uid_decode(NULL) IS NULL AS decode, uid_timestamp(NULL) IS NULL AS timestamp,
       uid_encode(NULL, 0, 0, 0) IS NULL AS encode, uid_encode(now(), NULL, 0, 0) IS NULL AS encode_datacenter,
       segment_next(NULL::text) IS NULL AS segment, segment_next(NULL::regclass) IS NULL AS segment_regclass;
SELECT uid_last() = :id AS nothing_drawn;

-- Batches.
SELECT count(*), count(DISTINCT id), bool_and(id > before) AS increasing
  FROM (SELECT id, lag(id, 1, 0::bigint) OVER (ORDER BY n) AS before FROM unnest(uid_next_array(10000)) WITH ORDINALITY AS b(id, n)) AS b;
SELECT uid_next() AS id \gset
SELECT count(*), min(id) > :id AS above FROM unnest(uid_next_array(100)) AS id;
SELECT uid_next_array(0), uid_next_array(NULL), uid_next_array('uid_generators.uid_default', 0), uid_next_array(NULL, 5);
SELECT * FROM outcomes('SELECT uid_next_array(%s)', '-1', '-2147483648');
SELECT (uid_next_array(50))[50] = uid_last() AS last, outcome('SELECT uid_next_array(''uid_generators.uid_default'', -1)');
-- In the target list, for several rows at once, and two at once.
SELECT count(*), count(DISTINCT id) FROM (SELECT unnest(uid_next_array(n)) AS id FROM generate_series(0, 5) AS n) AS b;
SELECT count(*), count(DISTINCT id) FROM (SELECT unnest(ARRAY[a, b]) AS id
  FROM (SELECT unnest(uid_next_array(5)) AS a, unnest(uid_next_array(5)) AS b) AS s) AS b;

-- A generator of one's own.
SELECT uid_generator_create('invoices') AS generator;
CREATE TABLE invoices (id bigint PRIMARY KEY DEFAULT uid_next('uid_generators.invoices'));
INSERT INTO invoices SELECT FROM generate_series(1, 1000);
INSERT INTO invoices SELECT id FROM unnest(uid_next_array('uid_generators.invoices', 1000)) AS id;
SELECT count(*), min(id) > 0 AS positive, max(id) = uid_last() AS last FROM invoices;
SELECT count(*) AS in_both FROM invoices JOIN orders USING (id);
SELECT uid_encode(d.generated_at, d.datacenter_id, d.worker_id, d.sequence, 'uid_generators.invoices') = id AS round_trip,
       uid_timestamp(id, 'uid_generators.invoices') = d.generated_at AS same_time
  FROM (SELECT uid_next('uid_generators.invoices') AS id) AS i, uid_decode(id, 'uid_generators.invoices') AS d;
SELECT rows_of('%', 2);
SELECT count(DISTINCT worker_id) AS worker_ids FROM worker_node;
SELECT generator, preset, worker_id BETWEEN 0 AND 31 AS worker_id, last_time <= leased_until AS lease,
       leased_until < clock_timestamp() + interval '2.001 s' AS max_ahead
  FROM uid_generator_status ORDER BY generator::text;

-- A segment.
SELECT segment_create('test');
SELECT segment_next('test'), segment_next('test'), segment_next('test');
CREATE TABLE test (id bigint PRIMARY KEY DEFAULT segment_next('test'));
INSERT INTO test SELECT FROM generate_series(1, 10);
SELECT min(id), max(id), count(*) FROM test;

SELECT sequence, name, range_first, range_length, range_left FROM segment_status;

DROP TABLE orders, invoices, test;
DROP FUNCTION outcome, outcomes, rows_of;
DROP EXTENSION uidgen CASCADE;
