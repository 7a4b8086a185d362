#!/bin/sh
# The part of test/one and test/server that runs as an ordinary user, in the copy of the checkout that they keep:
#   one.sh FAULT NAME...     builds, and runs these tests; FAULT is "-" for the build without faults
#   one.sh --server          builds, and starts the server of test/server
# shellcheck disable=SC3013 # -nt, which dash and others have
set -eu
. test/lib/pg.sh
export PGHOST="$UIDGEN_WORK/tmp" PGUSER=postgres
failed=

# make in a build of its own, outside the source.
build_with() {
    make -s -C "$build" -f "$PWD/Makefile" -j"$jobs" PG_CONFIG="$PG_CONFIG" "$@"
}

# build name make-variable...: Builds what has changed, and installs it into a copy of PostgreSQL.
build() {
    build=$UIDGEN_WORK/build-$1
    tree=$UIDGEN_WORK/tree-$1
    shift
    if [ ! -d "$tree" ]; then
        rm -rf "$tree.new"
        copy_postgresql "$tree.new"
        mv "$tree.new" "$tree"
    fi
    [ "$build/server.hpp.gch" -nt Makefile ] || rm -rf "$build"
    mkdir -p "$build"
    log=$UIDGEN_WORK/log/$(basename "$build")
    if ! built "$@" >"$log" 2>&1; then
        grep -E -A 6 'error|Error|undefined reference' "$log" | head -n 60
        echo "FAILED to build; all of the output is in $log"
        exit 1
    fi
}

# The library is linked each time, because make does not see that a source is gone. The same objects make the same file.
# After a change of a header that most files include nearly all is compiled, and without most optimizations faster.
built() {
    rm -f "$build/uidgen.so" "$tree$("$PG_CONFIG" --sharedir)"/extension/uidgen--*
    set -- "$@" PG_CXXFLAGS=-O1
    { is_precompiled || precompile "$build" build_with "$@"; } &&
        build_with "$@" PG_CPPFLAGS="$(precompiled "$build")" all &&
        build_with "$@" install DESTDIR="$tree"
}

# Whether no header has changed, or is gone, that the precompiled one is made of.
# shellcheck disable=SC2016 # for the inner shell
is_precompiled() {
    [ -e "$build/server.hpp.gch" ] &&
        newer=$(grep -oE '/[^ :]+\.hpp' "$build/server.hpp.d" | xargs sh -c 'find "$@" -newer "$0"' "$build/server.hpp.gch") &&
        [ -z "$newer" ]
}

# A server that is kept: start_kept name port. It restarts if the build has changed. It is made anew if the configuration
# of the tests has changed, and after a test that failed, which may have left anything behind.
start_kept() {
    data=$UIDGEN_WORK/$1
    export PGPORT="$2"
    { cat test/regress.conf && echo "fsync = off"; } >"$UIDGEN_WORK/conf"
    if [ -e "$data.unsound" ] || ! cmp -s "$UIDGEN_WORK/conf" "$data.conf"; then
        touch "$data.unsound"
        stop_kept "$1"
        rm -rf "$data"
        make_server "$1" "$tree" "$UIDGEN_WORK/conf"
        cp "$UIDGEN_WORK/conf" "$data.conf"
        rm "$data.unsound"
    fi
    installed >"$UIDGEN_WORK/installed"
    cmp -s "$UIDGEN_WORK/installed" "$data.build" || stop_kept "$1"
    running "$1" || start_server "$1" "$tree"
}

running() {
    "$tree$bindir/pg_ctl" -D "$UIDGEN_WORK/$1" status >/dev/null 2>&1
}

stop_kept() {
    ! running "$1" || stop_server "$1" "$tree" immediate
}

# The sums of the files that a server and its databases have of the extension.
installed() {
    find "$tree" -name 'uidgen*' -type f -exec cksum {} + | sort
}

# A database with the extension as it is now.
# shellcheck disable=SC2016 # for the server
start_for_psql() {
    build main WERROR=1
    start_kept psql 5434
    cmp -s "$UIDGEN_WORK/installed" "$data.build" || {
        echo "The database uidgen is made anew, because the build has changed." >&2
        kept_psql -c 'DROP DATABASE IF EXISTS uidgen' -c 'CREATE DATABASE uidgen'
        kept_psql -d uidgen -c 'CREATE SCHEMA uidgen' -c 'CREATE EXTENSION uidgen SCHEMA uidgen' \
            -c 'ALTER DATABASE uidgen SET search_path = "$user", public, uidgen'
        cp "$UIDGEN_WORK/installed" "$data.build"
    }
}

kept_psql() {
    PGOPTIONS='-c client_min_messages=warning' "$tree$bindir/psql" -Xq -v ON_ERROR_STOP=1 -d postgres "$@"
}

