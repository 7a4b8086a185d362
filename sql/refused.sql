-- What is refused, with which words, and that a refusal moves nothing.
CREATE EXTENSION uidgen;
\getenv source PG_ABS_SRCDIR
\i :source/test/outcome.sql
\pset format unaligned
\pset tuples_only on

-- Relations that are no sequence, or none that outlives a crash.
CREATE TABLE a_table (id bigint);
CREATE VIEW a_view AS SELECT 1 AS id;
CREATE INDEX an_index ON a_table (id);
CREATE SEQUENCE plain;
CREATE TEMPORARY SEQUENCE fleeting;
CREATE UNLOGGED SEQUENCE unlogged;
SELECT uid_generator_create('mine');
\set ECHO none
SELECT * FROM outcomes('SELECT %s', $$segment_next('a_table'::regclass)$$, $$segment_next('a_view'::regclass)$$,
  $$segment_next('an_index'::regclass)$$, $$segment_next('a_table')$$, $$segment_next('pg_class')$$,
  $$segment_next('fleeting'::regclass)$$, $$segment_next('fleeting')$$, $$segment_next('unlogged'::regclass)$$,
  $$segment_next('unlogged')$$, 'segment_next(0::regclass)', 'segment_next(4294967295::oid::regclass)',
  $$segment_next('no_such')$$, $$segment_next('no_such'::regclass)$$, $$segment_next('uid_generators.mine')$$,
  $$segment_next('uid_generators.mine'::regclass)$$, $$segment_next('uid_generators.uid_default'::regclass)$$,
  $$uid_next('a_table')$$, $$uid_next('fleeting')$$, $$uid_next('unlogged')$$, $$uid_next('plain')$$, 'uid_next(0)',
  'uid_next(4294967295::oid)', $$uid_next('no_such')$$, $$uid_next_array('plain', 1)$$,
  $$uid_next_array('a_table', 0)$$, $$uid_decode(1, 'plain')$$, $$uid_decode(1, 'a_table')$$, 'uid_timestamp(1, 0)',
  $$uid_encode('2026-02-01', 0, 0, 0, 'plain')$$);
\set ECHO all
-- Made permanent, it works.
ALTER SEQUENCE unlogged SET LOGGED;
SELECT segment_next('unlogged');
ALTER SEQUENCE unlogged SET UNLOGGED;
SELECT segment_next('unlogged');
ALTER SEQUENCE unlogged SET LOGGED;
SELECT segment_next('unlogged') > 1;

-- The numbers of what was dropped.
SELECT uid_generator_create('short_lived')::oid AS generator, segment_create('short_lived')::oid AS segment \gset
SELECT uid_next(:generator) > 0, segment_next(:segment::regclass);
DROP SEQUENCE uid_generators.short_lived, uid_segments.short_lived;
SELECT replace(outcome('SELECT uid_next(' || :generator || ')'), :'generator', '<oid>'),
       replace(outcome('SELECT segment_next(' || :segment || '::oid::regclass)'), :'segment', '<oid>');

-- A sequence that uidgen draws from as a segment does not become a generator, nor the other way about.
SELECT * FROM outcomes('SELECT %s', $$segment_next('plain')$$, $$uid_next('plain')$$, $$uid_next('uid_generators.mine') > 0$$,
  $$segment_next('uid_generators.mine')$$, $$segment_next('plain')$$);

-- nextval does not move a lease sequence.
SELECT last_value AS mark FROM uid_generators.mine \gset
SELECT * FROM outcomes('SELECT nextval(%s)', $$'uid_generators.mine'$$, $$'uid_generators.mine'$$, $$'uid_generators.uid_default'$$);
SELECT last_value = :mark, is_called FROM uid_generators.mine;
SELECT uid_generator_create('unused'), outcome('SELECT nextval(''uid_generators.unused'')');
SELECT last_value, is_called FROM uid_generators.unused;
-- setval by its owner: ids go on above what was drawn, and above what was set.
SELECT uid_next('uid_generators.mine') AS id \gset
SELECT setval('uid_generators.mine', 1);
SELECT uid_next('uid_generators.mine') > :id;
SELECT uid_next('uid_generators.mine') AS id \gset
SELECT setval('uid_generators.mine', 5, false);
SELECT uid_next('uid_generators.mine') > :id;
SELECT uid_next('uid_generators.mine') AS id \gset
ALTER SEQUENCE uid_generators.mine RESTART;
SELECT uid_next('uid_generators.mine') > :id;
SELECT setval('uid_generators.unused', (extract(epoch FROM timestamptz '2090-01-01 00:00:00+00' - '2026-01-01 00:00:00+00') * 1000)::bigint) > 0;
SET uidgen.max_wait = 0;
SELECT regexp_replace(regexp_replace(outcome('SELECT uid_next(''uid_generators.unused'')'), '[0-9.]+ (m?s)\y', '<n> \1', 'g'), 'right now, [^,]*', 'right now, <time>');
SELECT setval('uid_generators.unused', 9223372036854775807) > 0;
SELECT outcome('SELECT uid_next(''uid_generators.unused'')');
RESET uidgen.max_wait;
-- A lease sequence that nextval could move is refused.
ALTER SEQUENCE uid_generators.mine INCREMENT 1;
SELECT outcome('SELECT uid_next(''uid_generators.mine'')');
ALTER SEQUENCE uid_generators.mine INCREMENT 9223372036854775807 CYCLE;
SELECT outcome('SELECT uid_next(''uid_generators.mine'')');
ALTER SEQUENCE uid_generators.mine NO CYCLE;
SELECT uid_next('uid_generators.mine') > :id;
-- A session that knew a sequence before it was altered hands out no value of the other kind.
ALTER SEQUENCE uid_generators.mine INCREMENT 1;
BEGIN;
SELECT segment_next('uid_generators.mine'::regclass) > 0;
SELECT uid_next('uid_generators.mine');
ROLLBACK;
ALTER SEQUENCE uid_generators.mine INCREMENT 9223372036854775807;
BEGIN;
SELECT uid_next('uid_generators.mine') > :id;
SELECT segment_next('uid_generators.mine'::regclass);
ROLLBACK;
ALTER SEQUENCE uid_generators.mine SET UNLOGGED;
SELECT outcome('SELECT uid_next(''uid_generators.mine'')');
ALTER SEQUENCE uid_generators.mine SET LOGGED;
SELECT uid_next('uid_generators.mine') > :id;

