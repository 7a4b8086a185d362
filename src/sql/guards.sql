-- What keeps the tables true: drops of sequences, replication, dumps. PostgreSQL calls all of this; nobody else does.
--
-- A drop of a sequence deletes its row. Otherwise the row could later match another sequence with the same OID.

-- The body is bound to the tables here, so it finds them whatever their schema is called when it runs. Returns whether
-- the default's row was deleted.
CREATE FUNCTION uid_internal.uid_delete_rows(dropped pg_catalog.oid[]) RETURNS boolean
LANGUAGE sql
BEGIN ATOMIC
  DELETE FROM uid_segment WHERE sequence::pg_catalog.oid OPERATOR(pg_catalog.=) ANY (dropped);
  DELETE FROM uid_secrets.uid_key WHERE sequence::pg_catalog.oid OPERATOR(pg_catalog.=) ANY (dropped);
  WITH deleted AS (
    DELETE FROM uid_generator WHERE generator::pg_catalog.oid OPERATOR(pg_catalog.=) ANY (dropped) RETURNING is_default
  )
  SELECT EXISTS (SELECT FROM deleted WHERE is_default);
END;
COMMENT ON FUNCTION uid_internal.uid_delete_rows(oid[]) IS
  'Deletes the rows of dropped sequences from uid_generator, uid_segment and uid_key.';

-- The caller owns what it has dropped, and needs no right to the tables. A lock makes DROP EXTENSION wait. Otherwise the
-- owner of the extension could drop it and put another schema uid_internal in its place, whose function would run here.
CREATE FUNCTION uid_internal.uid_forget_dropped() RETURNS event_trigger
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  dropped oid[] := ARRAY(SELECT objid FROM pg_event_trigger_dropped_objects()
                          WHERE object_type = 'sequence' AND objsubid = 0 AND NOT is_temporary);
BEGIN
  IF dropped = '{}' THEN
    RETURN;
  END IF;
  IF (SELECT rolsuper FROM pg_roles WHERE rolname = current_user) THEN -- others may not lock it
    PERFORM FROM pg_extension WHERE extname = 'uidgen' FOR KEY SHARE;
    IF NOT FOUND THEN
      RETURN; -- another session has dropped the extension
    END IF;
  END IF;
  IF uid_internal.uid_delete_rows(dropped) THEN
    RAISE WARNING 'the database no longer has a default generator'
      USING DETAIL = 'Calls of uid_next() without a generator fail from now on.',
            HINT = 'Choose a default with uid_default_set(). To stay above the ids of the dropped generator, pass the '
                   'largest of them to uid_generator_create() as the parameter above.';
  END IF;
END
$$;
COMMENT ON FUNCTION uid_internal.uid_forget_dropped() IS
  'Event trigger function. It deletes the rows of dropped sequences from uid_generator, uid_segment and uid_key.';
CREATE EVENT TRIGGER uid_forget_dropped ON sql_drop EXECUTE FUNCTION uid_internal.uid_forget_dropped();
ALTER EVENT TRIGGER uid_forget_dropped ENABLE ALWAYS;
COMMENT ON EVENT TRIGGER uid_forget_dropped IS
  'Keeps uid_generator, uid_segment and uid_key free of rows whose sequence was dropped.';

-- ---------------------------------------------------------------------------------------------------------
-- A restore fills tables in any order, so a CHECK that reads uid_generator or uid_key may fail while its table is filled.
-- pg_dump adds one with NOT VALID after the rows, but not one of a domain or a partitioned table.
-- ---------------------------------------------------------------------------------------------------------

