# What README.md says to put into postgresql.conf, and to run afterwards, works as written.

use strict;
use warnings;

use Test::More;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use UidgenTest;

# Snippets as [language, text]: of one section, or of the whole file.
sub snippets
{
	my ($file, $section) = @_;
	my $text = slurp_file($file);
	if (defined $section)
	{
		($text) = $text =~ /^## \Q$section\E\n(.*?)(?=^## |\z)/ms or die "$file has no section $section";
	}
	my @found;
	push @found, [ $1, $2 ] while $text =~ /^```(\w*)\n(.*?)^```$/msg;
	return @found;
}

sub of_language
{
	my ($language, @snippets) = @_;
	return map { $_->[1] } grep { $_->[0] eq $language } @snippets;
}

my @documents = ('README.md', glob 'docs/*.md');
for my $file (@documents)
{
	unlike(join('', of_language('', snippets($file))),
		qr/^\s*[\w.]+ = /m, "$file: a setting stands in a snippet that says ini");
}

my $node = PostgreSQL::Test::Cluster->new('readme');
$node->init;
$node->append_conf('postgresql.conf', "$_\n") for map { of_language('ini', snippets($_)) } @documents;
is($node->start(fail_ok => 1), 1, 'a server starts with the lines for postgresql.conf')
  or BAIL_OUT('the server says why in its log');
is($node->safe_psql('postgres', 'SELECT name, error FROM pg_file_settings WHERE error IS NOT NULL'),
	'', 'and has taken every one of them');

$node->safe_psql('postgres', 'CREATE DATABASE shop2');
for my $database ('postgres', 'shop2')
{
	for my $sql (of_language('sql', snippets('README.md', 'Install')))
	{
		is(($node->psql($database, $sql, on_error_stop => 1))[0], 0, "in $database: $sql");
	}
}
my $elsewhere = 'More than one database';
isnt(scalar of_language('ini', snippets('README.md', $elsewhere)), 0, 'another server has a snippet');
isnt(scalar of_language('sql', snippets('README.md', $elsewhere)), 0, 'another database has a snippet');
for my $sql (of_language('sql', snippets('README.md', $elsewhere)))
{
	is(($node->psql('postgres', $sql, on_error_stop => 1))[0], 0, $sql);
}

# The registry of the README's line is a database of this server.
my ($registry) = grep { /^uidgen\.registry = / } map { split /\n/ } of_language('ini', snippets('README.md', $elsewhere));
my ($host, $port) = ($node->host, $node->port);
$registry =~ s/host=\S+ dbname=\S+/host=$host port=$port dbname=postgres/ or die "no host and dbname in $registry";
$node->append_conf('postgresql.conf', "$registry\n");
$node->reload;
for my $database ('postgres', 'shop2')
{
	ok($node->poll_query_until($database, 'SELECT uid_next() > 0'), "in $database the registry grants a node");
	is( $node->safe_psql($database, q{SELECT protection FROM uid_generator_status WHERE node IS NOT NULL}),
		'registry', '... and the status shows it');
}
my $datacenter = 'SELECT (uid_decode(uid_next())).datacenter_id';
is($node->safe_psql('postgres', $datacenter), '1', 'ids of the server have the datacenter id of its postgresql.conf');
is($node->safe_psql('shop2', $datacenter), '2', 'ids of the other database have its own');

$node->stop;
done_testing();
