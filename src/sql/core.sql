-- Ids: draw, decode, encode, short forms; generators: create, alter, drop. Applications and column defaults call the
-- functions on ids, and owners of generators the others. generators.sql has the view of generators, and the presets.

CREATE FUNCTION uid_next() RETURNS bigint
LANGUAGE c VOLATILE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'uid_next_default';
COMMENT ON FUNCTION uid_next() IS
  'Returns the next id of the default generator, which is unique, positive, and larger than every earlier id, except '
  'for ids of a backup worker. Use it as DEFAULT uid_next(). A call that waits for the clock or for the registry fails '
  'after uidgen.max_wait. On a standby, and once the time bits of the layout are used up, it fails at once.';

-- Functions with an argument that are called once per row are not STRICT. They return NULL for NULL themselves, which
-- saves a dozen instructions.
CREATE FUNCTION uid_next(generator regclass) RETURNS bigint
LANGUAGE c VOLATILE PARALLEL SAFE AS 'MODULE_PATHNAME', 'uid_next_of';
COMMENT ON FUNCTION uid_next(regclass) IS
  'Returns the next id of a generator. The caller needs USAGE on its sequence. It fails in the same cases as '
  'uid_next(), and if the sequence does not belong to a generator.';

CREATE FUNCTION uid_next_array(count bigint) RETURNS bigint[]
LANGUAGE c VOLATILE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'uid_next_array';
COMMENT ON FUNCTION uid_next_array(bigint) IS
  'Returns count ids of the default generator in ascending order, as an array. The call takes all ids before it '
  'returns, so a call that fails leaves a gap. It fails in the same cases as uid_next(), if count is negative, and if '
  'the array would exceed 1 GB.';

CREATE FUNCTION uid_next_array(generator regclass, count bigint) RETURNS bigint[]
LANGUAGE c VOLATILE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'uid_next_array';
COMMENT ON FUNCTION uid_next_array(regclass, bigint) IS
  'Returns count ids of a generator in ascending order, as uid_next_array(bigint) does. The caller needs USAGE on '
  'its sequence.';

CREATE FUNCTION uid_last() RETURNS bigint
LANGUAGE c VOLATILE STRICT PARALLEL RESTRICTED AS 'MODULE_PATHNAME', 'uid_last';
COMMENT ON FUNCTION uid_last() IS
  'Returns the last id that this session drew from any generator. After uid_next_array(), that is the last id of the '
  'array. It fails if the session has drawn none. It ignores ids that parallel workers drew, and checks no privilege.';

-- The functions that only compute are not STRICT: without a generator they use the layout of the default one.
CREATE FUNCTION uid_decode(id bigint, generator regclass DEFAULT NULL,
    OUT generated_at timestamptz, OUT datacenter_id integer, OUT worker_id integer, OUT sequence integer,
    OUT backup boolean)
LANGUAGE c STABLE PARALLEL SAFE AS 'MODULE_PATHNAME', 'uid_decode';
COMMENT ON FUNCTION uid_decode(bigint, regclass) IS
  'Returns the parts of an id in the layout of a generator (NULL: the default one). generated_at is the start of the '
  'id''s tick. backup is true if the backup worker made the id, and worker_id is the number without that bit. The '
  'result is NULL for a number below every id of the layout, such as one of a sequence. A number that is negative or '
  'has more bits than the layout is an error.';

CREATE FUNCTION uid_encode(generated_at timestamptz, datacenter_id integer, worker_id integer, sequence integer,
    generator regclass DEFAULT NULL)
RETURNS bigint
LANGUAGE c STABLE PARALLEL SAFE AS 'MODULE_PATHNAME', 'uid_encode';
COMMENT ON FUNCTION uid_encode(timestamptz, integer, integer, integer, regclass) IS
  'Returns the id with the given parts in the layout of a generator (NULL: the default one). If a part does not fit, '
  'the error names it. The function only computes the id, and draws none.';

CREATE FUNCTION uid_timestamp(id bigint, generator regclass DEFAULT NULL) RETURNS timestamptz
LANGUAGE c STABLE PARALLEL SAFE AS 'MODULE_PATHNAME', 'uid_timestamp';
COMMENT ON FUNCTION uid_timestamp(bigint, regclass) IS
  'Returns the time at which a generator (NULL: the default one) made an id: the start of the id''s tick. Numbers '
  'that are not ids give NULL or an error, as with uid_decode().';

