-- Segments: names, and sequences of every kind. (segment_twin.sql and test/tap/009_segments.t: what moves them from outside.)
\a \t
CREATE EXTENSION uidgen;
\getenv source PG_ABS_SRCDIR
\i :source/test/outcome.sql

-- Any text is a name.
SELECT count(segment_create(name, start)) AS made
  FROM (VALUES (repeat('n', 200), 1), (repeat('n', 199) || 'm', 1000), ('UPPER', 2000), ('upper', 3000),
               ('with.dots.in.it', 4000), ('quo"te', 5000), ('a''postrophe', 6000), ('名前 ünïcode', 7000),
               (' ', 8000), ('pg_class', 9000), ('a%sb%Ic', 10000), (repeat('ü', 31) || 'x', 11000), (repeat('ü', 32), 12000),
               (E'line\nbreak', 13000), ('"quoted"', 14000), ('semi;colon--', 15000)) AS v(name, start);
SELECT segment_next(repeat('n', 200)) AS long, segment_next(repeat('n', 199) || 'm') AS long_other,
       segment_next('UPPER') AS "UPPER", segment_next('upper') AS upper, segment_next('with.dots.in.it') AS dots,
       segment_next('quo"te') AS quote, segment_next('a''postrophe') AS apostrophe, segment_next('名前 ünïcode') AS unicode,
       segment_next(' ') AS space, segment_next('pg_class') AS "table", segment_next('a%sb%Ic') AS percent,
       segment_next(repeat('ü', 31) || 'x') AS bytes_63, segment_next(repeat('ü', 32)) AS bytes_64,
       segment_next(E'line\nbreak') AS line_break, segment_next('"quoted"') AS quoted, segment_next('semi;colon--') AS semicolon;
-- Through one expression.
SELECT array_agg(segment_next(name) ORDER BY name COLLATE "C") = array_agg(expected ORDER BY name COLLATE "C") AS right_ones
  FROM (SELECT name, CASE WHEN name ~ '^n+$' THEN 2 ELSE s.seqstart + 1 END AS expected
          FROM uid_segment JOIN pg_sequence AS s ON s.seqrelid = sequence WHERE name !~ 'm$') AS n;
-- A literal, and columns whose text is stored in the row, compressed, and elsewhere; several names in turn.
SELECT segment_create(repeat('long', 500)) IS NOT NULL AS made;
CREATE TABLE called (plain text, compressed text, elsewhere text) WITH (toast_tuple_target = 128);
ALTER TABLE called ALTER plain SET STORAGE PLAIN, ALTER compressed SET STORAGE MAIN, ALTER elsewhere SET STORAGE EXTERNAL;
INSERT INTO called SELECT name, name, name FROM repeat('long', 500) AS name, generate_series(1, 3);
SELECT pg_column_size(plain) > 2000 AS plain, pg_column_size(compressed) < 200 AS compressed FROM called LIMIT 1;
SELECT segment_next(repeat('long', 500)) AS literal, segment_next(plain) AS plain, segment_next(compressed) AS compressed,
       segment_next(elsewhere) AS elsewhere, segment_next('UPPER') AS "UPPER", segment_next('upper') AS upper
  FROM called;
DROP TABLE called;
SELECT segment_drop(repeat('long', 500));
SELECT count(*) AS rows, count(DISTINCT sequence) AS sequences, count(*) FILTER (WHERE sequence::text LIKE 'uid_segments.%') AS at_home
  FROM uid_segment;
SELECT count(segment_drop(name)) AS dropped FROM (SELECT name FROM uid_segment OFFSET 0) AS n;
SELECT count(*) AS rows, (SELECT count(*) FROM pg_class WHERE relnamespace = 'uid_segments'::regnamespace) AS sequences FROM uid_segment;
SELECT * FROM outcomes('%s', $$SELECT segment_drop('UPPER')$$, $$SELECT segment_next('UPPER')$$);

-- The name of an existing table.
CREATE TABLE customers (id bigint PRIMARY KEY DEFAULT segment_next('customers'), name text);
INSERT INTO customers (name) VALUES ('too early');
SELECT segment_create('customers');
INSERT INTO customers (name) VALUES ('one'), ('two') RETURNING id;

