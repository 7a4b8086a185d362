-- Security labels, which say what a sequence is: whose they are, when they count, and that they go with their sequence.
\a \t
CREATE EXTENSION uidgen;
SET timezone = 'UTC';
\getenv source PG_ABS_SRCDIR
\i :source/test/outcome.sql
\set ECHO none
CREATE FUNCTION label_of(tick bigint, bits integer) RETURNS text LANGUAGE sql AS $$
  SELECT format('generator preset="own" epoch=2026-01-01T00:00:00Z tick_us=%s time_bits=%s datacenter_bits=0 worker_bits=0 '
                'sequence_bits=%s sequence_first=false backup_worker=false lease_ms=1000 max_ahead_ms=2000 when_full=borrow '
                'when_back=hold tolerance_ms=null spread=false worker_policy=disposable worker_number=null datacenter_id=null '
                'own_pool=false mode=snowflake boost_power=3 padding_factor=50 schedule_ms=null when_ring_empty=pad '
                'max_staleness_ms=5000 created=2026-01-02T03:04:05.000006Z is_default=false', tick, bits, 62 - bits)
$$;
CREATE PROCEDURE label(sequence text, label text) LANGUAGE plpgsql AS $$
BEGIN
  EXECUTE format('SECURITY LABEL FOR uidgen ON SEQUENCE %s IS %L', sequence, label);
END
$$;
-- A sequence as a restore without labels leaves that of a generator.
CREATE PROCEDURE unlabelled(sequence text) LANGUAGE plpgsql AS $$
BEGIN
  EXECUTE format('CREATE SEQUENCE %s INCREMENT 9223372036854775807 MINVALUE 1 NO CYCLE', sequence);
  PERFORM setval(sequence::regclass, 1);
END
$$;
CREATE PROCEDURE register(sequence regclass, tick bigint, bits integer) LANGUAGE plpgsql AS $$
BEGIN
  CALL label(sequence::text, label_of(tick, bits));
END
$$;
CREATE FUNCTION labelled(what text, label text) RETURNS text LANGUAGE sql AS $$
  SELECT outcome(format('SECURITY LABEL FOR uidgen ON %s IS %L', what, label))
$$;
-- Whether an id is of this minute by the generator's label.
CREATE FUNCTION decodes(id bigint, generator regclass) RETURNS boolean LANGUAGE sql AS $$
  SELECT abs(extract(epoch FROM uid_timestamp(id, generator) - clock_timestamp())) < 60
$$;
\set ECHO all

-- As a restore without labels leaves it: the builtin generator is the default, whatever was. It does not stand in. A role
-- that may create generators cannot stop it.
CREATE ROLE uidgen_labels;
CALL unlabelled('uid_generators.planted');
ALTER SEQUENCE uid_generators.planted OWNER TO uidgen_labels;
SELECT uid_next() > 0;
DROP OWNED BY uidgen_labels;
DROP ROLE uidgen_labels;
DROP EXTENSION uidgen;
CREATE EXTENSION uidgen;
CALL unlabelled('uid_generators.lost');
SELECT outcome('SELECT uid_next()');
SELECT uid_generator_create('lost', 'js53'), outcome('SELECT uid_default_set(''uid_generators.lost'')');
SELECT uid_next() < 2::bigint ^ 53 AS is_of_js53;
DROP EXTENSION uidgen CASCADE;
CREATE EXTENSION uidgen;
-- Nor does what the server knew of the dropped one.
\c
SELECT uid_next() > 2::bigint ^ 53 AS is_of_the_builtin;
DROP EXTENSION uidgen;
CREATE EXTENSION uidgen;
SET timezone = 'UTC';
-- A label that somebody gives a sequence of before counts from the commit on: it may be rolled back, and its ids would stay.
CALL unlabelled('uid_generators.own');
BEGIN;
CALL register('uid_generators.own', 1000, 41);
SELECT outcome('SELECT uid_next(''uid_generators.own'')');
ROLLBACK;
BEGIN;
SAVEPOINT a;
CALL register('uid_generators.own', 1000, 41);
SAVEPOINT b;
SELECT outcome('SELECT uid_next_array(''uid_generators.own'', 5)');
ROLLBACK TO a;
SELECT outcome('SELECT uid_next(''uid_generators.own'')');
ROLLBACK;
SELECT last_value AS no_lease FROM uid_generators.own;
CALL register('uid_generators.own', 1000000, 31);
SELECT decodes(uid_next('uid_generators.own'), 'uid_generators.own');
-- Sequence and label made in one transaction: draws work, and follow the label where that is rolled back alone.
BEGIN;
CALL unlabelled('uid_generators.both');
SAVEPOINT a;
CALL register('uid_generators.both', 1000000, 31);
SELECT decodes(uid_next('uid_generators.both'), 'uid_generators.both');
SAVEPOINT b;
ROLLBACK TO b;
SELECT decodes(uid_next('uid_generators.both'), 'uid_generators.both');
ROLLBACK TO a;
SELECT outcome('SELECT uid_next(''uid_generators.both'')');
ROLLBACK TO a;
SAVEPOINT c;
SELECT setval('uid_generators.both', 1);
CALL register('uid_generators.both', 1000, 41);
RELEASE c;
SELECT decodes(uid_next('uid_generators.both'), 'uid_generators.both');
SAVEPOINT d;
ROLLBACK TO d;
SELECT decodes(uid_next('uid_generators.both'), 'uid_generators.both');
ROLLBACK TO a;
SELECT outcome('SELECT uid_next(''uid_generators.both'')');
ROLLBACK TO a;
SELECT setval('uid_generators.both', 1);
CALL register('uid_generators.both', 1000000, 31);
SELECT uid_next('uid_generators.both') AS id \gset
SELECT decodes(:id, 'uid_generators.both');
COMMIT;
SELECT uid_next('uid_generators.both') > :id AS above, decodes(uid_last(), 'uid_generators.both');
BEGIN;
SAVEPOINT a;
SELECT uid_generator_create('made');
SELECT decodes(uid_next('uid_generators.made'), 'uid_generators.made');
RELEASE a;
SAVEPOINT b;
GRANT USAGE ON SEQUENCE uid_generators.made TO PUBLIC;
SELECT decodes(uid_next('uid_generators.made'), 'uid_generators.made');
COMMIT;
SELECT decodes(uid_next('uid_generators.made'), 'uid_generators.made');

