-- Tables t_sequence and leaf_alloc: services that take blocks from a table of theirs send the same statements
-- here.
\a \t
CREATE EXTENSION uidgen;
\set SHOW_CONTEXT never
\getenv source PG_ABS_SRCDIR
\i :source/test/outcome.sql
SET client_min_messages = warning;
SELECT uid_t_sequence_create(), outcome('SELECT uid_t_sequence_create()');

-- An INSERT creates the segment, and shows what it was given.
INSERT INTO t_sequence (pk_seq_name, current_val, increment_val) VALUES ('order', 0, 100) RETURNING *;
INSERT INTO t_sequence (pk_seq_name, current_val) VALUES ('by one', 7) RETURNING *;
SELECT * FROM t_sequence ORDER BY pk_seq_name;
SELECT name, step, seqstart, seqmin, seqincrement, seqcycle FROM uid_segment JOIN pg_sequence ON seqrelid = sequence ORDER BY name;
-- What the row shows is reserved: draws lie beyond.
SELECT segment_next('order'), nextval('uid_segments.order'), (segment_reserve('order', 5)).first;

-- The published statements.
BEGIN;
SELECT current_val, increment_val FROM t_sequence WHERE pk_seq_name = 'order' FOR UPDATE;
UPDATE t_sequence SET current_val = current_val + increment_val WHERE pk_seq_name = 'order';
SELECT current_val FROM t_sequence WHERE pk_seq_name = 'order';
COMMIT;
SELECT segment_next('order'), nextval('uid_segments.order');
UPDATE t_sequence SET current_val = current_val + increment_val WHERE pk_seq_name = 'order' RETURNING *;
-- With absolute values, and fewer of them.
SELECT current_val AS old FROM t_sequence WHERE pk_seq_name = 'order' \gset
UPDATE t_sequence SET current_val = :old + 100 WHERE pk_seq_name = 'order' AND current_val = :old RETURNING current_val;
UPDATE t_sequence SET current_val = :old + 100 WHERE pk_seq_name = 'order' AND current_val = :old RETURNING current_val;
UPDATE t_sequence SET current_val = current_val + 7 WHERE pk_seq_name = 'order' RETURNING *;
-- Another length of blocks. All rows at once, by a prepared statement.
UPDATE t_sequence SET increment_val = 10 WHERE pk_seq_name = 'order' RETURNING *;
UPDATE t_sequence SET current_val = current_val + increment_val, increment_val = 20 WHERE pk_seq_name = 'order' RETURNING *;
PREPARE advance(text) AS UPDATE t_sequence SET current_val = current_val + increment_val WHERE pk_seq_name LIKE $1 RETURNING *;
EXECUTE advance('%');
-- A row for a segment that exists begins beyond what is reserved, or where it is told. Values before the one that it
-- shows are reserved, too.
SELECT segment_create('plain', 5, 20), segment_create('placed', 5), segment_next('placed');
INSERT INTO t_sequence VALUES ('plain', 0) RETURNING *;
EXECUTE advance('plain');
INSERT INTO t_sequence VALUES ('placed', 1100, 10) RETURNING *;
SELECT segment_create('used', 1), segment_next('used') AS drawn \gset
INSERT INTO t_sequence VALUES ('used', 10, 10) RETURNING current_val - increment_val > 1000 AS is_reserved;
SELECT segment_next('plain'), segment_next('placed'), nextval('uid_segments.placed');

-- A rollback, or one to a savepoint, leaves a gap. An UPDATE beside a draw in REPEATABLE READ is one like any other.
SELECT current_val AS v FROM t_sequence WHERE pk_seq_name = 'order' \gset
BEGIN;
EXECUTE advance('order') \gset lost_
ROLLBACK;
BEGIN;
SAVEPOINT s;
EXECUTE advance('order') \gset lost2_
ROLLBACK TO s;
SELECT current_val - :v AS same FROM t_sequence WHERE pk_seq_name = 'order';
EXECUTE advance('order') \gset
COMMIT;
SELECT :lost2_current_val - :lost_current_val AS apart, :current_val - :lost2_current_val AS apart;
BEGIN ISOLATION LEVEL SERIALIZABLE;
SELECT current_val - :current_val AS same FROM t_sequence WHERE pk_seq_name = 'order' FOR UPDATE;
SELECT nextval('uid_segments.order') - :current_val AS beyond;
EXECUTE advance('order') \gset later_
COMMIT;
SELECT :later_current_val - :current_val AS apart;
BEGIN READ ONLY;
EXECUTE advance('order');
ROLLBACK;

