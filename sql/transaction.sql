-- Ids and segments under transactions, savepoints and parallel queries.

-- Everything made and used in one transaction, which is rolled back.
\a \t
\set live_slots '(SELECT sequence, ''generator'' AS kind FROM uid_internal.uid_live_generators() UNION ALL SELECT sequence, ''segment'' FROM uid_internal.uid_live_segments()) s'
BEGIN;
CREATE EXTENSION uidgen;
SELECT uid_generator_create('bills');
SELECT segment_create('tickets', 7);
CREATE SEQUENCE plain;
CREATE TABLE bill (id bigint PRIMARY KEY DEFAULT uid_next(), other bigint DEFAULT uid_next('uid_generators.bills'),
  ticket bigint DEFAULT segment_next('tickets'), serial bigint DEFAULT segment_next('plain'::regclass));
INSERT INTO bill SELECT FROM generate_series(1, 2000);
SELECT count(DISTINCT id) AS ids, count(DISTINCT other) AS others, min(ticket), max(ticket), min(serial), max(serial) FROM bill;
SELECT max(id) AS above, max(other) AS above_other FROM bill \gset
ROLLBACK;
SELECT (SELECT count(*) FROM pg_namespace WHERE nspname IN ('uid_generators', 'uid_segments')) AS schemas,
       (SELECT count(*) FROM pg_class WHERE relname IN ('bills', 'tickets', 'plain', 'uid_default')) AS sequences;

-- The same again: it works, nothing is left over, and ids go on above.
CREATE EXTENSION uidgen;
SELECT (SELECT count(*) FROM :live_slots) AS slots, (SELECT count(*) FROM uid_segment) AS segments, generator, builtin
  FROM uid_generator;
DROP EXTENSION uidgen;
BEGIN;
CREATE EXTENSION uidgen;
SELECT uid_generator_create('bills');
SELECT segment_create('tickets', 7);
CREATE SEQUENCE plain;
CREATE TABLE bill (id bigint PRIMARY KEY DEFAULT uid_next(), other bigint DEFAULT uid_next('uid_generators.bills'),
  ticket bigint DEFAULT segment_next('tickets'), serial bigint DEFAULT segment_next('plain'::regclass));
INSERT INTO bill SELECT FROM generate_series(1, 2000);
COMMIT;
SELECT count(DISTINCT id) AS ids, count(DISTINCT other) AS others, min(ticket), max(ticket), min(serial), max(serial),
       min(id) > :above AS above, min(other) > :above_other AS above_other FROM bill;
INSERT INTO bill DEFAULT VALUES RETURNING ticket, serial;
SELECT kind, count(*) FROM :live_slots GROUP BY kind ORDER BY kind;
SELECT generator, builtin FROM uid_generator ORDER BY generator::text;
SELECT name, sequence FROM uid_segment;
\getenv source PG_ABS_SRCDIR
\i :source/test/rows_of.sql
SELECT rows_of('%', 2);
SELECT count(*) AS worker_rows, count(DISTINCT worker_id) AS worker_ids, count(DISTINCT generator) AS generators FROM worker_node;

-- A transaction that is rolled back has the row written, too, and others do not write it again.
SELECT uid_generator_create('later') IS NOT NULL AS made;
SELECT rows_of('uid_generators.later', 0);
BEGIN;
SELECT uid_next('uid_generators.later') > 0 AS positive;
ROLLBACK;
SELECT rows_of('uid_generators.later', 1);
SELECT uid_next('uid_generators.later') > 0 AS positive;
SELECT rows_of('uid_generators.later', 1);

-- A rollback leaves a gap, and repeats nothing.
CREATE TABLE seen (id bigint PRIMARY KEY, ticket bigint UNIQUE);
SELECT uid_next() AS id, segment_next('tickets') AS ticket \gset
BEGIN;
SELECT uid_next() AS rolled_back, segment_next('tickets') AS rolled_back_ticket \gset
ROLLBACK;
SELECT :rolled_back > :id AS id, uid_next() > :rolled_back AS above, :rolled_back_ticket - :ticket AS ticket,
       segment_next('tickets') - :ticket AS above_ticket;