-- Text that names no segment names a sequence, as nextval would find it.
CREATE SCHEMA first;
CREATE SCHEMA second;
CREATE SEQUENCE first.plain;
CREATE SEQUENCE second.plain START 100;
CREATE SEQUENCE second."Mixed Case" START 500;
SELECT segment_next('plain');
SELECT segment_next('first.plain'), segment_next('second.plain'), segment_next('second."Mixed Case"');
SET search_path = first, second, public;
SELECT segment_next('plain');
SET search_path = second, first, public;
SELECT segment_next('plain'), segment_next('"Mixed Case"');
SELECT segment_next('PLAIN');
SET search_path = public;
SELECT * FROM outcomes('SELECT segment_next(%s)', $$'no.such.sequence.at.all'$$, $$'nobody.plain'$$, $$''$$, $$'"'$$);
-- The same expression, another search_path.
\set ECHO none
CREATE FUNCTION along_paths(paths text[]) RETURNS TABLE (path text, value bigint) LANGUAGE plpgsql AS $$
BEGIN
  FOREACH path IN ARRAY paths LOOP
    PERFORM set_config('search_path', path || ', public', true);
    value := segment_next('plain');
    RETURN NEXT;
  END LOOP;
END
$$;
\set ECHO all
BEGIN;
SELECT * FROM along_paths('{first, second, first, first, second}');
ROLLBACK;
-- A sequence that comes before the one found, in the same search_path, and goes again.
SET search_path = first, second, public;
SELECT segment_next('"Mixed Case"');
CREATE SEQUENCE first."Mixed Case" START 900;
SELECT segment_next('"Mixed Case"');
DROP SEQUENCE first."Mixed Case";
SELECT segment_next('"Mixed Case"');
-- A named segment wins, from the moment of its making to its end.
SELECT segment_next('plain');
SELECT segment_create('plain', 70000);
SELECT segment_next('plain');
SET search_path = second, public;
SELECT segment_next('plain');
SELECT segment_drop('plain');
SELECT segment_next('plain');
BEGIN;
SELECT segment_create('plain', 80000);
SELECT segment_next('plain');
ROLLBACK;
SELECT segment_next('plain');
RESET search_path;
-- Renamed schema, renamed sequence, sequence moved to another schema.
SELECT segment_next('first.plain') AS before;
ALTER SCHEMA first RENAME TO third;
SELECT segment_next('third.plain') AS after;
SELECT segment_next('first.plain');
ALTER SEQUENCE third.plain RENAME TO fancy;
SELECT segment_next('third.fancy') AS after;
SELECT segment_next('third.plain');
ALTER SEQUENCE third.fancy SET SCHEMA second;
SELECT segment_next('second.fancy') AS after;

-- Sequences of every origin, as regclass.
CREATE TABLE origins (a bigserial, b bigint GENERATED ALWAYS AS IDENTITY, c smallserial);
SELECT segment_next('origins_a_seq'::regclass), segment_next(pg_get_serial_sequence('origins', 'b')::regclass),
       segment_next('origins_c_seq'::regclass);
ALTER TABLE origins ALTER a SET DEFAULT segment_next('origins_a_seq'::regclass);
INSERT INTO origins (c) SELECT i FROM generate_series(1, 3) AS i;
SELECT a FROM origins ORDER BY a;
-- The constant follows a rename and stops a DROP.
ALTER SEQUENCE origins_a_seq RENAME TO renamed_seq;
INSERT INTO origins (c) VALUES (4) RETURNING a;
SELECT outcome('DROP SEQUENCE renamed_seq');

-- START, INCREMENT, MINVALUE, MAXVALUE, CYCLE mean what they mean for nextval.
SET uidgen.segment_step = 10;
CREATE FUNCTION draws(sequence regclass, n integer) RETURNS bigint[] LANGUAGE sql VOLATILE AS
  'SELECT array_agg(segment_next(sequence)) FROM generate_series(1, n)';