-- Of constraints that the open transaction has made: their age() is 0, or negative for a subtransaction's.
CREATE FUNCTION uid_internal.uid_check_constraints() RETURNS event_trigger
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  early record;
BEGIN
  FOR early IN
    SELECT (pg_identify_object(k.tableoid, k.oid, 0)).identity AS what,
           string_agg(DISTINCT p.oid::regprocedure::text, ', ') AS calls
      FROM pg_event_trigger_ddl_commands() c
      JOIN pg_constraint k ON k.conrelid = CASE WHEN c.classid = 'pg_class'::regclass THEN c.objid ELSE 0::oid END
       AND k.contypid = CASE WHEN c.classid = 'pg_type'::regclass THEN c.objid ELSE 0::oid END
       AND k.contype = 'c' AND k.conislocal AND age(k.xmin) <= 0
      LEFT JOIN pg_class r ON r.oid = k.conrelid
      JOIN pg_depend u ON u.classid = k.tableoid AND u.objid = k.oid AND u.refclassid = 'pg_proc'::regclass
      JOIN pg_proc p ON p.oid = u.refobjid AND p.provolatile <> 'i' AND p.probin = '$libdir/uidgen'
     WHERE r.relpersistence IS DISTINCT FROM 't' AND (k.convalidated OR r.relkind IS DISTINCT FROM 'r')
     GROUP BY k.tableoid, k.oid
  LOOP
    RAISE WARNING 'a restore may fail at constraint %', early.what
      USING DETAIL = format('It calls %s. pg_restore may load rows before the configuration that this reads.',
                            early.calls),
            HINT = 'Pass the numbers of the layout, as in uid_timestamp(id, epoch, tick_us, shift). Or add the '
                   'constraint to the table, or to each partition, with NOT VALID: it is checked for new rows.';
  END LOOP;
END
$$;
COMMENT ON FUNCTION uid_internal.uid_check_constraints() IS
  'Event trigger function. It warns of a CHECK constraint that a restore of a dump may fail at.';
CREATE EVENT TRIGGER uid_check_constraints ON ddl_command_end
  WHEN TAG IN ('CREATE TABLE', 'ALTER TABLE', 'CREATE DOMAIN', 'ALTER DOMAIN', 'CREATE SCHEMA')
  EXECUTE FUNCTION uid_internal.uid_check_constraints();
COMMENT ON EVENT TRIGGER uid_check_constraints IS 'Warns of a CHECK constraint that a restore of a dump may fail at.';

DO $$
DECLARE
  name text;
BEGIN
  FOREACH name IN ARRAY ARRAY['uid_generator', 'uid_segment', 'uid_secrets.uid_key', 'uid_fleet_state',
                              'uid_secrets.uid_fleet_key', 'uid_fleet_pool', 'uid_fleet_node',
                              'uid_fleet_segment'] LOOP
    EXECUTE pg_catalog.format(
      'CREATE TRIGGER uid_keep_local BEFORE INSERT OR UPDATE OR DELETE ON %1$s
         FOR EACH ROW EXECUTE FUNCTION uid_internal.uid_keep_local();
       CREATE TRIGGER uid_keep_local_truncate BEFORE TRUNCATE ON %1$s
         FOR EACH STATEMENT EXECUTE FUNCTION uid_internal.uid_keep_local();
       ALTER TABLE %1$s ENABLE ALWAYS TRIGGER uid_keep_local;
       ALTER TABLE %1$s ENABLE ALWAYS TRIGGER uid_keep_local_truncate', name);
  END LOOP;
END
$$;

-- To dump and restore. A row without its sequence could not be restored. A drop leaves such a row where event triggers are
-- off. A sequence that is a member of another extension is not in the dump.
DO $$
DECLARE
  restorable text := 'IN (SELECT oid FROM pg_catalog.pg_class c WHERE relkind = ''S'' AND NOT EXISTS ('
                  || 'SELECT FROM pg_catalog.pg_depend d JOIN pg_catalog.pg_extension e ON e.oid = d.refobjid '
                  || 'WHERE d.classid = ''pg_catalog.pg_class''::pg_catalog.regclass AND d.objid = c.oid '
                  || 'AND d.deptype = ''e'' AND e.extname <> ''uidgen''))';
BEGIN
  PERFORM pg_catalog.pg_extension_config_dump('uid_generator',
            'WHERE NOT (builtin AND is_default) AND generator::pg_catalog.oid ' || restorable);
  PERFORM pg_catalog.pg_extension_config_dump('uid_segment', 'WHERE sequence::pg_catalog.oid ' || restorable);
  PERFORM pg_catalog.pg_extension_config_dump('uid_secrets.uid_key', 'WHERE sequence::pg_catalog.oid ' || restorable);
END
$$;
