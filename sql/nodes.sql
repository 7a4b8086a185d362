-- What keeps the ids of databases apart: the node, which is the datacenter and worker bits together. expected/nodes_1.out is for a
-- server without the preload, which a datacenter id needs.
SELECT current_setting('shared_preload_libraries') !~ '\muidgen\M' AS off \gset
\if :off
  \echo 'skipped: uidgen is not preloaded'
  \quit
\endif
\a \t
\set QUIET on
SET client_min_messages = warning;
DROP EXTENSION IF EXISTS uidgen CASCADE;
CREATE EXTENSION uidgen;
RESET client_min_messages;
SHOW uidgen.datacenter_id;

\getenv source PG_ABS_SRCDIR
\i :source/test/outcome.sql
-- The node of an id, from its parts.
CREATE FUNCTION node_of(id bigint, generator regclass) RETURNS bigint LANGUAGE sql AS $$
  SELECT d.datacenter_id::bigint << (g.worker_bits - g.backup_worker::int) | d.worker_id
    FROM uid_decode(id, generator) d, uid_generator g WHERE g.generator = $2
$$;

-- No draw fails because of a datacenter id, in any preset: at the first draw of a generator, and later. In a layout
-- without a datacenter field the worker id is the datacenter id. What fits is in the ids. The rest are drawn as if
-- none were set.
CREATE TABLE given (datacenter_id integer);
INSERT INTO given VALUES (-1), (0), (3), (31), (32), (5000);
\set ECHO none
CREATE FUNCTION draw(g text, number integer) RETURNS TABLE (protection text, datacenter_id integer, worker_id integer)
LANGUAGE plpgsql AS $$
DECLARE
  id bigint;
  batch bigint[];
BEGIN
  PERFORM set_config('uidgen.datacenter_id', number::text, true);
  id := uid_next(('uid_generators.' || g)::regclass);
  batch := uid_next_array(('uid_generators.' || g)::regclass, 100);
  RETURN QUERY
    SELECT s.protection, CASE WHEN s.protection = 'set' THEN d.datacenter_id END,
           CASE WHEN s.protection = 'set' AND c.datacenter_bits = 0 THEN d.worker_id END
      FROM uid_generator_status s JOIN uid_generator c USING (generator),
           uid_decode(id, ('uid_generators.' || g)::regclass) d
     WHERE s.generator = ('uid_generators.' || g)::regclass AND s.node = node_of(id, s.generator)
       AND (SELECT count(DISTINCT b) = 100 AND bool_and(node_of(b, s.generator) = s.node) FROM unnest(batch) b);
END
$$;
\set ECHO all
SET client_min_messages = error;
SELECT count(uid_generator_create(p.preset || '_' || n.datacenter_id, p.preset)) > 50 AS many FROM uid_preset p, given n;
-- It goes into the datacenter field, or without one into the worker field, if it fits there.
SELECT p.preset, n.datacenter_id AS given, first.protection, first.datacenter_id AS datacenter, first.worker_id AS worker,
       later = first AS same_later
  FROM uid_preset p CROSS JOIN given n
 CROSS JOIN LATERAL (SELECT n.datacenter_id >= 0 AND n.datacenter_id < 1 << CASE p.datacenter_bits
                              WHEN 0 THEN p.worker_bits - p.backup_worker::int ELSE p.datacenter_bits END AS fits) f
  LEFT JOIN LATERAL draw(p.preset || '_' || n.datacenter_id, n.datacenter_id) first ON true
  LEFT JOIN LATERAL draw(p.preset || '_-1', n.datacenter_id) later ON true
 WHERE (first.protection, first.datacenter_id, first.worker_id, later = first) IS DISTINCT FROM
       (CASE WHEN fits THEN 'set' ELSE 'auto' END, CASE WHEN fits THEN sign(p.datacenter_bits) * n.datacenter_id END,
        CASE WHEN fits AND p.datacenter_bits = 0 THEN n.datacenter_id END, true);
RESET client_min_messages;