-- The trigger fires in a session that passes for a replica, too.
SET session_replication_role = replica;
EXECUTE advance('order') \gset later_
RESET session_replication_role;
SELECT :later_current_val > :current_val + 100 AS reserved;

-- A row that is ahead of its sequence, as after a restore: its values are not given again.
ALTER SEQUENCE uid_segments.plain RESTART;
EXECUTE advance('plain');
SELECT segment_set('plain', 1);
UPDATE t_sequence SET current_val = 0 WHERE pk_seq_name = 'plain' RETURNING *;
SELECT segment_next('plain');

-- SET current_val = 0 goes on with values that nobody has, while there are any.
SELECT current_val AS v FROM t_sequence WHERE pk_seq_name = 'order' \gset
UPDATE t_sequence SET current_val = 0 WHERE pk_seq_name = 'order' RETURNING current_val - :v AS beyond;
-- At the end it starts over, and a rollback undoes that.
INSERT INTO t_sequence VALUES ('short', 1, 2);
ALTER SEQUENCE uid_segments.short MAXVALUE 20;
EXECUTE advance('short');
SELECT outcome($$UPDATE t_sequence SET current_val = current_val + increment_val WHERE pk_seq_name = 'short'$$);
BEGIN;
UPDATE t_sequence SET current_val = 0 WHERE pk_seq_name = 'short' RETURNING *;
SELECT segment_next('short');
ROLLBACK;
SELECT * FROM outcomes('%s', $$SELECT t_sequence FROM t_sequence WHERE pk_seq_name = 'short'$$,
  $$UPDATE t_sequence SET current_val = 0 WHERE pk_seq_name = 'short' RETURNING current_val$$,
  $$UPDATE t_sequence SET current_val = 0 WHERE pk_seq_name = 'short' RETURNING current_val$$, $$SELECT segment_next('short')$$);
-- A segment of segment_create() has no 0, so it starts over at 1.
SELECT segment_create('small', 1, max_value => 9);
INSERT INTO t_sequence VALUES ('small', 1, 2) RETURNING *;
SELECT * FROM outcomes($$UPDATE t_sequence SET %s WHERE pk_seq_name = 'small' RETURNING current_val$$, 'increment_val = 2',
  'current_val = 0', 'increment_val = 3');
-- Near 2^63 the row shows the last value of all, so that the published code finds that the next block would overflow. An
-- INSERT there does, too, and a segment from which others draw, too.
INSERT INTO t_sequence SELECT 'near ' || n, 9223372036854775807 - n, 10 FROM unnest('{0, 5, 9, 10, 20, 500}'::bigint[]) AS n;
INSERT INTO t_sequence VALUES ('top', 9223372036854775807 - 1099511627776 - 100, 10);
SELECT * FROM t_sequence WHERE pk_seq_name LIKE 'near %' OR pk_seq_name = 'top' ORDER BY 1;
SELECT 9223372036854775807 - segment_next('top') AS below_the_end;
EXECUTE advance('top');
SELECT * FROM outcomes('%s', $$UPDATE t_sequence SET current_val = current_val + increment_val WHERE pk_seq_name = 'top'$$,
  $$SELECT nextval('uid_segments.top')$$, $$UPDATE t_sequence SET increment_val = 10 WHERE pk_seq_name = 'top'$$);
UPDATE t_sequence SET current_val = 0 WHERE pk_seq_name LIKE 'near %' OR pk_seq_name = 'top' RETURNING *;
EXECUTE advance('top');
SELECT segment_next('top');

