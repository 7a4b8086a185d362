-- Concealed ids: keys, versions, privileges, and the places where the functions are used. expected/conceal_1.out is for a
-- build without OpenSSL.
CREATE EXTENSION uidgen;
CREATE FUNCTION outcome_of_first() RETURNS text LANGUAGE plpgsql AS $$
BEGIN
  PERFORM uid_key_create('first');
  RETURN uid_reveal(uid_conceal(5, 'first'), 'first');
EXCEPTION WHEN feature_not_supported THEN
  RETURN SQLERRM;
END
$$;
SELECT outcome_of_first() AS outcome \gset
SELECT :'outcome' = '5' AS can_conceal \gset
\if :can_conceal
\else
  DROP FUNCTION outcome_of_first();
  DROP EXTENSION uidgen;
  \echo 'skipped:' :outcome
  \quit
\endif
DROP FUNCTION outcome_of_first();
DROP SEQUENCE uid_keys.first;
CREATE ROLE uidgen_conceals;
CREATE ROLE uidgen_other;
GRANT CREATE ON SCHEMA public TO uidgen_conceals;
\getenv source PG_ABS_SRCDIR
\i :source/test/outcome.sql
\pset format unaligned
\pset tuples_only on

-- A key whose secret is known, 00 01 ... 1f: what FF1 of the npm package @noble/ciphers makes of these ids.
CREATE SEQUENCE uid_keys.known63;
CREATE SEQUENCE uid_keys.known20;
SECURITY LABEL FOR uidgen ON SEQUENCE uid_keys.known63 IS 'key id=63';
SECURITY LABEL FOR uidgen ON SEQUENCE uid_keys.known20 IS 'key id=20';
SELECT uid_key_create('any');
SELECT left(secrets, -64) AS warning FROM uid_secrets.uid_key \gset
SELECT octet_length(:'warning');
DROP SEQUENCE uid_keys.any;
INSERT INTO uid_secrets.uid_key (id, width, secrets)
SELECT k.id, k.width, :'warning' || string_agg(lpad(to_hex(i), 2, '0'), '' ORDER BY i)
  FROM (VALUES (63, 63), (20, 20)) AS k (id, width), generate_series(0, 31) AS i
 GROUP BY 1, 2;
SELECT uid_conceal(0, 'known63') = 8644528584386371073, uid_conceal(1, 'known63') = 5176940450318186190,
       uid_conceal(117443343637549056, 'known63') = 7655288325273801517, uid_conceal(9223372036854775807, 'known63') = 4244600280903827775;
SELECT uid_conceal(0, 'known20') = 612523, uid_conceal(1, 'known20') = 855792, uid_conceal(1048575, 'known20') = 219662;
SELECT uid_reveal(8644528584386371073, 'known63'), uid_reveal(4244600280903827775, 'known63'), uid_reveal(219662, 'known20');

-- Keys of the server's own. Each has another secret.
SELECT uid_key_create('orders'), uid_key_create('web', 53, 4), uid_key_create('small', width => 20);
SELECT name, sequence, width, version_bits, versions, created = now(), rotated, largest_id FROM uid_key_config ORDER BY 1;
SELECT count(DISTINCT secrets), bool_and(secrets LIKE :'warning' || repeat('_', 64)) FROM uid_secrets.uid_key WHERE id NOT IN (63, 20);
SELECT bool_and(uid_reveal(uid_conceal(id, 'orders'), 'orders') = id) FROM unnest(uid_next_array(1000) || '{0, 9223372036854775807}') AS id;
SELECT count(DISTINCT uid_conceal(id, 'small')), min(uid_conceal(id, 'small')) >= 0, max(uid_conceal(id, 'small')) < 2^20 FROM generate_series(0, 20000) AS id;
SELECT bool_and(uid_conceal(id, 'web') BETWEEN 0 AND 2^49 - 1) FROM generate_series(0, 1000) AS id;
SELECT uid_conceal(NULL, 'orders') IS NULL, uid_conceal(5, NULL) IS NULL, uid_reveal(NULL, 'orders') IS NULL;

