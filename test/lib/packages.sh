# The sections install and package: what users and packagers do with the source. Sourced by sections.sh.
# shellcheck shell=sh
: "${bindir:?}" "${jobs:?}" # pg.sh sets them

# As users do it: from the tarball, out of tree, with PGXS's own targets, on a server that has only what README.md's first
# lines ask for.
section_install() {
    tree=$UIDGEN_WORK/tree-install
    copy_postgresql "$tree"
    find "$tree" | sort >"$UIDGEN_WORK/log/files-before"
    expect "make dist has every file of the checkout" dist || return 0
    # Below the source, as Debian builds.
    build=$origin/build
    mkdir "$build"
    expect "make would build out of tree for a PostgreSQL that was built in its own source directory" without_vpath || true
    expect "build and install out of tree" out_of_tree all install DESTDIR="$tree" || return 0
    expect "the library has the same code and data, byte by byte, as that built in the source" same_code || true
    expect "it does not say where it was built" names_no_directory || true
    echo "shared_preload_libraries = 'uidgen'" >"$build/conf"
    make_server server-install "$tree" "$build/conf" SQL_ASCII packager
    start_server server-install "$tree"
    log=$UIDGEN_WORK/log/installcheck
    status=0
    out_of_tree installcheck >"$log" 2>&1 || status=$?
    stop_server server-install "$tree" immediate
    judge_regress "$log" "$build" "$UIDGEN_WORK/log/server-server-install" "$status"
    expect "make prove_installcheck runs a TAP test" out_of_tree prove_installcheck bindir="$tree$bindir" \
        PROVE_TESTS=test/tap/025_sessions.t || true
    expect "make uninstall leaves nothing behind" uninstalled || true
}

# What is for debuggers differs, because only one of them was built with precompiled headers.
same_code() {
    for library in "$build" "$UIDGEN_WORK/build-main"; do
        objcopy --strip-debug --remove-section .note.gnu.build-id "$library/uidgen.so" "$library/code.so" || return 1
    done
    cmp "$build/code.so" "$UIDGEN_WORK/build-main/code.so"
}

names_no_directory() {
    ! grep -aF "$UIDGEN_WORK" "$build/uidgen.so"
}

out_of_tree() {
    (cd "$build" && bounded make -f "$origin/Makefile" PG_CONFIG="$PG_CONFIG" -j"$jobs" "$@")
}

# autoconf removes a line of PGXS for such a PostgreSQL.
without_vpath() {
    cp -R "$(dirname "$("$PG_CONFIG" --pgxs)")/../.." "$UIDGEN_WORK/pgxs" &&
        sed -i '/^VPATH = [$](srcdir)/d' "$UIDGEN_WORK/pgxs/src/Makefile.global" &&
        out_of_tree -n all PGXS="$UIDGEN_WORK/pgxs/src/makefiles/pgxs.mk"
}

# The copy of the checkout has no commit yet, and make dist takes the last one. What is built then is the tarball.
dist() {
    checkout=$UIDGEN_WORK/checkout-install
    cp -R . "$checkout" &&
        git -C "$checkout" -c user.name=test -c user.email=test@example.org commit -q -m dist &&
        make -C "$checkout" -s PG_CONFIG="$PG_CONFIG" dist || return 1
    set -- "$checkout"/uidgen-*.tar.gz
    origin=$UIDGEN_WORK/$(basename "$1" .tar.gz)
    tar -C "$UIDGEN_WORK" -xzf "$1" || return 1
    git ls-files | sort >"$UIDGEN_WORK/log/files-of-checkout"
    (cd "$origin" && find . -type f | sed 's,^\./,,' | sort) | diff "$UIDGEN_WORK/log/files-of-checkout" -
}

uninstalled() {
    out_of_tree uninstall DESTDIR="$tree" && find "$tree" | sort | diff "$UIDGEN_WORK/log/files-before" -
}

