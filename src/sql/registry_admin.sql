-- Fleets, the registry's side: what its administrators call. The owner of the database may.

CREATE FUNCTION uid_fleet_fence(cancel boolean DEFAULT false) RETURNS timestamptz
LANGUAGE c VOLATILE STRICT SECURITY DEFINER PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'uid_fleet_fence';
COMMENT ON FUNCTION uid_fleet_fence(boolean) IS
  'Raises a fence on the registry of a fleet, and begins a term that supersedes every other registry. Run it if '
  'the registry may have lost commits. Members that are alive keep their nodes. Newcomers are accepted again from the '
  'returned time on. A standby that is promoted raises a fence by itself. With cancel => true the fence ends at once, and '
  'a term begins without one. Do that only if no grant was lost, or no holder of a lost grant still draws, and if '
  'no other registry grants; otherwise ids collide.';

CREATE FUNCTION uid_fleet_fork() RETURNS void
LANGUAGE c VOLATILE STRICT SECURITY DEFINER PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'uid_fleet_fork';
COMMENT ON FUNCTION uid_fleet_fork() IS
  'Turns a copy of a registry into the registry of a separate fleet, without members and grants. Run it on a copy for '
  'tests before members can connect, so that it refuses members of the original that reach it by mistake, and they '
  'carry nothing back. It fails if members have called since the server started and hold grants.';

CREATE FUNCTION uid_fleet_handover(cancel boolean DEFAULT false) RETURNS void
LANGUAGE c VOLATILE STRICT SECURITY DEFINER PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'uid_fleet_handover';
COMMENT ON FUNCTION uid_fleet_handover(boolean) IS
  'Closes the registry of a fleet before a planned switchover. It grants nothing until another server has taken over. '
  'That server needs no fence: if it knows of the handover, it knows of every grant. This holds for five minutes '
  '(uid_fleet_state.closed_until). A server that takes over later raises a fence. It fails while the registry may not '
  'know every grant itself: soon after its start, or when it has met another registry. cancel => true opens a closed '
  'registry again, with a fence, because another one may have taken over and be gone. That fails until twice the clock '
  'bound after closed_until, and if another one is known.';

CREATE FUNCTION uid_fleet_takeover(pool integer, node bigint) RETURNS timestamptz
LANGUAGE c VOLATILE STRICT SECURITY DEFINER PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'uid_fleet_takeover';
COMMENT ON FUNCTION uid_fleet_takeover(integer, bigint) IS
  'Takes a node from its holder before its grant ends, or ends a reservation. The node is free from the returned time '
  'on. The holder must have stopped for good; otherwise ids collide. A node without a holder was used by a generator '
  'before it joined the fleet: if it was used beyond the returned time, ids may repeat. It fails if the node was '
  'never granted, and while the registry refuses all members.';

CREATE FUNCTION uid_fleet_reserve(pool integer, nodes integer DEFAULT 1, without_standby boolean DEFAULT false,
    OUT node bigint, OUT datacenter_id integer, OUT worker_id integer,
    OUT granted_from timestamptz, OUT granted_until timestamptz)
RETURNS SETOF record
LANGUAGE c VOLATILE SECURITY DEFINER PARALLEL UNSAFE ROWS 10 AS 'MODULE_PATHNAME', 'uid_fleet_reserve';
COMMENT ON FUNCTION uid_fleet_reserve(integer, integer, boolean) IS
  'Reserves nodes of a pool of uid_fleet_pools for generators outside PostgreSQL, from granted_from to the end of the '
  'layout. No member gets the nodes. A layout gets its pool when a generator on a member first draws with it. '
  'uid_fleet_takeover() ends a reservation. The call fails without a synchronous standby, because the registry could '
  'lose the reservation at a failover. without_standby => true permits it; then check after each unplanned failover '
  'that uid_fleet still lists the nodes, because one that was lost may be granted to a member. It also fails if too '
  'few nodes are free, or if newcomers are refused.';

CREATE FUNCTION uid_fleet_drop_pool(pool integer) RETURNS void
LANGUAGE c VOLATILE STRICT SECURITY DEFINER PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'uid_fleet_drop_pool';
COMMENT ON FUNCTION uid_fleet_drop_pool(integer) IS
  'Drops a pool of uid_fleet_pools that has no node in use, so that members can bring a layout with the same widths '
  'and another epoch, or another split of the node. Ids of that layout may be equal to ids that were drawn in the '
  'pool. If a member brings the layout again, the pool returns, with all that was granted in it.';

CREATE FUNCTION uid_fleet_admit(role regrole, registry text DEFAULT NULL, fleet bigint DEFAULT NULL, term bigint DEFAULT NULL,
    key text DEFAULT NULL) RETURNS void
LANGUAGE c VOLATILE SECURITY DEFINER PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'uid_fleet_admit';
COMMENT ON FUNCTION uid_fleet_admit(regrole, text, bigint, bigint, text) IS
  'Lets a role call uid_fleet_call(). Members connect with that role, which must not be a superuser. The role needs '
  'no other right, except USAGE on the sequences of segments that members attach to. uid_fleet_expel() undoes it. If '
  'this database is not a registry yet, or no longer the registry that it was, the parameter registry says what it '
  'is: new (the registry of a fleet of its own, to whose members no other registry may grant), successor (it follows '
  'a registry that may have granted what this one does not know, so newcomers wait until such grants have ended), '
  'unchanged (it follows one, and nothing was lost). A standby that is promoted continues without it. To replace a '
  'registry that was lost, make an empty database its successor: pass fleet and the largest term that '
  'uid_registry_status shows on the members, and the key of uid_fleet_key(), which lets it prove its term. Without '
  'the key, no member''s uidgen.registry may still name the former one. A registry needs uidgen in '
  'shared_preload_libraries. Only superusers and the owner of the database may call it.';

CREATE FUNCTION uid_fleet_expel(role regrole) RETURNS void
LANGUAGE c VOLATILE STRICT SECURITY DEFINER PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'uid_fleet_expel';
COMMENT ON FUNCTION uid_fleet_expel(regrole) IS
  'Undoes uid_fleet_admit(): the role may no longer call the registry. It also revokes the role''s privileges on the '
  'sequences of segments. Members that connect with the role continue to draw until their grants end. Its sessions '
  'stay until pg_terminate_backend() ends them, but they cannot call the registry. Only superusers and the owner of '
  'the database may call it.';

CREATE FUNCTION uid_fleet_key() RETURNS text
LANGUAGE c VOLATILE STRICT SECURITY DEFINER PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'uid_fleet_key';
COMMENT ON FUNCTION uid_fleet_key() IS
  'Returns the secret by which the registries of this fleet prove what they have given. Keep it in a safe place: if '
  'the registry is lost with all its copies, a replacement that has the key (uid_fleet_admit) closes the former '
  'registry, should it return. A person who has it can forge what members show. Only superusers and the owner of the '
  'database may call it.';
