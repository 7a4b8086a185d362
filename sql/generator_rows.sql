-- Rows of uid_generator: whose they are, when they count, and that they go with their sequence.
\a \t
CREATE EXTENSION uidgen;
SET timezone = 'UTC';
\getenv source PG_ABS_SRCDIR
\set outcome :source '/test/outcome.sql'
\i :outcome
\set ECHO none
CREATE PROCEDURE register(sequence regclass, tick bigint, bits integer) LANGUAGE sql AS $$
  INSERT INTO uid_generator (generator, preset, epoch, tick_us, time_bits, datacenter_bits, worker_bits, sequence_bits, lease_ms, max_ahead_ms)
  VALUES (sequence, 'own', '2026-01-01', tick, bits, 0, 0, 62 - bits, 1000, 2000)
$$;
-- Whether an id is of this minute by the generator's row.
CREATE FUNCTION decodes(id bigint, generator regclass) RETURNS boolean LANGUAGE sql AS $$
  SELECT abs(extract(epoch FROM uid_timestamp(id, generator) - clock_timestamp())) < 60
$$;
\set ECHO all

-- A row that somebody adds for a sequence of before counts from the commit on: it may be rolled back, and its ids would stay.
CREATE SEQUENCE uid_generators.own INCREMENT 9223372036854775807 MINVALUE 1 NO CYCLE;
SELECT setval('uid_generators.own', 1);
BEGIN;
CALL register('uid_generators.own', 1000, 41);
SELECT uid_next('uid_generators.own');
ROLLBACK;
BEGIN;
SAVEPOINT a;
CALL register('uid_generators.own', 1000, 41);
SAVEPOINT b;
SELECT count(*) FROM unnest(uid_next_array('uid_generators.own', 5));
ROLLBACK TO a;
SELECT uid_next('uid_generators.own');
ROLLBACK;
SELECT last_value AS no_lease FROM uid_generators.own;
CALL register('uid_generators.own', 1000000, 31);
SELECT decodes(uid_next('uid_generators.own'), 'uid_generators.own');
-- A partial index lacks rows.
BEGIN;
CREATE UNIQUE INDEX partial ON uid_generator (generator) WHERE builtin;
SELECT sequence FROM uid_decode(4294967301, 'uid_generators.own');
ROLLBACK;
-- Sequence and row made in one transaction: draws work, and follow the row where that is rolled back alone.
BEGIN;
CREATE SEQUENCE uid_generators.both INCREMENT 9223372036854775807 MINVALUE 1 NO CYCLE;
SELECT setval('uid_generators.both', 1);
SAVEPOINT a;
CALL register('uid_generators.both', 1000000, 31);
SELECT decodes(uid_next('uid_generators.both'), 'uid_generators.both');
SAVEPOINT b;
ROLLBACK TO b;
SELECT decodes(uid_next('uid_generators.both'), 'uid_generators.both');
ROLLBACK TO a;
SELECT uid_next('uid_generators.both');
ROLLBACK TO a;
SAVEPOINT c;
SELECT setval('uid_generators.both', 1);
CALL register('uid_generators.both', 1000, 41);
RELEASE c;
SELECT decodes(uid_next('uid_generators.both'), 'uid_generators.both');
SAVEPOINT d;
ROLLBACK TO d;
SELECT decodes(uid_next('uid_generators.both'), 'uid_generators.both');
ROLLBACK TO a;
SELECT uid_next('uid_generators.both');
ROLLBACK TO a;
SELECT setval('uid_generators.both', 1);
CALL register('uid_generators.both', 1000000, 31);
SELECT uid_next('uid_generators.both') AS id \gset
SELECT decodes(:id, 'uid_generators.both');
COMMIT;
SELECT uid_next('uid_generators.both') > :id AS above, decodes(uid_last(), 'uid_generators.both');
BEGIN;
SAVEPOINT a;
SELECT uid_generator_create('made');
SELECT decodes(uid_next('uid_generators.made'), 'uid_generators.made');
RELEASE a;
SAVEPOINT b;
GRANT USAGE ON SEQUENCE uid_generators.made TO PUBLIC;
SELECT decodes(uid_next('uid_generators.made'), 'uid_generators.made');
COMMIT;
SELECT decodes(uid_next('uid_generators.made'), 'uid_generators.made');

