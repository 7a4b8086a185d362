-- The registry of a fleet, called by hand with made-up members. No clock is printed. expected/fleet_1.out is for a
-- server without the preload, which a registry needs.
SELECT current_setting('shared_preload_libraries') !~ '\muidgen\M' AS off \gset
\if :off
  \echo 'skipped: uidgen is not preloaded'
  \quit
\endif
\a \t
CREATE EXTENSION uidgen;
\set SHOW_CONTEXT never

CREATE ROLE uidgen_fleet;
CREATE ROLE uidgen_plain;

-- What a member keeps: its incarnations, its grant, and the latest answer that its server has seen, with the names that
-- they have in a request.
CREATE TABLE member (
  name text PRIMARY KEY, incarnation bigint, former bigint[] NOT NULL DEFAULT '{}',
  fleet bigint, epoch bigint, epoch_nonce bigint, serial bigint, seal bigint,
  held_node bigint, held_from bigint, held_until bigint, held_membership bigint, held_epoch bigint, held_epoch_nonce bigint,
  held_serial bigint, held_seal bigint);

-- Asks as a member does, and keeps the answer unless it is lost. The layout has two worker bits and ticks of a
-- millisecond, unless told otherwise. `ahead` moves the member's clock. A node is told from the one before only.
\set ECHO none
CREATE FUNCTION server() RETURNS jsonb LANGUAGE sql AS
  $$ SELECT '{"protocol": 1, "host": "host", "port": "5432", "database": "db", "version": "v"}'::jsonb $$;
CREATE FUNCTION layout(preset text DEFAULT 'custom', epoch timestamptz DEFAULT '2026-01-01 00:00:00+00',
    datacenter_bits integer DEFAULT 0, worker_bits integer DEFAULT 2, backup boolean DEFAULT false) RETURNS jsonb LANGUAGE sql AS
  $$ SELECT jsonb_build_object('preset', preset, 'layout_epoch_us', (extract(epoch FROM epoch) * 1000000)::bigint, 'tick_us', 1000,
       'time_bits', 41, 'datacenter_bits', datacenter_bits, 'worker_bits', worker_bits, 'sequence_bits', 12,
       'sequence_first', false, 'backup_worker', backup) $$;
CREATE FUNCTION generator(incarnation bigint) RETURNS jsonb LANGUAGE sql AS
  $$ SELECT jsonb_build_object('incarnation', incarnation, 'generator', 'uid_generators.g', 'policy', 'disposable',
       'clock_us', (extract(epoch FROM clock_timestamp()) * 1000000)::bigint, 'lowest',
       (extract(epoch FROM clock_timestamp() - timestamptz '2026-01-01 00:00:00+00') * 1000)::bigint, 'length', 1000) $$;
CREATE PROCEDURE call(request jsonb, INOUT answer uid_fleet_answer DEFAULT NULL) LANGUAGE plpgsql AS
  $$ BEGIN CALL uid_fleet_call(jsonb_populate_record(NULL::uid_fleet_request, server() || request), answer); END $$;
-- Why a call is refused. Times are left out.
CREATE PROCEDURE why(request jsonb, INOUT refusal text DEFAULT NULL, INOUT message text DEFAULT NULL, INOUT hint text DEFAULT NULL)
LANGUAGE plpgsql AS $$
DECLARE a uid_fleet_answer;
BEGIN
  CALL call(request, a);
  SELECT a.refusal, regexp_replace(regexp_replace(a.message, 'until .*', 'until ...'), '[0-9]+\.[0-9]+', '...'),
      regexp_replace(a.hint, 'ends at .*, unless', 'ends at ..., unless')
    INTO refusal, message, hint;
END
$$;
CREATE PROCEDURE ask(who text, lost boolean DEFAULT false, ahead interval DEFAULT '0', length bigint DEFAULT 600000,
    preset text DEFAULT 'custom', epoch timestamptz DEFAULT '2026-01-01 00:00:00+00', datacenter_bits integer DEFAULT 0,
    worker_bits integer DEFAULT 2, backup boolean DEFAULT false, policy text DEFAULT 'disposable',
    worker_number integer DEFAULT NULL, datacenter_id integer DEFAULT NULL, former_node bigint DEFAULT NULL,
    former_ahead interval DEFAULT '1 second', host text DEFAULT 'host', generator text DEFAULT 'uid_generators.g',
    other jsonb DEFAULT '{}', INOUT outcome text DEFAULT NULL)
LANGUAGE plpgsql AS $$
DECLARE
  m member := (SELECT member FROM member WHERE name = who);
  a uid_fleet_answer;
  clock_us bigint := extract(epoch FROM clock_timestamp() + ahead) * 1000000;
  epoch_us bigint := extract(epoch FROM epoch) * 1000000;
BEGIN
  CALL call(layout(preset, epoch, datacenter_bits, worker_bits, backup) || generator(m.incarnation) || to_jsonb(m) || other
    || jsonb_build_object('clock_us', clock_us, 'lowest', (clock_us - epoch_us) / 1000, 'length', length, 'policy', policy,
       'worker_number', worker_number, 'datacenter_id', datacenter_id, 'host', host, 'generator', generator,
       'former_node', former_node, 'former_until', CASE WHEN former_node IS NOT NULL THEN
         (extract(epoch FROM clock_timestamp() + former_ahead) * 1000 - epoch_us / 1000)::bigint END), a);
  IF a.refusal IS NOT NULL THEN
    outcome := a.refusal;
    IF num_nulls(a.node, a.granted_from, a.granted_until, a.membership, a.held_seal) < 5 OR num_nulls(a.message, a.hint, a.serial) > 0
       OR a.serial <= m.held_serial THEN
      outcome := 'not a refusal: ' || a;
    END IF;
    RETURN;
  END IF;
  IF num_nulls(a.message, a.hint) < 2 OR a.granted_until <= a.granted_from OR a.serial IS NULL THEN
    outcome := 'not a grant: ' || a;
    RETURN;
  END IF;
  IF NOT lost THEN
    UPDATE member SET (former, fleet, epoch, epoch_nonce, serial, seal, held_node, held_from, held_until, held_membership, held_epoch,
        held_epoch_nonce, held_serial, held_seal) =
      ('{}', a.fleet, a.epoch, a.epoch_nonce, a.serial, a.seal, a.node, a.granted_from, a.granted_until, a.membership, a.epoch,
        a.epoch_nonce, a.serial, a.held_seal)
     WHERE name = who;
  END IF;
  outcome := CASE WHEN m.held_node IS NULL THEN 'a node' WHEN a.node = m.held_node THEN 'the same node' ELSE 'another node' END
    || CASE WHEN a.membership = m.incarnation THEN ', new membership' ELSE '' END
    || CASE WHEN a.granted_until < m.held_until AND a.node = m.held_node THEN ', shorter!' ELSE '' END;
