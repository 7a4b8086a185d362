#!/bin/sh
# Runs sections, in a copy of the checkout, as an ordinary user: groups.sh PART GROUP... Started by test/check.
# A group is a section, or several that run at the same time, with + between them. sections.sh says what PART is.
# The exit status says only whether all came to their end.
set -eu
. test/lib/pg.sh
part=$1
shift

# The tests with servers mostly wait, so they come first wherever they want a processor. The others use what they leave.
run() {
    politely='nice'
    case $1 in build | tap* | regress* | isolation | upgrade | memory* | faults | torture* | monitoring) politely= ;; esac
    # shellcheck disable=SC2086 # empty or one word
    $politely sh test/lib/sections.sh "$part" "$1"
}

# What one says is not mixed with what another one says, but for the TAP files: each says a line when it has ended.
run_beside_others() {
    case $1 in
        tap*)
            run "$1"
            return
            ;;
    esac
    status=0
    run "$1" >"$UIDGEN_WORK/log/section-$1" 2>&1 || status=$?
    cat "$UIDGEN_WORK/log/section-$1"
    return "$status"
}

run_group() {
    if [ $# = 1 ]; then
        run "$1"
        return
    fi
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

# The others build for themselves, or read the source only.
case $* in
    tidy | coverage) ;;
    *)
        if [ ! -d "$UIDGEN_WORK/tree-main" ]; then
            echo "Testing with $("$PG_CONFIG" --version), $(g++ --version | head -n 1)"
            run build
            # Nothing else can be tested without a build.
            ! grep -q '^build [0-9]* [1-9]' "$UIDGEN_WORK/totals" || exit 0
        fi
        ;;
esac
for group in "$@"; do
    # shellcheck disable=SC2046 # a list of words
    run_group $(echo "$group" | tr + ' ')
done
