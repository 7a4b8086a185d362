-- uidgen 0.1.0: the SQL surface. A released install script never changes.
\echo Use "CREATE EXTENSION uidgen" to load this file. \quit

-- ---------------------------------------------------------------------------------------------------------
-- Where the sequences of generators and named segments live: apart from people's own relations. Everybody may
-- name them; who may draw is decided by USAGE on each sequence, who may create by CREATE on the schema.
-- ---------------------------------------------------------------------------------------------------------

CREATE SCHEMA uid_generators;
CREATE SCHEMA uid_segments;
GRANT USAGE ON SCHEMA uid_generators, uid_segments TO PUBLIC;
GRANT CREATE ON SCHEMA uid_generators, uid_segments TO pg_database_owner;
COMMENT ON SCHEMA uid_generators IS
  'Lease sequences of uidgen''s generators, one each. last_value is the generator''s high-water mark: the highest tick ever leased.';
COMMENT ON SCHEMA uid_segments IS
  'Sequences of uidgen''s named segments, one each.';

-- ---------------------------------------------------------------------------------------------------------
-- Generators
-- ---------------------------------------------------------------------------------------------------------

-- The library knows the columns by number (src/pg/tables/generator_columns.hpp): they are only ever added at the end.
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
  'One row a generator: its layout, its bounds and its policies. Rows are made by uid_generator_create() and go away with their sequence. The builtin generator has one only once it was altered or a default was chosen; uid_generator_config shows it in any case.';
COMMENT ON COLUMN uid_generator.generator IS 'the lease sequence; USAGE on it lets a role draw';
COMMENT ON COLUMN uid_generator.preset IS 'the preset that the row was made from';
COMMENT ON COLUMN uid_generator.epoch IS 'instant of tick 0';
COMMENT ON COLUMN uid_generator.tick_us IS 'length of a tick in microseconds, 1 to 3600000000';
COMMENT ON COLUMN uid_generator.time_bits IS 'width of the time field, 1 to 47';
COMMENT ON COLUMN uid_generator.datacenter_bits IS 'width of the datacenter id, 0 to 31';
COMMENT ON COLUMN uid_generator.worker_bits IS 'width of the worker id, 0 to 31';
COMMENT ON COLUMN uid_generator.sequence_bits IS 'width of the sequence number within a tick, 0 to 31';
COMMENT ON COLUMN uid_generator.sequence_first IS 'false: time | datacenter | worker | sequence; true: time | sequence | datacenter | worker';
COMMENT ON COLUMN uid_generator.backup_worker IS 'the worker field''s top bit marks ids of the backup worker; worker ids are drawn from the bits below';
COMMENT ON COLUMN uid_generator.lease_ms IS 'how much time one record in the write-ahead log leases, in milliseconds, up to max_ahead_ms';
COMMENT ON COLUMN uid_generator.max_ahead_ms IS 'how far the time in an id may be ahead of the clock, in milliseconds, at most ten minutes';
COMMENT ON COLUMN uid_generator.when_full IS 'when the sequence numbers of a tick are used up: wait for the next tick, borrow it (up to max_ahead_ms), or take the backup worker''s, then borrow';
COMMENT ON COLUMN uid_generator.when_back IS 'when the clock goes back: hold the last tick within the tolerance, wait within the tolerance, take the backup worker, error, or new_worker (hold within the tolerance, beyond it begin again at the clock with the next worker id)';
COMMENT ON COLUMN uid_generator.tolerance_ms IS 'how far the clock may be back, in milliseconds, before when_back ends in an error (of backup: how far its own ids may be ahead of the clock); NULL: no limit but max_ahead_ms';
COMMENT ON COLUMN uid_generator.spread IS 'a tick''s sequence numbers start anywhere in the tick, not at 0, so that id % n is even on a quiet generator';
COMMENT ON COLUMN uid_generator.worker_policy IS 'disposable: a new worker id each start of the server; sticky: the one this host and port had last; static: worker_number';
COMMENT ON COLUMN uid_generator.worker_number IS 'the worker id of the policy static (of when_back new_worker: the first one)';
COMMENT ON COLUMN uid_generator.mode IS 'snowflake: ids are made from the clock at each call; cached: ahead of time, into a ring in shared memory. What follows is for cached mode';
COMMENT ON COLUMN uid_generator.boost_power IS 'the ring holds 2^sequence_bits << boost_power ids, 0 to 20';
COMMENT ON COLUMN uid_generator.padding_factor IS 'the ring is padded when less than this share of it is filled, in percent, 1 to 100';
COMMENT ON COLUMN uid_generator.schedule_ms IS 'the ring is also padded this often, in milliseconds; NULL: never';
COMMENT ON COLUMN uid_generator.when_ring_full IS 'stop: the padder stops at a full ring; discard: it throws the rest of its tick away, as the original does';
COMMENT ON COLUMN uid_generator.when_ring_empty IS 'a call that finds the ring empty pads it itself, waits for the padder, or ends in an error';
COMMENT ON COLUMN uid_generator.chunk IS 'how many ids a session takes out of the ring at a time, a power of two up to 2^sequence_bits';
COMMENT ON COLUMN uid_generator.max_staleness_ms IS 'how far the time in an id may be behind the clock, in milliseconds, at least two ticks';
COMMENT ON COLUMN uid_generator.created IS 'when the generator was made (the builtin one: when its row was)';
COMMENT ON COLUMN uid_generator.builtin IS 'true for the generator that comes with the extension';
COMMENT ON COLUMN uid_generator.is_default IS 'true for the generator behind uid_next(), set by uid_default_set(). No such row: it is the builtin one if that has no row either; else there is none, because it was dropped';

-- A row may be added by the owner of the sequence that it describes, and by the owner of the table. What else a dump has, the
-- owner of the database may add: he restores it. (Row-level security would say the same, and keep him from dumping it.)
CREATE FUNCTION uid_check_registration() RETURNS trigger
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  -- The trigger's arguments: the column that names the sequence, and the schema that it must be in.
  sequence regclass := to_jsonb(NEW) ->> TG_ARGV[0];
  is_builtin boolean := coalesce((to_jsonb(NEW) ->> 'builtin')::boolean, false);
  is_default boolean := coalesce((to_jsonb(NEW) ->> 'is_default')::boolean, false);
  owns_database boolean := pg_has_role('pg_database_owner', 'USAGE');