-- The warning comes once at draws; at the creation of a generator only the notice.
SELECT 'created' AS create FROM uid_generator_create('before');
SET uidgen.datacenter_id = 32;
SELECT 'drawn' AS draw FROM uid_next('uid_generators.before');
SELECT 'drawn' AS draw FROM uid_next('uid_generators.before');
SELECT 'created' AS create FROM uid_generator_create('whole', 'leaf');
SELECT 'created' AS create FROM uid_generator_create('wide', datacenter_bits => 10, worker_bits => 0);
SELECT 'created' AS create FROM uid_generator_create('after', 'js53');
SELECT 'drawn' AS draw FROM uid_next('uid_generators.after');
SELECT 'drawn' AS draw FROM uid_next('uid_generators.after');
-- A worker id that is given needs no datacenter id in such a layout.
SELECT 'created' AS create FROM uid_generator_create('given', 'js53', worker_policy => 'static', worker_number => 9);
SELECT uid_next('uid_generators.given') > 0 AS draws;
SELECT protection, node, datacenter_id, worker_id FROM uid_generator_status WHERE generator = 'uid_generators.given'::regclass;
RESET uidgen.datacenter_id;
SELECT protection, node, datacenter_id, worker_id FROM uid_generator_status WHERE generator = 'uid_generators.given'::regclass;

-- Without a datacenter id, a worker id that is given is the worker field, and the datacenter field comes from the hash.
SELECT count(uid_generator_create('static_' || n, worker_policy => 'static', worker_number => n)) FROM (VALUES (0), (20), (31)) v(n);
SELECT count(uid_next(generator)) FROM uid_generator WHERE generator::text LIKE 'uid_generators.static_%';
SELECT protection, worker_id, node = node_of(uid_next(generator), generator) AS node,
       count(*) FILTER (WHERE n.datacenter_id = s.datacenter_id) OVER () AS same_datacenter
  FROM uid_generator_status s
  JOIN (SELECT datacenter_id FROM uid_generator_status WHERE generator = 'uid_generators.static_0'::regclass) n ON true
 WHERE generator::text LIKE 'uid_generators.static_%' ORDER BY worker_id;

-- A change in a session takes effect at its next id, and in a transaction that is rolled back until then.
SELECT uid_next('uid_generators.before') AS id \gset
SELECT node_of(:id, 'uid_generators.before') AS automatic \gset
BEGIN;
SET LOCAL uidgen.datacenter_id = 7;
SELECT datacenter_id FROM uid_decode(uid_next('uid_generators.before'), 'uid_generators.before');
SET LOCAL uidgen.datacenter_id = 8;
SELECT datacenter_id FROM uid_decode(uid_next('uid_generators.before'), 'uid_generators.before');
ROLLBACK;
SELECT node_of(uid_next('uid_generators.before'), 'uid_generators.before') = :automatic AS back;

-- Generators of one layout have different nodes while there are enough, also if all draw the same number, and none has
-- the top bit of the worker field, which is the backup worker's. With a datacenter id they differ in the bits that are left.
\set ECHO none
CREATE FUNCTION node_at(g text, number bigint, datacenter_id integer, OUT node bigint, OUT backup boolean, OUT drawn boolean) LANGUAGE plpgsql AS $$
DECLARE
  id bigint;
BEGIN
  PERFORM setval('worker_node_id_seq', number, false), set_config('uidgen.datacenter_id', datacenter_id::text, true);
  id := uid_next(('uid_generators.' || g)::regclass);
  node := node_of(id, ('uid_generators.' || g)::regclass);
  backup := (uid_decode(id, ('uid_generators.' || g)::regclass)).backup;
  SELECT is_called INTO drawn FROM worker_node_id_seq;
END
$$;
\set ECHO all
SELECT count(uid_generator_create(kind || n, 'js53', sequence_bits => bits, datacenter_bits => 2, worker_bits => 3))
  FROM (VALUES ('crowd_', 15, 17), ('few_', 14, 4)) v(kind, bits, most), generate_series(1, most) n;
SELECT kind, count(DISTINCT node) AS nodes, bool_or(backup) AS backup
  FROM (VALUES ('crowd_', -1, 16), ('few_', 2, 4)) v(kind, datacenter_id, most), generate_series(1, most) n,
       node_at(kind || n, 4194304 + 1024 * n, datacenter_id) GROUP BY kind ORDER BY kind;