-- Savepoints.
BEGIN;
INSERT INTO seen VALUES (uid_next(), segment_next('tickets'));
SAVEPOINT a;
SELECT uid_next() AS in_savepoint, segment_next('tickets') AS ticket_in_savepoint \gset
SAVEPOINT b;
INSERT INTO seen VALUES (uid_next(), segment_next('tickets'));
ROLLBACK TO b;
INSERT INTO seen VALUES (uid_next(), segment_next('tickets'));
ROLLBACK TO a;
SELECT uid_next() > :in_savepoint AS above, segment_next('tickets') - :ticket_in_savepoint AS above_ticket;
INSERT INTO seen VALUES (uid_next(), segment_next('tickets'));
COMMIT;
SELECT count(*) FROM seen;
-- First use inside a savepoint that is rolled back. The locks stay to the end of the transaction, so nobody alters or drops
-- what the session goes on with.
BEGIN;
SAVEPOINT a;
SELECT uid_next('uid_generators.bills') AS in_savepoint, segment_next('plain') AS plain_in_savepoint \gset
ROLLBACK TO a;
SELECT relation::regclass, mode FROM pg_locks WHERE pid = pg_backend_pid() AND locktype = 'relation'
   AND relation IN ('uid_generators.bills'::regclass, 'plain'::regclass) ORDER BY relation::regclass::text;
SELECT uid_next('uid_generators.bills') > :in_savepoint AS above, segment_next('plain') - :plain_in_savepoint AS above_plain;
COMMIT;
-- Things made inside a savepoint that is rolled back.
BEGIN;
SAVEPOINT a;
SELECT uid_generator_create('passing'), segment_create('passing');
SELECT uid_next('uid_generators.passing') > 0 AS positive, segment_next('passing');
ROLLBACK TO a;
SELECT segment_next('passing');
ROLLBACK TO a;
SELECT to_regclass('uid_generators.passing') IS NULL AS no_generator;
SELECT uid_generator_create('passing'), segment_create('passing', 30);
SELECT uid_next('uid_generators.passing') > 0 AS positive, segment_next('passing');
COMMIT;
SELECT segment_next('passing');
SELECT count(*) FROM :live_slots WHERE sequence::text LIKE '%passing';
SELECT uid_next('uid_generators.passing') AS id \gset
-- DROP in a savepoint that is rolled back, then in one that is not.
BEGIN;
SAVEPOINT a;
DROP SEQUENCE uid_generators.passing, uid_segments.passing;
SELECT count(*) FROM uid_generator WHERE generator::text LIKE '%passing';
ROLLBACK TO a;
SELECT segment_next('passing'), uid_next('uid_generators.passing') > :id AS above;
COMMIT;
SELECT segment_next('passing'), uid_next('uid_generators.passing') > :id AS above;
SELECT count(*) FROM :live_slots WHERE sequence::text LIKE '%passing';
DROP SEQUENCE uid_generators.passing, uid_segments.passing;
SELECT (SELECT count(*) FROM uid_generator WHERE generator::text ~ 'passing|^\d') AS generators,
       (SELECT count(*) FROM uid_segment WHERE name = 'passing' OR sequence::text ~ '^\d') AS segments,
       (SELECT count(*) FROM :live_slots WHERE sequence::text ~ 'passing|^\d') AS slots;
-- An error in a PL/pgSQL block.
DO $$
BEGIN
  FOR i IN 1 .. 20 LOOP
    BEGIN
      INSERT INTO seen VALUES (uid_next(), segment_next('tickets'));
      PERFORM 1 / (i % 2);
    EXCEPTION WHEN division_by_zero THEN
      INSERT INTO seen VALUES (uid_next(), segment_next('tickets'));
    END;
  END LOOP;
END
$$;
SELECT count(*) FROM seen;

