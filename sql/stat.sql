-- The statistics: counters that only grow.
CREATE EXTENSION uidgen;
SELECT uid_stat_reset(); -- what earlier tests counted

SELECT uid_generator_create('counted');
SELECT segment_create('counted', 1, 1000);

-- What ids counts: ids drawn one by one, in batches, in transactions and subtransactions that are rolled back, and in
-- READ ONLY transactions.
CREATE FUNCTION ids_of(sequence regclass) RETURNS bigint LANGUAGE sql AS
  'SELECT ids FROM uid_stat s WHERE s.sequence = $1';
SELECT ids_of('uid_generators.counted') IS NULL AS no_row;
SELECT count(uid_next('uid_generators.counted')) FROM generate_series(1, 10000);
SELECT ids_of('uid_generators.counted');
SELECT count(*) FROM uid_next_batch('uid_generators.counted', 5000);
SELECT array_length(uid_next_array('uid_generators.counted', 2500), 1);
SELECT ids_of('uid_generators.counted');
BEGIN;
SELECT uid_next('uid_generators.counted') > 0;
SAVEPOINT a;
SELECT count(uid_next('uid_generators.counted')) FROM generate_series(1, 1000);
ROLLBACK TO a;
SELECT ids_of('uid_generators.counted');
ROLLBACK;
SELECT ids_of('uid_generators.counted');
BEGIN READ ONLY;
SELECT count(uid_next('uid_generators.counted')) FROM generate_series(1, 99);
COMMIT;
SELECT ids, batches, blocks, records > 0 AS records, ring_refills, blocks_asked, blocks_received,
       refused_clock + refused_rate + refused_registry + refused_ring + refused_used_up + refused_busy AS refused,
       flush_waits > 0 AS flush_waits, flush_wait_time > 0 AS flush_wait_time, standby_waits, standby_wait_time
  FROM uid_stat WHERE sequence = 'uid_generators.counted'::regclass;

-- A counter that another command moves: what is passed over does not count.
SELECT setval('uid_generators.counted', last_value + 400) > 0 FROM uid_generators.counted;
SELECT count(uid_next('uid_generators.counted')) FROM generate_series(1, 100);
SELECT ids_of('uid_generators.counted');

-- Parallel workers.
CREATE TABLE numbers AS SELECT n FROM generate_series(1, 20000) n;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SET max_parallel_workers_per_gather = 2;
SELECT count(DISTINCT uid_next('uid_generators.counted')) FROM numbers;
SELECT ids_of('uid_generators.counted');
RESET ALL;

-- Segments: values one by one, in batches and blocks; after setval the rest of the range is not drawn.
SELECT count(segment_next('counted')) FROM generate_series(1, 250);
SELECT count(*) FROM segment_next_batch('counted', 1500);
SELECT * FROM segment_reserve('counted', 5000);
SELECT ids, batches, blocks FROM uid_stat WHERE sequence = 'uid_segments.counted'::regclass;
SELECT segment_set('counted', 1000000);
SELECT segment_next('counted');
SELECT ids_of('uid_segments.counted');
CREATE SEQUENCE short MAXVALUE 3;
SELECT count(segment_next('short')) FROM generate_series(1, 3);
SELECT segment_next('short');
SELECT segment_reserve('short', 1);
SELECT ids, refused_used_up FROM uid_stat WHERE sequence = 'short'::regclass;

-- Cached mode, with one run for all and with runs of the session's own, which are counted at the end of the transaction.
SELECT uid_generator_create('shared', mode => 'cached', spread => false);
SELECT count(uid_next('uid_generators.shared')) FROM generate_series(1, 10000);
SELECT ids_of('uid_generators.shared');
SELECT count(*) FROM uid_next_batch('uid_generators.shared', 777);
SELECT ids, batches, ring_refills > 0 AS ring_refills FROM uid_stat WHERE sequence = 'uid_generators.shared'::regclass;
SELECT uid_generator_create('own', mode => 'cached', spread => false, chunk => 256);
SELECT count(uid_next('uid_generators.own')) FROM generate_series(1, 10000);
SELECT ids_of('uid_generators.own');
BEGIN;
SELECT count(uid_next('uid_generators.own')) FROM generate_series(1, 10);
SELECT count(*) FROM uid_next_batch('uid_generators.own', 1000);
SELECT count(uid_next('uid_generators.own')) FROM generate_series(1, 5);
ROLLBACK;
SELECT ids, batches, ring_refills > 0 AS ring_refills FROM uid_stat WHERE sequence = 'uid_generators.own'::regclass;
-- Two in one transaction, of which one is dropped.
SELECT uid_generator_create('brief', mode => 'cached', spread => false, chunk => 256);
SELECT ids AS server_ids FROM uid_stat_server \gset
BEGIN;
SELECT count(uid_next('uid_generators.brief')) + count(uid_next('uid_generators.own')) FROM generate_series(1, 20);
SELECT uid_generator_drop('uid_generators.brief');
COMMIT;
SELECT ids_of('uid_generators.own'), ids - :server_ids AS by_server FROM uid_stat_server;

-- A slot's counters begin again after an alteration or a drop; those of the server never go back.
SELECT ids AS server_ids FROM uid_stat_server \gset
SELECT uid_generator_alter('uid_generators.counted', lease_ms => 2000);
SELECT ids_of('uid_generators.counted') IS NULL AS no_row;
SELECT uid_next('uid_generators.counted') > 0;
SELECT ids_of('uid_generators.counted');
SELECT segment_drop('counted');
DROP SEQUENCE short;
SELECT count(*) FROM uid_stat WHERE kind = 'segment';
SELECT ids - :server_ids AS by_server, slots_used > 0 AS slots_used, slots_of_segments, slots_max, slots_reclaimed,
       refused_no_slot, refused_standby, refused_used_up
  FROM uid_stat_server;

