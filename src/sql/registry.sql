-- Fleets, the registry's side: its tables, and what members and administrators call on it. A database is the registry of a
-- fleet from its first uid_fleet_admit() on.

CREATE TABLE uid_fleet_state (
  only_row          boolean     PRIMARY KEY DEFAULT true CHECK (only_row),
  fleet             bigint      NOT NULL CHECK (fleet > 0),
  term              bigint      NOT NULL DEFAULT 1,
  term_shown        bigint      NOT NULL DEFAULT 0,
  fence_base        timestamptz,
  longest_grant     interval    NOT NULL DEFAULT '10 minutes'
                                CHECK (longest_grant BETWEEN interval '1 millisecond' AND interval '7 days'),
  clock_bound       interval    NOT NULL
                                CHECK (clock_bound BETWEEN interval '1 millisecond' AND interval '1 day'),
  closed_until      timestamptz,
  system_identifier bigint,
  timeline          integer,
  host              text,
  data_directory    text,
  database_oid      oid,
  table_oid         oid
);
COMMENT ON TABLE uid_fleet_state IS
  'The fleet of which this database is the registry, in one row. uid_fleet_admit() inserts the row. A dump contains '
  'it, so that the fleet moves with a restore.';
COMMENT ON COLUMN uid_fleet_state.only_row IS 'true; there is one row';
COMMENT ON COLUMN uid_fleet_state.fleet IS 'identity of the fleet, a random number; members refuse another one';
COMMENT ON COLUMN uid_fleet_state.term IS 'number of fences so far, plus one';
COMMENT ON COLUMN uid_fleet_state.term_shown IS
  'highest term above its own that a member has shown: another server is the registry, or was';
COMMENT ON COLUMN uid_fleet_state.fence_base IS 'clock at the last fence; NULL: there was none';
COMMENT ON COLUMN uid_fleet_state.longest_grant IS
  'limit on the length of a grant, and the time for which a fence refuses newcomers. Change it with UPDATE. After a '
  'lower value, wait for the former length before a failover, because longer grants may be in use until then';
COMMENT ON COLUMN uid_fleet_state.clock_bound IS
  'limit on the difference between two clocks of the fleet: the greatest uidgen.registry_clock_bound that a registry of '
  'this fleet has had. A server that takes over uses it even if its own setting is smaller. To lower it, lower the '
  'setting on all servers of the registry first, then change it with UPDATE. Then wait for longest_grant before a '
  'failover, because grants may be in use that were made under the former limit';
COMMENT ON COLUMN uid_fleet_state.closed_until IS
  'set by uid_fleet_handover(): the registry grants nothing, and a server that takes over before this time raises no '
  'fence. NULL: the registry is open. The first call on a server that takes over sets NULL';
COMMENT ON COLUMN uid_fleet_state.system_identifier IS
  'system identifier of the server that answered the last call; another one raises a fence, and so does another '
  'timeline, host, data_directory, database_oid or table_oid';
COMMENT ON COLUMN uid_fleet_state.timeline IS 'timeline of that server';
COMMENT ON COLUMN uid_fleet_state.host IS 'host name of that server; NULL before the first call';
COMMENT ON COLUMN uid_fleet_state.data_directory IS 'real path of its data directory';
COMMENT ON COLUMN uid_fleet_state.database_oid IS
  'OID of this database; in a restored or copied database it is the former one''s until the first call';
COMMENT ON COLUMN uid_fleet_state.table_oid IS 'OID of this table, which changes if it is restored inside its database';

CREATE TABLE uid_secrets.uid_fleet_key (
  only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
  seal_key bytea   NOT NULL DEFAULT pg_catalog.uuid_send(pg_catalog.gen_random_uuid())
);
COMMENT ON TABLE uid_secrets.uid_fleet_key IS
  'The secret of the fleet''s registry, in one row. Members show what the registry gave them with seals, which are made '
  'with it.';
COMMENT ON COLUMN uid_secrets.uid_fleet_key.only_row IS 'true; there is one row';
COMMENT ON COLUMN uid_secrets.uid_fleet_key.seal_key IS
  'the secret. With another one, members are refused until they have called uid_fleet_move()';