END
$$;
CREATE FUNCTION born(who text, number bigint) RETURNS void LANGUAGE sql AS
  $$ INSERT INTO member (name, incarnation) VALUES (who, number) $$;
-- The next life of a member: after a restart.
CREATE FUNCTION restarted(who text, number bigint) RETURNS void LANGUAGE sql AS
  $$ UPDATE member SET former = former || incarnation, incarnation = number WHERE name = who $$;
-- A copy of a member's files.
CREATE FUNCTION copied(who text, copy text) RETURNS void LANGUAGE sql AS
  $$ INSERT INTO member SELECT (jsonb_populate_record(m, jsonb_build_object('name', copy))).* FROM member m
      WHERE name = who $$;
-- The grant of a member has ended since.
CREATE FUNCTION nodes_end(who text, since interval) RETURNS void LANGUAGE sql AS
  $$ UPDATE uid_fleet_node SET granted_until = (extract(epoch FROM clock_timestamp() - since
       - timestamptz '2026-01-01 00:00:00+00') * 1000)::bigint WHERE pool = 1 AND node = (SELECT held_node FROM member WHERE name = who) $$;
\set ECHO all

-- No registry yet.
SELECT born('a', 11), born('b', 21), born('c', 31), born('d', 41), born('e', 51);
\set VERBOSITY terse
CALL ask('a');
SELECT uid_fleet_fence();
\set VERBOSITY default

-- What kind of registry it is must be said once.
SELECT uid_fleet_admit('uidgen_fleet');
SELECT uid_fleet_admit('uidgen_fleet', 'nonsense');
SELECT uid_fleet_admit('uidgen_fleet', 'unchanged');
SELECT uid_fleet_admit('uidgen_fleet', 'successor');
SELECT uid_fleet_admit('uidgen_fleet', 'new', fleet => 4711);
SELECT uid_fleet_admit('uidgen_fleet', 'new');
SELECT uid_fleet_admit('uidgen_fleet');
SELECT uid_fleet_admit('uidgen_nobody');
SELECT uid_fleet_admit(NULL);
-- It would write settings onto a superuser.
CREATE ROLE uidgen_super SUPERUSER;
SELECT uid_fleet_admit('uidgen_super');
DROP ROLE uidgen_super;
SELECT count(*), min(epoch) AS epoch, min(clock_bound) AS clock_bound FROM uid_fleet_state;
SELECT unnest(setconfig) FROM pg_db_role_setting WHERE setrole = 'uidgen_fleet'::regrole;

-- Newcomers get nodes of their own; a member that asks again keeps its node, and so does one whose answer was lost.
CALL ask('a');
CALL ask('a');
CALL ask('b', lost => true);
CALL ask('b');
CALL ask('b');
SELECT held_until - held_from BETWEEN 600000 AND 660000 AS adds_nothing FROM member WHERE name = 'b';
-- A restart, two restarts without an answer, and one whose answer was lost.
SELECT restarted('a', 12);
CALL ask('a');
SELECT restarted('a', 13), restarted('a', 14);
CALL ask('a', lost => true);
CALL ask('a');
-- Of two that follow the same life the second is refused, and the first goes on.
SELECT copied('a', 'copy'), restarted('a', 15), restarted('copy', 16);
CALL ask('a');
CALL ask('copy');
CALL ask('a');

-- A request without a generator only asks who answers.
CALL call('{}') \gset
SELECT (a).fleet = s.fleet AND (a).epoch = s.epoch AND (a).epoch_nonce = s.epoch_nonce AS who, (a).is_open, num_nonnulls((a).seal, (a).server,
    (a).clock_us) AS told, num_nonnulls((a).refusal, (a).node, (a).held_seal, (a).count, (a).granted_last_us) AS given
  FROM uid_fleet_state s, LATERAL (SELECT :'answer'::uid_fleet_answer AS a) t;

-- All nodes in use.
CALL ask('c');
CALL ask('d');
CALL ask('e');
CALL why(layout() || generator(51));
-- The node whose grant ended first comes first. The former holder then is a newcomer, and finds none.
SELECT nodes_end('b', '1 s'), nodes_end('c', '2 s');
CALL ask('e');
SELECT e.held_node = c.held_node AS of_c FROM member e, member c WHERE e.name = 'e' AND c.name = 'c';
CALL ask('c');
CALL ask('b');

-- Taking over, which only a holder that is dead survives. It was ahead of its clock by half of the length that it asked
-- for at most.
SELECT held_node AS node_of_e FROM member WHERE name = 'e' \gset
SELECT t BETWEEN now() + interval '309 s' AND now() + interval '311 s' AS half FROM uid_fleet_takeover(1, :node_of_e) t;
SELECT state FROM uid_fleet WHERE pool = 1 AND node = :node_of_e;
CALL ask('e');
SELECT uid_fleet_takeover(1, :node_of_e) < now() + interval '312 s' AS again;
SELECT uid_fleet_takeover(1, 4);
SELECT uid_fleet_takeover(9, 1);
SELECT uid_fleet_takeover(NULL, 1) IS NULL AS is_null;

-- Static and sticky, in a layout of its own.
CREATE PROCEDURE ask_for(who text, number integer, INOUT outcome text DEFAULT NULL) LANGUAGE plpgsql AS
  $$ BEGIN CALL ask(who, worker_bits => 4, policy => 'static', worker_number => number, outcome => outcome); END $$;
SELECT born('s1', 101), born('s2', 102), born('t1', 111), born('t2', 112), born('t3', 113), born('t4', 114);
CALL ask_for('s1', 9);
CALL ask_for('s2', 9);
CALL ask_for('s2', 10);
CALL why(layout(worker_bits => 4) || generator(103) || '{"policy": "static", "worker_number": 9}');
CALL ask('t1', worker_bits => 4, policy => 'sticky', host => 'sticky');
-- Its former grant still runs.
CALL ask('t2', worker_bits => 4, policy => 'sticky', host => 'sticky');
UPDATE uid_fleet_node SET granted_until = granted_from WHERE policy = 'sticky';
CALL ask('t3', worker_bits => 4, policy => 'sticky', host => 'sticky');
SELECT t3.held_node = t2.held_node AS its_last FROM member t3, member t2 WHERE t3.name = 't3' AND t2.name = 't2';
CALL ask('t4', worker_bits => 4, policy => 'sticky', host => 'other');

-- Datacenter ids: those that members ask for are left to them.
CREATE PROCEDURE ask_dc(who text, datacenter_id integer DEFAULT NULL, INOUT outcome text DEFAULT NULL) LANGUAGE plpgsql AS
  $$ BEGIN CALL ask(who, datacenter_bits => 1, worker_bits => 1, datacenter_id => datacenter_id, outcome => outcome); END $$;
