-- uid_adopt() and uid_release(): a column from a sequence to uidgen, and back.
\a \t
CREATE SCHEMA uidgen;
CREATE EXTENSION uidgen SCHEMA uidgen;
SET timezone = 'UTC';
SET client_min_messages = warning;

-- Ids, oids and the superuser are masked.
\getenv source PG_ABS_SRCDIR
\i :source/test/outcome.sql
\set ECHO none
CREATE FUNCTION masked(line text) RETURNS text LANGUAGE sql AS $$
  SELECT regexp_replace(regexp_replace(replace(line, 'OWNER TO ' || quote_ident(session_user) || ';', 'OWNER TO <me>;'),
                                       '\m[1-8]\d{13,18}\M', '<id>', 'g'), 'uid_adopt_\d+', 'uid_adopt_<oid>', 'g')
$$;
CREATE FUNCTION plan(call text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
  line text;
  detail text;
  hint text;
BEGIN
  FOR line IN EXECUTE 'SELECT ' || call LOOP
    RETURN NEXT masked(line);
  END LOOP;
EXCEPTION WHEN OTHERS THEN
  GET STACKED DIAGNOSTICS detail = PG_EXCEPTION_DETAIL, hint = PG_EXCEPTION_HINT;
  RETURN NEXT format('ERROR %s: %s', SQLSTATE, masked(SQLERRM));
  RETURN QUERY SELECT masked(l) FROM unnest(ARRAY['DETAIL: ' || detail, 'HINT: ' || hint]) l WHERE l !~ ': $';
END
$$;
-- Runs a call. A dry run before it must promise the same statements, and change nothing but generators; otherwise a line
-- says so.
CREATE FUNCTION state() RETURNS text LANGUAGE sql AS $$
  SELECT md5(string_agg(x, '' ORDER BY x)) FROM (
    SELECT format('%s %s %s %s', a.attrelid, a.attname, a.atttypid, a.attidentity) FROM pg_attribute a
     WHERE a.attrelid >= 16384
     UNION ALL SELECT d::text FROM pg_attrdef d UNION ALL SELECT q::text FROM pg_sequence q
     UNION ALL SELECT s::text FROM pg_sequences s WHERE s.schemaname NOT IN ('uid_generators', 'uidgen')) t(x)
$$;
CREATE FUNCTION run(call text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
  before text := state();
  dry text[];
  done text[];
BEGIN
  dry := ARRAY(SELECT p FROM plan(call) p);
  IF before <> state() THEN
    RETURN NEXT 'the dry run changed something';
  END IF;
  done := ARRAY(SELECT p FROM plan(replace(call, ')', ', dry_run => false)')) p);
  RETURN QUERY SELECT unnest(done);
  IF (dry[:cardinality(dry) - 1] = done AND dry[cardinality(dry)] LIKE '-- This was a dry run.%') IS NOT TRUE THEN
    RETURN NEXT format('but the dry run: %s', dry);
  END IF;
END
$$;
-- The same where the lines are like those of a call above: says only how many they are, unless something is wrong.
CREATE FUNCTION moved(call text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
  lines text[] := ARRAY(SELECT run(call));
BEGIN
  IF array_to_string(lines, E'\n') ~ '^ERROR|the dry run' THEN
    RETURN QUERY SELECT unnest(lines);
  ELSE
    RETURN NEXT format('%s lines', cardinality(lines));
  END IF;
END
$$;
CREATE FUNCTION of_column(t regclass, c name, OUT type text, OUT identity "char", OUT expression text, OUT owns text)
LANGUAGE sql AS $$
  SELECT format_type(a.atttypid, NULL), a.attidentity, masked(pg_get_expr(d.adbin, d.adrelid)), pg_get_serial_sequence(t::text, c)
    FROM pg_attribute a LEFT JOIN pg_attrdef d ON (d.adrelid, d.adnum) = (a.attrelid, a.attnum)
   WHERE a.attrelid = t AND a.attname = c
$$;
\set ECHO all

-- bigserial: a dry run, then the change; the sequence stays.
CREATE TABLE orders (id bigserial PRIMARY KEY, item text);
INSERT INTO orders (item) SELECT 'old' FROM generate_series(1, 10);
DELETE FROM orders WHERE id > 8;
COMMENT ON SEQUENCE orders_id_seq IS 'numbers of orders';
SELECT plan($$ uidgen.uid_adopt('orders', 'id') $$);
SELECT * FROM of_column('orders', 'id');
SELECT moved($$ uidgen.uid_adopt('orders', 'id') $$);
SELECT * FROM of_column('orders', 'id');
INSERT INTO orders (item) VALUES ('new');
SELECT count(*), count(*) FILTER (WHERE id > 100000000000000000) AS new FROM orders;
SELECT plan($$ uidgen.uid_adopt('orders', 'id') $$);
-- The way back: not from the largest id, not from a counter that setval(max(id)) has set, and not to numbers of deleted
-- rows.
SELECT setval('orders_id_seq', max(id)) > 0 AS as_imports_do FROM orders;
SELECT obj_description('orders_id_seq'::regclass);
BEGIN;
SELECT run($$ uidgen.uid_release('orders', 'id') $$);
-- Nobody draws from the sequence between the look at it and the change.
SELECT mode FROM pg_locks WHERE relation = 'orders_id_seq'::regclass AND mode = 'AccessExclusiveLock';
COMMIT;
SELECT * FROM of_column('orders', 'id');
SELECT obj_description('orders_id_seq'::regclass);
INSERT INTO orders (item) VALUES ('back') RETURNING id;
SELECT plan($$ uidgen.uid_release('orders', 'id') $$);
-- Again, with a counter that is above the rows, and is set back by an import.
SELECT setval('orders_id_seq', 40);
SELECT moved($$ uidgen.uid_adopt('orders', 'id') $$);
SELECT setval('orders_id_seq', 12);
SELECT moved($$ uidgen.uid_release('orders', 'id') $$);
INSERT INTO orders (item) VALUES ('back') RETURNING id;
-- From one generator to another: the note stays.
SELECT count(*) > 0 AS adopted FROM uidgen.uid_adopt('orders', 'id', dry_run => false);
SELECT setval('orders_id_seq', max(id)) > 0 AS as_imports_do FROM orders;
SELECT run($$ uidgen.uid_adopt('orders', 'id', 'uid_generators.uid_default') $$);
SELECT moved($$ uidgen.uid_release('orders', 'id') $$);
INSERT INTO orders (item) VALUES ('back') RETURNING id;
-- A default that was set by hand: nothing is noted. Then with a start of one's own.
ALTER TABLE orders ALTER id SET DEFAULT uidgen.uid_next();
SELECT setval('orders_id_seq', max(id)) > 0 AS as_imports_do FROM orders;
SELECT plan($$ uidgen.uid_release('orders', 'id') $$);
SELECT plan($$ uidgen.uid_release('orders', 'id', start => (SELECT max(id) - 5 FROM orders)) $$);
SELECT moved($$ uidgen.uid_release('orders', 'id', start => 5000) $$);
INSERT INTO orders (item) VALUES ('back') RETURNING id;
-- Nor does the note say what the sequence has given to another column since.
CREATE TABLE shares (id bigint PRIMARY KEY DEFAULT nextval('orders_id_seq'));
SELECT moved($$ uidgen.uid_adopt('orders', 'id') $$);
INSERT INTO shares SELECT FROM generate_series(1, 5);
SELECT setval('orders_id_seq', max(id)) > 0 AS as_imports_do FROM orders;
SELECT plan($$ uidgen.uid_release('orders', 'id') $$);
SELECT moved($$ uidgen.uid_release('orders', 'id', start => 6000) $$);
INSERT INTO shares DEFAULT VALUES RETURNING id;
DROP TABLE shares;

-- An identity column: GENERATED ALWAYS, with a counter and a stride that must not be lost.
CREATE TABLE "Odd ""Names" ("the id" bigint GENERATED ALWAYS AS IDENTITY (START 3 INCREMENT 5) PRIMARY KEY, "x" int);
INSERT INTO "Odd ""Names" (x) SELECT 1 FROM generate_series(1, 4);
SELECT run($$ uidgen.uid_adopt('"Odd ""Names"', 'the id') $$);
SELECT * FROM of_column('"Odd ""Names"', 'the id');
INSERT INTO "Odd ""Names" (x) VALUES (2) RETURNING "the id" > 100000000000000000 AS new;
SELECT run($$ uidgen.uid_release('"Odd ""Names"', 'the id') $$);
INSERT INTO "Odd ""Names" (x) VALUES (2) RETURNING "the id";
SELECT moved($$ uidgen.uid_adopt('"Odd ""Names"', 'the id', 'uid_generators.uid_default') $$);
SELECT moved($$ uidgen.uid_release('"Odd ""Names"', 'the id') $$);
SELECT * FROM of_column('"Odd ""Names"', 'the id');
INSERT INTO "Odd ""Names" (x) VALUES (2) RETURNING "the id";
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

-- segment_next(): the sequence of the column, also behind an identity, and another one.
CREATE TABLE seg (id bigserial, v int GENERATED BY DEFAULT AS IDENTITY, w bigint);
INSERT INTO seg DEFAULT VALUES;
SELECT run($$ uidgen.uid_adopt('seg', 'id', 'seg_id_seq') $$);
SELECT run($$ uidgen.uid_adopt('seg', 'v', 'seg_v_seq') $$);
INSERT INTO seg DEFAULT VALUES RETURNING *;
SELECT run($$ uidgen.uid_release('seg', 'id') $$);
SELECT moved($$ uidgen.uid_release('seg', 'v') $$);
SELECT * FROM of_column('seg', 'v');
INSERT INTO seg DEFAULT VALUES RETURNING *;
SELECT uidgen.segment_create('seg', 2);
SELECT plan($$ uidgen.uid_adopt('seg', 'id', 'uid_segments.seg') $$);
SELECT setval('uid_segments.seg', max(id)) FROM seg;
SELECT run($$ uidgen.uid_adopt('seg', 'id', 'uid_segments.seg') $$);
INSERT INTO seg DEFAULT VALUES RETURNING id;
SELECT run($$ uidgen.uid_release('seg', 'id') $$);
INSERT INTO seg DEFAULT VALUES RETURNING id;
CREATE TEMPORARY SEQUENCE passing;
CREATE SEQUENCE uid_segments.numbers;
SECURITY LABEL FOR uidgen ON SEQUENCE uid_segments.numbers IS
  'segment name="numbers" step=null max_step=null registry_name="numbers" fleet=1 increment=1';
SELECT * FROM outcomes('SELECT uidgen.uid_adopt(''seg'', ''w'', %s)', $$'orders_pkey'$$, $$'passing'$$, $$'uid_segments.numbers'$$);
SELECT uidgen.segment_drop('numbers');
-- A segment's name as text does not tell which sequence gave the numbers.
ALTER TABLE seg ALTER id SET DEFAULT uidgen.segment_next('seg');
SELECT plan($$ uidgen.uid_adopt('seg', 'id') $$);
ALTER TABLE seg ALTER id SET DEFAULT nextval('seg_id_seq');
-- From a generator to the segment of the sequence that was kept: its values would be below.
SELECT count(*) > 0 AS adopted FROM uidgen.uid_adopt('seg', 'id', dry_run => false);
INSERT INTO seg DEFAULT VALUES;
SELECT plan($$ uidgen.uid_adopt('seg', 'id', 'seg_id_seq') $$);
-- The hint works when it is pasted, before uid_release() and after it. An identity is left.
\set ECHO none
CREATE FUNCTION hinted_default(call text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  hint text;
BEGIN
  EXECUTE 'SELECT ' || call;
  RETURN 'no error';
EXCEPTION WHEN object_not_in_prerequisite_state THEN
  GET STACKED DIAGNOSTICS hint = PG_EXCEPTION_HINT;
  EXECUTE substring(hint FROM '(ALTER TABLE .*::regclass\))\. ');
  RETURN 'pasted';
END
$$;
\set ECHO all
BEGIN;
SELECT hinted_default($$ uidgen.uid_adopt('seg', 'id', 'seg_id_seq') $$);
INSERT INTO seg DEFAULT VALUES RETURNING id;
ROLLBACK;
SELECT moved($$ uidgen.uid_release('seg', 'id') $$);
SELECT hinted_default($$ uidgen.uid_adopt('seg', 'id', 'seg_id_seq') $$);
INSERT INTO seg DEFAULT VALUES RETURNING id;
CREATE TABLE own (id bigint GENERATED ALWAYS AS IDENTITY);
SELECT moved($$ uidgen.uid_adopt('own', 'id') $$);
INSERT INTO own DEFAULT VALUES;
SELECT moved($$ uidgen.uid_release('own', 'id') $$);
SELECT plan($$ uidgen.uid_adopt('own', 'id', 'own_id_seq') $$);
DROP TABLE own;
DROP FUNCTION hinted_default;

-- integer, and the columns that refer to it, directly and not: the hint converts them.
CREATE TABLE customer (id serial PRIMARY KEY, name text, referrer int REFERENCES customer);
CREATE TABLE invoice (customer_id int REFERENCES customer UNIQUE, other bigint REFERENCES customer, partner int REFERENCES customer);
CREATE TABLE reminder (id smallint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, customer_id int REFERENCES invoice (customer_id));
INSERT INTO customer (name) VALUES ('a'), ('b');
INSERT INTO invoice VALUES (1, 1, 2);
INSERT INTO reminder (customer_id) VALUES (1);
\set ECHO none
CREATE FUNCTION convert(call text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  hint text;
BEGIN
  EXECUTE 'SELECT ' || call;
EXCEPTION WHEN datatype_mismatch THEN
  GET STACKED DIAGNOSTICS hint = PG_EXCEPTION_HINT;
  EXECUTE substring(hint FROM '(LOCK TABLE .*) COMMIT;');
END
$$;
\set ECHO all
SELECT plan($$ uidgen.uid_adopt('customer', 'id') $$);
SELECT convert($$ uidgen.uid_adopt('customer', 'id') $$);
SELECT moved($$ uidgen.uid_adopt('customer', 'id') $$);
INSERT INTO customer (name) VALUES ('c') RETURNING id > 100000000000000000 AS new;
INSERT INTO invoice SELECT max(id), max(id), max(id) FROM customer;
INSERT INTO reminder (customer_id) SELECT max(id) FROM customer;
SELECT moved($$ uidgen.uid_release('customer', 'id') $$);
INSERT INTO customer (name) VALUES ('d') RETURNING id;
SELECT convert($$ uidgen.uid_adopt('reminder', 'id') $$);
SELECT moved($$ uidgen.uid_adopt('reminder', 'id') $$);
DROP TABLE customer, invoice, reminder;
CREATE TABLE parent (id int);
CREATE TABLE child () INHERITS (parent);
SELECT plan($$ uidgen.uid_adopt('parent', 'id') $$);
SELECT convert($$ uidgen.uid_adopt('parent', 'id') $$);
SELECT type FROM of_column('child', 'id');
DROP TABLE parent, child;
-- A foreign key of a partition alone, and one that refers to a partition.
CREATE TABLE whole (id bigserial PRIMARY KEY) PARTITION BY RANGE (id);
CREATE TABLE whole_1 PARTITION OF whole FOR VALUES FROM (1) TO (1000);
CREATE TABLE refers (k int, ref int, part int REFERENCES whole_1) PARTITION BY LIST (k);
CREATE TABLE refers_1 PARTITION OF refers FOR VALUES IN (1);
ALTER TABLE refers_1 ADD FOREIGN KEY (ref) REFERENCES whole;
SELECT plan($$ uidgen.uid_adopt('whole', 'id') $$);
DROP TABLE refers, whole;

-- Partitions and inheritance.
CREATE TABLE log (id bigserial, at date) PARTITION BY RANGE (at);
CREATE TABLE log_old PARTITION OF log FOR VALUES FROM ('2026-01-01') TO ('2027-01-01');
CREATE TABLE log_new (id bigserial, at date);
ALTER TABLE log ATTACH PARTITION log_new FOR VALUES FROM ('2027-01-01') TO ('2028-01-01');
INSERT INTO log (at) VALUES ('2026-02-02'), ('2027-02-02');
SELECT plan($$ uidgen.uid_adopt('log_new', 'id') $$);
SELECT moved($$ uidgen.uid_adopt('log', 'id') $$);
INSERT INTO log (at) VALUES ('2026-02-02'), ('2027-02-02');
INSERT INTO log_new (at) VALUES ('2027-02-02');
SELECT tableoid::regclass, count(*) FILTER (WHERE id > 100000000000000000) AS new FROM log GROUP BY 1 ORDER BY 1;
SELECT moved($$ uidgen.uid_release('log', 'id') $$);
INSERT INTO log (at) VALUES ('2026-02-02') RETURNING id;
INSERT INTO log_new (at) VALUES ('2027-02-02') RETURNING id;
CREATE TABLE parts (id bigserial) PARTITION BY RANGE (id);
SELECT moved($$ uidgen.uid_adopt('parts', 'id') $$);
CREATE TABLE ledger (id bigint GENERATED ALWAYS AS IDENTITY, at date) PARTITION BY RANGE (at);
CREATE TABLE ledger_26 PARTITION OF ledger FOR VALUES FROM ('2026-01-01') TO ('2027-01-01');
INSERT INTO ledger (at) VALUES ('2026-02-02');
SELECT moved($$ uidgen.uid_adopt('ledger', 'id') $$);
INSERT INTO ledger_26 (at) VALUES ('2026-02-02');
SELECT moved($$ uidgen.uid_release('ledger', 'id') $$);
INSERT INTO ledger (at) VALUES ('2026-02-02') RETURNING id;
DROP TABLE ledger;
CREATE TABLE parent (id bigint GENERATED ALWAYS AS IDENTITY);
CREATE TABLE child (v int) INHERITS (parent);
CREATE TABLE grandchild () INHERITS (child);
ALTER TABLE child ALTER id ADD GENERATED BY DEFAULT AS IDENTITY;
SELECT plan($$ uidgen.uid_adopt('parent', 'id', dry_run => false) $$);
ALTER TABLE child ALTER id DROP IDENTITY;
INSERT INTO parent DEFAULT VALUES;
SELECT moved($$ uidgen.uid_adopt('parent', 'id') $$);
INSERT INTO child DEFAULT VALUES;
INSERT INTO grandchild DEFAULT VALUES;
SELECT tableoid::regclass, count(*) FILTER (WHERE id > 100000000000000000) AS new, count(*) FROM parent GROUP BY 1 ORDER BY 1;
SELECT moved($$ uidgen.uid_release('parent', 'id') $$);
INSERT INTO parent DEFAULT VALUES RETURNING id;

-- Columns of other kinds.
CREATE DOMAIN key AS bigint CHECK (VALUE > 0);
CREATE DOMAIN small_key AS integer;
CREATE DOMAIN smaller_key AS small_key;
CREATE TABLE kinds (none bigint, big key, small smaller_key, txt text, dec numeric(20), gen bigint GENERATED ALWAYS AS (none + 1) STORED,
  big_serial key DEFAULT nextval('orders_id_seq'));
CREATE VIEW kind_view AS TABLE kinds;
SELECT run($$ uidgen.uid_adopt('kinds', 'none') $$);
SELECT run($$ uidgen.uid_release('kinds', 'none', start => 1) $$);
SELECT moved($$ uidgen.uid_adopt('kinds', 'big') $$);
SELECT run($$ uidgen.uid_adopt('kinds', 'big_serial') $$);
SELECT plan($$ uidgen.uid_release('kinds', 'big_serial') $$);
INSERT INTO kinds DEFAULT VALUES RETURNING none, big > 100000000000000000 AS big, big_serial > 100000000000000000 AS big_serial;
SELECT * FROM outcomes('SELECT uidgen.uid_adopt(%s)', $$'kinds', 'small'$$, $$'kinds', 'txt'$$, $$'kinds', 'dec'$$, $$'kinds', 'gen'$$,
  $$'kinds', 'missing'$$, $$'kinds', 'ctid'$$, $$'kind_view', 'none'$$, $$'orders_id_seq', 'last_value'$$, $$4294967295, 'none'$$,
  $$'uidgen.worker_node', 'id'$$,
  $$NULL, 'none'$$);
SELECT outcome('SELECT uidgen.uid_release(''kinds'', NULL)');
-- The lines of a dry run, run by psql.
BEGIN;
SELECT l FROM uidgen.uid_adopt('kinds', 'big', 'uid_generators.uid_default') l WHERE l NOT LIKE '-- furthest id%'
\gexec
COMMIT;
SELECT expression FROM of_column('kinds', 'big');

-- Ids that are larger than those of the generator, for long or for minutes, and ids below which it has been raised.
CREATE TABLE later (id bigint PRIMARY KEY);
INSERT INTO later VALUES (uidgen.uid_encode(now() + interval '1 year', 0, 0, 0));
SELECT plan($$ uidgen.uid_adopt('later', 'id') $$);
ALTER TABLE later RENAME TO "100%s";
SELECT plan($$ uidgen.uid_adopt('"100%s"', 'id') $$);
ALTER TABLE "100%s" RENAME TO later;
UPDATE later SET id = 9223372036854775800;
SELECT plan($$ uidgen.uid_adopt('later', 'id') $$);
UPDATE later SET id = uidgen.uid_encode(now() + interval '9 minutes', 31, 31, 4095);
SELECT plan($$ uidgen.uid_adopt('later', 'id') $$);
UPDATE later SET id = uidgen.uid_encode(now() + interval '500 ms', 31, 31, 4095);
SELECT uidgen.uid_generator_raise('uid_generators.uid_default', id) FROM later;
SELECT run($$ uidgen.uid_adopt('later', 'id') $$);
SELECT uidgen.uid_generator_create('web', 'js53');
INSERT INTO later VALUES (uidgen.uid_encode(now() + interval '1 year', 0, 0, 0));
SELECT plan($$ uidgen.uid_adopt('later', 'id', 'uid_generators.web') $$);
-- Back from ids of 53 bits: the sequence again counts from the small ones. Ids too close to each other are refused.
CREATE TABLE pages (id bigserial PRIMARY KEY);
INSERT INTO pages DEFAULT VALUES;
SELECT moved($$ uidgen.uid_adopt('pages', 'id', 'uid_generators.web') $$);
INSERT INTO pages DEFAULT VALUES RETURNING id BETWEEN 10000000000000 AND 9007199254740991 AS web;
SELECT moved($$ uidgen.uid_release('pages', 'id') $$);
INSERT INTO pages DEFAULT VALUES RETURNING id;
SELECT count(*) > 0 AS adopted FROM uidgen.uid_adopt('pages', 'id', 'uid_generators.web', dry_run => false);
SELECT plan($$ uidgen.uid_release('pages', 'id', start => (SELECT min(id) - 1000 FROM pages WHERE id > 10000000000000)) $$);
-- A counter that counts downwards.
CREATE SEQUENCE falling INCREMENT -1;
CREATE TABLE falls (id bigint DEFAULT nextval('falling'));
ALTER SEQUENCE falling OWNED BY falls.id;
SELECT count(*) > 0 AS adopted FROM uidgen.uid_adopt('falls', 'id', dry_run => false);
SELECT plan($$ uidgen.uid_release('falls', 'id') $$);
SELECT run($$ uidgen.uid_release('falls', 'id', start => -1) $$);

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
GRANT INSERT ON shop.sale, shop.kept, shop.bill TO regress_clerk;
RESET ROLE;
REVOKE CREATE ON SCHEMA shop FROM regress_owner;
SET ROLE regress_owner;
SELECT * FROM outcomes('SELECT uidgen.uid_%s(''public.orders'', ''id'')', 'adopt', 'release');
-- A generator of another role, who alone can grant it. No CREATE on the schema, so the identity's sequence cannot be kept.
SELECT plan($$ uidgen.uid_adopt('shop.sale', 'id', 'uid_generators.web') $$);
RESET ROLE;
GRANT USAGE ON SEQUENCE uid_generators.web TO regress_owner WITH GRANT OPTION;
SET ROLE regress_owner;
SELECT plan($$ uidgen.uid_adopt('shop.sale', 'id', 'uid_generators.web', dry_run => false) $$);
RESET ROLE;
GRANT CREATE ON SCHEMA shop TO regress_owner;
SET ROLE regress_owner;
SELECT run($$ uidgen.uid_adopt('shop.sale', 'id', 'uid_generators.web') $$);
SET ROLE regress_clerk;
INSERT INTO shop.sale DEFAULT VALUES;
SET ROLE regress_owner;
SELECT moved($$ uidgen.uid_release('shop.sale', 'id') $$);
SET ROLE regress_clerk;
INSERT INTO shop.sale DEFAULT VALUES;
-- There and back again, by the default generator, which the owner of the table cannot raise.
SET ROLE regress_owner;
SELECT moved($$ uidgen.uid_adopt('shop.bill', 'id') $$);
SET ROLE regress_clerk;
INSERT INTO shop.bill DEFAULT VALUES;
SET ROLE regress_owner;
SELECT run($$ uidgen.uid_release('shop.bill', 'id') $$);
SET ROLE regress_clerk;
INSERT INTO shop.bill DEFAULT VALUES;
SET ROLE regress_owner;
SELECT moved($$ uidgen.uid_adopt('shop.bill', 'id') $$);
INSERT INTO shop.bill DEFAULT VALUES RETURNING id > (SELECT max(id) FROM shop.bill) AS above;
INSERT INTO shop.bill VALUES (uidgen.uid_encode(now() + interval '1 minute', 0, 0, 0));
SELECT plan($$ uidgen.uid_adopt('shop.bill', 'id', 'uid_generators.uid_default') $$);
-- The sequence of an identity is another one afterwards.
GRANT USAGE ON SEQUENCE shop.kept_id_seq TO regress_clerk;
SELECT moved($$ uidgen.uid_adopt('shop.kept', 'id', 'shop.kept_id_seq') $$);
SET ROLE regress_clerk;
INSERT INTO shop.kept DEFAULT VALUES;
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
SELECT run($$ uidgen.uid_adopt('shop.sale', 'id', 'uid_generators.web') $$);
SELECT relname, relowner::regrole FROM pg_class WHERE relnamespace = 'shop'::regnamespace AND relkind = 'S' ORDER BY 1;
RESET ROLE;
-- Row-level security would hide ids.
ALTER TABLE shop.kept ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
SET ROLE regress_owner;
SELECT plan($$ uidgen.uid_adopt('shop.kept', 'id') $$);
RESET ROLE;

-- This session's nextval() has values in its cache, and a range is reserved below the largest id.
CREATE SEQUENCE hoard CACHE 10;
CREATE TABLE hoarded (id bigint);
SELECT nextval('hoard'), uidgen.segment_next('hoard'::regclass);
INSERT INTO hoarded VALUES (500);
SELECT run($$ uidgen.uid_adopt('hoarded', 'id', 'hoard') $$);
INSERT INTO hoarded DEFAULT VALUES RETURNING id > 500 AS beyond;
BEGIN;
ALTER SEQUENCE hoard RESTART;
SELECT nextval('hoard'), uidgen.segment_next('hoard'::regclass);
TRUNCATE hoarded;
INSERT INTO hoarded VALUES (200);
SELECT moved($$ uidgen.uid_adopt('hoarded', 'id', 'hoard') $$);
INSERT INTO hoarded DEFAULT VALUES RETURNING id > 200 AS beyond;
ROLLBACK;
DROP TABLE hoarded;
DROP SEQUENCE hoard;

-- A sequence that counts down.
CREATE SEQUENCE lower INCREMENT -1;
CREATE TABLE lower_ids (id bigint PRIMARY KEY);
INSERT INTO lower_ids VALUES (-2), (-1);
SELECT plan($$ uidgen.uid_adopt('lower_ids', 'id', 'lower') $$);
SELECT setval('lower', min(id)) FROM lower_ids;
SELECT run($$ uidgen.uid_adopt('lower_ids', 'id', 'lower') $$);
INSERT INTO lower_ids DEFAULT VALUES RETURNING id;
DROP TABLE lower_ids;
DROP SEQUENCE lower;

-- A transaction whose snapshot may be old, and a rollback.
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT plan($$ uidgen.uid_adopt('orders', 'id', dry_run => false) $$);
ROLLBACK;
BEGIN;
SELECT count(*) > 0 AS adopted FROM uidgen.uid_adopt('orders', 'id', dry_run => false);
ROLLBACK;
SELECT * FROM of_column('orders', 'id');
-- No default generator.
BEGIN;
SELECT uidgen.uid_default_set(uidgen.uid_generator_create('gone'));
DROP SEQUENCE uid_generators.gone;
SELECT plan($$ uidgen.uid_adopt('orders', 'id') $$);
SELECT plan($$ uidgen.uid_release('later', 'id', start => 1) $$);
ROLLBACK;

-- A serial column that became an identity: its sequence is the identity's, although the column owns the former one, too.
CREATE TABLE was_serial (id bigserial);
ALTER TABLE was_serial ALTER COLUMN id DROP DEFAULT, ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY;
SELECT sequence FROM uid_internal.uid_movable_column('was_serial', 'id');
DROP TABLE was_serial;

-- A table of Citus, by the catalog that it has.
SET allow_system_table_mods = on;
CREATE TABLE pg_catalog.pg_dist_partition (logicalrelid regclass);
CREATE TABLE distributed (id bigint PRIMARY KEY DEFAULT 7, item text);
INSERT INTO distributed DEFAULT VALUES;
INSERT INTO pg_catalog.pg_dist_partition VALUES ('distributed');
SELECT plan($$ uidgen.uid_adopt('distributed', 'id') $$);
SELECT plan($$ uidgen.uid_adopt('distributed', 'id', 'uid_generators.web') $$);
SELECT plan($$ uidgen.uid_adopt('distributed', 'id', dry_run => false) $$);
SELECT plan($$ uidgen.uid_release('distributed', 'id') $$);
DROP TABLE pg_catalog.pg_dist_partition;
RESET allow_system_table_mods;
DROP TABLE distributed;

-- setval(max(id)), which imports and ORMs send: every sequence that the column owns can hold an id.
CREATE TABLE was_narrow (id serial);
ALTER TABLE was_narrow ALTER COLUMN id DROP DEFAULT, ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (MAXVALUE 1000);
INSERT INTO was_narrow SELECT FROM generate_series(1, 3);
ALTER TABLE was_narrow ALTER COLUMN id TYPE bigint;
SELECT run($$ uidgen.uid_adopt('was_narrow', 'id') $$);
INSERT INTO was_narrow DEFAULT VALUES;
SELECT s.relname, setval(s.oid, max(t.id)) = max(t.id) AS held
  FROM was_narrow t, pg_class s JOIN pg_depend d ON d.objid = s.oid
 WHERE d.refobjid = 'was_narrow'::regclass AND s.relkind = 'S' GROUP BY s.oid, s.relname ORDER BY 1;
SELECT run($$ uidgen.uid_release('was_narrow', 'id') $$);
INSERT INTO was_narrow DEFAULT VALUES;
SELECT id FROM was_narrow WHERE id < 1000 ORDER BY 1;
DROP TABLE was_narrow;

-- A sequence that the transaction has made, and drawn from.
BEGIN;
CREATE SEQUENCE fresh;
SELECT uidgen.segment_next('fresh'::regclass);
CREATE TABLE filled (id bigint);
INSERT INTO filled VALUES (50);
SELECT setval('fresh', max(id)) FROM filled;
SELECT count(*) FROM uidgen.uid_adopt('filled', 'id', 'fresh', dry_run => false);
INSERT INTO filled DEFAULT VALUES RETURNING id > 50 AS beyond;
ROLLBACK;

-- A sequence has any name, also that of an alias.
CREATE SEQUENCE q;
CREATE SEQUENCE v;
SELECT uid_internal.uid_sequence_next(s) FROM (VALUES ('q'::regclass), ('v')) AS named(s);
DROP SEQUENCE q, v;

DROP SCHEMA shop CASCADE;
DROP TABLE orders, seg, log, parts, parent, kinds, later, pages, falls CASCADE;
DROP OWNED BY regress_owner, regress_clerk;
DROP ROLE regress_owner, regress_clerk, "regress Admin";
DROP FUNCTION masked, plan, state, run, moved, of_column, convert(text), outcome, outcomes;
DROP DOMAIN key, smaller_key, small_key;
SELECT uidgen.uid_generator_drop('uid_generators.web'), uidgen.segment_drop('seg');
DROP EXTENSION uidgen;
DROP SCHEMA uidgen;
