-- Ids: draw, decode, encode, short forms; generators: create, alter, drop. Applications and column defaults call the
-- functions on ids, and owners of generators the others. generators.sql has the view of generators, and the presets.

CREATE FUNCTION uid_next() RETURNS bigint
LANGUAGE c VOLATILE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'uid_next_default';
COMMENT ON FUNCTION uid_next() IS
  'Returns the next id of the default generator: unique, positive, and larger than all earlier ones, except for ids '
  'of a backup worker. Fails after uidgen.max_wait if the clock or the registry does not allow an id, and at once on '
  'a standby.';

-- Functions with an argument that are called once per row are not STRICT. They return NULL for NULL themselves, which
-- saves a dozen instructions.
CREATE FUNCTION uid_next(generator regclass) RETURNS bigint
LANGUAGE c VOLATILE PARALLEL SAFE AS 'MODULE_PATHNAME', 'uid_next_of';
COMMENT ON FUNCTION uid_next(regclass) IS
  'Returns the next id of a generator, as uid_next() does. Needs USAGE on its sequence.';

CREATE FUNCTION uid_next_array(count bigint) RETURNS bigint[]
LANGUAGE c VOLATILE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'uid_next_array';
COMMENT ON FUNCTION uid_next_array(bigint) IS
  'Returns count ids of the default generator in ascending order. Fails as uid_next() does, if count is negative, '
  'and if the array would exceed 1 GB.';

CREATE FUNCTION uid_next_array(generator regclass, count bigint) RETURNS bigint[]
LANGUAGE c VOLATILE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'uid_next_array';
COMMENT ON FUNCTION uid_next_array(regclass, bigint) IS
  'Returns count ids of a generator in ascending order. Needs USAGE on its sequence.';

CREATE FUNCTION uid_last() RETURNS bigint
LANGUAGE c VOLATILE STRICT PARALLEL RESTRICTED AS 'MODULE_PATHNAME', 'uid_last';
COMMENT ON FUNCTION uid_last() IS
  'Returns the last id that this session drew from any generator; fails if there is none. Ignores ids that parallel '
  'workers drew.';

-- The functions that only compute are not STRICT: without a generator they use the layout of the default one.
CREATE FUNCTION uid_decode(id bigint, generator regclass DEFAULT NULL,
    OUT generated_at timestamptz, OUT datacenter_id integer, OUT worker_id integer, OUT sequence integer,
    OUT backup boolean)
LANGUAGE c STABLE PARALLEL SAFE AS 'MODULE_PATHNAME', 'uid_decode';
COMMENT ON FUNCTION uid_decode(bigint, regclass) IS
  'Returns the parts of an id in the layout of a generator (NULL: the default one); generated_at is the start of its '
  'tick. NULL for a number below every id of the layout, such as one of a sequence; an error if it is negative or '
  'has more bits than the layout.';

CREATE FUNCTION uid_encode(generated_at timestamptz, datacenter_id integer, worker_id integer, sequence integer,
    generator regclass DEFAULT NULL)
RETURNS bigint
LANGUAGE c STABLE PARALLEL SAFE AS 'MODULE_PATHNAME', 'uid_encode';
COMMENT ON FUNCTION uid_encode(timestamptz, integer, integer, integer, regclass) IS
  'Returns the id with the given parts in the layout of a generator (NULL: the default one), without drawing it. '
  'Fails if a part does not fit.';

CREATE FUNCTION uid_timestamp(id bigint, generator regclass DEFAULT NULL) RETURNS timestamptz
LANGUAGE c STABLE PARALLEL SAFE AS 'MODULE_PATHNAME', 'uid_timestamp';
COMMENT ON FUNCTION uid_timestamp(bigint, regclass) IS
  'Returns the start of the tick in which a generator (NULL: the default one) made an id; for other numbers NULL or '
  'an error, as uid_decode().';