-- The builtin generator is the same in each database.
SELECT outcome('SELECT uid_generator_alter(''uid_generators.uid_default'', lease_ms => 700)');
SELECT labelled('SEQUENCE uid_generators.uid_default', NULL);
SELECT labelled('SEQUENCE uid_generators.uid_default', label) FROM pg_seclabel WHERE objoid = 'uid_generators.uid_default'::regclass;
SELECT lease_ms, builtin, is_default FROM uid_generator WHERE generator = 'uid_generators.uid_default'::regclass;
SELECT uid_next() AS id \gset

-- Which sequences.
CREATE TEMP SEQUENCE passing;
CREATE TABLE identities (id bigint GENERATED ALWAYS AS IDENTITY, n serial);
SELECT what, labelled(what, 'segment name="x" step=null max_step=null registry_name=null fleet=null increment=null')
  FROM unnest('{TABLE identities,COLUMN identities.id,SEQUENCE passing,SEQUENCE identities_id_seq,SCHEMA public}'::text[]) what;
SELECT labelled('TABLE identities', NULL);
-- One that nextval moves is no generator, and one that it cannot move no segment. What was labelled by mistake is mended.
CREATE SEQUENCE uid_generators.plain;
CREATE SEQUENCE uid_segments.leases INCREMENT 9223372036854775807 MINVALUE 1 NO CYCLE;
CREATE SEQUENCE uid_segments.mistaken;
SELECT labelled('SEQUENCE uid_generators.plain', label_of(1000, 41));
SELECT labelled('SEQUENCE uid_segments.leases', 'segment name="leases" step=null max_step=null registry_name=null fleet=null increment=null');
CALL label('uid_segments.mistaken', 'segment name="mistaken" step=null max_step=null registry_name=null fleet=null increment=null');
SELECT segment_next('mistaken');
CALL label('uid_segments.mistaken', NULL);
SELECT count(*) FROM pg_depend WHERE objid = 'uid_segments.mistaken'::regclass AND refclassid = 'pg_extension'::regclass;
SELECT nextval('uid_segments.mistaken') > 1 AS above;
DROP SEQUENCE uid_generators.plain, uid_segments.leases, uid_segments.mistaken;
-- One that a column owns may be a segment.
CALL label('identities_n_seq', 'segment step=5 max_step=null name="of column" registry_name=null fleet=null increment=null');
SELECT segment_next('identities_n_seq'), outcome('SELECT segment_next(''"of column"'')');
SELECT name, sequence, step, max_step FROM uid_segment;
ALTER TABLE identities DROP COLUMN n;
SELECT count(*) FROM uid_segment;

