-- The view of generators, the builtin one, and the presets. What a generator is, is said by the security label of its
-- sequence, which uid_generator_create(), uid_generator_alter() and uid_default_set() write.

-- A field is a column here, a word of the label (src/core/definition.hpp), and a parameter of the same name of
-- uid_generator_create() and uid_generator_alter(). A new generator has the fields of its preset, and the others of the
-- builtin one.
CREATE FUNCTION uid_internal.uid_read_generator(label text,
    OUT preset text, OUT epoch timestamptz, OUT tick_us bigint, OUT time_bits smallint,
    OUT datacenter_bits smallint, OUT worker_bits smallint, OUT sequence_bits smallint, OUT sequence_first boolean,
    OUT backup_worker boolean, OUT lease_ms integer, OUT max_ahead_ms integer, OUT when_full text,
    OUT when_back text, OUT tolerance_ms integer, OUT spread boolean, OUT worker_policy text,
    OUT worker_number integer, OUT datacenter_id integer, OUT own_pool boolean, OUT mode text,
    OUT boost_power integer, OUT padding_factor integer, OUT schedule_ms integer, OUT when_ring_empty text,
    OUT max_staleness_ms integer, OUT created timestamptz, OUT is_default boolean)
LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'uid_definition';
COMMENT ON FUNCTION uid_internal.uid_read_generator(text) IS
  'Returns what the label of a generator''s sequence says; NULL if it cannot be read.';

-- INCREMENT, MINVALUE and is_called make nextval fail without moving the counter, so that only uidgen takes leases.
CREATE SEQUENCE uid_generators.uid_default
  INCREMENT 9223372036854775807 MINVALUE 1 START 1 NO CYCLE;
SELECT pg_catalog.setval('uid_generators.uid_default', 1, true);
SELECT pg_catalog.pg_extension_config_dump('uid_generators.uid_default', '');
COMMENT ON SEQUENCE uid_generators.uid_default IS
  'Lease sequence of the builtin generator, the default generator behind uid_next() until another one is chosen.';

CREATE VIEW uid_generator AS
SELECT l.objoid::regclass AS generator,
       d.preset, d.epoch, d.tick_us, d.time_bits, d.datacenter_bits, d.worker_bits, d.sequence_bits,
       d.sequence_first, d.backup_worker, d.lease_ms, d.max_ahead_ms, d.when_full, d.when_back, d.tolerance_ms,
       d.spread, d.worker_policy, d.worker_number, d.datacenter_id, d.own_pool, d.mode, d.boost_power,
       d.padding_factor, d.schedule_ms, d.when_ring_empty, d.max_staleness_ms, d.created,
       l.objoid = 'uid_generators.uid_default'::regclass::oid AS builtin, d.is_default
  FROM pg_catalog.pg_seclabel l CROSS JOIN LATERAL uid_internal.uid_read_generator(l.label) d
 WHERE l.classoid = 'pg_catalog.pg_class'::regclass::oid AND l.objsubid = 0 AND l.provider = 'uidgen'::text
   AND pg_catalog.starts_with(l.label, 'generator '::text);
COMMENT ON VIEW uid_generator IS
  'The generators, as the security labels of their sequences define them. All columns but the first are NULL if a '
  'label cannot be read.';
COMMENT ON COLUMN uid_generator.generator IS 'lease sequence; USAGE on it lets a role draw';
COMMENT ON COLUMN uid_generator.preset IS 'preset that the fields were copied from';
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
  'how far the time in an id may be ahead of the clock, in milliseconds, up to ten minutes';
COMMENT ON COLUMN uid_generator.when_full IS
  'if the numbers of a tick are used up; wait: for the next tick; borrow: use the next one early, up to '
  'max_ahead_ms; backup: use the backup worker';
COMMENT ON COLUMN uid_generator.when_back IS
  'if the clock moves backwards; hold: stay at the last tick, up to the tolerance; wait: up to the tolerance; '
  'backup: use the backup worker; error: fail';
COMMENT ON COLUMN uid_generator.tolerance_ms IS
  'how far the clock may move backwards, or with when_back backup, ids of the backup worker may be ahead, in '
  'milliseconds; NULL: up to max_ahead_ms';
COMMENT ON COLUMN uid_generator.spread IS
  'true: a tick starts at one of its first 3000 numbers (with when_full wait 100) instead of 0, so that id % n is even';
COMMENT ON COLUMN uid_generator.worker_policy IS
  'disposable: a new worker id at each server start; sticky: the last node of this host, port and data directory; '
  'static: worker_number';
COMMENT ON COLUMN uid_generator.worker_number IS 'worker id with worker_policy static';
COMMENT ON COLUMN uid_generator.datacenter_id IS
  'datacenter id of this generator''s ids; NULL: the setting uidgen.datacenter_id';
COMMENT ON COLUMN uid_generator.own_pool IS
  'true: in a fleet, ids may be equal to those of generators with another epoch or another split of the node';
COMMENT ON COLUMN uid_generator.mode IS
  'snowflake: each call makes ids from the clock; cached: ids are made ahead of time (boost_power to max_staleness_ms)';
COMMENT ON COLUMN uid_generator.boost_power IS
  'size of the ring, which holds 2^sequence_bits << boost_power ids, 0 to 20';
COMMENT ON COLUMN uid_generator.padding_factor IS
  'filled share of the ring below which it is refilled, in percent, 1 to 100';
COMMENT ON COLUMN uid_generator.schedule_ms IS
  'interval of scheduled refills, in milliseconds; NULL: no scheduled refills';
COMMENT ON COLUMN uid_generator.when_ring_empty IS
  'if a call finds the ring empty; pad: it refills the ring; wait: for the refiller; error: it fails';
COMMENT ON COLUMN uid_generator.max_staleness_ms IS
  'how far the time in an id may be behind the clock, in milliseconds, at least two ticks';
COMMENT ON COLUMN uid_generator.created IS
  'creation time of the generator; of the builtin generator: a time before its first id';
COMMENT ON COLUMN uid_generator.builtin IS
  'true for the generator that comes with the extension, which cannot be altered';
COMMENT ON COLUMN uid_generator.is_default IS
  'true for the generator behind uid_next(), which uid_default_set() chooses';

CREATE FUNCTION uid_internal.uid_keep_local() RETURNS trigger
LANGUAGE c AS 'MODULE_PATHNAME', 'uid_keep_local';
COMMENT ON FUNCTION uid_internal.uid_keep_local() IS
  'Trigger function of worker_node. It skips rows that logical replication brings from another server.';

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
  'The presets of uid_generator_create(). If epoch is NULL, it is midnight UTC of the day of the generator''s '
  'creation.';

-- The builtin generator, the same in each database: no dump has it. It is the default until another one is chosen.
SECURITY LABEL FOR uidgen ON SEQUENCE uid_generators.uid_default IS
  'generator preset="snowflake" epoch=2026-01-01T00:00:00Z tick_us=1000 time_bits=41 datacenter_bits=5 worker_bits=5 '
  'sequence_bits=12 sequence_first=false backup_worker=false lease_ms=1000 max_ahead_ms=2000 when_full=borrow '
  'when_back=hold tolerance_ms=null spread=true worker_policy=disposable worker_number=null datacenter_id=null '
  'own_pool=false mode=snowflake boost_power=3 padding_factor=50 schedule_ms=null '
  'when_ring_empty=pad max_staleness_ms=5000 created=2026-01-02T00:00:00Z is_default=true';

CREATE VIEW uid_internal.generators AS SELECT * FROM uid_generator;
COMMENT ON VIEW uid_internal.generators IS 'The view uid_generator, for functions.';
