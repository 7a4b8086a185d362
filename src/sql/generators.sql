-- The table of generators, its guards, and the presets. pg_dump reads it, and so do people; uid_generator_create(),
-- uid_generator_alter() and uid_default_set() write it. The library reads the rows.

-- A field is a column here, with the default of hand-written rows and older dumps, and a parameter of the same name of
-- uid_generator_create() and uid_generator_alter(). The library finds columns by name. The defaults of
-- uid_generator_create() are those of uid_preset and of these columns.
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
  'drop of the sequence deletes it.';
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
  'generator: at one of the first 3000, with when_full wait of the first 100';
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
  'creation time of the generator; of the builtin generator: a time before its first id';
COMMENT ON COLUMN uid_generator.builtin IS
  'true for the generator that comes with the extension, until it is altered';
COMMENT ON COLUMN uid_generator.is_default IS
  'true for the generator behind uid_next(), which uid_default_set() chooses. Without such a row the default was '
  'dropped, and the database has none';

-- The owner of a sequence may insert the row that describes it, and the owner of the table may insert any row. The
-- owner of the database may insert the other rows of a dump in order to restore it. Row-level security could express
-- the same rule, but would keep the owner of the database from dumping the table.
CREATE FUNCTION uid_internal.uid_check_registration() RETURNS trigger
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  sequence regclass;
  is_builtin boolean := false; -- the row replaces the one that CREATE EXTENSION inserted
  is_special boolean := false; -- the owner of the sequence may not insert it
  owns_database boolean := pg_has_role('pg_database_owner', 'USAGE');
BEGIN
  -- Arguments of the trigger: the column that names the sequence, and the schema that the sequence must be in. The
  -- fields are read by name: an invalidation may free the row type while to_jsonb() reads the names.
  IF TG_ARGV[0] = 'generator' THEN
    sequence := NEW.generator;
    is_builtin := EXISTS (SELECT FROM uid_internal.generators g WHERE g.generator = sequence AND g.builtin);
    is_special := NEW.builtin OR NEW.is_default AND NOT owns_database;
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
     AND NOT (is_builtin AND owns_database)
     AND (is_special
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

-- Sources of the published presets:
-- twitter: github.com/twitter-archive/snowflake, 2010
-- hutool: cn.hutool.core.lang.Snowflake
-- leaf: Leaf-snowflake, tech.meituan.com, 2017
-- baidu, baidu_cached: github.com/baidu/uid-generator
-- sonyflake: github.com/sony/sonyflake
-- instagram: "Sharding & IDs at Instagram", instagram-engineering.com, 2012. Its 41st time bit is the sign of a bigint,
--            so ids stay positive until 40 bits are used up.
CREATE VIEW uid_preset (preset, epoch, tick_us, time_bits, datacenter_bits, worker_bits, sequence_bits, sequence_first,
  backup_worker, lease_ms, max_ahead_ms, when_full, when_back, tolerance_ms, spread, mode, worker_policy) AS
VALUES
  ('snowflake'::text, timestamptz '2026-01-01 00:00:00+00',
   1000::bigint, 41::smallint, 5::smallint, 5::smallint, 12::smallint,
   false, false, 1000, 2000, 'borrow'::text, 'hold'::text, NULL::integer, true, 'snowflake'::text, 'disposable'::text),
  ('twitter', timestamptz '2010-11-04 01:42:54.657+00', 1000, 41, 5, 5, 12,
   false, false, 1000, 2000, 'wait', 'error', NULL, false, 'snowflake', 'disposable'),
  ('hutool', timestamptz '2010-11-04 01:42:54.657+00', 1000, 41, 5, 5, 12,
   false, false, 1000, 2000, 'wait', 'hold', 1999, false, 'snowflake', 'disposable'),
  ('leaf', timestamptz '2010-11-04 01:42:54.657+00', 1000, 41, 0, 10, 12,
   false, false, 1000, 2000, 'wait', 'wait', 5, true, 'snowflake', 'sticky'),
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
  'The presets that uid_generator_create() copies into a row of uid_generator. If epoch is NULL, the generator '
  'starts at midnight UTC of the day of its creation, so that no time of the layout is lost.';

-- INCREMENT, MINVALUE and is_called make nextval fail without moving the counter, so that only uidgen takes leases.
CREATE SEQUENCE uid_generators.uid_default
  INCREMENT 9223372036854775807 MINVALUE 1 START 1 NO CYCLE;
SELECT pg_catalog.setval('uid_generators.uid_default', 1, true);
SELECT pg_catalog.pg_extension_config_dump('uid_generators.uid_default', '');
COMMENT ON SEQUENCE uid_generators.uid_default IS
  'Lease sequence of the builtin generator, the default generator behind uid_next() until another one is chosen.';

-- The builtin generator. Its row is the same in each database, and a dump has it only if it was altered, or is not the
-- default.
INSERT INTO uid_generator (generator, preset, epoch, tick_us, time_bits, datacenter_bits, worker_bits, sequence_bits,
  sequence_first, backup_worker, lease_ms, max_ahead_ms, when_full, when_back, tolerance_ms, spread, mode, worker_policy,
  created, builtin, is_default)
SELECT 'uid_generators.uid_default', p.*, '2026-01-02 00:00:00+00', true, true
  FROM uid_preset p WHERE p.preset OPERATOR(pg_catalog.=) 'snowflake'::text;

CREATE TRIGGER uid_check_registration BEFORE INSERT ON uid_generator
  FOR EACH ROW EXECUTE FUNCTION uid_internal.uid_check_registration('generator', 'uid_generators');
CREATE TRIGGER uid_generator_changing BEFORE INSERT OR UPDATE OR DELETE ON uid_generator
  FOR EACH ROW EXECUTE FUNCTION uid_internal.uid_generator_changing();
ALTER TABLE uid_generator ENABLE ALWAYS TRIGGER uid_generator_changing; -- for restores

CREATE VIEW uid_generator_config AS SELECT * FROM uid_generator;
COMMENT ON VIEW uid_generator_config IS 'Layout, limits and policies of each generator: the rows of uid_generator.';
CREATE VIEW uid_internal.generators AS SELECT * FROM uid_generator_config;
COMMENT ON VIEW uid_internal.generators IS 'The view uid_generator_config, for functions.';
