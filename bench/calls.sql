-- The marginal processor time of a call: (a row of 21 calls - a row of 1) / 20, beside each other in interleaved rounds.
\set QUIET on
CREATE TEMP TABLE subject (place int GENERATED ALWAYS AS IDENTITY, name text, call text, calls int);
INSERT INTO subject (name, call, calls) VALUES -- calls: how many a measurement makes
  ('no-op',                  'bench_noop()', 4000000),
  ('no-op with an argument', 'bench_noop(''plain''::regclass)', 4000000),
  ('clock_gettime',          'bench_clock()', 2000000),
  ('uid_next()',             'uid_next()', 2000000),
  ('uid_next(regclass)',     'uid_next(''uid_generators.bench''::regclass)', 2000000),
  ('segment_next(regclass)', 'segment_next(''uid_segments.bench''::regclass)', 4000000),
  ('segment_next(text)',     'segment_next(''bench''::text)', 2000000),
  ('nextval, CACHE 1000',    'nextval(''cache_1000'')', 1000000),
  ('nextval, CACHE 1',       'nextval(''cache_1'')', 400000),
  ('gen_random_uuid',        'gen_random_uuid()', 100000);
CREATE TEMP TABLE result (name text, round int, ns float);

-- OFFSET 0 keeps the subquery whole; its volatile columns are evaluated though nobody reads them.
CREATE FUNCTION pg_temp.cpu_ns(call text, width int, lines int) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
  query text := format('SELECT count(*) FROM (SELECT %s FROM generate_series(1, %s) OFFSET 0) AS s',
                       rtrim(repeat(call || ', ', width), ', '), lines);
  began bigint := bench_cpu();
BEGIN
  EXECUTE query;
  RETURN bench_cpu() - began;
END
$$;

CREATE PROCEDURE pg_temp.measure(rounds int) LANGUAGE plpgsql AS $$
DECLARE
  s subject;
  lines int;
BEGIN
  FOR round IN 0 .. rounds LOOP
    FOR s IN SELECT * FROM subject ORDER BY place LOOP
      lines := s.calls / 20;
      INSERT INTO result
      SELECT s.name, round, (pg_temp.cpu_ns(s.call, 21, lines) - pg_temp.cpu_ns(s.call, 1, lines)) / 20.0 / lines;
    END LOOP;
  END LOOP;
END
$$;
CALL pg_temp.measure(:rounds);

-- Round 0 warms up. Each round's time is also divided by that same round's no-op.
SELECT s.name, round(percentile_cont(0.5) WITHIN GROUP (ORDER BY r.ns)::numeric, 2) AS "ns, median",
       round(percentile_cont(0.5) WITHIN GROUP (ORDER BY r.ns / n.ns)::numeric, 2) AS "x no-op, median"
  FROM subject s JOIN result r USING (name) JOIN result n ON n.name = 'no-op' AND n.round = r.round
 WHERE r.round > 0
 GROUP BY s.place, s.name
 ORDER BY s.place;