CREATE SEQUENCE start_at START 42;
CREATE SEQUENCE by_seven INCREMENT 7;
CREATE SEQUENCE downward INCREMENT -3;
CREATE SEQUENCE cut_short MAXVALUE 5;
CREATE SEQUENCE cut_by_step INCREMENT 4 MAXVALUE 50;
CREATE SEQUENCE below_zero START -5 MINVALUE -10 MAXVALUE 3;
CREATE SEQUENCE rounds MINVALUE 3 MAXVALUE 8 START 5 CYCLE;
CREATE SEQUENCE rounds_down INCREMENT -4 MINVALUE -10 MAXVALUE 8 START 3 CYCLE;
CREATE SEQUENCE pair MINVALUE 7 MAXVALUE 8 START 8 CYCLE;
CREATE SEQUENCE at_top START 9223372036854775805;
CREATE SEQUENCE at_bottom INCREMENT -1 MINVALUE -9223372036854775808 START -9223372036854775806;
CREATE SEQUENCE giant_steps INCREMENT 4611686018427387904 MINVALUE -9223372036854775808 START -9223372036854775808;
CREATE SEQUENCE small AS smallint START 32764;
SELECT * FROM outcomes('SELECT %s', $$draws('start_at', 12)$$, $$draws('by_seven', 12)$$, $$draws('downward', 12)$$,
  $$draws('cut_short', 5)$$, $$segment_next('cut_short'::regclass)$$, $$segment_next('cut_short'::regclass) AS again$$,
  $$nextval('cut_short')$$, $$(last_value, is_called) FROM cut_short$$, $$draws('cut_by_step', 13)$$,
  $$segment_next('cut_by_step'::regclass)$$, $$draws('below_zero', 9)$$, $$segment_next('below_zero'::regclass)$$,
  $$draws('rounds', 20)$$, $$draws('rounds_down', 12)$$, $$draws('pair', 5)$$, $$draws('at_top', 3)$$,
  $$segment_next('at_top'::regclass)$$, $$draws('at_bottom', 3)$$, $$segment_next('at_bottom'::regclass)$$,
  $$draws('giant_steps', 4)$$, $$segment_next('giant_steps'::regclass)$$, $$draws('small', 4)$$,
  $$segment_next('small'::regclass)$$);
ALTER SEQUENCE cut_short MAXVALUE 6;
SELECT segment_next('cut_short'::regclass);
-- What a range is: step values of the segment, or uidgen.segment_step.
SELECT segment_create('stepped', 100, 5);
SELECT draws('uid_segments.stepped', 1);
SELECT range_first, range_length, range_left FROM segment_status WHERE name = 'stepped';
SELECT draws('uid_segments.stepped', 6);
SELECT range_first, range_length, range_left FROM segment_status WHERE name = 'stepped';
SELECT segment_create('unstepped', -7);
SELECT draws('uid_segments.unstepped', 3);
SELECT range_first, range_length, range_left FROM segment_status WHERE name = 'unstepped';
SELECT segment_create('single step', 1, 1);
SELECT segment_next('single step'), segment_next('single step'), segment_next('single step');
SELECT segment_create('top', 9223372036854775806, 1099511627776);
SELECT segment_next('top'), segment_next('top');
SELECT segment_next('top');
RESET uidgen.segment_step;

SELECT segment_create('imported');
SELECT segment_next('imported');
SELECT setval('uid_segments.imported', 12345);
SELECT segment_next('imported');

-- A segment has its sequence's name.
ALTER SEQUENCE uid_segments.imported RENAME TO exported;
SELECT segment_next('exported');
SELECT * FROM outcomes('SELECT %s', $$segment_next('imported')$$);
ALTER SEQUENCE uid_segments.exported SET SCHEMA public;
SELECT segment_next('exported');
SELECT name, sequence FROM uid_segment WHERE sequence = 'exported'::regclass;
DROP SEQUENCE exported;
SELECT * FROM outcomes('SELECT %s', $$segment_next('exported')$$);

-- Many segments in turn, in one transaction: each goes on by itself.
SELECT count(segment_create('many ' || i)) FROM generate_series(1, 200) AS i;
SELECT count(*), count(DISTINCT (name, v)), min(v), max(v)
  FROM (SELECT name, segment_next(sequence) AS v FROM generate_series(1, 70), uid_segment WHERE name LIKE 'many %') AS s;
