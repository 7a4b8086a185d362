# A private server to measure on. Sourced by the scripts that run in the copy of the
# checkout, as an ordinary user (test/lib/setup.sh makes that copy).
# shellcheck shell=sh
. test/lib/pg.sh

tree=$UIDGEN_WORK/tree-bench
data=$UIDGEN_WORK/server-bench

psql() {
    "$tree$bindir/psql" -X -q -v ON_ERROR_STOP=1 "$@"
}

# Builds uidgen as users do, and the module of bench/noop.c, each into the private tree.
build_all() {
    {
        build_tree bench &&
            make -C bench PG_CONFIG="$PG_CONFIG" &&
            make -C bench PG_CONFIG="$PG_CONFIG" install DESTDIR="$tree"
    } >"$UIDGEN_WORK/log/build" 2>&1 || {
        cat "$UIDGEN_WORK"/log/build*
        exit 1
    }
}

# The database "postgres" has generators with the wide bench layout, "stock" has them as they come.
make_databases() {
    make_server server-bench "$tree"
    {
        echo "jit = off"
        echo "max_parallel_workers_per_gather = 0"
        echo "autovacuum = off"
    } >>"$data/postgresql.conf"
    start_server server-bench "$tree"
    psql -c 'CREATE DATABASE stock'
    psql -f bench/setup.sql >/dev/null
    psql -f bench/wide.sql
    psql -d stock -f bench/setup.sql >/dev/null
}

# The calls of one row of a query, # being the place in the row: calls 3 'f(s#)' gives "f(s1), f(s2), f(s3)".
calls() {
    awk -v n="$1" -v f="$2" 'BEGIN {for (i = 1; i <= n; i++) {g = f; gsub(/#/, i, g); printf "%s%s", (i > 1 ? ", " : ""), g}}'
}

# Milliseconds since an instant of date +%s%N: ms_since instant
ms_since() {
    echo $((($(date +%s%N) - $1) / 1000000))
}

# Of the calls in pgbench's logs, in milliseconds: percentiles prefix-of-logs
percentiles() {
    cat "$1"* | awk '{print $3 / 1000}' | sort -n | awk '
        {v[NR] = $1}
        END {printf "p50 %8.2f ms   p99 %8.2f ms   p99.9 %8.2f ms   max %8.2f ms",
            v[int((NR + 1) / 2)], v[int(NR * 0.99)], v[int(NR * 0.999)], v[NR]}'
}

describe_machine() {
    sed -n 's/^model name[^:]*: */CPU: /p' /proc/cpuinfo | head -n 1
    echo "processors: $(nproc), load at the start: $(cut -d' ' -f1-3 /proc/loadavg)"
    "$PG_CONFIG" --version
}
