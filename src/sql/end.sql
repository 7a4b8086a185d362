-- The end of the install script: privileges, a notice for the role that creates the extension, a check of all names.

-- ---------------------------------------------------------------------------------------------------------
-- Privileges: all of them, and only here. Each object gets those that are named below, whatever ALTER DEFAULT
-- PRIVILEGES says of the objects of the superuser.
-- ---------------------------------------------------------------------------------------------------------

DO $$
DECLARE
  grantees text := (
    SELECT coalesce(pg_catalog.string_agg(DISTINCT CASE a.grantee WHEN 0::oid THEN 'PUBLIC'
                                                   ELSE a.grantee::regrole::text END, ', '), 'PUBLIC')
      FROM pg_catalog.pg_default_acl d CROSS JOIN LATERAL pg_catalog.aclexplode(d.defaclacl) a);
  o record;
BEGIN
  FOR o IN
    SELECT CASE i.type WHEN 'view' THEN 'table' ELSE i.type END AS kind, i.identity,
           CASE WHEN i.type IN ('function', 'procedure', 'type') THEN ', PUBLIC' ELSE '' END AS rest
      FROM pg_catalog.pg_extension e
      JOIN pg_catalog.pg_depend d ON d.refclassid = e.tableoid AND d.refobjid = e.oid AND d.deptype = 'e'
     CROSS JOIN LATERAL pg_catalog.pg_identify_object(d.classid, d.objid, 0) i
     WHERE e.extname = 'uidgen' AND i.type <> 'event trigger' AND i.identity NOT LIKE '%[]' -- an array type
       AND EXISTS (SELECT FROM pg_catalog.pg_default_acl)
  LOOP
    EXECUTE pg_catalog.format('REVOKE ALL ON %1$s %2$s FROM %3$s; GRANT ALL ON %1$s %2$s TO CURRENT_USER%4$s',
                              o.kind, o.identity, grantees, o.rest);
  END LOOP;
END
$$;

-- What the owner of the database grants on these is then a grant by the owner of the object. A dump has other grants
-- under SET SESSION AUTHORIZATION, which only superusers may run when they restore it.
ALTER TABLE worker_node OWNER TO pg_database_owner;
ALTER SCHEMA uid_generators OWNER TO pg_database_owner;
ALTER SCHEMA uid_segments OWNER TO pg_database_owner;
ALTER SCHEMA uid_keys OWNER TO pg_database_owner;
-- A change of owner leaves what pg_dump compares with (pg_init_privs) as it was, so a type with privileges gets them
-- again.
DO $$
BEGIN
  IF EXISTS (SELECT FROM pg_catalog.pg_default_acl) THEN
    REVOKE ALL ON TYPE worker_node FROM PUBLIC;
    GRANT USAGE ON TYPE worker_node TO PUBLIC;
  END IF;
END
$$;

-- Who may look and draw.
GRANT USAGE ON SCHEMA uid_generators, uid_segments, uid_keys TO PUBLIC;
GRANT USAGE ON SEQUENCE uid_generators.uid_default TO PUBLIC;
GRANT SELECT ON uid_preset, uid_segment, uid_generator, uid_generator_status, uid_generator_limits,
  uid_generator_columns, uid_key_config, segment_status, uid_stat, uid_stat_server TO PUBLIC;
-- In views and functions, with the rights of their callers.
GRANT USAGE ON SCHEMA uid_internal TO PUBLIC;
REVOKE EXECUTE ON ALL FUNCTIONS IN SCHEMA uid_internal FROM PUBLIC;
GRANT EXECUTE ON FUNCTION uid_internal.uid_home, uid_internal.uid_layout,
  uid_internal.uid_define_segment, uid_internal.uid_read_generator,
  uid_internal.uid_read_segment, uid_internal.uid_change_segment,
  uid_internal.uid_look_up_segment, uid_internal.uid_reserve_block,
  uid_internal.uid_create_original, uid_internal.uid_live_generators, uid_internal.uid_live_segments,
  uid_internal.uid_counters, uid_internal.uid_server_counters, uid_internal.uid_sequence_next,
  uid_internal.uid_movable_column, uid_internal.uid_check_width, uid_internal.uid_beyond_plan,
  uid_internal.uid_grant_plan, uid_internal.uid_adopt_plan, uid_internal.uid_release_plan, uid_internal.uid_lock_first,
  uid_internal.uid_move TO PUBLIC;
GRANT SELECT ON uid_internal.generators, uid_internal.segments, uid_internal.keys TO PUBLIC;

