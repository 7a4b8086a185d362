-- Fleets, the member's side: what a server shows of its registry, and segments whose values come from there.
-- Administrators of a member call these functions. uidgen_registry.sql makes a registry.

CREATE FUNCTION uid_internal.uid_registrar(
    OUT database text, OUT generator text, OUT state text, OUT node bigint, OUT granted_until timestamptz,
    OUT fenced_until timestamptz, OUT why text, OUT error text, OUT hint text, OUT renewals bigint, OUT registry text,
    OUT host text, OUT heard_at timestamptz, OUT away_since timestamptz, OUT last_error text,
    OUT last_error_at timestamptz, OUT fleet bigint, OUT term bigint, OUT longest double precision,
    OUT clock_offset_ms bigint)
RETURNS SETOF record
LANGUAGE c VOLATILE STRICT PARALLEL RESTRICTED ROWS 10 AS 'MODULE_PATHNAME', 'uid_registrar';
COMMENT ON FUNCTION uid_internal.uid_registrar() IS
  'Returns the rows of uid_registry_status; none if uidgen is not preloaded. Only members of pg_monitor may call it.';

CREATE VIEW uid_registry_status AS SELECT * FROM uid_internal.uid_registrar();
COMMENT ON VIEW uid_registry_status IS
  'The grants of this server''s generators, a row for each that has drawn with the registry since the server '
  'started, and the state of the registry. For members of pg_monitor.';
COMMENT ON COLUMN uid_registry_status.database IS 'database of the generator';
COMMENT ON COLUMN uid_registry_status.generator IS 'generator; NULL in the row of a server without one';
COMMENT ON COLUMN uid_registry_status.state IS
  'granted, waiting (not yet asked, or idle), unreachable, fenced (no other node until fenced_until), or refused';
COMMENT ON COLUMN uid_registry_status.node IS 'node of the grant';
COMMENT ON COLUMN uid_registry_status.granted_until IS
  'end of the grant; until then the generator draws, whatever the state';
COMMENT ON COLUMN uid_registry_status.fenced_until IS 'end of the registry''s fence';
COMMENT ON COLUMN uid_registry_status.why IS
  'reason in a word, such as none_free, layout_differs, other_fleet or outdated';
COMMENT ON COLUMN uid_registry_status.error IS 'the same in a sentence';
COMMENT ON COLUMN uid_registry_status.hint IS 'what to do about it';
COMMENT ON COLUMN uid_registry_status.renewals IS 'grants since the server started';
COMMENT ON COLUMN uid_registry_status.registry IS
  'service, host, port, dbname and user of uidgen.registry, for members of pg_read_all_settings';
COMMENT ON COLUMN uid_registry_status.host IS 'host that answered last, for the same roles';
COMMENT ON COLUMN uid_registry_status.heard_at IS 'time of its answer';
COMMENT ON COLUMN uid_registry_status.away_since IS 'since when the registry has been unusable';
COMMENT ON COLUMN uid_registry_status.last_error IS 'last error, even if it is over';
COMMENT ON COLUMN uid_registry_status.last_error_at IS 'time of that error';
COMMENT ON COLUMN uid_registry_status.fleet IS 'identity of the fleet';
COMMENT ON COLUMN uid_registry_status.term IS 'largest term that this server has accepted';
COMMENT ON COLUMN uid_registry_status.longest IS 'longest grant of the fleet, in seconds';
COMMENT ON COLUMN uid_registry_status.clock_offset_ms IS
  'clock of this server minus that of the registry, in milliseconds';

CREATE FUNCTION uid_fleet_move() RETURNS void
LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'uid_fleet_move';
COMMENT ON FUNCTION uid_fleet_move() IS
  'Abandons all grants of this server; its generators get new nodes from the fleet that uidgen.registry names now. '
  'For a change of the fleet, and for a copy of a server. Only superusers may call it.';

CREATE FUNCTION uid_internal.uid_look_up_segment(sequence regclass, name text, registry_name text,
    OUT fleet bigint, OUT increment bigint) RETURNS record
LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'uid_look_up_segment';
COMMENT ON FUNCTION uid_internal.uid_look_up_segment(regclass, text, text) IS
  'Asks the registry for a first block of its segment registry_name, for at most uidgen.max_wait. Only the owner of '
  'the sequence, in the schema uid_segments, may call it.';

-- INCREMENT, the bounds and is_called make nextval fail without moving the counter, so that every value comes from the
-- registry. The counter is the last value that the registry gave, or, at first, the value before all of them.
CREATE FUNCTION segment_attach(name text, registry_name text DEFAULT NULL, step bigint DEFAULT NULL,
    max_step bigint DEFAULT NULL) RETURNS regclass
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
              HINT = 'Raise next_value of the segment in uid_registry.segment above its values. Then run '
                     'segment_drop() here, and segment_attach() again.';
    END IF;
    EXECUTE format('CREATE SEQUENCE uid_segments.%I', relation);
    segment.sequence := format('uid_segments.%I', relation)::regclass;
  ELSIF there <> segment.registry_name THEN
    RAISE EXCEPTION 'segment "%" is attached to another segment of the registry', left(name, 63)
      USING ERRCODE = 'duplicate_object', HINT = 'Attach another segment, or drop this one with segment_drop() first.';
  END IF;
  SELECT * INTO found FROM uid_internal.uid_look_up_segment(segment.sequence, name, there);
  IF segment.name IS NULL THEN
    EXECUTE format('ALTER SEQUENCE %s INCREMENT 9223372036854775806 MINVALUE -1 MAXVALUE 9223372036854775804 START -1 '
                   'RESTART', segment.sequence);
    PERFORM setval(segment.sequence, -1, true);
    PERFORM uid_internal.uid_define_segment(segment.sequence, name, step, max_step, there, found.fleet,
                                            found.increment);
    RETURN segment.sequence;
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
COMMENT ON FUNCTION segment_attach(text, text, bigint, bigint) IS
  'Creates a segment whose values come in blocks of step to max_step values from a segment of the fleet''s registry '
  '(NULL: of the same name), or attaches an attached one again. Fails unless the registry is reachable and keeps '
  'restarts or failovers. Needs CREATE on the schema uid_segments; USAGE on the sequence lets a role draw.';
