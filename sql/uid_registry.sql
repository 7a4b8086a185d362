-- The script that makes a registry, in a database that is as hostile as its owner's settings allow, by a role without
-- superuser; then its functions with made-up members, at a place and time that a table of the test says.
\set ECHO none
\a \t
\getenv source PG_ABS_SRCDIR
SET client_min_messages = warning;
CREATE ROLE uidgen_registry_dba LOGIN CREATEROLE;
CREATE ROLE uidgen_registry_member LOGIN;
CREATE ROLE "uidgen stranger" LOGIN;
CREATE DATABASE uidgen_registry OWNER uidgen_registry_dba ENCODING 'UTF8' TEMPLATE template0;
ALTER DATABASE uidgen_registry SET search_path = hostile, public, pg_catalog;
ALTER DATABASE uidgen_registry SET default_transaction_isolation = 'serializable';
ALTER DATABASE uidgen_registry SET default_transaction_read_only = on;
ALTER DATABASE uidgen_registry SET default_transaction_deferrable = on;
ALTER DATABASE uidgen_registry SET synchronous_commit = off;
ALTER DATABASE uidgen_registry SET client_min_messages = error;
ALTER DATABASE uidgen_registry SET statement_timeout = '1min';
ALTER DATABASE uidgen_registry SET lock_timeout = '1min';
SELECT current_setting('server_version_num')::int < 190000 AS other_strings \gset
\if :other_strings
ALTER DATABASE uidgen_registry SET standard_conforming_strings = off;
\endif
ALTER DATABASE uidgen_registry SET transform_null_equals = on;
ALTER DATABASE uidgen_registry SET plpgsql.variable_conflict = use_column;
ALTER DATABASE uidgen_registry SET timezone = 'Asia/Kathmandu';
ALTER DATABASE uidgen_registry SET datestyle = 'German';
ALTER DATABASE uidgen_registry SET intervalstyle = 'sql_standard';
ALTER DATABASE uidgen_registry SET quote_all_identifiers = on;
\c uidgen_registry
SET default_transaction_read_only = off;
SET client_min_messages = warning;
CREATE SCHEMA hostile AUTHORIZATION "uidgen stranger";
GRANT USAGE ON SCHEMA hostile TO PUBLIC;
SET ROLE "uidgen stranger";
DO $$
DECLARE f record;
BEGIN
  CREATE FUNCTION hostile.refuse(bigint, bigint) RETURNS boolean LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION ''hijacked''; END';
  CREATE OPERATOR hostile.= (LEFTARG = bigint, RIGHTARG = bigint, FUNCTION = hostile.refuse);
  CREATE OPERATOR hostile.<= (LEFTARG = bigint, RIGHTARG = bigint, FUNCTION = hostile.refuse);
  CREATE OPERATOR hostile.> (LEFTARG = bigint, RIGHTARG = bigint, FUNCTION = hostile.refuse);
  FOR f IN SELECT p.proname, pg_get_function_identity_arguments(p.oid) AS arguments, pg_get_function_result(p.oid) AS result
             FROM pg_proc AS p JOIN pg_language AS l ON l.oid = p.prolang
            WHERE p.pronamespace = 'pg_catalog'::regnamespace AND p.prokind = 'f' AND p.provariadic = 0
              AND p.proname IN ('clock_timestamp', 'random', 'md5', 'gen_random_uuid', 'pg_is_in_recovery', 'set_config', 'floor',
                                'current_setting', 'jsonb_array_length', 'hashtextextended', 'session_user', 'length', 'div', 'ceil',
                                'pg_try_advisory_xact_lock', 'pg_current_wal_lsn', 'pg_postmaster_start_time', 'current_database') LOOP
    EXECUTE format('CREATE FUNCTION hostile.%I(%s) RETURNS %s LANGUAGE plpgsql AS %L', f.proname, f.arguments, f.result,
                   'BEGIN RAISE EXCEPTION ''hijacked''; END');
  END LOOP;