-- One that draws anew takes the node that is free, wherever the draw begins. One more than there are nodes has another one's.
SELECT node FROM uid_generator_status WHERE generator = 'uid_generators.crowd_3'::regclass \gset
SELECT uid_generator_alter('uid_generators.crowd_3', lease_ms => 1000);
SELECT drawn, node = :node AS free FROM node_at('crowd_3', 8388613, -1);
SELECT node BETWEEN 0 AND 15 AS shared FROM node_at('crowd_17', 16777216, -1);
-- Generators of another layout are not in the way.
SELECT uid_generator_create('apart', 'js53', sequence_bits => 13, datacenter_bits => 2, worker_bits => 3);
SELECT node FROM node_at('apart', 33554432, -1) \gset
SELECT uid_generator_alter('uid_generators.apart', lease_ms => 1000);
SELECT drawn, node = :node AS same FROM node_at('apart', 33554432 + 16, -1);

-- A first draw reads worker_node only if it asks for the former node: rows with the generator's oid, then those with its name.
\set ECHO none
CREATE FUNCTION reads_of_first_draw(g regclass, OUT scans bigint, OUT lookups bigint) LANGUAGE plpgsql AS $f$
DECLARE
  reads CONSTANT text := $$SELECT coalesce(seq_scan, 0) - $1, coalesce(idx_scan, 0) - $2 FROM pg_stat_xact_user_tables WHERE relname = 'worker_node'$$;
BEGIN
  EXECUTE reads INTO scans, lookups USING 0::bigint, 0::bigint;
  PERFORM uid_next(g);
  EXECUTE reads INTO scans, lookups USING scans, lookups;
END
$f$;
\set ECHO all
SELECT p AS policy, r.* FROM unnest('{sticky,static,disposable}'::text[]) p,
       uid_generator_create('reads_' || p, worker_policy => p, worker_number => CASE p WHEN 'static' THEN 3 END) g, reads_of_first_draw(g) r;

-- A sticky generator that draws anew has its former node, whatever its name is and whether names are quoted.
\set ECHO none
CREATE PROCEDURE draw_anew(g text, INOUT node bigint DEFAULT NULL) LANGUAGE plpgsql AS $$
DECLARE
  it CONSTANT regclass := format('uid_generators.%I', g);
  drawn CONSTANT bigint := nextval('worker_node_id_seq');
BEGIN
  PERFORM uid_generator_alter(it, lease_ms => lease_ms - 1) FROM uid_generator WHERE generator = it;
  COMMIT;
  node := node_of(uid_next(it), it);
  COMMIT;
  FOR i IN 1 .. 12000 LOOP -- until the row is there, and its writer has ended, which has the settings of its start
    PERFORM pg_stat_clear_snapshot(), pg_sleep(0.01);
    EXIT WHEN EXISTS (SELECT FROM worker_node WHERE id > drawn AND sequence = it)
      AND NOT EXISTS (SELECT FROM pg_stat_activity WHERE backend_type = 'uidgen node writer' AND datname = current_database());
  END LOOP;
END
$$;
CREATE PROCEDURE quote_names(value text) LANGUAGE plpgsql AS $$
BEGIN
  EXECUTE format('ALTER DATABASE %I SET quote_all_identifiers = %s', current_database(), value);
  PERFORM set_config('quote_all_identifiers', value, false);
END
$$;
\set ECHO all
SELECT uid_generator_create(g, datacenter_bits => 0, worker_bits => 16, sequence_bits => 6, lease_ms => 50, worker_policy => 'sticky')
  FROM unnest('{kept,second}'::text[]) g;
CALL draw_anew('kept') \gset kept_
CALL draw_anew('second') \gset second_
CALL quote_names('on');
CALL draw_anew('kept') \gset
SELECT :node = :kept_node AS kept, array_agg(DISTINCT generator) AS as_it_is FROM worker_node WHERE sequence = 'uid_generators.kept'::regclass;
ALTER SEQUENCE uid_generators.kept RENAME TO renamed;
CALL draw_anew('renamed') \gset
CALL quote_names('off');
SELECT :node = :kept_node AS kept;
-- What a restore brings has other oids, which may be those of other relations here: the name tells.
UPDATE worker_node SET system_identifier = system_identifier + 1, sequence = 'pg_class'::regclass WHERE sequence = 'uid_generators.renamed'::regclass;
CALL draw_anew('renamed') \gset
SELECT :node = :kept_node AS kept;
-- Of two generators that change their names, each keeps its past.
ALTER SEQUENCE uid_generators.renamed RENAME TO x;
ALTER SEQUENCE uid_generators.second RENAME TO renamed;
ALTER SEQUENCE uid_generators.x RENAME TO second;
CALL draw_anew('second') \gset
SELECT :node = :kept_node AS kept;
CALL draw_anew('renamed') \gset
SELECT :node = :second_node AS kept;

