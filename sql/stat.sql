-- The statistics: counters that only grow.
\a \t
CREATE EXTENSION uidgen;
SELECT refused_used_up AS refused_before FROM uid_stat_server \gset

SELECT uid_generator_create('counted');
SELECT segment_create('counted', 1, 1000);

-- What ids counts: ids drawn one by one, in batches, in transactions and subtransactions that are rolled back, and in
-- READ ONLY transactions.
CREATE FUNCTION ids_of(sequence regclass) RETURNS bigint LANGUAGE sql AS
  'SELECT ids FROM uid_stat s WHERE s.sequence = $1';
SELECT ids_of('uid_generators.counted') IS NULL AS no_row;
SELECT count(uid_next('uid_generators.counted')) FROM generate_series(1, 10000);
SELECT ids_of('uid_generators.counted');
SELECT cardinality(uid_next_array('uid_generators.counted', 5000)), cardinality(uid_next_array('uid_generators.counted', 2500));
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
SELECT ids, records > 0 AS records,
       refused_clock + refused_rate + refused_registry + refused_ring + refused_used_up AS refused,
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

-- Segments: values one by one, in arrays and blocks; after setval the rest of the range is not drawn.
SELECT count(segment_next('counted')) FROM generate_series(1, 250);
SELECT count(*) FROM unnest(segment_next_array('counted', 1500));
SELECT * FROM segment_reserve('counted', 5000);
SELECT ids FROM uid_stat WHERE sequence = 'uid_segments.counted'::regclass;
SELECT segment_set('counted', 1000000);
SELECT segment_next('counted');
SELECT ids_of('uid_segments.counted');
CREATE SEQUENCE short MAXVALUE 3;
SELECT count(segment_next('short')) FROM generate_series(1, 3);
SELECT segment_next('short');
SELECT segment_reserve('short', 1);
SELECT ids, refused_used_up FROM uid_stat WHERE sequence = 'short'::regclass;

-- Cached mode, also in a transaction that is rolled back.
SELECT uid_generator_create('shared', mode => 'cached', spread => false);
SELECT count(uid_next('uid_generators.shared')) FROM generate_series(1, 10000);
SELECT ids_of('uid_generators.shared');
SELECT cardinality(uid_next_array('uid_generators.shared', 777));
SELECT ids_of('uid_generators.shared');
BEGIN;
SELECT count(uid_next('uid_generators.shared')) FROM generate_series(1, 10);
SELECT cardinality(uid_next_array('uid_generators.shared', 1000)), uid_next('uid_generators.shared') > 0;
ROLLBACK;
SELECT ids_of('uid_generators.shared');
-- Two in one transaction, of which one is dropped.
SELECT uid_generator_create('brief', mode => 'cached', spread => false);
SELECT ids AS server_ids FROM uid_stat_server \gset
BEGIN;
SELECT count(uid_next('uid_generators.brief')) + count(uid_next('uid_generators.shared')) FROM generate_series(1, 20);
SELECT uid_generator_drop('uid_generators.brief');
COMMIT;
SELECT ids_of('uid_generators.shared'), ids - :server_ids AS by_server FROM uid_stat_server;

-- An alteration keeps a slot's counters, and so does the label that is there, set once more. Those of the server never go
-- back, whatever is dropped.
SELECT ids AS server_ids FROM uid_stat_server \gset
SELECT ids_of('uid_generators.counted') AS before \gset
SELECT uid_generator_alter('uid_generators.counted', lease_ms => 2000);
DO $$
BEGIN
  EXECUTE (SELECT format('SECURITY LABEL FOR uidgen ON SEQUENCE uid_generators.counted IS %L', label)
             FROM pg_seclabel WHERE objoid = 'uid_generators.counted'::regclass);
END
$$;
SELECT uid_next('uid_generators.counted') > 0;
SELECT ids_of('uid_generators.counted') - :before AS more;
SELECT segment_drop('counted');
DROP SEQUENCE short;
SELECT count(*) FROM uid_stat WHERE kind = 'segment';
SELECT ids - :server_ids AS by_server, generators > 0 AS generators, segments > 0 AS segments,
       refused_standby, refused_used_up - :refused_before AS refused_used_up
  FROM uid_stat_server;

-- Who may see what. Counts of a sequence are for those who may use or read it, and for pg_read_all_stats.
CREATE ROLE regress_stat_user;
CREATE ROLE regress_stat_drawer;
CREATE ROLE regress_stat_monitor IN ROLE pg_monitor;
GRANT USAGE ON SEQUENCE uid_generators.counted TO regress_stat_drawer;
SET ROLE regress_stat_user;
SELECT sequence, kind, ids, flush_wait_time FROM uid_stat WHERE sequence = 'uid_generators.counted'::regclass;
SELECT ids > 0 AS seen FROM uid_stat_server;
SET ROLE regress_stat_drawer;
SELECT ids FROM uid_stat WHERE sequence = 'uid_generators.counted'::regclass;
SET ROLE regress_stat_monitor;
SELECT ids FROM uid_stat WHERE sequence = 'uid_generators.counted'::regclass;
RESET ROLE;

-- A drop that is not committed yet. If it is rolled back, the counters go on.
BEGIN;
SELECT uid_generator_drop('uid_generators.counted');
SELECT count(*) FROM uid_stat WHERE sequence::text = 'uid_generators.counted';
ROLLBACK;
SELECT uid_next('uid_generators.counted') > 0;
SELECT ids_of('uid_generators.counted') - :before AS more;

DROP FUNCTION ids_of;
DROP EXTENSION uidgen CASCADE;
DROP OWNED BY regress_stat_user, regress_stat_drawer, regress_stat_monitor;
DROP ROLE regress_stat_user, regress_stat_drawer, regress_stat_monitor;
