-- The beginning of the install script: how its names are bound, and its schemas. The Makefile puts it together out of
-- the files of src/sql, in the order that it lists them in.
\echo Use "CREATE EXTENSION uidgen" to load this file. \quit

-- ---------------------------------------------------------------------------------------------------------
-- Names. A role that is no superuser may run this script, with the rights of a superuser, in a schema of its own. It
-- may create functions and operators there beforehand, and rename the schema meanwhile. So in this script and in those
-- that will update to later versions:
--
--   1. The first statement locks the schema's name until the end of the transaction. The last one checks that all
--      objects are in the schemas that they were made in, and depend on nothing elsewhere. An update also checks
--      the owners of objects, because the owner of the extension can add objects of its own to it.
--   2. What PostgreSQL runs at once, and operators and functions in views, defaults and constraints, are qualified with
--      pg_catalog or have an exact match there. No statement calls a function of the extension.
--   3. What runs in every session is in the schema uid_internal, which belongs to the superuser.
--   4. Privileges are granted in one place, at the end, after default privileges were taken back.
-- ---------------------------------------------------------------------------------------------------------

DO $$
BEGIN
  PERFORM FROM pg_catalog.pg_extension e JOIN pg_catalog.pg_namespace n ON n.oid = e.extnamespace
         WHERE e.extname = 'uidgen'
           AND pg_catalog.format('%I, pg_temp', n.nspname) = pg_catalog.current_setting('search_path')
           FOR KEY SHARE OF n;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'schema of extension uidgen was renamed by another session'
      USING ERRCODE = 'object_not_in_prerequisite_state', HINT = 'Run CREATE EXTENSION again.';
  END IF;
END
$$;

-- ---------------------------------------------------------------------------------------------------------
-- The schemas for the sequences of generators and named segments, separate from the relations of applications.
-- Every role may name the sequences. A role needs USAGE on a sequence to draw, and CREATE on the schema to create.
-- ---------------------------------------------------------------------------------------------------------

CREATE SCHEMA uid_internal;
COMMENT ON SCHEMA uid_internal IS 'Objects of uidgen that applications do not use.';
CREATE SCHEMA uid_secrets;
COMMENT ON SCHEMA uid_secrets IS
  'Tables of uidgen with secrets. Only the owner of the database may name them, for dumps.';
-- The owner of the extension's schema can rename it, and the owner of the extension can drop it, and put other objects
-- in its place while a function runs. So a function in PL/pgSQL that a user calls begins with uid_home(), outside of
-- any subtransaction. From then on the names of the extension keep their meaning. The types of arguments match
-- exactly, because another role that may create in the extension's schema could add a better match.
CREATE FUNCTION uid_internal.uid_home() RETURNS text
LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'uid_home';
COMMENT ON FUNCTION uid_internal.uid_home() IS
  'Returns the name of the extension''s schema, quoted. Until the end of the transaction it cannot be renamed, nor '
  'the extension dropped.';
CREATE FUNCTION uid_internal.uid_lock_first(relation regclass) RETURNS void
LANGUAGE c STRICT VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'uid_lock_first';
COMMENT ON FUNCTION uid_internal.uid_lock_first(regclass) IS
  'Locks a table or sequence of the caller in an attempt of uid_move(), and looks for a deadlock soon.';
CREATE SCHEMA uid_generators;
CREATE SCHEMA uid_segments;
COMMENT ON SCHEMA uid_generators IS
  'Lease sequences of generators. last_value is the generator''s high-water mark: the highest tick ever leased.';
COMMENT ON SCHEMA uid_segments IS 'Sequences of uidgen''s named segments, one for each segment.';
