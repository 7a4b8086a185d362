-- The registry of a fleet of uidgen: tables and functions for any PostgreSQL from 13 on. The server needs nothing else.
--
--     psql -d ids -v keeps=restarts -f uidgen_registry.sql            as a role with CREATEROLE; no superuser is needed
--     CREATE ROLE fleet_app1 LOGIN PASSWORD '...';  GRANT uid_member TO fleet_app1;                     REVOKE ends it
--
--   keeps    what never loses a commit on this server, see below. uid_registry.promise('...') changes it.
--   longest  the length of the longest grant in seconds, 600 by default. It never changes.
--   fleet    the number of a fleet whose registry is lost. The new one begins with a fence, and needs `longest`, too.
--
-- The role uid_member belongs to all databases of the server. CONNECT decides which registries a login reaches.
--
-- A copy of this database is a registry, too, and gives away the fleet's nodes again. Before members can reach the
-- copy, run there:  UPDATE uid_registry.registry SET fleet = DEFAULT;
--
-- How it works: node.until is the time up to which a node was given away, and only grows. A member extends its
-- grant by naming the token of the row, and each answer sets a fresh one, so one holder has each tick of a node.
-- When commits may be lost, a fence is raised: no newcomer gets a node until all that can be lost has ended.

\set ON_ERROR_STOP on
\if :{?keeps} \else \set keeps '' \endif
SELECT :'keeps' IN ('nothing', 'restarts', 'failovers') AS keeps_is_known \gset
\if :keeps_is_known \else
\warn 'Choose what never loses a commit on this server:'
\warn '  -v keeps=nothing    You do not know. Newcomers wait 10 min 20 s (with longest=600) after each start.'
\warn '  -v keeps=restarts   One server, Patroni, pg_auto_failover. They wait after a failover, switchover or restore.'
\warn '  -v keeps=failovers  RDS Multi-AZ, Cloud SQL HA, a replicated disk. They wait after a restore elsewhere.'
\warn 'With a promise that is not true, two servers can issue equal ids after a loss.'
DO $$ BEGIN
  RAISE EXCEPTION 'keeps must be nothing, restarts or failovers' USING ERRCODE = 'invalid_parameter_value';
END $$;
\endif
\if :{?fleet} \set anew true \else \set anew false \endif
\if :anew
\if :{?longest} \else
DO $$ BEGIN
  RAISE EXCEPTION 'a registry that replaces a lost one needs the length of the longest grant of the lost one'
    USING ERRCODE = 'invalid_parameter_value', HINT = 'Pass -v longest=SECONDS. Members log it when they join.';
END $$;
\endif
\endif
\if :{?longest} \else \set longest 600 \endif
\if :{?bound} \else \set bound 10 \endif

BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE;
SET LOCAL search_path = pg_catalog, pg_temp;
SET LOCAL synchronous_commit = on;
SET LOCAL standard_conforming_strings = on;
SET LOCAL statement_timeout = 0;
SET LOCAL lock_timeout = 0;
DO $$ BEGIN
  IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'uid_member') THEN CREATE ROLE uid_member NOLOGIN; END IF;
END $$;
CREATE SCHEMA uid_registry;
GRANT ALL ON SCHEMA uid_registry TO CURRENT_USER;

-- Tables. Times are microseconds since 1970. --------------------------------------------------------------------------

CREATE TABLE uid_registry.registry (
  only_row  boolean     PRIMARY KEY DEFAULT true CHECK (only_row),
  fleet     bigint      NOT NULL DEFAULT ('x' || left(md5(gen_random_uuid()::text), 15))::bit(60)::bigint
            CHECK (fleet > 0),
  keeps     text        NOT NULL CHECK (keeps IN ('nothing', 'restarts', 'failovers')),
  longest   bigint      NOT NULL CHECK (longest BETWEEN 1 AND 8640000000000),  -- no grant is longer
  bound     bigint      NOT NULL CHECK (bound BETWEEN 1 AND 3600000000),       -- clocks of registries differ by less
  term      bigint      NOT NULL,            -- grows when another server takes over. Members go to the largest
  place     text        NOT NULL,            -- where the last call came: the system, the database and this table,
  timeline  text        NOT NULL,            -- the timeline,
  started   timestamptz NOT NULL,            -- and the start of the server
  fence     bigint      NOT NULL DEFAULT 0,  -- how many fences were raised
  reason    text        NOT NULL DEFAULT 'none'  -- why the last one was raised; lifted: by nothing_was_lost()
            CHECK (reason IN ('none', 'start', 'takeover', 'statement', 'proof', 'anew', 'lifted')),
  lost_from bigint      NOT NULL DEFAULT 0,  -- no grant that the last fence is for began later. Newcomers: + longest
  former    bigint      NOT NULL DEFAULT 0,  -- lost_from of the fence before
  shown     bigint      NOT NULL DEFAULT 0,  -- the last term above its own that a member has shown
  CONSTRAINT "a server that shows no timeline must keep failovers" CHECK (timeline <> 'unknown' OR keeps = 'failovers')
);
CREATE TABLE uid_registry.pool (
  layout   text    PRIMARY KEY,              -- equal texts, equal layouts
  widths   text    NOT NULL,
  own_pool boolean NOT NULL                  -- its ids may equal those of another layout of these widths
);
CREATE UNIQUE INDEX one_of_equal_widths ON uid_registry.pool (widths) WHERE NOT own_pool;
CREATE TABLE uid_registry.node (
  layout text        NOT NULL REFERENCES uid_registry.pool ON DELETE CASCADE,
  node   bigint      NOT NULL,
  until  bigint      NOT NULL,               -- the time before it was given away. It only grows
  token  bigint      NOT NULL,               -- known to its holder alone
  fence  bigint      NOT NULL,               -- registry.fence at the last answer
  login  name        NOT NULL,
  holder text        NOT NULL,               -- what the member says of itself. Nothing is selected by it
  heard  timestamptz NOT NULL,
  PRIMARY KEY (layout, node)
);
CREATE INDEX ON uid_registry.node (layout, until);
CREATE INDEX ON uid_registry.node (token);
COMMENT ON TABLE uid_registry.registry IS
  'The one row of this registry. Functions change it; in a copy UPDATE uid_registry.registry SET fleet = DEFAULT '
  'before members reach it.';
