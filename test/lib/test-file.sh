#!/bin/sh
# Runs one TAP file, or one SQL or isolation test on a server of its own: test-file.sh tree file fault ("-": leave the fault
# unset). Writes output, messages, summary and result ("passed failed skipped") to log/tap-file-fault.
set -eu
. test/lib/pg.sh
tree=$UIDGEN_WORK/tree-$1
file=$2
fault=$3

name=$(basename "$file" .t)
directory=$UIDGEN_WORK/log/tap-$name-$fault
rm -rf "$directory"
mkdir -p "$directory"
limit=1200
[ -z "${UIDGEN_LONG:-}" ] || limit=14400

tap_test() {
    [ "$fault" = - ] || export UIDGEN_FAULT="$fault"
    export PG_TEST_PORT_DIR="$UIDGEN_WORK/tmp/portlock" PG_TEST_TIMEOUT_DEFAULT=120
    check_tree "$tree" "$directory" prove_installcheck PROVE_TESTS="$file" PROVE_FLAGS=--verbose
}

# The first line that the expected output has (-), or that it lacks (+).
first_line() {
    grep -E "^[$1]" "$directory/diffs" | grep -vE -m 1 '^(---|\+\+\+)' || true
}

# Says what a TAP file would: what differs is an assertion that failed, unless the session or its server has died.
sql_test() {
    case $file in
        *.sql) set -- REGRESS="${name%.*}" ISOLATION= ;;
        *) set -- REGRESS= ISOLATION="${name%.*}" ;;
    esac
    PGUSER=$(id -un)
    export PGUSER PGHOST="$directory" PGPORT=5432 PATH="$PWD/test/lib/bin:$tree$bindir:$PATH"
    data=$directory/tmp_check/t_data
    mkdir -p "$directory/tmp_check"
    initdb -N -A trust -D "$data"
    {
        cat test/regress.conf
        echo "fsync = off"
        echo "listen_addresses = ''"
        echo "unix_socket_directories = '$directory'"
        [ "$fault" = - ] || echo "uidgen.fault = '$fault'"
    } >>"$data/postgresql.conf"
    pg_ctl -D "$data" -l "$directory/server.log" -s -w start
    differs=0
    check_tree "$tree" "$directory" installcheck "$@" >"$directory/pg_regress" || differs=$?
    pg_ctl -D "$data" -s -w -m immediate stop || true
    find "$directory" -name regression.diffs -exec cat {} + >"$directory/diffs"
    skipped=$(grep -rhs -m 1 '^skipped: ' "$directory/results" || true)
    if [ "$differs" = 0 ]; then
        echo "ok 1 ${skipped:+# skip ${skipped#skipped: }}"
    elif [ ! -s "$directory/diffs" ]; then
        cat "$directory/pg_regress" >&2
    else
        cat "$directory/diffs" >&2
        lost='server closed the connection|connection to server|terminating connection because of crash'
        grep -qE "$lost" "$directory/diffs" ||
            echo "not ok 1 - $(first_line -) $(first_line +)"
    fi
    return "$differs"
}

# What to show of a failure. The last words of a test that died are in its log.
explain() {
    grep -hE '^(not ok|Bail out)' "$directory/output" || true
    head -n 60 "$directory/messages"
    if [ "$status" != 0 ]; then
        find "$directory" -name "regress_log_$name" -exec sh -c 'echo "end of the test'\''s log:" && tail -n 20 "$1"' sh {} \;
    fi
}

status=0
began=$(date +%s)
case $file in
    *.t) tap_test >"$directory/output" 2>"$directory/messages" || status=$? ;;
    *) sql_test >"$directory/output" 2>"$directory/messages" || status=$? ;;
esac
seconds=$(($(date +%s) - began))
echo "$seconds $file $fault" >>"$UIDGEN_WORK/log/seconds"

passed=$(grep -E '^ok ' "$directory/output" | grep -ciEv '# *skip' || true)
failed=$(grep -E '^not ok ' "$directory/output" | grep -ciEv '# *todo' || true)
# A file that died, hung or did not keep its plan failed, whatever it asserted.
# So did one that tested nothing, unless it said why it skips.
if [ "$failed" = 0 ] && [ "$status" != 0 ]; then
    failed=1
fi
# So did one whose servers complained, even where nobody asked them.
complaints=$(find "$directory" -name '*.log' -exec grep -E -m 5 "$server_complaints" {} + || true)
if [ -n "$complaints" ]; then
    echo "$complaints" >>"$directory/messages"
    failed=$((failed + 1))
fi
skips='^ok .*# *skip|\.\. skipped: '
skipped=$(grep -ciE "$skips" "$directory/output" || true)
if [ "$passed$failed$skipped" = 000 ]; then
    failed=1
fi
echo "$passed $failed $skipped" >"$directory/result"

{
    if [ "$failed" = 0 ]; then
        echo "ok     $file: $passed assertions, $seconds s"
        grep -iE "$skips" "$directory/output" | sed 's/.*\(# *skip\|\.\. skipped:\)/   skipped:/I' || true
    else
        echo "FAILED $file: $passed passed, $failed failed, exit status $status, $seconds s"
        explain | sed 's/^/   /'
    fi
} >"$directory/summary"
cat "$directory/summary"

# Data directories are large, and of use only after a failure that surprises.
if [ "$failed" = 0 ] || [ "$fault" != - ]; then
    rm -rf "$directory/tmp_check"/t_*
fi
