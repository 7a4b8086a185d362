-- What a UUID and a short form of an id cost, beside PostgreSQL's own UUIDs; uuidv7() where the server has it.
\ir marginal.sql
-- Only calls of volatile functions are made although nobody reads their results.
ALTER FUNCTION uid_to_uuid(bigint, regclass) VOLATILE;
ALTER FUNCTION uid_from_uuid(uuid, regclass) VOLATILE;
ALTER FUNCTION uid_to_base62(bigint) VOLATILE;
ALTER FUNCTION uid_from_base62(text) VOLATILE;
INSERT INTO subject (name, calls, call, source)
SELECT name, calls, call, format('generate_series(1, %s::bigint) AS n', calls / 20)
  FROM (VALUES
  ('no-op',                 4000000, 'bench_noop()'),
  ('uid_next()',            2000000, 'uid_next()'),
  ('uid_next_uuid()',       1000000, 'uid_next_uuid()'),
  ('uid_to_uuid(id)',       1000000, 'uid_to_uuid(n)'),
  ('uid_to_uuid(id), and uid_from_uuid() of it', 400000,  'uid_from_uuid(uid_to_uuid(n))'),
  ('uid_to_base62(id)',     1000000, 'uid_to_base62(n)'),
  ('uid_to_base62(id), and uid_from_base62() of it', 1000000, 'uid_from_base62(uid_to_base62(n))'),
  ('gen_random_uuid()',     100000,  'gen_random_uuid()'),
  ('`uuidv7()`',            100000,  'uuidv7()')) AS v (name, calls, call)
 WHERE call <> 'uuidv7()' OR to_regprocedure('uuidv7()') IS NOT NULL;
CALL pg_temp.measure('', :rounds);
SELECT CASE WHEN current_setting('server_version_num')::int < 180000 THEN 'UUIDs and short forms' ELSE 'UUIDs' END, name,
       '× no-op', pg_temp.shown(times)
  FROM medians WHERE name <> 'no-op' ORDER BY place;