-- A generator that was altered in the transaction takes no lease in it: a rollback would bring its page back.
BEGIN;
ALTER SEQUENCE uid_generators.bills CACHE 1;
SELECT uid_next('uid_generators.bills');
ROLLBACK;
SELECT uid_next('uid_generators.bills') AS before \gset
BEGIN;
ALTER SEQUENCE uid_generators.bills CACHE 1;
COMMIT;
SELECT uid_next('uid_generators.bills') > :before AS above;

-- READ ONLY, SERIALIZABLE, and both.
SELECT uid_next() AS id, segment_next('tickets') AS ticket \gset
BEGIN READ ONLY;
SELECT uid_next() > :id AS above, segment_next('tickets') - :ticket AS ticket;
SELECT uid_next('uid_generators.bills') > 0 AS positive, count(*) FROM unnest(uid_next_array(10));
COMMIT;
BEGIN ISOLATION LEVEL SERIALIZABLE;
SELECT uid_next() > :id AS above, segment_next('tickets') - :ticket AS ticket;
INSERT INTO seen SELECT uid_next(), NULL;
COMMIT;
BEGIN ISOLATION LEVEL SERIALIZABLE, READ ONLY, DEFERRABLE;
SELECT uid_next() > :id AS above, segment_next('tickets') - :ticket AS ticket;
SELECT pg_current_xact_id_if_assigned() IS NULL AS without_xid;
COMMIT;
-- A generator used for the first time in a READ ONLY transaction.
SELECT uid_generator_create('read_only') IS NOT NULL AS made;
BEGIN READ ONLY;
SELECT uid_next('uid_generators.read_only') > 0 AS positive;
COMMIT;
SELECT rows_of('uid_generators.read_only', 1);
-- Drawing needs no transaction id.
BEGIN;
SELECT count(DISTINCT uid_next()), count(DISTINCT segment_next('tickets')) FROM generate_series(1, 5000);
SELECT pg_current_xact_id_if_assigned() IS NULL AS without_xid;
COMMIT;

-- Parallel queries.
CREATE TABLE big AS SELECT i FROM generate_series(1, 20000) AS i;
ANALYZE big;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SET max_parallel_workers_per_gather = 2;
SET parallel_leader_participation = off;
\set ECHO none
CREATE FUNCTION workers_launched(query text) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
  line text;
BEGIN
  FOR line IN EXECUTE 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) ' || query LOOP
    IF line ~ 'Workers Launched: [1-9]' THEN
      RETURN true;
    END IF;
  END LOOP;
  RETURN false;
