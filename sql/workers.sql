-- The first draw of all comes from a parallel worker, in the transaction that makes the extension, a generator, or only
-- grants a privilege. A worker knows nothing of what its leader did to the sequence, and must not take this for an ALTER.
\a \t
\set QUIET on
SET client_min_messages = warning;
DROP EXTENSION IF EXISTS uidgen CASCADE;
CREATE TABLE many AS SELECT i FROM generate_series(1, 20000) AS i;
SET min_parallel_table_scan_size = 0;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET parallel_leader_participation = off;

BEGIN;
CREATE EXTENSION uidgen;
SELECT count(DISTINCT id) FROM (SELECT uid_next() AS id FROM many OFFSET 0) AS drawn;
SELECT uid_generator_create('parallel');
SELECT count(DISTINCT id) FROM (SELECT uid_next('uid_generators.parallel') AS id FROM many OFFSET 0) AS drawn;
SELECT segment_create('parallel');
SELECT count(DISTINCT v), min(v), max(v) FROM (SELECT segment_next('parallel') AS v FROM many OFFSET 0) AS drawn;
COMMIT;

-- What only workers have drawn counts, if the creation is rolled back.
BEGIN;
SELECT uid_generator_create('undone', 'js53', worker_policy => 'static', worker_number => 3);
SELECT max(id) AS last FROM (SELECT uid_next('uid_generators.undone') AS id FROM many OFFSET 0) AS drawn \gset
ROLLBACK;
SELECT uid_generator_create('undone', 'js53', worker_policy => 'static', worker_number => 3);
SELECT uid_next('uid_generators.undone') > :last AS is_above;

SELECT uid_generator_create('granted');
BEGIN;
GRANT USAGE ON SEQUENCE uid_generators.granted TO PUBLIC;
SELECT count(DISTINCT id) FROM (SELECT uid_next('uid_generators.granted') AS id FROM many OFFSET 0) AS drawn;
COMMIT;

-- The same of one that was altered before, and is not drawn from since.
ALTER SEQUENCE uid_generators.granted CACHE 1;
BEGIN;
GRANT USAGE ON SEQUENCE uid_generators.granted TO PUBLIC;
SELECT count(DISTINCT id) FROM (SELECT uid_next('uid_generators.granted') AS id FROM many OFFSET 0) AS drawn;
COMMIT;

-- A new name is no new file, although it takes the lock that a new file needs.
SELECT uid_next('uid_generators.granted') > 0 AS drawn;
BEGIN;
ALTER SEQUENCE uid_generators.granted RENAME TO renamed;
SELECT count(DISTINCT id) FROM (SELECT uid_next('uid_generators.renamed') AS id FROM many OFFSET 0) AS drawn;
-- Then a new file.
ALTER SEQUENCE uid_generators.renamed CACHE 2;
\set VERBOSITY terse
SELECT count(DISTINCT id) FROM (SELECT uid_next('uid_generators.renamed') AS id FROM many OFFSET 0) AS drawn;
ROLLBACK;

-- What is an ALTER is refused there, too.
SELECT uid_generator_create('altered');
BEGIN;
ALTER SEQUENCE uid_generators.altered CACHE 2;
SELECT count(DISTINCT id) FROM (SELECT uid_next('uid_generators.altered') AS id FROM many OFFSET 0) AS drawn;
ROLLBACK;
SELECT count(DISTINCT id) FROM (SELECT uid_next('uid_generators.altered') AS id FROM many OFFSET 0) AS drawn;

SELECT segment_drop('parallel');
DROP SEQUENCE uid_generators.parallel, uid_generators.granted, uid_generators.altered, uid_generators.undone;

-- So is a label that may be rolled back, also if the transaction has written another row of the sequence.
CREATE SEQUENCE uid_generators.labelled INCREMENT 9223372036854775807 MINVALUE 1 NO CYCLE;
SELECT setval('uid_generators.labelled', 1);
BEGIN;
GRANT USAGE ON SEQUENCE uid_generators.labelled TO PUBLIC;
SELECT uid_generator_create('labelled', 'js53');
SELECT count(DISTINCT id) FROM (SELECT uid_next('uid_generators.labelled') AS id FROM many OFFSET 0) AS drawn;
ROLLBACK;
SELECT uid_next('uid_generators.labelled');
DROP SEQUENCE uid_generators.labelled;

-- So is a default that the transaction has chosen, by a label or by the function: the same or another one.
DROP EXTENSION uidgen;
CREATE EXTENSION uidgen;
BEGIN;
CREATE SEQUENCE uid_generators.chosen INCREMENT 9223372036854775807 MINVALUE 1 NO CYCLE;
DO $$
BEGIN
  EXECUTE (SELECT format('SECURITY LABEL FOR uidgen ON SEQUENCE uid_generators.chosen IS %L', label) FROM pg_seclabel WHERE objoid = 'uid_generators.uid_default'::regclass);
END
$$;
SELECT count(DISTINCT id) FROM (SELECT uid_next() AS id FROM many OFFSET 0) AS drawn;
ROLLBACK;
BEGIN;
SELECT uid_default_set(uid_generator_create('chosen'));
SELECT count(DISTINCT id) FROM (SELECT uid_next() AS id FROM many OFFSET 0) AS drawn;
ROLLBACK;
SELECT uid_default_set(uid_generator_create('chosen'));
BEGIN;
SELECT uid_default_set('uid_generators.uid_default');
SELECT count(DISTINCT id) FROM (SELECT uid_next() AS id FROM many OFFSET 0) AS drawn;
ROLLBACK;
SELECT count(DISTINCT id) FROM (SELECT uid_next() AS id FROM many OFFSET 0) AS drawn;

SELECT uid_default_set('uid_generators.uid_default');
DROP TABLE many;
DROP SEQUENCE uid_generators.chosen;
