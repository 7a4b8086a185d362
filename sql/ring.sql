-- Cached mode: its parameters, what is refused, and what the views show. (test/tap/020_cached.t, 021_cached_clock.t: the rest.)
\a \t
CREATE EXTENSION uidgen;
\getenv source PG_ABS_SRCDIR
\i :source/test/outcome.sql

-- The preset, and what it says.
SELECT uid_generator_create('preset', 'baidu_cached');
SELECT mode, boost_power, padding_factor, schedule_ms, when_ring_empty, max_staleness_ms, lease_ms, max_ahead_ms, when_full, when_back
  FROM uid_generator WHERE generator = 'uid_generators.preset'::regclass;
SELECT ring_size, ring_filled, padded_inline FROM uid_generator_status WHERE preset = 'baidu_cached';
SELECT uid_next('uid_generators.preset') > 0;
SELECT ring_size, ring_filled BETWEEN 0 AND 1 AS filled, padded + padded_inline > 0 AS padded,
       rejected_takes, discarded_stale, ahead_ms < 32000 AS ahead
  FROM uid_generator_status WHERE preset = 'baidu_cached';
-- Not of snowflake mode.
SELECT uid_next() > 0;
SELECT ring_size, ring_filled, padded, discarded_stale, ahead_ms < 2000 AS ahead FROM uid_generator_status WHERE preset = 'snowflake';

-- Any layout.
SELECT uid_generator_create('whole', mode => 'cached', spread => false, boost_power => 10);
SELECT count(DISTINCT id), max(id) - min(id) > 0 FROM unnest(uid_next_array('uid_generators.whole', 5000)) AS id;
SELECT uid_generator_create('one', mode => 'cached', spread => false, sequence_bits => 0, boost_power => 0);
SELECT uid_next('uid_generators.one') < uid_next('uid_generators.one');
-- No call takes more than the ring has, so a refill gives as many ids as the ring is large.
SELECT cardinality(uid_next_array('uid_generators.one', 20));
SELECT padded + padded_inline >= 20 AS refilled FROM uid_generator_status WHERE generator = 'uid_generators.one'::regclass;
SELECT generator, ring_size FROM uid_generator_status WHERE generator::text ~ 'whole|one' ORDER BY generator::text;
SELECT uid_generator_create('of_js53', 'js53', mode => 'cached', when_full => 'borrow', when_back => 'hold', tolerance_ms => -1, max_ahead_ms => 16000);
SELECT backup, uid_last() = uid_encode(generated_at, datacenter_id, worker_id, sequence, 'uid_generators.of_js53')
  FROM (SELECT uid_next('uid_generators.of_js53') AS id OFFSET 0) d, uid_decode(id, 'uid_generators.of_js53');

-- A transaction's first call finds a counter that was moved, even if it draws nothing: the session's window ends.
SELECT uid_generator_create('moved', 'baidu_cached', epoch => '2026-02-01 00:00+00', max_ahead_ms => 600000);
SELECT uid_next('uid_generators.moved') > 0;
SELECT setval('uid_generators.moved', last_value + 60) AS moved FROM uid_generators.moved \gset
BEGIN;
SELECT uid_next_array('uid_generators.moved', 0);
SELECT uid_timestamp(uid_next('uid_generators.moved'), 'uid_generators.moved') > clock_timestamp() + interval '30 s';
COMMIT;

-- As a column's default.
CREATE TABLE t (id bigint DEFAULT uid_next('uid_generators.whole'), n integer);
INSERT INTO t (n) SELECT generate_series(1, 10000);
SELECT count(*), count(DISTINCT id), bool_and(id > 0) FROM t;
SELECT uid_next_array('uid_generators.whole', 0), cardinality(uid_next_array('uid_generators.whole', 10000)), uid_next(NULL::regclass);

