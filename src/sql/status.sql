-- Live state and statistics: views that people and monitoring read. The functions behind them are the library's.

CREATE FUNCTION uid_internal.uid_live_generators(generator regclass DEFAULT NULL,
    OUT sequence regclass, OUT protection text, OUT node bigint, OUT datacenter_id integer, OUT worker_id integer,
    OUT last_time timestamptz, OUT leased_until timestamptz, OUT ahead_ms bigint, OUT ring_size bigint,
    OUT ring_filled double precision, OUT padded bigint, OUT padded_inline bigint, OUT rejected_takes bigint,
    OUT discarded_stale bigint, OUT granted_until timestamptz, OUT clock_steps_back bigint, OUT backup_ids bigint)
RETURNS SETOF record
LANGUAGE c VOLATILE PARALLEL RESTRICTED ROWS 1 AS 'MODULE_PATHNAME', 'uid_live_generators';
COMMENT ON FUNCTION uid_internal.uid_live_generators(regclass) IS
  'Returns the state in shared memory of a generator (NULL: of all in this database), if it was used since the server '
  'started, and the caller has USAGE or SELECT on it or is a member of pg_read_all_stats.';

CREATE FUNCTION uid_internal.uid_live_segments(
    OUT sequence regclass, OUT name text, OUT registry_name text, OUT range_first bigint, OUT range_length bigint, OUT range_left bigint,
    OUT next_ready boolean, OUT step bigint, OUT refills_late bigint, OUT refills_disturbed bigint,
    OUT next_asked boolean, OUT registry_error text)
RETURNS SETOF record
LANGUAGE c VOLATILE STRICT PARALLEL RESTRICTED ROWS 100 AS 'MODULE_PATHNAME', 'uid_live_segments';
COMMENT ON FUNCTION uid_internal.uid_live_segments() IS
  'Returns the same of all segments.';

CREATE FUNCTION uid_internal.uid_counters(
    OUT sequence regclass, OUT kind text, OUT ids bigint, OUT records bigint, OUT refused_clock bigint,
    OUT refused_rate bigint, OUT refused_registry bigint,
    OUT refused_ring bigint, OUT refused_used_up bigint, OUT flush_waits bigint, OUT flush_wait_time double precision,
    OUT standby_waits bigint, OUT standby_wait_time double precision, OUT clock_waits bigint,
    OUT clock_wait_time double precision, OUT registry_waits bigint, OUT registry_wait_time double precision,
    OUT ring_waits bigint, OUT ring_wait_time double precision)
RETURNS SETOF record
LANGUAGE c VOLATILE STRICT PARALLEL RESTRICTED ROWS 100 AS 'MODULE_PATHNAME', 'uid_counters';
COMMENT ON FUNCTION uid_internal.uid_counters() IS
  'Returns what the slots in shared memory of generators and segments of this database have counted, to the same roles.';

CREATE FUNCTION uid_internal.uid_server_counters(
    OUT ids bigint, OUT records bigint, OUT refused_clock bigint, OUT refused_rate bigint, OUT refused_registry bigint,
    OUT refused_ring bigint, OUT refused_used_up bigint, OUT flush_waits bigint, OUT flush_wait_time double precision,
    OUT standby_waits bigint, OUT standby_wait_time double precision, OUT clock_waits bigint,
    OUT clock_wait_time double precision, OUT registry_waits bigint, OUT registry_wait_time double precision,
    OUT ring_waits bigint, OUT ring_wait_time double precision, OUT refused_standby bigint,
    OUT clock_jumps bigint, OUT generators integer, OUT segments integer, OUT clock_moved_ms double precision)
RETURNS SETOF record
LANGUAGE c VOLATILE STRICT PARALLEL RESTRICTED ROWS 1 AS 'MODULE_PATHNAME', 'uid_server_counters';
COMMENT ON FUNCTION uid_internal.uid_server_counters() IS
  'Returns the counters of the server in one row.';

CREATE VIEW uid_stat AS SELECT * FROM uid_internal.uid_counters();
COMMENT ON VIEW uid_stat IS
  'Counters of each generator and segment of this database that has a slot in shared memory, which it gets when it is '
  'first used after a server start. They start at zero then, and never decrease. ids counts the ids and values that '
  'sessions and their parallel workers have drawn, one by one, in arrays and in blocks, even in transactions that '
  'were rolled back. records counts records written to the write-ahead log. refused_* count calls that failed: '
  'refused_clock because the clock was behind or implausible, refused_rate because sessions drew faster than the '
  'layout allows, refused_registry because the registry gave nothing, refused_ring because the ring was empty, and '
  'refused_used_up because no value is left. *_waits count calls that waited, *_wait_time is the time that they '
  'waited, in milliseconds: flush for this server''s disk, standby for a synchronous standby, clock for the clock, '
  'registry for the registry, ring for the refiller. A row is shown to roles with USAGE or SELECT on the sequence, '
  'and to members of pg_read_all_stats.';