-- The owner of the database dumps and restores.
GRANT USAGE ON SCHEMA uid_secrets TO pg_database_owner;
GRANT EXECUTE ON FUNCTION uid_internal.uid_write_node TO pg_database_owner;
GRANT SELECT, INSERT ON uid_secrets.uid_key TO pg_database_owner;
GRANT SELECT, UPDATE ON SEQUENCE uid_generators.uid_default, worker_node_id_seq TO pg_database_owner;

-- Who sees the server and its fleet, and who administers it.
GRANT SELECT ON worker_node, uid_registry_status TO pg_monitor;
GRANT EXECUTE ON FUNCTION uid_internal.uid_registrar() TO pg_monitor;
REVOKE EXECUTE ON FUNCTION uid_fleet_move() FROM PUBLIC;

-- ---------------------------------------------------------------------------------------------------------
-- What the role that creates the extension should know
-- ---------------------------------------------------------------------------------------------------------

-- An install script runs with client_min_messages at WARNING or above. The notice comes unless a role, a database or
-- the server asks for less. What a session has SET cannot be seen here.
DO $$
DECLARE
  loaded text := pg_catalog.current_setting('shared_preload_libraries');
BEGIN
  IF pg_catalog.current_setting('server_version_num')::integer < 170000
     AND loaded !~ '(^|[^a-z0-9_])uidgen($|[^a-z0-9_])' THEN
    RAISE WARNING 'no id can be drawn until the server has loaded uidgen'
      USING HINT = pg_catalog.format('Set shared_preload_libraries = ''%s'' in postgresql.conf and restart the server.',
                                     pg_catalog.concat_ws(', ', NULLIF(loaded, ''), 'uidgen'));
  END IF;
  IF coalesce(pg_catalog.current_setting('uidgen.datacenter_id', true), '-1') = '-1'
     AND coalesce(pg_catalog.current_setting('uidgen.registry', true), '') = ''
     AND (SELECT s.reset_val NOT IN ('warning', 'error') FROM pg_catalog.pg_settings s
           WHERE s.name = 'client_min_messages') THEN
    PERFORM pg_catalog.set_config('client_min_messages', 'notice', true);
    RAISE NOTICE 'ids of this database could collide with ids of other databases, although this is unlikely'
      USING DETAIL = 'In the default layout, two databases have the same node with a probability of 1 in 1024.',
            HINT = 'To rule collisions out, set uidgen.datacenter_id or uidgen.registry (see README.md, More than one '
                   'database).';
  END IF;
END
$$;

-- ---------------------------------------------------------------------------------------------------------
-- The end: every object is in a schema of the extension, and depends on nothing elsewhere that a role could have made.
-- So no name has meant another object than it should. Languages are those of the server.
-- ---------------------------------------------------------------------------------------------------------

DO $$
DECLARE
  stray record;
BEGIN
  WITH RECURSIVE extension(class, oid, home) AS (
    SELECT e.tableoid, e.oid, e.extnamespace FROM pg_catalog.pg_extension e WHERE e.extname = 'uidgen'
  ), part(class, oid) AS (     -- members, their rules, triggers, defaults, constraints, indexes and row types
    SELECT d.classid, d.objid
      FROM extension x JOIN pg_catalog.pg_depend d ON d.refclassid = x.class AND d.refobjid = x.oid AND d.deptype = 'e'
     UNION
    SELECT d.classid, d.objid
      FROM part p JOIN pg_catalog.pg_depend d ON d.refclassid = p.class AND d.refobjid = p.oid
       AND d.deptype IN ('a', 'i'))
  SELECT pg_catalog.pg_describe_object(d.classid, d.objid, 0) AS object,
         pg_catalog.pg_describe_object(d.refclassid, d.refobjid, 0) AS needed
    INTO stray
    FROM extension x CROSS JOIN part p JOIN pg_catalog.pg_depend d ON d.classid = p.class AND d.objid = p.oid
   WHERE NOT (d.refclassid = x.class AND d.refobjid = x.oid)
     AND NOT (d.refclassid = 'pg_catalog.pg_namespace'::regclass::oid AND d.refobjid = x.home)
     AND (d.refclassid = 'pg_catalog.pg_namespace'::regclass::oid OR d.refobjid >= 16384::oid) -- FirstNormalObjectId
     AND d.refclassid <> 'pg_catalog.pg_language'::regclass::oid
     AND NOT EXISTS (SELECT FROM part q WHERE q.class = d.refclassid AND q.oid = d.refobjid)
   LIMIT 1;
  IF FOUND THEN
    RAISE EXCEPTION 'extension uidgen would depend on an object that is not its own'
      USING ERRCODE = 'object_not_in_prerequisite_state',
            DETAIL = pg_catalog.format('Its %s depends on %s.', stray.object, stray.needed),
            HINT = 'Create the extension in a schema of its own that no other role owns or renames.';
  END IF;
END
$$;
