-- uidgen 1.0.0: the SQL surface. A released install script never changes.
\echo Use "CREATE EXTENSION uidgen" to load this file. \quit

-- ---------------------------------------------------------------------------------------------------------
-- Names. A role that is no superuser may run this script, with the rights of a superuser, in a schema of its own. It may
-- create functions and operators there beforehand, and rename the schema meanwhile. So in this script and in those that
-- will update to later versions:
--
--   1. The first statement locks the schema's name until the end of the transaction. The last one checks that all
--      objects are in the schemas that they were made in, and depend on nothing elsewhere.
--   2. What PostgreSQL runs at once, and operators and functions in views, defaults and constraints, are qualified with
--      pg_catalog or have an exact match there. No statement calls a function of the extension.
--   3. What runs in every session is in the schema uid_internal, which belongs to the superuser.
--   4. Privileges are granted in one place, at the end, after default privileges were taken back.
-- ---------------------------------------------------------------------------------------------------------

DO $$
BEGIN
  PERFORM FROM pg_catalog.pg_extension e
          JOIN pg_catalog.pg_namespace n ON n.oid OPERATOR(pg_catalog.=) e.extnamespace
         WHERE e.extname OPERATOR(pg_catalog.=) 'uidgen'::pg_catalog.name
           AND pg_catalog.format('%I, pg_temp'::pg_catalog.text, n.nspname) OPERATOR(pg_catalog.=)
               pg_catalog.current_setting('search_path'::pg_catalog.text)
           FOR KEY SHARE OF n;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'schema of extension uidgen was renamed by another session'
      USING ERRCODE = 'object_not_in_prerequisite_state', HINT = 'Run CREATE EXTENSION again.';
  END IF;
END
$$;

-- ---------------------------------------------------------------------------------------------------------
-- The schemas for the sequences of generators and named segments, separate from the relations of applications.
-- Every role may name the sequences. A role needs USAGE on a sequence to draw, and CREATE on the schema to create.
-- ---------------------------------------------------------------------------------------------------------

CREATE SCHEMA uid_internal;
COMMENT ON SCHEMA uid_internal IS
  'Objects of uidgen that applications do not use.';
CREATE SCHEMA uid_secrets;
COMMENT ON SCHEMA uid_secrets IS
  'Tables of uidgen with secrets. Only the owner of the database may name them, for dumps.';
-- The owner of the extension's schema can rename it, and put another one in its place while a function runs. So functions
-- in PL/pgSQL name views and functions of uid_internal, whose bodies were bound to the others when they were made. Where
-- a caller has named the schema, they look it up, and name its objects in EXECUTE. The types of arguments match exactly,
-- because another role that may create in that schema could add a better match.
CREATE FUNCTION uid_internal.uid_home() RETURNS text
LANGUAGE sql STABLE PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
AS $$
  SELECT quote_ident(n.nspname) FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace
   WHERE e.extname = 'uidgen'
$$;
COMMENT ON FUNCTION uid_internal.uid_home() IS 'Returns the name of the extension''s schema, quoted.';
CREATE SCHEMA uid_generators;
CREATE SCHEMA uid_segments;
COMMENT ON SCHEMA uid_generators IS
  'Lease sequences of uidgen''s generators, one for each generator. last_value is the generator''s high-water mark: '
  'the highest tick ever leased.';
COMMENT ON SCHEMA uid_segments IS 'Sequences of uidgen''s named segments, one for each segment.';

-- ---------------------------------------------------------------------------------------------------------
-- Generators
-- ---------------------------------------------------------------------------------------------------------

-- A field is a column here, with the default of hand-written rows and older dumps, and a parameter of the same name of
-- uid_generator_create() and uid_generator_alter(). The library finds columns by name. The defaults of
-- uid_generator_create() are those of the builtin generator (src/pg/config/builtin.cpp) and of uid_preset.
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
  'early, up to max_ahead_ms; backup: use the backup worker, which borrows';
COMMENT ON COLUMN uid_generator.when_back IS
  'policy when the clock moves backwards; hold: stay at the last tick within the tolerance; wait: wait within the '
  'tolerance; backup: use the backup worker; error: fail';
COMMENT ON COLUMN uid_generator.tolerance_ms IS
  'limit on how far the clock may move backwards before when_back fails, in milliseconds; with when_back '
  'backup: how far ids of the backup worker may be ahead of the clock; NULL: max_ahead_ms is the only limit';
COMMENT ON COLUMN uid_generator.spread IS
  'true: the sequence numbers of a tick start at a varying number instead of 0, so that id % n is even on a quiet '
  'generator';
COMMENT ON COLUMN uid_generator.worker_policy IS
  'disposable: a new worker id at each server start; sticky: the last datacenter and worker id of this host and port; '
  'static: worker_number';
COMMENT ON COLUMN uid_generator.worker_number IS 'worker id with worker_policy static';
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
CREATE FUNCTION uid_internal.uid_check_registration() RETURNS trigger
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
  -- NULL stands for the setting.
  IF TG_ARGV[1] = 'uid_segments' THEN
    IF NEW.step NOT BETWEEN 1 AND 1099511627776 THEN
      RAISE EXCEPTION 'invalid step % for segment "%"', NEW.step, left(NEW.name, 63)
        USING ERRCODE = 'invalid_parameter_value',
              HINT = 'Use a step from 1 to 1099511627776 (2^40), or NULL for uidgen.segment_step.';
    ELSIF NEW.max_step NOT BETWEEN coalesce(NEW.step, 1) AND 1099511627776 THEN
      RAISE EXCEPTION 'invalid max_step % for segment "%"', NEW.max_step, left(NEW.name, 63)
        USING ERRCODE = 'invalid_parameter_value',
              HINT = 'Use a max_step from step to 1099511627776 (2^40), or NULL for uidgen.segment_max_step.';
    END IF;
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
COMMENT ON FUNCTION uid_internal.uid_check_registration() IS
  'Trigger function of uid_generator, uid_segment and uid_key. It lets only the owner of a sequence register it. The '
  'owner of the database may also restore the rows of a dump. It rejects an invalid step of a segment.';

CREATE FUNCTION uid_internal.uid_generator_changing() RETURNS trigger
LANGUAGE c AS 'MODULE_PATHNAME', 'uid_generator_changing';
COMMENT ON FUNCTION uid_internal.uid_generator_changing() IS
  'Trigger function of uid_generator. It rejects an invalid row, and a change of the layout after ids were leased. '
  'Any other change ends the current lease, so that the change applies from the next id on.';

CREATE FUNCTION uid_internal.uid_keep_local() RETURNS trigger
LANGUAGE c AS 'MODULE_PATHNAME', 'uid_keep_local';
COMMENT ON FUNCTION uid_internal.uid_keep_local() IS
  'Trigger function of uid_generator, uid_segment, uid_key, worker_node, and the tables of a fleet''s registry. '
  'Their rows describe sequences or grants of this server, so it skips rows that logical replication brings from '
  'another server, and refuses TRUNCATE.';

CREATE TRIGGER uid_check_registration BEFORE INSERT ON uid_generator
  FOR EACH ROW EXECUTE FUNCTION uid_internal.uid_check_registration('generator', 'uid_generators');
CREATE TRIGGER uid_generator_changing BEFORE INSERT OR UPDATE OR DELETE ON uid_generator
  FOR EACH ROW EXECUTE FUNCTION uid_internal.uid_generator_changing();

-- INCREMENT, MINVALUE and is_called make nextval fail without moving the counter, so that only uidgen takes leases.
CREATE SEQUENCE uid_generators.uid_default
  INCREMENT 9223372036854775807 MINVALUE 1 START 1 NO CYCLE;
SELECT pg_catalog.setval('uid_generators.uid_default', 1, true);
SELECT pg_catalog.pg_extension_config_dump('uid_generators.uid_default', '');
COMMENT ON SEQUENCE uid_generators.uid_default IS
  'Lease sequence of the builtin generator, the default generator behind uid_next() until another one is chosen.';

CREATE FUNCTION uid_internal.uid_generator_builtin(is_default boolean) RETURNS uid_generator
LANGUAGE c STABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'uid_generator_builtin';
COMMENT ON FUNCTION uid_internal.uid_generator_builtin(boolean) IS
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
       lease_ms, max_ahead_ms, when_full, when_back, tolerance_ms, spread, mode, worker_policy
  FROM uid_internal.uid_generator_builtin(true)
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
COMMENT ON VIEW uid_preset IS
  'The presets that uid_generator_create() copies into a row of uid_generator. If epoch is NULL, the generator starts '
  'at midnight UTC of the day of its creation, so that its whole life lies ahead.';

-- An operator without an exact match in pg_catalog is qualified with its schema. Otherwise another role could create an
-- exact match in the schema of the extension, and every role that reads the view would run it.
CREATE VIEW uid_generator_config AS
SELECT * FROM uid_generator
UNION ALL
SELECT b.* FROM uid_internal.uid_generator_builtin(NOT EXISTS (SELECT FROM uid_generator g WHERE g.is_default)) b
 WHERE b.generator IS NOT NULL AND NOT EXISTS (SELECT FROM uid_generator g WHERE g.builtin);
COMMENT ON VIEW uid_generator_config IS
  'Layout, limits and policies of each generator: the rows of uid_generator, and the builtin generator while it has '
  'no row there.';
CREATE VIEW uid_internal.generators AS SELECT * FROM uid_generator_config;
COMMENT ON VIEW uid_internal.generators IS 'The view uid_generator_config, for functions.';

CREATE FUNCTION uid_generator_create(name text, preset text DEFAULT 'snowflake', above bigint DEFAULT NULL,
    epoch timestamptz DEFAULT NULL, tick_us bigint DEFAULT NULL, time_bits integer DEFAULT NULL,
    datacenter_bits integer DEFAULT NULL, worker_bits integer DEFAULT NULL, sequence_bits integer DEFAULT NULL,
    sequence_first boolean DEFAULT NULL, backup_worker boolean DEFAULT NULL, lease_ms integer DEFAULT NULL,
    max_ahead_ms integer DEFAULT NULL, when_full text DEFAULT NULL, when_back text DEFAULT NULL,
    tolerance_ms integer DEFAULT NULL, spread boolean DEFAULT NULL, worker_policy text DEFAULT NULL,
    worker_number integer DEFAULT NULL, mode text DEFAULT NULL, boost_power integer DEFAULT NULL,
    padding_factor integer DEFAULT NULL, schedule_ms integer DEFAULT NULL, when_ring_full text DEFAULT NULL,
    when_ring_empty text DEFAULT NULL, max_staleness_ms integer DEFAULT NULL,
    datacenter_id integer DEFAULT NULL) RETURNS regclass
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  home text := uid_internal.uid_home();
  given jsonb := jsonb_strip_nulls(jsonb_build_object(
    'epoch', epoch, 'tick_us', tick_us, 'time_bits', time_bits, 'datacenter_bits', datacenter_bits,
    'worker_bits', worker_bits, 'sequence_bits', sequence_bits, 'sequence_first', sequence_first,
    'backup_worker', backup_worker, 'lease_ms', lease_ms, 'max_ahead_ms', max_ahead_ms, 'when_full', when_full,
    'when_back', when_back, 'tolerance_ms', tolerance_ms, 'spread', spread, 'worker_policy', worker_policy,
    'worker_number', worker_number, 'mode', mode, 'boost_power', boost_power, 'padding_factor', padding_factor,
    'schedule_ms', schedule_ms, 'when_ring_full', when_ring_full, 'when_ring_empty', when_ring_empty,
    'max_staleness_ms', max_staleness_ms, 'datacenter_id', datacenter_id));
  fields jsonb;
  presets text;
  generator regclass;
BEGIN
  IF name IS NULL OR name = '' OR octet_length(name) > 63 THEN
    RAISE EXCEPTION 'invalid generator name: "%"', left(name, 63)
      USING ERRCODE = 'invalid_name', HINT = 'Use a name of 1 to 63 bytes.';
  END IF;
  -- A row of a subquery: its type cannot change while to_jsonb() reads the names.
  EXECUTE format('SELECT to_jsonb(p) FROM (SELECT * FROM %s.uid_preset) p WHERE p.preset = $1', home)
    INTO fields USING preset;
  IF fields IS NULL THEN
    EXECUTE format('SELECT string_agg(quote_literal(p.preset), '', '' ORDER BY p.preset) FROM %s.uid_preset p', home)
      INTO presets;
    RAISE EXCEPTION 'preset "%" does not exist', left(preset, 63)
      USING ERRCODE = 'invalid_parameter_value', HINT = format('Use one of %s.', presets);
  END IF;
  IF to_regclass(format('uid_generators.%I', name)) IS NOT NULL THEN
    RAISE EXCEPTION 'generator "%" already exists', name
      USING ERRCODE = 'duplicate_object', HINT = 'Use another name, or drop the generator with uid_generator_drop().';
  END IF;

  EXECUTE format('CREATE SEQUENCE uid_generators.%I INCREMENT 9223372036854775807 MINVALUE 1 START 1 NO CYCLE', name);
  generator := format('uid_generators.%I', name)::regclass;
  PERFORM setval(generator, 1, true);
  -- -1 stands for NULL in the fields that may be NULL.
  fields := fields || given || jsonb_build_object('generator', generator);
  fields := fields || (SELECT coalesce(jsonb_object_agg(f.key, NULL::text), '{}') FROM jsonb_each_text(given) f
                        WHERE f.value = '-1'
                          AND f.key IN ('tolerance_ms', 'schedule_ms', 'worker_number', 'datacenter_id'));
  IF fields ->> 'epoch' IS NULL THEN
    fields := jsonb_set(fields, '{epoch}', to_jsonb(date_trunc('day', now(), 'UTC')));
  END IF;
  EXECUTE format('INSERT INTO %1$s.uid_generator (%2$s) SELECT %2$s FROM jsonb_populate_record(NULL::%1$s.uid_generator, $1)',
                 home, (SELECT string_agg(quote_ident(k), ', ' ORDER BY k) FROM jsonb_object_keys(fields) k)) USING fields;
  IF above IS NOT NULL THEN
    EXECUTE format('SELECT %s.uid_generator_raise($1, $2)', home) USING generator, above;
  END IF;
  RETURN generator;