CREATE TABLE uid_fleet_pool (
  pool              integer     PRIMARY KEY,
  preset            text        NOT NULL,
  epoch             timestamptz NOT NULL,
  tick_us           bigint      NOT NULL,
  time_bits         smallint    NOT NULL,
  datacenter_bits   smallint    NOT NULL,
  worker_bits       smallint    NOT NULL,
  sequence_bits     smallint    NOT NULL,
  sequence_first    boolean     NOT NULL,
  backup_worker     boolean     NOT NULL,
  drawn_worker_bits integer     GENERATED ALWAYS AS (worker_bits::integer - backup_worker::integer) STORED,
  login             text,
  UNIQUE (epoch, tick_us, time_bits, datacenter_bits, worker_bits, sequence_bits, sequence_first, backup_worker)
);
COMMENT ON TABLE uid_fleet_pool IS
  'One row for each layout in the fleet. Its generators form a pool, and each of them has a node of its own.';
COMMENT ON COLUMN uid_fleet_pool.pool IS 'number of the pool';
COMMENT ON COLUMN uid_fleet_pool.preset IS 'preset of the first generator of the pool';
COMMENT ON COLUMN uid_fleet_pool.epoch IS 'time of tick 0';
COMMENT ON COLUMN uid_fleet_pool.tick_us IS 'length of a tick in microseconds';
COMMENT ON COLUMN uid_fleet_pool.time_bits IS 'width of the time field';
COMMENT ON COLUMN uid_fleet_pool.datacenter_bits IS 'width of the datacenter id';
COMMENT ON COLUMN uid_fleet_pool.worker_bits IS 'width of the worker id';
COMMENT ON COLUMN uid_fleet_pool.sequence_bits IS 'width of the sequence number';
COMMENT ON COLUMN uid_fleet_pool.sequence_first IS 'order of the fields, as in uid_generator';
COMMENT ON COLUMN uid_fleet_pool.backup_worker IS 'whether the top bit of the worker field marks the backup worker';
COMMENT ON COLUMN uid_fleet_pool.drawn_worker_bits IS
  'width of the worker ids that are granted: a node is datacenter id * 2^drawn_worker_bits + worker id';
COMMENT ON COLUMN uid_fleet_pool.login IS
  'role that the first member of the pool connected with, NULL: uid_fleet_reserve() made the pool. One role brings 1,000 at most';

CREATE TABLE uid_fleet_node (
  pool              integer     NOT NULL,
  node              bigint      NOT NULL,
  granted_from      bigint      NOT NULL DEFAULT 0,
  granted_until     bigint      NOT NULL,
  line              bigint      NOT NULL DEFAULT 0,
  incarnation       bigint      NOT NULL DEFAULT 0,
  term              bigint      NOT NULL,
  serial            bigint      NOT NULL,
  revoked           bigint      NOT NULL DEFAULT 0,
  reserved          boolean     NOT NULL DEFAULT false,
  host              text,
  port              text,
  system_identifier bigint,
  timeline          integer,
  database          text,
  generator         text,
  version           text,
  policy            text,
  asked_length      bigint      NOT NULL DEFAULT 0,
  clock_offset_us   bigint,
  last_heard        timestamptz,
  PRIMARY KEY (pool, node)
);
CREATE INDEX uid_fleet_node_until ON uid_fleet_node (pool, granted_until, node);
CREATE INDEX uid_fleet_node_incarnation ON uid_fleet_node (pool, incarnation) WHERE incarnation <> 0;
CREATE INDEX uid_fleet_node_sticky ON uid_fleet_node (pool, generator, database, host, port) WHERE policy = 'sticky';
COMMENT ON TABLE uid_fleet_node IS
  'One row for each node that was ever granted, with its last grant. No function deletes rows, so a node is '
  'never granted twice for the same time.';
COMMENT ON COLUMN uid_fleet_node.pool IS 'pool of the node';
COMMENT ON COLUMN uid_fleet_node.node IS
  'value of the datacenter and worker bits, without the bit of the backup worker';
COMMENT ON COLUMN uid_fleet_node.granted_from IS 'first tick of the grant';
COMMENT ON COLUMN uid_fleet_node.granted_until IS 'first tick after the grant';
COMMENT ON COLUMN uid_fleet_node.line IS
  'first incarnation that the node was granted to; 0: the node was used without a registry, taken over, or reserved';
