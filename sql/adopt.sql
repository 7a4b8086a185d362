-- uid_adopt() and uid_release(): a column from a sequence to uidgen, and back.
\a \t
CREATE SCHEMA uidgen;
CREATE EXTENSION uidgen SCHEMA uidgen;
SET client_min_messages = warning;
\getenv source PG_ABS_SRCDIR
\i :source/test/masked_outcome.sql
\set ECHO none
-- The lines of a call, without the ids, oids and the superuser of this run.
CREATE FUNCTION plan(call text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
  line text;
BEGIN
  FOR line IN EXECUTE 'SELECT uidgen.uid_' || call LOOP
    line := replace(line, 'OWNER TO ' || quote_ident(session_user) || ';', 'OWNER TO <me>;');
    RETURN NEXT regexp_replace(regexp_replace(line, '\m[1-8]\d{13,18}\M', '<id>', 'g'), 'uid_adopt_\d+', 'uid_adopt_<oid>');
  END LOOP;
END
$$;
CREATE FUNCTION state() RETURNS text LANGUAGE sql AS $$
  SELECT md5(string_agg(x, '' ORDER BY x)) FROM (
    SELECT format('%s %s %s %s', a.attrelid, a.attname, a.atttypid, a.attidentity) FROM pg_attribute a
     WHERE a.attrelid >= 16384
     UNION ALL SELECT d::text FROM pg_attrdef d UNION ALL SELECT q::text FROM pg_sequence q
     UNION ALL SELECT s::text FROM pg_sequences s WHERE s.schemaname NOT IN ('uid_generators', 'uidgen')) t(x)
$$;
-- Runs a call, and returns its lines. A dry run before it promises the same ones, and changes nothing but generators.
CREATE FUNCTION run(call text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
  before text := state();
  dry text[] := ARRAY(SELECT plan(call));
  is_changed boolean := before <> state();
  done text[] := ARRAY(SELECT plan(regexp_replace(call, '\)$', ', dry_run => false)')));
BEGIN
  IF is_changed OR dry <> done || '-- This was a dry run. To run the statements in one transaction, add dry_run => false.'::text THEN
    RAISE EXCEPTION 'the dry run changed something or said: %', array_to_string(dry, E'\n');
  END IF;
  RETURN QUERY SELECT unnest(done);
END
$$;
CREATE FUNCTION of_column(t regclass, c name DEFAULT 'id') RETURNS text LANGUAGE sql AS $$
  SELECT concat_ws(' ', format_type(a.atttypid, NULL), 'DEFAULT ' || pg_get_expr(d.adbin, d.adrelid), 'identity ' || nullif(a.attidentity::text, ''),
                   'owns ' || pg_get_serial_sequence(t::text, c))
    FROM pg_attribute a LEFT JOIN pg_attrdef d ON (d.adrelid, d.adnum) = (a.attrelid, a.attnum)
   WHERE a.attrelid = t AND a.attname = c
$$;
-- A column draws from a generator or another source, and goes back. Says how many lines each call has, what the column is
-- after it, and whether the new id is above all others; then where the sequence goes on. A role draws, and a statement runs
-- meanwhile.
CREATE PROCEDURE there_and_back(t regclass, c name DEFAULT 'id', source text DEFAULT NULL, start bigint DEFAULT NULL, meanwhile text DEFAULT 'SELECT',
  clerk name DEFAULT current_user, INOUT story text DEFAULT NULL) LANGUAGE plpgsql AS $$
DECLARE
  former text := of_column(t, c);
  lines bigint := count(*) FROM run(format('adopt(%L, %L, %L)', t, c, source));
  largest bigint;
  drawn bigint;
BEGIN
  story := format('%s lines: %s, ', lines, of_column(t, c));
  EXECUTE format('SELECT max(%I) FROM %s', c, t) INTO largest;
  COMMIT;
  PERFORM set_config('role', clerk, true);
  EXECUTE format('INSERT INTO %s DEFAULT VALUES RETURNING %I', t, c) INTO drawn;
  COMMIT;
  EXECUTE meanwhile;
  COMMIT;
  lines := count(*) FROM run(format('release(%L, %L, %L)', t, c, start));
  story := story || CASE WHEN (drawn > largest) IS NOT FALSE THEN 'above' ELSE drawn || ' beside ' || largest END
           || format('; %s lines: %s, ', lines, CASE of_column(t, c) WHEN former THEN 'as before' ELSE of_column(t, c) END);
  COMMIT;
  PERFORM set_config('role', clerk, true);
  EXECUTE format('INSERT INTO %s DEFAULT VALUES RETURNING %I', t, c) INTO drawn;
  story := story || drawn;
END
$$;
-- Runs what the hint of an error says.
CREATE FUNCTION pasted(call text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  hint text;
BEGIN
  EXECUTE 'SELECT uidgen.uid_' || call;
  RETURN 'no error';
EXCEPTION WHEN datatype_mismatch OR object_not_in_prerequisite_state THEN
  GET STACKED DIAGNOSTICS hint = PG_EXCEPTION_HINT;
  EXECUTE coalesce(substring(hint FROM '(LOCK TABLE .*) COMMIT;'), substring(hint FROM '(ALTER TABLE .*::regclass\))\. '));
  RETURN 'pasted';
END
$$;
\set ECHO all

-- bigserial: the sequence stays. A second call keeps the note.
CREATE TABLE orders (id bigserial PRIMARY KEY);
INSERT INTO orders SELECT FROM generate_series(1, 10);
DELETE FROM orders WHERE id > 8;
COMMENT ON SEQUENCE orders_id_seq IS 'numbers of orders';
SELECT run($$adopt('orders', 'id')$$);
SELECT of_column('orders');
INSERT INTO orders DEFAULT VALUES RETURNING id > 100000000000000000 AS new;
SELECT count(*) FROM run($$adopt('orders', 'id')$$);
-- The way back: not from the largest id, not from a counter that setval(max(id)) has set, and not to numbers of deleted
-- rows. Nobody draws from the sequence between the look at it and the change.
SELECT setval('orders_id_seq', max(id)) > 0 AS as_imports_do FROM orders;
BEGIN;
SELECT run($$release('orders', 'id')$$);
SELECT mode FROM pg_locks WHERE relation = 'orders_id_seq'::regclass AND mode = 'AccessExclusiveLock';
COMMIT;
SELECT of_column('orders'), obj_description('orders_id_seq'::regclass);
INSERT INTO orders DEFAULT VALUES RETURNING id;
-- A counter that was above the rows, and is set back by an import; rows that an import brings; from one generator to another.
SELECT setval('orders_id_seq', 40);
CALL there_and_back('orders', meanwhile => $$SELECT setval('orders_id_seq', 12)$$);
CALL there_and_back('orders', meanwhile => 'INSERT INTO orders VALUES (60)');
CALL there_and_back('orders', meanwhile => $$SELECT uidgen.uid_adopt('orders', 'id', 'uid_generators.uid_default', dry_run => false);
  SELECT setval('orders_id_seq', max(id)) FROM orders$$);
-- A default that was set by hand: nothing is noted. Then with a start of one's own.
ALTER TABLE orders ALTER id SET DEFAULT uidgen.uid_next();
SELECT setval('orders_id_seq', max(id)) > 0 AS as_imports_do FROM orders;
SELECT * FROM outcomes('SELECT uidgen.uid_%s', $$release('orders', 'id')$$, $$release('orders', 'id', start => (SELECT max(id) - 5 FROM orders))$$);
CALL there_and_back('orders', start => 5000);
SELECT outcome($$SELECT uidgen.uid_release('orders', 'id')$$);
-- Nor does the note say what the sequence has given to another column since.
CREATE TABLE shares (id bigint PRIMARY KEY DEFAULT nextval('orders_id_seq'));
SELECT count(*) FROM run($$adopt('orders', 'id')$$);
INSERT INTO shares SELECT FROM generate_series(1, 5);
SELECT setval('orders_id_seq', max(id)) > 0 AS as_imports_do FROM orders;
SELECT outcome($$SELECT uidgen.uid_release('orders', 'id')$$);
SELECT count(*) FROM run($$release('orders', 'id', start => 6000)$$);
INSERT INTO shares DEFAULT VALUES RETURNING id;
DROP TABLE shares;

-- An identity column: GENERATED ALWAYS, with a counter and a stride that must not be lost.
CREATE TABLE "Odd ""Names" ("the id" bigint GENERATED ALWAYS AS IDENTITY (START 3 INCREMENT 5) PRIMARY KEY, x int);
INSERT INTO "Odd ""Names" SELECT FROM generate_series(1, 4);
SELECT run($$adopt('"Odd ""Names"', 'the id')$$);
INSERT INTO "Odd ""Names" DEFAULT VALUES;
SELECT run($$release('"Odd ""Names"', 'the id')$$);
INSERT INTO "Odd ""Names" DEFAULT VALUES RETURNING "the id";
CALL there_and_back('"Odd ""Names"', 'the id', 'uid_generators.uid_default');
-- A name cannot end a comment.
ALTER TABLE "Odd ""Names" RENAME TO "new
line";
ALTER TABLE "new
line" ADD CONSTRAINT "positive
DROP TABLE orders; --" CHECK ("the id" > 0);
SELECT count(*) FILTER (WHERE l ~ '^--[^\n]*$') AS comments, count(*) FILTER (WHERE l ~ '^--.*\n') AS broken, count(*) FILTER (WHERE l ~ '\n') AS statements_with_it
  FROM uidgen.uid_adopt(E'"new\nline"', 'the id') l;
DROP TABLE "new
line";

-- segment_next(): the sequence of the column, of which a range is reserved that begins below the largest id; the one behind
-- an identity; and another one.
CREATE TABLE seg (id bigserial, v int GENERATED BY DEFAULT AS IDENTITY, w bigint);
INSERT INTO seg DEFAULT VALUES;
INSERT INTO seg SELECT uidgen.segment_next('seg_id_seq'::regclass) + 1;
CALL there_and_back('seg', 'id', 'seg_id_seq');
CALL there_and_back('seg', 'v', 'seg_v_seq');
SELECT uidgen.segment_create('seg', 2);
SELECT outcome($$SELECT uidgen.uid_adopt('seg', 'id', 'uid_segments.seg')$$);
SELECT setval('uid_segments.seg', max(id)) FROM seg;
CALL there_and_back('seg', 'id', 'uid_segments.seg');
CREATE TEMPORARY SEQUENCE passing;
CREATE SEQUENCE uid_segments.numbers;
SECURITY LABEL FOR uidgen ON SEQUENCE uid_segments.numbers IS
  'segment name="numbers" step=null max_step=null registry_name="numbers" fleet=1 increment=1';
SELECT * FROM outcomes('SELECT uidgen.uid_adopt(''seg'', ''w'', %s)', $$'orders_pkey'$$, $$'passing'$$, $$'uid_segments.numbers'$$);
SELECT uidgen.segment_drop('numbers');
-- A segment's name as text does not tell which sequence gave the numbers.
ALTER TABLE seg ALTER id SET DEFAULT uidgen.segment_next('seg');
SELECT outcome($$SELECT uidgen.uid_adopt('seg', 'id')$$);
ALTER TABLE seg ALTER id SET DEFAULT nextval('seg_id_seq');
-- From a generator to the segment of the sequence that was kept: its values would be below. The hint works when it is
-- pasted, before uid_release() and after it. An identity is left.
SELECT count(*) FROM run($$adopt('seg', 'id')$$);
INSERT INTO seg DEFAULT VALUES;
SELECT outcome($$SELECT uidgen.uid_adopt('seg', 'id', 'seg_id_seq')$$);
BEGIN;
SELECT pasted($$adopt('seg', 'id', 'seg_id_seq')$$);
INSERT INTO seg DEFAULT VALUES RETURNING id;
ROLLBACK;
SELECT count(*) FROM run($$release('seg', 'id')$$);
SELECT pasted($$adopt('seg', 'id', 'seg_id_seq')$$);
INSERT INTO seg DEFAULT VALUES RETURNING id;
CREATE TABLE own (id bigint GENERATED ALWAYS AS IDENTITY);
CALL there_and_back('own');
SELECT outcome($$SELECT uidgen.uid_adopt('own', 'id', 'own_id_seq')$$);
DROP TABLE own;

-- integer, and the columns that refer to it, directly and not, of children and of partitions alone: the hint converts them.
CREATE TABLE customer (id serial PRIMARY KEY, name text, referrer int REFERENCES customer);
CREATE TABLE invoice (customer_id int REFERENCES customer UNIQUE, other bigint REFERENCES customer, partner int REFERENCES customer);
CREATE TABLE reminder (id smallint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, customer_id int REFERENCES invoice (customer_id));
INSERT INTO customer SELECT FROM generate_series(1, 2);
INSERT INTO invoice VALUES (1, 1, 2);
INSERT INTO reminder (customer_id) VALUES (1);
CREATE TABLE parent (id int);
CREATE TABLE child () INHERITS (parent);
CREATE TABLE whole (id bigserial PRIMARY KEY) PARTITION BY RANGE (id);
CREATE TABLE whole_1 PARTITION OF whole FOR VALUES FROM (1) TO (1000);
CREATE TABLE refers (k int, ref int, part int REFERENCES whole_1) PARTITION BY LIST (k);
CREATE TABLE refers_1 PARTITION OF refers FOR VALUES IN (1);
ALTER TABLE refers_1 ADD FOREIGN KEY (ref) REFERENCES whole;
CREATE TABLE ranges (id serial, region int) PARTITION BY LIST (region);
CREATE TABLE ranges_1 PARTITION OF ranges FOR VALUES IN (1) PARTITION BY RANGE (id);
CREATE TABLE halves (id serial) PARTITION BY RANGE ((id / 2));
SELECT * FROM outcomes('SELECT uidgen.uid_adopt(''%s'', ''id'')', 'customer', 'parent', 'whole', 'ranges', 'halves');
SELECT t, pasted(format('adopt(%L, %L)', t, 'id')) FROM unnest('{customer,reminder,parent}'::text[]) t;
CALL there_and_back('customer', meanwhile => 'INSERT INTO invoice SELECT max(id), max(id), max(id) FROM customer;
  INSERT INTO reminder (customer_id) SELECT max(id) FROM customer');
CALL there_and_back('reminder');
SELECT of_column('child');
DROP TABLE customer, invoice, reminder, parent, child, whole, refers, ranges, halves;

-- Partitions and inheritance.
CREATE TABLE log (id bigserial, at date DEFAULT '2026-02-02') PARTITION BY RANGE (at);
CREATE TABLE log_old PARTITION OF log FOR VALUES FROM ('2026-01-01') TO ('2027-01-01');
CREATE TABLE log_new (id bigserial, at date DEFAULT '2027-02-02');
ALTER TABLE log ATTACH PARTITION log_new FOR VALUES FROM ('2027-01-01') TO ('2028-01-01');
INSERT INTO log (at) VALUES ('2026-02-02'), ('2027-02-02');
CREATE TABLE parts (id bigserial) PARTITION BY RANGE (id);
CREATE TABLE parts_all PARTITION OF parts DEFAULT;
CREATE TABLE ledger (id bigint GENERATED ALWAYS AS IDENTITY, at date DEFAULT '2026-02-02') PARTITION BY RANGE (at);
CREATE TABLE ledger_26 PARTITION OF ledger FOR VALUES FROM ('2026-01-01') TO ('2027-01-01');
CREATE TABLE parent (id bigint GENERATED ALWAYS AS IDENTITY);
CREATE TABLE child (v int) INHERITS (parent);
CREATE TABLE grandchild () INHERITS (child);
ALTER TABLE child ALTER id ADD GENERATED BY DEFAULT AS IDENTITY;
SELECT * FROM outcomes('SELECT uidgen.uid_adopt(''%s'', ''id'', dry_run => false)', 'log_new', 'parent');
ALTER TABLE child ALTER id DROP IDENTITY;
INSERT INTO ledger DEFAULT VALUES;
INSERT INTO parent DEFAULT VALUES;
CALL there_and_back('log', meanwhile => 'INSERT INTO log (at) VALUES (''2027-02-02''); INSERT INTO log_new DEFAULT VALUES');
INSERT INTO log_new DEFAULT VALUES RETURNING id;
SELECT line FROM plan($$adopt('parts', 'id')$$) line WHERE line ~ 'partition';
CALL there_and_back('parts');
CALL there_and_back('ledger', meanwhile => 'INSERT INTO ledger_26 DEFAULT VALUES');
CALL there_and_back('parent', meanwhile => 'INSERT INTO child DEFAULT VALUES; INSERT INTO grandchild DEFAULT VALUES');
SELECT part, count(*) FILTER (WHERE id > 100000000000000000) AS new, count(*)
  FROM (SELECT tableoid::regclass, id FROM log UNION ALL SELECT tableoid::regclass, id FROM ledger UNION ALL SELECT tableoid::regclass, id FROM parent) AS t(part, id)
 GROUP BY part ORDER BY part::text;

-- Columns of other kinds.
CREATE DOMAIN key AS bigint CHECK (VALUE > 0);
CREATE DOMAIN small_key AS integer;
CREATE DOMAIN smaller_key AS small_key;
CREATE TABLE kinds (none bigint, big key, small smaller_key, txt text, dec numeric(20), gen bigint GENERATED ALWAYS AS (none + 1) STORED,
  big_serial key DEFAULT nextval('orders_id_seq'));
CREATE VIEW kind_view AS TABLE kinds;
SELECT c, (SELECT count(*) FROM run(format('adopt(''kinds'', %L)', c))), of_column('kinds', c) FROM unnest('{big,big_serial}'::name[]) c;
CALL there_and_back('kinds', 'none', start => 1);
SELECT * FROM outcomes('SELECT uidgen.uid_adopt(%s)', $$'kinds', 'small'$$, $$'kinds', 'txt'$$, $$'kinds', 'dec'$$, $$'kinds', 'gen'$$,
  $$'kinds', 'missing'$$, $$'kinds', 'ctid'$$, $$'kind_view', 'none'$$, $$'orders_id_seq', 'last_value'$$, $$4294967295, 'none'$$,
  $$'uidgen.worker_node', 'id'$$, $$NULL, 'none'$$);
SELECT * FROM outcomes('SELECT uidgen.uid_release(''kinds'', %s)', '''big_serial''', 'NULL');
-- The lines of a dry run, run by psql.
BEGIN;
SELECT l FROM uidgen.uid_adopt('kinds', 'big', 'uid_generators.uid_default') l WHERE l NOT LIKE '-- furthest id%'
\gexec
COMMIT;
SELECT of_column('kinds', 'big');

-- Ids that are larger than those of the generator, for long or for minutes, and ids below which it has been raised.
CREATE TABLE later (id bigint PRIMARY KEY);
INSERT INTO later VALUES (1);
CREATE TABLE "100%s" (id bigint DEFAULT 9223372036854775800);
INSERT INTO "100%s" DEFAULT VALUES;
SELECT uidgen.uid_generator_create('web', 'js53');
SELECT * FROM outcomes($$UPDATE later SET id = uidgen.uid_encode(now() + interval '%s', 31, 31, 4095); SELECT uidgen.uid_adopt('later', 'id')$$,
  '1 year', '9 minutes');
SELECT * FROM outcomes('UPDATE later SET id = 9007199254740991; SELECT uidgen.uid_adopt(%s)', $$'"100%s"', 'id'$$, $$'later', 'id', 'uid_generators.web'$$);
UPDATE later SET id = uidgen.uid_encode(now() + interval '500 ms', 31, 31, 4095);
SELECT uidgen.uid_generator_raise('uid_generators.uid_default', id) FROM later;
SELECT count(*) FROM run($$adopt('later', 'id')$$);
-- Back from ids of 53 bits: the sequence again counts from the small ones. Ids too close to each other are refused.
CREATE TABLE pages (id bigserial PRIMARY KEY);
INSERT INTO pages DEFAULT VALUES;
CALL there_and_back('pages', 'id', 'uid_generators.web');
SELECT count(*) FROM run($$adopt('pages', 'id', 'uid_generators.web')$$);
SELECT outcome('SELECT uidgen.uid_release(''pages'', ''id'', start => (SELECT min(id) - 1000 FROM pages WHERE id > 10000000000000))');
-- A counter that counts downwards.
CREATE SEQUENCE falling INCREMENT -1;
CREATE TABLE falls (id bigint DEFAULT nextval('falling'));
ALTER SEQUENCE falling OWNED BY falls.id;
SELECT count(*) FROM run($$adopt('falls', 'id')$$);
SELECT outcome('SELECT uidgen.uid_release(''falls'', ''id'')');
SELECT count(*) FROM run($$release('falls', 'id', start => -1)$$);
INSERT INTO falls DEFAULT VALUES RETURNING id;

-- Roles: the owner may; roles that insert must be able to draw.
CREATE ROLE "regress Admin" SUPERUSER;
CREATE ROLE regress_owner;
CREATE ROLE regress_clerk;
CREATE SCHEMA shop;
GRANT USAGE ON SCHEMA shop TO regress_owner, regress_clerk;
GRANT CREATE ON SCHEMA shop TO regress_owner;
GRANT USAGE ON SCHEMA uidgen TO regress_owner;
SET ROLE regress_owner;
CREATE TABLE shop.sale (id bigint GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY);
CREATE TABLE shop.kept (id bigint GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY);
CREATE TABLE shop.bill (id bigserial PRIMARY KEY);
GRANT INSERT, SELECT ON shop.sale, shop.kept, shop.bill TO regress_clerk;
RESET ROLE;
REVOKE CREATE ON SCHEMA shop FROM regress_owner;
-- The table of another role; a generator of one, who alone can grant it; no CREATE on the schema, so the identity's sequence
-- cannot be kept.
SET ROLE regress_owner;
SELECT * FROM outcomes('SELECT uidgen.uid_%s', $$adopt('public.orders', 'id')$$, $$release('public.orders', 'id')$$,
  $$adopt('shop.sale', 'id', 'uid_generators.web')$$);
RESET ROLE;
GRANT USAGE ON SEQUENCE uid_generators.web TO regress_owner WITH GRANT OPTION;
SET ROLE regress_owner;
SELECT outcome('SELECT uidgen.uid_adopt(''shop.sale'', ''id'', ''uid_generators.web'', dry_run => false)');
RESET ROLE;
GRANT CREATE ON SCHEMA shop TO regress_owner;
GRANT USAGE ON SEQUENCE shop.kept_id_seq TO regress_clerk;
SET ROLE regress_owner;
CALL there_and_back('shop.sale', 'id', 'uid_generators.web', clerk => 'regress_clerk');
CALL there_and_back('shop.kept', 'id', 'shop.kept_id_seq', clerk => 'regress_clerk');
-- By the default generator, which the owner of the table cannot raise.
CALL there_and_back('shop.bill', clerk => 'regress_clerk');
CALL there_and_back('shop.bill', clerk => 'regress_clerk');
INSERT INTO shop.bill VALUES (uidgen.uid_encode(now() + interval '1 minute', 0, 0, 0));
SELECT outcome('SELECT uidgen.uid_adopt(''shop.bill'', ''id'', ''uid_generators.uid_default'')');
RESET ROLE;
-- The schema of the extension belongs to a role that could rename it, which a transaction can prevent only if it writes.
BEGIN READ ONLY;
SELECT count(*) > 0 AS planned FROM uidgen.uid_adopt('shop.sale', 'id');
ROLLBACK;
BEGIN;
ALTER SCHEMA uidgen OWNER TO regress_owner;
SET TRANSACTION READ ONLY;
SELECT * FROM outcomes('SELECT uidgen.%s', $$uid_adopt('shop.sale', 'id')$$, $$uid_generator_create('unmade')$$);
ROLLBACK;
-- The owner of the table is another role than the caller.
SET ROLE "regress Admin";
SELECT count(*) FROM run($$adopt('shop.sale', 'id', 'uid_generators.web')$$);
SELECT relname, relowner::regrole FROM pg_class WHERE relnamespace = 'shop'::regnamespace AND relkind = 'S' ORDER BY 1;
RESET ROLE;
-- Row-level security would hide ids.
ALTER TABLE shop.kept ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
SET ROLE regress_owner;
SELECT outcome('SELECT uidgen.uid_adopt(''shop.kept'', ''id'')');
RESET ROLE;

-- In the transaction that has drawn: nextval() has values in its cache, and a range is reserved below the largest id. If the
-- transaction has altered the sequence, or made it, no other session has drawn.
CREATE SEQUENCE hoard CACHE 10;
CREATE TABLE hoarded (id bigint);
BEGIN;
SELECT nextval('hoard'), uidgen.segment_next('hoard'::regclass);
INSERT INTO hoarded VALUES (500);
SELECT run($$adopt('hoarded', 'id', 'hoard')$$);
INSERT INTO hoarded DEFAULT VALUES RETURNING id > 500 AS beyond;
COMMIT;
BEGIN;
ALTER SEQUENCE hoard RESTART;
SELECT nextval('hoard'), uidgen.segment_next('hoard'::regclass);
TRUNCATE hoarded;
INSERT INTO hoarded VALUES (200);
SELECT count(*) FROM run($$adopt('hoarded', 'id', 'hoard')$$);
INSERT INTO hoarded DEFAULT VALUES RETURNING id > 200 AS beyond;
CREATE SEQUENCE fresh START 150;
SELECT uidgen.segment_next('fresh'::regclass), setval('fresh', max(id)) = max(id) AS beyond FROM hoarded;
SELECT count(*) FROM run($$adopt('hoarded', 'id', 'fresh')$$);
INSERT INTO hoarded DEFAULT VALUES RETURNING id > (SELECT max(id) FROM hoarded) AS beyond;
ROLLBACK;
DROP TABLE hoarded;
DROP SEQUENCE hoard;
-- A sequence that counts down.
CREATE SEQUENCE lower INCREMENT -1;
CREATE TABLE lower_ids (id bigint PRIMARY KEY);
INSERT INTO lower_ids VALUES (-2), (-1);
SELECT outcome('SELECT uidgen.uid_adopt(''lower_ids'', ''id'', ''lower'')');
SELECT setval('lower', min(id)) FROM lower_ids;
SELECT count(*) FROM run($$adopt('lower_ids', 'id', 'lower')$$);
INSERT INTO lower_ids DEFAULT VALUES RETURNING id;
DROP TABLE lower_ids;
DROP SEQUENCE lower;

-- A transaction whose snapshot may be old, and a rollback.
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT outcome('SELECT uidgen.uid_adopt(''orders'', ''id'', dry_run => false)');
ROLLBACK;
BEGIN;
SELECT count(*) FROM run($$adopt('orders', 'id')$$);
ROLLBACK;
SELECT of_column('orders');
-- Ids of a former default are not small, nor those of a generator that is named as text.
BEGIN;
CREATE TABLE few (id bigserial);
INSERT INTO few VALUES (DEFAULT), (DEFAULT);
SELECT count(*) FROM run($$adopt('few', 'id', 'uid_generators.web')$$);
ALTER TABLE few ALTER id SET DEFAULT uidgen.uid_next('uid_generators.web'::text::regclass);
INSERT INTO few DEFAULT VALUES;
SELECT line FROM plan($$release('few', 'id')$$) line WHERE line ~ 'RESTART';
ROLLBACK;
BEGIN;
SELECT count(*) FROM run($$adopt('orders', 'id')$$);
INSERT INTO orders DEFAULT VALUES;
SELECT uidgen.uid_default_set(uidgen.uid_generator_create('larger', template => 'uid_generators.uid_default', epoch => '2010-01-01'));
SELECT line FROM plan($$release('orders', 'id')$$) line WHERE line ~ 'RESTART|small';
ROLLBACK;
-- No default generator.
BEGIN;
SELECT uidgen.uid_default_set(uidgen.uid_generator_create('gone'));
DROP SEQUENCE uid_generators.gone;
SELECT outcome('SELECT uidgen.uid_adopt(''orders'', ''id'')'), (SELECT count(*) FROM plan($$release('later', 'id', start => 1)$$));
ROLLBACK;

-- A serial column that became an identity: its sequence is the identity's, although the column owns the former one, too.
-- setval(max(id)), which imports and ORMs send: each of the two can hold an id.
CREATE TABLE was_serial (id serial);
ALTER TABLE was_serial ALTER id DROP DEFAULT, ALTER id ADD GENERATED BY DEFAULT AS IDENTITY (MAXVALUE 1000);
INSERT INTO was_serial SELECT FROM generate_series(1, 3);
ALTER TABLE was_serial ALTER id TYPE bigint;
SELECT l FROM plan($$adopt('was_serial', 'id')$$) l WHERE l ~ '^ALTER.*MAXVALUE';
CALL there_and_back('was_serial', meanwhile => 'SELECT setval(s.oid, max(t.id))
  FROM was_serial t, pg_class s JOIN pg_depend d ON d.objid = s.oid WHERE d.refobjid = ''was_serial''::regclass AND s.relkind = ''S'' GROUP BY s.oid');
DROP TABLE was_serial;

-- A table of Citus, by the catalog that it has.
SET allow_system_table_mods = on;
CREATE TABLE pg_catalog.pg_dist_partition (logicalrelid regclass);
CREATE TABLE distributed (id bigint PRIMARY KEY DEFAULT 7);
INSERT INTO distributed DEFAULT VALUES;
INSERT INTO pg_catalog.pg_dist_partition VALUES ('distributed');
SELECT plan($$adopt('distributed', 'id')$$);
SELECT plan($$adopt('distributed', 'id', 'uid_generators.web')$$);
SELECT * FROM outcomes('SELECT uidgen.uid_%s', $$adopt('distributed', 'id', dry_run => false)$$, $$release('distributed', 'id')$$);
DROP TABLE pg_catalog.pg_dist_partition;
RESET allow_system_table_mods;
DROP TABLE distributed;

-- A sequence has any name, also that of an alias.
CREATE SEQUENCE q;
CREATE SEQUENCE v;
SELECT uid_internal.uid_sequence_next(s) FROM (VALUES ('q'::regclass), ('v')) AS named(s);
DROP SEQUENCE q, v;

DROP SCHEMA shop CASCADE;
DROP TABLE orders, seg, log, parts, ledger, parent, kinds, later, "100%s", pages, falls CASCADE;
DROP OWNED BY regress_owner, regress_clerk;
DROP ROLE regress_owner, regress_clerk, "regress Admin";
DROP FUNCTION plan, state, run, of_column, pasted, outcome, outcomes, exact_outcome;
DROP PROCEDURE there_and_back;
DROP DOMAIN key, smaller_key, small_key;
SELECT uidgen.uid_generator_drop('uid_generators.web'), uidgen.segment_drop('seg');
DROP EXTENSION uidgen;
DROP SCHEMA uidgen;
