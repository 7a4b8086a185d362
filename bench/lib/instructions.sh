#!/bin/sh
# Counts the instructions of a call. Started by bench/instructions in a copy of the
# checkout, as an ordinary user.
set -eu
. bench/lib/server.sh

rows=2000
transactions=20
profiles=$UIDGEN_WORK/profiles

# The functions, one a line: a name, a tab, the call.
functions() {
    printf '%s\t%s\n' \
        'no-op' 'bench_noop()' \
        'no-op with an argument' "bench_noop('plain'::regclass)" \
        'one atomic swap' 'bench_swap()' \
        'clock_gettime' 'bench_clock()' \
        'uid_next()' 'uid_next()' \
        'uid_next(regclass)' "uid_next('uid_generators.bench'::regclass)" \
        'uid_next, cached mode' "uid_next('uid_generators.cached'::regclass)" \
        'segment_next(regclass)' "segment_next('uid_segments.bench'::regclass)" \
        'segment_next(text), a literal' "segment_next('bench'::text)" \
        'nextval, CACHE 1000' "nextval('cache_1000')" \
        'nextval, CACHE 1' "nextval('cache_1')" \
        'uid_conceal' "bench_conceal(117443343637549056, 'bench')" \
        'uid_reveal' "bench_reveal(117443343637549056, 'bench')" \
        'uid_next_uuid()' 'uid_next_uuid()' \
        'uid_next_array(1000), for an id' 'uid_next_array(1000)' \
        'gen_random_uuid' 'gen_random_uuid()'
    if [ "$("$PG_CONFIG" --version | sed 's/^[^0-9]*\([0-9]*\).*/\1/')" -ge 18 ]; then
        printf '%s\t%s\n' "\`uuidv7()\`" 'uuidv7()'
    fi
}

# Those whose first call in a transaction is counted: also of a generator with ticks of a millisecond, which are so short
# that under valgrind each transaction meets a new one.
first_functions() {
    functions
    printf '%s\t%s\n' 'uid_next(), in a new tick' "uid_next('uid_generators.ticking'::regclass)"
}

# The same of calls on the tables of bench/many_data.sql, and the table.
many_functions() {
    printf '%s\t%s\t%s\n' \
        'no-op of a column' 'bench_noop(s#)' turns \
        'one and the same, 999 others in use' 'segment_next(s#)' same \
        '1,000 in turn' 'segment_next(s#)' turns
}

names() {
    functions | cut -f1
}

many_names() {
    many_functions | cut -f1
}

# A clock tick of an hour: under valgrind a call takes so long that ticks of a
# millisecond would begin with every other call.
make_data() {
    make_databases
    psql -c "SELECT uid_generator_alter(generator, tick_us => 3600000000, time_bits => 26, sequence_bits => 29,
        lease_ms => 600000, max_ahead_ms => 600000) FROM uid_generator WHERE mode = 'snowflake' AND NOT builtin"
    psql -c "SELECT uid_generator_create('ticking')" -v rows="$rows" -f bench/many_data.sql >/dev/null
    make_fleet
    make_bystanders
    stop_server server-bench "$tree" fast
}

# Runs statements from standard input in a single process under callgrind, on a copy
# of the server's files, because a generator starts above its last lease. callgrind
# begins a new profile whenever the function $2 has returned: $profiles/$1.1, .2, ...
# and counts only inside the function $3.
profile() {
    cp -R "$data" "$data-$1"
    valgrind --tool=callgrind --callgrind-out-file="$profiles/$1" --dump-after="$2" \
        --toggle-collect="$3" --dump-instr=no \
        "$tree$bindir/postgres" --single -D "$data-$1" -c uidgen.max_wait=0 postgres \
        >"$UIDGEN_WORK/log/$1" 2>&1 || {
        cat "$UIDGEN_WORK/log/$1"
        exit 1
    }
}

# Sums of the profiles of run $1 whose trigger is the function, in order.
totals() {
    find "$profiles" -name "$1.*" | sort -V | while read -r file; do
        awk '/^desc: Trigger: --dump-after/ {wanted = 1} /^(summary|totals):/ {sum = $2} END {if (wanted) print sum}' "$file"
    done
}

warm_up() {
    echo "SELECT bench_settle();"
    first_functions | cut -f2 | sed 's/.*/SELECT &;/'
}

# The calls, each in a query of its own, then once more with 1 call a row and with 21.
# The first use of a generator runs queries inside, and so makes profiles that nobody
# expects: only what the last queries left is read. OFFSET 0 keeps the subquery whole;
# its volatile columns are evaluated though nobody reads them. All is one transaction,
# in which 1,000 segments are in use from the beginning.
marginal_statements() {
    warm_up
    echo "SELECT count(segment_next(s1)) FROM turns;"
    echo "BEGIN;"
    echo "SELECT count(segment_next(s1)) FROM turns;"
    {
        functions | sed "s/\$/\tgenerate_series(1, $rows)/"
        many_functions
    } | while IFS="$(printf '\t')" read -r _ call source; do
        for n in 1 21; do
            echo "SELECT count(*) FROM (SELECT $(calls "$n" "$call") FROM $source OFFSET 0) AS s;"
        done
    done
    echo "COMMIT;"
}

