-- Ids as UUIDs of version 7, and back. test/unit/uuid_form_test.cpp has the form bit by bit.
\a \t
CREATE EXTENSION uidgen;
SET timezone = 'UTC';
SET datestyle = 'ISO';
\pset null 'NULL'
\getenv source PG_ABS_SRCDIR
\i :source/test/outcome.sql
-- The first 48 bits: milliseconds since 1970.
CREATE FUNCTION time_of(u uuid) RETURNS timestamptz LANGUAGE sql AS $$
  SELECT timestamptz 'epoch' + ('x' || left(replace(u::text, '-', ''), 12))::bit(48)::bigint * interval '1 ms'
$$;

SELECT count(uid_generator_create(preset, preset)) FROM uid_preset WHERE preset NOT IN ('snowflake', 'baidu');
SELECT uid_generator_create('baidu', 'baidu', epoch => '2026-01-01 00:00+00');
-- Ticks shorter than a millisecond, and some that do not divide it, from an epoch within a millisecond.
SELECT uid_generator_create('us', tick_us => 1, time_bits => 47, datacenter_bits => 0, worker_bits => 4,
                            sequence_bits => 12, epoch => '2026-01-01 00:00:00.000001+00');
SELECT uid_generator_create('odd', tick_us => 700, time_bits => 42, epoch => '2026-01-01 00:00:00.0005+00',
                            worker_bits => 4);

-- The form is fixed: tables hold such UUIDs.
SELECT uid_to_uuid(117443343637549056), uid_from_uuid('01a1fbd3-0d2b-7004-8000-000000009cdb'),
       uid_from_uuid('01a1fbd3-0d2b-7004-8008-765432101932') AS with_random_bits;
SELECT uid_to_uuid(181195177993, 'uid_generators.js53') AS js53,
       uid_to_uuid(6039798221313, 'uid_generators.sonyflake') AS sonyflake,
       uid_to_uuid(34359738368040963, 'uid_generators.baidu') AS baidu;

-- What each generator draws: version 7, in order, the id can be read back, and the time is that of the id's tick.
CREATE TABLE drawn (place bigserial, generator regclass, u uuid, id bigint);
DO $$
DECLARE
  g regclass;
BEGIN
  FOR g IN SELECT generator FROM uid_generator ORDER BY generator::text LOOP
    FOR i IN 1 .. 2000 LOOP
      INSERT INTO drawn (generator, u) VALUES (g, uid_next_uuid(g));
      UPDATE drawn SET id = uid_last() WHERE place = currval('drawn_place_seq') AND i = 2000;
    END LOOP;
  END LOOP;
END
$$;
SELECT generator, bool_and(substr(u::text, 15, 1) = '7' AND substr(u::text, 20, 1) IN ('8', '9', 'a', 'b')) AS version_7,
       bool_and(u > former OR generator IN ('uid_generators.js53'::regclass, 'uid_generators.baidu_cached')) AS in_order, bool_and(uid_from_uuid(u, generator) = coalesce(id, uid_from_uuid(u, generator))) AS last_id,
       bool_and(time_of(u) = date_trunc('milliseconds', uid_timestamp(uid_from_uuid(u, generator), generator))) AS same_ms,
       bool_and(uid_from_uuid(uid_to_uuid(uid_from_uuid(u, generator), generator), generator) = uid_from_uuid(u, generator)) AS round_trip,
       count(DISTINCT u) AS distinct, count(DISTINCT right(u::text, 12)) > 1000 AS random
  FROM (SELECT *, lag(u) OVER (PARTITION BY generator ORDER BY place) AS former FROM drawn) d
 GROUP BY generator ORDER BY generator::text;
-- A backup worker's ids and cached ids may be out of order. Their UUIDs are then, too.
SELECT bool_and((a.u < b.u) = (a.id < b.id)) AS uuids_sort_as_ids, count(*) > 0 AS some
  FROM (SELECT generator, u, uid_from_uuid(u, generator) AS id FROM drawn WHERE place % 40 = 0) a
  JOIN (SELECT generator, u, uid_from_uuid(u, generator) AS id FROM drawn WHERE place % 30 = 0) b
    ON a.generator = b.generator AND a.id <> b.id;
