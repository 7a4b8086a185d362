-- Segments: sequences whose values are reserved a range at a time. Applications call segment_next(),
-- segment_next_array(), segment_reserve() and segment_last(); owners of segments call the others. A segment is a
-- sequence of its name in the schema uid_segments, whose security label defines it.

CREATE FUNCTION uid_internal.uid_read_segment(label text, OUT name text, OUT step bigint, OUT max_step bigint,
    OUT registry_name text, OUT fleet bigint, OUT increment bigint)
LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'uid_definition';
COMMENT ON FUNCTION uid_internal.uid_read_segment(text) IS
  'Returns what the label of a segment''s sequence says; NULL if it cannot be read.';

CREATE VIEW uid_internal.segments AS
SELECT CASE WHEN c.relnamespace <> 'uid_segments'::regnamespace::oid THEN NULL::text
            WHEN pg_catalog.octet_length(d.name) > 63 THEN d.name
            ELSE c.relname::text END AS name,
       c.oid::regclass AS sequence, d.step, d.max_step, d.registry_name, d.fleet, d.increment
  FROM pg_catalog.pg_seclabel l JOIN pg_catalog.pg_class c ON c.oid = l.objoid
 CROSS JOIN LATERAL uid_internal.uid_read_segment(l.label) d
 WHERE l.classoid = 'pg_catalog.pg_class'::regclass::oid AND l.objsubid = 0 AND l.provider = 'uidgen'::text
   AND pg_catalog.starts_with(l.label, 'segment '::text);
COMMENT ON VIEW uid_internal.segments IS 'The view uid_segment, for functions.';

CREATE VIEW uid_segment AS
SELECT name, sequence, step, max_step, registry_name, fleet, increment FROM uid_internal.segments;
COMMENT ON VIEW uid_segment IS
  'The named segments. segment_create() and segment_attach() create one. The security label of its sequence defines '
  'it. The columns from step to increment are NULL if the label cannot be read.';
COMMENT ON COLUMN uid_segment.name IS
  'name of the segment, up to 2,500 bytes; NULL: its sequence is not in the schema uid_segments';
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

CREATE FUNCTION uid_internal.uid_define_segment(sequence regclass, name text, step bigint, max_step bigint,
    registry_name text DEFAULT NULL, fleet bigint DEFAULT NULL, increment bigint DEFAULT NULL) RETURNS void
LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'uid_define_segment';
COMMENT ON FUNCTION uid_internal.uid_define_segment(regclass, text, bigint, bigint, text, bigint, bigint) IS
  'Makes a sequence without a label a segment with those fields. Only the owner of the sequence may call it.';

CREATE FUNCTION segment_create(name text, start bigint DEFAULT 1, step bigint DEFAULT NULL,
    max_step bigint DEFAULT NULL, increment bigint DEFAULT NULL,
    min_value bigint DEFAULT NULL, max_value bigint DEFAULT NULL, cycle boolean DEFAULT NULL,
    if_not_exists boolean DEFAULT false) RETURNS regclass
LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'segment_create';
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
