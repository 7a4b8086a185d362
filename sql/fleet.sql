-- The registry of a fleet, called by hand with made-up members. No clock is printed. expected/fleet_1.out is for a
-- server without the preload, which a registry needs.
\set ECHO none
SELECT current_setting('shared_preload_libraries') !~ '\muidgen\M' AS off \gset
\if :off
  \echo 'skipped: uidgen is not preloaded'
  \quit
\endif
\a \t
\getenv source PG_ABS_SRCDIR
\i :source/test/outcome.sql
\set ECHO none
SET client_min_messages = error;
\set messages :source '/test/fleet_messages.sql'
\i :messages
CREATE EXTENSION uidgen;
\set SHOW_CONTEXT never
\set VERBOSITY terse
SET timezone = 'UTC';

CREATE ROLE uidgen_fleet;
CREATE ROLE uidgen_plain;
CREATE ROLE uidgen_super SUPERUSER;

-- What a member keeps: its incarnations, its grant, and the latest answer that its server has seen, with the names that
-- they have in a request.
CREATE TABLE member (
  name text PRIMARY KEY, incarnation bigint NOT NULL DEFAULT 0, former bigint[] NOT NULL DEFAULT '{}',
  fleet bigint, term bigint, term_nonce bigint, serial bigint, seal bigint,
  held_node bigint, held_from bigint, held_until bigint, held_membership bigint, held_term bigint, held_term_nonce bigint,
  held_serial bigint, held_seal bigint);
CREATE SEQUENCE life;
ALTER TABLE member ALTER incarnation SET DEFAULT nextval('life');
CREATE TABLE last_term AS SELECT 0::bigint AS number;
-- Whether the registry has another term than at the last call.
CREATE FUNCTION drew() RETURNS boolean LANGUAGE sql AS $$
  WITH b AS (SELECT number FROM last_term), n AS (UPDATE last_term SET number = term FROM uid_fleet_state RETURNING last_term.number)
  SELECT n.number <> b.number FROM b, n $$;
CREATE FUNCTION us_at(moment timestamptz) RETURNS bigint LANGUAGE sql AS
  $$ SELECT (extract(epoch FROM moment) * 1000000)::bigint $$;
CREATE PROCEDURE call(request jsonb, INOUT answer fleet_answer DEFAULT NULL) LANGUAGE plpgsql AS
  $$ BEGIN CALL call_with(request_of(of_server() || request), answer); END $$;
-- What a call that has nothing valid is told.
CREATE PROCEDURE told(request jsonb, INOUT told text DEFAULT NULL) LANGUAGE plpgsql AS
  $$ DECLARE a fleet_answer; BEGIN CALL call(request, a); told := coalesce(a.refusal || ': ' || a.message, 'not refused'); END $$;
-- What only the registry knows: HMAC-SHA-256.
CREATE FUNCTION seal(what text) RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
  key bytea := (SELECT convert_to(encode(seal_key, 'hex'), 'UTF8') FROM uid_secrets.uid_fleet_key);
  inside bytea := decode(repeat('36', 64), 'hex');
  outside bytea := decode(repeat('5c', 64), 'hex');
