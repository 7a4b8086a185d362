-- segment_next beside nextval on a sequence of the same definition: the same values, the same errors, one by one.
\a \t
CREATE EXTENSION uidgen;

-- Draws n times from both, and counts how often they agreed; what the first difference was.
\set ECHO none
CREATE FUNCTION compare(definition text, step integer, n integer, change text DEFAULT NULL,
                        OUT agreed integer, OUT errors integer, OUT difference text) LANGUAGE plpgsql AS $$
DECLARE
  ours text;
  theirs text;
BEGIN
  PERFORM set_config('uidgen.segment_step', step::text, true);
  PERFORM set_config('uidgen.segment_max_step', step::text, true);
  EXECUTE 'CREATE SEQUENCE ours ' || definition;
  EXECUTE 'CREATE SEQUENCE theirs ' || definition;
  agreed := 0;
  errors := 0;
  FOR i IN 1 .. n LOOP
    IF i = n / 2 + 1 AND change IS NOT NULL THEN
      EXECUTE replace(change, 'twin', 'ours');
      EXECUTE replace(change, 'twin', 'theirs');
    END IF;
    BEGIN
      ours := segment_next('ours'::regclass);
    EXCEPTION WHEN OTHERS THEN
      ours := SQLSTATE;
    END;
    BEGIN
      theirs := nextval('theirs');
    EXCEPTION WHEN OTHERS THEN
      theirs := SQLSTATE;
      errors := errors + 1;
    END;
    IF ours = theirs THEN
      agreed := agreed + 1;
    ELSE
      difference := coalesce(difference, format('%s: %s, nextval: %s', i, ours, theirs));
    END IF;
  END LOOP;
  DROP SEQUENCE ours, theirs;
END
$$;
\set ECHO all

-- Every type, up and down, to the end and beyond, with and without CYCLE, in ranges of 1, 7 and 1000 values.
CREATE TABLE definitions AS
SELECT format('AS %s INCREMENT %s%s%s', type, increment, bounds, cycle) AS definition
  FROM (VALUES ('smallint'), ('integer'), ('bigint')) AS t(type),
       (VALUES (1), (-1), (7), (-3), (32767), (-32768)) AS i(increment),
       (VALUES (''), (' MINVALUE -50 MAXVALUE 30 START 12'), (' MINVALUE 10 MAXVALUE 11 START 10'),
               (' MINVALUE -100 MAXVALUE -41 START -77')) AS b(bounds),
       (VALUES (''), (' CYCLE')) AS c(cycle)
UNION ALL
SELECT format('INCREMENT %s MINVALUE -9223372036854775808 MAXVALUE 9223372036854775807 START %s%s', increment, start, cycle)
  FROM (VALUES (1), (-1), (3), (-5), (9223372036854775806), (9223372036854775807), (-9223372036854775807), (-9223372036854775808)) AS i(increment),
       (VALUES (9223372036854775800), (-9223372036854775800), (0)) AS s(start),
       (VALUES (''), (' CYCLE')) AS c(cycle)
UNION ALL
-- Wide enough for ranges of a thousand values, and about to end.
SELECT format('INCREMENT %s MINVALUE -2000000 MAXVALUE 3000000 START %s%s', increment, start, cycle)
  FROM (VALUES (1, 2999950), (3, 2999900), (-1, -1999950), (-3, -1999900)) AS v(increment, start), (VALUES (''), (' CYCLE')) AS c(cycle)
UNION ALL
SELECT format('AS %s START %s%s', type, start, cycle)
  FROM (VALUES ('smallint', 32740), ('integer', 2147483620)) AS t(type, start), (VALUES (''), (' CYCLE')) AS c(cycle)
UNION ALL
SELECT format('AS %s INCREMENT -1 MINVALUE %s MAXVALUE 5 START %s%s', type, least, least + 40, cycle)
  FROM (VALUES ('smallint', -32768), ('integer', -2147483648)) AS t(type, least), (VALUES (''), (' CYCLE')) AS c(cycle);
CREATE TABLE results AS
SELECT * FROM definitions, (VALUES (1), (7), (1000)) AS s(step), compare(definition, step, 60);
SELECT step, count(*) AS definitions, sum(agreed) AS agreed, count(*) FILTER (WHERE errors > 0) AS used_up FROM results GROUP BY step ORDER BY step;
SELECT step, definition, difference FROM results WHERE difference IS NOT NULL;

-- What moves the counter in the midst, to the same place.
SELECT change, sum(agreed) AS agreed, max(difference) AS difference
  FROM (VALUES ('SELECT setval(''twin'', 20)'), ('SELECT setval(''twin'', 20, false)'), ('ALTER SEQUENCE twin RESTART'),
               ('ALTER SEQUENCE twin RESTART 25'), ('ALTER SEQUENCE twin INCREMENT 2 RESTART 5'),
               ('ALTER SEQUENCE twin INCREMENT -2 RESTART 5'), ('ALTER SEQUENCE twin MAXVALUE 40 RESTART'),
               ('ALTER SEQUENCE twin MINVALUE 8 START 9 RESTART'), ('ALTER SEQUENCE twin NO CYCLE RESTART'),
               ('SELECT setval(''twin'', 30)'), ('ALTER SEQUENCE twin AS smallint RESTART 11')) AS v(change),
       (VALUES (1), (7), (1000)) AS s(step),
       compare('MINVALUE 1 MAXVALUE 30 START 12 CYCLE', step, 60, change)
 GROUP BY change ORDER BY change;

-- Batches are the same values.
CREATE SEQUENCE ours INCREMENT -7 MINVALUE -40 MAXVALUE 33 START 12 CYCLE;
CREATE SEQUENCE theirs INCREMENT -7 MINVALUE -40 MAXVALUE 33 START 12 CYCLE;
SELECT (SELECT array_agg(v) FROM unnest(segment_next_array('ours', 50)) AS v) = (SELECT array_agg(nextval('theirs')) FROM generate_series(1, 50)) AS rows,
       segment_next_array('ours', 50) = (SELECT array_agg(nextval('theirs')) FROM generate_series(1, 50)) AS "array";
DROP SEQUENCE ours, theirs;
-- A batch that a sequence does not have: an error, and the sequence is as much used up as it is.
CREATE SEQUENCE ours MAXVALUE 5;
SELECT segment_next_array('ours', 6);
\echo :LAST_ERROR_SQLSTATE
DROP SEQUENCE ours;

-- Offset and stride: three servers, here three sequences, never meet.
CREATE SEQUENCE server1 START 1 INCREMENT 3;
CREATE SEQUENCE server2 START 2 INCREMENT 3;
CREATE SEQUENCE server3 START 3 INCREMENT 3;
CREATE TABLE drawn (server integer, v bigint);
DO $$
BEGIN
  FOR i IN 1 .. 40 LOOP
    PERFORM set_config('uidgen.segment_step', (i % 5 + 1)::text, true);
    INSERT INTO drawn
    SELECT server, segment_next('server' || server) FROM generate_series(1, 3) AS server, generate_series(1, 10 * i) WHERE (i + server) % 4 > 0;
    INSERT INTO drawn SELECT 2, nextval('server2');
    COMMIT;
  END LOOP;
END
$$;
SELECT count(*) = count(DISTINCT v) AS never_twice, bool_and((v - server) % 3 = 0) AS in_its_place, count(*) > 10000 AS many FROM drawn;
DROP TABLE drawn;
DROP SEQUENCE server1, server2, server3;

DROP TABLE definitions, results;
DROP FUNCTION compare(text, integer, integer, text);
DROP EXTENSION uidgen;
