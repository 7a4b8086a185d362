-- The views t_sequence and leaf_alloc: services that take blocks from a table of theirs send the same statements here.
CREATE EXTENSION uidgen;
SET client_min_messages = warning;
SET uidgen.segment_step = 10;

-- INSERT makes the segment. The inserted block belongs to the transaction that inserts it.
INSERT INTO t_sequence (pk_seq_name, current_val, increment_val) VALUES ('order', 0, 100) RETURNING *;
SELECT * FROM t_sequence;
SELECT name, step, seqstart, seqmin, seqincrement, seqcycle FROM uid_segment JOIN pg_sequence ON seqrelid = sequence;
BEGIN;
INSERT INTO t_sequence VALUES ('user', 1000, 50);
SELECT * FROM t_sequence WHERE pk_seq_name = 'user';
UPDATE t_sequence SET current_val = current_val + increment_val WHERE pk_seq_name = 'user' RETURNING current_val;
COMMIT;
SELECT * FROM t_sequence WHERE pk_seq_name = 'user';

-- The published statements. What a transaction is shown is its own, whatever others draw meanwhile.
BEGIN;
SELECT current_val, increment_val FROM t_sequence WHERE pk_seq_name = 'order' FOR UPDATE;
SELECT segment_next('order'), nextval('uid_segments.order'), (segment_reserve('order', 5)).first;
SELECT current_val FROM t_sequence WHERE pk_seq_name = 'order';
UPDATE t_sequence SET current_val = current_val + increment_val WHERE pk_seq_name = 'order';
SELECT segment_next('order'), nextval('uid_segments.order');
SELECT current_val FROM t_sequence WHERE pk_seq_name = 'order';
COMMIT;
SELECT * FROM t_sequence WHERE pk_seq_name = 'order';
-- UPDATE alone, and with absolute values.
UPDATE t_sequence SET current_val = current_val + increment_val WHERE pk_seq_name = 'order' RETURNING *;
UPDATE t_sequence SET current_val = current_val + 7 WHERE pk_seq_name = 'order' RETURNING *;
BEGIN;
SELECT current_val AS old FROM t_sequence WHERE pk_seq_name = 'order' FOR UPDATE \gset
UPDATE t_sequence SET current_val = :old + 100 WHERE pk_seq_name = 'order' AND current_val = :old RETURNING current_val - :old AS taken;
COMMIT;
SELECT current_val AS seen FROM t_sequence WHERE pk_seq_name = 'order' \gset
UPDATE t_sequence SET current_val = :seen + 100 WHERE pk_seq_name = 'order' AND current_val = :seen RETURNING current_val - :seen AS taken;
UPDATE t_sequence SET current_val = :seen + 100 WHERE pk_seq_name = 'order' AND current_val = :seen RETURNING current_val - :seen AS taken;
-- Several rows, several times in a transaction, by a prepared statement; values between two UPDATEs are the updater's.
PREPARE advance(text) AS UPDATE t_sequence SET current_val = current_val + increment_val WHERE pk_seq_name = $1 RETURNING current_val;
BEGIN;
UPDATE t_sequence SET current_val = current_val + increment_val;
SELECT current_val AS before FROM t_sequence WHERE pk_seq_name = 'user' \gset
EXECUTE advance('user') \gset
SELECT :current_val - :before AS taken;
EXECUTE advance('user') \gset
SELECT :current_val - :before AS taken;
COMMIT;
SELECT current_val - :current_val AS beyond FROM t_sequence WHERE pk_seq_name = 'user';
-- The second UPDATE would have to take what another session took meanwhile.
BEGIN;
EXECUTE advance('user') \gset
SELECT segment_next('user') > :current_val AS beyond, nextval('uid_segments.user') > :current_val AS beyond;
EXECUTE advance('user');
\echo :LAST_ERROR_SQLSTATE
ROLLBACK;