BEGIN
  FOR i IN 0 .. length(key) - 1 LOOP
    inside := set_byte(inside, i, get_byte(inside, i) # get_byte(key, i));
    outside := set_byte(outside, i, get_byte(outside, i) # get_byte(key, i));
  END LOOP;
  RETURN ('x' || encode(substr(sha256(outside || sha256(inside || convert_to(what, 'UTF8'))), 1, 8), 'hex'))::bit(64)::bigint
      >> 1 & 9223372036854775807;
END
$$;
-- A member has found another registry, which has granted.
CREATE FUNCTION other(since interval, proven boolean) RETURNS jsonb LANGUAGE sql AS $$
  SELECT jsonb_build_object('other_term', 1, 'other_term_nonce', 17, 'other_granted_us', us,
           'other_seal', CASE WHEN proven THEN seal(format('last %s 1 17 %s', fleet, us)) ELSE 1 END)
    FROM uid_fleet_state, us_at(now() + since) us $$;
-- Asks as a member does, and keeps the answer unless it is `lost`. The words after its name are fields of the request,
-- which has two worker bits and ticks of a millisecond, unless told otherwise; `ahead` moves the member's clock, and `why`
-- shows the words of a refusal, without times. A node is told from the one before only.
CREATE PROCEDURE ask(who text, words text, INOUT outcome text DEFAULT NULL) LANGUAGE plpgsql AS $$
DECLARE
  m member := (SELECT member FROM member WHERE name = who);
  a fleet_answer;
  said jsonb := (SELECT coalesce(jsonb_object_agg(w[1], w[2]), '{}') FROM regexp_matches(words, '(\w+)=(\S+)', 'g') w);
  begins bigint := coalesce((said->>'layout_epoch_us')::bigint, us_at(coalesce(said->>'begins', '2026-01-01')::timestamptz));
  clock bigint := us_at(clock_timestamp() + coalesce(said->>'ahead', '0')::interval);
BEGIN
  IF said ? 'other' THEN
    said := said || other((said->>'other')::interval, words !~ 'unproven');
  END IF;
  IF said ? 'former_node' THEN
    said := said || jsonb_build_object('former_until',
      (us_at(clock_timestamp() + (said->>'former_ahead')::interval) - begins) / 1000);
  END IF;
  CALL call(of_newcomer() || to_jsonb(m) || jsonb_build_object('layout_epoch_us', begins, 'clock_us', clock,
    'lowest', (clock - begins) / 1000) || said, a);
  IF a.refusal IS NOT NULL THEN
    outcome := CASE WHEN num_nulls(a.node, a.granted_from, a.granted_until, a.membership, a.held_seal) < 5
                      OR num_nulls(a.message, a.hint, a.serial) > 0 OR a.serial BETWEEN 2 AND m.held_serial THEN 'not a refusal: ' || a
                    WHEN words ~ '\mwhy\M' THEN concat_ws(' | ', a.refusal,
                      regexp_replace(regexp_replace(a.message, 'until .*', 'until ...'), '[0-9]+\.[0-9]+', '...'),
                      regexp_replace(a.hint, 'ends at .*, unless', 'ends at ..., unless'))
                    ELSE a.refusal END;
    RETURN;
  END IF;
  IF num_nulls(a.message, a.hint) < 2 OR a.granted_until <= a.granted_from OR a.serial IS NULL THEN
    outcome := 'not a grant: ' || a;
    RETURN;
  END IF;
  IF words !~ '\mlost\M' THEN
    DELETE FROM member WHERE name = who;
    INSERT INTO member SELECT (jsonb_populate_record(m, of_holder(a) || '{"former": []}')).*;
  END IF;
  outcome := CASE WHEN m.held_node IS NULL THEN 'a node' WHEN a.node = m.held_node THEN 'the same node' ELSE 'another node' END
    || CASE WHEN a.membership = m.incarnation THEN ', new membership' ELSE '' END
    || CASE WHEN a.granted_until < m.held_until AND a.node = m.held_node THEN ', shorter!' ELSE '' END;
END
$$;
-- Asks as a member does that is attached to a segment.
CREATE PROCEDURE block(segment text, words text, INOUT outcome text DEFAULT NULL) LANGUAGE plpgsql AS $$
DECLARE
  a fleet_answer;
  said jsonb := (SELECT coalesce(jsonb_object_agg(w[1], w[2]), '{}') FROM regexp_matches(words, '(\w+)=(\S+)', 'g') w);
  fleet bigint := coalesce((said->>'fleet')::bigint, (SELECT known_fleet.fleet FROM known_fleet));
BEGIN
  CALL call(jsonb_build_object('fleet', fleet, 'serial', sign((said->>'term')::bigint),
    'seal', seal(format('stamp %s %s 0 1', fleet, said->>'term')), 'segment', segment, 'count', 10, 'shown', -1,
    'increment', 1, 'database', 'a') || said, a);
  outcome := coalesce(a.refusal || ': ' || a.message || coalesce('; ' || a.hint, ''),
                      format('%s values from %s by %s', a.count, a.first, a.increment));
END
$$;
-- Runs steps, which semicolons end: SQL, or names of members that ask one after another, with their words, and the words
-- that all have. `block NAME` asks for values of a segment. A line shows a step and its outcome, unless that is nothing,
-- or a comment.
-- Functions that need a transaction of their own must not fail here.
CREATE PROCEDURE run(script text, words text DEFAULT '', INOUT shown text DEFAULT NULL) LANGUAGE plpgsql AS $$
DECLARE
  line text;
  lines text := '';
  step text;
  asked text;
  result text;
  results text[];
BEGIN
  FOREACH line IN ARRAY string_to_array(script || ';', E'\n') LOOP
    IF line LIKE '--%' THEN
      shown := concat_ws(E'\n', shown, line);
      CONTINUE;
    END IF;
    lines := lines || ' ' || btrim(line);
    CONTINUE WHEN lines !~ ';$';
    FOREACH step IN ARRAY string_to_array(lines, ';') LOOP
      step := btrim(step);
      CONTINUE WHEN step = '';
      results := NULL;
      IF step ~ '^[A-Z]+ ' THEN
        IF step ~ 'uid_fleet_(fence|handover|reserve|takeover)' THEN
          EXECUTE step INTO result;
        ELSE
          result := outcome(step);
        END IF;
        COMMIT;
        CONTINUE WHEN coalesce(result, 'NULL') IN ('', 'NULL') AND step !~ '^SELECT .* FROM ';
        results := ARRAY[step || ': ' || result];
      ELSE
        FOREACH asked IN ARRAY string_to_array(step, ', ') LOOP
          result := NULL;
          IF asked ~ '^block ' THEN
            CALL block(split_part(asked, ' ', 2), asked, result);
          ELSE
            INSERT INTO member (name) VALUES (split_part(asked, ' ', 1)) ON CONFLICT DO NOTHING;
            COMMIT;
            CALL ask(split_part(asked, ' ', 1), words || ' ' || asked, result);
          END IF;
          COMMIT;
          results := results || (asked || ': ' || result);
        END LOOP;
      END IF;
      shown := concat_ws(E'\n', shown, array_to_string(results, ' / '));
    END LOOP;
    lines := '';
  END LOOP;
END
$$;
-- The next life of a member: after a restart.
CREATE FUNCTION restarted(who text) RETURNS void LANGUAGE sql AS
  $$ UPDATE member SET former = former || incarnation, incarnation = nextval('life') WHERE name = who $$;
-- A copy of a member's files.
CREATE FUNCTION copied(who text, copy text) RETURNS void LANGUAGE sql AS
  $$ INSERT INTO member SELECT (jsonb_populate_record(m, jsonb_build_object('name', copy))).* FROM member m
      WHERE name = who $$;
-- The grant of a member has ended since.
CREATE FUNCTION nodes_end(who text, since interval) RETURNS void LANGUAGE sql AS
  $$ UPDATE uid_fleet_node SET granted_until = (us_at(clock_timestamp() - since) - us_at('2026-01-01 00:00:00+00')) / 1000
      WHERE pool = 1 AND node = (SELECT held_node FROM member WHERE name = who) $$;
-- A member's grant is one of another time, and proven.
CREATE FUNCTION clock_moves(who text, ms bigint) RETURNS void LANGUAGE sql AS $$
  UPDATE uid_fleet_node n SET granted_from = n.granted_from + ms, granted_until = n.granted_until + ms
    FROM member m WHERE m.name = who AND n.membership = m.held_membership;
  UPDATE member SET held_from = held_from + ms, held_until = held_until + ms WHERE name = who;
  UPDATE member m SET held_seal = seal(format('grant %s %s %s 41 0 %s 12 0 0 %s %s %s %s %s %s %s', fleet, 1767225600000000, 1000,
      p.worker_bits, m.held_node, m.held_from, m.held_until, m.held_membership, m.held_term, m.held_term_nonce, m.held_serial))
    FROM uid_fleet_node n JOIN uid_fleet_pool p USING (pool) WHERE m.name = who AND n.membership = m.held_membership $$;
-- For \gexec, which gives each its own transaction.
CREATE FUNCTION calls(VARIADIC calls text[]) RETURNS SETOF text LANGUAGE sql AS
  $$ SELECT 'SELECT count(*) FROM ' || call FROM unnest(calls) WITH ORDINALITY AS c(call, place) ORDER BY place $$;
CREATE FUNCTION pool_of(bits integer) RETURNS integer LANGUAGE sql AS
  $$ SELECT pool::integer FROM uid_fleet_pool WHERE preset = 'custom' AND worker_bits = bits $$;

\echo -- No registry yet.
CALL run('a');
SELECT calls('uid_fleet_fence()') \gexec

\echo -- What kind of registry it is must be said once. Members need no superuser.
SELECT * FROM outcomes('SELECT uid_fleet_admit(%s)', $$'uidgen_fleet'$$, $$'uidgen_fleet', 'nonsense'$$,
  $$'uidgen_fleet', 'unchanged'$$, $$'uidgen_fleet', 'successor'$$, $$'uidgen_fleet', 'new', fleet => 4711$$,
  $$'uidgen_fleet', 'new'$$, $$'uidgen_fleet'$$, $$'uidgen_nobody'$$, 'NULL', $$'uidgen_super'$$);
SELECT count(*), drew(), min(term - us_at(now())) BETWEEN -1e6 AND 1e6 AS term_is_time, min(clock_bound) AS clock_bound FROM uid_fleet_state;

CALL run($$
-- Newcomers get nodes of their own; a member that asks again keeps its node, and so does one whose answer was lost.
a, a, b lost, b, b;
SELECT held_until - held_from BETWEEN 600000 AND 660000 AS adds_nothing FROM member WHERE name = 'b';
-- A restart, two restarts without an answer, and one whose answer was lost.
SELECT restarted('a');
a;
SELECT restarted('a');
SELECT restarted('a');
a lost, a;
-- Of two that follow the same life the second is refused, and the first goes on.
SELECT copied('a', 'copy');
SELECT restarted('a');
SELECT restarted('copy');
a, copy, a;
-- All nodes in use.
c, d, e, f why;
$$);

\echo -- A request without a generator only asks who answers.
CALL call('{}') \gset
SELECT (a).fleet = s.fleet AND (a).term = s.term AND (a).term_nonce = s.term_nonce AS who, (a).is_open, num_nonnulls((a).seal, (a).server,
    (a).clock_us) AS told, num_nonnulls((a).refusal, (a).node, (a).held_seal, (a).count, (a).granted_last_us) AS given
  FROM uid_fleet_state s, LATERAL (SELECT :'answer'::fleet_answer AS a) t;

CALL run($$
-- The node whose grant ended first comes first. The former holder then is a newcomer, and finds none.
SELECT nodes_end('b', '1 s');
SELECT nodes_end('c', '2 s');
e;
SELECT e.held_node = c.held_node AS of_c FROM member e, member c WHERE e.name = 'e' AND c.name = 'c';
c, b;
-- Taking over, which only a holder that is dead survives. It was ahead of its clock by half of the length that it asked
-- for at most.
SELECT t BETWEEN now() + interval '309 s' AND now() + interval '311 s' AS half
  FROM member, uid_fleet_takeover(1, held_node::integer) t WHERE name = 'e';
SELECT state FROM uid_fleet JOIN member ON node = held_node WHERE pool = 1 AND name = 'e';
e;
SELECT uid_fleet_takeover(1, held_node::integer) < now() + interval '312 s' AS again FROM member WHERE name = 'e';
SELECT uid_fleet_takeover(NULL, 1) IS NULL AS is_null;
$$);
SELECT calls('uid_fleet_takeover(1, 4)', 'uid_fleet_takeover(9, 1)') \gexec

\echo -- Static and sticky, in a layout of its own.
CALL run($$
s1 policy=static worker_number=9, s2 policy=static worker_number=9, s2 policy=static worker_number=10,
  s3 policy=static worker_number=9 why;
-- The first one's grant still runs when the second asks.
t1 policy=sticky host=sticky, t2 policy=sticky host=sticky;
UPDATE uid_fleet_node SET granted_until = granted_from WHERE policy = 'sticky';
t3 policy=sticky host=sticky, t4 policy=sticky host=other;
SELECT t3.held_node = t2.held_node AS its_last FROM member t3, member t2 WHERE t3.name = 't3' AND t2.name = 't2';
$$, 'worker_bits=4');

\echo -- Datacenter ids: those that members ask for are left to them.
CALL run('u1 datacenter_id=1, u4 datacenter_id=0, u4 datacenter_id=0, u2, u3, u5 datacenter_id=1, u7 datacenter_id=0 why',
  'datacenter_bits=1 worker_bits=1');
SELECT node, datacenter_id, worker_id, state, generator, database, host, port, version, policy
  FROM uid_fleet WHERE pool = 3 ORDER BY node;
SELECT name, held_node >> 1 AS datacenter_id FROM member WHERE name IN ('u1', 'u4') ORDER BY name COLLATE "C";
CALL run($$
-- A layout without the field does not mind.
v1 worker_bits=3 datacenter_id=12;
-- With a backup worker one bit is not drawn.
v2 worker_bits=1 backup_worker=true, u6 worker_bits=1 backup_worker=true;
$$);

\echo -- Ids of two epochs or splits of the same widths could be equal. So a fleet has one of them.
CALL run($$
w1 preset=leaf begins=2026-02-01, w2 preset=leaf, w4 preset=leaf generator=uid_generators."my.Gen" why, w2 begins=2026-02-01;
w3 datacenter_bits=1 worker_bits=9 begins=2026-02-01 why, w3 backup_worker=true begins=2026-02-01, w3 sequence_first=true;
$$, 'worker_bits=10 own_pool=false');

\echo '-- Joining: the node used so far is left alone until the member''s high-water mark is over, unless it has a holder.'
\echo -- A use that ends later than a grant would is refused, and changes nothing.
CALL run($$
x1 former_node=30 former_ahead=11minutes, x2 former_node=31 former_ahead=60years;
SELECT count(*) FROM uid_fleet_node WHERE pool = pool_of(5);
x1 policy=static worker_number=5 former_node=30 former_ahead=9minutes, x2 policy=static worker_number=30;
SELECT (state, host) FROM uid_fleet WHERE preset = 'custom' AND node = 30;
x2 policy=static worker_number=29 former_node=29 former_ahead=-1s,
  x3 policy=static worker_number=6 former_node=29 former_ahead=9minutes, x2;
-- An administrator frees a node that only a claim keeps from others, by whatever it was claimed.
UPDATE uid_fleet_node SET granted_until = 2199023255552 WHERE node = 30 AND host IS NULL;
SELECT uid_fleet_takeover(pool_of(5), 30) < now() + interval '11 s' AS free_soon;
SELECT granted_until < 2199023255552 AS taken FROM uid_fleet_node WHERE node = 30 AND host IS NULL;
$$, 'worker_bits=5');

\echo -- Nodes for generators outside. Pool 6 is that of preset leaf, and pool 3 that of the datacenter ids, which is full.
SELECT calls('uid_fleet_reserve(6)', 'uid_fleet_reserve(6, without_standby => NULL)') \gexec
SELECT count(*), count(DISTINCT node) AS nodes, count(DISTINCT granted_until) AS ends,
       bool_and(node = datacenter_id * 1024 + worker_id AND granted_from <= clock_timestamp()) AS consistent, max(granted_until)
  FROM uid_fleet_reserve(6, 3, without_standby => true);
SELECT calls(VARIADIC array_agg(format('uid_fleet_reserve(%s, without_standby => true)', c)))
  FROM unnest(ARRAY['6, 0', '4711', '6, -1', '3', 'pool_of(3), 8', 'pool_of(3), 7']) c \gexec
CALL run($$
y;
UPDATE uid_fleet_node SET granted_until = granted_from WHERE pool = pool_of(3) AND policy <> 'reserved';
y;
$$, 'worker_bits=3');
SELECT pool, preset, nodes, live, cooling, reserved, free, fence_until FROM uid_fleet_pools ORDER BY pool;
\echo '-- The registry''s clock is ahead of a holder, which says so at its call. Its grant lasts by its own clock.'
BEGIN;
UPDATE uid_fleet_node SET granted_until = granted_until - 900000 WHERE pool = 1 AND policy <> 'reserved' AND incarnation <> 0;
SELECT string_agg(DISTINCT state, ' ' ORDER BY state) FROM uid_fleet WHERE pool = 1 AND state <> 'reserved';
UPDATE uid_fleet_node SET clock_offset_us = -7200000000 WHERE pool = 1;
SELECT string_agg(DISTINCT state, ' ' ORDER BY state) FROM uid_fleet WHERE pool = 1 AND state <> 'reserved' AND generator IS NOT NULL;
\echo -- Whatever it says, for no longer than a grant lasts.
UPDATE uid_fleet_node SET granted_until = granted_until - 900000 WHERE pool = 1 AND policy <> 'reserved' AND incarnation <> 0;
SELECT string_agg(DISTINCT state, ' ' ORDER BY state) FROM uid_fleet WHERE pool = 1 AND state <> 'reserved' AND generator IS NOT NULL;
ROLLBACK;

CALL run($$
-- A handover: nothing is granted, until it is cancelled or another server takes over.
SELECT uid_fleet_handover();
b;
$$);
SELECT calls('uid_fleet_reserve(6, without_standby => true)', 'uid_fleet_takeover(1, 2)', 'uid_fleet_handover(cancel => true)',
  'uid_fleet_fence()') \gexec
CALL run($$
UPDATE uid_fleet_state SET closed_until = closed_until - interval '320 s';
b;
SELECT uid_fleet_handover(cancel => true);
b;
SELECT (drew(), closed_until, fence_base IS NOT NULL) AS fenced FROM uid_fleet_state;
-- One that is open stays as it is.
SELECT uid_fleet_handover(cancel => true);
SELECT drew() AS drew;
UPDATE uid_fleet_state SET fence_base = NULL;
-- Another role is admitted without a word of what the registry is.
SELECT uid_fleet_admit('uidgen_fleet', 'unchanged');
SELECT uid_fleet_handover();
SELECT closed_until BETWEEN now() + interval '200 s' AND now() + interval '300 s' AS five_minutes FROM uid_fleet_state;
UPDATE uid_fleet_state SET closed_until = now() + interval '1 hour';
SELECT uid_fleet_handover();
UPDATE uid_fleet_state SET timeline = 0, closed_until = closed_until - interval '59 min';
b;
SELECT (drew(), closed_until, timeline > 0, fence_base) AS recorded FROM uid_fleet_state;
-- A dump that was made after it needs nobody's word.
SELECT uid_fleet_handover();
UPDATE uid_fleet_state SET database = 'the former one';
b;
SELECT (drew(), closed_until, database <> 'the former one', fence_base) AS recorded FROM uid_fleet_state;
-- The closed server itself does, wherever it is.
SELECT uid_fleet_handover();
UPDATE uid_fleet_state SET directory = directory || '0';
b;
$$);
SELECT calls('uid_fleet_admit(''uidgen_fleet'', ''unchanged'')', 'uid_fleet_admit(''uidgen_fleet'', ''successor'')') \gexec
CALL run($$
UPDATE uid_fleet_state SET directory = left(directory, -1);
b;
UPDATE uid_fleet_state SET closed_until = closed_until - interval '321 s';
SELECT uid_fleet_handover(cancel => true);
UPDATE uid_fleet_state SET fence_base = NULL;
-- One that may not know of all grants hands nothing over, and one that was not done waiting is followed with a fence.
UPDATE uid_fleet_state SET started = started - interval '1 s', longest_grant = '1 day';
b;
$$);
SELECT calls('uid_fleet_handover()') \gexec
CALL run($$
UPDATE uid_fleet_state SET closed_until = now() + interval '5 min', timeline = 0, longest_grant = '10 min';
b;
SELECT (drew(), fence_base IS NOT NULL, serial_at_start) AS fenced FROM uid_fleet_state;
UPDATE uid_fleet_state SET fence_base = NULL, shown_term = term + 1, closed_until = now() + interval '5 min', timeline = 0;
b;
SELECT (drew(), fence_base IS NOT NULL, shown_term) AS fenced FROM uid_fleet_state;
UPDATE uid_fleet_state SET fence_base = NULL;
b;
-- It is too late for that if its clock and the bound are not below closed_until.
SELECT uid_fleet_handover();
UPDATE uid_fleet_state SET timeline = 0, closed_until = clock_timestamp() + interval '9 s';
b;
SELECT (drew(), closed_until, fence_base IS NOT NULL) AS fenced FROM uid_fleet_state;
UPDATE uid_fleet_state SET fence_base = NULL;
b;
$$);

CALL run($$
-- A fence: holders that show a grant that reaches far enough keep their nodes, and newcomers wait.
z1 length=5000, z2;
SELECT uid_fleet_fence() > now() + interval '620 s' AS from_then_on;
z2, z1, z3;
SELECT count(DISTINCT term) FROM member WHERE name IN ('z1', 'z2');
$$, 'worker_bits=6');
SELECT calls('uid_fleet_reserve(6, without_standby => true)') \gexec
CALL run($$
SELECT (count(*), min(refuses), max(refuses)) AS fenced FROM uid_fleet_pools WHERE fence_until > now();
-- A standby was promoted: the same fence.
UPDATE uid_fleet_state SET timeline = 0;
z2;
SELECT drew() FROM uid_fleet_state;
-- If only synchronous standbys are promoted, there is none. Without one the registry grants nothing.
UPDATE uid_fleet_state SET timeline = 0, fence_base = NULL, synchronous = true;
z2;
SELECT (drew(), fence_base, refuses) FROM uid_fleet_state;
UPDATE uid_fleet_state SET synchronous = false;
z2;
SELECT refuses FROM uid_fleet_state;

-- A registry that is not the server that it was grants nothing until somebody has said what it is.
UPDATE uid_fleet_state SET timeline = 7;
z2, z9 why;
$$, 'worker_bits=6');
SELECT calls('uid_fleet_takeover(1, 2)') \gexec
CALL run($$
SELECT uid_fleet_admit('uidgen_fleet');
SELECT uid_fleet_admit('uidgen_fleet', 'successor', fleet => 4711);
SELECT (drew(), refuses) FROM uid_fleet_state;
SELECT uid_fleet_admit('uidgen_fleet', 'successor');
z2, z3;
SELECT (drew(), refuses, timeline = 1) AS recorded FROM uid_fleet_state;
UPDATE uid_fleet_state SET directory = directory || '0';
z2;
$$, 'worker_bits=6');
\set VERBOSITY default
RESET client_min_messages;
SELECT uid_fleet_admit('uidgen_fleet', 'unchanged');
\set VERBOSITY terse
SET client_min_messages = error;
CALL run($$
z2, z4;
SELECT (drew(), refuses, fence_base) FROM uid_fleet_state;
UPDATE uid_fleet_state SET database = '1/1/1', fence_base = NULL;
z2;
SELECT uid_fleet_fence() > now() + interval '10 min' AS fenced;
z2;
-- A registry that starts waits for a member, if it may have any.
UPDATE uid_fleet_state SET serial_at_start = 1000, granted_at_start = now(), longest_grant = '1 day', fence_base = NULL;
z5, z2, z5;
-- No member ends the wait of one that was synchronous, because its standby would have taken over without a fence.
UPDATE uid_fleet_state SET synchronous = true, started = started - interval '1 s';
z2;
UPDATE uid_fleet_state SET synchronous = false;
z2, z6;
SELECT serial_at_start FROM uid_fleet_state;
SELECT uid_fleet_fence(cancel => true) IS NOT NULL AS fine;

-- A greater bound is stored, and counts from the next call on. A smaller setting is no smaller bound.
UPDATE uid_fleet_state SET clock_bound = '7 s', longest_grant = '10 min';
z2, z2;
SELECT clock_bound FROM uid_fleet_state;
UPDATE uid_fleet_state SET clock_bound = '30 s', fence_base = now();
z2;
SELECT (clock_bound, (SELECT max(fence_until) FROM uid_fleet_pools) = fence_base + interval '660 s') AS by_the_bound
  FROM uid_fleet_state;
UPDATE uid_fleet_state SET clock_bound = '10 s', fence_base = NULL;
-- A member has seen an answer that the registry has lost.
SELECT setval('uid_fleet_serial', last_value - 5) > 0 AS lost FROM uid_fleet_serial;
z2;
SELECT drew() FROM uid_fleet_state;
SELECT setval('uid_fleet_serial', last_value + 100) > 0 AS found FROM uid_fleet_serial;
-- The same of the term before, if nothing was said to be lost with it, even by a hello.
SELECT uid_fleet_fence(cancel => true) IS NOT NULL AS fine;
UPDATE uid_fleet_state SET former_serial = 1;
SELECT drew() FROM uid_fleet_state;
$$, 'worker_bits=6');
SELECT jsonb_build_object('fleet', fleet, 'term', term, 'term_nonce', term_nonce, 'serial', serial, 'seal', seal) AS hello
  FROM member WHERE name = 'z2' \gset
CALL call(:'hello') \gset
CALL run($$
SELECT (drew(), fence_base IS NOT NULL) AS fenced FROM uid_fleet_state;
z2;
SELECT uid_fleet_fence(cancel => true) IS NOT NULL AS fine;
UPDATE uid_fleet_state SET former_serial = 1;
z2;
SELECT (drew(), fence_base IS NOT NULL) AS fenced FROM uid_fleet_state;
-- A member has seen a later term: this server must not be the registry any more.
UPDATE uid_fleet_state SET term = term - 1;
z2, a worker_bits=2;
SELECT (shown_term > term, refuses) FROM uid_fleet_state;
-- It is not opened.
UPDATE uid_fleet_state SET closed_until = now() - interval '100 s';
$$, 'worker_bits=6');
SELECT calls('uid_fleet_handover(cancel => true)', 'uid_fleet_handover()') \gexec
CALL call('{}') \gset
SELECT (a).refusal, (a).granted_last_us > 0 AS granted FROM (SELECT :'answer'::fleet_answer AS a) t;
CALL run($$
SELECT uid_fleet_fence() > now() AS fenced;
SELECT (drew(), shown_term > term, refuses) FROM uid_fleet_state;
z2;
-- Or its number with another nonce: there are two registries. Members of this one renew, newcomers wait.
UPDATE uid_fleet_state SET term_nonce = term_nonce / 2, fence_base = NULL;
z2, z6, z1;
SELECT (shown_term = term, refuses) AS same FROM uid_fleet_state;
SELECT uid_fleet_fence(cancel => true) IS NOT NULL AS chosen;
z2, z6;
SELECT shown_term FROM uid_fleet_state;
-- A fence that an administrator knows to be needless.
z3;
UPDATE uid_fleet_state SET shown_term = term + 4711, fence_base = now() + interval '60 years';
SELECT uid_fleet_fence(cancel => true) - now() < interval '1 s' AS at_once;
z3;
SELECT (shown_term, fence_base, drew()) AS above FROM uid_fleet_state;
UPDATE uid_fleet_state SET fence_base = NULL;

-- A member has found another registry, which has granted. What is shown must be proven, as anything else.
z7 other=1s unproven;
SELECT fence_base FROM uid_fleet_state;
z7 other=-1hour, z8 other=1minute;
SELECT fence_base - now() BETWEEN interval '40 s' AND interval '50 s' AS by_its_clock FROM uid_fleet_state;
z7 other=1minute;
UPDATE uid_fleet_state SET fence_base = NULL;
-- A member whose grant ended before a fence gets another node. If it misses the answer, it gets that node again, and its
-- latest answer of the node before makes no difference.
n, n lost;
SELECT clock_moves('n', -3 * 3600000);
UPDATE uid_fleet_state SET term = term + 1, former_term = NULL, fence_base = now() - interval '2 hours';
n lost, n lost, n;
SELECT (count(*) FILTER (WHERE state = 'live'), count(*)) AS live_answers
  FROM uid_fleet_node n JOIN uid_fleet USING (pool, node) JOIN member m USING (incarnation) WHERE name = 'n';
-- Another fleet.
UPDATE member SET fleet = fleet - 1 WHERE name = 'z2';
z2;
UPDATE uid_fleet_state SET fence_base = NULL;
$$, 'worker_bits=6');

\echo -- A clock that is far ahead gets nothing that it can use, however many askers say the same: the registry judges by its
\echo -- own clock.
CALL run($$
clock1 ahead=1hour host=h1, clock1 host=h1, clock2 host=h2, clock3 host=h3;
SELECT clock_moves('clock1', 3600000);
SELECT clock_moves('clock2', 3600000);
clock1 ahead=1hour host=h1, clock2 ahead=1hour host=h2, clock3 ahead=1hour host=h3, clock4 ahead=1hour host=h4, clock4 host=h4;
SELECT clock_moves('clock1', -3600000);
SELECT clock_moves('clock2', -3600000);
-- An epoch that is ahead is no fence.
clock6 layout_epoch_us=4000000000000000 lowest=0 why;
-- A clock that is behind gets a node too.
clock5 ahead=-1hour host=h5;
SELECT clock_offset BETWEEN '-61 min' AND '-59 min' AS an_hour FROM uid_fleet WHERE host = 'h5';
-- A fence begins where the clock and the grants are. Reserved nodes do not count.
SELECT date_trunc('minute', uid_fleet_fence() - now()) AS until;
UPDATE uid_fleet_state SET fence_base = NULL;
$$, 'worker_bits=7');

\echo -- The successor of a registry that was lost knows nothing, and cannot prove what the former one gave. While its fence lasts,
\echo -- live holders keep their nodes by what they show.
CALL run('l1, l2', 'worker_bits=6');
CREATE TABLE lost AS SELECT * FROM uid_fleet_state;
DELETE FROM uid_fleet_state;
DELETE FROM uid_fleet_node;
DELETE FROM uid_secrets.uid_fleet_key;
SELECT fleet AS lost, term FROM lost \gset
SELECT calls('uid_fleet_admit(''uidgen_fleet'', ''successor'', fleet => 1)',
  'uid_fleet_admit(''uidgen_fleet'', ''successor'', fleet => 1, term => 9007199254740992)',
  'uid_fleet_admit(''uidgen_fleet'', ''successor'', fleet => 1, term => 1, key => ''x'')',
  'uid_fleet_admit(''uidgen_fleet'', ''successor'', term => 1)') \gexec
SELECT uid_fleet_admit('uidgen_fleet', 'successor', fleet => :lost, term => :term) \g /dev/null
CALL run($$
SELECT (s.fleet = l.fleet, s.term > l.term, s.first_term > l.term, s.covered_until = s.fence_base + s.clock_bound) AS same_above FROM uid_fleet_state s, lost l;
UPDATE member SET held_seal = 4711 WHERE name = 'l1';
l1, l3;
UPDATE member SET held_seal = 4711 WHERE name = 'l1';
l1;
UPDATE uid_fleet_state SET fence_base = now() - interval '1 hour';
$$, 'worker_bits=6');
\echo -- It may get its former node by chance.
CALL ask('l2', 'worker_bits=6') \gset
SELECT :'outcome' LIKE '% node, new membership' AS newcomer;
CALL run($$
l3;
-- An invented grant takes no node of a member that has called, not even in the fence after a claim of its own.
UPDATE uid_fleet_state SET unproven_base = now();
INSERT INTO member SELECT (jsonb_populate_record(m, '{"name": "thief", "incarnation": 7, "held_membership": 7,
  "held_seal": 1, "seal": 1}')).* FROM member m WHERE name = 'l3';
UPDATE member SET (term, held_term, held_until) = (term + 1000000, term + 1, held_until + 1) WHERE name = 'thief';
thief;
SELECT uid_fleet_fence() IS NOT NULL AS fenced;
thief, l3;
DELETE FROM member WHERE name = 'thief';
$$, 'worker_bits=6');
SELECT calls('uid_fleet_fork()') \gexec
CALL run($$
-- A copy for testing: a fleet of its own. It is none while it has members.
SELECT uid_fleet_admit('uidgen_fleet', 'new');
UPDATE uid_fleet_state SET database = '1/1/1';
SELECT uid_fleet_admit('uidgen_fleet', 'new');
l3;
SELECT (drew(), s.first_term, s.fleet <> l.fleet, (SELECT count(*) FROM uid_fleet_node)) AS nodes FROM uid_fleet_state s, lost l;
SELECT (s.clock_bound, s.longest_grant) AS anew FROM uid_fleet_state s, lost l;
UPDATE member SET (fleet, term, term_nonce, serial, seal, held_node) = ROW(NULL, NULL, NULL, NULL, NULL, NULL);
z3;
$$, 'worker_bits=6');

\echo -- Bad input.
CALL uid_internal.uid_fleet_call(NULL);
\echo :LAST_ERROR_SQLSTATE
\set VERBOSITY default
CALL told('{"segment": "orders", "count": -1}');
CALL call('{"protocol": 2}');
\echo :LAST_ERROR_SQLSTATE
\set VERBOSITY terse
CREATE TABLE bad (n serial, fields jsonb);
CREATE FUNCTION bad(names text[], bad text[]) RETURNS void LANGUAGE sql AS
  $$ INSERT INTO bad (fields) SELECT jsonb_build_object(n.name, b.value::jsonb)
       FROM unnest(names) WITH ORDINALITY n(name, place), unnest(bad) WITH ORDINALITY b(value, place) ORDER BY n.place, b.place $$;
SELECT bad('{protocol}', '{null,0,-1}'), bad('{host,port,version,clock_us,lowest,length,layout_epoch_us,tick_us,time_bits,
    datacenter_bits,worker_bits,sequence_bits,policy,generator,database}', '{null}'),
  bad('{incarnation,clock_us,lowest,length,layout_epoch_us,tick_us}', '{-2147483648}'),
  bad('{clock_us,lowest,layout_epoch_us,tick_us}', '{9223372036854775807}'),
  bad('{time_bits,datacenter_bits,worker_bits,sequence_bits}', '{-1,48,2147483647}'),
  bad('{former}', ARRAY['[0]', '[1,-1]', '"\\x00"', to_jsonb(array_fill(1, ARRAY[65]))::text]),
  bad('{policy}', '{"\"\"","\"Static\""}'), bad('{datacenter_id}', '{-2,32}') \g /dev/null
INSERT INTO bad (fields) SELECT jsonb_build_object('policy', 'static', 'worker_number', v) FROM unnest('{NULL,-1,32}'::int[]) v;
INSERT INTO bad (fields) VALUES ('{"datacenter_bits": 31, "worker_bits": 31}'), ('{"worker_bits": 0, "backup_worker": true}'),
  (jsonb_build_object('host', repeat('x', 2000))),
  ('{"segment": "orders", "database": null, "incarnation": null}'),
  (jsonb_build_object('segment', 'orders', 'database', repeat('x', 2000), 'incarnation', null));
INSERT INTO bad (fields) SELECT jsonb_build_object('former_node', n, 'former_until', u)
  FROM (VALUES (-2, 5), (1024, 5), (5, -1), (5, NULL), (5, 9223372036854775807)) v (n, u);
INSERT INTO bad (fields) SELECT jsonb_build_object('fleet', 1, 'term', 1, 'serial', 1, 'held_node', v[1], 'held_from', v[2],
    'held_until', v[3], 'held_membership', v[4], 'held_term', v[5], 'held_serial', v[6])
  FROM (VALUES ('{-2,1,1,1,1,1}'::bigint[]), ('{1024,1,1,1,1,1}'), ('{1,5,4,1,1,1}'), ('{1,1,5,0,1,1}'), ('{1,1,5,1,2,1}'),
    ('{1,1,5,1,1,NULL}'), ('{1,1,9223372036854775807,1,1,1}'), ('{1,1,5,1,NULL,1}')) t (v);
SELECT format('CALL told(%L)', of_newcomer() || '{"datacenter_bits": 5, "worker_bits": 5, "incarnation": 999, "lowest": 1000}' || fields)
  FROM bad ORDER BY n \gexec

\echo -- One call for all that wait.
-- Requests of newcomers in a layout with so many worker bits, with other fields.
CREATE FUNCTION newcomers(bits integer, VARIADIC fields jsonb[]) RETURNS fleet_request[] LANGUAGE sql AS $$
  SELECT array_agg(request_of(of_newcomer() || jsonb_build_object('worker_bits', bits, 'sequence_bits', 5, 'incarnation', nextval('life')) || f)
                   ORDER BY place)
    FROM unnest(fields) WITH ORDINALITY u(f, place) $$;
-- What each is told, and by how much its serial is above the first one's; and how many hints refusals have. What the
-- registry had no time for is asked again.
CREATE PROCEDURE call_all(requests fleet_request[], INOUT told text DEFAULT NULL, INOUT hints bigint DEFAULT NULL) LANGUAGE plpgsql AS $$
DECLARE
  message bytea;
  answers fleet_answer[];
BEGIN
  WHILE coalesce(cardinality(answers), 0) < cardinality(requests) LOOP
    message := message_of(VARIADIC requests[coalesce(cardinality(answers), 0) + 1 : ]);
    CALL uid_internal.uid_fleet_call(message, message);
    answers := answers || ARRAY(SELECT a FROM answers_in(message) a);
  END LOOP;
  SELECT string_agg(format('%s+%s', coalesce(refusal, CASE WHEN node IS NOT NULL THEN 'node' WHEN count > 0 THEN 'block' ELSE 'hello' END), after), ' '
                    ORDER BY serial), count(DISTINCT hint)
    INTO told, hints FROM (SELECT *, serial - min(serial) OVER () AS after FROM unnest(answers)) a;
  told := CASE WHEN length(told) > 500 THEN split_part(told, ' ', 1) || ' ... ' || split_part(told, ' ', cardinality(requests)) ELSE told END;
END
$$;
-- A bad request spoils none, and none_free answers all that find no node. The same incarnation twice gets one node.
CALL call_all(newcomers(1, '{}', '{"length": 0}', '{"incarnation": null}', '{"incarnation": 7000001}', '{"incarnation": 7000001}', '{}', '{}',
  '{"policy": "static", "worker_number": 1}'));
SELECT count(*) FROM uid_fleet_node JOIN uid_fleet_pool USING (pool) WHERE worker_bits = 1 AND sequence_bits = 5;
-- A call may bring a layout, and use it.
CALL call_all(newcomers(2, '{"length": -1}', '{}', '{}'));
SELECT count(*) FROM uid_fleet_pool WHERE worker_bits = 2 AND sequence_bits = 5;
SELECT format('CALL call_all(array_fill((newcomers(1, %L))[1], ARRAY[%s]))', '{}', n) FROM unnest(ARRAY[100, 101]) n \gexec
-- What is no message, or only a part of one, or goes on after its end. Columns of a later version are left out.
SELECT replace('DO $do$ DECLARE m bytea := message_of(VARIADIC newcomers(1, ''{}'')); BEGIN CALL uid_internal.uid_fleet_call(CHANGE, m);
  RAISE INFO ''%: %'', $$CHANGE$$, (answers_in(m)).refusal; END $do$', 'CHANGE', change)
  FROM unnest(ARRAY['''\x''', 'substr(m, 1, 3)', 'substr(m, 1, 12)', 'substr(m, 1, length(m) - 1)', 'm || ''\x00''', 'set_byte(m, 0, 255)',
    'set_byte(m, 3, 46)', 'set_byte(m, 3, 48)', 'set_byte(m, 7, 20)', 'set_byte(m, 8, 127)', 'set_byte(m, 8, 255)', 'set_byte(m, 11, 8)', 'set_byte(m, 11, 0)',
    'set_byte(m, 3, 48) || ''\x00000017ffffffff''']) change \gexec

\echo -- What a member shows counts only if the registry gave it: no term stops the registry, no serial raises a fence, and no
\echo -- grant takes a node.
CALL run('z3; SELECT fence_base FROM uid_fleet_state', 'worker_bits=6');
SELECT count(*) AS nodes FROM uid_fleet_node \gset
CREATE TABLE honest AS SELECT * FROM member WHERE name = 'z3';
SELECT format('CALL run(%L, %L)', format('DELETE FROM member WHERE name = %L; INSERT INTO member SELECT * FROM honest;
    UPDATE member SET %s WHERE name = %1$L; z3 %3$s', 'z3', change, replace(change, '=', ':')), 'worker_bits=6')
  FROM unnest(ARRAY['term=9007199254740992', 'term=term+1', 'fleet=NULL,term=term+1', 'term_nonce=term_nonce+1',
    'serial=9223372036854775807', 'serial=-1', 'seal=0', 'held_serial=held_serial+1', 'held_until=held_until+1',
    'held_until=9223372036854775807', 'held_from=held_until-1', 'held_node=-2', 'held_node=(held_node+1)%64', 'held_term=held_term-1', 'held_membership=held_membership+1,held_until=held_until+1',
    'seal=held_seal', 'held_seal=seal']) change \gexec
CREATE TABLE known_fleet AS SELECT fleet FROM uid_fleet_state;
CALL run($$
block orders term=9007199254740992 serial=1 seal=1, block orders term=1 serial=9223372036854775807 seal=1;
UPDATE member SET (term, serial, seal) = (9007199254740992, 1, 1) WHERE name = 'z3';
z3 why;
SELECT (shown_term, fence_base) FROM uid_fleet_state;
-- A later term that may be another registry's keeps newcomers away until an administrator, or time, says that it is not.
SELECT (login, term - (SELECT term FROM uid_fleet_state), shown_at > now() - interval '1 min', host) AS claim FROM uid_fleet_claim;
SELECT max(refuses) FROM uid_fleet_pools;
new why, z1, block orders;
UPDATE uid_fleet_claim SET shown_at = shown_at - interval '621 s';
SELECT max(refuses) FROM uid_fleet_pools;
new;
UPDATE uid_fleet_claim SET shown_at = now(), term = term + 1000000;
new;
SELECT uid_fleet_fence() IS NOT NULL AS fenced;
SELECT (drew(), first_term = term, (SELECT count(*) FROM uid_fleet_claim)) AS above FROM uid_fleet_state;
-- What nobody can prove is forgotten then: an invented grant takes no node.
INSERT INTO member SELECT (jsonb_populate_record(m, '{"name": "thief", "incarnation": 7, "held_membership": 7,
  "held_seal": 1, "seal": 1}')).* FROM member m WHERE name = 'new';
UPDATE member SET held_until = held_until + 1 WHERE name = 'thief';
thief, new;
DELETE FROM member WHERE name = 'thief';
UPDATE uid_fleet_state SET fence_base = NULL;
new;
DELETE FROM member WHERE name IN ('z3', 'new');
INSERT INTO member SELECT * FROM honest;
z3;
-- Whatever was asked: nodes are in range.
SELECT count(*) FILTER (WHERE node >= nodes) AS beyond FROM uid_fleet_node JOIN uid_fleet_pools USING (pool);
$$, 'worker_bits=6');
SELECT count(*) - :nodes AS new_nodes FROM uid_fleet_node;

\echo -- A term that a clock drew which was days ahead stops the member that has seen it, and no other.
CALL run($$
UPDATE uid_fleet_state SET term = term + 172800000000;
z3;
UPDATE uid_fleet_state SET term = term - 172800000000;
z3, z1;
DELETE FROM member WHERE name = 'z3';
INSERT INTO member SELECT * FROM honest;
$$, 'worker_bits=6');

\echo -- Any number of layouts would fill the disk. One login does not use up those of another one.
INSERT INTO uid_fleet_pool (pool, preset, epoch, tick_us, time_bits, datacenter_bits, worker_bits, sequence_bits, sequence_first,
    backup_worker, login)
  SELECT 1000 + n, 'custom', '2026-01-01', 1000, 40, 0, 2, n, false, false, 'uidgen_fleet' FROM generate_series(1, 1000) n;
GRANT ALL ON member, life, known_fleet TO uidgen_fleet;
SET ROLE uidgen_fleet;
CALL run('full', 'worker_bits=8');
RESET ROLE;
CALL run($$
SELECT count(*) AS layouts FROM uid_fleet_pool WHERE worker_bits = 8;
other;
SELECT login = current_user AS of_its_login FROM uid_fleet_pool WHERE worker_bits = 9;
DELETE FROM uid_fleet_pool WHERE pool > 1002;
$$, 'worker_bits=9');

\echo -- Another epoch that is asked for has a pool of its own, and the view says so. The first comer decides for all, until an
\echo -- administrator drops its pool.
CALL run($$
e1 begins=2026-01-02 own_pool=false, e2 own_pool=false;
SELECT string_agg(concat_ws(' ', p.epoch::date, v.collides_with IS NULL), ',') AS alone FROM uid_fleet_pools v JOIN uid_fleet_pool p USING (pool) WHERE sequence_bits = 8;
e2;
SELECT string_agg(concat_ws(' ', p.epoch::date, v.collides_with = ARRAY[o.pool]), ',' ORDER BY p.epoch) AS two
  FROM uid_fleet_pools v JOIN uid_fleet_pool p USING (pool) JOIN uid_fleet_pool o ON o.sequence_bits = 8 AND o.pool <> p.pool WHERE p.sequence_bits = 8;
SELECT uid_fleet_drop_pool(pool) FROM uid_fleet_pool WHERE sequence_bits = 8 AND epoch = '2026-01-02';
UPDATE uid_fleet_node n SET granted_until = granted_from FROM uid_fleet_pool p WHERE p.pool = n.pool AND p.sequence_bits = 8;
SELECT uid_fleet_drop_pool(pool) FROM uid_fleet_pool WHERE sequence_bits = 8 AND epoch = '2026-01-02';
SELECT (count(*), min(preset)) AS one FROM uid_fleet_pools JOIN uid_fleet_pool p USING (pool, preset) WHERE p.sequence_bits = 8;
SELECT uid_fleet_drop_pool(pool) FROM uid_fleet_pool WHERE sequence_bits = 8 AND dropped;
SELECT uid_fleet_drop_pool(NULL);
-- What was granted in it is not forgotten.
e3 begins=2026-01-02 own_pool=false, e3 begins=2026-01-02;
SELECT (count(*) = 2, sum(n.nodes) = 3, bool_or(dropped)) AS kept FROM uid_fleet_pool p CROSS JOIN LATERAL (SELECT count(*) AS nodes FROM uid_fleet_node WHERE pool = p.pool) n WHERE sequence_bits = 8;
$$, 'worker_bits=14 sequence_bits=8');

\echo -- What a caller says of itself selects nothing: a node belongs to its login. While less than a quarter of the nodes is free,
\echo -- a login gets no more than its share of them. A renewal moves a node to the login that shows it.
SET ROLE uidgen_fleet;
CALL run('q1, q2, q3, q4, q5, q6', 'worker_bits=3 sequence_bits=9');
RESET ROLE;
CALL run('p1', 'worker_bits=3 sequence_bits=9 length=4611686018427387904');
SET ROLE uidgen_fleet;
CALL run('q7 why, q1, q8 former_node=0 former_ahead=1s, q8 former_node=1 former_ahead=1s, q8 former_node=2 former_ahead=1s,
  q8 former_node=3 former_ahead=1s, q8 former_node=4 former_ahead=1s, q8 former_node=5 former_ahead=1s, q8 former_node=6 former_ahead=1s,
  q8 former_node=7 former_ahead=1s', 'worker_bits=3 sequence_bits=9');
RESET ROLE;
CALL run($$
p2, p3 why, q1, q2;
SELECT (count(*) FILTER (WHERE f.login = current_user), count(*)) AS of_p FROM uid_fleet f JOIN uid_fleet_pool USING (pool) WHERE sequence_bits = 9;
-- No grant lasts for such a length, and no clock is that wrong.
SELECT max(asked_length) FROM uid_fleet_node;
old worker_bits=12 ahead=-40years lowest=1;
SELECT clock_offset FROM uid_fleet WHERE clock_offset < '-20 h';
$$, 'worker_bits=3 sequence_bits=9');
\echo -- Of a layout with many nodes none gets more than 65,536. A session counts again after a call of another login.
SET ROLE uidgen_fleet;
CALL run('m1', 'worker_bits=21 sequence_bits=1');
RESET ROLE;
INSERT INTO uid_fleet_node (pool, node, granted_until, membership, term, serial, login)
  SELECT pool_of(21), n, held_until, n, 0, 0, 'uidgen_fleet' FROM generate_series(1, 65535 + 1) n, member WHERE name = 'm1' AND n <> held_node;
CALL run('m3', 'worker_bits=21 sequence_bits=1');
SET ROLE uidgen_fleet;
CALL run('m2 why, m1', 'worker_bits=21 sequence_bits=1');
RESET ROLE;
CALL run('m2', 'worker_bits=21 sequence_bits=1');
DELETE FROM uid_fleet_node WHERE pool = pool_of(21);

\echo -- The rows keep nodes apart.
SELECT * FROM outcomes('TRUNCATE %s', 'uid_fleet_node', 'uid_fleet_pool', 'uid_fleet_state', 'uid_fleet_segment');

\echo '-- The transaction is the call''s own.'
\set VERBOSITY default
BEGIN;
CALL call('{}');
ROLLBACK;
\set VERBOSITY terse
DO $$ DECLARE a fleet_answer; BEGIN CALL call('{}', a); EXCEPTION WHEN division_by_zero THEN NULL; END $$;
CREATE PROCEDURE with_set(INOUT a fleet_answer DEFAULT NULL) LANGUAGE plpgsql SET work_mem = '4MB' AS
  $$ BEGIN CALL call('{}', a); END $$;
CALL with_set();
CREATE FUNCTION in_function() RETURNS void LANGUAGE plpgsql AS
  $$ DECLARE a fleet_answer; BEGIN CALL call('{}', a); END $$;
SELECT in_function();
SET default_transaction_isolation = 'serializable';
SET default_transaction_read_only = on;
CALL call('{}') \gset
RESET default_transaction_isolation;
RESET default_transaction_read_only;
SELECT (:'answer'::fleet_answer).is_open;
-- What a procedure does after its call does not undo it.
CREATE PROCEDURE undone(INOUT outcome text DEFAULT NULL) LANGUAGE plpgsql AS $$
BEGIN CALL ask('clock6', 'worker_bits=7', outcome); ROLLBACK; END $$;
CALL undone();
SELECT count(*) AS kept FROM uid_fleet_node JOIN member USING (incarnation) WHERE name = 'clock6';

\echo -- Segments: what members call for blocks of values.
CALL run($$
SELECT segment_create('orders') IS NOT NULL AS made;
SELECT segment_create('Bestell"ung') IS NOT NULL AS made;
SET ROLE uidgen_fleet;
block orders, block Bestell"ung, block it's_nowhere;
RESET ROLE;
GRANT USAGE ON SEQUENCE uid_segments.orders, uid_segments."Bestell""ung" TO uidgen_fleet;
SET ROLE uidgen_fleet;
block orders, block Bestell"ung;
-- Draws on the registry go on beside blocks.
block orders count=1000;
RESET ROLE;
SELECT (segment_next('orders'), segment_next('orders'));
SET ROLE uidgen_fleet;
block orders count=1 database=b;
RESET ROLE;
SELECT segment_next('orders');
SET ROLE uidgen_fleet;
-- The last value that a member was given. The registry may have lost it.
block orders shown=1500, block orders shown=5000, block orders shown=1500;
RESET ROLE;
SELECT segment_next('orders') > 5020 AS above;
-- While there is a rival, it may give the same values.
UPDATE uid_fleet_state SET shown_term = term;
block orders count=0, block orders;
UPDATE uid_fleet_state SET shown_term = NULL;
SELECT refills_disturbed FROM segment_status WHERE name = 'orders';
-- A call without values says what the segment is like; of any increment, to a server of any fleet.
block orders count=0 increment=0 fleet=0, block orders fleet=4711;
-- A registry that is shown a later term stops.
UPDATE uid_fleet_state SET term = term - 600000000000000;
block orders term=1790000000000000, block orders;
UPDATE uid_fleet_state SET term = term + 600000000000000, shown_term = NULL;
block orders increment=2;
ALTER SEQUENCE uid_segments.orders CYCLE;
block orders;
ALTER SEQUENCE uid_segments.orders NO CYCLE MINVALUE -5;
block orders;
ALTER SEQUENCE uid_segments.orders MINVALUE 0;
-- To the end, and what is left. A block is at most 1/1024 of a sequence.
SELECT segment_create('short') IS NOT NULL AS made;
ALTER SEQUENCE uid_segments.short MAXVALUE 30000;
block short count=100;
-- A member may claim what a failover loses: some blocks. A claim of more changes nothing. With the administrator's word
-- it goes on.
block short count=100 shown=400, block short count=100 shown=29990, block short count=100 shown=40000;
block orders shown=9223372036854775800, block orders count=9223372036854775807, block short count=100;
SELECT segment_set('short', 29990);
block short count=100 shown=29990, block short count=100, block short count=100 shown=40000;
SELECT segment_create('down') IS NOT NULL AS made;
ALTER SEQUENCE uid_segments.down INCREMENT -5 MINVALUE -1000000 MAXVALUE 0 START 0 RESTART;
block down increment=-5 shown=1, block down increment=-5 shown=-100, block down increment=-5 shown=-100;
ALTER SEQUENCE uid_segments.down MAXVALUE 10;
block down increment=-5;
SELECT uid_fleet_handover();
block orders;
UPDATE uid_fleet_state SET closed_until = NULL;
$$);
BEGIN;
CALL block('orders', '');
ROLLBACK;

\echo -- What any request of a call shows counts before the first one gets anything.
CREATE FUNCTION shows_later(requests fleet_request[]) RETURNS fleet_request[] LANGUAGE sql AS $$
  SELECT requests || newcomers(3, jsonb_build_object('fleet', fleet, 'term', term, 'term_nonce', term_nonce, 'serial', later,
           'seal', seal(format('stamp %s %s %s %s', fleet, term, term_nonce, later))))
    FROM uid_fleet_state, (SELECT last_value + 1000 AS later FROM uid_fleet_serial) s $$;
CALL call_all(shows_later(newcomers(3, '{}', '{}')));
SELECT count(*) AS layouts FROM uid_fleet_pool WHERE worker_bits = 3 AND sequence_bits = 5;
SELECT fence_base > now() - interval '1 min' AS fence FROM uid_fleet_state;
SELECT calls('uid_fleet_fence(cancel => true)') \gexec

\echo '-- Rights: a member''s role may call the procedures and nothing else; others may not do that either.'
SET ROLE uidgen_fleet;
CALL run('stranger fleet=1 term=1 why', 'datacenter_bits=5 worker_bits=5');
SELECT * FROM outcomes('SELECT count(*) FROM %s', 'uid_fleet_state', 'uid_fleet_node', 'uid_fleet', 'uid_fleet_fence()',
  'uid_fleet_handover()', 'uid_fleet_takeover(1, 1)', 'uid_fleet_reserve(1, 1, true)',
  $$uid_fleet_admit('uidgen_plain')$$);
SET ROLE uidgen_plain;
CALL uid_internal.uid_fleet_call(NULL);
SELECT * FROM outcomes('SELECT count(*) FROM %s', 'uid_fleet_pools', $$nextval('uid_fleet_serial')$$);
RESET ROLE;
GRANT pg_monitor TO uidgen_plain;
SET ROLE uidgen_plain;
SELECT * FROM outcomes('SELECT count(*) > 1 FROM %s', 'uid_fleet', 'uid_fleet_pools', 'uid_fleet_node');
RESET ROLE;

-- A holder's other nodes are found by an index, or the cost would grow with the square of the number of nodes.
CREATE FUNCTION pg_temp.plan_of(query text) RETURNS SETOF text LANGUAGE plpgsql AS $$
BEGIN
  RETURN QUERY EXECUTE 'EXPLAIN ' || query;
END
$$;
SET enable_seqscan = off;
SELECT count(*) > 0 AS by_index FROM pg_temp.plan_of('SELECT state FROM uid_fleet') AS line
 WHERE line LIKE '%uid_fleet_node_incarnation%';
RESET enable_seqscan;

\echo '-- A hostile search_path: names in front of the extension''s and of pg_catalog.'
CREATE SCHEMA hostile AUTHORIZATION uidgen_plain;
SET ROLE uidgen_plain;
CREATE FUNCTION hostile.trap(bigint, bigint) RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN RAISE 'trapped'; END $$;
CREATE OPERATOR hostile.= (LEFTARG = bigint, RIGHTARG = bigint, FUNCTION = hostile.trap);
CREATE TABLE hostile.uid_fleet_state (LIKE public.uid_generator);
CREATE TABLE hostile.pg_extension (extname text);
RESET ROLE;
SELECT format('CALL uid_internal.uid_fleet_call(%L)', message_of(request_of(of_newcomer() || '{"worker_bits": 7, "incarnation": 999}'))) AS hostile_call \gset
SET search_path = hostile, public, pg_catalog;
:hostile_call \gset
SELECT count(*) > 1 AS shown FROM public.uid_fleet;
RESET search_path;
SELECT (answers_in(:'answers')).refusal IS NULL AS granted;
\echo -- The same session, after the schema got another name; and the schema has a name that must be quoted.
ALTER SCHEMA public RENAME TO "Pub""lic";
SET search_path = "Pub""lic";
CALL run($$
clock1;
SELECT uid_fleet_admit('uidgen_fleet');
SELECT count(*) > 1 AS shown FROM uid_fleet;
$$, 'worker_bits=7');
ALTER SCHEMA "Pub""lic" RENAME TO public;
RESET search_path;
CALL run('clock1', 'worker_bits=7');
DROP SCHEMA hostile CASCADE;

\echo -- The inverse of uid_fleet_admit(), by an owner of the database who is no superuser. The role then can be dropped.
DROP TABLE known_fleet, member CASCADE;
DROP SEQUENCE life;
CREATE ROLE uidgen_owner;
SELECT datdba::regrole::text AS owner FROM pg_database WHERE datname = current_database() \gset
ALTER DATABASE contrib_regression OWNER TO uidgen_owner;
RESET client_min_messages;
\set VERBOSITY default
SET ROLE uidgen_owner;
SELECT * FROM outcomes('SELECT uid_fleet_expel(%s)', $$'uidgen_fleet'$$, $$'uidgen_fleet'$$, 'NULL',
  $$(SELECT proowner::regrole FROM pg_proc WHERE proname = 'uid_fleet_call')$$);
RESET ROLE;
SELECT has_function_privilege('uidgen_fleet', p.oid, 'EXECUTE') FROM pg_proc p WHERE proname = 'uid_fleet_call';
DROP ROLE uidgen_fleet;
ALTER DATABASE contrib_regression OWNER TO :"owner";
DROP ROLE uidgen_owner, uidgen_plain, uidgen_super;

SELECT segment_drop('orders');
SET client_min_messages = error;
SELECT segment_drop(name) FROM uid_segment \g /dev/null
DROP TABLE bad, honest, lost;
DROP ROUTINE ask, block, call, told, call_all, newcomers, shows_later, run, with_set, undone, in_function, outcome, outcomes, us_at, seal, other, restarted, copied,
  nodes_end, clock_moves, calls, pool_of, bad;
DROP EXTENSION uidgen CASCADE;
