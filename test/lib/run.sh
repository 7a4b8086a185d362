#!/bin/sh
# Runs tests, in a copy of the checkout, as an ordinary user: run.sh PART GROUP... Started by test/check, test/one and others.
# A group is a section (test/lib/sections.sh), or several that run at the same time, with + between them.
#
# PART says which of a section's tests run: quick, what README.md's command runs; rest, all that this one leaves out; or
# whole. With `one` the builds and the servers stay for the next run, and a section may name its tests: tap=FILE,FILE.
#
# What passed and failed goes to files of the work directory; the exit status says only whether all came to their end.
set -eu
part=$1
shift
. test/lib/sections.sh
[ "$part" != one ] || rm -rf "$UIDGEN_WORK/results" "$UIDGEN_WORK/totals" "$UIDGEN_WORK/failures" "$UIDGEN_WORK/log/seconds"

# A section, and what it names, in a process of its own.
# shellcheck disable=SC2046 # a list of words
run() (
    section "${1%%=*}" $(echo "$1" | sed -n 's/^[a-z_]*=//p' | tr , ' ')
)

# The tests with servers mostly wait, so they come first wherever they want a processor. The others use what they leave.
# What one says is not mixed with what another one says, but for the TAP files: each says a line when it has ended.
run_beside_others() {
    case $1 in
        tap*)
            run "$1"
            return
            ;;
        regress* | isolation* | upgrade | memory* | faults | torture* | monitoring) politely= ;;
        *) politely='nice' ;;
    esac
    said=$UIDGEN_WORK/log/section-$1
    status=0
    # shellcheck disable=SC2086 # empty or one word
    $politely sh test/lib/run.sh "$part" "$1" >"$said" 2>&1 || status=$?
    cat "$said"
    return "$status"
}

run_group() {
    started=
    for name in "$@"; do
        run_beside_others "$name" &
        started="$started $!"
    done
    ended=0
    for process in $started; do
        wait "$process" || ended=1
    done
    return "$ended"
}

# These build for themselves, or read the source only.
case $part,$* in
    one,unit=* | one,fault=* | *,tidy | *,coverage | *,package_there | *,package_installed) ;;
    *)
        if [ "$part" = one ] || [ ! -d "$UIDGEN_WORK/tree-main" ]; then
            [ "$part" = one ] || echo "Testing with $("$PG_CONFIG" --version), $(g++ --version | head -n 1)"
            run build
            # Nothing else can be tested without a build.
            ! grep -q '^build [0-9]* [1-9]' "$UIDGEN_WORK/totals" || exit 0
        fi
        ;;
esac
for group in "$@"; do
    # shellcheck disable=SC2046 # a list of words
    case $group in
        *+*) run_group $(echo "$group" | tr + ' ') ;;
        *) run "$group" ;;
    esac
done
