-- A member of a fleet with many generators, for pgbench: a call with this number of newcomers (-D many=100).
CALL uid_internal.uid_fleet_call(bench_newcomers(:many), NULL) \gset