-- What such a row cannot mean.
UPDATE t_sequence SET increment_val = 100 WHERE pk_seq_name = 'order';
SELECT * FROM outcomes($$UPDATE t_sequence SET %s WHERE pk_seq_name = 'order'$$, 'current_val = 7',
  'current_val = current_val - increment_val', 'current_val = -9223372036854775808', 'current_val = current_val + 101',
  'current_val = current_val + 101, increment_val = 200', 'current_val = 9223372036854775807', 'current_val = NULL',
  'increment_val = NULL', 'increment_val = 0', 'increment_val = -1', 'increment_val = 1099511627777');
UPDATE t_sequence SET increment_val = 1099511627776 WHERE pk_seq_name = 'by one' RETURNING increment_val;
SELECT * FROM outcomes('INSERT INTO t_sequence VALUES (%s)', $$'order', 0, 100$$, $$'new', NULL, 100$$,
  $$'new', 0, 0$$, $$'', 0, 10$$, 'NULL, 0, 10', $$'new', 9223372036854775807, 2000000000000$$);
SELECT segment_create('by three', 1, 10, increment => 3);
SELECT * FROM outcomes('%s', 'UPDATE t_sequence SET current_val = current_val + 1 WHERE pk_seq_name = ''nobody''',
  $$UPDATE t_sequence SET current_val = current_val + increment_val WHERE pk_seq_name = 'by three'$$,
  $$SELECT count(*) FROM uid_segment WHERE name = 'new'$$);