END
$$;
COMMENT ON FUNCTION uid_generator_create IS
  'Creates a generator: a lease sequence uid_generators.<name>, owned by the caller, and its row in uid_generator. The '
  'fields come from a preset (SELECT * FROM uid_preset), and each argument that is not NULL replaces one. -1 sets a '
  'field that may be NULL to NULL: tolerance_ms -1 means no limit, and schedule_ms -1 means no scheduled refills. With '
  'above, all ids are above that id. A WARNING says if the time of the layout ends within two years, or has ended, so that '
  'the generator only decodes ids. The caller needs CREATE on the schema uid_generators. Draw with '
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
    when_ring_empty text DEFAULT NULL, max_staleness_ms integer DEFAULT NULL,
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
  chosen boolean;
BEGIN
  SELECT g.is_default AND NOT g.builtin INTO chosen
    FROM uid_internal.generators g WHERE g.generator = uid_generator_drop.generator;
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

CREATE FUNCTION uid_default_set(generator regclass, above boolean DEFAULT true) RETURNS void
LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'uid_default_set';
COMMENT ON FUNCTION uid_default_set(regclass, boolean) IS
  'Makes a generator the default: the one behind uid_next() in this database. If the former default has issued ids, '
  'the call raises the new one above them. If that is not possible, because they are ahead of the clock, it fails, '
  'unless above is false. With above => false the new default begins at the clock. Until the clock has passed the old '
  'ids, new ones do not sort after them. They stay unique if the nodes of both generators differ. The call fails if '
  'the nodes are known to be equal, or the layouts differ, and says in a WARNING what is not known. Other generators '
  'with ids ahead of the clock may have been the default, so it compares them, too. It waits for '
  'transactions that draw from the former default. After a DROP SEQUENCE of the default there is no former default to compare with. In that '
  'case create the new one above its ids, with the parameter above of uid_generator_create(). Only the owner of the '
  'database or of the extension may call it. Grant USAGE on the sequence of the new default to the roles that draw.';

CREATE FUNCTION uid_next() RETURNS bigint
LANGUAGE c VOLATILE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'uid_next_default';
COMMENT ON FUNCTION uid_next() IS
  'Returns the next id of the default generator: unique, positive, and above every earlier id, but for ids of a backup '
  'worker, of cached mode, and after uid_default_set(generator, above => false). Use it as DEFAULT uid_next().';

-- Functions with an argument that are called once per row are not STRICT. They return NULL for NULL themselves, which
-- saves a dozen instructions.
CREATE FUNCTION uid_next(generator regclass) RETURNS bigint
LANGUAGE c VOLATILE PARALLEL SAFE AS 'MODULE_PATHNAME', 'uid_next_of';
COMMENT ON FUNCTION uid_next(regclass) IS 'Returns the next id of a generator. The caller needs USAGE on its sequence.';

CREATE FUNCTION uid_next_array(count bigint) RETURNS bigint[]
LANGUAGE c VOLATILE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'uid_next_array_default';
COMMENT ON FUNCTION uid_next_array(bigint) IS
  'Returns count ids of the default generator in ascending order, as an array. The call takes all ids before it returns, '
  'so a call that fails leaves a gap. A negative count is an error.';

CREATE FUNCTION uid_next_array(generator regclass, count bigint) RETURNS bigint[]
LANGUAGE c VOLATILE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'uid_next_array_of';
COMMENT ON FUNCTION uid_next_array(regclass, bigint) IS
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
  'backup is true if the backup worker made the id, and worker_id is the number without that bit. The result is NULL for '
  'a number below every id of the layout, such as one of a sequence.';

CREATE FUNCTION uid_decode(id bigint, generator regclass,
    OUT generated_at timestamptz, OUT datacenter_id integer, OUT worker_id integer, OUT sequence integer,
    OUT backup boolean)
RETURNS record
LANGUAGE c STABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'uid_decode_of';
COMMENT ON FUNCTION uid_decode(bigint, regclass) IS
  'Returns the parts of an id in the layout of a generator, or NULL for a number below every id of it.';

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
  'Returns the time at which the default generator made an id: the start of the id''s tick. NULL for a number below every '
  'id of the layout, such as one of a sequence.';

CREATE FUNCTION uid_timestamp(id bigint, generator regclass) RETURNS timestamptz
LANGUAGE c STABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'uid_timestamp_of';
COMMENT ON FUNCTION uid_timestamp(bigint, regclass) IS
  'Returns the time at which a generator made an id: the start of the id''s tick. NULL for a number below every id of it.';

CREATE FUNCTION uid_timestamp(id bigint, epoch timestamptz, tick_us bigint, shift integer) RETURNS timestamptz
LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'uid_timestamp_fixed';
COMMENT ON FUNCTION uid_timestamp(bigint, timestamptz, bigint, integer) IS
  'Returns the time at which an id was made, from the numbers of its layout. NULL for a number below every id of the '
  'layout. Use it in generated columns and indexes. '
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

