-- docs/uidgen_reader.sql, which reads ids without the extension, gives what the extension gives.
\a \t
\getenv source PG_ABS_SRCDIR
SET client_min_messages = error;
SET timezone = 'UTC';
CREATE SCHEMA uidgen;
CREATE EXTENSION uidgen SCHEMA uidgen;
SELECT count(uidgen.uid_generator_create('of_' || preset, preset, epoch => '2020-02-03')) FROM uidgen.uid_preset;
SELECT uidgen.uid_generator_create('narrow', time_bits => 20, tick_us => 3600000000, datacenter_bits => 0, worker_bits => 3,
                                   sequence_bits => 2, sequence_first => true, backup_worker => true);
CREATE SCHEMA reader;
SET search_path = reader;
\set ECHO none
\i :source/docs/uidgen_reader.sql
\set ECHO all
SELECT * FROM uid_generator EXCEPT
SELECT generator::text, epoch, tick_us, time_bits, datacenter_bits, worker_bits, sequence_bits, sequence_first, backup_worker, is_default
  FROM uidgen.uid_generator;
TRUNCATE uid_generator;
INSERT INTO uid_generator
SELECT generator::text, epoch, tick_us, time_bits, datacenter_bits, worker_bits, sequence_bits, sequence_first, backup_worker, is_default
  FROM uidgen.uid_generator;
SELECT count(*) FROM uid_generator;

-- Each call by both, with the same result or SQLSTATE. %s is the schema.
CREATE FUNCTION result(home text, call text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  result text;
BEGIN
  EXECUTE 'SELECT ' || format(call, home) INTO result;
  RETURN coalesce(result, 'NULL');
EXCEPTION WHEN OTHERS THEN
  RETURN SQLSTATE;
END
$$;
CREATE TABLE calls AS
WITH ids(id) AS (
  SELECT (1::bigint << b) + d FROM generate_series(0, 62) b, generate_series(-1, 1) d
  UNION SELECT 9223372036854775807 UNION SELECT -5 UNION SELECT -9223372036854775808
  UNION SELECT hashint8extended(n, 7) & 9223372036854775807 >> (n % 40) FROM generate_series(1, 200) n
), times(ts) AS (
  VALUES ('-infinity'), ('infinity'), ('4713-01-01 BC'), ('1970-01-01'), ('2020-02-03'), ('2020-02-03 00:00:00.000001'),
         ('2026-01-01'), ('2026-01-01 00:00:00.000999'), ('2026-11-21 12:00:00.123456'), ('2095-09-06'), ('2300-01-01'),
         ('294276-12-31 23:59:59.999999')
), generators(g) AS (
  SELECT quote_literal(generator) || '::regclass' FROM uid_generator UNION SELECT 'NULL'
)
SELECT format('(SELECT d::text FROM %%s.uid_decode(%L, %s) d)', id, g) AS call FROM ids, generators
UNION ALL SELECT format('%%s.uid_timestamp(%L::bigint, %s)', id, g) FROM ids, generators
UNION ALL SELECT format('%%s.uid_timestamp(%L::bigint, ''2020-02-03'', %s)', id, f)
            FROM ids, (VALUES ('1000, 22'), ('1, 0'), ('3600000000, 10')) v(f)
UNION ALL SELECT format('%%s.uid_lower_bound(%L::timestamptz, %s)', ts, g) FROM times, generators
UNION ALL SELECT format('%%s.uid_lower_bound(%L::timestamptz, ''2020-02-03'', %s)', ts, f)
            FROM times, (VALUES ('1000, 22'), ('1, 0'), ('3600000000, 10'), ('1000000, 62')) v(f)
UNION ALL SELECT format('%%s.uid_to_base62(%L)', id) FROM ids
UNION ALL SELECT format('%%s.uid_from_base62(%s.uid_to_base62(%L))', 'uidgen', id) FROM ids WHERE id >= 0
UNION ALL SELECT format('%%s.uid_from_base62(%L)', t)
            FROM (VALUES (''), ('0'), ('z'), ('AzL8n0Y58m7'), ('AzL8n0Y58m8'), ('zzzzzzzzzzzzzzzz'), ('a b'), ('ä'), ('000000000000001')) v(t)
UNION ALL SELECT '%s.uid_decode(5, ''pg_class''::regclass)';
SELECT count(*) > 5000 FROM calls;
SELECT call, result('uidgen', call), result('reader', call) FROM calls
 WHERE result('uidgen', call) <> result('reader', call) LIMIT 20;
SELECT call, result('reader', call) FROM unnest('{%s.uid_next(),%s.uid_next_uuid(),"%s.segment_next(''uid_generators.uid_default'')"}'::text[]) call;
CREATE ROLE regress_analyst;
GRANT USAGE ON SCHEMA reader TO regress_analyst;
SET ROLE regress_analyst;
SELECT worker_id FROM uid_decode(117443343637549056, 'uid_generators.uid_default');
RESET ROLE;
DROP OWNED BY regress_analyst;
DROP ROLE regress_analyst;
DROP SCHEMA reader CASCADE;
DROP EXTENSION uidgen CASCADE;
DROP SCHEMA uidgen;