CREATE FUNCTION uid_timestamp(id bigint, epoch timestamptz, tick_us bigint, shift integer) RETURNS timestamptz
LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'uid_timestamp_fixed';
COMMENT ON FUNCTION uid_timestamp(bigint, timestamptz, bigint, integer) IS
  'Returns the time at which an id was made, from the numbers of its layout. Use it in generated columns and indexes. '
  'epoch is the time of tick 0, tick_us the length of a tick in microseconds (1 to 3600000000), and shift the number '
  'of bits below the time (0 to 62): datacenter_bits + worker_bits + sequence_bits. The result is NULL for a number '
  'below every id of the layout. A negative number, and an argument out of its range, are errors.';

CREATE FUNCTION uid_lower_bound(ts timestamptz, generator regclass DEFAULT NULL) RETURNS bigint
LANGUAGE c STABLE PARALLEL SAFE AS 'MODULE_PATHNAME', 'uid_lower_bound';
COMMENT ON FUNCTION uid_lower_bound(timestamptz, regclass) IS
  'Returns the smallest value above every id of a generator (NULL: the default one) that can have been made before '
  'ts. The condition id >= uid_lower_bound(a) AND id < uid_lower_bound(b) selects the ids made from a on and before '
  'b. The result is 0 before the epoch, and one more than the largest id after the end of the layout''s time.';

CREATE FUNCTION uid_lower_bound(ts timestamptz, epoch timestamptz, tick_us bigint, shift integer) RETURNS bigint
LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'uid_lower_bound_fixed';
COMMENT ON FUNCTION uid_lower_bound(timestamptz, timestamptz, bigint, integer) IS
  'Returns the smallest value above every id that can have been made before ts, from the numbers of a layout, as '
  'uid_timestamp() takes them. Use it in partition bounds and indexes.';

-- Short texts. None of these functions is LEAKPROOF: their errors tell about their argument.
CREATE FUNCTION uid_to_base62(id bigint) RETURNS text
LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'uid_to_base62';
COMMENT ON FUNCTION uid_to_base62(bigint) IS
  'Returns an id as 11 characters: the digits 0-9, A-Z and a-z of base 62, with leading zeros. With the collation '
  '"C" the texts sort as the ids do. Any number from 0 to 9223372036854775807 can be converted; a negative one is an '
  'error.';

CREATE FUNCTION uid_from_base62(value text) RETURNS bigint
LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'uid_from_base62';
COMMENT ON FUNCTION uid_from_base62(text) IS
  'Returns the id for a text of uid_to_base62(). Leading zeros may be missing. An empty text, a character that is not '
  'a digit, and a number above 9223372036854775807 are errors.';

CREATE FUNCTION uid_next_uuid() RETURNS uuid
LANGUAGE c VOLATILE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'uid_next_uuid';
COMMENT ON FUNCTION uid_next_uuid() IS
  'Draws the next id of the default generator and returns it as a UUID of version 7, which is as unique and as '
  'ordered as the id. It contains the whole id, beginning with its time in milliseconds; the bits that the id leaves '
  'free are random, except for some check bits. Use it as DEFAULT uid_next_uuid(). uid_last() returns the id, and so '
  'does uid_from_uuid().';

CREATE FUNCTION uid_next_uuid(generator regclass) RETURNS uuid
LANGUAGE c VOLATILE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'uid_next_uuid';
COMMENT ON FUNCTION uid_next_uuid(regclass) IS
  'Draws the next id of a generator and returns it as a UUID of version 7. The caller needs USAGE on the generator''s '
  'sequence.';

CREATE FUNCTION uid_to_uuid(id bigint, generator regclass DEFAULT NULL) RETURNS uuid
LANGUAGE c STABLE PARALLEL SAFE AS 'MODULE_PATHNAME', 'uid_to_uuid';
COMMENT ON FUNCTION uid_to_uuid(bigint, regclass) IS
  'Returns an id of a generator (NULL: the default one) as a UUID of version 7, always the same for an id: the bits '
  'that are random in uid_next_uuid() are 0. UUIDs of one generator sort as its ids do. A number that is negative or '
  'has more bits than the layout is an error.';