BEGIN
  IF NOT pg_has_role((SELECT relowner FROM pg_class WHERE oid = TG_RELID), 'USAGE')
     AND NOT (is_builtin AND owns_database) -- uid_generator_changing() looks whether it is the builtin one
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
  'Trigger of uid_generator and uid_segment: only the owner of a sequence may register it; the owner of the database may restore what a dump has.';

CREATE FUNCTION uid_generator_changing() RETURNS trigger
LANGUAGE c AS 'MODULE_PATHNAME', 'uid_generator_changing';
COMMENT ON FUNCTION uid_generator_changing() IS
  'Trigger of uid_generator: refuses a row that makes no sense, and a change of the layout once ids were leased; a change of anything else ends the lease in hand, so that it counts from the next id on.';

CREATE FUNCTION uid_keep_local() RETURNS trigger
LANGUAGE c AS 'MODULE_PATHNAME', 'uid_keep_local';
COMMENT ON FUNCTION uid_keep_local() IS
  'Trigger of uid_generator and uid_segment, whose rows describe sequences of this server: leaves out what logical replication brings from another one.';

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
-- A row whose sequence is gone (dropped where neither event triggers nor the library were at work) could not be restored.
SELECT pg_catalog.pg_extension_config_dump('uid_generator',
  'WHERE generator::pg_catalog.oid IN (SELECT oid FROM pg_catalog.pg_class WHERE relkind = ''S'')');

-- INCREMENT, MINVALUE and is_called make nextval fail without moving it: nobody but uidgen takes a lease.
CREATE SEQUENCE uid_generators.uid_default
  INCREMENT 9223372036854775807 MINVALUE 1 START 1 NO CYCLE;
SELECT pg_catalog.setval('uid_generators.uid_default', 1, true);
GRANT USAGE ON SEQUENCE uid_generators.uid_default TO PUBLIC;
GRANT SELECT, UPDATE ON SEQUENCE uid_generators.uid_default TO pg_database_owner; -- to dump and restore
SELECT pg_catalog.pg_extension_config_dump('uid_generators.uid_default', '');
COMMENT ON SEQUENCE uid_generators.uid_default IS
  'Lease sequence of the database''s default generator, the one behind uid_next().';

-- Sources of the published ones: Twitter's snowflake (github.com/twitter-archive/snowflake, 2010); hutool's
-- cn.hutool.core.lang.Snowflake; Leaf-snowflake (tech.meituan.com, 2017); Baidu's uid-generator (github.com/baidu/uid-generator);
-- github.com/sony/sonyflake; "Sharding & IDs at Instagram" (instagram-engineering.com, 2012), whose 41st time bit is the
-- sign of a bigint: ids stay positive as long as 40 bits last.
CREATE VIEW uid_preset AS
SELECT p.* FROM (VALUES
  ('snowflake', timestamptz '2026-01-01 00:00:00+00', 1000::bigint, 41::smallint, 5::smallint, 5::smallint, 12::smallint,
   false, false, 1000, 2000, 'borrow', 'hold', NULL::integer, true, 'snowflake'),
  ('twitter', timestamptz '2010-11-04 01:42:54.657+00', 1000, 41, 5, 5, 12, false, false, 1000, 2000, 'wait', 'error', NULL, false, 'snowflake'),
  ('hutool', timestamptz '2010-11-04 01:42:54.657+00', 1000, 41, 5, 5, 12, false, false, 1000, 2000, 'wait', 'hold', 1999, false, 'snowflake'),
  ('leaf', timestamptz '2010-11-04 01:42:54.657+00', 1000, 41, 0, 10, 12, false, false, 1000, 2000, 'wait', 'wait', 5, false, 'snowflake'),
  ('baidu', NULL, 1000000, 28, 0, 22, 13, false, false, 1000, 2000, 'wait', 'error', NULL, false, 'snowflake'),
  ('js53', timestamptz '2026-01-01 00:00:00+00', 1000000, 32, 0, 5, 16, false, true, 1000, 2000, 'backup', 'backup', 1000, false, 'snowflake'),
  ('sonyflake', timestamptz '2014-09-01 00:00:00+00', 10000, 39, 0, 16, 8, true, false, 1000, 2000, 'wait', 'hold', NULL, false, 'snowflake'),
  ('instagram', timestamptz '2011-08-24 21:07:01.721+00', 1000, 40, 13, 0, 10, false, false, 1000, 2000, 'wait', 'hold', NULL, false, 'snowflake'),
  ('baidu_cached', NULL, 1000000, 28, 0, 22, 13, false, false, 16000, 32000, 'borrow', 'hold', NULL, false, 'cached'))
  AS p(preset, epoch, tick_us, time_bits, datacenter_bits, worker_bits, sequence_bits, sequence_first, backup_worker,
       lease_ms, max_ahead_ms, when_full, when_back, tolerance_ms, spread, mode);
COMMENT ON VIEW uid_preset IS
  'The presets: what uid_generator_create() copies into a row of uid_generator. epoch NULL: midnight UTC of the day on which the generator is made, so that its whole life lies ahead.';
GRANT SELECT ON uid_preset TO PUBLIC;

CREATE FUNCTION uid_generator_builtin(is_default boolean) RETURNS uid_generator
LANGUAGE c STABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'uid_generator_builtin';
COMMENT ON FUNCTION uid_generator_builtin(boolean) IS
  'What the row of the builtin generator would say while it has none in uid_generator: the preset snowflake, and whether it is the default.';

-- Operators without an exact match in pg_catalog are named with their schema: an exact one, planted in the schema that
-- the extension goes into, would be taken instead, and run by whoever reads the view.
CREATE VIEW uid_generator_config AS
SELECT * FROM uid_generator
UNION ALL
SELECT b.* FROM uid_generator_builtin(NOT EXISTS (SELECT FROM uid_generator g WHERE g.is_default)) b
 WHERE b.generator IS NOT NULL AND NOT EXISTS (SELECT FROM uid_generator g WHERE g.builtin);
COMMENT ON VIEW uid_generator_config IS
  'Each generator''s layout, bounds and policies: the rows of uid_generator, and the builtin generator while it has none there.';