-- What a label says is checked.
CALL unlabelled('uid_generators.checked');
SELECT label, labelled('SEQUENCE uid_generators.checked', label) FROM (VALUES (''), ('generators'), ('generator'), ('key id=0'), ('key id=1 id=1'),
  ('key id=1 di=2'), ('segment name="" step=null max_step=null registry_name=null fleet=null increment=null'),
  ('segment name="x" step=9 max_step=8 registry_name=null fleet=null increment=null')) v (label);
SELECT outcome('SELECT segment_create(repeat(''long'', 626))'), labelled('SEQUENCE uid_generators.checked', replace(label_of(1000, 41), 'own"', repeat('own', 22) || '"')),
  labelled('SEQUENCE uid_generators.checked', format('segment name="x" step=null max_step=null registry_name="%s" fleet=5 increment=1', repeat('far', 342)));
SELECT next, labelled('SEQUENCE uid_generators.checked', replace(label_of(1000, 41), former, next)) FROM (VALUES ('tick_us=1000', 'tick_us=0'),
  ('time_bits=41', 'time_bits=43'), ('when_back=hold', 'when_back=forward'), ('lease_ms=1000', 'lease_ms=9000'), (' spread=false', '')) v (former, next);
-- By statement the first label only, and the same once more, in any order of its words.
CALL label('uid_generators.checked', label_of(1000, 41));
CALL label('uid_generators.checked', regexp_replace(label_of(1000, 41), ' (preset=\S+) (epoch=\S+)', ' \2 \1'));
SELECT labelled('SEQUENCE uid_generators.checked', label_of(1000000, 31)), labelled('SEQUENCE uid_generators.checked', 'key id=1');
-- It cannot be made long for all who read labels: one space is before each word.
SELECT labelled('SEQUENCE uid_generators.checked', label) FROM (VALUES (label_of(1000, 41) || repeat(' ', 100000)), (replace(label_of(1000, 41), ' epoch', '  epoch'))) v (label);
SELECT length(label) = length(label_of(1000, 41)) AS same FROM pg_seclabel WHERE objoid = 'uid_generators.checked'::regclass;
-- It cannot be removed.
SELECT labelled('SEQUENCE uid_generators.checked', NULL);
SELECT decodes(uid_next('uid_generators.checked'), 'uid_generators.checked');
SELECT created FROM uid_generator WHERE generator = 'uid_generators.checked'::regclass;
-- A sequence of a generator that lost its label is taken over, and draws above its mark. In a layout in which it has drawn
-- long before, it would never draw.
SELECT uid_next('uid_generators.checked') AS mine \gset
DELETE FROM pg_seclabel WHERE objoid = 'uid_generators.checked'::regclass;
SELECT outcome('SELECT uid_generator_create(''checked'', ''own'')');
SELECT regexp_replace(outcome('SELECT uid_generator_create(''checked'', ''js53'')'), 'for [0-9].*[0-9][.] ', 'for <time>. ');
SELECT uid_generator_create('checked', epoch => '2026-01-01 00:00+00', tick_us => 1000, time_bits => 41, datacenter_bits => 0, worker_bits => 0,
  sequence_bits => 21, spread => false);
SELECT uid_next('uid_generators.checked') > :mine AS above;
SELECT outcome('SELECT uid_generator_create(''checked'')');
-- A label that cannot be read breaks no view.
UPDATE pg_seclabel SET label = 'generator of a later version' WHERE objoid = 'uid_generators.checked'::regclass;
SELECT generator, preset, epoch, builtin, is_default FROM uid_generator WHERE generator = 'uid_generators.checked'::regclass;
SELECT outcome('SELECT uid_decode(5, ''uid_generators.checked'')');
DROP SEQUENCE uid_generators.checked;

-- Segments: a name is that of one sequence in uid_segments. So a sequence that is renamed has another one, and one that
-- leaves the schema has none.
SELECT segment_create('orders', 100), segment_create(repeat('long ', 30));
SELECT segment_next('orders'), segment_next(repeat('long ', 30));
-- Each label as it is, as in a restore.
SELECT objoid::regclass, labelled(format('SEQUENCE %s', objoid::regclass), label), (uid_internal.uid_read_segment(label)).name, (uid_internal.uid_read_generator(label)).preset
  FROM pg_seclabel WHERE provider = 'uidgen' ORDER BY 1;
