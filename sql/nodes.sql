-- What keeps the ids of databases apart: the node, which is the datacenter and worker bits together.
\set QUIET on
SET client_min_messages = warning;
DROP EXTENSION IF EXISTS uidgen CASCADE;
CREATE EXTENSION uidgen;
RESET client_min_messages;
\pset tuples_only off
SHOW uidgen.datacenter_id;

-- The node of an id, from its parts.
CREATE FUNCTION node_of(id bigint, generator regclass) RETURNS bigint LANGUAGE sql AS $$
  SELECT d.datacenter_id::bigint << (g.worker_bits - g.backup_worker::int) | d.worker_id
    FROM uid_decode(id, generator) d, uid_generator_config g WHERE g.generator = $2
$$;

-- No draw fails because of a datacenter id, in any preset: at the first draw of a generator, and later. In a layout
-- without a datacenter field the worker id is the datacenter id. What fits is in the ids. The rest are drawn as if
-- none were set.
CREATE TABLE given (datacenter_id integer);
INSERT INTO given VALUES (-1), (0), (3), (31), (32), (5000);
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
      FROM uid_generator_status s JOIN uid_generator_config c USING (generator),
           uid_decode(id, ('uid_generators.' || g)::regclass) d
     WHERE s.generator = ('uid_generators.' || g)::regclass AND s.node = node_of(id, s.generator)
       AND (SELECT count(DISTINCT b) = 100 AND bool_and(node_of(b, s.generator) = s.node) FROM unnest(batch) b);
END
$$;
SET client_min_messages = error;
SELECT count(uid_generator_create(p.preset || '_' || n.datacenter_id, p.preset)) FROM uid_preset p, given n;
SELECT p.preset, n.datacenter_id AS given, first.protection, first.datacenter_id AS datacenter, first.worker_id AS worker,
       later = first AS same_later
  FROM uid_preset p CROSS JOIN given n
 CROSS JOIN LATERAL draw(p.preset || '_' || n.datacenter_id, n.datacenter_id) first
 CROSS JOIN LATERAL draw(p.preset || '_-1', n.datacenter_id) later
 ORDER BY 1, 2;
RESET client_min_messages;

-- The warning: at the creation, and once at draws.
SELECT 'created' AS create FROM uid_generator_create('before');
SET uidgen.datacenter_id = 32;
SELECT 'drawn' AS draw FROM uid_next('uid_generators.before');
SELECT 'drawn' AS draw FROM uid_next('uid_generators.before');
SELECT 'created' AS create FROM uid_generator_create('whole', 'leaf');
SELECT 'created' AS create FROM uid_generator_create('after', 'js53');
SELECT 'drawn' AS draw FROM uid_next('uid_generators.after');
SELECT 'drawn' AS draw FROM uid_next('uid_generators.after');
-- A worker id that is given needs no datacenter id in such a layout.
SELECT 'created' AS create FROM uid_generator_create('given', 'js53', worker_policy => 'static', worker_number => 9);
SELECT protection, node, datacenter_id, worker_id FROM uid_generator_status, uid_next('uid_generators.given')
 WHERE generator = 'uid_generators.given'::regclass;
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

-- Generators of one layout have different nodes while there are enough.
SELECT count(uid_generator_create('crowd_' || n, 'js53', sequence_bits => 15, datacenter_bits => 2, worker_bits => 3))
  FROM generate_series(1, 16) n;
SELECT count(DISTINCT node_of(id, g)) AS nodes
  FROM (SELECT g, uid_next(g) AS id FROM (SELECT ('uid_generators.crowd_' || n)::regclass AS g FROM generate_series(1, 16) n) x) y;

-- The rows of worker_node of several databases: which pairs shared a node. Two generators of one database are none, nor
-- are an earlier and a later one, other layouts, and rows of applications.
CREATE TABLE nodes (LIKE worker_node);
INSERT INTO nodes (id, system_identifier, database, generator, layout, datacenter_id, worker_id, created, modified, host_name, port, type, launch_date, timeline, tags)
SELECT row_number() OVER (), s, db, g, l, d, w, c::timestamptz, m::timestamptz, h, '5432', 2, '2026-01-01', 1, '{}' FROM (VALUES
  (1, 5, 'g.orders', '41/5/5/12', 3, 7, '2026-01-01 10:00+00', '2026-01-01 12:00+00', 'a'),
  (1, 5, 'g.second', '41/5/5/12', 3, 7, '2026-01-01 10:00+00', '2026-01-01 12:00+00', 'a'),
  (2, 5, 'g.orders', '41/5/5/12', 3, 7, '2026-01-01 12:00+00', '2026-01-01 13:00+00', 'b'),
  (2, 5, 'g.orders', '41/5/5/12', 3, 8, '2026-01-01 10:00+00', '2026-01-01 12:00+00', 'b'),
  (2, 5, 'g.orders', '41/5/5/12', 4, 7, '2026-01-01 10:00+00', '2026-01-01 12:00+00', 'b'),
  (2, 5, 'g.bits',   '40/5/5/12', 3, 7, '2026-01-01 10:00+00', '2026-01-01 12:00+00', 'b'),
  (3, 5, 'g.orders', '41/5/5/12', 3, 7, '2026-01-01 13:01+00', '2026-01-01 14:00+00', 'c'),
  (1, 6, 'g.orders', '41/5/5/12', 3, 7, '2026-01-01 13:30+00', '2026-01-01 14:00+00', 'a'),
  (1, 6, 'g.orders', '41/5/5/12', 3, 7, '2026-01-01 13:59+00', '2026-01-01 15:00+00', 'copy'),
  (4, NULL, NULL, NULL, NULL, NULL, '2026-01-01 10:00+00', '2026-01-01 15:00+00', 'd')) v(s, db, g, l, d, w, c, m, h);
SET timezone = 'UTC';
SELECT layout, datacenter_id AS dc, worker_id AS w, a_system_identifier AS a, a_database AS a_db, a_host_name AS a_host, a_port, a_generator,
       b_system_identifier AS b, b_database AS b_db, b_host_name AS b_host, b_port, b_generator, shared_from::time, shared_until::time
  FROM uid_check_nodes('nodes') ORDER BY shared_from, a_generator, b_host_name;
RESET timezone;
SELECT count(*) FROM uid_check_nodes();
DROP FUNCTION draw, node_of;
DROP TABLE given, nodes;
SET client_min_messages = warning;
DROP EXTENSION uidgen CASCADE;