GRANT SELECT ON uid_generator_config TO PUBLIC;

-- The fields that a caller gave; -1 stands for NULL in tolerance_ms (no limit) and in schedule_ms (never). (Parsed now, with
-- the extension's schema in the search_path: what has no exact match in pg_catalog is named with its schema.)
CREATE FUNCTION uid_generator_fields(epoch timestamptz, tick_us bigint, time_bits integer, datacenter_bits integer,
    worker_bits integer, sequence_bits integer, sequence_first boolean, backup_worker boolean, lease_ms integer,
    max_ahead_ms integer, when_full text, when_back text, tolerance_ms integer, spread boolean, worker_policy text,
    worker_number integer, mode text, boost_power integer, padding_factor integer, schedule_ms integer, when_ring_full text,
    when_ring_empty text, chunk integer, max_staleness_ms integer) RETURNS jsonb
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
  SELECT pg_catalog.jsonb_strip_nulls(pg_catalog.jsonb_build_object('epoch', epoch, 'tick_us', tick_us, 'time_bits', time_bits,
           'datacenter_bits', datacenter_bits, 'worker_bits', worker_bits, 'sequence_bits', sequence_bits,
           'sequence_first', sequence_first, 'backup_worker', backup_worker, 'lease_ms', lease_ms,
           'max_ahead_ms', max_ahead_ms, 'when_full', when_full, 'when_back', when_back,
           'tolerance_ms', nullif(tolerance_ms, -1), 'spread', spread, 'worker_policy', worker_policy,
           'worker_number', worker_number, 'mode', mode, 'boost_power', boost_power, 'padding_factor', padding_factor,
           'schedule_ms', nullif(schedule_ms, -1), 'when_ring_full', when_ring_full, 'when_ring_empty', when_ring_empty,
           'chunk', chunk, 'max_staleness_ms', max_staleness_ms))
         || CASE WHEN schedule_ms = -1 THEN jsonb '{"schedule_ms": null}' ELSE jsonb '{}' END
         || CASE WHEN tolerance_ms = -1 THEN jsonb '{"tolerance_ms": null}' ELSE jsonb '{}' END;
END;
COMMENT ON FUNCTION uid_generator_fields(timestamptz, bigint, integer, integer, integer, integer, boolean, boolean, integer, integer, text, text, integer, boolean, text, integer, text, integer, integer, integer, text, text, integer, integer) IS
  'The fields that uid_generator_create() or uid_generator_alter() was given.';

-- Functions in PL/pgSQL look up the extension's schema and name its objects in EXECUTE: it may be renamed.
CREATE FUNCTION uid_make_generator(name text, preset text, above bigint, given jsonb) RETURNS regclass
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  home text := (SELECT quote_ident(n.nspname) FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace WHERE e.extname = 'uidgen');
  fields jsonb;
  presets text;
  generator regclass;
BEGIN
  IF name IS NULL OR name = '' OR octet_length(name) > 63 THEN
    RAISE EXCEPTION 'invalid generator name: "%"', name
      USING ERRCODE = 'invalid_name', HINT = 'Use a name of 1 to 63 bytes.';
  END IF;
  EXECUTE format('SELECT to_jsonb(p) FROM %s.uid_preset p WHERE p.preset = $1', home) INTO fields USING preset;
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
  fields := jsonb_build_object('generator', generator, 'created', now(), 'builtin', false, 'is_default', false,
      'worker_policy', 'disposable', 'boost_power', 3, 'padding_factor', 50, 'when_ring_full', 'stop', 'when_ring_empty', 'pad',
      'chunk', 1, 'max_staleness_ms', 5000) || fields || given;
  IF fields ->> 'epoch' IS NULL THEN
    fields := jsonb_set(fields, '{epoch}', to_jsonb(date_trunc('day', now(), 'UTC')));
  END IF;
  EXECUTE format('INSERT INTO %1$s.uid_generator SELECT * FROM jsonb_populate_record(NULL::%1$s.uid_generator, $1)', home) USING fields;
  IF above IS NOT NULL THEN
    EXECUTE format('SELECT %s.uid_generator_raise($1, $2)', home) USING generator, above;
  END IF;
  RETURN generator;
END
$$;
COMMENT ON FUNCTION uid_make_generator(text, text, bigint, jsonb) IS
  'What uid_generator_create() calls: makes a generator from a preset and the fields that were given.';

CREATE FUNCTION uid_generator_create(name text, preset text DEFAULT 'snowflake', above bigint DEFAULT NULL,
    epoch timestamptz DEFAULT NULL, tick_us bigint DEFAULT NULL, time_bits integer DEFAULT NULL,
    datacenter_bits integer DEFAULT NULL, worker_bits integer DEFAULT NULL, sequence_bits integer DEFAULT NULL,
    sequence_first boolean DEFAULT NULL, backup_worker boolean DEFAULT NULL, lease_ms integer DEFAULT NULL,
    max_ahead_ms integer DEFAULT NULL, when_full text DEFAULT NULL, when_back text DEFAULT NULL,
    tolerance_ms integer DEFAULT NULL, spread boolean DEFAULT NULL, worker_policy text DEFAULT 'disposable',
    worker_number integer DEFAULT NULL, mode text DEFAULT NULL, boost_power integer DEFAULT NULL,
    padding_factor integer DEFAULT NULL, schedule_ms integer DEFAULT NULL, when_ring_full text DEFAULT NULL,
    when_ring_empty text DEFAULT NULL, chunk integer DEFAULT NULL, max_staleness_ms integer DEFAULT NULL) RETURNS regclass
LANGUAGE sql VOLATILE
SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
  SELECT uid_make_generator(name, preset, above, uid_generator_fields(epoch, tick_us, time_bits, datacenter_bits, worker_bits,
           sequence_bits, sequence_first, backup_worker, lease_ms, max_ahead_ms, when_full, when_back, tolerance_ms, spread,
           worker_policy, worker_number, mode, boost_power, padding_factor, schedule_ms, when_ring_full, when_ring_empty, chunk,
           max_staleness_ms));
END;
COMMENT ON FUNCTION uid_generator_create(text, text, bigint, timestamptz, bigint, integer, integer, integer, integer, boolean, boolean, integer, integer, text, text, integer, boolean, text, integer, text, integer, integer, integer, text, text, integer, integer) IS
  'Makes a generator: a lease sequence uid_generators.<name>, owned by the caller, and its row in uid_generator, from a preset (SELECT * FROM uid_preset) with any field given its own value; tolerance_ms -1 is no limit, schedule_ms -1 never. above: its ids shall be above that one. Needs CREATE on the schema uid_generators. Draw with uid_next(''uid_generators.<name>''); GRANT USAGE ON SEQUENCE lets others draw; uid_generator_drop() ends it.';

CREATE FUNCTION uid_generator_raise(generator regclass, above bigint) RETURNS void
LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'uid_generator_raise';
COMMENT ON FUNCTION uid_generator_raise(regclass, bigint) IS
  'Raises a generator''s high-water mark, so that its ids are above that one from now on, whatever becomes of the clock. An error if that is further ahead of the clock than its max_ahead_ms. Only the sequence''s owner may.';

CREATE FUNCTION uid_change_generator(generator regclass, changes jsonb) RETURNS void
LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'uid_change_generator';
COMMENT ON FUNCTION uid_change_generator(regclass, jsonb) IS
  'What uid_generator_alter() calls: sets fields of a generator''s row. Only for the sequence''s owner.';

CREATE FUNCTION uid_generator_alter(generator regclass,
    epoch timestamptz DEFAULT NULL, tick_us bigint DEFAULT NULL, time_bits integer DEFAULT NULL,
    datacenter_bits integer DEFAULT NULL, worker_bits integer DEFAULT NULL, sequence_bits integer DEFAULT NULL,
    sequence_first boolean DEFAULT NULL, backup_worker boolean DEFAULT NULL, lease_ms integer DEFAULT NULL,
    max_ahead_ms integer DEFAULT NULL, when_full text DEFAULT NULL, when_back text DEFAULT NULL,
    tolerance_ms integer DEFAULT NULL, spread boolean DEFAULT NULL, worker_policy text DEFAULT NULL,
    worker_number integer DEFAULT NULL, mode text DEFAULT NULL, boost_power integer DEFAULT NULL,
    padding_factor integer DEFAULT NULL, schedule_ms integer DEFAULT NULL, when_ring_full text DEFAULT NULL,
    when_ring_empty text DEFAULT NULL, chunk integer DEFAULT NULL, max_staleness_ms integer DEFAULT NULL) RETURNS void
LANGUAGE sql VOLATILE
SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
  SELECT uid_change_generator(generator, uid_generator_fields(epoch, tick_us, time_bits, datacenter_bits, worker_bits, sequence_bits,
           sequence_first, backup_worker, lease_ms, max_ahead_ms, when_full, when_back, tolerance_ms, spread, worker_policy,
           worker_number, mode, boost_power, padding_factor, schedule_ms, when_ring_full, when_ring_empty, chunk,
           max_staleness_ms));
END;
COMMENT ON FUNCTION uid_generator_alter(regclass, timestamptz, bigint, integer, integer, integer, integer, boolean, boolean, integer, integer, text, text, integer, boolean, text, integer, text, integer, integer, integer, text, text, integer, integer) IS
  'Changes fields of a generator; what is NULL stays as it is; tolerance_ms -1 is no limit, schedule_ms -1 never. The layout (epoch, tick_us, widths, field order, backup_worker) only before the first id; afterwards make a new generator above the old one: uid_generator_create(..., above => ...). Bounds and policies any time: it waits for transactions that draw (and for the clock, if max_ahead_ms becomes shorter than the generator stands ahead), draws a new worker id, and the next id starts above the lease in hand. Only the sequence''s owner may.';

CREATE FUNCTION uid_generator_drop(generator regclass) RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  home text := (SELECT quote_ident(n.nspname) FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace WHERE e.extname = 'uidgen');
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
  'Drops a generator: its sequence and its row. Only the sequence''s owner may; not the default generator, not one that a column default uses.';

CREATE FUNCTION uid_default_set(generator regclass) RETURNS void
LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'uid_default_set';
COMMENT ON FUNCTION uid_default_set(regclass) IS
  'Makes a generator the one behind uid_next() in this database. Free before the default''s first id; afterwards refused unless the new one starts above the largest id that the old one could issue, which this sees to. Waits for transactions that draw from the old one. After a DROP SEQUENCE of the default there is nothing to compare with: then make one above its ids (uid_generator_create has the parameter above). For the owner of the database and of the extension. Grant USAGE on its sequence to those who shall draw.';

CREATE FUNCTION uid_next() RETURNS bigint
LANGUAGE c VOLATILE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'uid_next_default';
COMMENT ON FUNCTION uid_next() IS
  'The next id of the database''s default generator: unique, above every earlier one, positive. Made for DEFAULT uid_next().';

-- Functions that are called once a row and have an argument are not STRICT: they return NULL for NULL themselves, for
-- a dozen instructions less.
CREATE FUNCTION uid_next(generator regclass) RETURNS bigint
LANGUAGE c VOLATILE PARALLEL SAFE AS 'MODULE_PATHNAME', 'uid_next_of';
COMMENT ON FUNCTION uid_next(regclass) IS
  'The next id of a generator. Needs USAGE on its sequence.';

CREATE FUNCTION uid_next_batch(count integer) RETURNS SETOF bigint
LANGUAGE c VOLATILE STRICT PARALLEL SAFE ROWS 1000 AS 'MODULE_PATHNAME', 'uid_next_batch_default';
COMMENT ON FUNCTION uid_next_batch(integer) IS
  'count ids of the default generator, rising, one a row; all are taken before the first is returned (a call that fails leaves a gap). 0 gives none; a negative count is an error.';

CREATE FUNCTION uid_next_batch(generator regclass, count integer) RETURNS SETOF bigint
LANGUAGE c VOLATILE STRICT PARALLEL SAFE ROWS 1000 AS 'MODULE_PATHNAME', 'uid_next_batch_of';
COMMENT ON FUNCTION uid_next_batch(regclass, integer) IS
  'count ids of a generator, rising, one a row; all are taken before the first is returned.';

CREATE FUNCTION uid_next_array(count integer) RETURNS bigint[]
LANGUAGE c VOLATILE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'uid_next_array_default';
COMMENT ON FUNCTION uid_next_array(integer) IS
  'count ids of the default generator, rising, as an array.';

CREATE FUNCTION uid_next_array(generator regclass, count integer) RETURNS bigint[]
LANGUAGE c VOLATILE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'uid_next_array_of';
COMMENT ON FUNCTION uid_next_array(regclass, integer) IS
  'count ids of a generator, rising, as an array.';

CREATE FUNCTION uid_last() RETURNS bigint
LANGUAGE c VOLATILE STRICT PARALLEL RESTRICTED AS 'MODULE_PATHNAME', 'uid_last';
COMMENT ON FUNCTION uid_last() IS
  'The id that this session drew last, from whichever generator (of a batch its last). An error before the first one. Ids drawn by parallel workers are not seen.';

CREATE FUNCTION uid_decode(id bigint,
    OUT generated_at timestamptz, OUT datacenter_id integer, OUT worker_id integer, OUT sequence integer, OUT backup boolean)
RETURNS record
LANGUAGE c STABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'uid_decode_default';
COMMENT ON FUNCTION uid_decode(bigint) IS
  'The parts of an id in the default generator''s layout. generated_at is the start of the id''s tick; backup tells whether the backup worker made it, and worker_id is the number without that bit.';

CREATE FUNCTION uid_decode(id bigint, generator regclass,
    OUT generated_at timestamptz, OUT datacenter_id integer, OUT worker_id integer, OUT sequence integer, OUT backup boolean)
RETURNS record
LANGUAGE c STABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'uid_decode_of';
COMMENT ON FUNCTION uid_decode(bigint, regclass) IS
  'The parts of an id in a generator''s layout.';

CREATE FUNCTION uid_encode(generated_at timestamptz, datacenter_id integer, worker_id integer, sequence integer)
RETURNS bigint
LANGUAGE c STABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'uid_encode_default';
COMMENT ON FUNCTION uid_encode(timestamptz, integer, integer, integer) IS
  'The id with these parts in the default generator''s layout; an error names the part that does not fit. Only arithmetic: the id is not drawn.';

CREATE FUNCTION uid_encode(generated_at timestamptz, datacenter_id integer, worker_id integer, sequence integer, generator regclass)
RETURNS bigint
LANGUAGE c STABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'uid_encode_of';
COMMENT ON FUNCTION uid_encode(timestamptz, integer, integer, integer, regclass) IS
  'The id with these parts in a generator''s layout.';

CREATE FUNCTION uid_timestamp(id bigint) RETURNS timestamptz
LANGUAGE c STABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'uid_timestamp_default';
COMMENT ON FUNCTION uid_timestamp(bigint) IS
  'When an id of the default generator was made: the start of its tick.';

CREATE FUNCTION uid_timestamp(id bigint, generator regclass) RETURNS timestamptz
LANGUAGE c STABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'uid_timestamp_of';
COMMENT ON FUNCTION uid_timestamp(bigint, regclass) IS
  'When an id of a generator was made: the start of its tick.';

CREATE FUNCTION uid_timestamp(id bigint, epoch timestamptz, tick_us bigint, shift integer) RETURNS timestamptz
LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'uid_timestamp_fixed';
COMMENT ON FUNCTION uid_timestamp(bigint, timestamptz, bigint, integer) IS
  'The same from the layout''s numbers, for generated columns and indexes: epoch and tick_us as in uid_generator, shift the number of bits below the time (datacenter_bits + worker_bits + sequence_bits).';

CREATE FUNCTION uid_lower_bound(ts timestamptz) RETURNS bigint
LANGUAGE c STABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'uid_lower_bound_default';
COMMENT ON FUNCTION uid_lower_bound(timestamptz) IS
  'The least number that no id of the default generator reaches which was made before ts: id >= uid_lower_bound(a) AND id < uid_lower_bound(b) are the ids from a on and before b. 0 before the epoch; after the end of time one more than the largest id.';

CREATE FUNCTION uid_lower_bound(ts timestamptz, generator regclass) RETURNS bigint
LANGUAGE c STABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'uid_lower_bound_of';
COMMENT ON FUNCTION uid_lower_bound(timestamptz, regclass) IS
  'The least number that no id of a generator reaches which was made before ts.';

CREATE FUNCTION uid_lower_bound(ts timestamptz, epoch timestamptz, tick_us bigint, shift integer) RETURNS bigint
LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'uid_lower_bound_fixed';
COMMENT ON FUNCTION uid_lower_bound(timestamptz, timestamptz, bigint, integer) IS
  'The same from the layout''s numbers, for partition bounds and indexes: epoch and tick_us as in uid_generator, shift the number of bits below the time (datacenter_bits + worker_bits + sequence_bits).';

-- ---------------------------------------------------------------------------------------------------------
-- worker_node: one row for each worker id that a generator drew, so that an id leads back to its server
-- ---------------------------------------------------------------------------------------------------------

-- A typed table, because PostgreSQL refuses ADD COLUMN to one: a dump holds the rows of an extension's table but not its
-- definition, so rows with a column that CREATE EXTENSION does not make could not be restored.
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
  tags              jsonb
);
COMMENT ON TYPE worker_node_row IS 'The columns of worker_node.';