-- From an id to its row of worker_node. The numbers come round: a row counts until the generator's next one.
SELECT uid_generator_create('origin', epoch => '2026-01-01 00:00+00'), uid_generator_create('backups', 'js53', epoch => '2026-01-01 00:00+00'),
       uid_generator_create('cached', 'baidu_cached', epoch => '2026-01-01 00:00+00', max_staleness_ms => 60000);
SELECT uid_internal.uid_layout('uid_generators.origin'), uid_internal.uid_layout('uid_generators.backups');
SET timezone = 'UTC';
\set ECHO none
INSERT INTO worker_node (id, system_identifier, database, generator, sequence, layout, datacenter_id, worker_id, created, modified, host_name, port, type, launch_date, timeline)
SELECT i, s, db, 'uid_generators.' || g, abs(hashtext(g))::oid, CASE WHEN g <> 'other layout' THEN uid_internal.uid_layout(('uid_generators.' || split_part(g, ' ', 1))::regclass) ELSE 'other' END,
       d, w, c::timestamptz, c::timestamptz + interval '1 h', h, '5432', 2, '2026-01-02', 1 FROM (VALUES
  (1000001, 1, 5, 'origin', 3, 7, '2026-01-02 10:00+00', 'a'),
  (1000002, 1, 5, 'origin', 3, 8, '2026-01-02 12:00+00', 'a'),
  (1000003, 1, 5, 'origin', 3, 7, '2026-01-02 14:00+00', 'b'),
  (1000004, 2, 5, 'origin', 4, 7, '2026-01-02 11:00+00', 'c'),
  (1000005, 2, 6, 'origin renamed', 3, 7, '2026-01-02 11:30+00', 'd'),
  (1000006, 2, 6, 'origin renamed', 3, 9, '2026-01-02 11:30+00', 'd'),
  (1000007, 3, 5, 'other layout', 3, 10, '2026-01-02 10:00+00', 'e'),
  (1000008, 1, 5, 'backups', 0, 5, '2026-01-02 10:00+00', 'a'),
  (1000009, 1, 5, 'backups', 0, 6, '2026-01-02 10:10+00', 'a'),
  (1000010, 1, 5, 'backups', 0, 5, '2026-01-02 10:20+00', 'b'),
  (1000011, 1, 5, 'cached', 0, 77, '2026-01-02 10:00+00', 'f')) v(i, s, db, g, d, w, c, h);
\set ECHO all
INSERT INTO worker_node (id, host_name, port, type, launch_date, modified, created) VALUES (1000012, 'app', '1', 1, '2026-01-01', '2026-01-01', '2026-01-01');
SELECT v.*, o.node_id, o.host_name, o.port, o.system_identifier AS server, o.timeline, o.database, o.generator_name, o.created, o.modified
  FROM (VALUES ('origin', '09:00', 3, 7), ('origin', '09:59:58', 3, 7), ('origin', '09:59:59.5', 3, 7), ('origin', '10:00', 3, 7),
               ('origin', '11:59:59.999', 3, 7), ('origin', '12:00:01.5', 3, 7), ('origin', '13:00', 3, 7), ('origin', '13:00', 3, 8),
               ('origin', '13:59:58', 3, 7), ('origin', '14:00', 3, 7), ('origin', '20:00', 3, 7), ('origin', '20:00', 4, 7),
               ('origin', '20:00', 3, 9), ('origin', '20:00', 3, 10), ('origin', '20:00', 5, 7),
               ('backups', '10:15', 0, 6), ('backups', '10:19:55', 0, 5), ('backups', '10:19:55', 0, 16 + 5), ('backups', '09:00', 0, 16 + 5),
               ('backups', '09:00', 0, 5), ('cached', '09:58:50', 0, 77), ('cached', '09:59:05', 0, 77)) v(generator, "time", d, w)
 CROSS JOIN LATERAL uid_origin(uid_encode(timestamptz '2026-01-02 00:00+00' + time::interval, d, w, 9, ('uid_generators.' || v.generator)::regclass),
                               ('uid_generators.' || v.generator)::regclass) o;
