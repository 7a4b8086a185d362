\set ECHO none
-- outcome() of test/outcome.sql without times, ids and leads, which differ from run to run.
\ir outcome.sql
\set ECHO none
ALTER FUNCTION outcome RENAME TO exact_outcome;
CREATE FUNCTION outcome(statement text) RETURNS text LANGUAGE sql AS $$
SELECT regexp_replace(regexp_replace(regexp_replace(exact_outcome(statement),
  '\d{4}-\d\d-\d\d [0-9:.]+', '<time>', 'g'), '\d{10,}', '<id>', 'g'), 'ends \d+\.\d+ s', 'ends <time> s')
$$;
\set ECHO all
