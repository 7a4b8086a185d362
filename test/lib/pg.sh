# Private copies of PostgreSQL, and private servers. Sourced by what runs in the
# work directory; the current directory is the copy of the checkout there.
# shellcheck shell=sh disable=SC3013 # -nt, which dash and others have

bindir=$("$PG_CONFIG" --bindir)
jobs=$(nproc)
# What no server may ever log: an assertion that failed, and what PostgreSQL finds forgotten at the end of a transaction.
server_complaints='^TRAP: |(reference|refcount) leak|resource was not closed|problem in alloc set'
export bindir server_complaints

# Builds what has changed, and installs it into a private copy of PostgreSQL: build_tree name make-variable... PostgreSQL
# finds its files relative to its own binary, so a copied tree finds the extension that is installed beside it.
# The build is $UIDGEN_WORK/build-name, outside the source, and the tree $UIDGEN_WORK/tree-name.
build_tree() {
    build=$UIDGEN_WORK/build-$1
    tree=$UIDGEN_WORK/tree-$1
    name=$1
    shift
    if [ ! -d "$tree" ]; then
        rm -rf "$tree.new"
        copy_postgresql "$tree.new"
        mv "$tree.new" "$tree"
    fi
    [ "$build/server.hpp.gch" -nt Makefile ] || rm -rf "$build"
    mkdir -p "$build"
    build_changed "$@" >"$UIDGEN_WORK/log/build-$name" 2>&1
}

# The library is linked each time, because make does not see that a source is gone. The same objects make the same file.
build_changed() {
    rm -f "$build/uidgen.so" "$tree$("$PG_CONFIG" --sharedir)"/extension/uidgen--*
    set -- make -s -C "$build" -f "$PWD/Makefile" -j"$jobs" PG_CONFIG="$PG_CONFIG" "$@"
    { is_precompiled || precompile "$build" "$@"; } &&
        "$@" PG_CPPFLAGS="$(precompiled "$build")" all &&
        "$@" install DESTDIR="$tree"
}

# Whether no header has changed, or is gone, that the precompiled one is made of.
# shellcheck disable=SC2016 # for the inner shell
is_precompiled() {
    [ -e "$build/server.hpp.gch" ] &&
        newer=$(grep -oE '/[^ :]+\.hpp' "$build/server.hpp.d" | xargs sh -c 'find "$@" -newer "$0"' "$build/server.hpp.gch") &&
        [ -z "$newer" ]
}

# Most of the time of a compilation goes to the server's headers. The compiler takes this file in their place, if it is called
# with the same options, and makes the same code, byte by byte, as long as it has no table of ours: precompile directory make...
precompile() {
    precompiled=$1
    shift
    echo '#include "base/errors.hpp"' >"$precompiled/server.hpp"
    compile=$("$@" -n -B src/pg/module.o | sed -n 's/ -c -o .*//p')
    (cd "$precompiled" && eval "$compile -x c++-header server.hpp -o server.hpp.gch")
}

# The preprocessor's options with which a build in a directory takes it. What it is made of counts as included.
precompiled() {
    echo "-include $1/server.hpp -fpch-deps"
}

# bitcode is for inlining by the JIT compiler only, and large.
copy_postgresql() {
    for directory in "$bindir" "$("$PG_CONFIG" --pkglibdir)" "$("$PG_CONFIG" --sharedir)"; do
        mkdir -p "$1$directory"
        tar -C "$directory" --exclude=./bitcode --exclude=./man -c . | tar -C "$1$directory" -x
    done
}

# The Makefile's installcheck or prove_installcheck, with the programs of a tree as if they were installed, for at most $limit
# seconds: check_tree tree directory target variable=value... Results go to the directory.
check_tree() {
    programs=$1$bindir
    directory=$2
    shift 2
    timeout --kill-after=30 "$limit" make -s -C "$directory" -f "$PWD/Makefile" PG_CONFIG="$PG_CONFIG" bindir="$programs" "$@"
}

make_variable() {
    make -s PG_CONFIG="$PG_CONFIG" --eval="print-variable: ; @echo \$($1)" print-variable
}

# A server of our own in $UIDGEN_WORK/$1, reached through its socket only:
# make_server name tree [configuration [encoding [superuser]]]; then start_server name tree [program in place of postgres], psql,
# stop_server name tree mode.
make_server() {
    "$2$bindir/initdb" -N -D "$UIDGEN_WORK/$1" -A trust -U "${5:-postgres}" --no-locale -E "${4:-UTF8}" \
        >"$UIDGEN_WORK/log/initdb-$1"
    {
        cat "${3:-test/regress.conf}"
        echo "listen_addresses = ''"
        echo "unix_socket_directories = '$UIDGEN_WORK/tmp'"
    } >>"$UIDGEN_WORK/$1/postgresql.conf"
    export PGHOST="$UIDGEN_WORK/tmp" PGUSER="${5:-postgres}" PGDATABASE=postgres
}

start_server() {
    "$2$bindir/pg_ctl" -D "$UIDGEN_WORK/$1" -l "$UIDGEN_WORK/log/server-$1" -s -w ${3:+-p "$3"} start
}

stop_server() {
    "$2$bindir/pg_ctl" -D "$UIDGEN_WORK/$1" -s -w -m "$3" stop
}

# A server that stays for other runs: keep_server name tree port. It restarts if the build has changed. It is made anew if
# the configuration of the tests has changed, and after a test that failed, which may have left anything behind: as long as
# there is $data.unsound.
keep_server() {
    data=$UIDGEN_WORK/$1
    export PGPORT="$3"
    { cat "${server_conf:-test/regress.conf}" && echo "fsync = off"; } >"$data.new-conf"
    if [ -e "$data.unsound" ] || ! cmp -s "$data.new-conf" "$data.conf"; then
        touch "$data.unsound"
        stop_kept "$1" "$2"
        rm -rf "$data"
        make_server "$1" "$2" "$data.new-conf"
        cp "$data.new-conf" "$data.conf"
        rm "$data.unsound"
    fi
    export PGHOST="$UIDGEN_WORK/tmp" PGUSER=postgres PGDATABASE=postgres
    # The sums of the files that a server and its databases have of the extension.
    find "$2" -name 'uidgen*' -type f -exec cksum {} + | sort >"$data.installed"
    cmp -s "$data.installed" "$data.build" || stop_kept "$1" "$2"
    is_running "$1" "$2" || start_server "$1" "$2"
}

is_running() {
    "$2$bindir/pg_ctl" -D "$UIDGEN_WORK/$1" status >/dev/null 2>&1
}

stop_kept() {
    ! is_running "$1" "$2" || stop_server "$1" "$2" immediate
}