END $$;
RESET ROLE;
ALTER DEFAULT PRIVILEGES FOR ROLE uidgen_registry_dba GRANT ALL ON TABLES TO PUBLIC, "uidgen stranger";
ALTER DEFAULT PRIVILEGES FOR ROLE uidgen_registry_dba GRANT ALL ON FUNCTIONS TO "uidgen stranger";
ALTER DEFAULT PRIVILEGES FOR ROLE uidgen_registry_dba GRANT ALL ON SCHEMAS TO PUBLIC, "uidgen stranger";
ALTER DEFAULT PRIVILEGES FOR ROLE uidgen_registry_dba REVOKE ALL ON TABLES FROM uidgen_registry_dba;
\c uidgen_registry
SET SESSION AUTHORIZATION uidgen_registry_dba;
\set keeps failovers
\o /dev/null
\set QUIET on
\i :source/src/registry/uidgen_registry.sql
\o
\set ON_ERROR_STOP off
\set SHOW_CONTEXT never
SET quote_all_identifiers = off;
\set ECHO all
-- Who may do what: the owner all, members three functions, monitoring the view.
SELECT CASE WHEN c.relkind IS NULL THEN 'schema' ELSE c.relname END, a.grantee::regrole, string_agg(a.privilege_type, ' ' ORDER BY a.privilege_type)
  FROM pg_namespace AS n CROSS JOIN LATERAL (SELECT n.nspacl, NULL::name, NULL::"char" UNION ALL
       SELECT c.relacl, c.relname, c.relkind FROM pg_class AS c WHERE c.relnamespace = n.oid AND c.relkind IN ('r', 'v')) AS c (acl, relname, relkind)
 CROSS JOIN LATERAL aclexplode(c.acl) AS a
 WHERE n.nspname = 'uid_registry' AND a.grantee <> n.nspowner GROUP BY 1, 2 ORDER BY 1, 2;
SELECT p.proname, a.grantee::regrole FROM pg_proc AS p LEFT JOIN LATERAL aclexplode(p.proacl) AS a ON a.grantee <> p.proowner
 WHERE p.pronamespace = 'uid_registry'::regnamespace AND (a.grantee IS NOT NULL OR p.proacl IS NULL) ORDER BY 1;
