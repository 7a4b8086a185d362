\set ECHO none
-- Waits until worker_node has that many rows of a generator, and returns their number. They are written after the
-- transaction that draws. Tests in sql/ include this file.
CREATE FUNCTION rows_of(name text, expected bigint) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
  found bigint;
BEGIN
  FOR i IN 1 .. 12000 LOOP
    SELECT count(*) INTO found FROM worker_node WHERE generator LIKE name;
    EXIT WHEN found >= expected;
    PERFORM pg_sleep(0.01);
  END LOOP;
  RETURN found;
END
$$;
\set ECHO all
