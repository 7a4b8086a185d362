-- uidgen 1.0.0 out of 0.1.0. The result is the same as that of uidgen--1.0.0.sql. test/tap/040_update.t compares them.
--
-- How to keep the two in step: change uidgen--1.0.0.sql and run make update-script, which copies what it can
-- (src/sql/in-step). What an object that exists already needs beside CREATE OR REPLACE is written here, above the copy:
-- columns, constraints, functions with other arguments or another row type.
\echo Use "ALTER EXTENSION uidgen UPDATE" to load this file. \quit

-- Functions with other parameters, or another row type. The old ones are dropped at the end, when the new ones have taken
-- their privileges, and uidgen's views do not call uid_slots_of_0_1_0() any more, so that users' views on them can stay.
-- The counts of batches became bigint.
ALTER FUNCTION uid_next_batch(integer) RENAME TO uid_next_batch_of_0_1_0;
ALTER FUNCTION uid_next_batch(regclass, integer) RENAME TO uid_next_batch_of_0_1_0;
ALTER FUNCTION uid_next_array(integer) RENAME TO uid_next_array_of_0_1_0;
ALTER FUNCTION uid_next_array(regclass, integer) RENAME TO uid_next_array_of_0_1_0;
ALTER FUNCTION segment_next_batch(text, integer) RENAME TO segment_next_batch_of_0_1_0;
ALTER FUNCTION segment_next_batch(regclass, integer) RENAME TO segment_next_batch_of_0_1_0;
ALTER FUNCTION segment_next_array(text, integer) RENAME TO segment_next_array_of_0_1_0;
ALTER FUNCTION segment_next_array(regclass, integer) RENAME TO segment_next_array_of_0_1_0;
-- More parameters, with defaults.
ALTER FUNCTION segment_create(text, bigint, bigint, bigint, text) RENAME TO segment_create_of_0_1_0;
-- More columns.
ALTER FUNCTION uid_slots() RENAME TO uid_slots_of_0_1_0;

-- A trigger takes the place of the default.
ALTER TABLE worker_node ALTER COLUMN id DROP DEFAULT;

ALTER TABLE uid_generator
  ADD COLUMN restart_term integer,
  ADD COLUMN restarted_at timestamptz,
  ADD COLUMN restart_until timestamptz,
  ADD COLUMN restart_node bigint,
  ADD COLUMN former_nodes bigint[];
CREATE OR REPLACE VIEW uid_generator_config AS
SELECT * FROM uid_generator
UNION ALL
SELECT b.* FROM uid_generator_builtin(NOT EXISTS (SELECT FROM uid_generator g WHERE g.is_default)) b
 WHERE b.generator IS NOT NULL AND NOT EXISTS (SELECT FROM uid_generator g WHERE g.builtin);

ALTER TABLE uid_segment
  ADD COLUMN registry_name text,
  ADD COLUMN fleet bigint CHECK (fleet > 0),
  ADD COLUMN increment bigint CHECK (increment <> 0),
  ADD CHECK ((registry_name IS NULL) = (fleet IS NULL) AND (registry_name IS NULL) = (increment IS NULL));

-- Copied from the install script by make update-script.

COMMENT ON COLUMN uid_generator.restart_term IS
  'number of the term that the last uid_generator_restart() began, 1 to 65535; NULL: there was none. Only that function '
  'sets the columns of a restart';

COMMENT ON COLUMN uid_generator.restarted_at IS 'the clock at the last restart, and the time of the first id after it';

COMMENT ON COLUMN uid_generator.restart_until IS
  'end of the ids that were issued before the last restart; from there on ids sort after all earlier ones again';

COMMENT ON COLUMN uid_generator.restart_node IS
  'node of new ids, datacenter id and worker id together, until the generator is used after a server start or an '
  'alteration later than restart_until; NULL: with when_back new_worker the term decides';

COMMENT ON COLUMN uid_generator.former_nodes IS
  'nodes that ids between restarted_at and restart_until may have from before; a NULL among them: any other node, too';

CREATE OR REPLACE FUNCTION uid_check_registration() RETURNS trigger
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  sequence regclass;
  is_builtin boolean := false;
  is_default boolean := false;
  owns_database boolean := pg_has_role('pg_database_owner', 'USAGE');
BEGIN
  -- Arguments of the trigger: the column that names the sequence, and the schema that the sequence must be in. The
  -- fields are read by name: an invalidation may free the row type while to_jsonb() reads the names.
  IF TG_ARGV[0] = 'generator' THEN
    sequence := NEW.generator;
    is_builtin := coalesce(NEW.builtin, false);
    is_default := coalesce(NEW.is_default, false);
  ELSE
    sequence := NEW.sequence;
  END IF;
  IF NOT pg_has_role((SELECT relowner FROM pg_class WHERE oid = TG_RELID), 'USAGE')
     AND NOT (is_builtin AND owns_database) -- uid_generator_changing() checks that the sequence matches
     AND (is_builtin OR is_default AND NOT owns_database
          OR NOT EXISTS (SELECT FROM pg_class
                          WHERE oid = sequence AND relkind = 'S'
                            AND (relnamespace = TG_ARGV[1]::regnamespace OR owns_database)
                            AND pg_has_role(relowner, 'USAGE'))) THEN
    RAISE EXCEPTION 'permission denied to register sequence % in table %', sequence, TG_RELID::regclass
      USING ERRCODE = 'insufficient_privilege',
            HINT = 'Use uid_generator_create(), segment_create() or uid_key_create(), which register the sequence too.';
  END IF;
  RETURN NEW;
END
$$;

COMMENT ON FUNCTION uid_check_registration() IS
  'Trigger function of uid_generator, uid_segment and uid_key. It lets only the owner of a sequence register it. The '
  'owner of the database may also restore the rows of a dump.';

COMMENT ON FUNCTION uid_keep_local() IS
  'Trigger function of uid_generator, uid_segment, uid_key, and the tables of a fleet''s registry (with an argument). '
  'Their rows describe sequences or grants of this server, so it skips rows that logical replication brings from '
  'another server, and refuses TRUNCATE.';

CREATE OR REPLACE VIEW uid_preset AS
SELECT preset, epoch, tick_us, time_bits, datacenter_bits, worker_bits, sequence_bits, sequence_first, backup_worker,
       lease_ms, max_ahead_ms, when_full, when_back, tolerance_ms, spread, mode, worker_policy
  FROM uid_generator_builtin(true)
UNION ALL
VALUES
  ('twitter', timestamptz '2010-11-04 01:42:54.657+00',
   1000::bigint, 41::smallint, 5::smallint, 5::smallint, 12::smallint,
   false, false, 1000, 2000, 'wait', 'error', NULL::integer, false, 'snowflake', 'disposable'),
  ('hutool', timestamptz '2010-11-04 01:42:54.657+00', 1000, 41, 5, 5, 12,
   false, false, 1000, 2000, 'wait', 'hold', 1999, false, 'snowflake', 'disposable'),
  ('leaf', timestamptz '2010-11-04 01:42:54.657+00', 1000, 41, 0, 10, 12,
   false, false, 1000, 2000, 'wait', 'wait', 5, false, 'snowflake', 'sticky'),
  ('baidu', NULL, 1000000, 28, 0, 22, 13,
   false, false, 1000, 2000, 'wait', 'error', NULL, false, 'snowflake', 'disposable'),
  ('js53', timestamptz '2026-01-01 00:00:00+00', 1000000, 32, 0, 5, 16,
   false, true, 1000, 2000, 'backup', 'backup', 1000, false, 'snowflake', 'disposable'),
  ('sonyflake', timestamptz '2014-09-01 00:00:00+00', 10000, 39, 0, 16, 8,
   true, false, 1000, 2000, 'wait', 'hold', NULL, false, 'snowflake', 'disposable'),
  ('instagram', timestamptz '2011-08-24 21:07:01.721+00', 1000, 40, 13, 0, 10,
   false, false, 1000, 2000, 'wait', 'hold', NULL, false, 'snowflake', 'disposable'),
  ('baidu_cached', NULL, 1000000, 28, 0, 22, 13,
   false, false, 16000, 32000, 'borrow', 'hold', NULL, false, 'cached', 'disposable');

CREATE FUNCTION uid_check_schema(schema text) RETURNS void
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
  IF NOT has_schema_privilege(schema, 'CREATE') THEN
    RAISE EXCEPTION 'permission denied for schema %', schema
      USING ERRCODE = 'insufficient_privilege',
            HINT = format('Run GRANT CREATE ON SCHEMA %I TO %I as a superuser.', schema, current_user);
  END IF;
END
$$;

COMMENT ON FUNCTION uid_check_schema(text) IS
  'Fails if the caller may not create in one of uidgen''s schemas.';

CREATE OR REPLACE FUNCTION uid_make_generator(name text, preset text, above bigint, given jsonb) RETURNS regclass
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  home text := (SELECT quote_ident(n.nspname) FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace
                 WHERE e.extname = 'uidgen');
  fields jsonb;
  presets text;
  generator regclass;
BEGIN
  IF name IS NULL OR name = '' OR octet_length(name) > 63 THEN
    RAISE EXCEPTION 'invalid generator name: "%"', name
      USING ERRCODE = 'invalid_name', HINT = 'Use a name of 1 to 63 bytes.';
  END IF;
  -- A row of a subquery: its type cannot change while to_jsonb() reads the names.
  EXECUTE format('SELECT to_jsonb(p) FROM (SELECT * FROM %s.uid_preset) p WHERE p.preset = $1', home)
    INTO fields USING preset;
  IF fields IS NULL THEN
    EXECUTE format('SELECT string_agg(quote_literal(p.preset), '', '') FROM %s.uid_preset p', home) INTO presets;
    RAISE EXCEPTION 'preset "%" does not exist', preset
      USING ERRCODE = 'invalid_parameter_value', HINT = format('Use one of %s.', presets);
  END IF;
  IF to_regclass(format('uid_generators.%I', name)) IS NOT NULL THEN
    RAISE EXCEPTION 'generator "%" already exists', name
      USING ERRCODE = 'duplicate_object', HINT = 'Use another name, or drop the generator with uid_generator_drop().';
  END IF;

  EXECUTE format('SELECT %s.uid_check_schema(%L)', home, 'uid_generators');
  EXECUTE format('CREATE SEQUENCE uid_generators.%I INCREMENT 9223372036854775807 MINVALUE 1 START 1 NO CYCLE', name);
  generator := format('uid_generators.%I', name)::regclass;
  PERFORM setval(generator, 1, true);
  fields := fields || jsonb_build_object('generator', generator, 'builtin', false) || given;
  IF fields ->> 'epoch' IS NULL THEN
    fields := jsonb_set(fields, '{epoch}', to_jsonb(date_trunc('day', now(), 'UTC')));
  END IF;
  EXECUTE format('INSERT INTO %1$s.uid_generator SELECT r.* FROM %1$s.uid_generator_builtin(false) b, '
                 'jsonb_populate_record(b, $1) r', home) USING fields;
  IF above IS NOT NULL THEN
    EXECUTE format('SELECT %s.uid_generator_raise($1, $2)', home) USING generator, above;
  END IF;
  RETURN generator;
END
$$;

COMMENT ON FUNCTION uid_make_generator(text, text, bigint, jsonb) IS
  'Creates a generator from a preset and the given fields. uid_generator_create() calls it.';

CREATE OR REPLACE FUNCTION uid_generator_create(name text, preset text DEFAULT 'snowflake', above bigint DEFAULT NULL,
    epoch timestamptz DEFAULT NULL, tick_us bigint DEFAULT NULL, time_bits integer DEFAULT NULL,
    datacenter_bits integer DEFAULT NULL, worker_bits integer DEFAULT NULL, sequence_bits integer DEFAULT NULL,
    sequence_first boolean DEFAULT NULL, backup_worker boolean DEFAULT NULL, lease_ms integer DEFAULT NULL,
    max_ahead_ms integer DEFAULT NULL, when_full text DEFAULT NULL, when_back text DEFAULT NULL,
    tolerance_ms integer DEFAULT NULL, spread boolean DEFAULT NULL, worker_policy text DEFAULT NULL,
    worker_number integer DEFAULT NULL, mode text DEFAULT NULL, boost_power integer DEFAULT NULL,
    padding_factor integer DEFAULT NULL, schedule_ms integer DEFAULT NULL, when_ring_full text DEFAULT NULL,
    when_ring_empty text DEFAULT NULL, chunk integer DEFAULT NULL, max_staleness_ms integer DEFAULT NULL,
    datacenter_id integer DEFAULT NULL) RETURNS regclass
LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'uid_generator_create';

COMMENT ON FUNCTION uid_generator_create IS
  'Creates a generator: a lease sequence uid_generators.<name>, owned by the caller, and its row in uid_generator. The '
  'fields come from a preset (SELECT * FROM uid_preset), and each argument that is not NULL replaces one. -1 sets a '
  'field that may be NULL to NULL: tolerance_ms -1 means no limit, and schedule_ms -1 means no scheduled refills. With '
  'above, all ids are above that id. The caller needs CREATE on the schema uid_generators. Draw with '
  'uid_next(''uid_generators.<name>''). Let other roles draw with GRANT USAGE ON SEQUENCE. Drop with '
  'uid_generator_drop().';

CREATE FUNCTION uid_generator_restart(generator regclass, worker_number integer DEFAULT NULL) RETURNS void
LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'uid_generator_restart';

COMMENT ON FUNCTION uid_generator_restart(regclass, integer) IS
  'Has a generator begin again at the clock after the clock was far ahead. Until the clock has passed the ids that were '
  'issued meanwhile, new ids do not sort after them, which a WARNING says with both times. They have another node, so '
  'they stay unique: one that no id above the clock can have, or the given worker id. A static worker id must be given, '
  'as must one if a datacenter id is the whole node. The caller must know that no id of the generator above the clock has '
  'it. With when_back new_worker the next term has the next worker id. The call waits for transactions that draw. It fails in a '
  'fleet, where another generator gets a node of its own. It fails if the generator is not more than max_ahead_ms ahead of the clock, if no '
  'node is left, or if the given one may be in use. Only the owner of the sequence may call it.';

COMMENT ON FUNCTION uid_next() IS
  'Returns the next id of the default generator: unique, positive, and above every earlier id, but for ids of a backup '
  'worker, of cached mode, and after uid_generator_restart(). Use it as DEFAULT uid_next().';

CREATE OR REPLACE FUNCTION uid_next_batch(count bigint) RETURNS SETOF bigint
LANGUAGE c VOLATILE STRICT PARALLEL SAFE ROWS 1000 AS 'MODULE_PATHNAME', 'uid_next_batch_default';

COMMENT ON FUNCTION uid_next_batch(bigint) IS
  'Returns count ids of the default generator in ascending order, one in a row. The call takes all ids before it '
  'returns the first one, so a call that fails leaves a gap. A count of 0 returns no row, and a negative count is an '
  'error.';

CREATE OR REPLACE FUNCTION uid_next_batch(generator regclass, count bigint) RETURNS SETOF bigint
LANGUAGE c VOLATILE STRICT PARALLEL SAFE ROWS 1000 AS 'MODULE_PATHNAME', 'uid_next_batch_of';

COMMENT ON FUNCTION uid_next_batch(regclass, bigint) IS
  'Returns count ids of a generator in ascending order, one in a row. The call takes all ids before it returns the '
  'first one.';

CREATE OR REPLACE FUNCTION uid_next_array(count bigint) RETURNS bigint[]
LANGUAGE c VOLATILE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'uid_next_array_default';

COMMENT ON FUNCTION uid_next_array(bigint) IS
  'Returns count ids of the default generator in ascending order, as an array.';

CREATE OR REPLACE FUNCTION uid_next_array(generator regclass, count bigint) RETURNS bigint[]
LANGUAGE c VOLATILE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'uid_next_array_of';

COMMENT ON FUNCTION uid_next_array(regclass, bigint) IS
  'Returns count ids of a generator in ascending order, as an array.';

CREATE FUNCTION uid_number_node() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
  NEW.id := nextval(pg_get_serial_sequence(TG_RELID::regclass::text, 'id'));
  RETURN NEW;
END
$$;

COMMENT ON FUNCTION uid_number_node() IS
  'Trigger function of worker_node. It gives a row that is inserted without an id the next number of '
  'worker_node_id_seq.';

REVOKE EXECUTE ON FUNCTION uid_number_node() FROM PUBLIC;

CREATE TRIGGER uid_number_node BEFORE INSERT ON worker_node
  FOR EACH ROW WHEN (NEW.id IS NULL) EXECUTE FUNCTION uid_number_node();

CREATE FUNCTION uid_keep_node() RETURNS trigger
LANGUAGE c AS 'MODULE_PATHNAME', 'uid_keep_node';

COMMENT ON FUNCTION uid_keep_node() IS
  'Trigger function of worker_node. It leaves out what logical replication brings if it would replace another row, or '
  'delete a row that a generator of this database has drawn.';

REVOKE EXECUTE ON FUNCTION uid_keep_node() FROM PUBLIC;

CREATE TRIGGER uid_keep_node BEFORE INSERT OR UPDATE OR DELETE ON worker_node
  FOR EACH ROW EXECUTE FUNCTION uid_keep_node();

ALTER TABLE worker_node ENABLE ALWAYS TRIGGER uid_keep_node;

CREATE OR REPLACE FUNCTION uid_check_nodes(nodes regclass DEFAULT 'worker_node',
    OUT layout text, OUT datacenter_id integer, OUT worker_id integer,
    OUT a_system_identifier bigint, OUT a_database oid, OUT a_host_name text, OUT a_port text, OUT a_generator text,
    OUT b_system_identifier bigint, OUT b_database oid, OUT b_host_name text, OUT b_port text, OUT b_generator text,
    OUT shared_from timestamptz, OUT shared_until timestamptz)
