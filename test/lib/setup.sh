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
# that a test does not depend on who runs it. UIDGEN_LONG=1 makes 042 and 045 run more calls, and UIDGEN_SEED=9 makes
# tests choose others at random.
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