-- An application may insert rows with the first seven columns only: the id is drawn, and what describes generators is NULL.
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
  'One row for each worker id that a generator drew. A generator draws a new one the first time it is used after a server start or an alteration; a background process writes the row after that transaction, and nothing waits for it.';
COMMENT ON COLUMN worker_node.id IS 'the draw; worker_id is this modulo 2^worker_bits, numbers of live generators skipped';
COMMENT ON COLUMN worker_node.host_name IS 'the server''s host name';
COMMENT ON COLUMN worker_node.port IS 'the server''s port';
COMMENT ON COLUMN worker_node.type IS '1: in a container, 2: on a machine';
COMMENT ON COLUMN worker_node.launch_date IS 'the day on which the server was started';
COMMENT ON COLUMN worker_node.modified IS 'when the server last noted that it uses the worker id, to the hour';
COMMENT ON COLUMN worker_node.created IS 'when the worker id was drawn';
COMMENT ON COLUMN worker_node.generator IS 'the generator''s name at that time; NULL, as in the next two and timeline: the row is an application''s';
COMMENT ON COLUMN worker_node.worker_id IS 'the worker id in the generator''s ids';
COMMENT ON COLUMN worker_node.datacenter_id IS 'the server''s uidgen.datacenter_id at that time';
COMMENT ON COLUMN worker_node.system_identifier IS 'the system identifier of the server that drew the id, as pg_control_system() shows it';
COMMENT ON COLUMN worker_node.timeline IS 'the timeline on which the server wrote';
COMMENT ON COLUMN worker_node.tags IS 'for your own data; uidgen never reads or changes it';
GRANT SELECT ON worker_node TO pg_monitor;
GRANT SELECT, INSERT ON worker_node TO pg_database_owner; -- to dump and restore
GRANT SELECT, UPDATE ON SEQUENCE worker_node_id_seq TO pg_database_owner;
SELECT pg_catalog.pg_extension_config_dump('worker_node', '');
SELECT pg_catalog.pg_extension_config_dump('worker_node_id_seq', '');
COMMENT ON SEQUENCE worker_node_id_seq IS 'Draws of worker ids; uidgen reserves from it in any transaction, also a read-only one.';

