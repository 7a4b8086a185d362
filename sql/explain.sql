-- What uid_explain() draws and says.
CREATE EXTENSION uidgen;
SET timezone = 'UTC';
SET datestyle = 'ISO';
\getenv source PG_ABS_SRCDIR
\set rows_of :source '/test/rows_of.sql'
\ir :rows_of
-- What differs from run to run.
\set ECHO none
CREATE FUNCTION masked(explanation text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
  explanation := regexp_replace(explanation, 'host .*', 'host <host>', 'n');
  explanation := regexp_replace(explanation, 'worker_node \d+, drawn at .*', 'worker_node <id>, drawn at <time>, last noted at <time>', 'n');
  explanation := regexp_replace(explanation, 'clock by .*?(: it was|, which)', 'clock by <time>\1', 'n');
  RETURN regexp_replace(explanation, 'before \d{4}.*?, when', 'before <time>, when', 'n');
END
$$;
CREATE FUNCTION outcome(statement text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  result text;
BEGIN
  EXECUTE statement INTO result;
  RETURN coalesce(result, 'NULL');
EXCEPTION WHEN OTHERS THEN
  RETURN format('%s %s', SQLSTATE, SQLERRM);
END
$$;
\set ECHO all
\pset format unaligned
\pset tuples_only on

-- Fields of each layout: in bits and as numbers.
SELECT uid_generator_create(preset, preset, epoch => '2026-01-01 00:00+00') FROM uid_preset WHERE preset IN ('js53', 'sonyflake', 'leaf');
SELECT uid_explain(uid_encode('2026-02-03 04:05:06.789', 7, 21, 4095));
SELECT masked(uid_explain(uid_encode('2026-02-03 04:05:06', 0, 9, 5, 'uid_generators.js53'), 'uid_generators.js53'));
SELECT masked(uid_explain(uid_encode('2026-02-03 04:05:06.78', 0, 513, 255, 'uid_generators.sonyflake'), 'uid_generators.sonyflake'));
SET timezone = 'Asia/Kolkata';
SELECT masked(uid_explain(uid_encode('2026-02-03 04:05:06.789', 0, 1023, 0, 'uid_generators.leaf'), 'uid_generators.leaf'));
SET timezone = 'UTC';

-- What is drawn now has a row, and the columns that draw from its generator.
CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT uid_next('uid_generators.leaf'), item text);
CREATE TABLE parted (id bigint DEFAULT uid_next('uid_generators.leaf')) PARTITION BY RANGE (id);
CREATE TABLE part PARTITION OF parted DEFAULT;
INSERT INTO orders VALUES (DEFAULT, 'a') RETURNING id AS drawn \gset
SELECT rows_of('uid_generators.leaf', 1);
SELECT regexp_replace(masked(uid_explain(:drawn, 'uid_generators.leaf')), '^(id|time) .*$|^  [0-9 |]*$', '...', 'gn');

-- What may be wrong: made ahead of its time, within max_ahead_ms and not; the backup worker.
SELECT uid_generator_create('ahead', lease_ms => 1000, max_ahead_ms => 600000);
SELECT split_part(masked(uid_explain(uid_encode(date_trunc('second', now()) + interval '5 min', 0, 0, 0, 'uid_generators.ahead'), 'uid_generators.ahead')), 'notes', 2);
SELECT split_part(masked(uid_explain(uid_encode(date_trunc('second', now()) + interval '1 day', 0, 0, 0))), 'notes', 2);
SELECT uid_explain(uid_encode('2026-02-03 04:05:06', 0, 9 + 16, 5, 'uid_generators.js53'), 'uid_generators.js53') ~ 'notes .*backup worker made it';
-- Not an id of the generator: it is drawn, too.
SELECT uid_explain(9007199254740992 + 5, 'uid_generators.js53');
SELECT uid_explain(-1);
SELECT uid_explain((-9223372036854775808)::bigint, 'uid_generators.js53');
SELECT uid_explain(0), uid_explain(9223372036854775807) ~ 'later than the clock by .*more than max_ahead_ms';
-- A row of another database, and of another generator, with that node.
INSERT INTO worker_node (host_name, port, type, launch_date, modified, created, generator, worker_id, datacenter_id, system_identifier, timeline, database, layout)
SELECT v.host, '5432', 2, date '2026-01-01', date '2026-01-02', date '2026-01-01', v.generator, v.worker, 30, v.system, 1, v.database, uid_layout('uid_generators.uid_default')
  FROM pg_control_system() c, pg_database d,
       LATERAL (VALUES ('far', 'uid_generators.uid_default', 30, 1::bigint, 99::oid),
                       ('here', 'uid_generators.former', 29, c.system_identifier, d.oid)) v (host, generator, worker, system, database)
 WHERE d.datname = current_database();
SELECT regexp_replace(substr(e, strpos(e, 'made by')), 'worker_node \d+', 'worker_node <id>') FROM uid_explain(uid_encode('2026-01-01 12:00', 30, 30, 0)) e;
SELECT regexp_replace(substr(e, strpos(e, 'made by')), 'worker_node \d+', 'worker_node <id>') FROM uid_explain(uid_encode('2026-01-01 12:00', 30, 29, 0)) e;

-- NULL, what is no generator, a role that may not read worker_node, and a database without a default generator.
SELECT uid_explain(NULL) IS NULL, uid_explain(NULL, 'uid_generators.js53') IS NULL, split_part(uid_explain(1, NULL), 'time', 1) = split_part(uid_explain(1), 'time', 1);
CREATE SEQUENCE plain;
SELECT outcome('SELECT uid_explain(1, ''plain'')'), outcome('SELECT uid_explain(1, ''orders'')'), outcome('SELECT uid_explain(1, 0)'),
       outcome('SELECT uid_explain(-1, ''plain'')');
CREATE ROLE explain_reader;
SET ROLE explain_reader;
SELECT substr(e, strpos(e, 'notes')) FROM uid_explain(uid_encode('2026-01-01 12:00', 30, 29, 0)) e;
RESET ROLE;
-- (A layout of its own: it would start above the last ids of a generator of the same layout that was dropped.)
SELECT uid_generator_create('Odd "one"', datacenter_bits => 4, worker_bits => 6);
SELECT uid_next('uid_generators."Odd ""one"""') AS drawn \gset
SELECT rows_of('uid_generators."Odd ""one"""', 1);
SELECT regexp_replace(masked(uid_explain(:drawn, 'uid_generators."Odd ""one"""')), '^.*\n\n[^\n]*', '...');
SET client_min_messages = error;
SELECT uid_default_set('uid_generators."Odd ""one"""');
DROP SEQUENCE uid_generators."Odd ""one""";
SELECT outcome('SELECT uid_explain(1)'), outcome('SELECT uid_explain(-1)');

DROP TABLE orders, parted;
DROP SEQUENCE plain;
DROP FUNCTION masked, outcome, rows_of;
DROP ROLE explain_reader;
DROP EXTENSION uidgen CASCADE;
