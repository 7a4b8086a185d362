#!/bin/sh
# Runs the sections that are named in the arguments. Started by test/check in a copy
# of the checkout, as an ordinary user. What passed and failed is in the file totals;
# the exit status says only whether it came to its end.
set -eu
. test/lib/pg.sh
. test/lib/totals.sh

# A hang is a failure, not a wait without end.
bounded() {
    timeout --kill-after=30 900 "$@"
}

# grep -c says 0 and fails where there is nothing to count.
count() {
    grep -cE "$1" "$2" || true
}

show() {
    sed 's/^/   /' "$1"
}

# built name make-variable...: builds a tree once; a build counts as one test.
built() {
    [ ! -d "$UIDGEN_WORK/tree-$1" ] || return 0
    began_build=$(date +%s)
    if build_tree "$@"; then
        echo "ok     build $* ($(($(date +%s) - began_build)) s)"
        add 1 0
        return 0
    fi
    echo "FAILED build $*"
    tail -n 40 "$UIDGEN_WORK/log/build-$1" | sed 's/^/   /'
    add 0 1
    return 1
}

# A list that is empty by mistake must not pass.
no_tests() {
    echo "FAILED to find any $1"
    add 0 1
}

section_build() {
    built main WERROR=1 || true
}

section_rules() {
    log=$UIDGEN_WORK/log/rules
    bounded sh test/rules "$UIDGEN_WORK/build-main" >"$log" 2>&1 || true
    show "$log"
    add "$(count '^ok' "$log")" "$(count '^not ok' "$log")" "$(count '^skipped: ' "$log")"
    grep -q '^end of rules$' "$log" || { echo "FAILED test/rules did not reach its end"; add 0 1; }
}

# GoogleTest says how many passed and failed at the end of each program.
section_unit() {
    log=$UIDGEN_WORK/log/unit
    status=0
    bounded make -C "$UIDGEN_WORK/build-main/test/unit" -j"$jobs" check >"$log" 2>&1 || status=$?
    ok=$(sed -n 's/^\[  PASSED  \] \([0-9]*\) tests*\.$/\1/p' "$log" | awk '{n += $1} END {print n + 0}')
    bad=$(sed -n 's/^\[  FAILED  \] \([0-9]*\) tests*, listed below:$/\1/p' "$log" | awk '{n += $1} END {print n + 0}')
    if [ "$status" != 0 ] && [ "$bad" = 0 ]; then
        bad=1
    fi
    if [ "$bad" = 0 ]; then
        grep -E '^\[==========\] [0-9]+ tests? .* ran' "$log" | sed 's/^/   /'
    else
        tail -n 60 "$log" | sed 's/^/   /'
    fi
    add "$ok" "$bad"
}

# pg_regress_on label tree program option... -- test...
pg_regress_on() {
    label=$1
    of_tree=$2
    program=$3
    shift 3
    out=$UIDGEN_WORK/$label
    log=$UIDGEN_WORK/log/$label
    mkdir "$out"
    status=0
    bounded "$pg_tests/$program" --outputdir="$out" --temp-instance="$out/instance" \
        --temp-config=test/regress.conf --bindir="$UIDGEN_WORK/tree-$of_tree$bindir" \
        --dbname=contrib_regression --no-locale --encoding=UTF8 "$@" >"$log" 2>&1 || status=$?
    judge_regress "$log" "$out" "$out/log/postmaster.log" "$status"
}