COMMENT ON TABLE uid_registry.pool IS
  'Layouts of which nodes were given away. Of one that a login invented: UPDATE ... SET own_pool = true frees its '
  'widths at once, DELETE removes it a day after its last grant.';
COMMENT ON TABLE uid_registry.node IS 'Nodes that were given away, each up to a time in microseconds since 1970.';

-- Plain functions. The clock, and this server, as far as SQL shows it. ------------------------------------------------

CREATE FUNCTION uid_registry.clock() RETURNS bigint LANGUAGE sql VOLATILE AS
  'SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint';

-- It fails on a standby, whose host members skip. pg_control_checkpoint() shows the former timeline for a while after a
-- promotion. An engine without WAL positions has the timeline 'unknown'.
CREATE FUNCTION uid_registry.here(OUT place text, OUT timeline text, OUT started timestamptz) LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF pg_is_in_recovery() THEN
    RAISE EXCEPTION 'a standby is no registry' USING ERRCODE = 'object_not_in_prerequisite_state';
  END IF;
  place := concat_ws('/', (SELECT c.system_identifier FROM pg_control_system() AS c),
                     (SELECT d.oid FROM pg_database AS d WHERE d.datname = current_database()),
                     'uid_registry.registry'::regclass::oid);
  started := pg_postmaster_start_time();
  BEGIN
    timeline := left(pg_walfile_name(pg_current_wal_lsn()), 8);
  EXCEPTION WHEN feature_not_supported OR object_not_in_prerequisite_state OR insufficient_privilege THEN
    timeline := 'unknown';
  END;
END $$;

CREATE FUNCTION uid_registry.fences() RETURNS bigint LANGUAGE sql VOLATILE AS
  'SELECT r.fence FROM uid_registry.registry AS r';

-- A grant that was lost ends, so a fence outlasts it; a block of values has no end. So a segment gives no block
-- after a fence until somebody has raised next_value above all values that members have:
--     UPDATE uid_registry.segment SET next_value = next_value + 1000000, fence = DEFAULT WHERE name = 'orders';
-- A sequence of a registry of uidgen's extension becomes a row:
--     INSERT INTO uid_registry.segment (name, next_value, increment, max_value)
--     SELECT 'orders', v.last_value + CASE WHEN v.is_called THEN s.seqincrement ELSE 0 END, s.seqincrement, s.seqmax
--       FROM uid_segments.orders AS v, pg_sequence AS s WHERE s.seqrelid = 'uid_segments.orders'::regclass;
CREATE TABLE uid_registry.segment (
  name       text   PRIMARY KEY,
  next_value bigint NOT NULL DEFAULT 1       -- the first value that was not given away. It only grows
             CHECK (next_value >= 0),        -- members show no value below, and take no block there
  increment  bigint NOT NULL DEFAULT 1 CHECK (increment > 0),
  max_value  bigint NOT NULL DEFAULT 9223372036854775807,
  max_step   bigint NOT NULL DEFAULT 1000000 CHECK (max_step > 0),    -- no block has more values
  lost_at    timestamptz,                    -- a member had values that next_value had not passed: commits were lost
  fence      bigint NOT NULL DEFAULT uid_registry.fences()            -- the one after which it gives blocks
);
COMMENT ON TABLE uid_registry.segment IS
  'Segments whose values members take in blocks. INSERT makes one; after a fence raise next_value and SET fence = '
  'DEFAULT.';

-- What nobody may do by hand. -----------------------------------------------------------------------------------------

CREATE FUNCTION uid_registry.guard() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE wrong text;
BEGIN
  IF TG_OP = 'TRUNCATE' THEN
    wrong := format('rows of uid_registry.%s are not removed, because they would be given away again', TG_TABLE_NAME);
  ELSIF TG_TABLE_NAME = 'segment' THEN
    IF NEW.next_value < OLD.next_value THEN wrong := 'next_value of a segment never falls'; END IF;
  ELSIF TG_TABLE_NAME = 'pool' THEN
    IF EXISTS (SELECT FROM uid_registry.node AS n
                WHERE n.layout = OLD.layout AND n.until > uid_registry.clock() - 86400000000) THEN
      wrong := format('layout "%s" has a grant that did not end a day ago', OLD.layout);
    END IF;
  ELSIF TG_TABLE_NAME = 'node' THEN
    IF TG_OP = 'UPDATE' THEN
      IF NEW.until < OLD.until OR (NEW.layout, NEW.node) <> (OLD.layout, OLD.node) THEN
        wrong := '"until" of a node never falls';
      END IF;
    ELSIF EXISTS (SELECT FROM uid_registry.pool AS p WHERE p.layout = OLD.layout) THEN
      wrong := 'a node is removed only with its layout, because its time would be given away again';
    END IF;
  ELSIF TG_OP = 'DELETE' THEN
    wrong := 'the row of a registry is not removed';
  ELSIF (NEW.longest, NEW.bound) <> (OLD.longest, OLD.bound) THEN
    wrong := 'longest and bound of a registry never change, because fences count with them';
  ELSIF current_setting('uid_registry.by_function', true) IS DISTINCT FROM 'yes'
        AND to_jsonb(NEW) - 'fleet' <> to_jsonb(OLD) - 'fleet' THEN
    wrong := 'this row changes by uid_registry.promise(), fence() and nothing_was_lost() only';
  ELSE
    PERFORM set_config('uid_registry.by_function', '', true);   -- it was good for one UPDATE
  END IF;
  IF wrong IS NOT NULL THEN RAISE EXCEPTION '%', wrong USING ERRCODE = 'restrict_violation'; END IF;
  IF TG_OP = 'DELETE' THEN RETURN OLD; END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER guard BEFORE UPDATE OR DELETE ON uid_registry.registry
  FOR EACH ROW EXECUTE FUNCTION uid_registry.guard();