-- ---------------------------------------------------------------------------------------------------------
-- Segments
-- ---------------------------------------------------------------------------------------------------------

-- The library knows the columns by number (src/pg/tables/generator_columns.hpp): they are only ever added at the end.
CREATE TABLE uid_segment (
  name        text     PRIMARY KEY CHECK (name <> ''),
  sequence    regclass NOT NULL UNIQUE,
  step        bigint   CHECK (step BETWEEN 1 AND 1099511627776),
  max_step    bigint   CHECK (max_step BETWEEN coalesce(step, 1) AND 1099511627776),
  description text
);
COMMENT ON TABLE uid_segment IS
  'One row a named segment. Rows are made by segment_create() and go away with their sequence.';
COMMENT ON COLUMN uid_segment.name IS 'the name: any text';
COMMENT ON COLUMN uid_segment.sequence IS 'the sequence that keeps the counter; USAGE on it lets a role draw';
COMMENT ON COLUMN uid_segment.step IS 'how many values are reserved at first and at least (fewer while somebody else moves the counter, at the sequence''s end, and of a small sequence), 1 to 2^40; NULL: the setting uidgen.segment_step';
COMMENT ON COLUMN uid_segment.max_step IS 'how far the step may grow, step to 2^40; NULL: the setting uidgen.segment_max_step';
COMMENT ON COLUMN uid_segment.description IS 'what the segment is for';

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
  'Trigger of uid_segment: makes every session look its names up again.';
