# Sections that run with --all, or if they are named: those of other servers, of services, the torture, and the faults.
# Sourced by sections.sh.
# shellcheck shell=sh disable=SC2154 # $part and $fault are set by others

# From PostgreSQL 17 on the tests do without the preload, but for those that need it. keep_server reads $server_conf.
without_preload() {
    case $("$PG_CONFIG" --version) in *\ 1[56].*) return 1 ;; esac
    server_conf=$UIDGEN_WORK/without-preload.conf
    grep -v '^shared_preload_libraries' test/regress.conf >"$server_conf.$$"
    mv "$server_conf.$$" "$server_conf" # whole, because sections that run at the same time make it, too
}

# On other servers than this machine's.
section_regress_there() {
    without_preload || true
    regress_on regress main
}

section_isolation_there() {
    without_preload || true
    section_isolation
}

# On other servers than this machine's: without long files whose subject is uidgen's own policies, protocols, rows and
# documents, and not a major.
not_there='007|01[01458]|02[0146]|03[78]|04[24589]|05[09]'
section_tap_there() {
    # shellcheck disable=SC2046 # a list of words
    tap_files $(slow_first test/tap/*.t | grep -Ev "/($not_there)_")
}

# Only where test/lib/majors.sh has put an older PostgreSQL.
section_upgrade() {
    tap_files test/upgrade/*.t
}

# Only where /dev/shm is as small as in a container, and no other test has servers.
section_memory_there() {
    tap_files test/memory/*.t
}

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

# The seeds are constants; test/night has others.
section_torture() {
    expect "the checker finds what it should" checker_test || true
    torture_with 100 check
}

checker_test() {
    sh test/lib/torture/run.sh compile && perl test/lib/torture/checker.t "$UIDGEN_WORK/torture/checker"
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
    bounded sh test/lib/torture/run.sh main - "$1" "$2" 1 0 server >"$log" 2>&1 || true
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
        without=$(run_without "$file")
        if [ "$(result_of "$(basename "$file" .t)" "$without" | cut -d ' ' -f 2)" != 0 ]; then
            fail "$file does not pass without a fault" "$UIDGEN_WORK/log/tap-$(basename "$file" .t)-$without/summary"
        else
            judge_fault "$fault" "$file"
        fi
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
