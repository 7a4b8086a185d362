#!/bin/sh
# Runs the sections that are named in the arguments, or all. Started by bench/run in a
# copy of the checkout, as an ordinary user.
set -eu
. bench/lib/server.sh

rounds=19

few_functions() {
    printf '%s\t%s\n' \
        'no-op' 'bench_noop()' \
        'nextval, CACHE 1' "nextval('cache_1')" \
        'segment_next(regclass)' "segment_next('uid_segments.bench'::regclass)" \
        'uid_next()' 'uid_next()'
}

more_functions() {
    few_functions
    printf '%s\t%s\n' \
        'the same, dynamic step' "segment_next('uid_segments.dynamic'::regclass)" \
        'the same, step 1,000' "segment_next('uid_segments.base'::regclass)" \
        'uid_next, cached mode' "uid_next('uid_generators.cached'::regclass)"
}

# As many ids from as many rows: each thousandth row draws a thousand.
bulk_functions() {
    more_functions
    printf '%s\t%s\n' 'uid_next_array(1000)' 'CASE WHEN generate_series % 1000 = 0 THEN uid_next_array(1000) END'
}

section_calls() {
    measure_by_psql -v place='in this section' -f bench/dynamic.sql
    measure_by_psql -v rounds="$rounds" -f bench/calls.sql
}

section_uuids() {
    measure_by_psql -v rounds="$rounds" -f bench/uuids.sql
}

section_many() {
    psql -v rows=50000 -f bench/many_data.sql >/dev/null
    measure_by_psql -v rounds="$rounds" -f bench/many.sql
}

# Statements on one of two servers: on few or many, in the database numbers. The options are psql's.
on() {
    server=$1
    shift
    PGPORT=$(sed -n 's/^port = //p' "$UIDGEN_WORK/$server.conf") PGDATABASE=${database:-numbers} psql "$@"
}

# First draws from so many generators and segments: first_draws server many. Measures how long after the last draw the
# rows of worker_node are there, and in how many transactions they are written.
first_draws() {
    for kind in segment generator; do
        on "$1" -c "CALL make('$kind', 'of_', $2)" -c "CALL first_draws('$kind', 'of_', $2)"
    done
    before=$(date +%s%N)
    until [ "$(on "$1" -At -c "SELECT count(*) >= $2 FROM worker_node WHERE generator ~ 'of_'")" = t ]; do sleep 0.1; done
    cell 'Large numbers' 'rows of first draws, s until they are written' "$(grouped "$2") of each" "$(seconds_since "$before")"
    cell 'Large numbers' 'transactions that write them' "$(grouped "$2") of each" \
        "$(on "$1" -At -c "SELECT count(DISTINCT xmin::text) FROM worker_node WHERE generator ~ 'of_'")"
}

# A choice of the default, and the longest draw meanwhile: choose_default server many
choose_default() {
    echo 'SELECT uid_next();' >"$UIDGEN_WORK/draw.sql"
    PGPORT=$(sed -n 's/^port = //p' "$UIDGEN_WORK/$1.conf") PGDATABASE=numbers "$tree$bindir/pgbench" -n -T 60 -l \
        -f "$UIDGEN_WORK/draw.sql" --log-prefix="$UIDGEN_WORK/log/default" >"$UIDGEN_WORK/log/pgbench" 2>&1 &
    job=$!
    sleep 1
    before=$(date +%s%N)
    on "$1" -c "SELECT uid_default_set('uid_generators.next_default')" >/dev/null
    took=$(ms_since "$before")
    kill -INT "$job"
    wait "$job" || true
    cell 'Large numbers' 'uid_default_set(), ms' "$(grouped "$2") of each" "$took"
    cell 'Large numbers' 'the longest draw meanwhile, ms' "$(grouped "$2") of each" \
        "$(cat "$UIDGEN_WORK"/log/default* | awk '{if ($3 > most) most = $3} END {printf "%.0f", most / 1000}')"
    rm -f "$UIDGEN_WORK"/log/default*
}