CREATE TRIGGER uid_segment_changed AFTER INSERT OR UPDATE OR DELETE ON uid_segment
  FOR EACH STATEMENT EXECUTE FUNCTION uid_segment_changed();

-- NULLs are good: the setting's.
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
  'An error if a segment can''t have these step bounds.';

CREATE FUNCTION segment_create(name text, start bigint DEFAULT 1, step bigint DEFAULT NULL,
    max_step bigint DEFAULT NULL, description text DEFAULT NULL) RETURNS regclass
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  home text := (SELECT quote_ident(n.nspname) FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace WHERE e.extname = 'uidgen');
  -- A name that is no identifier, by its length, gets a sequence named after its hash.
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
  EXECUTE format('INSERT INTO %s.uid_segment VALUES ($1, $2, $3, $4, $5)', home) USING name, sequence, step, max_step, description;
  RETURN sequence;
END
$$;
COMMENT ON FUNCTION segment_create(text, bigint, bigint, bigint, text) IS
  'Makes a named segment that starts at start and reserves step values at a time (NULL: uidgen.segment_step), up to max_step where they are in demand (NULL: uidgen.segment_max_step). Its sequence is owned by the caller, in the schema uid_segments, which needs CREATE. GRANT USAGE ON SEQUENCE lets others draw.';

CREATE FUNCTION uid_change_segment(sequence regclass, changes jsonb) RETURNS void
LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'uid_change_segment';
COMMENT ON FUNCTION uid_change_segment(regclass, jsonb) IS
  'What segment_alter() calls: sets step, max_step and description of a segment''s row. Only for the sequence''s owner.';

CREATE FUNCTION segment_alter(name text, step bigint DEFAULT NULL, max_step bigint DEFAULT NULL,
    description text DEFAULT NULL) RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  home text := (SELECT quote_ident(n.nspname) FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace WHERE e.extname = 'uidgen');
  segment record;
BEGIN
  EXECUTE format('SELECT s.sequence, s.step, s.max_step FROM %s.uid_segment s WHERE s.name = $1', home) INTO segment USING name;
  IF segment.sequence IS NULL THEN
    RAISE EXCEPTION 'segment "%" does not exist', name
      USING ERRCODE = 'undefined_object', HINT = 'Run SELECT name FROM uid_segment to list the named segments.';
  END IF;
  EXECUTE format('SELECT %s.uid_check_steps($1, $2, $3)', home)
    USING name, coalesce(nullif(step, 0), segment.step), coalesce(nullif(max_step, 0), segment.max_step);
  EXECUTE format('SELECT %s.uid_change_segment($1, $2)', home)
    USING segment.sequence, jsonb_strip_nulls(jsonb_build_object('step', step, 'max_step', max_step, 'description', description));
END
$$;
COMMENT ON FUNCTION segment_alter(text, bigint, bigint, text) IS
  'Changes the step bounds or the description of a named segment; what is NULL stays as it is, and a bound of 0 goes back to the setting (uidgen.segment_step, uidgen.segment_max_step). Bounds count from the next range on. Only the sequence''s owner may.';

CREATE FUNCTION segment_drop(name text) RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  home text := (SELECT quote_ident(n.nspname) FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace WHERE e.extname = 'uidgen');
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
  'Drops a named segment and its sequence. Only the sequence''s owner may.';

CREATE FUNCTION segment_next(name text) RETURNS bigint
LANGUAGE c VOLATILE PARALLEL SAFE AS 'MODULE_PATHNAME', 'segment_next_named';
COMMENT ON FUNCTION segment_next(text) IS
  'The next value of the segment of that name; if there is none, of the sequence of that name, which may be qualified and is searched as nextval does.';

