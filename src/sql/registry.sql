-- Fleets, the registry's side: its tables, what members call on it, and what it shows. A database is the registry of a
-- fleet from its first uid_fleet_admit() on. registry_admin.sql has what administrators call.

CREATE TABLE uid_fleet_state (
  only_row          boolean     PRIMARY KEY DEFAULT true CHECK (only_row),
  fleet             bigint      NOT NULL CHECK (fleet > 0),
  longest_grant     interval    NOT NULL DEFAULT '10 minutes'
                                CHECK (longest_grant BETWEEN interval '1 millisecond' AND interval '7 days'),
  clock_bound       interval    NOT NULL DEFAULT '1 millisecond'
                                CHECK (clock_bound BETWEEN interval '1 millisecond' AND interval '1 day'),
  synchronous       boolean     NOT NULL DEFAULT false,
  term              bigint      NOT NULL,
  term_nonce        bigint      NOT NULL,
  first_term        bigint      NOT NULL,
  unproven_base     timestamptz,
  former_term       bigint,
  former_term_nonce bigint,
  former_serial     bigint,
  shown_term        bigint,
  fence_base        timestamptz,
  covered_until     timestamptz,
  closed_until      timestamptz,
  started           timestamptz,
  serial_at_start   bigint,
  granted_at_start  timestamptz,
  refuses           text,
  timeline          integer     NOT NULL,
  database          text        NOT NULL,
  directory         text        NOT NULL
);
COMMENT ON TABLE uid_fleet_state IS
  'The fleet of which this database is the registry, in one row. uid_fleet_admit() inserts the row. A dump contains '
  'it, so that the fleet moves with a restore. Change longest_grant, clock_bound and synchronous with UPDATE, and nothing '
  'else.';
COMMENT ON COLUMN uid_fleet_state.only_row IS 'true; there is one row';
COMMENT ON COLUMN uid_fleet_state.fleet IS 'identity of the fleet, a random number; members refuse another one';
COMMENT ON COLUMN uid_fleet_state.longest_grant IS
  'limit on the length of a grant, and the time for which a fence refuses newcomers. After you lower it, allow no '
  'failover for the former length, because longer grants may still be in use';
COMMENT ON COLUMN uid_fleet_state.clock_bound IS
  'limit on the difference between two clocks of the fleet: the greatest uidgen.registry_clock_bound of its '
  'registries. Lower the setting on all of them first, then this. Then allow no failover for longest_grant, because '
  'grants made under the former limit may still be in use';
COMMENT ON COLUMN uid_fleet_state.synchronous IS
  'true: the registry grants nothing without a synchronous standby, and you promote only standbys that have every '
  'commit. So a promoted standby needs no fence';
COMMENT ON COLUMN uid_fleet_state.term IS
  'number of the present term: the time in microseconds when the server took over, or a larger number if the former '
  'term''s is not below it. Of two registries, the one with the larger number counts';
COMMENT ON COLUMN uid_fleet_state.term_nonce IS
  'random number drawn with it, in which two registries with the same number differ';
COMMENT ON COLUMN uid_fleet_state.first_term IS
  'number of the first term that this registry can prove; larger than 1 if this registry replaced one that was lost, '
  'or one with another key';
COMMENT ON COLUMN uid_fleet_state.unproven_base IS
  'fence_base when this registry replaced one that was lost with its key: until that fence ends, members keep nodes by '
  'grants without a proof. NULL: it replaced none, or has met a claim since';
COMMENT ON COLUMN uid_fleet_state.former_term IS
  'number of the term before, if no commit of it was lost when this one began; otherwise NULL';
COMMENT ON COLUMN uid_fleet_state.former_term_nonce IS 'its random number';
COMMENT ON COLUMN uid_fleet_state.former_serial IS 'serial of the last answer in it: a larger one proves lost commits';
COMMENT ON COLUMN uid_fleet_state.shown_term IS
  'number of another registry''s term that a member has shown: this one grants nothing (larger number) or accepts no '
  'newcomers (the same number)';
COMMENT ON COLUMN uid_fleet_state.fence_base IS 'clock at the last fence; NULL: there was none';
COMMENT ON COLUMN uid_fleet_state.covered_until IS
  'grants that other registries of the fleet have made up to then, by their clocks, are known or fenced';