SELECT p.proname, p.prosecdef, p.proconfig FROM pg_proc AS p WHERE p.pronamespace = 'uid_registry'::regnamespace AND p.proconfig IS NOT NULL ORDER BY 1;
SELECT fleet > 0, keeps, longest, term > 1e15, larger_term, fence, reason, fenced_until, closed_segments, lost_at FROM uid_registry.status;
-- Nothing of it has called a function or an operator of the stranger's. A call needs another isolation level.
SELECT * FROM uid_registry.grant(0, 0, '[]');
\set ECHO none
SET default_transaction_isolation = 'read committed';
SET default_transaction_read_only = off;
SET standard_conforming_strings = on;
GRANT uid_member TO uidgen_registry_member;
\set ECHO all
-- In a transaction, to see what a call has set in it.
BEGIN;
SELECT count(*) FROM uid_registry.grant(0, 0, '[]');
SET LOCAL search_path = pg_catalog;
SELECT current_setting('synchronous_commit'), current_setting('client_min_messages'), current_setting('lock_timeout');
COMMIT;
SET search_path = public, pg_catalog;
SELECT system_identifier::text = split_part(h.place, '/', 1), h.timeline, h.started = pg_postmaster_start_time() FROM pg_control_system(), uid_registry.here() AS h;
\set ECHO none
SET client_min_messages = notice;
RESET intervalstyle;
\i :source/test/outcome.sql
\set ECHO none
-- Where and when it runs. The owner of the functions may replace them.
CREATE TABLE world (now_us bigint, place text, timeline text, started timestamptz);
INSERT INTO world SELECT 1000000000, place, timeline, started FROM uid_registry.registry;
CREATE OR REPLACE FUNCTION uid_registry.clock() RETURNS bigint LANGUAGE sql VOLATILE AS 'SELECT now_us FROM public.world';
CREATE OR REPLACE FUNCTION uid_registry.here(OUT place text, OUT timeline text, OUT started timestamptz) LANGUAGE sql VOLATILE AS 'SELECT place, timeline, started FROM public.world';
CREATE FUNCTION at(second bigint) RETURNS void LANGUAGE sql AS 'UPDATE world SET now_us = second * 1000000';
-- Times of requests and answers are seconds. "held" is what a member shows: node, since, until, token.
CREATE FUNCTION request(asked jsonb) RETURNS jsonb LANGUAGE sql AS $$
  SELECT jsonb_build_object('layout', 'L', 'widths', 'w', 'own_pool', false, 'lowest', 0, 'highest', 3, 'length', 600000000, 'holder', 'm',
                            'earliest', coalesce((asked ->> 'at')::bigint * 1000000, uid_registry.clock()))
         || CASE WHEN asked ? 'held' THEN jsonb_build_object('node', asked #> '{held,0}', 'since', (asked #>> '{held,1}')::bigint * 1000000,
              'until', (asked #>> '{held,2}')::bigint * 1000000, 'token', asked #> '{held,3}') ELSE '{}' END
         || asked - 'held' - 'at' $$;
CREATE FUNCTION s(us bigint) RETURNS text LANGUAGE sql AS $$ SELECT CASE us % 1000000 WHEN 0 THEN (us / 1000000)::text ELSE us || ' us' END $$;
CREATE FUNCTION called(fleet bigint, seen bigint, VARIADIC asked jsonb[]) RETURNS SETOF text LANGUAGE sql AS $$
  SELECT format('%s %s', request, concat_ws(' ', CASE why WHEN '' THEN 'granted' ELSE why END, node, s(since) || ' to', s(until),
                                            CASE WHEN taken THEN '(taken)' END, nullif(detail, '')))
    FROM uid_registry.grant(fleet, seen, (SELECT jsonb_agg(request(a) ORDER BY n) FROM unnest(asked) WITH ORDINALITY AS u (a, n))) ORDER BY request $$;
CREATE FUNCTION ask(VARIADIC asked jsonb[]) RETURNS SETOF text LANGUAGE sql AS $$ SELECT called(0, 0, VARIADIC asked) $$;
CREATE FUNCTION nodes() RETURNS SETOF text LANGUAGE sql AS
  $$ SELECT format('%s %s until %s token %s fence %s', layout, node, s(until), token, fence) FROM uid_registry.node ORDER BY layout, node $$;
CREATE FUNCTION row_is() RETURNS text LANGUAGE sql AS
  $$ SELECT format('%s %s lost from %s former %s', fence, reason, s(lost_from), s(former)) FROM uid_registry.registry $$;
\set ECHO all

-- A newcomer, and the repeat of its call; a renewal and its repeat. Then a late call has a token that is not in the row.
SELECT ask('{"new_token": 11, "prefer": 2}');
SELECT ask('{"new_token": 11, "prefer": 2}');
SELECT at(1300);
SELECT ask('{"new_token": 12, "held": [2, 1000, 1600, 11]}');
SELECT ask('{"new_token": 12, "held": [2, 1000, 1600, 11]}');
SELECT ask('{"new_token": 13, "held": [2, 1000, 1600, 11]}');
SELECT nodes();
-- The cap: no grant begins later than a bound after the clock, and none is longer than the longest.
SELECT ask('{"new_token": 21, "prefer": 0, "at": 1305, "length": 9000000000000000000}');
SELECT ask('{"new_token": 22, "prefer": 1, "at": 1400}', '{"new_token": 23, "prefer": 3, "at": 1400, "length": 1}', '{"new_token": 24, "at": 1910}');
-- A renewal keeps its beginning, and ends where the row does if that is later.
SELECT ask('{"new_token": 14, "held": [2, 1000, 1900, 12], "length": 1}');
SELECT ask('{"new_token": 15, "held": [2, 1500, 1900, 14]}');
-- A node outside its range it does not keep. A full pool says until when.
SELECT ask('{"new_token": 16, "lowest": 0, "highest": 1, "held": [2, 1000, 1900, 15]}');
SELECT ask('{"new_token": 31}', '{"new_token": 32}', '{"new_token": 33, "lowest": 0, "highest": 0}');
-- A newcomer gets a node only from the time on up to which that was given away.
SELECT at(1900);
SELECT ask('{"new_token": 34, "lowest": 2, "highest": 2, "at": 1899}', '{"new_token": 35, "lowest": 2, "highest": 2}');
SELECT ask('{"new_token": 17, "held": [2, 1000, 1900, 15]}');

-- Layouts: others of equal widths are refused, unless one of the two has a pool of its own.
SELECT ask('{"new_token": 41, "prefer": 3, "layout": "A", "widths": "1", "own_pool": true}', '{"new_token": 42, "prefer": 3, "layout": "B", "widths": "1"}',
           '{"new_token": 43, "prefer": 3, "layout": "C", "widths": "1"}', '{"new_token": 44, "prefer": 3, "layout": "D", "widths": "1", "own_pool": true}');
-- One that a login invented: its widths are free at once, its rows a day later.
UPDATE uid_registry.pool SET own_pool = true WHERE layout = 'B';
SELECT ask('{"new_token": 45, "prefer": 3, "layout": "C", "widths": "1"}');
DELETE FROM uid_registry.pool WHERE layout = 'B';
SELECT at(88900);
DELETE FROM uid_registry.pool WHERE layout = 'B' RETURNING layout;
SELECT at(88901);
SELECT layout, count(*) FROM uid_registry.node GROUP BY layout ORDER BY layout;

-- The number of nodes is known from the widths that a member writes; a login that writes others is in nobody's way.
SELECT count(*) FROM ask('{"new_token": 45, "prefer": 3, "layout": "E", "widths": "41/2/12, tick 1000 us"}', '{"new_token": 46, "prefer": 3, "layout": "F", "widths": "1/99/1"}',
           '{"new_token": 47, "prefer": 3, "layout": "G", "widths": "1/999/1"}', '{"new_token": 48, "prefer": 3, "layout": "H", "widths": "1//"}',
           '{"new_token": 49, "prefer": 3, "layout": "I, backup worker", "widths": "41/5/6, tick 1000 us"}');
SELECT layout, own_pool, nodes FROM uid_registry.pools WHERE layout ~ '^[E-I]' ORDER BY layout;

-- What is malformed gets nothing, and spoils nothing else.
SELECT called(0, 0, VARIADIC '{"new_token": 51, "prefer": 0}'::jsonb || array_agg(jsonb_build_object('new_token', 100 + n) || wrong::jsonb ORDER BY n))
  FROM unnest(ARRAY['{"layout": null}', '{"layout": ""}', '{"widths": null}', '{"widths": ""}', '{"own_pool": null}', '{"lowest": null}',
    '{"highest": null}', '{"lowest": -1}', '{"lowest": 4}', '{"highest": 4611686018427387904}', '{"highest": 9223372036854775807}',
    '{"lowest": -9223372036854775808}', '{"earliest": null}', '{"earliest": 0}', '{"earliest": -9223372036854775808}',
    '{"earliest": 9223372036854775807}', '{"length": null}', '{"length": 0}', '{"length": -9223372036854775808}', '{"new_token": null}',
    '{"new_token": 0}', '{"holder": null}', '{"node": 3}', '{"held": [-1, 1, 2, 5]}', '{"held": [1, -1, 2, 5]}',
    '{"held": [1, 1, null, 5]}', '{"held": [1, 1, 2, 0]}', '{"held": [1, 1, 2, null]}', '{"held": [1, 1, 2, 129]}', '{"held": [1, 3, 2, 5]}'])
  WITH ORDINALITY AS u (wrong, n);
SELECT ask(jsonb_build_object('new_token', 61, 'layout', repeat(U&'\00e9', 501)), jsonb_build_object('new_token', 62, 'widths', repeat('x', 1001)),
           '{"new_token": -9223372036854775808, "layout": "\"; DROP", "widths": "''", "prefer": 4611686018427387903, "highest": 4611686018427387903, "holder": "\n"}',
           '{"new_token": 63, "lowest": 2, "highest": 2, "prefer": -9223372036854775808, "unknown": {}}');
SELECT outcomes('SELECT count(*) FROM uid_registry.grant(0, 0, %s)', 'NULL', $$'[]'$$, $$'null'$$, $$'5'$$, $$'{}'$$, $$'[1]'$$, $$'[null]'$$, $$'[[]]'$$,
  $$'[{"node": 1e30}]'$$, $$'[{"node": "x"}]'$$, $$'[{"own_pool": 2}]'$$, $$'[{"holder": {}}]'$$, $$'[{"new_token": 7}, {"new_token": 7.0}]'$$,
  $$'[{"new_token": 7}, {"new_token": "7"}]'$$, $$(SELECT jsonb_agg('{}'::jsonb) FROM generate_series(1, 101))$$, $$(SELECT jsonb_agg('{}'::jsonb) FROM generate_series(1, 100))$$);
SELECT called(NULL, NULL, '{"new_token": 64, "held": [0, 88901, 89501, 51]}');
SELECT regexp_replace(called(5, 0, '{"new_token": 65}'), '\d{9,}', 'N');
SELECT row_is();
SELECT outcomes('SELECT (term, longest, clock) FROM uid_registry.hello(%s)', 'NULL, NULL', '-9223372036854775808, -9223372036854775808') ~ ': \(\d{10,},600000000,88901000000\)$';

-- A larger term that a member of the fleet shows fences, one fence for the last value, and its caller gets nothing. Such a fence cannot be
-- lifted. One of another fleet says nothing about this one, and an invented value hides no other one.
\set ECHO none
SELECT term AS own, fleet FROM uid_registry.registry \gset
CREATE FUNCTION shown(above bigint, VARIADIC asked jsonb[]) RETURNS SETOF text LANGUAGE sql AS $$
  SELECT replace(c, (term + above)::text, 'own + ' || above) FROM uid_registry.registry, called(0, term + above, VARIADIC asked) AS c $$;
\set ECHO all
SELECT shown(0, '{"new_token": 71, "prefer": 1}');
SELECT shown(5, '{"new_token": 72}', '{"new_token": 73, "held": [1, 88901, 89501, 71]}');
SELECT shown(5, '{"new_token": 72}');
SELECT row_is();
SELECT term - :own FROM uid_registry.hello(:fleet, :own + 5);
SELECT row_is();
SELECT term - :own FROM uid_registry.hello(:fleet, :own + 6);
SELECT row_is();
SELECT a.term - :own FROM uid_registry.hello(:fleet, 9223372036854775807) AS a, uid_registry.hello(:fleet + 1, :own + 7) AS b;
SELECT row_is();
SELECT a.term - :own FROM uid_registry.hello(:fleet, :own + 6) AS a, uid_registry.hello(:fleet, :own + 6) AS b;
SELECT row_is();
SELECT larger_term - term FROM uid_registry.status;
SELECT uid_registry.nothing_was_lost();
SELECT term - :own, shown FROM uid_registry.fence(:own + 6);
SELECT shown(0, '{"new_token": 74}');
SELECT why, term - :own - 7 FROM uid_registry.block(0, 9223372036854775807, 's', 1, 0);
SELECT why, term - :own - 7 FROM uid_registry.block(0, 9223372036854775807, 's', 1, 0);
SELECT row_is();

-- When a fence is raised. With each promise: the first call after a start, on another timeline, in another place.
\set ECHO none
CREATE FUNCTION change(prepare text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  PERFORM set_config('uid_registry.by_function', 'yes', true);
  EXECUTE prepare;
END $$;
-- What a call does after these changes, and what the row is then; all of it undone.
CREATE FUNCTION trial(asked jsonb, VARIADIC changes text[] DEFAULT '{}') RETURNS text LANGUAGE plpgsql AS $$
DECLARE answer text;
BEGIN
  PERFORM change(c) FROM unnest(changes) AS c;
  answer := ask(asked);
  RAISE EXCEPTION '%', format('%s; the row: %s', answer, row_is());
EXCEPTION WHEN raise_exception THEN RETURN SQLERRM;
END $$;
SELECT change('UPDATE uid_registry.registry SET lost_from = 0, former = 0, fence = 0, reason = ''none''') \gset
SELECT at(1000000) \gset
\set ECHO all
SELECT k.keeps, c.what, trial('{"new_token": 81}', format('UPDATE uid_registry.registry SET keeps = %L', k.keeps), 'UPDATE world SET ' || c.what) ~ 'fenced'
  FROM unnest(ARRAY['nothing', 'restarts', 'failovers']) AS k (keeps),
       unnest(ARRAY['now_us = now_us', 'started = now()', $$timeline = '00000002'$$, $$timeline = 'unknown'$$, $$place = 'elsewhere'$$]) AS c (what)
 WHERE k.keeps = 'failovers' OR c.what !~ 'unknown' ORDER BY 1, 2;
-- The term is above the row's and above the one that the caller has seen, even if the clock is behind.
SELECT at(1);
UPDATE world SET timeline = '00000002';
SELECT term - :own - 7 FROM uid_registry.hello(0, 0);
SELECT term - :own - 50 FROM uid_registry.hello(:fleet, :own + 50);
SELECT why, term - :own - 50 FROM uid_registry.block(0, :own + 50, 's', 1, 0);
SELECT shown(0, '{"new_token": 82}');
UPDATE world SET timeline = '00000005';
SELECT term FROM uid_registry.hello(:fleet, 9223372036854775807);
UPDATE world SET timeline = '00000002';
SELECT at(1000000);

-- In a fence. Before it: one is granted a node up to the cap, the other one that ends before all lost grants began.
\set ECHO none
SELECT change('UPDATE uid_registry.registry SET keeps = ''restarts'', fence = 1, lost_from = 0, former = 0, reason = ''none''') \gset
\set ECHO all
SELECT ask('{"new_token": 91, "lowest": 0, "highest": 0}', '{"new_token": 92, "lowest": 1, "highest": 1, "length": 19000000}');
UPDATE world SET timeline = '00000003';
SELECT ask('{"new_token": 93}', '{"new_token": 94, "held": [0, 1000000, 1000600, 91]}', '{"new_token": 95, "held": [1, 1000000, 1000019, 92]}');
SELECT row_is();
-- A grant that was lost goes on if it lasts beyond the fence, and has the row's token or a larger end than the row.
SELECT trial('{"new_token": 96, "held": [2, 1000000, 1000300, 5]}');
SELECT trial('{"new_token": 96, "held": [2, 1000000, 1000020, 5]}');
SELECT trial('{"new_token": 96, "held": [2, 1000000, 1000021, 5]}');
SELECT trial('{"new_token": 96, "held": [1, 1000000, 1000300, 5]}');
SELECT trial('{"new_token": 96, "held": [0, 1000000, 1000620, 5]}');
SELECT trial('{"new_token": 96, "held": [0, 1000000, 1000600, 5]}', 'UPDATE uid_registry.node SET fence = 1 WHERE node = 0');
SELECT trial('{"new_token": 96, "held": [2, 1000000, 9223372036854, 5]}');
-- A grant that is not here proves another loss if it ends after newcomers begin to draw. If it ends after they would without the present
-- fence, this one is not for nothing.
SELECT trial('{"new_token": 96, "held": [2, 1000000, 1000621, 5]}');
SELECT trial('{"new_token": 96, "held": [2, 1000000, 1000620, 5]}');
SELECT trial('{"new_token": 96, "held": [2, 1000000, 1000301, 5]}', 'UPDATE uid_registry.registry SET former = 999700000000');
SELECT trial('{"new_token": 96, "held": [2, 1000000, 1000300, 5]}', 'UPDATE uid_registry.registry SET former = 999700000000');
SELECT trial('{"new_token": 9223372036854775807, "node": 9223372036854775807, "since": 9223372036854775807, "until": 9223372036854775807, "token": 1}');
-- Newcomers wait until the longest grant that can be lost has ended.
SELECT trial('{"new_token": 97, "highest": 0, "at": 1000619}', 'SELECT at(1000619)');
SELECT trial('{"new_token": 97, "highest": 0, "at": 1000620}', 'SELECT at(1000620)');
SELECT trial('{"new_token": 97, "highest": 0, "at": 1000620}', 'SELECT at(1000609)');

-- What administrators say.
SELECT outcomes('SELECT keeps FROM uid_registry.promise(%s)', 'NULL', $$'all'$$, $$''$$);
UPDATE world SET started = '2000-01-01';
SELECT fence, reason, keeps FROM uid_registry.promise('nothing');
SELECT fence, reason, former / 1000000, lost_from / 1000000 FROM uid_registry.nothing_was_lost();
SELECT trial('{"new_token": 98}');
UPDATE world SET timeline = '00000004';
SELECT fence, reason, keeps FROM uid_registry.promise('failovers');
SELECT fence, reason, keeps FROM uid_registry.promise('restarts');
SELECT fence, reason, former / 1000000, lost_from / 1000000 FROM uid_registry.nothing_was_lost();
-- A grant of before that fence is shown: the statement was false.
SELECT ask('{"new_token": 99, "held": [2, 1000000, 1000621, 5]}');
SELECT row_is();
SELECT uid_registry.nothing_was_lost();
-- After a clock that was a day ahead, a statement ends the fence of tomorrow.
SELECT change('UPDATE uid_registry.registry SET lost_from = lost_from + 86400000000');
SELECT reason, lost_from / 1000000, former / 1000000 FROM uid_registry.fence(NULL);
SELECT reason, lost_from / 1000000 FROM uid_registry.nothing_was_lost();
SELECT outcomes('SELECT term > 0 FROM uid_registry.fence(%s)', '-9223372036854775808', '9223372036854775807');
SELECT term FROM uid_registry.registry;
-- A server that shows no timeline must keep failovers.
UPDATE world SET timeline = 'unknown';
SELECT split_part(outcome($$SELECT ask('{"new_token": 98}')$$), ' | ', 1);
UPDATE world SET timeline = '00000004';

-- What nobody may do by hand.
SELECT outcomes('%s', 'UPDATE uid_registry.registry SET keeps = ''failovers''', 'UPDATE uid_registry.registry SET lost_from = 0', 'UPDATE uid_registry.registry SET term = 0, fleet = 5',
  'UPDATE uid_registry.registry SET longest = 1', 'UPDATE uid_registry.registry SET bound = 1', 'DELETE FROM uid_registry.registry', 'TRUNCATE uid_registry.registry',
  'INSERT INTO uid_registry.registry SELECT * FROM uid_registry.registry', 'UPDATE uid_registry.node SET until = until - 1', 'UPDATE uid_registry.node SET node = node + 10',
  'DELETE FROM uid_registry.node', 'TRUNCATE uid_registry.node', 'TRUNCATE uid_registry.pool, uid_registry.node', 'DELETE FROM uid_registry.pool WHERE layout = ''L''');
SELECT split_part(outcomes('UPDATE uid_registry.registry SET fleet = %s', '5', '0', 'NULL', 'DEFAULT'), ' | ', 1);
SELECT fleet <> 5 FROM uid_registry.registry;

-- Segments. This is how the sequence of a registry of the extension moves.
CREATE SEQUENCE former INCREMENT 5 MAXVALUE 1000;
SELECT nextval('former'), nextval('former');
INSERT INTO uid_registry.segment (name, next_value, increment, max_value)
SELECT 'orders', v.last_value + CASE WHEN v.is_called THEN s.seqincrement ELSE 0 END, s.seqincrement, s.seqmax
  FROM former AS v, pg_sequence AS s WHERE s.seqrelid = 'former'::regclass
RETURNING name, next_value, increment, max_value, max_step, lost_at;
\set ECHO none
CREATE FUNCTION take(segment text, count bigint, last bigint) RETURNS text LANGUAGE sql AS $$
  SELECT concat_ws(' ', nullif(why, ''), given || ' from ' || first || ' by ' || increment, nullif(detail, ''))
    FROM uid_registry.block(0, 0, segment, count, last) $$;
\set ECHO all
SELECT outcomes('SELECT take(%s)', $$'orders', 3, 6$$, $$'orders', NULL, 6$$, $$'orders', 0, 6$$, $$'orders', -600, 6$$, $$'orders', -9223372036854775808, 6$$, 'NULL, 1, 1', $$'none', 1, 1$$);
-- A member shows a value that was not given here.
SELECT take('orders', 1, 25), lost_at IS NULL FROM uid_registry.segment;
SELECT take('orders', 1, 31);
SELECT next_value, lost_at IS NULL FROM uid_registry.segment;
SELECT take('orders', 9223372036854775807, NULL);
SELECT take('orders', 1, 0);
UPDATE uid_registry.segment SET max_step = 10, max_value = 9223372036854775807;
SELECT take('orders', 9223372036854775807, 0);
SELECT take('orders', 1, 9223372036854775807), take('orders', 1, 1851);
SELECT take('orders', 1, 1850);
-- Up to the bounds, by any increment, and from 0 on.
INSERT INTO uid_registry.segment (name, next_value, increment, max_value, max_step)
VALUES ('a', 1, 2, 10, 100), ('b', 0, 3, 7, 2), ('c', 9223372036854775800, 3, 9223372036854775807, 100),
       ('d', 0, 9223372036854775807, 9223372036854775807, 100), ('e', 5, 1, 5, 1), ('f', 5, 1, 4, 1);
SELECT name, take(name, 100, NULL), take(name, 100, NULL), take(name, 100, NULL) FROM uid_registry.segment WHERE name < 'g' ORDER BY name;
SELECT split_part(outcomes('%s', 'UPDATE uid_registry.segment SET next_value = next_value - 1', 'TRUNCATE uid_registry.segment', 'UPDATE uid_registry.segment SET increment = 0',
  'UPDATE uid_registry.segment SET increment = -1', 'INSERT INTO uid_registry.segment (name, next_value) VALUES (''n'', -1)', 'UPDATE uid_registry.segment SET max_step = 0', 'DELETE FROM uid_registry.segment WHERE name < ''g'''), ' | ', 1);
-- After a fence a segment gives nothing, until somebody has looked at it, or nothing was lost. Without a promise it never does.
SELECT reason FROM uid_registry.fence();
SELECT take('orders', 1, NULL);
SELECT closed_segments, lost_at IS NULL FROM uid_registry.status;
SELECT reason FROM uid_registry.nothing_was_lost();
SELECT take('orders', 1, NULL);
SELECT reason FROM uid_registry.fence();
UPDATE uid_registry.segment SET next_value = next_value + 1000, fence = DEFAULT WHERE name = 'orders';
SELECT take('orders', 1, NULL);
SELECT keeps FROM uid_registry.promise('nothing');
SELECT take('orders', 1, NULL);

-- What a member may do: three functions. Rows name its login.
\set ECHO none
\c -
SET SESSION AUTHORIZATION uidgen_registry_member;
SET search_path = public, pg_catalog;
SET default_transaction_isolation = 'read committed';
SET default_transaction_read_only = off;
\set ECHO all
SELECT outcomes('%s', 'SELECT count(*) FROM uid_registry.status', 'SELECT count(*) FROM uid_registry.registry', 'SELECT count(*) FROM uid_registry.pool', 'SELECT token FROM uid_registry.node',
  'SELECT name FROM uid_registry.segment', 'SELECT uid_registry.fence()', 'SELECT uid_registry.nothing_was_lost()', 'SELECT uid_registry.promise(''nothing'')',
  'SELECT uid_registry.arrive(0, ''nothing'', NULL)', 'SELECT uid_registry.see_larger_term(1)', 'SELECT uid_registry.hold()', 'SELECT uid_registry.clock()', 'SELECT uid_registry.here()',
  'SELECT uid_registry.judge(NULL, NULL, 1)', 'SELECT uid_registry.pick(NULL, 1, 1, 1)', 'SELECT uid_registry.add(NULL, 1, 1, 1)', 'CREATE TABLE uid_registry.x ()',
  'INSERT INTO uid_registry.segment (name) VALUES (''x'')');
SELECT a.why FROM uid_registry.hello(0, 0) AS h, uid_registry.grant(h.fleet, h.term, jsonb_build_array(jsonb_build_object(
  'layout', 'M', 'widths', 'm', 'own_pool', false, 'lowest', 0, 'highest', 7, 'new_token', 1, 'earliest', h.clock, 'length', 1, 'holder', 'x'))) AS a;
SELECT a.why FROM uid_registry.hello(0, 0) AS h, uid_registry.grant(h.fleet, h.term, jsonb_build_array(jsonb_build_object(
  'layout', 'M', 'widths', 'm', 'own_pool', false, 'lowest', 0, 'highest', 7, 'new_token', 1, 'earliest', h.clock, 'length', 1, 'holder', 'x',
  'node', 3, 'since', 1, 'until', h.clock + 500000000, 'token', 4))) AS a;
\set ECHO none
\c -
SET client_min_messages = warning;
SET search_path = public, pg_catalog;
\set ECHO all
SELECT layout, node, login, holder FROM uid_registry.node WHERE layout = 'M' OR node = 2 ORDER BY layout, node;
-- Another registry of the server, of a fleet whose registry is lost.
\set ECHO none
\c contrib_regression
CREATE DATABASE uidgen_registry_2 ENCODING 'UTF8' TEMPLATE template0;
\c uidgen_registry_2
\set keeps restarts
\set fleet 77
\set longest 5
\o /dev/null
SET client_min_messages = warning;
\i :source/src/registry/uidgen_registry.sql
\o
\set ON_ERROR_STOP off
SET client_min_messages = notice;
RESET search_path;
\set ECHO all
SELECT fleet, keeps, longest, fence, reason, fenced_until > now() FROM uid_registry.status;
SELECT uid_registry.nothing_was_lost();
\set ECHO none
\c contrib_regression
DROP DATABASE uidgen_registry;
DROP DATABASE uidgen_registry_2;
DROP ROLE uidgen_registry_dba, uidgen_registry_member, "uidgen stranger", uid_member;