-- Savepoints and rollbacks leave gaps. What was shown before a savepoint is shown after its rollback.
SELECT current_val AS v FROM t_sequence WHERE pk_seq_name = 'user' \gset
BEGIN;
EXECUTE advance('user');
ROLLBACK;
SELECT current_val - :v AS gap, current_val AS v FROM t_sequence WHERE pk_seq_name = 'user' \gset
SELECT :gap AS gap;
BEGIN;
SAVEPOINT s;
SELECT current_val - :v AS shown FROM t_sequence WHERE pk_seq_name = 'user' FOR UPDATE;
EXECUTE advance('user') \gset
SELECT :current_val - :v AS shown;
ROLLBACK TO s;
SELECT current_val - :v AS anew FROM t_sequence WHERE pk_seq_name = 'user' FOR UPDATE;
EXECUTE advance('user') \gset
SELECT :current_val - :v AS shown;
SAVEPOINT s;
SELECT current_val - :v AS kept FROM t_sequence WHERE pk_seq_name = 'user';
ROLLBACK TO s;
SELECT segment_next('user') > :v AS drawn, nextval('uid_segments.user') > :v AS drawn;
SELECT current_val - :v AS kept FROM t_sequence WHERE pk_seq_name = 'user';
SAVEPOINT t;
SAVEPOINT u;
SELECT current_val AS w FROM t_sequence WHERE pk_seq_name = 'order' FOR UPDATE \gset
RELEASE u;
SELECT current_val - :w AS kept FROM t_sequence WHERE pk_seq_name = 'order';
RELEASE t;
SELECT current_val - :w AS kept FROM t_sequence WHERE pk_seq_name = 'order';
SAVEPOINT t;
SAVEPOINT u;
SELECT nextval('uid_segments.order') > :w AS drawn;
ROLLBACK TO t;
SELECT current_val - :w AS kept FROM t_sequence WHERE pk_seq_name = 'order';
COMMIT;
SELECT current_val > :w AS beyond FROM t_sequence WHERE pk_seq_name = 'order';
-- Only looking reserves nothing. If the transaction then updates, the block must begin where it looked.
SELECT current_val AS v FROM t_sequence WHERE pk_seq_name = 'order' \gset
SELECT current_val - :v AS unchanged FROM t_sequence WHERE pk_seq_name = 'order';
BEGIN;
SELECT current_val - :v AS unchanged FROM t_sequence WHERE pk_seq_name = 'order';
EXECUTE advance('order') \gset
SELECT :current_val - :v AS taken;
COMMIT;
BEGIN;
SELECT current_val > :v AS looked FROM t_sequence WHERE pk_seq_name = 'order';
SELECT nextval('uid_segments.order') > :v AS drawn;
EXECUTE advance('order');
\echo :LAST_ERROR_SQLSTATE
ROLLBACK;
BEGIN;
SELECT current_val > :v AS looked FROM t_sequence WHERE pk_seq_name = 'order';
SELECT nextval('uid_segments.order') > :v AS drawn;
SELECT current_val AS w FROM t_sequence WHERE pk_seq_name = 'order' FOR UPDATE \gset
SELECT nextval('uid_segments.order') - :w AS beyond;
EXECUTE advance('order') \gset
SELECT :current_val - :w AS taken;
COMMIT;
-- With one snapshot for the transaction, a lock shows what was shown before it, and then the block must begin there.
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT current_val AS w FROM t_sequence WHERE pk_seq_name = 'order' \gset
SELECT nextval('uid_segments.order') - :w AS drawn;
SELECT current_val - :w AS shown FROM t_sequence WHERE pk_seq_name = 'order' FOR UPDATE;
EXECUTE advance('order');
\echo :LAST_ERROR_SQLSTATE
ROLLBACK;
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT current_val AS w FROM t_sequence WHERE pk_seq_name = 'order' \gset
SELECT current_val - :w AS shown FROM t_sequence WHERE pk_seq_name = 'order' FOR UPDATE;
SELECT nextval('uid_segments.order') - :w AS drawn;
EXECUTE advance('order') \gset
SELECT :current_val - :w AS taken;
COMMIT;
-- The length of a block is the same in the whole transaction, like the row that an UPDATE of a table locks.
BEGIN;
SELECT increment_val FROM t_sequence WHERE pk_seq_name = 'order';
SELECT segment_alter('order', step => 300);
SELECT increment_val FROM t_sequence WHERE pk_seq_name = 'order';
EXECUTE advance('order') \gset first_
EXECUTE advance('order') \gset second_
SELECT :second_current_val - :first_current_val AS apart;
COMMIT;
SELECT increment_val FROM t_sequence WHERE pk_seq_name = 'order';
SELECT segment_alter('order', step => 100);
SELECT segment_create('no step');
BEGIN;
SAVEPOINT s;
UPDATE t_sequence SET current_val = current_val + increment_val WHERE pk_seq_name = 'no step' RETURNING increment_val;
ROLLBACK TO s;
SET LOCAL uidgen.segment_step = 30;
SELECT increment_val FROM t_sequence WHERE pk_seq_name = 'no step';
COMMIT;
SELECT segment_drop('no step');