RETURNS SETOF record
LANGUAGE plpgsql STABLE STRICT
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
  IF NOT EXISTS (SELECT FROM pg_class c WHERE c.oid = nodes) THEN
    RAISE EXCEPTION 'relation with OID % does not exist', nodes::oid
      USING ERRCODE = 'undefined_table', HINT = 'Pass worker_node, or a table or view with its columns.';
  END IF;
  RETURN QUERY EXECUTE format(
    'SELECT a.layout::text, a.datacenter_id::integer, a.worker_id::integer,
            a.system_identifier::bigint, a.database::oid, a.host_name::text, a.port::text, a.generator::text,
            b.system_identifier::bigint, b.database::oid, b.host_name::text, b.port::text, b.generator::text,
            greatest(a.created, b.created)::timestamptz, least(a.modified, b.modified)::timestamptz
       FROM %1$s a
       JOIN %1$s b ON (a.layout, a.datacenter_id, a.worker_id) = (b.layout, b.datacenter_id, b.worker_id)
        AND (a.system_identifier, a.database, a.timeline, a.host_name, a.port)
          < (b.system_identifier, b.database, b.timeline, b.host_name, b.port)
        AND a.created <= b.modified AND b.created <= a.modified
      ORDER BY greatest(a.created, b.created)', nodes);
END
$$;

COMMENT ON FUNCTION uid_check_nodes(regclass) IS
  'Returns pairs of generators of different servers or databases that had the same layout and the same node, the '
  'datacenter and worker id together, at the same time. Ids of such a pair may be equal. The argument is a table or '
  'view with the rows of worker_node of all databases. The times are as exact as modified, to the hour.';

COMMENT ON TABLE uid_segment IS
  'One row for each named segment. segment_create() and segment_attach() insert the row, and a drop of the sequence '
  'deletes it.';

COMMENT ON COLUMN uid_segment.registry_name IS
  'name of the segment at the registry of the fleet that the values come from; NULL: they are of the sequence itself';

COMMENT ON COLUMN uid_segment.fleet IS 'identity of that fleet; NULL without a registry_name';

COMMENT ON COLUMN uid_segment.increment IS
  'increment of the segment at the registry; the sequence here has one that keeps nextval from moving it';

COMMENT ON FUNCTION uid_segment_changed() IS
  'Trigger function of uid_segment and uid_key. It makes every session look up segment names again, or keys.';

CREATE OR REPLACE FUNCTION segment_create(name text, start bigint DEFAULT 1, step bigint DEFAULT NULL,
    max_step bigint DEFAULT NULL, description text DEFAULT NULL, increment bigint DEFAULT NULL,
    min_value bigint DEFAULT NULL, max_value bigint DEFAULT NULL, cycle boolean DEFAULT NULL) RETURNS regclass
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  home text := (SELECT quote_ident(n.nspname) FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace
                 WHERE e.extname = 'uidgen');
  -- A name that is too long for an identifier gets a sequence named after its hash.
  relation text := CASE WHEN octet_length(name) <= 63 THEN name ELSE 'segment_' || md5(name) END;
  stride bigint := coalesce(increment, 1);
  lowest bigint := coalesce(min_value, CASE WHEN stride > 0 THEN least(start, 1) ELSE -9223372036854775808 END);
  highest bigint := coalesce(max_value, CASE WHEN stride > 0 THEN 9223372036854775807 ELSE greatest(start, -1) END);
  sequence regclass;
BEGIN
  EXECUTE format('SELECT %s.uid_check_schema(%L)', home, 'uid_segments');
  IF name IS NULL OR name = '' THEN
    RAISE EXCEPTION 'invalid segment name: "%"', name
      USING ERRCODE = 'invalid_name', HINT = 'Use a text that is not empty.';
  END IF;
  IF start IS NULL THEN
    RAISE EXCEPTION 'start of segment "%" must not be null', name
      USING ERRCODE = 'null_value_not_allowed', HINT = 'Pass the first value of the segment as start.';
  END IF;
  EXECUTE format('SELECT %s.uid_check_steps($1, $2, $3)', home) USING name, step, max_step;
  -- With the largest increment the sequence would pass for one that holds the leases of a generator.
  IF stride IN (0, 9223372036854775807) THEN
    RAISE EXCEPTION 'invalid increment % for segment "%"', stride, name
      USING ERRCODE = 'invalid_parameter_value',
            HINT = 'Use an increment from 1 to 9223372036854775806, or a negative one to count down.';
  END IF;
  IF lowest >= highest THEN
    RAISE EXCEPTION 'min_value % of segment "%" is not less than its max_value %', lowest, name, highest
      USING ERRCODE = 'invalid_parameter_value', HINT = 'Pass a min_value that is less than max_value.';
  END IF;
  IF start NOT BETWEEN lowest AND highest THEN
    RAISE EXCEPTION 'start % of segment "%" is outside its bounds', start, name
      USING ERRCODE = 'invalid_parameter_value',
            HINT = format('Pass a start from %s to %s, or another min_value or max_value.', lowest, highest);
  END IF;
  EXECUTE format('CREATE SEQUENCE uid_segments.%I START %s INCREMENT %s MINVALUE %s MAXVALUE %s %s', relation, start,
                 stride, lowest, highest, CASE WHEN cycle THEN 'CYCLE' ELSE 'NO CYCLE' END);
  sequence := format('uid_segments.%I', relation)::regclass;
  EXECUTE format('INSERT INTO %s.uid_segment VALUES ($1, $2, $3, $4, $5)', home)
    USING name, sequence, step, max_step, description;
  RETURN sequence;
END
$$;

COMMENT ON FUNCTION segment_create IS
  'Creates a named segment whose first value is start. It reserves step values at a time (NULL: uidgen.segment_step), '
  'and up to max_step under load (NULL: uidgen.segment_max_step). increment, min_value, max_value and cycle are those '
  'of its sequence. NULL stands for an increment of 1, for no cycle, and for the widest bounds in the direction of the '
  'increment; a segment that counts up then has no value below 1 and start. The caller owns its sequence in the schema '
  'uid_segments, and needs CREATE on that schema. Let other roles draw with GRANT USAGE ON SEQUENCE.';

CREATE FUNCTION uid_look_up_segment(sequence regclass, name text, registry_name text,
    OUT fleet bigint, OUT increment bigint) RETURNS record
LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'uid_look_up_segment';

COMMENT ON FUNCTION uid_look_up_segment(regclass, text, text) IS
  'Asks the registry of the fleet what its segment registry_name is like. It waits for at most uidgen.max_wait. '
  'segment_attach() calls it. Only the owner of the sequence may call it.';

CREATE FUNCTION uid_change_attachment(sequence regclass, fleet bigint, increment bigint) RETURNS void
LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'uid_change_segment';

COMMENT ON FUNCTION uid_change_attachment IS
  'Sets fleet and increment in the row of an attached segment. segment_attach() calls it. Only the owner of the '
  'sequence may call it.';

CREATE FUNCTION segment_attach(name text, registry_name text DEFAULT NULL, step bigint DEFAULT NULL,
    max_step bigint DEFAULT NULL, description text DEFAULT NULL) RETURNS regclass
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  home text := (SELECT quote_ident(n.nspname) FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace
                 WHERE e.extname = 'uidgen');
  relation text := CASE WHEN octet_length(name) <= 63 THEN name ELSE 'segment_' || md5(name) END;
  there text := coalesce(registry_name, name);
  segment record;
  found record;
  last bigint;
BEGIN
  IF name IS NULL OR name = '' OR there = '' THEN
    RAISE EXCEPTION 'invalid segment name: "%"', CASE WHEN name <> '' THEN there ELSE name END
      USING ERRCODE = 'invalid_name', HINT = 'Use a text that is not empty.';
  END IF;
  EXECUTE format('SELECT s.* FROM %s.uid_segment s WHERE s.name = $1 AND s.registry_name IS NOT NULL', home)
    INTO segment USING name;
  EXECUTE format('SELECT %s.uid_check_steps($1, $2, $3)', home)
    USING name, coalesce(step, segment.step), coalesce(max_step, segment.max_step);
  IF segment.name IS NULL THEN
    EXECUTE format('CREATE SEQUENCE uid_segments.%I', relation);
    segment.sequence := format('uid_segments.%I', relation)::regclass;
  ELSIF there <> segment.registry_name THEN
    RAISE EXCEPTION 'segment "%" is attached to segment "%" of the registry', name, segment.registry_name
      USING ERRCODE = 'duplicate_object', HINT = 'Attach another segment, or drop this one with segment_drop() first.';
  END IF;

  EXECUTE format('SELECT * FROM %s.uid_look_up_segment($1, $2, $3)', home)
    INTO found USING segment.sequence, name, there;
  IF segment.name IS NULL THEN
    EXECUTE format(CASE WHEN found.increment > 0
      THEN 'ALTER SEQUENCE %s INCREMENT 9223372036854775806 MINVALUE -1 MAXVALUE 9223372036854775804 START -1 RESTART'
      ELSE 'ALTER SEQUENCE %s INCREMENT -9223372036854775806 MINVALUE -9223372036854775804 MAXVALUE 1 START 1 RESTART'
      END, segment.sequence);
    PERFORM setval(segment.sequence, CASE WHEN found.increment > 0 THEN -1 ELSE 1 END, true);
    EXECUTE format('INSERT INTO %s.uid_segment VALUES ($1, $2, $3, $4, $5, $6, $7, $8)', home)
      USING name, segment.sequence, step, max_step, description, there, found.fleet, found.increment;
    RETURN segment.sequence;
  END IF;
  IF (found.increment > 0) <> (segment.increment > 0) THEN
    RAISE EXCEPTION 'segment "%" of the registry counts in the other direction now', there
      USING ERRCODE = 'object_not_in_prerequisite_state', HINT = 'Attach it under another name.';
  END IF;
  -- Values of one fleet may be those of another member in the other one. A new file of the sequence discards what is in
  -- hand; if this is rolled back, the former file discards what was drawn meanwhile.
  IF found.fleet <> segment.fleet THEN
    EXECUTE format('SELECT last_value FROM %s', segment.sequence) INTO last;
    EXECUTE format('ALTER SEQUENCE %s RESTART', segment.sequence);
    PERFORM setval(segment.sequence, last, true);
  END IF;
  EXECUTE format('SELECT %s.uid_change_attachment($1, $2, $3)', home)
    USING segment.sequence, found.fleet, found.increment;
  EXECUTE format('SELECT %s.uid_change_segment($1, $2, $3, $4)', home)
    USING segment.sequence, step, max_step, description;
  RETURN segment.sequence;
END
$$;

COMMENT ON FUNCTION segment_attach(text, text, bigint, bigint, text) IS
  'Creates a named segment whose values come from the segment registry_name (NULL: the same name) of the fleet''s '
  'registry, in blocks. All members that attach to that segment share its values, and none comes twice. The registry '
  'must be reachable. Let other roles draw with GRANT USAGE ON SEQUENCE. If the segment is attached already, it goes '
  'on with the segment as it is at the registry now: after a change of its increment there, or with the fleet that '
  'uidgen.registry names now. step and max_step are those of segment_create(): the length of a block.';

CREATE OR REPLACE FUNCTION segment_next_batch(name text, count bigint) RETURNS SETOF bigint
LANGUAGE c VOLATILE STRICT PARALLEL SAFE ROWS 1000 AS 'MODULE_PATHNAME', 'segment_next_batch_named';

COMMENT ON FUNCTION segment_next_batch(text, bigint) IS
  'Returns count values of a segment by its name, in order, one in a row. The call takes all values before it returns '
  'the first one. A count of 0 returns no row, and a negative count is an error.';

CREATE OR REPLACE FUNCTION segment_next_batch(sequence regclass, count bigint) RETURNS SETOF bigint
LANGUAGE c VOLATILE STRICT PARALLEL SAFE ROWS 1000 AS 'MODULE_PATHNAME', 'segment_next_batch_of';

COMMENT ON FUNCTION segment_next_batch(regclass, bigint) IS
  'Returns count values of a sequence, in order, one in a row. The call takes all values before it returns the first '
  'one.';

CREATE OR REPLACE FUNCTION segment_next_array(name text, count bigint) RETURNS bigint[]
LANGUAGE c VOLATILE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'segment_next_array_named';

COMMENT ON FUNCTION segment_next_array(text, bigint) IS
  'Returns count values of a segment by its name, in order, as an array.';

CREATE OR REPLACE FUNCTION segment_next_array(sequence regclass, count bigint) RETURNS bigint[]
LANGUAGE c VOLATILE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'segment_next_array_of';

COMMENT ON FUNCTION segment_next_array(regclass, bigint) IS
  'Returns count values of a sequence, in order, as an array.';

CREATE FUNCTION segment_reserve(name text, count bigint, OUT first bigint, OUT last bigint, OUT increment bigint)
RETURNS record
LANGUAGE c VOLATILE PARALLEL SAFE AS 'MODULE_PATHNAME', 'segment_reserve_named';

COMMENT ON FUNCTION segment_reserve(text, bigint) IS
  'Reserves a block of exactly count values of the segment with that name, for a caller that hands them out itself: '
  'first, first + increment, and so on to last. No other call ever returns them. They are durable before the call '
  'returns, and a rollback does not give them back. The block lies beyond everything reserved before it, also beyond '
  'the values that segment_next() returns next. It never wraps: if fewer values are left before the bound of the '
  'sequence, the call fails and reserves nothing, even with CYCLE. It does not change segment_last(). The caller needs '
  'USAGE on the sequence.';

CREATE FUNCTION segment_reserve(sequence regclass, count bigint, OUT first bigint, OUT last bigint,
    OUT increment bigint)
RETURNS record
LANGUAGE c VOLATILE PARALLEL SAFE AS 'MODULE_PATHNAME', 'segment_reserve_of';

COMMENT ON FUNCTION segment_reserve(regclass, bigint) IS
  'Reserves a block of exactly count values of a sequence, as segment_reserve(text, bigint) does.';

CREATE OR REPLACE FUNCTION segment_last() RETURNS bigint
LANGUAGE c VOLATILE STRICT PARALLEL RESTRICTED AS 'MODULE_PATHNAME', 'segment_last_any';

COMMENT ON FUNCTION segment_last() IS
  'Returns the last value that this session drew from any segment or sequence with segment_next(), as lastval does. It '
  'fails before the first value. The caller needs USAGE or SELECT on the sequence.';

COMMENT ON FUNCTION segment_last(text) IS
  'Returns the last value that this session drew from the segment with that name, as currval does. It fails before '
  'the first value. The caller needs USAGE or SELECT on the sequence.';

COMMENT ON FUNCTION segment_last(regclass) IS
  'Returns the last value that this session drew from a sequence with segment_next(), as currval does. It fails '
  'before the first value. The caller needs USAGE or SELECT on the sequence.';

CREATE SCHEMA uid_keys;

GRANT USAGE ON SCHEMA uid_keys TO PUBLIC;

GRANT CREATE ON SCHEMA uid_keys TO pg_database_owner;

COMMENT ON SCHEMA uid_keys IS
  'Sequences of uidgen''s keys, one for each key. USAGE on one lets a role conceal and reveal ids with the key.';

CREATE TABLE uid_key (
  secrets      text,
  sequence     regclass    PRIMARY KEY,
  width        integer     DEFAULT 63,
  version_bits integer     DEFAULT 0,
  versions     integer     DEFAULT 1,
  dumped       boolean     DEFAULT true,
  created      timestamptz DEFAULT now(),
  rotated      timestamptz
);

COMMENT ON TABLE uid_key IS
  'One row for each key, with its secrets. uid_key_create() inserts the row, and a drop of the sequence deletes it. '
  'Only the owner of the table, the owner of the database, members of pg_read_all_data and superusers may read it. '
  'uid_key_config shows the other columns to every role.';

COMMENT ON COLUMN uid_key.secrets IS
  'a warning of 105 characters, which messages may show, and a key of AES-256 for each version, 32 random bytes in '
  'hexadecimal digits; NULL in a new row: the trigger makes them';

COMMENT ON COLUMN uid_key.sequence IS 'sequence that stands for the key; USAGE on it lets a role use the key';

COMMENT ON COLUMN uid_key.width IS 'bits of a concealed id, 20 + version_bits to 63';

COMMENT ON COLUMN uid_key.version_bits IS
  'bits of a concealed id that show the version of the key, above the others, 0 to 10; an id has width - version_bits '
  'bits';

COMMENT ON COLUMN uid_key.versions IS
  'number of versions, from 1 to 2^version_bits, or to 1000 without version bits; the last one is the newest';

COMMENT ON COLUMN uid_key.dumped IS 'whether pg_dump takes the row along';

COMMENT ON COLUMN uid_key.created IS 'creation time of the key';

COMMENT ON COLUMN uid_key.rotated IS 'creation time of the newest version; NULL: there is only the first one';

CREATE FUNCTION uid_key_changing() RETURNS trigger
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  key text := (SELECT relname FROM pg_class WHERE oid = NEW.sequence);
  warning CONSTANT text := 'secret.keys.of.uidgen.with.the.rest.of.this.text.'
                           'anybody.can.reveal.the.ids.that.were.concealed.by.a.key.';
  former text := warning;
  most integer;
BEGIN
  IF TG_OP = 'UPDATE' THEN
    IF (NEW.sequence, NEW.width, NEW.version_bits, NEW.created)
       IS DISTINCT FROM (OLD.sequence, OLD.width, OLD.version_bits, OLD.created) THEN
      RAISE EXCEPTION 'cannot change sequence, width, version_bits or created of key "%"', key
        USING ERRCODE = 'feature_not_supported', HINT = 'Create another key with uid_key_create().';
    END IF;
    former := OLD.secrets;
    IF NEW.versions > OLD.versions THEN
      NEW.rotated := now();
    END IF;
  END IF;
  IF (NEW.version_bits BETWEEN 0 AND 10) IS NOT TRUE THEN
    RAISE EXCEPTION 'invalid version_bits % of key "%"', NEW.version_bits, key
      USING ERRCODE = 'invalid_parameter_value', HINT = 'Use a number from 0 to 10.';
  END IF;
  IF (NEW.width BETWEEN 20 + NEW.version_bits AND 63) IS NOT TRUE THEN
    RAISE EXCEPTION 'invalid width % of key "%"', NEW.width, key
      USING ERRCODE = 'invalid_parameter_value',
            DETAIL = 'FF1 needs a million values or more, so an id has at least 20 bits.',
            HINT = format('Use a width from %s to 63.', 20 + NEW.version_bits);
  END IF;
  most := CASE NEW.version_bits WHEN 0 THEN 1000 ELSE 1 << NEW.version_bits END;
  IF (NEW.versions BETWEEN 1 AND most) IS NOT TRUE THEN
    RAISE EXCEPTION 'key "%" cannot have % versions', key, NEW.versions
      USING ERRCODE = 'program_limit_exceeded', DETAIL = format('The limit is %s versions.', most),
            HINT = 'Create another key with uid_key_create().';
  END IF;
  IF NEW.sequence IS NULL OR NEW.dumped IS NULL OR NEW.created IS NULL THEN
    RAISE EXCEPTION 'sequence, dumped and created of key "%" must not be null', key
      USING ERRCODE = 'null_value_not_allowed', HINT = 'Leave the column out for its default.';
  END IF;
  -- A secret is made here and nowhere else, so it is in no statement, no parameter and no log. A random uuid is 122 bits
  -- of the server's strong random numbers.
  IF NEW.secrets IS NULL OR TG_OP = 'UPDATE' THEN
    NEW.secrets := coalesce(NEW.secrets, warning);
    WHILE length(NEW.secrets) < length(warning) + 64 * NEW.versions LOOP
      NEW.secrets := NEW.secrets || encode(sha256(
        uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid())), 'hex');
    END LOOP;
  END IF;
  IF NOT starts_with(NEW.secrets, former) OR length(NEW.secrets) <> length(warning) + 64 * NEW.versions
     OR substr(NEW.secrets, length(warning) + 1) !~ '^[0-9a-f]*$' THEN
    RAISE EXCEPTION 'invalid secrets of key "%"', key
      USING ERRCODE = 'invalid_parameter_value',
            DETAIL = 'After a warning, a key has 64 hexadecimal digits for each version. They do not change.',
            HINT = 'Leave the column out, and the server makes the secrets.';
  END IF;
  RETURN NEW;
END
$$;

COMMENT ON FUNCTION uid_key_changing() IS
  'Trigger function of uid_key. It makes the secrets, and rejects a row that is not valid or whose secrets would change.';