COMMENT ON COLUMN uid_fleet_node.incarnation IS
  'incarnation that was answered last; 0: none';
COMMENT ON COLUMN uid_fleet_node.term IS 'term of the last answer';
COMMENT ON COLUMN uid_fleet_node.serial IS 'serial of the last answer';
COMMENT ON COLUMN uid_fleet_node.revoked IS 'line from which the node was taken over; 0: none';
COMMENT ON COLUMN uid_fleet_node.reserved IS 'true: for a generator outside PostgreSQL';
COMMENT ON COLUMN uid_fleet_node.host IS 'host name of the holder''s server';
COMMENT ON COLUMN uid_fleet_node.port IS 'port of the holder''s server';
COMMENT ON COLUMN uid_fleet_node.system_identifier IS 'system identifier of the holder''s server';
COMMENT ON COLUMN uid_fleet_node.timeline IS 'timeline of the holder''s server';
COMMENT ON COLUMN uid_fleet_node.database IS 'database of the holder';
COMMENT ON COLUMN uid_fleet_node.generator IS 'qualified name of the holder';
COMMENT ON COLUMN uid_fleet_node.version IS 'version of uidgen there';
COMMENT ON COLUMN uid_fleet_node.policy IS 'worker_policy of the holder; reserved: none';
COMMENT ON COLUMN uid_fleet_node.asked_length IS
  'length in ticks that the holder asked for last; at most half of it is how far ahead of its clock it draws';
COMMENT ON COLUMN uid_fleet_node.clock_offset_us IS
  'clock of the holder''s server minus that of the registry, at the last call, in microseconds';
COMMENT ON COLUMN uid_fleet_node.last_heard IS 'time of the last call by the registry''s clock';

CREATE SEQUENCE uid_fleet_serial;
COMMENT ON SEQUENCE uid_fleet_serial IS
  'Counter of the answers of a fleet''s registry. If a member shows a number above it, the registry has lost commits.';

SELECT pg_catalog.pg_extension_config_dump('uid_fleet_state', '');
SELECT pg_catalog.pg_extension_config_dump('uid_secrets.uid_fleet_key', '');
SELECT pg_catalog.pg_extension_config_dump('uid_fleet_pool', '');
SELECT pg_catalog.pg_extension_config_dump('uid_fleet_node', '');
SELECT pg_catalog.pg_extension_config_dump('uid_fleet_serial', '');

-- What members call. Procedures, because they commit before they answer. So they cannot be SECURITY DEFINER, nor have a
-- SET clause. They take the rights of the tables' owner by themselves.
CREATE PROCEDURE uid_fleet_call(protocol integer, incarnation bigint, former bigint[],
    INOUT fleet bigint, INOUT term bigint, INOUT serial bigint, INOUT seal bigint,
    held_node bigint, held_from bigint, held_until bigint, held_line bigint, held_term bigint, held_serial bigint,
    INOUT held_seal bigint,
    clock_us bigint, lowest bigint, length bigint,
    preset text, epoch_us bigint, tick_us bigint, time_bits integer, datacenter_bits integer, worker_bits integer,
    sequence_bits integer, sequence_first boolean, backup_worker boolean,
    policy text, worker_number integer, datacenter_id integer, former_node bigint, former_until bigint,
    host text, port text, system_identifier bigint, timeline integer, database text, generator text, version text,
    INOUT refusal text DEFAULT NULL, INOUT message text DEFAULT NULL, INOUT hint text DEFAULT NULL,
    INOUT retry_after_ms bigint DEFAULT NULL,
    INOUT node bigint DEFAULT NULL, INOUT granted_from bigint DEFAULT NULL, INOUT granted_until bigint DEFAULT NULL,
    INOUT line bigint DEFAULT NULL, INOUT registry_clock_us bigint DEFAULT NULL, INOUT registry_version text DEFAULT NULL)
LANGUAGE c AS 'MODULE_PATHNAME', 'uid_fleet_call';
COMMENT ON PROCEDURE uid_fleet_call IS
  'Members of a fleet call it on the registry to get or to keep a node. fleet, term, serial and seal are those of the '
  'latest answer that the member has seen, and of this one. A refusal is not an error but an answer whose refusal is '
  'not NULL. It commits before it answers. So it fails in a transaction block, in a function, on a standby, and if '
  'this database is not a registry. Only roles of uid_fleet_admit() may call it.';