-- Prepared, also with a generic plan: each transaction has a block of its own.
SET plan_cache_mode = force_generic_plan;
PREPARE read(text) AS SELECT current_val FROM t_sequence WHERE pk_seq_name = $1 FOR UPDATE;
EXECUTE read('order') \gset first_
EXECUTE read('order') \gset second_
SELECT :second_current_val - :first_current_val AS apart;
EXECUTE advance('order') \gset first_
EXECUTE advance('order') \gset second_
SELECT :second_current_val - :first_current_val AS apart;
RESET plan_cache_mode;
-- Other isolation levels.
BEGIN ISOLATION LEVEL SERIALIZABLE;
SELECT current_val AS w FROM t_sequence WHERE pk_seq_name = 'order' FOR UPDATE \gset
SELECT nextval('uid_segments.order') - :w AS beyond;
EXECUTE advance('order') \gset
SELECT :current_val - :w AS taken;
COMMIT;
SELECT current_val - :current_val AS beyond FROM t_sequence WHERE pk_seq_name = 'order';
BEGIN READ ONLY;
EXECUTE advance('order');
\echo :LAST_ERROR_SQLSTATE
ROLLBACK;

-- SET current_val = 0 starts over, and a rollback undoes it. The first block is the updater's.
SELECT current_val AS v FROM t_sequence WHERE pk_seq_name = 'order' \gset
BEGIN;
UPDATE t_sequence SET current_val = 0 WHERE pk_seq_name = 'order' RETURNING *;
SELECT * FROM t_sequence WHERE pk_seq_name = 'order';
SELECT segment_next('order');
EXECUTE advance('order');
ROLLBACK;
SELECT current_val - :v AS unchanged FROM t_sequence WHERE pk_seq_name = 'order';
BEGIN;
SELECT current_val > :v AS beyond FROM t_sequence WHERE pk_seq_name = 'order' FOR UPDATE;
UPDATE t_sequence SET current_val = 0 WHERE pk_seq_name = 'order';
SELECT current_val FROM t_sequence WHERE pk_seq_name = 'order';
EXECUTE advance('order');
COMMIT;
SELECT * FROM t_sequence WHERE pk_seq_name = 'order';
SELECT segment_next('order');
-- A segment of segment_create() has no 0, so it starts over at 1.
SELECT segment_create('plain', 5, 20);
UPDATE t_sequence SET current_val = 0 WHERE pk_seq_name = 'plain' RETURNING *;
SELECT * FROM t_sequence WHERE pk_seq_name = 'plain';
-- At 0 there is nothing to start over, whatever was drawn beyond this transaction's values.
SELECT segment_create('zero', 0, 10);
BEGIN;
SELECT current_val FROM t_sequence WHERE pk_seq_name = 'zero' FOR UPDATE;
SELECT nextval('uid_segments.zero');
UPDATE t_sequence SET current_val = current_val WHERE pk_seq_name = 'zero' RETURNING *;
UPDATE t_sequence SET current_val = 0 WHERE pk_seq_name = 'zero' RETURNING *;
COMMIT;
SELECT nextval('uid_segments.zero');
SELECT segment_drop('zero');

-- The end of a sequence.
SELECT segment_create('short', 1, 10, max_value => 35);
UPDATE t_sequence SET current_val = current_val + increment_val WHERE pk_seq_name = 'short' RETURNING *;
EXECUTE advance('short');
\echo :LAST_ERROR_SQLSTATE
SELECT * FROM t_sequence WHERE pk_seq_name = 'short' FOR UPDATE;
UPDATE t_sequence SET current_val = current_val + 5 WHERE pk_seq_name = 'short' RETURNING *;
SELECT * FROM t_sequence WHERE pk_seq_name = 'short';
EXECUTE advance('short');
UPDATE t_sequence SET current_val = 0 WHERE pk_seq_name = 'short' RETURNING *;
SELECT * FROM t_sequence WHERE pk_seq_name = 'short';
UPDATE t_sequence SET current_val = 9223372036854775807 WHERE pk_seq_name = 'short';