-- What cannot be.
SELECT * FROM outcomes('SELECT uid_%s', $$conceal(-1, 'orders')$$, $$reveal(-1, 'orders')$$, $$conceal(562949953421312, 'web')$$,
  $$reveal(9007199254740992, 'web')$$, $$reveal(562949953421312, 'web')$$, $$conceal(1048576, 'small')$$, $$reveal(1048576, 'small')$$,
  $$conceal(5, 'none')$$, $$conceal(5, '')$$, $$reveal(5, 'uid_keys.orders')$$, $$conceal(5, repeat('x', 100000))$$,
  $$conceal(5, repeat('x', 63))$$, $$key_rotate('none')$$, 'key_rotate(NULL)');
SELECT * FROM outcomes('SELECT uid_key_create(%s)', 'NULL', $$''$$, $$repeat('x', 64)$$, $$'orders'$$, $$'a', 19$$, $$'a', 64$$,
  $$'a', NULL$$, $$'a', 29, 10$$, $$'a', 63, 11$$, $$'a', 63, -1$$, $$'a', 63, NULL$$);
SELECT count(*) FROM pg_class WHERE relnamespace = 'uid_keys'::regnamespace; -- nothing is left of those that failed
CREATE SEQUENCE uid_keys.bare;
SELECT outcome('SELECT uid_conceal(5, ''bare'')'), outcome('SELECT uid_key_rotate(''bare'')');
DROP SEQUENCE uid_keys.bare;
SELECT uid_key_create('Odd "name"; --', 63, 1)::text, uid_reveal(uid_conceal(7, 'Odd "name"; --'), 'Odd "name"; --'), uid_key_rotate('Odd "name"; --');
DROP SEQUENCE uid_keys."Odd ""name""; --";

-- A secret does not change, and no message shows it.
CREATE SEQUENCE uid_keys.bad;
SELECT count(*), outcome FROM (SELECT outcome(format('INSERT INTO uid_secrets.uid_key (id, secrets) VALUES (9, %L)', secrets))
  FROM (VALUES (''), (:'warning'), (repeat('5e', 32)), ('x' || :'warning' || repeat('5e', 32)), (:'warning' || repeat('5E', 32)),
               (:'warning' || repeat('5e', 64)), (:'warning' || repeat('5e', 31) || '5'), (:'warning' || repeat('5é', 32))) AS v (secrets)) AS o
 GROUP BY outcome;
SELECT regexp_replace(outcome('INSERT INTO uid_secrets.uid_key SELECT * FROM uid_secrets.uid_key WHERE id = 63'), '=\(\d+\)', '=(N)');
SELECT * FROM outcomes('%s', 'INSERT INTO uid_secrets.uid_key (id, width, secrets) SELECT id, NULL, secrets FROM uid_secrets.uid_key WHERE id = 63',
  'UPDATE uid_secrets.uid_key SET secrets = translate(secrets, ''0123456789'', ''1234567890'')', 'UPDATE uid_secrets.uid_key SET width = 21',
  'UPDATE uid_secrets.uid_key SET versions = 0',
  'UPDATE uid_secrets.uid_key SET versions = versions + 1, secrets = secrets || ''00'' WHERE id = (SELECT id FROM uid_internal.keys WHERE name = ''web'')');
DROP SEQUENCE uid_keys.bad;

