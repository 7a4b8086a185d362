-- The extension's schema renamed: nothing keeps its name as text.
\a \t
CREATE SCHEMA home;
CREATE EXTENSION uidgen SCHEMA home;
\getenv source PG_ABS_SRCDIR
\i :source/test/outcome.sql
-- Everything that SQL can call, in a schema of that name, which is not in the search_path.
CREATE TABLE seen (round text, place serial, statement text, outcome text);
\set ECHO none
CREATE PROCEDURE everything(round text, home name) LANGUAGE plpgsql AS $$
DECLARE
  statement text;
BEGIN
  FOR statement IN VALUES
      ('SELECT HOME.uid_generator_create(''g'', tolerance_ms => 5)'), ('SELECT HOME.uid_generator_create(''h'', ''twitter'', above => 7)'),
      ('SELECT HOME.uid_generator_create(''g'')'), ('SELECT HOME.uid_generator_create(''x'', ''none'')'),
      ('SELECT HOME.uid_next(''uid_generators.g'') > 0'), ('SELECT HOME.uid_next() > 0'), ('SELECT HOME.uid_last() > 0'),
      ('SELECT count(*) FROM unnest(HOME.uid_next_array(3))'), ('SELECT count(*) FROM unnest(HOME.uid_next_array(''uid_generators.g'', 3))'),
      ('SELECT cardinality(HOME.uid_next_array(3))'), ('SELECT cardinality(HOME.uid_next_array(''uid_generators.g'', 3))'),
      ('SELECT datacenter_id FROM HOME.uid_decode(8388613)'), ('SELECT datacenter_id FROM HOME.uid_decode(8388613, ''uid_generators.g'')'),
      ('SELECT HOME.uid_encode(''2026-01-01 00:00+00'', 0, 0, 5)'), ('SELECT HOME.uid_encode(''2026-01-01 00:00+00'', 0, 0, 5, ''uid_generators.g'')'),
      ('SELECT extract(year FROM HOME.uid_timestamp(8388613) AT TIME ZONE ''UTC'')'), ('SELECT extract(year FROM HOME.uid_timestamp(8388613, ''uid_generators.g'') AT TIME ZONE ''UTC'')'),
      ('SELECT HOME.uid_lower_bound(''2026-01-01 00:00+00'')'), ('SELECT HOME.uid_lower_bound(''2026-01-01 00:00+00'', ''uid_generators.g'')'),
      ('SELECT HOME.uid_generator_alter(''uid_generators.g'', lease_ms => 700)'), ('SELECT HOME.uid_generator_raise(''uid_generators.g'', 9)'),
      ('SELECT HOME.segment_create(''s'', 1, 10)'), ('SELECT HOME.segment_create(repeat(''s'', 99), 5)'), ('SELECT HOME.segment_next(''s'')'),
      ('SELECT HOME.segment_next(''uid_segments.s''::regclass)'), ('SELECT count(*) FROM unnest(HOME.segment_next_array(''s'', 3))'),
      ('SELECT HOME.segment_next_array(''s'', 3)'), ('SELECT HOME.segment_last(''s'')'), ('SELECT HOME.segment_set(''s'', 50)'),
      ('SELECT first FROM HOME.segment_reserve(''s'', 5)'), ('SELECT first FROM HOME.segment_reserve(''uid_segments.s''::regclass, 5)'),
      ('SELECT HOME.uid_t_sequence_create(btrim(''HOME'', ''"''))'), ('INSERT INTO HOME.t_sequence VALUES (''t'', 0, 10)'), ('UPDATE HOME.t_sequence SET current_val = current_val + increment_val WHERE pk_seq_name = ''t'''),
      ('SELECT current_val FROM HOME.t_sequence WHERE pk_seq_name = ''t'' FOR UPDATE'), ('UPDATE HOME.t_sequence SET current_val = 0 WHERE pk_seq_name = ''t'''),
      ('SELECT HOME.uid_leaf_alloc_create(''uid_segments'')'), ('INSERT INTO uid_segments.leaf_alloc (biz_tag, step) VALUES (''t'', 10)'), ('UPDATE uid_segments.leaf_alloc SET max_id = max_id + 5 WHERE biz_tag = ''t'''),
      ('SELECT max_id FROM uid_segments.leaf_alloc WHERE biz_tag = ''t'''), ('SELECT update_time IS NULL FROM uid_segments.leaf_alloc WHERE biz_tag = ''t'''),
      ('DROP TABLE uid_segments.leaf_alloc'), ('DROP TABLE HOME.t_sequence'), ('SELECT HOME.segment_drop(''t'')'),
      ('SELECT HOME.segment_alter(''s'', 20, 30)'), ('SELECT HOME.segment_alter(''s'', 20, 3)'), ('SELECT HOME.segment_alter(''none'', 20)'),
      ('SELECT uid_internal.uid_change_segment(''uid_segments.s'', NULL, 40, NULL)'), ('SELECT step FROM HOME.uid_segment WHERE name = ''s'''),
      ('SELECT HOME.uid_key_create(''k'', 53, 8)'), ('SELECT HOME.uid_key_rotate(''k'')'),
      ('SELECT versions FROM HOME.uid_key_config'), ('DROP SEQUENCE uid_keys.k'),
      ('SELECT HOME.uid_conceal(5, ''k'')'), ('SELECT count(*) FROM uid_secrets.uid_key'),
      ('SELECT count(*) FROM HOME.uid_generator'), ('SELECT count(*) FROM HOME.uid_generator_status'), ('SELECT count(*) FROM HOME.uid_generator_limits'),
      ('SELECT count(*) FROM HOME.uid_generator_columns'), ('SELECT count(*) FROM HOME.segment_status'),
      ('SELECT count(*) > 5 FROM HOME.uid_preset'), ('SELECT count(*) FROM uid_internal.uid_live_generators()'), ('SELECT count(*) >= 0 FROM HOME.worker_node'),
      ('SELECT HOME.uid_default_set(''uid_generators.h'')'), ('SELECT HOME.uid_next() > 0'), ('SELECT HOME.uid_generator_drop(''uid_generators.h'')'),
      ('DROP SEQUENCE uid_generators.h'), ('SELECT HOME.uid_next() > 0'), ('SELECT HOME.uid_default_set(''uid_generators.uid_default'')'),
      ('SELECT HOME.uid_generator_create(''i'')'), ('SELECT HOME.uid_generator_drop(''uid_generators.i'')'), ('SELECT HOME.uid_generator_drop(''pg_class'')'),
      ('SELECT HOME.segment_drop(repeat(''s'', 99))'), ('SELECT HOME.segment_drop(''s'')'), ('SELECT HOME.segment_drop(''s'')'),
      ('CREATE TABLE own (id serial)'), ('DROP TABLE own'), ('DROP SEQUENCE uid_generators.g'),
      ('SELECT count(*) FROM HOME.uid_generator'), ('SELECT count(*) FROM HOME.uid_segment') LOOP
    INSERT INTO seen (round, statement, outcome)
      VALUES (round, statement, replace(outcome(replace(statement, 'HOME', quote_ident(home))), quote_ident(home) || '.', 'HOME.'));
    COMMIT;
  END LOOP;
