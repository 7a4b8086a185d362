# The sections of the tests. Sourced by run.sh, which says in $part what of them runs. A section counts what passed and
# failed (totals.sh), and comes to its end whatever fails. Its arguments are the tests that are named, if any are.
# shellcheck shell=sh
: "${part:?run.sh sets it}"
. test/lib/pg.sh
. test/lib/totals.sh
. test/lib/more-sections.sh
. test/lib/packages.sh
. test/lib/clients.sh
. test/lib/analysis.sh

# A hang is a failure, not a wait without end.
limit=1800
[ -z "${UIDGEN_LONG:-}" ] || limit=14400
bounded() {
    timeout --kill-after=30 "$limit" "$@"
}

# grep -c says 0 and fails where there is nothing to count.
count() {
    grep -cE "$1" "$2" || true
}

show() {
    sed 's/^/   /' "$1"
}

# built name make-variable...: a build, which counts as one test, unless another section has built it.
built() {
    [ "$part" = one ] || [ ! -d "$UIDGEN_WORK/tree-$1" ] || return 0
    began_build=$(date +%s)
    # Most of the optimizations take longer than they are worth for one test.
    [ "$part" != one ] || set -- "$@" PG_CXXFLAGS=-O1
    if build_tree "$@"; then
        [ "$part" = one ] || echo "ok     build $* ($(($(date +%s) - began_build)) s)"
        add 1 0
        return 0
    fi
    grep -E -A 6 'error|Error|undefined reference' "$UIDGEN_WORK/log/build-$1" | head -n 60 || true
    fail "build $*" "$UIDGEN_WORK/log/build-$1"
    return 1
}

# expect text command...: one test, which passes if the command succeeds.
expect() {
    text=$1
    shift
    said=$UIDGEN_WORK/log/expect-$section_name
    if "$@" >"$said" 2>&1; then
        echo "ok     $text"
        add 1 0
        return 0
    fi
    fail "$text" "$said"
    return 1
}

section_build() {
    built main WERROR=1 || true
}

# Whether the part that runs has the quick ones of a section's tests, or the others.
quick_ones() {
    [ "$part" != rest ]
}

other_ones() {
    [ "$part" = rest ] || [ "$part" = whole ]
}

# The rules look at a directory that has been built in, without what is left of sources that are gone.
section_rules() {
    log=$UIDGEN_WORK/log/rules
    rm -rf "$UIDGEN_WORK/rules"
    cp -R . "$UIDGEN_WORK/rules"
    cp -R "$UIDGEN_WORK/build-main/." "$UIDGEN_WORK/rules"
    find "$UIDGEN_WORK/rules/src" -name '*.[do]' | while read -r made; do
        [ -e "${made%.?}.cpp" ] || rm "$made"
    done
    FORBIDDEN=$UIDGEN_WORK/forbidden SUBJECTS=$UIDGEN_WORK/subjects \
        bounded sh test/rules "$UIDGEN_WORK/rules" "$(other_ones && echo "$part" || echo quick)" \
        >"$log" 2>&1 || true
    if [ "$part" = one ]; then grep -v '^ok' "$log"; else show "$log"; fi
    awk '/^[^ ]/ {bad = /^not ok/} bad' "$log" >>"$UIDGEN_WORK/failures"
    add "$(count '^ok' "$log")" "$(count '^not ok' "$log")" "$(count '^skipped: ' "$log")"
    grep -q '^end of rules$' "$log" || fail "test/rules did not reach its end" "$log"
}

