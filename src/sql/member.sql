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
  'The grants of the generators in all databases of this server, and its fleet''s registry. There is a row for each '
  'generator that has drawn with the registry since the server started, or one without a generator. state: granted; '
  'waiting (for the first answer, or idle: it has not drawn for ten grants'' length, so its grant is not renewed); '
  'unreachable (no host answers, or only a former registry); fenced (no other nodes until fenced_until); or refused. '
  'Whatever the state, the generator draws with its node until granted_until. why: the reason in a word, such as '
  'none_free, layout_differs, other_fleet or outdated; error and hint: the same in sentences. renewals: grants since '
  'the server started. registry: service, host, port, dbname and user of uidgen.registry; host: the host that answered '
  'last; both are for members of pg_read_all_settings. heard_at: when it answered last. away_since: since when the '
  'registry has been unusable. last_error and last_error_at: the last error, even if it is over. fleet, and longest, '
  'the seconds of its longest grant: a registry that is made again needs both. term: the largest one that this server '
  'has accepted. clock_offset_ms: the clock of this server minus that of the registry.';

CREATE FUNCTION uid_fleet_move() RETURNS void
LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'uid_fleet_move';
COMMENT ON FUNCTION uid_fleet_move() IS
  'Abandons the grants of all generators of this server, in all databases. At their next draw these get new nodes '
  'from the fleet that uidgen.registry names. Run it after uidgen.registry was changed to another fleet, and on a '
  'copy of a server. Only superusers may call it.';

CREATE FUNCTION uid_internal.uid_look_up_segment(sequence regclass, name text, registry_name text,
    OUT fleet bigint, OUT increment bigint) RETURNS record
LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'uid_look_up_segment';
COMMENT ON FUNCTION uid_internal.uid_look_up_segment(regclass, text, text) IS
  'Asks the registry of the fleet for a first block of its segment registry_name, and returns what that is like. It waits for at most uidgen.max_wait. '
  'segment_attach() calls it. Only the owner of the sequence may call it, which must be in the schema uid_segments.';

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
  'Creates a named segment whose values come from the segment registry_name (NULL: the same name) of the fleet''s '
  'registry, a row of uid_registry.segment there, in blocks. All members that attach to that segment share its values, '
  'and none repeats. The registry must be reachable, and promise that it loses no commits (failovers). Let other roles '
  'draw with GRANT USAGE ON SEQUENCE. If the segment is attached already, it continues with the segment as it is at '
  'the registry now: after a change of its increment there, or with the fleet that uidgen.registry names now. step and '
  'max_step are those of segment_create(): the length of a block.';