END
$$;
\set ECHO all
SELECT uid_next() AS id, segment_next('tickets') AS ticket \gset
SELECT workers_launched('CREATE TABLE from_workers AS SELECT uid_next() AS id, segment_next(''tickets'') AS ticket,
  uid_next(''uid_generators.bills'') AS other, segment_next(''plain''::regclass) AS serial FROM big');
SELECT count(*), count(DISTINCT id) AS ids, count(DISTINCT ticket) AS tickets, count(DISTINCT other) AS others,
       count(DISTINCT serial) AS serials, min(id) > :id AS above, min(ticket) > :ticket AS tickets_above FROM from_workers;
SELECT uid_next() > max(id) AS above, segment_next('tickets') > max(ticket) AS tickets_above FROM from_workers;
DROP TABLE from_workers;
-- Leader and workers side by side.
SET parallel_leader_participation = on;
SELECT workers_launched('CREATE TABLE from_all AS SELECT uid_next() AS id, segment_next(''tickets'') AS ticket FROM big');
SELECT count(*), count(DISTINCT id) AS ids, count(DISTINCT ticket) AS tickets FROM from_all;
DROP TABLE from_all;
-- Generators whose first use is in a worker: committed, and made in the open transaction.
SET parallel_leader_participation = off;
SELECT uid_generator_create('fresh'), segment_create('fresh');
SELECT workers_launched('CREATE TABLE from_fresh AS SELECT uid_next(''uid_generators.fresh'') AS id, segment_next(''fresh'') AS ticket FROM big');
SELECT count(*), count(DISTINCT id) AS ids, min(ticket), max(ticket) FROM from_fresh;
DROP TABLE from_fresh;
SELECT rows_of('uid_generators.fresh', 1);
BEGIN;
CREATE SEQUENCE of_this_transaction;
SELECT workers_launched('SELECT segment_next(''of_this_transaction''::regclass) FROM big');
SELECT segment_next('of_this_transaction'::regclass);
COMMIT;
SELECT segment_next('of_this_transaction'::regclass);
BEGIN;
SELECT uid_generator_create('of_this_one_too');
SELECT uid_next('uid_generators.of_this_one_too') AS id \gset
SELECT workers_launched('CREATE TABLE from_new AS SELECT uid_next(''uid_generators.of_this_one_too'') AS id FROM big');
SELECT count(DISTINCT id) AS ids, min(id) > :id AS above FROM from_new;
ROLLBACK;
SELECT count(*) FROM :live_slots WHERE sequence::text ~ 'of_this_one_too|^\d';
-- A sequence that has a new file, whose row in pg_class the transaction has written: refused only if it gave the file.
ALTER SEQUENCE uid_generators.fresh RESTART;
SELECT uid_next('uid_generators.fresh') > 0 AS positive;
BEGIN;
GRANT USAGE ON SEQUENCE uid_generators.fresh TO PUBLIC;
SELECT workers_launched('SELECT uid_next(''uid_generators.fresh'') FROM big');
ALTER SEQUENCE uid_generators.fresh RESTART;
SELECT workers_launched('SELECT uid_next(''uid_generators.fresh'') FROM big');
ROLLBACK;
RESET ALL;

-- However a sequence goes away, it takes its row along.
SELECT segment_create('one'), segment_create('two'), segment_create('three'), uid_generator_create('four');
DROP SEQUENCE uid_segments.one;
CREATE TABLE owner (id bigint);
ALTER SEQUENCE uid_segments.two SET SCHEMA public;
ALTER SEQUENCE public.two OWNED BY owner.id;
SELECT segment_next('two');
DROP TABLE owner;
CREATE SCHEMA of_others;
ALTER SEQUENCE uid_segments.three SET SCHEMA of_others;
ALTER SEQUENCE uid_generators.four SET SCHEMA of_others;
SELECT segment_next('of_others.three'), uid_next('of_others.four') > 0 AS positive;
SET client_min_messages = warning;
DROP SCHEMA of_others CASCADE;
SET session_replication_role = replica;
SELECT segment_create('replica');
DROP SEQUENCE uid_segments.replica;
RESET session_replication_role;
RESET client_min_messages;
SELECT name FROM uid_segment WHERE name IN ('one', 'two', 'three', 'replica')
 UNION ALL SELECT generator::text FROM uid_generator WHERE generator::text ~ 'four|^\d';

-- The extension made anew in the running server: ids go on above.
SELECT uid_next() AS id, uid_next('uid_generators.bills') AS other \gset
SET client_min_messages = warning;
DROP FUNCTION rows_of(text, bigint);
DROP EXTENSION uidgen CASCADE;
RESET client_min_messages;
\set VERBOSITY terse
SELECT uid_next();
\set VERBOSITY default
CREATE EXTENSION uidgen;
SELECT uid_next() > :id AS above, uid_next() > :other AS above_other, segment_create('tickets', 7);
SELECT segment_next('tickets');
SELECT uid_next() AS id \gset
BEGIN;
DROP EXTENSION uidgen CASCADE;
CREATE EXTENSION uidgen;
SELECT uid_next() > :id AS above;
SELECT uid_next() AS id \gset
COMMIT;
SELECT uid_next() > :id AS above;
SELECT count(*) FROM :live_slots;

DROP TABLE bill, seen, big;
DROP SEQUENCE plain, of_this_transaction;
DROP FUNCTION workers_launched(text);
DROP EXTENSION uidgen CASCADE;