-- Names of generators.
\set ECHO none
SELECT * FROM outcomes('SELECT %s', $$uid_generator_create('')$$, 'uid_generator_create(NULL)',
  $$uid_generator_create(repeat('g', 64))$$, $$uid_generator_create(repeat('ü', 32))$$,
  $$uid_generator_create(repeat('g', 63))$$, $$uid_generator_create('mine')$$,
  $$uid_generator_create('uid_default')$$, $$uid_generator_create('Up er "quoted" o''clock.dot')$$,
  $$uid_next('uid_generators."Up er ""quoted"" o''clock.dot"') > 0$$,
  $$uid_generator_create('; DROP TABLE a_table; --')$$, $$uid_generator_create('%I%s')$$,
  $$uid_generator_create('x', 'no such preset')$$, $$uid_generator_create('x', NULL)$$,
  $$uid_generator_create('x', '')$$);
\set ECHO all
SELECT count(*) FROM a_table;
SELECT generator FROM uid_generator ORDER BY generator::text COLLATE "C";

-- Names and numbers of segments.
\set ECHO none
SELECT * FROM outcomes('SELECT %s', $$segment_create('')$$, 'segment_create(NULL)', $$segment_create('s', NULL)$$,
  $$segment_create('s', 1, 0)$$, $$segment_create('s', 1, -1)$$, $$segment_create('s', 1, -9223372036854775808)$$,
  $$segment_create('s', 1, 1099511627777)$$, $$segment_create('s', -9223372036854775808, 3)$$, $$segment_next('s')$$,
  $$segment_next('s')$$, $$segment_create('s')$$, $$segment_create('t', 9223372036854775807)$$, $$segment_next('t')$$,
  $$segment_next('t')$$, $$segment_create(repeat('l', 100))$$, $$segment_create(repeat('l', 100))$$,
  $$segment_create('; DROP TABLE a_table; --')$$, 'segment_drop(NULL)', $$segment_drop('')$$,
  $$segment_drop('plain')$$, $$segment_drop('s')$$, $$segment_drop('s')$$);
\set ECHO all
SELECT name FROM uid_segment ORDER BY name COLLATE "C";