# First draws on both servers, in turns: compare label [database of the second]
compare() {
    for round in 1 2 3 4 5 6; do
        on few -c "CALL probe('$1', '$1 $round')"
        database=${2:-numbers} on many -c "CALL probe('$1', '$1 $round')"
    done
    for server in few many; do
        [ "$server" = few ] || database=${2:-numbers}
        database=$database on "$server" -At -F '	' -c "SELECT kind, percentile_cont(0.5) WITHIN GROUP (ORDER BY ns) / 1000
            FROM spent WHERE label = '$1' GROUP BY kind ORDER BY kind"
        database=
    done | awk -F '\t' -v label="$1" '$1 in few {printf "Large numbers\t%s\t%s\t%.2f\n", label, $1, $2 / few[$1]}
        !($1 in few) && label == "as they are" {printf "Large numbers\t100 of each, µs\t%s\t%.0f\n", $1, $2}
        {few[$1] = $2}' | record
}

section_numbers() {
    database=
    port=5433
    for server in few many; do
        printf '%s\n' "shared_preload_libraries = 'uidgen'" "port = $port" 'autovacuum = off' >"$UIDGEN_WORK/$server.conf"
        port=$((port + 1))
        make_server "$server" "$tree" "$UIDGEN_WORK/$server.conf"
        start_server "$server" "$tree"
        database=postgres
        on "$server" -c 'CREATE DATABASE numbers' -c 'CREATE DATABASE beside'
        for database in numbers beside; do
            on "$server" -f bench/setup.sql -f bench/numbers.sql -c 'CREATE TABLE spent (label text, kind text, ns bigint)' \
                -c "SELECT uid_generator_create('next_default')" >/dev/null
        done
    done 2>/dev/null
    database=
    first_draws few 100
    first_draws many 10000
    choose_default few 100
    choose_default many 10000
    compare 'as they are'
    on many -c "INSERT INTO worker_node (id, host_name, port, type, launch_date, modified, created, generator, worker_id)
        SELECT 1000000 + i, 'h', '1', 1, now(), now(), now(), 'g' || i % 1000, 1 FROM generate_series(1, 100000) AS i"
    compare 'with 100,000 more rows in worker_node'
    compare 'in another database' beside
    on many -c "DO \$\$ DECLARE g regclass; BEGIN FOR g IN SELECT generator FROM uid_generator
        WHERE generator::text ~ 'of_' LOOP PERFORM uid_generator_drop(g); COMMIT; END LOOP; END \$\$"
    compare 'after a drop of the generators'
    stop_server few "$tree" fast
    stop_server many "$tree" fast
}

# Dynamic shared memory of the server "sizes" in MB.
area() {
    du -sk "$UIDGEN_WORK/sizes/pg_dynshmem" | awk '{printf "%.0f", $1 / 1024}'
}

# What each one takes: a piece by which the area has grown is used up, when it grows again, by so many that have drawn
# meanwhile. Looks after so many: size_of what call number-of-those-that-have-drawn so-many. Leaves the number in n.
size_of() {
    n=$3
    piece=0
    first=0
    size=$(area)
    while :; do
        draw_of "$((n + 1))..$((n + $4))" "$2" off
        n=$((n + $4))
        now=$(area)
        [ "$now" != "$size" ] || continue
        [ "$piece" = 0 ] || break
        piece=$((now - size))
        first=$n
        size=$now
    done
    cell Memory "$1" size "$(awk -v mb="$piece" -v n=$((n - first)) 'BEGIN {printf "%.1f kB", mb * 1024 / n}')"
}

# Draws from so many, each in a transaction of its own: draw_of numbers call-of-a-number track_counts
draw_of() {
    on sizes -c "SET track_counts = $3" -c "DO \$\$ BEGIN FOR i IN $1 LOOP PERFORM $2; COMMIT; END LOOP; END \$\$"
}

# What draws from a segment, or a generator, that is made for it.
new_segment="segment_next(segment_create('of_' || i))"
new_generator="uid_next(uid_generator_create('of_' || i))"

