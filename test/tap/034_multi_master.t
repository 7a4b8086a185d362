# Two members of a fleet replicate a table to each other, and both insert into it.
#
# Expected: no row of one server conflicts with a row of the other. The first server is the registry of its own fleet.
#
# A row filter keeps each server from sending back what it has received: PostgreSQL 15 has no other way.
use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use UidgenTest;

my $conf = "wal_level = logical\n";
my %nodes = (a => new_node('a', conf => $conf), b => new_node('b', conf => $conf));

sub other
{
	return $_[0] eq 'a' ? 'b' : 'a';
}

join_fleet($nodes{$_}, $nodes{a}) foreach 'a', 'b';
start_uidgen($nodes{$_}) foreach 'a', 'b';
make_registry($nodes{a});
foreach my $site ('a', 'b')
{
	$nodes{$site}->safe_psql('postgres', qq{
		CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT uid_next(), site text NOT NULL DEFAULT '$site');
		ALTER TABLE orders REPLICA IDENTITY FULL;
		CREATE PUBLICATION mine FOR TABLE orders WHERE (site = '$site') WITH (publish = 'insert')});
}
foreach my $site ('a', 'b')
{
	my $connection = $nodes{ other($site) }->connstr('postgres') =~ s{'}{''}gr;
	$nodes{$site}->safe_psql('postgres',
		"CREATE SUBSCRIPTION theirs_$site CONNECTION '$connection' PUBLICATION mine WITH (copy_data = off)");
}

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
$nodes{$_}->stop('fast') foreach 'b', 'a';
done_testing();