-- The window survives what is rolled back, and ids are not taken twice.
BEGIN;
INSERT INTO t (n) VALUES (-1);
SAVEPOINT a;
INSERT INTO t (n) VALUES (-2);
ROLLBACK TO a;
INSERT INTO t (n) VALUES (-3);
COMMIT;
SELECT count(*) - count(DISTINCT id) FROM t;
DROP TABLE t;

-- What is refused.
SELECT * FROM outcomes($$SELECT uid_generator_create('bad', 'baidu_cached', %s)$$, $$mode => 'ring'$$, 'boost_power => 21',
  'boost_power => -1', 'boost_power => 6', 'padding_factor => 0',
  'padding_factor => 101', 'schedule_ms => 0', $$when_ring_empty => 'throw'$$,
  'max_staleness_ms => 0', 'max_staleness_ms => 1999', $$when_full => 'wait'$$, $$when_back => 'error'$$,
  'tolerance_ms => 1000', 'spread => true');
SELECT outcome($$SELECT uid_generator_create('bad', 'baidu', mode => 'cached')$$);
SELECT count(*) FROM uid_generator WHERE generator::text LIKE '%bad%';

-- Altered: the ring is another one, and ids go on above.
SELECT uid_next('uid_generators.whole') AS before \gset
SELECT uid_generator_alter('uid_generators.whole', boost_power => 2, padding_factor => 90, schedule_ms => 1000, max_staleness_ms => 10000);
SELECT uid_next('uid_generators.whole') > :before;
SELECT ring_size FROM uid_generator_status WHERE generator = 'uid_generators.whole'::regclass;
SELECT * FROM outcomes($$SELECT uid_generator_alter('uid_generators.whole', %s)$$,
  'schedule_ms => -1, padding_factor => 0', 'boost_power => 20');
SELECT uid_generator_alter('uid_generators.whole', schedule_ms => -1);
SELECT boost_power, padding_factor, schedule_ms, max_staleness_ms FROM uid_generator WHERE generator = 'uid_generators.whole'::regclass;
SELECT uid_next('uid_generators.whole') AS before \gset
SELECT uid_generator_alter('uid_generators.whole', mode => 'snowflake');
SELECT uid_next('uid_generators.whole') > :before;
SELECT ring_size FROM uid_generator_status WHERE generator = 'uid_generators.whole'::regclass;
SELECT uid_next('uid_generators.whole') AS before \gset
SELECT uid_generator_alter('uid_generators.whole', mode => 'cached');
SELECT uid_next('uid_generators.whole') > :before;

-- Dropped and made anew: above.
SELECT uid_next('uid_generators.one') AS before \gset
SELECT uid_generator_drop('uid_generators.one');
SELECT uid_generator_create('one', mode => 'cached', spread => false, sequence_bits => 0, boost_power => 0, max_ahead_ms => 600000);
SELECT uid_next('uid_generators.one') > :before;

-- As the database's default.
SELECT uid_default_set('uid_generators.whole');
SELECT count(DISTINCT id) FROM (SELECT uid_next() AS id FROM generate_series(1, 10) OFFSET 0) d;
SELECT bool_and(worker_id = (SELECT worker_id FROM uid_generator_status WHERE generator = 'uid_generators.whole'::regclass)), cardinality(uid_next_array(3))
  FROM unnest(uid_next_array(100)) AS id, uid_decode(id);

-- A draw that fails leaves the session without a slot of that generator; then somebody else's change is heard of.
SELECT uid_generator_create('lost', 'baidu_cached');
SELECT uid_next('uid_generators.lost') > 0;
BEGIN;
SELECT uid_generator_alter('uid_generators.lost', padding_factor => 60);
SELECT uid_next('uid_generators.lost');
ROLLBACK;
GRANT USAGE ON SEQUENCE uid_generators.lost TO PUBLIC;
SELECT uid_next() > 0;
SELECT uid_next('uid_generators.lost') > 0;

DROP FUNCTION outcome, outcomes;
SET client_min_messages = warning;
DROP EXTENSION uidgen CASCADE;
