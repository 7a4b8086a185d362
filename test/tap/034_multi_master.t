# Two members of a fleet replicate a table to each other, and both insert into it. Then a third server takes over from the
# first: blue/green. These are the recipes of docs/fleet.md.
#
# Expected: no row of one server conflicts with a row of the other. The first server is the registry of its own fleet.
#
# From PostgreSQL 16 on "origin = none" keeps each server from sending back what it has received. In PostgreSQL 15 a row
# filter does that for inserts, and a blue/green switchover has one direction at a time.
use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use UidgenTest;

my $conf = "wal_level = logical\n";
my %nodes = (a => new_node('a', conf => $conf), b => new_node('b', conf => $conf));
my $has_origin = $nodes{a}->pg_version >= 16;
my $options = 'copy_data = false' . ($has_origin ? ', origin = none' : '');

sub other
{
	return $_[0] eq 'a' ? 'b' : 'a';
}

join_fleet($nodes{$_}, $nodes{a}) foreach 'a', 'b';
start_uidgen($nodes{$_}) foreach 'a', 'b';
make_registry($nodes{a});

sub subscribe
{
	my ($to, $name, $from, $publication, $with) = @_;
	my $connection = $from->connstr('postgres') =~ s{'}{''}gr;
	$to->safe_psql('postgres', "CREATE SUBSCRIPTION $name CONNECTION '$connection' PUBLICATION $publication WITH ($with)");
	return;
}

foreach my $site ('a', 'b')
{
	my $published = $has_origin ? 'TABLE orders' : "TABLE orders WHERE (site = '$site') WITH (publish = 'insert')";
	$nodes{$site}->safe_psql('postgres', qq{
		CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT uid_next(), site text NOT NULL DEFAULT '$site');
		CREATE PUBLICATION mine FOR $published});
}
subscribe($nodes{$_}, "theirs_$_", $nodes{ other($_) }, 'mine', $options) foreach 'a', 'b';

my @loops = map {
	background_loop($nodes{$_}, clients => 2, sql => 'INSERT INTO orders DEFAULT VALUES RETURNING id')
} 'a', 'b';
$nodes{$_}->poll_query_until('postgres', "SELECT count(*) > 2000 FROM orders WHERE site = '$_'")
  or die "$_ does not insert"
  foreach 'a', 'b';
my @logs = map { stop_loop($_) } @loops;

my $drawn = assert_unique(@logs);
foreach my $site ('a', 'b')
{
	ok($nodes{$site}->poll_query_until('postgres', "SELECT count(*) >= $drawn FROM orders"),
		"$site has the rows of both");
	my $log = slurp_file($nodes{$site}->logfile);
	unlike($log, qr/duplicate key|conflict/, "$site saw no conflict");
}
isnt(node_of($nodes{a}), node_of($nodes{b}), 'the two draw from different nodes');
is($nodes{a}->safe_psql('postgres', 'SELECT DISTINCT protection FROM uid_generator_status WHERE protection IS NOT NULL'),
	'registry', 'the registry is a member of its own fleet');

$nodes{$_}->safe_psql('postgres', "DROP SUBSCRIPTION theirs_$_") foreach 'a', 'b';

# ---------------------------------------------------------------------------
# Blue/green, with a generator of its own.
# ---------------------------------------------------------------------------

my $blue = $nodes{a};
my $green = new_node('green', conf => $conf);
join_fleet($green, $blue);
start_uidgen($green);
$green->safe_psql('postgres', 'CREATE ROLE uid_fleet');    # pg_dumpall --roles-only
$_->safe_psql('postgres', "SELECT uid_generator_create('tickets')") foreach $blue, $green;
$blue->safe_psql('postgres', q{
	CREATE TABLE tickets (id bigint PRIMARY KEY DEFAULT uid_next('uid_generators.tickets'));
	INSERT INTO tickets SELECT FROM generate_series(1, 100)});
my $schema = $blue->basedir . '/schema.sql';
$blue->command_ok(
	[
		'pg_dump', '--schema-only', '--exclude-schema', 'uid_generators', '--exclude-schema', 'uid_segments',
		'--no-publications', '--no-subscriptions', '-f', $schema, $blue->connstr('postgres')
	],
	'pg_dump of the schema');
$green->command_ok([ 'psql', '-XAtq', '-v', 'ON_ERROR_STOP=1', '-f', $schema, $green->connstr('postgres') ], '... and its restore');

sub insert_tickets
{
	return background_loop($_[0], clients => 2, sql => 'INSERT INTO tickets DEFAULT VALUES RETURNING id');
}

sub wait_for_copy
{
	my ($node) = @_;
	$node->poll_query_until('postgres', "SELECT count(*) > 0 AND bool_and(srsubstate = 'r') FROM pg_subscription_rel")
	  or die 'no initial copy';
	return;
}

$_->safe_psql('postgres', 'CREATE PUBLICATION colour FOR TABLE tickets') foreach $blue, $green;
my @tickets = insert_tickets($blue);
subscribe($green, 'from_blue', $blue, 'colour', $has_origin ? 'origin = none' : 'copy_data = true');
wait_for_copy($green);
if ($has_origin)
{
	subscribe($blue, 'from_green', $green, 'colour', $options);
	push @tickets, insert_tickets($green);
	$green->poll_query_until('postgres', 'SELECT count(*) > 1000 FROM tickets') or die 'no tickets';
}
my @ticket_logs = map { stop_loop($_) } @tickets;
if (!$has_origin)
{
	$blue->wait_for_catchup('from_blue');
	$green->safe_psql('postgres', 'DROP SUBSCRIPTION from_blue');
	subscribe($blue, 'from_green', $green, 'colour', $options);
	my $loop = insert_tickets($green);
	$green->poll_query_until('postgres', 'SELECT count(*) > 1000 FROM tickets') or die 'no tickets';
	push @ticket_logs, stop_loop($loop);
}
$drawn = assert_unique(@ticket_logs);
foreach my $node ($blue, $green)
{
	ok($node->poll_query_until('postgres', "SELECT count(*) = $drawn + 100 FROM tickets"), $node->name . ' has all tickets');
	unlike(slurp_file($node->logfile), qr/duplicate key|conflict/, '... without a conflict');
}
isnt(node_of($blue, 'uid_generators.tickets'), node_of($green, 'uid_generators.tickets'), 'blue and green draw from different nodes');

$blue->safe_psql('postgres', 'DROP SUBSCRIPTION from_green');
$green->safe_psql('postgres', 'DROP SUBSCRIPTION from_blue') if $has_origin;
$_->stop('fast') foreach $green, $nodes{b}, $blue;
done_testing();