CREATE SEQUENCE invoices;
SELECT labelled('SEQUENCE invoices', label), labelled('SEQUENCE invoices', NULL) FROM pg_seclabel WHERE objoid = 'uid_segments.orders'::regclass;
ALTER SEQUENCE uid_segments.orders RENAME TO former_orders;
SELECT segment_next('former_orders'), outcome('SELECT segment_next(''orders'')');
CREATE SEQUENCE orders;
ALTER SEQUENCE uid_segments.former_orders SET SCHEMA public;
SELECT outcome('SELECT segment_next(''orders'')'), segment_next('orders'::regclass), segment_next('former_orders'), segment_next('public.orders');
CREATE SEQUENCE uid_segments.orders;
ALTER SEQUENCE former_orders OWNED BY identities.id CACHE 1;
SELECT segment_next(sequence), name, sequence FROM uid_segment WHERE sequence = 'former_orders'::regclass;
SELECT outcome('SELECT segment_next(''orders'')');
DROP SEQUENCE uid_segments.orders, former_orders;
-- A sequence that a role has made beforehand stays that role's, of which a warning speaks.
CREATE ROLE uidgen_squatter;
GRANT USAGE, CREATE ON SCHEMA uid_generators, uid_segments, uid_keys TO uidgen_squatter;
SET ROLE uidgen_squatter;
CREATE SEQUENCE uid_generators.squatted INCREMENT 9223372036854775807 MINVALUE 1;
CREATE SEQUENCE uid_segments.squatted;
CREATE SEQUENCE uid_keys.squatted;
RESET ROLE;
SELECT uid_generator_create('squatted'), segment_create('squatted'), uid_key_create('squatted');
DROP OWNED BY uidgen_squatter;
DROP ROLE uidgen_squatter;

-- One that has lost its label does not mean another sequence of its name.
SELECT segment_create('bills', 7), segment_next('bills');
CREATE SEQUENCE bills;
DELETE FROM pg_seclabel WHERE objoid = 'uid_segments.bills'::regclass;
ALTER SEQUENCE uid_segments.bills CACHE 1;
SELECT outcome('SELECT segment_next(''bills'')');
SELECT segment_create('bills', 1, 5);
SELECT segment_next('bills') > 7 AS above;
-- Without its label a segment is a plain sequence.
SELECT labelled('SEQUENCE uid_segments.bills', NULL);
SELECT outcome('SELECT segment_next(''bills'')'), nextval('uid_segments.bills') > 8 AS above;
SELECT segment_create('bills', 1, 5);
SELECT label FROM pg_seclabel WHERE objoid = 'uid_segments.bills'::regclass;
SELECT segment_drop('bills');
DROP SEQUENCE bills, orders, invoices;

-- A former version of a long label, whose text a vacuum has removed, does not stop a drop.
SELECT string_agg(md5(i::text), '') AS long FROM generate_series(1, 75) i \gset
SELECT segment_create(:'long') IS NOT NULL AS made;
SELECT segment_alter(:'long', step => 5);
SELECT reltoastrelid::regclass AS toast FROM pg_class WHERE oid = 'pg_seclabel'::regclass \gset
VACUUM :toast;
SELECT segment_drop(:'long');

-- Keys: no key has the id of another one.
SELECT uid_key_create('first');
CREATE SEQUENCE uid_keys.thief;
SELECT outcome(format('SECURITY LABEL FOR uidgen ON SEQUENCE uid_keys.thief IS %L', label)) ~ 'is that of another key' AS refused
  FROM pg_seclabel WHERE objoid = 'uid_keys.first'::regclass;
SELECT labelled('SEQUENCE uid_keys.first', label), labelled('SEQUENCE uid_keys.first', replace(label, ' ', '  ')) FROM pg_seclabel WHERE objoid = 'uid_keys.first'::regclass;
SELECT name, width FROM uid_key_config;
SELECT uid_key_create('thief');
SELECT labelled('SEQUENCE uid_keys.thief', NULL);
DELETE FROM uid_secrets.uid_key WHERE id = (SELECT id FROM uid_internal.keys WHERE name = 'thief');
SELECT name, width FROM uid_key_config ORDER BY name;
SELECT uid_key_create('thief', 40);
SELECT name, width FROM uid_key_config ORDER BY name;
DROP SEQUENCE uid_keys.thief, uid_keys.first;
SELECT count(*) FROM uid_secrets.uid_key;