-- Privileges: USAGE on the key's sequence. No role reads the secrets.
GRANT USAGE ON SEQUENCE uid_keys.web TO uidgen_conceals;
SET ROLE uidgen_conceals;
SELECT uid_reveal(uid_conceal(5, 'web'), 'web');
SELECT * FROM outcomes('%s', $$SELECT uid_conceal(5, 'orders')$$, $$SELECT uid_reveal(5, 'orders')$$,
  'SELECT count(secrets) FROM uid_secrets.uid_key', $$SELECT count(*) FROM uid_key_config WHERE name = 'orders'$$,
  $$INSERT INTO uid_secrets.uid_key (id) VALUES (5) RETURNING secrets$$, 'UPDATE uid_secrets.uid_key SET versions = 9',
  $$SELECT uid_key_create('mine')$$, $$SELECT uid_key_rotate('web')$$, 'DROP SEQUENCE uid_keys.web');
-- A session that has used a key may not go on after REVOKE, nor as another role.
RESET ROLE;
REVOKE USAGE ON SEQUENCE uid_keys.web FROM uidgen_conceals;
SET ROLE uidgen_conceals;
SELECT outcome('SELECT uid_conceal(5, ''web'')');
RESET ROLE;
GRANT CREATE ON SCHEMA uid_keys TO uidgen_conceals;
SET ROLE uidgen_conceals;
SELECT uid_key_create('mine', 40, 2), uid_reveal(uid_conceal(5, 'mine'), 'mine'), uid_key_rotate('mine');
SELECT name, versions FROM uid_key_config WHERE name = 'mine';
RESET ROLE;

-- Versions. A key without version bits has one.
CREATE TEMP TABLE former AS SELECT id, uid_conceal(id, 'web') AS web FROM generate_series(1, 100) AS id;
PREPARE newest(bigint) AS SELECT uid_conceal($1, 'web');
SET plan_cache_mode = force_generic_plan;
CREATE TEMP TABLE prepared AS EXECUTE newest(1);
SELECT uid_key_rotate('web'), outcome('SELECT uid_key_rotate(''orders'')');
SELECT name, versions, rotated = now() FROM uid_key_config WHERE name IN ('orders', 'web') ORDER BY 1;
CREATE TEMP TABLE rotated AS EXECUTE newest(1);
SELECT (SELECT uid_conceal FROM prepared) = f.web, (SELECT uid_conceal FROM rotated) = uid_conceal(1, 'web') FROM former AS f WHERE id = 1;
RESET plan_cache_mode;
SELECT bool_and(web >> 49 = 0 AND uid_conceal(id, 'web') >> 49 = 1), bool_and(uid_reveal(web, 'web') = id),
       bool_and(uid_reveal(uid_conceal(id, 'web'), 'web') = id) FROM former;
SELECT outcome('SELECT uid_key_rotate(''mine'')'), outcome('SELECT uid_key_rotate(''mine'')'), outcome('SELECT uid_key_rotate(''mine'')');
-- No two ids collide, across a rotation either.
SELECT uid_key_create('bits', 21, 1);
CREATE TEMP TABLE codes AS SELECT uid_conceal(id, 'bits') AS code FROM generate_series(1, 20000) AS id;
SELECT uid_key_rotate('bits');
INSERT INTO codes SELECT uid_conceal(id, 'bits') FROM generate_series(20001, 40000) AS id;
SELECT count(DISTINCT code) FROM codes;
-- A rotation that is rolled back.
BEGIN;
SELECT uid_key_rotate('web');
SELECT uid_conceal(5, 'web') AS of_third, uid_conceal(5, 'web') >> 49 = 2 AS is_third \gset
SELECT :'is_third', uid_reveal(:of_third, 'web');
SAVEPOINT s;
SELECT uid_key_rotate('web'), uid_conceal(5, 'web') >> 49;
ROLLBACK TO s;
SELECT uid_conceal(5, 'web') = :of_third;
ROLLBACK;
SELECT uid_conceal(5, 'web') >> 49, regexp_replace(outcome('SELECT uid_reveal(' || :of_third || ', ''web'')'), 'value \d+', 'value N');
-- What it concealed is another id in the next version of that number.
SELECT uid_key_create('shown', 63, 1);
BEGIN;
SELECT uid_key_rotate('shown'), uid_conceal(5, 'shown') AS shown \gset
SELECT uid_reveal(:shown, 'shown');
ROLLBACK;
SELECT uid_key_rotate('shown'), uid_reveal(:shown, 'shown') = 5;
DROP SEQUENCE uid_keys.shown;