SELECT born('u1', 201), born('u2', 202), born('u3', 203), born('u4', 204), born('u5', 205), born('u6', 206);
CALL ask_dc('u1', 1);
CALL ask_dc('u4', 0);
CALL ask_dc('u4', 0);
CALL ask_dc('u2');
CALL ask_dc('u3');
CALL ask_dc('u5', 1);
CALL why(layout(datacenter_bits => 1, worker_bits => 1) || generator(205) || '{"datacenter_id": 0}');
SELECT node, datacenter_id, worker_id, state, generator, database, host, port, version, policy
  FROM uid_fleet WHERE pool = 3 ORDER BY node;
SELECT name, held_node >> 1 AS datacenter_id FROM member WHERE name IN ('u1', 'u4') ORDER BY name;
-- A layout without the field does not mind.
SELECT born('v1', 211), born('v2', 212);
CALL ask('v1', worker_bits => 3, datacenter_id => 12);
-- With a backup worker one bit is not drawn.
CALL ask('v2', worker_bits => 1, backup => true);
CALL ask('u6', worker_bits => 1, backup => true);

-- A preset has one epoch in a fleet.
SELECT born('w1', 301), born('w2', 302);
CALL ask('w1', preset => 'leaf', worker_bits => 10, epoch => '2026-02-01 00:00:00+00');
CALL ask('w2', preset => 'leaf', worker_bits => 10);
SET timezone = 'UTC';
CALL why(layout('leaf', worker_bits => 10) || generator(303) || '{"policy": "static", "worker_number": 9, "generator": "uid_generators.\"my.Gen\""}');
CALL ask('w2', preset => 'custom', worker_bits => 10);

-- Joining: the node used so far is left alone until the member's high-water mark is over, unless it has a holder.
-- A use that ends later than a grant would is refused, and changes nothing.
SELECT born('x1', 401), born('x2', 402), born('x3', 403);
CALL ask('x1', worker_bits => 5, former_node => 30, former_ahead => '11 minutes');
CALL ask('x2', worker_bits => 5, former_node => 31, former_ahead => '60 years');
SELECT count(*) FROM uid_fleet_node n JOIN uid_fleet_pool p USING (pool) WHERE p.worker_bits = 5;
CALL ask('x1', worker_bits => 5, policy => 'static', worker_number => 5, former_node => 30, former_ahead => '9 minutes');
CALL ask('x2', worker_bits => 5, policy => 'static', worker_number => 30);
SELECT state, host FROM uid_fleet WHERE preset = 'custom' AND node = 30;
CALL ask('x2', worker_bits => 5, policy => 'static', worker_number => 29, former_node => 29, former_ahead => '-1 s');
CALL ask('x3', worker_bits => 5, policy => 'static', worker_number => 6, former_node => 29, former_ahead => '9 minutes');
CALL ask('x2', worker_bits => 5);
-- An administrator frees a node that only a claim keeps from others, by whatever it was claimed.
UPDATE uid_fleet_node SET granted_until = 2199023255552 WHERE node = 30 AND host IS NULL;
SELECT t < now() + interval '11 s' AS free_soon FROM uid_fleet_pool p, uid_fleet_takeover(p.pool, 30) t WHERE worker_bits = 5;
SELECT granted_until < 2199023255552 AS taken FROM uid_fleet_node WHERE node = 30 AND host IS NULL;

-- Nodes for generators outside.
SELECT pool AS of_dc FROM uid_fleet_pool WHERE datacenter_bits = 1 \gset
SELECT pool AS of_three FROM uid_fleet_pool WHERE worker_bits = 3 \gset
SELECT pool AS of_leaf FROM uid_fleet_pool WHERE worker_bits = 10 AND preset = 'leaf' \gset
SELECT * FROM uid_fleet_reserve(:of_leaf);
SELECT * FROM uid_fleet_reserve(:of_leaf, without_standby => NULL);
SELECT count(*), count(DISTINCT node) AS nodes, count(DISTINCT granted_until) AS ends,
       bool_and(node = datacenter_id * 1024 + worker_id AND granted_from <= clock_timestamp()) AS consistent, max(granted_until)
  FROM uid_fleet_reserve(:of_leaf, 3, without_standby => true);
SELECT count(*) FROM uid_fleet_reserve(:of_leaf, 0, without_standby => true);
SELECT * FROM uid_fleet_reserve(4711, without_standby => true);
SELECT * FROM uid_fleet_reserve(:of_leaf, -1, without_standby => true);
SELECT * FROM uid_fleet_reserve(:of_dc, without_standby => true);
SELECT count(*) FROM uid_fleet_reserve(:of_three, 8, without_standby => true);
SELECT born('y', 501);
SELECT count(*) FROM uid_fleet_reserve(:of_three, 7, without_standby => true);
CALL ask('y', worker_bits => 3);
UPDATE uid_fleet_node SET granted_until = granted_from
 WHERE pool = (SELECT pool FROM uid_fleet_pool WHERE worker_bits = 3) AND policy <> 'reserved';
CALL ask('y', worker_bits => 3);
SELECT pool, preset, nodes, live, cooling, reserved, free, fence_until FROM uid_fleet_pools
 ORDER BY pool;
-- The registry's clock is ahead of a holder, which says so at its call. Its grant lasts by its own clock.
BEGIN;
UPDATE uid_fleet_node SET granted_until = granted_until - 3600000 WHERE pool = 1 AND policy <> 'reserved' AND incarnation <> 0;
SELECT DISTINCT state FROM uid_fleet WHERE pool = 1 AND state <> 'reserved';
UPDATE uid_fleet_node SET clock_offset_us = -7200000000 WHERE pool = 1;
SELECT DISTINCT state FROM uid_fleet WHERE pool = 1 AND state <> 'reserved' AND generator IS NOT NULL;
ROLLBACK;

