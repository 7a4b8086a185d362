#!/bin/sh
# Runs one SQL or isolation test on a server of its own, and leaves what tap-file.sh leaves: sql-file.sh tree file fault.
set -eu
. test/lib/pg.sh
programs=$UIDGEN_WORK/tree-$1$bindir
file=$2
fault=$3

name=$(basename "$file")
directory=$UIDGEN_WORK/log/tap-$name-$fault
data=$directory/data
rm -rf "$directory"
mkdir -p "$directory"
: >"$directory/output"
case $file in
    *.sql) set -- regress/pg_regress --inputdir=. ;;
    *) set -- isolation/pg_isolation_regress --inputdir=test/isolation --load-extension=uidgen ;;
esac
program=$pg_tests/$1
shift

status=0
began=$(date +%s)
{
    "$programs/initdb" -N -D "$data" -A trust -U postgres --no-locale -E UTF8
    {
        cat test/regress.conf
        echo "fsync = off"
        echo "listen_addresses = ''"
        echo "unix_socket_directories = '$directory'"
        [ "$fault" = - ] || echo "uidgen.fault = '$fault'"
    } >>"$data/postgresql.conf"
    "$programs/pg_ctl" -D "$data" -l "$directory/server.log" -s -w start
    timeout --kill-after=30 600 "$program" "$@" --outputdir="$directory" --bindir="$programs" --host="$directory" \
        --port=5432 --user=postgres --dbname=contrib_regression --no-locale --encoding=UTF8 "${name%.*}" || status=$?
    "$programs/pg_ctl" -D "$data" -s -w -m immediate stop || true
} >"$directory/messages" 2>&1
seconds=$(($(date +%s) - began))
echo "$seconds $file $fault" >>"$UIDGEN_WORK/log/seconds"
rm -rf "$data"

# What differs is an assertion that failed, unless the session or its server has died.
diffs=$directory/regression.diffs
lost='server closed the connection|connection to server|terminating connection because of crash'
if [ "$status" = 0 ] && grep -qs '^skipped: ' "$directory"/results/*.out; then
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
