-- pg_partman: partitions by id that are one day each, because the time is in the high bits. The recipe is that of
-- docs/clients.md, which is for version 4 and says what is different in version 5.
SET client_min_messages = warning;
SELECT default_version NOT LIKE '4.%' AS is_newer FROM pg_available_extensions WHERE name = 'pg_partman' \gset
\if :is_newer
\! sed -i "s/'native', //" partman_recipe.sql
\endif
\i partman_recipe.sql

INSERT INTO public.events SELECT FROM generate_series(1, 100);
DO $$ BEGIN
    ASSERT (SELECT count(*) = 100 FROM public.events);
    ASSERT (SELECT count(*) = 0 FROM public.events_default), 'there is a partition for today';
END $$;

CREATE VIEW partitions AS
SELECT first, uidgen.uid_timestamp(first::bigint) AS t
  FROM pg_inherits JOIN pg_class ON oid = inhrelid,
       substring(pg_get_expr(relpartbound, oid) from 'FROM \(''(\d+)') AS first
 WHERE inhparent = 'public.events'::regclass AND first IS NOT NULL;

-- The bounds are midnights in UTC, thirty days ahead.
SELECT 1 / (bool_and(t = date_trunc('day', t, 'UTC')) AND max(t) = date_trunc('day', now(), 'UTC') + interval '720 hours')::integer
  FROM partitions;

-- Maintenance counts from the largest id, here one of the third day from now, and drops what is older than the retention.
INSERT INTO public.events VALUES (uidgen.uid_lower_bound(date_trunc('day', now(), 'UTC') + interval '72 hours'));
UPDATE partman.part_config SET retention = (retention::bigint / 90)::text WHERE parent_table = 'public.events';
SELECT partman.run_maintenance('public.events');
SELECT 1 / (min(t) = date_trunc('day', now(), 'UTC') + interval '48 hours'
            AND max(t) = date_trunc('day', now(), 'UTC') + interval '792 hours')::integer
  FROM partitions;
