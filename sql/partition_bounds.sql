-- Bounds of partitions by time, and a table's growth by the statistics.
CREATE EXTENSION uidgen;
SET timezone = 'UTC';
SET datestyle = 'ISO';
\getenv source PG_ABS_SRCDIR
\set outcome :source '/test/outcome.sql'
\i :outcome
SELECT uid_generator_create('js53', 'js53'), uid_generator_create('old', 'twitter');

-- Months of different lengths; the last one is cut.
SELECT * FROM uid_partition_bounds('2026-01-31', '2026-05-10', '1 month');
SELECT count(*), bool_and(lower = uid_lower_bound(from_time)) AS lower, bool_and(upper = uid_lower_bound(to_time)) AS upper,
       bool_and(lower = former) AS contiguous, min(from_time), max(to_time)
  FROM (SELECT *, lag(upper) OVER (ORDER BY lower) AS former FROM uid_partition_bounds('2026-01-01', '2030-01-01', '1 day')) b;
SELECT lower >> 21 AS first_second, upper - lower = 3600::bigint << 21 AS an_hour FROM uid_partition_bounds('2026-01-01 00:00:00', '2026-01-01 03:00', '1 hour', 'uid_generators.js53');
-- A first range that begins before the epoch, a last one that ends after the end of time, and a step longer than the range.
SELECT * FROM uid_partition_bounds('2025-12-15', '2026-01-15', '1 month');
SELECT lower, upper, upper = uid_lower_bound('infinity') AS the_end FROM uid_partition_bounds('2095-09-01', '2096-01-01', '1 year');
SELECT * FROM uid_partition_bounds('2026-02-01', '2026-02-02', '1 year');
-- Days of the session's time zone: 23, 24 and 25 hours.
SET timezone = 'Europe/Berlin';
SELECT from_time, (to_time - from_time)::text AS length, (upper - lower) >> 22 AS ms FROM uid_partition_bounds('2026-03-28', '2026-03-31', '1 day');
SET timezone = 'UTC';

-- Partitions are made of it, and each row goes where its time is.
CREATE TABLE event (id bigint PRIMARY KEY, made timestamptz) PARTITION BY RANGE (id);
SELECT format('CREATE TABLE event_%s PARTITION OF event FOR VALUES FROM (%s) TO (%s)', to_char(from_time, 'YYYY_MM'), lower, upper)
  FROM uid_partition_bounds('2025-01-01', '2025-07-01', '1 month', 'uid_generators.old') \gexec
INSERT INTO event SELECT uid_encode(t, 3, 1, 7, 'uid_generators.old'), t FROM generate_series(timestamptz '2025-01-01', '2025-06-30 23:59', interval '1 h') t;
SELECT tableoid::regclass, min(made), max(made), count(*) FROM event GROUP BY 1 ORDER BY 1;

