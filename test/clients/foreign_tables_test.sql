-- Foreign tables: which server evaluates the default? The datacenter id in the ids tells. The other server is another
-- database of this one.
SET client_min_messages = warning;
\set here :DBNAME
ALTER DATABASE :"here" SET uidgen.datacenter_id = 3;
CREATE DATABASE shard TEMPLATE template_uidgen;
ALTER DATABASE shard SET uidgen.datacenter_id = 7;
\c shard
CREATE TABLE public.orders (id bigint PRIMARY KEY DEFAULT uidgen.uid_next(), item text);

\c :here
SET client_min_messages = warning;
CREATE EXTENSION postgres_fdw SCHEMA public;
CREATE SERVER shard FOREIGN DATA WRAPPER postgres_fdw OPTIONS (host :'HOST', port :'PORT', dbname 'shard');
CREATE USER MAPPING FOR CURRENT_USER SERVER shard;
CREATE FUNCTION public.datacenter_of(id bigint) RETURNS integer
LANGUAGE sql AS 'SELECT datacenter_id FROM uidgen.uid_decode(id)';

CREATE FOREIGN TABLE public.here (id bigint NOT NULL DEFAULT uidgen.uid_next(), item text)
    SERVER shard OPTIONS (table_name 'orders');
INSERT INTO public.here (item) VALUES ('tea') RETURNING id AS tea \gset
SELECT 1 / (item = 'tea')::integer FROM public.here WHERE id = :tea;
INSERT INTO public.here (item) SELECT 'here' FROM generate_series(1, 100);
SELECT 1 / (count(DISTINCT id) = 101 AND bool_and(datacenter_of(id) = 3))::integer FROM public.here;

CREATE FOREIGN TABLE public.there (item text) SERVER shard OPTIONS (table_name 'orders');
INSERT INTO public.there SELECT 'there' FROM generate_series(1, 100);
SELECT 1 / (count(DISTINCT id) = 100 AND bool_and(datacenter_of(id) = 7))::integer
  FROM public.here WHERE item = 'there';

-- A column without a default is sent as NULL.
CREATE FOREIGN TABLE public.nowhere (id bigint, item text) SERVER shard OPTIONS (table_name 'orders');
DO $$ BEGIN
    INSERT INTO public.nowhere (item) VALUES ('nowhere');
    RAISE 'it was taken';
EXCEPTION WHEN not_null_violation THEN
    ASSERT SQLERRM LIKE 'null value in column "id"%', SQLERRM;
END $$;
SELECT 1 / (count(*) = 201)::integer FROM public.here;
