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
  'The segments, as the security labels of their sequences define them. The columns from step on are NULL if a label '
  'cannot be read.';
COMMENT ON COLUMN uid_segment.name IS
  'name of the segment, up to 2,500 bytes; NULL: its sequence is not in the schema uid_segments';
COMMENT ON COLUMN uid_segment.sequence IS 'sequence that holds the counter; USAGE on it lets a role draw';
COMMENT ON COLUMN uid_segment.step IS
  'initial and minimum number of values that one record reserves, 1 to 2^40; NULL: uidgen.segment_step';
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
  'Creates a segment whose first value is start, and that reserves step to max_step values at a time (NULL: the '
  'settings). increment, min_value, max_value and cycle are those of CREATE SEQUENCE. If it exists, the call fails, '
  'or with if_not_exists changes nothing. Needs CREATE on the schema uid_segments; USAGE on the sequence lets a role '
  'draw.';

CREATE FUNCTION segment_alter(name text, step bigint DEFAULT NULL, max_step bigint DEFAULT NULL)
RETURNS void
LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'segment_alter';
COMMENT ON FUNCTION segment_alter(text, bigint, bigint) IS
  'Changes step or max_step of a segment from its next range on; NULL leaves it, and 0 stands for the setting. Only '
  'the owner of the sequence may call it.';

CREATE FUNCTION uid_internal.uid_change_segment(sequence regclass, step bigint DEFAULT NULL,
    max_step bigint DEFAULT NULL, fleet bigint DEFAULT NULL, increment bigint DEFAULT NULL) RETURNS void
LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'uid_change_segment';
COMMENT ON FUNCTION uid_internal.uid_change_segment(regclass, bigint, bigint, bigint, bigint) IS
  'Sets those fields of a segment that are not NULL. segment_attach() calls it. Only the owner of the sequence may '
  'call it.';

CREATE FUNCTION segment_drop(name text) RETURNS void
LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'segment_drop';
COMMENT ON FUNCTION segment_drop(text) IS
  'Drops a segment; fails if a column default uses it. Only the owner of the sequence may call it.';

CREATE FUNCTION segment_next(name text) RETURNS bigint
LANGUAGE c VOLATILE PARALLEL SAFE AS 'MODULE_PATHNAME', 'segment_next_named';
COMMENT ON FUNCTION segment_next(text) IS
  'Returns the next value of the segment, or else the sequence, of that name. Fails when no value is left, and on a '
  'standby. Needs USAGE on the sequence.';

CREATE FUNCTION segment_next(sequence regclass) RETURNS bigint
LANGUAGE c VOLATILE PARALLEL SAFE AS 'MODULE_PATHNAME', 'segment_next_of';
COMMENT ON FUNCTION segment_next(regclass) IS
  'Returns the next value of any permanent sequence; unlike that of nextval, it is durable before it is returned. '
  'Needs USAGE on the sequence.';

CREATE FUNCTION segment_next_array(name text, count bigint) RETURNS bigint[]
LANGUAGE c VOLATILE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'segment_next_array_named';
COMMENT ON FUNCTION segment_next_array(text, bigint) IS
  'Returns count values of a segment or sequence, in order. Fails as segment_next() does, if count is negative, and '
  'if the array would exceed 1 GB.';

CREATE FUNCTION segment_next_array(sequence regclass, count bigint) RETURNS bigint[]
LANGUAGE c VOLATILE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'segment_next_array_of';
COMMENT ON FUNCTION segment_next_array(regclass, bigint) IS
  'Returns count values of a sequence, in order, as segment_next_array(text, bigint) does.';

CREATE FUNCTION segment_reserve(name text, count bigint, OUT first bigint, OUT last bigint, OUT increment bigint)
LANGUAGE c VOLATILE PARALLEL SAFE AS 'MODULE_PATHNAME', 'segment_reserve_named';
COMMENT ON FUNCTION segment_reserve(text, bigint) IS
  'Reserves a block of count values of a segment for the caller alone: first, first + increment, and so on to last, '
  'beyond everything reserved before it. Fails if fewer are left, even with CYCLE. Needs USAGE on the sequence, and '
  'UPDATE for more than max_step values.';

CREATE FUNCTION segment_reserve(sequence regclass, count bigint, OUT first bigint, OUT last bigint,
    OUT increment bigint)
LANGUAGE c VOLATILE PARALLEL SAFE AS 'MODULE_PATHNAME', 'segment_reserve_of';
COMMENT ON FUNCTION segment_reserve(regclass, bigint) IS
  'Reserves a block of exactly count values of a sequence, as segment_reserve(text, bigint) does.';

CREATE FUNCTION segment_last(name text) RETURNS bigint
LANGUAGE c VOLATILE STRICT PARALLEL RESTRICTED AS 'MODULE_PATHNAME', 'segment_last';
COMMENT ON FUNCTION segment_last(text) IS
  'Returns the last value that this session drew from a segment or sequence; fails if there is none. Needs USAGE or '
  'SELECT on the sequence.';

CREATE FUNCTION segment_set(name text, value bigint) RETURNS bigint
LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'segment_set';
COMMENT ON FUNCTION segment_set(text, bigint) IS
  'Makes value the next value of a segment, in other sessions from their next transaction on. A lower value makes '
  'values repeat. Needs UPDATE on the sequence.';

CREATE FUNCTION uid_internal.uid_sequence_next(sequence regclass, OUT next numeric)
LANGUAGE plpgsql STRICT
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
  IF EXISTS (SELECT FROM pg_sequence q WHERE q.seqrelid = sequence) THEN
    EXECUTE format('SELECT last_value::numeric + CASE WHEN is_called THEN q.seqincrement ELSE 0 END
                      FROM %s v, pg_sequence q WHERE q.seqrelid = $1', sequence) INTO next USING sequence;
  END IF;
END
$$;
COMMENT ON FUNCTION uid_internal.uid_sequence_next(regclass) IS
  'Returns the value that nextval() would return, which may be beyond the end of the sequence; NULL if it is none.';
