# What test/check prepares beyond setup.sh: tools and packages of single sections, and a work directory in memory. $top, $work
# and $PG_CONFIG are set when the functions are called.
# shellcheck shell=sh disable=SC2154

# One of its own for a section, with the same copy of the checkout, unless it is there: make_work_directory directory
make_work_directory() {
    mkdir -p "$1/tmp" "$1/log"
    [ -e "$1/src" ] || cp -R "$work/src" "$1/src"
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
        server=postgresql-$("$PG_CONFIG" --version | sed 's/^[^0-9]*\([0-9]*\).*/\1/')
        install_some python3-psycopg python3-psycopg2 python3-sqlalchemy alembic python3-django \
            python3-djangorestframework python3-pandas ruby-activerecord ruby-pg libpostgresql-jdbc-java \
            libspring-jdbc-java libhibernate3-java libjavassist-java default-jdk-headless php-cli php-pgsql \
            php-doctrine-orm golang-go golang-github-lib-pq-dev golang-github-jackc-pgx-v4-dev cargo librust-tokio-dev \
            librust-tokio-postgres-dev libdbd-pg-perl libdbix-class-perl librose-db-object-perl ruby-sequel \
            python3-peewee python3-pony php-illuminate-database ruby-database-cleaner jq libjackson2-databind-java \
            libgoogle-gson-java pgloader pgcopydb "$server-partman" "$server-wal2json"
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

# Where memory is plenty, the hundreds of servers of a run cost half of what they cost on a disk, whose time goes to their many
# small files. What a test of files needs is there, too: their time of birth, and programs that run.
in_memory() {
    has() { [ "${1:-0}" -ge "$2" ]; }
    has "$(df --output=avail -k /dev/shm 2>/dev/null | tail -n 1)" 10000000 &&
        has "$(sed -n 's/^MemAvailable: *\([0-9]*\) kB/\1/p' /proc/meminfo)" 12000000 &&
        has "$(stat -c %W /dev/shm)" 1 &&
        ! grep -q ' /dev/shm tmpfs [^ ]*noexec' /proc/mounts
}
