#!/bin/sh
# The demonstration of a fleet: a registry with a standby, and three members. Started by test/demo --fleet in a copy of
# the checkout, as an ordinary user. Every claim is checked by a query whose result is shown.
set -eu
. test/lib/pg.sh
. test/lib/demo-common.sh

sockets=$UIDGEN_WORK/tmp
members='berlin osaka lima'
lease=30 # seconds of the longest grant; ten minutes outside a demonstration
bound=3  # seconds by which two clocks may differ; ten outside a demonstration

port_of() {
    case $1 in
        registry) echo 5461 ;; standby) echo 5462 ;;
        berlin) echo 5471 ;; osaka) echo 5472 ;; lima) echo 5473 ;;
    esac
}

# Runs a command or a function against one server: on name command...
on() (
    PGPORT=$(port_of "$1")
    export PGPORT
    shift
    "$@"
)

start_named() {
    start_server "server-$1" "$tree"
}

# Where a member finds the registry: both servers, whichever accepts writes.
registry="host=$sockets,$sockets port=$(port_of registry),$(port_of standby) dbname=postgres user=uid_fleet"
registry="$registry connect_timeout=3"

make_member() {
    make_server "server-$1" "$tree"
    {
        echo "port = $(port_of "$1")"
        echo "uidgen.registry = '$registry'"
        echo "uidgen.max_wait = '2s'"
    } >>"$UIDGEN_WORK/server-$1/postgresql.conf"
    start_named "$1"
    on "$1" psql -c "CREATE EXTENSION uidgen" -c "CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT uid_next(), item text)" \
        -c "SELECT segment_attach('invoice', step => 200, max_step => 200)" \
        -c "CREATE TABLE invoices (id bigint PRIMARY KEY DEFAULT segment_next('invoice'), item text)" >/dev/null
}

# A member inserts into a table in small batches, until the file `stop` exists. An insert that fails is tried again.
insert_for_ever() {
    while [ ! -e "$UIDGEN_WORK/stop" ]; do
        on "$1" "$tree$bindir/psql" -X -q -c "INSERT INTO $2 SELECT FROM generate_series(1, 20)" \
            >>"$UIDGEN_WORK/log/inserts-$1-$2" 2>&1 || sleep 0.2
        sleep 0.02
    done
}

rows() {
    on "$1" value "SELECT count(*) FROM $2"
}

# Waits until that member has inserted again: inserts_again member [table]; into both tables, if none is named.
inserts_again() {
    for table in ${2:-orders invoices}; do
        before=$(rows "$1" "$table")
        for i in $(seq 301); do
            [ "$(rows "$1" "$table")" -le "$before" ] || break
            sleep 0.1
        done
        [ "$i" -le 300 ] || {
            echo "   DOES NOT HOLD: $1 inserts into $table again"
            tail -n 5 "$UIDGEN_WORK/log/inserts-$1-$table"
            exit 1
        }
    done
}

cleanup() {
    touch "$UIDGEN_WORK/stop"
    for server in $members registry standby; do
        [ ! -e "$UIDGEN_WORK/server-$server/postmaster.pid" ] || stop_server "server-$server" "$tree" immediate || true
    done
}
trap cleanup EXIT

say "1. Build the extension and install it into a private copy of PostgreSQL."
build_demo

say "2. A registry: a few tables in any PostgreSQL, here with a synchronous standby. One script makes it."
began
make_server server-registry "$tree"
{
    echo "port = $(port_of registry)"
    echo "synchronous_standby_names = 'standby'"
} >>"$UIDGEN_WORK/server-registry/postgresql.conf"
start_named registry
on registry "$tree$bindir/pg_basebackup" -D "$UIDGEN_WORK/server-standby" -R -X stream -c fast \
    -d "application_name=standby" >"$UIDGEN_WORK/log/basebackup" 2>&1
{
    echo "port = $(port_of standby)"
    echo "synchronous_standby_names = ''"
    echo "primary_conninfo = 'host=$sockets port=$(port_of registry) user=postgres application_name=standby'"
} >>"$UIDGEN_WORK/server-standby/postgresql.auto.conf"
start_named standby
took
echo "   psql -v keeps=failovers -v longest=$lease -v bound=$bound -f uidgen_registry.sql"
on registry psql -v keeps=failovers -v longest=$lease -v bound=$bound -f "$tree$("$PG_CONFIG" --sharedir)/extension/uidgen_registry.sql" |
    sed '/^$/d; s/^/      /'
on registry show "CREATE ROLE uid_fleet LOGIN IN ROLE uid_member"
on registry show "INSERT INTO uid_registry.segment (name) VALUES ('invoice')"

