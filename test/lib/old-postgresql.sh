#!/bin/sh
# Puts this machine's PostgreSQL, with the extension installed, into $UIDGEN_WORK/old,
# in a form that runs in a newer Debian too. Started by test/lib/majors.sh in a copy of
# the checkout, as an ordinary user.
#
#   old/bin    stand-ins for the programs: what PostgreSQL's own tests and pg_upgrade call
#   old/lib    shared libraries that the other Debian may not have
#   old/tree   the private copy
set -eu
. test/lib/pg.sh

# glibc's own libraries only work with the loader that they came with. The other
# Debian's run programs that were built with older ones.
libraries() {
    dpkg -L libc6 | sed 's,.*/,,' >"$UIDGEN_WORK/old/glibc"
    find "$tree$bindir" -type f -exec ldd {} + | awk '$2 == "=>" {print $3}' | sort -u |
        while read -r library; do
            grep -qxF "$(basename "$library")" "$UIDGEN_WORK/old/glibc" || echo "$library"
        done
}

# The new PostgreSQL and everything else there must not see these libraries, so the
# environment names them only beyond this point.
write_stand_ins() {
    cat >"$UIDGEN_WORK/old/run" <<END
#!/bin/sh
old=\$(dirname "\$0")/..
LD_LIBRARY_PATH=\$old/lib exec "\$old/tree$bindir/\$(basename "\$0")" "\$@"
END
    chmod +x "$UIDGEN_WORK/old/run"
    for program in "$tree$bindir"/*; do
        ln -s ../run "$UIDGEN_WORK/old/bin/$(basename "$program")"
    done
}

build_tree old
mkdir -p "$UIDGEN_WORK/old/bin" "$UIDGEN_WORK/old/lib"
mv "$tree" "$UIDGEN_WORK/old/tree"
tree=$UIDGEN_WORK/old/tree
libraries | xargs cp -L -t "$UIDGEN_WORK/old/lib"
write_stand_ins
