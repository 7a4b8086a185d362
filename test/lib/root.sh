#!/bin/sh
# A Debian with another major of PostgreSQL, in a directory. Started as root by
# test/lib/majors.sh:
#
#   root.sh make DIRECTORY SUITE MAJOR MIRROR [SECURITY]   unless it is there, and recent
#   root.sh run  DIRECTORY SUITE MAJOR WORK SECTION...
#   root.sh measure DIRECTORY SUITE MAJOR WORK SECTION...   of bench/run
#   root.sh package DIRECTORY SUITE MAJOR WORK      builds Debian's package, installs it, and tests it
#   root.sh patroni DIRECTORY SUITE MAJOR WORK MIRROR [SECURITY]   makes it, and runs the section patroni with its Patroni
#   root.sh tidy DIRECTORY SUITE MAJOR              removes it if it is not complete
#
# To make one takes two minutes and 2 GB, and it is used for a week. It can be deleted while no test runs.
# All but the last run in namespaces of their own for mounts, processes and System V IPC.
# So what they mount is seen by nobody else, and when they end, in whatever way, the
# kernel ends everything that they started and undoes every mount.
set -eu
umask 022
command=$1
root=$(realpath -m "$2")
suite=$3
major=$4
shift 4

packages="postgresql-$major postgresql-server-dev-$major libpq-dev libssl-dev build-essential perl libipc-run-perl libfaketime"
# What Debian's package is built and checked with.
packages="$packages debhelper postgresql-server-dev-all lintian"
patroni_packages='patroni python3-etcd etcd-server pgbouncer'
# experimental is not a whole Debian: it holds a few packages to be installed into sid.
base=$suite
recipe="$suite with security updates: $packages"
if [ "$suite" = experimental ]; then
    base=sid
    recipe="sid, PostgreSQL from experimental: $packages"
fi
made=$root
# Beside the root, because it disappears before anything of the root does.
complete=$root.complete
lock_file=$root.lock
# shellcheck source=test/lib/cache.sh
. "$(dirname "$0")/cache.sh"

usable() {
    made_from_recipe && [ -n "$(find "$complete" -mtime -7)" ]
}

# Mounts under it would be emptied by rm. There are none: see above. This makes sure.
remove_root() {
    rm -f "$complete"
    if awk '{print $5}' /proc/self/mountinfo | grep -qF "$root/"; then
        echo "Something is mounted in $root. Unmount it, then remove the directory."
        exit 1
    fi
    rm -rf --one-file-system "$root"
}

# As root inside.
inside() {
    chroot "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 \
        DEBIAN_FRONTEND=noninteractive "$@" </dev/null
}

make_root() {
    lock --exclusive
    if usable; then
        echo "kept from an earlier run"
        return 0
    fi
    started=$(date +%s)
    remove_root
    export_proxy
    step "debootstrap" bootstrap "$1"
    write_configuration
    write_sources "$@"
    mount -t proc proc "$root/proc"
    step "apt-get update" inside apt-get update -q
    # shellcheck disable=SC2086 # a list of words
    step "apt-get install" inside apt-get install -y -q --no-install-recommends \
        -o Dpkg::Options::=--force-unsafe-io $packages
    inside apt-get clean
    umount "$root/proc"
    keep_recipe
    echo "made in $(($(date +%s) - started)) s"
}

# A suite younger than this debootstrap is made like the suite that they all come from.
bootstrap() {
    script=
    scripts=${DEBOOTSTRAP_DIR:-/usr/share/debootstrap}/scripts
    [ -e "$scripts/$base" ] || script=$scripts/sid
    mkdir -p "$root"
    debootstrap --variant=minbase "$base" "$root" "$1" ${script:+"$script"} || {
        tail -n 20 "$root/debootstrap/debootstrap.log" 2>/dev/null || true
        return 1
    }
}

# debootstrap has written the suite itself: write_sources mirror [security]. With security updates it is what
# people run, and what upgrades from another Debian's PostgreSQL of today. Neither sid nor experimental has any.
write_sources() {
    if [ "$base" != "$suite" ]; then
        echo "deb $1 $suite main" >>"$root/etc/apt/sources.list"
        printf '%s\n' "Package: src:postgresql-$major" "Pin: release a=$suite" 'Pin-Priority: 990' \
            >"$root/etc/apt/preferences.d/postgresql"
    elif [ -n "${2:-}" ]; then
        echo "deb $2 $suite-security main" >>"$root/etc/apt/sources.list"
    fi
}

