-- A number of a member's answer. It is a grant, so its other columns have known lengths.
CREATE FUNCTION bench_number(answer bytea, place integer) RETURNS bigint LANGUAGE sql AS
  $$ SELECT ('x' || encode(substr(answer, place, 8), 'hex'))::bit(64)::bigint $$;

-- The request of a member that got this answer last; NULL: of a newcomer. Its columns are those of
-- test/fleet_messages.sql, with type and length before each.
CREATE FUNCTION bench_request(incarnation bigint, a bytea) RETURNS bytea LANGUAGE sql AS $$
  SELECT record_send(ROW(1, bench_number(a, 13), bench_number(a, 29), bench_number(a, 45), bench_number(a, 61), bench_number(a, 77),
      NULL::bigint, NULL::bigint, NULL::bigint, NULL::bigint, 'host'::text, '5432'::text, 'db'::text, 'v'::text, incarnation, ''::bytea,
      bench_number(a, 182), bench_number(a, 198), bench_number(a, 214), bench_number(a, 230), bench_number(a, 29), bench_number(a, 45),
      bench_number(a, 61), bench_number(a, 246), (extract(epoch FROM clock_timestamp()) * 1000000)::bigint,
      extract(epoch FROM clock_timestamp() - timestamptz '2026-01-01 00:00:00+00')::bigint, 600::bigint, 'uid_generators.bench'::text,
      'bench'::text, 1767225600000000, 1000000::bigint, 28, 0, 22, 13, false, false, false, 'disposable'::text, NULL::integer, NULL::integer,
      NULL::bigint, NULL::bigint, NULL::text, NULL::bigint, NULL::bigint, NULL::bigint))
$$;

CREATE FUNCTION bench_newcomers(many integer) RETURNS bytea LANGUAGE sql AS $$
  SELECT string_agg(bench_request((random() * 9e17)::bigint + n, NULL), '') FROM generate_series(1, many) n
$$;
