-- segment_reserve(): blocks of values for callers that hand them out themselves.
\a \t
CREATE EXTENSION uidgen;
\getenv source PG_ABS_SRCDIR
\i :source/test/outcome.sql
SET uidgen.segment_step = 10;
SELECT segment_create('orders') IS NOT NULL AS made;

-- Blocks follow one another, and lie above the ranges that segment_next() draws from. Those go on.
SELECT * FROM segment_reserve('orders', 100);
SELECT segment_next('orders') FROM generate_series(1, 3);
SELECT * FROM segment_reserve('uid_segments.orders'::regclass, 50);
SELECT * FROM segment_reserve('orders', 1);
SELECT min(v), max(v), count(*) FROM (SELECT segment_next('orders') AS v FROM generate_series(1, 27)) AS s;
SELECT refills_disturbed FROM segment_status WHERE name = 'orders';
SELECT nextval('uid_segments.orders');
SELECT * FROM segment_reserve('orders', 5);
SELECT nextval('uid_segments.orders');
SELECT setval('uid_segments.orders', 1000);
SELECT * FROM segment_reserve('orders', 5);
SELECT setval('uid_segments.orders', 2000, false);
SELECT * FROM segment_reserve('orders', 5);
-- Neither a rollback nor a savepoint gives a block back.
BEGIN;
SELECT * FROM segment_reserve('orders', 5);
SAVEPOINT s;
SELECT * FROM segment_reserve('orders', 5);
ROLLBACK TO s;
SELECT * FROM segment_reserve('orders', 5);
ROLLBACK;
SELECT * FROM segment_reserve('orders', 5);
BEGIN READ ONLY;
SELECT * FROM segment_reserve('orders', 5);
COMMIT;
-- But it gives the former counter of an altered sequence back.
BEGIN;
ALTER SEQUENCE uid_segments.orders CACHE 2;
SELECT * FROM segment_reserve('orders', 5);
ROLLBACK;
-- segment_last() does not see blocks.
SELECT segment_last('orders');
SELECT segment_create('untouched') IS NOT NULL AS made;
SELECT * FROM segment_reserve('untouched', 5);
SELECT segment_last('untouched');
-- Many callers in one statement; no value twice.
SELECT segment_create('mixed', step => 7) IS NOT NULL AS made;
SELECT count(*), count(DISTINCT v)
  FROM (SELECT segment_next('mixed') AS v FROM generate_series(1, 500)
        UNION ALL
        SELECT generate_series(b.first, b.last, b.increment)
          FROM generate_series(1, 100) AS i, LATERAL segment_reserve('mixed', 1 + i % 13) AS b
        UNION ALL
        SELECT nextval('uid_segments.mixed') FROM generate_series(1, 100)) AS s;

-- Any increment and any bounds.
CREATE SEQUENCE by_seven INCREMENT 7;
SELECT * FROM segment_reserve('by_seven'::regclass, 10);
SELECT * FROM segment_reserve('by_seven', 1);
CREATE SEQUENCE downward INCREMENT -3;
SELECT * FROM segment_reserve('downward', 4);
SELECT segment_next('downward');
SELECT * FROM segment_reserve('downward', 4);
CREATE SEQUENCE whole MINVALUE -9223372036854775808 START -9223372036854775808;
SELECT * FROM segment_reserve('whole', 9223372036854775807);
SELECT * FROM segment_reserve('whole', 9223372036854775807);
SELECT * FROM segment_reserve('whole', 2);
SELECT * FROM segment_reserve('whole', 1);

-- A block that does not fit takes nothing.
CREATE SEQUENCE short MAXVALUE 100;
SELECT * FROM segment_reserve('short', 101);
SELECT last_value, is_called FROM short;
SELECT * FROM segment_reserve('short', 98);
SELECT * FROM segment_reserve('short', 3);
SELECT * FROM segment_reserve('short', 2);
SELECT * FROM segment_reserve('short', 1);
CREATE SEQUENCE short_down INCREMENT -10 MINVALUE -100;
SELECT * FROM segment_reserve('short_down', 11);
SELECT * FROM segment_reserve('short_down', 10);
SELECT * FROM segment_reserve('short_down', 1);
CREATE SEQUENCE rounds MAXVALUE 10 CYCLE;
SELECT * FROM segment_reserve('rounds', 7);
SELECT * FROM segment_reserve('rounds', 4);
SELECT * FROM segment_reserve('rounds', 3);
SELECT * FROM segment_reserve('rounds', 4);
SELECT * FROM segment_reserve('rounds', 9223372036854775807);

-- What is refused.
CREATE TEMP SEQUENCE temporary;
CREATE UNLOGGED SEQUENCE unlogged;
SELECT * FROM outcomes('SELECT segment_reserve(%s)', $$'temporary', 1$$, $$'unlogged', 1$$, $$'orders', 0$$, $$'orders', -1$$, $$'orders', NULL$$,
  'NULL::text, 1', 'NULL::regclass, 1', $$'nowhere', 1$$, $$'pg_class'::regclass, 1$$,
  $$'uid_generators.uid_default'::regclass, 1$$);
CREATE ROLE regress_blocks;
SET ROLE regress_blocks;
SELECT outcome($$SELECT segment_reserve('orders', 1)$$);
RESET ROLE;
GRANT USAGE ON SEQUENCE uid_segments.orders TO regress_blocks;
SET ROLE regress_blocks;
SELECT last - first + 1 AS values FROM segment_reserve('orders', 3);
-- USAGE is the right to draw, not to use up the sequence by one call.
SELECT * FROM outcomes($$SELECT segment_reserve('orders', %s)$$, '1000001', '9223372036854775000');
RESET ROLE;
GRANT UPDATE ON SEQUENCE uid_segments.orders TO regress_blocks;
SET ROLE regress_blocks;
SELECT last - first + 1 AS values FROM segment_reserve('orders', 1000001);
RESET ROLE;
DROP OWNED BY regress_blocks;
DROP ROLE regress_blocks;

DROP SEQUENCE by_seven, downward, whole, short, short_down, rounds, temporary, unlogged;
DROP FUNCTION outcome, outcomes;
SET client_min_messages = warning;
DROP EXTENSION uidgen CASCADE;
