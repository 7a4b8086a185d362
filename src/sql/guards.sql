-- What keeps labels and tables true: drops of sequences, restores, replication. Only PostgreSQL calls all of this.

-- A restore may set security labels of uidgen in a session that has not loaded the library, which a call does. So may
-- a DROP SEQUENCE come, whose rows the library deletes. The function is in C, because no role can put another one in
-- its place.
CREATE FUNCTION uid_internal.uid_load() RETURNS event_trigger
LANGUAGE c AS 'MODULE_PATHNAME', 'uid_load';
COMMENT ON FUNCTION uid_internal.uid_load() IS 'Event trigger function. It only loads the library.';
CREATE EVENT TRIGGER uid_load ON ddl_command_start WHEN TAG IN ('SECURITY LABEL', 'DROP SEQUENCE')
  EXECUTE FUNCTION uid_internal.uid_load();
ALTER EVENT TRIGGER uid_load ENABLE ALWAYS;
COMMENT ON EVENT TRIGGER uid_load IS 'Loads the library before a security label is set or a sequence is dropped.';

SELECT pg_catalog.pg_extension_config_dump('uid_secrets.uid_key', '');
