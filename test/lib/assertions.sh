# The sections assertions and valgrind: the extension on this machine's PostgreSQL, built with --enable-cassert and
# USE_VALGRIND. Packaged servers have no assertions, and do not notice a lock, a buffer or a snapshot that is forgotten.
# Nor do they say to valgrind which memory is in use. Sourced by test/check after majors.sh, whose $cache it uses; $top,
# $work and $PG_CONFIG are set before the sections run.
# shellcheck shell=sh disable=SC2154

# Why the section cannot run, or nothing.
assertions_hindrance() {
    if [ "$(id -u)" != 0 ]; then
        echo "only root can give a server that takes minutes to build a place to stay; run sudo test/check"
    fi
}

section_assertions() {
    on_server_with_assertions assertions regress_there+isolation+tap_there torture_there
}

section_valgrind() {
    on_server_with_assertions valgrind valgrind_there
}

# on_server_with_assertions work-directory section...
on_server_with_assertions() {
    there=$work/$1
    shift
    hindrance=$(assertions_hindrance)
    if [ -n "$hindrance" ]; then
        skip "$hindrance"
        return 0
    fi
    prepare_server_with_assertions
    echo "Building $package with assertions in $cache/$package-assertions, or finding it there ..."
    if ! assertion_server make >"$work/log/assertions" 2>&1; then
        fail "to build $package with assertions" "$work/log/assertions"
        return 0
    fi
    echo "ok     $package with assertions: $(tail -n 1 "$work/log/assertions")"
    sed -n 's/^step /       /p' "$work/log/assertions"
    add 1 0
    status=0
    assertion_server run "$@" || status=$?
    add_sections "$there" "$status"
}

prepare_server_with_assertions() {
    package=postgresql-$("$PG_CONFIG" --version | sed 's/^[^0-9]*\([0-9]*\).*/\1/')
    version=$(dpkg-query -W -f='${source:Version}' "$package" 2>/dev/null) || version=any
    make_work_directory "$there"
    mkdir -p "$cache/$package-assertions"
    chown -R postgres: "$there" "$cache/$package-assertions"
}

# Builds it while other sections wait for servers. The section then finds it there, or waits for it.
start_server_with_assertions() {
    there=$work/assertions
    prepare_server_with_assertions
    (assertion_server make) >"$work/log/assertions-ahead" 2>&1 &
}

# assertion_server command section...
assertion_server() {
    action=$1
    shift
    run_in "$there" test/lib/server-with-assertions.sh "$action" "$cache/$package-assertions" "$package" "$version" "$@"
}