-- A handover: nothing is granted, until it is cancelled or another server takes over.
SELECT uid_fleet_handover();
CALL ask('b');
SELECT * FROM uid_fleet_reserve(:of_leaf, without_standby => true);
SELECT uid_fleet_takeover(1, 2);
\set VERBOSITY terse
SELECT uid_fleet_handover(cancel => true);
SELECT uid_fleet_fence();
\set VERBOSITY default
UPDATE uid_fleet_state SET closed_until = closed_until - interval '320 s';
CALL ask('b');
SELECT uid_fleet_handover(cancel => true);
CALL ask('b');
-- Another role is admitted without a word of what the registry is.
SELECT uid_fleet_admit('uidgen_fleet', 'unchanged');
SELECT uid_fleet_handover();
SELECT closed_until BETWEEN now() + interval '200 s' AND now() + interval '300 s' AS five_minutes FROM uid_fleet_state;
UPDATE uid_fleet_state SET closed_until = now() + interval '1 hour';
SELECT uid_fleet_handover();
UPDATE uid_fleet_state SET timeline = 0, closed_until = closed_until - interval '59 min';
CALL ask('b');
SELECT epoch, closed_until, timeline > 0 AS recorded, fence_base FROM uid_fleet_state;
-- A dump that was made after it needs nobody's word.
SELECT uid_fleet_handover();
UPDATE uid_fleet_state SET directory = 'the former one';
CALL ask('b');
SELECT epoch, closed_until, directory <> 'the former one' AS recorded, fence_base FROM uid_fleet_state;
-- It is too late for that if its clock and the bound are not below closed_until.
SELECT uid_fleet_handover();
UPDATE uid_fleet_state SET timeline = 0, closed_until = clock_timestamp() + interval '9 s';
CALL ask('b');
SELECT epoch, closed_until, fence_base IS NOT NULL AS fenced FROM uid_fleet_state;
UPDATE uid_fleet_state SET fence_base = NULL;

-- A fence: holders that show a grant that reaches far enough keep their nodes, and newcomers wait.
CALL ask('b', length => 600000);
SELECT born('z1', 601), born('z2', 602), born('z3', 603);
CALL ask('z1', worker_bits => 6, length => 5000);
CALL ask('z2', worker_bits => 6);
SELECT uid_fleet_fence() > now() + interval '620 s' AS from_then_on;
CALL ask('z2', worker_bits => 6);
CALL ask('z1', worker_bits => 6);
CALL ask('z3', worker_bits => 6);
SELECT epoch FROM member WHERE name IN ('z1', 'z2') ORDER BY epoch;
\set VERBOSITY terse
SELECT * FROM uid_fleet_reserve(:of_leaf, without_standby => true);
\set VERBOSITY default
SELECT count(*) AS fenced, min(refuses), max(refuses) FROM uid_fleet_pools WHERE fence_until > now();
-- A standby was promoted: the same fence.
UPDATE uid_fleet_state SET timeline = 0;
CALL ask('z2', worker_bits => 6);
SELECT epoch FROM uid_fleet_state;
-- If only synchronous standbys are promoted, there is none. Without one the registry grants nothing.
UPDATE uid_fleet_state SET timeline = 0, fence_base = NULL, synchronous = true;
CALL ask('z2', worker_bits => 6);
SELECT epoch, fence_base, refuses FROM uid_fleet_state;
UPDATE uid_fleet_state SET synchronous = false;
CALL ask('z2', worker_bits => 6);
SELECT refuses FROM uid_fleet_state;

-- A registry that is not the server that it was grants nothing until somebody has said what it is.
UPDATE uid_fleet_state SET timeline = 7;
CALL ask('z2', worker_bits => 6);
CALL why(generator(999) || layout());
SELECT uid_fleet_takeover(1, 2);
SELECT uid_fleet_admit('uidgen_fleet');
SELECT uid_fleet_admit('uidgen_fleet', 'successor', fleet => 4711);
SELECT epoch, refuses FROM uid_fleet_state;
SELECT uid_fleet_admit('uidgen_fleet', 'successor');
CALL ask('z2', worker_bits => 6);
CALL ask('z3', worker_bits => 6);
SELECT epoch, refuses, timeline = 1 AS recorded FROM uid_fleet_state;
UPDATE uid_fleet_state SET directory = directory || '0';
CALL ask('z2', worker_bits => 6);
SELECT uid_fleet_admit('uidgen_fleet', 'unchanged');
CALL ask('z2', worker_bits => 6);
SELECT born('z4', 604);
CALL ask('z4', worker_bits => 6);
SELECT epoch, refuses, fence_base FROM uid_fleet_state;
UPDATE uid_fleet_state SET database = '1/1/1', fence_base = NULL;
CALL ask('z2', worker_bits => 6);
SELECT uid_fleet_fence() > now() + interval '10 min' AS fenced;
CALL ask('z2', worker_bits => 6);

-- A registry that starts waits for a member, if it may have any.
UPDATE uid_fleet_state SET serial_at_start = 1000, longest_grant = '1 day', fence_base = NULL;
SELECT born('z5', 605);
CALL ask('z5', worker_bits => 6);
CALL ask('z2', worker_bits => 6);
CALL ask('z5', worker_bits => 6);

-- A greater bound is stored, and counts from the next call on. A smaller setting is no smaller bound.
UPDATE uid_fleet_state SET clock_bound = '7 s', longest_grant = '10 min';
CALL ask('z2', worker_bits => 6);
SELECT clock_bound FROM uid_fleet_state;
CALL ask('z2', worker_bits => 6);
SELECT clock_bound FROM uid_fleet_state;
UPDATE uid_fleet_state SET clock_bound = '30 s', fence_base = now();
CALL ask('z2', worker_bits => 6);
SELECT clock_bound, (SELECT max(fence_until) FROM uid_fleet_pools) = fence_base + interval '660 s' AS by_the_bound
  FROM uid_fleet_state;
