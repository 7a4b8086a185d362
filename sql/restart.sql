-- uid_generator_restart(): who may call it, and what it refuses. test/tap/048_restart.t has the clocks that step.
-- The epoch is not that of other tests: generators of their layout would start above those that are dropped here.
CREATE EXTENSION uidgen;
SET timezone = 'UTC';
SET datestyle = 'ISO';
\getenv source PG_ABS_SRCDIR
\set outcome :source '/test/masked_outcome.sql'
\i :outcome
-- What a clock that was an hour ahead leaves behind.
CREATE FUNCTION an_hour_ahead(generator regclass) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
  mark bigint;
BEGIN
  EXECUTE format('SELECT last_value + 3600000 FROM %s', generator) INTO mark;
  RETURN setval(generator, mark) - mark;
END
$$;
\pset null NULL
SET client_min_messages = error; -- the WARNING has times

SELECT uid_generator_create('g', epoch => '2025-01-01');
-- Nothing to restart: no generator, no ids yet, and ids of the clock.
SELECT uid_generator_restart(NULL);
SELECT outcome('SELECT uid_generator_restart(''worker_node_id_seq'')');
SELECT outcome('SELECT uid_generator_restart(''pg_class'')');
SELECT outcome('SELECT uid_generator_restart(0)');
SELECT outcome('SELECT uid_generator_restart(''uid_generators.g'')');
SELECT uid_next('uid_generators.g') AS id \gset
SELECT outcome('SELECT uid_generator_restart(''uid_generators.g'')');

SELECT an_hour_ahead('uid_generators.g');
SET uidgen.max_wait = 0;
SELECT outcome('SELECT uid_next(''uid_generators.g'')') LIKE '55000 generator "g" is ahead of the clock%' AS is_ahead;
RESET uidgen.max_wait;
-- Only its owner.
CREATE ROLE restart_user;
GRANT USAGE ON SEQUENCE uid_generators.g TO restart_user;
SET ROLE restart_user;
SELECT outcome('SELECT uid_generator_restart(''uid_generators.g'')');
SELECT outcome('UPDATE uid_generator SET restart_term = 1');
RESET ROLE;
-- A worker id that does not fit, or that ids above the clock may have.
SELECT worker_id AS used FROM uid_generator_status WHERE generator = 'uid_generators.g'::regclass \gset
SELECT worker, outcome(format('SELECT uid_generator_restart(''uid_generators.g'', %s)', worker)) FROM unnest(ARRAY[-1, 32, 2147483647]) AS worker;

-- The call works without an argument. Rolled back, it leaves nothing.
BEGIN;
SELECT uid_generator_restart('uid_generators.g');
SELECT outcome('SELECT uid_next(''uid_generators.g'')');
ROLLBACK;
BEGIN;
SAVEPOINT s;
SELECT uid_generator_restart('uid_generators.g');
ROLLBACK TO s;
SET uidgen.max_wait = 0;
SELECT outcome('SELECT uid_next(''uid_generators.g'')') LIKE '55000 generator "g" is ahead of the clock%' AS is_ahead;
RESET uidgen.max_wait;
COMMIT;
SELECT restart_term, restart_node FROM uid_generator;
SELECT uid_generator_restart('uid_generators.g');
SELECT uid_next('uid_generators.g') AS later \gset
SELECT :later > :id AS above_the_first, abs(extract(epoch FROM uid_timestamp(:later, 'uid_generators.g') - clock_timestamp())) < 60 AS at_the_clock;
SELECT (uid_decode(:later, 'uid_generators.g')).worker_id <> :used AS another_worker;
SELECT restart_term, restart_until - restarted_at BETWEEN '59 min' AND '61 min' AS hour, restart_node = s.node AS node,
       cardinality(former_nodes) > 0 AS has_former
  FROM uid_generator JOIN uid_generator_status s USING (generator);
SELECT outcome('SELECT uid_generator_restart(''uid_generators.g'')');
-- A layout cannot change, a policy can, and neither undoes a restart.
SELECT outcome('SELECT uid_generator_alter(''uid_generators.g'', worker_bits => 4)');
SELECT uid_generator_alter('uid_generators.g', worker_policy => 'static', worker_number => 1);
SELECT (uid_decode(uid_next('uid_generators.g'), 'uid_generators.g')).worker_id = (uid_decode(:later, 'uid_generators.g')).worker_id AS keeps_the_node;
SELECT statement, outcome(statement) FROM (VALUES
  ('UPDATE uid_generator SET restart_term = NULL'), ('UPDATE uid_generator SET restart_term = 0'), ('UPDATE uid_generator SET restart_term = 65536'),
  ('UPDATE uid_generator SET restarted_at = NULL'), ('UPDATE uid_generator SET restarted_at = ''infinity'''),
  ('UPDATE uid_generator SET restart_until = ''2001-01-01'''), ('UPDATE uid_generator SET restart_node = 1024')) AS v(statement);
