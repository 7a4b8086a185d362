-- Reads the ids of uidgen in a database that cannot have the extension, such as a managed PostgreSQL. For PostgreSQL 14
-- and later, with the names and results of the extension: uid_decode, uid_timestamp, uid_lower_bound and base62. It draws
-- no ids, and has no functions of UUIDs and keys.
--
--   CREATE SCHEMA uidgen;
--   SET search_path = uidgen, pg_temp;     -- which the functions keep
--   \i uidgen_reader.sql
--
-- The table uid_generator has the layout of the builtin generator. Copy the others from the database with the extension:
--
--   COPY (SELECT generator::text, epoch, tick_us, time_bits, datacenter_bits, worker_bits, sequence_bits, sequence_first,
--         backup_worker, is_default FROM uidgen.uid_generator) TO STDOUT \g layouts
--
-- And in the other one:
--
--   TRUNCATE uid_generator;
--   \copy uid_generator FROM layouts
--   SELECT format('CREATE SEQUENCE IF NOT EXISTS %s', generator) FROM uid_generator \gexec
--
-- pg_restore then restores the tables of a dump (pg_dump -Fc) with their rows. Errors about the extension, its own tables
-- and functions, labels, and schemas and sequences that exist do no harm, but views that use other functions are missing.
-- Draws fail. Do not run a dump in plain SQL: psql takes the rows of a table that is missing for statements.

CREATE SCHEMA IF NOT EXISTS uid_generators;
CREATE SCHEMA IF NOT EXISTS uid_segments;
CREATE SEQUENCE IF NOT EXISTS uid_generators.uid_default;

CREATE TABLE uid_generator (
  generator       text        PRIMARY KEY,
  epoch           timestamptz NOT NULL,
  tick_us         bigint      NOT NULL,
  time_bits       smallint    NOT NULL,
  datacenter_bits smallint    NOT NULL,
  worker_bits     smallint    NOT NULL,
  sequence_bits   smallint    NOT NULL,
  sequence_first  boolean     NOT NULL,
  backup_worker   boolean     NOT NULL,
  is_default      boolean     NOT NULL
);
COMMENT ON TABLE uid_generator IS 'The layouts of ids, as the view uid_generator of the extension has them.';
INSERT INTO uid_generator VALUES
  ('uid_generators.uid_default', '2026-01-01 00:00:00+00', 1000, 41, 5, 5, 12, false, false, true);

GRANT USAGE ON SCHEMA uid_generators TO PUBLIC;
GRANT SELECT ON uid_generator TO PUBLIC;

CREATE FUNCTION uid_refuse() RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'this database reads ids and cannot draw any' USING ERRCODE = 'feature_not_supported',
    HINT = 'Draw in a database with the extension uidgen, or choose another default for the column.';
END
$$;
-- What the defaults of columns call.
CREATE FUNCTION uid_next(generator regclass DEFAULT NULL) RETURNS bigint RETURN uid_refuse();
CREATE FUNCTION uid_next_uuid(generator regclass DEFAULT NULL) RETURNS uuid RETURN uid_refuse()::text::uuid;
CREATE FUNCTION segment_next(sequence regclass) RETURNS bigint RETURN uid_refuse();

-- The layout of a generator (NULL: the default one).
CREATE FUNCTION uid_layout_of(of regclass) RETURNS uid_generator LANGUAGE plpgsql STABLE
SET search_path FROM CURRENT AS $$
DECLARE
  layout uid_generator;
BEGIN
  SELECT * INTO layout FROM uid_generator g
   WHERE CASE WHEN of IS NULL THEN g.is_default ELSE to_regclass(g.generator) = of END;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'no layout of generator "%" is known', coalesce(of::text, 'the default one')
      USING ERRCODE = CASE WHEN of IS NULL THEN 'undefined_object' ELSE 'wrong_object_type' END, HINT = 'Copy the layouts into the table uid_generator.';
  END IF;
  RETURN layout;
END
$$;

-- The first tick without ids: the time ends with the bits of a bigint, or 2^48 ms after 1970.
CREATE FUNCTION uid_end_tick(epoch timestamptz, tick_us bigint, shift integer) RETURNS numeric
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$
  SELECT 1 + least(div(281474976710656000 - extract(epoch FROM epoch) * 1000000, tick_us), 9223372036854775807 >> shift)
$$;

CREATE FUNCTION uid_timestamp(id bigint, epoch timestamptz, tick_us bigint, shift integer) RETURNS timestamptz
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE SET search_path FROM CURRENT AS $$
DECLARE
  us numeric := (id >> shift)::numeric * tick_us;
