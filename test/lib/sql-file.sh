#!/bin/sh
# Runs one SQL or isolation test on a server of its own, and leaves what tap-file.sh leaves: sql-file.sh tree file fault.
set -eu
. test/lib/pg.sh
tree=$UIDGEN_WORK/tree-$1
file=$2
fault=$3

name=$(basename "$file")
directory=$UIDGEN_WORK/log/tap-$name-$fault
data=$directory/data
rm -rf "$directory"
mkdir -p "$directory"
: >"$directory/output"
case $file in
    *.sql) set -- REGRESS="${name%.*}" ISOLATION= ;;
    *) set -- REGRESS= ISOLATION="${name%.*}" ;;
esac
export PGHOST="$directory" PGPORT=5432 PGUSER=postgres
limit=600

status=0
began=$(date +%s)
{
    "$tree$bindir/initdb" -N -D "$data" -A trust -U postgres --no-locale -E UTF8
    {
        cat test/regress.conf
        echo "fsync = off"
        echo "listen_addresses = ''"
        echo "unix_socket_directories = '$directory'"
        [ "$fault" = - ] || echo "uidgen.fault = '$fault'"
    } >>"$data/postgresql.conf"
    "$tree$bindir/pg_ctl" -D "$data" -l "$directory/server.log" -s -w start
    check_tree "$tree" "$directory" installcheck "$@" || status=$?
    "$tree$bindir/pg_ctl" -D "$data" -s -w -m immediate stop || true
} >"$directory/messages" 2>&1
seconds=$(($(date +%s) - began))
echo "$seconds $file $fault" >>"$UIDGEN_WORK/log/seconds"
rm -rf "$data"

# What differs is an assertion that failed, unless the session or its server has died.
diffs=$(find "$directory" -name regression.diffs)
lost='server closed the connection|connection to server|terminating connection because of crash'
if [ "$status" = 0 ] && grep -rqs '^skipped: ' "$directory/results"; then
    result='0 0 1'
elif [ "$status" = 0 ]; then
    result='1 0 0'
else
    result='0 1 0'
    [ ! -s "$diffs" ] || grep -qE "$lost" "$diffs" ||
        echo "not ok 1 - $(grep -E '^[-+]' "$diffs" | grep -vE -m 1 '^(---|\+\+\+)')" >"$directory/output"
fi
echo "$result" >"$directory/result"
{
    if [ "$status" = 0 ]; then
        echo "ok     $file, $seconds s"
    else
        echo "FAILED $file, $seconds s"
        if [ -s "$diffs" ]; then cat "$diffs"; else cat "$directory/messages"; fi | sed 's/^/   /' | head -n 60
    fi
} >"$directory/summary"
cat "$directory/summary"