-- An application may insert rows with the first seven columns only, and may leave out id. The columns that describe
-- generators are then NULL.
CREATE SEQUENCE worker_node_id_seq;
CREATE TABLE worker_node OF worker_node_row (
  id                WITH OPTIONS NOT NULL,
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
SELECT pg_catalog.pg_extension_config_dump('worker_node', '');
SELECT pg_catalog.pg_extension_config_dump('worker_node_id_seq', '');
COMMENT ON SEQUENCE worker_node_id_seq IS
  'Counter for worker ids. uidgen draws from it in any transaction, even in a read-only one.';

-- Not a default, which would need a privilege on the sequence. A role with that privilege could use up the worker ids
-- without writing a row.
CREATE FUNCTION uid_internal.uid_number_node() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
  NEW.id := nextval(pg_get_serial_sequence(TG_RELID::regclass::text, 'id'));
  RETURN NEW;
END
$$;
COMMENT ON FUNCTION uid_internal.uid_number_node() IS
  'Trigger function of worker_node. It gives a row that is inserted without an id the next number of '
  'worker_node_id_seq.';
CREATE TRIGGER uid_number_node BEFORE INSERT ON worker_node
  FOR EACH ROW WHEN (NEW.id IS NULL) EXECUTE FUNCTION uid_internal.uid_number_node();

CREATE TRIGGER uid_keep_local BEFORE INSERT OR UPDATE OR DELETE ON worker_node
  FOR EACH ROW EXECUTE FUNCTION uid_internal.uid_keep_local();
ALTER TABLE worker_node ENABLE ALWAYS TRIGGER uid_keep_local;

-- ---------------------------------------------------------------------------------------------------------
-- Segments
-- ---------------------------------------------------------------------------------------------------------

CREATE TABLE uid_segment (
  name        text     PRIMARY KEY CHECK (name <> ''),
  sequence    regclass NOT NULL UNIQUE,
  step        bigint,
  max_step    bigint,
  description text,
  registry_name text,
  fleet       bigint   CHECK (fleet > 0),
  increment   bigint   CHECK (increment <> 0),
  current_val bigint,
  increment_val bigint NOT NULL DEFAULT 1 CHECK (increment_val BETWEEN 1 AND 1099511627776),
  CHECK ((registry_name IS NULL) = (fleet IS NULL) AND (registry_name IS NULL) = (increment IS NULL))
);
COMMENT ON TABLE uid_segment IS
  'One row for each named segment. segment_create() and segment_attach() insert the row, and a drop of the sequence '
  'deletes it.';
COMMENT ON COLUMN uid_segment.name IS 'name of the segment, any text';
COMMENT ON COLUMN uid_segment.sequence IS 'sequence that holds the counter; USAGE on it lets a role draw';
COMMENT ON COLUMN uid_segment.step IS
  'initial and minimum number of values that one record reserves, 1 to 2^40; fewer while another session moves the '
  'counter, at the end of the sequence, and in a small sequence; NULL: uidgen.segment_step';
COMMENT ON COLUMN uid_segment.max_step IS
  'limit on the growth of the step, from step to 2^40; NULL: uidgen.segment_max_step';
COMMENT ON COLUMN uid_segment.description IS 'purpose of the segment';
COMMENT ON COLUMN uid_segment.registry_name IS
  'name of the segment at the registry of the fleet that the values come from; NULL: they are of the sequence itself';
COMMENT ON COLUMN uid_segment.fleet IS 'identity of that fleet; NULL without a registry_name';
COMMENT ON COLUMN uid_segment.increment IS
  'increment of the segment at the registry; the sequence here has one that keeps nextval from moving it';
COMMENT ON COLUMN uid_segment.current_val IS
  'current_val of t_sequence; the values from current_val - increment_val to current_val + 2 * increment_val are '
  'reserved; NULL until the first UPDATE of t_sequence';
COMMENT ON COLUMN uid_segment.increment_val IS 'increment_val of t_sequence, the length of a block, 1 to 2^40';

-- Without the counter, which is for roles that may use the sequence.
CREATE VIEW uid_internal.segments AS
SELECT name, sequence, step, max_step, description, registry_name, fleet, increment FROM uid_segment;
COMMENT ON VIEW uid_internal.segments IS 'The table uid_segment without its counters, for functions.';

-- Whoever may take blocks changes current_val and increment_val. uid_show_block() checks that.
CREATE TRIGGER uid_check_registration
  BEFORE INSERT OR UPDATE OF name, sequence, step, max_step, description, registry_name, fleet, increment ON uid_segment
  FOR EACH ROW EXECUTE FUNCTION uid_internal.uid_check_registration('sequence', 'uid_segments');

CREATE FUNCTION uid_internal.uid_segment_changed() RETURNS trigger
LANGUAGE c AS 'MODULE_PATHNAME', 'uid_segment_changed';
COMMENT ON FUNCTION uid_internal.uid_segment_changed() IS
  'Trigger function of uid_segment and uid_key. It makes every session look up segment names again, or keys.';
CREATE TRIGGER uid_segment_changed AFTER INSERT OR UPDATE OF name, sequence OR DELETE ON uid_segment
  FOR EACH ROW EXECUTE FUNCTION uid_internal.uid_segment_changed();

CREATE FUNCTION segment_create(name text, start bigint DEFAULT 1, step bigint DEFAULT NULL,
    max_step bigint DEFAULT NULL, description text DEFAULT NULL, increment bigint DEFAULT NULL,
    min_value bigint DEFAULT NULL, max_value bigint DEFAULT NULL, cycle boolean DEFAULT NULL) RETURNS regclass
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  -- A name that is too long for an identifier gets a sequence named after its hash.
  relation text := CASE WHEN octet_length(name) <= 63 THEN name ELSE 'segment_' || md5(name) END;
  stride bigint := coalesce(increment, 1);
  lowest bigint := coalesce(min_value, CASE WHEN stride > 0 THEN least(start, 1) ELSE -9223372036854775808 END);
  highest bigint := coalesce(max_value, CASE WHEN stride > 0 THEN 9223372036854775807 ELSE greatest(start, -1) END);
  sequence regclass;
BEGIN
  IF name IS NULL OR name = '' THEN
    RAISE EXCEPTION 'invalid segment name: "%"', name
      USING ERRCODE = 'invalid_name', HINT = 'Use a text that is not empty.';
  END IF;
  IF start IS NULL THEN
    RAISE EXCEPTION 'start of segment "%" must not be null', left(name, 63)
      USING ERRCODE = 'null_value_not_allowed', HINT = 'Pass the first value of the segment as start.';
  END IF;
  -- With the largest increment the sequence would pass for one that holds the leases of a generator.
  IF stride = 9223372036854775807 THEN
    RAISE EXCEPTION 'invalid increment % for segment "%"', stride, left(name, 63)
      USING ERRCODE = 'invalid_parameter_value', HINT = 'Use an increment of at most 9223372036854775806.';
  END IF;
  EXECUTE format('CREATE SEQUENCE uid_segments.%I START %s INCREMENT %s MINVALUE %s MAXVALUE %s %s', relation, start,
                 stride, lowest, highest, CASE WHEN cycle THEN 'CYCLE' ELSE 'NO CYCLE' END);
  sequence := format('uid_segments.%I', relation)::regclass;
  INSERT INTO uid_internal.segments VALUES (name, sequence, step, max_step, description);
  RETURN sequence;
END
$$;
COMMENT ON FUNCTION segment_create IS
  'Creates a named segment whose first value is start. It reserves step values at a time (NULL: uidgen.segment_step), '
  'and up to max_step under load (NULL: uidgen.segment_max_step). increment, min_value, max_value and cycle are those '
  'of its sequence. NULL stands for an increment of 1, for no cycle, and for the widest bounds in the direction of the '
  'increment; a segment that counts up then has no value below 1 and start. The caller owns its sequence in the schema '
  'uid_segments, and needs CREATE on that schema. Let other roles draw with GRANT USAGE ON SEQUENCE.';

CREATE FUNCTION segment_alter(name text, step bigint DEFAULT NULL, max_step bigint DEFAULT NULL,
    description text DEFAULT NULL) RETURNS void
LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'segment_alter';
COMMENT ON FUNCTION segment_alter(text, bigint, bigint, text) IS
  'Changes step, max_step or description of a named segment. An argument that is NULL leaves its field unchanged. A '
  'step or max_step of 0 resets it to the setting (uidgen.segment_step, uidgen.segment_max_step). A new step or '
  'max_step applies from the next range on. Only the owner of the sequence may call it.';

CREATE FUNCTION uid_internal.uid_look_up_segment(sequence regclass, name text, registry_name text,
    OUT fleet bigint, OUT increment bigint) RETURNS record
LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'uid_look_up_segment';
COMMENT ON FUNCTION uid_internal.uid_look_up_segment(regclass, text, text) IS
  'Asks the registry of the fleet what its segment registry_name is like. It waits for at most uidgen.max_wait. '
  'segment_attach() calls it. Only the owner of the sequence may call it, which must be in the schema uid_segments.';

CREATE FUNCTION uid_internal.uid_change_segment(sequence regclass, step bigint DEFAULT NULL, max_step bigint DEFAULT NULL,
    description text DEFAULT NULL, fleet bigint DEFAULT NULL, increment bigint DEFAULT NULL,
    current_val bigint DEFAULT NULL, increment_val bigint DEFAULT NULL) RETURNS void
LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'uid_change_segment';
COMMENT ON FUNCTION uid_internal.uid_change_segment(regclass, bigint, bigint, text, bigint, bigint, bigint, bigint) IS
  'Sets those columns of a segment''s row that are not NULL. segment_attach() and an INSERT into t_sequence call it. '
  'Only the owner of the sequence may call it.';

-- INCREMENT, the bounds and is_called make nextval fail without moving the counter, so that every value comes from the
-- registry. The counter is the last value that the registry gave, or, at first, the value before all of them.
CREATE FUNCTION segment_attach(name text, registry_name text DEFAULT NULL, step bigint DEFAULT NULL,
    max_step bigint DEFAULT NULL, description text DEFAULT NULL) RETURNS regclass
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  relation text := CASE WHEN octet_length(name) <= 63 THEN name ELSE 'segment_' || md5(name) END;
  there text := coalesce(registry_name, name);
  segment record;
  found record;
  last bigint;
BEGIN
  IF name IS NULL OR name = '' OR there = '' THEN
    RAISE EXCEPTION 'invalid segment name: "%"', CASE WHEN name <> '' THEN left(there, 63) ELSE name END
      USING ERRCODE = 'invalid_name', HINT = 'Use a text that is not empty.';
  END IF;
  SELECT s.* INTO segment FROM uid_internal.segments s
   WHERE s.name = segment_attach.name AND s.registry_name IS NOT NULL;
  IF segment.name IS NULL THEN
    EXECUTE format('CREATE SEQUENCE uid_segments.%I', relation);
    segment.sequence := format('uid_segments.%I', relation)::regclass;
  ELSIF there <> segment.registry_name THEN
    RAISE EXCEPTION 'segment "%" is attached to segment "%" of the registry', left(name, 63), left(segment.registry_name, 63)
      USING ERRCODE = 'duplicate_object', HINT = 'Attach another segment, or drop this one with segment_drop() first.';
  END IF;

  SELECT * INTO found FROM uid_internal.uid_look_up_segment(segment.sequence, name, there);
  IF segment.name IS NULL THEN
    EXECUTE format(CASE WHEN found.increment > 0
      THEN 'ALTER SEQUENCE %s INCREMENT 9223372036854775806 MINVALUE -1 MAXVALUE 9223372036854775804 START -1 RESTART'
      ELSE 'ALTER SEQUENCE %s INCREMENT -9223372036854775806 MINVALUE -9223372036854775804 MAXVALUE 1 START 1 RESTART'
      END, segment.sequence);
    PERFORM setval(segment.sequence, CASE WHEN found.increment > 0 THEN -1 ELSE 1 END, true);
    INSERT INTO uid_internal.segments
    VALUES (name, segment.sequence, step, max_step, description, there, found.fleet, found.increment);
    RETURN segment.sequence;
  END IF;
  IF (found.increment > 0) <> (segment.increment > 0) THEN
    RAISE EXCEPTION 'segment "%" of the registry counts in the other direction now', left(there, 63)
      USING ERRCODE = 'object_not_in_prerequisite_state', HINT = 'Attach it under another name.';
  END IF;
  -- Values of one fleet may be those of another member in the other one. A new file of the sequence discards what is in
  -- hand; if this is rolled back, the former file discards what was drawn meanwhile.
  IF found.fleet <> segment.fleet THEN
    EXECUTE format('SELECT last_value FROM %s', segment.sequence) INTO last;
    EXECUTE format('ALTER SEQUENCE %s RESTART', segment.sequence);
    PERFORM setval(segment.sequence, last, true);
  END IF;
  PERFORM uid_internal.uid_change_segment(segment.sequence, step, max_step, description, found.fleet, found.increment);
  RETURN segment.sequence;
END
$$;
COMMENT ON FUNCTION segment_attach(text, text, bigint, bigint, text) IS
  'Creates a named segment whose values come from the segment registry_name (NULL: the same name) of the fleet''s '
  'registry, in blocks. All members that attach to that segment share its values, and none comes twice. The registry '
  'must be reachable. Let other roles draw with GRANT USAGE ON SEQUENCE. If the segment is attached already, it goes '
  'on with the segment as it is at the registry now: after a change of its increment there, or with the fleet that '
  'uidgen.registry names now. step and max_step are those of segment_create(): the length of a block.';

CREATE FUNCTION segment_drop(name text) RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  sequence regclass;
BEGIN
  SELECT s.sequence INTO sequence FROM uid_internal.segments s WHERE s.name = segment_drop.name;
  IF sequence IS NULL THEN
    RAISE EXCEPTION 'segment "%" does not exist', left(name, 63)
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

CREATE FUNCTION segment_next_array(name text, count bigint) RETURNS bigint[]
LANGUAGE c VOLATILE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'segment_next_array_named';
COMMENT ON FUNCTION segment_next_array(text, bigint) IS
  'Returns count values of a segment by its name, in order, as an array.';

CREATE FUNCTION segment_next_array(sequence regclass, count bigint) RETURNS bigint[]
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
-- Concealed ids. A key is a sequence in uid_keys, which carries its name, owner and privileges, and a row of uid_key,
-- which carries its secrets. The sequence's counter means nothing.
--
-- The table is in uid_secrets, where no GRANT on all tables of the applications' schemas reaches the secrets.
-- ---------------------------------------------------------------------------------------------------------

CREATE SCHEMA uid_keys;
COMMENT ON SCHEMA uid_keys IS
  'Sequences of uidgen''s keys, one for each key. USAGE on one lets a role conceal and reveal ids with the key.';

-- No message shows a secret when a line of COPY is refused:
--
--   1. PostgreSQL shows at most the first 100 bytes of a line, and 64 of each field of a row. A warning of 105 bytes
--      stands before the secrets.
--   2. An input function may show all of its argument. Of a line, damaged or not, the secrets are in the first field:
--      they stand in front, and neither they nor the warning have a character that COPY takes for a delimiter. This
--      field is text, whose input function accepts everything.
--   3. The trigger checks, not a CHECK, and its messages show no secret.
CREATE TABLE uid_secrets.uid_key (
  secrets      text,
  sequence     regclass    PRIMARY KEY,
  width        integer     DEFAULT 63,
  version_bits integer     DEFAULT 0,
  versions     integer     DEFAULT 1,
  created      timestamptz DEFAULT now(),
  rotated      timestamptz
);
COMMENT ON TABLE uid_secrets.uid_key IS
  'One row for each key, with its secrets. uid_key_create() inserts the row, and a drop of the sequence deletes it. '
  'Only the owner of the table, the owner of the database, members of pg_read_all_data and superusers may read it. '
  'uid_key_config shows the other columns to every role.';
COMMENT ON COLUMN uid_secrets.uid_key.secrets IS
  'a warning of 105 characters, which messages may show, and a key of AES-256 for each version, 32 random bytes in '
  'hexadecimal digits; NULL in a new row: the trigger makes them';
COMMENT ON COLUMN uid_secrets.uid_key.sequence IS 'sequence that stands for the key; USAGE on it lets a role use the key';
COMMENT ON COLUMN uid_secrets.uid_key.width IS 'bits of a concealed id, 20 + version_bits to 63';
COMMENT ON COLUMN uid_secrets.uid_key.version_bits IS
  'bits of a concealed id that show the version of the key, above the others, 0 to 10; an id has width - version_bits '
  'bits';
COMMENT ON COLUMN uid_secrets.uid_key.versions IS
  'number of versions, from 1 to 2^version_bits; the last one is the newest';
COMMENT ON COLUMN uid_secrets.uid_key.created IS 'creation time of the key';
COMMENT ON COLUMN uid_secrets.uid_key.rotated IS 'creation time of the newest version; NULL: there is only the first one';

CREATE FUNCTION uid_internal.uid_key_changing() RETURNS trigger
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  key text := (SELECT relname FROM pg_class WHERE oid = NEW.sequence);
  warning CONSTANT text := 'secret.keys.of.uidgen.with.the.rest.of.this.text.'
                           'anybody.can.reveal.the.ids.that.were.concealed.by.a.key.';
  former text := warning;
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
  IF (NEW.versions BETWEEN 1 AND 1 << NEW.version_bits) IS NOT TRUE THEN
    RAISE EXCEPTION 'key "%" cannot have % versions', key, NEW.versions
      USING ERRCODE = 'program_limit_exceeded',
            DETAIL = format('Its version_bits are %s, so it can have %s.', NEW.version_bits, 1 << NEW.version_bits),
            HINT = 'Create another key with uid_key_create(), with more version_bits.';
  END IF;
  IF NEW.sequence IS NULL OR NEW.created IS NULL THEN
    RAISE EXCEPTION 'sequence and created of key "%" must not be null', key
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
COMMENT ON FUNCTION uid_internal.uid_key_changing() IS
  'Trigger function of uid_key. It makes the secrets, and rejects a row that is not valid or whose secrets would change.';

CREATE TRIGGER uid_check_registration BEFORE INSERT ON uid_secrets.uid_key
  FOR EACH ROW EXECUTE FUNCTION uid_internal.uid_check_registration('sequence', 'uid_keys');
CREATE TRIGGER uid_key_changing BEFORE INSERT OR UPDATE ON uid_secrets.uid_key
  FOR EACH ROW EXECUTE FUNCTION uid_internal.uid_key_changing();
CREATE TRIGGER uid_segment_changed AFTER INSERT OR UPDATE OR DELETE ON uid_secrets.uid_key
  FOR EACH ROW EXECUTE FUNCTION uid_internal.uid_segment_changed();

CREATE VIEW uid_key_config AS
SELECT c.relname::text AS name, k.sequence, k.width, k.version_bits, k.versions, k.created, k.rotated,
       (1::bigint << (k.width - k.version_bits - 1)) - 1 + (1::bigint << (k.width - k.version_bits - 1)) AS largest_id
  FROM uid_secrets.uid_key k JOIN pg_catalog.pg_class c ON c.oid OPERATOR(pg_catalog.=) k.sequence::oid;
COMMENT ON VIEW uid_key_config IS
  'The keys, without their secrets. largest_id: the largest id that the key can conceal. The other columns are those of '
  'uid_key.';

CREATE FUNCTION uid_key_create(name text, width integer DEFAULT 63, version_bits integer DEFAULT 0) RETURNS regclass
LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'uid_key_create';
COMMENT ON FUNCTION uid_key_create(text, integer, integer) IS
  'Creates a key for uid_conceal() and uid_reveal(), with a random secret that no function returns. Concealed ids have '
  'width bits: 20 + version_bits to 63, or 53 for JavaScript. The upper version_bits, 0 to 10, show the version of the '
  'key, so that uid_key_rotate() can make 2^version_bits versions; ids then have width - version_bits bits. The caller '
  'owns the key, and needs CREATE on the schema uid_keys. Let other roles use it with GRANT USAGE ON SEQUENCE. Drop it '
  'with DROP SEQUENCE: what was concealed with it can never be revealed again, unless a dump has the key.';

CREATE FUNCTION uid_key_rotate(name text) RETURNS integer
LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'uid_key_rotate';
COMMENT ON FUNCTION uid_key_rotate(text) IS
  'Makes a new version of a key and returns its number. uid_conceal() uses it from the commit on. uid_reveal() still '
  'reveals what the former versions concealed, because each concealed id shows its version. It fails if the version '
  'bits of the key are used up, or if it has none. Only the owner of the key may call it.';

CREATE FUNCTION uid_conceal(id bigint, key_name text) RETURNS bigint
LANGUAGE c STABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'uid_conceal';
COMMENT ON FUNCTION uid_conceal(bigint, text) IS
  'Returns the concealed id for an id: FF1 (NIST SP 800-38G) of its bits, with the newest version of the key. Two ids '
  'never have the same one with the same version. The id is from 0 to largest_id of uid_key_config. The caller needs USAGE on the key''s '
  'sequence in uid_keys. Concealment hides order, time and number of ids, and is no access control.';

CREATE FUNCTION uid_reveal(value bigint, key_name text) RETURNS bigint
LANGUAGE c STABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'uid_reveal';
COMMENT ON FUNCTION uid_reveal(bigint, text) IS
  'Returns the id that uid_conceal() made a concealed id from. A key with version bits finds the version in the value. '
  'A key without them has one permutation of all values, so each value from 0 to 2^width - 1 is some concealed id. A '
  'value that the key cannot have concealed fails with numeric_value_out_of_range.';

-- ---------------------------------------------------------------------------------------------------------
-- A drop of a sequence deletes its row. Otherwise the row could later match another sequence with the same OID.
-- ---------------------------------------------------------------------------------------------------------

-- The body is bound to the tables here, so it finds them whatever their schema is called when it runs. Returns whether
-- the builtin generator has a row, if the default's row was deleted; else NULL.
CREATE FUNCTION uid_internal.uid_delete_rows(dropped pg_catalog.oid[]) RETURNS boolean
LANGUAGE sql
BEGIN ATOMIC
  DELETE FROM uid_segment WHERE sequence::pg_catalog.oid OPERATOR(pg_catalog.=) ANY (dropped);
  DELETE FROM uid_secrets.uid_key WHERE sequence::pg_catalog.oid OPERATOR(pg_catalog.=) ANY (dropped);
  WITH deleted AS (
    DELETE FROM uid_generator WHERE generator::pg_catalog.oid OPERATOR(pg_catalog.=) ANY (dropped) RETURNING is_default
  )
  SELECT EXISTS (SELECT FROM uid_generator WHERE builtin) FROM deleted WHERE is_default;
END;
COMMENT ON FUNCTION uid_internal.uid_delete_rows(oid[]) IS
  'Deletes the rows of dropped sequences from uid_generator, uid_segment and uid_key.';

-- The caller owns what it has dropped, and needs no right to the tables. A lock makes DROP EXTENSION wait. Otherwise the
-- owner of the extension could drop it and put another schema uid_internal in its place, whose function would run here.
CREATE FUNCTION uid_internal.uid_forget_dropped() RETURNS event_trigger
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  dropped oid[] := ARRAY(SELECT objid FROM pg_event_trigger_dropped_objects()
                          WHERE object_type = 'sequence' AND objsubid = 0 AND NOT is_temporary);
  builtin_has_row boolean;
BEGIN
  IF dropped = '{}' THEN
    RETURN;
  END IF;
  IF (SELECT rolsuper FROM pg_roles WHERE rolname = current_user) THEN -- others may not lock it
    PERFORM FROM pg_extension WHERE extname = 'uidgen' FOR KEY SHARE;
    IF NOT FOUND THEN
      RETURN; -- another session has dropped the extension
    END IF;
  END IF;
  builtin_has_row := uid_internal.uid_delete_rows(dropped);
  -- Without a row the builtin generator would become the default again, and its ids could collide with those of the
  -- dropped one. uid_default_set() makes the row. It is missing only if the default's row was written by hand.
  IF NOT builtin_has_row THEN
    RAISE EXCEPTION 'cannot drop the default generator'
      USING ERRCODE = 'dependent_objects_still_exist',
            DETAIL = 'The generator became the default without uid_default_set().',
            HINT = 'Run SELECT uid_default_set(''uid_generators.uid_default'') first.';
  ELSIF builtin_has_row THEN
    RAISE WARNING 'the database no longer has a default generator'
      USING DETAIL = 'Calls of uid_next() without a generator fail from now on.',
            HINT = 'Choose a default with uid_default_set(). To stay above the ids of the dropped generator, pass the '
                   'largest of them to uid_generator_create() as the parameter above.';
  END IF;
END
$$;
COMMENT ON FUNCTION uid_internal.uid_forget_dropped() IS
  'Event trigger function. It deletes the rows of dropped sequences from uid_generator, uid_segment and uid_key.';
CREATE EVENT TRIGGER uid_forget_dropped ON sql_drop EXECUTE FUNCTION uid_internal.uid_forget_dropped();
ALTER EVENT TRIGGER uid_forget_dropped ENABLE ALWAYS;
COMMENT ON EVENT TRIGGER uid_forget_dropped IS
  'Keeps uid_generator, uid_segment and uid_key free of rows whose sequence was dropped.';

-- ---------------------------------------------------------------------------------------------------------
-- A restore fills tables in any order, so a CHECK that reads uid_generator or uid_key may fail while its table is filled.
-- pg_dump adds one with NOT VALID after the rows, but not one of a domain or a partitioned table.
-- ---------------------------------------------------------------------------------------------------------

-- Of constraints that the open transaction has made: their age() is 0, or negative for a subtransaction's.
CREATE FUNCTION uid_internal.uid_check_constraints() RETURNS event_trigger
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  early record;
BEGIN
  FOR early IN
    SELECT (pg_identify_object(k.tableoid, k.oid, 0)).identity AS what, string_agg(DISTINCT p.oid::regprocedure::text, ', ') AS calls
      FROM pg_event_trigger_ddl_commands() c
      JOIN pg_constraint k ON k.conrelid = CASE WHEN c.classid = 'pg_class'::regclass THEN c.objid ELSE 0::oid END
       AND k.contypid = CASE WHEN c.classid = 'pg_type'::regclass THEN c.objid ELSE 0::oid END
       AND k.contype = 'c' AND k.conislocal AND age(k.xmin) <= 0
      LEFT JOIN pg_class r ON r.oid = k.conrelid
      JOIN pg_depend u ON u.classid = k.tableoid AND u.objid = k.oid AND u.refclassid = 'pg_proc'::regclass
      JOIN pg_proc p ON p.oid = u.refobjid AND p.provolatile <> 'i' AND p.probin = '$libdir/uidgen'
     WHERE r.relpersistence IS DISTINCT FROM 't' AND (k.convalidated OR r.relkind IS DISTINCT FROM 'r')
     GROUP BY k.tableoid, k.oid
  LOOP
    RAISE WARNING 'a restore may fail at constraint %', early.what
      USING DETAIL = format('It calls %s. pg_restore may load rows before the configuration that this reads.', early.calls),
            HINT = 'Pass the numbers of the layout, as in uid_timestamp(id, epoch, tick_us, shift). Or add the constraint '
                   'to the table, or to each partition, with NOT VALID: it is checked for new rows.';
  END LOOP;
END
$$;
COMMENT ON FUNCTION uid_internal.uid_check_constraints() IS
  'Event trigger function. It warns of a CHECK constraint that a restore of a dump may fail at.';
CREATE EVENT TRIGGER uid_check_constraints ON ddl_command_end
  WHEN TAG IN ('CREATE TABLE', 'ALTER TABLE', 'CREATE DOMAIN', 'ALTER DOMAIN', 'CREATE SCHEMA')
  EXECUTE FUNCTION uid_internal.uid_check_constraints();
COMMENT ON EVENT TRIGGER uid_check_constraints IS 'Warns of a CHECK constraint that a restore of a dump may fail at.';

-- ---------------------------------------------------------------------------------------------------------
-- Fleets: the member's side
-- ---------------------------------------------------------------------------------------------------------

CREATE FUNCTION uid_internal.uid_registrar(
    OUT connected boolean, OUT registry text, OUT away_since timestamptz, OUT last_error text,
    OUT last_error_at timestamptz, OUT fleet bigint, OUT term bigint, OUT clock_offset_ms bigint,
    OUT database text, OUT generator text, OUT node bigint, OUT granted_until timestamptz, OUT renewals bigint,
    OUT superseded boolean, OUT error text)
RETURNS SETOF record
LANGUAGE c VOLATILE STRICT PARALLEL RESTRICTED ROWS 10 AS 'MODULE_PATHNAME', 'uid_registrar';
COMMENT ON FUNCTION uid_internal.uid_registrar() IS
  'Returns the state of this server''s registrar, the process that asks the registry of the fleet for grants, once for '
  'each generator that has drawn with a registry since the server started. It returns no rows if uidgen is not '
  'preloaded. Only members of pg_monitor may call it.';

CREATE VIEW uid_registry_status AS SELECT * FROM uid_internal.uid_registrar();
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

CREATE FUNCTION uid_fleet_move() RETURNS void
LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'uid_fleet_move';
COMMENT ON FUNCTION uid_fleet_move() IS
  'Gives up the grants of all generators of this server, in all databases. At their next draw they get new nodes from '
  'the fleet that uidgen.registry names. Run it after uidgen.registry was changed to another fleet, and on a copy that '
  'the registry refuses as superseded. Only superusers may call it.';


-- ---------------------------------------------------------------------------------------------------------
-- Live state
-- ---------------------------------------------------------------------------------------------------------

CREATE FUNCTION uid_internal.uid_slots(
    OUT sequence regclass, OUT kind text, OUT protection text, OUT node bigint, OUT datacenter_id integer,
    OUT worker_id integer, OUT last_time timestamptz, OUT leased_until timestamptz, OUT range_first bigint, OUT range_length bigint, OUT range_left bigint,
    OUT next_ready boolean, OUT step bigint, OUT step_reason text,
    OUT refills_first bigint, OUT refills_ahead bigint, OUT refills_late bigint, OUT refills_disturbed bigint,
    OUT last_refill timestamptz, OUT rate double precision,
    OUT ring_size bigint, OUT ring_filled double precision, OUT padded_initial bigint, OUT padded_threshold bigint,
    OUT padded_schedule bigint, OUT padded_inline bigint, OUT rejected_puts bigint, OUT rejected_takes bigint,
    OUT discarded_stale bigint, OUT ahead_ms bigint, OUT granted_until timestamptz,
    OUT clock_steps_back bigint, OUT backup_ids bigint,
    OUT next_asked boolean, OUT registry_error text)
RETURNS SETOF record
LANGUAGE c VOLATILE STRICT PARALLEL RESTRICTED ROWS 100 AS 'MODULE_PATHNAME', 'uid_slots';
COMMENT ON FUNCTION uid_internal.uid_slots() IS
  'Returns the slots in shared memory of generators and segments of this database that were used since the server '
  'started. It returns no rows if uidgen is not preloaded. The values are NULL if the caller has neither USAGE nor '
  'SELECT on the sequence and is not a member of pg_read_all_stats.';

CREATE VIEW uid_generator_status AS
SELECT g.generator, g.preset, s.protection, s.node, s.datacenter_id, s.worker_id, s.last_time, s.leased_until,
       s.ahead_ms,
       s.ring_size, s.ring_filled, s.padded_initial, s.padded_threshold, s.padded_schedule, s.padded_inline,
       s.rejected_puts, s.rejected_takes, s.discarded_stale, s.granted_until,
       s.clock_steps_back, s.backup_ids
  FROM uid_generator_config g LEFT JOIN uid_internal.uid_slots() s ON s.sequence::oid OPERATOR(pg_catalog.=) g.generator::oid;
COMMENT ON VIEW uid_generator_status IS
  'Live state of each generator. protection is set if a number that was given keeps its ids apart from those of other '
  'databases, auto if only a hash of the database does, and registry if the registry of the fleet granted the node, up '
  'to the time granted_until (else NULL). node is datacenter_id and worker_id together. These four are those of this '
  'session''s next id. last_time is the time in the last id, and leased_until the end of the lease. ahead_ms is the lead of the last id made over the clock, and 0 once the clock has passed '
  'it. In cached mode: ring_size is the number of ids that the ring holds, and ring_filled is the share that is '
  'filled. padded_* count refills by cause: the first one, below the threshold, by schedule, and by a call. '
  'rejected_puts counts ids that the refiller discarded at a full ring (when_ring_full discard). rejected_takes counts '
  'calls that found the ring empty and failed or waited (when_ring_empty error, wait). discarded_stale counts ids '
  'discarded because they were too old. Of a wrong clock: clock_steps_back counts how often the clock was found behind '
  'the generator. backup_ids counts the ids of the backup worker. '
  'The values are NULL if the generator was not used since the server started.';

CREATE VIEW uid_generator_limits AS
SELECT g.generator, g.preset, e.ends,
       extract(epoch FROM pg_catalog.clock_timestamp() - g.epoch)::float8 OPERATOR(pg_catalog./) l.seconds AS life_used,
       (2::float8 OPERATOR(pg_catalog.^)
          (g.sequence_bits
           + CASE WHEN g.when_full::text OPERATOR(pg_catalog.=) 'backup'::text THEN 1 ELSE 0 END)::float8)
         OPERATOR(pg_catalog.*) 1000000::float8 OPERATOR(pg_catalog./) g.tick_us::float8 AS ids_per_second
  FROM uid_generator_config g
 CROSS JOIN LATERAL (SELECT (2::float8 OPERATOR(pg_catalog.^) g.time_bits::float8) OPERATOR(pg_catalog.*)
                            (g.tick_us::float8 OPERATOR(pg_catalog./) 1000000::float8) AS seconds) l
 CROSS JOIN LATERAL (SELECT pg_catalog.to_timestamp(extract(epoch FROM g.epoch)::float8
                                                    OPERATOR(pg_catalog.+) l.seconds) AS ends) e;
COMMENT ON VIEW uid_generator_limits IS
  'Capacity of each generator''s layout: the end of its time bits, the share of its life that is used, and the '
  'highest sustainable rate. In the last two years before the end, uidgen issues a WARNING.';

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
       s.last_refill, s.rate, n.registry_name, s.next_asked, s.registry_error
  FROM uid_internal.uid_slots() s LEFT JOIN uid_segment n ON n.sequence::oid OPERATOR(pg_catalog.=) s.sequence::oid
 WHERE s.kind = 'segment';
COMMENT ON VIEW segment_status IS
  'Live state of each segment used since the server started: the range in use, the share of it that is used, and '
  'whether the next range is reserved. step_reason explains the step: base, grown, kept, shrunk, or disturbed by '
  'nextval or setval in another session. refills_* count reserved ranges by cause. last_refill is the time of the last reservation. rate '
  'is the number of values drawn per second between the last two reservations, and NULL before the second one. Of an '
  'attached segment: registry_name is its name at the registry of the fleet, next_asked is true while a block is '
  'waited for, and registry_error is why the registry gave none the last time.';


-- ---------------------------------------------------------------------------------------------------------
-- Statistics: counters that only grow, until a restart
-- ---------------------------------------------------------------------------------------------------------

CREATE FUNCTION uid_internal.uid_stat_sequences(
    OUT sequence regclass, OUT kind text, OUT ids bigint, OUT records bigint, OUT refused_clock bigint, OUT refused_rate bigint,
    OUT refused_registry bigint, OUT refused_ring bigint, OUT refused_used_up bigint, OUT refused_busy bigint,
    OUT flush_waits bigint, OUT flush_wait_time double precision, OUT standby_waits bigint,
    OUT standby_wait_time double precision, OUT clock_waits bigint, OUT clock_wait_time double precision,
    OUT registry_waits bigint, OUT registry_wait_time double precision, OUT ring_waits bigint,
    OUT ring_wait_time double precision)
RETURNS SETOF record
LANGUAGE c VOLATILE STRICT PARALLEL RESTRICTED ROWS 100 AS 'MODULE_PATHNAME', 'uid_stat_sequences';
COMMENT ON FUNCTION uid_internal.uid_stat_sequences() IS
  'Returns the rows of the view uid_stat. It returns no rows if uidgen is not preloaded.';

CREATE VIEW uid_stat AS SELECT * FROM uid_internal.uid_stat_sequences();
COMMENT ON VIEW uid_stat IS
  'Counters of each generator and segment of this database that has a slot in shared memory, which it gets when it is '
  'first used after a server start. They start at zero then, and only grow. ids counts the ids and values that sessions '
  'and their parallel workers have drawn, one by one, in arrays and in blocks, also in transactions that were rolled '
  'back. records counts records written to the log. refused_* count calls that failed: refused_clock because the '
  'clock was behind or implausible, refused_rate because sessions drew faster than the layout allows, refused_registry '
  'because the registry gave nothing, refused_ring because the ring was empty, refused_used_up because no value is left, '
  'and refused_busy because other sessions won every race. *_waits count calls that waited, *_wait_time is the time that '
  'they waited, in milliseconds: flush for this server''s disk, standby for a synchronous standby, clock for the clock, '
  'registry for the registry, ring for the refiller. The counters are NULL if the caller has neither USAGE nor SELECT on '
  'the sequence and is not a member of pg_read_all_stats.';

CREATE FUNCTION uid_internal.uid_stat_totals(
    OUT ids bigint, OUT records bigint, OUT refused_clock bigint, OUT refused_rate bigint,
    OUT refused_registry bigint, OUT refused_ring bigint, OUT refused_used_up bigint, OUT refused_busy bigint,
    OUT flush_waits bigint, OUT flush_wait_time double precision, OUT standby_waits bigint,
    OUT standby_wait_time double precision, OUT clock_waits bigint, OUT clock_wait_time double precision,
    OUT registry_waits bigint, OUT registry_wait_time double precision, OUT ring_waits bigint,
    OUT ring_wait_time double precision,
    OUT refused_standby bigint, OUT clock_jumps bigint, OUT generators integer, OUT segments integer,
    OUT clock_moved_ms double precision)
RETURNS SETOF record
LANGUAGE c VOLATILE STRICT PARALLEL RESTRICTED ROWS 1 AS 'MODULE_PATHNAME', 'uid_stat_totals';
COMMENT ON FUNCTION uid_internal.uid_stat_totals() IS
  'Returns the row of the view uid_stat_server. It returns no row if uidgen is not preloaded.';

CREATE VIEW uid_stat_server AS SELECT * FROM uid_internal.uid_stat_totals();
COMMENT ON VIEW uid_stat_server IS
  'One row: the counters of uid_stat, summed over all databases of the server, with those of sequences that were '
  'dropped. So they never go back before the next server start. refused_standby counts draws that were refused during '
  'recovery, and clock_jumps jumps of the clock forward by more than 10 s that a draw has met. Not counters: generators '
  'and segments are how many of them have a slot in shared memory, and clock_moved_ms is by how many milliseconds the '
  'clock was set since the server start (0 if it was set back).';


-- ---------------------------------------------------------------------------------------------------------
-- Segments as the tables of other services: t_sequence, and Leaf's leaf_alloc. Their nodes take blocks of values with
-- the statements that they send to such a table.
-- ---------------------------------------------------------------------------------------------------------

CREATE FUNCTION uid_internal.uid_show_block() RETURNS trigger
LANGUAGE c AS 'MODULE_PATHNAME', 'uid_show_block';
COMMENT ON FUNCTION uid_internal.uid_show_block() IS
  'Trigger function of uid_segment (for t_sequence) and leaf_alloc. It reserves a block of values for each version of a '
  'row, and writes into the row what was reserved. The caller needs USAGE on the sequence of the segment.';
CREATE TRIGGER uid_show_block BEFORE UPDATE OF current_val, increment_val ON uid_segment
  FOR EACH ROW EXECUTE FUNCTION uid_internal.uid_show_block();
ALTER TABLE uid_segment ENABLE ALWAYS TRIGGER uid_show_block;

CREATE FUNCTION uid_internal.uid_create_segment(name text, start bigint) RETURNS regclass
LANGUAGE sql
BEGIN ATOMIC
  SELECT segment_create(name, start, b.none, b.none, NULL::text, b.one, LEAST(start, 0::bigint), b.none, false)
    FROM (VALUES (1::bigint, NULL::bigint)) b(one, none);
END;
COMMENT ON FUNCTION uid_internal.uid_create_segment(text, bigint) IS
  'Creates a segment that counts from start, and has the bounds of a segment of t_sequence or leaf_alloc.';

CREATE FUNCTION uid_internal.uid_add_segment() RETURNS trigger
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  is_leaf boolean := TG_WHEN = 'BEFORE';
  segment text;
  value bigint;
  is_taken boolean;
  sequence regclass;
BEGIN
  IF TG_OP = 'DELETE' THEN
    RAISE EXCEPTION 'cannot delete from view "%"', TG_TABLE_NAME
      USING ERRCODE = 'feature_not_supported', HINT = 'Drop the segment with segment_drop().';
  END IF;
  IF is_leaf THEN
    segment := NEW.biz_tag;
    value := NEW.max_id;
  ELSIF NEW.increment_val IS NULL THEN
    RAISE EXCEPTION 'increment_val of segment "%" must not be null', left(NEW.pk_seq_name, 63)
      USING ERRCODE = 'null_value_not_allowed', HINT = 'Pass the length of a block, or leave it out for 1.';
  ELSE
    segment := NEW.pk_seq_name;
    -- uid_change_segment() takes the smallest bigint for NULL.
    value := NEW.current_val + (NEW.current_val = -9223372036854775808)::integer;
  END IF;
  is_taken := EXISTS (SELECT FROM uid_internal.segments s WHERE s.name = segment);
  IF is_taken AND NOT is_leaf THEN
    RAISE EXCEPTION 'segment "%" already exists', left(segment, 63)
      USING ERRCODE = 'unique_violation', HINT = 'Update its row, or drop the segment with segment_drop().';
  END IF;
  IF NOT is_taken THEN
    sequence := uid_internal.uid_create_segment(segment, value);
  END IF;
  IF NOT is_leaf THEN
    PERFORM uid_internal.uid_change_segment(sequence, current_val => value, increment_val => NEW.increment_val);
  END IF;
  RETURN NEW;
END
$$;
COMMENT ON FUNCTION uid_internal.uid_add_segment() IS
  'Trigger function of t_sequence and leaf_alloc. An INSERT creates a segment, unless leaf_alloc names one that exists. '
  'A DELETE from t_sequence fails.';

CREATE VIEW t_sequence AS SELECT s.name AS pk_seq_name, s.current_val, s.increment_val FROM uid_segment s;
ALTER VIEW t_sequence ALTER COLUMN increment_val SET DEFAULT 1;
CREATE TRIGGER uid_add_segment INSTEAD OF INSERT OR DELETE ON t_sequence
  FOR EACH ROW EXECUTE FUNCTION uid_internal.uid_add_segment();
COMMENT ON VIEW t_sequence IS
  'The named segments in the form of a t_sequence table, for services that take blocks of increment_val values with '
  'SELECT ... FOR UPDATE and UPDATE t_sequence SET current_val = current_val + increment_val. The values from '
  'current_val - increment_val to current_val + 2 * increment_val are reserved for the row, so a node may take its block '
  'before the UPDATE or after it, as long as all nodes of one row do the same. current_val is NULL until the first '
  'UPDATE. SET current_val = 0 starts over if too few values are left, and else goes on. An INSERT creates a segment. A '
  'role needs SELECT and UPDATE on the view and USAGE on the sequence, to start over also UPDATE on the sequence, and to '
  'insert INSERT on the view and CREATE on the schema uid_segments.';

CREATE FUNCTION uid_leaf_alloc_create(schema text DEFAULT pg_catalog.current_schema()) RETURNS regclass
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  leaf text;
BEGIN
  IF coalesce(schema, '') = '' THEN
    RAISE EXCEPTION 'no schema has been selected for table "leaf_alloc"'
      USING ERRCODE = 'invalid_schema_name', HINT = 'Pass the name of a schema.';
  END IF;
  leaf := format('%I.leaf_alloc', schema::name);
  IF to_regclass(leaf) IS NOT NULL THEN
    RAISE EXCEPTION 'relation "%" already exists', leaf
      USING ERRCODE = 'duplicate_table', HINT = 'Pass another schema, or rename the relation.';
  END IF;
  EXECUTE format(
    'CREATE TABLE %1$s (
       biz_tag varchar(128) PRIMARY KEY DEFAULT '''',
       max_id bigint NOT NULL DEFAULT 1,
       step integer NOT NULL,
       description varchar(256),
       update_time timestamptz NOT NULL DEFAULT CURRENT_TIMESTAMP);
     CREATE TRIGGER uid_add_segment BEFORE INSERT ON %1$s
       FOR EACH ROW EXECUTE FUNCTION uid_internal.uid_add_segment();
     CREATE TRIGGER uid_show_block BEFORE INSERT OR UPDATE ON %1$s
       FOR EACH ROW EXECUTE FUNCTION uid_internal.uid_show_block();
     COMMENT ON TABLE %1$s IS ''The table of Leaf, over segments of uidgen. uid_leaf_alloc_create() created it.''',
    leaf);
  RETURN leaf::regclass;
END
$$;
COMMENT ON FUNCTION uid_leaf_alloc_create(text) IS
  'Creates a table leaf_alloc (biz_tag, max_id, step, description, update_time) in the current schema or in the given '
  'one. Its rows take their values from the segments that biz_tag names. A node of Leaf takes a block with UPDATE '
  'leaf_alloc SET max_id = max_id + n, and reads max_id afterwards in the same transaction. The n + 1 values up to max_id '
  'are reserved, so a node may take those below max_id or those up to max_id, as long as all nodes of one row do the '
  'same. An INSERT creates the segment unless it exists. The caller owns the table. Let other roles use it with GRANT '
  'SELECT, UPDATE; they also need USAGE on the sequences of the segments. Drop it with DROP TABLE.';

-- ---------------------------------------------------------------------------------------------------------
-- Moving in and out: a column from a sequence to uidgen, and back.
--
-- A plan is a list of lines: statements, and comments that begin with --. uid_adopt() and uid_release() return a plan.
-- Unless it is a dry run, they first lock the table, then make the plan, then run its statements one by one. So what
-- the plan says of rows still holds when it runs. These functions are VOLATILE, because a query of a STABLE function
-- would not see rows that were committed while the lock was waited for.
--
-- What the column was is noted in the comment of its sequence, which a dump has, too: the next value, because imports
-- set the counter to the largest id of the generator, and the identity.
-- ---------------------------------------------------------------------------------------------------------

CREATE FUNCTION uid_internal.uid_base_type(type oid) RETURNS regtype
LANGUAGE sql
SET search_path = pg_catalog, pg_temp
AS $$
  WITH RECURSIVE under(type) AS (
    SELECT uid_base_type.type UNION
    SELECT y.typbasetype FROM under u JOIN pg_type y ON y.oid = u.type AND y.typtype = 'd')
  SELECT u.type::regtype FROM under u JOIN pg_type y ON y.oid = u.type AND y.typtype <> 'd'
$$;
COMMENT ON FUNCTION uid_internal.uid_base_type(oid) IS 'Returns the type below a domain, which may be over a domain.';

CREATE FUNCTION uid_internal.uid_sequence_next(sequence regclass, OUT next numeric, OUT increment bigint) RETURNS record
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
COMMENT ON FUNCTION uid_internal.uid_sequence_next(regclass) IS
  'Returns the value that nextval() would return, which may be beyond the end of the sequence, and the increment.';

CREATE FUNCTION uid_internal.uid_movable_column(table_name regclass, column_name name,
    OUT relation text, OUT attnum smallint, OUT type oid, OUT identity text, OUT expression text,
    OUT sequence regclass, OUT next numeric, OUT increment bigint, OUT comment text, OUT noted_next numeric,
    OUT noted_identity text, OUT drawn_by text, OUT source regclass, OUT unused numeric)
RETURNS record
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  home text := uid_internal.uid_home();
  kind text;
  owner oid;
  default_oid oid;
  generated boolean;
  inherited boolean;
  note text[];
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

  SELECT a.attnum, a.atttypid, CASE a.attidentity WHEN 'a' THEN 'ALWAYS' WHEN 'd' THEN 'BY DEFAULT' END,
         pg_get_expr(d.adbin, d.adrelid), d.oid, a.attgenerated <> '', a.attinhcount > 0
    INTO attnum, type, identity, expression, default_oid, generated, inherited
    FROM pg_attribute a LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
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
                          (SELECT string_agg(i.inhparent::regclass::text, ', ' ORDER BY i.inhseqno) FROM pg_inherits i
                            WHERE i.inhrelid = table_name));
  END IF;

  SELECT d.objid, obj_description(d.objid, 'pg_class') INTO sequence, comment
    FROM pg_depend d JOIN pg_class s ON s.oid = d.objid AND s.relkind = 'S'
   WHERE d.classid = 'pg_class'::regclass AND d.refclassid = 'pg_class'::regclass AND d.refobjid = table_name
     AND d.refobjsubid = attnum AND d.deptype IN ('a', 'i')
   ORDER BY d.deptype DESC, d.objid LIMIT 1;
  note := regexp_match(comment,
                       '^(.*?)\n?kept by uid_adopt\(\); next value (-?\d+)(?:, (ALWAYS|BY DEFAULT) identity)?$');
  IF note IS NOT NULL THEN
    comment := nullif(note[1], '');
    noted_next := note[2];
    noted_identity := note[3];
  END IF;
  IF sequence IS NOT NULL THEN
    SELECT x.next, x.increment INTO next, increment FROM uid_internal.uid_sequence_next(sequence) x;
  END IF;
  -- What the default calls, and what it passes.
  SELECT p.call INTO drawn_by
    FROM unnest(ARRAY['uid_next()', 'uid_next(regclass)', 'segment_next(regclass)', 'segment_next(text)']) p(call)
    JOIN pg_depend d ON d.classid = 'pg_attrdef'::regclass AND d.objid = default_oid
     AND d.refclassid = 'pg_proc'::regclass AND d.refobjid = (home || '.' || p.call)::regprocedure;
  IF drawn_by = 'uid_next()' THEN
    SELECT g.generator INTO source FROM uid_internal.generators g WHERE g.is_default;
  ELSE
    SELECT d.refobjid INTO source FROM pg_depend d JOIN pg_class s ON s.oid = d.refobjid AND s.relkind = 'S'
     WHERE d.classid = 'pg_attrdef'::regclass AND d.objid = default_oid AND d.refclassid = 'pg_class'::regclass;
  END IF;
  IF drawn_by = 'segment_next(text)' THEN
    RAISE EXCEPTION 'default of column "%" of table % names a segment by text', column_name, relation
      USING ERRCODE = 'object_not_in_prerequisite_state',
            HINT = format('Pass its sequence: ALTER TABLE %s ALTER COLUMN %I SET DEFAULT '
                          '%s.segment_next(''uid_segments.name''::regclass).', relation, column_name, home);
  END IF;
  unused := greatest(next, noted_next);
  IF drawn_by = 'segment_next(regclass)' THEN
    unused := greatest(unused, (uid_internal.uid_sequence_next(source)).next);
  END IF;