marginal() {
    marginal_statements | profile marginal standard_ExecutorRun standard_ExecutorRun
    totals marginal | tail -n $((2 * $( (names; many_names) | wc -l))) |
        awk -v rows="$rows" 'NR % 2 == 1 {one = $1} NR % 2 == 0 {printf "%.1f\n", ($1 - one) / 20 / rows}'
}

# Whole transactions of a prepared statement with one call, after a first one. The
# median, as some transactions write a record.
first_statements() {
    warm_up
    first_functions | cut -f2 | awk '{printf "PREPARE p%d AS SELECT %s;\n", NR, $0}'
    for n in $(seq "$(first_functions | wc -l)"); do
        for _ in $(seq "$transactions"); do
            echo "EXECUTE p$n;"
        done
    done
}

first() {
    first_statements | profile first CommitTransactionCommand PostgresMain
    totals first | tail -n $((transactions * $(first_functions | wc -l))) |
        awk -v n="$transactions" '{print int((NR - 1) / n), $1}' | sort -k1n -k2n |
        awk -v n="$transactions" 'NR % n == int(n / 2) {print $2}'
}

# start_counting name function [setting]: A server on a copy of the data, whose processes each count what that function
# calls.
start_counting() {
    cp -R "$data" "$data-$1"
    printf '%s\n' "uidgen.max_wait = '5min'" "${3:-}" >>"$data-$1/postgresql.conf" # valgrind is slow
    valgrind --tool=callgrind --trace-children=yes --callgrind-out-file="$profiles/$1.%p" \
        --toggle-collect="$2" --dump-instr=no \
        "$tree$bindir/postgres" -D "$data-$1" >"$UIDGEN_WORK/log/$1" 2>&1 &
    server=$!
    until psql -c 'SELECT 1' >/dev/null 2>&1; do sleep 1; done
}

# counted name pid: What that process has counted, once it has ended.
counted() {
    until grep -qs '^totals:' "$profiles/$1.$2"; do sleep 1; done
    sed -n 's/^totals: //p' "$profiles/$1.$2"
}

stop_counting() {
    kill -INT "$server"
    wait "$server" || true
}

# The first call of a connection to a server that has preloaded the library, when other sessions have drawn already.
# Counts the executor and all that the call reads.
connection() {
    start_counting connection standard_ExecutorRun
    warm_up | psql >/dev/null
    functions | cut -f2 | while read -r call; do
        counted connection "$(psql -At -c "SELECT $call" -c 'SELECT pg_backend_pid()' | tail -n 1)"
    done
    stop_counting
}

# Calls of generators that draw the same in a fleet and outside: a name, a tab, the call. Their ticks of ten seconds are
# so short that a grant has many, and so long that few calls meet a new one.
fleet_functions() {
    printf '%s\t%s\n' \
        'no-op' 'bench_noop()' \
        'uid_next(regclass)' "uid_next('uid_generators.member'::regclass)" \
        'uid_next, cached mode' "uid_next('uid_generators.cached_member'::regclass)"
}

make_fleet() {
    psql -c "
        SELECT uid_generator_create('member', tick_us => 10000000, time_bits => 30, sequence_bits => 22,
            lease_ms => 60000, max_ahead_ms => 120000)" -c "
        SELECT uid_generator_create('cached_member', mode => 'cached', tick_us => 10000000, time_bits => 30,
            sequence_bits => 22, spread => false, lease_ms => 60000, max_ahead_ms => 120000,
            max_staleness_ms => 120000, boost_power => 0)" >/dev/null
}

# Its registry, on a server of its own, which answers in time because nothing counts there.
start_registry() {
    printf '%s\n' "shared_preload_libraries = 'uidgen'" 'port = 5433' >"$UIDGEN_WORK/registry.conf"
    make_server registry "$tree" "$UIDGEN_WORK/registry.conf"
    start_server registry "$tree"
    PGPORT=5433 psql -v keeps=restarts -f "$tree$("$PG_CONFIG" --sharedir)/extension/uidgen_registry.sql" >/dev/null
    PGPORT=5433 psql -c 'CREATE ROLE uid_fleet LOGIN IN ROLE uid_member'
}