say "3. Three members with the same line in postgresql.conf."
echo "   uidgen.registry = '$registry'"
began
for member in $members; do
    make_member "$member"
done
took
for member in $members; do
    insert_for_ever "$member" orders &
    insert_for_ever "$member" invoices &
done
for member in $members; do
    inserts_again "$member"
done
on registry show "SELECT node, to_timestamp(until / 1e6) AS granted_until, holder FROM uid_registry.node"
claim "each member has a node of its own" "$(on registry value 'SELECT count(*) FROM uid_registry.node')" -ge 3
for member in $members; do
    on "$member" wait_for "SELECT count(range_first) = 1 FROM segment_status" # not between two blocks
    on "$member" show "SELECT name, range_first, range_length, range_left FROM segment_status WHERE range_first IS NOT NULL"
done

say "4. A member is killed while it inserts, and continues with the same node."
node=$(on osaka value "SELECT node FROM uid_generator_status")
stop_server server-osaka "$tree" immediate
start_named osaka
inserts_again osaka
on osaka show "SELECT generator, protection, node, last_time FROM uid_generator_status"
claim "osaka kept node $node" "$(on osaka value "SELECT node FROM uid_generator_status")" = "$node"

say "5. The registry's server is lost. Its standby is promoted. The members keep inserting, invoices as long as their blocks last."
began
stop_server server-registry "$tree" immediate
for member in $members; do
    inserts_again "$member" orders
done
"$tree$bindir/pg_ctl" -D "$UIDGEN_WORK/server-standby" -s -w promote
took
for member in $members; do
    inserts_again "$member"
done
promoted=$(on standby value 'SELECT now()')
heard="SELECT count(*) = 3 FROM uid_registry.node WHERE heard > '$promoted'"
on standby wait_for "$heard" $((2 * lease))
on standby show "SELECT node, to_timestamp(until / 1e6) AS granted_until, heard FROM uid_registry.node"
on standby show "SELECT keeps, reason, fenced_until FROM uid_registry.status"
claim "commits are kept, so newcomers wait for nothing" "$(on standby value 'SELECT fenced_until IS NULL FROM uid_registry.status')" = t
claim "the new registry has answered all three" "$(on standby value "$heard")" = t

say "6. No server of the registry is up. Inserts continue until the grants end. Then they fail, and the error says why."
stop_server server-standby "$tree" fast
for _ in $(seq 600); do
    ! grep -q 'has no node from the registry' "$UIDGEN_WORK/log/inserts-lima-orders" || break
    sleep 0.1
done
grep 'has no node from the registry' -A 3 "$UIDGEN_WORK/log/inserts-lima-orders" | head -n 4 | sed 's/^/      /'
claim "lima's error names the registry" \
    "$(grep -c 'has no node from the registry' "$UIDGEN_WORK/log/inserts-lima-orders")" -gt 0
on lima show "SELECT * FROM uid_registry_status LIMIT 1" -x

say "7. The registry is back, and inserts succeed again."
start_named standby
for member in $members; do
    inserts_again "$member"
done
on lima show "SELECT generator, protection, node, last_time FROM uid_generator_status"

say "8. All ids and all numbers of all members, in tables with a unique index."
touch "$UIDGEN_WORK/stop"
wait
on standby psql -c "CREATE TABLE every_orders (id bigint UNIQUE, member text)" \
    -c "CREATE TABLE every_invoices (id bigint UNIQUE, member text)"
for member in $members; do
    for table in orders invoices; do
        on "$member" psql -c "COPY (SELECT id, '$member' FROM $table) TO STDOUT" |
            on standby psql -c "COPY every_$table FROM STDIN"
    done
done
on standby show "SELECT member, count(*), min(id) AS first, max(id) AS last
       FROM every_orders GROUP BY member ORDER BY member"
claim "no id was issued twice" "$(on standby value "SET enable_indexonlyscan = off; SET enable_indexscan = off;
    SELECT count(*) - count(DISTINCT id) FROM every_orders")" = 0
on standby show "SELECT member, count(*), min(id) AS first, max(id) AS last FROM every_invoices GROUP BY member ORDER BY member"
claim "no number was issued twice" "$(on standby value "SET enable_indexonlyscan = off; SET enable_indexscan = off;
    SELECT count(*) - count(DISTINCT id) FROM every_invoices")" = 0
# osaka's kill, the registry's, and inserts that failed while they were waiting.
on standby show "SELECT count(*) AS numbers, max(id) - count(*) AS gaps FROM every_invoices"

say "Every claim holds. Stopping the servers and removing everything."