section_sizes() {
    printf '%s\n' "shared_preload_libraries = 'uidgen'" 'port = 5433' 'dynamic_shared_memory_type = mmap' \
        'fsync = off' >"$UIDGEN_WORK/sizes.conf"
    make_server sizes "$tree" "$UIDGEN_WORK/sizes.conf"
    start_server sizes "$tree"
    database=postgres
    on sizes -f bench/setup.sql -c 'SELECT uid_next()' >/dev/null 2>&1
    draw_of 1..20000 "$new_segment" off
    cell Memory '20,000 segments' size "$(area) MB"
    draw_of 20001..40000 "$new_segment" off
    before=$(area)
    cell Memory '40,000 segments' size "$before MB"
    draw_of 1..40000 "segment_next(('uid_segments.of_' || i)::regclass)" on
    cell Memory "PostgreSQL's statistics of 40,000 segments" size "$(($(area) - before)) MB"
    size_of 'a segment that has drawn' "$new_segment" 40000 200
    draw_of "$((n + 1))..100000" "$new_segment" off
    on sizes -c 'VACUUM ANALYZE' # which autovacuum has done where segments are made one by one
    for view in uid_stat_server uid_stat uid_segment segment_status; do
        before=$(date +%s%N)
        on sizes -c "SELECT count(*) FROM $view" >/dev/null
        cell 'Large numbers' "$view" s "$(seconds_since "$before")"
    done
    stop_server sizes "$tree" fast # so that the area begins again
    start_server sizes "$tree"
    draw_of 1..2500 "$new_generator" off
    size_of 'a generator that has drawn' "$new_generator" 2500 25
    stop_server sizes "$tree" immediate
}

# The median of the numbers on standard input.
median() {
    sort -n | awk '{v[NR] = $1} END {print v[int((NR + 1) / 2)]}'
}

# Transactions a second: tps file clients
tps() {
    file=$1
    clients=$2
    "$tree$bindir/pgbench" -n -M prepared -f "$file" -c "$clients" -j 2 -T "$seconds" \
        >"$UIDGEN_WORK/log/pgbench" 2>&1 || {
        cat "$UIDGEN_WORK/log/pgbench" >&2
        exit 1
    }
    sed -n 's/^tps = \([0-9.]*\).*/\1/p' "$UIDGEN_WORK/log/pgbench"
}

# Interleaved rounds of pgbench, of each function with each number of clients: interleaved functions label template
# clients... The template's F is the call. Prints lines of clients, function, median, and multiple of the first function's.
interleaved() {
    functions=$1
    label=$2
    template=$3
    shift 3
    "$functions" | while IFS="$(printf '\t')" read -r name call; do
        echo "$template" | sed "s/F/$call/" >"$UIDGEN_WORK/$label-$name.sql"
    done
    for _ in $(seq "$pgbench_rounds"); do
        for clients in "$@"; do
            "$functions" | cut -f1 | while read -r name; do
                tps "$UIDGEN_WORK/$label-$name.sql" "$clients" >>"$UIDGEN_WORK/$label-$name.$clients"
            done
        done
    done
    for clients in "$@"; do
        "$functions" | cut -f1 | while read -r name; do
            printf '%s\t%s\t%s\n' "$clients" "$name" "$(median <"$UIDGEN_WORK/$label-$name.$clients")"
        done | awk -F '\t' -v OFS='\t' 'NR == 1 {one = $3} {print $0, $3 / one}'
    done
}

section_bulk() {
    pgbench_rounds=3
    seconds=1
    measure_by_psql -v place='in bulk' -f bench/dynamic.sql
    interleaved bulk_functions bulk 'SELECT count(F) FROM generate_series(1, 10000);' 1 2 8 32 |
        awk -F '\t' '{printf "Bulk\t%s\t%s\t%.1f\n", $2, $1, $3 / 100}
            $1 >= 8 {printf "Bulk\t%s\t%s, × no-op\t%.2f\n", $2, $1, $4}' | record
}

section_first() {
    pgbench_rounds=3
    seconds=2
    interleaved few_functions first 'SELECT F;' 1 8 64 |
        awk -F '\t' '{printf $3 < 10000 ? "%s\t%s\t%s\t%.1f\n" : "%s\t%s\t%s\t%.0f\n",
            "One call in each transaction", $2, $1, $3 / 1000}' | record
}