CREATE TRIGGER guard BEFORE UPDATE OR DELETE ON uid_registry.node FOR EACH ROW EXECUTE FUNCTION uid_registry.guard();
CREATE TRIGGER guard BEFORE DELETE ON uid_registry.pool FOR EACH ROW EXECUTE FUNCTION uid_registry.guard();
CREATE TRIGGER guard BEFORE UPDATE ON uid_registry.segment FOR EACH ROW EXECUTE FUNCTION uid_registry.guard();
CREATE TRIGGER no_empty BEFORE TRUNCATE ON uid_registry.registry EXECUTE FUNCTION uid_registry.guard();
CREATE TRIGGER no_empty BEFORE TRUNCATE ON uid_registry.pool     EXECUTE FUNCTION uid_registry.guard();
CREATE TRIGGER no_empty BEFORE TRUNCATE ON uid_registry.node     EXECUTE FUNCTION uid_registry.guard();
CREATE TRIGGER no_empty BEFORE TRUNCATE ON uid_registry.segment  EXECUTE FUNCTION uid_registry.guard();

-- How a call begins. --------------------------------------------------------------------------------------------------

-- Rule 1: its statements need new snapshots, its commit must be durable before the member reads the answer, and the
-- warning that a wait for a standby was cancelled must reach the member.
CREATE FUNCTION uid_registry.durable() RETURNS void LANGUAGE plpgsql VOLATILE AS $$
BEGIN
  IF current_setting('transaction_isolation') <> 'read committed' THEN
    RAISE EXCEPTION 'the registry must be called at the isolation level read committed'
      USING ERRCODE = 'invalid_transaction_state';
  END IF;
  IF current_setting('synchronous_commit') NOT IN ('on', 'remote_apply') THEN
    PERFORM set_config('synchronous_commit', 'on', true);
  END IF;
  PERFORM set_config('client_min_messages', 'warning', true);
END $$;

-- Rule 8: the term that a caller who has seen that one finds here. Another server than the last one takes over, and
-- is above both. An invented `seen` leaves room for all takeovers to come.
CREATE FUNCTION uid_registry.term(r uid_registry.registry, place text, timeline text, seen bigint) RETURNS bigint
LANGUAGE sql VOLATILE AS $$
  SELECT CASE WHEN (r.place, r.timeline) = ($2, $3) THEN r.term
              ELSE greatest(r.term + 1, least(coalesce($4, 0), 4000000000000000000) + 1, uid_registry.clock()) END
$$;

-- Rule 8: a member shows a larger term than this registry's. So another one has granted meanwhile, and this one
-- lacks it. It raises a fence, or extends the one that it has raised for the value that was shown last: the other one
-- may have granted since. Smaller values count, too, so that an invented one hides none.
CREATE FUNCTION uid_registry.see_larger_term(seen bigint) RETURNS void LANGUAGE plpgsql VOLATILE AS $$
BEGIN
  PERFORM set_config('uid_registry.by_function', 'yes', true);
  UPDATE uid_registry.registry AS x SET shown = seen, fence = x.fence + 1, reason = 'proof', former = x.lost_from,
         lost_from = greatest(x.lost_from, uid_registry.clock() + 2 * x.bound)
   WHERE seen > x.term AND seen <> x.shown;
  IF FOUND THEN
    RAISE LOG 'uid_registry: % has shown the term % of another registry, so a fence is raised', session_user, seen;
  ELSE
    UPDATE uid_registry.registry AS x SET lost_from = greatest(x.lost_from, uid_registry.clock() + 2 * x.bound)
     WHERE seen = x.shown AND seen > x.term;
  END IF;
  PERFORM set_config('uid_registry.by_function', '', true);
END $$;

-- Rule 6: the time from which newcomers have nodes. A lost grant that ended before is nothing to them.
CREATE FUNCTION uid_registry.newcomers_from(lost_from bigint, r uid_registry.registry) RETURNS bigint
LANGUAGE sql IMMUTABLE AS 'SELECT CASE WHEN lost_from > 0 THEN lost_from + r.longest ELSE 0 END';

-- Rule 6: compares this server with the one that granted last, and raises a fence if commits may be lost between
-- them. `keeps` is the promise to judge by. `lost_until` is the end of a grant that somebody has shown and that is not
-- here. It proves that commits were lost which the present fence does not cover; or else that this fence cannot be
-- lifted, if the one before does not cover them. A call that another one overtakes looks again.
CREATE FUNCTION uid_registry.arrive(seen bigint, keeps text, lost_until bigint) RETURNS uid_registry.registry
LANGUAGE plpgsql VOLATILE AS $$
DECLARE r uid_registry.registry; h record; why text; marks boolean;
BEGIN
  SELECT * INTO STRICT h FROM uid_registry.here();
  LOOP
    SELECT * INTO STRICT r FROM uid_registry.registry;
    why := CASE WHEN lost_until > uid_registry.newcomers_from(r.lost_from, r) THEN 'proof'
                WHEN r.place <> h.place                                THEN 'takeover'
                WHEN r.timeline <> h.timeline AND keeps <> 'failovers' THEN 'takeover'
                WHEN r.started <> h.started AND keeps = 'nothing'      THEN 'start' END;
    marks := coalesce(lost_until > uid_registry.newcomers_from(least(r.former, r.lost_from), r), false)
             AND r.reason NOT IN ('proof', 'anew');
    EXIT WHEN why IS NULL AND NOT marks AND (r.place, r.timeline, r.started) = (h.place, h.timeline, h.started);
    PERFORM set_config('uid_registry.by_function', 'yes', true);
    UPDATE uid_registry.registry AS x
       SET term = uid_registry.term(r, h.place, h.timeline, seen),
           place = h.place, timeline = h.timeline, started = h.started,
           fence = x.fence + (why IS NOT NULL)::int,
           reason = CASE WHEN why IS NOT NULL THEN why WHEN marks THEN 'proof' ELSE x.reason END,
           former = CASE WHEN why IS NULL THEN x.former ELSE x.lost_from END,
           lost_from = CASE WHEN why IS NULL THEN x.lost_from
                            ELSE greatest(x.lost_from, uid_registry.clock() + 2 * x.bound) END
     WHERE (x.term, x.fence, x.reason, x.place, x.timeline, x.started)
         = (r.term, r.fence, r.reason, r.place, r.timeline, r.started);
    IF FOUND AND why IS NOT NULL THEN
      lost_until := NULL;
      RAISE LOG 'uid_registry: a call of % raises fence % (%)', session_user, r.fence + 1, why;
    END IF;
    PERFORM set_config('uid_registry.by_function', '', true);
  END LOOP;
  RETURN r;
