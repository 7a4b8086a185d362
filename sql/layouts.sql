-- Layouts: ids worked out by hand from what was published, field order, every field, and what is refused.
\a \t
CREATE EXTENSION uidgen;
SET timezone = 'UTC';
SET datestyle = 'ISO';

SELECT * FROM uid_preset;

\getenv source PG_ABS_SRCDIR
\i :source/test/outcome.sql

-- Each row says what an id consists of; the id is there as a number or as the shifts of the published definition.
CREATE TABLE vector (generator text, id bigint, generated_at timestamptz, datacenter_id integer, worker_id integer, sequence integer, backup boolean);
SET client_min_messages = error; -- the time of some has ended, and that of others will
SELECT count(uid_generator_create(preset, preset)) FROM uid_preset WHERE preset NOT IN ('snowflake', 'baidu', 'baidu_cached');
SELECT uid_generator_create('snowflake'), uid_generator_create('baidu', 'baidu', epoch => '2016-05-20 00:00+00'),
       uid_generator_create('discord', 'twitter', epoch => to_timestamp(1420070400)),
       uid_generator_create('baidu_readme', 'baidu', epoch => '2016-09-20 00:00+00', time_bits => 29, worker_bits => 21),
       uid_generator_create('instagram_article', 'instagram', epoch => '2011-01-01 00:00+00');
RESET client_min_messages;
\set ECHO none
INSERT INTO vector VALUES
  -- Wikipedia, "Snowflake ID": a tweet of 2022-06-28, machine 378 = 11 * 32 + 26, sequence 0. Hutool and Leaf kept Twitter's
  -- epoch; Leaf's ten bits are one worker id.
  ('twitter', 1541815603606036480, '2022-06-28 16:07:40.105+00', 11, 26, 0, false),
  ('hutool', 1541815603606036480, '2022-06-28 16:07:40.105+00', 11, 26, 0, false),
  ('leaf', 1541815603606036480, '2022-06-28 16:07:40.105+00', 0, 378, 0, false),
  -- Discord's API documentation, "Snowflakes": worker 1, process 0, increment 7.
  ('discord', 175928847299117063, '2016-04-30 11:18:25.796+00', 1, 0, 7, false),
  -- uid-generator's README: {"UID":"180363646902239241","parsed":{"timestamp":"2017-01-19 12:15:46","workerId":"4","sequence":"9"}},
  -- with timeBits 29, workerBits 21, seqBits 13, epochStr 2016-09-20.
  ('baidu_readme', 180363646902239241, '2017-01-19 12:15:46+00', 0, 4, 9, false),
  -- Baidu's default widths: a million seconds << 35, worker 5 << 13, sequence 3.
  ('baidu', 34359738368040963, '2016-05-31 13:46:40+00', 0, 5, 3, false),
  ('baidu', 9223372036854775807, '2024-11-20 21:24:15+00', 0, 4194303, 8191, false),
  -- Sonyflake: 10 ms since 2014-09-01 << 24, sequence << 16, machine.
  ('sonyflake', 6039798221313, '2014-09-01 01:00:00+00', 0, 2561, 7, false),
  ('sonyflake', 9223372036854775807, '2188-11-16 03:28:58.87+00', 0, 65535, 255, false),
  -- Instagram's article: 1387263000 ms since the epoch, shard 31341 % 2000, sequence 5001 % 1024, so
  -- 1387263000 << 23 | 1341 << 10 | 905. The epoch of its code is the preset's; that of its text is in 2011 too.
  ('instagram_article', 11637205501278089, '2011-01-17 01:21:03+00', 1341, 0, 905, false),
  ('instagram', 11637205501278089, '2011-09-09 22:28:04.721+00', 1341, 0, 905, false),
  -- js53: seconds << 21, backup << 20, worker << 16, sequence.
  ('js53', 181194129417, '2026-01-02 00:00:00+00', 0, 3, 9, false),
  ('js53', 181195177993, '2026-01-02 00:00:00+00', 0, 3, 9, true),
  ('js53', 9007199254740991, '2162-02-07 06:28:15+00', 0, 15, 65535, true),
  ('snowflake', 8527875, '2026-01-01 00:00:00.002+00', 1, 2, 3, false),
  ('snowflake', 9223372036854775807, '2095-09-07 15:47:35.551+00', 31, 31, 4095, false);