# The keys of a table, one a line: a name, a tab, the type, a tab, the default.
keys() {
    printf '%s\t%s\t%s\n' \
        'nextval, CACHE 1 (bigserial)' bigint "nextval('cache_1')" \
        'nextval, CACHE 100' bigint "nextval('cache_100')" \
        'uid_next()' bigint 'uid_next()' \
        'segment_next(regclass)' bigint "segment_next('uid_segments.dynamic'::regclass)" \
        'uid_next_uuid()' uuid 'uid_next_uuid()' \
        'gen_random_uuid' uuid 'gen_random_uuid()'
    [ "$(psql -At -c 'SHOW server_version_num')" -lt 180000 ] || printf '%s\t%s\t%s\n' "\`uuidv7()\`" uuid 'uuidv7()'
    printf '%s\t%s\t%s\n' 'snowflake, plpgsql' bigint 'plpgsql_snowflake()' # last, because it may draw a duplicate
}

# A million rows from eight clients, a thousand in each transaction.
section_rows() {
    psql -c 'CREATE EXTENSION IF NOT EXISTS pgstattuple'
    echo 'INSERT INTO filled (v) SELECT 1 FROM generate_series(1, 1000);' >"$UIDGEN_WORK/rows.sql"
    keys | while IFS="$(printf '\t')" read -r name type call; do
        psql -c 'DROP TABLE IF EXISTS filled' -c "CREATE TABLE filled (id $type PRIMARY KEY DEFAULT $call, v int)" \
            -c CHECKPOINT 2>/dev/null
        before="$(psql -At -c 'SELECT pg_current_wal_insert_lsn()') $(date +%s%N)"
        "$tree$bindir/pgbench" -n -f "$UIDGEN_WORK/rows.sql" -c 8 -j 2 -t 125 >"$UIDGEN_WORK/log/pgbench" 2>&1
        echo "$(date +%s%N) ${before#* } $(psql -At -F ' ' -c "SELECT pg_current_wal_insert_lsn() - '${before% *}',
            index_size, round(avg_leaf_density) FROM pgstatindex('filled_pkey')") $name"
    done | awk '{time = $1 - $2; wal = $3; size = $4; density = $5; $1 = $2 = $3 = $4 = $5 = ""}
        NR == 1 {first_time = time; first_wal = wal}
        {sub(/^ +/, "")
            printf "A million rows\t%s\tWAL, × bigserial\t%.2f\n", $0, wal / first_wal
            printf "A million rows\t%s\tindex, MB\t%.1f\n", $0, size / 1048576
            printf "A million rows\t%s\tleaf pages full, %%\t%d\n", $0, density
            printf "A million rows\t%s\ttime\t%.2f\n", $0, time / first_time}' | record
}

# The tables that section_inserts fills, one a line: the name of the key, a tab, the table.
tables_to_fill() {
    keys | awk -F '\t' '{print $1 "\tfilled_" NR}'
}

section_inserts() {
    tables_to_fill | cut -f 2 >"$UIDGEN_WORK/tables"
    keys | paste "$UIDGEN_WORK/tables" - | while IFS="$(printf '\t')" read -r table name type call; do
        psql -c "CREATE TABLE $table (id $type PRIMARY KEY DEFAULT $call, v int)"
    done
    pgbench_rounds=3
    seconds=2
    interleaved tables_to_fill inserts 'INSERT INTO F (v) VALUES (1);' 1 8 64 |
        awk -F '\t' '{printf "One INSERT in each transaction\t%s\t%s\t%.2f\n", $2, $1, $4}
            $4 == 1 {printf "One INSERT in each transaction\ttransactions a second of bigserial\t%s\t%.0f\n", $1, $3}' | record
}

# The calls of 64 clients, a transaction each: latencies name call
latencies() {
    echo "SELECT $2;" >"$UIDGEN_WORK/latency.sql"
    PGPORT=5433 "$tree$bindir/pgbench" -n -M prepared -f "$UIDGEN_WORK/latency.sql" -c 64 -j 2 -T 10 \
        -l --log-prefix="$UIDGEN_WORK/log/latency" >"$UIDGEN_WORK/log/pgbench" 2>&1
    percentiles "$UIDGEN_WORK/log/latency" 'Behind a synchronous standby' "$1"
    rm -f "$UIDGEN_WORK"/log/latency.*
}

