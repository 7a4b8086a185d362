-- What the benchmarks call.
CREATE EXTENSION uidgen;

CREATE FUNCTION bench_noop() RETURNS bigint LANGUAGE c VOLATILE STRICT PARALLEL SAFE AS 'noop', 'bench_noop';
-- STRICT and an argument: the executor tests the argument for NULL before each call.
CREATE FUNCTION bench_noop(regclass) RETURNS bigint LANGUAGE c VOLATILE STRICT PARALLEL SAFE AS 'noop', 'bench_noop';
CREATE FUNCTION bench_clock() RETURNS bigint LANGUAGE c VOLATILE STRICT PARALLEL SAFE AS 'noop', 'bench_clock';
CREATE FUNCTION bench_cpu() RETURNS bigint LANGUAGE c VOLATILE STRICT AS 'noop', 'bench_cpu';
CREATE FUNCTION bench_settle() RETURNS void LANGUAGE c AS 'noop', 'bench_settle';

CREATE SEQUENCE cache_1;
CREATE SEQUENCE cache_1000 CACHE 1000;
CREATE SEQUENCE plain;
-- One with a fixed step, one with the default bounds, between which its step follows the demand, and one that stays
-- where that one begins.
SELECT segment_create('bench', 1, 10000000);
SELECT segment_create('dynamic');
SELECT segment_create('base', 1, 1000, 1000);

-- A generator like the default one, for uid_next(regclass).
CREATE SEQUENCE uid_generators.bench INCREMENT 9223372036854775807 MINVALUE 1 START 1 NO CYCLE;
SELECT setval('uid_generators.bench', 1, true);
INSERT INTO uid_generator (generator, preset, epoch, tick_us, time_bits, datacenter_bits, worker_bits, sequence_bits,
                           lease_ms, max_ahead_ms)
SELECT 'uid_generators.bench', preset, epoch, tick_us, time_bits, datacenter_bits, worker_bits, sequence_bits,
       lease_ms, max_ahead_ms
  FROM uid_generator WHERE builtin;
