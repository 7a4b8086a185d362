-- Live state and statistics: views that people and monitoring read. The functions behind them are the library's.

CREATE FUNCTION uid_internal.uid_live_generators(generator regclass DEFAULT NULL,
    OUT sequence regclass, OUT protection text, OUT node bigint, OUT datacenter_id integer, OUT worker_id integer,
    OUT last_time timestamptz, OUT leased_until timestamptz, OUT ahead_ms bigint, OUT ring_size bigint,
    OUT ring_filled double precision, OUT padded bigint, OUT padded_inline bigint, OUT rejected_takes bigint,
    OUT discarded_stale bigint, OUT granted_until timestamptz, OUT clock_steps_back bigint, OUT backup_ids bigint)
RETURNS SETOF record
LANGUAGE c VOLATILE PARALLEL RESTRICTED ROWS 1 AS 'MODULE_PATHNAME', 'uid_live_generators';
COMMENT ON FUNCTION uid_internal.uid_live_generators(regclass) IS
  'Returns the state in shared memory of a generator (NULL: of all) to roles with USAGE or SELECT on it, and to '
  'members of pg_read_all_stats.';

CREATE FUNCTION uid_internal.uid_live_segments(
    OUT sequence regclass, OUT name text, OUT registry_name text, OUT range_first bigint, OUT range_length bigint,
    OUT range_left bigint, OUT next_ready boolean, OUT step bigint, OUT refills_late bigint,
    OUT refills_disturbed bigint, OUT next_asked boolean, OUT registry_error text)
RETURNS SETOF record
LANGUAGE c VOLATILE STRICT PARALLEL RESTRICTED ROWS 100 AS 'MODULE_PATHNAME', 'uid_live_segments';
COMMENT ON FUNCTION uid_internal.uid_live_segments() IS 'Returns the same of all segments.';

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
  'Returns what the slots in shared memory of generators and segments of this database have counted, to the same '
  'roles.';

CREATE FUNCTION uid_internal.uid_server_counters(
    OUT ids bigint, OUT records bigint, OUT refused_clock bigint, OUT refused_rate bigint, OUT refused_registry bigint,
    OUT refused_ring bigint, OUT refused_used_up bigint, OUT flush_waits bigint, OUT flush_wait_time double precision,
    OUT standby_waits bigint, OUT standby_wait_time double precision, OUT clock_waits bigint,
    OUT clock_wait_time double precision, OUT registry_waits bigint, OUT registry_wait_time double precision,
    OUT ring_waits bigint, OUT ring_wait_time double precision, OUT refused_standby bigint,
    OUT clock_jumps bigint, OUT generators integer, OUT segments integer, OUT clock_moved_ms double precision)
RETURNS SETOF record
LANGUAGE c VOLATILE STRICT PARALLEL RESTRICTED ROWS 1 AS 'MODULE_PATHNAME', 'uid_server_counters';
COMMENT ON FUNCTION uid_internal.uid_server_counters() IS 'Returns the counters of the server in one row.';

CREATE VIEW uid_stat AS SELECT * FROM uid_internal.uid_counters();
COMMENT ON VIEW uid_stat IS
  'Counters of generators and segments since their first use after the server start. *_waits count calls that '
  'waited, and *_wait_time is their time in milliseconds. For roles with USAGE or SELECT on the sequence, and '
  'members of pg_read_all_stats.';
COMMENT ON COLUMN uid_stat.sequence IS 'sequence of the generator or segment';
COMMENT ON COLUMN uid_stat.kind IS 'generator or segment';
COMMENT ON COLUMN uid_stat.ids IS
  'ids or values drawn, one by one, in arrays and in blocks, even by transactions that were rolled back';
COMMENT ON COLUMN uid_stat.records IS 'records in the write-ahead log';
COMMENT ON COLUMN uid_stat.refused_clock IS 'calls that failed because the clock was behind or implausible';
COMMENT ON COLUMN uid_stat.refused_rate IS 'calls that failed because sessions drew faster than the layout allows';
COMMENT ON COLUMN uid_stat.refused_registry IS 'calls that failed because the registry gave nothing';
COMMENT ON COLUMN uid_stat.refused_ring IS 'calls that failed because the ring was empty';
COMMENT ON COLUMN uid_stat.refused_used_up IS 'calls that failed because no value is left';
COMMENT ON COLUMN uid_stat.flush_waits IS 'calls that waited for this server''s disk';
COMMENT ON COLUMN uid_stat.standby_waits IS 'calls that waited for a synchronous standby';
COMMENT ON COLUMN uid_stat.clock_waits IS 'calls that waited for the clock';
COMMENT ON COLUMN uid_stat.registry_waits IS 'calls that waited for the registry';
COMMENT ON COLUMN uid_stat.ring_waits IS 'calls that waited for the refiller';

