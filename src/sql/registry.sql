-- Fleets, the registry's side: its tables, what members call on it, and what it shows. A database is the registry of a
-- fleet from its first uid_fleet_admit() on. registry_admin.sql has what administrators call.

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