-- A view of a role that may use the key. In a generated column or an index the functions are refused: a restore computes
-- these before it has the key.
GRANT USAGE ON SEQUENCE uid_keys.web TO uidgen_conceals;
SET ROLE uidgen_conceals;
SELECT outcome('CREATE TABLE bad (id bigint, code bigint GENERATED ALWAYS AS (uid_conceal(id, ''web'')) STORED)');
CREATE TABLE things (id bigint PRIMARY KEY);
SELECT outcome('CREATE INDEX ON things (uid_conceal(id, ''web''))'), outcome('CREATE INDEX ON things (uid_reveal(id, ''web''))');
CREATE VIEW public_things AS SELECT uid_conceal(id, 'web') AS code FROM things;
INSERT INTO things SELECT generate_series(1, 5000);
ANALYZE things;
SET enable_seqscan = off;
-- The way back needs no index of its own.
EXPLAIN (COSTS OFF) SELECT id FROM things WHERE id = uid_reveal(5, 'web');
SELECT id FROM things WHERE id = uid_reveal((SELECT code FROM public_things OFFSET 76 LIMIT 1), 'web');
RESET enable_seqscan;
-- A view does not lend its owner's rights to functions.
GRANT SELECT ON public_things TO uidgen_other;
SET ROLE uidgen_other;
SELECT outcome('SELECT max(code) FROM public_things');
RESET ROLE;
-- In parallel, also with a version of the open transaction.
CREATE TABLE many AS SELECT id FROM generate_series(1, 5000) AS id;
SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0;
SET max_parallel_workers_per_gather = 2; SET parallel_leader_participation = off;
EXPLAIN (COSTS OFF) SELECT count(*) FROM many WHERE uid_reveal(uid_conceal(id, 'web'), 'web') = id;
SELECT count(DISTINCT uid_conceal(id, 'web')) FROM many WHERE uid_reveal(uid_conceal(id, 'web'), 'web') = id;
BEGIN;
SELECT uid_key_rotate('web');
SELECT count(*) FROM many WHERE uid_conceal(id, 'web') >> 49 = 2;
ROLLBACK;
RESET ALL;

-- Rename, drop, and another key of the same name.
-- A key has a secret whatever session_replication_role is.
SET session_replication_role = replica;
SELECT uid_key_create('replica');
SELECT uid_reveal(uid_conceal(5, 'replica'), 'replica');
RESET session_replication_role;
DROP SEQUENCE uid_keys.replica;
ALTER SEQUENCE uid_keys.web RENAME TO www;
SELECT outcome('SELECT uid_conceal(5, ''web'')'), uid_reveal((SELECT web FROM former WHERE id = 5), 'www');
DROP SEQUENCE uid_keys.www;
SELECT outcome('SELECT uid_conceal(5, ''www'')'), outcome('SELECT max(code) FROM public_things');
EXECUTE newest(5);
SELECT uid_key_create('www', 53, 4);
SELECT uid_reveal((SELECT web FROM former WHERE id = 5), 'www') = 5;
SELECT count(*) FROM uid_secrets.uid_key k WHERE NOT EXISTS (SELECT FROM uid_internal.keys n WHERE n.id = k.id);
-- In one transaction.
BEGIN;
SELECT uid_key_create('brief'), uid_reveal(uid_conceal(5, 'brief'), 'brief');
ROLLBACK;
SELECT outcome('SELECT uid_conceal(5, ''brief'')');
-- A search_path with functions and operators of another role.
CREATE SCHEMA hostile AUTHORIZATION uidgen_conceals;
SET ROLE uidgen_conceals;
CREATE FUNCTION hostile.sha256(bytea) RETURNS bytea LANGUAGE sql AS 'SELECT ''\x00''::bytea';
CREATE FUNCTION hostile.gen_random_uuid() RETURNS uuid LANGUAGE sql AS 'SELECT ''00000000-0000-0000-0000-000000000000''::uuid';
RESET ROLE;
SET search_path = hostile, pg_catalog, public;
SELECT uid_key_create('calm', 63, 1), uid_key_rotate('calm'), uid_reveal(uid_conceal(5, 'calm'), 'calm');
RESET search_path;
SELECT right(secrets, 64) <> left(right(secrets, 128), 64) FROM uid_secrets.uid_key WHERE id = (SELECT id FROM uid_internal.keys WHERE name = 'calm');