END
$$;
\set ECHO all
CALL everything('first', 'home');
ALTER SCHEMA home RENAME TO "another Home";
CALL everything('renamed', 'another Home');
\c -
CALL everything('another session', 'another Home');
ALTER SCHEMA "another Home" RENAME TO home;
CALL everything('renamed back', 'home');
SELECT statement || ': ' || outcome FROM seen WHERE round = 'first' ORDER BY place;
-- The same in each of the four rounds.
SELECT round, count(*) = (SELECT count(*) FROM seen WHERE round = 'first') AS as_many FROM seen GROUP BY round ORDER BY round;
SELECT s.round, f.statement, f.outcome, s.outcome
  FROM (SELECT *, row_number() OVER (PARTITION BY round ORDER BY place) AS n FROM seen) s
  JOIN (SELECT *, row_number() OVER (ORDER BY place) AS n FROM seen WHERE round = 'first') f USING (n)
 WHERE (s.statement, s.outcome) IS DISTINCT FROM (f.statement, f.outcome);
-- It is text in nothing that can be called.
SELECT p.oid::regprocedure FROM pg_proc p JOIN pg_depend d ON d.classid = 'pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e'
 WHERE p.prosrc ~ '\mhome\.';
DROP PROCEDURE everything(text, name);
DROP TABLE seen;
DROP FUNCTION outcome, outcomes;
DROP EXTENSION uidgen;
DROP SCHEMA home;
