-- uidgen 0.1.0: the SQL surface. A released install script never changes.
\echo Use "CREATE EXTENSION uidgen" to load this file. \quit

-- ---------------------------------------------------------------------------------------------------------
-- The schemas for the sequences of generators and named segments, separate from the relations of applications.
-- Every role may name the sequences. A role needs USAGE on a sequence to draw, and CREATE on the schema to create.
-- ---------------------------------------------------------------------------------------------------------

CREATE SCHEMA uid_generators;
CREATE SCHEMA uid_segments;
GRANT USAGE ON SCHEMA uid_generators, uid_segments TO PUBLIC;
GRANT CREATE ON SCHEMA uid_generators, uid_segments TO pg_database_owner;
COMMENT ON SCHEMA uid_generators IS
  'Lease sequences of uidgen''s generators, one for each generator. last_value is the generator''s high-water mark: '
  'the highest tick ever leased.';
COMMENT ON SCHEMA uid_segments IS 'Sequences of uidgen''s named segments, one for each segment.';

-- ---------------------------------------------------------------------------------------------------------
-- Generators
-- ---------------------------------------------------------------------------------------------------------

-- A field is a column here, with the default of hand-written rows and older dumps, and a parameter of the same name of
-- uid_generator_create() and uid_generator_alter(). The library finds columns by name. The defaults of
-- uid_generator_create() are those of the builtin generator (src/pg/tables/builtin.cpp) and of uid_preset.
CREATE TABLE uid_generator (
  generator        regclass    PRIMARY KEY,
  preset           text        NOT NULL,
  epoch            timestamptz NOT NULL,
  tick_us          bigint      NOT NULL,
  time_bits        smallint    NOT NULL,
  datacenter_bits  smallint    NOT NULL,
  worker_bits      smallint    NOT NULL,
  sequence_bits    smallint    NOT NULL,
  sequence_first   boolean     NOT NULL DEFAULT false,
  backup_worker    boolean     NOT NULL DEFAULT false,
  lease_ms         integer     NOT NULL,
  max_ahead_ms     integer     NOT NULL,
  when_full        text        NOT NULL DEFAULT 'borrow',
  when_back        text        NOT NULL DEFAULT 'hold',
  tolerance_ms     integer,
  spread           boolean     NOT NULL DEFAULT false,
  worker_policy    text        NOT NULL DEFAULT 'disposable',
  worker_number    integer,
  datacenter_id    integer,
  mode             text        NOT NULL DEFAULT 'snowflake',
  boost_power      integer     NOT NULL DEFAULT 3,
  padding_factor   integer     NOT NULL DEFAULT 50,
  schedule_ms      integer,
  when_ring_full   text        NOT NULL DEFAULT 'stop',
  when_ring_empty  text        NOT NULL DEFAULT 'pad',
  chunk            integer     NOT NULL DEFAULT 1,
  max_staleness_ms integer     NOT NULL DEFAULT 5000,
  created          timestamptz NOT NULL DEFAULT now(),
  builtin          boolean     NOT NULL DEFAULT false,
  is_default       boolean     NOT NULL DEFAULT false
);
CREATE UNIQUE INDEX uid_generator_one_default ON uid_generator (is_default) WHERE is_default;
COMMENT ON TABLE uid_generator IS
  'One row for each generator: its layout, its limits and its policies. uid_generator_create() inserts the row, and a '
  'drop of the sequence deletes it. The builtin generator has a row only after it was altered or a default was '
  'chosen. uid_generator_config always shows it.';
COMMENT ON COLUMN uid_generator.generator IS 'lease sequence; USAGE on it lets a role draw';
COMMENT ON COLUMN uid_generator.preset IS 'preset that the row was copied from';
COMMENT ON COLUMN uid_generator.epoch IS 'time of tick 0';
COMMENT ON COLUMN uid_generator.tick_us IS 'length of a tick in microseconds, 1 to 3600000000';
COMMENT ON COLUMN uid_generator.time_bits IS 'width of the time field, 1 to 47';
COMMENT ON COLUMN uid_generator.datacenter_bits IS 'width of the datacenter id, 0 to 31';
COMMENT ON COLUMN uid_generator.worker_bits IS 'width of the worker id, 0 to 31';
COMMENT ON COLUMN uid_generator.sequence_bits IS 'width of the sequence number within a tick, 0 to 31';
COMMENT ON COLUMN uid_generator.sequence_first IS
  'order of the fields; false: time | datacenter | worker | sequence; true: time | sequence | datacenter | worker';
COMMENT ON COLUMN uid_generator.backup_worker IS
  'true: the top bit of the worker field marks ids of the backup worker, and worker ids use the bits below it';
COMMENT ON COLUMN uid_generator.lease_ms IS
  'time that one record in the write-ahead log leases, in milliseconds, up to max_ahead_ms';
COMMENT ON COLUMN uid_generator.max_ahead_ms IS
  'limit on how far the time in an id may be ahead of the clock, in milliseconds, up to ten minutes';
COMMENT ON COLUMN uid_generator.when_full IS
  'policy when the sequence numbers of a tick are used up; wait: wait for the next tick; borrow: use the next tick '
  'early, up to max_ahead_ms; backup: use the backup worker, then borrow';
COMMENT ON COLUMN uid_generator.when_back IS
  'policy when the clock moves backwards; hold: stay at the last tick within the tolerance; wait: wait within the '
  'tolerance; backup: use the backup worker; error: fail; new_worker: hold within the tolerance, and beyond it start '
  'a new term at the clock with the next worker id';
COMMENT ON COLUMN uid_generator.tolerance_ms IS
  'limit on how far the clock may move backwards before when_back fails or starts a new term, in milliseconds; with '
  'when_back backup: how far ids of the backup worker may be ahead of the clock; NULL: max_ahead_ms is the only limit';
COMMENT ON COLUMN uid_generator.spread IS
  'true: the sequence numbers of a tick start at a varying number instead of 0, so that id % n is even on a quiet '
  'generator';
COMMENT ON COLUMN uid_generator.worker_policy IS
  'disposable: a new worker id at each server start; sticky: the last datacenter and worker id of this host and port; '
  'static: worker_number';
COMMENT ON COLUMN uid_generator.worker_number IS
  'worker id with worker_policy static; with when_back new_worker: the first worker id';
COMMENT ON COLUMN uid_generator.datacenter_id IS
  'datacenter id of this generator''s ids; NULL: the setting uidgen.datacenter_id';
COMMENT ON COLUMN uid_generator.mode IS
  'snowflake: each call makes ids from the clock; cached: ids are made ahead of time, into a ring in shared memory. '
  'The columns boost_power to max_staleness_ms apply to cached mode';
COMMENT ON COLUMN uid_generator.boost_power IS
  'size of the ring, which holds 2^sequence_bits << boost_power ids, 0 to 20';
COMMENT ON COLUMN uid_generator.padding_factor IS
  'filled share of the ring below which it is refilled, in percent, 1 to 100';
COMMENT ON COLUMN uid_generator.schedule_ms IS
  'interval of scheduled refills, in milliseconds; NULL: no scheduled refills';
COMMENT ON COLUMN uid_generator.when_ring_full IS
  'stop: the refiller stops at a full ring; discard: it discards the rest of its tick, as Baidu''s uid-generator does';
COMMENT ON COLUMN uid_generator.when_ring_empty IS
  'policy of a call that finds the ring empty; pad: the call refills the ring; wait: it waits for the refiller; '
  'error: it fails';
COMMENT ON COLUMN uid_generator.chunk IS
  'number of ids that a session takes from the ring at a time, a power of two up to 2^sequence_bits';
COMMENT ON COLUMN uid_generator.max_staleness_ms IS
  'limit on how far the time in an id may be behind the clock, in milliseconds, at least two ticks';
COMMENT ON COLUMN uid_generator.created IS
  'creation time of the generator; of the builtin generator: creation time of its row';
COMMENT ON COLUMN uid_generator.builtin IS 'true for the generator that comes with the extension';
COMMENT ON COLUMN uid_generator.is_default IS
  'true for the generator behind uid_next(), which uid_default_set() chooses. Without such a row, the builtin '
  'generator is the default if it has no row either. Otherwise the default was dropped, and the database has none';