-- A reset of one generator: the server's counters stay. A reset of all.
SELECT count(uid_next('uid_generators.counted')) FROM generate_series(1, 41);
SELECT ids AS server_ids FROM uid_stat_server \gset
SELECT stats_reset AS reset_before FROM uid_stat WHERE sequence = 'uid_generators.counted'::regclass \gset
SELECT uid_stat_reset('uid_generators.counted');
SELECT ids, batches, records, flush_waits, flush_wait_time, stats_reset > :'reset_before' AS later
  FROM uid_stat WHERE sequence = 'uid_generators.counted'::regclass;
SELECT ids - :server_ids AS by_server FROM uid_stat_server;
SELECT uid_next('uid_generators.counted') > 0;
SELECT ids_of('uid_generators.counted');
SELECT stats_reset AS reset_before FROM uid_stat_server \gset
SELECT uid_stat_reset();
SELECT DISTINCT ids + batches + records + ring_refills + flush_waits AS sum, flush_wait_time FROM uid_stat;
SELECT ids, batches, blocks, records, ring_refills, refused_used_up, flush_waits, flush_wait_time,
       stats_reset > :'reset_before' AS later
  FROM uid_stat_server;
SELECT uid_next('uid_generators.counted') > 0;
SELECT s.ids, t.ids FROM uid_stat s, uid_stat_server t WHERE s.sequence = 'uid_generators.counted'::regclass;

-- Who may see and reset what. Counts of a sequence are for those who may use or read it, and for pg_read_all_stats.
CREATE ROLE regress_stat_user;
CREATE ROLE regress_stat_drawer;
CREATE ROLE regress_stat_monitor IN ROLE pg_monitor;
GRANT USAGE ON SEQUENCE uid_generators.counted TO regress_stat_drawer;
SET ROLE regress_stat_user;
SELECT sequence, kind, ids, flush_wait_time, stats_reset IS NOT NULL AS reset FROM uid_stat WHERE sequence = 'uid_generators.counted'::regclass;
SELECT ids FROM uid_stat_server;
SELECT uid_stat_reset();
SELECT uid_stat_reset('uid_generators.counted');
SET ROLE regress_stat_drawer;
SELECT ids FROM uid_stat WHERE sequence = 'uid_generators.counted'::regclass;
SET ROLE regress_stat_monitor;
SELECT ids FROM uid_stat WHERE sequence = 'uid_generators.counted'::regclass;
SELECT uid_stat_reset();
RESET ROLE;
GRANT EXECUTE ON FUNCTION uid_stat_reset(regclass) TO regress_stat_monitor;
SET ROLE regress_stat_monitor;
SELECT uid_stat_reset('uid_generators.counted');
SELECT ids FROM uid_stat WHERE sequence = 'uid_generators.counted'::regclass;
RESET ROLE;

-- What is no sequence, and what does not exist. NULL resets nothing.
SELECT uid_stat_reset('uid_generators.none');
SELECT uid_stat_reset('numbers');
SELECT uid_stat_reset(0);
SELECT uid_stat_reset(NULL) IS NULL AS none;
CREATE SEQUENCE unused;
SELECT uid_stat_reset('unused');

-- A drop that is not committed yet: the row stays if it is rolled back.
BEGIN;
SELECT uid_generator_drop('uid_generators.counted');
SELECT count(*) FROM uid_stat WHERE sequence::text = 'uid_generators.counted';
ROLLBACK;
SELECT count(*) FROM uid_stat WHERE sequence = 'uid_generators.counted'::regclass;

-- Nothing depends on the caller's search_path.
CREATE SCHEMA hostile;
CREATE VIEW hostile.uid_stat AS SELECT 1 AS mine;
CREATE FUNCTION hostile.uid_stat_sequences() RETURNS integer LANGUAGE sql AS 'SELECT 1 / 0';
SET search_path = hostile, pg_catalog;
SELECT count(*) > 0 AS rows FROM public.uid_stat;
SELECT count(*) FROM public.uid_stat_server;
RESET search_path;

-- Counts are bigint in every form of a batch, and no form takes less.
SELECT p.oid::regprocedure FROM pg_proc p
 WHERE p.proname ~ '^(uid|segment)_(next_batch|next_array|reserve)$' ORDER BY p.oid::regprocedure::text;
SELECT count(*) FROM uid_next_batch(0::bigint);
SELECT uid_next_array(3000000000::bigint);
SELECT uid_next_array('uid_generators.counted', 3000000000::bigint);
SELECT segment_create('many');
SELECT segment_next_array('many', 3000000000::bigint);
SELECT segment_next_array('uid_segments.many'::regclass, 3000000000::bigint);
SELECT * FROM segment_reserve('many', 3000000000::bigint);
SELECT * FROM segment_reserve('uid_segments.many'::regclass, 3000000000::bigint);
SELECT * FROM uid_next_batch(-3000000000::bigint);
SELECT * FROM segment_next_batch('many', -3000000000::bigint);

DROP SCHEMA hostile CASCADE;
DROP FUNCTION ids_of;
DROP EXTENSION uidgen CASCADE;
DROP OWNED BY regress_stat_user, regress_stat_drawer, regress_stat_monitor;
DROP ROLE regress_stat_user, regress_stat_drawer, regress_stat_monitor;