UPDATE uid_fleet_state SET clock_bound = '10 s', fence_base = NULL;
-- A member has seen an answer that the registry has lost.
SELECT last_value AS last FROM uid_fleet_serial \gset
SELECT setval('uid_fleet_serial', :last - 5) > 0 AS lost;
CALL ask('z2', worker_bits => 6);
SELECT epoch FROM uid_fleet_state;
SELECT setval('uid_fleet_serial', :last + 100) > 0 AS found;
-- The same of the epoch before, if nothing was said to be lost with it.
SELECT uid_fleet_fence(cancel => true) IS NOT NULL AS fine;
UPDATE uid_fleet_state SET former_serial = 1;
CALL ask('z2', worker_bits => 6);
SELECT epoch, fence_base IS NOT NULL AS fenced FROM uid_fleet_state;
-- A member has seen a later epoch: this server must not be the registry any more.
UPDATE uid_fleet_state SET epoch = epoch - 1;
CALL ask('z2', worker_bits => 6);
CALL ask('a');
SELECT epoch, shown_epoch, refuses FROM uid_fleet_state;
-- It says when it granted last, whatever is done with a handover meanwhile.
SELECT uid_fleet_handover();
UPDATE uid_fleet_state SET closed_until = closed_until - interval '400 s';
SELECT uid_fleet_handover(cancel => true);
CALL call('{}') \gset
SELECT (a).refusal, (a).granted_last_us > 0 AS granted FROM (SELECT :'answer'::uid_fleet_answer AS a) t;
SELECT uid_fleet_fence() > now() AS fenced;
SELECT epoch, shown_epoch, refuses FROM uid_fleet_state;
CALL ask('z2', worker_bits => 6);
-- Or its number with another nonce: there are two registries. Members of this one renew, newcomers wait.
UPDATE uid_fleet_state SET epoch_nonce = epoch_nonce / 2, fence_base = NULL;
CALL ask('z2', worker_bits => 6);
SELECT born('z6', 606);
CALL ask('z6', worker_bits => 6);
CALL ask('z1', worker_bits => 6);
SELECT shown_epoch = epoch AS same, refuses FROM uid_fleet_state;
SELECT uid_fleet_fence(cancel => true) IS NOT NULL AS chosen;
CALL ask('z2', worker_bits => 6);
CALL ask('z6', worker_bits => 6);
SELECT shown_epoch FROM uid_fleet_state;
-- A fence that an administrator knows to be needless.
CALL ask('z3', worker_bits => 6);
UPDATE uid_fleet_state SET shown_epoch = 4711, fence_base = now() + interval '60 years';
SELECT uid_fleet_fence(cancel => true) - now() < interval '1 s' AS at_once;
CALL ask('z3', worker_bits => 6);
SELECT shown_epoch, fence_base, epoch > 4711 AS above FROM uid_fleet_state;
-- A member whose grant ended before a fence gets another node. If it misses the answer, it gets that node again, and its
-- latest answer of the node before makes no difference.
UPDATE uid_fleet_state SET fence_base = NULL;
SELECT born('n', 801);
CALL ask('n', worker_bits => 6);
CALL ask('n', worker_bits => 6, lost => true);
-- What only the registry knows: HMAC-SHA-256.
\set ECHO none
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
CREATE FUNCTION clock_moves(who text, ms bigint) RETURNS void LANGUAGE sql AS $$
  UPDATE uid_fleet_node n SET granted_from = n.granted_from + ms, granted_until = n.granted_until + ms
    FROM member m WHERE m.name = who AND n.membership = m.held_membership;
  UPDATE member SET held_from = held_from + ms, held_until = held_until + ms WHERE name = who;
  UPDATE member m SET held_seal = seal(format('grant %s %s %s 41 0 %s 12 0 0 %s %s %s %s %s %s %s', fleet, 1767225600000000, 1000,
      p.worker_bits, m.held_node, m.held_from, m.held_until, m.held_membership, m.held_epoch, m.held_epoch_nonce, m.held_serial))
    FROM uid_fleet_node n JOIN uid_fleet_pool p USING (pool) WHERE m.name = who AND n.membership = m.held_membership $$;
\set ECHO all
-- A member has found another registry, which has granted. What is shown must be proven, as anything else.
\set ECHO none
CREATE FUNCTION other(epoch bigint, since interval, proven boolean DEFAULT true) RETURNS jsonb LANGUAGE sql AS $$
  SELECT jsonb_build_object('other_epoch', epoch, 'other_epoch_nonce', 17, 'other_granted_us', us,
           'other_seal', CASE WHEN proven THEN seal(format('last %s %s 17 %s', fleet, epoch, us)) ELSE 1 END)
    FROM uid_fleet_state, LATERAL (SELECT (extract(epoch FROM now() + since) * 1000000)::bigint AS us) t $$;
\set ECHO all
SELECT born('z7', 607), born('z8', 608);
CALL ask('z7', worker_bits => 6, other => other(1, '1 s', false));
SELECT fence_base FROM uid_fleet_state;
CALL ask('z7', worker_bits => 6, other => other(1, '-1 hour'));
CALL ask('z8', worker_bits => 6, other => other(1, '1 minute'));
SELECT fence_base - now() BETWEEN interval '40 s' AND interval '50 s' AS by_its_clock FROM uid_fleet_state;
CALL ask('z7', worker_bits => 6, other => other(1, '1 minute'));
UPDATE uid_fleet_state SET fence_base = NULL;
SELECT clock_moves('n', -3 * 3600000);
UPDATE uid_fleet_state SET epoch = epoch + 1, former_epoch = NULL, fence_base = now() - interval '2 hours';
CALL ask('n', worker_bits => 6, lost => true);
CALL ask('n', worker_bits => 6, lost => true);
CALL ask('n', worker_bits => 6);
SELECT count(*) FILTER (WHERE state = 'live') AS live FROM uid_fleet_node n JOIN uid_fleet USING (pool, node)
 WHERE n.incarnation = 801;
SELECT count(*) = 2 AS two_answers FROM uid_fleet_node WHERE incarnation = 801;
-- Another fleet.
UPDATE member SET fleet = fleet - 1 WHERE name = 'z2';
CALL ask('z2', worker_bits => 6);
UPDATE uid_fleet_state SET fence_base = NULL;

-- A clock that is far ahead gets nothing that it can use, however many askers say the same: the registry judges by its
-- own clock.
SELECT born('clock' || n, 700 + n) FROM generate_series(1, 9) n;
CALL ask('clock1', worker_bits => 7, ahead => '1 hour', host => 'h1');
CALL ask('clock1', worker_bits => 7, host => 'h1');
CALL ask('clock2', worker_bits => 7, host => 'h2');
CALL ask('clock3', worker_bits => 7, host => 'h3');
SELECT clock_moves('clock1', 3600000), clock_moves('clock2', 3600000);
CALL ask('clock1', worker_bits => 7, ahead => '1 hour', host => 'h1');
CALL ask('clock2', worker_bits => 7, ahead => '1 hour', host => 'h2');
CALL ask('clock3', worker_bits => 7, ahead => '1 hour', host => 'h3');
CALL ask('clock4', worker_bits => 7, ahead => '1 hour', host => 'h4');
CALL ask('clock4', worker_bits => 7, host => 'h4');
SELECT clock_moves('clock1', -3600000), clock_moves('clock2', -3600000);
-- An epoch that is ahead is no fence.
CALL why(layout(worker_bits => 7) || generator(799) || '{"layout_epoch_us": 4000000000000000, "lowest": 0}');
-- A clock that is behind gets a node too.
CALL ask('clock5', worker_bits => 7, ahead => '-1 hour', host => 'h5');
SELECT clock_offset BETWEEN '-61 min' AND '-59 min' AS an_hour FROM uid_fleet WHERE host = 'h5';
-- A fence begins where the clock and the grants are. Reserved nodes do not count.
SELECT date_trunc('minute', t - now()) AS until FROM uid_fleet_fence() t;
UPDATE uid_fleet_state SET fence_base = NULL;

