-- Fleets, the registry's side: what its administrators call. The owner of the database may.

CREATE FUNCTION uid_fleet_fence(cancel boolean DEFAULT false) RETURNS timestamptz
LANGUAGE c VOLATILE STRICT SECURITY DEFINER PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'uid_fleet_fence';
COMMENT ON FUNCTION uid_fleet_fence(boolean) IS
  'Raises a fence on the registry of a fleet, and begins an epoch, so that no other registry counts any more. Run it if '
  'the registry may have lost commits. Members that are alive keep their nodes. Newcomers are accepted again from the '
  'returned time on. A standby that is promoted raises a fence by itself. With cancel => true the fence ends at once, and '
  'an epoch begins without one. Do that only if no grant was lost, or no holder of a lost grant draws any more, and if '
  'no other registry grants; otherwise ids collide.';

CREATE FUNCTION uid_fleet_handover(cancel boolean DEFAULT false) RETURNS void
LANGUAGE c VOLATILE STRICT SECURITY DEFINER PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'uid_fleet_handover';
COMMENT ON FUNCTION uid_fleet_handover(boolean) IS
  'Closes the registry of a fleet before a planned switchover. It grants nothing until another server has taken over. '
  'That server needs no fence: if it knows of the handover, it knows of every grant. This holds for five minutes '
  '(uid_fleet_state.closed_until). A server that takes over later raises a fence. With cancel => true the registry is '
  'open again; that fails until closed_until has passed by twice the clock bound.';

CREATE FUNCTION uid_fleet_takeover(pool integer, node bigint) RETURNS timestamptz
LANGUAGE c VOLATILE STRICT SECURITY DEFINER PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'uid_fleet_takeover';
COMMENT ON FUNCTION uid_fleet_takeover(integer, bigint) IS
  'Takes a node from its holder before its grant ends, or ends a reservation. The node is free from the returned time '
  'on. The holder must not run any more: if it does, ids collide. A node without a holder was used by a generator '
  'before it joined the fleet: if it was used beyond the returned time, ids may come again. It fails if the node was '
  'never granted, and while the registry refuses all members.';

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
  'the nodes, because one that was lost may be granted to a member. It also fails if too few nodes are free, or if '
  'newcomers are refused.';

CREATE FUNCTION uid_fleet_admit(role regrole, registry text DEFAULT NULL) RETURNS void
LANGUAGE c VOLATILE SECURITY DEFINER PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'uid_fleet_admit';
COMMENT ON FUNCTION uid_fleet_admit(regrole, text) IS
  'Lets a role call uid_fleet_call(). Members connect with that role, which must not be a superuser. It needs no other '
  'right, but for USAGE on the sequences of segments that members attach to. DROP OWNED BY takes them all away again. The '
  'parameter registry says what this database is, if it is no registry yet, or is not the one that it was: new (the '
  'registry of a fleet of its own, to whose members no other registry may grant), or successor (it follows a registry '
  'that may have granted what this one does not know, so newcomers wait until such grants have ended). A standby that is '
  'promoted continues without it. A registry needs uidgen in shared_preload_libraries. Only superusers and the owner of '
  'the database may call it.';