-- Many keys, more than a session keeps; and all in another session.
SELECT count(uid_key_create('key' || i, 30)) FROM generate_series(1, 300) AS i;
SELECT count(*) FROM generate_series(1, 300) AS i WHERE uid_reveal(uid_conceal(i, 'key' || i), 'key' || i) = i;
CREATE TABLE kept AS SELECT i, uid_conceal(i, 'key' || i) AS code FROM generate_series(1, 300) AS i;
\c -
\pset format unaligned
\pset tuples_only on
SELECT count(*) FROM kept WHERE uid_conceal(i, 'key' || i) = code;
-- A message with the row shows the warning before its secrets.
SELECT regexp_replace(outcome('INSERT INTO uid_secrets.uid_key DEFAULT VALUES'), 'null, 63.*', '');
-- Rows that a superuser has written with the triggers turned off.
SELECT uid_key_create('wrong', 30);
ALTER TABLE uid_secrets.uid_key DISABLE TRIGGER uid_key_changing;
CREATE FUNCTION with_row(change text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
  EXECUTE format('UPDATE uid_secrets.uid_key SET %s WHERE id = (SELECT id FROM uid_internal.keys WHERE name = ''wrong'')', change);
  RETURN outcome('SELECT uid_conceal(1, ''wrong'')');
END
$$;
SELECT change, with_row(change)
  FROM (VALUES ('secrets = NULL'), ('secrets = repeat(''5'', 63)'), ('secrets = repeat(''5e'', 32), width = 0'), ('width = 30, version_bits = -5'),
               ('version_bits = 0, versions = -1'), ('versions = 2, secrets = repeat(''5e'', 64)'), ('versions = 1')) AS v (change);
ALTER TABLE uid_secrets.uid_key ENABLE ALWAYS TRIGGER uid_key_changing;
DROP TABLE many, kept;
DROP VIEW public_things;
DROP TABLE things;
DROP SCHEMA hostile CASCADE;
DROP FUNCTION outcome, outcomes, with_row;
DROP SEQUENCE uid_keys.mine;
DO $$ BEGIN EXECUTE (SELECT string_agg(format('DROP SEQUENCE %s', sequence), '; ') FROM uid_key_config); END $$;
SELECT count(*) FROM uid_secrets.uid_key;
DROP EXTENSION uidgen;
-- The schema of the extension, also renamed, is in no search_path.
CREATE SCHEMA home;
CREATE EXTENSION uidgen SCHEMA home;
SELECT home.uid_key_create('k', 53, 8), home.uid_reveal(home.uid_conceal(5, 'k'), 'k'), home.uid_key_rotate('k');
ALTER SCHEMA home RENAME TO "another Home";
SELECT "another Home".uid_reveal("another Home".uid_conceal(5, 'k'), 'k'), "another Home".uid_conceal(5, 'k') >> 45, "another Home".uid_key_rotate('k');
-- A key is not dropped by the way.
DROP EXTENSION uidgen;
DROP SEQUENCE uid_keys.k;
DROP EXTENSION uidgen;
DROP SCHEMA "another Home";
DROP OWNED BY uidgen_conceals;
DROP ROLE uidgen_conceals, uidgen_other;