SELECT count(*), min(segment_last(name)), max(segment_last(name)) FROM uid_segment WHERE name LIKE 'many %';
SELECT segment_set('many 7', 50);
SELECT segment_next(sequence) AS v, count(*) FROM uid_segment WHERE name LIKE 'many %' GROUP BY v ORDER BY v;
-- segment_last() after each of many calls, by turns for two segments and for one; and the array in between.
SELECT count(*), bool_and(a = last_a AND b = last_b AND (i % 3 > 0 OR c = last_c)) AS right_ones, max(a) - min(a) AS a, max(b) - min(b) AS b
  FROM (SELECT i, segment_next('uid_segments."many 1"'::regclass) AS a, segment_next('uid_segments."many 2"'::regclass) AS b,
               segment_last('many 1') AS last_a, segment_last('many 2') AS last_b,
               CASE WHEN i % 3 = 0 THEN (segment_next_array('uid_segments."many 3"'::regclass, 2))[2] END AS c,
               segment_last('many 3') AS last_c
          FROM generate_series(1, 300) AS i) AS s;
-- The privilege is that of the role that calls, also for segments that another role has drawn from.
CREATE ROLE regress_many;
GRANT USAGE ON SEQUENCE uid_segments."many 1" TO regress_many;
BEGIN;
SELECT segment_next('uid_segments."many 1"'::regclass) - segment_last('many 1'), segment_next('uid_segments."many 2"'::regclass) - segment_last('many 2');
SET LOCAL ROLE regress_many;
SELECT segment_next('uid_segments."many 1"'::regclass) - segment_last('many 1');
SELECT segment_next('uid_segments."many 2"'::regclass);
ROLLBACK;
DROP OWNED BY regress_many;
DROP ROLE regress_many;
SELECT count(segment_drop(name)) FROM uid_segment WHERE name LIKE 'many %';
-- Generators and segments in turn, each refused as the other.
SELECT segment_create('beside'), uid_generator_create('beside'), uid_generator_create('beside too');
SELECT count(DISTINCT id), bool_and(id = last) AS right_ones
  FROM generate_series(1, 100) AS i,
       LATERAL (SELECT uid_next(CASE WHEN i % 2 = 0 THEN 'uid_generators.beside'::regclass ELSE 'uid_generators."beside too"' END) AS id,
                       uid_last() AS last) AS s;
BEGIN;
SELECT uid_next('uid_generators.beside') > 0, uid_next('uid_generators."beside too"') > 0, segment_next('uid_segments.beside'::regclass);
SELECT * FROM outcomes('SELECT %s', $$segment_next('uid_generators.beside'::regclass)$$, $$uid_next('uid_segments.beside')$$,
  $$(uid_next('uid_generators.beside') > 0, segment_next('uid_segments.beside'::regclass))$$);
COMMIT;
-- A segment made anew begins anew.
SELECT segment_create('again', 10);
SELECT segment_next('again');
SELECT segment_drop('again');
SELECT segment_create('again', 20);
SELECT segment_next('again');

-- The owner of a segment's sequence alters its row, nobody else; 0 goes back to the settings.
SELECT segment_create('altered', 1, 10);
SELECT segment_alter('altered', step => 20, max_step => 40);
SELECT * FROM uid_segment WHERE name = 'altered';
SELECT segment_next('altered');
SELECT range_length FROM segment_status WHERE name = 'altered';
SELECT segment_alter('altered', step => 0, max_step => 0);
SELECT * FROM uid_segment WHERE name = 'altered';
SELECT * FROM outcomes('SELECT segment_alter(%s)', $$'altered', step => 5, max_step => 4$$, $$'altered', step => -1$$,
  $$'no such', step => 1$$, 'NULL, step => 1');
CREATE ROLE regress_stranger;
GRANT USAGE ON SEQUENCE uid_segments.altered TO regress_stranger;
SET ROLE regress_stranger;
SELECT segment_next('altered');
SELECT * FROM outcomes('%s', $$SELECT segment_alter('altered', step => 5)$$,
  $$SELECT uid_internal.uid_change_segment('uid_segments.altered', 5)$$,
  $$SELECT uid_internal.uid_change_segment('pg_class', 5)$$,
  $$SELECT segment_set('altered', 5)$$);