-- The owner of a sequence may insert the row that describes it, and the owner of the table may insert any row. The
-- owner of the database may insert the other rows of a dump in order to restore it. Row-level security could express
-- the same rule, but would keep the owner of the database from dumping the table.
CREATE FUNCTION uid_check_registration() RETURNS trigger
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  -- Arguments of the trigger: the column that names the sequence, and the schema that the sequence must be in.
  sequence regclass := to_jsonb(NEW) ->> TG_ARGV[0];
  is_builtin boolean := coalesce((to_jsonb(NEW) ->> 'builtin')::boolean, false);
  is_default boolean := coalesce((to_jsonb(NEW) ->> 'is_default')::boolean, false);
  owns_database boolean := pg_has_role('pg_database_owner', 'USAGE');
BEGIN
  IF NOT pg_has_role((SELECT relowner FROM pg_class WHERE oid = TG_RELID), 'USAGE')
     AND NOT (is_builtin AND owns_database) -- uid_generator_changing() checks that the sequence matches
     AND (is_builtin OR is_default AND NOT owns_database
          OR NOT EXISTS (SELECT FROM pg_class
                          WHERE oid = sequence AND relkind = 'S'
                            AND (relnamespace = TG_ARGV[1]::regnamespace OR owns_database)
                            AND pg_has_role(relowner, 'USAGE'))) THEN
    RAISE EXCEPTION 'permission denied to register sequence % in table %', sequence, TG_RELID::regclass
      USING ERRCODE = 'insufficient_privilege',
            HINT = 'Use uid_generator_create() or segment_create(), which create and register a sequence.';
  END IF;
  RETURN NEW;
END
$$;
COMMENT ON FUNCTION uid_check_registration() IS
  'Trigger function of uid_generator and uid_segment. It lets only the owner of a sequence register the sequence. The '
  'owner of the database may also restore the rows of a dump.';

CREATE FUNCTION uid_generator_changing() RETURNS trigger
LANGUAGE c AS 'MODULE_PATHNAME', 'uid_generator_changing';
COMMENT ON FUNCTION uid_generator_changing() IS
  'Trigger function of uid_generator. It rejects an invalid row, and a change of the layout after ids were leased. '
  'Any other change ends the current lease, so that the change applies from the next id on.';

CREATE FUNCTION uid_keep_local() RETURNS trigger
LANGUAGE c AS 'MODULE_PATHNAME', 'uid_keep_local';
COMMENT ON FUNCTION uid_keep_local() IS
  'Trigger function of uid_generator, uid_segment, and the tables of a fleet''s registry (with an argument). Their rows '
  'describe sequences or grants of this server, so it skips rows that logical replication brings from another server, '
  'and refuses TRUNCATE.';

CREATE TRIGGER uid_check_registration BEFORE INSERT ON uid_generator
  FOR EACH ROW EXECUTE FUNCTION uid_check_registration('generator', 'uid_generators');
CREATE TRIGGER uid_generator_changing BEFORE INSERT OR UPDATE OR DELETE ON uid_generator
  FOR EACH ROW EXECUTE FUNCTION uid_generator_changing();
CREATE TRIGGER uid_keep_local BEFORE INSERT OR UPDATE OR DELETE ON uid_generator
  FOR EACH ROW EXECUTE FUNCTION uid_keep_local();
CREATE TRIGGER uid_keep_local_truncate BEFORE TRUNCATE ON uid_generator
  FOR EACH STATEMENT EXECUTE FUNCTION uid_keep_local();
ALTER TABLE uid_generator ENABLE ALWAYS TRIGGER uid_keep_local;
ALTER TABLE uid_generator ENABLE ALWAYS TRIGGER uid_keep_local_truncate;
GRANT SELECT, INSERT ON uid_generator TO PUBLIC;
-- A row whose sequence no longer exists could not be restored. A drop leaves such a row if neither the event trigger
-- nor the library runs.
SELECT pg_catalog.pg_extension_config_dump('uid_generator',
  'WHERE generator::pg_catalog.oid IN (SELECT oid FROM pg_catalog.pg_class WHERE relkind = ''S'')');

-- INCREMENT, MINVALUE and is_called make nextval fail without moving the counter, so that only uidgen takes leases.
CREATE SEQUENCE uid_generators.uid_default
  INCREMENT 9223372036854775807 MINVALUE 1 START 1 NO CYCLE;
SELECT pg_catalog.setval('uid_generators.uid_default', 1, true);
GRANT USAGE ON SEQUENCE uid_generators.uid_default TO PUBLIC;
GRANT SELECT, UPDATE ON SEQUENCE uid_generators.uid_default TO pg_database_owner; -- to dump and restore
SELECT pg_catalog.pg_extension_config_dump('uid_generators.uid_default', '');
COMMENT ON SEQUENCE uid_generators.uid_default IS
  'Lease sequence of the builtin generator, the default generator behind uid_next() until another one is chosen.';

CREATE FUNCTION uid_generator_builtin(is_default boolean) RETURNS uid_generator
LANGUAGE c STABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'uid_generator_builtin';
COMMENT ON FUNCTION uid_generator_builtin(boolean) IS
  'Returns the row of the builtin generator while uid_generator has none: the preset snowflake. The argument becomes '
  'is_default. generator is NULL if the builtin generator was dropped.';

-- Sources of the published presets:
-- twitter: github.com/twitter-archive/snowflake, 2010
-- hutool: cn.hutool.core.lang.Snowflake
-- leaf: Leaf-snowflake, tech.meituan.com, 2017
-- baidu, baidu_cached: github.com/baidu/uid-generator
-- sonyflake: github.com/sony/sonyflake
-- instagram: "Sharding & IDs at Instagram", instagram-engineering.com, 2012. Its 41st time bit is the sign of a bigint,
--            so ids stay positive until 40 bits are used up.
CREATE VIEW uid_preset AS
SELECT preset, epoch, tick_us, time_bits, datacenter_bits, worker_bits, sequence_bits, sequence_first, backup_worker,
       lease_ms, max_ahead_ms, when_full, when_back, tolerance_ms, spread, mode
  FROM uid_generator_builtin(true)
UNION ALL
VALUES
  ('twitter', timestamptz '2010-11-04 01:42:54.657+00',
   1000::bigint, 41::smallint, 5::smallint, 5::smallint, 12::smallint,
   false, false, 1000, 2000, 'wait', 'error', NULL::integer, false, 'snowflake'),
  ('hutool', timestamptz '2010-11-04 01:42:54.657+00', 1000, 41, 5, 5, 12,
   false, false, 1000, 2000, 'wait', 'hold', 1999, false, 'snowflake'),
  ('leaf', timestamptz '2010-11-04 01:42:54.657+00', 1000, 41, 0, 10, 12,
   false, false, 1000, 2000, 'wait', 'wait', 5, false, 'snowflake'),
  ('baidu', NULL, 1000000, 28, 0, 22, 13, false, false, 1000, 2000, 'wait', 'error', NULL, false, 'snowflake'),
  ('js53', timestamptz '2026-01-01 00:00:00+00', 1000000, 32, 0, 5, 16,
   false, true, 1000, 2000, 'backup', 'backup', 1000, false, 'snowflake'),
  ('sonyflake', timestamptz '2014-09-01 00:00:00+00', 10000, 39, 0, 16, 8,
   true, false, 1000, 2000, 'wait', 'hold', NULL, false, 'snowflake'),
  ('instagram', timestamptz '2011-08-24 21:07:01.721+00', 1000, 40, 13, 0, 10,
   false, false, 1000, 2000, 'wait', 'hold', NULL, false, 'snowflake'),
  ('baidu_cached', NULL, 1000000, 28, 0, 22, 13, false, false, 16000, 32000, 'borrow', 'hold', NULL, false, 'cached');
COMMENT ON VIEW uid_preset IS
  'The presets that uid_generator_create() copies into a row of uid_generator. If epoch is NULL, the generator starts '
  'at midnight UTC of the day of its creation, so that its whole life lies ahead.';
GRANT SELECT ON uid_preset TO PUBLIC;

-- An operator without an exact match in pg_catalog is qualified with its schema. Otherwise another role could create an
-- exact match in the schema of the extension, and every role that reads the view would run it.
CREATE VIEW uid_generator_config AS
SELECT * FROM uid_generator
UNION ALL
SELECT b.* FROM uid_generator_builtin(NOT EXISTS (SELECT FROM uid_generator g WHERE g.is_default)) b
 WHERE b.generator IS NOT NULL AND NOT EXISTS (SELECT FROM uid_generator g WHERE g.builtin);
COMMENT ON VIEW uid_generator_config IS
  'Layout, limits and policies of each generator: the rows of uid_generator, and the builtin generator while it has '
  'no row there.';
