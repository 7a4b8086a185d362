#!/bin/sh
# Tortures a build of the extension, in a copy of the checkout, as an ordinary user:
#
#   run.sh TREE FAULT SECONDS SEED ROUND DENSE KIND [NEMESIS,...]     FAULT "-": leave it unset; TREE "-": build one first
#   run.sh compile                                               only what torture needs besides the extension
#
# Output goes to the caller; logs and servers to log/torture-FAULT.
set -eu
. test/lib/pg.sh
programs=$UIDGEN_WORK/torture
mkdir -p "$programs"

# compile target option...: unless it is there and newer than its source.
compile() {
    target=$programs/$1
    source=test/lib/torture/$(basename "$1" .so).cpp
    shift
    [ -n "$(find "$target" -newer "$source" -newer test/lib/torture/log.hpp 2>/dev/null)" ] ||
        g++ -std=c++17 -O2 -Wall -Wextra -Werror "$source" "$@" -o "$target"
}

compile worker -I"$("$PG_CONFIG" --includedir)" -L"$("$PG_CONFIG" --libdir)" -lpq
compile checker
compile disk.so -shared -fPIC -ldl
[ "$1" != compile ] || exit 0

tree=$UIDGEN_WORK/tree-$1
fault=$2
variable=WERROR=1
[ "$fault" = - ] || variable=UIDGEN_FAULTS=1
if [ "$1" = - ] && ! build_tree torture "$variable"; then
    tail -n 40 "$UIDGEN_WORK/log/build-torture"
    exit 2
fi
directory=$UIDGEN_WORK/log/torture-$fault
mkdir -p "$directory"
[ "$fault" = - ] || export UIDGEN_FAULT="$fault"
export TORTURE_DISK="$programs/disk.so"

# PostgreSQL 15 reads TESTDIR, later ones the two after it.
export TESTDIR="$directory" TESTDATADIR="$directory/data" TESTLOGDIR="$directory/log"
export PG_TEST_PORT_DIR="$UIDGEN_WORK/tmp/portlock" PG_TEST_TIMEOUT_DEFAULT=120
pg_tests=$(dirname "$("$PG_CONFIG" --pgxs)")/../test
export PG_REGRESS="$pg_tests/regress/pg_regress" PERL5LIB="$pg_tests/perl:test/tap:test/lib/torture"
export PATH="$tree$bindir:$PATH" TZ=UTC
exec perl test/lib/torture/torture.pl "$3" "$4" "$5" "$6" "$programs" "$7" "${8:-}" 2>"$directory/messages"