CREATE PROCEDURE uid_fleet_block(protocol integer, INOUT fleet bigint, INOUT term bigint, serial bigint, seal bigint,
    segment text, INOUT count bigint, shown bigint, INOUT increment bigint,
    host text, port text, database text, version text,
    INOUT refusal text DEFAULT NULL, INOUT message text DEFAULT NULL, INOUT hint text DEFAULT NULL,
    INOUT first bigint DEFAULT NULL, INOUT last bigint DEFAULT NULL)
LANGUAGE c AS 'MODULE_PATHNAME', 'uid_fleet_block';
COMMENT ON PROCEDURE uid_fleet_block IS
  'Members of a fleet call it on the registry to get a block of at most count values of a segment, beyond the value '
  'that they show. A count of 0 only asks for the increment. A refusal is not an error but an answer whose refusal '
  'is not NULL. The member''s role needs USAGE on the segment''s sequence. It commits before it answers. So it fails in '
  'a transaction block, in a function, on a standby, and if this database is not a registry. Only roles of '
  'uid_fleet_admit() may call it.';

CREATE FUNCTION uid_fleet_fence(cancel boolean DEFAULT false) RETURNS timestamptz
LANGUAGE c VOLATILE STRICT SECURITY DEFINER PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'uid_fleet_fence';
COMMENT ON FUNCTION uid_fleet_fence(boolean) IS
  'Raises a fence on the registry of a fleet. Run it after a restore from a backup, or if the registry may have lost '
  'commits for another reason. Members that are alive keep their nodes. Newcomers are accepted again from the returned '
  'time on. The registry raises a fence by itself if its server, timeline, host, data directory or database has '
  'changed. With cancel => true the fence ends at once, and the registry forgets that a member has shown it a later '
  'term. Do that only if no grant was lost, or no holder of a lost grant draws any more; otherwise ids collide. It '
  'fails in a transaction block.';

CREATE FUNCTION uid_fleet_handover(cancel boolean DEFAULT false) RETURNS void
LANGUAGE c VOLATILE STRICT SECURITY DEFINER PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'uid_fleet_handover';
COMMENT ON FUNCTION uid_fleet_handover(boolean) IS
  'Closes the registry of a fleet before a planned switchover. It grants nothing until another server has taken over. '
  'That server needs no fence: if it knows of the handover, it knows of every grant. This holds for five minutes '
  '(uid_fleet_state.closed_until). A server that takes over later raises a fence. With cancel => true the registry is '
  'open again; that fails until closed_until has passed by twice the clock bound. It fails in a transaction block.';

CREATE FUNCTION uid_fleet_takeover(pool integer, node bigint) RETURNS timestamptz
LANGUAGE c VOLATILE STRICT SECURITY DEFINER PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'uid_fleet_takeover';
COMMENT ON FUNCTION uid_fleet_takeover(integer, bigint) IS
  'Takes a node from its holder before its grant ends, or ends a reservation. The node is free from the returned time '
  'on. The holder must not run any more: if it does, ids collide. A node without a holder was used by a generator '
  'before it joined the fleet: if it was used beyond the returned time, ids may come again. It fails if the node was '
  'never granted, during a handover, and in a transaction block.';

CREATE FUNCTION uid_fleet_reserve(nodes integer DEFAULT 1, preset text DEFAULT 'snowflake',
    epoch timestamptz DEFAULT NULL, pool integer DEFAULT NULL, without_standby boolean DEFAULT false,
    OUT node bigint, OUT datacenter_id integer, OUT worker_id integer,
    OUT granted_from timestamptz, OUT granted_until timestamptz)
