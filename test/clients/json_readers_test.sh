#!/bin/sh
# Which readers of JSON keep the 64 bits of an id that is a number there. Others are in the programs of their languages.
set -eu
id=$(psql -XAt -c 'SELECT uidgen.uid_next() | 1')
read_by() {
    echo "{\"id\": $id}" | "$@"
}
test "$(read_by /usr/bin/python3 -c 'import json, sys; print(json.load(sys.stdin)["id"])')" = "$id"
test "$(read_by ruby -rjson -e 'puts JSON.parse(STDIN.read)["id"]')" = "$id"
test "$(psql -XAt -c "SELECT '{\"id\": $id}'::jsonb -> 'id'")" = "$id"
test "$(read_by node -e 'console.log(JSON.parse(fs.readFileSync(0)).id)')" != "$id"
test "$(read_by jq '.id + 0')" != "$id"
# jq 1.7 and later round only what they calculate with.
case $(jq --version) in
    jq-1.6) test "$(read_by jq .id)" != "$id" ;;
    *) test "$(read_by jq .id)" = "$id" ;;
esac