CREATE VIEW uid_stat_server AS SELECT * FROM uid_internal.uid_server_counters();
COMMENT ON VIEW uid_stat_server IS
  'The counters of uid_stat in one row for the whole server since its start, with those of dropped sequences.';
COMMENT ON COLUMN uid_stat_server.refused_standby IS 'draws that failed during recovery';
COMMENT ON COLUMN uid_stat_server.clock_jumps IS 'forward jumps of the clock by more than 10 s that a draw has met';
COMMENT ON COLUMN uid_stat_server.generators IS 'generators with a slot in shared memory; no counter';
COMMENT ON COLUMN uid_stat_server.segments IS 'segments with a slot in shared memory; no counter';
COMMENT ON COLUMN uid_stat_server.clock_moved_ms IS
  'by how many milliseconds the clock has been set since the server start; no counter';

CREATE VIEW uid_generator_status AS
SELECT g.generator, g.preset, s.protection, s.node, s.datacenter_id, s.worker_id, s.last_time, s.leased_until,
       s.ahead_ms, s.ring_size, s.ring_filled, s.padded, s.padded_inline, s.rejected_takes, s.discarded_stale,
       s.granted_until, s.clock_steps_back, s.backup_ids
  FROM uid_generator g
  LEFT JOIN LATERAL uid_internal.uid_live_generators(g.generator) s ON true;
COMMENT ON VIEW uid_generator_status IS
  'Live state of each generator; NULLs if it has not been used since the server started, or if the caller has '
  'neither USAGE nor SELECT on it and is not a member of pg_read_all_stats.';
COMMENT ON COLUMN uid_generator_status.protection IS
  'what keeps its ids apart from other databases'': set (a number that you gave), auto (chance) or registry (a grant)';
COMMENT ON COLUMN uid_generator_status.node IS
  'datacenter_id and worker_id together; these describe the next id of this session';
COMMENT ON COLUMN uid_generator_status.last_time IS 'time in the last id';
COMMENT ON COLUMN uid_generator_status.leased_until IS 'end of the lease';
COMMENT ON COLUMN uid_generator_status.ahead_ms IS
  'lead of the last id over the clock, in milliseconds; 0 if the clock has passed it';
COMMENT ON COLUMN uid_generator_status.ring_size IS 'cached mode: ids that the ring holds';
COMMENT ON COLUMN uid_generator_status.ring_filled IS 'cached mode: its filled share';
COMMENT ON COLUMN uid_generator_status.padded IS 'cached mode: refills by the refiller';
COMMENT ON COLUMN uid_generator_status.padded_inline IS 'cached mode: refills by calls';
COMMENT ON COLUMN uid_generator_status.rejected_takes IS
  'cached mode: calls that found the ring empty and failed or waited';
COMMENT ON COLUMN uid_generator_status.discarded_stale IS 'cached mode: ids in the ring that became too old';
COMMENT ON COLUMN uid_generator_status.granted_until IS 'end of the registry''s grant; NULL without one';
COMMENT ON COLUMN uid_generator_status.clock_steps_back IS 'how often the clock was found behind the generator';
COMMENT ON COLUMN uid_generator_status.backup_ids IS 'ids of the backup worker';

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
  'The end of each generator''s time bits, the used share of its life (0 to 1), and the highest sustainable rate. '
  'uidgen warns in the last two years.';

CREATE VIEW segment_status AS
SELECT s.sequence, s.name, s.range_first, s.range_length, s.range_left,
       (s.range_length - s.range_left)::float8 / nullif(s.range_length, 0)::float8 AS share_used,
       s.next_ready, s.step, s.refills_late, s.refills_disturbed, s.registry_name, s.next_asked, s.registry_error
  FROM uid_internal.uid_live_segments() s;
COMMENT ON VIEW segment_status IS
  'Live state of each segment used since the server started, for the same roles as uid_stat.';
COMMENT ON COLUMN segment_status.range_first IS 'first value of the range in use';
COMMENT ON COLUMN segment_status.range_length IS 'number of its values';
COMMENT ON COLUMN segment_status.range_left IS 'how many of them are left';
COMMENT ON COLUMN segment_status.share_used IS 'used share of the range';
COMMENT ON COLUMN segment_status.next_ready IS 'whether the next range is reserved';
COMMENT ON COLUMN segment_status.step IS 'number of values in the last range';
COMMENT ON COLUMN segment_status.refills_late IS 'ranges that calls had to wait for';
COMMENT ON COLUMN segment_status.refills_disturbed IS 'ranges reserved after nextval or setval in another session';
COMMENT ON COLUMN segment_status.registry_name IS 'its name at the registry, if it is attached';
COMMENT ON COLUMN segment_status.next_asked IS 'whether it waits for a block of the registry';
COMMENT ON COLUMN segment_status.registry_error IS 'why the registry gave none the last time';