RETURNS SETOF record
LANGUAGE c VOLATILE SECURITY DEFINER PARALLEL UNSAFE ROWS 10 AS 'MODULE_PATHNAME', 'uid_fleet_reserve';
COMMENT ON FUNCTION uid_fleet_reserve(integer, text, timestamptz, integer, boolean) IS
  'Reserves nodes for generators outside PostgreSQL, from granted_from to the end of the layout. No member gets them. '
  'The layout is that of a preset, if need be with another epoch, or that of a pool of uid_fleet_pools. '
  'uid_fleet_takeover() ends a reservation. It fails without a synchronous standby, because the registry could lose the '
  'reservation at a failover. If without_standby is true, it does not; then check after each unplanned failover that '
  'uid_fleet still lists the nodes, because one that was lost may be granted to a member. It also fails if too few '
  'nodes are free, during a fence or a handover, and in a transaction block.';

CREATE FUNCTION uid_fleet_admit(role regrole) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  -- The locks make a rename of the schema and DROP EXTENSION wait. Otherwise the owner of the schema could put another
  -- one in its place, whose functions and triggers would run with the rights of this function.
  home text := (SELECT quote_ident(n.nspname) FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace
                 WHERE e.extname = 'uidgen' FOR KEY SHARE);
  setting text;
BEGIN
  IF role IS NULL THEN
    RAISE EXCEPTION 'role must not be null'
      USING ERRCODE = 'null_value_not_allowed', HINT = 'Pass the name of the role that members connect with.';
  ELSIF NOT EXISTS (SELECT FROM pg_roles r WHERE r.oid = role) THEN
    RAISE EXCEPTION 'role with OID % does not exist', role::oid
      USING ERRCODE = 'undefined_object', HINT = 'Pass the name of the role that members connect with.';
  ELSIF (SELECT r.rolsuper FROM pg_roles r WHERE r.oid = role) THEN
    RAISE EXCEPTION 'role % is a superuser', role
      USING ERRCODE = 'invalid_grant_operation',
            DETAIL = 'Members need few rights, and the role gets timeouts in this database.',
            HINT = 'Create a role for the members: CREATE ROLE uid_fleet LOGIN.';
  ELSIF home IS NULL THEN
    RAISE EXCEPTION 'extension uidgen was dropped by another session'
      USING ERRCODE = 'undefined_object', HINT = 'Run CREATE EXTENSION uidgen.';
  ELSIF current_setting('shared_preload_libraries') !~ '\muidgen\M' THEN -- or each call of a member would fail
    RAISE EXCEPTION 'uidgen must be loaded via shared_preload_libraries'
      USING ERRCODE = 'object_not_in_prerequisite_state', DETAIL = 'A registry relies on settings of its server.',
            HINT = 'Add uidgen to shared_preload_libraries in postgresql.conf and restart the server.';
  END IF;
  -- First, because a rename that waits for this function would have it wait in its turn.
  EXECUTE format('GRANT USAGE ON SCHEMA %s TO %s', home, role);
  -- A call of any function in C defines the settings.
  PERFORM FROM uid_internal.uid_slots() LIMIT 1;
  EXECUTE format('INSERT INTO %s.uid_fleet_state (fleet, clock_bound, system_identifier, timeline, '
                 'database_oid, table_oid) VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT DO NOTHING', home)
    USING greatest(hashtextextended(gen_random_uuid()::text, 0) & 9223372036854775807, 1),
          current_setting('uidgen.registry_clock_bound')::interval,
          (SELECT system_identifier FROM pg_control_system()),
          ('x' || left(pg_walfile_name(pg_current_wal_insert_lsn()), 8))::bit(32)::integer,
          (SELECT oid FROM pg_database WHERE datname = current_database()),
          format('%s.uid_fleet_state', home)::regclass::oid;
  INSERT INTO uid_secrets.uid_fleet_key DEFAULT VALUES ON CONFLICT DO NOTHING;
  EXECUTE format('GRANT EXECUTE ON PROCEDURE %1$s.uid_fleet_call, %1$s.uid_fleet_block TO %2$s', home, role);
  -- A call is one short statement. A member keeps its connection between calls. After five seconds without an answer it
  -- connects again. By then a call that waits for a lock has failed. A call that waits for the standby keeps its locks, so
  -- the calls that follow it do not pile up behind it.
  FOREACH setting IN ARRAY ARRAY['statement_timeout = 30000', 'lock_timeout = 4000',
      'client_connection_check_interval = 2000',
      'idle_in_transaction_session_timeout = 10000', 'idle_session_timeout = 0',
      'default_transaction_isolation = "read committed"', 'default_transaction_read_only = off'] LOOP
    EXECUTE format('ALTER ROLE %s IN DATABASE %I SET %s', role, current_database(), setting);
  END LOOP;