# GoogleTest says how many passed and failed at the end of each program.
section_unit() {
    log=$UIDGEN_WORK/log/unit-$part
    status=0
    bounded make -s -C test/unit BUILD="$UIDGEN_WORK/unit" -j"$jobs" PART="$part" ONLY="$*" check >"$log" 2>&1 || status=$?
    ok=$(sed -n 's/^\[  PASSED  \] \([0-9]*\) tests*\.$/\1/p' "$log" | awk '{n += $1} END {print n + 0}')
    bad=$(sed -n 's/^\[  FAILED  \] \([0-9]*\) tests*, listed below:$/\1/p' "$log" | awk '{n += $1} END {print n + 0}')
    if [ "$status" != 0 ] && [ "$bad" = 0 ]; then
        bad=1
    fi
    if [ "$bad" = 0 ]; then
        grep -E '^\[==========\] [0-9]+ tests? .* ran' "$log" | sed 's/^/   /'
    else
        grep -vE '^\[ (RUN  |      OK) ' "$log" | tail -n 60 | sed 's/^/   /' | twice
    fi
    add "$ok" "$bad"
}

# installcheck_on label tree variable=value...: on a server of their own.
installcheck_on() {
    label=$1
    tree=$UIDGEN_WORK/tree-$2
    shift 2
    out=$UIDGEN_WORK/results/$label
    log=$UIDGEN_WORK/log/$label
    rm -rf "$out"
    mkdir -p "$out"
    # Sections that run at the same time have two of them; what test/one runs has one, which it keeps.
    case $part,$label in
        one,*) keep_server tests "$tree" 5433 ;;
        *,isolation*) keep_server "$label" "$tree" 5435 ;;
        *) keep_server "$label" "$tree" 5433 ;;
    esac
    touch "$data.unsound"
    cp "$data.installed" "$data.build"
    server_log=$UIDGEN_WORK/log/server-$(basename "$data")
    before=$(wc -l <"$server_log")
    status=0
    check_tree "$tree" "$out" installcheck "$@" >"$log" 2>&1 || status=$?
    tail -n "+$((before + 1))" "$server_log" >"$log-server"
    judge_regress "$log" "$out" "$log-server" "$status"
    [ "$bad" != 0 ] || rm "$data.unsound"
    [ "$part" = one ] || stop_server "$label" "$tree" fast || true
}