CREATE FUNCTION segment_next(sequence regclass) RETURNS bigint
LANGUAGE c VOLATILE PARALLEL SAFE AS 'MODULE_PATHNAME', 'segment_next_of';
COMMENT ON FUNCTION segment_next(regclass) IS
  'The next value of a sequence, any permanent one: unlike nextval durable before it is returned, in order across sessions, and without a record for each 32. Needs USAGE.';

CREATE FUNCTION segment_next_batch(name text, count integer) RETURNS SETOF bigint
LANGUAGE c VOLATILE STRICT PARALLEL SAFE ROWS 1000 AS 'MODULE_PATHNAME', 'segment_next_batch_named';
COMMENT ON FUNCTION segment_next_batch(text, integer) IS
  'count values of a segment by its name, in order, one a row; all are taken before the first is returned. 0 gives none; a negative count is an error.';

CREATE FUNCTION segment_next_batch(sequence regclass, count integer) RETURNS SETOF bigint
LANGUAGE c VOLATILE STRICT PARALLEL SAFE ROWS 1000 AS 'MODULE_PATHNAME', 'segment_next_batch_of';
COMMENT ON FUNCTION segment_next_batch(regclass, integer) IS
  'count values of a sequence, in order, one a row; all are taken before the first is returned.';

CREATE FUNCTION segment_next_array(name text, count integer) RETURNS bigint[]
LANGUAGE c VOLATILE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'segment_next_array_named';
COMMENT ON FUNCTION segment_next_array(text, integer) IS
  'count values of a segment by its name, in order, as an array.';

CREATE FUNCTION segment_next_array(sequence regclass, count integer) RETURNS bigint[]
LANGUAGE c VOLATILE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'segment_next_array_of';
COMMENT ON FUNCTION segment_next_array(regclass, integer) IS
  'count values of a sequence, in order, as an array.';

CREATE FUNCTION segment_last(name text) RETURNS bigint
LANGUAGE c VOLATILE STRICT PARALLEL RESTRICTED AS 'MODULE_PATHNAME', 'segment_last_named';
COMMENT ON FUNCTION segment_last(text) IS
  'The value that this session drew last from the segment of that name, as currval; an error before the first one. Needs USAGE or SELECT.';

CREATE FUNCTION segment_last(sequence regclass) RETURNS bigint
LANGUAGE c VOLATILE STRICT PARALLEL RESTRICTED AS 'MODULE_PATHNAME', 'segment_last_of';
COMMENT ON FUNCTION segment_last(regclass) IS
  'The value that this session drew last from a sequence by segment_next(), as currval; an error before the first one.';

CREATE FUNCTION segment_set(name text, value bigint) RETURNS bigint
LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'segment_set_named';
COMMENT ON FUNCTION segment_set(text, bigint) IS
  'Makes value the next one of the segment of that name: setval(sequence, value, false), in this session at once, in others at their next transaction''s first call. Needs UPDATE. Downward, values come again.';

CREATE FUNCTION segment_set(sequence regclass, value bigint) RETURNS bigint
LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'segment_set_of';
COMMENT ON FUNCTION segment_set(regclass, bigint) IS
  'Makes value the next one of a sequence, as segment_set(text, bigint) does.';

-- ---------------------------------------------------------------------------------------------------------
-- A dropped sequence takes its row along: an oid left behind would one day be somebody else's
-- ---------------------------------------------------------------------------------------------------------

CREATE FUNCTION uid_forget_dropped() RETURNS event_trigger
LANGUAGE c AS 'MODULE_PATHNAME', 'uid_forget_dropped';
COMMENT ON FUNCTION uid_forget_dropped() IS
  'Event trigger: removes the rows of dropped sequences from uid_generator and uid_segment.';
CREATE EVENT TRIGGER uid_forget_dropped ON sql_drop EXECUTE FUNCTION uid_forget_dropped();
ALTER EVENT TRIGGER uid_forget_dropped ENABLE ALWAYS;
COMMENT ON EVENT TRIGGER uid_forget_dropped IS
  'Keeps uid_generator and uid_segment free of rows whose sequence was dropped.';

-- ---------------------------------------------------------------------------------------------------------
-- Live state
-- ---------------------------------------------------------------------------------------------------------

CREATE FUNCTION uid_slots(
    OUT sequence regclass, OUT kind text, OUT worker_id integer, OUT last_time timestamptz,
    OUT leased_until timestamptz, OUT range_first bigint, OUT range_length bigint, OUT range_left bigint,
    OUT records bigint, OUT flush_waits bigint, OUT standby_waits bigint, OUT clock_waits bigint,
    OUT next_ready boolean, OUT step bigint, OUT step_reason text,
    OUT refills_first bigint, OUT refills_ahead bigint, OUT refills_late bigint, OUT refills_disturbed bigint,
    OUT last_refill timestamptz, OUT rate double precision,
    OUT ring_size bigint, OUT ring_filled double precision, OUT padded_initial bigint, OUT padded_threshold bigint,
    OUT padded_schedule bigint, OUT padded_inline bigint, OUT rejected_puts bigint, OUT rejected_takes bigint,
    OUT discarded_stale bigint, OUT ahead_ms bigint)
RETURNS SETOF record
LANGUAGE c VOLATILE STRICT PARALLEL RESTRICTED ROWS 100 AS 'MODULE_PATHNAME', 'uid_slots';
COMMENT ON FUNCTION uid_slots() IS
  'The slots in shared memory of this database''s generators and segments that were used since the server started. No rows when uidgen is not preloaded; NULLs where the caller has neither USAGE nor SELECT on the sequence and is no member of pg_read_all_stats.';

CREATE VIEW uid_generator_status AS
SELECT g.generator, g.preset, s.worker_id, s.last_time, s.leased_until,
       s.records, s.flush_waits, s.standby_waits, s.clock_waits, s.ahead_ms,
       s.ring_size, s.ring_filled, s.padded_initial, s.padded_threshold, s.padded_schedule, s.padded_inline,
       s.rejected_puts, s.rejected_takes, s.discarded_stale
  FROM uid_generator_config g LEFT JOIN uid_slots() s ON s.sequence::oid OPERATOR(pg_catalog.=) g.generator::oid;
