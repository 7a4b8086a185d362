-- What a call costs in a fleet, in the state :state of the registry.
\ir marginal.sql
INSERT INTO subject (name, calls, call, source)
SELECT name, calls, call, format('generate_series(1, %s)', calls / 20)
  FROM (VALUES
  ('no-op',                  4000000, 'bench_noop()'),
  ('uid_next()',             2000000, 'uid_next()'),
  ('uid_next, cached mode',  4000000, 'uid_next(''uid_generators.cached''::regclass)')) AS v (name, calls, call);
CALL pg_temp.measure('', :rounds);
SELECT 'Draws in a fleet', name, :'state', pg_temp.shown(times) FROM medians WHERE name <> 'no-op' ORDER BY place;