CREATE FUNCTION uid_from_uuid(value uuid, generator regclass DEFAULT NULL) RETURNS bigint
LANGUAGE c STABLE PARALLEL SAFE AS 'MODULE_PATHNAME', 'uid_from_uuid';
COMMENT ON FUNCTION uid_from_uuid(uuid, regclass) IS
  'Returns the id in a UUID that uid_next_uuid() or uid_to_uuid() made with the layout of a generator (NULL: the '
  'default one). Any other UUID is an error, unless its check bits match by chance, as in one of 65,536 UUIDs of '
  'version 7 from other programs.';

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
  'Creates a generator: a lease sequence uid_generators.<name>, owned by the caller, whose security label defines it. '
  'The fields come from a preset (SELECT * FROM uid_preset) or, with template, from another generator, and each argument '
  'that is not NULL replaces one; the columns of uid_generator explain them, and -1 stands for NULL. With template, the '
  'roles that may draw from that generator may draw from this one. With above, all ids are above that id. A sequence of '
  'that name that has lost its label, as in a restore without labels, is taken over. If the generator exists, the call '
  'fails, or with if_not_exists issues a NOTICE. The caller needs CREATE on the schema uid_generators. Let other roles '
  'draw with GRANT USAGE ON SEQUENCE.';

CREATE FUNCTION uid_generator_raise(generator regclass, above bigint) RETURNS void
LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'uid_generator_raise';
COMMENT ON FUNCTION uid_generator_raise(regclass, bigint) IS
  'Raises the high-water mark of a generator, so that from now on all its ids are above the given id, even if the '
  'clock moves backwards. It fails if the generator would then be further ahead of the clock than max_ahead_ms. Only '
  'the owner of the sequence may call it.';

CREATE FUNCTION uid_generator_alter(generator regclass,
    epoch timestamptz DEFAULT NULL, tick_us bigint DEFAULT NULL, time_bits integer DEFAULT NULL,
    datacenter_bits integer DEFAULT NULL, worker_bits integer DEFAULT NULL, sequence_bits integer DEFAULT NULL,
    sequence_first boolean DEFAULT NULL, backup_worker boolean DEFAULT NULL, lease_ms integer DEFAULT NULL,
    max_ahead_ms integer DEFAULT NULL, when_full text DEFAULT NULL, when_back text DEFAULT NULL,
    tolerance_ms integer DEFAULT NULL, spread boolean DEFAULT NULL, worker_policy text DEFAULT NULL,
    worker_number integer DEFAULT NULL, mode text DEFAULT NULL, boost_power integer DEFAULT NULL,
    padding_factor integer DEFAULT NULL, schedule_ms integer DEFAULT NULL, when_ring_empty text DEFAULT NULL, max_staleness_ms integer DEFAULT NULL,
    datacenter_id integer DEFAULT NULL, own_pool boolean DEFAULT NULL) RETURNS void
LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'uid_generator_alter';
COMMENT ON FUNCTION uid_generator_alter IS
  'Changes fields of a generator. An argument that is NULL leaves its field unchanged, and -1 sets a field that may '
  'be NULL to NULL. The layout (epoch, tick_us, widths, field order, backup_worker) can change only before the first '
  'id. After that, create a new generator above the old one: uid_generator_create(..., above => ...). Limits and '
  'policies can change at any time. The call waits for transactions that have drawn, in short attempts, so that other '
  'sessions can draw in between. If max_ahead_ms becomes shorter than the generator''s lead, it also waits for the '
  'clock. The next id starts above the current lease. A generator whose worker id is drawn (worker_policy disposable, '
  'no registry) draws a new one. Only the owner of the sequence may call it.';

CREATE FUNCTION uid_generator_drop(generator regclass) RETURNS void
LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'uid_generator_drop';
COMMENT ON FUNCTION uid_generator_drop(regclass) IS
  'Drops a generator. Only the owner of the sequence may call it. It fails for the default generator, and for a '
  'generator that a column default uses.';

CREATE FUNCTION uid_default_set(generator regclass) RETURNS void
LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'uid_default_set';
COMMENT ON FUNCTION uid_default_set(regclass) IS
  'Makes a generator the default: the one behind uid_next() in this database. The call raises it above the ids of the '
  'former default, and fails if these are too far ahead of the clock for its layout. It waits for transactions that have '
  'drawn from the former default, in short attempts, so that other sessions can draw in between. Only the owner of the '
  'database or of the extension may call it. Grant USAGE on the sequence of the new default to the roles that draw.';