-- The successor of a registry that was lost knows nothing, and cannot prove what the former one gave. While its fence lasts,
-- live holders keep their nodes by what they show.
SELECT born('l1', 611), born('l2', 612), born('l3', 613);
CALL ask('l1', worker_bits => 6);
CALL ask('l2', worker_bits => 6);
CREATE TABLE lost AS SELECT * FROM uid_fleet_state;
DELETE FROM uid_fleet_state;
DELETE FROM uid_fleet_node;
DELETE FROM uid_secrets.uid_fleet_key;
SELECT fleet AS lost FROM lost \gset
SELECT uid_fleet_admit('uidgen_fleet', 'successor', fleet => :lost);
SELECT s.fleet = l.fleet AS same_fleet, s.epoch > l.epoch + 1000 AS above, s.first_epoch = s.epoch AS first FROM uid_fleet_state s, lost l;
UPDATE member SET held_seal = 4711 WHERE name = 'l1';
CALL ask('l1', worker_bits => 6);
CALL ask('l3', worker_bits => 6);
UPDATE member SET held_seal = 4711 WHERE name = 'l1';
CALL ask('l1', worker_bits => 6);
UPDATE uid_fleet_state SET fence_base = now() - interval '1 hour';
-- It may get its former node by chance.
CALL ask('l2', worker_bits => 6) \gset
SELECT :'outcome' LIKE '% node, new membership' AS newcomer;
CALL ask('l3', worker_bits => 6);
DROP TABLE lost;
-- A copy for testing: a fleet of its own. It is none while it has members.
SELECT uid_fleet_admit('uidgen_fleet', 'new');
SELECT uid_fleet_fork();
UPDATE uid_fleet_state SET database = '1/1/1';
SELECT uid_fleet_admit('uidgen_fleet', 'new');
CALL ask('l3', worker_bits => 6);
SELECT epoch, first_epoch, fleet <> :lost AS other_fleet, (SELECT count(*) FROM uid_fleet_node) AS nodes FROM uid_fleet_state;
UPDATE member SET (fleet, epoch, epoch_nonce, serial, seal, held_node) = ROW(NULL, NULL, NULL, NULL, NULL, NULL);
CALL ask('z3', worker_bits => 6);

-- Bad input.
\set ECHO none
-- A request with other values, as JSON, of some fields.
CREATE PROCEDURE bad(fields jsonb, request jsonb DEFAULT layout(datacenter_bits => 5, worker_bits => 5) || generator(999),
    INOUT outcome text DEFAULT NULL) LANGUAGE plpgsql AS $$
DECLARE a uid_fleet_answer;
BEGIN
  CALL uid_fleet_call(jsonb_populate_record(NULL::uid_fleet_request, server() || request || fields), a);
  outcome := coalesce(a.refusal, 'granted');
END
$$;
CREATE FUNCTION bad_values(names text[], bad text[]) RETURNS SETOF text LANGUAGE sql AS
  $$ SELECT format('CALL bad(%L)', jsonb_build_object(n.name, b.value::jsonb))
       FROM unnest(names) WITH ORDINALITY n(name, place), unnest(bad) WITH ORDINALITY b(value, place) ORDER BY n.place, b.place $$;
\set ECHO all
\set VERBOSITY sqlstate
CALL uid_fleet_call(NULL);
SELECT bad_values('{protocol}', '{null,0,2,-1}') \gexec
SELECT bad_values('{host,port,version,clock_us,lowest,length,layout_epoch_us,tick_us,time_bits,
  datacenter_bits,worker_bits,sequence_bits,policy,generator,database}', '{null}') \gexec
SELECT bad_values('{incarnation,fleet,epoch,epoch_nonce,serial,clock_us,lowest,length,layout_epoch_us,tick_us,other_epoch,
  other_granted_us}', '{-2147483648}') \gexec
SELECT bad_values('{epoch,clock_us,lowest,layout_epoch_us,tick_us,other_epoch}', '{9223372036854775807}') \gexec
SELECT bad_values('{time_bits,datacenter_bits,worker_bits,sequence_bits}', '{-1,48,2147483647}') \gexec
CALL bad('{"datacenter_bits": 31, "worker_bits": 31}');
CALL bad('{"worker_bits": 0, "backup_worker": true}');
SELECT bad_values('{former}', ARRAY['[0]', '[null]', '[[1],[2]]', to_jsonb(array_fill(1, ARRAY[65]))::text]) \gexec
SELECT bad_values('{policy}', '{"\"\"","\"Static\""}') \gexec
SELECT format('CALL bad(%L)', jsonb_build_object('policy', 'static', 'worker_number', v)) FROM unnest('{NULL,-1,32}'::int[]) v \gexec
SELECT bad_values('{datacenter_id}', '{-2,32}') \gexec
SELECT format('CALL bad(%L)', jsonb_build_object('former_node', n, 'former_until', u)) FROM (VALUES (-2, 5), (1024, 5), (5, -1), (5, NULL),
  (5, 9223372036854775807)) v (n, u) \gexec
SELECT format('CALL bad(%L)', jsonb_build_object('fleet', 1, 'epoch', 1, 'serial', 1, 'held_node', v[1], 'held_from', v[2], 'held_until', v[3],
  'held_membership', v[4], 'held_epoch', v[5], 'held_serial', v[6])) FROM (VALUES ('{-2,1,1,1,1,1}'::bigint[]), ('{1024,1,1,1,1,1}'),
  ('{1,5,4,1,1,1}'), ('{1,1,5,0,1,1}'), ('{1,1,5,1,2,1}'), ('{1,1,5,1,1,NULL}'), ('{1,1,9223372036854775807,1,1,1}')) t (v) \gexec
