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
\set ECHO all