END $$;

-- What a member asks, for one generator. With a node it renews its grant of that node: since, until and token are
-- those of the last answer. Without one it is a newcomer, and may prefer a node.
CREATE TYPE uid_registry.request AS (
  layout text, widths text, own_pool boolean,
  lowest bigint, highest bigint,     -- the nodes that it may have
  prefer bigint,
  node bigint, since bigint, until bigint, token bigint,
  new_token bigint,                  -- the one that it will hold: fresh, random, and the same in each repeat
  earliest bigint,                   -- the earliest time that it can use
  length bigint,
  holder text
);
CREATE FUNCTION uid_registry.is_well_formed(q uid_registry.request) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
  SELECT coalesce(octet_length(q.layout) BETWEEN 1 AND 1000 AND octet_length(q.widths) BETWEEN 1 AND 1000
                  AND q.own_pool IS NOT NULL AND q.holder IS NOT NULL
                  AND q.lowest >= 0 AND q.highest >= q.lowest AND q.highest < 1::bigint << 62
                  AND q.earliest BETWEEN 1 AND 1::bigint << 62 AND q.length > 0
                  AND q.new_token <> 0 AND q.new_token IS DISTINCT FROM q.token
                  AND (q.node IS NULL
                       OR (q.node >= 0 AND q.since BETWEEN 0 AND q.until AND q.token <> 0)), false)
$$;

-- The row to judge by, or why it is the wrong registry.
CREATE FUNCTION uid_registry.enter(fleet bigint, seen bigint, requests jsonb,
    OUT r uid_registry.registry, OUT why text, OUT detail text)
LANGUAGE plpgsql VOLATILE AS $$
DECLARE h record; term_here bigint;
BEGIN
  PERFORM uid_registry.durable();
  SELECT * INTO STRICT h FROM uid_registry.here();
  SELECT * INTO STRICT r FROM uid_registry.registry;
  term_here := uid_registry.term(r, h.place, h.timeline, seen);
  IF fleet NOT IN (0, r.fleet) THEN
    why := 'other_fleet';
    detail := format('This is the registry of fleet %s.', r.fleet);
    r.term := term_here;
    RETURN;
  END IF;
  IF (seen <= term_here) IS NOT FALSE THEN
    r := uid_registry.arrive(seen, r.keeps, (                    -- rule 6: is there a grant that the table lacks?
      SELECT max(s.until) FROM jsonb_populate_recordset(NULL::uid_registry.request, requests) AS s
        LEFT JOIN uid_registry.node AS n ON n.layout = s.layout AND n.node = s.node
       WHERE s.node IS NOT NULL AND s.until > coalesce(n.until, 0) AND uid_registry.is_well_formed(s)));
  END IF;
  IF seen > r.term THEN                                          -- perhaps because another first caller had seen less
    PERFORM uid_registry.see_larger_term(seen);
    r.fence := uid_registry.fences();
    why := 'outdated';
    detail := format('A registry of term %s has granted. If this one is to replace it, run here: '
                     'SELECT uid_registry.fence(%s)', seen, seen);
  END IF;
END $$;

-- What members call. --------------------------------------------------------------------------------------------------

CREATE FUNCTION uid_registry.hello(of_fleet bigint, seen bigint,
    OUT fleet bigint, OUT term bigint, OUT longest bigint, OUT clock bigint)
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET lock_timeout = '5s' AS $$
BEGIN
  SELECT r.fleet, uid_registry.term(r, h.place, h.timeline, seen), r.longest, uid_registry.clock()
    INTO STRICT fleet, term, longest, clock
    FROM uid_registry.registry AS r, uid_registry.here() AS h;
  IF of_fleet = fleet AND seen > term THEN PERFORM uid_registry.see_larger_term(seen); END IF;
END $$;
COMMENT ON FUNCTION uid_registry.hello IS
  'For members: the fleet, the term that a caller who has seen that one finds here, the longest grant and the clock, '
  'in microseconds. If a caller of this fleet has seen a larger term, it raises a fence.';

CREATE TYPE uid_registry.answer AS (
  request integer,   -- which of the requests, from 1
  why     text,      -- '': granted. Otherwise why not: outdated, other_fleet, malformed, layout_differs, ahead, lost,
                     -- taken, range, fenced, none_free. `until` says till when, if that is known
  node    bigint,
  since   bigint,    -- the grant begins there
  until   bigint,    -- and ends before that
  taken   boolean,   -- another holder has the node that it shows: it stops at once
  term    bigint,
  detail  text
);

