#!/bin/sh
# The part of test/night that runs as an ordinary user in a copy of the checkout: night.sh SECONDS SEED.
set -eu
. test/lib/pg.sh
began=$(date +%s)
found=
files=$(grep -l '^seed_random();' test/tap/*.t)
sh test/lib/run.sh whole "tap=$(echo "$files" | paste -sd ,)"
for name in $(echo "$files" | xargs -n 1 basename -s .t); do
    if [ "$(cut -d ' ' -f 2 "$UIDGEN_WORK/log/tap-$name--/result")" != 0 ]; then
        found=yes
        echo "To replay it: UIDGEN_SEED=$2${UIDGEN_LONG:+ UIDGEN_LONG=1} test/one $name"
    fi
done
remaining=$(($1 - $(date +%s) + began))
if [ "$remaining" -gt 0 ]; then
    sh test/lib/torture/run.sh main - "$remaining" "$2" 1 0 server || found=yes
fi
[ -z "$found" ]
