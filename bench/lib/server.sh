# A private server to measure on, and what was measured. Sourced by the scripts that run in the copy of the
# checkout, as an ordinary user (test/lib/setup.sh makes that copy).
# shellcheck shell=sh
. test/lib/pg.sh

tree=$UIDGEN_WORK/tree-bench
data=$UIDGEN_WORK/server-bench

psql() {
    "$tree$bindir/psql" -X -q -v ON_ERROR_STOP=1 "$@"
}

# What was measured, a line for each cell of the tables of bench/README.md: heading, row, column and value, separated by
# tabs. Those of another PostgreSQL than the pages' are of tables of their own.
record() {
    sed "s/^[^	]*/&$(on_major)/" | tee -a "$UIDGEN_WORK/cells"
}

on_major() {
    "$PG_CONFIG" --version | sed -n 's/^[^0-9]*\(1[89]\).*/ on PostgreSQL \1/p'
}

# cell heading row column value
cell() {
    printf '%s\t%s\t%s\t%s\n' "$@" | record
}

# 1000 as 1,000
grouped() {
    echo "$1" | sed ':again; s/\B[0-9]\{3\}\>/,&/; t again'
}

# psql, whose rows are such lines.
measure_by_psql() {
    psql -At -F '	' "$@" | record
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
    rm -rf "$data"
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

# The same in seconds, with a decimal or two.
seconds_since() {
    ms_since "$1" | awk '{s = $1 / 1000; printf s < 0.1 ? "%.2f" : "%.1f", s}'
}

# Of the calls in pgbench's logs, in milliseconds: percentiles prefix-of-logs heading row
percentiles() {
    cat "$1"* | awk '{print $3 / 1000}' | sort -n | awk -v OFS='	' -v heading="$2" -v row="$3" '
        function show(column, value) {printf value < 10 ? "%s\t%s\t%s, ms\t%.1f\n" : "%s\t%s\t%s, ms\t%.0f\n", heading, row, column, value}
        {v[NR] = $1}
        END {show("p50", v[int((NR + 1) / 2)]); show("p99", v[int(NR * 0.99)]); show("p99.9", v[int(NR * 0.999)]); show("max", v[NR])}' | record
}

describe_machine() {
    sed -n 's/^model name[^:]*: */CPU: /p' /proc/cpuinfo | head -n 1
    echo "processors: $(nproc), load at the start: $(cut -d' ' -f1-3 /proc/loadavg)"
    "$PG_CONFIG" --version
    g++ --version | head -n 1
}
