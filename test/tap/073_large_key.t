# Keys of large tables become bigint by the recipes of docs/moving.md, one of type integer and a random UUID, while clients
# insert and update rows of both tables: no transaction of theirs fails, no table is rewritten, and no row is lost.
use UidgenTest;
use Clients;

my $node = new_node('large', conf => "wal_level = logical\n");
start_node($node);
sql('CREATE SCHEMA uidgen; CREATE EXTENSION uidgen SCHEMA uidgen; GRANT USAGE ON SCHEMA uidgen TO PUBLIC; ALTER DATABASE postgres SET search_path = public, uidgen');
sql(<<'SQL');
CREATE TABLE customers (id serial PRIMARY KEY, v integer) WITH (fillfactor = 10);  -- more than two batches of pages
CREATE TABLE addresses (customer_id integer NOT NULL REFERENCES customers, v integer) WITH (fillfactor = 10);
INSERT INTO customers (v) SELECT n FROM generate_series(1, 50000) AS n;
INSERT INTO addresses SELECT id, v FROM customers;
CREATE TABLE visits (id uuid PRIMARY KEY DEFAULT gen_random_uuid(), v integer) WITH (fillfactor = 10);
CREATE TABLE clicks (visit_id uuid NOT NULL REFERENCES visits, v integer) WITH (fillfactor = 10);
INSERT INTO visits (v) SELECT n FROM generate_series(1, 20000) AS n;
INSERT INTO clicks SELECT id, v FROM visits;
CREATE INDEX ON visits (v);
CREATE INDEX ON clicks (v);
CREATE ROLE web;
GRANT INSERT, SELECT, UPDATE ON customers, addresses TO web;
GRANT USAGE ON SEQUENCE customers_id_seq TO web;
GRANT INSERT, SELECT (v), UPDATE (v) ON visits TO web;    -- not to read ids
GRANT INSERT, SELECT, UPDATE ON clicks TO web;
SQL

# A statement, or a transaction of several, until no lock times out. The server says if one reads or writes a table, as only
# VALIDATE by itself may, whose lock lets clients write.
sub run_again ($statements, $expected = '00000')
{
	my ($state, $error);
	for (1 .. 1000)
	{
		($state, $error) = sqlstate($node, "SET client_min_messages = debug1;\n$statements");
		last if $state ne '55P03';
	}
	is($state, $expected, $statements) || diag($error);
	unlike($error, qr/verifying|validating|rewriting|building/, '... reads no table')
	  if $statements !~ /^ALTER TABLE \w+ VALIDATE CONSTRAINT/m;
}

