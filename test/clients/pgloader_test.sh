#!/bin/sh
# pgloader: rows of SQLite with their ids come into a table that then goes on with uidgen's, and into one with a segment, which
# `reset sequences` does not move.
set -eu
/usr/bin/python3 - <<'PYTHON'
import sqlite3
source = sqlite3.connect('pgloader.db')
for table in 'orders', 'invoices':
    source.execute(f'CREATE TABLE {table} (id integer PRIMARY KEY, item text)')
    source.executemany(f'INSERT INTO {table} VALUES (?, ?)', [(n, f'item {n}') for n in range(1, 501)])
source.commit()
PYTHON
sql() {
    PGOPTIONS='-c client_min_messages=warning' psql -XAtq -v ON_ERROR_STOP=1 "$@"
}
sql <<'SQL' >/dev/null
CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT uidgen.uid_next(), item text);
CREATE TABLE invoices (id bigserial PRIMARY KEY, item text);
SELECT uidgen.uid_adopt('invoices', 'id', 'invoices_id_seq', dry_run => false);
SQL
cat >pgloader.load <<COMMANDS
LOAD DATABASE FROM sqlite://pgloader.db INTO postgresql:///$PGDATABASE
  WITH data only, create no tables, include no drop, reset sequences;
COMMANDS
pgloader --root-dir "$PWD" --on-error-stop --quiet pgloader.load

sql -c "INSERT INTO invoices (item) VALUES ('after')" 2>/dev/null && exit 1
sql -c "SELECT uidgen.segment_set('invoices_id_seq', (SELECT max(id) FROM invoices) + 1)" >/dev/null
test "$(sql -c "INSERT INTO invoices (item) VALUES ('after') RETURNING id")" = 501
test "$(sql -c "SELECT count(*), sum(id) FROM orders")" = '500|125250'
test "$(sql -c "INSERT INTO orders (item) VALUES ('after') RETURNING id")" -gt 500