# debootstrap asks the environment for the proxy that apt has in its configuration.
export_proxy() {
    eval "$(apt-config shell http_proxy Acquire::http::Proxy https_proxy Acquire::https::Proxy)"
    [ -z "${http_proxy:-}" ] || export http_proxy
    [ -z "${https_proxy:-}" ] || export https_proxy
}

# apt inside is to reach the mirror as apt outside does, and no package is to start a
# server or create a cluster.
write_configuration() {
    apt-config dump --no-empty --format '%f "%v";%n' Acquire::http::Proxy Acquire::https::Proxy \
        Acquire::Check-Date Acquire::Check-Valid-Until >"$root/etc/apt/apt.conf.d/90outside"
    echo 'Acquire::Retries "3";' >>"$root/etc/apt/apt.conf.d/90outside"
    printf '#!/bin/sh\nexit 101\n' >"$root/usr/sbin/policy-rc.d"
    chmod +x "$root/usr/sbin/policy-rc.d"
    mkdir -p "$root/etc/postgresql-common/createcluster.d"
    echo 'create_main_cluster = false' >"$root/etc/postgresql-common/createcluster.d/none.conf"
    echo '127.0.0.1 localhost' >"$root/etc/hosts"
}

# If another run holds the lock, it is not ours to remove.
tidy() {
    lock --nonblock || return 0
    if [ -e "$root" ] && [ ! -e "$complete" ]; then
        remove_root
    fi
}

# The root itself is read-only for the tests, so that the next run finds it as this
# one did. They have the work directory as /mnt, and a /tmp and a /dev/shm of their own,
# as small as in a container of Docker (64 MB), and half of that more for each processor after the second, because more tests run
# at the same time then.
mount_read_only() {
    mount --bind "$root" "$root"
    mount -o remount,bind,ro "$root"
    mount_all "$1"
}

# What is written into this one is kept in memory only.
mount_for_once() {
    mount -t tmpfs tmpfs "$root/tmp"
    mkdir "$root/tmp/upper" "$root/tmp/work"
    mount -t overlay -o "lowerdir=$root,upperdir=$root/tmp/upper,workdir=$root/tmp/work" overlay "$root"
    mount_all "$1"
}

mount_all() {
    mount -t proc proc "$root/proc"
    mount --rbind /dev "$root/dev"
    processors=$(nproc)
    [ "$processors" -ge 2 ] || processors=2
    mount -t tmpfs -o "mode=1777,size=$((32 * processors))m" tmpfs "$root/dev/shm"
    mount -t tmpfs -o mode=1777 tmpfs "$root/tmp"
    mount --bind "$1" "$root/mnt"
}

in_use() {
    lock --shared
    if ! usable; then
        echo "$root is not complete"
        exit 1
    fi
}

# A script of the copy, as an ordinary user inside.
script() {
    chroot --userspec=postgres:postgres "$root" env -i --chdir=/mnt/src PATH=/usr/bin:/bin HOME=/mnt \
        LANG=C.UTF-8 TMPDIR=/mnt/tmp PG_CONFIG="/usr/lib/postgresql/$major/bin/pg_config" \
        UIDGEN_WORK=/mnt sh "$@" </dev/null
}

sections() {
    script test/lib/run.sh whole "$@"
}

# run_there WORK function argument...
run_there() {
    in_use
    mount_read_only "$1"
    shift
    inside chown -R postgres: /mnt
    "$@"
}

# As docs/install.md says: what the package is built with, and the package.
install_package() {
    commands=$(sed -n "s/-17-/-$major-/; /^sudo apt-get install/p" "$1/src/docs/install.md")
    inside sh -ec "cd /mnt/package/source; sudo() { \"\$@\"; }; $commands"
}

test_package() {
    in_use
    mount_for_once "$1"
    inside chown -R postgres: /mnt
    sections package_there
    install_package "$1" >"$1/log/apt" 2>&1 || {
        cat "$1/log/apt"
        exit 1
    }
    sections package_installed
}

# Beside the root, because nothing else needs it.
test_patroni() {
    there=$1
    shift
    make_root "$@"
    in_use
    mount_for_once "$there"
    inside chown -R postgres: /mnt
    inside sh -c "apt-get update -q && apt-get install -y -q --no-install-recommends $patroni_packages" >"$there/log/apt" 2>&1 ||
        echo "Patroni cannot be had: the tests that need it skip."
    sections patroni
}

case $command in
    make) make_root "$@" ;;
    run) there=$1 && shift && run_there "$there" sections "$@" ;;
    measure) there=$1 && shift && run_there "$there" script bench/lib/sections.sh "$@" ;;
    package) test_package "$@" ;;
    patroni) test_patroni "$@" ;;
    tidy) tidy ;;
esac