CREATE VIEW uid_stat_server AS SELECT * FROM uid_internal.uid_server_counters();
COMMENT ON VIEW uid_stat_server IS
  'One row: the counters of uid_stat, summed over all databases of the server, with those of sequences that were '
  'dropped. They never decrease before the next server start. refused_standby counts draws that were refused during '
  'recovery, and clock_jumps forward jumps of the clock by more than 10 s that a draw has met. Not counters: '
  'generators and segments are how many of them have a slot in shared memory, and clock_moved_ms is by how many '
  'milliseconds the clock has been set since the server start (0 again when that is undone).';

CREATE VIEW uid_generator_status AS
SELECT g.generator, g.preset, s.protection, s.node, s.datacenter_id, s.worker_id, s.last_time, s.leased_until,
       s.ahead_ms, s.ring_size, s.ring_filled, s.padded, s.padded_inline, s.rejected_takes, s.discarded_stale,
       s.granted_until, s.clock_steps_back, s.backup_ids
  FROM uid_generator g
  LEFT JOIN LATERAL uid_internal.uid_live_generators(g.generator) s ON true;
COMMENT ON VIEW uid_generator_status IS
  'Live state of each generator. protection is set if a number that you gave keeps its ids apart from those of other '
  'databases, auto if only chance does, and registry if the registry of the fleet granted the '
  'node, up to the time granted_until (otherwise NULL). node is datacenter_id and worker_id together. These four '
  'describe the next id of this session. last_time is the time in the last id, and leased_until the end of the lease. '
  'ahead_ms is the lead of the last id over the clock, and 0 once the clock has passed it. In cached mode: '
  'ring_size is the number of ids that the ring holds, and ring_filled is the share that is filled. padded counts '
  'refills by the refiller, and padded_inline those by calls. rejected_takes counts calls that found the ring '
  'empty and failed or waited (when_ring_empty error, wait). discarded_stale counts ids in the ring that became '
  'too old. clock_steps_back counts how often the clock was found behind the generator. backup_ids counts the ids of '
  'the backup worker. The values are NULL if the generator has not been used since the server started, or if the '
  'caller has neither USAGE nor SELECT on the sequence and is not a member of pg_read_all_stats.';

CREATE VIEW uid_generator_limits AS
SELECT g.generator, g.preset,
       pg_catalog.to_timestamp(extract(epoch FROM g.epoch)::float8 + l.seconds) AS ends,
       extract(epoch FROM pg_catalog.clock_timestamp() - g.epoch)::float8 / l.seconds AS life_used,
       2::float8 ^ (g.sequence_bits + CASE g.when_full WHEN 'backup' THEN 1 ELSE 0 END)::float8
         * 1000000::float8 / g.tick_us::float8 AS ids_per_second
  FROM uid_generator g
 CROSS JOIN LATERAL (
       SELECT 2::float8 ^ g.time_bits::float8 * (g.tick_us::float8 / 1000000::float8) AS seconds) l;
COMMENT ON VIEW uid_generator_limits IS
  'Capacity of each generator''s layout: the end of its time bits, the share of its life that is used, from 0 to 1, '
  'and the highest sustainable rate. In the last two years before the end, uidgen issues a WARNING.';

CREATE VIEW segment_status AS
SELECT s.sequence, s.name, s.range_first, s.range_length, s.range_left,
       (s.range_length - s.range_left)::float8 / nullif(s.range_length, 0)::float8 AS share_used,
       s.next_ready, s.step, s.refills_late, s.refills_disturbed, s.registry_name, s.next_asked, s.registry_error
  FROM uid_internal.uid_live_segments() s;
COMMENT ON VIEW segment_status IS
  'Live state of each segment used since the server started: the range in use, the share of it that is used, and '
  'whether the next range is reserved. step is the number of values in the last range. refills_late counts ranges '
  'that calls had to wait for, and refills_disturbed those reserved after nextval or setval in another session. For '
  'an attached segment, registry_name is its name at the registry of the fleet, next_asked is true while it waits for '
  'a block, and registry_error says why the registry gave none the last time.';