CREATE TRIGGER uid_check_registration BEFORE INSERT ON uid_key
  FOR EACH ROW EXECUTE FUNCTION uid_check_registration('sequence', 'uid_keys');

CREATE TRIGGER uid_key_changing BEFORE INSERT OR UPDATE ON uid_key
  FOR EACH ROW EXECUTE FUNCTION uid_key_changing();

CREATE TRIGGER uid_segment_changed AFTER INSERT OR UPDATE OR DELETE ON uid_key
  FOR EACH STATEMENT EXECUTE FUNCTION uid_segment_changed();

CREATE TRIGGER uid_keep_local BEFORE INSERT OR UPDATE OR DELETE ON uid_key
  FOR EACH ROW EXECUTE FUNCTION uid_keep_local();

CREATE TRIGGER uid_keep_local_truncate BEFORE TRUNCATE ON uid_key
  FOR EACH STATEMENT EXECUTE FUNCTION uid_keep_local();

ALTER TABLE uid_key ENABLE ALWAYS TRIGGER uid_keep_local;

ALTER TABLE uid_key ENABLE ALWAYS TRIGGER uid_keep_local_truncate;

GRANT INSERT ON uid_key TO PUBLIC;

GRANT SELECT ON uid_key TO pg_database_owner;

SELECT pg_catalog.pg_extension_config_dump('uid_key',
  'WHERE dumped AND sequence::pg_catalog.oid IN (SELECT oid FROM pg_catalog.pg_class WHERE relkind = ''S'')');

CREATE VIEW uid_key_config AS
SELECT c.relname::text AS name, k.sequence, k.width, k.version_bits, k.versions, k.dumped, k.created, k.rotated,
       (1::bigint << (k.width - k.version_bits - 1)) - 1 + (1::bigint << (k.width - k.version_bits - 1)) AS largest_id
  FROM uid_key k JOIN pg_catalog.pg_class c ON c.oid OPERATOR(pg_catalog.=) k.sequence::oid;

COMMENT ON VIEW uid_key_config IS
  'The keys, without their secrets. largest_id: the largest id that the key can conceal. The other columns are those of '
  'uid_key.';

GRANT SELECT ON uid_key_config TO PUBLIC;

CREATE FUNCTION uid_key_create(name text, width integer DEFAULT 63, version_bits integer DEFAULT 0,
    dumped boolean DEFAULT true) RETURNS regclass
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  home text := (SELECT quote_ident(n.nspname) FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace
                 WHERE e.extname = 'uidgen');
  sequence regclass;
BEGIN
  EXECUTE format('SELECT %s.uid_check_schema(%L)', home, 'uid_keys');
  IF name IS NULL OR name = '' OR octet_length(name) > 63 THEN
    RAISE EXCEPTION 'invalid key name: "%"', left(name, 63)
      USING ERRCODE = 'invalid_name', HINT = 'Use a text of 1 to 63 bytes.';
  END IF;
  EXECUTE format('CREATE SEQUENCE uid_keys.%I', name);
  sequence := format('uid_keys.%I', name)::regclass;
  EXECUTE format('INSERT INTO %s.uid_key (sequence, width, version_bits, dumped) VALUES ($1, $2, $3, $4)', home)
    USING sequence, width, version_bits, dumped;
  RETURN sequence;
END
$$;

COMMENT ON FUNCTION uid_key_create(text, integer, integer, boolean) IS
  'Creates a key for uid_conceal() and uid_reveal(), with a random secret that no function returns. Concealed ids have '
  'width bits: 20 + version_bits to 63, or 53 for JavaScript. The upper version_bits, 0 to 10, show the version of the '
  'key, so that uid_reveal() finds it after uid_key_rotate(); ids then have width - version_bits bits. dumped tells '
  'whether pg_dump takes the key along. The caller owns the key, and needs CREATE on the schema uid_keys. Let other '
  'roles use it with GRANT USAGE ON SEQUENCE.';

CREATE FUNCTION uid_change_key(sequence regclass, versions integer, dumped boolean) RETURNS void
LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'uid_change_key';

COMMENT ON FUNCTION uid_change_key(regclass, integer, boolean) IS
  'Sets those of versions and dumped that are not NULL in the row of a key. uid_key_rotate() and uid_key_alter() call '
  'it. Only the owner of the sequence may call it.';

CREATE FUNCTION uid_find_key(name text) RETURNS regclass
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  sequence regclass := (SELECT c.oid FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
                         WHERE n.nspname = 'uid_keys' AND c.relkind = 'S' AND c.relname = uid_find_key.name);
BEGIN
  IF sequence IS NULL THEN
    RAISE EXCEPTION 'key "%" does not exist', left(name, 63)
      USING ERRCODE = 'undefined_object', HINT = 'Run SELECT name FROM uid_key_config to list the keys.';
  END IF;
  RETURN sequence;
END
$$;

COMMENT ON FUNCTION uid_find_key(text) IS 'Returns the sequence of the key with that name. Fails if there is none.';

CREATE FUNCTION uid_key_rotate(name text) RETURNS integer
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  home text := (SELECT quote_ident(n.nspname) FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace
                 WHERE e.extname = 'uidgen');
  sequence regclass;
  newest integer;
BEGIN
  EXECUTE format('SELECT %s.uid_find_key($1)', home) INTO sequence USING name;
  EXECUTE format('SELECT k.versions + 1 FROM %s.uid_key_config k WHERE k.sequence = $1', home)
    INTO newest USING sequence;
  EXECUTE format('SELECT %s.uid_change_key($1, $2, NULL)', home) USING sequence, newest;
  RETURN newest;
END
$$;

COMMENT ON FUNCTION uid_key_rotate(text) IS
  'Makes a new version of a key and returns its number. uid_conceal() uses it from the commit on. uid_reveal() goes on '
  'with the former versions: of a key with version bits each concealed id shows its version; of another key pass the '
  'version to uid_reveal(). It fails if the version bits are used up. Only the owner of the key may call it.';

CREATE FUNCTION uid_key_alter(name text, dumped boolean) RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  home text := (SELECT quote_ident(n.nspname) FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace
                 WHERE e.extname = 'uidgen');
BEGIN
  EXECUTE format('SELECT %1$s.uid_change_key(%1$s.uid_find_key($1), NULL, $2)', home) USING name, dumped;
END
$$;

COMMENT ON FUNCTION uid_key_alter(text, boolean) IS
  'Sets whether pg_dump takes a key along. NULL changes nothing. Only the owner of the key may call it.';

CREATE FUNCTION uid_key_drop(name text) RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  home text := (SELECT quote_ident(n.nspname) FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace
                 WHERE e.extname = 'uidgen');
  sequence regclass;
BEGIN
  EXECUTE format('SELECT %s.uid_find_key($1)', home) INTO sequence USING name;
  EXECUTE format('DROP SEQUENCE %s', sequence);
END
$$;

COMMENT ON FUNCTION uid_key_drop(text) IS
  'Drops a key and its sequence. What was concealed with it can never be revealed again, unless a dump has the key. '
  'Only the owner of the key may call it.';

CREATE FUNCTION uid_conceal(id bigint, key_name text) RETURNS bigint
LANGUAGE c STABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'uid_conceal';

COMMENT ON FUNCTION uid_conceal(bigint, text) IS
  'Returns the concealed id for an id: FF1 (NIST SP 800-38G) of its bits, with the newest version of the key. Two ids '
  'never have the same one with the same version. The id is from 0 to largest_id of uid_key_config. The caller needs USAGE on the key''s '
  'sequence in uid_keys. Concealment hides order, time and number of ids, and is no access control.';

CREATE FUNCTION uid_conceal(id bigint, key_name text, version integer) RETURNS bigint
LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'uid_conceal_version';

COMMENT ON FUNCTION uid_conceal(bigint, text, integer) IS
  'The same with a given version of the key, from 1 on. It is immutable as long as the key exists, so it can be used in '
  'an index and in a generated column.';

CREATE FUNCTION uid_reveal(value bigint, key_name text) RETURNS bigint
LANGUAGE c STABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'uid_reveal';

COMMENT ON FUNCTION uid_reveal(bigint, text) IS
  'Returns the id that uid_conceal() made a concealed id from. A key with version bits finds the version in the value. '
  'A key without them has one permutation of all values, so each value from 0 to 2^width - 1 is some concealed id; if '
  'it has more than one version, the call fails and the version must be passed. A value that the key cannot have '
  'concealed fails with numeric_value_out_of_range.';

CREATE FUNCTION uid_reveal(value bigint, key_name text, version integer) RETURNS bigint
LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'uid_reveal_version';

COMMENT ON FUNCTION uid_reveal(bigint, text, integer) IS
  'The same for a value that was concealed with a given version of the key.';

COMMENT ON FUNCTION uid_forget_dropped() IS
  'Event trigger function. It deletes the rows of dropped sequences from uid_generator, uid_segment and uid_key.';

COMMENT ON EVENT TRIGGER uid_forget_dropped IS
  'Keeps uid_generator, uid_segment and uid_key free of rows whose sequence was dropped.';

COMMENT ON VIEW uid_registry_status IS
  'The registry of this server''s fleet, and the grants of the generators in all databases of the server. connected: '
  'the registrar is connected to the registry. registry: service, host, port, dbname and user of uidgen.registry, for '
  'members of pg_read_all_settings. away_since: since when the registry cannot be used; NULL: it can, or no generator '
  'needs it. last_error and last_error_at: the last error, even if it is over. fleet and term: those of the last answer. '
  'clock_offset_ms: the clock of this server minus that of the registry. Of each generator: database and generator name it; until '
  'granted_until it draws with its node, even if the registry is away; renewals counts grants since the server '
  'started; superseded: another server continues as this generator, or its node was taken over, so it draws '
  'nothing; error: why the registry granted nothing last time. '
  'If no generator has used the registry since the server started, there is one row without a generator.';

CREATE OR REPLACE FUNCTION uid_slots(
    OUT sequence regclass, OUT kind text, OUT protection text, OUT node bigint, OUT datacenter_id integer,
    OUT worker_id integer, OUT last_time timestamptz, OUT leased_until timestamptz, OUT range_first bigint, OUT range_length bigint, OUT range_left bigint,
    OUT records bigint, OUT flush_waits bigint, OUT standby_waits bigint, OUT clock_waits bigint,
    OUT next_ready boolean, OUT step bigint, OUT step_reason text,
    OUT refills_first bigint, OUT refills_ahead bigint, OUT refills_late bigint, OUT refills_disturbed bigint,
    OUT last_refill timestamptz, OUT rate double precision,
    OUT ring_size bigint, OUT ring_filled double precision, OUT padded_initial bigint, OUT padded_threshold bigint,
    OUT padded_schedule bigint, OUT padded_inline bigint, OUT rejected_puts bigint, OUT rejected_takes bigint,
    OUT discarded_stale bigint, OUT ahead_ms bigint, OUT granted_until timestamptz,
    OUT clock_steps_back bigint, OUT held_ids bigint, OUT backup_ids bigint, OUT clock_errors bigint,
    OUT last_clock_event timestamptz,
    OUT next_asked boolean, OUT registry_error text)
RETURNS SETOF record
LANGUAGE c VOLATILE STRICT PARALLEL RESTRICTED ROWS 100 AS 'MODULE_PATHNAME', 'uid_slots';

COMMENT ON FUNCTION uid_slots() IS
  'Returns the slots in shared memory of generators and segments of this database that were used since the server '
  'started. It returns no rows if uidgen is not preloaded. The values are NULL if the caller has neither USAGE nor '
  'SELECT on the sequence and is not a member of pg_read_all_stats.';

CREATE OR REPLACE VIEW uid_generator_status AS
SELECT g.generator, g.preset, s.protection, s.node, s.datacenter_id, s.worker_id, s.last_time, s.leased_until,
       s.records, s.flush_waits, s.standby_waits, s.clock_waits, s.ahead_ms,
       s.ring_size, s.ring_filled, s.padded_initial, s.padded_threshold, s.padded_schedule, s.padded_inline,
       s.rejected_puts, s.rejected_takes, s.discarded_stale, s.granted_until,
       s.clock_steps_back, s.held_ids, s.backup_ids, s.clock_errors, s.last_clock_event
  FROM uid_generator_config g LEFT JOIN uid_slots() s ON s.sequence::oid OPERATOR(pg_catalog.=) g.generator::oid;

COMMENT ON VIEW uid_generator_status IS
  'Live state of each generator. protection is set if a number that was given keeps its ids apart from those of other '
  'databases, auto if only a hash of the database does, and registry if the registry of the fleet granted the node, up '
  'to the time granted_until (else NULL). node is datacenter_id and worker_id together. These four are those of this '
  'session''s next id. last_time is the time in the last id, leased_until the end of the lease, and records the number '
  'of records written. flush_waits, standby_waits and clock_waits count the calls that waited for a flush, for a '
  'standby and for the clock. ahead_ms is the lead of the last id made over the clock, and 0 once the clock has passed '
  'it. In cached mode: ring_size is the number of ids that the ring holds, and ring_filled is the share that is '
  'filled. padded_* count refills by cause: the first one, below the threshold, by schedule, and by a call. '
  'rejected_puts counts ids that the refiller discarded at a full ring (when_ring_full discard). rejected_takes counts '
  'calls that found the ring empty and failed or waited (when_ring_empty error, wait). discarded_stale counts ids '
  'discarded because they were too old. Of a wrong clock: clock_steps_back counts how often the clock was found behind '
  'the generator. held_ids counts the ids made meanwhile at the last tick or later, in cached mode those put into the '
  'ring. backup_ids counts the ids of the backup worker. clock_errors counts the calls that failed because of the '
  'clock. last_clock_event is the time of the last step, of its end or of the last such error, by the server''s clock. '
  'The values are NULL if the generator was not used since the server started.';

CREATE OR REPLACE VIEW segment_status AS
SELECT s.sequence, n.name, s.range_first, s.range_length, s.range_left,
       (s.range_length - s.range_left)::float8 OPERATOR(pg_catalog./) nullif(s.range_length, 0)::float8 AS share_used,
       s.next_ready, s.step, s.step_reason, s.refills_first, s.refills_ahead, s.refills_late, s.refills_disturbed,
       s.records, s.flush_waits, s.standby_waits, s.last_refill, s.rate, n.registry_name, s.next_asked, s.registry_error
  FROM uid_slots() s LEFT JOIN uid_segment n ON n.sequence::oid OPERATOR(pg_catalog.=) s.sequence::oid
 WHERE s.kind = 'segment';

COMMENT ON VIEW segment_status IS
  'Live state of each segment used since the server started: the range in use, the share of it that is used, and '
  'whether the next range is reserved. step_reason explains the step: base, grown, kept, shrunk, or disturbed by '
  'nextval or setval in another session. refills_* count reserved ranges by cause. flush_waits and standby_waits '
  'count the calls that waited for a flush and for a standby. last_refill is the time of the last reservation. rate '
  'is the number of values drawn per second between the last two reservations, and NULL before the second one. Of an '
  'attached segment: registry_name is its name at the registry of the fleet, next_asked is true while a block is '
  'waited for, and registry_error is why the registry gave none the last time.';

CREATE FUNCTION uid_stat_sequences(
    OUT sequence regclass, OUT kind text, OUT ids bigint, OUT batches bigint, OUT blocks bigint, OUT records bigint, OUT ring_refills bigint,
    OUT blocks_asked bigint, OUT blocks_received bigint, OUT refused_clock bigint, OUT refused_rate bigint,
    OUT refused_registry bigint, OUT refused_ring bigint, OUT refused_used_up bigint, OUT refused_busy bigint,
    OUT flush_waits bigint, OUT flush_wait_time double precision, OUT standby_waits bigint,
    OUT standby_wait_time double precision, OUT clock_waits bigint, OUT clock_wait_time double precision,
    OUT registry_waits bigint, OUT registry_wait_time double precision, OUT ring_waits bigint,
    OUT ring_wait_time double precision, OUT stats_reset timestamptz)
RETURNS SETOF record
LANGUAGE c VOLATILE STRICT PARALLEL RESTRICTED ROWS 100 AS 'MODULE_PATHNAME', 'uid_stat_sequences';

COMMENT ON FUNCTION uid_stat_sequences() IS
  'Returns the rows of the view uid_stat. It returns no rows if uidgen is not preloaded.';

CREATE VIEW uid_stat AS SELECT * FROM uid_stat_sequences();

COMMENT ON VIEW uid_stat IS
  'Counters of each generator and segment of this database that has a slot in shared memory. They only grow, and start '
  'at zero at stats_reset: when the slot was made, at its first use after a server start, an alteration or a reclaim, '
  'or at the last uid_stat_reset(). ids counts the ids and values that sessions and their parallel workers have drawn, '
  'one by one, in batches and in blocks, also in transactions that were rolled back. In cached mode a session with runs '
  'of its own reports at the end of its transaction. batches counts the calls that returned many, blocks the blocks '
  'reserved for a program or a member of the fleet. records counts records written to the log, ring_refills the '
  'refills of the ring in cached mode. blocks_asked and blocks_received count the blocks that an attached segment asked '
  'of the registry and used. refused_* count calls that failed: refused_clock because the clock was behind or '
  'implausible, refused_rate because sessions drew faster than the layout allows, refused_registry because the registry gave '
  'nothing, refused_ring because the ring was empty, refused_used_up because no value is left, and refused_busy because '
  'other sessions won every race. *_waits count calls that waited, *_wait_time is the time that they waited, in milliseconds: '
  'flush for this server''s disk, standby for a synchronous standby, clock for the clock, registry for the registry, '
  'ring for the refiller. The counters are NULL if the caller has neither USAGE nor SELECT on the sequence and is not '
  'a member of pg_read_all_stats.';

CREATE FUNCTION uid_stat_totals(
    OUT ids bigint, OUT batches bigint, OUT blocks bigint, OUT records bigint, OUT ring_refills bigint,
    OUT blocks_asked bigint, OUT blocks_received bigint, OUT refused_clock bigint, OUT refused_rate bigint,
    OUT refused_registry bigint, OUT refused_ring bigint, OUT refused_used_up bigint, OUT refused_busy bigint,
    OUT flush_waits bigint, OUT flush_wait_time double precision, OUT standby_waits bigint,
    OUT standby_wait_time double precision, OUT clock_waits bigint, OUT clock_wait_time double precision,
    OUT registry_waits bigint, OUT registry_wait_time double precision, OUT ring_waits bigint,
    OUT ring_wait_time double precision,
    OUT refused_standby bigint, OUT refused_no_slot bigint, OUT slots_reclaimed bigint, OUT slots_used integer,
    OUT slots_of_segments integer, OUT slots_max integer, OUT stats_reset timestamptz)
RETURNS SETOF record
LANGUAGE c VOLATILE STRICT PARALLEL RESTRICTED ROWS 1 AS 'MODULE_PATHNAME', 'uid_stat_totals';

COMMENT ON FUNCTION uid_stat_totals() IS
  'Returns the row of the view uid_stat_server. It returns no row if uidgen is not preloaded.';

CREATE VIEW uid_stat_server AS SELECT * FROM uid_stat_totals();