# A synchronous standby, to which every byte takes 5 ms, as every byte back.
section_standby() {
    printf '%s\n' "shared_preload_libraries = 'uidgen'" 'port = 5433' >"$UIDGEN_WORK/primary.conf"
    make_server primary "$tree" "$UIDGEN_WORK/primary.conf"
    start_server primary "$tree"
    PGPORT=5433 psql -f bench/setup.sql >/dev/null 2>&1
    "$tree$bindir/pg_basebackup" -p 5433 -D "$UIDGEN_WORK/standby" -R
    mkdir "$UIDGEN_WORK/line"
    printf '%s\n' 'port = 5434' "primary_conninfo = 'host=$UIDGEN_WORK/line port=5433 user=postgres'" \
        >>"$UIDGEN_WORK/standby/postgresql.auto.conf"
    perl bench/lib/delay_line.pl "$UIDGEN_WORK/line" 5433 "$PGHOST" 5433 0.005 &
    line=$!
    start_server standby "$tree"
    PGPORT=5433 psql -c "ALTER SYSTEM SET synchronous_standby_names = '*'" -c 'SELECT pg_reload_conf()' >/dev/null
    until [ "$(PGPORT=5433 psql -At -c 'SELECT sync_state FROM pg_stat_replication')" = sync ]; do sleep 0.1; done
    latencies 'no-op' 'bench_noop()'
    latencies 'nextval, CACHE 1' "nextval('cache_1')"
    latencies 'segment_next(regclass)' "segment_next('uid_segments.dynamic'::regclass)"
    latencies 'uid_next()' 'uid_next()'
    stop_server standby "$tree" fast
    stop_server primary "$tree" immediate
    kill "$line"
}

# Draws for about 10 s at a fixed rate, in a transaction each or in one for all, and
# counts how often a call waited for a flush: waits_at rate own|one. The calls before
# the count take the first lease and write the row of worker_node.
waits_at() {
    calls=$(awk -v rate="$1" 'BEGIN {print 10 * rate}')
    status="SELECT flush_waits, records FROM uid_stat WHERE sequence = 'uid_generators.uid_default'::regclass"
    psql -d stock -c 'SELECT uid_next()' -c 'SELECT pg_sleep(0.5)' >"$UIDGEN_WORK/log/waits"
    {
        [ "$2" = own ] || echo "BEGIN READ ONLY;"
        echo "SELECT uid_next();"
        printf '%s \\gset before_\n' "$status"
        for _ in $(seq "$calls"); do
            echo "SELECT uid_next(); SELECT pg_sleep(1.0 / $1);"
        done
        printf '%s \\gset after_\n' "$status"
        printf '%s\n' '\echo waits: :before_flush_waits :after_flush_waits :before_records :after_records'
    } | psql -d stock -At | sed -n 's/^waits: //p' |
        awk -v rate="$1" -v calls="$calls" -v kind="$([ "$2" = own ] && echo 'a transaction each' || echo 'one read-only transaction')" '
            {printf "Waits for a flush\t%s\tcalls in 10 s\t%d\n", rate, calls
            printf "Waits for a flush\t%s\twaits, %s\t%d\n", rate, kind, $2 - $1
            printf "Waits for a flush\t%s\trecords, %s\t%d\n", rate, kind, $4 - $3}' | record
}

section_waits() {
    for rate in 0.5 10 100; do
        waits_at "$rate" own
        waits_at "$rate" one
    done
}

section_preset() {
    measure_by_psql -d stock -f bench/preset.sql
}

# The server is its own registry. While the registry is away, draws go on in the grants that are there.
section_registry() {
    psql -v keeps=restarts -f "$tree$("$PG_CONFIG" --sharedir)/extension/uidgen_registry.sql" >/dev/null
    psql -c 'CREATE ROLE uid_fleet LOGIN IN ROLE uid_member'
    calls_with_registry 'no registry' ''
    calls_with_registry 'with one' "host=$PGHOST dbname=postgres user=uid_fleet"
    calls_with_registry 'while it is unreachable' 'host=/nowhere'
    psql -c 'ALTER SYSTEM RESET uidgen.registry' -c 'SELECT pg_reload_conf()' >/dev/null
}

