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

-- The builtin generator's row is that of CREATE EXTENSION until it is altered.
SELECT uid_default_set('uid_generators.uid_default');
SELECT lease_ms, builtin, is_default FROM uid_generator WHERE generator = 'uid_generators.uid_default'::regclass;
SELECT uid_next() AS id \gset
BEGIN;
SELECT uid_generator_alter('uid_generators.uid_default', lease_ms => 700);
SELECT lease_ms, builtin, is_default FROM uid_generator WHERE generator = 'uid_generators.uid_default'::regclass;
SELECT uid_next();
ROLLBACK;
SELECT outcome('SELECT uid_generator_alter(''uid_generators.uid_default'', time_bits => 40)') ~ 'cannot change the layout of generator "uid_default"' AS refused;
-- Rows of a dump, in either order: a chosen default takes that from it, and its own row replaces it, once and with the same layout.
SELECT uid_generator_drop('uid_generators.made');
CREATE SEQUENCE uid_generators.made INCREMENT 9223372036854775807 MINVALUE 1 NO CYCLE;
CREATE TABLE dumped (n serial, fields jsonb);
INSERT INTO dumped (fields) VALUES ('{"generator": "uid_generators.made", "builtin": false}'), ('{"lease_ms": 600, "is_default": false}'),
  ('{"lease_ms": 600, "builtin": false, "is_default": false}'), ('{"time_bits": 40}');
UPDATE dumped SET fields = to_jsonb(g) || fields FROM uid_generator AS g WHERE builtin;
\set ECHO none
CREATE FUNCTION restored(VARIADIC rows integer[]) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
  row integer;
BEGIN
  FOREACH row IN ARRAY rows LOOP
    RETURN NEXT split_part(outcome(format('INSERT INTO uid_generator SELECT r.* FROM dumped, jsonb_populate_record(NULL::uid_generator, fields) AS r WHERE n = %s', row)), ' | ', 1);
  END LOOP;
  RETURN QUERY SELECT format('%s: %s %s %s', generator, lease_ms, builtin, is_default) FROM uid_generator
    WHERE generator IN ('uid_generators.made'::regclass, 'uid_generators.uid_default'::regclass) ORDER BY generator::text;
END
$$;
\set ECHO all
BEGIN;
SELECT restored(1, 2);
ROLLBACK;
BEGIN;
SELECT restored(2, 1);
ROLLBACK;
BEGIN;
SELECT restored(3, 1, 3);
ROLLBACK;
SELECT restored(4);
SELECT uid_next() > :id AS above;
-- A row that is not added takes nothing from the builtin generator.
SELECT uid_generator_create('present');
INSERT INTO uid_generator SELECT r.* FROM uid_generator AS g, jsonb_populate_record(g, '{"is_default": true}') AS r
  WHERE g.generator = 'uid_generators.present'::regclass ON CONFLICT DO NOTHING;
SELECT uid_next() > :id AS above;
SELECT uid_generator_drop('uid_generators.present');
SELECT restored(1, 3);
SELECT uid_default_set('uid_generators.uid_default');
SELECT uid_next() > :id AS above, uid_next('uid_generators.made') > 0 AS draws;
DROP SEQUENCE uid_generators.made;
DROP TABLE dumped;
DROP FUNCTION restored(VARIADIC integer[]);

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
