-- The life of a generator: made, altered, chosen as the default, dropped.
\a \t
CREATE EXTENSION uidgen;
SET timezone = 'UTC';
SET datestyle = 'ISO';
\getenv source PG_ABS_SRCDIR
\i :source/test/masked_outcome.sql
-- The generator whose layout puts an id into this minute.
\set ECHO none
CREATE FUNCTION made_by(id bigint) RETURNS text LANGUAGE sql AS $$
  SELECT string_agg(generator::text, ', ' ORDER BY generator::text) FROM uid_generator
   WHERE id BETWEEN uid_lower_bound(clock_timestamp() - interval '1 min', generator) AND uid_lower_bound(clock_timestamp() + interval '1 min', generator)
$$;
-- The number that a refusal's hint names.
CREATE FUNCTION hinted(statement text) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
  hint text;
BEGIN
  EXECUTE statement;
  RETURN NULL;
EXCEPTION WHEN OTHERS THEN
  GET STACKED DIAGNOSTICS hint = PG_EXCEPTION_HINT;
  RETURN substring(hint FROM 'above => (\d+)')::bigint;
END
$$;
\set ECHO all
\pset null NULL

-- The layout changes freely before the first id,
SELECT uid_generator_create('g');
SELECT uid_generator_alter('uid_generators.g', epoch => '2024-01-01', tick_us => 10000, time_bits => 40, datacenter_bits => 1, worker_bits => 6,
  sequence_bits => 9, sequence_first => true, backup_worker => true);
SELECT epoch, tick_us, time_bits, datacenter_bits, worker_bits, sequence_bits, sequence_first, backup_worker, preset, spread
  FROM uid_generator WHERE generator = 'uid_generators.g'::regclass;
SELECT uid_generator_alter('uid_generators.g', backup_worker => false, sequence_first => false);
SELECT uid_next('uid_generators.g') AS id \gset
SELECT made_by(:id);
SELECT NOT d.backup AS no_backup, uid_encode(d.generated_at, d.datacenter_id, d.worker_id, d.sequence, 'uid_generators.g') = :id AS same,
       (:id - d.datacenter_id * 32768 - d.worker_id * 512 - d.sequence) % (1 << 16) = 0 AS layout FROM uid_decode(:id, 'uid_generators.g') AS d;
-- and no field of it afterwards. To the value that it has is no change.
SELECT * FROM outcomes('SELECT uid_generator_alter(''uid_generators.g'', %s)', 'epoch => ''2024-01-02''', 'tick_us => 1000',
  'time_bits => 41', 'datacenter_bits => 2', 'worker_bits => 5', 'sequence_bits => 10', 'sequence_first => true', 'backup_worker => true',
  'epoch => ''2024-01-01'', tick_us => 10000, sequence_bits => 9, backup_worker => false');
SELECT epoch, tick_us, time_bits, datacenter_bits, worker_bits, sequence_bits, sequence_first, backup_worker
  FROM uid_generator WHERE generator = 'uid_generators.g'::regclass;
SELECT uid_next('uid_generators.g') > :id AS goes_on;
-- What the hint says works: ids of the new generator are above.
SELECT hinted('SELECT uid_generator_alter(''uid_generators.g'', time_bits => 41)') AS above \gset
SELECT :above >= uid_next('uid_generators.g') AS names_the_largest;
SELECT uid_generator_create('h', above => :above, epoch => '2024-01-01', tick_us => 10000, time_bits => 41, datacenter_bits => 1, worker_bits => 6, sequence_bits => 9);
SELECT uid_next('uid_generators.h') > :above AS above, min(id) > :above AS above_too FROM unnest(uid_next_array('uid_generators.h', 100)) AS id;
-- The builtin generator renamed: it says what a preset leaves out.
ALTER SEQUENCE uid_generators.uid_default RENAME TO other;
SELECT outcome('SELECT uid_generator_create(''x'')'), outcome('SELECT uid_next() > 0');
ALTER SEQUENCE uid_generators.other RENAME TO uid_default;
SELECT * FROM outcomes('SELECT uid_generator_create(''x'', worker_policy => ''static'', %s)', 'worker_number => -1', 'lease_ms => 5', 'worker_number => 32');
-- Like another one, but for what the call says, its name, its age and the choice of a default. Roles that may draw from one
-- may draw from both.
CREATE ROLE "uidgen ""clerk""";
GRANT USAGE ON SEQUENCE uid_generators.g TO "uidgen ""clerk""", PUBLIC;
GRANT SELECT ON SEQUENCE uid_generators.g TO pg_monitor;
GRANT UPDATE ON SEQUENCE uid_generators.g TO pg_database_owner;
SELECT uid_generator_create('like_g', 'js53', template => 'uid_generators.g', worker_bits => 5, lease_ms => 700, tolerance_ms => -1);
SELECT count(DISTINCT to_jsonb(g) - '{generator,created,worker_bits,lease_ms}'::text[]) AS alike, min(worker_bits), max(worker_bits), min(lease_ms)
  FROM uid_generator g WHERE generator IN ('uid_generators.g'::regclass, 'uid_generators.like_g'::regclass);
