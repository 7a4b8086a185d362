-- Statements that frameworks send: COPY, ON CONFLICT, MERGE, partitions, generated columns.
SET client_min_messages = warning;
CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT uidgen.uid_next(), item text UNIQUE, amount integer DEFAULT 1);

-- COPY draws an id for each row whose column list leaves id out.
COPY orders (item) FROM STDIN;
tea
milk
\.
DO $$ BEGIN ASSERT (SELECT count(DISTINCT id) = 2 AND min(id) > 0 FROM orders); END $$;

-- ON CONFLICT: a row that is there keeps its id, and RETURNING shows that one. The id that was drawn for it is a gap.
SELECT id AS tea FROM orders WHERE item = 'tea' \gset
INSERT INTO orders (item) VALUES ('tea') ON CONFLICT (item) DO UPDATE SET amount = orders.amount + 1
RETURNING id = :tea AND amount = 2 AS same, uidgen.uid_last() > id AS gap \gset
SELECT 1 / (:'same' AND :'gap')::integer;
INSERT INTO orders (item) VALUES ('tea') ON CONFLICT DO NOTHING RETURNING id;
SELECT 1 / (:ROW_COUNT = 0)::integer;

-- MERGE: only rows that it inserts get an id.
SELECT uidgen.uid_last() AS before \gset
MERGE INTO orders o USING (VALUES ('tea'), ('bread')) AS v (item) ON o.item = v.item
 WHEN MATCHED THEN UPDATE SET amount = o.amount + 1
 WHEN NOT MATCHED THEN INSERT (item) VALUES (v.item);
SELECT 1 / (array_agg(item) = ARRAY['bread'])::integer FROM orders WHERE id > :before;
SELECT uidgen.uid_last() AS before \gset
MERGE INTO orders o USING (VALUES ('tea'), ('bread')) AS v (item) ON o.item = v.item
 WHEN MATCHED THEN UPDATE SET amount = o.amount + 1
 WHEN NOT MATCHED THEN INSERT (item) VALUES (v.item);
SELECT 1 / (uidgen.uid_last() = :before)::integer;

-- A column generated from the id. The three numbers are the layout's: epoch, tick in microseconds, bits below the time.
CREATE TABLE events (
    id bigint PRIMARY KEY DEFAULT uidgen.uid_next(),
    created timestamptz GENERATED ALWAYS AS (uidgen.uid_timestamp(id, '2026-01-01 00:00+00', 1000, 22)) STORED
) PARTITION BY RANGE (id);
CREATE TABLE events_rest PARTITION OF events DEFAULT;
INSERT INTO events DEFAULT VALUES;
INSERT INTO events_rest DEFAULT VALUES;   -- a partition has the default of its table
DO $$ BEGIN
    ASSERT (SELECT count(*) = 2 AND bool_and(created = uidgen.uid_timestamp(id)) FROM events);
    ASSERT (SELECT count(*) = 2 FROM events WHERE created > now() - interval '1 hour');
END $$;
