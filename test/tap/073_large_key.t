# A serial key of type integer becomes bigint by the recipe of docs/moving.md, while clients insert, update and delete rows
# of both tables: no transaction of theirs fails, no table is rewritten, and no row is lost.
use UidgenTest;
use Clients;

my $node = new_node('large');
start_node($node);
sql('CREATE SCHEMA uidgen; CREATE EXTENSION uidgen SCHEMA uidgen; ALTER DATABASE postgres SET search_path = public, uidgen');
sql(<<'SQL');
CREATE TABLE customers (id serial PRIMARY KEY, v integer) WITH (fillfactor = 10);  -- more than two batches of pages
CREATE TABLE addresses (customer_id integer REFERENCES customers, v integer) WITH (fillfactor = 10);
INSERT INTO customers (v) SELECT n FROM generate_series(1, 50000) AS n;
INSERT INTO addresses SELECT id, v FROM customers;
SQL

my $loop = background_loop($node, clients => 4, pace => 0.005, sql => <<'SQL');
BEGIN;
WITH customer AS (INSERT INTO customers (v) VALUES (0) RETURNING id)
INSERT INTO addresses (customer_id, v) SELECT 1, 0 FROM customer;
UPDATE customers SET v = v + 1 WHERE id = 2 + pg_backend_pid() % 1000;
COMMIT;
INSERT INTO addresses (customer_id, v) SELECT id, 1 FROM customers WHERE v = 0 ORDER BY id DESC LIMIT 1 RETURNING customer_id;
SQL
sub progress { return sql('SELECT count(*) FROM addresses WHERE v = 1') }

# A statement, or a transaction of several, until no lock times out. The server says if one reads or writes a table, as only
# VALIDATE may, whose lock lets clients write.
sub run_again ($statements)
{
	my ($state, $error);
	for (1 .. 1000)
	{
		($state, $error) = sqlstate($node, "SET client_min_messages = debug1;\n$statements");
		last if $state ne '55P03';
	}
	is($state, '00000', $statements) || diag($error);
	unlike($error, qr/verifying|validating|rewriting|building/, '... reads no table') if $statements !~ /VALIDATE CONSTRAINT/;
}

my ($section) = slurp_file('docs/moving.md') =~ /^## A large table with an integer key\n(.*?)(?=^## )/ms or die 'no section';
my @blocks = $section =~ /^```sql\n(.*?)^```$/msg;
my ($prepare, $fill, $build, $swap) = @blocks;
my $timeout = '';
for my $block ($prepare, $fill, $build)
{
	my $before = progress();
	for my $statement (map { $_->[0] } @{ Session::statements($block) })
	{
		if ($statement =~ /^(?:SET|RESET) lock_timeout/) { $timeout = $statement =~ /^SET/ ? $statement : '' }
		elsif ($statement =~ /^(?:DO|CREATE (?:UNIQUE )?INDEX CONCURRENTLY)/)
		{
			is(($node->psql('postgres', $statement))[0], 0, $statement);
		}
		else { run_again("$timeout\n$statement") }
	}
	ok(poll_until('rows', sub { progress() > $before }), 'clients go on');
}
# Rows that were filled and then changed.
run_again('UPDATE addresses SET customer_id = 2 WHERE customer_id = 3');
run_again('UPDATE customers SET id = -3 WHERE id = 3');
my $files = q{SELECT string_agg(pg_relation_filenode(oid)::text, ' ' ORDER BY pg_relation_filenode(oid)) FROM pg_class
               WHERE relname IN ('customers', 'addresses', '%s')};
my $before = sql(sprintf $files, 'customers_new_id');
my ($transaction, $rest) = $swap =~ /^(BEGIN;.*?^COMMIT;\n)(.*)$/ms or die 'no transaction';
run_again($transaction);
is(sql(sprintf $files, 'customers_pkey'), $before, 'the swap has rewritten no table and built no index');
run_again($_) foreach map { $_->[0] } @{ Session::statements($rest) };
my $now = progress();
ok(poll_until('rows', sub { progress() > $now }), 'clients go on after the swap');
my @logs = stop_loop($loop);
is(join('', map { slurp_file("$_.err") } @logs), '', 'no transaction of the clients has failed');

my $sum = 50000 * 50001 / 2;
is(sql('SELECT count(*), sum(id) FROM customers WHERE id <= 50000'), '50000|' . ($sum - 3 - 3), 'every customer has its id');
is(sql('SELECT count(*), sum(a.customer_id) FROM addresses AS a JOIN customers AS c ON a.customer_id = c.id WHERE a.v > 1'),
	'49999|' . ($sum - 1 - 1), '... and its address');
is(sql('SELECT count(*) FROM addresses WHERE customer_id IS NULL'), 0, 'so have those of the clients');
cmp_ok(sql('SELECT max(id) FROM customers'), '>', 10**17, 'new ids are of the generator');
is(sql(q{SELECT string_agg(conname || ' ' || convalidated, ' ' ORDER BY conname) FROM pg_constraint
          WHERE conrelid IN ('customers'::regclass, 'addresses'::regclass) AND contype IN ('p', 'f', 'c')}),
	'addresses_customer_fkey true customers_pkey true', 'the constraints are valid');
is(sql(q{SELECT string_agg(attname || ' ' || atttypid::regtype || ' ' || attnotnull, ', ' ORDER BY attname) FROM pg_attribute
          WHERE attrelid IN ('customers'::regclass, 'addresses'::regclass) AND attname LIKE '%id' AND attnum > 0}),
	'customer_id bigint false, id bigint true', 'the columns are bigint');

$node->stop;
done_testing();