COMMENT ON VIEW uid_stat_server IS
  'One row: the counters of uid_stat, summed over all databases of the server, with those of sequences that were '
  'dropped, altered or lost their slot. So they never go back before the next server start or uid_stat_reset(), which '
  'stats_reset shows. refused_standby counts draws that were refused during recovery, refused_no_slot those that found '
  'no slot, and slots_reclaimed slots that were taken from an unused sequence for another one. Not counters: '
  'slots_used is the number of slots in use, slots_of_segments those of segments, slots_max the setting '
  'uidgen.max_slots.';

CREATE FUNCTION uid_stat_reset() RETURNS void
LANGUAGE c VOLATILE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'uid_stat_reset_all';

COMMENT ON FUNCTION uid_stat_reset() IS
  'Sets the counters of uid_stat_server to zero, and those of uid_stat in all databases of the server. '
  'uid_generator_status and segment_status do not change. Only superusers may call it, unless EXECUTE is granted.';

CREATE FUNCTION uid_stat_reset(sequence regclass) RETURNS void
LANGUAGE c VOLATILE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'uid_stat_reset_of';

COMMENT ON FUNCTION uid_stat_reset(regclass) IS
  'Sets the counters of uid_stat to zero for one generator or segment. uid_stat_server does not change. It is an error '
  'if there is no such sequence. A sequence without a slot has no counters to reset. Only superusers may call it, unless EXECUTE is '
  'granted.';

REVOKE EXECUTE ON FUNCTION uid_stat_reset(), uid_stat_reset(regclass) FROM PUBLIC;

GRANT SELECT ON uid_stat, uid_stat_server TO PUBLIC;

CREATE FUNCTION uid_block_first(sequence regclass, count bigint) RETURNS bigint
LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'uid_block_first';

COMMENT ON FUNCTION uid_block_first(regclass, bigint) IS
  'The views t_sequence and leaf_alloc call it. It returns the value that their row shows this transaction. If the '
  'transaction locks or updates rows of such a view, the call reserves count values, or more, and returns the first '
  'one. Otherwise it returns the value after the counter, or NULL at the end of the sequence.';

CREATE FUNCTION uid_block_length(sequence regclass, length bigint) RETURNS bigint
LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'uid_block_length';

COMMENT ON FUNCTION uid_block_length(regclass, bigint) IS
  'The views t_sequence and leaf_alloc call it. It returns the length that it returned first in this transaction, and '
  'the first time the given one.';

CREATE FUNCTION uid_block_claim(sequence regclass, first bigint, count bigint) RETURNS void
LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'uid_block_claim';

COMMENT ON FUNCTION uid_block_claim(regclass, bigint, bigint) IS
  'An INSERT into t_sequence calls it. It reserves the next count values of a sequence, which must begin at first, and '
  'shows first to this transaction.';

CREATE FUNCTION uid_block_time(sequence regclass) RETURNS timestamptz
LANGUAGE c VOLATILE STRICT PARALLEL RESTRICTED AS 'MODULE_PATHNAME', 'uid_block_time';

COMMENT ON FUNCTION uid_block_time(regclass) IS
  'Returns the time of the last reservation of a segment since the server started; NULL: there was none.';

CREATE FUNCTION uid_block_advance() RETURNS trigger
LANGUAGE c AS 'MODULE_PATHNAME', 'uid_block_advance';

COMMENT ON FUNCTION uid_block_advance() IS
  'Trigger function of the views t_sequence and leaf_alloc for UPDATE. It gives the block that the statement takes to '
  'this transaction alone.';

CREATE FUNCTION uid_block_insert() RETURNS trigger
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  home text := (SELECT quote_ident(n.nspname) FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace
                 WHERE e.extname = 'uidgen');
  -- Arguments of the trigger: those of uid_block_advance().
  given jsonb := (SELECT to_jsonb(r) FROM (SELECT NEW.*) r); -- as in uid_make_generator()
  name text := given ->> TG_ARGV[0];
  value bigint := (given ->> TG_ARGV[1])::bigint;
  length bigint := (given ->> TG_ARGV[2])::bigint;
  is_taken boolean;
  sequence regclass;
BEGIN
  IF TG_OP = 'DELETE' THEN
    RAISE EXCEPTION 'cannot delete from view "%"', TG_TABLE_NAME
      USING ERRCODE = 'feature_not_supported', HINT = 'Drop the segment with segment_drop().';
  END IF;
  IF name IS NULL OR value IS NULL OR length IS NULL THEN
    RAISE EXCEPTION '%, % and % must not be null', TG_ARGV[0], TG_ARGV[1], TG_ARGV[2]
      USING ERRCODE = 'null_value_not_allowed', HINT = 'Pass the name, the first value and the length of a block.';
  END IF;
  IF given ->> 'update_time' IS NOT NULL THEN
    RAISE EXCEPTION 'cannot set update_time of segment "%"', name
      USING ERRCODE = 'feature_not_supported', HINT = 'Leave update_time out.';
  END IF;
  EXECUTE format('SELECT EXISTS (SELECT FROM %s.uid_segment s WHERE s.name = $1)', home) INTO is_taken USING name;
  IF is_taken THEN
    RAISE EXCEPTION 'segment "%" already exists', name
      USING ERRCODE = 'unique_violation', HINT = 'Use another name, or drop the segment with segment_drop().';
  END IF;
  EXECUTE format('SELECT %s.segment_create($1, $2, $3, $4, $5, $6, $7, $8, $9)', home) INTO sequence
    USING name, value, length, NULL::bigint, given ->> 'description', 1::bigint, least(value, 0), NULL::bigint, false;
  IF TG_ARGV[3] = '2' THEN
    EXECUTE format('SELECT %s.uid_block_claim($1, $2, $3)', home) USING sequence, value, length;
  END IF;
  RETURN NEW;
END
$$;

COMMENT ON FUNCTION uid_block_insert() IS
  'Trigger function of the views t_sequence and leaf_alloc for INSERT and DELETE. An INSERT creates a segment. A DELETE '
  'fails.';

CREATE OR REPLACE VIEW t_sequence AS
SELECT n.name AS pk_seq_name, uid_block_first(n.sequence, 2::bigint * n.step) AS current_val,
       CASE WHEN pg_catalog.has_sequence_privilege(n.sequence, 'USAGE, SELECT, UPDATE')
            THEN uid_block_length(n.sequence, n.step) END AS increment_val
  FROM (SELECT s.name, s.sequence, pg_catalog.clock_timestamp() AS read_at,
               coalesce(s.step, pg_catalog.current_setting('uidgen.segment_step', true)::bigint) AS step
          FROM uid_segment s) n;

CREATE TRIGGER uid_block_insert INSTEAD OF INSERT OR DELETE ON t_sequence
  FOR EACH ROW EXECUTE FUNCTION uid_block_insert('pk_seq_name', 'current_val', 'increment_val', '2');

CREATE TRIGGER uid_block_advance INSTEAD OF UPDATE ON t_sequence
  FOR EACH ROW EXECUTE FUNCTION uid_block_advance('pk_seq_name', 'current_val', 'increment_val', '2');

CREATE TRIGGER uid_block_advance_begins BEFORE UPDATE ON t_sequence
  FOR EACH STATEMENT EXECUTE FUNCTION uid_block_advance();

CREATE TRIGGER uid_block_advance_ends AFTER UPDATE ON t_sequence
  FOR EACH STATEMENT EXECUTE FUNCTION uid_block_advance();

COMMENT ON VIEW t_sequence IS
  'The named segments in the form of a t_sequence table, for services that take blocks of increment_val values with '
  'SELECT ... FOR UPDATE and UPDATE t_sequence SET current_val = current_val + increment_val. current_val is the value '
  'after everything reserved so far. A transaction that locks or updates a row is shown the first of 2 * increment_val '
  'values that are reserved for it: a node may take its block before the new current_val or from it on. SET '
  'current_val = 0 starts over, as in such a table, and then values repeat; a rollback undoes it. An INSERT creates a '
  'segment, and its first block belongs to the transaction that inserts. Every other change fails. increment_val is '
  'the step of the segment, or uidgen.segment_step, and stays the same in a transaction. Both are NULL if the caller has no privilege on the sequence, and '
  'current_val also at the end of a sequence without CYCLE. A role that takes blocks needs UPDATE on the view and '
  'USAGE on the sequence. To start over it needs UPDATE on the sequence. To insert it needs INSERT on the view and '
  'CREATE on the schema uid_segments.';

CREATE FUNCTION uid_leaf_alloc_create(schema text DEFAULT pg_catalog.current_schema()) RETURNS regclass
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  home text := (SELECT quote_ident(n.nspname) FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace
                 WHERE e.extname = 'uidgen');
  leaf text;
