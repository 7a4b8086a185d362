-- What the benchmarks call.
CREATE EXTENSION uidgen;

CREATE FUNCTION bench_noop() RETURNS bigint LANGUAGE c VOLATILE STRICT PARALLEL SAFE AS 'noop', 'bench_noop';
-- STRICT and an argument: the executor tests the argument for NULL before each call.
CREATE FUNCTION bench_noop(regclass) RETURNS bigint LANGUAGE c VOLATILE STRICT PARALLEL SAFE AS 'noop', 'bench_noop';
CREATE FUNCTION bench_swap() RETURNS bigint LANGUAGE c VOLATILE STRICT PARALLEL SAFE AS 'noop', 'bench_swap';
CREATE FUNCTION bench_clock() RETURNS bigint LANGUAGE c VOLATILE STRICT PARALLEL SAFE AS 'noop', 'bench_clock';
CREATE FUNCTION bench_cpu() RETURNS bigint LANGUAGE c VOLATILE STRICT AS 'noop', 'bench_cpu';
CREATE FUNCTION bench_settle() RETURNS void LANGUAGE c AS 'noop', 'bench_settle';

-- Volatile, because a column of a stable function that nobody reads is not evaluated.
CREATE FUNCTION bench_conceal(bigint, text) RETURNS bigint LANGUAGE c VOLATILE STRICT PARALLEL SAFE AS 'uidgen', 'uid_conceal';
CREATE FUNCTION bench_reveal(bigint, text) RETURNS bigint LANGUAGE c VOLATILE STRICT PARALLEL SAFE AS 'uidgen', 'uid_reveal';
SELECT uid_key_create('bench');

CREATE SEQUENCE cache_1;
CREATE SEQUENCE cache_100 CACHE 100;
CREATE SEQUENCE cache_1000 CACHE 1000;
CREATE SEQUENCE plain;
-- One with a fixed step, one with the default bounds, between which its step follows the demand, and one that stays
-- where that one begins.
SELECT segment_create('bench', 1, 10000000);
SELECT segment_create('dynamic');
SELECT segment_create('base', 1, 1000, 1000);

-- One like the default generator, for uid_next(regclass), and one in cached mode. Its layout and bounds are wide, so that
-- what is measured is not a wait for the clock.
SELECT uid_generator_create('bench');
SELECT uid_generator_create('cached', mode => 'cached', tick_us => 1000000, time_bits => 31, datacenter_bits => 0, worker_bits => 10,
                            sequence_bits => 22, spread => false, lease_ms => 300000, max_ahead_ms => 600000,
                            max_staleness_ms => 600000, boost_power => 0);
SELECT uid_generator_create('baidu_cached', 'baidu_cached');

-- What people write without an extension: 41 bits of milliseconds, 10 of a node, and the low 12 of a sequence.
CREATE SEQUENCE plpgsql_counter;
CREATE FUNCTION plpgsql_snowflake() RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
    RETURN ((extract(epoch FROM clock_timestamp()) * 1000 - 1735689600000)::bigint << 22) | (1 << 12)
        | (nextval('plpgsql_counter') & 4095);
END $$;
