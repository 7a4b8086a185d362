-- Fleets, the member's side: what a server shows of its registry, and segments whose values come from there.
-- Administrators of a member call these functions; registry.sql has what the member calls on the registry.

CREATE FUNCTION uid_internal.uid_registrar(
    OUT state text, OUT said_by text, OUT connected boolean, OUT registry text, OUT host text, OUT registries integer, OUT away_since timestamptz, OUT last_error text,
    OUT last_error_at timestamptz, OUT fleet bigint, OUT term bigint, OUT clock_offset_ms bigint,
    OUT database text, OUT generator text, OUT node bigint, OUT granted_until timestamptz, OUT renewals bigint,
    OUT superseded boolean, OUT refusal text, OUT error text)
RETURNS SETOF record
LANGUAGE c VOLATILE STRICT PARALLEL RESTRICTED ROWS 10 AS 'MODULE_PATHNAME', 'uid_registrar';
COMMENT ON FUNCTION uid_internal.uid_registrar() IS
  'Returns the state of this server''s registrar, the process that asks the registry of the fleet for grants, once for '
  'each generator that has drawn with a registry since the server started. It returns no rows if uidgen is not '
  'preloaded. Only members of pg_monitor may call it.';

CREATE VIEW uid_registry_status AS SELECT * FROM uid_internal.uid_registrar();
COMMENT ON VIEW uid_registry_status IS
  'The registry of this server''s fleet, and the grants of the generators in all databases of the server. state: the '
  'state of the generator, in a word: granted, asking (a call waits for the first answer), idle (it has not drawn for '
  'ten leases, so its grant is not renewed), superseded, unreachable (no registry answers; it draws until '
  'granted_until), failed (see error), or the name of the refusal, such as fenced, rival, no_standby, none_free; in a '
  'row without a generator also connected or idle. said_by: the host that reported it. connected: the registry has '
  'answered, and the registrar keeps the connection. registry: service, host, port, dbname and user of '
  'uidgen.registry; host: host and port of the server that answers as the registry; said_by, registry and host are '
  'for members of pg_read_all_settings. registries: how many hosts answered as a registry when the member last asked '
  'all; if more than one, see docs/runbooks/registry-two.md. away_since: since when the registry has been unusable; '
  'NULL: it is usable, or no generator needs it. last_error and last_error_at: the last error, even if it is over. '
  'fleet and term: those of the last answer. clock_offset_ms: the clock of this server minus that of the registry. Of '
  'each generator: database and generator name it; until granted_until it draws with its node, even if the registry '
  'is unreachable; renewals counts grants since the server started; superseded: another server continues as this '
  'generator, or its node was taken over, so it draws nothing; refusal and error: why the registry granted nothing '
  'last time, in a word and as a message. If no generator has used the registry since the server started, there is '
  'one row without a generator.';

-- One increment exceeds the maximum, so nextval cannot move it.
CREATE SEQUENCE uid_internal.uid_fleet_term INCREMENT 9223372036854775807 MINVALUE 0 MAXVALUE 9223372036854775806 START 0;
COMMENT ON SEQUENCE uid_internal.uid_fleet_term IS
  'The number of the term of the fleet''s registry in which ids of this database were drawn last. A server whose file of '
  'grants does not count, as after pg_upgrade, takes no answer of a registry with a smaller one. No dump has it.';

CREATE FUNCTION uid_fleet_move() RETURNS void
LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'uid_fleet_move';
COMMENT ON FUNCTION uid_fleet_move() IS
  'Abandons the grants of all generators of this server, in all databases. At their next draw these get new nodes '
  'from the fleet that uidgen.registry names. Run it after uidgen.registry was changed to another fleet, and on a '
  'copy that the registry refuses as superseded. Only superusers may call it.';

CREATE FUNCTION uid_internal.uid_look_up_segment(sequence regclass, name text, registry_name text,
    OUT fleet bigint, OUT increment bigint, OUT is_synchronous boolean) RETURNS record
LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'uid_look_up_segment';
COMMENT ON FUNCTION uid_internal.uid_look_up_segment(regclass, text, text) IS
  'Asks the registry of the fleet what its segment registry_name is like. It waits for at most uidgen.max_wait. '
  'segment_attach() calls it. Only the owner of the sequence may call it, which must be in the schema uid_segments.';

