#!/bin/sh
# The part of test/night that runs as an ordinary user in a copy of the checkout: night.sh SECONDS SEED.
set -eu
. test/lib/pg.sh
began=$(date +%s)
found=
if ! build_tree main WERROR=1; then
    tail -n 40 "$UIDGEN_WORK/log/build-main"
    exit 2
fi
for file in test/tap/*.t; do
    grep -q '^seed_random();' "$file" || continue
    name=$(basename "$file" .t)
    sh test/lib/tap-file.sh main "$file" -
    if [ "$(cut -d ' ' -f 2 "$UIDGEN_WORK/log/tap-$name--/result")" != 0 ]; then
        found=yes
        echo "To replay it: UIDGEN_SEED=$2${UIDGEN_LONG:+ UIDGEN_LONG=1} test/one $name"
    fi
done
remaining=$(($1 - $(date +%s) + began))
if [ "$remaining" -gt 0 ]; then
    sh test/lib/torture/run.sh main - "$remaining" "$2" 1 0 || found=yes
fi
[ -z "$found" ]