-- What such a row cannot mean.
SELECT current_val AS v FROM t_sequence WHERE pk_seq_name = 'order' \gset
UPDATE t_sequence SET current_val = 7 WHERE pk_seq_name = 'order';
\echo :LAST_ERROR_SQLSTATE
\set VERBOSITY terse
UPDATE t_sequence SET current_val = current_val WHERE pk_seq_name = 'order';
UPDATE t_sequence SET current_val = current_val - increment_val WHERE pk_seq_name = 'order';
UPDATE t_sequence SET current_val = -9223372036854775808 WHERE pk_seq_name = 'order';
\set VERBOSITY default
UPDATE t_sequence SET current_val = NULL WHERE pk_seq_name = 'order';
\echo :LAST_ERROR_SQLSTATE
UPDATE t_sequence SET increment_val = 5 WHERE pk_seq_name = 'order';
\echo :LAST_ERROR_SQLSTATE
UPDATE t_sequence SET pk_seq_name = 'orders' WHERE pk_seq_name = 'order';
DELETE FROM t_sequence WHERE pk_seq_name = 'order';
\echo :LAST_ERROR_SQLSTATE
TRUNCATE t_sequence;
INSERT INTO t_sequence VALUES ('order', 0, 100);
\echo :LAST_ERROR_SQLSTATE
INSERT INTO t_sequence (pk_seq_name, current_val) VALUES ('new', 0);
\echo :LAST_ERROR_SQLSTATE
INSERT INTO t_sequence VALUES ('new', 0, 0);
INSERT INTO t_sequence VALUES ('', 0, 10);
INSERT INTO t_sequence VALUES ('new', 9223372036854775807, 10);
UPDATE t_sequence SET current_val = current_val + 1 WHERE pk_seq_name = 'nobody';
SELECT segment_create('by three', 1, 10, increment => 3);
EXECUTE advance('by three');
\echo :LAST_ERROR_SQLSTATE
SELECT * FROM t_sequence WHERE pk_seq_name = 'by three' FOR UPDATE;
SELECT count(*) FROM uid_segment WHERE name IN ('new', 'orders');
SELECT segment_drop('by three');