-- INCREMENT, the bounds and is_called make nextval fail without moving the counter, so that every value comes from the
-- registry. The counter is the last value that the registry gave, or, at first, the value before all of them.
CREATE FUNCTION segment_attach(name text, registry_name text DEFAULT NULL, step bigint DEFAULT NULL,
    max_step bigint DEFAULT NULL, without_standby boolean DEFAULT false) RETURNS regclass
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  relation text := CASE WHEN octet_length(name) <= 63 THEN name ELSE 'segment_' || md5(name) END;
  there text := coalesce(registry_name, name);
  segment record;
  found record;
BEGIN
  PERFORM uid_internal.uid_home();
  IF coalesce(name, '') = '' OR there = '' THEN
    RAISE EXCEPTION 'invalid segment name: ""'
      USING ERRCODE = 'invalid_name', HINT = 'Use a text that is not empty.';
  END IF;
  SELECT s.* INTO segment FROM uid_internal.segments s
   WHERE s.name = segment_attach.name AND s.registry_name IS NOT NULL;
  IF segment.name IS NULL THEN
    IF EXISTS (SELECT FROM uid_internal.segments s WHERE s.name = segment_attach.name) THEN
      RAISE EXCEPTION 'segment "%" exists, and has values of its own', left(name, 63)
        USING ERRCODE = 'duplicate_object',
              HINT = 'Raise the segment of the registry above its values with segment_set() there. Then run '
                     'segment_drop() here, and segment_attach() again.';
    END IF;
    EXECUTE format('CREATE SEQUENCE uid_segments.%I', relation);
    segment.sequence := format('uid_segments.%I', relation)::regclass;
  ELSIF there <> segment.registry_name THEN
    RAISE EXCEPTION 'segment "%" is attached to another segment of the registry', left(name, 63)
      USING ERRCODE = 'duplicate_object', HINT = 'Attach another segment, or drop this one with segment_drop() first.';
  END IF;
  SELECT * INTO found FROM uid_internal.uid_look_up_segment(segment.sequence, name, there);
  IF NOT found.is_synchronous AND without_standby IS NOT TRUE THEN
    RAISE EXCEPTION 'the registry has no synchronous standby'
      USING ERRCODE = 'object_not_in_prerequisite_state',
            DETAIL = 'At a failover it may lose values that it has given, and give them to another member again.',
            HINT = 'Set synchronous_standby_names on the registry. Or, if values may come twice after a failover, pass '
                   'without_standby => true.';
  END IF;
  IF segment.name IS NULL THEN
    EXECUTE format(CASE WHEN found.increment > 0
      THEN 'ALTER SEQUENCE %s INCREMENT 9223372036854775806 MINVALUE -1 MAXVALUE 9223372036854775804 START -1 RESTART'
      ELSE 'ALTER SEQUENCE %s INCREMENT -9223372036854775806 MINVALUE -9223372036854775804 MAXVALUE 1 START 1 RESTART'
      END, segment.sequence);
    PERFORM setval(segment.sequence, CASE WHEN found.increment > 0 THEN -1 ELSE 1 END, true);
    PERFORM uid_internal.uid_define_segment(segment.sequence, name, step, max_step, there, found.fleet,
                                            found.increment);
    RETURN segment.sequence;
  END IF;
  IF (found.increment > 0) <> (segment.increment > 0) THEN
    RAISE EXCEPTION 'segment "%" of the registry counts in the other direction now', left(there, 63)
      USING ERRCODE = 'object_not_in_prerequisite_state', HINT = 'Attach it under another name.';
  END IF;
  -- Values of one fleet may be those of another member in the other one. A new file of the sequence discards what is in
  -- hand; if this is rolled back, the former file discards what was drawn meanwhile.
  IF found.fleet <> segment.fleet THEN
    EXECUTE format('ALTER SEQUENCE %s CACHE 1', segment.sequence);
  END IF;
  PERFORM uid_internal.uid_change_segment(segment.sequence, step, max_step, found.fleet, found.increment);
  RETURN segment.sequence;
END
$$;
COMMENT ON FUNCTION segment_attach(text, text, bigint, bigint, boolean) IS
  'Creates a named segment whose values come from the segment registry_name (NULL: the same name) of the fleet''s '
  'registry, in blocks. All members that attach to that segment share its values, and none repeats. The registry must '
  'be reachable. Let other roles draw with GRANT USAGE ON SEQUENCE. If the segment is attached already, it continues '
  'with the segment as it is at the registry now: after a change of its increment there, or with the fleet that '
  'uidgen.registry names now. step and max_step are those of segment_create(): the length of a block. Unless '
  'without_standby is true, it fails if the registry has no synchronous standby, because a failover could then lose '
  'the last blocks, and their values would repeat.';
