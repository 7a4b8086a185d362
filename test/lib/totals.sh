# How sections are run and counted. Sourced by what runs sections; UIDGEN_WORK is set.
# shellcheck shell=sh

# A section counts with these and tests to its end, whatever fails:
# add passed failed [skipped].
add() {
    section_passed=$((section_passed + $1))
    section_failed=$((section_failed + $2))
    section_skipped=$((section_skipped + ${3:-0}))
}

# fail text [file]: one test that failed, and the end of the file that says why.
fail() {
    {
        echo "FAILED $1"
        [ -z "${2:-}" ] || tail -n 70 "$2" | cut -c1-300 | sed 's/^/   /'
    } | twice
    add 0 1
}

# skip why: one test, or all of a section.
skip() {
    echo "skipped: $1"
    add 0 0 1
}

# What failed may scroll away, so it is said again before the totals of the run.
twice() {
    tee -a "$UIDGEN_WORK/failures"
}

# section name [test...]: runs the function section_name, and writes its totals and its time down.
section() {
    section_name=$1
    shift
    printf '\n== %s\n' "$section_name"
    section_passed=0
    section_failed=0
    section_skipped=0
    began=$(date +%s)
    "section_$section_name" "$@"
    record "$section_name" "$section_passed" "$section_failed" "$section_skipped"
    seconds=$(($(date +%s) - began))
    echo "$seconds $section_name" >>"$UIDGEN_WORK/log/seconds"
    printf '== %s: %s, %d s\n' "$section_name" "$(totals "$section_passed" "$section_failed" "$section_skipped")" "$seconds"
}

totals() {
    printf '%d passed, %d failed' "$1" "$2"
    [ "$3" = 0 ] || printf ', %d skipped' "$3"
}

# record name passed failed skipped
record() {
    echo "$*" >>"$UIDGEN_WORK/totals"
}

# Three numbers: the sums over all lines of a work directory's totals.
sums() {
    awk '{p += $2; f += $3; s += $4} END {print p + 0, f + 0, s + 0}' "$1/totals"
}

# Adds what sections counted in a work directory of their own to the section that ran them: add_sections directory status.
add_sections() {
    touch "$1/totals"
    [ ! -s "$1/failures" ] || { echo "In $(basename "$1"):" && cat "$1/failures"; } >>"$UIDGEN_WORK/failures"
    # shellcheck disable=SC2046 # three numbers
    add $(sums "$1")
    if [ "$2" != 0 ]; then
        fail "to reach the end of $(basename "$1"): status $2"
    fi
}