-- A node for a newcomer: one that was given away up to a time that it can use (rule 2). The preferred one; then any, so
-- that many that come at once do not meet; then the one that ended first; then one without a row. It waits for no other
-- call: a node that one is about to give away is passed over.
CREATE FUNCTION uid_registry.pick(q uid_registry.request, fence bigint, begins bigint, ends bigint) RETURNS bigint
LANGUAGE plpgsql VOLATILE AS $$
DECLARE candidate bigint;
BEGIN
  FOR attempt IN 1 .. 6 LOOP
    IF attempt = 6 THEN
      SELECT n.node INTO candidate FROM uid_registry.node AS n
       WHERE n.layout = q.layout AND n.until <= begins AND n.node BETWEEN q.lowest AND q.highest
       ORDER BY n.until LIMIT 1 FOR UPDATE SKIP LOCKED;
      EXIT WHEN NOT FOUND;
    ELSIF attempt = 1 AND q.prefer BETWEEN q.lowest AND q.highest THEN
      candidate := q.prefer;
    ELSE
      candidate := uid_registry.any_of(q);
    END IF;
    UPDATE uid_registry.node AS n
       SET until = ends, token = q.new_token, fence = pick.fence, login = session_user, holder = left(q.holder, 200),
           heard = clock_timestamp()
     WHERE n.layout = q.layout AND n.node = (
       SELECT m.node FROM uid_registry.node AS m                 -- + 0 keeps the planner to the primary key
        WHERE m.layout = q.layout AND m.node = candidate AND m.until + 0 <= begins FOR UPDATE SKIP LOCKED);
    IF FOUND OR uid_registry.add(q, candidate, ends, fence) THEN RETURN candidate; END IF;
  END LOOP;
  candidate := uid_registry.any_of(q);
  FOR attempt IN 1 .. 1000 LOOP                                  -- more than calls of one moment are about to add
    candidate := coalesce(uid_registry.gap(q.layout, candidate, q.highest),
                          uid_registry.gap(q.layout, q.lowest, candidate));
    EXIT WHEN candidate IS NULL;
    IF uid_registry.add(q, candidate, ends, fence) THEN RETURN candidate; END IF;
    candidate := CASE WHEN candidate < q.highest THEN candidate + 1 ELSE q.lowest END;
  END LOOP;
  RETURN NULL;
END $$;

CREATE FUNCTION uid_registry.any_of(q uid_registry.request) RETURNS bigint LANGUAGE sql VOLATILE AS $$
  SELECT least(q.highest, q.lowest + floor(random() * (q.highest - q.lowest + 1))::bigint)
$$;

-- The smallest node of these that has no row.
CREATE FUNCTION uid_registry.gap(layout text, lowest bigint, highest bigint) RETURNS bigint LANGUAGE sql STABLE AS $$
  SELECT CASE WHEN NOT EXISTS (SELECT FROM uid_registry.node AS n WHERE n.layout = $1 AND n.node = $2) THEN $2
              ELSE (SELECT g.node + 1
                      FROM (SELECT n.node, lead(n.node, 1, $3 + 1) OVER (ORDER BY n.node) AS next
                              FROM uid_registry.node AS n WHERE n.layout = $1 AND n.node BETWEEN $2 AND $3) AS g
                     WHERE g.next > g.node + 1 LIMIT 1) END
$$;

-- A row for a node that has none. False: it has one, or another call is about to add one.
CREATE FUNCTION uid_registry.add(q uid_registry.request, node bigint, until bigint, fence bigint) RETURNS boolean
LANGUAGE plpgsql VOLATILE AS $$
BEGIN
  IF EXISTS (SELECT FROM uid_registry.node AS n WHERE n.layout = q.layout AND n.node = add.node)
     OR NOT pg_try_advisory_xact_lock(hashtextextended(q.layout, node)) THEN
    RETURN false;
  END IF;
  INSERT INTO uid_registry.node
  VALUES (q.layout, node, until, q.new_token, fence, session_user, left(q.holder, 200), clock_timestamp())
      ON CONFLICT DO NOTHING;
  RETURN FOUND;
END $$;

