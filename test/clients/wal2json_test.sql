-- wal2json and pgoutput: with the settings of docs/change-data.md the stream has the application's rows, with exact ids, and
-- none of the extension's, which has a row for each generator and the secret of each key.
SET client_min_messages = warning;
CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT uidgen.uid_next(), item text);
CREATE PUBLICATION everything FOR ALL TABLES;
CREATE PUBLICATION app FOR TABLES IN SCHEMA public;
SELECT pg_create_logical_replication_slot(slot, plugin)
  FROM (VALUES ('all_tables', 'wal2json'), ('some', 'wal2json'), ('everything', 'pgoutput'), ('app', 'pgoutput'))
       AS slots (slot, plugin) \g /dev/null
SELECT uidgen.uid_key_create('orders') \gset
INSERT INTO orders (item) VALUES ('tea');
SELECT uidgen.uid_next('uid_generators.web') \gset
INSERT INTO orders (item) VALUES ('milk');

CREATE TEMP TABLE stream AS
SELECT 'all' AS slot, data::jsonb FROM pg_logical_slot_get_changes('all_tables', NULL, NULL, 'format-version', '2')
UNION ALL
SELECT 'some', data::jsonb FROM pg_logical_slot_get_changes('some', NULL, NULL, 'format-version', '2', 'add-tables', 'public.*');
DO $$ BEGIN
    ASSERT (SELECT array_agg(value::bigint ORDER BY value::bigint) = (SELECT array_agg(id ORDER BY id) FROM orders)
              FROM stream, jsonb_path_query(data, '$.columns[*] ? (@.name == "id").value') AS value WHERE slot = 'some');
    ASSERT (SELECT count(*) = 2 FROM stream WHERE slot = 'some' AND data ? 'schema');
    ASSERT (SELECT bool_or(data ->> 'schema' = 'uid_secrets') FROM stream WHERE slot = 'all');
END $$;

CREATE TEMP TABLE publications AS
SELECT name, string_agg(encode(data, 'escape'), '') AS stream FROM unnest(ARRAY['app', 'everything']) AS name,
       pg_logical_slot_get_binary_changes(name, NULL, NULL, 'proto_version', '1', 'publication_names', name) GROUP BY name;
DO $$ BEGIN
    ASSERT (SELECT bool_and(stream LIKE '%' || id || '%') FROM publications, orders);
    ASSERT (SELECT bool_and((stream LIKE '%uid_secrets%') = (name = 'everything')) FROM publications);
END $$;
SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE database = current_database() \g /dev/null