CALL bad(jsonb_build_object('host', repeat('x', 2000)));
CALL bad('{"segment": "orders", "count": -1, "incarnation": null}');
CALL bad('{"segment": "orders", "database": null, "incarnation": null}');
\set VERBOSITY default
CALL bad('{"protocol": 2}');
CALL bad('{"host": null}');
-- What a member shows counts only if the registry gave it: no epoch stops the registry, no serial raises a fence, and no
-- grant takes a node.
CALL ask('z3', worker_bits => 6);
SELECT fence_base FROM uid_fleet_state;
SELECT count(*) AS nodes FROM uid_fleet_node \gset
CREATE TABLE honest AS SELECT * FROM member WHERE name = 'z3';
\set ECHO none
CREATE FUNCTION lie(change text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
  DELETE FROM member WHERE name = 'z3';
  INSERT INTO member SELECT * FROM honest;
  EXECUTE 'UPDATE member SET ' || change || ' WHERE name = ''z3''';
  RETURN change;
END
$$;
\set ECHO all
SELECT format('SELECT lie(%L)', change), 'CALL ask(''z3'', worker_bits => 6)' FROM unnest(ARRAY[
  'epoch = 9007199254740992', 'epoch = epoch + 1', 'fleet = NULL, epoch = epoch + 1', 'epoch_nonce = epoch_nonce + 1',
  'serial = 9223372036854775807', 'seal = 0', 'held_serial = held_serial + 1', 'held_until = held_until + 1',
  'held_node = (held_node + 1) % 64', 'held_epoch = held_epoch - 1',
  'held_membership = held_membership + 1, held_until = held_until + 1, held_epoch = held_epoch - 1', 'seal = held_seal',
  'held_seal = seal']) change
  \gexec
SELECT fleet FROM honest \gset
CALL why(jsonb_build_object('fleet', :fleet, 'epoch', 9007199254740992, 'serial', 1, 'seal', 1, 'segment', 'orders', 'count', 1));
CALL why(jsonb_build_object('fleet', :fleet, 'epoch', 1, 'serial', 9223372036854775807, 'seal', 1, 'segment', 'orders', 'count', 1));
CALL why(jsonb_build_object('fleet', :fleet, 'epoch', 9007199254740992, 'serial', 1, 'seal', 1));
SELECT shown_epoch, fence_base FROM uid_fleet_state;
SELECT count(*) - :nodes AS new_nodes FROM uid_fleet_node;
DELETE FROM member WHERE name = 'z3';
INSERT INTO member SELECT * FROM honest;
DROP TABLE honest;
CALL ask('z3', worker_bits => 6);
-- Whatever was asked: nodes are in range.
SELECT count(*) FILTER (WHERE node >= nodes) AS beyond FROM uid_fleet_node JOIN uid_fleet_pools USING (pool);

-- Any number of layouts would fill the disk. One login does not use up those of another one.
SELECT born('full', 901), born('other', 902);
INSERT INTO uid_fleet_pool (pool, preset, epoch, tick_us, time_bits, datacenter_bits, worker_bits, sequence_bits, sequence_first,
    backup_worker, login)
  SELECT 1000 + n, 'custom', '2026-01-01', 1000, 40, 0, 2, n, false, false, 'uidgen_fleet' FROM generate_series(1, 1000) n;
GRANT ALL ON member TO uidgen_fleet;
SET ROLE uidgen_fleet;
CALL ask('full', worker_bits => 8);
RESET ROLE;
SELECT count(*) AS layouts FROM uid_fleet_pool WHERE worker_bits = 8;
CALL ask('other', worker_bits => 9);
SELECT login = current_user AS of_its_login FROM uid_fleet_pool WHERE worker_bits = 9;
DELETE FROM uid_fleet_pool WHERE pool > 1002;
REVOKE ALL ON member FROM uidgen_fleet;

-- The rows keep nodes apart.
TRUNCATE uid_fleet_node;
TRUNCATE uid_fleet_pool;
TRUNCATE uid_fleet_state;
TRUNCATE uid_fleet_segment;

-- The transaction is the call's own.
BEGIN;
CALL ask('clock1', worker_bits => 7);
ROLLBACK;
DO $$ DECLARE o text; BEGIN CALL ask('clock1', worker_bits => 7, outcome => o); EXCEPTION WHEN division_by_zero THEN NULL; END $$;
CREATE PROCEDURE with_set(INOUT outcome text DEFAULT NULL) LANGUAGE plpgsql SET work_mem = '4MB' AS
  $$ BEGIN CALL ask('clock1', worker_bits => 7, outcome => outcome); END $$;
CALL with_set();
CREATE FUNCTION in_function() RETURNS text LANGUAGE plpgsql AS
  $$ DECLARE o text; BEGIN CALL ask('clock1', worker_bits => 7, outcome => o); RETURN o; END $$;
SELECT in_function();
DO $$ DECLARE o text; BEGIN PERFORM txid_current(); CALL ask('clock1', worker_bits => 7, outcome => o); END $$;
SET default_transaction_isolation = 'serializable';
CALL ask('clock1', worker_bits => 7);
RESET default_transaction_isolation;
SET default_transaction_read_only = on;
CALL ask('clock1', worker_bits => 7);
RESET default_transaction_read_only;
-- What a procedure does after its call does not undo it.
CREATE PROCEDURE undone(INOUT outcome text DEFAULT NULL) LANGUAGE plpgsql AS $$
BEGIN CALL ask('clock6', worker_bits => 7, outcome => outcome); ROLLBACK; END $$;
CALL undone();
SELECT count(*) AS kept FROM uid_fleet_node WHERE incarnation = 706;

-- Segments: what members call for blocks of values.
\set ECHO none
CREATE PROCEDURE block(segment text, count bigint DEFAULT 10, shown bigint DEFAULT -1, increment bigint DEFAULT 1,
    member text DEFAULT 'a', fleet bigint DEFAULT NULL, epoch bigint DEFAULT NULL, INOUT outcome text DEFAULT NULL)
LANGUAGE plpgsql AS $$
DECLARE
  known bigint := coalesce(fleet, (SELECT f.fleet FROM known_fleet f));
  a uid_fleet_answer;
BEGIN
  CALL call(jsonb_build_object('fleet', known, 'epoch', epoch, 'serial', sign(epoch)::bigint, 'seal',
    seal(format('stamp %s %s 0 1', known, epoch)), 'segment', segment, 'count', count, 'shown', shown, 'increment', increment,
    'database', member), a);
  outcome := coalesce(a.refusal || ': ' || a.message || coalesce('; ' || a.hint, ''),
                      format('%s values from %s by %s', a.count, a.first, a.increment));
END
$$;
\set ECHO all
CREATE TABLE known_fleet AS SELECT fleet FROM uid_fleet_state;
GRANT SELECT ON known_fleet TO uidgen_fleet;
SELECT segment_create('orders') IS NOT NULL AS made, segment_create('Bestell"ung') IS NOT NULL AS quoted;
SET ROLE uidgen_fleet;
CALL block('orders');
CALL block('Bestell"ung');
CALL block('it''s nowhere');
RESET ROLE;
GRANT USAGE ON SEQUENCE uid_segments.orders, uid_segments."Bestell""ung" TO uidgen_fleet;
SET ROLE uidgen_fleet;
CALL block('orders');
CALL block('Bestell"ung');
-- Draws on the registry go on beside blocks.
CALL block('orders', 1000);
RESET ROLE;
SELECT segment_next('orders'), segment_next('orders');
SET ROLE uidgen_fleet;
CALL block('orders', 1, member => 'b');
RESET ROLE;
SELECT segment_next('orders');
SET ROLE uidgen_fleet;
-- The last value that a member was given. The registry may have lost it.
CALL block('orders', shown => 1500);
CALL block('orders', shown => 5000);
CALL block('orders', shown => 1500);
RESET ROLE;
SELECT segment_next('orders') > 5020 AS above;
-- While there is a rival, it may give the same values.
UPDATE uid_fleet_state SET shown_epoch = epoch;
CALL block('orders', 0);
CALL block('orders');
UPDATE uid_fleet_state SET shown_epoch = NULL;
SELECT refills_disturbed FROM segment_status WHERE name = 'orders';
-- A call without values says what the segment is like; of any increment, to a server of any fleet.
CALL block('orders', 0, increment => 0, fleet => 0);
CALL block('orders', fleet => 4711);
-- A registry that is shown a later epoch stops.
CALL block('orders', epoch => 99);
CALL block('orders');
UPDATE uid_fleet_state SET shown_epoch = NULL;
CALL block('orders', increment => 2);
ALTER SEQUENCE uid_segments.orders CYCLE;
CALL block('orders');
ALTER SEQUENCE uid_segments.orders NO CYCLE MINVALUE -5;
CALL block('orders');
ALTER SEQUENCE uid_segments.orders MINVALUE 0;
-- To the end, and what is left. A block is at most 1/1024 of a sequence.
SELECT segment_create('short') IS NOT NULL AS made;
ALTER SEQUENCE uid_segments.short MAXVALUE 30000;
CALL block('short', 100);
-- A member may claim what a failover loses: some blocks. A claim of more changes nothing. With the administrator's word
-- it goes on.
CALL block('short', 100, shown => 400);
CALL block('short', 100, shown => 29990);
CALL block('short', 100, shown => 40000);
CALL block('orders', shown => 9223372036854775800);
CALL block('orders', 9223372036854775807);
CALL block('short', 100);
SELECT segment_set('short', 29990);
CALL block('short', 100, shown => 29990);
CALL block('short', 100);
CALL block('short', 100, shown => 40000);
\set VERBOSITY sqlstate
CALL block('orders', member => repeat('x', 2000));
\set VERBOSITY default
SELECT segment_create('down') IS NOT NULL AS made;
ALTER SEQUENCE uid_segments.down INCREMENT -5 MINVALUE -1000000 MAXVALUE 0 START 0 RESTART;
CALL block('down', increment => -5, shown => 1);
CALL block('down', increment => -5, shown => -100);
CALL block('down', increment => -5, shown => -100);
ALTER SEQUENCE uid_segments.down MAXVALUE 10;
CALL block('down', increment => -5);
SELECT uid_fleet_handover();
CALL block('orders');
UPDATE uid_fleet_state SET closed_until = NULL;
\set VERBOSITY terse
BEGIN;
CALL block('orders');
ROLLBACK;
\set VERBOSITY default

-- Rights: a member's role may call the procedures and nothing else; others may not do that either.
SET ROLE uidgen_fleet;
CALL why(layout(datacenter_bits => 5, worker_bits => 5) || generator(999) || '{"fleet": 1, "epoch": 1}');
\set VERBOSITY terse
SELECT * FROM uid_fleet_state;
SELECT * FROM uid_fleet_node;
SELECT * FROM uid_fleet;
SELECT uid_fleet_fence();
SELECT uid_fleet_handover();
SELECT uid_fleet_takeover(1, 1);
SELECT * FROM uid_fleet_reserve(1, 1, true);
SELECT uid_fleet_admit('uidgen_plain');
SET ROLE uidgen_plain;
CALL uid_fleet_call(NULL);
SELECT uid_internal.uid_fleet_claim('successor', NULL);
SELECT * FROM uid_fleet_pools;
SELECT nextval('uid_fleet_serial');
RESET ROLE;
GRANT pg_monitor TO uidgen_plain;
SET ROLE uidgen_plain;
SELECT count(*) > 2 AS monitors FROM uid_fleet;
SELECT count(*) > 2 AS monitors FROM uid_fleet_pools;
SELECT * FROM uid_fleet_node;
RESET ROLE;
\set VERBOSITY default

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

-- A hostile search_path: names in front of the extension's and of pg_catalog.
CREATE SCHEMA hostile AUTHORIZATION uidgen_plain;
GRANT USAGE ON SCHEMA hostile TO uidgen_fleet;
SET ROLE uidgen_plain;
CREATE FUNCTION hostile.trap(bigint, bigint) RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN RAISE 'trapped'; END $$;
CREATE OPERATOR hostile.= (LEFTARG = bigint, RIGHTARG = bigint, FUNCTION = hostile.trap);
CREATE TABLE hostile.uid_fleet_state (LIKE public.uid_generator);
CREATE TABLE hostile.pg_extension (extname text);
RESET ROLE;
SET search_path = hostile, public, pg_catalog;
CALL public.why(public.layout(worker_bits => 7) || public.generator(999));
SELECT count(*) > 2 AS shown FROM public.uid_fleet;
RESET search_path;
-- The same session, after the schema got another name; and the schema has a name that must be quoted.
ALTER SCHEMA public RENAME TO "Pub""lic";
SET search_path = "Pub""lic";
CALL ask('clock1', worker_bits => 7);
SELECT uid_fleet_admit('uidgen_fleet');
SELECT count(*) > 2 AS shown FROM uid_fleet;
ALTER SCHEMA "Pub""lic" RENAME TO public;
RESET search_path;
CALL ask('clock1', worker_bits => 7);

DROP SCHEMA hostile CASCADE;
-- The inverse of uid_fleet_admit(), by an owner of the database who is no superuser: all settings here go, and others stay.
-- The role then can be dropped.
DROP TABLE known_fleet;
CREATE ROLE uidgen_owner;
SELECT datdba::regrole::text AS owner FROM pg_database WHERE datname = current_database() \gset
ALTER DATABASE contrib_regression OWNER TO uidgen_owner;
ALTER ROLE uidgen_fleet IN DATABASE contrib_regression SET work_mem = '1GB';
ALTER ROLE uidgen_fleet SET lock_timeout = 0;
SET ROLE uidgen_owner;
SELECT uid_fleet_expel('uidgen_fleet');
SELECT uid_fleet_expel('uidgen_fleet');
SELECT uid_fleet_expel(NULL);
RESET ROLE;
SELECT setdatabase <> 0 AS here, setconfig FROM pg_db_role_setting WHERE setrole = 'uidgen_fleet'::regrole ORDER BY 1;
SELECT has_function_privilege('uidgen_fleet', p.oid, 'EXECUTE') FROM pg_proc p WHERE proname = 'uid_fleet_call';
DROP ROLE uidgen_fleet;
ALTER DATABASE contrib_regression OWNER TO :"owner";
DROP ROLE uidgen_owner;

SELECT segment_drop(name) FROM uid_segment;
DROP ROLE uidgen_plain;
DROP TABLE member CASCADE;
DROP ROUTINE call;
DROP EXTENSION uidgen;