END
$$;
COMMENT ON FUNCTION uid_internal.uid_movable_column(regclass, name) IS
  'Returns what uid_adopt() and uid_release() need to know of a column, and fails if they cannot change it: its '
  'qualified table, its type, its identity or default, the sequence that it owns and its next value, what uid_adopt() '
  'has noted in the comment of this sequence and the rest of the comment, the function of uidgen that its default calls, '
  'the generator or sequence that this function draws from, and a value from which on its sequences have given none '
  '(NULL: not known).';

CREATE FUNCTION uid_internal.uid_id_columns(table_name regclass, attnum smallint,
    OUT relation text, OUT narrow text, OUT conversion text)
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
       WHERE a.attrelid = h.relation AND a.attnum = h.number) n(relation, number)
  ), named AS (
    SELECT format('%I.%I', n.nspname, c.relname) AS relation, a.attname, format_type(a.atttypid, NULL) AS type,
           uid_internal.uid_base_type(a.atttypid) IN ('int2'::regtype, 'int4'::regtype) AS is_narrow,
           a.attinhcount = 0 AS is_own, h.relation = table_name AS is_first
      FROM holding h JOIN pg_attribute a ON a.attrelid = h.relation AND a.attnum = h.number
      JOIN pg_class c ON c.oid = h.relation JOIN pg_namespace n ON n.oid = c.relnamespace)
  SELECT relation,
         CASE WHEN is_narrow THEN format('Column %I of table %s is of type %s.', attname, relation, type) END,
         CASE WHEN is_narrow AND is_own
              THEN format('ALTER TABLE %s ALTER COLUMN %I TYPE bigint;', relation, attname) END
    FROM named ORDER BY NOT is_first, relation COLLATE "C", attname
