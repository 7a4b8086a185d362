# How the demonstrations show statements and check claims. Sourced by them; sets $tree.
# shellcheck shell=sh disable=SC2154

tree=$UIDGEN_WORK/tree-demo

say() {
    printf '\n%s\n' "$*"
}

began() {
    start=$(date +%s.%N)
}

took() {
    awk -v a="$start" -v b="$(date +%s.%N)" 'BEGIN {printf "   (%.1f s)\n", b - a}'
}

psql() {
    "$tree$bindir/psql" -X -q -v ON_ERROR_STOP=1 "$@"
}

# Shows a statement, its result and its time: show statement [option of psql].
show() {
    echo "   $1" | sed '2,$s/^/   /'
    began
    psql ${2:+"$2"} -c "$1" | sed '/^$/d; s/^/      /'
    took
}

# The first column of the first row, for a claim.
value() {
    psql -At -c "$1"
}

claim() {
    description=$1
    shift
    if [ "$@" ]; then
        echo "   HOLDS: $description"
    else
        echo "   DOES NOT HOLD: $description ($*)"
        exit 1
    fi
}

# Waits until a query returns true, but not long: wait_for query [seconds].
wait_for() {
    for _ in $(seq $((${2:-10} * 10))); do
        [ "$(value "$1")" != t ] || return 0
        sleep 0.1
    done
}

build_demo() {
    began
    if ! build_tree demo; then
        cat "$UIDGEN_WORK/log/build-demo"
        exit 1
    fi
    took
}
