-- What a call costs, beside a no-op: cells of bench/README.md.
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
  ('uid_next, cached mode',  4000000, 'uid_next(''uid_generators.cached''::regclass)'),
  ('segment_next(regclass)', 4000000, 'segment_next(''uid_segments.bench''::regclass)'),
  ('dynamic step, which has grown to its bound', 4000000, 'segment_next(''uid_segments.dynamic''::regclass)'),
  ('step 1,000',             4000000, 'segment_next(''uid_segments.base''::regclass)'),
  ('segment_next(text), a literal', 2000000, 'segment_next(''bench''::text)'),
  ('nextval, CACHE 1000',    1000000, 'nextval(''cache_1000'')'),
  ('nextval, CACHE 1',       400000,  'nextval(''cache_1'')'),
  ('uid_conceal',            100000,  'bench_conceal(117443343637549056, ''bench'')'),
  ('uid_reveal',             100000,  'bench_reveal(117443343637549056, ''bench'')'),
  ('gen_random_uuid',        100000,  'gen_random_uuid()')) AS v (name, calls, call);
CALL pg_temp.measure('', :rounds);
SELECT heading, coalesce(row, name), col, value
  FROM medians, LATERAL (VALUES ('× no-op', pg_temp.shown(times)),
                                ('marginal ns', round(ns::numeric, CASE WHEN ns < 100 THEN 1 ELSE 0 END))) AS c (col, value),
       LATERAL (VALUES ('Calls', NULL, name !~ '(reveal|conceal|step)'),
                       ('Concealed ids', NULL, name IN ('no-op', 'uid_next()', 'uid_conceal', 'uid_reveal',
                                                        'nextval, CACHE 1', 'gen_random_uuid')),
                       ('The step of a segment', 'step 10,000,000', name = 'segment_next(regclass)' AND col = '× no-op'),
                       ('The step of a segment', NULL, name ~ 'step' AND col = '× no-op')) AS t (heading, row, has)
 WHERE has
 ORDER BY heading, place, col DESC;
