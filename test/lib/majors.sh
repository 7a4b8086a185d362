# The section majors: the extension on other majors of PostgreSQL than this machine's,
# each in the Debian that ships it, and pg_upgrade from this machine's to each of them.
# Sourced by test/check, which sets $top, and $work before the section runs.
# shellcheck shell=sh disable=SC2154

majors='17:trixie 18:forky 19:experimental'
# None of them preloads the library, but for the tests that need it. The SQL tests run once more, with the preload, on
# the server of the package. What fills /dev/shm runs alone, and so does the torture, half of whose rounds preload.
tested_there='isolation_there+regress_there+tap_there'
tested_alone='memory_there torture_major'
# Its Patroni is younger than this machine's may be.
patroni_major=17:trixie
cache=${XDG_CACHE_HOME:-/var/cache}/uidgen-test
namespaces=
roots_started=
patroni_there=

# Why the section cannot run, or nothing.
majors_hindrance() {
    if [ "$(id -u)" != 0 ]; then
        echo "only root can make a Debian in a directory and go there; run sudo test/check"
    elif ! unshare --mount --pid --ipc --fork --mount-proc true 2>/dev/null; then
        echo "root may not mount anything here, as in many containers"
    fi
}

# A mirror of Debian, or of Debian-Security, as apt has understood its own configuration:
# debian_mirror label
debian_mirror() {
    # shellcheck disable=SC2016 # for apt
    apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' \
        'Origin: Debian' "Label: $1" 'Component: main' 2>/dev/null | head -n 1
}

# Starts root.sh in the background, and leaves its number in $!. $politely is empty or `nice`.
in_namespaces() {
    ${politely:-} unshare --mount --pid --ipc --fork --kill-child --mount-proc sh "$top/test/lib/root.sh" "$@" &
    namespaces="$namespaces $!"
}

# Ends what in_namespaces started. unshare itself waits until the kernel has ended the
# last process there, so nothing writes any more when this returns.
stop_namespaces() {
    for process in $namespaces; do
        first_inside=$(cat "/proc/$process/task/$process/children" 2>/dev/null) || continue
        # shellcheck disable=SC2086 # one number, or none
        kill -KILL ${first_inside:-"$process"} 2>/dev/null || true
        wait "$process" 2>/dev/null || true
    done
    namespaces=
}

section_majors() {
    hindrance=$(majors_hindrance)
    if [ -n "$hindrance" ]; then
        skip "$hindrance"
        return 0
    fi
    [ -n "$roots_started" ] || start_roots
    if [ -z "$roots_started" ]; then
        fail "to start making any Debian"
        return 0
    fi
    finish_roots
    make_old
    for pair in $made; do
        test_major "${pair%:*}" "${pair#*:}"
    done
}

# What root.sh makes a root from, and the place for it. False: they cannot be had.
find_mirrors() {
    mirror=$(debian_mirror Debian)
    [ -n "$mirror" ] || { refresh_lists && mirror=$(debian_mirror Debian); } || true
    if [ -z "$mirror" ]; then
        echo "There is no Debian mirror in apt's configuration." | twice
        return 1
    fi
    security=$(debian_mirror Debian-Security)
    mkdir -p "$cache"
    if [ ! -O "$cache" ]; then
        echo "$cache belongs to somebody else." | twice
        return 1
    fi
}

# All at the same time, and beside the sections that come first: most of it is waiting for the network and the disk.
# Those that were started are listed in $roots_started; none after a failure.
start_roots() {
    find_mirrors || return 0
    for pair in $majors; do
        echo "Making a Debian ${pair#*:} with PostgreSQL ${pair%:*} in $cache, or finding it there ..."
        in_namespaces make "$cache/${pair#*:}" "${pair#*:}" "${pair%:*}" "$mirror" \
            "$security" >"$work/log/root-${pair%:*}" 2>&1
        roots_started="$roots_started $pair:$!"
    done
}

# Those that succeed are listed in $made.
finish_roots() {
    made=
    for entry in $roots_started; do
        status=0
        wait "${entry##*:}" || status=$?
        judge_root "${entry%:*}" "$status"
    done
    namespaces=
}

