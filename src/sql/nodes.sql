-- From an id back to its server and its table: worker_node has one row for each worker id that a generator drew. A
-- background process writes the rows; people and programs that trace an id read them, with uid_origin().
--
-- The table belongs to the owner of the database (end.sql), who lets services use it.

-- A typed table, so that PostgreSQL refuses another column: a dump has the columns of the table, CREATE EXTENSION makes
-- those of the type, and rows with other ones cannot be restored.
CREATE TYPE uid_internal.worker_node_row AS (
  id                bigint,
  host_name         varchar(64),
  port              varchar(64),
  type              integer,
  launch_date       date,
  modified          timestamptz,
  created           timestamptz,
  generator         text,
  sequence          oid,
  worker_id         integer,
  datacenter_id     integer,
  system_identifier bigint,
  timeline          integer,
  database          oid,
  layout            text,
  place             bigint
);
COMMENT ON TYPE uid_internal.worker_node_row IS 'The columns of worker_node.';

-- An application may insert rows with the first seven columns only, and may leave out id. The columns that describe
-- generators are then NULL.
CREATE TABLE worker_node OF uid_internal.worker_node_row (
  host_name         NOT NULL,
  port              NOT NULL,
  type              NOT NULL,
  launch_date       NOT NULL,
  modified          NOT NULL,
  created           NOT NULL,
  system_identifier NOT NULL DEFAULT (pg_catalog.pg_control_system()).system_identifier,
  PRIMARY KEY (system_identifier, id)
);
-- Not OWNED BY the column: TRUNCATE ... RESTART IDENTITY would set it back, so worker ids would come again.
CREATE SEQUENCE worker_node_id_seq;
-- The rows of a generator. C code names both.
CREATE INDEX worker_node_sequence_idx ON worker_node (sequence);
CREATE INDEX worker_node_generator_idx ON worker_node (generator);
COMMENT ON TABLE worker_node IS
  'The worker ids that generators drew, a row for each. A background process writes it after the transaction. Data '
  'of your own belong in a table that references (system_identifier, id).';
COMMENT ON COLUMN worker_node.id IS 'number drawn from worker_node_id_seq';
COMMENT ON COLUMN worker_node.host_name IS 'host name of the server';
COMMENT ON COLUMN worker_node.port IS 'port of the server';
COMMENT ON COLUMN worker_node.type IS '1: in a container; 2: on a machine';
COMMENT ON COLUMN worker_node.launch_date IS 'day on which the server started';
COMMENT ON COLUMN worker_node.modified IS
  'last time at which the server recorded that the worker id is in use, accurate to an hour';
COMMENT ON COLUMN worker_node.created IS 'time at which the worker id was drawn';
COMMENT ON COLUMN worker_node.generator IS
  'name of the generator when the row was last modified; NULL in a row of an application';
COMMENT ON COLUMN worker_node.sequence IS 'oid of the generator in its database, which a rename keeps';
COMMENT ON COLUMN worker_node.worker_id IS 'worker id in the generator''s ids';
COMMENT ON COLUMN worker_node.datacenter_id IS 'datacenter id in the generator''s ids';
COMMENT ON COLUMN worker_node.system_identifier IS
  'system identifier of the server that drew the id, as in pg_control_system()';
COMMENT ON COLUMN worker_node.timeline IS 'timeline of the server at that time';
COMMENT ON COLUMN worker_node.database IS 'oid of the database';
COMMENT ON COLUMN worker_node.layout IS
  'layout of the ids: widths, length of a tick and epoch in microseconds, field order, backup worker';
COMMENT ON COLUMN worker_node.place IS
  'hash of the host name, the data directory and its file PG_VERSION, which differs in a copy of the server';
SELECT pg_catalog.pg_extension_config_dump('worker_node', '');
SELECT pg_catalog.pg_extension_config_dump('worker_node_id_seq', '');
COMMENT ON SEQUENCE worker_node_id_seq IS
  'Counter for worker ids. uidgen draws from it in any transaction, even in a read-only one.';

-- The id is no default, which would need a privilege on the sequence: a role with that could use up the worker ids
-- without writing a row.
CREATE FUNCTION uid_internal.uid_fill_node_id() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
  NEW.id := nextval(format('%I.worker_node_id_seq', TG_TABLE_SCHEMA)::regclass);
  RETURN NEW;
