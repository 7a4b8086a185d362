-- The messages between the members of a fleet and its registry, for tests that speak the protocol by hand: rows in
-- PostgreSQL's binary format, one after another, with the columns of src/pg/fleet/message.cpp.
CREATE TYPE fleet_request AS (
  protocol integer,
  fleet bigint, term bigint, term_nonce bigint, serial bigint, seal bigint,
  other_granted_us bigint, other_term bigint, other_term_nonce bigint, other_seal bigint,
  host text, port text, database text, version text,
  incarnation bigint, former bytea,
  held_node bigint, held_from bigint, held_until bigint, held_membership bigint, held_term bigint,
  held_term_nonce bigint, held_serial bigint, held_seal bigint,
  clock_us bigint, lowest bigint, length bigint, generator text, preset text,
  layout_epoch_us bigint, tick_us bigint, time_bits integer, datacenter_bits integer, worker_bits integer,
  sequence_bits integer, sequence_first boolean, backup_worker boolean,
  own_pool boolean, policy text, worker_number integer, datacenter_id integer, former_node bigint, former_until bigint,
  segment text, count bigint, shown bigint, increment bigint);

CREATE TYPE fleet_answer AS (
  fleet bigint, term bigint, term_nonce bigint, serial bigint, seal bigint,
  refusal text, message text, hint text,
  clock_us bigint, server bigint, is_open boolean, awaits_member boolean, longest_us bigint, granted_last_us bigint, granted_last_seal bigint,
  node bigint, granted_from bigint, granted_until bigint, membership bigint, held_seal bigint,
  first bigint, count bigint, increment bigint, is_synchronous boolean);

-- Incarnations, as `former` has them.
CREATE FUNCTION lives_of(VARIADIC incarnations bigint[]) RETURNS bytea LANGUAGE sql AS $$
  SELECT coalesce(pg_catalog.string_agg(pg_catalog.int8send(life), ''::bytea ORDER BY place), ''::bytea)
    FROM pg_catalog.unnest(incarnations) WITH ORDINALITY AS l(life, place) $$;

-- Its `former` may be an array of numbers.
CREATE FUNCTION request_of(fields jsonb) RETURNS fleet_request LANGUAGE sql AS $$
  SELECT pg_catalog.jsonb_populate_record(NULL::fleet_request, CASE WHEN pg_catalog.jsonb_typeof(fields->'former') <> 'array' THEN fields
    ELSE fields || pg_catalog.jsonb_build_object('former', (SELECT coalesce(pg_catalog.string_agg(pg_catalog.int8send(life::bigint), ''::bytea), ''::bytea)
                     FROM pg_catalog.jsonb_array_elements_text(fields->'former') life)) END) $$;

CREATE FUNCTION message_of(VARIADIC requests fleet_request[]) RETURNS bytea LANGUAGE sql AS $$
  SELECT pg_catalog.string_agg(pg_catalog.record_send(requests[i]), ''::bytea ORDER BY i)
    FROM pg_catalog.generate_subscripts(requests, 1) i $$;

-- Each row of a message as an object, which has the names of a type's columns.
CREATE FUNCTION rows_in(message bytea, kind regtype) RETURNS SETOF jsonb LANGUAGE plpgsql AS $$
DECLARE
  names name[] := ARRAY(SELECT attname FROM pg_catalog.pg_attribute a JOIN pg_catalog.pg_type t ON t.typrelid = a.attrelid
                         WHERE t.oid = kind AND attnum > 0 ORDER BY attnum);
  at integer := 1;
  columns integer;
  type integer;
  length integer;
  data bytea;
  fields jsonb;
BEGIN
  WHILE at <= pg_catalog.length(message) LOOP
    columns := pg_catalog.get_byte(message, at + 2);
    at := at + 4;
    fields := '{}';
    FOR i IN 1 .. columns LOOP
      type := ('x' || pg_catalog.encode(pg_catalog.substr(message, at, 4), 'hex'))::bit(32)::integer;
      length := ('x' || pg_catalog.encode(pg_catalog.substr(message, at + 4, 4), 'hex'))::bit(32)::integer;
      data := pg_catalog.substr(message, at + 8, greatest(length, 0));
      at := at + 8 + greatest(length, 0);
      CONTINUE WHEN length < 0;
      fields := fields || pg_catalog.jsonb_build_object(names[i], CASE type
        WHEN 'bigint'::regtype::oid THEN pg_catalog.to_jsonb(('x' || pg_catalog.encode(data, 'hex'))::bit(64)::bigint)
        WHEN 'integer'::regtype::oid THEN pg_catalog.to_jsonb(('x' || pg_catalog.encode(data, 'hex'))::bit(32)::integer)
        WHEN 'boolean'::regtype::oid THEN pg_catalog.to_jsonb(pg_catalog.get_byte(data, 0) <> 0)
        WHEN 'bytea'::regtype::oid THEN pg_catalog.to_jsonb(data)
        ELSE pg_catalog.to_jsonb(pg_catalog.convert_from(data, 'UTF8')) END);
    END LOOP;
    RETURN NEXT fields;
  END LOOP;
END
$$;

CREATE FUNCTION answers_in(message bytea) RETURNS SETOF fleet_answer LANGUAGE sql AS $$
  SELECT pg_catalog.jsonb_populate_record(NULL::fleet_answer, fields) FROM rows_in(message, 'fleet_answer') AS fields $$;

-- A call with one request.
CREATE PROCEDURE call_with(request fleet_request, INOUT answer fleet_answer DEFAULT NULL) LANGUAGE plpgsql AS $$
DECLARE
  message bytea := message_of(request);
BEGIN
  CALL uid_internal.uid_fleet_call(message, message);
  answer := answers_in(message);
END
$$;

-- A made-up member's side. What each request says of its server.
CREATE FUNCTION of_server() RETURNS jsonb LANGUAGE sql AS
  $$ SELECT '{"protocol": 1, "host": "host", "port": "5432", "database": "db", "version": "v"}'::jsonb $$;

-- A newcomer's request for a node, by its clock: of a layout with two worker bits, and ticks of a millisecond.
CREATE FUNCTION of_newcomer(us bigint DEFAULT (extract(epoch FROM pg_catalog.clock_timestamp()) * 1000000)::bigint) RETURNS jsonb LANGUAGE sql AS $$
  SELECT of_server() || '{"preset": "custom", "layout_epoch_us": 1767225600000000, "tick_us": 1000, "time_bits": 41, "datacenter_bits": 0,
    "worker_bits": 2, "sequence_bits": 12, "sequence_first": false, "backup_worker": false, "own_pool": true, "policy": "disposable",
    "generator": "uid_generators.g", "length": 600000}' || pg_catalog.jsonb_build_object('clock_us', us, 'lowest', us / 1000 - 1767225600000) $$;

-- What a holder shows of its latest answer.
CREATE FUNCTION of_holder(a fleet_answer) RETURNS jsonb LANGUAGE sql AS $$
  SELECT pg_catalog.jsonb_build_object('fleet', a.fleet, 'term', a.term, 'term_nonce', a.term_nonce, 'serial', a.serial, 'seal', a.seal,
    'held_node', a.node, 'held_from', a.granted_from, 'held_until', a.granted_until, 'held_membership', a.membership, 'held_term', a.term,
    'held_term_nonce', a.term_nonce, 'held_serial', a.serial, 'held_seal', a.held_seal) $$;
