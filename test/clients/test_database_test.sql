-- Test databases that a framework creates, as a role that is no superuser: the first migration creates the extension,
-- or a template has it.
SET client_min_messages = warning;
CREATE DATABASE test_bare;
CREATE DATABASE test_from_template TEMPLATE template_uidgen;

\c test_bare
SET client_min_messages = warning;
CREATE SCHEMA IF NOT EXISTS uidgen;
CREATE EXTENSION IF NOT EXISTS uidgen SCHEMA uidgen;
SELECT 1 / (uidgen.uid_next() > 0)::integer;
CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT uidgen.uid_next());
INSERT INTO orders DEFAULT VALUES;

-- The same migration in the other one.
\c test_from_template
SET client_min_messages = warning;
CREATE SCHEMA IF NOT EXISTS uidgen;
CREATE EXTENSION IF NOT EXISTS uidgen SCHEMA uidgen;
SELECT 1 / (uidgen.uid_next() > 0)::integer;

-- Frameworks copy and drop test databases right after sessions drew there.
\c test_bare
SELECT 1 / (uidgen.uid_next() > 0)::integer;
\c postgres
CREATE DATABASE test_copy TEMPLATE test_bare;
DROP DATABASE test_bare;
DROP DATABASE test_copy;
DROP DATABASE test_from_template;