END
$$;
COMMENT ON FUNCTION uid_internal.uid_fill_node_id() IS
  'Trigger function of worker_node. It gives a row without an id the next number.';
CREATE TRIGGER uid_fill_node_id BEFORE INSERT ON worker_node
  FOR EACH ROW WHEN (NEW.id IS NULL) EXECUTE FUNCTION uid_internal.uid_fill_node_id();
ALTER TABLE worker_node ENABLE ALWAYS TRIGGER uid_fill_node_id;
CREATE TRIGGER uid_keep_local BEFORE INSERT OR UPDATE OR DELETE ON worker_node
  FOR EACH ROW EXECUTE FUNCTION uid_internal.uid_keep_local();
ALTER TABLE worker_node ENABLE ALWAYS TRIGGER uid_keep_local;

-- Runs with the rights of the table's owner, who may not be able to name the extension's schema. So the names of the
-- statement are bound here.
CREATE FUNCTION uid_internal.uid_write_node(id bigint, host_name text, port text, type integer, launch_date date,
    modified timestamptz, created timestamptz, generator text, sequence oid, worker_id integer, datacenter_id integer,
    system_identifier bigint, timeline integer, database oid, layout text, place bigint) RETURNS SETOF bigint
LANGUAGE sql VOLATILE PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
  INSERT INTO worker_node AS w (id, host_name, port, type, launch_date, modified, created, generator, sequence,
                                worker_id, datacenter_id, system_identifier, timeline, database, layout, place)
  VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)
      ON CONFLICT (system_identifier, id) DO UPDATE SET generator = EXCLUDED.generator, modified = EXCLUDED.modified
   WHERE w.created = EXCLUDED.created
  RETURNING w.id;
END;
COMMENT ON FUNCTION uid_internal.uid_write_node IS
  'Inserts a row into worker_node, or updates its generator and modified. Returns nothing if another row has its id.';

CREATE VIEW uid_generator_columns AS
SELECT g.generator, c.table_name, c.column_name, c.column_default
  FROM uid_generator g
  JOIN pg_catalog.pg_depend p
    ON p.refclassid = 'pg_catalog.pg_class'::regclass::oid AND p.refobjid = g.generator::oid OR g.is_default
   AND p.refclassid = 'pg_catalog.pg_proc'::regclass::oid
   AND p.refobjid IN ('uid_next()'::regprocedure::oid, 'uid_next_uuid()'::regprocedure::oid,
                      'uid_next_array(bigint)'::regprocedure::oid)
 CROSS JOIN LATERAL (
       SELECT d.adrelid::regclass, a.attname, pg_catalog.pg_get_expr(d.adbin, d.adrelid)
         FROM pg_catalog.pg_attrdef d JOIN pg_catalog.pg_attribute a ON a.attrelid = d.adrelid AND a.attnum = d.adnum
        WHERE p.classid = 'pg_catalog.pg_attrdef'::regclass::oid AND d.oid = p.objid
        UNION ALL -- a domain has the default for its columns without one
       SELECT a.attrelid::regclass, a.attname, pg_catalog.pg_get_expr(t.typdefaultbin, 0::oid)
         FROM pg_catalog.pg_type t
         JOIN pg_catalog.pg_attribute a ON a.atttypid = t.oid AND NOT a.atthasdef AND NOT a.attisdropped
          AND a.attidentity = ''
         JOIN pg_catalog.pg_class r ON r.oid = a.attrelid AND r.relkind IN ('r', 'p', 'f')
        WHERE p.classid = 'pg_catalog.pg_type'::regclass::oid AND t.oid = p.objid AND t.typdefaultbin IS NOT NULL
       ) c(table_name, column_name, column_default);
COMMENT ON VIEW uid_generator_columns IS
  'The columns whose default, or that of their domain, draws from each generator.';

CREATE FUNCTION uid_internal.uid_layout(generator regclass) RETURNS text
LANGUAGE c STABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'uid_layout';
COMMENT ON FUNCTION uid_internal.uid_layout(regclass) IS
  'Returns the layout of a generator''s ids in the form of worker_node.layout.';