-- Whose they are. The default is taken from the builtin generator, by the owner of the database, before that has drawn.
CREATE ROLE uidgen_labels;
GRANT CREATE ON SCHEMA uid_generators, uid_segments TO uidgen_labels;
SET ROLE uidgen_labels;
SELECT labelled('SEQUENCE uid_generators.both', 'key id=5');
CALL unlabelled('uid_generators.of_role');
SELECT outcome('SELECT uid_internal.uid_define_segment(''uid_generators.both'', ''x''::text, 1::bigint, 1::bigint)');
-- The fields of a label are the columns of the view, those that its function reads, and the parameters of functions.
WITH lists(name, fields) AS (
  SELECT 'label', array_agg(f[1]) FROM pg_seclabel, regexp_matches(label, ' ([a-z_]+)=', 'g') f WHERE objoid = 'uid_generators.uid_default'::regclass
   UNION ALL
  SELECT attrelid::regclass::text, array_agg(attname ORDER BY attnum) FROM pg_attribute
   WHERE attrelid IN ('uid_generator'::regclass, 'uid_preset'::regclass) AND attname <> 'builtin' GROUP BY attrelid
   UNION ALL
  SELECT proname, proargnames FROM pg_proc WHERE proname IN ('uid_read_generator', 'uid_generator_create', 'uid_generator_alter'))
SELECT l.name, ARRAY(SELECT unnest(d.fields) EXCEPT SELECT unnest(l.fields) ORDER BY 1) AS lacks, ARRAY(SELECT unnest(l.fields) EXCEPT SELECT unnest(d.fields) ORDER BY 1) AS more
  FROM lists l, lists d WHERE d.name = 'label' ORDER BY l.name;
WITH lists(name, fields) AS (
  SELECT 'label', array_agg(f[1]) FROM regexp_matches('segment name="x" step=null max_step=null registry_name=null fleet=null increment=null', ' ([a-z_]+)=', 'g') f
   UNION ALL
  SELECT attrelid::regclass::text, array_agg(attname ORDER BY attnum) FROM pg_attribute WHERE attrelid IN ('uid_segment'::regclass, 'uid_internal.segments'::regclass) GROUP BY attrelid
   UNION ALL
  SELECT proname, proargnames FROM pg_proc WHERE proname IN ('uid_read_segment', 'uid_define_segment', 'uid_change_segment', 'segment_alter'))
SELECT l.name, ARRAY(SELECT unnest(d.fields) EXCEPT SELECT unnest(l.fields) ORDER BY 1) AS lacks, ARRAY(SELECT unnest(l.fields) EXCEPT SELECT unnest(d.fields) ORDER BY 1) AS more
  FROM lists l, lists d WHERE d.name = 'label' ORDER BY l.name;
CALL label('uid_generators.of_role', label_of(1000, 41));
SELECT label = label_of(1000, 41) AS same FROM pg_seclabel WHERE objoid = 'uid_generators.of_role'::regclass;
-- The default is not taken by a function that a superuser's statement runs as the owner of a table.
RESET ROLE;
REVOKE CREATE ON SCHEMA uid_segments FROM uidgen_labels;
CREATE SCHEMA uidgen_labels AUTHORIZATION uidgen_labels;
SET ROLE uidgen_labels;
CALL unlabelled('uid_generators.taken');
CREATE FUNCTION uidgen_labels.take(label text) RETURNS text LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
  RAISE NOTICE '%', (SELECT public.outcome(format('SECURITY LABEL FOR uidgen ON SEQUENCE uid_generators.taken IS %L', label)));
  RETURN label;
END
$$;
CREATE TABLE uidgen_labels.taking (label text);
CREATE INDEX taking_label ON uidgen_labels.taking (uidgen_labels.take(label));
INSERT INTO uidgen_labels.taking VALUES (replace(label_of(1000, 41), 'is_default=false', 'is_default=true'));
RESET ROLE;
REINDEX TABLE uidgen_labels.taking;
-- Without CREATE on the schema of its kind a sequence becomes nothing, so no name of a segment is taken.
SET ROLE uidgen_labels;
CREATE SEQUENCE uidgen_labels.bills_id_seq;
SELECT labelled('SEQUENCE uidgen_labels.bills_id_seq', label) FROM (VALUES ('key id=5'),
  ('segment name="bills_id_seq" step=null max_step=null registry_name=null fleet=null increment=null')) v (label);