$$;
COMMENT ON FUNCTION uid_internal.uid_id_columns(regclass, smallint) IS
  'Returns the columns that would have to hold the ids of a column: itself, the columns that refer to it by foreign '
  'keys, and so on, each with its partitions and children; of those of type integer and smallint a sentence that says '
  'so, and the statement that converts the column.';

CREATE FUNCTION uid_internal.uid_draw_expression(source regclass,
    OUT expression text, OUT drawn_by text, OUT generator regclass, OUT sequence regclass)
RETURNS record
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  home text := uid_internal.uid_home();
  literal text := (SELECT quote_literal(format('%I.%I', n.nspname, c.relname)) || '::regclass'
                     FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
                    WHERE c.oid = source AND c.relkind = 'S' AND c.relpersistence = 'p');
BEGIN
  IF source IS NULL THEN
    SELECT g.generator INTO generator FROM uid_internal.generators g WHERE g.is_default;
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
  IF EXISTS (SELECT FROM uid_internal.segments s WHERE s.sequence = source AND s.registry_name IS NOT NULL) THEN
    RAISE EXCEPTION 'segment of sequence % is attached to a fleet''s registry', source
      USING ERRCODE = 'wrong_object_type', DETAIL = 'Only the registry knows which values come next.',
            HINT = 'Raise the segment on the registry above all ids of the column, and change the default yourself.';
  END IF;
  SELECT g.generator INTO generator FROM uid_internal.generators g WHERE g.generator = source;
  drawn_by := CASE WHEN generator IS NULL THEN 'segment_next(regclass)' ELSE 'uid_next(regclass)' END;
  sequence := CASE WHEN generator IS NULL THEN source END;
  expression := format('%s.%s(%s)', home, split_part(drawn_by, '(', 1), literal);
