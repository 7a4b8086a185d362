# Prepares the machine and a work directory. Sourced by test/check and test/demo,
# which set $top to the checkout; more_packages names packages that the sourcing script
# needs beside the usual ones. Sets PG_CONFIG and work. keep=yes keeps the work directory.
# shellcheck shell=sh
: "${top:?the sourcing script sets it}"

# The PostgreSQL to test with: $PG_CONFIG if set, else the newest one whose server
# is installed, else the one that this Debian ships.
find_major() {
    newest=$(find /usr/lib/postgresql -path '*/bin/postgres' 2>/dev/null |
        cut -d/ -f5 | sort -n | tail -n 1)
    if [ -z "$newest" ]; then
        newest=$(apt-cache depends postgresql 2>/dev/null |
            sed -n 's/^ *Depends: postgresql-\([0-9][0-9]*\)$/\1/p' | head -n 1)
    fi
    echo "$newest"
}

needed_packages() {
    # shellcheck disable=SC2086 # a list of words
    echo g++ make libpq-dev libssl-dev perl git shellcheck libgtest-dev libfaketime libipc-run-perl ${more_packages:-}
    if [ -z "${PG_CONFIG:-}" ]; then
        echo "postgresql-$1 postgresql-server-dev-$1"
    fi
}

missing_packages() {
    for package in $(needed_packages "$1"); do
        status=$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null) || status=absent
        [ "$status" = installed ] || printf '%s ' "$package"
    done
}