-- Leaf's statements, word for word.
SELECT uid_leaf_alloc_create();
SELECT uid_leaf_alloc_create();
\echo :LAST_ERROR_SQLSTATE
INSERT INTO leaf_alloc(biz_tag, max_id, step, description) VALUES('leaf-segment-test', 1, 2000, 'Test leaf Segment Mode Get Id');
SELECT biz_tag FROM leaf_alloc ORDER BY biz_tag COLLATE "C";
SELECT biz_tag, max_id, step, description, update_time IS NULL AS not_yet FROM leaf_alloc WHERE biz_tag = 'leaf-segment-test';
BEGIN;
UPDATE leaf_alloc SET max_id = max_id + step WHERE biz_tag = 'leaf-segment-test';
SELECT segment_next('leaf-segment-test'), nextval('uid_segments."leaf-segment-test"');
SELECT biz_tag, max_id, step FROM leaf_alloc WHERE biz_tag = 'leaf-segment-test';
COMMIT;
BEGIN;
UPDATE leaf_alloc SET max_id = max_id + 50000 WHERE biz_tag = 'leaf-segment-test';
SELECT segment_next('leaf-segment-test');
SELECT biz_tag, max_id, step FROM leaf_alloc WHERE biz_tag = 'leaf-segment-test';
COMMIT;
SELECT biz_tag, max_id, step, now() - update_time < interval '1 hour' AS recent FROM leaf_alloc WHERE biz_tag = 'leaf-segment-test';
-- The same with the parameters of its mapper (IDAllocMapper).
PREPARE "getAllLeafAllocs" AS SELECT biz_tag, max_id, step, update_time FROM leaf_alloc;
PREPARE "getLeafAlloc"(varchar) AS SELECT biz_tag, max_id, step FROM leaf_alloc WHERE biz_tag = $1;
PREPARE "updateMaxId"(varchar) AS UPDATE leaf_alloc SET max_id = max_id + step WHERE biz_tag = $1;
PREPARE "updateMaxIdByCustomStep"(integer, varchar) AS UPDATE leaf_alloc SET max_id = max_id + $1 WHERE biz_tag = $2;
PREPARE "getAllTags" AS SELECT biz_tag FROM leaf_alloc;
BEGIN;
EXECUTE "updateMaxId"('leaf-segment-test');
EXECUTE "getLeafAlloc"('leaf-segment-test');
COMMIT;
BEGIN;
EXECUTE "updateMaxIdByCustomStep"(300, 'leaf-segment-test');
EXECUTE "getLeafAlloc"('leaf-segment-test');
COMMIT;
CREATE TABLE read_by_leaf AS EXECUTE "getAllLeafAllocs";
CREATE TABLE tags_of_leaf AS EXECUTE "getAllTags";
SELECT biz_tag, max_id, step, update_time IS NOT NULL AS updated FROM read_by_leaf WHERE biz_tag LIKE 'leaf%';
SELECT count(*) = (SELECT count(*) FROM uid_segment) AS all_tags FROM tags_of_leaf;
DROP TABLE read_by_leaf, tags_of_leaf;
-- Leaf takes the values below max_id by the step that it reads after its UPDATE.
BEGIN;
UPDATE leaf_alloc SET max_id = max_id + step WHERE biz_tag = 'leaf-segment-test' RETURNING step;
SELECT segment_alter('leaf-segment-test', step => 4000);
SELECT step FROM leaf_alloc WHERE biz_tag = 'leaf-segment-test';
ROLLBACK;
SELECT segment_create('leaf zero', 0, 10);
BEGIN;
SELECT max_id FROM leaf_alloc WHERE biz_tag = 'leaf zero';
SELECT nextval('uid_segments."leaf zero"');
UPDATE leaf_alloc SET max_id = 0 WHERE biz_tag = 'leaf zero' RETURNING max_id;
UPDATE leaf_alloc SET max_id = max_id + step WHERE biz_tag = 'leaf zero';
\echo :LAST_ERROR_SQLSTATE
ROLLBACK;
SELECT segment_drop('leaf zero');
UPDATE leaf_alloc SET max_id = max_id + 50000 WHERE biz_tag = 'leaf-segment-test' RETURNING max_id;
UPDATE leaf_alloc SET max_id = max_id + 10 WHERE biz_tag = 'leaf-segment-test' RETURNING max_id;
UPDATE leaf_alloc SET max_id = 0 WHERE biz_tag = 'leaf-segment-test' RETURNING max_id;
SELECT segment_next('leaf-segment-test');
UPDATE leaf_alloc SET description = 'another' WHERE biz_tag = 'leaf-segment-test';
UPDATE leaf_alloc SET update_time = now() WHERE biz_tag = 'leaf-segment-test';
INSERT INTO leaf_alloc VALUES ('late', 1, 10, NULL, now());
DELETE FROM leaf_alloc;
-- In a schema with a name that must be quoted, and none.
CREATE SCHEMA "Leaf's";
SELECT uid_leaf_alloc_create('Leaf''s');
SELECT count(*) FROM "Leaf's".leaf_alloc;
SELECT uid_leaf_alloc_create('nowhere');
SET search_path = '';
SELECT public.uid_leaf_alloc_create();
\echo :LAST_ERROR_SQLSTATE
RESET search_path;

-- Baidu's statements on worker_node, with grants on the table alone.
CREATE ROLE regress_baidu;
GRANT SELECT, INSERT ON worker_node TO regress_baidu;
SET ROLE regress_baidu;
INSERT INTO WORKER_NODE (HOST_NAME, PORT, TYPE, LAUNCH_DATE, MODIFIED, CREATED) VALUES ('10.0.0.7', '8080', 2, CURRENT_DATE, NOW(), NOW());
INSERT INTO WORKER_NODE (HOST_NAME, PORT, TYPE, LAUNCH_DATE, MODIFIED, CREATED) VALUES ('10.0.0.8', '8080', 1, CURRENT_DATE, NOW(), NOW()) RETURNING ID;
SELECT ID, HOST_NAME, PORT, TYPE, LAUNCH_DATE = CURRENT_DATE AS today, MODIFIED = CREATED AS unchanged FROM WORKER_NODE WHERE HOST_NAME = '10.0.0.7' AND PORT = '8080';
SELECT nextval('worker_node_id_seq');
\echo :LAST_ERROR_SQLSTATE
-- With the parameters of its mapper (WORKER_NODE.xml). JDBC adds RETURNING for useGeneratedKeys.
PREPARE "addWorkerNode"(varchar, varchar, integer, timestamptz) AS
  INSERT INTO WORKER_NODE (HOST_NAME, PORT, TYPE, LAUNCH_DATE, MODIFIED, CREATED) VALUES ($1, $2, $3, $4, NOW(), NOW()) RETURNING *;