calls_with_registry() {
    psql -c "ALTER SYSTEM SET uidgen.registry = '$2'" -c 'SELECT pg_reload_conf()' >/dev/null
    # A session that connects after the reload may still draw before the postmaster has read the setting.
    psql -c 'SELECT pg_sleep(1)' >/dev/null
    measure_by_psql -v state="$1" -v rounds="$rounds" -f bench/registry.sql
}

section_core() {
    make -s -C bench PG_CONFIG="$PG_CONFIG" core_bench
    bench/core_bench --benchmark_min_time=0.2 --benchmark_repetitions=5 --benchmark_report_aggregates_only=true \
        --benchmark_format=csv 2>/dev/null | sed -n 's/^"\(.*\)_median",/\1,/p' |
        sed 's/fetch_add/fetch-add/; s/baidu_ring/Baidu'"'"'s ring/; s,/real_time,,; s,/threads:,\,,' |
        awk -F ',' '{printf "Core\t%s\t%s\t%.0f\n", $2, $1, $8 / 1000000}' | record
}

# The time on a processor of the sessions of a server that have ended, in milliseconds.
children_ms() {
    awk -v hertz="$(getconf CLK_TCK)" '{print ($16 + $17) * 1000 / hertz}' \
        "/proc/$(head -n 1 "$UIDGEN_WORK/$1/postmaster.pid")/stat"
}

# Clients that connect, make one call and leave: connections server call. Prints milliseconds of a processor for each.
connections() {
    echo "SELECT $2;" >"$UIDGEN_WORK/connection.sql"
    before=$(children_ms "$1")
    PGPORT=$(sed -n 's/^port = //p' "$UIDGEN_WORK/$1/postgresql.conf") \
        "$tree$bindir/pgbench" -n -C -f "$UIDGEN_WORK/connection.sql" -t 200 >"$UIDGEN_WORK/log/pgbench" 2>&1
    echo "$before $(children_ms "$1")" | awk '{printf "%.3f\n", ($2 - $1) / 200}'
}

# Two servers, of which one preloads the library, in interleaved rounds.
section_connections() {
    case $("$PG_CONFIG" --version) in
        *\ 1[56].*) echo "skipped: PostgreSQL 15 and 16 need the preload" && return ;;
    esac
    printf '%s\n' "shared_preload_libraries = 'uidgen'" 'port = 5433' >"$UIDGEN_WORK/preloaded.conf"
    echo 'port = 5434' >"$UIDGEN_WORK/unloaded.conf"
    for server in preloaded unloaded; do
        make_server "$server" "$tree" "$UIDGEN_WORK/$server.conf"
        start_server "$server" "$tree"
        PGPORT=$(sed -n 's/^port = //p' "$UIDGEN_WORK/$server.conf") psql -c 'CREATE EXTENSION uidgen'
    done
    for _ in $(seq "$rounds"); do
        for call in '1' 'uid_next()'; do
            for server in preloaded unloaded; do
                connections "$server" "$call" >>"$UIDGEN_WORK/connections-$server-$call"
            done
        done
    done
    spent() {
        median <"$UIDGEN_WORK/connections-$1-$2"
    }
    cell Connections 'a connection that draws nothing, more with the preload' ms \
        "$(echo "$(spent preloaded 1) $(spent unloaded 1)" | awk '{printf "%.1f", $1 - $2}')"
    cell Connections 'the first call loads the library, without the preload' ms \
        "$(echo "$(spent unloaded 'uid_next()') $(spent unloaded 1) $(spent preloaded 'uid_next()') $(spent preloaded 1)" |
            awk '{printf "%.1f", $1 - $2 - ($3 - $4)}')"
    stop_server preloaded "$tree" fast
    stop_server unloaded "$tree" fast
}

build_all
describe_machine
make_databases
for name in "$@"; do
    printf '\n== %s\n' "$name"
    "section_$name"
done
stop_server server-bench "$tree" fast
