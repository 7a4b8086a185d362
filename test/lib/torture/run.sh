#!/bin/sh
# Tortures a build of the extension: run.sh TREE FAULT SECONDS SEED ROUND DENSE [NEMESIS,...], in a copy of the
# checkout, as an ordinary user (FAULT "-": leave it unset). Output goes to the caller; logs and servers to
# log/torture-FAULT.
set -eu
. test/lib/pg.sh
tree=$1
fault=$2
directory=$UIDGEN_WORK/log/torture-$fault
programs=$UIDGEN_WORK/torture
mkdir -p "$directory"
[ "$fault" = - ] || export UIDGEN_FAULT="$fault"

sh test/lib/torture/compile.sh
export TORTURE_DISK="$programs/disk.so"

# PostgreSQL 15 reads TESTDIR, later ones the two after it.
export TESTDIR="$directory" TESTDATADIR="$directory/data" TESTLOGDIR="$directory/log"
export PG_TEST_PORT_DIR="$UIDGEN_WORK/tmp/portlock" PG_TEST_TIMEOUT_DEFAULT=120
export PG_REGRESS="$pg_tests/regress/pg_regress"
export PATH="$UIDGEN_WORK/tree-$tree$bindir:$PATH"
export PERL5LIB="$pg_tests/perl:test/tap:test/lib/torture"
export TZ=UTC
exec perl test/lib/torture/torture.pl "$3" "$4" "$5" "$6" "$programs" "${7:-}" 2>"$directory/messages"