-- One request. Renewals read, judge, and write only if the row is what they have read, so that a call that names
-- the nodes of others locks none of them.
CREATE FUNCTION uid_registry.judge(q uid_registry.request, r uid_registry.registry, now_us bigint)
RETURNS uid_registry.answer LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  a uid_registry.answer; k uid_registry.node; begins bigint; ends bigint; shown bigint; mine boolean; written boolean;
BEGIN
  a.why := ''; a.taken := false; a.term := r.term; a.detail := '';
  IF NOT uid_registry.is_well_formed(q) THEN
    a.why := 'malformed';
    RETURN a;
  END IF;
  INSERT INTO uid_registry.pool SELECT q.layout, q.widths, q.own_pool
   WHERE NOT EXISTS (SELECT FROM uid_registry.pool AS p WHERE p.layout = q.layout) ON CONFLICT DO NOTHING;
  IF NOT EXISTS (SELECT FROM uid_registry.pool AS p WHERE p.layout = q.layout) THEN
    a.why := 'layout_differs';                                   -- rule 10: the ids of both could be equal
    a.detail := (SELECT p.layout FROM uid_registry.pool AS p WHERE p.widths = q.widths AND NOT p.own_pool);
    RETURN a;
  END IF;
  begins := least(q.earliest, now_us + r.bound);                 -- rule 5: the cap
  ends   := begins + least(q.length, r.longest);
  IF ends <= q.earliest THEN a.why := 'ahead'; RETURN a; END IF;

  -- The row with the fresh token, because it may have missed the answer; otherwise that of the node. OFFSET 0 keeps the
  -- planner to the index.
  SELECT * INTO k FROM (SELECT * FROM uid_registry.node AS n WHERE n.token = q.new_token OFFSET 0) AS n
   WHERE n.layout = q.layout AND n.node BETWEEN q.lowest AND q.highest ORDER BY n.node = q.node DESC NULLS LAST LIMIT 1;
  IF NOT FOUND THEN
    SELECT * INTO k FROM uid_registry.node AS n WHERE n.layout = q.layout AND n.node = q.node;
  END IF;
  a.node := coalesce(k.node, q.node);
  mine   := coalesce(k.token IN (q.token, q.new_token), false);
  shown  := CASE WHEN a.node = q.node THEN least(q.until, now_us + 2 * r.bound + r.longest) ELSE 0 END;
  IF a.node BETWEEN q.lowest AND q.highest
     AND (CASE WHEN k.fence = r.fence THEN mine                  -- rule 4
               ELSE greatest(k.until, shown) > r.lost_from           -- rule 7
                    AND (mine OR shown > coalesce(k.until, 0)) END) THEN
    a.until := greatest(k.until, ends, shown);
    a.since := CASE WHEN a.node = q.node THEN q.since ELSE begins END;
    IF k.node IS NULL THEN
      written := uid_registry.add(q, a.node, a.until, r.fence);
    ELSE
      UPDATE uid_registry.node AS n
         SET until = a.until, token = q.new_token, fence = r.fence, login = session_user, holder = left(q.holder, 200),
             heard = clock_timestamp()
       WHERE n.layout = q.layout AND n.node = a.node AND (n.until, n.token, n.fence) = (k.until, k.token, k.fence);
      written := FOUND;
    END IF;
    IF NOT written THEN
      RAISE EXCEPTION 'another call has changed node %', a.node USING ERRCODE = 'serialization_failure';
    END IF;
    RETURN a;
  END IF;
  a.node := NULL;
  IF q.node IS NOT NULL THEN                                     -- its grant is good to its end, unless it is taken
    a.taken := coalesce(k.node = q.node AND NOT mine AND k.until >= q.until, false);
    a.why := CASE WHEN a.taken THEN 'taken' WHEN q.node NOT BETWEEN q.lowest AND q.highest THEN 'range' ELSE 'lost' END;
    RETURN a;
  END IF;
  a.until := uid_registry.newcomers_from(r.lost_from, r);        -- rule 6
  IF begins < a.until THEN
    a.why := 'fenced';
    RETURN a;
  END IF;
  a.node := uid_registry.pick(q, r.fence, begins, ends);
  IF a.node IS NOT NULL THEN
    a.since := begins; a.until := ends;
  ELSE
    a.why := 'none_free';
    a.until := (SELECT min(n.until) FROM uid_registry.node AS n
                 WHERE n.layout = q.layout AND n.node BETWEEN q.lowest AND q.highest);
  END IF;
  RETURN a;
END $$;

CREATE FUNCTION uid_registry.grant(fleet bigint, seen bigint, requests jsonb) RETURNS SETOF uid_registry.answer
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET lock_timeout = '5s' AS $$
DECLARE e record; r uid_registry.registry; q record; a uid_registry.answer; now_us bigint;
BEGIN
  IF jsonb_array_length(requests) > 100 THEN
    RAISE EXCEPTION 'more than 100 requests' USING ERRCODE = 'program_limit_exceeded';
  END IF;
  IF EXISTS (SELECT FROM jsonb_populate_recordset(NULL::uid_registry.request, requests) AS s
              GROUP BY s.new_token HAVING count(s.new_token) > 1) THEN
    RAISE EXCEPTION 'two requests have one new_token' USING ERRCODE = 'invalid_parameter_value';
  END IF;
  SELECT * INTO STRICT e FROM uid_registry.enter(fleet, seen, requests);
  r := e.r;
  IF e.why IS NOT NULL THEN
    RETURN QUERY SELECT g::int, e.why, NULL::bigint, NULL::bigint, NULL::bigint, false, r.term, e.detail
                   FROM generate_series(1, jsonb_array_length(requests)) AS g;
    RETURN;
  END IF;
  now_us := uid_registry.clock();
  FOR q IN SELECT s AS asked, j.number                           -- in one order, so that batches do not deadlock
             FROM jsonb_array_elements(requests) WITH ORDINALITY AS j (value, number),
                  jsonb_populate_record(NULL::uid_registry.request, j.value) AS s
            ORDER BY s.layout, coalesce(s.node, s.prefer), j.number LOOP
    a := uid_registry.judge(q.asked, r, now_us);
    a.request := q.number;
    RETURN NEXT a;
  END LOOP;
  IF uid_registry.fences() <> r.fence THEN                       -- raised while this call waited
    RAISE EXCEPTION 'a fence was raised meanwhile' USING ERRCODE = 'serialization_failure';
  END IF;
END $$;
COMMENT ON FUNCTION uid_registry.grant IS
  'For members: judges up to 100 requests (uid_registry.request) in one transaction, each with an answer '
  '(uid_registry.answer). An answer counts after the commit, if that gave no warning.';