# Runs the blocks of a section, the last of which swaps, while clients run their statements.
sub run_recipe (%recipe)
{
	my ($table, $refers) = @recipe{qw(table refers)};
	my $loop = background_loop($node, clients => 4, pace => 0.005, sql => "SET ROLE web; SET search_path = public;\n$recipe{clients}");
	my $progress = sub { sql("SELECT count(*) FROM $refers WHERE v = 1") };
	my ($text) = slurp_file('docs/moving.md') =~ /^## \Q$recipe{section}\E\n(.*?)(?=^## )/ms or die 'no section';
	my @blocks = $text =~ /^```sql\n(.*?)^```$/msg;
	my $swap = pop @blocks;
	my $timeout = '';
	for my $block (@blocks)
	{
		my $before = $progress->();
		for my $statement (map { $_->[0] } @{ Session::statements($block) })
		{
			if ($statement =~ /^(?:SET|RESET) lock_timeout/) { $timeout = $statement =~ /^SET/ ? $statement : '' }
			elsif ($statement =~ /^(?:CALL|CREATE (?:UNIQUE )?INDEX CONCURRENTLY)/)
			{
				is(($node->psql('postgres', $statement))[0], 0, $statement);
			}
			else { run_again("$timeout\n$statement") }
		}
		ok(poll_until('rows', sub { $progress->() > $before }), 'clients go on');
	}
	run_again($_) foreach @{ $recipe{changes} };    # of rows that were filled
	my $files = "SELECT string_agg(pg_relation_filenode(oid)::text, ' ' ORDER BY pg_relation_filenode(oid)) FROM pg_class
	             WHERE relname IN ('$table', '$refers', '%s')";
	my $before = sql(sprintf $files, "${table}_new_id");
	my ($transaction, $rest) = $swap =~ /^(BEGIN;.*?^COMMIT;\n)(.*)$/ms or die 'no transaction';
	my $rename = "SET lock_timeout = '200ms';\nALTER TABLE $refers RENAME CONSTRAINT %s TO %s";
	run_again(sprintf $rename, $recipe{foreign_key}, 'missing');
	run_again($transaction, '42704');
	run_again(sprintf $rename, 'missing', $recipe{foreign_key});
	run_again($transaction);
	is(sql(sprintf $files, "${table}_pkey"), $before, 'the swap has rewritten no table and built no index');
	run_again($_) foreach grep { !/PROCEDURE run_in_batches/ } map { $_->[0] } @{ Session::statements($rest) };
	my $now = $progress->();
	ok(poll_until('rows', sub { $progress->() > $now }), 'clients go on after the swap');
	is(join('', map { slurp_file("$_.err") } stop_loop($loop)), '', 'no transaction of the clients has failed');
	is(sql("SELECT string_agg(conname || ' ' || contype::text || ' ' || convalidated, ', ' ORDER BY conname) FROM pg_constraint
	        WHERE conrelid IN ('$table'::regclass, '$refers'::regclass) AND contype IN ('p', 'f', 'c', 'u')"),
		$recipe{constraints}, 'the constraints are valid');
	is(sql("SELECT string_agg(attname || ' ' || atttypid::regtype || ' ' || attnotnull, ', ' ORDER BY attname) FROM pg_attribute
	        WHERE attrelid IN ('$table'::regclass, '$refers'::regclass) AND attname LIKE '%id' AND attnum > 0"),
		$recipe{columns}, 'the columns have their types');
	return;
}

# A subscriber goes on through the move if it has what the page says.
my $publisher = $node->connstr('postgres') =~ s{'}{''}gr;
sql($_) foreach 'CREATE PUBLICATION shop FOR TABLE customers', "SELECT pg_create_logical_replication_slot('copy', 'pgoutput')", 'CREATE DATABASE copy';
$node->safe_psql('copy', $_) foreach 'CREATE TABLE customers (id integer PRIMARY KEY, v integer)',
  'INSERT INTO customers SELECT n, n FROM generate_series(1, 50000) AS n',
  # On one server its own transaction would hold up the slot that a first copy of the rows makes.
  "CREATE SUBSCRIPTION copy CONNECTION '$publisher' PUBLICATION shop WITH (create_slot = false, copy_data = false)",
  'ALTER TABLE customers ALTER id TYPE bigint, ADD COLUMN new_id bigint';

run_recipe(
	section => 'A large table with an integer key', table => 'customers', refers => 'addresses', foreign_key => 'addresses_customer_fkey',
	clients => <<'SQL',
BEGIN;
WITH customer AS (INSERT INTO customers (v) VALUES (0) RETURNING id)
INSERT INTO addresses (customer_id, v) SELECT 1, 0 FROM customer;
UPDATE customers SET v = v + 1 WHERE id = 2 + pg_backend_pid() % 1000;
COMMIT;
INSERT INTO addresses (customer_id, v) SELECT id, 1 FROM customers WHERE v = 0 ORDER BY id DESC LIMIT 1 RETURNING customer_id;
SQL
	changes => [ 'UPDATE addresses SET customer_id = 2 WHERE customer_id = 3', 'UPDATE customers SET id = -3 WHERE id = 3' ],
	constraints => 'addresses_customer_fkey f true, customers_pkey p true',
	columns => 'customer_id bigint true, id bigint true');
my $rows = 'SELECT count(*), sum(id), sum(v) FROM customers';
ok($node->poll_query_until('copy', $rows, sql($rows)), 'a subscriber has all rows');
$node->safe_psql('copy', 'DROP SUBSCRIPTION copy');
my $sum = 50000 * 50001 / 2;
is(sql('SELECT count(*), sum(id) FROM customers WHERE id <= 50000'), '50000|' . ($sum - 3 - 3), 'every customer has its id');
is(sql('SELECT count(*), sum(a.customer_id) FROM addresses AS a JOIN customers AS c ON a.customer_id = c.id WHERE a.v > 1'),
	'49999|' . ($sum - 1 - 1), '... and its address');
cmp_ok(sql('SELECT max(id) FROM customers'), '>', 10**17, 'new ids are of the generator');

run_recipe(
	section => 'From UUIDs', table => 'visits', refers => 'clicks', foreign_key => 'clicks_visit_fkey',
	clients => <<'SQL',
BEGIN;
INSERT INTO visits (v) VALUES (0);
UPDATE visits SET v = v WHERE v = 2 + pg_backend_pid() % 1000;
COMMIT;
INSERT INTO clicks (visit_id, v) SELECT visit_id, 1 FROM clicks WHERE v = 4;
UPDATE clicks SET v = v WHERE v = 2 + pg_backend_pid() % 1000;
SQL
	changes => [ 'UPDATE clicks SET visit_id = (SELECT id FROM visits WHERE v = 2) WHERE v = 3',
		'WITH visit AS (INSERT INTO visits (v) VALUES (20001) RETURNING id) INSERT INTO clicks (visit_id, v) SELECT id, 20001 FROM visit' ],
	constraints => 'clicks_visit_fkey f true, visits_pkey p true, visits_uuid u true',
	columns => 'id bigint true, uuid uuid true, visit_id bigint true');
is(sql(q{SELECT string_agg(c.v || ' of ' || s.v, ', ') FROM clicks AS c JOIN visits AS s ON s.id = c.visit_id WHERE c.v > 1 AND c.v <> s.v}),
	'3 of 2', 'every click has its visit');
is(sql('SELECT count(DISTINCT s.id) FROM clicks AS c JOIN visits AS s ON s.id = c.visit_id'), 20000, '... and all visits but one a click');
is(sql('INSERT INTO visits (v) VALUES (-1) RETURNING id > (SELECT max(id) FROM visits), uuid IS NOT NULL'), 't|t',
	'a new visit has an id above all others, and a UUID');
my ($leave) = slurp_file('docs/moving.md') =~ /`(SELECT uid_release\('visits'[^`]*)`/ or die 'no uid_release';
sql($leave);
is(sql('INSERT INTO visits (v) VALUES (-1) RETURNING id'), 1, 'uid_release() gives the key an identity');

$node->stop;
done_testing();
