#!/bin/sh
# Runs one section, in a copy of the checkout, as an ordinary user: sections.sh PART NAME. Started by groups.sh.
# PART says what of it runs: quick, what README.md's command runs; rest, all that this one leaves out; or whole.
# What passed and failed goes to files of the work directory; the exit status says only whether it came to its end.
set -eu
part=$1
section=$2
. test/lib/pg.sh
. test/lib/totals.sh
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

# built name make-variable...: builds a tree once; a build counts as one test.
built() {
    [ ! -d "$UIDGEN_WORK/tree-$1" ] || return 0
    began_build=$(date +%s)
    if build_tree "$@"; then
        echo "ok     build $* ($(($(date +%s) - began_build)) s)"
        add 1 0
        return 0
    fi
    fail "build $*" "$UIDGEN_WORK/log/build-$1"
    return 1
}

# expect text command...: one test, which passes if the command succeeds.
expect() {
    text=$1
    shift
    said=$UIDGEN_WORK/log/expect-$section
    if "$@" >"$said" 2>&1; then
        echo "ok     $text"
        add 1 0
        return 0
    fi
    fail "$text" "$said"
    return 1
}

# A list that is empty by mistake must not pass.
no_tests() {
    fail "to find any $1"
}

section_build() {
    built main WERROR=1 || true
}

# Whether the part that runs has the quick ones of a section's tests, or the others.
quick_ones() {
    [ "$part" != rest ]
}

other_ones() {
    [ "$part" != quick ]
}

section_rules() {
    log=$UIDGEN_WORK/log/rules
    FORBIDDEN=$UIDGEN_WORK/forbidden bounded sh test/rules "$UIDGEN_WORK/build-main" "$part" >"$log" 2>&1 || true
    show "$log"
    awk '/^[^ ]/ {bad = /^not ok/} bad' "$log" >>"$UIDGEN_WORK/failures"
    add "$(count '^ok' "$log")" "$(count '^not ok' "$log")" "$(count '^skipped: ' "$log")"
    grep -q '^end of rules$' "$log" || fail "test/rules did not reach its end" "$log"
}

# GoogleTest says how many passed and failed at the end of each program.
section_unit() {
    log=$UIDGEN_WORK/log/unit-$part
    status=0
    bounded make -s -C "$UIDGEN_WORK/build-main/test/unit" -j"$jobs" PART="$part" check >"$log" 2>&1 || status=$?
    ok=$(sed -n 's/^\[  PASSED  \] \([0-9]*\) tests*\.$/\1/p' "$log" | awk '{n += $1} END {print n + 0}')
    bad=$(sed -n 's/^\[  FAILED  \] \([0-9]*\) tests*, listed below:$/\1/p' "$log" | awk '{n += $1} END {print n + 0}')
    if [ "$status" != 0 ] && [ "$bad" = 0 ]; then
        bad=1
    fi
    if [ "$bad" = 0 ]; then
        grep -E '^\[==========\] [0-9]+ tests? .* ran' "$log" | sed 's/^/   /'
    else
        tail -n 60 "$log" | sed 's/^/   /' | twice
    fi
    add "$ok" "$bad"
}

server_conf=test/regress.conf

# From PostgreSQL 17 on the tests do without the preload, but for those that need it.
without_preload() {
    case $("$PG_CONFIG" --version) in *\ 1[56].*) return 1 ;; esac
    server_conf=$UIDGEN_WORK/regress.conf
    grep -v '^shared_preload_libraries' test/regress.conf >"$server_conf"
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
        --temp-config="$server_conf" --bindir="$UIDGEN_WORK/tree-$of_tree$bindir" \
        --dbname=contrib_regression --no-locale --encoding=UTF8 "$@" >"$log" 2>&1 || status=$?
    judge_regress "$log" "$out" "$out/log/postmaster.log" "$status"
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
    [ ! -s "$2/regression.diffs" ] || head -n 200 "$2/regression.diffs" | twice
    complaints=$(grep -sE -m 5 "runtime error:|$server_complaints" "$3" || true)
    if [ -n "$complaints" ]; then
        bad=$((bad + 1))
        echo "$complaints" | twice
    fi
    skipped=$(cat "$2"/results/*.out 2>/dev/null | grep -c '^skipped: ' || true)
    cat "$2"/results/*.out 2>/dev/null | grep '^skipped: ' | sed 's/^/   /' || true
    add "$((ok - skipped))" "$bad" "$skipped"
}

regress_on() {
    tests=$(make_variable REGRESS) || { no_tests 'sql/*.sql' && return 0; }
    # shellcheck disable=SC2046,SC2086 # lists of words
    pg_regress_on "$1" "$2" regress/pg_regress --inputdir=. \
        $(make_variable REGRESS_OPTS | sed 's/--temp-config=[^ ]*//') $tests
}