CREATE FUNCTION uid_registry.block(fleet bigint, seen bigint, segment text, count bigint, last bigint,
    OUT why text, OUT first bigint, OUT given bigint, OUT increment bigint, OUT term bigint, OUT detail text)
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET lock_timeout = '5s' AS $$
DECLARE e record; r uid_registry.registry; s uid_registry.segment; lost numeric;
BEGIN
  SELECT * INTO STRICT e FROM uid_registry.enter(fleet, seen, NULL);
  r := e.r; term := r.term; why := e.why; detail := coalesce(e.detail, '');
  IF why IS NOT NULL THEN RETURN; END IF;
  SELECT * INTO s FROM uid_registry.segment AS x WHERE x.name = segment FOR UPDATE;
  why := CASE WHEN (count >= 1) IS NOT TRUE THEN 'malformed'
              WHEN s.name IS NULL THEN 'no_segment'
              WHEN r.keeps = 'nothing' OR s.fence <> uid_registry.fences() THEN 'not_kept' END;
  IF why = 'not_kept' THEN
    detail := CASE r.keeps
              WHEN 'nothing' THEN 'The registry keeps nothing, so a start of it could lose blocks.'
              ELSE format('Blocks may be lost. Raise next_value above all values in use, and run in the registry: '
                          'UPDATE uid_registry.segment SET fence = DEFAULT WHERE name = %L', segment) END;
  END IF;
  IF why IS NOT NULL THEN RETURN; END IF;
  IF last >= s.next_value THEN
    lost := ceil((last::numeric - s.next_value + 1) / s.increment);
    detail := format('Values up to %s were given, but next_value was %s.', last, s.next_value);
    IF lost > 16::numeric * s.max_step THEN why := 'values_lost'; RETURN; END IF;
    s.next_value := least(s.next_value + lost * s.increment, 9223372036854775807);
    UPDATE uid_registry.segment AS x SET next_value = s.next_value, lost_at = clock_timestamp() WHERE x.name = segment;
  END IF;
  given := least(count, s.max_step,
                 div(least(s.max_value::numeric + s.increment, 9223372036854775807) - s.next_value, s.increment));
  IF given < 1 THEN
    why := 'used_up';
    given := NULL;
    RETURN;
  END IF;
  UPDATE uid_registry.segment AS x SET next_value = x.next_value + given::numeric * x.increment WHERE x.name = segment;
  why := ''; first := s.next_value; increment := s.increment;
END $$;
COMMENT ON FUNCTION uid_registry.block IS
  'For members: up to `count` values of a segment. `last` is the last one that the member has; if it is not below '
  'next_value, commits were lost, and next_value rises above it.';

-- What administrators call: the owner of the schema, or a superuser. --------------------------------------------------

-- The one row, locked. It does not wait without end, and names those for whom it waits.
CREATE FUNCTION uid_registry.hold() RETURNS uid_registry.registry
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp SET lock_timeout = '5s' AS $$
DECLARE r uid_registry.registry;
BEGIN
  PERFORM uid_registry.durable();
  SELECT * INTO STRICT r FROM uid_registry.registry FOR UPDATE;
  RETURN r;
EXCEPTION WHEN lock_not_available THEN
  RAISE EXCEPTION 'other sessions hold the row of the registry: %', (
    SELECT string_agg(DISTINCT format('pid %s (%s)', l.pid, s.usename), ', ')
      FROM pg_locks AS l JOIN pg_stat_activity AS s ON s.pid = l.pid JOIN pg_database AS d ON d.oid = l.database
     WHERE d.datname = current_database() AND l.relation = 'uid_registry.registry'::regclass
       AND l.mode IN ('RowExclusiveLock', 'RowShareLock') AND l.granted AND l.pid <> pg_backend_pid())
    USING ERRCODE = 'lock_not_available', HINT = 'End them by pg_terminate_backend(pid), and call again.';
END $$;

CREATE FUNCTION uid_registry.fence(above bigint DEFAULT 0) RETURNS uid_registry.registry LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp AS $$
DECLARE r uid_registry.registry; h record;
BEGIN
  r := uid_registry.hold();
  SELECT * INTO STRICT h FROM uid_registry.here();
  PERFORM set_config('uid_registry.by_function', 'yes', true);
  UPDATE uid_registry.registry AS x SET place = h.place, timeline = h.timeline, started = h.started, shown = 0,
         term = greatest(x.term + 1, least(coalesce(above, 0), 4000000000000000000) + 1, uid_registry.clock()),
         fence = x.fence + 1, reason = 'statement', former = x.lost_from,
         lost_from = uid_registry.clock() + 2 * x.bound          -- also downwards, after a clock that was ahead
  RETURNING * INTO r;
  RETURN r;
END $$;
COMMENT ON FUNCTION uid_registry.fence IS
  'For administrators: this is the registry from now on, or commits of it may be lost. Newcomers wait for the '
  'longest grant and two clock bounds. above: the term that members name when they refuse this registry.';

CREATE FUNCTION uid_registry.nothing_was_lost() RETURNS uid_registry.registry LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp SET lock_timeout = '5s' AS $$
DECLARE r uid_registry.registry;
BEGIN
  r := uid_registry.hold();
  r := uid_registry.arrive(0, r.keeps, NULL);
  IF r.reason IN ('proof', 'anew') THEN
    RAISE EXCEPTION 'commits were lost: %',
      CASE r.reason WHEN 'anew' THEN 'this registry replaces a lost one'
                    ELSE 'a member has shown a grant or a term that is not here' END
      USING ERRCODE = 'object_not_in_prerequisite_state',
            HINT = 'Newcomers get nodes from the time fenced_until of uid_registry.status on.';
  END IF;
  PERFORM set_config('uid_registry.by_function', 'yes', true);
  UPDATE uid_registry.registry AS x SET lost_from = least(x.former, x.lost_from), reason = 'lifted' RETURNING * INTO r;
  UPDATE uid_registry.segment AS x SET fence = r.fence WHERE x.fence = r.fence - 1;
  RETURN r;
END $$;
COMMENT ON FUNCTION uid_registry.nothing_was_lost IS
  'For administrators: ends the present fence, or the one that the first call after a takeover would raise, because '
  'no commit was lost. Earlier fences stay. Refused after a proof.';

