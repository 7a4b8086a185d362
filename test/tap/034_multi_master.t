# Two members of a fleet replicate a table to each other, and both insert into it. Then a third server takes over from the
# first: blue/green. The statements and commands are those of docs/several-servers.md, with the addresses of these servers.
#
# Expected: no row of one server conflicts with a row of the other. The first server is the registry of its own fleet.
#
# From PostgreSQL 16 on "origin = none" keeps each server from sending back what it has received. In PostgreSQL 15 a row
# filter does that for inserts, and a blue/green switchover has one direction at a time.
use UidgenTest 'preloaded';
use Clients;
use Fleet;
use Pages;

my $conf = "wal_level = logical\n";
my %nodes = map { $_ => new_node($_, conf => $conf) } 'a', 'b', 'green';
my $has_origin = $nodes{a}->pg_version >= 16;

sub app ($node, @sql)
{
	return sql_with_path($node, 'app', @sql);
}

# A block of docs/several-servers.md for this major.
sub without_origin ($block)
{
	$block =~ s/, origin = none|WITH \(origin = none\)//g unless $has_origin;
	return $block;
}

sub insert_into ($table, @to)
{
	return map { background_loop($_, dbname => 'app', clients => 2, sql => "INSERT INTO $table DEFAULT VALUES RETURNING id") } @to;
}

sub wait_for_rows ($node, $table, $rows)
{
	$node->poll_query_until('app', "SELECT count(*) > $rows FROM $table") or die "no rows of $table";
}

sub have_all ($table, $rows, @on)
{
	foreach my $node (@on)
	{
		ok($node->poll_query_until('app', "SELECT count(*) = $rows FROM $table"), $node->name . " has all rows of $table");
		unlike(slurp_file($node->logfile), qr/duplicate key|conflict/, '... without a conflict');
	}
}

sub draw_from_nodes_of_their_own ($generator, @on)
{
	my ($one, $other) = map { app($_, "SELECT node FROM uid_generator_status WHERE generator = 'uid_generators.$generator'::regclass") } @on;
	isnt($one, $other, "$generator draws from different nodes");
}

# Multi-master.

join_fleet($nodes{$_}, $nodes{a}) foreach keys %nodes;
start_uidgen($nodes{$_}) foreach 'a', 'b';
make_registry($nodes{a});

my $tables = block_of('docs/several-servers.md', qr/CREATE PUBLICATION mine FOR TABLE orders;/);
my $filter = block_of('docs/several-servers.md', qr/ADD COLUMN site/);
my $subscription = without_origin(block_of('docs/several-servers.md', qr/CREATE SUBSCRIPTION theirs/));
foreach my $site ('a', 'b')
{
	$nodes{$site}->safe_psql('postgres', 'CREATE DATABASE app');
	app($nodes{$site}, $tables, 'CREATE ROLE replicator LOGIN REPLICATION; GRANT SELECT ON orders TO replicator');
	app($nodes{$site}, 'DROP PUBLICATION mine', $filter =~ s/'a'/'$site'/gr) unless $has_origin;
}
app($nodes{a}, for_servers($subscription, OTHER => $nodes{b}));
app($nodes{b}, for_servers($subscription, OTHER => $nodes{a}));

my @loops = insert_into('orders', @nodes{ 'a', 'b' });
wait_for_rows($_, 'orders', 4000) foreach @nodes{ 'a', 'b' };
goes_on('both insert', @loops);
my $orders = assert_unique(stop_loop(@loops));
have_all('orders', $orders, @nodes{ 'a', 'b' });
draw_from_nodes_of_their_own('uid_default', @nodes{ 'a', 'b' });
is(app($nodes{a}, 'SELECT DISTINCT protection FROM uid_generator_status WHERE protection IS NOT NULL'),
	'registry', 'the registry is a member of its own fleet');

app($nodes{$_}, 'DROP SUBSCRIPTION theirs') foreach 'a', 'b';
$nodes{b}->stop('fast');

# Blue/green, with a generator of its own.

my ($blue, $green) = @nodes{ 'a', 'green' };
my %colours = (BLUE => $blue, GREEN => $green);
app($blue, "SELECT uid_generator_create('tickets')",
	q{CREATE TABLE tickets (id bigint PRIMARY KEY DEFAULT uid_next('uid_generators.tickets'))},
	'INSERT INTO tickets SELECT FROM generate_series(1, 100); GRANT SELECT ON tickets TO replicator');
start_node($green);
$green->safe_psql('postgres', 'CREATE DATABASE app');
shell_ok($green, for_servers(block_of('docs/several-servers.md', qr/pg_dumpall/), %colours), 'roles, extension, generator and schema on green');

# Each statement by what its comment says.
my %step;
my $block = for_servers(without_origin(block_of('docs/several-servers.md', qr/CREATE PUBLICATION colour/)), %colours);
$step{$2} = $1 while $block =~ /(\S.*?;) +-- on (\N+)\n/sg;
is(join(', ', sort keys %step), 'blue, both, green, green, until 0', 'each step says where it is for');
my $caught_up = statement_of('docs/several-servers.md', qr/pg_stat_replication/);
my $end = statement_of('docs/several-servers.md', qr/DROP SUBSCRIPTION/);

app($_, $step{both}) foreach $blue, $green;
@loops = insert_into('tickets', $blue);
app($green, $step{green});
$green->poll_query_until('app', $step{'green, until 0'}, '0') or die 'no initial copy';
if ($has_origin)
{
	app($blue, $step{blue});
	push @loops, insert_into('tickets', $green);
	wait_for_rows($_, 'tickets', 2000) foreach $blue, $green;
	goes_on('both insert', @loops);
}
my @logs = stop_loop(@loops);
if (!$has_origin)
{
	$blue->poll_query_until('app', $caught_up) or die 'green does not catch up';
	app($green, $end);
	app($blue, $step{blue});
	@loops = insert_into('tickets', $green);
	wait_for_rows($blue, 'tickets', 2000);
	push @logs, stop_loop(@loops);
}
have_all('tickets', assert_unique(@logs) + 100, $blue, $green);
is(app($green, 'SELECT count(*) FROM orders'), $orders, 'green has the other table, too');
draw_from_nodes_of_their_own('tickets', $blue, $green);

app($blue, 'DROP SUBSCRIPTION from_green');
app($green, $end) if $has_origin;
$_->stop('fast') foreach $green, $blue;
done_testing();
