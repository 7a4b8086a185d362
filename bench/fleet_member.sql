-- A member of a fleet, for pgbench -C: one connection, a hello and a call for :many generators. The first call of a client
-- is a newcomer's; with -D renews=1 each later one renews what that got. Start with -D term=0 -D has=0.
SELECT fleet, term FROM uid_registry.hello(0, :term) \gset
\set token random(1, 9000000000000000000)
\if :has
SELECT node, since, until, term FROM uid_registry.grant(:fleet, :term, jsonb_build_array(bench_request(:token)
    || jsonb_build_object('node', :node, 'since', :since, 'until', :until, 'token', :held))) \gset
\else
SELECT min(node) AS node, min(since) AS since, min(until) AS until, min(term) AS term, count(node) = :many AS all_have
  FROM uid_registry.grant(:fleet, :term, (SELECT jsonb_agg(bench_request(:token + n)) FROM generate_series(1, :many) n)) \gset
\set token :token + 1
\set has :renews
\endif
\set held :token