END
$$;
COMMENT ON FUNCTION uid_internal.uid_draw_expression(regclass) IS
  'Returns the default of a column that draws from a generator, from any other sequence, or, for NULL, from the '
  'default generator.';

CREATE FUNCTION uid_internal.uid_above_plan(table_name regclass, column_name name, generator regclass) RETURNS text
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  home text := uid_internal.uid_home();
  largest bigint;
  floor bigint; -- ids of the generator are above it
  is_soon boolean;
  presets text;
BEGIN
  IF NOT EXISTS (SELECT FROM pg_attribute a WHERE a.attrelid = table_name AND a.attname = column_name) THEN
    RAISE EXCEPTION 'column "%" of table % does not exist', column_name, coalesce(table_name::text, 'NULL')
      USING ERRCODE = 'undefined_column', HINT = 'Use the name of one of the table''s columns.';
  END IF;
  EXECUTE format('SELECT max(%I)::bigint FROM %s', column_name, table_name) INTO largest;
  EXECUTE format('SELECT %s.uid_lower_bound(clock_timestamp() - interval ''1 day'', $1)', home)
    INTO floor USING generator;
  -- Where the clock does not show it, the next id does.
  IF largest >= floor THEN
    EXECUTE format('SELECT %s.uid_next($1)', home) INTO floor USING generator;
  END IF;
  IF largest >= floor THEN
    EXECUTE format('SELECT $1 < %1$s.uid_lower_bound(clock_timestamp() + interval ''10 minutes'', $2),
                           string_agg(p.preset, '', '' ORDER BY p.preset) FROM %1$s.uid_preset p
                     WHERE p.epoch IS NOT NULL AND p.mode = ''snowflake''
                       AND %1$s.uid_lower_bound(clock_timestamp(), p.epoch, p.tick_us,
                                                p.datacenter_bits + p.worker_bits + p.sequence_bits) > $1', home)
      INTO is_soon, presets USING largest, generator;
    RAISE EXCEPTION 'ids of generator % would be below those in column "%" of table %',
                    generator, column_name, table_name
      USING ERRCODE = 'object_not_in_prerequisite_state',
            DETAIL = format('The largest id is %s, and the last one of the generator is %s.', largest, floor),
            HINT = CASE WHEN is_soon THEN
              'Call again when the clock is past the time of that id, in ten minutes at most.'
            WHEN presets IS NULL THEN
              'No preset has larger ids today. Create a generator with an earlier epoch or more bits below the time, '
              'or pass a sequence.'
            ELSE format('Presets with larger ids: %s. Run SELECT uid_generator_create(%L, %L, above => %s), and pass '
                        'this generator.', presets, (SELECT c.relname FROM pg_class c WHERE c.oid = table_name),
                        split_part(presets, ', ', 1), largest) END;
  END IF;
  RETURN format('-- largest id: %s; ids of %s are above %s', coalesce(largest::text, 'none'), generator, floor);
END
$$;
COMMENT ON FUNCTION uid_internal.uid_above_plan(regclass, name, regclass) IS
  'Returns the comment that says which ids a generator issues from now on, and fails unless they are above all ids of '
  'a column.';

CREATE FUNCTION uid_internal.uid_grant_plan(table_name regclass, sequence regclass) RETURNS SETOF text
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  owner oid := (SELECT c.relowner FROM pg_class c WHERE c.oid = sequence);
  -- uid_keep_sequence_plan() puts another sequence in the place of an identity's.
  is_new boolean := EXISTS (SELECT FROM pg_depend d WHERE d.classid = 'pg_class'::regclass AND d.objid = sequence
                                                      AND d.deptype = 'i');
  grants text[] := ARRAY(
    SELECT format('GRANT USAGE ON SEQUENCE %s TO %s;', sequence,
                  CASE r.grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(r.grantee)) END)
      FROM (SELECT c.relowner FROM pg_class c WHERE c.oid = table_name
             UNION SELECT x.grantee FROM pg_class t, aclexplode(t.relacl) x
                    WHERE t.oid = table_name AND x.privilege_type = 'INSERT'
             UNION SELECT x.grantee FROM pg_attribute a, aclexplode(a.attacl) x
                    WHERE a.attrelid = table_name AND x.privilege_type = 'INSERT') r(grantee)
     WHERE CASE WHEN is_new THEN r.grantee <> owner
                WHEN r.grantee = 0 THEN NOT has_sequence_privilege('public', sequence, 'USAGE, UPDATE')
                ELSE NOT has_sequence_privilege(r.grantee, sequence, 'USAGE, UPDATE') END
     ORDER BY 1);
BEGIN
  IF grants <> '{}' AND NOT pg_has_role(owner, 'USAGE')
     AND NOT has_sequence_privilege(sequence, 'USAGE WITH GRANT OPTION') THEN
    RAISE EXCEPTION 'roles that insert into table % may not draw from %', table_name, sequence
      USING ERRCODE = 'insufficient_privilege',
            HINT = format('The owner of %s can run: %s', sequence, array_to_string(grants, ' '));
  END IF;
  RETURN QUERY SELECT g.line FROM unnest(grants) WITH ORDINALITY g(line, place) ORDER BY g.place;
END
$$;
COMMENT ON FUNCTION uid_internal.uid_grant_plan(regclass, regclass) IS
  'Returns the statements that let each role draw from a generator or sequence that may insert into a table, and fails '
  'if the caller cannot run them.';

CREATE FUNCTION uid_internal.uid_keep_sequence_plan(owned regclass, relation text, column_name name)
RETURNS SETOF text
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  s record;
  kept text := owned;
  aside text := 'uid_adopt_' || owned::oid;
BEGIN
  SELECT n.nspname, c.relowner, format_type(q.seqtypid, NULL) AS type, q.*
    INTO s
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace JOIN pg_sequence q ON q.seqrelid = c.oid
   WHERE c.oid = owned;
  RETURN NEXT '-- DROP IDENTITY drops the sequence, so another one with the same name and counter takes its place.';
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
END
$$;
COMMENT ON FUNCTION uid_internal.uid_keep_sequence_plan(regclass, text, name) IS
  'Returns the statements that end the identity of a column and keep its sequence, owned by the column.';

CREATE FUNCTION uid_internal.uid_adopt_plan(table_name regclass, column_name name, generator regclass)
RETURNS SETOF text
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  c record;
  draw record;
  narrow text;
  conversions text;
  referring text;
  draws_from regclass;
  repeated numeric;
  up boolean;
BEGIN
  SELECT * INTO c FROM uid_internal.uid_movable_column(table_name, column_name);
  SELECT * INTO draw FROM uid_internal.uid_draw_expression(generator);
  draws_from := coalesce(draw.generator, draw.sequence);
  IF uid_internal.uid_base_type(c.type) NOT IN ('int2'::regtype, 'int4'::regtype, 'int8'::regtype) THEN
    RAISE EXCEPTION 'column "%" of table % is of type %', column_name, c.relation, format_type(c.type, NULL)
      USING ERRCODE = 'datatype_mismatch', HINT = 'Only columns of type bigint, integer or smallint can draw ids.';
  END IF;
  IF c.drawn_by = draw.drawn_by AND c.source = draws_from THEN
    RETURN NEXT format('-- column "%s" of table %s has DEFAULT %s already', column_name, c.relation, c.expression);
    RETURN;
  END IF;

  SELECT string_agg(n.narrow, E'\n' ORDER BY n.place), string_agg(n.conversion, ' ' ORDER BY n.place),
         string_agg(DISTINCT n.relation || ', ', '' ORDER BY n.relation || ', ') FILTER (WHERE n.relation <> c.relation)
    INTO narrow, conversions, referring
    FROM uid_internal.uid_id_columns(table_name, c.attnum) WITH ORDINALITY n(relation, narrow, conversion, place);
  IF narrow IS NOT NULL AND draw.generator IS NOT NULL THEN
    -- A session that inserts has locked the table that refers first, too. The timeout is shorter than deadlock_timeout.
    RAISE EXCEPTION 'ids of column "%" of table % need bigint', column_name, c.relation
      USING ERRCODE = 'datatype_mismatch', DETAIL = narrow,
            HINT = format('Convert these columns, which writes their tables anew while they are locked. Repeat it after '
                          'a lock timeout: BEGIN; SET LOCAL lock_timeout = ''200ms''; LOCK TABLE %s%s; %s COMMIT;',
                          referring, c.relation, conversions);
  END IF;

  RETURN NEXT format('LOCK TABLE %s IN ACCESS EXCLUSIVE MODE;', c.relation);
  RETURN NEXT format('-- former default: %s',
                     coalesce(c.expression, 'GENERATED ' || c.identity || ' AS IDENTITY', 'none'));
  IF draw.generator IS NOT NULL THEN
    RETURN NEXT uid_internal.uid_above_plan(table_name, column_name, draw.generator);
  ELSE
    EXECUTE format('SELECT x.next, x.increment > 0
                      FROM uid_internal.uid_sequence_next($1) x,
                           (SELECT min(%1$I)::bigint, max(%1$I)::bigint FROM %2$s) m(smallest, largest)
                     WHERE CASE WHEN x.increment > 0 THEN x.next <= m.largest ELSE x.next >= m.smallest END',
                   column_name, c.relation)
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
    RETURN QUERY SELECT * FROM uid_internal.uid_keep_sequence_plan(c.sequence, c.relation, column_name);
  END IF;
  -- While the column draws from a generator, its sequence counts nothing.
  IF c.sequence IS NOT NULL AND (c.drawn_by LIKE 'uid_next%') IS NOT TRUE THEN
    RETURN NEXT '-- uid_release() reads in the comment how to go back.';
    RETURN NEXT format('COMMENT ON SEQUENCE %s IS %L;', c.sequence,
                       concat_ws(E'\n', c.comment,
                                 'kept by uid_adopt(); next value ' || c.unused
                                   || coalesce(', ' || coalesce(c.identity, c.noted_identity) || ' identity', '')));
  END IF;
  RETURN NEXT format('ALTER TABLE %s ALTER COLUMN %I SET DEFAULT %s;', c.relation, column_name, draw.expression);
  RETURN QUERY SELECT * FROM uid_internal.uid_grant_plan(table_name, draws_from);
END
$$;
COMMENT ON FUNCTION uid_internal.uid_adopt_plan(regclass, name, regclass) IS
  'Returns the lines of uid_adopt(): statements, and comments that begin with --.';

CREATE FUNCTION uid_internal.uid_release_plan(table_name regclass, column_name name, start bigint)
RETURNS SETOF text
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  home text := uid_internal.uid_home();
  c record;
  s record;
  floor bigint;     -- ids of the generator are at or above it
  largest bigint;   -- largest id below floor
  first numeric;    -- the first value of the sequence
  collision bigint; -- the smallest id that the sequence would meet
  identity text;