# Counts what pg_regress says: judge_regress its-messages its-output-directory server-log exit-status.
# PostgreSQL 15 reports "test name ... ok", later ones "ok 1 - name". A test that left the rest out says so in its output.
judge_regress() {
    grep -E '^((not )?ok |(test|    ) *[^ ]+ +\.\.\. )' "$1" || true
    ok=$(count '^ok |\.\.\. ok' "$1")
    bad=$(count '^not ok |\.\.\. (FAILED|failed)' "$1")
    if [ "$4" != 0 ] && [ "$bad" = 0 ]; then
        bad=1
        tail -n 20 "$1"
        tail -n 20 "$3" 2>/dev/null || true
    fi
    head -n 200 "$2/regression.diffs" 2>/dev/null || true
    if grep -sE -m 5 "runtime error:|$server_complaints" "$3"; then
        bad=$((bad + 1))
    fi
    skipped=$(cat "$2"/results/*.out 2>/dev/null | grep -c '^skipped: ' || true)
    cat "$2"/results/*.out 2>/dev/null | grep '^skipped: ' | sed 's/^/   /' || true
    add "$((ok - skipped))" "$bad" "$skipped"
}

regress_on() {
    tests=$(make_variable REGRESS) || { no_tests 'sql/*.sql' && return 0; }
    # shellcheck disable=SC2046,SC2086 # lists of words
    pg_regress_on "$1" "$2" regress/pg_regress --inputdir=. \
        $(make_variable REGRESS_OPTS) $tests
}

# Once as users build it, once with undefined behaviour turned into a crash.
section_regress() {
    regress_on regress main
    if built ubsan SANITIZE=undefined; then
        echo "once more, built with UBSan:"
        UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 regress_on regress-ubsan ubsan
    fi
}

# As users do it: out of tree, with PGXS's own targets, on a server that has only what README.md's first lines ask for.
section_install() {
    origin=$UIDGEN_WORK/source-install
    build=$UIDGEN_WORK/build-install
    tree=$UIDGEN_WORK/tree-install
    log=$UIDGEN_WORK/log/install
    cp -R . "$origin"
    mkdir "$build"
    copy_postgresql "$tree"
    if out_of_tree -j"$jobs" all >"$log" 2>&1 && out_of_tree install DESTDIR="$tree" >>"$log" 2>&1; then
        echo "ok     build and install out of tree"
        add 1 0
    else
        echo "FAILED to build and install out of tree"
        tail -n 40 "$log" | sed 's/^/   /'
        add 0 1
        return 0
    fi
    # WERROR, which only that one was built with, changes no byte.
    if cmp "$build/uidgen.so" "$UIDGEN_WORK/build-main/uidgen.so"; then
        echo "ok     the library is the same, byte by byte, as that built in the source"
        add 1 0
    else
        echo "FAILED: the library is not the same as that built in the source"
        add 0 1
    fi
    echo "shared_preload_libraries = 'uidgen'" >"$build/conf"
    make_server server-install "$tree" "$build/conf"
    start_server server-install "$tree"
    status=0
    out_of_tree installcheck >"$log-check" 2>&1 || status=$?
    stop_server server-install "$tree" immediate
    judge_regress "$log-check" "$build" "$UIDGEN_WORK/log/server-server-install" "$status"
}

out_of_tree() {
    (cd "$build" && bounded make -f "$origin/Makefile" PG_CONFIG="$PG_CONFIG" "$@")
}

section_isolation() {
    specs=$(find test/isolation/specs -name '*.spec' 2>/dev/null | sed 's,.*/,,; s,\.spec$,,' | sort)
    [ -n "$specs" ] || { no_tests 'test/isolation/specs/*.spec' && return 0; }
    # shellcheck disable=SC2086 # a list of words
    pg_regress_on isolation main isolation/pg_isolation_regress \
        --inputdir=test/isolation --load-extension=uidgen $specs
}

# tap_jobs: reads lines "tree file fault" and runs them, as many at a time as there
# are processors; each leaves output and result in a directory of its own, log/tap-file-fault.
tap_jobs() {
    xargs -r -P "$jobs" -L 1 sh test/lib/tap-one.sh
}

result_of() {
    cat "$UIDGEN_WORK/log/tap-$1-$2/result" 2>/dev/null || echo "0 1"
}

# Runs the TAP files of a directory.
# tap_files directory [pattern of files to leave out]
tap_files() {
    files=$(find "$1" -name '*.t' | grep -Ev "${2:-^$}" | sort)
    [ -n "$files" ] || { no_tests "$1/*.t" && return 0; }
    for file in $files; do
        echo "main $file -"
    done | tap_jobs
    for file in $files; do
        # shellcheck disable=SC2046 # two or three numbers
        add $(result_of "$(basename "$file" .t)" -)
    done
}

section_tap() {
    tap_files test/tap
}

# On other servers than this machine's: without long files whose subject is uidgen's own protocols and not a major.
section_tap_there() {
    tap_files test/tap '/(020_cached|033_fleet|035_fleet_faults)\.t$'
}

# The figures are for docs/fleet.md.
section_patroni() {
    tap_files test/patroni
    for file in test/patroni/*.t; do
        output=$UIDGEN_WORK/log/tap-$(basename "$file" .t)--/output
        sed -n "s,^# figure: ,   $(basename "$file" .t): ,p" "$output"
    done
}

# Only where test/lib/majors.sh has put an older PostgreSQL.
section_upgrade() {
    tap_files test/upgrade
}

fault_rows() {
    grep -v '^#' test/faults.tsv | awk 'NF >= 2 {for (i = 2; i <= NF; i++) print $1, $i}'
}

# A test proves something only if it can fail. The build with faults breaks one
# promise at a time; each row of test/faults.tsv names the tests that must notice.
# First each of these tests must pass in that build with no fault chosen.
section_faults() {
    built faults UIDGEN_FAULTS=1 || return 0
    check_that_table_is_complete
    {
        fault_rows | awk '{print $2}' | sort -u | while read -r file; do
            echo "faults $file none"
        done
        fault_rows | while read -r fault file; do
            echo "faults $file $fault"
        done
    } | tap_jobs >"$UIDGEN_WORK/log/faults"
    fault_rows >"$UIDGEN_WORK/log/fault-rows"
    while read -r fault file; do
        judge_fault "$fault" "$file"
    done <"$UIDGEN_WORK/log/fault-rows"
}

# The fault must make an assertion fail. A test that merely dies proves nothing.
judge_fault() {
    name=$(basename "$2" .t)
    failed_without=$(result_of "$name" none | cut -d ' ' -f 2)
    not_ok=$(count '^not ok' "$UIDGEN_WORK/log/tap-$name-$1/output")
    if [ "$failed_without" != 0 ]; then
        echo "FAILED $2 does not pass without a fault"
        show "$UIDGEN_WORK/log/tap-$name-none/summary"
        add 0 1
    elif [ "$not_ok" = 0 ]; then
        echo "FAILED fault $1 was not noticed by $2"
        show "$UIDGEN_WORK/log/tap-$name-$1/summary"
        add 0 1
    else
        echo "ok     fault $1 is caught by $2: $(grep -m 1 '^not ok' "$UIDGEN_WORK/log/tap-$name-$1/output")"
        add 1 0
    fi
}

# The server itself says which faults it knows.
check_that_table_is_complete() {
    tree=$UIDGEN_WORK/tree-faults
    make_server server-faults "$tree"
    start_server server-faults "$tree"
    "$tree$bindir/psql" -XAtc "SELECT unnest(enumvals) FROM pg_settings WHERE name = 'uidgen.fault'" |
        sort >"$UIDGEN_WORK/log/faults-known"
    stop_server server-faults "$tree" immediate
    if [ ! -s "$UIDGEN_WORK/log/faults-known" ]; then
        echo "FAILED the build with faults has no setting uidgen.fault"
        add 0 1
    fi
    while read -r fault; do
        if [ "$fault" != none ] && ! fault_rows | grep -q "^$fault "; then
            echo "FAILED fault $fault has no row in test/faults.tsv"
            add 0 1
        fi
    done <"$UIDGEN_WORK/log/faults-known"
}

echo "Testing with $("$PG_CONFIG" --version), $(g++ --version | head -n 1)"
section build "the extension, warnings as errors, into a private copy of PostgreSQL"
# Nothing else can be tested without a build.
[ "$section_failed" = 0 ] || exit 0
for name in "$@"; do
    case $name in
        rules) section rules "what the source and the objects may contain (src/README.md says why)" ;;
        unit) section unit "the C++ core alone, under AddressSanitizer, UBSan and ThreadSanitizer" ;;
        regress) section regress "SQL files against a server, compared with expected output" ;;
        install) section install "out of tree, and make installcheck on a server that only preloads it" ;;
        isolation) section isolation "sessions that interleave step by step" ;;
        tap) section tap "servers that crash, fail over, and have wrong clocks" ;;
        tap_there) section tap_there "servers that crash, fail over, and have wrong clocks" ;;
        patroni) section patroni "a registry that Patroni switches over and fails over" ;;
        upgrade) section upgrade "pg_upgrade from an older PostgreSQL" ;;
        faults) section faults "builds that break a promise on purpose must be caught" ;;
    esac
done
