\set ECHO none
-- The value that a statement returns, or the error that it ends with: SQLSTATE, message, detail, hint. Tests in sql/
-- include this file.
CREATE FUNCTION outcome(statement text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  result text;
  detail text;
  hint text;
BEGIN
  IF statement ~ '^SELECT| RETURNING ' THEN
    EXECUTE statement INTO result;
  ELSE
    EXECUTE statement;
  END IF;
  RETURN coalesce(result, 'NULL');
EXCEPTION WHEN OTHERS THEN
  GET STACKED DIAGNOSTICS detail = PG_EXCEPTION_DETAIL, hint = PG_EXCEPTION_HINT;
  RETURN concat_ws(' | ', format('%s %s', SQLSTATE, SQLERRM), nullif(detail, ''), nullif(hint, ''));
END
$$;
-- The outcome of a statement with each of these in the place of its %s, in the order in which they run. Those with the same
-- outcome share a row.
CREATE FUNCTION outcomes(statement text, VARIADIC cases text[]) RETURNS SETOF text LANGUAGE sql AS $$
SELECT format('%s: %s', string_agg(c, ' / ' ORDER BY n), o)
  FROM (SELECT c, n, outcome(replace(statement, '%s', c)) AS o FROM unnest(cases) WITH ORDINALITY AS u(c, n)) AS case_of
 GROUP BY o ORDER BY min(n)
$$;
\set ECHO all