-- A row that is deleted and comes again begins beyond what is reserved.
BEGIN;
SELECT current_val AS v FROM t_sequence WHERE pk_seq_name = 'order' \gset
TRUNCATE t_sequence;
INSERT INTO t_sequence VALUES ('order', 0, 100) RETURNING current_val - :v >= 300 AS beyond;
ROLLBACK;
INSERT INTO t_sequence VALUES ('it''s "quoted"; %s \', -5, 3) RETURNING *;
UPDATE t_sequence SET current_val = current_val + increment_val WHERE pk_seq_name LIKE 'it%' RETURNING *;
-- Another name is another segment, whose values begin above the row. That of the sequence is the name of a segment.
UPDATE t_sequence SET pk_seq_name = 'plain too' WHERE pk_seq_name LIKE 'it%' RETURNING *;
SELECT outcome($$UPDATE t_sequence SET pk_seq_name = 'used' WHERE pk_seq_name = 'plain too'$$);
UPDATE t_sequence SET pk_seq_name = 'by one too' WHERE pk_seq_name = 'plain too' RETURNING *;
ALTER SEQUENCE uid_segments."by one too" RENAME TO renamed;
SELECT outcome($$UPDATE t_sequence SET current_val = current_val + 1 WHERE pk_seq_name = 'by one too'$$);
UPDATE t_sequence SET pk_seq_name = 'renamed' WHERE pk_seq_name = 'by one too' RETURNING *;
SELECT segment_next('renamed'), segment_drop('renamed');
SELECT outcome($$UPDATE t_sequence SET current_val = current_val + 1 WHERE pk_seq_name = 'renamed'$$);
-- A name of any length.
INSERT INTO t_sequence VALUES (repeat('x', 70), 7, 3) RETURNING current_val;
SELECT name, sequence FROM uid_segment WHERE name LIKE 'xxx%';
SELECT segment_next(repeat('x', 70)), segment_drop(repeat('x', 70));

-- Leaf's statements, word for word.
SELECT uid_leaf_alloc_create(), outcome('SELECT uid_leaf_alloc_create()');
INSERT INTO leaf_alloc(biz_tag, max_id, step, description) VALUES('leaf-segment-test', 1, 2000, 'Test leaf Segment Mode Get Id');
SELECT biz_tag, max_id, step, description, now() - update_time < interval '1 hour' AS recent FROM leaf_alloc;
SELECT segment_next('leaf-segment-test');
BEGIN;
UPDATE leaf_alloc SET max_id = max_id + step WHERE biz_tag = 'leaf-segment-test';
SELECT nextval('uid_segments."leaf-segment-test"');
SELECT biz_tag, max_id, step FROM leaf_alloc WHERE biz_tag = 'leaf-segment-test';
COMMIT;
-- The same with the parameters of its mapper (IDAllocMapper).
PREPARE "getAllLeafAllocs" AS SELECT biz_tag, max_id, step, update_time FROM leaf_alloc;
PREPARE "getLeafAlloc"(varchar) AS SELECT biz_tag, max_id, step FROM leaf_alloc WHERE biz_tag = $1;
PREPARE "updateMaxId"(varchar) AS UPDATE leaf_alloc SET max_id = max_id + step WHERE biz_tag = $1;
PREPARE "updateMaxIdByCustomStep"(integer, varchar) AS UPDATE leaf_alloc SET max_id = max_id + $1 WHERE biz_tag = $2;
PREPARE "getAllTags" AS SELECT biz_tag FROM leaf_alloc;
UPDATE leaf_alloc SET update_time = '2020-01-01';
BEGIN;
EXECUTE "updateMaxId"('leaf-segment-test');
EXECUTE "getLeafAlloc"('leaf-segment-test');
COMMIT;
BEGIN;
EXECUTE "updateMaxIdByCustomStep"(50000, 'leaf-segment-test');
EXECUTE "getLeafAlloc"('leaf-segment-test');
COMMIT;
EXECUTE "getAllTags";
CREATE TABLE read_by_leaf AS EXECUTE "getAllLeafAllocs";
SELECT biz_tag, max_id, step, now() - update_time < interval '1 hour' AS recent FROM read_by_leaf;
DROP TABLE read_by_leaf;
-- Another step or description reserves nothing. A row for a segment that exists begins beyond what is reserved.
UPDATE leaf_alloc SET step = 10, description = 'ten' RETURNING max_id;
INSERT INTO leaf_alloc (biz_tag, step) VALUES ('order', 10) RETURNING max_id > :v AS beyond;
INSERT INTO leaf_alloc (biz_tag, max_id, step) VALUES ('placed', 1000, 10) RETURNING max_id;
SELECT segment_next('placed');
UPDATE leaf_alloc SET max_id = max_id + step WHERE biz_tag = 'placed' RETURNING max_id, segment_next('placed');
ALTER SEQUENCE uid_segments.placed RESTART;
UPDATE leaf_alloc SET max_id = max_id + step WHERE biz_tag = 'placed' RETURNING max_id;
-- 0, and the end of the sequence.
UPDATE leaf_alloc SET max_id = 0 WHERE biz_tag = 'placed' RETURNING max_id;
ALTER SEQUENCE uid_segments.placed MAXVALUE 2000;
SELECT outcome($$UPDATE leaf_alloc SET max_id = max_id + 1000 WHERE biz_tag = 'placed'$$), setval('uid_segments.placed', 1995);
SELECT * FROM outcomes($$UPDATE leaf_alloc SET %s WHERE biz_tag = 'placed' RETURNING max_id$$, 'max_id = 0', 'max_id = max_id + step',
  'max_id = max_id - 1', 'max_id = 9223372036854775807', $$biz_tag = 'nobody'$$);
-- Another tag is another segment, which begins above the row; the former one stays.
SELECT max_id AS shown FROM leaf_alloc WHERE biz_tag = 'nobody' \gset
UPDATE leaf_alloc SET max_id = max_id + step WHERE biz_tag = 'nobody' RETURNING max_id - step > :shown AS above;
SELECT segment_next('nobody') > :shown AS above, segment_drop('nobody');
SELECT split_part(outcome($$UPDATE leaf_alloc SET max_id = NULL WHERE biz_tag = 'nobody'$$), ' | ', 1);
SELECT * FROM outcomes('%s', $$UPDATE leaf_alloc SET max_id = max_id + step WHERE biz_tag = 'nobody'$$,
  $$INSERT INTO leaf_alloc (biz_tag, max_id, step) VALUES ('by three', 1, 10)$$,
  'INSERT INTO leaf_alloc (max_id, step) VALUES (1, 10)');
-- The rows are the service's: a DELETE leaves the segment.
DELETE FROM leaf_alloc WHERE biz_tag <> 'leaf-segment-test';
SELECT segment_next('placed');
-- In a schema with a name that must be quoted, and none.
CREATE SCHEMA "Leaf's";
SELECT uid_leaf_alloc_create('Leaf''s');
SELECT count(*) FROM "Leaf's".leaf_alloc;
SELECT * FROM outcomes('%s', $$SELECT uid_leaf_alloc_create('nowhere')$$, 'SET search_path = ''''; SELECT public.uid_leaf_alloc_create()');

-- Baidu's statements on worker_node, with grants on the table alone.
CREATE ROLE regress_baidu;
GRANT SELECT, INSERT ON worker_node TO regress_baidu;
SET ROLE regress_baidu;
INSERT INTO WORKER_NODE (HOST_NAME, PORT, TYPE, LAUNCH_DATE, MODIFIED, CREATED) VALUES ('10.0.0.7', '8080', 2, CURRENT_DATE, NOW(), NOW());
INSERT INTO WORKER_NODE (HOST_NAME, PORT, TYPE, LAUNCH_DATE, MODIFIED, CREATED) VALUES ('10.0.0.8', '8080', 1, CURRENT_DATE, NOW(), NOW()) RETURNING ID;
SELECT ID, HOST_NAME, PORT, TYPE, LAUNCH_DATE = CURRENT_DATE AS today, MODIFIED = CREATED AS unchanged FROM WORKER_NODE WHERE HOST_NAME = '10.0.0.7' AND PORT = '8080';
SELECT outcome('SELECT nextval(''worker_node_id_seq'')');
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
-- Draws in the database take the numbers between, and skip those of other generators' nodes.
SELECT uid_next() > 0;
\i :source/test/rows_of.sql
SELECT rows_of('uid_generators.uid_default', 1);
INSERT INTO worker_node (host_name, port, type, launch_date, modified, created) VALUES ('10.0.0.7', '8080', 2, CURRENT_DATE, NOW(), NOW()) RETURNING id > 4 AS later;
INSERT INTO worker_node (id, host_name, port, type, launch_date, modified, created) VALUES (1000, '10.0.0.9', '8080', 2, CURRENT_DATE, NOW(), NOW()) RETURNING id;
SELECT row_number() OVER (ORDER BY id) AS nth, host_name LIKE '10.%' AS outside, generator FROM worker_node ORDER BY id;
SET ROLE regress_baidu;
UPDATE worker_node SET port = '1';
RESET ROLE;
-- Another column would make a dump that cannot be restored.
SELECT * FROM outcomes('ALTER TABLE worker_node %s', 'ADD COLUMN table_name text', 'DROP COLUMN layout', 'RENAME type TO kind',
  'ALTER COLUMN port TYPE text');
DROP FUNCTION rows_of(text, bigint);
DROP OWNED BY regress_baidu;
DROP ROLE regress_baidu;

-- Roles: a grant on the table, and the sequence's own privileges. Nobody else sees a counter.
CREATE ROLE regress_node;
SET ROLE regress_node;
SELECT * FROM outcomes('%s', $$SELECT current_val, increment_val FROM t_sequence WHERE pk_seq_name = 'order'$$,
  'SELECT count(name) > 0 AS visible FROM uid_segment',
  $$UPDATE t_sequence SET current_val = current_val + increment_val WHERE pk_seq_name = 'order'$$,
  $$INSERT INTO t_sequence VALUES ('mine', 0, 10)$$, 'SELECT biz_tag FROM leaf_alloc');
RESET ROLE;
GRANT SELECT, INSERT, UPDATE, DELETE ON t_sequence TO regress_node;
GRANT SELECT, INSERT, UPDATE ON leaf_alloc TO regress_node;
SET ROLE regress_node;
SELECT increment_val FROM t_sequence WHERE pk_seq_name = 'order' FOR UPDATE;
SELECT * FROM outcomes($$UPDATE t_sequence SET %s WHERE pk_seq_name = 'order'$$, 'current_val = current_val + increment_val',
  'increment_val = 5', 'current_val = 0', $$pk_seq_name = 'mine'$$);
SELECT * FROM outcomes('%s', 'UPDATE leaf_alloc SET max_id = max_id + step', $$INSERT INTO leaf_alloc (biz_tag, step) VALUES ('order', 1)$$,
  $$INSERT INTO t_sequence VALUES ('mine', 0, 10)$$);
RESET ROLE;
GRANT USAGE ON SEQUENCE uid_segments.order, uid_segments."leaf-segment-test", uid_segments.short TO regress_node;
SET ROLE regress_node;
SELECT current_val AS v FROM t_sequence WHERE pk_seq_name = 'order' FOR UPDATE \gset
EXECUTE advance('order') \gset
SELECT :current_val > :v AS taken;
UPDATE leaf_alloc SET max_id = max_id + step RETURNING biz_tag;
-- A row that is added later: the hint, and the default privileges of docs/originals.
RESET ROLE;
INSERT INTO leaf_alloc (biz_tag, step) VALUES ('later', 10);
ALTER DEFAULT PRIVILEGES IN SCHEMA uid_segments GRANT USAGE ON SEQUENCES TO regress_node;
INSERT INTO leaf_alloc (biz_tag, step) VALUES ('latest', 10);
ALTER DEFAULT PRIVILEGES IN SCHEMA uid_segments REVOKE USAGE ON SEQUENCES FROM regress_node;
SET ROLE regress_node;
SELECT outcome('UPDATE leaf_alloc SET max_id = max_id + step WHERE biz_tag = ''later''');
UPDATE leaf_alloc SET max_id = max_id + step WHERE biz_tag = 'latest' RETURNING biz_tag;
RESET ROLE;
DELETE FROM leaf_alloc WHERE biz_tag LIKE 'late%';
SELECT segment_drop('later'), segment_drop('latest');
SET ROLE regress_node;
-- USAGE does not let a role use up a sequence.
SELECT * FROM outcomes('%s', 'UPDATE leaf_alloc SET max_id = 1000000000000000',
  $$INSERT INTO leaf_alloc (biz_tag, max_id, step) VALUES ('order', 1000000000000000, 1)$$,
  $$UPDATE t_sequence SET increment_val = 1099511627776 WHERE pk_seq_name = 'order'$$,
  $$UPDATE t_sequence SET current_val = 0 WHERE pk_seq_name = 'short'$$);
UPDATE t_sequence SET current_val = 0 WHERE pk_seq_name = 'order' RETURNING current_val > :v AS goes_on;
RESET ROLE;
BEGIN;
ALTER SEQUENCE uid_segments.order RESTART 9223372036854775700;
SET LOCAL ROLE regress_node;
SELECT outcome($$UPDATE t_sequence SET current_val = 0 WHERE pk_seq_name = 'order'$$);
ROLLBACK;
GRANT UPDATE ON SEQUENCE uid_segments.short TO regress_node;
GRANT CREATE ON SCHEMA uid_segments TO regress_node;
SET ROLE regress_node;
UPDATE t_sequence SET current_val = 0 WHERE pk_seq_name = 'short' RETURNING current_val;
INSERT INTO t_sequence VALUES ('mine', 0, 10);
INSERT INTO leaf_alloc (biz_tag, step) VALUES ('mine too', 10);
SELECT relname, relowner::regrole FROM pg_class WHERE oid IN ('uid_segments.mine'::regclass, 'uid_segments."mine too"'::regclass) ORDER BY 1;
RESET ROLE;
-- A new row may begin anywhere, but not everybody may move the segment.
SELECT segment_create('unused');
GRANT USAGE ON SEQUENCE uid_segments.unused TO regress_node;
SET ROLE regress_node;
SELECT outcome($$INSERT INTO t_sequence VALUES ('unused', 9223372036854775797)$$);
RESET ROLE;
SELECT segment_next('unused'), segment_drop('unused');
-- The smallest value is not taken for NULL.
INSERT INTO t_sequence VALUES ('lowest', -9223372036854775808, 10);
SELECT current_val, segment_drop('lowest') FROM t_sequence WHERE pk_seq_name = 'lowest';
-- A row that shows 0 cannot start over. What the hint says helps.
INSERT INTO t_sequence VALUES ('zero', 0, 10);
ALTER SEQUENCE uid_segments.zero MAXVALUE 40;
SELECT outcome($$UPDATE t_sequence SET current_val = 0 WHERE pk_seq_name = 'zero'$$);
ALTER SEQUENCE uid_segments.zero MAXVALUE 400;
UPDATE t_sequence SET current_val = 0 WHERE pk_seq_name = 'zero' RETURNING current_val;
SELECT segment_drop('zero');
ALTER TABLE leaf_alloc ALTER step TYPE bigint;
SELECT outcome('UPDATE leaf_alloc SET max_id = max_id + step');
ALTER TABLE public.leaf_alloc ALTER COLUMN step TYPE integer;
-- A type is checked, whatever the UPDATE sets.
ALTER TABLE t_sequence ALTER increment_val TYPE numeric;
SELECT outcome($$UPDATE t_sequence SET current_val = current_val + 1 WHERE pk_seq_name = 'mine'$$);
ALTER TABLE t_sequence ALTER increment_val TYPE bigint;
-- What another trigger changes counts, too: after each UPDATE the segment is beyond the row's block.
CREATE FUNCTION move() RETURNS trigger LANGUAGE plpgsql AS
  'BEGIN NEW.current_val := NEW.current_val + NEW.increment_val; RETURN NEW; END';
CREATE TRIGGER a_move BEFORE UPDATE ON t_sequence FOR EACH ROW EXECUTE FUNCTION move();
INSERT INTO t_sequence VALUES ('moved', 1, 100);
UPDATE t_sequence SET pk_seq_name = pk_seq_name WHERE pk_seq_name = 'moved';
UPDATE t_sequence SET pk_seq_name = pk_seq_name WHERE pk_seq_name = 'moved';
UPDATE t_sequence SET pk_seq_name = pk_seq_name WHERE pk_seq_name = 'moved';
SELECT segment_next('moved') > current_val + increment_val AS beyond FROM t_sequence WHERE pk_seq_name = 'moved';
DROP TRIGGER a_move ON t_sequence;
DROP FUNCTION move;
SELECT segment_drop('moved');
SELECT segment_drop('mine'), segment_drop('mine too');
DROP OWNED BY regress_node;
DROP ROLE regress_node;

-- The trigger on a table of one's own.
CREATE TABLE own (biz_tag integer, max_id bigint, step integer);
CREATE TRIGGER t BEFORE INSERT ON own FOR EACH ROW EXECUTE FUNCTION uid_internal.uid_reserve_block();
SELECT outcome('INSERT INTO own VALUES (1, 2)');
DROP TABLE own;
CREATE TABLE own (name text);
CREATE TRIGGER t BEFORE INSERT ON own FOR EACH ROW EXECUTE FUNCTION uid_internal.uid_reserve_block();
SELECT * FROM outcomes('%s', $$INSERT INTO own VALUES ('order')$$,
  'CREATE OR REPLACE TRIGGER t AFTER INSERT ON own FOR EACH ROW EXECUTE FUNCTION uid_internal.uid_reserve_block()',
  $$INSERT INTO own VALUES ('order')$$);
DROP TABLE own;

DROP TABLE "Leaf's".leaf_alloc;
DROP SCHEMA "Leaf's";

-- Without the extension both are tables like any other.
DROP EXTENSION uidgen CASCADE;
UPDATE leaf_alloc SET max_id = max_id + 1000000 WHERE biz_tag = 'mine too' RETURNING biz_tag;
UPDATE t_sequence SET current_val = current_val + 1000000 WHERE pk_seq_name = 'mine' RETURNING pk_seq_name;
DROP TABLE leaf_alloc, t_sequence;
DROP FUNCTION outcome, outcomes;
