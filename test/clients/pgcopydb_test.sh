#!/bin/sh
# pgcopydb: pg_dump copies the schema with the generators, pgcopydb the rows and the counters. `pgcopydb clone` fails.
set -eu
sql() {
    PGOPTIONS='-c client_min_messages=warning' psql -XAtq -v ON_ERROR_STOP=1 "$@"
}
# It kills its process group if it fails.
pgcopydb() {
    setsid --wait pgcopydb "$@" --restart --not-consistent --dir pgcopydb.work \
        --source "dbname=$PGDATABASE" --target "dbname=$target"
}
sql <<'SQL' >/dev/null
CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT uidgen.uid_next(), item text);
CREATE TABLE pages (id bigint PRIMARY KEY DEFAULT uidgen.uid_next('uid_generators.web'), item text);
SELECT uidgen.segment_create('invoices', 7);
CREATE TABLE invoices (id bigint PRIMARY KEY DEFAULT uidgen.segment_next('uid_segments.invoices'), item text);
INSERT INTO orders (item) SELECT 'item' FROM generate_series(1, 1000);
INSERT INTO pages (item) SELECT 'item' FROM generate_series(1, 1000);
INSERT INTO invoices (item) SELECT 'item' FROM generate_series(1, 1000);
SQL

target=pgcopydb_clone
createdb "$target"
pgcopydb clone >clone.log 2>&1 && exit 1
grep -q 'cannot copy to sequence "uid_default"' clone.log || { cat clone.log && exit 1; }

target=pgcopydb_target
createdb "$target"
pg_dump --schema-only "$PGDATABASE" | sql -d "$target" >/dev/null
pgcopydb copy table-data
pgcopydb copy sequences
for table in orders pages invoices; do
    rows="SELECT count(*), sum(id), max(id) FROM $table"
    test "$(sql -c "$rows")" = "$(sql -d "$target" -c "$rows")"
    test "$(sql -d "$target" -c "INSERT INTO $table (item) VALUES ('after') RETURNING id")" -gt "$(sql -c "SELECT max(id) FROM $table")"
done
generators='SELECT generator, preset, tick_us FROM uidgen.uid_generator ORDER BY generator::text'
test "$(sql -c "$generators")" = "$(sql -d "$target" -c "$generators")"