BEGIN
  SELECT * INTO c FROM uid_internal.uid_movable_column(table_name, column_name);
  IF c.drawn_by IS NULL THEN
    RAISE EXCEPTION 'column "%" of table % does not draw its default from uidgen', column_name, c.relation
      USING ERRCODE = 'object_not_in_prerequisite_state',
            HINT = 'Run SELECT * FROM uid_generator_columns to list the columns that draw from generators.';
  END IF;
  identity := CASE WHEN c.sequence IS NULL THEN 'BY DEFAULT' ELSE c.noted_identity END;
  SELECT q.* INTO s FROM pg_sequence q WHERE q.seqrelid = c.sequence;
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
    END IF;
    EXECUTE format('SELECT max(%1$I)::bigint FROM %2$s WHERE %1$I < coalesce($1, 9223372036854775807)', column_name,
                   c.relation) INTO largest USING floor;
    -- A counter above the floor was set there, as setval(max(id)) does. The sequence keeps to its stride.
    first := CASE WHEN c.next >= floor THEN c.noted_next ELSE c.unused END;
    first := coalesce(start, CASE WHEN c.increment > 0 THEN
                        first + greatest(ceil((largest + 1 - first) / c.increment), 0) * c.increment END);
    IF first IS NULL THEN
      RAISE EXCEPTION 'could not determine which numbers column "%" of table % had', column_name, c.relation
        USING ERRCODE = 'object_not_in_prerequisite_state',
              DETAIL = format('The next value of its sequence is %s. The largest id below those of the generator is %s.',
                              coalesce(c.next::text, 'not known'), coalesce(largest::text, 'none')),
              HINT = 'Pass as start a value beyond all numbers that a sequence has given to the column.';
    END IF;
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
      RETURN NEXT format('SELECT setval(%L::regclass, %s, false);', c.sequence::text, first);
    END IF;
    RETURN NEXT format('ALTER TABLE %s ALTER COLUMN %I SET DEFAULT nextval(%L::regclass);', c.relation, column_name,
                       c.sequence::text);
    RETURN QUERY SELECT * FROM uid_internal.uid_grant_plan(table_name, c.sequence);
  ELSE
    RETURN NEXT format('ALTER TABLE %s ALTER COLUMN %I DROP DEFAULT;', c.relation, column_name);
    IF c.sequence IS NOT NULL THEN
      RETURN NEXT format('DROP SEQUENCE %s;', c.sequence);
    END IF;
    RETURN NEXT format('ALTER TABLE %s ALTER COLUMN %I SET NOT NULL;', c.relation, column_name);
    RETURN NEXT format('ALTER TABLE %s ALTER COLUMN %I ADD GENERATED %s AS IDENTITY%s;', c.relation, column_name,
      identity, CASE WHEN c.sequence IS NOT NULL THEN
        format(' (SEQUENCE NAME %s INCREMENT %s MINVALUE %s MAXVALUE %s START %s CACHE %s%s)', c.sequence,
               s.seqincrement, s.seqmin, s.seqmax, s.seqstart, s.seqcache,
               CASE WHEN s.seqcycle THEN ' CYCLE' ELSE '' END) END);
    RETURN NEXT format('ALTER TABLE %s ALTER COLUMN %I RESTART WITH %s;', c.relation, column_name, first);
  END IF;
  IF c.noted_next IS NOT NULL AND (c.comment IS NOT NULL OR identity IS NULL) THEN
    RETURN NEXT format('COMMENT ON SEQUENCE %s IS %L;', c.sequence, c.comment);
  END IF;
END
$$;
COMMENT ON FUNCTION uid_internal.uid_release_plan(regclass, name, bigint) IS
  'Returns the lines of uid_release(): statements, and comments that begin with --.';

-- Estimates of the recursive queries of the catalog are so high that PostgreSQL would compile them.
CREATE FUNCTION uid_internal.uid_run_plan(table_name regclass, plan_query text, dry_run boolean, patience_ms integer)
RETURNS SETOF text
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
SET row_security = off
SET jit = off
SET lock_timeout = '100ms'
AS $$
DECLARE
  relation text := (SELECT format('%I.%I', n.nspname, t.relname) FROM pg_class t
                      JOIN pg_namespace n ON n.oid = t.relnamespace
                     WHERE t.oid = table_name AND t.relkind IN ('r', 'p') AND pg_has_role(t.relowner, 'USAGE'));
  began timestamptz := clock_timestamp();
  attempt_ms integer := 0;
  plan text[];
  line text;
BEGIN
  IF NOT dry_run AND relation IS NOT NULL -- else making the plan fails
     AND current_setting('transaction_isolation') IN ('repeatable read', 'serializable') THEN
    RAISE EXCEPTION 'a column can be moved only in a transaction of isolation level READ COMMITTED'
      USING ERRCODE = 'invalid_transaction_state',
            DETAIL = 'The snapshot of this transaction may be older than the largest id.';
  END IF;
  -- Sessions that need the table queue behind an attempt. So an attempt is short, and they go on between two attempts.
  -- It is shorter than deadlock_timeout, so that it ends before a session in a deadlock with it fails.
  LOOP
    attempt_ms := least(attempt_ms + 100, 500, nullif(patience_ms, 0));
    BEGIN
      PERFORM set_config('lock_timeout', attempt_ms::text, true);
      IF NOT dry_run AND relation IS NOT NULL THEN
        EXECUTE format('LOCK TABLE %s IN ACCESS EXCLUSIVE MODE', relation);
      END IF;
      EXECUTE format('SELECT array_agg(p.line ORDER BY p.place) FROM uid_internal.%s WITH ORDINALITY p(line, place)',
                     plan_query) INTO plan;
      FOREACH line IN ARRAY plan LOOP
        IF NOT dry_run AND line NOT LIKE '--%' THEN
          EXECUTE line;
        END IF;
      END LOOP;
      EXIT;
    EXCEPTION WHEN lock_not_available OR deadlock_detected THEN
      IF extract(epoch FROM clock_timestamp() - began) * 1000 >= nullif(patience_ms, 0) THEN
        RAISE;
      END IF;
    END;
    PERFORM pg_sleep(2 * attempt_ms / 1000.0);
  END LOOP;
  FOREACH line IN ARRAY plan LOOP
    -- So that a name cannot end a comment.
    RETURN NEXT CASE WHEN line LIKE '--%' THEN translate(line, E'\n\r', '  ') ELSE line END;
  END LOOP;
  IF dry_run THEN
    RETURN NEXT '-- This was a dry run. To run the statements in one transaction, add dry_run => false.';
  END IF;
END
$$;
COMMENT ON FUNCTION uid_internal.uid_run_plan(regclass, text, boolean, integer) IS
  'Returns the lines of a plan of uid_adopt() or uid_release(), and runs its statements unless it is a dry run. It '
  'retries as long as it does not get a lock, for patience_ms (0: without limit). Row-level security would hide ids, so '
  'it is an error where it applies.';

CREATE FUNCTION uid_adopt(table_name regclass, column_name name, generator regclass DEFAULT NULL,
    dry_run boolean DEFAULT true) RETURNS SETOF text
LANGUAGE sql
SET search_path = pg_catalog, pg_temp
AS $$
  SELECT uid_internal.uid_run_plan(table_name,
    format('uid_adopt_plan(%L::regclass, %L::name, %L::regclass)', table_name::oid, column_name, generator::oid),
    coalesce(dry_run, true), (SELECT s.setting::integer FROM pg_settings s WHERE s.name = 'lock_timeout'))
$$;
COMMENT ON FUNCTION uid_adopt(regclass, name, regclass, boolean) IS
  'Gives a column of a table a default of uidgen instead of a sequence: uid_next(), uid_next() of the given generator, '
  'or segment_next() if the argument is any other sequence. It returns the statements and comments, and runs the '
  'statements only with dry_run => false, in one transaction that locks the table for a short time. While other sessions '
  'have the table locked, it retries for as long as lock_timeout says (0: without limit). It fails unless all new ids '
  'are above those in the column and fit its type, and unless each role that inserts may draw, or can be given USAGE. '
  'The sequence of the column is kept. Only the owner of the table may call it. uid_release() goes back.';

CREATE FUNCTION uid_release(table_name regclass, column_name name, start bigint DEFAULT NULL,
    dry_run boolean DEFAULT true) RETURNS SETOF text
LANGUAGE sql
SET search_path = pg_catalog, pg_temp
AS $$
  SELECT uid_internal.uid_run_plan(table_name,
    format('uid_release_plan(%L::regclass, %L::name, %L::bigint)', table_name::oid, column_name, start),
    coalesce(dry_run, true), (SELECT s.setting::integer FROM pg_settings s WHERE s.name = 'lock_timeout'))
$$;
COMMENT ON FUNCTION uid_release(regclass, name, bigint, boolean) IS
  'Gives a column that draws from uidgen what it had before uid_adopt(): nextval() of its sequence, or its identity. A '
  'column without a sequence becomes GENERATED BY DEFAULT AS IDENTITY. The sequence continues above all values that it '
  'has given and above the largest id that is smaller than the ids of the generator, or with start. start is needed '
  'where those values are not known: the column owns no sequence, or its default was set by hand and the counter too. '
  'It returns the statements and comments, and runs the statements only with dry_run => false, as uid_adopt() does. '
  'Only the owner of the table may call it.';

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

DO $$
DECLARE
  name text;
