#!/bin/sh
# The demonstration. Started by test/demo in a copy of the checkout, as an ordinary
# user. Every claim is checked by a query whose result is shown.
set -eu
. test/lib/pg.sh
. test/lib/demo-common.sh

clients=8
seconds=5

# -n, because pgbench otherwise empties pgbench_history before it begins.
run_pgbench() {
    echo "   pgbench --client $clients --time $seconds    (its own TPC-B-like script)"
    began
    "$tree$bindir/pgbench" -n -c "$clients" -j 2 -T "$seconds" >"$UIDGEN_WORK/log/pgbench" 2>&1 || {
        cat "$UIDGEN_WORK/log/pgbench"
        exit 1
    }
    grep -E '^(tps|latency average|number of transactions actually)' "$UIDGEN_WORK/log/pgbench" | sed 's/^/      /'
    took
}

duplicates='SELECT count(*) AS duplicates FROM
       (SELECT id FROM pgbench_history GROUP BY id HAVING count(*) > 1) AS twice'

# The primary key would refuse a duplicate. It is not asked here: a sequential scan
# counts, so that a broken index could not hide one.
check_no_duplicates() {
    show "$duplicates"
    claim "no id was issued twice" "$(value "SET enable_indexscan = off; SET enable_indexonlyscan = off;
        SET enable_bitmapscan = off; $duplicates")" = 0
}

say "1. Build the extension and install it into a private copy of PostgreSQL."
build_demo

case $("$PG_CONFIG" --version) in
    *\ 1[56].*) preload="shared_preload_libraries = 'uidgen'" ;;
    *) preload= ;;
esac
echo "$preload" >"$UIDGEN_WORK/demo.conf"
say "2. Start a private server with ${preload:-a postgresql.conf that does not name uidgen}."
began
make_server server-demo "$tree" "$UIDGEN_WORK/demo.conf"
start_server server-demo "$tree"
took

say "3. Give the table that pgbench inserts into an id column whose default is uid_next()."
show "CREATE EXTENSION uidgen"
echo "   pgbench --initialize"
began
"$tree$bindir/pgbench" -i -q >"$UIDGEN_WORK/log/pgbench-init" 2>&1 || { cat "$UIDGEN_WORK/log/pgbench-init"; exit 1; }
took
show "ALTER TABLE pgbench_history ADD COLUMN id bigint PRIMARY KEY DEFAULT uid_next()"

say "4. $clients clients write for $seconds seconds."
run_pgbench
show "SELECT count(*) AS rows FROM pgbench_history"
claim "every transaction has its row" "$(value 'SELECT count(*) FROM pgbench_history')" -gt 0
check_no_duplicates

say "5. An id shows when and where it was made, and its sequence number. mtime is the row's
   own time, written by pgbench: the start of the transaction, in local time."
show "SELECT h.mtime, d.* FROM pgbench_history h, LATERAL
       (SELECT h.id, (uid_decode(h.id)).*) d ORDER BY h.id LIMIT 5"
worst="SELECT max(abs(extract(epoch FROM uid_timestamp(id) - mtime::timestamptz)))
       AS \"largest distance in seconds\" FROM pgbench_history"
show "$worst"
claim "each id's time is within 10 s of its row's" "$(value "SELECT ($worst) < 10")" = t
wait_for 'SELECT count(*) = 1 FROM worker_node'
show "SELECT * FROM worker_node" -x
claim "one incarnation of the server, one row" "$(value 'SELECT count(*) FROM worker_node')" = 1

say "6. A crash while the $clients clients write: the server is stopped without a checkpoint."
echo "   pgbench & sleep 3; pg_ctl stop --mode immediate; pg_ctl start"
began
"$tree$bindir/pgbench" -n -c "$clients" -j 2 -T 60 >"$UIDGEN_WORK/log/pgbench-crash" 2>&1 &
sleep 3
stop_server server-demo "$tree" immediate
wait $! || true
start_server server-demo "$tree"
took
echo "   Which rows survived is kept, to tell them from those to come:"
show "CREATE TABLE before_crash AS SELECT id FROM pgbench_history"
show "SELECT count(*) AS rows FROM before_crash"

say "7. The same benchmark continues. The rows from before the crash are those whose ids are
   in before_crash; all others are new."
run_pgbench
check_no_duplicates
compare="SELECT max(h.id) FILTER (WHERE b.id IS NOT NULL) AS highest_before,
       min(h.id) FILTER (WHERE b.id IS NULL) AS lowest_after,
       count(*) FILTER (WHERE b.id IS NULL) AS new_rows
       FROM pgbench_history h LEFT JOIN before_crash b USING (id)"
show "$compare"
claim "there are new rows, and each has a higher id than every old one" \
    "$(value "SELECT new_rows > 0 AND lowest_after > highest_before FROM ($compare) AS c")" = t

say "8. The server is in a new incarnation, for which it has drawn a new worker id."
wait_for 'SELECT count(*) = 2 FROM worker_node'
show "SELECT * FROM worker_node" -x
claim "two incarnations, two rows" "$(value 'SELECT count(*) FROM worker_node')" = 2

say "9. A segment: consecutive numbers, from ranges that are durable before they are used."
show "SELECT segment_create('test', 1, 1000)"
show "SELECT segment_next('test') FROM generate_series(1, 3)"
claim "the next one is 4" "$(value "SELECT segment_next('test')")" = 4

say "Every claim holds. Stopping the server and removing everything."
stop_server server-demo "$tree" fast