GRANT SELECT ON uid_generator_config TO PUBLIC;

-- The schema of the extension can be renamed. So functions in PL/pgSQL look it up and name its objects in EXECUTE.
CREATE FUNCTION uid_make_generator(name text, preset text, above bigint, given jsonb) RETURNS regclass
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

CREATE FUNCTION uid_generator_create(name text, preset text DEFAULT 'snowflake', above bigint DEFAULT NULL,
    epoch timestamptz DEFAULT NULL, tick_us bigint DEFAULT NULL, time_bits integer DEFAULT NULL,
    datacenter_bits integer DEFAULT NULL, worker_bits integer DEFAULT NULL, sequence_bits integer DEFAULT NULL,
    sequence_first boolean DEFAULT NULL, backup_worker boolean DEFAULT NULL, lease_ms integer DEFAULT NULL,
    max_ahead_ms integer DEFAULT NULL, when_full text DEFAULT NULL, when_back text DEFAULT NULL,
    tolerance_ms integer DEFAULT NULL, spread boolean DEFAULT NULL, worker_policy text DEFAULT 'disposable',
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

CREATE FUNCTION uid_generator_raise(generator regclass, above bigint) RETURNS void
LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'uid_generator_raise';
COMMENT ON FUNCTION uid_generator_raise(regclass, bigint) IS
  'Raises the high-water mark of a generator, so that from now on all its ids are above the given id, even if the '
  'clock moves backwards. It fails if the generator would then be further ahead of the clock than max_ahead_ms. Only '
  'the owner of the sequence may call it.';

CREATE FUNCTION uid_generator_alter(generator regclass,
    epoch timestamptz DEFAULT NULL, tick_us bigint DEFAULT NULL, time_bits integer DEFAULT NULL,
    datacenter_bits integer DEFAULT NULL, worker_bits integer DEFAULT NULL, sequence_bits integer DEFAULT NULL,
    sequence_first boolean DEFAULT NULL, backup_worker boolean DEFAULT NULL, lease_ms integer DEFAULT NULL,
    max_ahead_ms integer DEFAULT NULL, when_full text DEFAULT NULL, when_back text DEFAULT NULL,
    tolerance_ms integer DEFAULT NULL, spread boolean DEFAULT NULL, worker_policy text DEFAULT NULL,
    worker_number integer DEFAULT NULL, mode text DEFAULT NULL, boost_power integer DEFAULT NULL,
    padding_factor integer DEFAULT NULL, schedule_ms integer DEFAULT NULL, when_ring_full text DEFAULT NULL,
    when_ring_empty text DEFAULT NULL, chunk integer DEFAULT NULL, max_staleness_ms integer DEFAULT NULL,
    datacenter_id integer DEFAULT NULL) RETURNS void
LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'uid_generator_alter';
COMMENT ON FUNCTION uid_generator_alter IS
  'Changes fields of a generator. An argument that is NULL leaves its field unchanged. -1 sets a field that may be '
  'NULL to NULL: tolerance_ms -1 means no limit, schedule_ms -1 no scheduled refills, and datacenter_id -1 the '
  'setting. The layout (epoch, tick_us, widths, field order, backup_worker) can change only before the first id. After '
  'that, create a new generator above the old one: uid_generator_create(..., above => ...). Limits and policies can '
  'change at any time. The call waits for transactions that draw. If max_ahead_ms becomes shorter than the '
  'generator''s lead, the call also waits for the clock. The generator then draws a new worker id, and its next id '
  'starts above the current lease. Only the owner of the sequence may call it.';

CREATE FUNCTION uid_generator_drop(generator regclass) RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  home text := (SELECT quote_ident(n.nspname) FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace
                 WHERE e.extname = 'uidgen');
  chosen boolean;
BEGIN
  EXECUTE format('SELECT g.is_default AND NOT g.builtin FROM %s.uid_generator_config g WHERE g.generator = $1', home)
    INTO chosen USING generator;
  IF chosen IS NULL THEN
    RAISE EXCEPTION '% is not a generator', generator
      USING ERRCODE = 'undefined_object',
            HINT = 'Run SELECT generator FROM uid_generator_config to list the generators.';
  END IF;
  IF chosen THEN
    RAISE EXCEPTION 'cannot drop the default generator'
      USING ERRCODE = 'dependent_objects_still_exist',
            DETAIL = 'The drop would leave the database without a default generator.',
            HINT = 'Run SELECT uid_default_set(''uid_generators.uid_default'') first.';
  END IF;
  EXECUTE format('DROP SEQUENCE %s', generator);
END
$$;
COMMENT ON FUNCTION uid_generator_drop(regclass) IS
  'Drops a generator: its sequence and its row. Only the owner of the sequence may call it. It fails for the default '
  'generator, and for a generator in a column default.';

CREATE FUNCTION uid_default_set(generator regclass) RETURNS void
LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'uid_default_set';
COMMENT ON FUNCTION uid_default_set(regclass) IS
  'Makes a generator the default: the one behind uid_next() in this database. If the former default has issued ids, '
  'the call raises the new one above them, and fails if that is not possible. It waits for transactions that draw '
  'from the former default. After a DROP SEQUENCE of the default there is no former default to compare with. In that '
  'case create the new one above its ids, with the parameter above of uid_generator_create(). Only the owner of the '
  'database or of the extension may call it. Grant USAGE on the sequence of the new default to the roles that draw.';

CREATE FUNCTION uid_next() RETURNS bigint
LANGUAGE c VOLATILE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'uid_next_default';
COMMENT ON FUNCTION uid_next() IS
  'Returns the next id of the default generator: unique, positive and above every earlier id. Use it as DEFAULT '
  'uid_next().';

-- Functions with an argument that are called once per row are not STRICT. They return NULL for NULL themselves, which
-- saves a dozen instructions.
CREATE FUNCTION uid_next(generator regclass) RETURNS bigint
LANGUAGE c VOLATILE PARALLEL SAFE AS 'MODULE_PATHNAME', 'uid_next_of';
COMMENT ON FUNCTION uid_next(regclass) IS 'Returns the next id of a generator. The caller needs USAGE on its sequence.';

CREATE FUNCTION uid_next_batch(count integer) RETURNS SETOF bigint
LANGUAGE c VOLATILE STRICT PARALLEL SAFE ROWS 1000 AS 'MODULE_PATHNAME', 'uid_next_batch_default';
COMMENT ON FUNCTION uid_next_batch(integer) IS
  'Returns count ids of the default generator in ascending order, one in a row. The call takes all ids before it '
  'returns the first one, so a call that fails leaves a gap. A count of 0 returns no row, and a negative count is an '
  'error.';

CREATE FUNCTION uid_next_batch(generator regclass, count integer) RETURNS SETOF bigint
LANGUAGE c VOLATILE STRICT PARALLEL SAFE ROWS 1000 AS 'MODULE_PATHNAME', 'uid_next_batch_of';
COMMENT ON FUNCTION uid_next_batch(regclass, integer) IS
  'Returns count ids of a generator in ascending order, one in a row. The call takes all ids before it returns the '
  'first one.';

CREATE FUNCTION uid_next_array(count integer) RETURNS bigint[]
LANGUAGE c VOLATILE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'uid_next_array_default';
COMMENT ON FUNCTION uid_next_array(integer) IS
  'Returns count ids of the default generator in ascending order, as an array.';

CREATE FUNCTION uid_next_array(generator regclass, count integer) RETURNS bigint[]
LANGUAGE c VOLATILE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'uid_next_array_of';
COMMENT ON FUNCTION uid_next_array(regclass, integer) IS
  'Returns count ids of a generator in ascending order, as an array.';

CREATE FUNCTION uid_last() RETURNS bigint
LANGUAGE c VOLATILE STRICT PARALLEL RESTRICTED AS 'MODULE_PATHNAME', 'uid_last';
COMMENT ON FUNCTION uid_last() IS
  'Returns the last id that this session drew from any generator. After a batch, that is the last id of the batch. It '
  'fails before the first id. It ignores ids that parallel workers drew.';

CREATE FUNCTION uid_decode(id bigint,
    OUT generated_at timestamptz, OUT datacenter_id integer, OUT worker_id integer, OUT sequence integer,
    OUT backup boolean)
RETURNS record
LANGUAGE c STABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'uid_decode_default';
COMMENT ON FUNCTION uid_decode(bigint) IS
  'Returns the parts of an id in the layout of the default generator. generated_at is the start of the id''s tick. '
  'backup is true if the backup worker made the id, and worker_id is the number without that bit.';

CREATE FUNCTION uid_decode(id bigint, generator regclass,
    OUT generated_at timestamptz, OUT datacenter_id integer, OUT worker_id integer, OUT sequence integer,
    OUT backup boolean)
RETURNS record
LANGUAGE c STABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'uid_decode_of';
COMMENT ON FUNCTION uid_decode(bigint, regclass) IS 'Returns the parts of an id in the layout of a generator.';

CREATE FUNCTION uid_encode(generated_at timestamptz, datacenter_id integer, worker_id integer, sequence integer)
RETURNS bigint
LANGUAGE c STABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'uid_encode_default';
COMMENT ON FUNCTION uid_encode(timestamptz, integer, integer, integer) IS
  'Returns the id with the given parts in the layout of the default generator. If a part does not fit, the error '
  'names it. The function only computes, and draws no id.';

CREATE FUNCTION uid_encode(generated_at timestamptz, datacenter_id integer, worker_id integer, sequence integer,
    generator regclass)
RETURNS bigint
LANGUAGE c STABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'uid_encode_of';
COMMENT ON FUNCTION uid_encode(timestamptz, integer, integer, integer, regclass) IS
  'Returns the id with the given parts in the layout of a generator.';

CREATE FUNCTION uid_timestamp(id bigint) RETURNS timestamptz
LANGUAGE c STABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'uid_timestamp_default';
COMMENT ON FUNCTION uid_timestamp(bigint) IS
  'Returns the time at which the default generator made an id: the start of the id''s tick.';

CREATE FUNCTION uid_timestamp(id bigint, generator regclass) RETURNS timestamptz
LANGUAGE c STABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'uid_timestamp_of';
COMMENT ON FUNCTION uid_timestamp(bigint, regclass) IS
  'Returns the time at which a generator made an id: the start of the id''s tick.';

CREATE FUNCTION uid_timestamp(id bigint, epoch timestamptz, tick_us bigint, shift integer) RETURNS timestamptz
LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'uid_timestamp_fixed';
COMMENT ON FUNCTION uid_timestamp(bigint, timestamptz, bigint, integer) IS
  'Returns the time at which an id was made, from the numbers of its layout. Use it in generated columns and indexes. '
  'epoch and tick_us are those of uid_generator. shift is the number of bits below the time: datacenter_bits + '
  'worker_bits + sequence_bits.';

CREATE FUNCTION uid_lower_bound(ts timestamptz) RETURNS bigint
LANGUAGE c STABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'uid_lower_bound_default';
COMMENT ON FUNCTION uid_lower_bound(timestamptz) IS
  'Returns the smallest value above every id of the default generator that can have been made before ts. The '
  'condition id >= uid_lower_bound(a) AND id < uid_lower_bound(b) selects the ids made from a on and before b. The '
  'result is 0 before the epoch, and one more than the largest id after the end of the layout''s time.';

CREATE FUNCTION uid_lower_bound(ts timestamptz, generator regclass) RETURNS bigint
LANGUAGE c STABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'uid_lower_bound_of';
COMMENT ON FUNCTION uid_lower_bound(timestamptz, regclass) IS
  'Returns the smallest value above every id of a generator that can have been made before ts.';

CREATE FUNCTION uid_lower_bound(ts timestamptz, epoch timestamptz, tick_us bigint, shift integer) RETURNS bigint
LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'uid_lower_bound_fixed';
COMMENT ON FUNCTION uid_lower_bound(timestamptz, timestamptz, bigint, integer) IS
  'Returns the smallest value above every id that can have been made before ts, from the numbers of a layout. Use it '
  'in partition bounds and indexes. epoch and tick_us are those of uid_generator. shift is the number of bits below '
  'the time: datacenter_bits + worker_bits + sequence_bits.';

-- ---------------------------------------------------------------------------------------------------------
-- worker_node: one row for each worker id that a generator drew. It leads from an id back to its server.
-- ---------------------------------------------------------------------------------------------------------

-- A typed table, because PostgreSQL refuses ADD COLUMN on a typed table. A dump holds the rows of an extension's table,
-- but not its definition. So rows with a column that CREATE EXTENSION does not create could not be restored.
CREATE TYPE worker_node_row AS (
  id                bigint,
  host_name         varchar(64),
  port              varchar(64),
  type              integer,
  launch_date       date,
  modified          timestamptz,
  created           timestamptz,
  generator         text,
  worker_id         integer,
  datacenter_id     integer,
  system_identifier bigint,
  timeline          integer,
  database          oid,
  layout            text,
  tags              jsonb
);
COMMENT ON TYPE worker_node_row IS 'The columns of worker_node.';

-- An application may insert rows with the first seven columns only, and may leave out id, which has a default. The
-- columns that describe generators are then NULL.
CREATE SEQUENCE worker_node_id_seq;
CREATE TABLE worker_node OF worker_node_row (
  id                WITH OPTIONS NOT NULL DEFAULT pg_catalog.nextval('worker_node_id_seq'),
  host_name         WITH OPTIONS NOT NULL,
  port              WITH OPTIONS NOT NULL,
  type              WITH OPTIONS NOT NULL,
  launch_date       WITH OPTIONS NOT NULL,
  modified          WITH OPTIONS NOT NULL,
  created           WITH OPTIONS NOT NULL,
  system_identifier WITH OPTIONS NOT NULL DEFAULT (pg_catalog.pg_control_system()).system_identifier,
  tags              WITH OPTIONS NOT NULL DEFAULT '{}',
  PRIMARY KEY (system_identifier, id)
);
ALTER SEQUENCE worker_node_id_seq OWNED BY worker_node.id;
COMMENT ON TABLE worker_node IS
  'One row for each worker id that a generator drew. A generator draws a worker id at its first use after a server '
  'start or an alteration. A background process writes the row after that transaction, and no session waits for it.';
COMMENT ON COLUMN worker_node.id IS
  'number drawn from worker_node_id_seq; with uidgen.datacenter_id, worker_id is this number modulo 2^worker_bits, and '
  'without it the number is added to a hash of the database; a draw skips nodes of live generators';
COMMENT ON COLUMN worker_node.host_name IS 'host name of the server';
COMMENT ON COLUMN worker_node.port IS 'port of the server';
COMMENT ON COLUMN worker_node.type IS '1: in a container; 2: on a machine';
COMMENT ON COLUMN worker_node.launch_date IS 'day on which the server started';
COMMENT ON COLUMN worker_node.modified IS
  'last time at which the server recorded that it uses the worker id, to the hour';
COMMENT ON COLUMN worker_node.created IS 'time at which the worker id was drawn';
COMMENT ON COLUMN worker_node.generator IS
  'name of the generator at that time; NULL in a row that an application inserted, like worker_id, datacenter_id, '
  'timeline, database and layout';
COMMENT ON COLUMN worker_node.worker_id IS 'worker id in the generator''s ids';
COMMENT ON COLUMN worker_node.datacenter_id IS 'datacenter id in the generator''s ids';
COMMENT ON COLUMN worker_node.system_identifier IS
  'system identifier of the server that drew the id, as in pg_control_system()';
COMMENT ON COLUMN worker_node.timeline IS 'timeline of the server at that time';
COMMENT ON COLUMN worker_node.database IS 'oid of the database';
COMMENT ON COLUMN worker_node.layout IS
  'layout of the ids: widths of time, datacenter, worker and sequence; length of a tick and epoch in microseconds; '
  'field order; backup worker';
COMMENT ON COLUMN worker_node.tags IS 'data of applications; uidgen never reads or changes it';
GRANT SELECT ON worker_node TO pg_monitor;
GRANT SELECT, INSERT ON worker_node TO pg_database_owner; -- to dump and restore
GRANT SELECT, UPDATE ON SEQUENCE worker_node_id_seq TO pg_database_owner;
SELECT pg_catalog.pg_extension_config_dump('worker_node', '');
SELECT pg_catalog.pg_extension_config_dump('worker_node_id_seq', '');
COMMENT ON SEQUENCE worker_node_id_seq IS
  'Counter for worker ids. uidgen draws from it in any transaction, even in a read-only one.';

CREATE FUNCTION uid_check_nodes(nodes regclass DEFAULT 'worker_node',
    OUT layout text, OUT datacenter_id integer, OUT worker_id integer,
    OUT a_system_identifier bigint, OUT a_database oid, OUT a_host_name text, OUT a_port text, OUT a_generator text,
    OUT b_system_identifier bigint, OUT b_database oid, OUT b_host_name text, OUT b_port text, OUT b_generator text,
    OUT shared_from timestamptz, OUT shared_until timestamptz)
RETURNS SETOF record
LANGUAGE plpgsql STABLE STRICT
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
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

-- ---------------------------------------------------------------------------------------------------------
-- Segments
-- ---------------------------------------------------------------------------------------------------------

CREATE TABLE uid_segment (
  name        text     PRIMARY KEY CHECK (name <> ''),
  sequence    regclass NOT NULL UNIQUE,
  step        bigint   CHECK (step BETWEEN 1 AND 1099511627776),
  max_step    bigint   CHECK (max_step BETWEEN coalesce(step, 1) AND 1099511627776),
  description text
);
COMMENT ON TABLE uid_segment IS
  'One row for each named segment. segment_create() inserts the row, and a drop of the sequence deletes it.';
COMMENT ON COLUMN uid_segment.name IS 'name of the segment, any text';
COMMENT ON COLUMN uid_segment.sequence IS 'sequence that holds the counter; USAGE on it lets a role draw';
COMMENT ON COLUMN uid_segment.step IS
  'initial and minimum number of values that one record reserves, 1 to 2^40; fewer while another session moves the '
  'counter, at the end of the sequence, and in a small sequence; NULL: uidgen.segment_step';
COMMENT ON COLUMN uid_segment.max_step IS
  'limit on the growth of the step, from step to 2^40; NULL: uidgen.segment_max_step';
COMMENT ON COLUMN uid_segment.description IS 'purpose of the segment';

CREATE TRIGGER uid_check_registration BEFORE INSERT OR UPDATE ON uid_segment
  FOR EACH ROW EXECUTE FUNCTION uid_check_registration('sequence', 'uid_segments');
CREATE TRIGGER uid_keep_local BEFORE INSERT OR UPDATE OR DELETE ON uid_segment
  FOR EACH ROW EXECUTE FUNCTION uid_keep_local();
CREATE TRIGGER uid_keep_local_truncate BEFORE TRUNCATE ON uid_segment
  FOR EACH STATEMENT EXECUTE FUNCTION uid_keep_local();
ALTER TABLE uid_segment ENABLE ALWAYS TRIGGER uid_keep_local;
ALTER TABLE uid_segment ENABLE ALWAYS TRIGGER uid_keep_local_truncate;
GRANT SELECT, INSERT ON uid_segment TO PUBLIC;
SELECT pg_catalog.pg_extension_config_dump('uid_segment',
  'WHERE sequence::pg_catalog.oid IN (SELECT oid FROM pg_catalog.pg_class WHERE relkind = ''S'')');

CREATE FUNCTION uid_segment_changed() RETURNS trigger
LANGUAGE c AS 'MODULE_PATHNAME', 'uid_segment_changed';
COMMENT ON FUNCTION uid_segment_changed() IS
  'Trigger function of uid_segment. It makes every session look up segment names again.';
CREATE TRIGGER uid_segment_changed AFTER INSERT OR UPDATE OR DELETE ON uid_segment
  FOR EACH STATEMENT EXECUTE FUNCTION uid_segment_changed();

-- NULL is valid and stands for the setting.
CREATE FUNCTION uid_check_steps(name text, step bigint, max_step bigint) RETURNS void
LANGUAGE plpgsql IMMUTABLE
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
  IF step NOT BETWEEN 1 AND 1099511627776 THEN
    RAISE EXCEPTION 'invalid step % for segment "%"', step, name
      USING ERRCODE = 'invalid_parameter_value',
            HINT = 'Use a step from 1 to 1099511627776 (2^40), or NULL for uidgen.segment_step.';
  END IF;
  IF max_step NOT BETWEEN coalesce(step, 1) AND 1099511627776 THEN
    RAISE EXCEPTION 'invalid max_step % for segment "%"', max_step, name
      USING ERRCODE = 'invalid_parameter_value',
            HINT = 'Use a max_step from step to 1099511627776 (2^40), or NULL for uidgen.segment_max_step.';
  END IF;
END
$$;
COMMENT ON FUNCTION uid_check_steps(text, bigint, bigint) IS
  'Fails if a segment cannot have these values of step and max_step.';

CREATE FUNCTION segment_create(name text, start bigint DEFAULT 1, step bigint DEFAULT NULL,
    max_step bigint DEFAULT NULL, description text DEFAULT NULL) RETURNS regclass
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  home text := (SELECT quote_ident(n.nspname) FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace
                 WHERE e.extname = 'uidgen');
  -- A name that is too long for an identifier gets a sequence named after its hash.
  relation text := CASE WHEN octet_length(name) <= 63 THEN name ELSE 'segment_' || md5(name) END;
  sequence regclass;
BEGIN
  IF name IS NULL OR name = '' THEN
    RAISE EXCEPTION 'invalid segment name: "%"', name
      USING ERRCODE = 'invalid_name', HINT = 'Use a text that is not empty.';
  END IF;
  IF start IS NULL THEN
    RAISE EXCEPTION 'start of segment "%" must not be null', name
      USING ERRCODE = 'null_value_not_allowed', HINT = 'Pass the first value of the segment as start.';
  END IF;
  EXECUTE format('SELECT %s.uid_check_steps($1, $2, $3)', home) USING name, step, max_step;
  EXECUTE format('CREATE SEQUENCE uid_segments.%I START %s MINVALUE %s', relation, start, least(start, 1));
  sequence := format('uid_segments.%I', relation)::regclass;
  EXECUTE format('INSERT INTO %s.uid_segment VALUES ($1, $2, $3, $4, $5)', home)
    USING name, sequence, step, max_step, description;
  RETURN sequence;
END
$$;
COMMENT ON FUNCTION segment_create(text, bigint, bigint, bigint, text) IS
  'Creates a named segment whose first value is start. It reserves step values at a time (NULL: uidgen.segment_step), '
  'and up to max_step under load (NULL: uidgen.segment_max_step). The caller owns its sequence in the schema '
  'uid_segments, and needs CREATE on that schema. Let other roles draw with GRANT USAGE ON SEQUENCE.';

CREATE FUNCTION uid_change_segment(sequence regclass, step bigint, max_step bigint, description text) RETURNS void
LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'uid_change_segment';
COMMENT ON FUNCTION uid_change_segment IS
  'Sets those of step, max_step and description that are not NULL in the row of a segment. segment_alter() calls it. '
  'Only the owner of the sequence may call it.';

CREATE FUNCTION segment_alter(name text, step bigint DEFAULT NULL, max_step bigint DEFAULT NULL,
    description text DEFAULT NULL) RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  home text := (SELECT quote_ident(n.nspname) FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace
                 WHERE e.extname = 'uidgen');
  segment record;
BEGIN
  EXECUTE format('SELECT s.sequence, s.step, s.max_step FROM %s.uid_segment s WHERE s.name = $1', home)
    INTO segment USING name;
  IF segment.sequence IS NULL THEN
    RAISE EXCEPTION 'segment "%" does not exist', name
      USING ERRCODE = 'undefined_object', HINT = 'Run SELECT name FROM uid_segment to list the named segments.';
  END IF;
  EXECUTE format('SELECT %s.uid_check_steps($1, $2, $3)', home)
    USING name, coalesce(nullif(step, 0), segment.step), coalesce(nullif(max_step, 0), segment.max_step);
  EXECUTE format('SELECT %s.uid_change_segment($1, $2, $3, $4)', home)
    USING segment.sequence, step, max_step, description;
END
$$;
COMMENT ON FUNCTION segment_alter(text, bigint, bigint, text) IS
  'Changes step, max_step or description of a named segment. An argument that is NULL leaves its field unchanged. A '
  'step or max_step of 0 resets it to the setting (uidgen.segment_step, uidgen.segment_max_step). A new step or '
  'max_step applies from the next range on. Only the owner of the sequence may call it.';

CREATE FUNCTION segment_drop(name text) RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  home text := (SELECT quote_ident(n.nspname) FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace
                 WHERE e.extname = 'uidgen');
  sequence regclass;
BEGIN
  EXECUTE format('SELECT s.sequence FROM %s.uid_segment s WHERE s.name = $1', home) INTO sequence USING name;
  IF sequence IS NULL THEN
    RAISE EXCEPTION 'segment "%" does not exist', name
      USING ERRCODE = 'undefined_object', HINT = 'Run SELECT name FROM uid_segment to list the named segments.';
  END IF;
  EXECUTE format('DROP SEQUENCE %s', sequence);
END
$$;
COMMENT ON FUNCTION segment_drop(text) IS
  'Drops a named segment and its sequence. Only the owner of the sequence may call it.';

CREATE FUNCTION segment_next(name text) RETURNS bigint
LANGUAGE c VOLATILE PARALLEL SAFE AS 'MODULE_PATHNAME', 'segment_next_named';
COMMENT ON FUNCTION segment_next(text) IS
  'Returns the next value of the segment with that name. If there is no such segment, the name is that of a sequence, '
  'which may be qualified and is looked up as nextval does.';

CREATE FUNCTION segment_next(sequence regclass) RETURNS bigint
LANGUAGE c VOLATILE PARALLEL SAFE AS 'MODULE_PATHNAME', 'segment_next_of';
COMMENT ON FUNCTION segment_next(regclass) IS
  'Returns the next value of a sequence, which may be any permanent one. Unlike a value of nextval, it is durable '
  'before it is returned, in order across sessions, and does not cost a log record for every 32 values. The caller '
  'needs USAGE on the sequence.';

CREATE FUNCTION segment_next_batch(name text, count integer) RETURNS SETOF bigint
LANGUAGE c VOLATILE STRICT PARALLEL SAFE ROWS 1000 AS 'MODULE_PATHNAME', 'segment_next_batch_named';
COMMENT ON FUNCTION segment_next_batch(text, integer) IS
  'Returns count values of a segment by its name, in order, one in a row. The call takes all values before it returns '
  'the first one. A count of 0 returns no row, and a negative count is an error.';

CREATE FUNCTION segment_next_batch(sequence regclass, count integer) RETURNS SETOF bigint
LANGUAGE c VOLATILE STRICT PARALLEL SAFE ROWS 1000 AS 'MODULE_PATHNAME', 'segment_next_batch_of';
COMMENT ON FUNCTION segment_next_batch(regclass, integer) IS
  'Returns count values of a sequence, in order, one in a row. The call takes all values before it returns the first '
  'one.';

CREATE FUNCTION segment_next_array(name text, count integer) RETURNS bigint[]
LANGUAGE c VOLATILE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'segment_next_array_named';
COMMENT ON FUNCTION segment_next_array(text, integer) IS
  'Returns count values of a segment by its name, in order, as an array.';

CREATE FUNCTION segment_next_array(sequence regclass, count integer) RETURNS bigint[]
LANGUAGE c VOLATILE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'segment_next_array_of';
COMMENT ON FUNCTION segment_next_array(regclass, integer) IS
  'Returns count values of a sequence, in order, as an array.';

CREATE FUNCTION segment_last(name text) RETURNS bigint
LANGUAGE c VOLATILE STRICT PARALLEL RESTRICTED AS 'MODULE_PATHNAME', 'segment_last_named';
COMMENT ON FUNCTION segment_last(text) IS
  'Returns the last value that this session drew from the segment with that name, as currval does. It fails before '
  'the first value. The caller needs USAGE or SELECT on the sequence.';

CREATE FUNCTION segment_last(sequence regclass) RETURNS bigint
LANGUAGE c VOLATILE STRICT PARALLEL RESTRICTED AS 'MODULE_PATHNAME', 'segment_last_of';
COMMENT ON FUNCTION segment_last(regclass) IS
  'Returns the last value that this session drew from a sequence with segment_next(), as currval does. It fails '
  'before the first value. The caller needs USAGE or SELECT on the sequence.';

CREATE FUNCTION segment_set(name text, value bigint) RETURNS bigint
LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'segment_set_named';
COMMENT ON FUNCTION segment_set(text, bigint) IS
  'Makes value the next value of the segment with that name, as setval(sequence, value, false) does. This session '
  'uses it at once, and other sessions from the first call of their next transaction on. A lower value makes the '
  'segment repeat values. The caller needs UPDATE on the sequence.';

CREATE FUNCTION segment_set(sequence regclass, value bigint) RETURNS bigint
LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'segment_set_of';
COMMENT ON FUNCTION segment_set(regclass, bigint) IS
  'Makes value the next value of a sequence, as segment_set(text, bigint) does.';

-- ---------------------------------------------------------------------------------------------------------
-- A drop of a sequence deletes its row. Otherwise the row could later match another sequence with the same OID.
-- ---------------------------------------------------------------------------------------------------------

CREATE FUNCTION uid_forget_dropped() RETURNS event_trigger
LANGUAGE c AS 'MODULE_PATHNAME', 'uid_forget_dropped';
COMMENT ON FUNCTION uid_forget_dropped() IS
  'Event trigger function. It deletes the rows of dropped sequences from uid_generator and uid_segment.';
CREATE EVENT TRIGGER uid_forget_dropped ON sql_drop EXECUTE FUNCTION uid_forget_dropped();
ALTER EVENT TRIGGER uid_forget_dropped ENABLE ALWAYS;
COMMENT ON EVENT TRIGGER uid_forget_dropped IS
  'Keeps uid_generator and uid_segment free of rows whose sequence was dropped.';

-- ---------------------------------------------------------------------------------------------------------
-- Fleets: the member's side
-- ---------------------------------------------------------------------------------------------------------

CREATE FUNCTION uid_registrar(
    OUT connected boolean, OUT registry text, OUT away_since timestamptz, OUT last_error text,
    OUT last_error_at timestamptz, OUT fleet bigint, OUT term bigint, OUT clock_offset_ms bigint,
    OUT database text, OUT generator text, OUT node bigint, OUT granted_until timestamptz, OUT renewals bigint,
    OUT superseded boolean, OUT error text)
RETURNS SETOF record
LANGUAGE c VOLATILE STRICT PARALLEL RESTRICTED ROWS 10 AS 'MODULE_PATHNAME', 'uid_registrar';
COMMENT ON FUNCTION uid_registrar() IS
  'Returns the state of this server''s registrar, the process that asks the registry of the fleet for grants, once for '
  'each generator that has drawn with a registry since the server started. It returns no rows if uidgen is not '
  'preloaded. Only members of pg_monitor may call it.';

CREATE VIEW uid_registry_status AS SELECT * FROM uid_registrar();
COMMENT ON VIEW uid_registry_status IS
  'The registry of this server''s fleet, and the grants of the generators in all databases of the server. connected: '
  'the registrar is connected to the registry. registry: host, port, dbname and user of uidgen.registry, for members of '
  'pg_read_all_settings. away_since: since when the registry cannot be used; NULL: it can, or no generator needs it. '
  'last_error and last_error_at: the last error, even if it is over. fleet and term: those of the last answer. clock_offset_ms: '
  'the clock of this server minus that of the registry. Of each generator: database and generator name it; until '
  'granted_until it draws with its node, even if the registry is away; renewals counts grants since the server '
  'started; superseded: another server continues as this generator, or its node was taken over, so it draws '
  'nothing; error: why the registry granted nothing last time. '
  'If no generator has used the registry since the server started, there is one row without a generator.';

CREATE FUNCTION uid_fleet_move() RETURNS void
LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'uid_fleet_move';
COMMENT ON FUNCTION uid_fleet_move() IS
  'Gives up the grants of all generators of this server, in all databases. At their next draw they get new nodes from '
  'the fleet that uidgen.registry names. Run it after uidgen.registry was changed to another fleet, and on a copy that '
  'the registry refuses as superseded. Only superusers may call it.';

REVOKE EXECUTE ON FUNCTION uid_registrar(), uid_fleet_move() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION uid_registrar() TO pg_monitor;
GRANT SELECT ON uid_registry_status TO pg_monitor;

-- ---------------------------------------------------------------------------------------------------------
-- Live state
-- ---------------------------------------------------------------------------------------------------------

CREATE FUNCTION uid_slots(
    OUT sequence regclass, OUT kind text, OUT protection text, OUT node bigint, OUT datacenter_id integer,
    OUT worker_id integer, OUT last_time timestamptz, OUT leased_until timestamptz, OUT range_first bigint, OUT range_length bigint, OUT range_left bigint,
    OUT records bigint, OUT flush_waits bigint, OUT standby_waits bigint, OUT clock_waits bigint,
    OUT next_ready boolean, OUT step bigint, OUT step_reason text,
    OUT refills_first bigint, OUT refills_ahead bigint, OUT refills_late bigint, OUT refills_disturbed bigint,
    OUT last_refill timestamptz, OUT rate double precision,
    OUT ring_size bigint, OUT ring_filled double precision, OUT padded_initial bigint, OUT padded_threshold bigint,
    OUT padded_schedule bigint, OUT padded_inline bigint, OUT rejected_puts bigint, OUT rejected_takes bigint,
    OUT discarded_stale bigint, OUT ahead_ms bigint, OUT granted_until timestamptz)
RETURNS SETOF record
LANGUAGE c VOLATILE STRICT PARALLEL RESTRICTED ROWS 100 AS 'MODULE_PATHNAME', 'uid_slots';
COMMENT ON FUNCTION uid_slots() IS
  'Returns the slots in shared memory of generators and segments of this database that were used since the server '
  'started. It returns no rows if uidgen is not preloaded. The values are NULL if the caller has neither USAGE nor '
  'SELECT on the sequence and is not a member of pg_read_all_stats.';

CREATE VIEW uid_generator_status AS
SELECT g.generator, g.preset, s.protection, s.node, s.datacenter_id, s.worker_id, s.last_time, s.leased_until,
       s.records, s.flush_waits, s.standby_waits, s.clock_waits, s.ahead_ms,
       s.ring_size, s.ring_filled, s.padded_initial, s.padded_threshold, s.padded_schedule, s.padded_inline,
       s.rejected_puts, s.rejected_takes, s.discarded_stale, s.granted_until
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
  'discarded because they were too old. The values are NULL if the generator was not used since the server started.';

CREATE VIEW uid_generator_limits AS
SELECT g.generator, g.preset, e.ends,
       extract(epoch FROM pg_catalog.clock_timestamp() - g.epoch)::float8 OPERATOR(pg_catalog./) l.seconds AS life_used,
       (2::float8 OPERATOR(pg_catalog.^)
          (g.sequence_bits
           + CASE WHEN g.when_full::text OPERATOR(pg_catalog.=) 'backup'::text THEN 1 ELSE 0 END)::float8)
         OPERATOR(pg_catalog.*) 1000000::float8 OPERATOR(pg_catalog./) g.tick_us::float8 AS ids_per_second,
       n.numbers AS worker_ids, u.used AS worker_ids_used, n.numbers - u.used AS worker_ids_left
  FROM uid_generator_config g
 CROSS JOIN LATERAL (SELECT 1::bigint << (g.worker_bits - g.backup_worker::integer) AS numbers) n
 CROSS JOIN LATERAL (SELECT (2::float8 OPERATOR(pg_catalog.^) g.time_bits::float8) OPERATOR(pg_catalog.*)
                            (g.tick_us::float8 OPERATOR(pg_catalog./) 1000000::float8) AS seconds) l
 CROSS JOIN LATERAL (SELECT pg_catalog.to_timestamp(extract(epoch FROM g.epoch)::float8
                                                    OPERATOR(pg_catalog.+) l.seconds) AS ends) e
 CROSS JOIN LATERAL (SELECT pg_catalog.count(DISTINCT w.worker_id) AS used FROM worker_node w
                       JOIN pg_catalog.pg_class c ON c.oid OPERATOR(pg_catalog.=) g.generator::oid
                      WHERE w.system_identifier OPERATOR(pg_catalog.=)
                            (SELECT s.system_identifier FROM pg_catalog.pg_control_system() s)
                        AND w.database OPERATOR(pg_catalog.=)
                            (SELECT d.oid FROM pg_catalog.pg_database d
                              WHERE d.datname OPERATOR(pg_catalog.=) pg_catalog.current_database())
                        AND w.generator OPERATOR(pg_catalog.=)
                            pg_catalog.format('%I.%I'::text, c.relnamespace::regnamespace::text, c.relname)) u;
COMMENT ON VIEW uid_generator_limits IS
  'Capacity of each generator''s layout: the end of its time bits, the share of its life that is used, and the '
  'highest sustainable rate. worker_ids is the number of worker ids, worker_ids_used counts those that worker_node '
  'records as drawn at least once in this database on this server, and worker_ids_left is the difference. In the last two years before the end, '
  'uidgen issues a WARNING.';

CREATE VIEW uid_generator_columns AS
SELECT g.generator, d.adrelid::regclass AS table_name, a.attname AS column_name,
       pg_catalog.pg_get_expr(d.adbin, d.adrelid) AS column_default
  FROM uid_generator_config g
  JOIN pg_catalog.pg_depend p ON p.classid OPERATOR(pg_catalog.=) 'pg_catalog.pg_attrdef'::regclass::oid
   AND (p.refclassid OPERATOR(pg_catalog.=) 'pg_catalog.pg_class'::regclass::oid
           AND p.refobjid OPERATOR(pg_catalog.=) g.generator::oid
        OR p.refclassid OPERATOR(pg_catalog.=) 'pg_catalog.pg_proc'::regclass::oid
           AND p.refobjid OPERATOR(pg_catalog.=) 'uid_next()'::regprocedure::oid
           AND g.is_default)
  JOIN pg_catalog.pg_attrdef d ON d.oid OPERATOR(pg_catalog.=) p.objid
  JOIN pg_catalog.pg_attribute a ON a.attrelid OPERATOR(pg_catalog.=) d.adrelid
   AND a.attnum OPERATOR(pg_catalog.=) d.adnum;
COMMENT ON VIEW uid_generator_columns IS
  'The columns whose default draws from each generator. Together with worker_node, which names the generator, it '
  'leads from an id back to its table.';

CREATE VIEW segment_status AS
SELECT s.sequence, n.name, s.range_first, s.range_length, s.range_left,
       (s.range_length - s.range_left)::float8 OPERATOR(pg_catalog./) nullif(s.range_length, 0)::float8 AS share_used,
       s.next_ready, s.step, s.step_reason, s.refills_first, s.refills_ahead, s.refills_late, s.refills_disturbed,
       s.records, s.flush_waits, s.standby_waits, s.last_refill, s.rate
  FROM uid_slots() s LEFT JOIN uid_segment n ON n.sequence::oid OPERATOR(pg_catalog.=) s.sequence::oid
 WHERE s.kind = 'segment';
COMMENT ON VIEW segment_status IS
  'Live state of each segment used since the server started: the range in use, the share of it that is used, and '
  'whether the next range is reserved. step_reason explains the step: base, grown, kept, shrunk, or disturbed by '
  'nextval or setval in another session. refills_* count reserved ranges by cause. flush_waits and standby_waits '
  'count the calls that waited for a flush and for a standby. last_refill is the time of the last reservation. rate '
  'is the number of values drawn per second between the last two reservations, and NULL before the second one.';

CREATE VIEW t_sequence AS
SELECT n.name AS pk_seq_name,
       CASE WHEN v.visible THEN
         coalesce(s.range_first, CASE WHEN c.counter IS NULL THEN p.seqstart
                                      WHEN l.after BETWEEN p.seqmin::numeric AND p.seqmax::numeric THEN l.after::bigint
                                      WHEN p.seqcycle THEN
                                        CASE WHEN p.seqincrement > 0::bigint THEN p.seqmin ELSE p.seqmax END END) END
         AS current_val,
       CASE WHEN v.visible THEN
         coalesce(s.range_length, n.step, pg_catalog.current_setting('uidgen.segment_step', true)::bigint) END
         AS increment_val
  FROM uid_segment n
  JOIN pg_catalog.pg_sequence p ON p.seqrelid OPERATOR(pg_catalog.=) n.sequence::oid
  LEFT JOIN uid_slots() s ON s.sequence::oid OPERATOR(pg_catalog.=) n.sequence::oid
  CROSS JOIN LATERAL (SELECT pg_catalog.has_sequence_privilege(n.sequence, 'USAGE, SELECT') AS visible) v
  CROSS JOIN LATERAL (SELECT CASE WHEN v.visible THEN pg_catalog.pg_sequence_last_value(n.sequence) END AS counter) c
  CROSS JOIN LATERAL (SELECT c.counter::numeric + p.seqincrement::numeric AS after) l;
COMMENT ON VIEW t_sequence IS
  'The named segments in the form of a t_sequence table. current_val is the first value of the range in use at the '
  'last draw, and increment_val is the length of that range. Before the first draw after a server start, current_val '
  'is the value after the counter, but the first draw continues the range that a clean stop saved. For a sequence '
  'that was never called, that value is its START. At the end of a sequence without CYCLE it is NULL. Both are NULL '
  'if the caller has neither USAGE nor SELECT on the sequence.';
GRANT SELECT ON uid_generator_status, uid_generator_limits, uid_generator_columns, segment_status, t_sequence TO PUBLIC;

-- ---------------------------------------------------------------------------------------------------------
-- Fleets: the tables of a registry, and what members and administrators call on it. A database is the registry of a
-- fleet from its first uid_fleet_admit() on.
-- ---------------------------------------------------------------------------------------------------------

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
  asked_datacenter  boolean     NOT NULL DEFAULT false,
  asked_length      bigint      NOT NULL DEFAULT 0,
  clock_offset_us   bigint,
  last_heard        timestamptz,
  PRIMARY KEY (pool, node)
);
CREATE INDEX uid_fleet_node_until ON uid_fleet_node (pool, granted_until, node);
CREATE INDEX uid_fleet_node_incarnation ON uid_fleet_node (pool, incarnation) WHERE incarnation <> 0;
CREATE INDEX uid_fleet_node_heard ON uid_fleet_node (last_heard);
CREATE INDEX uid_fleet_node_asked ON uid_fleet_node (pool, node) WHERE asked_datacenter;
CREATE INDEX uid_fleet_node_sticky ON uid_fleet_node (pool, generator, database, host, port) WHERE policy = 'sticky';
COMMENT ON TABLE uid_fleet_node IS
  'One row for each node that was ever granted, with its last grant. No row is ever deleted, so a node is never '
  'granted twice for the same time.';
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
COMMENT ON COLUMN uid_fleet_node.asked_datacenter IS 'true: the holder asked for this datacenter id';
COMMENT ON COLUMN uid_fleet_node.asked_length IS
  'length in ticks that the holder asked for last; at most half of it is how far ahead of its clock it draws';