PREPARE "getWorkerNodeByHostPort"(varchar, varchar) AS
  SELECT ID, HOST_NAME, PORT, TYPE, LAUNCH_DATE, MODIFIED, CREATED FROM WORKER_NODE WHERE HOST_NAME = $1 AND PORT = $2;
EXECUTE "addWorkerNode"('10.0.0.9', '8080-17', 2, now()) \gset
CREATE TEMP TABLE found AS EXECUTE "getWorkerNodeByHostPort"('10.0.0.9', '8080-17');
SELECT id = :id AS same, host_name, port, type, launch_date = CURRENT_DATE AS today, modified = created AS unchanged FROM found;
DROP TABLE found;
RESET ROLE;
-- Draws in the database take the numbers between.
SELECT uid_next() > 0;
\getenv source PG_ABS_SRCDIR
\set rows_of :source '/test/rows_of.sql'
\i :rows_of
SELECT rows_of('uid_generators.uid_default', 1);
INSERT INTO worker_node (host_name, port, type, launch_date, modified, created) VALUES ('10.0.0.7', '8080', 2, CURRENT_DATE, NOW(), NOW()) RETURNING id;
INSERT INTO worker_node (id, host_name, port, type, launch_date, modified, created) VALUES (1000, '10.0.0.9', '8080', 2, CURRENT_DATE, NOW(), NOW()) RETURNING id;
SELECT id, host_name LIKE '10.%' AS outside, generator FROM worker_node ORDER BY id;
SELECT count(*) FROM uid_check_nodes();
SET ROLE regress_baidu;
UPDATE worker_node SET port = '1';
RESET ROLE;
DROP FUNCTION rows_of(text, bigint);
DROP OWNED BY regress_baidu;
DROP ROLE regress_baidu;

-- Roles: a grant on the view, and the sequence's own privileges.
CREATE ROLE regress_node;
SET ROLE regress_node;
SELECT current_val, increment_val FROM t_sequence WHERE pk_seq_name = 'order';
SELECT * FROM t_sequence WHERE pk_seq_name = 'order' FOR UPDATE;
UPDATE t_sequence SET current_val = current_val + increment_val WHERE pk_seq_name = 'order';
INSERT INTO t_sequence VALUES ('mine', 0, 10);
SELECT biz_tag FROM leaf_alloc;
RESET ROLE;
GRANT INSERT, UPDATE, DELETE ON t_sequence TO regress_node;
GRANT SELECT, UPDATE ON leaf_alloc TO regress_node;
SET ROLE regress_node;
EXECUTE advance('order');
\echo :LAST_ERROR_SQLSTATE
UPDATE t_sequence SET current_val = 0 WHERE pk_seq_name = 'order';
UPDATE leaf_alloc SET max_id = max_id + step WHERE biz_tag = 'order';
INSERT INTO t_sequence VALUES ('mine', 0, 10);
RESET ROLE;
GRANT SELECT ON SEQUENCE uid_segments.order TO regress_node;
SET ROLE regress_node;
SELECT current_val - :v AS shown FROM t_sequence WHERE pk_seq_name = 'order' FOR UPDATE;
EXECUTE advance('order');
RESET ROLE;
GRANT USAGE ON SEQUENCE uid_segments.order TO regress_node;
SET ROLE regress_node;
BEGIN;
SELECT current_val - :v AS shown FROM t_sequence WHERE pk_seq_name = 'order' FOR UPDATE;
EXECUTE advance('order') \gset
SELECT :current_val - :v AS shown;
COMMIT;
UPDATE leaf_alloc SET max_id = max_id + step WHERE biz_tag = 'order' RETURNING max_id - :v AS shown;
UPDATE t_sequence SET current_val = 0 WHERE pk_seq_name = 'order';
\echo :LAST_ERROR_SQLSTATE
RESET ROLE;
GRANT UPDATE ON SEQUENCE uid_segments.order TO regress_node;
GRANT CREATE ON SCHEMA uid_segments TO regress_node;
SET ROLE regress_node;
UPDATE t_sequence SET current_val = 0 WHERE pk_seq_name = 'order' RETURNING current_val;
INSERT INTO t_sequence VALUES ('mine', 0, 10);
SELECT relowner::regrole FROM pg_class WHERE oid = 'uid_segments.mine'::regclass;
RESET ROLE;
-- No object along the search_path of the caller is used.
CREATE SCHEMA trap AUTHORIZATION regress_node;
SET ROLE regress_node;
CREATE FUNCTION trap.plus(bigint, bigint) RETURNS bigint LANGUAGE plpgsql AS 'BEGIN RAISE ''trapped''; END';
CREATE OPERATOR trap.* (LEFTARG = bigint, RIGHTARG = bigint, FUNCTION = trap.plus);
CREATE FUNCTION trap.segment_create(text, bigint, bigint, bigint, text, bigint, bigint, bigint, boolean) RETURNS regclass
  LANGUAGE plpgsql AS 'BEGIN RAISE ''trapped''; END';
