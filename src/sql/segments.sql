-- Segments: sequences whose values are reserved a range at a time. Applications call segment_next(),
-- segment_next_array(), segment_reserve() and segment_last(); owners of segments call the others. The library reads
-- their security labels, and finds them by a table.

-- The name of a segment finds its sequence here, unless the sequence has that name. No dump has the rows: the label of
-- the sequence says what is in one, but for current_val.
CREATE TABLE uid_internal.uid_segment_row (
  name          text   PRIMARY KEY,
  sequence      oid    NOT NULL UNIQUE,
  current_val   bigint,
  increment_val bigint NOT NULL DEFAULT 1
                CONSTRAINT "increment_val from 1 to 2^40" CHECK (increment_val BETWEEN 1 AND 1099511627776)
);
COMMENT ON TABLE uid_internal.uid_segment_row IS
  'One row for each named segment, from its definition to the drop of its sequence: what t_sequence shows.';
COMMENT ON COLUMN uid_internal.uid_segment_row.name IS 'name of the segment';
COMMENT ON COLUMN uid_internal.uid_segment_row.sequence IS 'its sequence';
COMMENT ON COLUMN uid_internal.uid_segment_row.current_val IS 'see uid_segment';
COMMENT ON COLUMN uid_internal.uid_segment_row.increment_val IS 'see uid_segment';

CREATE FUNCTION uid_internal.uid_read_segment(label text, OUT name text, OUT step bigint, OUT max_step bigint,
    OUT registry_name text, OUT fleet bigint, OUT increment bigint, OUT increment_val bigint)
LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'uid_definition';
COMMENT ON FUNCTION uid_internal.uid_read_segment(text) IS
  'Returns what the label of a segment''s sequence says; NULL if it cannot be read.';

CREATE VIEW uid_segment AS
SELECT r.name, r.sequence::regclass AS sequence, d.step, d.max_step, d.registry_name, d.fleet, d.increment,
       r.current_val, r.increment_val
  FROM uid_internal.uid_segment_row r
  JOIN pg_catalog.pg_seclabel l ON l.objoid = r.sequence AND l.classoid = 'pg_catalog.pg_class'::regclass::oid
   AND l.objsubid = 0 AND l.provider = 'uidgen'::text
 CROSS JOIN LATERAL uid_internal.uid_read_segment(l.label) d;
COMMENT ON VIEW uid_segment IS
  'The named segments. segment_create() and segment_attach() create one. The security label of its sequence defines '
  'it. The columns from step to increment are NULL if the label cannot be read.';
COMMENT ON COLUMN uid_segment.name IS 'name of the segment, any text of up to 2,500 bytes';
COMMENT ON COLUMN uid_segment.sequence IS 'sequence that holds the counter; USAGE on it lets a role draw';
COMMENT ON COLUMN uid_segment.step IS
  'initial and minimum number of values that one record reserves, 1 to 2^40; fewer while another session moves the '
  'counter, at the end of the sequence, and in a small sequence; NULL: uidgen.segment_step';
COMMENT ON COLUMN uid_segment.max_step IS
  'limit on the growth of the step, from step to 2^40; NULL: uidgen.segment_max_step';
COMMENT ON COLUMN uid_segment.registry_name IS
  'name of the segment at the registry of the fleet that the values come from; NULL: they are of the sequence itself';
COMMENT ON COLUMN uid_segment.fleet IS 'identity of that fleet; NULL without a registry_name';
COMMENT ON COLUMN uid_segment.increment IS
  'increment of the segment at the registry; the sequence here has one that keeps nextval from moving it';
COMMENT ON COLUMN uid_segment.current_val IS
  'current_val of t_sequence; the values from current_val - increment_val to current_val + 2 * increment_val are '
  'reserved; NULL until the first UPDATE of t_sequence';
COMMENT ON COLUMN uid_segment.increment_val IS 'increment_val of t_sequence, the length of a block, 1 to 2^40';

-- Without the counter, which is for roles that may use the sequence.
CREATE VIEW uid_internal.segments AS
SELECT name, sequence, step, max_step, registry_name, fleet, increment FROM uid_segment;
COMMENT ON VIEW uid_internal.segments IS 'The view uid_segment without its counters, for functions.';

CREATE FUNCTION uid_internal.uid_define_segment(sequence regclass, name text, step bigint, max_step bigint,
    registry_name text DEFAULT NULL, fleet bigint DEFAULT NULL, increment bigint DEFAULT NULL) RETURNS void
LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'uid_define_segment';
COMMENT ON FUNCTION uid_internal.uid_define_segment(regclass, text, bigint, bigint, text, bigint, bigint) IS
  'Makes a sequence without a label a segment with those fields. Only the owner of the sequence may call it.';