\set ECHO all
INSERT INTO vector SELECT preset, 2::bigint << (datacenter_bits + worker_bits + sequence_bits), coalesce(epoch, '2016-05-20 00:00+00') + 2 * tick_us * interval '1 us',
       0, 0, 0, false FROM uid_preset WHERE mode = 'snowflake';
SELECT count(*) FILTER (WHERE decoded AND encoded AND timestamp AND immutable) = (SELECT count(*) FROM vector) AS all_hold,
       array_agg(generator || ' ' || id) FILTER (WHERE (decoded AND encoded AND timestamp AND immutable) IS NOT TRUE) AS wrong
  FROM (SELECT v.generator, v.id,
       (d.generated_at, d.datacenter_id, d.worker_id, d.sequence) = (v.generated_at, v.datacenter_id, v.worker_id, v.sequence)
         AND d.backup IS NOT DISTINCT FROM v.backup AS decoded,
       uid_encode(v.generated_at, v.datacenter_id, v.worker_id + CASE WHEN v.backup THEN 16 ELSE 0 END, v.sequence, g) = v.id AS encoded,
       uid_timestamp(v.id, g) = v.generated_at AS timestamp,
       uid_timestamp(v.id, u.epoch, u.tick_us, u.datacenter_bits + u.worker_bits + u.sequence_bits) = v.generated_at AS immutable
  FROM vector AS v, uid_generator AS u, LATERAL CAST('uid_generators.' || v.generator AS regclass) AS g, uid_decode(v.id, g) AS d
 WHERE u.generator = g) AS checked;
SELECT count(*) >= 24 AS vectors FROM vector;

-- One more than each part holds, and ids of more bits than the layout has.
\set ECHO none
SELECT * FROM outcomes('SELECT uid_%s', $$encode('2026-01-02', 0, 32, 0, 'uid_generators.js53')$$,
  $$encode('2026-01-02', 1, 0, 0, 'uid_generators.js53')$$, $$encode('2026-01-02', 0, 0, 65536, 'uid_generators.js53')$$,
  $$encode('2162-02-07 06:28:16', 0, 0, 0, 'uid_generators.js53')$$,
  $$encode('2025-12-31 23:59:59.999999', 0, 0, 0, 'uid_generators.js53')$$,
  $$encode('2015-01-01', 0, 65536, 0, 'uid_generators.sonyflake')$$,
  $$encode('2015-01-01', 0, 0, 256, 'uid_generators.sonyflake')$$,
  $$encode('2015-01-01', 8192, 0, 0, 'uid_generators.instagram')$$, $$encode('2015-01-01', 0, 1024, 0, 'uid_generators.leaf')$$,
  $$decode(9007199254740992, 'uid_generators.js53')$$, $$timestamp(9223372036854775807, 'uid_generators.js53')$$,
  $$timestamp(-1, '2026-01-01', 1000, 22)$$, $$timestamp(1, '1969-12-31', 1000, 22)$$, $$timestamp(1, 'infinity', 1000, 22)$$,
  $$timestamp(1, '2026-01-01', 0, 22)$$, $$timestamp(1, '2026-01-01', 3600000001, 22)$$, $$timestamp(1, '2026-01-01', 1000, -1)$$,
  $$timestamp(1, '2026-01-01', 1000, 63)$$, $$timestamp(9223372036854775807, '2026-01-01', 3600000000, 0)$$,
  $$lower_bound('2026-01-02', '-infinity', 1000, 22)$$, $$lower_bound('2026-01-02', '2026-01-01', -5, 22)$$,
  $$lower_bound('2026-01-02', '2026-01-01', 1000, 64)$$);
\set ECHO all