-- The builtin generator's row: made by what alters it, the default or not; only for it; and its layout stays once there are ids.
SELECT count(*) FROM uid_generator WHERE builtin;
SELECT uid_default_set('uid_generators.uid_default');
SELECT count(*) FROM uid_generator WHERE builtin;
BEGIN;
SELECT uid_generator_alter('uid_generators.uid_default', lease_ms => 700);
SELECT lease_ms, is_default FROM uid_generator WHERE builtin;
SELECT uid_next();
ROLLBACK;
SELECT uid_next() AS id \gset
SELECT uid_generator_alter('uid_generators.uid_default', lease_ms => 700);
SELECT lease_ms, spread, builtin, is_default FROM uid_generator WHERE builtin;
SELECT uid_next() > :id AS above;
SELECT outcome('SELECT uid_generator_alter(''uid_generators.uid_default'', time_bits => 40)') ~ 'cannot change the layout of generator "uid_default"' AS refused;
DELETE FROM uid_generator WHERE builtin;
SELECT lease_ms, is_default FROM uid_generator_config WHERE builtin;
SELECT uid_next() > :id AS above;
SELECT outcome('INSERT INTO uid_generator SELECT (jsonb_populate_record(b, ''{"time_bits": 40}'')).* FROM uid_internal.uid_generator_builtin(true) AS b') ~ 'cannot change' AS refused;
SELECT outcome('INSERT INTO uid_generator SELECT (jsonb_populate_record(b, ''{"builtin": false}'')).* FROM uid_internal.uid_generator_builtin(true) AS b');
SELECT uid_generator_drop('uid_generators.made');
CREATE SEQUENCE uid_generators.made INCREMENT 9223372036854775807 MINVALUE 1 NO CYCLE;
SELECT outcome('INSERT INTO uid_generator SELECT (jsonb_populate_record(b, ''{"generator": "uid_generators.made"}'')).* FROM uid_internal.uid_generator_builtin(true) AS b');
-- A default that is there without the builtin generator's row was chosen by hand.
INSERT INTO uid_generator SELECT (jsonb_populate_record(b, '{"generator": "uid_generators.made", "builtin": false}')).* FROM uid_internal.uid_generator_builtin(true) AS b;
SELECT generator, is_default FROM uid_generator_config ORDER BY generator::text;
SELECT outcome('DROP SEQUENCE uid_generators.made');
SELECT uid_next() > :id AS above;
SELECT uid_default_set('uid_generators.uid_default');
SELECT generator, is_default FROM uid_generator ORDER BY generator::text;
DROP SEQUENCE uid_generators.made;

-- The default dropped: another is never taken for it, in no session and after no restart.
SELECT uid_generator_create('chosen', 'twitter');
SELECT uid_default_set('uid_generators.chosen');
SELECT decodes(uid_next(), 'uid_generators.chosen');
DROP SEQUENCE uid_generators.chosen;
SELECT outcome('SELECT uid_next()'), outcome('SELECT uid_timestamp(5)');
SELECT generator, is_default FROM uid_generator_config ORDER BY generator::text;
SELECT uid_next('uid_generators.uid_default') > :id AS above;
SELECT uid_generator_alter('uid_generators.uid_default', lease_ms => 600);
SELECT outcome('SELECT uid_next()');
SELECT uid_default_set('uid_generators.uid_default');
SELECT uid_next() > :id AS above;

-- No TRUNCATE: rows go with their sequences.
SELECT * FROM outcomes('%s', 'TRUNCATE uid_generator', 'TRUNCATE uid_segment');

-- A row whose figures are at the end of their range does not stop a view for the others.
SELECT uid_generator_create('short', 'twitter', tick_us => 1, time_bits => 1, epoch => '9000-01-01 00:00+00');
SELECT generator, life_used < 0 AS not_begun, ids_per_second FROM uid_generator_limits WHERE generator = 'uid_generators.short'::regclass;

DROP PROCEDURE register(regclass, bigint, integer);
DROP FUNCTION decodes, outcome, outcomes;
SET client_min_messages = warning;
DROP EXTENSION uidgen CASCADE;