END
$$;
COMMENT ON FUNCTION uid_fleet_admit(regrole) IS
  'Makes this database the registry of a fleet, unless it is one already, and lets a role call uid_fleet_call() '
  'and uid_fleet_block(). Members connect with that role. It needs no other right, but for USAGE on the sequences of '
  'segments that members attach to. It also sets the timeouts of the role in this database. '
  'uid_fleet_expel() undoes it. The role must not be a superuser. A registry needs uidgen in '
  'shared_preload_libraries. Only superusers and the owner of the database may call it.';

CREATE FUNCTION uid_fleet_expel(role regrole) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  home text := (SELECT quote_ident(n.nspname) FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace
                 WHERE e.extname = 'uidgen' FOR KEY SHARE);
  sequence text;
  setting text;
  sessions bigint;
  others text;
BEGIN
  IF role IS NULL THEN
    RAISE EXCEPTION 'role must not be null'
      USING ERRCODE = 'null_value_not_allowed', HINT = 'Pass the name of the role that members connect with.';
  ELSIF home IS NULL THEN
    RAISE EXCEPTION 'extension uidgen was dropped by another session'
      USING ERRCODE = 'undefined_object', HINT = 'Run CREATE EXTENSION uidgen.';
  ELSIF NOT EXISTS (SELECT FROM pg_proc p CROSS JOIN LATERAL aclexplode(p.proacl) a
                     WHERE p.pronamespace = (SELECT e.extnamespace FROM pg_extension e WHERE e.extname = 'uidgen')
                       AND p.proname = 'uid_fleet_call' AND a.grantee = role) THEN
    RAISE EXCEPTION 'role % was not admitted to the fleet', role
      USING ERRCODE = 'undefined_object', HINT = 'Pass the name of a role that was passed to uid_fleet_admit().';
  END IF;
  EXECUTE format('REVOKE USAGE ON SCHEMA %s FROM %s', home, role);
  EXECUTE format('REVOKE EXECUTE ON PROCEDURE %1$s.uid_fleet_call, %1$s.uid_fleet_block FROM %2$s', home, role);
  FOR sequence IN EXECUTE format('SELECT s.sequence::text FROM %s.uid_segment s JOIN pg_class c ON c.oid = s.sequence '
                                 'CROSS JOIN LATERAL aclexplode(c.relacl) a WHERE a.grantee = $1 GROUP BY s.sequence',
                                 home) USING role LOOP
    EXECUTE format('REVOKE ALL ON SEQUENCE %s FROM %s', sequence, role);
  END LOOP;
  FOREACH setting IN ARRAY ARRAY['statement_timeout', 'lock_timeout', 'client_connection_check_interval',
      'idle_in_transaction_session_timeout', 'idle_session_timeout', 'default_transaction_isolation',
      'default_transaction_read_only'] LOOP
    EXECUTE format('ALTER ROLE %s IN DATABASE %I RESET %s', role, current_database(), setting);
  END LOOP;
  others := (SELECT string_agg(array_to_string(s.setconfig, ', '), ', ' ORDER BY s.setdatabase)
               FROM pg_db_role_setting s WHERE s.setrole = role
                AND s.setdatabase IN (0, (SELECT d.oid FROM pg_database d WHERE d.datname = current_database())));
  IF others IS NOT NULL THEN
    RAISE NOTICE 'role % has settings that uid_fleet_admit() has not made', role
      USING DETAIL = others, HINT = format('To remove them, run ALTER ROLE %1$s RESET ALL and ALTER ROLE %1$s IN DATABASE '
                                           '%2$I RESET ALL.', role, current_database());
  END IF;
  sessions := (SELECT count(*) FROM pg_stat_activity s WHERE s.datname = current_database() AND s.usesysid = role);
  IF sessions > 0 THEN
    RAISE NOTICE 'role % has % sessions in this database', role, sessions
      USING DETAIL = 'They cannot call the registry any more. Members that connect with the role draw to the end of their grants.',
            HINT = format('To end the sessions, run SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usesysid = %s.',
                          role::oid);
  END IF;
