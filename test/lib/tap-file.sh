#!/bin/sh
# Runs one TAP file as make prove_installcheck does: tap-file.sh tree file fault ("-": leave the fault unset).
# Writes output, messages, summary and result ("passed failed skipped") to log/tap-file-fault.
set -eu
case $2 in *.t) ;; *) exec sh test/lib/sql-file.sh "$@" ;; esac
. test/lib/pg.sh
tree=$UIDGEN_WORK/tree-$1
file=$2
fault=$3

name=$(basename "$file" .t)
directory=$UIDGEN_WORK/log/tap-$name-$fault
rm -rf "$directory"
mkdir -p "$directory"
[ "$fault" = - ] || export UIDGEN_FAULT="$fault"

export PG_TEST_PORT_DIR="$UIDGEN_WORK/tmp/portlock" PG_TEST_TIMEOUT_DEFAULT=120

# What to show of a failure. The last words of a test that died are in its log.
explain() {
    grep -hE '^(not ok|Bail out)' "$directory/output" || true
    head -n 40 "$directory/messages"
    if [ "$status" != 0 ]; then
        echo "end of the test's log:"
        find "$directory" -name "regress_log_$name" -exec tail -n 20 {} +
    fi
}

limit=1200
[ -z "${UIDGEN_LONG:-}" ] || limit=14400
status=0
began=$(date +%s)
check_tree "$tree" "$directory" prove_installcheck PROVE_TESTS="$file" PROVE_FLAGS=--verbose \
    >"$directory/output" 2>"$directory/messages" || status=$?
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
