-- What a call costs, beside a no-op.
\ir marginal.sql
INSERT INTO subject (name, calls, call, source)
SELECT name, calls, call, format('generate_series(1, %s)', calls / 20)
  FROM (VALUES
  ('no-op',                  4000000, 'bench_noop()'),
  ('no-op with an argument', 4000000, 'bench_noop(''plain''::regclass)'),
  ('one atomic swap',        4000000, 'bench_swap()'),
  ('clock_gettime',          2000000, 'bench_clock()'),
  ('uid_next()',             2000000, 'uid_next()'),
  ('uid_next(regclass)',     2000000, 'uid_next(''uid_generators.bench''::regclass)'),
  ('uid_next, cached',       4000000, 'uid_next(''uid_generators.cached''::regclass)'),
  ('segment_next(regclass)', 4000000, 'segment_next(''uid_segments.bench''::regclass)'),
  ('segment, dynamic step',  4000000, 'segment_next(''uid_segments.dynamic''::regclass)'),
  ('segment, step 1,000',    4000000, 'segment_next(''uid_segments.base''::regclass)'),
  ('segment_next(text)',     2000000, 'segment_next(''bench''::text)'),
  ('nextval, CACHE 1000',    1000000, 'nextval(''cache_1000'')'),
  ('nextval, CACHE 1',       400000,  'nextval(''cache_1'')'),
  ('uid_conceal',            100000,  'bench_conceal(117443343637549056, ''bench'')'),
  ('uid_reveal',             100000,  'bench_reveal(117443343637549056, ''bench'')'),
  ('gen_random_uuid',        100000,  'gen_random_uuid()')) AS v (name, calls, call);
CALL pg_temp.measure('', :rounds);
SELECT name, "ns, median", "x no-op, median" FROM medians ORDER BY place;
