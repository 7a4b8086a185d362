#!/bin/sh
# Simulated members of a fleet call its registry. Started by bench/fleet in a copy of the checkout, as an ordinary user.
set -eu
. bench/lib/server.sh

members=${1:-1000}
grants=${2:-100000}
member=bench/fleet_member.sql

# Runs pgbench with these arguments, and prints calls a second, the latencies, and how many clients have ended because a
# call gave up after four seconds, when a member would try again: measure label pgbench-argument...
measure() {
    label=$1
    shift
    rm -f "$UIDGEN_WORK"/log/calls*
    "$tree$bindir/pgbench" -n -f "$member" -D greeted=0 -D has=0 -l --log-prefix="$UIDGEN_WORK/log/calls" "$@" \
        >"$UIDGEN_WORK/log/pgbench" 2>&1 || ! grep 'error: client' "$UIDGEN_WORK/log/pgbench" | grep -qv 'lock timeout' || {
        tail -n 20 "$UIDGEN_WORK/log/pgbench" >&2
        exit 1
    }
    tps=$(sed -n 's/^tps = \([0-9.]*\).*/\1/p' "$UIDGEN_WORK/log/pgbench")
    printf '%-48s %8.0f /s   %s   %d gave up\n' "$label" "$tps" "$(percentiles "$UIDGEN_WORK/log/calls")" \
        "$(grep -c 'lock timeout' "$UIDGEN_WORK/log/pgbench")"
}

newcomers() {
    measure "$@" -D renews=0
}

renewals() {
    measure "$@" -D renews=1
}

# The memory of the server's processes in MB; what they share counts once.
memory() {
    for pid in $(pgrep -P "$(head -n 1 "$data/postmaster.pid")"); do
        sed -n 's/^Pss: *//p' "/proc/$pid/smaps_rollup" 2>/dev/null || true
    done | awk '{kb += $1} END {printf "%d", kb / 1024}'
}

# Runs a command, and prints the most memory that the server took meanwhile.
with_memory() {
    "$@" &
    job=$!
    most=0
    while kill -0 "$job" 2>/dev/null; do
        now=$(memory)
        [ "$now" -le "$most" ] || most=$now
        sleep 0.2
    done
    wait "$job"
    echo "    the server's processes took at most $most MB"
}

nodes() {
    psql -At -c 'SELECT count(*) FROM uid_fleet_node'
}

build_all
make_server server-bench "$tree"
{
    echo "max_connections = $((members + 20))"
    echo "jit = off"
} >>"$data/postgresql.conf"
start_server server-bench "$tree"
psql -c 'CREATE EXTENSION uidgen' -c 'CREATE ROLE fleet' >/dev/null
psql -c "SELECT uid_fleet_admit('fleet', 'new')" -f bench/lib/fleet.sql >/dev/null
describe_machine
newcomers 'a newcomer after the other' -c 1 -t 500
renewals 'one member renews' -c 1 -t 1000
newcomers '8 newcomers at once' -c 8 -j 2 -t 250
renewals '8 members renew' -c 8 -j 2 -t 250
member=bench/fleet_batch.sql
measure 'calls of 100 newcomers each' -c 1 -t 20 -D many=100
member=bench/fleet_member.sql
had=$(nodes)
newcomers "$members newcomers at once" -c "$members" -j 2 -t 3
[ "$(nodes)" -eq $((had + $(sed -n 's|.*actually processed: \([0-9]*\).*|\1|p' "$UIDGEN_WORK/log/pgbench"))) ] || {
    echo "newcomers got a node that another one has" >&2
    exit 1
}
with_memory renewals "$members members renew" -c "$members" -j 2 -t 5
had=$(nodes)
[ "$had" -ge "$grants" ] || newcomers "up to $grants nodes granted" -c 16 -j 2 -t $(((grants - had) / 16))
psql -At -c "SELECT format('%s nodes: table %s, indexes %s; worker_node %s', count(*),
    pg_size_pretty(pg_table_size('uid_fleet_node')), pg_size_pretty(pg_indexes_size('uid_fleet_node')),
    pg_size_pretty(pg_total_relation_size('worker_node'))) FROM uid_fleet_node"
before=$(date +%s%N)
psql -c 'SELECT count(*) FROM uid_fleet' >/dev/null
echo "    the view uid_fleet took $(ms_since "$before") ms"
newcomers 'the same with that many nodes: 8 newcomers' -c 8 -j 2 -t 250
renewals '8 members renew' -c 8 -j 2 -t 250
stop_server server-bench "$tree" immediate