COMMENT ON VIEW uid_generator_status IS
  'Live state of each generator: the worker id drawn since the server started, the time in its last id, the end of the lease, records written, and how often a caller waited for a flush, for a standby, for the clock; how far the last id made is ahead of the clock (0 when the clock has passed it). In cached mode: how many ids the ring holds and the share that is filled; how often it was padded the first time, below the threshold, by schedule, by a caller; ids that the padder threw away at a full ring (when_ring_full discard), calls that found it empty and were refused or had to wait (when_ring_empty error, wait), ids thrown away as too old. NULLs: not used since the start.';

CREATE VIEW uid_generator_limits AS
SELECT g.generator, g.preset, e.ends,
       extract(epoch FROM pg_catalog.clock_timestamp() - g.epoch)::float8 OPERATOR(pg_catalog./) l.seconds AS life_used,
       (2::float8 OPERATOR(pg_catalog.^) (g.sequence_bits + CASE WHEN g.when_full::text OPERATOR(pg_catalog.=) 'backup'::text THEN 1 ELSE 0 END)::float8)
         OPERATOR(pg_catalog.*) 1000000::float8 OPERATOR(pg_catalog./) g.tick_us::float8 AS ids_per_second,
       n.numbers AS worker_ids, u.used AS worker_ids_used, n.numbers - u.used AS worker_ids_left
  FROM uid_generator_config g
 CROSS JOIN LATERAL (SELECT 1::bigint << (g.worker_bits - g.backup_worker::integer) AS numbers) n
 CROSS JOIN LATERAL (SELECT (2::float8 OPERATOR(pg_catalog.^) g.time_bits::float8) OPERATOR(pg_catalog.*)
                            (g.tick_us::float8 OPERATOR(pg_catalog./) 1000000::float8) AS seconds) l
 CROSS JOIN LATERAL (SELECT pg_catalog.to_timestamp(extract(epoch FROM g.epoch)::float8 OPERATOR(pg_catalog.+) l.seconds) AS ends) e
 CROSS JOIN LATERAL (SELECT pg_catalog.count(DISTINCT w.worker_id) AS used FROM worker_node w
                       JOIN pg_catalog.pg_class c ON c.oid OPERATOR(pg_catalog.=) g.generator::oid
                      WHERE w.generator OPERATOR(pg_catalog.=)
                            pg_catalog.format('%I.%I'::text, c.relnamespace::regnamespace::text, c.relname)) u;
COMMENT ON VIEW uid_generator_limits IS
  'What each generator''s layout holds: the instant at which its time bits end (from two years before, a WARNING tells), the share of its life that is used, the highest sustainable rate, and how many worker ids there are, were drawn at least once (as far as worker_node knows) and are left before they come round.';

CREATE VIEW uid_generator_columns AS
SELECT g.generator, d.adrelid::regclass AS table_name, a.attname AS column_name,
       pg_catalog.pg_get_expr(d.adbin, d.adrelid) AS column_default
  FROM uid_generator_config g
  JOIN pg_catalog.pg_depend p ON p.classid OPERATOR(pg_catalog.=) 'pg_catalog.pg_attrdef'::regclass::oid
   AND (p.refclassid OPERATOR(pg_catalog.=) 'pg_catalog.pg_class'::regclass::oid AND p.refobjid OPERATOR(pg_catalog.=) g.generator::oid
        OR p.refclassid OPERATOR(pg_catalog.=) 'pg_catalog.pg_proc'::regclass::oid AND p.refobjid OPERATOR(pg_catalog.=) 'uid_next()'::regprocedure::oid
           AND g.is_default)
  JOIN pg_catalog.pg_attrdef d ON d.oid OPERATOR(pg_catalog.=) p.objid
  JOIN pg_catalog.pg_attribute a ON a.attrelid OPERATOR(pg_catalog.=) d.adrelid AND a.attnum OPERATOR(pg_catalog.=) d.adnum;
COMMENT ON VIEW uid_generator_columns IS
  'The columns whose default draws from each generator, so that an id leads back to its table: worker_node names the generator.';

CREATE VIEW segment_status AS
SELECT s.sequence, n.name, s.range_first, s.range_length, s.range_left,
       (s.range_length - s.range_left)::float8 OPERATOR(pg_catalog./) nullif(s.range_length, 0)::float8 AS share_used, s.next_ready,
       s.step, s.step_reason, s.refills_first, s.refills_ahead, s.refills_late, s.refills_disturbed,
       s.records, s.flush_waits, s.standby_waits, s.last_refill, s.rate
  FROM uid_slots() s LEFT JOIN uid_segment n ON n.sequence::oid OPERATOR(pg_catalog.=) s.sequence::oid
 WHERE s.kind = 'segment';
COMMENT ON VIEW segment_status IS
  'Live state of each segment used since the server started: the range in use and the share of it that is used, whether the next one is reserved; the step and why it is so (base, grown, kept, shrunk, disturbed by somebody else''s nextval or setval); ranges reserved by cause; how often a caller waited for a flush or for a standby; when the last range was reserved, and rate: how many values a second were drawn between the last two reservations (NULL before the second one).';

CREATE VIEW t_sequence AS
SELECT n.name AS pk_seq_name,
       CASE WHEN v.visible THEN
         coalesce(s.range_first, CASE WHEN c.counter IS NULL THEN p.seqstart
                                      WHEN l.after BETWEEN p.seqmin::numeric AND p.seqmax::numeric THEN l.after::bigint
                                      WHEN p.seqcycle THEN CASE WHEN p.seqincrement > 0::bigint THEN p.seqmin ELSE p.seqmax END END) END
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
  'The named segments as a t_sequence table shows them: current_val is the first value of the range in use as of the last draw, increment_val that range''s length. Before the first draw after a start: the value after the counter (the START of a sequence never called; NULL at the end of one that does not cycle), though what a clean stop left comes first; NULLs without USAGE or SELECT on the sequence.';
GRANT SELECT ON uid_generator_status, uid_generator_limits, uid_generator_columns, segment_status, t_sequence TO PUBLIC;