# On other servers than this machine's.
section_regress_there() {
    without_preload || true
    regress_on regress main
}

# Once as users build it, once with undefined behaviour turned into a crash.
section_regress() {
    ! quick_ones || regress_on regress main
    if other_ones && built ubsan SANITIZE=undefined; then
        echo "built with UBSan:"
        UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 regress_on regress-ubsan ubsan
    fi
}

# As users do it: from the tarball, out of tree, with PGXS's own targets, on a server that has only what README.md's first
# lines ask for.
section_install() {
    tree=$UIDGEN_WORK/tree-install
    copy_postgresql "$tree"
    find "$tree" | sort >"$UIDGEN_WORK/log/files-before"
    expect "make dist has every file of the checkout" dist || return 0
    # Below the source, as Debian builds.
    build=$origin/build
    mkdir "$build"
    expect "make would build out of tree for a PostgreSQL that was built in its own source directory" without_vpath || true
    expect "build and install out of tree" out_of_tree all install DESTDIR="$tree" || return 0
    expect "the library has the same code and data, byte by byte, as that built in the source" same_code || true
    expect "it does not say where it was built" names_no_directory || true
    echo "shared_preload_libraries = 'uidgen'" >"$build/conf"
    make_server server-install "$tree" "$build/conf" SQL_ASCII
    start_server server-install "$tree"
    log=$UIDGEN_WORK/log/installcheck
    status=0
    out_of_tree installcheck >"$log" 2>&1 || status=$?
    stop_server server-install "$tree" immediate
    judge_regress "$log" "$build" "$UIDGEN_WORK/log/server-server-install" "$status"
    expect "make uninstall leaves nothing behind" uninstalled || true
}

# What is for debuggers differs, because only one of them was built with precompiled headers.
same_code() {
    for library in "$build" "$UIDGEN_WORK/build-main"; do
        objcopy --strip-debug --remove-section .note.gnu.build-id "$library/uidgen.so" "$library/code.so" || return 1
    done
    cmp "$build/code.so" "$UIDGEN_WORK/build-main/code.so"
}

names_no_directory() {
    ! grep -aF "$UIDGEN_WORK" "$build/uidgen.so"
}

out_of_tree() {
    (cd "$build" && bounded make -f "$origin/Makefile" PG_CONFIG="$PG_CONFIG" -j"$jobs" "$@")
}

# autoconf removes a line of PGXS for such a PostgreSQL.
without_vpath() {
    cp -R "$(dirname "$("$PG_CONFIG" --pgxs)")/../.." "$UIDGEN_WORK/pgxs" &&
        sed -i '/^VPATH = [$](srcdir)/d' "$UIDGEN_WORK/pgxs/src/Makefile.global" &&
        out_of_tree -n all PGXS="$UIDGEN_WORK/pgxs/src/makefiles/pgxs.mk"
}

# The copy of the checkout has no commit yet, and make dist takes the last one. What is built then is the tarball.
dist() {
    checkout=$UIDGEN_WORK/checkout-install
    cp -R . "$checkout" &&
        git -C "$checkout" -c user.name=test -c user.email=test@example.org commit -q -m dist &&
        make -C "$checkout" -s PG_CONFIG="$PG_CONFIG" dist || return 1
    set -- "$checkout"/uidgen-*.tar.gz
    origin=$UIDGEN_WORK/$(basename "$1" .tar.gz)
    tar -C "$UIDGEN_WORK" -xzf "$1" || return 1
    git ls-files | sort >"$UIDGEN_WORK/log/files-of-checkout"
    (cd "$origin" && find . -type f | sed 's,^\./,,' | sort) | diff "$UIDGEN_WORK/log/files-of-checkout" -
}

uninstalled() {
    out_of_tree uninstall DESTDIR="$tree" && find "$tree" | sort | diff "$UIDGEN_WORK/log/files-before" -
}

# As packagers do it, with Debian's tools; the package is not installed. Where majors can run, it is installed there.
section_package() {
    hindrance=
    command -v dh_pgxs_test >/dev/null || hindrance="debhelper and postgresql-server-dev-all are not installed"
    case $bindir in /usr/lib/postgresql/*) ;; *) hindrance="this PostgreSQL is not Debian's" ;; esac
    if [ -n "$hindrance" ]; then
        echo "skipped: $hindrance"
        add 0 0 1
        return 0
    fi
    package_built || return 0
    expect "CREATE EXTENSION from the unpacked package" on_packaged_server -p "$package" || true
}

# The first of two sections in a root, between which root.sh installs the package.
section_package_there() {
    package_built || true
}

section_package_installed() {
    package_names
    expect "CREATE EXTENSION on a server of pg_virtualenv" on_packaged_server || return 0
    log=$UIDGEN_WORK/log/autopkgtest
    status=0
    (cd "$package_source" && bounded sh debian/tests/installcheck) >"$log" 2>&1 || status=$?
    judge_regress "$log" "$package_source" "$log" "$status"
}

package_names() {
    major=$("$PG_CONFIG" --version | sed 's/^[^0-9]*\([0-9]*\).*/\1/')
    package=postgresql-$major-uidgen
    package_source=$UIDGEN_WORK/package/source
}