-- As a column default, by the default generator; many at once.
CREATE TABLE orders (id uuid PRIMARY KEY DEFAULT uid_next_uuid(), item bigint);
INSERT INTO orders (item) SELECT generate_series(1, 10000);
SELECT count(*), count(DISTINCT uid_from_uuid(id)), bool_and(uid_timestamp(uid_from_uuid(id)) BETWEEN now() - interval '1 min'
       AND now() + interval '1 min') AS now, (array_agg(item ORDER BY id))[1:3] AS first FROM orders;
SELECT uid_from_uuid(uid_next_uuid()) = uid_last() AS last;

-- NULL, and what is refused.
SELECT uid_next_uuid(NULL), uid_to_uuid(NULL), uid_to_uuid(NULL, 'uid_generators.us'), uid_to_uuid(1, NULL),
       uid_from_uuid(NULL), uid_from_uuid(NULL, 'uid_generators.us'),
       uid_from_uuid('01a1fbd3-0d2b-7004-8000-000000009cdb', NULL);
CREATE TABLE a_table (id bigint);
CREATE SEQUENCE plain;
-- Wrong check bits, another generator, RFC 9562 A.6, versions and variants, before the epoch, after the end.
\set ECHO none
SELECT * FROM outcomes('SELECT uid_from_uuid(%s)', $$'01a1fbd3-0d2b-7004-8000-000000009cda'$$,
  $$'01a1fbd3-0d2b-7004-8000-000000009cdb', 'uid_generators.js53'$$, $$'017f22e2-79b0-7cc3-98c4-dc0c0c07398f'$$,
  $$'01a1fbd3-0d2b-4004-8000-000000009cdb'$$, $$'01a1fbd3-0d2b-7004-c000-000000009cdb'$$,
  $$'00000000-0000-0000-0000-000000000000'$$, $$'ffffffff-ffff-ffff-ffff-ffffffffffff'$$,
  $$'00000000-0000-7000-8000-000000000000'$$, $$'ffffffff-ffff-7fff-bfff-ffffffffffff'$$,
  $$'01a1fbd3-0d2b-7004-8000-000000009cdb', 'plain'$$, $$'01a1fbd3-0d2b-7004-8000-000000009cdb', 0$$);
SELECT * FROM outcomes('SELECT uid_%s', 'to_uuid(-1)', $$to_uuid(9223372036854775807, 'uid_generators.js53')$$,
  $$to_uuid(1, 'a_table')$$,
  $$to_uuid(1, 'plain')$$, 'to_uuid(1, 0)', $$next_uuid('a_table')$$, $$next_uuid('plain')$$, 'next_uuid(0)');
\set ECHO all
CREATE ROLE uuid_reader;
SET ROLE uuid_reader;
SELECT * FROM outcomes('SELECT uid_%s', 'next_uuid() IS NOT NULL', 'next_uuid(''uid_generators.us'')', 'to_uuid(1, ''uid_generators.us'')');
RESET ROLE;

-- PostgreSQL 18 and later read the time. Earlier ones have nothing to compare with.
\set ECHO none
CREATE FUNCTION extracted(u uuid) RETURNS timestamptz LANGUAGE plpgsql AS $$
DECLARE
  result timestamptz := time_of(u);
BEGIN
  IF current_setting('server_version_num')::integer >= 180000 THEN
    EXECUTE 'SELECT CASE uuid_extract_version($1) WHEN 7 THEN uuid_extract_timestamp($1) END' INTO result USING u;
  END IF;
  RETURN result;
END
$$;
\set ECHO all
SELECT count(*) FILTER (WHERE extracted(u) IS DISTINCT FROM time_of(u)) AS another_time FROM drawn;

DROP TABLE drawn, orders, a_table;
DROP SEQUENCE plain;
DROP FUNCTION extracted, time_of, outcome, outcomes;
DROP ROLE uuid_reader;
SET client_min_messages = warning;
DROP EXTENSION uidgen CASCADE;