COMMENT ON COLUMN uid_fleet_node.clock_offset_us IS
  'clock of the holder''s server minus that of the registry, at the last call, in microseconds';
COMMENT ON COLUMN uid_fleet_node.last_heard IS 'time of the last call by the registry''s clock';

CREATE SEQUENCE uid_fleet_serial;
COMMENT ON SEQUENCE uid_fleet_serial IS
  'Counter of the answers of a fleet''s registry. If a member shows a number above it, the registry has lost commits.';

DO $$
DECLARE
  name text;
BEGIN
  FOREACH name IN ARRAY ARRAY['uid_fleet_state', 'uid_fleet_pool', 'uid_fleet_node'] LOOP
    EXECUTE pg_catalog.format(
      'CREATE TRIGGER uid_keep_local BEFORE INSERT OR UPDATE OR DELETE ON %1$I
         FOR EACH ROW EXECUTE FUNCTION uid_keep_local(''fleet'');
       CREATE TRIGGER uid_keep_local_truncate BEFORE TRUNCATE ON %1$I
         FOR EACH STATEMENT EXECUTE FUNCTION uid_keep_local(''fleet'');
       ALTER TABLE %1$I ENABLE ALWAYS TRIGGER uid_keep_local;
       ALTER TABLE %1$I ENABLE ALWAYS TRIGGER uid_keep_local_truncate', name);
  END LOOP;
END
$$;

-- To dump and restore.
GRANT SELECT, INSERT ON uid_fleet_state, uid_fleet_pool, uid_fleet_node TO pg_database_owner;
GRANT SELECT, UPDATE ON SEQUENCE uid_fleet_serial TO pg_database_owner;
SELECT pg_catalog.pg_extension_config_dump('uid_fleet_state', '');
SELECT pg_catalog.pg_extension_config_dump('uid_fleet_pool', '');
SELECT pg_catalog.pg_extension_config_dump('uid_fleet_node', '');
SELECT pg_catalog.pg_extension_config_dump('uid_fleet_serial', '');

-- No SET clause: it would end with the function, but synchronous_commit must be in force at the commit.
CREATE FUNCTION uid_fleet_call(protocol integer, incarnation bigint, former bigint[],
    fleet bigint, term bigint, serial bigint,
    held_node bigint, held_from bigint, held_until bigint, held_line bigint, held_term bigint, held_serial bigint,
    clock_us bigint, lowest bigint, length bigint,
    preset text, epoch_us bigint, tick_us bigint, time_bits integer, datacenter_bits integer, worker_bits integer,
    sequence_bits integer, sequence_first boolean, backup_worker boolean,
    policy text, worker_number integer, datacenter_id integer, former_node bigint, former_until bigint,
    host text, port text, system_identifier bigint, timeline integer, database text, generator text, version text,
    OUT refusal text, OUT message text, OUT hint text, OUT retry_after_ms bigint,
    OUT node bigint, OUT granted_from bigint, OUT granted_until bigint, OUT line bigint,
    OUT fleet bigint, OUT term bigint, OUT serial bigint, OUT registry_clock_us bigint, OUT registry_version text)
RETURNS record
LANGUAGE c VOLATILE SECURITY DEFINER PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'uid_fleet_call';
COMMENT ON FUNCTION uid_fleet_call(integer, bigint, bigint[], bigint, bigint, bigint, bigint, bigint, bigint, bigint,
  bigint, bigint, bigint, bigint, bigint, text, bigint, bigint, integer, integer, integer, integer, boolean, boolean,
  text, integer, integer, bigint, bigint, text, text, bigint, integer, text, text, text) IS
  'Members of a fleet call it on the registry to get or to keep a node. A refusal is not an error but a row whose '
  'column refusal is not NULL. It fails in a transaction block, on a standby, and if this database is not a '
  'registry. Only roles of uid_fleet_admit() may call it.';

CREATE FUNCTION uid_fleet_fence() RETURNS timestamptz
LANGUAGE c VOLATILE STRICT SECURITY DEFINER PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'uid_fleet_fence';
COMMENT ON FUNCTION uid_fleet_fence() IS
  'Raises a fence on the registry of a fleet. Run it after a restore from a backup, or if the registry may have lost '
  'commits for another reason. Members that are alive keep their nodes. Newcomers are accepted again from the returned '
  'time on. The registry raises a fence by itself if its server, timeline, host, data directory or database has '
  'changed. It fails in a transaction block.';

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
  'on. The holder must not run any more: if it does, ids collide. It fails if the node has no holder, during a '
  'handover, and in a transaction block.';

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
  home text := (SELECT quote_ident(n.nspname) FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace
                 WHERE e.extname = 'uidgen');
  setting text;
BEGIN
  IF role IS NULL THEN
    RAISE EXCEPTION 'role must not be null'
      USING ERRCODE = 'null_value_not_allowed', HINT = 'Pass the name of the role that members connect with.';
  END IF;
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
  EXECUTE format('GRANT USAGE ON SCHEMA %s TO %s', home, role);
  EXECUTE format('GRANT EXECUTE ON FUNCTION %s.uid_fleet_call TO %s', home, role);
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
  'Makes this database the registry of a fleet, unless it is one already, and lets a role call uid_fleet_call(). '
  'Members connect with that role, which needs no other right. It also sets the timeouts of the role in this database. '
  'Only superusers and the owner of the database may call it.';

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
                                     WHERE o.pool = n.pool AND o.incarnation = n.incarnation
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

GRANT SELECT ON uid_fleet, uid_fleet_pools TO pg_monitor;
REVOKE EXECUTE ON FUNCTION uid_fleet_call, uid_fleet_fence, uid_fleet_handover, uid_fleet_takeover, uid_fleet_reserve,
  uid_fleet_admit FROM PUBLIC;
GRANT EXECUTE ON FUNCTION uid_fleet_fence, uid_fleet_handover, uid_fleet_takeover, uid_fleet_reserve, uid_fleet_admit
  TO pg_database_owner;

-- An install script runs with client_min_messages at WARNING or above. A session that asks for less sees the notice.
DO $$
BEGIN
  IF current_setting('uidgen.datacenter_id', true) = '-1' AND coalesce(current_setting('uidgen.registry', true), '') = ''
     AND (SELECT reset_val NOT IN ('warning', 'error') FROM pg_settings WHERE name = 'client_min_messages') THEN
    PERFORM set_config('client_min_messages', 'notice', true);
    RAISE NOTICE 'uidgen.datacenter_id is not set'
      USING DETAIL = 'Ids of this database are only unlikely to collide with ids of other databases.',
            HINT = format('If they must not collide, give each database a number of its own: '
                          'ALTER DATABASE %I SET uidgen.datacenter_id = 1.', current_database());
  END IF;
END
$$;