BEGIN
  FOREACH name IN ARRAY ARRAY['uid_generator', 'uid_segment', 'uid_secrets.uid_key', 'uid_fleet_state',
                              'uid_secrets.uid_fleet_key', 'uid_fleet_pool', 'uid_fleet_node'] LOOP
    EXECUTE pg_catalog.format(
      'CREATE TRIGGER uid_keep_local BEFORE INSERT OR UPDATE OR DELETE ON %1$s
         FOR EACH ROW EXECUTE FUNCTION uid_internal.uid_keep_local();
       CREATE TRIGGER uid_keep_local_truncate BEFORE TRUNCATE ON %1$s
         FOR EACH STATEMENT EXECUTE FUNCTION uid_internal.uid_keep_local();
       ALTER TABLE %1$s ENABLE ALWAYS TRIGGER uid_keep_local;
       ALTER TABLE %1$s ENABLE ALWAYS TRIGGER uid_keep_local_truncate', name);
  END LOOP;
END
$$;

-- To dump and restore. A row without its sequence could not be restored. A drop leaves such a row where event triggers are
-- off. A sequence that is a member of another extension is not in the dump.
DO $$
DECLARE
  restorable text := 'IN (SELECT oid FROM pg_catalog.pg_class c WHERE relkind = ''S'' AND NOT EXISTS ('
                  || 'SELECT FROM pg_catalog.pg_depend d JOIN pg_catalog.pg_extension e ON e.oid = d.refobjid '
                  || 'WHERE d.classid = ''pg_catalog.pg_class''::pg_catalog.regclass AND d.objid = c.oid '
                  || 'AND d.deptype = ''e'' AND e.extname <> ''uidgen''))';
BEGIN
  PERFORM pg_catalog.pg_extension_config_dump('uid_generator', 'WHERE generator::pg_catalog.oid ' || restorable);
  PERFORM pg_catalog.pg_extension_config_dump('uid_segment', 'WHERE sequence::pg_catalog.oid ' || restorable);
  PERFORM pg_catalog.pg_extension_config_dump('uid_secrets.uid_key', 'WHERE sequence::pg_catalog.oid ' || restorable);
END
$$;
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


-- ---------------------------------------------------------------------------------------------------------
-- From an id back to its server and its table
-- ---------------------------------------------------------------------------------------------------------

CREATE FUNCTION uid_layout(generator regclass) RETURNS text
LANGUAGE c STABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'uid_layout';
COMMENT ON FUNCTION uid_layout(regclass) IS
  'Returns the layout of a generator''s ids in the form of worker_node.layout.';

-- uid_decode() fails without a default generator.
CREATE FUNCTION uid_internal.uid_chosen(generator regclass) RETURNS regclass
LANGUAGE sql STABLE PARALLEL SAFE
BEGIN ATOMIC
  SELECT CASE WHEN generator IS NULL
              THEN (SELECT g.generator FROM uid_decode(0::bigint) d LEFT JOIN uid_generator_config g ON g.is_default)
              ELSE generator END;
END;
COMMENT ON FUNCTION uid_internal.uid_chosen(regclass) IS 'Returns the given generator, or the default one for NULL.';

CREATE FUNCTION uid_origin(id bigint, generator regclass DEFAULT NULL,
    OUT host_name text, OUT port text, OUT system_identifier bigint, OUT timeline integer, OUT database text,
    OUT generator_name text, OUT node_id bigint, OUT created timestamptz, OUT modified timestamptz, OUT columns text[])
RETURNS record
LANGUAGE sql STABLE PARALLEL SAFE
SET search_path = pg_catalog, pg_temp -- for the names of tables
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
    FROM uid_internal.uid_chosen(generator) k
    LEFT JOIN LATERAL uid_decode(id, k) p ON true
    LEFT JOIN LATERAL (
           SELECT n.host_name::text, n.port::text, n.system_identifier, n.timeline, n.database, n.generator, n.id, n.created,
                  n.modified
             FROM uid_generator_config g
             JOIN pg_catalog.pg_class c ON c.oid = g.generator::oid
             JOIN pg_catalog.pg_namespace s ON s.oid = c.relnamespace
            CROSS JOIN (SELECT r.*, pg_catalog.lead(r.created) OVER (PARTITION BY r.system_identifier, r.database, r.generator
                                                                    ORDER BY r.created, r.id) AS ended
                          FROM worker_node r WHERE r.layout = uid_layout(k)) n
            WHERE g.generator::oid = k::oid AND n.datacenter_id = p.datacenter_id AND n.worker_id = p.worker_id
              AND (p.backup OR n.created <= p.generated_at + pg_catalog.make_interval(secs =>
                     1::float8 + g.tick_us::float8 / 1000000::float8
                     + CASE WHEN g.mode = 'cached'::text THEN g.max_staleness_ms::float8 / 1000::float8 ELSE 0::float8 END))
            ORDER BY n.generator = pg_catalog.format('%I.%I', s.nspname, c.relname) DESC,
                     greatest(n.created - p.generated_at, p.generated_at - n.ended, interval '0'), n.created DESC
            LIMIT 1) w ON true;
END;
COMMENT ON FUNCTION uid_origin(bigint, regclass) IS
  'Returns where an id of a generator (NULL: the default one) comes from: the server, the database and the generator of its row of worker_node, '
  'whose id is node_id, when that row was created and last modified, and the columns of this database whose default '
  'draws from the generator. All are NULL if no row fits. Of several rows with the id''s worker id, datacenter '
  'id and layout, those of the given generator come first. Of these it is the one in use at the id''s time: from its '
  'creation until the next row of its generator. That is exact while the clock was right, the rows are complete and no '
  'other database had the same node. Otherwise, and for ids made within max_ahead_ms of the creation '
  'of a row, it is the best match: the row in use at the nearest time. The caller needs SELECT on '
  'worker_node.';

-- ---------------------------------------------------------------------------------------------------------
-- Ids as short texts. None of these functions is LEAKPROOF: their errors tell about their argument.
-- ---------------------------------------------------------------------------------------------------------

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

-- ---------------------------------------------------------------------------------------------------------
-- Ids as UUIDs of version 7
-- ---------------------------------------------------------------------------------------------------------

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

-- ---------------------------------------------------------------------------------------------------------
-- An id, explained for people
-- ---------------------------------------------------------------------------------------------------------

CREATE FUNCTION uid_explain(id bigint, generator regclass DEFAULT NULL) RETURNS text
LANGUAGE plpgsql STABLE PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  home   text := uid_internal.uid_home();
  config record;
  total  integer;
  parts  record;
  origin record;
  created timestamptz;
  ahead  interval;
  tables text;
  picture text;
  lines  text[];
  notes  text[];
BEGIN
  generator := uid_internal.uid_chosen(generator);
  IF id IS NULL THEN
    RETURN NULL;
  END IF;
  EXECUTE format('SELECT %s.uid_layout($1)', home) USING generator; -- fails if it is not a generator
  EXECUTE format('SELECT c.* FROM %s.uid_generator_config c WHERE c.generator = $1', home) INTO config USING generator;
  total := config.time_bits + config.datacenter_bits + config.worker_bits + config.sequence_bits;
  lines := ARRAY[
    format('id         %s', id),
    format('generator  %s, preset %s, ticks of %s s since %s', generator, config.preset,
           trim_scale(config.tick_us / 1000000.0), config.epoch),
    ''];
  -- A picture of the fields: their names, their bits and their values.
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
  lines := lines || picture || ''::text;

  IF id < 0 THEN
    notes := ARRAY['negative: the sign bit is set, so its time would be before the epoch; no generator makes such an id'];
  ELSIF id::numeric >= 2::numeric ^ total THEN
    notes := ARRAY[format('too large: ids of this generator have at most %s bits; another layout made it', total)];
  ELSIF id < 2::numeric ^ (total - config.time_bits + 1) THEN
    notes := ARRAY['too small: no generator issues an id of the first two ticks, so a sequence may have given it'];
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
    -- The builtin generator was there when its row was made.
    created := CASE WHEN config.builtin THEN config.epoch + interval '1 day' ELSE config.created END;
    IF parts.generated_at + make_interval(secs => config.tick_us / 1e6) < created THEN
      notes := notes || format('its time is before %s, when the generator had issued no id: a sequence or another '
                               'service made it, or a clock was wrong', created);
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
          format('row        worker_node %s, drawn at %s, last noted at %s', origin.node_id, origin.created,
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
  'Returns what is known of an id of a generator (NULL: the default one), as text for people: a picture of its fields, in bits and as numbers; '
  'its time in the session''s time zone; the server, database and row of worker_node behind it, as uid_origin() finds '
  'them; and notes on what may be wrong. A number that is not an id of the generator is drawn, too, and a note says '
  'why. The text is not for programs: it may change.';

-- ---------------------------------------------------------------------------------------------------------
-- Privileges: all of them, and only here. Each object gets those that are named below, whatever ALTER DEFAULT PRIVILEGES
-- says of the objects of the superuser.
-- ---------------------------------------------------------------------------------------------------------

DO $$
DECLARE
  o record;
BEGIN
  FOR o IN
    SELECT k.kind, i.identity AS name, g.grantees,
           CASE WHEN k.kind OPERATOR(pg_catalog.=) ANY ('{ROUTINE,TYPE}'::pg_catalog.text[])
                THEN ', PUBLIC'::pg_catalog.text ELSE ''::pg_catalog.text END AS rest
      FROM pg_catalog.pg_extension e
      JOIN pg_catalog.pg_depend d ON d.refclassid OPERATOR(pg_catalog.=) e.tableoid
       AND d.refobjid OPERATOR(pg_catalog.=) e.oid AND d.deptype OPERATOR(pg_catalog.=) 'e'::pg_catalog."char"
     CROSS JOIN LATERAL (
             SELECT CASE c.relkind WHEN 'S'::pg_catalog."char" THEN 'SEQUENCE'::pg_catalog.text
                                   ELSE 'TABLE'::pg_catalog.text END, c.relacl
               FROM pg_catalog.pg_class c WHERE c.tableoid OPERATOR(pg_catalog.=) d.classid
                                            AND c.oid OPERATOR(pg_catalog.=) d.objid
              UNION ALL
             SELECT 'ROUTINE'::pg_catalog.text, p.proacl
               FROM pg_catalog.pg_proc p WHERE p.tableoid OPERATOR(pg_catalog.=) d.classid
                                           AND p.oid OPERATOR(pg_catalog.=) d.objid
              UNION ALL
             SELECT 'TYPE'::pg_catalog.text, t.typacl
               FROM pg_catalog.pg_type t WHERE t.tableoid OPERATOR(pg_catalog.=) d.classid
                                           AND t.oid OPERATOR(pg_catalog.=) d.objid
              UNION ALL
             SELECT 'SCHEMA'::pg_catalog.text, n.nspacl
               FROM pg_catalog.pg_namespace n WHERE n.tableoid OPERATOR(pg_catalog.=) d.classid
                                                AND n.oid OPERATOR(pg_catalog.=) d.objid) k(kind, acl)
     CROSS JOIN LATERAL (
             SELECT coalesce(pg_catalog.string_agg(
                      DISTINCT CASE WHEN a.grantee OPERATOR(pg_catalog.=) 0::pg_catalog.oid THEN 'PUBLIC'::pg_catalog.text
                                    ELSE pg_catalog.quote_ident(pg_catalog.pg_get_userbyid(a.grantee)::pg_catalog.text)
                                    END, ', '::pg_catalog.text), 'PUBLIC'::pg_catalog.text) AS grantees
               FROM pg_catalog.aclexplode(k.acl) a) g
     CROSS JOIN LATERAL pg_catalog.pg_identify_object(d.classid, d.objid, 0) i
     WHERE e.extname OPERATOR(pg_catalog.=) 'uidgen'::pg_catalog.name AND k.acl IS NOT NULL
  LOOP
    EXECUTE pg_catalog.format('REVOKE ALL ON %1$s %2$s FROM %3$s; GRANT ALL ON %1$s %2$s TO CURRENT_USER%4$s'
                              ::pg_catalog.text, o.kind, o.name, o.grantees, o.rest);
  END LOOP;
END
$$;

-- Who may look, draw and register. A trigger checks what a role inserts. The counter of a segment (current_val and
-- increment_val of t_sequence) is for roles that may use its sequence.
GRANT USAGE ON SCHEMA uid_generators, uid_segments, uid_keys TO PUBLIC;
GRANT USAGE ON SEQUENCE uid_generators.uid_default TO PUBLIC;
GRANT SELECT, INSERT ON uid_generator TO PUBLIC;
GRANT SELECT (name, sequence, step, max_step, description, registry_name, fleet, increment), INSERT ON uid_segment TO PUBLIC;
GRANT SELECT ON uid_preset, uid_generator_config, uid_generator_status, uid_generator_limits, uid_generator_columns,
  uid_key_config, segment_status, uid_stat, uid_stat_server TO PUBLIC;
-- In views and functions, with the rights of their callers.
GRANT USAGE ON SCHEMA uid_internal TO PUBLIC;
REVOKE EXECUTE ON ALL FUNCTIONS IN SCHEMA uid_internal FROM PUBLIC;
GRANT EXECUTE ON FUNCTION uid_internal.uid_home, uid_internal.uid_chosen, uid_internal.uid_generator_builtin,
  uid_internal.uid_create_segment, uid_internal.uid_change_segment, uid_internal.uid_look_up_segment,
  uid_internal.uid_add_segment, uid_internal.uid_show_block, uid_internal.uid_slots, uid_internal.uid_stat_sequences,
  uid_internal.uid_stat_totals, uid_internal.uid_base_type, uid_internal.uid_movable_column,
  uid_internal.uid_id_columns, uid_internal.uid_draw_expression, uid_internal.uid_sequence_next,
  uid_internal.uid_above_plan, uid_internal.uid_grant_plan, uid_internal.uid_keep_sequence_plan,
  uid_internal.uid_adopt_plan, uid_internal.uid_release_plan, uid_internal.uid_run_plan TO PUBLIC;
GRANT SELECT ON uid_internal.generators TO PUBLIC;
GRANT SELECT, INSERT ON uid_internal.segments TO PUBLIC;

-- The owner of the database creates generators, segments and keys, and dumps and restores.
GRANT CREATE ON SCHEMA uid_generators, uid_segments, uid_keys TO pg_database_owner;
GRANT USAGE ON SCHEMA uid_secrets TO pg_database_owner;
GRANT SELECT ON uid_segment TO pg_database_owner;
GRANT SELECT, INSERT ON worker_node, uid_secrets.uid_key, uid_secrets.uid_fleet_key, uid_fleet_state, uid_fleet_pool,
  uid_fleet_node TO pg_database_owner;
GRANT SELECT, UPDATE ON SEQUENCE uid_generators.uid_default, worker_node_id_seq, uid_fleet_serial TO pg_database_owner;

-- Who sees the server and the fleet, and who administers them.
GRANT SELECT ON worker_node, uid_registry_status, uid_fleet, uid_fleet_pools TO pg_monitor;
REVOKE EXECUTE ON PROCEDURE uid_fleet_call, uid_fleet_block FROM PUBLIC;
REVOKE EXECUTE ON FUNCTION uid_fleet_move(), uid_fleet_fence, uid_fleet_handover,
  uid_fleet_takeover, uid_fleet_reserve, uid_fleet_admit, uid_fleet_expel FROM PUBLIC;
GRANT EXECUTE ON FUNCTION uid_internal.uid_registrar() TO pg_monitor;
GRANT EXECUTE ON FUNCTION uid_fleet_fence, uid_fleet_handover, uid_fleet_takeover, uid_fleet_reserve, uid_fleet_admit,
  uid_fleet_expel TO pg_database_owner;

-- ---------------------------------------------------------------------------------------------------------
-- What the role that creates the extension should know
-- ---------------------------------------------------------------------------------------------------------

-- An install script runs with client_min_messages at WARNING or above. A session that asks for less sees the notice.
DO $$
BEGIN
  IF pg_catalog.current_setting('server_version_num')::pg_catalog.int4 OPERATOR(pg_catalog.<) 170000
     AND pg_catalog.current_setting('shared_preload_libraries') OPERATOR(pg_catalog.!~) '\muidgen\M'::pg_catalog.text THEN
    RAISE WARNING 'uidgen must be loaded via shared_preload_libraries before it can issue ids'
      USING HINT = 'Add uidgen to shared_preload_libraries in postgresql.conf and restart the server. PostgreSQL 17 and '
                   'later need neither.';
  ELSIF coalesce(pg_catalog.current_setting('uidgen.datacenter_id', true), '-1')
          OPERATOR(pg_catalog.=) '-1'::pg_catalog.text
        AND coalesce(pg_catalog.current_setting('uidgen.registry', true), '')
              OPERATOR(pg_catalog.=) ''::pg_catalog.text
        AND (SELECT reset_val NOT IN ('warning', 'error') FROM pg_catalog.pg_settings
              WHERE name = 'client_min_messages') THEN
    PERFORM pg_catalog.set_config('client_min_messages', 'notice', true);
    RAISE NOTICE 'ids of this database are only unlikely to collide with ids of other databases'
      USING HINT = 'To exclude it, set uidgen.datacenter_id or uidgen.registry (see README.md, More than one database).';
  END IF;
END
$$;

-- ---------------------------------------------------------------------------------------------------------
-- The end: every object is in a schema of the extension, and depends on nothing elsewhere that a role could have made.
-- So no name has meant another object than it should. Languages are those of the server.
-- ---------------------------------------------------------------------------------------------------------

DO $$
DECLARE
  stray record;
BEGIN
  WITH RECURSIVE extension(class, oid, home) AS (
    SELECT e.tableoid, e.oid, e.extnamespace FROM pg_catalog.pg_extension e
     WHERE e.extname OPERATOR(pg_catalog.=) 'uidgen'::pg_catalog.name
  ), part(class, oid) AS (     -- members, their rules, triggers, defaults, constraints, indexes and row types
    SELECT d.classid, d.objid
      FROM extension x JOIN pg_catalog.pg_depend d ON d.refclassid OPERATOR(pg_catalog.=) x.class
       AND d.refobjid OPERATOR(pg_catalog.=) x.oid AND d.deptype OPERATOR(pg_catalog.=) 'e'::pg_catalog."char"
     UNION
    SELECT d.classid, d.objid
      FROM part p JOIN pg_catalog.pg_depend d ON d.refclassid OPERATOR(pg_catalog.=) p.class
       AND d.refobjid OPERATOR(pg_catalog.=) p.oid
       AND d.deptype OPERATOR(pg_catalog.=) ANY ('{a,i}'::pg_catalog."char"[]))
  SELECT pg_catalog.pg_describe_object(d.classid, d.objid, 0) AS object,
         pg_catalog.pg_describe_object(d.refclassid, d.refobjid, 0) AS needed
    INTO stray
    FROM extension x CROSS JOIN part p
    JOIN pg_catalog.pg_depend d ON d.classid OPERATOR(pg_catalog.=) p.class AND d.objid OPERATOR(pg_catalog.=) p.oid
   WHERE NOT (d.refclassid OPERATOR(pg_catalog.=) x.class AND d.refobjid OPERATOR(pg_catalog.=) x.oid)
     AND NOT (d.refclassid OPERATOR(pg_catalog.=) 'pg_catalog.pg_namespace'::pg_catalog.regclass::pg_catalog.oid
              AND d.refobjid OPERATOR(pg_catalog.=) x.home)
     AND (d.refclassid OPERATOR(pg_catalog.=) 'pg_catalog.pg_namespace'::pg_catalog.regclass::pg_catalog.oid
          OR d.refobjid OPERATOR(pg_catalog.>=) 16384::pg_catalog.oid) -- FirstNormalObjectId
     AND d.refclassid OPERATOR(pg_catalog.<>) 'pg_catalog.pg_language'::pg_catalog.regclass::pg_catalog.oid
     AND NOT EXISTS (SELECT FROM part q WHERE q.class OPERATOR(pg_catalog.=) d.refclassid
                                          AND q.oid OPERATOR(pg_catalog.=) d.refobjid)
   LIMIT 1;
  IF FOUND THEN
    RAISE EXCEPTION 'extension uidgen would depend on an object that is not its own'
      USING ERRCODE = 'object_not_in_prerequisite_state',
            DETAIL = pg_catalog.format('Its %s depends on %s.', stray.object, stray.needed),
            HINT = 'Create the extension in a schema of its own that no other role owns or renames.';
  END IF;
END
$$;
