-- outcome() of test/outcome.sql, whose errors have no times, ids and leads, which differ from run to run. Tests in sql/
-- include this file.
CREATE FUNCTION outcome(statement text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  result text;
  detail text;
  hint text;
BEGIN
  EXECUTE statement INTO result;
  RETURN coalesce(result, 'NULL');
EXCEPTION WHEN OTHERS THEN
  GET STACKED DIAGNOSTICS detail = PG_EXCEPTION_DETAIL, hint = PG_EXCEPTION_HINT;
  RETURN regexp_replace(regexp_replace(regexp_replace(concat_ws(' | ', format('%s %s', SQLSTATE, SQLERRM), nullif(detail, ''), nullif(hint, '')),
    '\d{4}-\d\d-\d\d [0-9:.]+', '<time>', 'g'), '\d{10,}', '<id>', 'g'), 'ends \d+\.\d+ s', 'ends <time> s');
END
$$;
