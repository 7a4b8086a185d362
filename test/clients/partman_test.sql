-- pg_partman: partitions by id that are one day each, because the time is in the high bits.
SET client_min_messages = warning;
CREATE SCHEMA partman;
CREATE EXTENSION pg_partman SCHEMA partman;

CREATE TABLE public.events (id bigint NOT NULL DEFAULT uidgen.uid_next(), data jsonb) PARTITION BY RANGE (id);
SELECT extversion LIKE '4.%' AS is_4 FROM pg_extension WHERE extname = 'pg_partman' \gset
\if :is_4
SELECT partman.create_parent('public.events', 'id', 'native', (86400000::bigint << 22)::text,
    p_start_partition => uidgen.uid_lower_bound(date_trunc('day', now(), 'UTC'))::text);
\else
SELECT partman.create_parent('public.events', 'id', (86400000::bigint << 22)::text,
    p_start_partition => uidgen.uid_lower_bound(date_trunc('day', now(), 'UTC'))::text);
\endif

INSERT INTO public.events SELECT FROM generate_series(1, 100);
DO $$ BEGIN
    ASSERT (SELECT count(*) = 100 FROM public.events);
    ASSERT (SELECT count(*) = 0 FROM public.events_default), 'there is a partition for today';
END $$;
-- The bounds are midnights in UTC.
SELECT 1 / (count(*) > 3 AND bool_and(t = date_trunc('day', t, 'UTC')))::integer
  FROM pg_inherits JOIN pg_class ON oid = inhrelid,
       substring(pg_get_expr(relpartbound, oid) from 'FROM \(''(\d+)') AS first,
       uidgen.uid_timestamp(first::bigint) AS t
 WHERE inhparent = 'public.events'::regclass AND first IS NOT NULL;
SELECT partman.run_maintenance('public.events');