CREATE FUNCTION uid_origin(id bigint, generator regclass DEFAULT NULL,
    OUT host_name text, OUT port text, OUT system_identifier bigint, OUT timeline integer, OUT database text,
    OUT generator_name text, OUT node_id bigint, OUT created timestamptz, OUT modified timestamptz, OUT columns text[])
LANGUAGE sql STABLE PARALLEL SAFE
SET search_path = pg_catalog, pg_temp -- for the names of tables
SET quote_all_identifiers = off       -- for those of generators, which rows have without needless quotes
BEGIN ATOMIC
  -- A row is in use until the generator's next row is created. Of the rows with the node, the one in use at the time
  -- nearest to the id's counts. An id is created before its row only by the age that it may have in cached mode, by the
  -- time that its draw took (a second is plenty), or by the backup worker.
  SELECT w.host_name, w.port, w.system_identifier, w.timeline,
         coalesce((SELECT d.datname::text FROM pg_catalog.pg_database d, pg_catalog.pg_control_system() s
                    WHERE d.oid = w.database AND s.system_identifier = w.system_identifier), w.database::text),
         w.generator, w.id, w.created, w.modified,
         CASE WHEN w.host_name IS NOT NULL
              THEN (SELECT pg_catalog.array_agg(pg_catalog.format('%s.%I', c.table_name, c.column_name)
                                                ORDER BY c.table_name::text COLLATE "C", c.column_name)
                      FROM uid_generator_columns c WHERE c.generator::oid = k::oid) END
    FROM (SELECT CASE WHEN generator IS NULL -- uid_decode() fails if there is no default
                      THEN (SELECT g.generator
                              FROM uid_decode(0::bigint, NULL::regclass) d LEFT JOIN uid_generator g ON g.is_default)
                      ELSE generator END) chosen(k)
    LEFT JOIN LATERAL uid_decode(id, k) p ON true
    LEFT JOIN LATERAL (
           SELECT n.host_name::text, n.port::text, n.system_identifier, n.timeline, n.database, n.generator, n.id,
                  n.created, n.modified
             FROM uid_generator g
             JOIN pg_catalog.pg_class c ON c.oid = g.generator::oid
             JOIN pg_catalog.pg_namespace s ON s.oid = c.relnamespace
             JOIN pg_catalog.pg_database d ON d.datname = pg_catalog.current_database()
            CROSS JOIN pg_catalog.pg_control_system() m
            CROSS JOIN (SELECT r.*, pg_catalog.lead(r.created) OVER (
                                 PARTITION BY r.system_identifier, r.database, r.sequence
                                 ORDER BY r.created, r.id) AS ended
                          FROM worker_node r WHERE r.layout = uid_internal.uid_layout(k)) n
            WHERE g.generator::oid = k::oid AND n.datacenter_id = p.datacenter_id AND n.worker_id = p.worker_id
              AND (p.backup OR n.created <= p.generated_at + pg_catalog.make_interval(secs =>
                     1::float8 + g.tick_us::float8 / 1000000::float8
                     + CASE WHEN g.mode = 'cached'::text THEN g.max_staleness_ms::float8 / 1000::float8
                            ELSE 0::float8 END))
            -- The name tells the generator in rows that a restore has brought, or that are of a dropped one.
            ORDER BY CASE WHEN n.database = d.oid AND n.system_identifier = m.system_identifier
                           AND EXISTS (SELECT FROM pg_catalog.pg_class e WHERE e.oid = n.sequence)
                          THEN n.sequence = c.oid
                          ELSE n.generator = pg_catalog.format('%I.%I', s.nspname, c.relname) END DESC,
                     greatest(n.created - p.generated_at, p.generated_at - n.ended, interval '0'), n.created DESC
            LIMIT 1) w ON true;
END;
COMMENT ON FUNCTION uid_origin(bigint, regclass) IS
  'Returns the row of worker_node for an id of a generator (NULL: the default one), and the columns that draw from '
  'the generator; NULLs if no row fits. Exact if the clock was right, no row is missing and no other database had '
  'the same node. Needs SELECT on worker_node.';