RESET ROLE;
CREATE SEQUENCE no_row;
SELECT outcome($$SELECT uid_internal.uid_change_segment('no_row', 5)$$);
SELECT * FROM uid_segment WHERE name = 'altered';
DROP OWNED BY regress_stranger;
DROP ROLE regress_stranger;

-- The sequence of a segment: increment, bounds, CYCLE. Errors name what does not fit.
SELECT segment_create('odd', 1, increment => 2), segment_create('down', increment => -1), segment_create('bounded', 5, min_value => 3, max_value => 7, cycle => true),
       segment_create('deep', -10, increment => -5, min_value => -20), segment_create('from zero', 0, 10, min_value => 0);
SELECT name, seqstart, seqincrement, seqmin, seqmax, seqcycle FROM uid_segment JOIN pg_sequence ON seqrelid = sequence
 WHERE name IN ('odd', 'down', 'bounded', 'deep', 'from zero') ORDER BY name COLLATE "C";
SELECT array(SELECT segment_next('odd') FROM generate_series(1, 3)) AS odd, array(SELECT segment_next('down') FROM generate_series(1, 3)) AS down,
       array(SELECT segment_next('bounded') FROM generate_series(1, 7)) AS bounded, array(SELECT segment_next('deep') FROM generate_series(1, 3)) AS deep;
SELECT outcome($$SELECT segment_next('deep')$$);
SELECT * FROM outcomes($$SELECT segment_create('wrong', %s)$$, 'increment => 0', 'increment => 9223372036854775807',
  '5, min_value => 5, max_value => 5', '5, max_value => -5', 'min_value => 100', '8, max_value => 7',
  '-1, increment => -1, min_value => 0', 'NULL, increment => -1');
SELECT count(segment_drop(name)) FROM unnest('{odd, down, bounded, deep, from zero}'::text[]) AS name;

SELECT segment_create('three', 300);
-- Counts of batches are bigint, and any integer will do.
SELECT array_length(segment_next_array('three', 3::bigint), 1), array_length(segment_next_array('three', 3::smallint), 1),
       (SELECT count(*) FROM unnest(segment_next_array('uid_segments.three'::regclass, 4::bigint))), (SELECT count(*) FROM unnest(segment_next_array('three', '5'))),
       (SELECT count(*) FROM unnest(uid_next_array(6::bigint))), array_length(uid_next_array('uid_generators.uid_default', 7::bigint), 1);
SELECT * FROM outcomes('SELECT %s', $$segment_next_array('three', 9223372036854775807)$$,
  $$segment_next_array('uid_segments.three'::regclass, 3000000000)$$, 'uid_next_array(9223372036854775807)',
  $$uid_next_array('uid_generators.uid_default', 3000000000)$$, $$segment_next_array('three', -9223372036854775808)$$,
  'uid_next_array(-3000000000)');
SELECT segment_drop('three');

-- A call of the other kind that failed leaves nothing from which the next one could draw.
CREATE SEQUENCE of_another_kind;
SELECT uid_next('of_another_kind');
SELECT uid_next('of_another_kind');
BEGIN;
SELECT segment_next('of_another_kind'::regclass);
SELECT uid_next('of_another_kind');
ROLLBACK;
DROP SEQUENCE of_another_kind;

-- Two names with the same hash.
SELECT segment_create('orders'), segment_create('.P#QELK2xxft', 500);
SELECT segment_next('orders'), segment_next('.P#QELK2xxft'), segment_next('orders'), segment_next('.P#QELK2xxft');
SELECT count(segment_drop(name)) FROM unnest('{orders, .P#QELK2xxft}'::text[]) AS name;

DROP FUNCTION draws, along_paths, outcome, outcomes;
DROP TABLE customers, origins;
DROP SEQUENCE start_at, by_seven, downward, cut_short, cut_by_step, below_zero, rounds, rounds_down, pair, at_top, at_bottom,
  giant_steps, small, no_row;
SET client_min_messages = warning;
DROP SCHEMA third, second CASCADE;
DROP EXTENSION uidgen CASCADE;