package_built() {
    package_names
    mkdir "$UIDGEN_WORK/package"
    cp -R . "$package_source"
    expect "dpkg-buildpackage makes $package" build_package || return 1
    expect "it has the library, the scripts and the documentation" package_is_complete || true
    # The roots of other majors have no git; this machine's section sees it.
    ! command -v git >/dev/null || expect "the build leaves git status clean" unchanged_by_build || true
    if command -v lintian >/dev/null; then
        expect "lintian finds no error and no warning" \
            lintian --fail-on error,warning "$UIDGEN_WORK"/package/*.changes || true
    fi
}

# As docs/install.md says.
build_package() (
    cd "$package_source" || exit
    commands=$(sed -n 's/^\(pg_buildext\|dpkg-buildpackage\)\( [^#]*\) #.*/\1\2/p' docs/install.md)
    DEB_BUILD_OPTIONS="nocheck parallel=$jobs" PG_SUPPORTED_VERSIONS=$major bounded sh -ec "$commands"
)

# The copy has no commit, but an index of what the checkout has.
unchanged_by_build() {
    git -C "$package_source" diff --exit-code && git -C "$package_source" ls-files -o --exclude-standard | diff /dev/null -
}

# debhelper compresses the longer ones of the documents.
package_is_complete() {
    version=$(sed -n "s/^default_version = '\(.*\)'/\1/p" uidgen.control)
    dpkg-deb -c "$UIDGEN_WORK/package/${package}_$version"_*.deb | awk '{print $6}' | sed 's/\.gz$//' \
        >"$UIDGEN_WORK/log/package-files"
    {
        for file in uidgen.control "uidgen--$version.sql"; do
            echo "./usr/share/postgresql/$major/extension/$file"
        done
        echo "./usr/lib/postgresql/$major/lib/uidgen.so"
        for file in README.md README.zh-CN.md docs/*.md docs/pictures/*.svg; do
            echo "./usr/share/doc/$package/$file"
        done
    } | grep -vxFf "$UIDGEN_WORK/log/package-files" && return 1
    return 0
}

# on_packaged_server [-p package]: with -p the server takes the files that the build has put into debian/.
on_packaged_server() (
    cd "$package_source" || exit
    bounded pg_virtualenv "$@" -v "$major" -o shared_preload_libraries=uidgen psql -XAtq -v ON_ERROR_STOP=1 \
        -c "CREATE EXTENSION uidgen" -c "SELECT uid_next() > 0 AND segment_create('a') IS NOT NULL" \
        >"$UIDGEN_WORK/log/packaged"
    cat "$UIDGEN_WORK/log/packaged"
    grep -qx t "$UIDGEN_WORK/log/packaged"
)

# isolation_on label spec...
isolation_on() {
    label=$1
    shift
    pg_regress_on "$label" main isolation/pg_isolation_regress --inputdir=test/isolation --load-extension=uidgen "$@"
}

section_isolation() {
    specs=$(find test/isolation/specs -name '*.spec' 2>/dev/null | sed 's,.*/,,; s,\.spec$,,' | sort)
    [ -n "$specs" ] || { no_tests 'test/isolation/specs/*.spec' && return 0; }
    # shellcheck disable=SC2086 # a list of words
    isolation_on isolation $specs
}

# A registry needs the preload.
section_isolation_there() {
    if without_preload; then
        # shellcheck disable=SC2046 # a list of words
        isolation_on isolation $(find test/isolation/specs -name '*.spec' | sed 's,.*/,,; s,\.spec$,,' | grep -vx fleet | sort)
        server_conf=test/regress.conf
        isolation_on isolation-preloaded fleet
    else
        section_isolation
    fi
}

# tap_jobs: reads lines "tree file fault" and runs them, three times as many at a time as there are
# processors, because they mostly wait for servers, disks and clocks. Each leaves output and
# result in a directory of its own, log/tap-file-fault.
tap_jobs() {
    xargs -r -P "$((3 * jobs))" -L 1 sh test/lib/tap-one.sh
}

result_of() {
    cat "$UIDGEN_WORK/log/tap-$1-$2/result" 2>/dev/null || echo "0 1"
}

# Runs TAP files, the ones that take longest first: tap_files file...
tap_files() {
    [ $# != 0 ] || { no_tests "TAP test" && return 0; }
    for file in "$@"; do
        echo "main $file -"
    done | tap_jobs
    for file in "$@"; do
        name=$(basename "$file" .t)
        # shellcheck disable=SC2046 # two or three numbers
        add $(result_of "$name" -)
        summary=$UIDGEN_WORK/log/tap-$name--/summary
        ! grep -qs '^FAILED' "$summary" || cat "$summary" >>"$UIDGEN_WORK/failures"
    done
}

# Runbooks, sweeps, and what waits for grants to end and begin: those that take longest first.
slow='049 033 032 042 051 035 031 020 039 026'
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
    case $part in
        quick) set -- $(slow_first test/tap/*.t | grep -vxFf "$UIDGEN_WORK/log/rest") ;;
        rest) set -- $(slow_first test/tap/*.t | grep -xFf "$UIDGEN_WORK/log/rest") ;;
        *) set -- $(slow_first test/tap/*.t) ;;
    esac
    tap_files "$@"
}

# On other servers than this machine's: without long files whose subject is uidgen's own policies, protocols, rows and
# documents, and not a major; and without 051, single calls of which take minutes on a server without caches.
not_there='007|01[012458]|02[012469]|03[01235789]|04[24589]|05[019]'
section_tap_there() {
    # shellcheck disable=SC2046 # a list of words
    tap_files $(slow_first test/tap/*.t | grep -Ev "/($not_there)_")
}

# The figures are for docs/fleet.md.
section_monitoring() {
    tap_files test/monitoring/*.t
}

section_patroni() {
    tap_files test/patroni/*.t
    for file in test/patroni/*.t; do
        output=$UIDGEN_WORK/log/tap-$(basename "$file" .t)--/output
        sed -n "s,^# figure: ,   $(basename "$file" .t): ,p" "$output"
    done
}

# Only where test/lib/majors.sh has put an older PostgreSQL.
section_upgrade() {
    tap_files test/upgrade/*.t
}

# Only where /dev/shm is as small as in a container, and no other test has servers.
section_memory_there() {
    tap_files test/memory/*.t
}

# The seeds are constants; test/night has others.
section_torture() {
    expect "the checker finds what it should" checker_test || true
    torture_with 100 check
}

checker_test() {
    sh test/lib/torture/compile.sh && perl test/lib/torture/checker.t "$UIDGEN_WORK/torture/checker"
}

# On the server with assertions, with other rounds.
section_torture_there() {
    torture_with 60 assertions
}

section_torture_major() {
    torture_with 60 major
}

# torture_with seconds seed: a round counts as a test.
torture_with() {
    log=$UIDGEN_WORK/log/torture
    bounded sh test/lib/torture/run.sh main - "$1" "$2" 1 0 >"$log" 2>&1 || true
    rounds=$(sed -n 's/^torture: seed [^ ]*, \([0-9]*\) rounds,.*: found nothing$/\1/p' "$log")
    if [ -n "$rounds" ]; then
        show "$log"
        add "$rounds" 0
    else
        fail "torture of $1 s with seed $2" "$log"
    fi
}

fault_rows() {
    grep -v '^#' test/faults.tsv | awk 'NF >= 2 {for (i = 2; i <= NF; i++) print $1, $i}'
}

# A test proves something only if it can fail. The build with faults breaks one
# promise at a time; each row of test/faults.tsv names the tests that must notice.
# Each of these tests must pass without a fault, in the section tap or here.
section_faults() {
    built faults UIDGEN_FAULTS=1 || return 0
    check_that_table_is_complete
    {
        fault_rows | awk '{print $2}' | sort -u | while read -r file; do
            [ "$(run_without "$file")" = - ] || echo "faults $file none"
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

# What the run of a file without a fault is called: "-" for that of the section tap.
run_without() {
    if [ -e "$UIDGEN_WORK/log/tap-$(basename "$1" .t)--/result" ]; then
        echo -
    else
        echo none
    fi
}

# The fault must make an assertion fail. A test that merely dies proves nothing.
judge_fault() {
    name=$(basename "$2" .t)
    without=$(run_without "$2")
    failed_without=$(result_of "$name" "$without" | cut -d ' ' -f 2)
    not_ok=$(count '^not ok' "$UIDGEN_WORK/log/tap-$name-$1/output")
    if [ "$failed_without" != 0 ]; then
        fail "$2 does not pass without a fault" "$UIDGEN_WORK/log/tap-$name-$without/summary"
    elif [ "$not_ok" = 0 ]; then
        fail "fault $1 was not noticed by $2" "$UIDGEN_WORK/log/tap-$name-$1/summary"
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
        fail "the build with faults has no setting uidgen.fault"
    fi
    while read -r fault; do
        if [ "$fault" != none ] && ! fault_rows | grep -q "^$fault "; then
            fail "fault $fault has no row in test/faults.tsv"
        fi
    done <"$UIDGEN_WORK/log/faults-known"
}

section "$section"