# judge_root major:suite status
judge_root() {
    log=$work/log/root-${1%:*}
    if [ "$2" = 0 ]; then
        echo "ok     Debian ${1#*:} with PostgreSQL ${1%:*}: $(tail -n 1 "$log")"
        sed -n 's/^step /       /p' "$log"
        add 1 0
        made="$made $1"
    else
        fail "Debian ${1#*:} with PostgreSQL ${1%:*}" "$log"
    fi
}

# What an interrupted or failed run began is of no use to the next one.
remove_incomplete_roots() {
    for entry in $roots_started ${patroni_there:+"$patroni_major:$patroni_there"}; do
        pair=${entry%:*}
        sh "$top/test/lib/root.sh" tidy "$cache/${pair#*:}" "${pair#*:}" "${pair%:*}"
    done
}

# pg_upgrade needs programs of both majors in one place, and no Debian ships two. So
# this machine's PostgreSQL goes along: $work/old, made only if it is older than one there.
make_old() {
    old_major=$("$PG_CONFIG" --version | sed 's/^[^0-9]*\([0-9]*\).*/\1/')
    old=
    for pair in $made; do
        [ "$old_major" -ge "${pair%:*}" ] || old=$work/old
    done
    [ -n "$old" ] || return 0
    if run_in_copy test/lib/old-postgresql.sh >"$work/log/old" 2>&1; then
        echo "ok     PostgreSQL $old_major, to be upgraded there"
        add 1 0
    else
        tail -n 20 "$work/log/build-old" "$work/log/old" >"$work/log/copy-old" 2>/dev/null || true
        fail "to copy PostgreSQL $old_major, to be upgraded there" "$work/log/copy-old"
        old=
    fi
}

# The section upgrade, if there is an older PostgreSQL: upgrade_there major directory.
upgrade_there() {
    if [ "$old_major" -ge "$1" ]; then
        skip "no upgrade to PostgreSQL $1, since this machine has $old_major already"
    elif [ -n "$old" ]; then
        cp -al "$old" "$2/old"
        sections="$sections+upgrade"
    fi
}

# test_major major suite: the same sections as here, on a copy of the same checkout. Beside them Debian's package is built,
# installed and tested, with the time that they leave.
test_major() {
    there=$work/major-$1
    package=$work/package-$1
    sections=$tested_there
    for directory in "$there" "$package"; do
        make_work_directory "$directory"
    done
    upgrade_there "$1" "$there"
    sections="$sections $tested_alone"
    printf '\n-- PostgreSQL %s in Debian %s: %s\n' "$1" "$2" "$sections"
    politely=nice
    in_namespaces package "$cache/$2" "$2" "$1" "$package" >"$work/log/package-$1" 2>&1
    packaging=$!
    politely=
    # shellcheck disable=SC2086 # a list of words
    in_namespaces run "$cache/$2" "$2" "$1" "$there" $sections
    status=0
    wait $! || status=$?
    add_sections "$there" "$status"
    status=0
    wait "$packaging" || status=$?
    namespaces=
    cat "$work/log/package-$1"
    add_sections "$package" "$status"
}

# The section patroni once more in that Debian, at the same time as here.
start_patroni_there() {
    [ -z "$(majors_hindrance)" ] && find_mirrors || return 0
    make_work_directory "$work/patroni-there"
    in_namespaces patroni "$cache/${patroni_major#*:}" "${patroni_major#*:}" "${patroni_major%:*}" "$work/patroni-there" "$mirror" \
        "$security" >"$work/log/patroni-there" 2>&1
    patroni_there=$!
}

section_patroni_there() {
    if [ -z "$patroni_there" ]; then
        hindrance=$(majors_hindrance)
        echo "skipped: ${hindrance:-there is no Debian $patroni_major}"
        add 0 0 1
        return 0
    fi
    status=0
    wait "$patroni_there" || status=$?
    cat "$work/log/patroni-there"
    add_sections "$work/patroni-there" "$status"
}