# As packagers do it, with Debian's tools; the package is not installed. Where majors can run, it is installed there.
section_package() {
    hindrance=
    command -v dh_pgxs_test >/dev/null || hindrance="debhelper and postgresql-server-dev-all are not installed"
    case $bindir in /usr/lib/postgresql/*) ;; *) hindrance="this PostgreSQL is not Debian's" ;; esac
    if [ -n "$hindrance" ]; then
        skip "$hindrance"
        return 0
    fi
    package_built || return 0
    expect "CREATE EXTENSION from the unpacked package" on_packaged_server -p "$package" || true
}

# The first of two sections in a root, between which root.sh installs the package.
section_package_there() {
    package_built || true
}

section_package_installed() {
    package_names
    expect "CREATE EXTENSION on a server of pg_virtualenv" on_packaged_server || return 0
    log=$UIDGEN_WORK/log/autopkgtest
    status=0
    (cd "$package_source" && bounded sh debian/tests/installcheck) >"$log" 2>&1 || status=$?
    judge_regress "$log" "$package_source" "$log" "$status"
}

package_names() {
    major=$("$PG_CONFIG" --version | sed 's/^[^0-9]*\([0-9]*\).*/\1/')
    package=postgresql-$major-uidgen
    package_source=$UIDGEN_WORK/package/source
}

package_built() {
    package_names
    mkdir "$UIDGEN_WORK/package"
    cp -R . "$package_source"
    expect "dpkg-buildpackage makes $package" build_package || return 1
    expect "it has the library, the scripts and the documentation" package_is_complete || true
    # The roots of other majors have no git; this machine's section sees it.
    ! command -v git >/dev/null || expect "the build leaves git status clean" unchanged_by_build || true
    if command -v lintian >/dev/null; then
        expect "lintian finds no error and no warning" \
            lintian --fail-on error,warning "$UIDGEN_WORK"/package/*.changes || true
    fi
}

# As docs/install.md says.
build_package() (
    cd "$package_source" || exit
    commands=$(sed -n 's/^\(pg_buildext\|dpkg-buildpackage\)\( [^#]*\) #.*/\1\2/p' docs/install.md)
    DEB_BUILD_PROFILES=nocheck DEB_BUILD_OPTIONS="nocheck parallel=$jobs" PG_SUPPORTED_VERSIONS=$major bounded sh -ec "$commands"
)

# The copy has no commit, but an index of what the checkout has.
unchanged_by_build() {
    git -C "$package_source" diff --exit-code && git -C "$package_source" ls-files -o --exclude-standard | diff /dev/null -
}

package_is_complete() {
    version=$(sed -n "s/^default_version = '\(.*\)'/\1/p" uidgen.control)
    dpkg-deb -c "$UIDGEN_WORK/package/${package}_$version"_*.deb | awk '{print $6}' \
        >"$UIDGEN_WORK/log/package-files"
    {
        for file in uidgen.control "uidgen--$version.sql" uidgen_registry.sql; do
            echo "./usr/share/postgresql/$major/extension/$file"
        done
        echo "./usr/lib/postgresql/$major/lib/uidgen.so"
        for file in README.md README.zh-CN.md CHANGELOG.md docs/*.* docs/*/*.*; do
            echo "./usr/share/doc/$package/$file"
        done
    } | grep -vxFf "$UIDGEN_WORK/log/package-files" && return 1
    return 0
}

# on_packaged_server [-p package]: with -p the server takes the files that the build has put into debian/.
on_packaged_server() (
    cd "$package_source" || exit
    bounded pg_virtualenv "$@" -v "$major" -o shared_preload_libraries=uidgen psql -XAtq -v ON_ERROR_STOP=1 \
        -c "CREATE EXTENSION uidgen" -c "SELECT uid_next() > 0 AND segment_create('a') IS NOT NULL" \
        >"$UIDGEN_WORK/log/packaged"
    cat "$UIDGEN_WORK/log/packaged"
    grep -qx t "$UIDGEN_WORK/log/packaged"
)
