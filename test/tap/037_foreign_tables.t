# A router and two shards, by postgres_fdw and by partitions that are foreign tables. All three are members of one fleet;
# the router is its registry.
#
# Where is a default evaluated? The node in an id tells which server drew it:
#   1. A foreign table's own default: on the router.
#   2. A column that the foreign table does not have: on the shard.
#   3. A column of the foreign table without a default: nowhere. The router sends NULL.
#   4. A partitioned table's default, for a row that goes to a foreign partition: on the router.
use UidgenTest 'preloaded';
use Clients;
use Fleet;

my $sharedir = `pg_config --sharedir`;
chomp $sharedir;
plan skip_all => 'postgres_fdw is not installed' unless -e "$sharedir/extension/postgres_fdw.control";

my $router = new_node('router');
my %shard = map { $_ => new_node($_) } 'eu', 'us';
join_fleet($_, $router) foreach $router, values %shard;
start_uidgen($_) foreach $router, values %shard;
make_registry($router);

foreach my $region (sort keys %shard)
{
	my ($host, $port) = ($shard{$region}->host, $shard{$region}->port);
	$shard{$region}->safe_psql('postgres', qq{
		CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT uid_next(),
			region text NOT NULL DEFAULT '$region' CHECK (region = '$region'))});
	$router->safe_psql('postgres', qq{
		CREATE EXTENSION IF NOT EXISTS postgres_fdw;
		CREATE SERVER $region FOREIGN DATA WRAPPER postgres_fdw
			OPTIONS (host '$host', port '$port', dbname 'postgres');
		CREATE USER MAPPING FOR CURRENT_USER SERVER $region});
}

my $nodes = "SELECT string_agg(node::text, ' ' ORDER BY node) FROM "
  . '(SELECT DISTINCT datacenter_id * 32 + worker_id AS node FROM orders CROSS JOIN uid_decode(id)) n';

# The nodes in the ids of the rows that a statement of the router inserts into a shard.
sub nodes_in_rows_of ($region, $insert)
{
	$shard{$region}->safe_psql('postgres', 'TRUNCATE orders');
	$router->safe_psql('postgres', $insert);
	return $shard{$region}->safe_psql('postgres', $nodes);
}

# Foreign tables

$router->safe_psql('postgres', q{
	CREATE FOREIGN TABLE with_default (id bigint NOT NULL DEFAULT uid_next()) SERVER eu OPTIONS (table_name 'orders');
	CREATE FOREIGN TABLE without_column (region text DEFAULT 'eu') SERVER eu OPTIONS (table_name 'orders');
	CREATE FOREIGN TABLE without_default (id bigint) SERVER eu OPTIONS (table_name 'orders');
	CREATE SCHEMA plain; CREATE SCHEMA with_defaults;
	IMPORT FOREIGN SCHEMA public LIMIT TO (orders) FROM SERVER eu INTO plain;
	IMPORT FOREIGN SCHEMA public LIMIT TO (orders) FROM SERVER eu INTO with_defaults OPTIONS (import_default 'true')});

$shard{$_}->safe_psql('postgres', 'INSERT INTO orders DEFAULT VALUES') foreach keys %shard;
my $got = nodes_in_rows_of('eu', 'INSERT INTO with_default DEFAULT VALUES');
my $node = node_of($router);
is($got, $node, "a foreign table's own default is evaluated on the router");
isnt(node_of($shard{$_}), $node, "... whose node is not that of the shard $_") foreach sort keys %shard;
is(nodes_in_rows_of('eu', 'INSERT INTO without_column DEFAULT VALUES'),
	node_of($shard{eu}), 'the default of a column that the foreign table does not have, on the shard');
is(sqlstate($router, 'INSERT INTO without_default DEFAULT VALUES'), '23502',
	'without a default the router sends NULL, and the shard does not evaluate its own');
is(sqlstate($router, 'INSERT INTO plain.orders DEFAULT VALUES'), '23502', 'IMPORT FOREIGN SCHEMA leaves defaults out');
is(nodes_in_rows_of('eu', 'INSERT INTO with_defaults.orders DEFAULT VALUES'),
	$node, '... but with import_default it takes them, and the router evaluates them');

# Partitions that are foreign tables. Rows come through the router and directly to the shards, all at once.

$router->safe_psql('postgres', q{
	CREATE TABLE orders (id bigint NOT NULL DEFAULT uid_next(), region text NOT NULL) PARTITION BY LIST (region);
	CREATE FOREIGN TABLE orders_eu PARTITION OF orders FOR VALUES IN ('eu') SERVER eu OPTIONS (table_name 'orders');
	CREATE FOREIGN TABLE orders_us PARTITION OF orders FOR VALUES IN ('us') SERVER us OPTIONS (table_name 'orders')});

my @loops = map {
	background_loop($router, clients => 2, sql => "INSERT INTO orders (region) VALUES ('$_') RETURNING id")
} sort keys %shard;
push @loops, map {
	background_loop($shard{$_}, clients => 2, sql => 'INSERT INTO orders DEFAULT VALUES RETURNING id')
} sort keys %shard;
$shard{$_}->poll_query_until('postgres',
	"SELECT count(*) > 500 AND ($nodes) LIKE '% %' FROM orders")
  or die "$_ has no rows of both"
  foreach sort keys %shard;
my @logs = map { stop_loop($_) } @loops;

assert_unique(@logs);
my $errors = join '', map { slurp_file("$_.err") } @logs;
is($errors, '', 'no insert failed');
is($router->safe_psql('postgres', 'SELECT count(*) - count(DISTINCT id) FROM orders'), 0, 'all rows of the partitioned table are distinct');
is($router->safe_psql('postgres', $nodes),
	join(' ', sort { $a <=> $b } map { node_of($_) } $router, values %shard),
	'... and have the nodes of the three servers');
is(nodes_in_rows_of('us', "INSERT INTO orders (region) SELECT 'us' FROM generate_series(1, 10)"),
	$node, "a row for a foreign partition has the partitioned table's default, evaluated on the router");

$_->stop('fast') foreach values %shard, $router;
done_testing();
