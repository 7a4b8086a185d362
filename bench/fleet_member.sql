-- A member of a fleet, for pgbench: the first transaction of a client says hello, and is a newcomer's call; each later one
-- is a renewal. With -D renews=0 every transaction is a newcomer's. Start with -D greeted=0 -D has=0. bench_request() is in
-- bench/lib/fleet.sql.
\if :greeted
\else
CALL uid_internal.uid_fleet_call(bench_request(0, NULL), NULL) \gset
\set greeted 1
\endif
\if :has
CALL uid_internal.uid_fleet_call(bench_request(:incarnation, ':answers'), NULL) \gset
\else
\set incarnation random(1, 9000000000000000000)
CALL uid_internal.uid_fleet_call(bench_request(:incarnation, NULL), NULL) \gset
\set has :renews
\endif