-- What is refused. NULL gives no row.
SELECT count(*) FROM uid_partition_bounds(NULL, '2026-02-01', '1 day');
SELECT count(*) FROM uid_partition_bounds('2026-02-01', '2026-02-02', '1 day', NULL);
CREATE SEQUENCE plain;
\pset format unaligned
\pset tuples_only on
\pset fieldsep '\n   '
SELECT arguments, outcome('SELECT count(*) FROM uid_partition_bounds(' || arguments || ')') FROM (VALUES
  ('''2026-02-01'', ''2026-02-01'', ''1 day'''), ('''2026-02-02'', ''2026-02-01'', ''1 day'''),
  ('''-infinity'', ''2026-02-01'', ''1 day'''), ('''2026-02-01'', ''infinity'', ''1 day'''),
  ('''2026-02-01'', ''2026-03-01'', ''0'''), ('''2026-02-01'', ''2026-03-01'', ''-1 day'''),
  ('''2026-02-01'', ''2026-03-01'', ''1 month -40 days'''),
  ('''2026-02-01'', ''2026-03-01'', ''1 us'''), ('''2026-02-01'', ''2026-03-01'', ''500 ms'', ''uid_generators.js53'''),
  ('''2025-01-01'', ''2026-03-01'', ''1 month'''), ('''2095-01-01'', ''2097-01-01'', ''1 year'''),
  ('''2026-02-01'', ''2026-03-01'', ''1 day'', ''plain'''), ('''2026-02-01'', ''2026-03-01'', ''1 day'', ''event'''),
  ('''2026-02-01'', ''2026-03-01'', ''1 day'', 0')) v (arguments);
\pset tuples_only off
\pset format aligned

-- A histogram: even growth in February and March, ten times as much in April; none after the last ANALYZE.
CREATE TABLE growth (id bigint PRIMARY KEY, note text);
INSERT INTO growth SELECT uid_encode(t, 3, 1, 7, 'uid_generators.old') FROM generate_series(timestamptz '2025-02-01', '2025-03-31 23:00', interval '1 h') t;
INSERT INTO growth SELECT uid_encode(t, 3, 1, 8, 'uid_generators.old') FROM generate_series(timestamptz '2025-04-01', '2025-04-30 23:54', interval '6 min') t;
ANALYZE growth;
SELECT * FROM uid_histogram('growth', 'id', 1, 'uid_generators.old');
SELECT h.from_time, h.to_time, abs(h.estimated_rows - exact) <= 20 AS near
  FROM uid_histogram('growth', 'id', 9, 'uid_generators.old') h,
       LATERAL (SELECT count(*) AS exact FROM growth WHERE id >= uid_lower_bound(h.from_time, 'uid_generators.old') AND id < uid_lower_bound(h.to_time, 'uid_generators.old')) e;
SELECT sum(estimated_rows) BETWEEN (SELECT count(*) FROM growth) - 50 AND (SELECT count(*) FROM growth) + 50 AS all_rows, count(*)
  FROM uid_histogram('growth', 'id', 100, 'uid_generators.old');
-- The index shows what came after ANALYZE, and the size of the table how much it is.
INSERT INTO growth SELECT uid_encode(t, 3, 1, 8, 'uid_generators.old') FROM generate_series(timestamptz '2025-05-01', '2025-05-30 23:54', interval '6 min') t;
SELECT max(to_time) - interval '1 ms' AS last, sum(estimated_rows) FILTER (WHERE from_time >= '2025-05-01') BETWEEN 6500 AND 7800 AS may
  FROM uid_histogram('growth', 'id', 118, 'uid_generators.old');
-- It does not scan the table.
BEGIN;
SELECT pg_stat_get_xact_tuples_returned('growth'::regclass) AS before \gset
SELECT count(*) FROM uid_histogram('growth', 'id', 20, 'uid_generators.old');
SELECT pg_stat_get_xact_tuples_returned('growth'::regclass) - :before AS rows_read;
COMMIT;
-- Without the index the statistics alone.
ALTER TABLE growth DROP CONSTRAINT growth_pkey;
SELECT max(to_time) - interval '1 ms' AS last FROM uid_histogram('growth', 'id', 20, 'uid_generators.old');
-- A partitioned table, one with equal ids, one row, NULLs, no row; numbers that are not ids.
ANALYZE event;
SELECT from_time, to_time, abs(estimated_rows - 724) < 30 AS near FROM uid_histogram('event', 'id', 6, 'uid_generators.old');
CREATE TABLE several AS SELECT uid_encode('2025-01-01', 0, 0, i % 3, 'uid_generators.old') AS id FROM generate_series(1, 999) i;
ANALYZE several;
SELECT * FROM uid_histogram('several', 'id', 2, 'uid_generators.old');
CREATE TABLE few (id bigint PRIMARY KEY);
INSERT INTO few VALUES (uid_encode('2025-01-01', 0, 0, 0, 'uid_generators.old'));
ANALYZE few;
SELECT * FROM uid_histogram('few', 'id', 1, 'uid_generators.old');
TRUNCATE few;
ANALYZE few;
SELECT * FROM uid_histogram('few', 'id', 1, 'uid_generators.old');
-- Rows that came when the statistics were of no row. Rows in a partition that was never counted.
INSERT INTO few VALUES (uid_encode('2025-01-01', 0, 0, 0, 'uid_generators.old'));
SELECT outcome($$SELECT * FROM uid_histogram('few', 'id', 1, 'uid_generators.old')$$);
CREATE TABLE parted (id bigint PRIMARY KEY) PARTITION BY RANGE (id);
CREATE TABLE parted_1 PARTITION OF parted FOR VALUES FROM (0) TO (100000);
INSERT INTO parted SELECT generate_series(0, 9999);
ANALYZE parted;
CREATE TABLE parted_2 PARTITION OF parted FOR VALUES FROM (100000) TO (200000);
INSERT INTO parted SELECT generate_series(100000, 109999);
SELECT sum(estimated_rows) BETWEEN 15000 AND 25000 AS near FROM uid_histogram('parted', 'id', 2, 'uid_generators.old');
CREATE TABLE nulls AS SELECT NULL::bigint AS id FROM generate_series(1, 100);
ANALYZE nulls;
SELECT * FROM uid_histogram('nulls', 'id', 1, 'uid_generators.old');
CREATE TABLE numbers (id bigint PRIMARY KEY);
INSERT INTO numbers SELECT i FROM generate_series(-50, 49) i UNION ALL SELECT 9223372036854775807 - i FROM generate_series(0, 9) i;
ANALYZE numbers;
SELECT from_time, to_time, estimated_rows FROM uid_histogram('numbers', 'id', 2, 'uid_generators.js53');
CREATE TABLE "Odd ""t""" ("Id ' 1" bigint PRIMARY KEY);
INSERT INTO "Odd ""t""" SELECT uid_encode('2026-01-01', 0, 0, i) FROM generate_series(1, 100) i;
ANALYZE "Odd ""t""";
SELECT sum(estimated_rows) FROM uid_histogram('"Odd ""t"""', 'Id '' 1');
-- What is refused, also to a role.
CREATE VIEW a_view AS SELECT * FROM growth;
CREATE TABLE fresh (id bigint PRIMARY KEY, item text, small integer);
INSERT INTO fresh VALUES (1);
CREATE ROLE histogram_reader;
CREATE FUNCTION as_reader(statement text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  result text;
BEGIN
  SET LOCAL ROLE histogram_reader;
  result := outcome(statement);
  RESET ROLE;
  RETURN result;
END
$$;
SELECT count(*) FROM uid_histogram(NULL, 'id');
\pset format unaligned
\pset tuples_only on
SELECT arguments, outcome('SELECT count(*) FROM uid_histogram(' || arguments || ')') FROM (VALUES
  ('''fresh'', ''id'''), ('''fresh'', ''item'''), ('''fresh'', ''small'''), ('''fresh'', ''absent'''), ('''fresh'', ''ctid'''),
  ('''growth'', ''id'', 0'), ('''growth'', ''id'', 10001'), ('''growth'', ''id'', 20, ''plain'''), ('''growth'', ''id'', 20, 0'),
  ('''a_view'', ''id'''), ('''plain'', ''last_value'''), ('''fresh_pkey'', ''id'''), ('0, ''id'''), ('4294967295::oid, ''id''')) v (arguments);
SELECT as_reader('SELECT count(*) FROM uid_histogram(''growth'', ''id'', 20)');
GRANT SELECT (id) ON growth TO histogram_reader;
SELECT as_reader('SELECT count(*) FROM uid_histogram(''growth'', ''id'', 20)');
ALTER TABLE growth ENABLE ROW LEVEL SECURITY;
SELECT as_reader('SELECT count(*) FROM uid_histogram(''growth'', ''id'', 20)');

DROP TABLE event, growth, several, few, parted, nulls, numbers, "Odd ""t""", fresh CASCADE;
DROP SEQUENCE plain;
DROP FUNCTION outcome, as_reader;
DROP ROLE histogram_reader;
SET client_min_messages = warning;
DROP EXTENSION uidgen CASCADE;