BEGIN
  IF id < 0 OR id >> shift >= uid_end_tick(epoch, tick_us, shift) THEN
    RAISE EXCEPTION 'value % is not an id of this layout', id USING ERRCODE = 'numeric_value_out_of_range';
  ELSIF id >> shift <= 1 THEN -- no generator makes ids of its first ticks
    RETURN NULL;
  END IF;
  RETURN epoch + div(us, 1000000)::float8 * interval '1 second' + mod(us, 1000000)::float8 * interval '1 microsecond';
END
$$;

CREATE FUNCTION uid_decode(id bigint, generator regclass DEFAULT NULL,
    OUT generated_at timestamptz, OUT datacenter_id integer, OUT worker_id integer, OUT sequence integer,
    OUT backup boolean)
LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path FROM CURRENT AS $$
DECLARE
  l uid_generator := uid_layout_of(generator);
  node_bits integer := l.datacenter_bits + l.worker_bits;
  shift integer := node_bits + l.sequence_bits;
  worker_shift integer := CASE WHEN l.sequence_first THEN 0 ELSE l.sequence_bits END;
  worker bigint;
  backup_bit bigint := CASE WHEN l.backup_worker THEN 1::bigint << (l.worker_bits - 1) ELSE 0 END;
BEGIN
  IF id IS NULL THEN
    RETURN;
  ELSIF id < 0 OR id >> shift >= 1::bigint << l.time_bits THEN
    RAISE EXCEPTION 'value % is not an id of generator "%"', id, l.generator USING ERRCODE = 'numeric_value_out_of_range';
  END IF;
  generated_at := uid_timestamp(id, l.epoch, l.tick_us, shift);
  IF generated_at IS NULL THEN
    RETURN;
  END IF;
  worker := id >> worker_shift & (1::bigint << l.worker_bits) - 1;
  datacenter_id := id >> worker_shift + l.worker_bits & (1::bigint << l.datacenter_bits) - 1;
  worker_id := worker & ~backup_bit;
  backup := worker & backup_bit <> 0;
  sequence := id >> CASE WHEN l.sequence_first THEN node_bits ELSE 0 END & (1::bigint << l.sequence_bits) - 1;
END
$$;

CREATE FUNCTION uid_timestamp(id bigint, generator regclass DEFAULT NULL) RETURNS timestamptz
LANGUAGE sql STABLE PARALLEL SAFE SET search_path FROM CURRENT AS $$
  SELECT generated_at FROM uid_decode(id, generator)
$$;

-- One more than the largest id, after the end of the layout's time.
CREATE FUNCTION uid_lower_bound(ts timestamptz, epoch timestamptz, tick_us bigint, shift integer, ends numeric)
RETURNS bigint LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
DECLARE
  tick numeric := CASE WHEN ts <= epoch THEN 0
                       ELSE ceil((least(extract(epoch FROM ts), 281474976710.656) - extract(epoch FROM epoch)) * 1000000
                                 / tick_us) END;
BEGIN
  RETURN least(least(tick, ends) * 2::numeric ^ shift, 9223372036854775807);
END
$$;

CREATE FUNCTION uid_lower_bound(ts timestamptz, epoch timestamptz, tick_us bigint, shift integer) RETURNS bigint
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE SET search_path FROM CURRENT AS $$
  SELECT uid_lower_bound(ts, epoch, tick_us, shift, uid_end_tick(epoch, tick_us, shift))
$$;

CREATE FUNCTION uid_lower_bound(ts timestamptz, generator regclass DEFAULT NULL) RETURNS bigint
LANGUAGE sql STABLE PARALLEL SAFE SET search_path FROM CURRENT AS $$
  SELECT uid_lower_bound(ts, l.epoch, l.tick_us, l.datacenter_bits + l.worker_bits + l.sequence_bits,
                         2::numeric ^ l.time_bits)
    FROM uid_layout_of(generator) l
$$;

CREATE FUNCTION uid_to_base62(id bigint) RETURNS text LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
DECLARE
  digits text := '';
BEGIN
  IF id < 0 THEN
    RAISE EXCEPTION 'cannot convert % to base62', id USING ERRCODE = 'numeric_value_out_of_range';
  END IF;
  FOR i IN 1 .. 11 LOOP
    digits := substr('0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz', (id % 62)::integer + 1, 1) || digits;
    id := id / 62;
  END LOOP;
  RETURN digits;
END
$$;

CREATE FUNCTION uid_from_base62(value text) RETURNS bigint LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
DECLARE
  id numeric := 0;
BEGIN
  FOR i IN 1 .. length(value) LOOP
    id := id * 62 - 1 + nullif(strpos('0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz', substr(value, i, 1)), 0);
  END LOOP;
  IF value = '' OR id IS NULL OR id > 9223372036854775807 THEN
    RAISE EXCEPTION 'invalid base62 text: "%"', left(value, 63) USING ERRCODE = 'invalid_text_representation';
  END IF;
  RETURN id;
END
$$;