SELECT CASE grantee WHEN 0 THEN 'PUBLIC' ELSE grantee::regrole::text END, privilege_type FROM pg_class, aclexplode(relacl)
 WHERE oid = 'uid_generators.like_g'::regclass AND grantee <> grantor ORDER BY 1, 2;
SELECT uid_generator_create('like_default', template => 'uid_generators.uid_default', epoch => '2025-01-01 00:00+00');
SELECT preset, epoch, builtin, is_default, has_sequence_privilege('uidgen "clerk"', generator, 'USAGE') AS draws
  FROM uid_generator WHERE generator = 'uid_generators.like_default'::regclass;
SELECT * FROM outcomes('SELECT uid_generator_create(''no'', template => %s)', '''worker_node_id_seq''', '''pg_class''', '4294967295');
SELECT uid_generator_drop('uid_generators.like_g'), uid_generator_drop('uid_generators.like_default');
DROP OWNED BY "uidgen ""clerk""";
DROP ROLE "uidgen ""clerk""";
-- Above something that its ids reach later, never, or already.
SELECT * FROM outcomes('SELECT uid_generator_create(%s)', '''later'', above => uid_encode(clock_timestamp() + interval ''1 d'', 0, 0, 0)',
  '''never'', ''js53'', above => 9007199254740991', '''never'', above => 9223372036854775807',
  '''below'', above => -9223372036854775808', '''zero'', above => 0', '''past'', above => uid_encode(clock_timestamp() - interval ''1 d'', 0, 0, 0)');
SELECT made_by(uid_next('uid_generators.below')), uid_next('uid_generators.zero') > 0, uid_next('uid_generators.past') > 0;
SELECT to_regclass('uid_generators.later') IS NULL AS no_later, to_regclass('uid_generators.never') IS NULL AS no_never;
DO $$BEGIN PERFORM uid_generator_drop(g::regclass) FROM unnest(ARRAY['below', 'zero', 'past']) AS n, format('uid_generators.%I', n) AS g; END$$;
-- A mark raised by hand. (Not further ahead of the clock than max_ahead: so let the clock reach the marks above first.)
SELECT pg_sleep(2);
SELECT uid_next('uid_generators.h') AS id \gset
SELECT uid_generator_raise('uid_generators.h', :id + (1 << 16) * 20);
SELECT uid_next('uid_generators.h') > :id + (1 << 16) * 20 AS above;
SELECT uid_next('uid_generators.h') AS id \gset
SELECT uid_generator_raise('uid_generators.h', 5);
SELECT uid_next('uid_generators.h') > :id AS never_lower;
SELECT * FROM outcomes('SELECT uid_generator_raise(%s)', '''uid_generators.h'', uid_encode(clock_timestamp() + interval ''1 h'', 0, 0, 0, ''uid_generators.h'')',
  '''worker_node_id_seq'', 5', '''pg_class'', 5', '0, 5');

-- Bounds and policies change any time; ids go on above.
CREATE TABLE id (n serial, id bigint);
INSERT INTO id (id) VALUES (uid_next('uid_generators.h'));
SELECT uid_generator_alter('uid_generators.h', lease_ms => 200, max_ahead_ms => 300);
INSERT INTO id (id) VALUES (uid_next('uid_generators.h'));
SELECT uid_timestamp(uid_last(), 'uid_generators.h') <= leased_until AS leased FROM uid_generator_status WHERE generator = 'uid_generators.h'::regclass;
SELECT uid_generator_alter('uid_generators.h', when_full => 'wait', when_back => 'error', tolerance_ms => 50, spread => false);
INSERT INTO id (id) SELECT unnest(uid_next_array('uid_generators.h', 500));
SELECT uid_generator_alter('uid_generators.h', tolerance_ms => -1, worker_policy => 'static', worker_number => 7);
INSERT INTO id (id) VALUES (uid_next('uid_generators.h'));
SELECT worker_id FROM uid_decode(uid_last(), 'uid_generators.h');
SELECT uid_generator_alter('uid_generators.h', worker_policy => 'sticky');
INSERT INTO id (id) VALUES (uid_next('uid_generators.h'));
SELECT lease_ms, max_ahead_ms, when_full, when_back, tolerance_ms, spread, worker_policy, worker_number FROM uid_generator WHERE generator = 'uid_generators.h'::regclass;
SELECT count(*), bool_and(id > before) AS rising FROM (SELECT id, lag(id, 1, 0::bigint) OVER (ORDER BY n) AS before FROM id) AS i;
SELECT * FROM outcomes('SELECT uid_generator_alter(%s)', '''uid_generators.h'', lease_ms => 0', '''uid_generators.h'', max_ahead_ms => 100',
  '''uid_generators.h'', when_full => ''backup''', '''uid_generators.h'', tolerance_ms => -2',
  '''uid_generators.h'', worker_policy => ''static'', worker_number => 64', '''uid_generators.h''', 'NULL, lease_ms => 5',
  '''worker_node_id_seq'', lease_ms => 5', '''worker_node'', lease_ms => 5', '0, lease_ms => 5');
-- The datacenter id: within its field, or within the worker ids of a layout without the field; -1 is none of its own.
CREATE TABLE datacenter (n integer, generator text, arguments text);
INSERT INTO datacenter VALUES (1, 'h', '1'), (2, 'h', '2'), (3, 'h', '-2'), (4, 'h', 'NULL'), (5, 'h', '0, spread => true'), (6, 'h', '-1'),
  (7, 'leafy', '1023'), (8, 'leafy', '1024'), (9, 'leafy', '-2'), (10, 'leafy', 'NULL, worker_bits => 9'), (11, 'js53', '31'), (12, 'js53', '15'),
  (13, 'js53', '-1, backup_worker => false, when_full => ''wait'', when_back => ''hold'''), (14, 'js53', '31'), (15, 'js53', '0, worker_bits => 0'), (16, 'js53', '1');
SELECT uid_generator_create('leafy', 'leaf', datacenter_id => 512), outcome('SELECT uid_generator_create(''of_32'', datacenter_id => 32)');
SELECT uid_generator_create('js53', 'js53', datacenter_id => -1);
CREATE FUNCTION altered(generator regclass, arguments text, OUT outcome text, OUT datacenter_id integer) LANGUAGE plpgsql AS $$
BEGIN
  outcome := outcome(format('SELECT uid_generator_alter(%L, datacenter_id => %s)', generator, arguments));
  SELECT g.datacenter_id INTO datacenter_id FROM uid_generator g WHERE g.generator = altered.generator;
END
$$;
SELECT n, d.generator, arguments, a.* FROM (SELECT * FROM datacenter ORDER BY n) AS d, LATERAL altered(format('uid_generators.%I', d.generator)::regclass, arguments) AS a ORDER BY n;
SELECT uid_next('uid_generators.leafy') > 0 AS draws, outcome('SELECT uid_generator_alter(''uid_generators.leafy'', datacenter_id => 1024)');
DROP FUNCTION altered(regclass, text);
DROP SEQUENCE uid_generators.leafy, uid_generators.js53;

-- In a transaction: what was altered draws after the commit.
SELECT uid_next('uid_generators.h') AS id \gset
BEGIN;
SELECT uid_generator_alter('uid_generators.h', spread => true);
SELECT spread FROM uid_generator WHERE generator = 'uid_generators.h'::regclass;
SELECT * FROM outcomes('SELECT %s', 'uid_next(''uid_generators.h'')', 'uid_next_array(''uid_generators.h'', 3)');
SELECT (uid_decode(:id, 'uid_generators.h')).sequence >= 0 AS decodes, uid_next() > 0 AS others_draw;
COMMIT;
SELECT uid_next('uid_generators.h') > :id AS above;
-- rolled back, to a savepoint and altogether, with draws before and after
SELECT uid_next('uid_generators.h') AS id \gset
BEGIN;
SELECT uid_next('uid_generators.h') > :id AS above;
SAVEPOINT a;
SELECT uid_generator_alter('uid_generators.h', lease_ms => 5, spread => false);
SELECT outcome('SELECT uid_next(''uid_generators.h'')');
ROLLBACK TO a;
SELECT uid_next('uid_generators.h') > :id AS above, uid_last() AS last \gset
SELECT :last > :id AS above;
SAVEPOINT c;
SELECT uid_generator_alter('uid_generators.h', when_back => 'hold');
RELEASE c;
SELECT outcome('SELECT uid_next(''uid_generators.h'')');
ROLLBACK;
SELECT lease_ms, spread, when_back FROM uid_generator WHERE generator = 'uid_generators.h'::regclass;
SELECT uid_next('uid_generators.h') > :last AS above;
-- raised in a transaction that is rolled back: the mark stays, as a sequence's does
SELECT pg_sleep(0.5);
SELECT uid_next('uid_generators.h') AS id \gset
BEGIN;
SELECT uid_generator_raise('uid_generators.h', :id + 65536 * 5);
SELECT uid_next('uid_generators.h') > :id + 65536 * 5 AS above, uid_last() AS last \gset
ROLLBACK;
SELECT uid_next('uid_generators.h') > :last AS above;
-- made, altered and used in one transaction: not before the commit either
BEGIN;
SELECT uid_generator_create('made');
SELECT uid_next('uid_generators.made') > 0 AS draws;
SELECT uid_generator_alter('uid_generators.made', spread => false);
SELECT outcome('SELECT uid_next(''uid_generators.made'')');
SELECT uid_generator_drop('uid_generators.made');
COMMIT;
SELECT count(*) AS made FROM uid_generator WHERE generator::text ~ 'made|^\d';

-- Dropping.
CREATE TABLE invoices (id bigint DEFAULT uid_next('uid_generators.g'), other bigint DEFAULT uid_next());
SELECT * FROM outcomes('SELECT uid_generator_drop(%s)', '''uid_generators.g''', '''uid_generators.uid_default''', '''worker_node_id_seq''', '''pg_class''', '0', 'NULL');
ALTER TABLE invoices ALTER id DROP DEFAULT;
SELECT uid_generator_drop('uid_generators.g');
SELECT generator FROM uid_generator ORDER BY generator::text;
SELECT outcome('SELECT uid_next(''uid_generators.g'')');
-- What was dropped and is made anew starts above.
SELECT uid_next('uid_generators.h') AS id \gset
SELECT uid_generator_drop('uid_generators.h');
SELECT uid_generator_create('h', epoch => '2024-01-01', tick_us => 10000, time_bits => 41, datacenter_bits => 1, worker_bits => 6, sequence_bits => 9);
SELECT uid_next('uid_generators.h') > :id AS above;
SELECT uid_generator_drop('uid_generators.h');

-- Which columns draw from which generator.
SELECT uid_generator_create('c');
CREATE SCHEMA "Other";
CREATE TABLE "Other"."T" ("Id" bigint DEFAULT uid_next('uid_generators.c'), b bigint DEFAULT 1 + uid_next('uid_generators.c') % 5, c bigint DEFAULT uid_next(), d bigint DEFAULT 5, e uuid DEFAULT uid_next_uuid(), f uuid DEFAULT uid_next_uuid('uid_generators.c'), g bigint[] DEFAULT uid_next_array(2));
SELECT * FROM uid_generator_columns ORDER BY generator::text, table_name::text, column_name;

-- What they hold.
SELECT uid_generator_create('j', 'js53'), uid_generator_create('s', 'sonyflake');
SELECT generator, preset, ends, life_used > 0 AND life_used < 1 AS life_used, ids_per_second
  FROM uid_generator_limits ORDER BY generator::text;
SELECT round(life_used::numeric, 3) = round((extract(epoch FROM now() - '2026-01-01 00:00+00') / (2.0 ^ 41 / 1000))::numeric, 3) AS life_used
  FROM uid_generator_limits WHERE generator = 'uid_generators.c'::regclass;
DROP SCHEMA "Other" CASCADE;
DROP TABLE invoices, id;
SET client_min_messages = warning;
DROP EXTENSION uidgen CASCADE;
RESET client_min_messages;

-- The default: free before its first id.
CREATE EXTENSION uidgen;
SELECT uid_generator_create('web', 'js53');
CREATE TABLE t (id bigint PRIMARY KEY DEFAULT uid_next());
PREPARE draw AS SELECT made_by(uid_next());
\set ECHO none
CREATE FUNCTION draw_many(n integer) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  made text;
BEGIN
  FOR i IN 1 .. n LOOP
    made := made_by(uid_next());
  END LOOP;
  RETURN made;
END
$$;
\set ECHO all
PREPARE choose AS SELECT string_agg(generator::text, ' ') FROM uid_generator WHERE is_default;
EXPLAIN (COSTS OFF) EXECUTE draw;
SELECT uid_default_set('uid_generators.web');
EXECUTE choose;
EXECUTE draw;
EXECUTE draw;
SELECT draw_many(10);
INSERT INTO t SELECT FROM generate_series(1, 1000);
SELECT max(id) < 1::bigint << 53 AS js53, count(*) FROM t;
SELECT bool_and(made_by(id) = 'uid_generators.web') AS array FROM unnest(uid_next_array(10)) AS id;
SELECT abs(extract(epoch FROM generated_at - clock_timestamp())) < 5 AS decode, backup, uid_timestamp(uid_last()) = generated_at AS timestamp,
       uid_encode(generated_at, datacenter_id, worker_id, sequence) = uid_last() AS encode,
       uid_lower_bound(generated_at) <= uid_last() AND uid_lower_bound(generated_at + interval '1 s') > uid_last() AS lower_bound FROM uid_decode(uid_last());
SELECT last_value FROM uid_generators.uid_default;
SELECT generator, table_name, column_name FROM uid_generator_columns;
SELECT outcome('SELECT uid_generator_drop(''uid_generators.web'')');
-- DROP SEQUENCE leaves the database without a default: never with another one that was not chosen.
BEGIN;
DROP SEQUENCE uid_generators.web;
SELECT * FROM outcomes('SELECT %s', 'uid_next()', 'uid_decode(5)', 'made_by(uid_next(''uid_generators.uid_default''))');
EXECUTE choose;
SELECT uid_generator_create('next', 'js53');
SELECT uid_default_set('uid_generators.next');
EXECUTE choose;
ROLLBACK;
EXECUTE choose;
SELECT made_by(uid_next());
SELECT uid_default_set('uid_generators.web'), uid_default_set(NULL);
SELECT * FROM outcomes('SELECT uid_default_set(%s)', '0', '''worker_node_id_seq''', '''pg_class''');
-- Ids of the builtin one are above those of js53, so back is possible, with no gap in the order.
SELECT max(id) AS last FROM t \gset
SELECT uid_default_set('uid_generators.uid_default');
EXECUTE choose;
EXECUTE draw;
SELECT draw_many(10);
SELECT uid_next() > :last AS above, NOT (uid_decode(uid_last())).backup AS no_backup;
-- The other way they are not. Nothing is moved by the refusal.
SELECT last_value AS mark FROM uid_generators.web \gset
SELECT outcome('SELECT uid_default_set(''uid_generators.web'')');
SELECT last_value = :mark AS as_before FROM uid_generators.web;
EXECUTE choose;
EXECUTE draw;
-- An epoch as early as Twitter's puts ids above those of the builtin one.
SELECT uid_generator_create('early', 'twitter');
BEGIN;
SELECT uid_default_set('uid_generators.early');
EXECUTE choose;
SELECT outcome('SELECT uid_next()');
ROLLBACK;
-- After the statement of the hint there is no warning.
GRANT USAGE ON SEQUENCE uid_generators.early TO PUBLIC, pg_database_owner;
-- In a savepoint: a choice that was rolled back forbids nothing.
BEGIN;
SAVEPOINT s;
SELECT uid_default_set('uid_generators.early');
ROLLBACK TO s;
EXECUTE draw;
SELECT uid_default_set('uid_generators.early');
RELEASE s;
SAVEPOINT t;
SELECT uid_default_set(uid_generator_create('inner', 'twitter')) IS NULL;
ROLLBACK TO t;
SELECT outcome('SELECT uid_next()');
ROLLBACK;
EXECUTE choose;
EXECUTE draw;
SELECT uid_next() AS last \gset
SELECT uid_default_set('uid_generators.early');
EXECUTE choose;
EXECUTE draw;
SELECT uid_next() > :last AS above;
SELECT * FROM outcomes('SELECT uid_default_set(%s)', '''uid_generators.uid_default''', '''uid_generators.web''');
-- One with the same layout starts above at once, whatever the old one leased.
SELECT uid_generator_create('twin', 'twitter');
SELECT max(id) AS last FROM unnest(uid_next_array(20000)) AS id \gset
SELECT uid_default_set('uid_generators.twin');
EXECUTE choose;
SELECT bool_and(uid_next() > :last) AS above FROM generate_series(1, 100);
SELECT uid_generator_drop('uid_generators.early');
SELECT generator, table_name, column_name FROM uid_generator_columns;
-- The extension goes with whatever is the default.
DROP TABLE t;
SET client_min_messages = warning;
DROP EXTENSION uidgen CASCADE;
CREATE EXTENSION uidgen;
RESET client_min_messages;
SELECT made_by(uid_next());
SELECT uid_next() AS id \gset
SELECT made_by(:id);
DEALLOCATE ALL;
DROP FUNCTION draw_many, made_by, hinted, outcome, outcomes, exact_outcome;
DROP EXTENSION uidgen;