END
$$;
COMMENT ON FUNCTION uid_fleet_expel(regrole) IS
  'Undoes uid_fleet_admit(): takes back the settings that it made, and what the role may call. It also revokes the '
  'role''s privileges on the sequences of segments. A NOTICE names other settings of the role, which stay. Nodes that '
  'were granted through the role stay with their holders until their grants end. Sessions of the role go on, but they '
  'cannot call the registry. Only superusers and the owner of the database may call it.';

CREATE VIEW uid_fleet AS
SELECT n.pool, p.preset, n.node, (n.node >> p.drawn_worker_bits)::integer AS datacenter_id,
       (n.node & ((1::bigint << p.drawn_worker_bits) - 1::bigint))::integer AS worker_id,
       CASE WHEN n.reserved THEN 'reserved' WHEN t.ended THEN 'free' WHEN n.incarnation <> 0::bigint AND NOT m.moved THEN 'live'
            WHEN n.revoked <> 0::bigint AND n.line = 0::bigint THEN 'revoked' ELSE 'cooling' END AS state,
       n.generator, n.database, n.host, n.port, u.granted_until, n.last_heard,
       pg_catalog.make_interval(secs => n.clock_offset_us::float8 / 1000000::float8) AS clock_offset,
       n.version, n.policy
  FROM uid_fleet_node n JOIN uid_fleet_pool p ON p.pool = n.pool
 CROSS JOIN LATERAL (SELECT p.epoch + pg_catalog.make_interval(secs =>
                              p.tick_us::float8 / 1000000::float8 * n.granted_until::float8) AS granted_until) u
 CROSS JOIN LATERAL (SELECT u.granted_until <= pg_catalog.clock_timestamp() AS ended) t
 CROSS JOIN LATERAL (SELECT EXISTS (SELECT FROM uid_fleet_node o
                                     WHERE o.pool = n.pool AND o.incarnation = n.incarnation AND o.incarnation <> 0::bigint
                                       AND (o.term, o.serial) > (n.term, n.serial)) AS moved) m;
COMMENT ON VIEW uid_fleet IS
  'The nodes that the registry of a fleet has granted, with their last holders. state: live (the holder may use the '
  'node, and renews the grant), cooling (the former holder may have used it up to granted_until), revoked (the same '
  'after uid_fleet_takeover()), reserved (for a generator outside PostgreSQL), free (the grant has ended). clock_offset is the '
  'clock of the holder''s server minus that of the registry. Readable by pg_monitor.';

CREATE VIEW uid_fleet_pools AS
SELECT p.pool, p.preset, p.epoch, a.nodes, coalesce(c.live, 0::bigint) AS live,
       coalesce(c.cooling, 0::bigint) AS cooling, coalesce(c.reserved, 0::bigint) AS reserved,
       a.nodes - coalesce(c.live + c.cooling + c.reserved, 0::bigint) AS free,
       CASE WHEN f.until > pg_catalog.clock_timestamp() THEN f.until END AS fence_until
  FROM uid_fleet_pool p CROSS JOIN uid_fleet_state s
 CROSS JOIN LATERAL (SELECT s.fence_base + s.clock_bound + s.clock_bound + s.longest_grant AS until) f
 CROSS JOIN LATERAL (SELECT 1::bigint << (p.datacenter_bits::integer + p.drawn_worker_bits) AS nodes) a
  LEFT JOIN (SELECT f.pool, pg_catalog.count(*) FILTER (WHERE f.state = 'live'::text) AS live,
                    pg_catalog.count(*) FILTER (WHERE f.state = 'cooling'::text OR f.state = 'revoked'::text)
                      AS cooling,
                    pg_catalog.count(*) FILTER (WHERE f.state = 'reserved'::text) AS reserved
               FROM uid_fleet f GROUP BY f.pool) c ON c.pool = p.pool;
COMMENT ON VIEW uid_fleet_pools IS
  'The layouts of a fleet: the number of nodes, and how many are live, cooling (or revoked), reserved and free (see '
  'uid_fleet). Until fence_until newcomers are refused, because the registry may have lost grants; NULL: there is no '
  'fence. Readable by pg_monitor.';