# Installs packages, and refreshes apt's lists only if it cannot do without. A
# PostgreSQL server that comes new must not create and start a cluster of its own,
# which Debian's package otherwise does: a drop-in file says so while it installs.
install_packages() {
    logs=$(mktemp -d)
    drop_in_dir=/etc/postgresql-common/createcluster.d
    drop_in=$drop_in_dir/no-main-cluster-for-uidgen-tests.conf
    mkdir -p "$drop_in_dir"
    echo 'create_main_cluster = false' >"$drop_in"
    installed=0
    if try_install "$logs/first.log" "$@"; then
        installed=1
    elif refresh_lists && try_install "$logs/second.log" "$@"; then
        installed=1
    fi
    rm -f "$drop_in"
    rmdir "$drop_in_dir" 2>/dev/null || true
    if [ "$installed" = 0 ]; then
        tail -n 30 "$logs"/*.log >&2
        rm -rf "$logs"
        echo "Could not install the packages above; apt's messages say why." >&2
        exit 1
    fi
    rm -rf "$logs"
}

try_install() {
    log=$1
    shift
    DEBIAN_FRONTEND=noninteractive NEEDRESTART_SUSPEND=1 \
        apt-get install -y -q --no-upgrade --no-remove --no-install-recommends \
        -o Dpkg::Options::=--force-confold "$@" >"$log" 2>&1 </dev/null
}

refresh_lists() {
    DEBIAN_FRONTEND=noninteractive apt-get update -qq >/dev/null </dev/null
}

setup_machine() {
    if ! command -v dpkg-query >/dev/null; then
        echo "This needs a Debian machine, version 12 or later." >&2
        exit 1
    fi
    major=
    if [ -z "${PG_CONFIG:-}" ]; then
        major=$(find_major)
        if [ -z "$major" ] && [ "$(id -u)" = 0 ]; then
            echo "Refreshing the list of packages ..."
            refresh_lists || true
            major=$(find_major)
        fi
        if [ -z "$major" ]; then
            echo "No PostgreSQL server is installed, and apt knows of none. Debian 12 or later is needed." >&2
            exit 1
        fi
    fi
    missing=$(missing_packages "$major")
    if [ -n "$missing" ]; then
        if [ "$(id -u)" != 0 ]; then
            echo "These Debian packages are missing: $missing" >&2
            echo "Run this as root (sudo $0) to have them installed, or install them yourself." >&2
            exit 1
        fi
        echo "Installing packages: $missing..."
        started=$(date +%s)
        # shellcheck disable=SC2086 # a list of words
        install_packages $missing
        echo "   done in $(($(date +%s) - started)) s"
    fi
    PG_CONFIG=${PG_CONFIG:-/usr/lib/postgresql/$major/bin/pg_config}
    # git lists the files to copy.
    if ! git_here rev-parse --git-dir >/dev/null 2>&1; then
        echo "$top is not a git checkout: clone the repository, or run git init there first." >&2
        exit 1
    fi
}

# What a rule or a section can do without, by skipping: setup_tool command package...
setup_tool() {
    wanted=$1
    shift
    if [ "$(id -u)" = 0 ] && ! command -v "$wanted" >/dev/null; then
        echo "Installing packages: $* ..."
        try_install "$work/log/$wanted" "$@" ||
            { refresh_lists && try_install "$work/log/$wanted" "$@"; } || true
    fi
}

# Patroni, etcd and PgBouncer, which the section patroni runs, without whose packages it says that it skips.
setup_patroni() {
    unpack_packages patroni patroni python3-etcd etcd-server pgbouncer
}

# The exporter and promtool, which the section monitoring runs. The same holds for them.
setup_monitoring() {
    unpack_packages monitoring prometheus-postgres-exporter prometheus
}

# Debian's packages, and those that they need, unpacked into a directory of the work directory. They are not installed,
# because they start services. If they are installed already, nothing is unpacked: unpack_packages directory package...
unpack_packages() {
    directory=$1
    shift
    echo "Unpacking $* into the work directory ..."
    mkdir -p "$work/$directory"
    try_unpack "$@" >"$work/log/$directory" 2>&1 ||
        { [ "$(id -u)" = 0 ] && refresh_lists && try_unpack "$@" >>"$work/log/$directory" 2>&1; } ||
        echo "They cannot be had: the tests that need them skip."
    [ "$(id -u)" != 0 ] || chown -R postgres: "$work/$directory"
}

try_unpack() {
    plan=$(LC_ALL=C apt-get install -s --no-upgrade --no-remove --no-install-recommends "$@") || return 1
    packages=$(echo "$plan" | sed -n 's/^Inst \([^ ]*\) .*/\1/p')
    (
        cd "$work/$directory" || exit 1
        # shellcheck disable=SC2086 # a list of words
        [ -z "$packages" ] || apt-get download -q $packages || exit 1
        for package in *.deb; do
            [ ! -e "$package" ] || dpkg-deb -x "$package" . || exit 1
        done
        rm -f ./*.deb
    )
}

# What the programs of test/clients need: Debian's packages, PgBouncer unpacked, and packages of npm's registry in the
# versions of test/clients/package.json. npm takes those versions of what they need that were the newest before a fixed
# day. A program without its client is skipped.
setup_clients() {
    if [ "$(id -u)" = 0 ]; then
        echo "Installing packages: drivers and frameworks ..."
        partman=postgresql-$("$PG_CONFIG" --version | sed 's/^[^0-9]*\([0-9]*\).*/\1/')-partman
        install_some python3-psycopg python3-psycopg2 python3-sqlalchemy alembic python3-django \
            python3-pandas ruby-activerecord ruby-pg libpostgresql-jdbc-java libspring-jdbc-java libhibernate3-java \
            libjavassist-java default-jdk-headless php-cli php-pgsql php-doctrine-orm golang-go golang-github-lib-pq-dev \
            golang-github-jackc-pgx-v4-dev cargo librust-tokio-dev librust-tokio-postgres-dev libdbd-pg-perl libdbix-class-perl \
            librose-db-object-perl ruby-sequel python3-peewee python3-pony php-illuminate-database "$partman"
        command -v npm >/dev/null || install_some nodejs npm
    fi
    unpack_packages clients pgbouncer
    if command -v npm >/dev/null; then
        echo "Installing clients of Node.js into the work directory ..."
        cp "$top/test/clients/package.json" "$work/clients"
        (cd "$work/clients" && timeout 300 npm install --no-package-lock --before=2026-11-20 --ignore-scripts --omit=optional \
            --omit=peer --no-audit --no-fund --fetch-retries=1 --cache "$work/npm") >"$work/log/npm-clients" 2>&1 </dev/null || true
        rm -rf "$work/npm"
    fi
    [ "$(id -u)" != 0 ] || chown -R postgres: "$work/clients"
}

# All of the packages, or those that can be had.
install_some() {
    try_install "$work/log/packages" "$@" && return
    refresh_lists || true
    for package in "$@"; do
        try_install "$work/log/packages-$package" "$package" || echo "   $package cannot be installed"
    done
}

# root must not depend on who owns the checkout; the tests read it, nothing more.
git_here() {
    git -c safe.directory='*' -C "$top" "$@"
}

# Copies what git tracks and what it would track, so that uncommitted work is
# tested and the products of a build are not.
copy_checkout() {
    mkdir "$1"
    pack_checkout | tar -C "$1" -x --no-same-owner
    git init -q "$1"
    git -C "$1" add -A
}

pack_checkout() {
    # shellcheck disable=SC2016 # for the inner shell
    git_here ls-files -coz --exclude-standard --deduplicate |
        (cd "$top" && xargs -0 sh -c 'for f; do [ ! -e "$f" ] || printf "%s\0" "$f"; done' sh) |
        tar -C "$top" --null -T - -c
}

# What no file of the project may contain (test/rules looks): this checkout's own
# place, and the hosts that this machine happens to get packages from. Asked here,
# because the user that runs the tests may be configured differently.
write_forbidden_words() {
    {
        echo "$top"
        case $top in
            /usr/* | /tmp/* | /var/* | /opt/* | /srv/* | /mnt/*) ;;
            *) echo "(^|[^[:alnum:]_.-])/$(echo "$top" | cut -d/ -f2)/" ;;
        esac
        {
            grep -rhsv '^ *#' /etc/apt/sources.list /etc/apt/sources.list.d
            ! command -v npm >/dev/null || npm config get registry 2>/dev/null
        } | grep -oE '(https?|ftp)://[^/ ]+' | sed 's,.*://,,; s,.*@,,; s,:.*,,; s,\.,\\.,g'
    } | sort -u
}

# Of the commits since the rule began; none without their history, as in a tarball.
write_subjects() {
    git_here log --format=%s bcc9ec28bbb3cad5c7f21bb65af8973e1274b836.. 2>/dev/null || true
}

# Where memory is plenty, the hundreds of servers of a run cost half of what they cost on a disk, whose time goes to their many
# small files. What a test of files needs is there, too: their time of birth, and programs that run.
in_memory() {
    has() { [ "${1:-0}" -ge "$2" ]; }
    has "$(df --output=avail -k /dev/shm 2>/dev/null | tail -n 1)" 10000000 &&
        has "$(sed -n 's/^MemAvailable: *\([0-9]*\) kB/\1/p' /proc/meminfo)" 12000000 &&
        has "$(stat -c %W /dev/shm)" 1 &&
        ! grep -q ' /dev/shm tmpfs [^ ]*noexec' /proc/mounts
}

# The work directory and all that happens in it belong to an ordinary user:
# PostgreSQL refuses to run as root. It is in $workshop, or else where temporary files are.
setup_work_directory() {
    work=$(mktemp -d "${TMPDIR:-${workshop:-/tmp}}/uidgen.XXXXXX")
    trap remove_work_directory EXIT
    trap 'exit 130' INT
    trap 'exit 143' TERM HUP
    mkdir "$work/tmp" "$work/log"
    copy_checkout "$work/src"
    write_forbidden_words >"$work/forbidden"
    write_subjects >"$work/subjects"
    : >"$work/failures"
    if [ "$(id -u)" = 0 ]; then
        chown -R postgres: "$work"
    fi
}

# Runs a script of the copy as the ordinary user: run_in directory script argument... The directory is like the work
# directory, or it is the work directory. A signal interrupts "wait", but would have to wait for a command in the foreground.
run_in() {
    run_directory=$1
    shift
    cd "$run_directory/src" || exit 1
    status=0
    as_tester "$run_directory" sh "$@" </dev/null &
    cd /
    wait $! || status=$?
    return "$status"
}

as_user=
[ "$(id -u)" != 0 ] || as_user='runuser -u postgres --'

# as_tester directory command...: as the ordinary user, with a work directory. The environment is emptied of nearly all, so
# that a test does not depend on who runs it. UIDGEN_LONG=1 makes the sweeps (042, 051) run all their calls, and UIDGEN_SEED=9
# others than usual.
as_tester() {
    tester_directory=$1
    shift
    # shellcheck disable=SC2086 # empty or several words
    $as_user env -i PATH="$PATH" HOME="$tester_directory" LANG=C.UTF-8 TMPDIR="$tester_directory/tmp" \
        ${UIDGEN_LONG:+"UIDGEN_LONG=$UIDGEN_LONG"} ${UIDGEN_SEED:+"UIDGEN_SEED=$UIDGEN_SEED"} \
        PG_CONFIG="$PG_CONFIG" UIDGEN_WORK="$tester_directory" "$@"
}

run_in_copy() {
    run_in "$work" "$@"
}

# Every process of a run works somewhere in the work directory.
own_processes() {
    for process in /proc/[0-9]*; do
        case $(readlink "$process/cwd" 2>/dev/null) in
            "$work" | "$work"/*) printf '%s ' "${process#/proc/}" ;;
        esac
    done
}

# A run that was interrupted may leave servers and clients behind. SIGQUIT makes a
# server stop at once, and yet give its shared memory back.
stop_processes() {
    for signal in QUIT QUIT KILL; do
        processes=$(own_processes)
        [ -n "$processes" ] || return 0
        # shellcheck disable=SC2086 # a list of numbers
        kill -"$signal" $processes 2>/dev/null || true
        sleep 1
    done
}

remove_work_directory() {
    stop_processes
    [ -n "${keep:-}" ] || rm -rf "$work"
}