CREATE FUNCTION segment_create(name text, start bigint DEFAULT 1, step bigint DEFAULT NULL,
    max_step bigint DEFAULT NULL, increment bigint DEFAULT NULL,
    min_value bigint DEFAULT NULL, max_value bigint DEFAULT NULL, cycle boolean DEFAULT NULL,
    if_not_exists boolean DEFAULT false) RETURNS regclass
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  -- A name that is too long for an identifier gets a sequence named after its hash.
  relation text := CASE WHEN octet_length(name) <= 63 THEN name ELSE 'segment_' || md5(name) END;
  stride bigint := coalesce(increment, 1);
  lowest bigint := coalesce(min_value, CASE WHEN stride > 0 THEN least(start, 1) ELSE -9223372036854775808 END);
  highest bigint := coalesce(max_value, CASE WHEN stride > 0 THEN 9223372036854775807 ELSE greatest(start, -1) END);
  target regclass;
  known text;
BEGIN
  PERFORM uid_internal.uid_home();
  IF name IS NULL OR name = '' THEN
    RAISE EXCEPTION 'invalid segment name: "%"', name
      USING ERRCODE = 'invalid_name', HINT = 'Use a text that is not empty.';
  END IF;
  IF start IS NULL THEN
    RAISE EXCEPTION 'start of segment "%" must not be null', left(name, 63)
      USING ERRCODE = 'null_value_not_allowed', HINT = 'Pass the first value of the segment as start.';
  END IF;
  -- With the largest increment the sequence would pass for one that holds the leases of a generator.
  IF stride = 9223372036854775807 THEN
    RAISE EXCEPTION 'invalid increment % for segment "%"', stride, left(name, 63)
      USING ERRCODE = 'invalid_parameter_value', HINT = 'Use an increment of at most 9223372036854775806.';
  END IF;
  SELECT s.sequence, s.name INTO target, known FROM uid_internal.segments s WHERE s.name = segment_create.name;
  IF target IS NULL THEN
    -- One that is there and no segment was restored without its label. Another session may have been first.
    PERFORM uid_internal.uid_make_sequence('segment'::text, relation::name, start, stride, lowest, highest, cycle);
    target := format('uid_segments.%I', relation)::regclass;
    SELECT s.name INTO known FROM uid_internal.segments s WHERE s.sequence = target;
  END IF;
  IF known <> name THEN
    RAISE EXCEPTION 'sequence % is that of a segment of another name', target
      USING ERRCODE = 'duplicate_object', HINT = 'Rename it with ALTER SEQUENCE, or use another name.';
  ELSIF known = name AND if_not_exists THEN
    RAISE NOTICE 'segment "%" already exists, skipping', left(name, 63) USING ERRCODE = 'duplicate_object';
    RETURN target;
  ELSIF known = name THEN
    RAISE EXCEPTION 'segment "%" already exists', left(name, 63)
      USING ERRCODE = 'duplicate_object', DETAIL = format('Its sequence is %s.', target),
            HINT = 'Use another name, drop the segment with segment_drop(), or pass if_not_exists => true.';
  END IF;
  PERFORM uid_internal.uid_define_segment(target, name, step, max_step);
  RETURN target;
END
$$;
COMMENT ON FUNCTION segment_create IS
  'Creates a named segment whose first value is start. It reserves step values at a time (NULL: uidgen.segment_step), '
  'and up to max_step under load (NULL: uidgen.segment_max_step). increment, min_value, max_value and cycle are those '
  'of its sequence. NULL stands for an increment of 1, for no cycle, and for the widest bounds in the direction of '
  'the increment; in the other direction the bound is 1 (counting down -1), or start if that lies further. If the '
  'caller owns a sequence of that name without a label, as after a restore without labels, it is taken over as it is. '
  'The call fails if the segment exists; with if_not_exists it then issues a NOTICE and changes nothing. The caller '
  'owns its sequence in the schema uid_segments, and needs CREATE on that schema. Let other roles draw with GRANT '
  'USAGE ON SEQUENCE.';

CREATE FUNCTION segment_alter(name text, step bigint DEFAULT NULL, max_step bigint DEFAULT NULL)
RETURNS void
LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'segment_alter';
COMMENT ON FUNCTION segment_alter(text, bigint, bigint) IS
  'Changes step or max_step of a named segment. An argument that is NULL leaves its field unchanged. A '
  'step or max_step of 0 resets it to the setting (uidgen.segment_step, uidgen.segment_max_step). A new step or '
  'max_step applies from the next range on. Only the owner of the sequence may call it.';

CREATE FUNCTION uid_internal.uid_change_segment(sequence regclass, step bigint DEFAULT NULL,
    max_step bigint DEFAULT NULL, fleet bigint DEFAULT NULL, increment bigint DEFAULT NULL) RETURNS void
LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'uid_change_segment';
COMMENT ON FUNCTION uid_internal.uid_change_segment(regclass, bigint, bigint, bigint, bigint) IS
  'Sets those fields of a segment that are not NULL. segment_attach() calls it. Only the owner of the sequence may call '
  'it.';

CREATE FUNCTION uid_internal.uid_place_segment(sequence regclass, current_val bigint, increment_val bigint) RETURNS void
LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'uid_place_segment';
COMMENT ON FUNCTION uid_internal.uid_place_segment(regclass, bigint, bigint) IS
  'Sets what an INSERT into t_sequence says of a new segment. Only the owner of the sequence may call it.';