-- The database of this server by its name, and the columns that draw from the generator.
UPDATE worker_node SET system_identifier = (SELECT system_identifier FROM pg_control_system()), database = (SELECT oid FROM pg_database WHERE datname = current_database())
 WHERE id = 1000003;
CREATE TABLE "Orders" (id bigint DEFAULT uid_next('uid_generators.origin'), "Second id" bigint DEFAULT uid_next('uid_generators.origin'), third bigint DEFAULT uid_next());
SELECT uid_encode('2026-01-02 20:00+00', 3, 7, 0, 'uid_generators.origin') AS id \gset
SELECT node_id, database = current_database() AS here, columns FROM uid_origin(:id, 'uid_generators.origin');
-- Columns that have the default of their domain.
CREATE DOMAIN an_id AS bigint DEFAULT uid_next('uid_generators.origin');
CREATE DOMAIN same_id AS an_id;
CREATE TABLE of_domain (id an_id, again same_id, own an_id DEFAULT 1, ids an_id[], other bigint);
SELECT columns FROM uid_origin(:id, 'uid_generators.origin');
SELECT * FROM uid_generator_columns WHERE table_name = 'of_domain'::regclass ORDER BY column_name;
DROP TABLE of_domain;
DROP DOMAIN same_id, an_id;
-- The default generator has the same layout.
SELECT node_id, columns FROM uid_origin(:id);
-- A new name keeps the rows of this database, which have the generator's oid. Those of its former name are another one's
-- then. Neither depends on a setting.
UPDATE worker_node SET sequence = 'uid_generators.origin'::regclass WHERE id = 1000003;
ALTER SEQUENCE uid_generators.origin RENAME TO "first origin";
SELECT uid_generator_create('origin', epoch => '2026-01-01 00:00+00');
INSERT INTO worker_node SELECT (jsonb_populate_record(w, jsonb_build_object('id', 1000013, 'created', w.created + interval '1 h', 'sequence', 'uid_generators.origin'::regclass::oid))).*
  FROM worker_node w WHERE w.id = 1000003;
PREPARE of_both AS SELECT v.generator, o.node_id, o.columns FROM (VALUES ('first origin'), ('origin')) v(generator),
       LATERAL uid_origin(:id, format('uid_generators.%I', v.generator)::regclass) o;
EXECUTE of_both;
SET quote_all_identifiers = on;
EXECUTE of_both;
-- Rows that a restore has brought have the name only.
UPDATE worker_node SET generator = 'uid_generators."first origin"' WHERE id = 1000003;
UPDATE worker_node SET system_identifier = 5 WHERE id IN (1000003, 1000013);
EXECUTE of_both;
RESET quote_all_identifiers;
SELECT uid_origin(NULL) IS NULL AS null, uid_origin(:id, NULL) = uid_origin(:id) AS of_default;
SELECT * FROM outcomes('SELECT uid_origin(%s)', '-1', '9223372036854775807, ''uid_generators.backups''', '1, ''worker_node''', '1, 0');
-- It needs what reading worker_node needs, and no more.
CREATE ROLE regress_origin;
SET ROLE regress_origin;
SELECT outcome('SELECT uid_origin(1)');
RESET ROLE;
GRANT SELECT ON worker_node TO regress_origin;
SET ROLE regress_origin;
SELECT node_id FROM uid_origin(:id, 'uid_generators.origin');
RESET ROLE;
REVOKE SELECT ON worker_node FROM regress_origin;
DROP ROLE regress_origin;
RESET timezone;
DROP TABLE "Orders";

-- Test frameworks empty all tables. Numbers go on, so no node comes again.
SELECT last_value AS last FROM worker_node_id_seq \gset
TRUNCATE worker_node RESTART IDENTITY CASCADE;
SELECT last_value = :last AS goes_on FROM worker_node_id_seq;
DROP ROUTINE draw, node_of, node_at, reads_of_first_draw, draw_anew, quote_names, outcome, outcomes;
DROP TABLE given;
SET client_min_messages = warning;
DROP EXTENSION uidgen CASCADE;
-- CREATE EXTENSION says above that no datacenter id is set. It has nothing to say if one is.
SET uidgen.datacenter_id = 1;
CREATE EXTENSION uidgen;
DROP EXTENSION uidgen;