COMMENT ON COLUMN uid_fleet_state.closed_until IS
  'set by uid_fleet_handover(): the registry grants nothing, and a server that takes over before this time raises no '
  'fence. NULL: the registry is open. The first call on a server that takes over sets NULL';
COMMENT ON COLUMN uid_fleet_state.started IS 'when the server started, as of the last call';
COMMENT ON COLUMN uid_fleet_state.serial_at_start IS
  'last serial before that start: newcomers wait for a call of a member with an earlier grant that still lasts; NULL: '
  'there was one; -1: none ends the wait, because "synchronous" was true and a takeover raised no fence';
COMMENT ON COLUMN uid_fleet_state.granted_at_start IS
  'when it last granted before that start. Until one and a half times longest_grant and two clock bounds have passed '
  'since, newcomers get only nodes whose grants had ended by then, and nothing is handed over; afterwards NULL';
COMMENT ON COLUMN uid_fleet_state.refuses IS
  'why the registry refuses all members: unclaimed, handing_over, stale_registry or no_standby; NULL: it does not';
COMMENT ON COLUMN uid_fleet_state.timeline IS 'timeline of the server that is the registry; a later one is a takeover';
COMMENT ON COLUMN uid_fleet_state.database IS
  'its system identifier, and the OIDs of this database and of this table, which change in a restored or copied one. '
  'If they or the directory differ, the registry refuses everyone until uid_fleet_admit() says what it is';
COMMENT ON COLUMN uid_fleet_state.directory IS
  'its host name, the real path of its data directory, and a hash of the inode and the time of birth of the file '
  'PG_VERSION there, which differ in a copy';

CREATE TABLE uid_secrets.uid_fleet_key (
  only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
  seal_key bytea   NOT NULL DEFAULT pg_catalog.uuid_send(pg_catalog.gen_random_uuid())
);
COMMENT ON TABLE uid_secrets.uid_fleet_key IS
  'The secret of the fleet''s registry, in one row. Seals made with it let members prove what the registry gave them.';
COMMENT ON COLUMN uid_secrets.uid_fleet_key.only_row IS 'true; there is one row';
COMMENT ON COLUMN uid_secrets.uid_fleet_key.seal_key IS
  'the secret. With another one, members are refused until they have called uid_fleet_move()';

CREATE TABLE uid_fleet_claim (
  login    text        PRIMARY KEY,
  term     bigint      NOT NULL,
  shown_at timestamptz NOT NULL,
  host     text        NOT NULL,
  port     text        NOT NULL
);
COMMENT ON TABLE uid_fleet_claim IS
  'One row for each login that has shown a later term than this registry''s without a proof. Such a term is invented, '
  'or that of a registry with another key. For longest_grant and two clock bounds after shown_at, neither newcomers '
  'nor holders of ended grants get nodes, and segments give no blocks. uid_fleet_fence() and uid_fleet_expel() delete '
  'rows. Readable by pg_monitor.';
COMMENT ON COLUMN uid_fleet_claim.login IS 'role that has shown it';
COMMENT ON COLUMN uid_fleet_claim.term IS 'largest number that it has shown';
COMMENT ON COLUMN uid_fleet_claim.shown_at IS 'when it has shown one last';
COMMENT ON COLUMN uid_fleet_claim.host IS 'host name that it gave as its server''s';
COMMENT ON COLUMN uid_fleet_claim.port IS 'port that it gave as its server''s';

CREATE TABLE uid_fleet_pool (
  pool              integer     PRIMARY KEY,
  preset            text        NOT NULL,
  epoch             timestamptz NOT NULL,
  tick_us           bigint      NOT NULL,
  time_bits         integer     NOT NULL,
  datacenter_bits   integer     NOT NULL,
  worker_bits       integer     NOT NULL,
  sequence_bits     integer     NOT NULL,
  sequence_first    boolean     NOT NULL,
  backup_worker     boolean     NOT NULL,
  login             text        NOT NULL,
  dropped           boolean     NOT NULL DEFAULT false,
  UNIQUE (epoch, tick_us, time_bits, datacenter_bits, worker_bits, sequence_bits, sequence_first, backup_worker)
);
COMMENT ON TABLE uid_fleet_pool IS
  'One row for each layout in the fleet. Its generators form a pool, in which each has a separate node.';
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
COMMENT ON COLUMN uid_fleet_pool.login IS 'role that the pool''s first member connected with; one role brings 1,000 at most';
COMMENT ON COLUMN uid_fleet_pool.dropped IS
  'whether uid_fleet_drop_pool() has dropped it. The rows of its nodes stay, and count again if a member brings the layout';