# The marginal instructions of these calls on a server, in sessions of which one makes a call a row, and one 21:
# fleet_calls name [setting]
fleet_calls() {
    start_counting "$1" standard_ExecutorRun "${2:-}"
    fleet_functions | cut -f2 | sed 's/.*/SELECT &;/' | psql >/dev/null # makes the slots
    fleet_functions | while IFS="$(printf '\t')" read -r _ call; do
        for n in 1 21; do
            counted "$1" "$(psql -At -c "SELECT $call" -c 'SELECT pg_backend_pid()' -c "
                SELECT count(*) FROM (SELECT $(calls "$n" "$call") FROM generate_series(1, $rows) OFFSET 0) AS s" | sed -n 2p)"
        done
    done | awk -v rows="$rows" 'NR % 2 == 1 {one = $1} NR % 2 == 0 {printf "%.1f\n", ($1 - one) / 20 / rows}'
    stop_counting
}

# Two databases with 10,000 CHECK constraints each. One has the extension.
make_bystanders() {
    for database in bare extended; do
        psql -c "CREATE DATABASE $database"
        [ "$database" = bare ] || psql -d "$database" -c 'CREATE EXTENSION uidgen' 2>/dev/null
        psql -d "$database" -c "DO \$\$ BEGIN FOR i IN 1..100 LOOP
            EXECUTE format('CREATE TABLE checked_%s (n integer, %s)', i,
                (SELECT string_agg('CHECK (n > ' || j || ')', ', ' ORDER BY j) FROM generate_series(1, 100) j)); END LOOP; END \$\$"
    done
}

# A CREATE and a DROP of a temporary table in each, after the first ones of the connection. Other people's DDL costs with
# the extension what the hook of dropped objects costs, however many constraints there are.
bystanders() {
    start_counting bystanders ProcessUtility
    for database in bare extended; do
        for n in 5 25; do
            counted bystanders "$({
                yes 'CREATE TEMPORARY TABLE passing (n integer); DROP TABLE passing;' | head -n "$n"
                echo 'SELECT pg_backend_pid();'
            } | psql -At -d "$database")"
        done | awk 'NR == 1 {few = $1} NR == 2 {print ($1 - few) / 20}'
    done | awk 'NR == 1 {without = $1} NR == 2 {printf "%.2f", $1 / without}'
    stop_counting
}

mkdir "$profiles"
build_all
describe_machine
make_data
names >"$UIDGEN_WORK/names"
marginal >"$UIDGEN_WORK/marginal"
first >"$UIDGEN_WORK/first"
connection >"$UIDGEN_WORK/connection"
bystanders >"$UIDGEN_WORK/bystanders"
fleet_calls outside >"$UIDGEN_WORK/outside"
start_registry
fleet_calls inside "uidgen.registry = 'host=$PGHOST port=5433 dbname=postgres user=uid_fleet'" >"$UIDGEN_WORK/inside"
stop_server registry "$tree" immediate

# Beside the first line, which is the no-op's. What is written for an array is of one of its ids.
head -n "$(names | wc -l)" "$UIDGEN_WORK/marginal" | paste "$UIDGEN_WORK/names" - | awk -F '\t' '
    function show(column, value) {
        printf((value == int(value) ? "Calls\t%s\t%s\t%d\n" : "Calls\t%s\t%s\t%.1f\n"), $1, column, value)
    }
    NR == 1 {none = $2}
    $1 ~ /array/ {show("instructions", $2 / 1000); show("above no-op", ($2 - none) / 1000); next}
    {show("instructions", int($2 + 0.5)); show("above no-op", int($2 - none + 0.5))}
    $1 == "clock_gettime" {clock = $2 - none}
    $1 ~ /^uid_next[(,]/ {show("clock aside", int($2 - none - clock + 0.5))}' | record
first_functions | cut -f1 | paste - "$UIDGEN_WORK/first" | awk -F '\t' 'NR == 1 {none = $2}
    {printf "Calls\t%s\tfirst call: above no-op\t%d\n", $1, int(($2 - none) / 10 + 0.5) * 10}' | record
paste "$UIDGEN_WORK/names" "$UIDGEN_WORK/connection" | awk -F '\t' 'NR == 1 {none = $2}
    {unit = $2 - none < 10000 ? 10 : 100; printf "Calls\t%s\tof a connection\t%d\n", $1, int(($2 - none) / unit + 0.5) * unit}' | record
tail -n "$(many_names | wc -l)" "$UIDGEN_WORK/marginal" >"$UIDGEN_WORK/marginal-many"
many_names | paste - "$UIDGEN_WORK/marginal-many" | awk -F '\t' 'NR == 1 {none = $2}
    NR > 1 {printf "Many segments\t%s\tinstructions above no-op\t%.0f\n", $1, $2 - none}' | record
cell "Other people's statements" 'CREATE and DROP of a temporary table' 'instructions, × without the extension' \
    "$(cat "$UIDGEN_WORK/bystanders")"
for state in outside inside; do
    fleet_functions | cut -f1 | paste - "$UIDGEN_WORK/$state" | awk -F '\t' -v state="$state" 'NR == 1 {none = $2}
        NR > 1 {printf "Draws in a fleet\t%s\tinstructions above no-op, %s\t%.0f\n", $1, state, $2 - none}' | record
done