BEGIN
  IF coalesce(schema, '') = '' THEN
    RAISE EXCEPTION 'no schema has been selected for view "leaf_alloc"'
      USING ERRCODE = 'invalid_schema_name', HINT = 'Pass the name of a schema.';
  END IF;
  leaf := format('%I.leaf_alloc', schema);
  IF to_regclass(leaf) IS NOT NULL THEN
    RAISE EXCEPTION 'relation "%" already exists', leaf
      USING ERRCODE = 'duplicate_table', HINT = 'Pass another schema, or rename the relation.';
  END IF;
  EXECUTE format(
    'CREATE VIEW %1$s AS
     SELECT n.name AS biz_tag, %2$s.uid_block_first(n.sequence, n.step) AS max_id,
            CASE WHEN has_sequence_privilege(n.sequence, ''USAGE, SELECT, UPDATE'')
                 THEN %2$s.uid_block_length(n.sequence, n.step) END AS step,
            n.description, %2$s.uid_block_time(n.sequence) AS update_time
       FROM (SELECT s.name, s.sequence, s.description, clock_timestamp() AS read_at,
                    coalesce(s.step, current_setting(''uidgen.segment_step'', true)::bigint) AS step
               FROM %2$s.uid_segment s) n', leaf, home);
  EXECUTE format(
    'CREATE TRIGGER uid_block_insert INSTEAD OF INSERT OR DELETE ON %1$s
       FOR EACH ROW EXECUTE FUNCTION %2$s.uid_block_insert(''biz_tag'', ''max_id'', ''step'', ''1'');
     CREATE TRIGGER uid_block_advance INSTEAD OF UPDATE ON %1$s
       FOR EACH ROW EXECUTE FUNCTION %2$s.uid_block_advance(''biz_tag'', ''max_id'', ''step'', ''1'');
     CREATE TRIGGER uid_block_advance_begins BEFORE UPDATE ON %1$s
       FOR EACH STATEMENT EXECUTE FUNCTION %2$s.uid_block_advance();
     CREATE TRIGGER uid_block_advance_ends AFTER UPDATE ON %1$s
       FOR EACH STATEMENT EXECUTE FUNCTION %2$s.uid_block_advance()', leaf, home);
  EXECUTE format('COMMENT ON VIEW %s IS ''The named segments of uidgen in the form of the table of Leaf. '
                 'uid_leaf_alloc_create() created it.''', leaf);
  RETURN leaf::regclass;
END
$$;

COMMENT ON FUNCTION uid_leaf_alloc_create(text) IS
  'Creates a view leaf_alloc (biz_tag, max_id, step, description, update_time) of the named segments, in the current '
  'schema or in the given one. A node of Leaf takes a block with UPDATE leaf_alloc SET max_id = max_id + n, and reads '
  'max_id afterwards in the same transaction. The n values below max_id then belong to it alone. SET max_id = 0, INSERT '
  'and other changes are as in the view t_sequence. The caller owns the view. Let other roles use it with GRANT SELECT, '
  'UPDATE. They also need USAGE on the sequences of the segments. Drop it with DROP VIEW.';

CREATE FUNCTION uid_movable_column(table_name regclass, column_name name,
    OUT relation text, OUT owner oid, OUT attnum smallint, OUT type oid, OUT base regtype, OUT identity text,
    OUT expression text, OUT sequence regclass, OUT drawn_by text, OUT source regclass, OUT tree oid[])
RETURNS record
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  home text := (SELECT quote_ident(n.nspname) FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace
                 WHERE e.extname = 'uidgen');
  kind text;
  default_oid oid;
  generated boolean;
  inherited boolean;
BEGIN
  SELECT format('%I.%I', n.nspname, t.relname), t.relowner, t.relkind INTO relation, owner, kind
    FROM pg_class t JOIN pg_namespace n ON n.oid = t.relnamespace WHERE t.oid = table_name;
  IF kind IS NULL OR kind NOT IN ('r', 'p') THEN
    RAISE EXCEPTION '% is not a table', coalesce(relation, 'the given relation')
      USING ERRCODE = 'wrong_object_type', HINT = 'Pass an ordinary table or a partitioned one.';
  END IF;
  IF NOT pg_has_role(owner, 'USAGE') THEN
    RAISE EXCEPTION 'must be owner of table %', relation USING ERRCODE = 'insufficient_privilege';
  END IF;

  SELECT a.attnum, a.atttypid, domain.base,
         CASE a.attidentity WHEN 'a' THEN 'ALWAYS' WHEN 'd' THEN 'BY DEFAULT' END,
         pg_get_expr(d.adbin, d.adrelid), d.oid, a.attgenerated <> '', a.attinhcount > 0
    INTO attnum, type, base, identity, expression, default_oid, generated, inherited
    FROM pg_attribute a LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
   CROSS JOIN LATERAL (
     -- A domain may be over a domain.
     WITH RECURSIVE under(type) AS (
       SELECT a.atttypid UNION
       SELECT y.typbasetype FROM under u JOIN pg_type y ON y.oid = u.type AND y.typtype = 'd')
     SELECT u.type AS base FROM under u JOIN pg_type y ON y.oid = u.type AND y.typtype <> 'd') domain
   WHERE a.attrelid = table_name AND a.attname = column_name AND a.attnum > 0 AND NOT a.attisdropped;
  IF attnum IS NULL THEN
    RAISE EXCEPTION 'column "%" of table % does not exist', column_name, relation
      USING ERRCODE = 'undefined_column', HINT = 'Use the name of one of the table''s columns.';
  ELSIF generated THEN
    RAISE EXCEPTION 'column "%" of table % is a generated column', column_name, relation
      USING ERRCODE = 'wrong_object_type', HINT = 'A generated column has no default. Use another column.';
  ELSIF inherited THEN
    RAISE EXCEPTION 'column "%" of table % is inherited', column_name, relation
      USING ERRCODE = 'wrong_object_type',
            HINT = format('Name the parent (%s) instead. Its partitions and children change with it.',
                          (SELECT string_agg(i.inhparent::regclass::text, ', ') FROM pg_inherits i
                            WHERE i.inhrelid = table_name));
  END IF;

  SELECT d.objid INTO sequence
    FROM pg_depend d JOIN pg_class s ON s.oid = d.objid AND s.relkind = 'S'
   WHERE d.classid = 'pg_class'::regclass AND d.refclassid = 'pg_class'::regclass AND d.refobjid = table_name
     AND d.refobjsubid = attnum AND d.deptype IN ('a', 'i')
   ORDER BY d.deptype DESC, d.objid LIMIT 1;
  -- What the default calls, and what it passes.
  SELECT p.call INTO drawn_by
    FROM unnest(ARRAY['uid_next()', 'uid_next(regclass)', 'segment_next(regclass)', 'segment_next(text)']) p(call)
    JOIN pg_depend d ON d.classid = 'pg_attrdef'::regclass AND d.objid = default_oid
     AND d.refclassid = 'pg_proc'::regclass AND d.refobjid = (home || '.' || p.call)::regprocedure;
  IF drawn_by = 'uid_next()' THEN
    EXECUTE format('SELECT g.generator FROM %s.uid_generator_config g WHERE g.is_default', home) INTO source;
  ELSE
    SELECT d.refobjid INTO source FROM pg_depend d JOIN pg_class s ON s.oid = d.refobjid AND s.relkind = 'S'
     WHERE d.classid = 'pg_attrdef'::regclass AND d.objid = default_oid AND d.refclassid = 'pg_class'::regclass;
  END IF;
  WITH RECURSIVE below(oid) AS (
    SELECT table_name::oid UNION SELECT i.inhrelid FROM below b JOIN pg_inherits i ON i.inhparent = b.oid)
  SELECT array_agg(b.oid) INTO tree FROM below b;
END
$$;

COMMENT ON FUNCTION uid_movable_column(regclass, name) IS
  'Returns what uid_adopt() and uid_release() need to know of a column, and fails if they cannot change it: its '
  'qualified table and the owner, its type and the type below a domain, its identity or default, the sequence that it '
  'owns, the function of uidgen that its default calls and the generator or sequence that this function draws from, '
  'and the table with its partitions and children.';

CREATE FUNCTION uid_narrow_columns(table_name regclass, attnum smallint,
    OUT relation oid, OUT narrow smallint, OUT name text, OUT type text, OUT topmost boolean)
RETURNS SETOF record
LANGUAGE sql
SET search_path = pg_catalog, pg_temp
AS $$
  WITH RECURSIVE holding(relation, number) AS (
    SELECT table_name::oid, attnum
     UNION
    SELECT n.relation, n.number FROM holding h CROSS JOIN LATERAL (
      SELECT k.conrelid, k.conkey[i] FROM pg_constraint k, generate_subscripts(k.conkey, 1) i
       WHERE k.contype = 'f' AND k.confrelid = h.relation AND k.confkey[i] = h.number
       UNION ALL
      SELECT b.attrelid, b.attnum
        FROM pg_attribute a CROSS JOIN LATERAL (
               SELECT p.inhparent FROM pg_inherits p WHERE p.inhrelid = h.relation
                UNION ALL SELECT p.inhrelid FROM pg_inherits p WHERE p.inhparent = h.relation) r(relative)
        JOIN pg_attribute b ON b.attrelid = r.relative AND b.attname = a.attname AND b.attnum > 0
       WHERE a.attrelid = h.relation AND a.attnum = h.number) n(relation, number))
  SELECT h.relation, h.number, format('%I of table %I.%I', a.attname, n.nspname, c.relname),
         format_type(a.atttypid, NULL), a.attinhcount = 0
    FROM holding h JOIN pg_attribute a ON a.attrelid = h.relation AND a.attnum = h.number
    JOIN pg_class c ON c.oid = h.relation JOIN pg_namespace n ON n.oid = c.relnamespace
   WHERE EXISTS (
     WITH RECURSIVE under(type) AS (
       SELECT a.atttypid UNION
       SELECT y.typbasetype FROM under u JOIN pg_type y ON y.oid = u.type AND y.typtype = 'd')
     SELECT FROM under u WHERE u.type IN ('int2'::regtype, 'int4'::regtype))
   ORDER BY h.relation <> table_name, 3
$$;

COMMENT ON FUNCTION uid_narrow_columns(regclass, smallint) IS
  'Returns the columns of type integer and smallint that would have to hold the ids of a column: itself, the columns '
  'that refer to it by foreign keys, and so on, each with its partitions and children.';

CREATE FUNCTION uid_widen_plan(table_name regclass, attnum smallint) RETURNS SETOF text
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  home text := (SELECT quote_ident(n.nspname) FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace
                 WHERE e.extname = 'uidgen');
  columns jsonb;
  obstacles text;
BEGIN
  EXECUTE format('SELECT jsonb_agg(to_jsonb(c)) FROM %s.uid_narrow_columns($1, $2) c', home)
    INTO columns USING table_name, attnum;
  SELECT string_agg(format('Column %s is of domain %s.', c.name, c.type), E'\n') INTO obstacles
    FROM jsonb_to_recordset(columns) c(name text, type text) WHERE c.type NOT IN ('smallint', 'integer');
  IF obstacles IS NOT NULL THEN
    RAISE EXCEPTION 'cannot convert a column of a domain to bigint'
      USING ERRCODE = 'feature_not_supported', DETAIL = obstacles,
            HINT = 'Change the type of these columns with ALTER TABLE first.';
  END IF;

  -- The objects for which PostgreSQL refuses ALTER TYPE, all at once.
  SELECT string_agg(DISTINCT format('Column %s is used by %s.', c.name, o.object), E'\n') INTO obstacles
    FROM jsonb_to_recordset(columns) c(relation oid, narrow smallint, name text) CROSS JOIN LATERAL (
      SELECT CASE WHEN r.oid IS NOT NULL THEN pg_describe_object('pg_class'::regclass, r.ev_class, 0)
                  ELSE pg_describe_object(d.classid, d.objid, 0) END
        FROM pg_depend d LEFT JOIN pg_rewrite r ON d.classid = 'pg_rewrite'::regclass AND r.oid = d.objid
        LEFT JOIN pg_attrdef g ON d.classid = 'pg_attrdef'::regclass AND g.oid = d.objid
       WHERE d.refclassid = 'pg_class'::regclass AND d.refobjid = c.relation AND d.refobjsubid = c.narrow
         AND (d.classid IN ('pg_rewrite'::regclass, 'pg_trigger'::regclass, 'pg_policy'::regclass,
                            'pg_proc'::regclass, 'pg_publication_rel'::regclass)
              OR g.adnum <> c.narrow)
       UNION ALL
      SELECT 'the partition key' FROM pg_partitioned_table p
       WHERE p.partrelid = c.relation AND c.narrow = ANY (p.partattrs)) o(object);
  IF obstacles IS NOT NULL THEN
    RAISE EXCEPTION 'cannot convert columns to bigint that other objects use'
      USING ERRCODE = 'dependent_objects_still_exist', DETAIL = obstacles,
            HINT = 'In one transaction, drop these objects, call uid_adopt(), and create them again.';
  END IF;
  SELECT string_agg(DISTINCT c.relation::regclass::text, ', ') INTO obstacles
    FROM jsonb_to_recordset(columns) c(relation oid) JOIN pg_class t ON t.oid = c.relation
   WHERE NOT pg_has_role(t.relowner, 'USAGE');
  IF obstacles IS NOT NULL THEN
    RAISE EXCEPTION 'must be owner of the tables whose columns are converted to bigint'
      USING ERRCODE = 'insufficient_privilege', DETAIL = format('Other roles own %s.', obstacles);
  END IF;

  RETURN NEXT '-- ALTER TYPE writes each of these tables and their indexes anew while they are locked.';
  RETURN QUERY
    SELECT line FROM (
      SELECT 1 AS part, t.relation::regclass::text AS name,
             format('-- %s of %I.%I: %s with indexes', CASE t.relkind WHEN 'p' THEN 'partitions' ELSE 'rows' END,
                    t.nspname, t.relname, pg_size_pretty(t.size)) AS line
        FROM (SELECT c.relation, max(r.relkind::text) AS relkind, max(n.nspname) AS nspname,
                     max(r.relname) AS relname, (
                WITH RECURSIVE below(oid) AS (
                  SELECT c.relation UNION SELECT i.inhrelid FROM below b JOIN pg_inherits i ON i.inhparent = b.oid)
                SELECT sum(pg_total_relation_size(b.oid)) FROM below b) AS size
                FROM jsonb_to_recordset(columns) c(relation oid, topmost boolean)
                JOIN pg_class r ON r.oid = c.relation JOIN pg_namespace n ON n.oid = r.relnamespace
               WHERE c.topmost GROUP BY c.relation) t
       UNION ALL
      SELECT 2, c.relation::regclass::text,
             format('ALTER TABLE %I.%I %s;', n.nspname, r.relname,
                    string_agg(format('ALTER COLUMN %I TYPE bigint', a.attname), ', ' ORDER BY a.attnum))
        FROM jsonb_to_recordset(columns) c(relation oid, narrow smallint, topmost boolean)
        JOIN pg_class r ON r.oid = c.relation JOIN pg_namespace n ON n.oid = r.relnamespace
        JOIN pg_attribute a ON a.attrelid = c.relation AND a.attnum = c.narrow
       WHERE c.topmost GROUP BY c.relation, n.nspname, r.relname) plan
     ORDER BY part, name COLLATE "C";
  RETURN NEXT '-- ALTER TYPE discards statistics of these columns. Run ANALYZE afterwards.';
  RETURN QUERY
    SELECT DISTINCT format('-- note: publication %I sends rows of %I.%I; convert the columns on its subscribers first',
                           p.pubname, p.schemaname, p.tablename)
      FROM pg_publication_tables p JOIN jsonb_to_recordset(columns) c(relation oid)
        ON c.relation = format('%I.%I', p.schemaname, p.tablename)::regclass
     ORDER BY 1;
END
$$;

COMMENT ON FUNCTION uid_widen_plan(regclass, smallint) IS
  'Returns the statements that convert the columns of uid_narrow_columns() to bigint, and fails if an object is in the '
  'way.';

CREATE FUNCTION uid_draw_expression(source regclass,
    OUT expression text, OUT drawn_by text, OUT generator regclass, OUT sequence regclass)
RETURNS record
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  home text := (SELECT quote_ident(n.nspname) FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace
                 WHERE e.extname = 'uidgen');
  literal text := (SELECT quote_literal(format('%I.%I', n.nspname, c.relname)) || '::regclass'
                     FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
                    WHERE c.oid = source AND c.relkind = 'S' AND c.relpersistence = 'p');
  is_attached boolean;
BEGIN
  IF source IS NULL THEN
    EXECUTE format('SELECT g.generator FROM %s.uid_generator_config g WHERE g.is_default', home) INTO generator;
    IF generator IS NULL THEN
      RAISE EXCEPTION 'database has no default generator'
        USING ERRCODE = 'object_not_in_prerequisite_state', HINT = 'Choose one with uid_default_set().';
    END IF;
    drawn_by := 'uid_next()';
    expression := format('%s.uid_next()', home);
    RETURN;
  END IF;
  IF literal IS NULL THEN
    RAISE EXCEPTION '% is neither a generator nor a permanent sequence', source
      USING ERRCODE = 'wrong_object_type',
            HINT = 'Create a generator with uid_generator_create(), or pass the sequence of the column.';
  END IF;
  EXECUTE format('SELECT EXISTS (SELECT FROM %s.uid_segment s WHERE s.sequence = $1 AND s.registry_name IS NOT NULL)',
                 home) INTO is_attached USING source;
  IF is_attached THEN
    RAISE EXCEPTION 'segment of sequence % is attached to a fleet''s registry', source
      USING ERRCODE = 'wrong_object_type', DETAIL = 'Only the registry knows which values come next.',
            HINT = 'Raise the segment on the registry above all ids of the column, and change the default yourself.';
  END IF;
  EXECUTE format('SELECT g.generator FROM %s.uid_generator_config g WHERE g.generator = $1', home)
    INTO generator USING source;
  drawn_by := CASE WHEN generator IS NULL THEN 'segment_next(regclass)' ELSE 'uid_next(regclass)' END;
  sequence := CASE WHEN generator IS NULL THEN source END;
  expression := format('%s.%s(%s)', home, split_part(drawn_by, '(', 1), literal);
END
$$;

COMMENT ON FUNCTION uid_draw_expression(regclass) IS
  'Returns the default of a column that draws from a generator, from any other sequence, or, for NULL, from the '
  'default generator.';

CREATE FUNCTION uid_sequence_next(sequence regclass, OUT next numeric, OUT increment bigint) RETURNS record
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
  SELECT q.seqincrement INTO increment FROM pg_sequence q WHERE q.seqrelid = sequence;
  IF increment IS NULL THEN
    RAISE EXCEPTION '% is not a sequence', coalesce(sequence::text, 'NULL')
      USING ERRCODE = 'wrong_object_type', HINT = 'Pass the sequence of a column.';
  END IF;
  EXECUTE format('SELECT last_value::numeric + CASE WHEN is_called THEN $1 ELSE 0 END FROM %s', sequence)
    INTO next USING increment;
END
$$;

COMMENT ON FUNCTION uid_sequence_next(regclass) IS
  'Returns the value that nextval() would return, which may be beyond the end of the sequence, and the increment.';

CREATE FUNCTION uid_above_plan(table_name regclass, column_name name, generator regclass) RETURNS SETOF text
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  home text := (SELECT quote_ident(n.nspname) FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace
                 WHERE e.extname = 'uidgen');
  largest bigint;
  a_day_ago bigint;
  ahead bigint;
  preset text;
  presets text;
  advice text;
BEGIN
  IF NOT EXISTS (SELECT FROM pg_attribute a WHERE a.attrelid = table_name AND a.attname = column_name) THEN
    RAISE EXCEPTION 'column "%" of table % does not exist', column_name, coalesce(table_name::text, 'NULL')
      USING ERRCODE = 'undefined_column', HINT = 'Use the name of one of the table''s columns.';
  END IF;
  EXECUTE format('SELECT max(%I)::bigint FROM %s', column_name, table_name) INTO largest;
  EXECUTE format('SELECT %1$s.uid_lower_bound(clock_timestamp() - interval ''1 day'', $1),
                         %1$s.uid_lower_bound(clock_timestamp() + g.max_ahead_ms * interval ''1 ms'', $1), g.preset
                    FROM %1$s.uid_generator_config g WHERE g.generator = $1', home)
    INTO a_day_ago, ahead, preset USING generator;
  IF largest IS NULL OR largest < a_day_ago THEN
    RETURN NEXT format('-- largest id: %s; today ids of %s are above %s', coalesce(largest::text, 'none'), generator,
                       a_day_ago);
    RETURN;
  END IF;
  IF largest >= ahead THEN
    EXECUTE format('SELECT string_agg(p.preset, '', '' ORDER BY p.preset) FROM %1$s.uid_preset p
                     WHERE p.epoch IS NOT NULL AND p.mode = ''snowflake''
                       AND %1$s.uid_lower_bound(clock_timestamp(), p.epoch, p.tick_us,
                                                p.datacenter_bits + p.worker_bits + p.sequence_bits) > $1', home)
      INTO presets USING largest;
    preset := split_part(presets, ', ', 1);
  END IF;
  advice := format('Run SELECT uid_generator_create(%L, %L, above => %s), and pass this generator.',
                   (SELECT c.relname FROM pg_class c WHERE c.oid = table_name), preset, largest);
  IF largest >= ahead THEN
    RAISE EXCEPTION 'ids of generator % would be below those in column "%" of table %',
                    generator, column_name, table_name
      USING ERRCODE = 'object_not_in_prerequisite_state',
            DETAIL = format('The largest id is %s, and ids of the generator are below %s today.', largest, ahead),
            HINT = coalesce('Presets with larger ids: ' || presets || '. ' || advice,
                            'No preset has larger ids today. Create a generator with an earlier epoch or more bits '
                            'below the time, or pass a sequence.');
  END IF;
  IF NOT pg_has_role((SELECT c.relowner FROM pg_class c WHERE c.oid = generator), 'USAGE') THEN
    RAISE EXCEPTION 'ids of generator % may not be above those in column "%" of table %',
                    generator, column_name, table_name
      USING ERRCODE = 'object_not_in_prerequisite_state',
            DETAIL = format('The largest id is %s, which such a generator issues today. Only the owner of the '
                            'generator can raise it above.', largest),
            HINT = advice;
  END IF;
  RETURN NEXT format('-- largest id: %s, less than a day old in the layout of %s', largest, generator);
  RETURN NEXT format('SELECT %s.uid_generator_raise(%L::regclass, %s::bigint);', home, generator::text, largest);
END
$$;

COMMENT ON FUNCTION uid_above_plan(regclass, name, regclass) IS
  'Returns the statement that raises a generator above all ids of a column, where the clock alone does not keep it '
  'above, and fails if the generator cannot be above them.';

CREATE FUNCTION uid_keep_sequence_plan(owned regclass, relation text, column_name name, widen boolean)
RETURNS SETOF text
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  s record;
  kept text;
  aside text;
BEGIN
  SELECT n.nspname, n.oid AS schema, c.relname, c.relowner, format_type(q.seqtypid, NULL) AS type, q.*
    INTO s
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace JOIN pg_sequence q ON q.seqrelid = c.oid
   WHERE c.oid = owned;
  IF NOT (has_schema_privilege(s.schema, 'CREATE') AND has_schema_privilege(s.relowner, s.schema, 'CREATE')) THEN
    RETURN NEXT format('-- sequence %s is dropped: you or the owner of the table may not create one in its schema',
                       owned);
    RETURN NEXT format('ALTER TABLE %s ALTER COLUMN %I DROP IDENTITY;', relation, column_name);
    RETURN;
  END IF;
  kept := format('%I.%I', s.nspname, s.relname);
  aside := CASE WHEN octet_length(s.relname) <= 54 THEN s.relname || '_identity' ELSE 'uid_' || md5(s.relname) END;
  RETURN NEXT format('-- DROP IDENTITY drops the sequence, so another one with the same name and counter takes its '
                     'place. Privileges on the sequence and its comment are not kept.');
  RETURN NEXT format('ALTER SEQUENCE %s RENAME TO %I;', kept, aside);
  RETURN NEXT format('CREATE SEQUENCE %s AS %s INCREMENT %s MINVALUE %s MAXVALUE %s START %s CACHE %s%s;', kept,
                     s.type, s.seqincrement, s.seqmin, s.seqmax, s.seqstart, s.seqcache,
                     CASE WHEN s.seqcycle THEN ' CYCLE' ELSE '' END);
  RETURN NEXT format('SELECT setval(%L::regclass, last_value, is_called) FROM %I.%I;', kept, s.nspname, aside);
  RETURN NEXT format('ALTER TABLE %s ALTER COLUMN %I DROP IDENTITY;', relation, column_name);
  IF s.relowner <> quote_ident(current_user)::regrole THEN
    RETURN NEXT format('ALTER SEQUENCE %s OWNER TO %I;', kept, pg_get_userbyid(s.relowner));
  END IF;
  RETURN NEXT format('ALTER SEQUENCE %s OWNED BY %s.%I;', kept, relation, column_name);
  IF widen AND s.type <> 'bigint' THEN
    RETURN NEXT format('ALTER SEQUENCE %s AS bigint;', kept);
  END IF;
END
$$;

COMMENT ON FUNCTION uid_keep_sequence_plan(regclass, text, name, boolean) IS
  'Returns the statements that end the identity of a column and keep its sequence, owned by the column.';

CREATE FUNCTION uid_move_notes(table_name regclass, column_name name, draws_from regclass) RETURNS SETOF text
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  home text := (SELECT quote_ident(n.nspname) FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace
                 WHERE e.extname = 'uidgen');
  c record;
BEGIN
  EXECUTE format('SELECT * FROM %s.uid_movable_column($1, $2)', home) INTO c USING table_name, column_name;
  RETURN QUERY
    SELECT format('-- note: child %s: its former default was %s', a.attrelid::regclass,
                  pg_get_expr(d.adbin, d.adrelid))
      FROM pg_attribute a JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
     WHERE a.attrelid = ANY (c.tree) AND a.attrelid <> table_name AND a.attname = column_name
       AND pg_get_expr(d.adbin, d.adrelid) IS DISTINCT FROM c.expression
     ORDER BY 1;
  RETURN QUERY
    SELECT format('-- note: %s is a foreign table; this changes nothing on its server', r.oid::regclass)
      FROM pg_class r WHERE r.oid = ANY (c.tree) AND r.relkind = 'f' ORDER BY 1;
  RETURN QUERY
    SELECT format('-- note: trigger %I runs before INSERT and may set the column itself', t.tgname)
      FROM pg_trigger t
     WHERE t.tgrelid = table_name AND NOT t.tgisinternal AND t.tgtype & 6 = 6 ORDER BY t.tgname;
  RETURN QUERY
    SELECT format('-- note: %s must allow the new values', o.object)
      FROM (SELECT format('constraint %I: %s', k.conname, pg_get_constraintdef(k.oid)) AS object FROM pg_constraint k
             WHERE k.contype = 'c' AND (k.conrelid = table_name AND c.attnum = ANY (k.conkey) OR k.contypid = c.type)) o
     ORDER BY o.object;
  RETURN QUERY
    SELECT format('-- note: %s is partitioned by the column and needs partitions for the new values',
                  p.partrelid::regclass)
      FROM pg_partitioned_table p JOIN pg_attribute a ON a.attrelid = p.partrelid AND a.attname = column_name
     WHERE p.partrelid = ANY (c.tree) AND a.attnum = ANY (p.partattrs) ORDER BY 1;
  RETURN QUERY
    SELECT format('-- note: publication %I sends rows of %I.%I; subscribers keep their own type and default',
                  p.pubname, p.schemaname, p.tablename)
      FROM pg_publication_tables p
     WHERE format('%I.%I', p.schemaname, p.tablename)::regclass = ANY (c.tree)
     ORDER BY p.pubname, p.schemaname, p.tablename;
  RETURN QUERY
    SELECT format('-- note: subscription %I brings rows of %s with ids of the publisher', s.subname,
                  r.srrelid::regclass)
      FROM pg_subscription_rel r JOIN pg_subscription s ON s.oid = r.srsubid
     WHERE r.srrelid = ANY (c.tree) ORDER BY 1;
  RETURN QUERY
    SELECT format('-- note: %1$s may insert, but not draw: GRANT USAGE ON SEQUENCE %2$s TO %1$s',
                  CASE r.grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(r.grantee)) END, draws_from)
      FROM (SELECT c.owner AS grantee
             UNION SELECT x.grantee FROM pg_class t, aclexplode(t.relacl) x
                    WHERE t.oid = table_name AND x.privilege_type = 'INSERT'
             UNION SELECT x.grantee FROM pg_attribute a, aclexplode(a.attacl) x
                    WHERE a.attrelid = table_name AND x.privilege_type = 'INSERT') r
     WHERE NOT CASE r.grantee WHEN 0 THEN has_sequence_privilege('public', draws_from, 'USAGE, UPDATE')
                    ELSE has_sequence_privilege(r.grantee, draws_from, 'USAGE, UPDATE') END
     ORDER BY 1;
  RETURN QUERY
    SELECT format('-- note: no index begins with the column, so max(%I) reads the whole table while it is locked',
                  column_name)
     WHERE (c.drawn_by LIKE 'segment_next%' AND c.source = draws_from) IS NOT TRUE
       AND NOT EXISTS (SELECT FROM pg_index i WHERE i.indrelid = table_name AND i.indkey[0] = c.attnum
                          AND i.indpred IS NULL);
END
$$;

COMMENT ON FUNCTION uid_move_notes(regclass, name, regclass) IS
  'Returns comments about what a new default of a column does not change, or may conflict with: defaults of children, '
  'triggers, constraints, partitions, publications, subscriptions, privileges on the sequence that it draws from.';

CREATE FUNCTION uid_adopt_plan(table_name regclass, column_name name, generator regclass, convert boolean)
RETURNS SETOF text
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  home text := (SELECT quote_ident(n.nspname) FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace
                 WHERE e.extname = 'uidgen');
  c record;
  draw record;
  narrow text;
  others text;
  repeated numeric;
  up boolean;
BEGIN
  EXECUTE format('SELECT * FROM %s.uid_movable_column($1, $2)', home) INTO c USING table_name, column_name;
  EXECUTE format('SELECT * FROM %s.uid_draw_expression($1)', home) INTO draw USING generator;
  IF c.base NOT IN ('int2'::regtype, 'int4'::regtype, 'int8'::regtype) THEN
    RAISE EXCEPTION 'column "%" of table % is of type %', column_name, c.relation, format_type(c.type, NULL)
      USING ERRCODE = 'datatype_mismatch', HINT = 'Only columns of type bigint, integer or smallint can draw ids.';
  END IF;
  IF c.drawn_by = draw.drawn_by AND c.source = coalesce(draw.generator, draw.sequence) THEN
    RETURN NEXT format('-- column "%s" of table %s has DEFAULT %s already', column_name, c.relation, c.expression);
    RETURN;
  END IF;

  EXECUTE format('SELECT string_agg(format(''Column %%s is of type %%s.'', n.name, n.type), E''\n''),
                         string_agg(DISTINCT n.relation::regclass::text, '', '')
                           FILTER (WHERE n.topmost AND n.relation <> $1)
                    FROM %s.uid_narrow_columns($1, $2) n', home)
    INTO narrow, others USING table_name, c.attnum;
  IF narrow IS NOT NULL AND draw.generator IS NOT NULL AND NOT convert THEN
    RAISE EXCEPTION 'ids of column "%" of table % need bigint', column_name, c.relation
      USING ERRCODE = 'datatype_mismatch', DETAIL = narrow,
            HINT = 'With convert => true the plan contains ALTER TYPE bigint for these columns. It writes their tables '
                   'anew while they are locked.';
  END IF;

  RETURN NEXT format('LOCK TABLE %s IN ACCESS EXCLUSIVE MODE;',
                     concat_ws(', ', c.relation, CASE WHEN convert THEN others END));
  RETURN NEXT format('-- former default: %s',
                     coalesce(c.expression, 'GENERATED ' || c.identity || ' AS IDENTITY', 'none'));
  IF draw.generator IS NOT NULL THEN
    RETURN QUERY EXECUTE format('SELECT * FROM %s.uid_above_plan($1, $2, $3)', home)
      USING table_name, column_name, draw.generator;
  ELSE
    EXECUTE format('SELECT x.next, x.increment > 0
                      FROM %1$s.uid_sequence_next($1) x,
                           (SELECT min(%2$I)::bigint, max(%2$I)::bigint FROM %3$s) m(smallest, largest)
                     WHERE CASE WHEN x.increment > 0 THEN x.next <= m.largest ELSE x.next >= m.smallest END',
                   home, column_name, c.relation)
      INTO repeated, up USING draw.sequence;
    IF repeated IS NOT NULL THEN
      RAISE EXCEPTION 'sequence % would repeat ids of column "%" of table %', draw.sequence, column_name, c.relation
        USING ERRCODE = 'object_not_in_prerequisite_state',
              DETAIL = format('Its next value is %s, and the column has %s ids.', repeated,
                              CASE WHEN up THEN 'larger' ELSE 'smaller' END),
              HINT = format('If the column has ids of a generator, call uid_release() first. Otherwise run SELECT '
                            'setval(%L, %s(%I)) FROM %s.', draw.sequence::text, CASE WHEN up THEN 'max' ELSE 'min' END,
                            column_name, c.relation);
    END IF;
    IF draw.sequence IS DISTINCT FROM c.sequence THEN
      RETURN NEXT '-- nextval makes sessions discard a range that they have reserved below the largest id.';
      RETURN NEXT format('SELECT nextval(%L::regclass);', draw.sequence::text);
    END IF;
  END IF;
  IF c.identity = 'ALWAYS' THEN
    RETURN NEXT '-- GENERATED ALWAYS ends: INSERT may then name ids of its own.';
  END IF;
  IF c.identity IS NOT NULL THEN
    RETURN QUERY EXECUTE format('SELECT * FROM %s.uid_keep_sequence_plan($1, $2, $3, $4)', home)
      USING c.sequence, c.relation, column_name, convert;
  ELSIF c.sequence IS NOT NULL THEN
    RETURN NEXT format('-- sequence %s stays, so that uid_release() can go back to it', c.sequence);
    IF convert AND (SELECT q.seqtypid <> 'int8'::regtype FROM pg_sequence q WHERE q.seqrelid = c.sequence) THEN
      RETURN NEXT format('ALTER SEQUENCE %s AS bigint;', c.sequence);
    END IF;
  END IF;
  -- A child's own identity. Partitions have that of their parent from PostgreSQL 17 on.
  RETURN QUERY
    SELECT format('ALTER TABLE ONLY %s ALTER COLUMN %I DROP IDENTITY;', a.attrelid::regclass, column_name)
      FROM pg_attribute a JOIN pg_class r ON r.oid = a.attrelid
     WHERE a.attrelid = ANY (c.tree) AND a.attrelid <> table_name AND a.attname = column_name AND a.attidentity <> ''
       AND NOT (r.relispartition AND current_setting('server_version_num')::int >= 170000)
     ORDER BY 1;
  IF narrow IS NOT NULL AND convert THEN
    RETURN QUERY EXECUTE format('SELECT * FROM %s.uid_widen_plan($1, $2)', home) USING table_name, c.attnum;
  END IF;
  RETURN NEXT format('ALTER TABLE %s ALTER COLUMN %I SET DEFAULT %s;', c.relation, column_name, draw.expression);
  RETURN QUERY EXECUTE format('SELECT * FROM %s.uid_move_notes($1, $2, $3)', home)
    USING table_name, column_name, coalesce(draw.generator, draw.sequence);
END
$$;

COMMENT ON FUNCTION uid_adopt_plan(regclass, name, regclass, boolean) IS
  'Returns the lines of uid_adopt(): statements, and comments that begin with --.';

CREATE FUNCTION uid_release_plan(table_name regclass, column_name name, start bigint, identity text)
RETURNS SETOF text
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  home text := (SELECT quote_ident(n.nspname) FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace
                 WHERE e.extname = 'uidgen');
  c record;
  s record;
  floor bigint;     -- ids of the generator are at or above it
  largest bigint;   -- largest id below floor
  first numeric;    -- the first value of the sequence
  collision bigint; -- the smallest id that the sequence would meet
  counter record;
BEGIN
  EXECUTE format('SELECT * FROM %s.uid_movable_column($1, $2)', home) INTO c USING table_name, column_name;
  IF c.drawn_by IS NULL THEN
    RAISE EXCEPTION 'column "%" of table % does not draw its default from uidgen', column_name, c.relation
      USING ERRCODE = 'object_not_in_prerequisite_state',
            HINT = 'Run SELECT * FROM uid_generator_columns to list the columns that draw from generators.';
  END IF;
  identity := upper(identity);
  IF identity NOT IN ('ALWAYS', 'BY DEFAULT') THEN
    RAISE EXCEPTION 'invalid value for parameter "identity": "%"', identity
      USING ERRCODE = 'invalid_parameter_value', HINT = 'Use always or by default, or NULL for the kept sequence.';
  END IF;
  IF c.sequence IS NULL THEN
    identity := coalesce(identity, 'BY DEFAULT');
  END IF;
  SELECT format('%I.%I', n.nspname, r.relname) AS name, q.* INTO s
    FROM pg_sequence q JOIN pg_class r ON r.oid = q.seqrelid JOIN pg_namespace n ON n.oid = r.relnamespace
   WHERE q.seqrelid = c.sequence;
  RETURN NEXT format('LOCK TABLE %s IN ACCESS EXCLUSIVE MODE;', c.relation);

  IF c.drawn_by = 'segment_next(regclass)' AND c.source = c.sequence AND start IS NULL AND identity IS NULL THEN
    RETURN NEXT '-- nextval continues on the same counter';
  ELSE
    -- An hour for a clock that was ahead at the creation. The builtin generator is older than its row, which notes
    -- when it was first altered.
    IF c.drawn_by LIKE 'uid_next%' THEN
      EXECUTE format('SELECT %1$s.uid_lower_bound(CASE WHEN g.builtin THEN g.epoch + interval ''1 day''
                                                       ELSE g.created - interval ''1 hour'' END, g.generator)
                        FROM %1$s.uid_generator_config g WHERE g.generator = $1', home) INTO floor USING c.source;
      IF floor IS NULL AND start IS NULL THEN
        RAISE EXCEPTION 'could not determine which generator column "%" of table % draws from', column_name, c.relation
          USING ERRCODE = 'object_not_in_prerequisite_state',
                DETAIL = 'So it is not known which ids are those of the generator.',
                HINT = 'Pass the first value of the sequence as start.';
      END IF;
    END IF;
    EXECUTE format('SELECT max(%1$I)::bigint FROM %2$s WHERE %1$I < coalesce($1, 9223372036854775807)', column_name,
                   c.relation) INTO largest USING floor;
    IF c.sequence IS NOT NULL THEN
      EXECUTE format('SELECT * FROM %s.uid_sequence_next($1)', home) INTO counter USING c.sequence;
    ELSE
      SELECT 1::numeric AS next, 1::bigint AS increment INTO counter;
    END IF;
    IF counter.increment < 0 AND start IS NULL THEN
      RAISE EXCEPTION 'sequence % counts downwards', c.sequence
        USING ERRCODE = 'object_not_in_prerequisite_state', HINT = 'Pass its next value as start.';
    END IF;
    -- The counter may be above the floor: setval(max(id)) puts it there. Otherwise it keeps to its stride.
    first := CASE WHEN counter.next >= floor THEN s.seqstart ELSE counter.next END;
    first := coalesce(start, first + greatest(ceil((largest + 1 - first) / counter.increment), 0) * counter.increment);
    EXECUTE format('SELECT min(%1$I)::bigint FROM %2$s WHERE %1$I >= $1', column_name, c.relation)
      INTO collision USING first;
    IF collision - first < 4294967296 THEN
      RAISE EXCEPTION 'a sequence from % would soon meet id % of column "%" of table %', first, collision,
                      column_name, c.relation
        USING ERRCODE = 'object_not_in_prerequisite_state',
              DETAIL = format('The largest id below those of the generator is %s.', coalesce(largest::text, 'none')),
              HINT = 'Pass as start a value that is followed by at least 2^32 unused ones.';
    END IF;
    RETURN NEXT format(CASE WHEN floor IS NULL THEN '-- largest id: %s'
                            ELSE '-- largest id below those of the generator: %s; smallest id above: %s' END,
                       coalesce(largest::text, 'none'), coalesce(collision::text, 'none'));
    IF collision IS NOT NULL THEN
      RETURN NEXT format('-- the sequence can count %s values before it meets that one', collision - first);
      RETURN NEXT format('-- note: setval(max(id)) would set the counter above %s. After an import use max(id) FILTER '
                         '(WHERE id < %s).', collision, collision);
    END IF;
  END IF;

  IF identity IS NULL THEN
    IF first IS NOT NULL THEN
      RETURN NEXT format('SELECT setval(%L::regclass, %s, false);', s.name, first);
    END IF;
    RETURN NEXT format('ALTER TABLE %s ALTER COLUMN %I SET DEFAULT nextval(%L::regclass);', c.relation, column_name,
                       s.name);
    RETURN QUERY EXECUTE format('SELECT * FROM %s.uid_move_notes($1, $2, $3)', home)
      USING table_name, column_name, c.sequence;
    RETURN;
  END IF;
  RETURN NEXT format('ALTER TABLE %s ALTER COLUMN %I DROP DEFAULT;', c.relation, column_name);
  IF c.sequence IS NOT NULL THEN
    RETURN NEXT format('DROP SEQUENCE %s;', s.name);
  END IF;
  RETURN NEXT format('ALTER TABLE %s ALTER COLUMN %I SET NOT NULL;', c.relation, column_name);
  RETURN NEXT format('ALTER TABLE %s ALTER COLUMN %I ADD GENERATED %s AS IDENTITY (%s);', c.relation, column_name,
    identity,
    CASE WHEN c.sequence IS NULL THEN format('START %s', first)
         ELSE format('SEQUENCE NAME %s INCREMENT %s MINVALUE %s MAXVALUE %s START %s CACHE %s%s', s.name,
                     s.seqincrement, s.seqmin, s.seqmax, first, s.seqcache,
                     CASE WHEN s.seqcycle THEN ' CYCLE' ELSE '' END) END);
  IF cardinality(c.tree) > 1 THEN
    RETURN NEXT '-- note: an INSERT that names a child or partition may need a value of its own for the column';
  END IF;
END
$$;

COMMENT ON FUNCTION uid_release_plan(regclass, name, bigint, text) IS
  'Returns the lines of uid_release(): statements, and comments that begin with --.';

CREATE FUNCTION uid_run_plan(table_name regclass, plan_query text, dry_run boolean) RETURNS SETOF text
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
SET row_security = off
SET jit = off
AS $$
DECLARE
  home text := (SELECT quote_ident(n.nspname) FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace
                 WHERE e.extname = 'uidgen');
  relation text := (SELECT format('%I.%I', n.nspname, t.relname) FROM pg_class t
                      JOIN pg_namespace n ON n.oid = t.relnamespace
                     WHERE t.oid = table_name AND t.relkind IN ('r', 'p') AND pg_has_role(t.relowner, 'USAGE'));
  plan text[];
  line text;
BEGIN
  IF NOT dry_run AND relation IS NOT NULL THEN -- else making the plan fails
    IF current_setting('transaction_isolation') IN ('repeatable read', 'serializable') THEN
      RAISE EXCEPTION 'a column can be moved only in a transaction of isolation level READ COMMITTED'
        USING ERRCODE = 'invalid_transaction_state',
              DETAIL = 'The snapshot of this transaction may be older than the largest id.';
    END IF;
    EXECUTE format('LOCK TABLE %s IN ACCESS EXCLUSIVE MODE', relation);
  END IF;
  EXECUTE format('SELECT array_agg(p.line) FROM %s.%s p(line)', home, plan_query) INTO plan;
  FOREACH line IN ARRAY plan LOOP
    IF line LIKE '--%' THEN
      RETURN NEXT translate(line, E'\n\r', '  '); -- so that a name cannot end the comment
      CONTINUE;
    END IF;
    IF NOT dry_run THEN
      EXECUTE line;
    END IF;
    RETURN NEXT line;
  END LOOP;
  IF dry_run THEN
    RETURN NEXT '-- This was a dry run. To run the statements in one transaction, add dry_run => false.';
  END IF;
END
$$;

COMMENT ON FUNCTION uid_run_plan(regclass, text, boolean) IS
  'Returns the lines of a plan of uid_adopt() or uid_release(), and runs its statements unless it is a dry run. '
  'Row-level security would hide ids, so it is an error where it applies.';

CREATE FUNCTION uid_adopt(table_name regclass, column_name name, generator regclass DEFAULT NULL,
    convert boolean DEFAULT false, dry_run boolean DEFAULT true) RETURNS SETOF text
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  home text := (SELECT quote_ident(n.nspname) FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace
                 WHERE e.extname = 'uidgen');
BEGIN
  RETURN QUERY EXECUTE format('SELECT * FROM %s.uid_run_plan($1, $2, $3)', home)
    USING table_name, format('uid_adopt_plan(%L::regclass, %L::name, %L::regclass, %L::boolean)', table_name::oid,
                             column_name, generator::oid, coalesce(convert, false)), coalesce(dry_run, true);
END
$$;

COMMENT ON FUNCTION uid_adopt(regclass, name, regclass, boolean, boolean) IS
  'Gives a column of a table a default of uidgen instead of a sequence: uid_next(), uid_next() of the given generator, '
  'or segment_next() if the argument is any other sequence. It returns the statements and comments, and runs the '
  'statements only with dry_run => false, in one transaction that locks the table for a short time (lock_timeout '
  'applies). It fails unless all new ids are above those in the column. Columns of type integer, and those that refer '
  'to them by foreign keys, are converted to bigint with convert => true. The sequence of the column is kept. Only the '
  'owner of the table may call it. uid_release() goes back.';

CREATE FUNCTION uid_release(table_name regclass, column_name name, start bigint DEFAULT NULL,
    identity text DEFAULT NULL, dry_run boolean DEFAULT true) RETURNS SETOF text
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  home text := (SELECT quote_ident(n.nspname) FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace
                 WHERE e.extname = 'uidgen');
BEGIN
  RETURN QUERY EXECUTE format('SELECT * FROM %s.uid_run_plan($1, $2, $3)', home)
    USING table_name, format('uid_release_plan(%L::regclass, %L::name, %L::bigint, %L::text)', table_name::oid,
                             column_name, start, identity),
          coalesce(dry_run, true);
END
$$;

COMMENT ON FUNCTION uid_release(regclass, name, bigint, text, boolean) IS
  'Gives a column that draws from uidgen its sequence again, or an identity (always, by default) if it has no sequence '
  'or one is asked for. The sequence continues above the largest id that is smaller than the ids of the generator, or '
  'with start. It returns the statements and comments, and runs the statements only with dry_run => false, as '
  'uid_adopt() does. Only the owner of the table may call it.';

CREATE TABLE uid_fleet_segment (
  segment     text        NOT NULL,
  host        text        NOT NULL,
  port        text        NOT NULL,
  database    text        NOT NULL,
  first_value bigint      NOT NULL,
  last_value  bigint      NOT NULL,
  given_at    timestamptz NOT NULL,
  version     text        NOT NULL,
  PRIMARY KEY (segment, host, port, database)
);

COMMENT ON TABLE uid_fleet_segment IS
  'One row for each segment and each member that has values of it: the last block that the registry gave. Nothing '
  'depends on these rows, and a dump leaves them out.';

COMMENT ON COLUMN uid_fleet_segment.segment IS 'name of the segment';

COMMENT ON COLUMN uid_fleet_segment.host IS 'host name of the member''s server';

COMMENT ON COLUMN uid_fleet_segment.port IS 'port of the member''s server';

COMMENT ON COLUMN uid_fleet_segment.database IS 'database of the member';

COMMENT ON COLUMN uid_fleet_segment.first_value IS 'first value of the block';

COMMENT ON COLUMN uid_fleet_segment.last_value IS 'last value of the block';

COMMENT ON COLUMN uid_fleet_segment.given_at IS 'time of the call, by the registry''s clock';

COMMENT ON COLUMN uid_fleet_segment.version IS 'version of uidgen there';

CREATE TRIGGER uid_keep_local BEFORE INSERT OR UPDATE OR DELETE ON uid_fleet_segment
  FOR EACH ROW EXECUTE FUNCTION uid_keep_local('fleet');

CREATE TRIGGER uid_keep_local_truncate BEFORE TRUNCATE ON uid_fleet_segment
  FOR EACH STATEMENT EXECUTE FUNCTION uid_keep_local('fleet');

ALTER TABLE uid_fleet_segment ENABLE ALWAYS TRIGGER uid_keep_local;

ALTER TABLE uid_fleet_segment ENABLE ALWAYS TRIGGER uid_keep_local_truncate;

CREATE FUNCTION uid_fleet_block(protocol integer, fleet bigint, term bigint, segment text, count bigint, shown bigint,
    increment bigint, host text, port text, database text, version text,
    OUT refusal text, OUT message text, OUT hint text, OUT fleet bigint, OUT term bigint,
    OUT first bigint, OUT last bigint, OUT count bigint, OUT increment bigint)
RETURNS record
LANGUAGE c VOLATILE SECURITY DEFINER PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'uid_fleet_block';

COMMENT ON FUNCTION uid_fleet_block(integer, bigint, bigint, text, bigint, bigint, bigint, text, text, text, text) IS
  'Members of a fleet call it on the registry to get a block of at most count values of a segment, beyond the value '
  'that they show. A count of 0 only asks for the increment. A refusal is not an error but a row whose column refusal '
  'is not NULL. The member''s role needs USAGE on the segment''s sequence. It fails in a transaction block, on a '
  'standby, and if this database is not a registry. Only roles of uid_fleet_admit() may call it.';

CREATE OR REPLACE FUNCTION uid_fleet_admit(role regrole) RETURNS void
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
  ELSIF home IS NULL THEN
    RAISE EXCEPTION 'extension uidgen was dropped by another session'
      USING ERRCODE = 'undefined_object', HINT = 'Run CREATE EXTENSION uidgen.';
  END IF;
  -- First, because a rename that waits for this function would have it wait in its turn.
  EXECUTE format('GRANT USAGE ON SCHEMA %s TO %s', home, role);
  -- A call of any function in C defines the settings.
  EXECUTE format('SELECT FROM %s.uid_slots() LIMIT 1', home);
  EXECUTE format('INSERT INTO %s.uid_fleet_state (fleet, clock_bound, system_identifier, timeline, '
                 'database_oid, table_oid) VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT DO NOTHING', home)
    USING greatest(hashtextextended(gen_random_uuid()::text, 0) & 9223372036854775807, 1),
          current_setting('uidgen.registry_clock_bound')::interval,
          (SELECT system_identifier FROM pg_control_system()),
          ('x' || left(pg_walfile_name(pg_current_wal_insert_lsn()), 8))::bit(32)::integer,
          (SELECT oid FROM pg_database WHERE datname = current_database()),
          format('%s.uid_fleet_state', home)::regclass::oid;
  EXECUTE format('GRANT EXECUTE ON FUNCTION %1$s.uid_fleet_call, %1$s.uid_fleet_block TO %2$s', home, role);
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
  'Only superusers and the owner of the database may call it.';

CREATE OR REPLACE VIEW uid_fleet AS
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

CREATE FUNCTION uid_fleet_refused(pool integer)
RETURNS bigint
LANGUAGE c VOLATILE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'uid_fleet_refused';

COMMENT ON FUNCTION uid_fleet_refused(integer) IS
  'Returns how often newcomers of a pool were refused since the registry''s server started, because no node was free or '
  'because of a fence. NULL: uidgen is not preloaded there. Only members of pg_monitor may call it.';

CREATE OR REPLACE VIEW uid_fleet_pools AS
SELECT p.pool, p.preset, p.epoch, a.nodes, coalesce(c.live, 0::bigint) AS live,
       coalesce(c.cooling, 0::bigint) AS cooling, coalesce(c.reserved, 0::bigint) AS reserved,
       a.nodes - coalesce(c.live + c.cooling + c.reserved, 0::bigint) AS free,
       CASE WHEN f.until > pg_catalog.clock_timestamp() THEN f.until END AS fence_until,
       uid_fleet_refused(p.pool) AS newcomers_refused
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
  'fence. newcomers_refused: how often newcomers were refused since the server started, because no node was free or '
  'because of the fence; a newcomer that is refused asks again, about once a second. Readable by pg_monitor.';

CREATE VIEW uid_fleet_segments AS
SELECT s.segment, n.sequence, s.database, s.host, s.port, s.first_value, s.last_value, s.given_at, s.version
  FROM uid_fleet_segment s JOIN uid_segment n ON n.name = s.segment;

COMMENT ON VIEW uid_fleet_segments IS
  'The members that have values of the registry''s segments, each with the last block that it was given, and when. '
  'Readable by pg_monitor.';

REVOKE EXECUTE ON FUNCTION uid_fleet_refused FROM PUBLIC;

GRANT EXECUTE ON FUNCTION uid_fleet_refused TO pg_monitor, pg_database_owner;

GRANT SELECT ON uid_fleet_segments TO pg_monitor;

REVOKE EXECUTE ON FUNCTION uid_fleet_block FROM PUBLIC;

CREATE FUNCTION uid_layout(generator regclass) RETURNS text
LANGUAGE c STABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'uid_layout';

COMMENT ON FUNCTION uid_layout(regclass) IS
  'Returns the layout of a generator''s ids in the form of worker_node.layout.';

CREATE VIEW uid_fleet_holder AS
SELECT p.epoch, p.tick_us, p.time_bits, p.datacenter_bits, p.worker_bits, p.sequence_bits, p.sequence_first,
       p.backup_worker, n.node >> p.drawn_worker_bits AS datacenter_id,
       n.node & ((1::bigint << p.drawn_worker_bits) - 1::bigint) AS worker_id, n.granted_from, n.granted_until,
       n.host, n.port, n.system_identifier, n.timeline, n.database, n.generator, n.last_heard
  FROM uid_fleet_node n JOIN uid_fleet_pool p ON p.pool = n.pool
 WHERE n.line <> 0::bigint;

COMMENT ON VIEW uid_fleet_holder IS
  'The last holder of each node that the registry of a fleet has granted, with the layout and the ticks of the grant. '
  'uid_origin() reads it.';

GRANT SELECT ON uid_fleet_holder TO pg_monitor, pg_database_owner;

CREATE FUNCTION uid_origin(id bigint, generator regclass,
    OUT host_name text, OUT port text, OUT system_identifier bigint, OUT timeline integer, OUT database text,
    OUT generator_name text, OUT node_id bigint, OUT created timestamptz, OUT modified timestamptz, OUT columns text[])
RETURNS record
LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  home text := (SELECT quote_ident(n.nspname) FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace
                 WHERE e.extname = 'uidgen');
  parts record;
BEGIN
  EXECUTE format('SELECT d.* FROM %s.uid_decode($1, $2) d', home) INTO parts USING id, generator;

  -- On the registry of a fleet the grant says it exactly: its ticks belong to one generator.
  IF has_table_privilege(format('%s.uid_fleet_holder', home), 'SELECT') THEN
    EXECUTE format($query$
      SELECT h.host, h.port, h.system_identifier, h.timeline, h.database, h.generator,
             h.epoch + make_interval(secs => h.tick_us::float8 / 1000000 * h.granted_from), h.last_heard
        FROM %1$s.uid_generator_config g
        JOIN %1$s.uid_fleet_holder h
          ON (h.epoch, h.tick_us, h.time_bits, h.datacenter_bits, h.worker_bits, h.sequence_bits, h.sequence_first,
              h.backup_worker)
           = (g.epoch, g.tick_us, g.time_bits, g.datacenter_bits, g.worker_bits, g.sequence_bits, g.sequence_first,
              g.backup_worker)
       WHERE g.generator = $2 AND h.datacenter_id = $3 AND h.worker_id = $4
         AND $1 >> (g.datacenter_bits + g.worker_bits + g.sequence_bits) >= h.granted_from
         AND $1 >> (g.datacenter_bits + g.worker_bits + g.sequence_bits) < h.granted_until $query$, home)
      INTO host_name, port, system_identifier, timeline, database, generator_name, created, modified
      USING id, generator, parts.datacenter_id, parts.worker_id;
  END IF;

  -- A row is in use until the generator's next row is created. Of the rows with the node, the one in use at the time
  -- nearest to the id's counts. An id is created before its row only by the age that it may have in cached mode, by the
  -- time that its draw took (a second is plenty), or by the backup worker.
  IF host_name IS NULL THEN
    EXECUTE format($query$
      SELECT w.host_name, w.port, w.system_identifier, w.timeline,
             coalesce((SELECT d.datname::text FROM pg_database d, pg_control_system() s
                        WHERE d.oid = w.database AND s.system_identifier = w.system_identifier), w.database::text),
             w.generator, w.id, w.created, w.modified
        FROM %1$s.uid_generator_config g
        JOIN pg_class c ON c.oid = g.generator
        JOIN pg_namespace s ON s.oid = c.relnamespace
       CROSS JOIN (SELECT n.*, lead(n.created) OVER (PARTITION BY n.system_identifier, n.database, n.generator
                                                         ORDER BY n.created, n.id) AS ended
                     FROM %1$s.worker_node n WHERE n.layout = %1$s.uid_layout($1)) w
       WHERE g.generator = $1 AND w.datacenter_id = $2 AND w.worker_id = $3
         AND ($5 OR w.created <= $4 + make_interval(secs => 1 + g.tick_us / 1e6
                              + CASE WHEN g.mode = 'cached' THEN g.max_staleness_ms / 1e3 ELSE 0 END))
       ORDER BY w.generator = format('%%I.%%I', s.nspname, c.relname) DESC,
                greatest(w.created - $4, $4 - w.ended, interval '0'), w.created DESC
       LIMIT 1 $query$, home)
      INTO host_name, port, system_identifier, timeline, database, generator_name, node_id, created, modified
      USING generator, parts.datacenter_id, parts.worker_id, parts.generated_at, parts.backup;
  END IF;

  IF host_name IS NOT NULL THEN
    EXECUTE format('SELECT array_agg(format(''%%s.%%I'', c.table_name, c.column_name) '
                   'ORDER BY c.table_name::text COLLATE "C", c.column_name) '
                   'FROM %s.uid_generator_columns c WHERE c.generator = $1', home) INTO columns USING generator;
  END IF;
END
$$;

COMMENT ON FUNCTION uid_origin(bigint, regclass) IS
  'Returns where an id of a generator comes from: the server, the database and the generator of its row of worker_node, '
  'whose id is node_id, when that row was created and last modified, and the columns of this database whose default '
  'draws from the generator. All are NULL if no row fits. Of several rows with the id''s worker id, datacenter '
  'id and layout, those of the given generator come first. Of these it is the one in use at the id''s time: from its '
  'creation until the next row of its generator. That is exact while the clock was right, the rows are complete and no '
  'other database had the same node (uid_check_nodes). Otherwise, and for ids made within max_ahead_ms of the creation '
  'of a row, it is the best match: the row in use at the nearest time. On the registry of a fleet the last grant of the node comes first: it is exact, node_id is NULL, created is the start of '
  'the grant, and modified is the time at which the registry last heard of the holder. The caller needs SELECT on '
  'worker_node.';

CREATE FUNCTION uid_origin(id bigint,
    OUT host_name text, OUT port text, OUT system_identifier bigint, OUT timeline integer, OUT database text,
    OUT generator_name text, OUT node_id bigint, OUT created timestamptz, OUT modified timestamptz, OUT columns text[])
RETURNS record
LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  home text := (SELECT quote_ident(n.nspname) FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace
                 WHERE e.extname = 'uidgen');
BEGIN
  EXECUTE format('SELECT %s.uid_decode($1)', home) USING id; -- fails without a default generator
  EXECUTE format('SELECT o.* FROM %1$s.uid_generator_config g, %1$s.uid_origin($1, g.generator) o WHERE g.is_default',
                 home)
    INTO host_name, port, system_identifier, timeline, database, generator_name, node_id, created, modified, columns
    USING id;
END
$$;

COMMENT ON FUNCTION uid_origin(bigint) IS
  'Returns where an id of the default generator comes from, as uid_origin(bigint, regclass) does.';

CREATE FUNCTION uid_to_base62(id bigint) RETURNS text
LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'uid_to_base62';

COMMENT ON FUNCTION uid_to_base62(bigint) IS
  'Returns an id as 11 characters: the digits 0-9, A-Z and a-z of base 62, with leading zeros. With the collation "C" '
  'the texts sort as the ids do. Any number from 0 to 9223372036854775807 can be converted; a negative one is an error.';

CREATE FUNCTION uid_from_base62(value text) RETURNS bigint
LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'uid_from_base62';

COMMENT ON FUNCTION uid_from_base62(text) IS
  'Returns the id that uid_to_base62() has converted. Leading zeros may be missing. An empty text, a character that is '
  'not a digit, and a number above 9223372036854775807 are errors that name the position.';

CREATE FUNCTION uid_to_base32(id bigint) RETURNS text
LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'uid_to_base32';

COMMENT ON FUNCTION uid_to_base32(bigint) IS
  'Returns an id as 13 characters: the digits 0-9 and A-Z without I, L, O and U of Douglas Crockford''s base 32, with '
  'leading zeros. With the collation "C" the texts sort as the ids do. Any number from 0 to 9223372036854775807 can be '
  'converted; a negative one is an error.';

CREATE FUNCTION uid_from_base32(value text) RETURNS bigint
LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'uid_from_base32';

COMMENT ON FUNCTION uid_from_base32(text) IS
  'Returns the id that uid_to_base32() has converted. As Crockford defines it, small letters count as capitals, I and L '
  'as 1, O as 0, and hyphens are ignored. Leading zeros may be missing; a check symbol is not read. A text without a '
  'digit, a character that is not a digit, and a number above 9223372036854775807 are errors that name the position.';

CREATE FUNCTION uid_to_base64url(id bigint) RETURNS text
LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'uid_to_base64url';

COMMENT ON FUNCTION uid_to_base64url(bigint) IS
  'Returns an id as 11 characters: its eight bytes, big-endian, as base64url (RFC 4648, section 5) without padding. '
  'The texts do not sort as the ids do. Any number from 0 to 9223372036854775807 can be converted; '
  'a negative one is an error.';

CREATE FUNCTION uid_from_base64url(value text) RETURNS bigint
LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'uid_from_base64url';

COMMENT ON FUNCTION uid_from_base64url(text) IS
  'Returns the id that uid_to_base64url() has converted. Each id has one text. Any other text is an error that names '
  'the position.';

CREATE FUNCTION uid_next_uuid() RETURNS uuid
LANGUAGE c VOLATILE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'uid_next_uuid_default';

COMMENT ON FUNCTION uid_next_uuid() IS
  'Draws the next id of the default generator and returns it as a UUID of version 7: unique and in order as the ids '
  'are, with the id''s time in milliseconds. Its other bits are random. Use it as DEFAULT uid_next_uuid(). uid_last() '
  'returns the id, and so does uid_from_uuid().';

CREATE FUNCTION uid_next_uuid(generator regclass) RETURNS uuid
LANGUAGE c VOLATILE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'uid_next_uuid_of';

COMMENT ON FUNCTION uid_next_uuid(regclass) IS
  'Draws the next id of a generator and returns it as a UUID of version 7. The caller needs USAGE on the generator''s '
  'sequence.';

CREATE FUNCTION uid_to_uuid(id bigint) RETURNS uuid
LANGUAGE c STABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'uid_to_uuid_default';

COMMENT ON FUNCTION uid_to_uuid(bigint) IS
  'Returns an id of the default generator as a UUID of version 7, always the same for an id: the bits that are random '
  'in uid_next_uuid() are 0. UUIDs of one generator sort as its ids do.';

CREATE FUNCTION uid_to_uuid(id bigint, generator regclass) RETURNS uuid
LANGUAGE c STABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'uid_to_uuid_of';

COMMENT ON FUNCTION uid_to_uuid(bigint, regclass) IS
  'Returns an id of a generator as a UUID of version 7, always the same for an id.';

CREATE FUNCTION uid_from_uuid(value uuid) RETURNS bigint
LANGUAGE c STABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'uid_from_uuid_default';

COMMENT ON FUNCTION uid_from_uuid(uuid) IS
  'Returns the id in a UUID that uid_next_uuid() or uid_to_uuid() made with the layout of the default generator. Any '
  'other UUID is an error, unless its check bits fit by chance: one of 65,536 UUIDs of version 7 of others.';

CREATE FUNCTION uid_from_uuid(value uuid, generator regclass) RETURNS bigint
LANGUAGE c STABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'uid_from_uuid_of';

COMMENT ON FUNCTION uid_from_uuid(uuid, regclass) IS
  'Returns the id in a UUID that uid_next_uuid() or uid_to_uuid() made with the layout of a generator.';

CREATE FUNCTION uid_draw_fields(id bigint, generator regclass) RETURNS text
LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  home text := (SELECT quote_ident(n.nspname) FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace
                 WHERE e.extname = 'uidgen');
  picture text;
BEGIN
  EXECUTE format($query$
    WITH layout AS (
      SELECT c.*, c.backup_worker::integer AS backup_bits FROM %s.uid_generator_config c WHERE c.generator = $2
    ), field AS (
      SELECT f.* FROM layout l, LATERAL (VALUES
        (1, 'sign', 1),
        (2, 'unused', 63 - l.time_bits - l.datacenter_bits - l.worker_bits - l.sequence_bits),
        (3, 'time', l.time_bits),
        (5, 'datacenter', l.datacenter_bits),
        (6, 'backup', l.backup_bits),
        (7, 'worker', l.worker_bits - l.backup_bits),
        (CASE WHEN l.sequence_first THEN 4 ELSE 8 END, 'sequence', l.sequence_bits)) f (place, name, width)
       WHERE f.width > 0
    ), bits AS (
      SELECT f.place, f.name, substr($1::bit(64)::text, 1 + (sum(f.width) OVER before - f.width)::integer, f.width) AS bits
        FROM field f WINDOW before AS (ORDER BY f.place)
    ), cell AS (
      SELECT b.place, b.name, b.bits, lpad(b.bits, 64, '0')::bit(64)::bigint::text AS number FROM bits b
    ), sized AS (
      SELECT c.*, greatest(length(c.name), length(c.bits), length(c.number)) AS size FROM cell c
    )
    SELECT concat_ws(E'\n', '  ' || rtrim(string_agg(rpad(s.name, s.size), ' | ' ORDER BY s.place)),
                     '  ' || rtrim(string_agg(rpad(s.bits, s.size), ' | ' ORDER BY s.place)),
                     '  ' || rtrim(string_agg(rpad(s.number, s.size), ' | ' ORDER BY s.place)))
      FROM sized s $query$, home)
    INTO picture USING id, generator;
  RETURN picture;
END
$$;

COMMENT ON FUNCTION uid_draw_fields(bigint, regclass) IS
  'Returns three lines: the names of the fields of a generator''s layout, their bits in any bigint, and their values. '
  'uid_explain() calls it.';

CREATE FUNCTION uid_explain(id bigint, generator regclass) RETURNS text
LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  home   text := (SELECT quote_ident(n.nspname) FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace
                   WHERE e.extname = 'uidgen');
  config record;
  total  integer;
  parts  record;
  origin record;
  ahead  interval;
  tables text;
  lines  text[];
  notes  text[];
BEGIN
  EXECUTE format('SELECT %s.uid_layout($1)', home) USING generator; -- fails if it is not a generator
  EXECUTE format('SELECT c.* FROM %s.uid_generator_config c WHERE c.generator = $1', home) INTO config USING generator;
  total := config.time_bits + config.datacenter_bits + config.worker_bits + config.sequence_bits;
  lines := ARRAY[
    format('id         %s', id),
    format('generator  %s, preset %s, ticks of %s s since %s', generator, config.preset,
           trim_scale(config.tick_us / 1000000.0), config.epoch),
    ''];
  EXECUTE format('SELECT $1 || %s.uid_draw_fields($2, $3) || $4', home) INTO lines USING lines, id, generator, ''::text;

  IF id < 0 THEN
    notes := ARRAY['negative: the sign bit is set, so its time would be before the epoch; no generator makes such an id'];
  ELSIF id::numeric >= 2::numeric ^ total THEN
    notes := ARRAY[format('too large: ids of this generator have at most %s bits; another layout made it', total)];
  ELSE
    EXECUTE format('SELECT d.* FROM %s.uid_decode($1, $2) d', home) INTO parts USING id, generator;
    lines := lines || format('time       %s', parts.generated_at);
    ahead := parts.generated_at - clock_timestamp();
    IF ahead > make_interval(secs => config.max_ahead_ms / 1e3) THEN
      notes := notes || format('its time is later than the clock by %s, which is more than max_ahead_ms (%s ms): '
                               'a clock was wrong, or another layout made it', ahead, config.max_ahead_ms);
    ELSIF ahead > interval '0' THEN
      notes := notes || format('its time is later than the clock by %s: it was made ahead of its time, within '
                               'max_ahead_ms (%s ms)', ahead, config.max_ahead_ms);
    END IF;
    IF NOT config.builtin AND parts.generated_at + make_interval(secs => config.tick_us / 1e6) < config.created THEN
      notes := notes || format('its time is before the generator was created (%s): another service made it, or a clock '
                               'was wrong', config.created);
    END IF;
    IF parts.backup THEN
      notes := notes || 'the backup worker made it, so it is out of order with other ids'::text;
    END IF;

    IF NOT has_table_privilege(format('%s.worker_node', home), 'SELECT') THEN
      notes := notes || format('its origin is not shown: role %I has no SELECT on worker_node', current_user);
    ELSE
      EXECUTE format('SELECT o.* FROM %s.uid_origin($1, $2) o', home) INTO origin USING id, generator;
      IF origin.host_name IS NULL THEN
        notes := notes || 'no row of worker_node has its node: it is not written yet, or lost, or of another '
                          'database'::text;
      ELSE
        lines := lines || ARRAY[
          format('made by    %s in database %s, host %s, port %s', origin.generator_name, origin.database,
                 origin.host_name, origin.port),
          format('row        %s, drawn at %s, last noted at %s',
                 coalesce(format('worker_node %s', origin.node_id), 'grant of the registry'), origin.created,
                 origin.modified)];
        EXECUTE format('SELECT string_agg(format(''%%s.%%I'', c.table_name, c.column_name), '', '' '
                       'ORDER BY c.table_name::text COLLATE "C", c.column_name) FROM %s.uid_generator_columns c '
                       'JOIN pg_class r ON r.oid = c.table_name WHERE c.generator = $1 AND NOT r.relispartition', home)
          INTO tables USING generator;
        lines := lines || ('columns    ' || coalesce(tables, 'none'));
        IF origin.system_identifier <> (SELECT s.system_identifier FROM pg_control_system() s)
           OR origin.database <> current_database() THEN
          notes := notes || 'its node is that of another database than this one'::text;
        ELSIF origin.generator_name <> generator::text THEN
          notes := notes || 'its node is that of another generator of this database'::text;
        END IF;
      END IF;
    END IF;
  END IF;
  RETURN array_to_string(lines || format('notes      %s', coalesce(array_to_string(notes, E'\n           '), 'none')),
                         E'\n');
END
$$;

COMMENT ON FUNCTION uid_explain(bigint, regclass) IS
  'Returns what is known of an id of a generator, as text for people: a picture of its fields, in bits and as numbers; '
  'its time in the session''s time zone; the server, database and row of worker_node behind it, as uid_origin() finds '
  'them; and notes on what may be wrong. A number that is not an id of the generator is drawn, too, and a note says '
  'why. The text is not for programs: it may change.';

CREATE FUNCTION uid_explain(id bigint) RETURNS text
LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  home   text := (SELECT quote_ident(n.nspname) FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace
                   WHERE e.extname = 'uidgen');
  answer text;
BEGIN
  EXECUTE format('SELECT %s.uid_decode(0)', home); -- fails without a default generator
  EXECUTE format('SELECT %1$s.uid_explain($1, g.generator) FROM %1$s.uid_generator_config g WHERE g.is_default', home)
    INTO answer USING id;
  RETURN answer;
END
$$;

COMMENT ON FUNCTION uid_explain(bigint) IS
  'Returns what is known of an id of the default generator, as uid_explain(bigint, regclass) does.';

CREATE FUNCTION uid_partition_bounds(starts timestamptz, ends timestamptz, step interval, generator regclass,
    OUT lower bigint, OUT upper bigint, OUT from_time timestamptz, OUT to_time timestamptz)
RETURNS SETOF record
LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  home  text := (SELECT quote_ident(n.nspname) FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace
                  WHERE e.extname = 'uidgen');
  bound text := format('SELECT %s.uid_lower_bound($1, $2)', home);
  place integer := 0;
BEGIN
  EXECUTE bound INTO upper USING starts, generator; -- fails if it is not a generator
  IF NOT isfinite(starts) OR NOT isfinite(ends) OR ends <= starts THEN
    RAISE EXCEPTION 'invalid range of times: % to %', starts, ends
      USING ERRCODE = 'invalid_parameter_value', HINT = 'Use two finite times, the earlier one first.';
  END IF;
  to_time := starts;
  WHILE to_time < ends LOOP
    place := place + 1;
    from_time := to_time;
    lower := upper;
    to_time := least(starts + step * place, ends); -- from the start, so that a month after January 31 is not lost
    IF to_time <= from_time THEN
      RAISE EXCEPTION 'invalid value for parameter "step": "%"', step
        USING ERRCODE = 'invalid_parameter_value', HINT = 'Use an interval that is longer than 0.';
    END IF;
    EXECUTE bound INTO upper USING to_time, generator;
    IF upper <= lower THEN
      RAISE EXCEPTION 'generator % has no ids from % to %', generator, from_time, to_time
        USING ERRCODE = 'invalid_parameter_value',
              DETAIL = 'The times lie outside the generator''s life, or within one of its ticks.',
              HINT = format('Run SELECT generator, c.epoch, l.ends, c.tick_us FROM %1$s.uid_generator_config c '
                            'JOIN %1$s.uid_generator_limits l USING (generator), and use times of its life.', home);
    END IF;
    RETURN NEXT;
  END LOOP;
END
$$;

COMMENT ON FUNCTION uid_partition_bounds(timestamptz, timestamptz, interval, regclass) IS
  'Returns the bounds of partitions by the time in a generator''s ids, for FOR VALUES FROM (lower) TO (upper): one row '
  'for each step from starts to ends, the last one cut at ends. lower and upper are uid_lower_bound() of from_time and '
  'to_time. Each row starts where the former one ends. Days and months are those of the session''s time zone. It fails '
  'if a range would be empty.';

CREATE FUNCTION uid_partition_bounds(starts timestamptz, ends timestamptz, step interval,
    OUT lower bigint, OUT upper bigint, OUT from_time timestamptz, OUT to_time timestamptz)
RETURNS SETOF record
LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  home text := (SELECT quote_ident(n.nspname) FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace
                 WHERE e.extname = 'uidgen');
BEGIN
  EXECUTE format('SELECT %s.uid_decode(0)', home); -- fails without a default generator
  RETURN QUERY EXECUTE format('SELECT p.* FROM %1$s.uid_generator_config g, '
                              '%1$s.uid_partition_bounds($1, $2, $3, g.generator) p WHERE g.is_default', home)
    USING starts, ends, step;
END
$$;

COMMENT ON FUNCTION uid_partition_bounds(timestamptz, timestamptz, interval) IS
  'Returns the bounds of partitions by the time in ids of the default generator, as '
  'uid_partition_bounds(timestamptz, timestamptz, interval, regclass) does.';

CREATE FUNCTION uid_histogram(table_name regclass, column_name name, buckets integer, generator regclass,
    OUT from_time timestamptz, OUT to_time timestamptz, OUT estimated_rows bigint)
RETURNS SETOF record
LANGUAGE plpgsql STABLE STRICT PARALLEL RESTRICTED
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  home      text := (SELECT quote_ident(n.nspname) FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace
                      WHERE e.extname = 'uidgen');
  rel       pg_class := (SELECT c FROM pg_class c WHERE c.oid = table_name);
  statistic record;
  least_id  bigint; -- of the index
  most_id   bigint;
  pages     float8; -- of the table's files now, and how many rows they hold
  rows_now  float8;
BEGIN
  EXECUTE format('SELECT %s.uid_layout($1)', home) USING generator; -- fails if it is not a generator
  IF buckets NOT BETWEEN 1 AND 10000 THEN
    RAISE EXCEPTION 'invalid value for parameter "buckets": "%"', buckets
      USING ERRCODE = 'invalid_parameter_value', HINT = 'Use a number from 1 to 10000.';
  END IF;
  IF rel.oid IS NULL OR rel.relkind NOT IN ('r', 'm', 'p') THEN
    RAISE EXCEPTION '% is not a table', table_name
      USING ERRCODE = 'wrong_object_type', HINT = 'Use a table, a partitioned table or a materialized view.';
  END IF;
  IF NOT EXISTS (SELECT FROM pg_attribute a WHERE a.attrelid = table_name AND a.attname = column_name AND a.attnum > 0
                    AND a.atttypid = 'bigint'::regtype AND NOT a.attisdropped) THEN
    RAISE EXCEPTION 'table % has no column "%" of type bigint', table_name, column_name
      USING ERRCODE = 'undefined_column', HINT = 'Use the name of a column that holds ids.';
  END IF;
  IF NOT has_column_privilege(table_name, column_name, 'SELECT') THEN
    RAISE EXCEPTION 'permission denied for column "%" of table %', column_name, table_name
      USING ERRCODE = 'insufficient_privilege',
            HINT = format('Run GRANT SELECT (%I) ON %s TO %I as the owner of the table.', column_name, table_name,
                          current_user);
  END IF;
  SELECT s.null_frac::float8 AS nulls, s.histogram_bounds::text::bigint[] AS bounds,
         s.most_common_vals::text::bigint[] AS common, s.most_common_freqs::float8[] AS shares
    INTO statistic
    FROM pg_stats s JOIN pg_namespace n ON n.nspname = s.schemaname
   WHERE n.oid = rel.relnamespace AND s.tablename = rel.relname AND s.attname = column_name
     AND s.inherited = (rel.relkind = 'p');
  -- A partition that was not counted yet has the mean density of the others.
  SELECT sum(f.pages), sum(f.pages * coalesce(f.tuples / nullif(f.relpages, 0), f.density)) INTO pages, rows_now
    FROM (SELECT pg_relation_size(c.oid) / current_setting('block_size')::float8 AS pages, c.relpages,
                 greatest(c.reltuples, 0)::float8 AS tuples,
                 sum(greatest(c.reltuples, 0)::float8) OVER () / nullif(sum(c.relpages) OVER (), 0) AS density
            FROM pg_class c
           WHERE c.relkind IN ('r', 'm')
             AND (c.oid = table_name OR c.oid IN (SELECT t.relid FROM pg_partition_tree(table_name) t))) f;
  IF rel.reltuples < 0 OR rel.reltuples > 0 AND statistic.nulls IS NULL
     OR rel.reltuples = 0 AND pages > 0 AND rows_now IS DISTINCT FROM 0 THEN
    RAISE EXCEPTION 'column "%" of table % has no statistics', column_name, table_name
      USING ERRCODE = 'object_not_in_prerequisite_state',
            DETAIL = 'ANALYZE has not been run since the table got rows, or row-level security hides the statistics '
                     'from this role.',
            HINT = format('Run ANALYZE %s (%I).', table_name, column_name);
  END IF;

  -- The ends of an index that begins with the column cost two look-ups. Without one the statistics have the ends.
  IF EXISTS (SELECT FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_am m ON m.oid = c.relam
               JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = i.indkey[0]
              WHERE i.indrelid = table_name AND a.attname = column_name AND m.amname = 'btree' AND i.indisvalid
                AND i.indpred IS NULL) THEN
    EXECUTE format('SELECT min(t.%1$I), max(t.%1$I) FROM %2$s %3$s t', column_name,
                   CASE WHEN rel.relkind = 'p' THEN '' ELSE 'ONLY' END, table_name) INTO least_id, most_id;
  END IF;

  RETURN QUERY EXECUTE format($query$
    WITH config AS (
      SELECT c.tick_us * interval '1 us' AS tick,
             2::numeric ^ (c.time_bits + c.datacenter_bits + c.worker_bits + c.sequence_bits) - 1 AS largest
        FROM %1$s.uid_generator_config c WHERE c.generator = $1
    ), bins AS (     -- each holds the same number of rows
      SELECT b.bound AS low, lead(b.bound) OVER (ORDER BY b.place) AS high,
             $5 * (1 - $6 - coalesce((SELECT sum(f) FROM unnest($9) f), 0)) / (cardinality($7) - 1) AS tuples
        FROM unnest($7) WITH ORDINALITY b (bound, place)
    ), pieces AS (
      SELECT b.low, b.high, b.tuples FROM bins b WHERE b.high IS NOT NULL
      UNION ALL
      SELECT v.id, v.id, $5 * v.share FROM unnest($8, $9) v (id, share)
      UNION ALL     -- too few rows for either
      SELECT $3, $4, $5 * (1 - $6) WHERE $7 IS NULL AND $8 IS NULL AND $3 IS NOT NULL
      UNION ALL     -- by the growth of the table since ANALYZE
      SELECT (SELECT max(b.low) FROM bins b), $4, $10 - $5 WHERE $4 > (SELECT max(b.low) FROM bins b) AND $10 > $5
    ), clamped AS (     -- a number that is not an id of the generator counts at its nearest time
      SELECT greatest(0, least(p.low, c.largest)) AS low, greatest(0, least(p.high, c.largest)) AS high, p.tuples
        FROM pieces p, config c
    ), ends AS (
      SELECT %1$s.uid_timestamp(min(p.low)::bigint, $1) AS starts,
             %1$s.uid_timestamp(max(p.high)::bigint, $1) + (SELECT c.tick FROM config c) AS ends
        FROM clamped p
    ), bucket AS (
      SELECT b.from_time, b.to_time, %1$s.uid_lower_bound(b.from_time, $1)::numeric AS low,
             %1$s.uid_lower_bound(b.to_time, $1)::numeric AS high
        FROM ends e, generate_series(0, $2 - 1) i,
             LATERAL (SELECT e.starts + (e.ends - e.starts) * (i::float8 / $2) AS from_time,
                             e.starts + (e.ends - e.starts) * ((i + 1)::float8 / $2) AS to_time) b
       WHERE e.starts IS NOT NULL
    )
    SELECT b.from_time, b.to_time,
           coalesce((SELECT sum(p.tuples * greatest(0, least(p.high + 1, b.high) - greatest(p.low, b.low))::float8
                                / (p.high + 1 - p.low)::float8) FROM clamped p), 0)::bigint
      FROM bucket b ORDER BY b.from_time $query$, home)
    USING generator, buckets, least_id, most_id, rel.reltuples::float8, statistic.nulls, statistic.bounds,
          statistic.common, statistic.shares, rows_now;
END
$$;

COMMENT ON FUNCTION uid_histogram(regclass, name, integer, regclass) IS
  'Returns how many rows of a table have ids of each time: that many buckets of equal length from the least id''s time '
  'to the largest one''s. estimated_rows comes from the planner''s statistics of the last ANALYZE, and from the growth '
  'of the table''s files since then; the table is not scanned. With a btree index that begins with the column, the '
  'first and the last time are exact; without one they are those of the statistics. The caller needs SELECT on the '
  'column. It returns no rows for an empty table.';

CREATE FUNCTION uid_histogram(table_name regclass, column_name name, buckets integer DEFAULT 20,
    OUT from_time timestamptz, OUT to_time timestamptz, OUT estimated_rows bigint)
RETURNS SETOF record
LANGUAGE plpgsql STABLE STRICT PARALLEL RESTRICTED
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  home text := (SELECT quote_ident(n.nspname) FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace
                 WHERE e.extname = 'uidgen');
BEGIN
  EXECUTE format('SELECT %s.uid_decode(0)', home); -- fails without a default generator
  RETURN QUERY EXECUTE format('SELECT h.* FROM %1$s.uid_generator_config g, '
                              '%1$s.uid_histogram($1, $2, $3, g.generator) h WHERE g.is_default', home)
    USING table_name, column_name, buckets;
END
$$;

COMMENT ON FUNCTION uid_histogram(regclass, name, integer) IS
  'Returns how many rows of a table have ids of each time, by the default generator, as '
  'uid_histogram(regclass, name, integer, regclass) does.';

-- End of the copy.

-- Privileges go over from the old functions to the new ones, of which the install script grants and revokes nothing. Not
-- by GRANT: in an extension's script it makes the privileges a part of the extension, and dumps would leave them out.
DO $$
DECLARE
  old regprocedure;
  new regprocedure;
BEGIN
  FOR old, new IN VALUES
    (regprocedure 'uid_next_batch_of_0_1_0(integer)', regprocedure 'uid_next_batch(bigint)'),
    ('uid_next_batch_of_0_1_0(regclass, integer)', 'uid_next_batch(regclass, bigint)'),
    ('uid_next_array_of_0_1_0(integer)', 'uid_next_array(bigint)'),
    ('uid_next_array_of_0_1_0(regclass, integer)', 'uid_next_array(regclass, bigint)'),
    ('segment_next_batch_of_0_1_0(text, integer)', 'segment_next_batch(text, bigint)'),
    ('segment_next_batch_of_0_1_0(regclass, integer)', 'segment_next_batch(regclass, bigint)'),
    ('segment_next_array_of_0_1_0(text, integer)', 'segment_next_array(text, bigint)'),
    ('segment_next_array_of_0_1_0(regclass, integer)', 'segment_next_array(regclass, bigint)'),
    ('segment_create_of_0_1_0(text, bigint, bigint, bigint, text)',
     'segment_create(text, bigint, bigint, bigint, text, bigint, bigint, bigint, boolean)'),
    ('uid_slots_of_0_1_0()', 'uid_slots()')
  LOOP
    UPDATE pg_proc SET proacl = (SELECT o.proacl FROM pg_proc o WHERE o.oid = old) WHERE oid = new;
    UPDATE pg_shdepend SET objid = new
     WHERE dbid = (SELECT d.oid FROM pg_database d WHERE d.datname = current_database())
       AND classid = 'pg_proc'::regclass AND objid = old AND deptype = 'a';
    EXECUTE format('DROP FUNCTION %s', old);
  END LOOP;
END
$$;