-- Ids above a given one, and another default, know the ids from before.
SELECT outcome(format('SELECT uid_generator_raise(''uid_generators.g'', %s)', :later));
SELECT uid_next('uid_generators.g') > :later AS above;

-- Each restart takes another node, until none is left. Then a person may name one.
SELECT uid_generator_create('few', epoch => '2025-01-01', datacenter_bits => 0, worker_bits => 1, sequence_bits => 12);
SELECT uid_next('uid_generators.few') > 0;
SELECT an_hour_ahead('uid_generators.few');
SELECT uid_generator_restart('uid_generators.few', 1 - s.worker_id) FROM uid_generator_status s WHERE generator = 'uid_generators.few'::regclass;
SELECT uid_next('uid_generators.few') > 0;
SELECT an_hour_ahead('uid_generators.few');
SELECT outcome('SELECT uid_generator_restart(''uid_generators.few'')');
SELECT regexp_replace(outcome(format('SELECT uid_generator_restart(''uid_generators.few'', %s)', s.worker_id)), 'worker id \d', 'worker id N')
  FROM uid_generator_status s WHERE generator = 'uid_generators.few'::regclass;

-- A static worker id must be given, with new_worker none, and a name that needs quotes is in the hint.
SELECT uid_generator_create('It''s', epoch => '2025-01-01', worker_policy => 'static', worker_number => 3);
SELECT uid_generator_create('term', epoch => '2025-01-01', worker_policy => 'static', worker_number => 3, when_back => 'new_worker');
SELECT uid_next('uid_generators."It''s"') > 0, uid_next('uid_generators.term') > 0;
SELECT an_hour_ahead('uid_generators."It''s"'), an_hour_ahead('uid_generators.term');
SELECT outcome('SELECT uid_generator_restart(''uid_generators."It''''s"'')');
SELECT outcome('SELECT uid_generator_restart(''uid_generators."It''''s"'', 3)');
SELECT outcome('SELECT uid_generator_restart(''uid_generators.term'', 4)');
SET search_path = pg_temp;
SELECT public.uid_generator_restart('uid_generators."It''s"', 4), public.uid_generator_restart('uid_generators.term');
SELECT d.worker_id FROM public.uid_decode(public.uid_next('uid_generators."It''s"'), 'uid_generators."It''s"') d;
SELECT d.worker_id FROM public.uid_decode(public.uid_next('uid_generators.term'), 'uid_generators.term') d;
RESET search_path;
-- The owner of a counter may raise it too far. Then there is no term left.
BEGIN;
SELECT setval('uid_generators.g', 9223372036854775806) > 0;
SELECT outcome('SELECT uid_generator_restart(''uid_generators.g'')');
ROLLBACK;

-- Its owner needs no other right. The builtin generator gets its row.
SELECT uid_next() > 0;
SELECT an_hour_ahead('uid_generators.uid_default');
SELECT uid_generator_restart('uid_generators.uid_default');
SELECT builtin, is_default, restart_term FROM uid_generator WHERE builtin;
SELECT uid_next() > 0;
GRANT CREATE ON SCHEMA uid_generators TO restart_user;
SET ROLE restart_user;
SELECT uid_generator_create('own', epoch => '2025-01-01');
SELECT uid_next('uid_generators.own') > 0;
SELECT an_hour_ahead('uid_generators.own');
SELECT uid_generator_restart('uid_generators.own');
SELECT uid_next('uid_generators.own') > 0;
RESET ROLE;
-- Generators of one layout that restart at once pin different nodes.
SELECT uid_generator_create('one', epoch => '2025-02-01'), uid_generator_create('two', epoch => '2025-02-01');
SELECT uid_next('uid_generators.one') > 0, uid_next('uid_generators.two') > 0;
SELECT an_hour_ahead('uid_generators.one'), an_hour_ahead('uid_generators.two');
SELECT uid_generator_restart('uid_generators.one'), uid_generator_restart('uid_generators.two');
SELECT count(DISTINCT restart_node) AS nodes FROM uid_generator WHERE generator IN ('uid_generators.one', 'uid_generators.two');
-- A datacenter id that is set later, as in a copy of the database, is not in the pinned node, and does not protect it.
SELECT uid_next('uid_generators.two') > 0;
BEGIN;
SELECT set_config('uidgen.datacenter_id', ((datacenter_id + 1) % 32)::text, true) IS NOT NULL AS set_later
  FROM uid_generator_status WHERE generator = 'uid_generators.two'::regclass;
SELECT protection FROM uid_generator_status WHERE generator = 'uid_generators.two'::regclass;
COMMIT;
DROP OWNED BY restart_user;
DROP ROLE restart_user;
DROP FUNCTION outcome(text), exact_outcome(text), an_hour_ahead(regclass);
DROP EXTENSION uidgen CASCADE;
