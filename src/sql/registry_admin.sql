-- Fleets, the registry's side: what its administrators call. The owner of the database may.

CREATE FUNCTION uid_fleet_fence(cancel boolean DEFAULT false) RETURNS timestamptz
LANGUAGE c VOLATILE STRICT SECURITY DEFINER PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'uid_fleet_fence';
COMMENT ON FUNCTION uid_fleet_fence(boolean) IS
  'Raises a fence on the registry of a fleet, and begins an epoch, so that no other registry counts any more. Run it if '
  'the registry may have lost commits. Members that are alive keep their nodes. Newcomers are accepted again from the '
  'returned time on. A standby that is promoted raises a fence by itself. With cancel => true the fence ends at once, and '
  'an epoch begins without one. Do that only if no grant was lost, or no holder of a lost grant draws any more, and if '
  'no other registry grants; otherwise ids collide. It fails in a transaction block.';

CREATE FUNCTION uid_fleet_fork() RETURNS void
LANGUAGE c VOLATILE STRICT SECURITY DEFINER PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'uid_fleet_fork';
COMMENT ON FUNCTION uid_fleet_fork() IS
  'Makes a copy of a registry the registry of a fleet of its own, without members and grants. Run it on a copy for tests '
  'before members can connect: then members of the original that are pointed at it by mistake are refused, and carry '
  'nothing back. It fails if members have called since the server started and hold grants, and in a transaction block.';

CREATE FUNCTION uid_fleet_handover(cancel boolean DEFAULT false) RETURNS void
LANGUAGE c VOLATILE STRICT SECURITY DEFINER PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'uid_fleet_handover';
COMMENT ON FUNCTION uid_fleet_handover(boolean) IS
  'Closes the registry of a fleet before a planned switchover. It grants nothing until another server has taken over. '
  'That server needs no fence: if it knows of the handover, it knows of every grant. This holds for five minutes '
  '(uid_fleet_state.closed_until). A server that takes over later raises a fence. With cancel => true the registry is '
  'open again; that fails until closed_until has passed by twice the clock bound. It fails in a transaction block.';

CREATE FUNCTION uid_fleet_takeover(pool integer, node bigint) RETURNS timestamptz
LANGUAGE c VOLATILE STRICT SECURITY DEFINER PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'uid_fleet_takeover';
COMMENT ON FUNCTION uid_fleet_takeover(integer, bigint) IS
  'Takes a node from its holder before its grant ends, or ends a reservation. The node is free from the returned time '
  'on. The holder must not run any more: if it does, ids collide. A node without a holder was used by a generator '
  'before it joined the fleet: if it was used beyond the returned time, ids may come again. It fails if the node was '
  'never granted, while the registry refuses all members, and in a transaction block.';

CREATE FUNCTION uid_fleet_reserve(pool integer, nodes integer DEFAULT 1, without_standby boolean DEFAULT false,
    OUT node bigint, OUT datacenter_id integer, OUT worker_id integer,
    OUT granted_from timestamptz, OUT granted_until timestamptz)
RETURNS SETOF record
LANGUAGE c VOLATILE SECURITY DEFINER PARALLEL UNSAFE ROWS 10 AS 'MODULE_PATHNAME', 'uid_fleet_reserve';
COMMENT ON FUNCTION uid_fleet_reserve(integer, integer, boolean) IS
  'Reserves nodes of a pool of uid_fleet_pools for generators outside PostgreSQL, from granted_from to the end of the '
  'layout. No member gets the nodes. A layout has a pool from its first generator on a member on. uid_fleet_takeover() '
  'ends a reservation. It fails without a synchronous standby, because the registry could lose the reservation at a '
  'failover. If without_standby is true, it does not; then check after each unplanned failover that uid_fleet still lists '
  'the nodes, because one that was lost may be granted to a member. It also fails if too few nodes are free, if newcomers '
  'are refused, and in a transaction block.';

CREATE FUNCTION uid_fleet_admit(role regrole, registry text DEFAULT NULL, fleet bigint DEFAULT NULL) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  -- The locks make a rename of the schema and DROP EXTENSION wait. Otherwise the owner of the schema could put another
  -- one in its place, whose functions and triggers would run with the rights of this function.
  home text := (SELECT quote_ident(n.nspname) FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace
                 WHERE e.extname = 'uidgen' FOR KEY SHARE);
  setting text;
