#!/bin/sh
# Simulated members of a fleet call its registry, and then a member with many generators does. Started by bench/fleet in a
# copy of the checkout, as an ordinary user.
set -eu
. bench/lib/server.sh

members=${1:-1000}
generators=${2:-1000}

# Runs pgbench with these arguments: calls a second, and latencies, which include the connection: measure label
# pgbench-argument...
measure() {
    label=$1
    shift
    rm -f "$UIDGEN_WORK"/log/calls*
    "$tree$bindir/pgbench" -n -C -f bench/fleet_member.sql -D term=0 -D has=0 -l \
        --log-prefix="$UIDGEN_WORK/log/calls" "$@" >"$UIDGEN_WORK/log/pgbench" 2>&1 || {
        tail -n 20 "$UIDGEN_WORK/log/pgbench" >&2
        exit 1
    }
    cell 'The registry of a fleet' "$label" 'a second' "$(sed -n 's/^tps = \([0-9]*\).*/\1/p' "$UIDGEN_WORK/log/pgbench")"
    percentiles "$UIDGEN_WORK/log/calls" 'The registry of a fleet' "$label"
}

# The memory of the server's processes in MB; what they share counts once.
memory() {
    for pid in $(pgrep -P "$(head -n 1 "$data/postmaster.pid")"); do
        sed -n 's/^Pss: *//p' "/proc/$pid/smaps_rollup" 2>/dev/null || true
    done | awk '{kb += $1} END {printf "%d", kb / 1024}'
}

# Runs a command, and measures the most memory that the server took meanwhile, and the WAL that it wrote: with_costs label
# command...
with_costs() {
    costs=$1
    shift
    from=$(psql -Atc 'SELECT pg_current_wal_insert_lsn()')
    most=0
    "$@" &
    job=$!
    while kill -0 "$job" 2>/dev/null; do
        now=$(memory)
        [ "$now" -le "$most" ] || most=$now
        sleep 0.1
    done
    wait "$job"
    cell 'The registry of a fleet' "$costs" 'memory, MB' "$most"
    cell 'The registry of a fleet' "$costs" 'WAL, kB' \
        "$(psql -Atc "SELECT round((pg_current_wal_insert_lsn() - '$from') / 1024)")"
}

# What the registrar of the member has written, in kB, as /proc counts it: files, not sockets.
written() {
    pid=$(pgrep -f 'uidgen registrar' -P "$(head -n 1 "$directory/postmaster.pid")")
    awk '$1 == "wchar:" {printf "%d", $2 / 1024}' "/proc/$pid/io"
}

# The first ids of many generators of one member, by 50 sessions; and their renewals.
many_generators() {
    directory=$UIDGEN_WORK/server-member
    make_server server-member "$tree"
    line="host=$PGHOST port=${PGPORT:-5432} dbname=postgres user=uid_fleet"
    {
        echo "port = 5471"
        echo "max_connections = 200"
        echo "uidgen.registry = '$line'"
    } >>"$directory/postgresql.conf"
    start_server server-member "$tree"
    (
        PGPORT=5471
        export PGPORT
        psql -c 'CREATE EXTENSION uidgen' -c "SELECT count(uid_generator_create('g' || n, datacenter_bits => 0,
            worker_bits => 14, sequence_bits => 8)) FROM generate_series(1, $generators) n" >/dev/null
        echo "SELECT uid_next(('uid_generators.g' || :client_id * $((generators / 50)) + :k)::regclass);
\\set k :k + 1" >"$UIDGEN_WORK/draw.sql"
        before=$(date +%s%N)
        "$tree$bindir/pgbench" -n -f "$UIDGEN_WORK/draw.sql" -D k=1 -c 50 -j 2 -t $((generators / 50)) \
            >"$UIDGEN_WORK/log/pgbench" 2>&1 || {
            tail -n 5 "$UIDGEN_WORK/log/pgbench" >&2
            exit 1
        }
        cell 'The registry of a fleet' "$(grouped "$generators") new generators of one member draw" s "$(seconds_since "$before")"
    )
    calls=$(calls_so_far)
    cell 'The registry of a fleet' "$(grouped "$generators") new generators of one member draw" calls "$calls"
    before=$(written)
    echo "uidgen.registry = '$line application_name=again'" >>"$directory/postgresql.conf"
    (
        PGPORT=5471
        export PGPORT
        psql -c 'SELECT pg_reload_conf()' >/dev/null
        until [ "$(psql -Atc 'SELECT min(renewals) FROM uid_registry_status')" -ge 2 ]; do sleep 0.2; done
    )
    cell 'The registry of a fleet' "$(grouped "$generators") generators of one member renew" calls "$(($(calls_so_far) - calls))"
    cell 'The registry of a fleet' "$(grouped "$generators") generators of one member renew" 'file of grants, kB' "$(($(written) - before))"
    stop_server server-member "$tree" immediate
}

# Calls of the registry for grants.
calls_so_far() {
    psql -Atc "SELECT calls FROM pg_stat_user_functions WHERE funcname = 'grant'"
}

build_all
rm -rf "$data"
make_server server-bench "$tree"
printf 'jit = off\ntrack_functions = pl\n' >>"$data/postgresql.conf"
start_server server-bench "$tree"
psql -v keeps=restarts -f "$tree$("$PG_CONFIG" --sharedir)/extension/uidgen_registry.sql" >/dev/null
psql -c 'CREATE ROLE uid_fleet LOGIN IN ROLE uid_member' -c "
    CREATE FUNCTION bench_request(token bigint) RETURNS jsonb LANGUAGE sql AS \$\$
      SELECT jsonb_build_object('layout', 'bench', 'widths', '28/22/13, tick 1000000 us', 'own_pool', false, 'lowest', 0,
               'highest', 4194303, 'new_token', token, 'earliest', (extract(epoch FROM clock_timestamp()) * 1000000)::bigint,
               'length', 600000000, 'holder', 'bench') \$\$"
describe_machine
measure 'a newcomer after the other' -c 1 -t 500 -D renews=0 -D many=1
measure 'one member renews' -c 1 -t 500 -D renews=1 -D many=1
measure '8 members renew' -c 8 -j 2 -t 200 -D renews=1 -D many=1
measure 'calls of 100 newcomers each' -c 1 -t 20 -D renews=0 -D many=100
joining="$(grouped "$members") members join, 50 at a time"
renewing="$(grouped "$members") members renew, 50 at a time"
with_costs "$joining" measure "$joining" -c 50 -j 2 -t $((members / 50)) -D renews=0 -D many=1
with_costs "$renewing" measure "$renewing" -c 50 -j 2 -t $((members / 50)) -D renews=1 -D many=1
measure_by_psql -c "SELECT 'The registry of a fleet', 'the table of nodes', column1, column2 FROM (VALUES
    ('rows', (SELECT count(*) FROM uid_registry.node)), ('table, kB', pg_table_size('uid_registry.node') / 1024),
    ('indexes, kB', pg_indexes_size('uid_registry.node') / 1024)) AS v"
psql -c 'SELECT pg_stat_reset()' >/dev/null
many_generators
stop_server server-bench "$tree" immediate
