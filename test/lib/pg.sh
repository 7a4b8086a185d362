# Private copies of PostgreSQL, and private servers. Sourced by what runs in the
# work directory; the current directory is the copy of the checkout there.
# shellcheck shell=sh

bindir=$("$PG_CONFIG" --bindir)
pg_tests=$(dirname "$("$PG_CONFIG" --pgxs)")/../test
jobs=$(nproc)
# What no server may ever log: an assertion that failed, and what PostgreSQL finds forgotten at the end of a transaction.
server_complaints='^TRAP: |(reference|refcount) leak|resource was not closed|problem in alloc set'
export bindir pg_tests server_complaints

# Builds a copy of the source and installs it into a private copy of PostgreSQL:
# build_tree name make-variable... PostgreSQL finds its files relative to its own
# binary, so a copied tree finds the extension that is installed beside it.
# The source copy is $UIDGEN_WORK/build-name, the tree $UIDGEN_WORK/tree-name.
build_tree() {
    name=$1
    shift
    build=$UIDGEN_WORK/build-$name
    tree=$UIDGEN_WORK/tree-$name
    cp -R . "$build"
    copy_postgresql "$tree"
    set -- make -s -C "$build" -j"$jobs" PG_CONFIG="$PG_CONFIG" "$@"
    {
        precompile "$build" "$@" &&
            "$@" PG_CPPFLAGS="$(precompiled "$build")" &&
            "$@" install DESTDIR="$tree"
    } >"$UIDGEN_WORK/log/build-$name" 2>&1
}

# Most of the time of a compilation goes to the server's headers and to ours that most files include. The compiler takes
# this file in their place, if it is called with the same options, and makes the same code: precompile directory make...
precompile() {
    precompiled=$1
    shift
    printf '#include "%s.hpp"\n' base/errors memory/slots >"$precompiled/server.hpp"
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

make_variable() {
    make -s PG_CONFIG="$PG_CONFIG" --eval="print-variable: ; @echo \$($1)" print-variable
}

# A server of our own in $UIDGEN_WORK/$1, reached through its socket only:
# make_server name tree [configuration [encoding]]; then start_server name tree [program in place of postgres], psql,
# stop_server name tree mode.
make_server() {
    "$2$bindir/initdb" -N -D "$UIDGEN_WORK/$1" -A trust -U postgres --no-locale -E "${4:-UTF8}" \
        >"$UIDGEN_WORK/log/initdb-$1"
    {
        cat "${3:-test/regress.conf}"
        echo "listen_addresses = ''"
        echo "unix_socket_directories = '$UIDGEN_WORK/tmp'"
    } >>"$UIDGEN_WORK/$1/postgresql.conf"
    export PGHOST="$UIDGEN_WORK/tmp" PGUSER=postgres PGDATABASE=postgres
}

start_server() {
    "$2$bindir/pg_ctl" -D "$UIDGEN_WORK/$1" -l "$UIDGEN_WORK/log/server-$1" -s -w ${3:+-p "$3"} start
}

stop_server() {
    "$2$bindir/pg_ctl" -D "$UIDGEN_WORK/$1" -s -w -m "$3" stop
}