# Counts what pg_regress says: judge_regress its-messages its-output-directory server-log exit-status.
# PostgreSQL 15 reports "test name ... ok", later ones "ok 1 - name". A test that left the rest out says so in its output.
judge_regress() {
    grep -E '^((not )?ok |(test|    ) *[^ ]+ +\.\.\. )' "$1" || true
    ok=$(count '^ok |\.\.\. ok' "$1")
    bad=$(count '^not ok |\.\.\. (FAILED|failed)' "$1")
    grep -E '^not ok |\.\.\. (FAILED|failed)' "$1" >>"$UIDGEN_WORK/failures" || true
    if [ "$4" != 0 ] && [ "$bad" = 0 ]; then
        bad=1
        tail -n 20 "$1" "$3" 2>/dev/null | twice || true
    fi
    for diffs in "$2/regression.diffs" "$2/output_iso/regression.diffs"; do
        [ ! -s "$diffs" ] || head -n 200 "$diffs" | twice
    done
    complaints=$(grep -sE -m 5 "runtime error:|$server_complaints" "$3" || true)
    if [ -n "$complaints" ]; then
        bad=$((bad + 1))
        echo "$complaints" | twice
    fi
    skipped=$(cat "$2"/results/*.out 2>/dev/null | grep -c '^skipped: ' || true)
    cat "$2"/results/*.out 2>/dev/null | grep '^skipped: ' | sed 's/^/   /' || true
    add "$((ok - skipped))" "$bad" "$skipped"
}

# regress_on label tree [test...]: all of them, if none is named.
regress_on() {
    label=$1
    of_tree=$2
    shift 2
    expect_something expected sql/*.sql
    installcheck_on "$label" "$of_tree" ISOLATION= ${1:+"REGRESS=$*"}
}

# A new test has nothing yet to be compared with, which pg_regress does not accept: expect_something directory test...
expect_something() {
    directory=$1
    shift
    for file in "$@"; do
        name=$(basename "${file%.*}")
        [ -e "$directory/$name.out" ] || : >"$directory/$name.out"
    done
}

# Once as users build it, once with undefined behaviour turned into a crash.
section_regress() {
    ! quick_ones || regress_on regress main "$@"
    if other_ones && built ubsan SANITIZE=undefined; then
        echo "built with UBSan:"
        UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 regress_on regress-ubsan ubsan
    fi
}

section_isolation() {
    expect_something test/isolation/expected test/isolation/specs/*.spec
    installcheck_on isolation main REGRESS= ISOLATION_TESTDB=contrib_regression ${1:+"ISOLATION=$*"}
}

# tap_jobs: reads lines "tree file fault" and runs them, three times as many at a time as there are
# processors, because they mostly wait for servers, disks and clocks. Each leaves output and
# result in a directory of its own, log/tap-file-fault.
tap_jobs() {
    xargs -r -P "$((3 * jobs))" -L 1 sh test/lib/test-file.sh
}

result_of() {
    cat "$UIDGEN_WORK/log/tap-$1-$2/result" 2>/dev/null || echo "0 1"
}

# Runs TAP files: tap_files file... With $fault set to none, in the build with faults.
tap_files() {
    # A list that is empty by mistake must not pass.
    [ $# != 0 ] || { fail "to find any TAP test" && return 0; }
    tree=main
    [ -z "${fault:-}" ] || tree=faults
    for file in "$@"; do
        echo "$tree $file ${fault:--}"
    done | tap_jobs
    for file in "$@"; do
        name=$(basename "$file" .t)
        # shellcheck disable=SC2046 # two or three numbers
        add $(result_of "$name" "${fault:--}")
        summary=$UIDGEN_WORK/log/tap-$name-${fault:--}/summary
        ! grep -qs '^FAILED' "$summary" || cat "$summary" >>"$UIDGEN_WORK/failures"
    done
}

# Runbooks, sweeps, and what waits for grants to end and begin: those that take longest first.
slow='070 053 033 026 042 034 006 018 055 049 020'
slow_first() {
    for number in $slow; do
        printf '%s\n' "$@" | grep "/${number}_" || true
    done
    printf '%s\n' "$@" | grep -vE "/($(echo "$slow" | tr ' ' '|'))_"
}

# test/rest lists the files that are not quick.
# shellcheck disable=SC2046 # lists of words
section_tap() {
    grep -v '^#' test/rest >"$UIDGEN_WORK/log/rest"
    case $#,$part in
        0,quick) set -- $(slow_first test/tap/*.t | grep -vxFf "$UIDGEN_WORK/log/rest") ;;
        0,rest) set -- $(slow_first test/tap/*.t | grep -xFf "$UIDGEN_WORK/log/rest") ;;
        0,*) set -- $(slow_first test/tap/*.t) ;;
    esac
    tap_files "$@"
}

# Of test/one: files on a build with a fault, which they must notice, or `none`.
section_fault() {
    fault=$1
    shift
    built faults UIDGEN_FAULTS=1 || return 0
    if [ "$fault" = none ]; then
        tap_files "$@"
        return 0
    fi
    printf "faults %s $fault\n" "$@" | tap_jobs >"$UIDGEN_WORK/log/faults"
    for file in "$@"; do
        judge_fault "$fault" "$file"
    done
}

# The fault must make an assertion fail. A test that merely dies proves nothing.
judge_fault() {
    name=$(basename "$2" .t)
    not_ok=$(grep -E -m 1 '^not ok' "$UIDGEN_WORK/log/tap-$name-$1/output") || not_ok=
    if [ -z "$not_ok" ]; then
        fail "fault $1 was not noticed by $2" "$UIDGEN_WORK/log/tap-$name-$1/summary"
    else
        echo "ok     fault $1 is noticed by $2: $not_ok"
        add 1 0
    fi
}
