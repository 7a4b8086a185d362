-- A member of a fleet, for pgbench: the first transaction of a client is a newcomer's call, each later one a renewal.
-- With -D renews=0 every transaction is a newcomer's. Start with -D has=0.
\if :has
CALL uid_fleet_call(1, :incarnation, NULL,
  :fleet, :term, :serial, :seal, :node, :granted_from, :granted_until, :line, :term, :serial, :held_seal,
  (extract(epoch FROM clock_timestamp()) * 1000000)::bigint,
  (extract(epoch FROM clock_timestamp() - timestamptz '2026-01-01 00:00:00+00'))::bigint, 600,
  'bench', 1767225600000000, 1000000, 28, 0, 22, 13, false, false, 'disposable', NULL, NULL, NULL, NULL,
  'host' || :client_id, '5432', :client_id, 1, 'db', 'uid_generators.bench', '1.0.0') \gset
\else
\set incarnation random(1, 9000000000000000000)
CALL uid_fleet_call(1, :incarnation, NULL,
  NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
  (extract(epoch FROM clock_timestamp()) * 1000000)::bigint,
  (extract(epoch FROM clock_timestamp() - timestamptz '2026-01-01 00:00:00+00'))::bigint, 600,
  'bench', 1767225600000000, 1000000, 28, 0, 22, 13, false, false, 'disposable', NULL, NULL, NULL, NULL,
  'host' || :client_id, '5432', :client_id, 1, 'db', 'uid_generators.bench', '1.0.0') \gset
\set has :renews
\endif
