#!/bin/sh
# The part of test/server that runs as an ordinary user, in the copy of the checkout that test/one keeps: builds, and starts
# a server whose database uidgen has the extension as it is now.
set -eu
. test/lib/pg.sh

build_tree main WERROR=1 PG_CXXFLAGS=-O1 || {
    tail -n 70 "$UIDGEN_WORK/log/build-main"
    exit 1
}
keep_server psql "$tree" 5434
! cmp -s "$data.installed" "$data.build" || exit 0
echo "The database uidgen is made anew, because the build has changed." >&2

psql() {
    PGOPTIONS='-c client_min_messages=warning' "$tree$bindir/psql" -Xq -v ON_ERROR_STOP=1 "$@"
}

psql -c 'DROP DATABASE IF EXISTS uidgen' -c 'CREATE DATABASE uidgen'
# shellcheck disable=SC2016 # for the server
psql -d uidgen -c 'CREATE SCHEMA uidgen' -c 'CREATE EXTENSION uidgen SCHEMA uidgen' \
    -c 'GRANT USAGE ON SCHEMA uidgen TO PUBLIC' -c 'ALTER DATABASE uidgen SET search_path = "$user", public, uidgen'
cp "$data.installed" "$data.build"