CREATE TABLE uid_fleet_node (
  pool              integer     NOT NULL,
  node              bigint      NOT NULL,
  granted_from      bigint      NOT NULL DEFAULT 0,
  granted_until     bigint      NOT NULL,
  membership        bigint      NOT NULL DEFAULT 0,
  incarnation       bigint      NOT NULL DEFAULT 0,
  term              bigint      NOT NULL,
  term_nonce        bigint      NOT NULL DEFAULT 0,
  serial            bigint      NOT NULL,
  revoked           bigint      NOT NULL DEFAULT 0,
  host              text,
  port              text,
  database          text,
  generator         text,
  version           text,
  policy            text,
  login             text,
  asked_length      bigint      NOT NULL DEFAULT 0,
  clock_offset_us   bigint      NOT NULL DEFAULT 0,
  last_heard        timestamptz,
  PRIMARY KEY (pool, node)
);
-- No statement of fleet_tables.cpp fits two of these and the primary key.
CREATE INDEX uid_fleet_node_until ON uid_fleet_node ((pool::bigint), granted_until);
CREATE INDEX uid_fleet_node_incarnation ON uid_fleet_node (incarnation) WHERE incarnation <> 0;
CREATE INDEX uid_fleet_node_login ON uid_fleet_node (login, (pool + 0), (granted_until + 0));
CREATE INDEX uid_fleet_node_heard ON uid_fleet_node (last_heard);
CREATE INDEX uid_fleet_node_sticky ON uid_fleet_node (generator, database, host, port) WHERE policy = 'sticky';
COMMENT ON TABLE uid_fleet_node IS
  'One row for each node that was ever granted, with its last grant. No function deletes rows, so a node is '
  'never granted twice for the same time.';
COMMENT ON COLUMN uid_fleet_node.pool IS 'pool of the node';
COMMENT ON COLUMN uid_fleet_node.node IS 'value of the datacenter and worker bits, without the bit of the backup worker';
COMMENT ON COLUMN uid_fleet_node.granted_from IS 'first tick of the grant';
COMMENT ON COLUMN uid_fleet_node.granted_until IS 'first tick after the grant';
COMMENT ON COLUMN uid_fleet_node.membership IS
  'number of the holder''s membership, which is the first incarnation that the node was granted to; 0: the node was '
  'used without a registry, taken over, or reserved';
COMMENT ON COLUMN uid_fleet_node.incarnation IS 'incarnation that was answered last; 0: none';
COMMENT ON COLUMN uid_fleet_node.term IS 'number of the term of the last answer';
COMMENT ON COLUMN uid_fleet_node.term_nonce IS 'random number of that term';
COMMENT ON COLUMN uid_fleet_node.serial IS 'serial of the last answer';
COMMENT ON COLUMN uid_fleet_node.revoked IS 'membership from which the node was taken over; 0: none';
COMMENT ON COLUMN uid_fleet_node.host IS 'host name of the holder''s server';
COMMENT ON COLUMN uid_fleet_node.port IS 'port of the holder''s server';
COMMENT ON COLUMN uid_fleet_node.database IS 'database of the holder';
COMMENT ON COLUMN uid_fleet_node.generator IS 'qualified name of the holder';
COMMENT ON COLUMN uid_fleet_node.version IS 'version of uidgen there';
COMMENT ON COLUMN uid_fleet_node.policy IS
  'worker_policy of the holder; reserved: the node is for a generator outside PostgreSQL; NULL: it was taken over, or used '
  'without a registry';
COMMENT ON COLUMN uid_fleet_node.login IS
  'role that the holder connected with at its last call, or that said that the node was used without a registry. Unlike '
  'host, port, database and generator, it is not what the member says of itself';
COMMENT ON COLUMN uid_fleet_node.asked_length IS
  'length in ticks that the holder asked for last; at most half of it is how far ahead of its clock it draws';
COMMENT ON COLUMN uid_fleet_node.clock_offset_us IS
  'clock of the holder''s server minus that of the registry, at the last call, in microseconds';