CREATE FUNCTION uid_timestamp(id bigint, epoch timestamptz, tick_us bigint, shift integer) RETURNS timestamptz
LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'uid_timestamp_fixed';
COMMENT ON FUNCTION uid_timestamp(bigint, timestamptz, bigint, integer) IS
  'Returns the time of an id by the numbers of its layout, for generated columns and indexes: the time of tick 0, '
  'the length of a tick in microseconds (1 to 3600000000), and the number of bits below the time (0 to 62). NULL for '
  'a number below every id; an error if it is negative.';

CREATE FUNCTION uid_lower_bound(ts timestamptz, generator regclass DEFAULT NULL) RETURNS bigint
LANGUAGE c STABLE PARALLEL SAFE AS 'MODULE_PATHNAME', 'uid_lower_bound';
COMMENT ON FUNCTION uid_lower_bound(timestamptz, regclass) IS
  'Returns the smallest value above every id that a generator (NULL: the default one) can have made before ts: 0 '
  'before the epoch, and one more than the largest id after the end of the layout.';

CREATE FUNCTION uid_lower_bound(ts timestamptz, epoch timestamptz, tick_us bigint, shift integer) RETURNS bigint
LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'uid_lower_bound_fixed';
COMMENT ON FUNCTION uid_lower_bound(timestamptz, timestamptz, bigint, integer) IS
  'Returns the same by the numbers of a layout, as uid_timestamp() takes them, for partition bounds and indexes.';

-- Short texts. None of these functions is LEAKPROOF: their errors tell about their argument.
CREATE FUNCTION uid_to_base62(id bigint) RETURNS text
LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'uid_to_base62';
COMMENT ON FUNCTION uid_to_base62(bigint) IS
  'Returns an id, from 0 to 9223372036854775807, as 11 digits of base 62 (0-9, A-Z, a-z), which sort as ids do in '
  'the collation "C".';

CREATE FUNCTION uid_from_base62(value text) RETURNS bigint
LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'uid_from_base62';
COMMENT ON FUNCTION uid_from_base62(text) IS
  'Returns the id for 1 to 11 digits of base 62, as of uid_to_base62(). Another character and a number above '
  '9223372036854775807 are errors.';

CREATE FUNCTION uid_next_uuid() RETURNS uuid
LANGUAGE c VOLATILE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'uid_next_uuid';
COMMENT ON FUNCTION uid_next_uuid() IS
  'Draws the next id of the default generator and returns it as a UUID of version 7, which contains the id and '
  'random bits, and sorts as ids do.';

CREATE FUNCTION uid_next_uuid(generator regclass) RETURNS uuid
LANGUAGE c VOLATILE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'uid_next_uuid';
COMMENT ON FUNCTION uid_next_uuid(regclass) IS
  'Draws the next id of a generator and returns it as a UUID of version 7. The caller needs USAGE on the '
  'generator''s sequence.';

CREATE FUNCTION uid_to_uuid(id bigint, generator regclass DEFAULT NULL) RETURNS uuid
LANGUAGE c STABLE PARALLEL SAFE AS 'MODULE_PATHNAME', 'uid_to_uuid';
COMMENT ON FUNCTION uid_to_uuid(bigint, regclass) IS
  'Returns an id of a generator (NULL: the default one) as a UUID of version 7, always the same for an id. A number '
  'that is negative or has more bits than the layout is an error.';

CREATE FUNCTION uid_from_uuid(value uuid, generator regclass DEFAULT NULL) RETURNS bigint
LANGUAGE c STABLE PARALLEL SAFE AS 'MODULE_PATHNAME', 'uid_from_uuid';
COMMENT ON FUNCTION uid_from_uuid(uuid, regclass) IS
  'Returns the id in a UUID of uid_next_uuid() or uid_to_uuid() with the layout of a generator (NULL: the default '
  'one). Others are errors, except one in 65,536 UUIDs of version 7 from other programs.';