-- Field order: the same parts in both. (test/unit/layout_test.cpp: ids of one worker rise in both.)
SELECT uid_generator_create('node_first', time_bits => 10, datacenter_bits => 3, worker_bits => 5, sequence_bits => 7, tick_us => 3600000000),
       uid_generator_create('sequence_first', time_bits => 10, datacenter_bits => 3, worker_bits => 5, sequence_bits => 7, tick_us => 3600000000, sequence_first => true);
SELECT uid_encode('2026-01-01 09:00', 5, 17, 100, 'uid_generators.node_first') = (9 << 15) + (5 << 12) + (17 << 7) + 100 AS node_first,
       uid_encode('2026-01-01 09:00', 5, 17, 100, 'uid_generators.sequence_first') = (9 << 15) + (100 << 8) + (5 << 5) + 17 AS sequence_first;
SELECT d.* FROM (VALUES ('node_first'), ('sequence_first')) AS g(name), LATERAL CAST('uid_generators.' || g.name AS regclass) AS r,
  uid_decode(uid_encode('2026-01-01 09:00', 5, 17, 100, r), r) AS d;

-- A generator that draws, in each preset: what it draws has its own parts, rises, and fits in as many bits as the layout has.
-- (Baidu's 28 bits of seconds from 2016-05-20 ended in 2024: its epoch is the day of creation unless one is given.)
SELECT uid_generator_create('baidu_today', 'baidu');
SELECT epoch = date_trunc('day', created, 'UTC') AS today FROM uid_generator WHERE generator = 'uid_generators.baidu_today'::regclass;
SELECT g.name, count(*), count(DISTINCT id) AS ids, bool_and(id > before) AS rising,
       bool_and(id >> (u.time_bits + u.datacenter_bits + u.worker_bits + u.sequence_bits) = 0) AS in_layout,
       bool_and(abs(extract(epoch FROM d.generated_at - clock_timestamp())) < 5) AS truthful,
       count(DISTINCT (d.datacenter_id, d.worker_id)) AS nodes, bool_or(d.backup) AS backup
  FROM (VALUES ('snowflake'), ('twitter'), ('hutool'), ('leaf'), ('baidu_today'), ('js53'), ('sonyflake'), ('instagram')) AS g(name)
  JOIN uid_generator AS u ON u.generator = ('uid_generators.' || g.name)::regclass,
       LATERAL (SELECT id, lag(id, 1, 0::bigint) OVER (ORDER BY n) AS before
                  FROM unnest(uid_next_array(u.generator, 200)) WITH ORDINALITY AS b(id, n)) AS i,
       uid_decode(i.id, u.generator) AS d
 GROUP BY g.name ORDER BY g.name;
SELECT outcome('SELECT uid_next(''uid_generators.baidu'')');

-- Every field has a parameter of its own, by its name, at creation and at an alteration.
SELECT p.proname, array_agg(a.attname ORDER BY attnum) AS no_parameter FROM pg_attribute AS a, pg_proc AS p
 WHERE a.attrelid = 'uid_generator'::regclass AND attnum > 0 AND proname IN ('uid_generator_create', 'uid_generator_alter') AND attname::text <> ALL (proargnames)
 GROUP BY p.proname ORDER BY p.proname;
SELECT p.proname, n AS no_field FROM pg_proc AS p, unnest(proargnames) AS n
 WHERE proname IN ('uid_generator_create', 'uid_generator_alter') AND n NOT IN (SELECT attname FROM pg_attribute WHERE attrelid = 'uid_generator'::regclass AND attnum > 0)
 ORDER BY p.proname, n;
SELECT uid_generator_create('all', 'js53', epoch => '2020-02-02 02:02:02+00', tick_us => 250, time_bits => 45, datacenter_bits => 2,
  worker_bits => 6, sequence_bits => 10, sequence_first => true, backup_worker => true, lease_ms => 70, max_ahead_ms => 90,
  when_full => 'wait', when_back => 'error', tolerance_ms => 33, spread => true, worker_policy => 'static', worker_number => 31, mode => 'snowflake',
  boost_power => 2, padding_factor => 49, schedule_ms => 44, when_ring_empty => 'wait', max_staleness_ms => 4000, datacenter_id => 3);
SELECT to_jsonb(u) - 'created' FROM uid_generator AS u WHERE generator = 'uid_generators.all'::regclass;
SELECT datacenter_id BETWEEN 0 AND 3 AS datacenter_id, worker_id, backup FROM uid_decode(uid_next('uid_generators.all'), 'uid_generators.all');
-- One at a time: what is not named is the preset's. (NULL is not naming; a tolerance_ms of -1 is no limit.)
CREATE TABLE field (n integer, preset text, arguments text);
\set ECHO none
INSERT INTO field VALUES (1, 'snowflake', ''), (2, 'snowflake', ', epoch => ''2021-01-01 00:00+00'''), (3, 'snowflake', ', tick_us => 5000'),
  (4, 'snowflake', ', time_bits => 40'), (5, 'snowflake', ', datacenter_bits => 0'), (6, 'snowflake', ', worker_bits => 4'),
  (7, 'snowflake', ', sequence_bits => 3'), (8, 'snowflake', ', sequence_first => true'), (9, 'snowflake', ', backup_worker => true'),
  (10, 'snowflake', ', lease_ms => 999'), (11, 'snowflake', ', max_ahead_ms => 5000'), (12, 'snowflake', ', when_full => ''wait'''),
  (13, 'snowflake', ', when_back => ''wait'''), (14, 'snowflake', ', tolerance_ms => 0'), (15, 'snowflake', ', spread => false'),
  (16, 'snowflake', ', worker_policy => ''sticky'''), (17, 'snowflake', ', worker_policy => ''static'', worker_number => 0'),
  (18, 'snowflake', ', tolerance_ms => -1'), (19, 'hutool', ''), (20, 'hutool', ', tolerance_ms => -1'), (21, 'hutool', ', tolerance_ms => NULL'),
  (22, 'hutool', ', worker_policy => NULL, spread => NULL, when_full => NULL');
\set ECHO all
SELECT count(outcome(format('SELECT uid_generator_create(''field_%s'', %L%s)', n, preset, arguments))) FROM field;
SELECT f.preset, arguments, (SELECT jsonb_object_agg(d.key, d.value) FROM jsonb_each(to_jsonb(u)) AS d
                    WHERE d.value IS DISTINCT FROM to_jsonb(p) -> d.key AND d.key NOT IN ('generator', 'created', 'builtin', 'is_default')) AS differs
  FROM field AS f JOIN uid_generator AS u ON u.generator = to_regclass('uid_generators.field_' || n)
  JOIN uid_preset AS p ON p.preset = u.preset
 ORDER BY n;
-- The way that has positions: name, preset, above.
SELECT uid_generator_create('positions', 'leaf', 5);

-- What is refused, and that nothing is left of it.
SELECT count(*) AS generators FROM uid_generator \gset
SELECT * FROM outcomes('SELECT uid_generator_create(''refused'', %s)', $$'snowflake', tick_us => 0$$,
  $$'snowflake', sequence_bits => 32768$$, $$'snowflake', time_bits => 65577$$, $$'snowflake', lease_ms => 2001$$,
  $$'snowflake', tolerance_ms => -2$$, $$'snowflake', when_full => 'never'$$,
  $$'js53', worker_policy => 'static', worker_number => 16$$, $$'js53', worker_bits => 0$$, $$'js53', backup_worker => false$$,
  $$'Snowflake'$$, 'NULL');
SELECT count(*) = :generators AS as_before, to_regclass('uid_generators.refused') IS NULL AS no_sequence FROM uid_generator;

-- Sequence numbers begin anywhere in a tick where spread is on, as in the preset of the default generator; else at 0. So ids
-- drawn one a tick are odd and even alike, or all even. (A tick of 1 us is shorter than one INSERT.)
SELECT preset, spread FROM uid_preset WHERE spread;
-- The builtin generator is the preset snowflake.
SELECT uid_generator_create('same');
SELECT g.preset, to_jsonb(b) - ARRAY['generator', 'created', 'builtin', 'is_default'] = to_jsonb(g) - ARRAY['generator', 'created', 'builtin', 'is_default'] AS same,
       b.builtin, b.is_default, b.generator
  FROM uid_generator AS b, uid_generator AS g WHERE b.builtin AND g.generator = 'uid_generators.same'::regclass;
-- The session's formats of times do not matter.
BEGIN;
SET LOCAL datestyle = 'German, DMY';
SET LOCAL timezone = 'Asia/Kathmandu';
SELECT uid_generator_create('formats', epoch => '2026-02-03 04:05:06.789+00');
SELECT generator, extract(epoch FROM epoch) AS epoch FROM uid_generator WHERE builtin OR generator = 'uid_generators.formats'::regclass ORDER BY generator::text;
ROLLBACK;
-- The server may discard what it has cached at any time. (A server with assertions does so all the time if told to.)
DO $$
BEGIN
  SET debug_discard_caches = 1;
EXCEPTION WHEN OTHERS THEN
END
$$;
SELECT uid_generator_create('discarded', 'leaf', lease_ms => 900);
-- A role that owns no table of the extension: its sequence is found in the new row.
CREATE ROLE regress_discarded;
GRANT CREATE ON SCHEMA uid_generators, uid_segments TO regress_discarded;
SET ROLE regress_discarded;
SELECT uid_generator_create('owned', 'twitter'), segment_create('owned');
SELECT uid_generator_drop('uid_generators.owned'), segment_drop('owned');
RESET ROLE;
RESET debug_discard_caches;
REVOKE CREATE ON SCHEMA uid_generators, uid_segments FROM regress_discarded;
DROP ROLE regress_discarded;
SELECT preset, epoch, datacenter_bits, worker_bits, when_full, when_back, lease_ms FROM uid_generator WHERE generator = 'uid_generators.discarded'::regclass;
SELECT uid_generator_create('spread', epoch => '2026-01-01 00:00+00', tick_us => 1, time_bits => 47, datacenter_bits => 0, worker_bits => 4, sequence_bits => 12),
       uid_generator_create('not_spread', epoch => '2026-01-01 00:00+00', tick_us => 1, time_bits => 47, datacenter_bits => 0, worker_bits => 4, sequence_bits => 12, spread => false);
CREATE TABLE drawn (n serial, spread bigint, not_spread bigint);
DO $$
BEGIN
  FOR i IN 1 .. 10000 LOOP
    INSERT INTO drawn (spread, not_spread) VALUES (uid_next('uid_generators.spread'), uid_next('uid_generators.not_spread'));
  END LOOP;
END
$$;
SELECT count(*) FILTER (WHERE spread % 2 = 0) BETWEEN 4500 AND 5500 AS mod_2,
       count(*) FILTER (WHERE spread % 3 = 0) BETWEEN 2900 AND 3800 AS mod_3,
       count(*) FILTER (WHERE spread % 16 = 5) BETWEEN 430 AND 830 AS mod_16,
       count(*) FILTER (WHERE not_spread % 2 = 0) > 9900 AS all_even,
       count(DISTINCT spread >> 16) > 9900 AS one_a_tick FROM drawn;
-- Within a tick they rise either way, one after the other.
SELECT uid_generator_create('seconds', tick_us => 1000000, time_bits => 32, spread => true),
       uid_generator_create('plain_seconds', tick_us => 1000000, time_bits => 32, spread => false);
SELECT g.name, count(*), bool_and(d.sequence = d.before + 1) AS consecutive, min(d.sequence) = 0 OR g.name = 'seconds' AS from_0
  FROM (VALUES ('seconds'), ('plain_seconds')) AS g(name),
       LATERAL (SELECT d.sequence, lag(d.sequence) OVER (PARTITION BY d.generated_at ORDER BY n) AS before
                  FROM generate_series(1, 300) AS n, LATERAL (SELECT uid_next(('uid_generators.' || g.name)::regclass) + 0 * n AS id) AS i,
                       uid_decode(i.id, ('uid_generators.' || g.name)::regclass) AS d) AS d
 GROUP BY g.name ORDER BY g.name;

DROP TABLE vector, drawn, field;
DROP FUNCTION outcome, outcomes;
SET client_min_messages = warning;
DROP EXTENSION uidgen CASCADE;