# regress kind directory-of-the-tests program option... -- test...: Runs tests on the kept server, and says how they went.
regress() {
    kind=$1
    input=$2
    program=$3
    shift 3
    out=$UIDGEN_WORK/results/$kind
    log=$UIDGEN_WORK/log/$kind
    mkdir -p "$out"
    start_kept tests 5433
    cp "$UIDGEN_WORK/installed" "$data.build"
    touch "$data.unsound"
    before=$(wc -l <"$UIDGEN_WORK/log/server-tests")
    status=0
    "$pg_tests/$program" --outputdir="$out" --inputdir="$input" --bindir="$tree$bindir" --host="$PGHOST" --port="$PGPORT" \
        --user=postgres --dbname=contrib_regression --no-locale --encoding=UTF8 "$@" >"$log" 2>&1 || status=$?
    grep -E '^((not )?ok |(test|    ) *[^ ]+ +\.\.\. )' "$log" || cat "$log"
    [ ! -s "$out/regression.diffs" ] || head -n 300 "$out/regression.diffs"
    tail -n "+$((before + 1))" "$UIDGEN_WORK/log/server-tests" | grep -E -m 5 "$server_complaints" && status=1
    if [ "$status" = 0 ]; then
        rm "$data.unsound"
    else
        failed=yes
        echo "Results are in $out; test/server --of-tests opens psql where the last test ended."
    fi
}

# The tests of test/unit need no build.
build_once() {
    [ -z "${variant:-}" ] || return 0
    if [ "$fault" = - ]; then
        variant=main
        build main WERROR=1
    else
        variant=faults
        build faults UIDGEN_FAULTS=1
    fi
}

sql_tests() {
    build_once
    # A new test has nothing yet to be compared with, which pg_regress does not accept.
    for name in "$@"; do
        [ -e "expected/$name.out" ] || : >"expected/$name.out"
    done
    regress regress . regress/pg_regress "$@"
}

isolation_tests() {
    build_once
    for name in "$@"; do
        [ -e "test/isolation/expected/$name.out" ] || : >"test/isolation/expected/$name.out"
    done
    regress isolation test/isolation isolation/pg_isolation_regress --load-extension=uidgen "$@"
}

tap_file() {
    build_once
    rm -rf "$UIDGEN_WORK/log/tap-$(basename "$1" .t)-$fault"
    sh test/lib/tap-one.sh "$variant" "$1" "$fault"
    [ "$(cut -d ' ' -f 2 "$UIDGEN_WORK/log/tap-$(basename "$1" .t)-$fault/result")" = 0 ] || failed=yes
}

# unit_tests target: a target of test/unit.
unit_tests() {
    if unit_make "$1"; then
        grep -E '^\[==========\] [0-9]+ tests? .* ran' "$UIDGEN_WORK/log/unit" | sed 's/^\[=*\]/ok    /'
    fi
}

unit_make() {
    make -C test/unit -j"$jobs" "$1" >"$UIDGEN_WORK/log/unit" 2>&1 || {
        grep -vE '^\[ (RUN  |      OK) ' "$UIDGEN_WORK/log/unit" | tail -n 60
        failed=yes
        return 1
    }
}

# unit_file program file: the quick tests of one file of a program.
unit_file() {
    unit_make "build/$1" || return 0
    suites=$(sed -n 's/^T[A-Z_]*(\([A-Za-z]*\),.*/\1/p' "$2" | sort -u | sed 's,.*,&.*:&/*:*/&.*,' | paste -sd :)
    slow=$(sed -n 's/^SLOW_TESTS = //p' test/unit/Makefile)
    "test/unit/build/$1" --gtest_brief=1 --gtest_filter="$suites:-$slow" || failed=yes
}

# The quick ones. They look at a directory that has been built in.
rules() {
    build_once
    rm -rf "$UIDGEN_WORK/rules"
    cp -R . "$UIDGEN_WORK/rules"
    cp -R "$build/." "$UIDGEN_WORK/rules"
    FORBIDDEN=$UIDGEN_WORK/forbidden sh test/rules "$UIDGEN_WORK/rules" quick >"$UIDGEN_WORK/log/rules" 2>&1 || failed=yes
    grep -v '^ok' "$UIDGEN_WORK/log/rules"
    ! grep -q '^not ok' "$UIDGEN_WORK/log/rules" || failed=yes
}

names_in() {
    find "$1" -name "*.$2" | sed "s,.*/,,; s,\.$2\$,," | sort
}

# shellcheck disable=SC2046 # lists of words
one() {
    found=
    case $1 in
        regress) sql_tests $(names_in sql sql) && return ;;
        isolation) isolation_tests $(names_in test/isolation/specs spec) && return ;;
        unit) unit_tests check && return ;;
        rules) rules && return ;;
    esac
    name=$(basename "$1" | sed 's/\.[a-z]*$//')
    [ ! -e "sql/$name.sql" ] || { found=yes && sql_tests "$name"; }
    [ ! -e "test/isolation/specs/$name.spec" ] || { found=yes && isolation_tests "$name"; }
    for file in test/*/"$name".t test/*/"$name"_*.t; do
        [ ! -e "$file" ] || { found=yes && tap_file "$file"; }
    done
    case $name in
        core_test | search_test) found=yes && unit_tests "check-$name" ;;
        history_test | fleet_test | memory_order_test)
            found=yes && unit_file search_test "test/unit/$name.cpp"
            ;;
        *) [ ! -e "test/unit/$name.cpp" ] || { found=yes && unit_file core_test "test/unit/$name.cpp"; } ;;
    esac
    [ -n "$found" ] || { failed=yes && echo "FAILED $1: there is no such test"; }
}

if [ "$1" = --server ]; then
    start_for_psql
    exit
fi
fault=$1
shift
rm -rf "$UIDGEN_WORK/results"
for test in "$@"; do
    one "$test"
done
[ -z "$failed" ]