CREATE TABLE trap.uid_segment (name text);
CREATE FUNCTION trap.to_jsonb(anyelement) RETURNS jsonb LANGUAGE plpgsql AS 'BEGIN RAISE ''trapped''; END';
RESET ROLE;
SET search_path = trap, pg_catalog, public;
INSERT INTO t_sequence VALUES ('safe', 0, 10);
UPDATE t_sequence SET current_val = current_val OPERATOR(pg_catalog.+) increment_val WHERE pk_seq_name = 'safe' RETURNING *;
UPDATE t_sequence SET current_val = 0 WHERE pk_seq_name = 'safe' RETURNING *;
UPDATE leaf_alloc SET max_id = max_id OPERATOR(pg_catalog.+) step WHERE biz_tag = 'safe' RETURNING biz_tag, max_id;
RESET search_path;
DROP SCHEMA trap CASCADE;
SELECT segment_drop('mine');
DROP OWNED BY regress_node;
DROP ROLE regress_node;

-- The triggers on a view of one's own.
CREATE VIEW own AS SELECT 1 AS name, 2::bigint AS value, 3 AS length, 'user'::text AS segment, 1::bigint AS step;
CREATE TRIGGER t INSTEAD OF UPDATE ON own FOR EACH ROW EXECUTE FUNCTION uid_block_advance('name', 'value', 'length', '2');
UPDATE own SET value = value + 1;
\echo :LAST_ERROR_SQLSTATE
CREATE OR REPLACE TRIGGER t INSTEAD OF UPDATE ON own FOR EACH ROW EXECUTE FUNCTION uid_block_advance('segment', 'value', 'nothing', '2');
UPDATE own SET value = value + 1;
CREATE OR REPLACE TRIGGER t INSTEAD OF UPDATE ON own FOR EACH ROW EXECUTE FUNCTION uid_block_advance('segment');
UPDATE own SET value = value + 1;
CREATE OR REPLACE TRIGGER t INSTEAD OF UPDATE ON own FOR EACH ROW EXECUTE FUNCTION uid_block_advance('segment', 'value', 'step', '1');
UPDATE own SET value = value + 1;
\echo :LAST_ERROR_SQLSTATE
DROP VIEW own;
-- The functions behind the views.
SELECT uid_block_first('uid_segments.user', 0) = current_val AS same FROM t_sequence WHERE pk_seq_name = 'user';
SELECT uid_block_first(NULL, 1) IS NULL AS nothing, uid_block_first('pg_class', 1) IS NULL AS nothing, uid_block_first(0, 1) IS NULL AS nothing, uid_block_time('pg_class') IS NULL AS nothing;
SELECT uid_block_claim('uid_segments.user', -5, 10);
\echo :LAST_ERROR_SQLSTATE
SELECT uid_block_claim('uid_segments.user', 1, 0);
BEGIN;
LOCK TABLE uid_segment IN ROW SHARE MODE;
SELECT uid_block_first('uid_segments.user', 0) AS v \gset
SELECT nextval('uid_segments.user') - :v AS beyond, uid_block_first('uid_segments.user', 100) - :v AS same;
COMMIT;

DROP VIEW leaf_alloc, "Leaf's".leaf_alloc;
DROP SCHEMA "Leaf's";
DROP EXTENSION uidgen CASCADE;