-- What happened before is judged by the weaker promise of both.
CREATE FUNCTION uid_registry.promise(keeps text) RETURNS uid_registry.registry LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp AS $$
DECLARE r uid_registry.registry; was text;
BEGIN
  IF (keeps IN ('nothing', 'restarts', 'failovers')) IS NOT TRUE THEN
    RAISE EXCEPTION 'keeps must be nothing, restarts or failovers, not %', coalesce(quote_literal(keeps), 'NULL')
      USING ERRCODE = 'invalid_parameter_value';
  END IF;
  r := uid_registry.hold();
  was := r.keeps;
  r := uid_registry.arrive(0, CASE WHEN 'nothing' IN (keeps, was) THEN 'nothing'
                                   WHEN 'restarts' IN (keeps, was) THEN 'restarts' ELSE was END, NULL);
  PERFORM set_config('uid_registry.by_function', 'yes', true);
  UPDATE uid_registry.registry AS x SET keeps = promise.keeps RETURNING * INTO r;
  IF keeps = 'failovers' AND current_setting('synchronous_standby_names') = '' THEN
    RAISE WARNING 'no synchronous standby is configured (synchronous_standby_names)'
      USING HINT = 'This is right if the server has no standby, or is copied below PostgreSQL. Otherwise it is wrong.';
  ELSIF was = 'failovers' AND keeps <> was AND current_setting('synchronous_standby_names') = '' THEN
    RAISE WARNING 'synchronous standbys are off already, so a standby may be promoted that has the former promise'
      USING HINT = 'Call uid_registry.fence() after such a failover, before members connect. The right order is: '
                   'weaken the promise, then turn the standbys off.';
  END IF;
  RETURN r;
END $$;
COMMENT ON FUNCTION uid_registry.promise IS
  'For administrators: what never loses a commit here from now on. nothing; restarts: a start of this server; '
  'failovers: a failover, too. Weaken it before you turn a standby off.';

CREATE VIEW uid_registry.status AS
SELECT r.fleet, r.keeps, r.longest * interval '1 us' AS longest, r.term,
       CASE WHEN r.shown > r.term THEN r.shown END AS larger_term, r.fence, r.reason,
       CASE WHEN r.lost_from > 0 AND u.until > clock_timestamp() THEN u.until END AS fenced_until,
       ARRAY(SELECT s.name FROM uid_registry.segment AS s WHERE s.fence <> r.fence ORDER BY s.name) AS closed_segments,
       (SELECT max(s.lost_at) FROM uid_registry.segment AS s) AS lost_at
  FROM uid_registry.registry AS r,
       LATERAL (SELECT 'epoch'::timestamptz + (r.lost_from + r.longest) * interval '1 us') AS u (until);
COMMENT ON VIEW uid_registry.status IS
  'The registry in a row: why the last fence was raised, until when newcomers wait (NULL: they do not), the larger '
  'term that a member has shown, segments that give no block because of a fence, and when a segment last lacked '
  'values that a member had.';

-- Members write widths so that the second number is that of the node's bits. Half of the nodes of a layout with a
-- backup worker are the backups of the others.
CREATE VIEW uid_registry.pools AS
SELECT p.layout, p.own_pool,
       count(n.node) FILTER (WHERE n.until > extract(epoch FROM clock_timestamp()) * 1000000) AS nodes_used,
       CASE WHEN p.widths ~ '^\d{1,2}/\d{1,2}/'
            THEN 2 ^ (split_part(p.widths, '/', 2)::integer - (p.layout ~ ', backup worker')::integer) END AS nodes
  FROM uid_registry.pool AS p LEFT JOIN uid_registry.node AS n USING (layout) GROUP BY p.layout;
COMMENT ON VIEW uid_registry.pools IS 'Layouts, each with the number of its nodes, and of those that are granted now.';

-- Rights, whatever default privileges say; then the row, with which it begins to answer. ------------------------------

DO $$
DECLARE grantee text;
BEGIN
  FOR grantee IN SELECT 'PUBLIC' UNION
                 SELECT quote_ident(pg_get_userbyid(a.grantee))
                   FROM pg_default_acl AS d, aclexplode(d.defaclacl) AS a
                  WHERE a.grantee <> 0 AND pg_get_userbyid(a.grantee) <> current_user LOOP
    EXECUTE format('REVOKE ALL ON SCHEMA uid_registry FROM %s', grantee);
    EXECUTE format('REVOKE ALL ON ALL TABLES IN SCHEMA uid_registry FROM %s', grantee);
    EXECUTE format('REVOKE ALL ON ALL FUNCTIONS IN SCHEMA uid_registry FROM %s', grantee);
  END LOOP;
END $$;
GRANT ALL ON ALL TABLES IN SCHEMA uid_registry TO CURRENT_USER;
GRANT ALL ON ALL FUNCTIONS IN SCHEMA uid_registry TO CURRENT_USER;
GRANT USAGE ON SCHEMA uid_registry TO uid_member, pg_monitor;
GRANT SELECT ON uid_registry.status, uid_registry.pools TO pg_monitor;
GRANT EXECUTE ON FUNCTION uid_registry.hello(bigint, bigint), uid_registry.grant(bigint, bigint, jsonb),
                          uid_registry.block(bigint, bigint, text, bigint, bigint) TO uid_member;
COMMENT ON SCHEMA uid_registry IS
  'Grants the nodes of a fleet of uidgen. In a copy UPDATE uid_registry.registry SET fleet = DEFAULT before members '
  'reach it.';
INSERT INTO uid_registry.registry (keeps, longest, bound, term, place, timeline, started, fence, reason, lost_from)
SELECT :'keeps', :'longest'::numeric * 1000000, :'bound'::numeric * 1000000, c.now_us, h.place, h.timeline, h.started,
       :'anew'::boolean::int, CASE WHEN :'anew' THEN 'anew' ELSE 'none' END,
       CASE WHEN :'anew' THEN c.now_us + 2 * :'bound'::numeric * 1000000 ELSE 0 END
  FROM uid_registry.here() AS h, uid_registry.clock() AS c (now_us);
\if :anew
UPDATE uid_registry.registry SET fleet = :'fleet';
\endif
COMMIT;
SELECT r.fleet, r.keeps, r.longest / 1000000 AS longest, r.reason AS fence FROM uid_registry.registry AS r;
