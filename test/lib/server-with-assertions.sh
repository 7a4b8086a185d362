#!/bin/sh
# A PostgreSQL with assertions, built out of Debian's source package into a directory:
#
#   server-with-assertions.sh make DIRECTORY PACKAGE VERSION            unless it is there
#   server-with-assertions.sh run  DIRECTORY PACKAGE VERSION SECTION... tests with it
#
# Started by test/lib/assertions.sh as an ordinary user, so that no step can change the system. DIRECTORY belongs to that
# user, and its name must contain "postgresql": Debian's PostgreSQL would otherwise install its libraries where the
# package has them. The server is in DIRECTORY/server. The source comes from where apt has its packages from.
set -eu
umask 022
command=$1
directory=$2
package=$3
version=$4
shift 4

made=$directory/server
complete=$directory/complete
lock_file=$directory/lock
# What takes long to build, and what no test needs, is left out; the modules are those that tests preload. -g1 is enough for the lines of a stack.
options='--enable-cassert --enable-tap-tests --without-readline --without-zlib --without-icu --with-ssl=openssl'
flags='-O1 -g1 -pipe'
# The extension is built with the same definitions, and lines of a stack of its own.
definitions=-DUSE_VALGRIND
modules='auto_explain pg_prewarm'
recipe="$package $version, $modules: $options $flags $definitions"
scratch=$UIDGEN_WORK/tmp/$package
. test/lib/cache.sh

# apt with lists and a cache of its own: the system's are not touched, and need no root.
own_apt() {
    program=$1
    shift
    "$program" -q -o Dir::Etc::SourceList=/dev/null -o Dir::Etc::SourceParts="$scratch/sources" \
        -o Dir::State::Lists="$scratch/lists" -o Dir::Cache="$scratch/cache" "$@"
}

# What apt has in its configuration, with the word for sources in place of that for packages.
write_sources() {
    mkdir -p "$scratch/sources" "$scratch/lists/partial" "$scratch/cache/archives/partial"
    eval "$(apt-config shell list Dir::Etc::SourceList/f parts Dir::Etc::SourceParts/d)"
    for file in "${list:?}" "${parts:?}"/*.list "$parts"/*.sources; do
        [ ! -f "$file" ] || sed -E 's/^[[:blank:]]*deb([[:blank:]])/deb-src\1/; s/^Types:.*/Types: deb-src/' \
            "$file" >"$scratch/sources/$(basename "$file")"
    done
}

# A mirror may have another version's source only: of the same major, that does.
fetch_source() {
    own_apt apt-get update || true
    others=$(own_apt apt-cache showsrc --only-source "$package" | sed -n 's/^Version: //p' |
        sort -rVu | grep -vxF "$version" || true)
    for candidate in "$version" $others; do
        if own_apt apt-get source --download-only "$package=$candidate"; then
            echo "$candidate" >"$scratch/version"
            dpkg-source -x ./*.dsc "$scratch/source"
            return 0
        fi
    done
    echo "The source of $package could not be had."
    return 1
}

configure() {
    # shellcheck disable=SC2086 # a list of words
    (cd "$scratch/source" && ./configure -q --prefix="$made" $options CFLAGS="$flags" CXXFLAGS="$flags" CPPFLAGS="$definitions")
}

build() {
    nice make -s -C "$scratch/source" -j"$(nproc)"
}

install_server() {
    make -s -C "$scratch/source" install
    cp "$scratch/source/src/tools/valgrind.supp" "$made/share"
    for module in $modules; do
        make -s -C "$scratch/source/contrib/$module" install
    done
}

make_server() {
    lock --exclusive
    if made_from_recipe; then
        echo "kept from an earlier run"
        return 0
    fi
    started=$(date +%s)
    rm -rf "$complete" "$made"
    write_sources
    cd "$scratch"
    step "fetch source" fetch_source
    step configure configure
    step make build
    step install install_server
    keep_recipe
    echo "made of $(cat "$scratch/version") in $(($(date +%s) - started)) s"
    rm -rf "$scratch"
}

run_sections() {
    lock --shared
    if ! made_from_recipe; then
        echo "$made is not complete"
        exit 1
    fi
    PG_CONFIG=$made/bin/pg_config exec sh test/lib/run.sh whole "$@"
}

case $command in
    make) make_server ;;
    run) run_sections "$@" ;;
esac