-- Fields that cannot be, before the first id.
\set ECHO none
CREATE FUNCTION with_row(change text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  result text;
BEGIN
  result := outcome(format('SELECT uid_generator_alter(''uid_generators.absurd'', %s)', change));
  IF result = '' THEN
    result := outcome('SELECT uid_decode(1, ''uid_generators.absurd'')');
  END IF;
  -- Back to what it was, and no slot left.
  RAISE EXCEPTION USING ERRCODE = 'UID00', MESSAGE = result;
EXCEPTION
  WHEN SQLSTATE 'UID00' THEN RETURN SQLERRM;
END
$$;
\set ECHO all
CREATE TABLE changes (n serial, change text);
\set ECHO none
INSERT INTO changes (change) VALUES
  ('tick_us => 0'), ('tick_us => -1'), ('tick_us => 3600000001'), ('tick_us => 9223372036854775807'),
  ('epoch => ''infinity'''), ('epoch => ''-infinity'''), ('epoch => ''1969-12-31 23:59:59+00'''), ('epoch => ''294276-12-31 00:00:00+00'''),
  ('time_bits => 0'), ('time_bits => -1'), ('time_bits => 48'), ('time_bits => 32767'),
  ('datacenter_bits => -1'), ('datacenter_bits => 32'), ('worker_bits => -1'), ('worker_bits => 32'), ('worker_bits => -32768'),
  ('sequence_bits => -1'), ('sequence_bits => 32'), ('sequence_bits => 13'), ('time_bits => 42'),
  ('time_bits => 47, tick_us => 3600000000, sequence_bits => 0'), ('worker_bits => 0, backup_worker => true'),
  ('lease_ms => 0'), ('lease_ms => -1'), ('lease_ms => 2001'), ('max_ahead_ms => 999'), ('max_ahead_ms => 600001'), ('tolerance_ms => -1'),
  ('when_full => ''often'''), ('when_full => ''Wait'''), ('when_full => ''backup'''), ('when_back => '''''), ('when_back => ''backup'''),
  ('worker_policy => ''lazy'''), ('worker_policy => ''static'''), ('worker_policy => ''static'', worker_number => 32'),
  ('worker_policy => ''static'', worker_number => -1');
\set ECHO all
SELECT uid_generator_create('absurd');
SELECT string_agg(change, ' / ' ORDER BY n), outcome FROM (SELECT n, change, with_row(change) AS outcome FROM changes) AS c
 GROUP BY outcome ORDER BY min(n);
-- Whoever writes a label past the guard still meets the same checks when he reads it or draws.
\set ECHO none
CREATE PROCEDURE write(former text, next text) LANGUAGE sql AS $$
  UPDATE pg_seclabel SET label = replace(label, former, next) WHERE objoid = 'uid_generators.absurd'::regclass
$$;
\set ECHO all
CALL write('tick_us=1000 ', 'tick_us=0 ');
SELECT outcome('SELECT uid_next(''uid_generators.absurd'')');
CALL write('tick_us=0 ', 'tick_us=1000 ');
CALL write('lease_ms=1000', 'lease_ms=0');
SELECT outcome('SELECT uid_next(''uid_generators.absurd'')');
CALL write('lease_ms=0', 'lease_ms=1000');
CALL write('when_back=hold', 'when_back=forward');
SELECT outcome('SELECT uid_next(''uid_generators.absurd'')');
CALL write('when_back=forward', 'when_back=hold');
SELECT outcome('SELECT uid_next(''uid_generators.absurd'') > 0');
DROP PROCEDURE write;
-- A life that is over, and one that has not begun.
SELECT uid_generator_create('over'), uid_generator_create('future');
SELECT uid_generator_alter('uid_generators.over', time_bits => 1);
SELECT uid_generator_alter('uid_generators.future', epoch => '2095-01-01 00:00:00+00');
SELECT outcome('SELECT uid_next(''uid_generators.over'')');
SET uidgen.max_wait = 0;
SELECT regexp_replace(outcome('SELECT uid_next(''uid_generators.future'')'), '20[0-9-]+ [0-9:.]+', '<now>');
SELECT uid_generator_alter('uid_generators.future', when_back => 'error', tolerance_ms => 0);
SELECT regexp_replace(outcome('SELECT uid_next(''uid_generators.future'')'), '20[0-9-]+ [0-9:.]+', '<now>');
RESET uidgen.max_wait;
SELECT uid_generator_create('next_century', epoch => '2101-01-01 00:00:00+00');
-- A sequence that is no lease sequence any more.
SELECT label AS of_future FROM pg_seclabel WHERE objoid = 'uid_generators.future'::regclass \gset
ALTER SEQUENCE plain INCREMENT 9223372036854775807 MINVALUE 1 NO MAXVALUE NO CYCLE;
SECURITY LABEL FOR uidgen ON SEQUENCE plain IS :'of_future';
ALTER SEQUENCE plain INCREMENT 1;
SELECT outcome('SELECT uid_next(''plain'')');
-- No datacenter, no worker, no sequence number: narrow, but right.
SELECT uid_generator_create('narrow');
SELECT uid_generator_alter('uid_generators.narrow', worker_bits => 0, datacenter_bits => 0, sequence_bits => 0);
SELECT count(*), count(DISTINCT id) FROM unnest(uid_next_array('uid_generators.narrow', 500)) AS id;
SELECT uid_encode(generated_at, 0, 0, 0, 'uid_generators.narrow') = id
  FROM (SELECT uid_next('uid_generators.narrow') AS id) AS i, uid_decode(id, 'uid_generators.narrow');

-- Settings.
SET uidgen.datacenter_id = -2;
SET uidgen.segment_step = 0;
SELECT left(outcome('SET uidgen.max_wait = -1'), 5); -- majors word it differently
SET uidgen.no_such_setting = 1;

-- The triggers' functions are not for calling.
SELECT * FROM outcomes('SELECT uid_internal.%s()', 'uid_load', 'uid_reserve_block');

DROP VIEW a_view;
DROP TABLE a_table, changes;
DROP SEQUENCE plain, unlogged;
DROP FUNCTION outcome, outcomes, with_row;
SET client_min_messages = warning;
DROP EXTENSION uidgen CASCADE;
