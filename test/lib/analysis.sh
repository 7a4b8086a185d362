# What the compiler and the tests do not see by themselves: clang-tidy, coverage, valgrind. Sourced by sections.sh.
# shellcheck shell=sh
: "${bindir:?}" "${jobs:?}" # pg.sh sets them

# .clang-tidy says which checks, and why not the others. gcc's -fanalyzer is not used: its 9 warnings (gcc 12.2, 2026-11-24)
# were all wrong.
section_tidy() {
    if ! command -v clang-tidy-14 >/dev/null; then
        skip "clang-tidy 14 is not installed"
        return 0
    fi
    expect "clang-tidy finds nothing in src" tidy || true
}

tidy() {
    # clang-tidy counts the warnings of the server's headers too.
    # shellcheck disable=SC2046 # lists of words
    git ls-files 'src/*.cpp' |
        xargs -P "$jobs" -I '{}' clang-tidy-14 --quiet '{}' -- $(make_variable CPPFLAGS) $(make_variable needs) 2>&1 |
        grep -vE '^[0-9]+ warnings? (and [0-9]+ errors? )?generated' >"$UIDGEN_WORK/log/tidy" || true
    cat "$UIDGEN_WORK/log/tidy"
    [ ! -s "$UIDGEN_WORK/log/tidy" ]
}

# The tests of these sections, in a work directory of their own, with a library and a core_test that count what runs.
# COVERAGE is a variable of make, which takes it from the environment.
section_coverage() {
    there=$UIDGEN_WORK/coverage
    mkdir -p "$there/tmp" "$there/log"
    status=0
    COVERAGE=1 UIDGEN_WORK=$there sh test/lib/run.sh whole unit regress_there isolation tap || status=$?
    add_sections "$there" "$status"
    expect "gcov knows what has run" perl test/lib/coverage.pl "$there/build-main" "$there/unit" || return 0
    # shellcheck disable=SC2154 # of expect
    show "$said"
}

# A server whose memory valgrind watches, with the suppressions of PostgreSQL's developers, who know what their code does
# on purpose. It is built with USE_VALGRIND, so valgrind knows which memory palloc and the buffer manager have given out.
# shellcheck disable=SC2034 # limit, which bounded reads
section_valgrind_there() {
    tree=$UIDGEN_WORK/tree-main
    reports=$UIDGEN_WORK/log/valgrind
    mkdir -p "$reports"
    make_server server-valgrind "$tree"
    write_valgrind_server
    PGCTLTIMEOUT=600 start_server server-valgrind "$tree" "$UIDGEN_WORK/postgres-under-valgrind"
    out=$UIDGEN_WORK/regress-valgrind
    log=$UIDGEN_WORK/log/regress-valgrind
    mkdir "$out"
    limit=7200
    status=0
    check_tree "$tree" "$out" installcheck ISOLATION= >"$log" 2>&1 || status=$?
    PGCTLTIMEOUT=600 stop_server server-valgrind "$tree" fast
    judge_regress "$log" "$out" "$UIDGEN_WORK/log/server-server-valgrind" "$status"
    cat "$reports"/* >"$log-reports"
    echo "valgrind watched $(find "$reports" -type f | wc -l) processes and made $(count ' END$' "$log-reports") reports"
    expect "no report names uidgen" reports_of_uidgen || true
}

# pg_ctl starts this in place of postgres. Each process has a file of its own.
write_valgrind_server() {
    program=$UIDGEN_WORK/postgres-under-valgrind
    cat >"$program" <<END
#!/bin/sh
exec valgrind --quiet --trace-children=yes --leak-check=no --error-markers=REPORT,END \
    --suppressions="$("$PG_CONFIG" --sharedir)/valgrind.supp" --log-file="$reports/%p" "$tree$bindir/postgres" "\$@"
END
    chmod +x "$program"
}

# What is not in C is not PostgreSQL's.
reports_of_uidgen() {
    awk '
        / REPORT$/ {report = ""; ours = 0}
        {report = report $0 "\n"}
        /uidgen(::|\.so)|\.[ch]pp:/ {ours = 1}
        / END$/ && ours {printf "%s", report; found = 1}
        END {exit found}' "$log-reports"
}
