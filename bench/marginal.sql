-- What calls.sql and many.sql share. The marginal processor time of a call: (a row of 21 calls - a row of 1) / 20,
-- the subjects beside each other in interleaved rounds.
\set QUIET on
CREATE TEMP TABLE subject (
  place int GENERATED ALWAYS AS IDENTITY,
  name text,
  call text,  -- # is the call's place in its row, from 1
  calls int,  -- how many a measurement makes
  source text -- of the rows
);
CREATE TEMP TABLE result (phase text, name text, round int, ns float);

-- OFFSET 0 keeps the subquery whole; its volatile columns are evaluated though nobody reads them.
CREATE FUNCTION pg_temp.cpu_ns(call text, width int, source text) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
  query text := (SELECT format('SELECT count(*) FROM (SELECT %s FROM %s OFFSET 0) AS s',
                               string_agg(replace(call, '#', i::text), ', '), source)
                   FROM generate_series(1, width) AS i);
  began bigint := bench_cpu();
BEGIN
  EXECUTE query;
  RETURN bench_cpu() - began;
END
$$;

-- Round 0 warms up. All rounds are one transaction, so what a round has attached stays so in those that follow.
CREATE PROCEDURE pg_temp.measure(phase text, rounds int) LANGUAGE plpgsql AS $$
DECLARE
  s subject;
BEGIN
  FOR round IN 0 .. rounds LOOP
    FOR s IN SELECT * FROM subject ORDER BY place LOOP
      INSERT INTO result
      SELECT phase, s.name, round,
             (pg_temp.cpu_ns(s.call, 21, s.source) - pg_temp.cpu_ns(s.call, 1, s.source)) / 20.0 / (s.calls / 20);
    END LOOP;
  END LOOP;
END
$$;

-- As exact as the tables have figures.
CREATE FUNCTION pg_temp.shown(figure float) RETURNS numeric LANGUAGE sql AS $$
  SELECT round(figure::numeric, CASE WHEN figure < 20 THEN 1 ELSE 0 END)
$$;

-- Each round's time is also divided by that same round's no-op.
CREATE TEMP VIEW medians AS
SELECT r.phase, s.place, s.name, percentile_cont(0.5) WITHIN GROUP (ORDER BY r.ns) AS ns,
       percentile_cont(0.5) WITHIN GROUP (ORDER BY r.ns - n.ns) AS above,
       percentile_cont(0.5) WITHIN GROUP (ORDER BY r.ns / n.ns) AS times
  FROM subject s JOIN result r USING (name) JOIN result n ON n.name = 'no-op' AND n.round = r.round AND n.phase = r.phase
 WHERE r.round > 0
 GROUP BY r.phase, s.place, s.name;