SELECT outcome('SELECT uid_internal.uid_define_segment(''uidgen_labels.bills_id_seq'', ''bills_id_seq''::text, NULL, NULL)');
-- Nor is the id of a key, which somebody may be about to restore, by another role than the owner of the database.
CREATE FUNCTION uidgen_labels.squat() RETURNS text LANGUAGE sql SECURITY DEFINER RETURN public.outcome('SECURITY LABEL FOR uidgen ON SEQUENCE uid_keys.squatter IS ''key id=5''');
RESET ROLE;
GRANT CREATE ON SCHEMA uid_keys TO uidgen_labels;
SET ROLE uidgen_labels;
CREATE SEQUENCE uid_keys.squatter;
SELECT uidgen_labels.squat();
SELECT uid_key_create('squatter');
DROP SEQUENCE uid_keys.squatter;
DROP SCHEMA uidgen_labels CASCADE;
DROP SEQUENCE uid_generators.of_role, uid_generators.taken;
RESET ROLE;
CALL unlabelled('uid_generators.taker');
SELECT labelled('SEQUENCE uid_generators.taker', replace(label_of(1000, 41), 'is_default=false', 'is_default=true'));
DROP SEQUENCE uid_generators.taker;
DROP OWNED BY uidgen_labels;
DROP ROLE uidgen_labels;

-- The default dropped: another is never taken for it, in no session and after no restart.
SELECT uid_generator_create('chosen', 'twitter');
SELECT uid_default_set('uid_generators.chosen');
SELECT decodes(uid_next(), 'uid_generators.chosen');
DROP SEQUENCE uid_generators.chosen;
SELECT outcome('SELECT uid_next()'), outcome('SELECT uid_timestamp(5)');
SELECT generator, is_default FROM uid_generator ORDER BY generator::text;
SELECT uid_next('uid_generators.uid_default') > :id AS above;
SELECT outcome('SELECT uid_next()');
SELECT uid_default_set('uid_generators.uid_default');
SELECT uid_next() > :id AS above;


-- A change of a table of others costs the next calls nothing of a definition: they read none. A change of their own does.
-- One table in some hundred counts as one of the session's sequences (config/extension.cpp), so the fewest of five count.
SELECT uid_generator_create('calm', 'js53'), segment_create('calm');
CREATE VIEW calls (a, b, c, d, e) AS SELECT uid_next() > 0, uid_next('uid_generators.calm') > 0, segment_next('uid_segments.calm'::regclass) > 0, segment_next('calm') > 0, uid_timestamp(5, 'uid_generators.calm');
CREATE FUNCTION reads() RETURNS numeric LANGUAGE sql RETURN
  (SELECT sum(pg_stat_get_xact_numscans(oid)) FROM pg_class WHERE relname IN ('pg_seclabel', 'pg_seclabel_object_index', 'pg_extension_name_index'));
CREATE FUNCTION fewest_reads() RETURNS numeric LANGUAGE plpgsql AS $$
DECLARE
  before numeric;
  fewest numeric;
BEGIN
  FOR i IN 1 .. 5 LOOP
    EXECUTE format('CREATE TABLE bystander%s (n integer)', i);
    PERFORM * FROM calls;
    EXECUTE format('ALTER TABLE bystander%s ADD m integer', i);
    before := reads();
    PERFORM * FROM calls;
    fewest := least(fewest, reads() - before);
    EXECUTE format('DROP TABLE bystander%s', i);
  END LOOP;
  RETURN fewest;
END
$$;
SELECT * FROM calls;
SELECT fewest_reads();
SELECT segment_alter('calm', 5), uid_generator_alter('uid_generators.calm', lease_ms => 900);
BEGIN;
SELECT reads() AS before \gset
SELECT * FROM calls;
SELECT reads() > :before AS reads;
COMMIT;
DROP VIEW calls;
DROP FUNCTION reads, fewest_reads;
SELECT segment_drop('calm');
DROP SEQUENCE uid_generators.calm;

-- A layout whose figures are at the end of their range does not stop a view for the others.
SELECT uid_generator_create('short', 'twitter', tick_us => 1, time_bits => 1, epoch => '9000-01-01 00:00+00');
SELECT generator, life_used < 0 AS not_begun, ids_per_second FROM uid_generator_limits WHERE generator = 'uid_generators.short'::regclass;

DROP TABLE identities;
DROP PROCEDURE unlabelled, register, label;
DROP FUNCTION decodes, labelled, label_of, outcome, outcomes;
SET client_min_messages = warning;
DROP EXTENSION uidgen CASCADE;
