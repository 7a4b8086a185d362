#!/bin/sh
# Builds the extension, and tortures it: build-and-run.sh FAULT SECONDS SEED ROUND DENSE NEMESIS,... Started by
# test/torture in a copy of the checkout, as an ordinary user.
set -eu
. test/lib/pg.sh
name_of_tree=torture
variable=WERROR=1
if [ "$1" != - ]; then
    name_of_tree=torture-faults
    variable=UIDGEN_FAULTS=1
fi
if ! build_tree "$name_of_tree" "$variable"; then
    tail -n 40 "$UIDGEN_WORK/log/build-$name_of_tree"
    exit 2
fi
exec sh test/lib/torture/run.sh "$name_of_tree" "$@"