COMMENT ON COLUMN uid_fleet_node.last_heard IS 'time of the last call by the registry''s clock';

CREATE TABLE uid_fleet_segment (
  name       text   PRIMARY KEY,
  last_value bigint NOT NULL
);
COMMENT ON TABLE uid_fleet_segment IS
  'One row for each segment of which members were given values, even if it was dropped. A segment that is created '
  'again under the name begins beyond last_value.';
COMMENT ON COLUMN uid_fleet_segment.name IS 'name of the segment';
COMMENT ON COLUMN uid_fleet_segment.last_value IS 'last value that a member was given, in the direction of the segment';

CREATE SEQUENCE uid_fleet_serial;
COMMENT ON SEQUENCE uid_fleet_serial IS
  'Counter of the answers of a fleet''s registry. If a member shows a number above it, the registry has lost commits.';

SELECT pg_catalog.pg_extension_config_dump('uid_fleet_state', '');
SELECT pg_catalog.pg_extension_config_dump('uid_secrets.uid_fleet_key', '');
SELECT pg_catalog.pg_extension_config_dump('uid_fleet_claim', '');
SELECT pg_catalog.pg_extension_config_dump('uid_fleet_pool', '');
SELECT pg_catalog.pg_extension_config_dump('uid_fleet_node', '');
SELECT pg_catalog.pg_extension_config_dump('uid_fleet_segment', '');
SELECT pg_catalog.pg_extension_config_dump('uid_fleet_serial', '');

-- What members call. A procedure, because it commits before it answers. So it cannot be SECURITY DEFINER, nor have a SET
-- clause. It takes the rights of the tables' owner by itself.

CREATE PROCEDURE uid_internal.uid_fleet_call(requests bytea, INOUT answers bytea DEFAULT NULL)
LANGUAGE c AS 'MODULE_PATHNAME', 'uid_fleet_call';
COMMENT ON PROCEDURE uid_internal.uid_fleet_call IS
  'Members of a fleet call it on the registry, to get or to keep nodes, and to get blocks of values of segments. A message '
  'has up to 100 requests, and an answer for each of them, or for the first ones if the others must wait. Each is a row '
  'in PostgreSQL''s binary format; a refusal is an answer, too. For a segment the role needs USAGE on its sequence. It '
  'commits before it answers. So it fails in a transaction block, in a function, on a standby, and if this database is '
  'not a registry. Only roles of uid_fleet_admit() may call it.';

CREATE VIEW uid_fleet AS
SELECT n.pool, p.preset, n.node, (n.node >> t.bits)::integer AS datacenter_id,
       (n.node & ((1::bigint << t.bits) - 1::bigint))::integer AS worker_id,
       CASE WHEN n.policy = 'reserved'::text THEN 'reserved'
            -- By the holder's clock, if that is behind, but for no longer than a grant lasts: it is what the holder says.
            WHEN t.granted_until <= pg_catalog.clock_timestamp() + LEAST(GREATEST(t.clock_offset, t.longest), interval '0') THEN 'free'
            WHEN n.incarnation <> 0::bigint AND NOT EXISTS (SELECT FROM uid_fleet_node o WHERE o.pool - 0 = n.pool
                   AND o.incarnation = n.incarnation AND o.incarnation <> 0::bigint AND (o.term, o.serial) > (n.term, n.serial))
              THEN 'live'
            WHEN n.revoked <> 0::bigint AND n.membership = 0::bigint THEN 'revoked' ELSE 'cooling' END AS state,
       n.login, n.generator, n.database, n.host, n.port, t.granted_until, n.last_heard, t.clock_offset, n.version, n.policy
  FROM uid_fleet_node n JOIN uid_fleet_pool p ON p.pool = n.pool AND NOT p.dropped
 CROSS JOIN LATERAL (SELECT p.worker_bits - p.backup_worker::integer AS bits, p.epoch + pg_catalog.make_interval(secs =>
                              p.tick_us::float8 / 1000000::float8 * n.granted_until::float8) AS granted_until,
                            pg_catalog.make_interval(secs => n.clock_offset_us::float8 / 1000000::float8) AS clock_offset,
                            (SELECT - s.longest_grant FROM uid_fleet_state s) AS longest) t;