CREATE FUNCTION segment_drop(name text) RETURNS void
LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'segment_drop';
COMMENT ON FUNCTION segment_drop(text) IS
  'Drops a named segment and its sequence. It fails for a segment that a column default uses. Only the owner of the '
  'sequence may call it.';

CREATE FUNCTION segment_next(name text) RETURNS bigint
LANGUAGE c VOLATILE PARALLEL SAFE AS 'MODULE_PATHNAME', 'segment_next_named';
COMMENT ON FUNCTION segment_next(text) IS
  'Returns the next value of the segment with that name. If there is no such segment, the name is that of a '
  'sequence, which may be qualified and is looked up as nextval does. It fails when no value is left, and on a '
  'standby. The caller needs USAGE on the sequence.';

CREATE FUNCTION segment_next(sequence regclass) RETURNS bigint
LANGUAGE c VOLATILE PARALLEL SAFE AS 'MODULE_PATHNAME', 'segment_next_of';
COMMENT ON FUNCTION segment_next(regclass) IS
  'Returns the next value of any permanent sequence. Unlike with nextval, the value is durable before it is returned, '
  'and one WAL record covers a whole range of values, not 32. The caller needs USAGE on the sequence.';

CREATE FUNCTION segment_next_array(name text, count bigint) RETURNS bigint[]
LANGUAGE c VOLATILE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'segment_next_array_named';
COMMENT ON FUNCTION segment_next_array(text, bigint) IS
  'Returns count values of a segment or sequence by its name, in order, as an array. The call takes all values before '
  'it returns, so a call that fails leaves a gap. It fails in the same cases as segment_next(), if count is negative, '
  'and if the array would exceed 1 GB.';

CREATE FUNCTION segment_next_array(sequence regclass, count bigint) RETURNS bigint[]
LANGUAGE c VOLATILE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'segment_next_array_of';
COMMENT ON FUNCTION segment_next_array(regclass, bigint) IS
  'Returns count values of a sequence, in order, as segment_next_array(text, bigint) does.';

CREATE FUNCTION segment_reserve(name text, count bigint, OUT first bigint, OUT last bigint, OUT increment bigint)
LANGUAGE c VOLATILE PARALLEL SAFE AS 'MODULE_PATHNAME', 'segment_reserve_named';
COMMENT ON FUNCTION segment_reserve(text, bigint) IS
  'Reserves a block of exactly count values of the segment with that name, for a caller that hands them out itself: '
  'first, first + increment, and so on to last. No other call ever returns them. They are durable before the call '
  'returns, and a rollback does not give them back. The block lies beyond everything reserved before it, even beyond '
  'the values that segment_next() returns next. It never wraps: if fewer values are left before the bound of the '
  'sequence, the call fails and reserves nothing, even with CYCLE. It does not change segment_last(). The caller '
  'needs USAGE on the sequence.';

CREATE FUNCTION segment_reserve(sequence regclass, count bigint, OUT first bigint, OUT last bigint,
    OUT increment bigint)
LANGUAGE c VOLATILE PARALLEL SAFE AS 'MODULE_PATHNAME', 'segment_reserve_of';
COMMENT ON FUNCTION segment_reserve(regclass, bigint) IS
  'Reserves a block of exactly count values of a sequence, as segment_reserve(text, bigint) does.';

CREATE FUNCTION segment_last(name text) RETURNS bigint
LANGUAGE c VOLATILE STRICT PARALLEL RESTRICTED AS 'MODULE_PATHNAME', 'segment_last';
COMMENT ON FUNCTION segment_last(text) IS
  'Returns the last value that this session drew from the segment or sequence with that name, as currval does. It '
  'fails before the first value. The caller needs USAGE or SELECT on the sequence.';

CREATE FUNCTION segment_set(name text, value bigint) RETURNS bigint
LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'segment_set';
COMMENT ON FUNCTION segment_set(text, bigint) IS
  'Makes value the next value of the segment with that name, as setval(sequence, value, false) does. This session '
  'uses it at once, and other sessions from the first call of their next transaction on. A lower value makes the '
  'segment repeat values. The caller needs UPDATE on the sequence.';

CREATE FUNCTION uid_internal.uid_sequence_next(sequence regclass, OUT next numeric)
LANGUAGE plpgsql STRICT
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
  IF EXISTS (SELECT FROM pg_sequence q WHERE q.seqrelid = sequence) THEN
    EXECUTE format('SELECT last_value::numeric + CASE WHEN is_called THEN q.seqincrement ELSE 0 END
                      FROM %s, pg_sequence q WHERE q.seqrelid = $1', sequence) INTO next USING sequence;
  END IF;
END
$$;
COMMENT ON FUNCTION uid_internal.uid_sequence_next(regclass) IS
  'Returns the value that nextval() would return, which may be beyond the end of the sequence; NULL if it is none.';