BEGIN
  IF home IS NULL THEN
    RAISE EXCEPTION 'extension uidgen was dropped by another session'
      USING ERRCODE = 'undefined_object', HINT = 'Run CREATE EXTENSION uidgen.';
  ELSIF NOT EXISTS (SELECT FROM pg_roles r WHERE r.oid = role) THEN
    RAISE EXCEPTION 'role % does not exist', role
      USING ERRCODE = 'undefined_object', HINT = 'Pass the name of the role that members connect with.';
  ELSIF (SELECT r.rolsuper FROM pg_roles r WHERE r.oid = role) THEN
    RAISE EXCEPTION 'role % is a superuser', role
      USING ERRCODE = 'invalid_grant_operation',
            DETAIL = 'Members need few rights, and the role gets timeouts in this database.',
            HINT = 'Create a role for the members: CREATE ROLE uid_fleet LOGIN.';
  END IF;
  -- First, because a rename that waits for this function would have it wait in its turn.
  EXECUTE format('GRANT USAGE ON SCHEMA %s TO %s', home, role);
  INSERT INTO uid_secrets.uid_fleet_key DEFAULT VALUES ON CONFLICT DO NOTHING;
  PERFORM uid_internal.uid_fleet_claim(registry, fleet);
  EXECUTE format('GRANT EXECUTE ON PROCEDURE %1$s.uid_fleet_call(%1$s.uid_fleet_request, %1$s.uid_fleet_answer) TO %2$s', home,
                 role);
  -- A call is one short statement. A member keeps its connection between calls. After five seconds without an answer it
  -- connects again. By then a call that waits for the lock or for the standby has failed.
  FOREACH setting IN ARRAY ARRAY['statement_timeout = 30000', 'lock_timeout = 4000',
      'client_connection_check_interval = 2000',
      'idle_in_transaction_session_timeout = 10000', 'idle_session_timeout = 0',
      'default_transaction_isolation = "read committed"', 'default_transaction_read_only = off'] LOOP
    EXECUTE format('ALTER ROLE %s IN DATABASE %I SET %s', role, current_database(), setting);
  END LOOP;
END
$$;
COMMENT ON FUNCTION uid_fleet_admit(regrole, text, bigint) IS
  'Lets a role call uid_fleet_call(). Members connect with that role. It needs no other right, but for USAGE on the '
  'sequences of segments that members attach to. It also sets the timeouts of the role in this database. '
  'uid_fleet_expel() undoes it. The role must not be a superuser. The parameter registry says what this database is, if it '
  'is no registry yet, or is not the one that it was: new (the registry of a fleet of its own, to whose members no other '
  'registry may grant), successor (it follows a registry that may have granted what this one does not know, so newcomers '
  'wait until such grants have ended), unchanged (it follows one, and nothing was lost). A standby that is promoted continues '
  'without it. In an empty database the successor of a registry that was lost needs the number of its fleet, which '
  'uid_registry_status shows on each member. A registry needs uidgen in shared_preload_libraries. Only superusers and the '
  'owner of the database may call it.';

CREATE FUNCTION uid_fleet_expel(role regrole) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  home text := (SELECT quote_ident(n.nspname) FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace
                 WHERE e.extname = 'uidgen' FOR KEY SHARE);
  sequence text;
  setting text;
BEGIN
  IF home IS NULL THEN
    RAISE EXCEPTION 'extension uidgen was dropped by another session'
      USING ERRCODE = 'undefined_object', HINT = 'Run CREATE EXTENSION uidgen.';
  ELSIF NOT EXISTS (SELECT FROM pg_proc p CROSS JOIN LATERAL aclexplode(p.proacl) a
                     WHERE p.pronamespace = (SELECT e.extnamespace FROM pg_extension e WHERE e.extname = 'uidgen')
                       AND p.proname = 'uid_fleet_call' AND a.grantee = role AND a.grantee <> p.proowner) THEN
    RAISE EXCEPTION 'role % was not admitted to the fleet', role
      USING ERRCODE = 'undefined_object', HINT = 'Pass the name of a role that was passed to uid_fleet_admit().';
  END IF;
  EXECUTE format('REVOKE USAGE ON SCHEMA %s FROM %s', home, role);
  EXECUTE format('REVOKE EXECUTE ON PROCEDURE %1$s.uid_fleet_call(%1$s.uid_fleet_request, %1$s.uid_fleet_answer) FROM %2$s', home,
                 role);
  FOR sequence IN EXECUTE format('SELECT s.sequence::text FROM %s.uid_segment s JOIN pg_class c ON c.oid = s.sequence '
                                 'CROSS JOIN LATERAL aclexplode(c.relacl) a WHERE a.grantee = $1 GROUP BY s.sequence',
                                 home) USING role LOOP
    EXECUTE format('REVOKE ALL ON SEQUENCE %s FROM %s', sequence, role);
  END LOOP;
  -- Others may be a superuser's.
  FOREACH setting IN ARRAY ARRAY['statement_timeout', 'lock_timeout', 'client_connection_check_interval',
      'idle_in_transaction_session_timeout', 'idle_session_timeout', 'default_transaction_isolation',
      'default_transaction_read_only'] LOOP
    EXECUTE format('ALTER ROLE %s IN DATABASE %I RESET %I', role, current_database(), setting);
  END LOOP;
END
$$;
COMMENT ON FUNCTION uid_fleet_expel(regrole) IS
  'Undoes uid_fleet_admit(): the role may not call the registry any more, and the settings that uid_fleet_admit() made are '
  'reset. It also revokes the role''s privileges on the sequences of segments. Members that connect with the role draw to '
  'the end of their grants. Its sessions stay until pg_terminate_backend() ends them, but they cannot call the registry. Only '
  'superusers and the owner of the database may call it.';