COMMENT ON VIEW uid_fleet IS
  'The nodes that the registry of a fleet has granted, with their last holders. login: the role that the holder '
  'connects with; generator, database, host and port are what it says about itself. state: live (the holder may use '
  'the node, and renews the grant), cooling (the former holder may have used it up to granted_until), revoked (the '
  'same after uid_fleet_takeover()), reserved (for a generator outside PostgreSQL), free (the grant has ended, by the '
  'clock of the registry and of the holder). clock_offset is the clock of the holder''s server minus that of the '
  'registry. Readable by pg_monitor.';

CREATE VIEW uid_internal.fleet_state AS
SELECT s.*, (EXTRACT(epoch FROM s.longest_grant) * 1000000::numeric)::bigint AS longest_us,
       (EXTRACT(epoch FROM s.clock_bound) * 1000000::numeric)::bigint AS bound_us,
       (SELECT pg_catalog.max(c.term) FROM uid_fleet_claim c
         WHERE c.shown_at > pg_catalog.clock_timestamp() - s.longest_grant - s.clock_bound - s.clock_bound) AS claimed
  FROM uid_fleet_state s;
COMMENT ON VIEW uid_internal.fleet_state IS 'uid_fleet_state as the registry reads it, with the largest number of a claim that counts.';

CREATE FUNCTION uid_internal.uid_fleet_refuses(state record) RETURNS text
LANGUAGE c VOLATILE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'uid_fleet_refuses';
COMMENT ON FUNCTION uid_internal.uid_fleet_refuses(record) IS
  'Returns the column refuses of uid_fleet_pools: why a registry in that state of uid_internal.fleet_state would refuse a newcomer, or everyone, as it '
  'judges that itself.';

CREATE VIEW uid_fleet_pools AS
SELECT p.pool, p.preset, p.epoch, n.nodes, c.live, c.cooling, c.reserved, n.nodes - (c.live + c.cooling + c.reserved) AS free,
       n.collides_with, CASE WHEN s.until > pg_catalog.clock_timestamp() THEN s.until END AS fence_until, s.refuses
  FROM (SELECT f.until, uid_internal.uid_fleet_refuses(f) AS refuses
          FROM (SELECT s.*, s.fence_base + s.clock_bound + s.clock_bound + s.longest_grant AS until
                  FROM uid_internal.fleet_state s) f) s
  LEFT JOIN uid_fleet_pool p ON NOT p.dropped
  LEFT JOIN LATERAL (SELECT pg_catalog.count(*) FILTER (WHERE f.state = 'live'::text) AS live,
                            pg_catalog.count(*) FILTER (WHERE f.state = 'cooling'::text OR f.state = 'revoked'::text) AS cooling,
                            pg_catalog.count(*) FILTER (WHERE f.state = 'reserved'::text) AS reserved
                       FROM uid_fleet f WHERE f.pool = p.pool) c ON p.pool IS NOT NULL
 CROSS JOIN LATERAL (SELECT 1::bigint << (p.datacenter_bits + p.worker_bits - p.backup_worker::integer) AS nodes,
                            (SELECT pg_catalog.array_agg(q.pool ORDER BY q.pool) FROM uid_fleet_pool q
                              WHERE q.pool <> p.pool AND NOT q.dropped AND q.tick_us = p.tick_us AND q.time_bits = p.time_bits
                                AND q.datacenter_bits + q.worker_bits = p.datacenter_bits + p.worker_bits
                                AND q.sequence_bits = p.sequence_bits AND q.sequence_first = p.sequence_first) AS collides_with) n;
COMMENT ON VIEW uid_fleet_pools IS
  'The layouts of a fleet: the number of nodes, and how many are live, cooling (or revoked), reserved and free (see '
  'uid_fleet). A registry without layouts has one row, whose pool is NULL. collides_with: pools whose ids may be '
  'equal to those of this one, because they have the same widths with another epoch or another split of the node; '
  'NULL: none. Until fence_until newcomers are refused, because the registry may have lost grants; NULL: there is no '
  'fence. refuses: why it refuses newcomers (fenced, rival, claimed, starting) or everyone (unclaimed, '
  'stale_registry, handing_over, no_standby); NULL: it does not. While it is starting, the registry waits for a '
  'member whose grant lasts, for up to one and a half times longest_grant and two clock bounds; if no other server '
  'can be the registry, uid_fleet_fence(cancel => true) ends that. Readable by pg_monitor.';