CREATE FUNCTION uid_generator_create(name text, preset text DEFAULT 'snowflake', above bigint DEFAULT NULL,
    epoch timestamptz DEFAULT NULL, tick_us bigint DEFAULT NULL, time_bits integer DEFAULT NULL,
    datacenter_bits integer DEFAULT NULL, worker_bits integer DEFAULT NULL, sequence_bits integer DEFAULT NULL,
    sequence_first boolean DEFAULT NULL, backup_worker boolean DEFAULT NULL, lease_ms integer DEFAULT NULL,
    max_ahead_ms integer DEFAULT NULL, when_full text DEFAULT NULL, when_back text DEFAULT NULL,
    tolerance_ms integer DEFAULT NULL, spread boolean DEFAULT NULL, worker_policy text DEFAULT NULL,
    worker_number integer DEFAULT NULL, mode text DEFAULT NULL, boost_power integer DEFAULT NULL,
    padding_factor integer DEFAULT NULL, schedule_ms integer DEFAULT NULL,
    when_ring_empty text DEFAULT NULL, max_staleness_ms integer DEFAULT NULL,
    datacenter_id integer DEFAULT NULL, own_pool boolean DEFAULT NULL, template regclass DEFAULT NULL,
    if_not_exists boolean DEFAULT false)
RETURNS regclass
LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'uid_generator_create';
COMMENT ON FUNCTION uid_generator_create IS
  'Creates a generator, a sequence in uid_generators, with the fields of a preset or of another generator '
  '(template), except for the arguments that are not NULL; -1 stands for NULL. With above, all its ids are above '
  'that id. If it exists, the call fails, or with if_not_exists changes nothing. Needs CREATE on the schema '
  'uid_generators; USAGE on the sequence lets a role draw.';

CREATE FUNCTION uid_generator_raise(generator regclass, above bigint) RETURNS void
LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'uid_generator_raise';
COMMENT ON FUNCTION uid_generator_raise(regclass, bigint) IS
  'Raises a generator so that all its ids from now on are above the given id. Fails if it would then be further '
  'ahead of the clock than max_ahead_ms. Only the owner of the sequence may call it.';

CREATE FUNCTION uid_generator_alter(generator regclass,
    epoch timestamptz DEFAULT NULL, tick_us bigint DEFAULT NULL, time_bits integer DEFAULT NULL,
    datacenter_bits integer DEFAULT NULL, worker_bits integer DEFAULT NULL, sequence_bits integer DEFAULT NULL,
    sequence_first boolean DEFAULT NULL, backup_worker boolean DEFAULT NULL, lease_ms integer DEFAULT NULL,
    max_ahead_ms integer DEFAULT NULL, when_full text DEFAULT NULL, when_back text DEFAULT NULL,
    tolerance_ms integer DEFAULT NULL, spread boolean DEFAULT NULL, worker_policy text DEFAULT NULL,
    worker_number integer DEFAULT NULL, mode text DEFAULT NULL, boost_power integer DEFAULT NULL,
    padding_factor integer DEFAULT NULL, schedule_ms integer DEFAULT NULL, when_ring_empty text DEFAULT NULL,
    max_staleness_ms integer DEFAULT NULL, datacenter_id integer DEFAULT NULL, own_pool boolean DEFAULT NULL)
RETURNS void
LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'uid_generator_alter';
COMMENT ON FUNCTION uid_generator_alter IS
  'Changes the fields of a generator whose argument is not NULL; -1 sets one to NULL. The layout can change only '
  'before the first id. Waits for transactions that have drawn, and may wait for the clock if max_ahead_ms becomes '
  'shorter. Only the owner of the sequence may call it.';

CREATE FUNCTION uid_generator_drop(generator regclass) RETURNS void
LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'uid_generator_drop';
COMMENT ON FUNCTION uid_generator_drop(regclass) IS
  'Drops a generator; fails for the default one, and for one that a column default uses. Only the owner of the '
  'sequence may call it.';

CREATE FUNCTION uid_default_set(generator regclass) RETURNS void
LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'uid_default_set';
COMMENT ON FUNCTION uid_default_set(regclass) IS
  'Makes a generator the one behind uid_next(), above the ids of the former default; fails if these are too far '
  'ahead of the clock. Waits for transactions that have drawn. Only the owner of the database or of the extension '
  'may call it. Raises a WARNING if roles that could draw from the former default lack USAGE on the sequence.';
