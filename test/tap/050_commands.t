# The commands of docs/*.md for a shell that no other test runs, with the addresses of these servers: a fleet
# whose members have the registry's password in a file, and its registry that moves to another server.
use UidgenTest 'preloaded';
use Pages;

my ($old, $new) = map { new_node($_) } 'old', 'new';
my $member = new_node('member', conf => "uidgen.max_wait = '60s'\n");
my $directory = PostgreSQL::Test::Utils::tempdir();

# docs/fleet.md, "Set up". These servers are reached by sockets, and the operating system's user is another one.
my $page = slurp_file('docs/fleet.md');
my ($hba) = $page =~ /^(host +ids .*)$/m;
$hba =~ s/^host( .*) \S+\/\d+( .*)/local$1$2/ or die "no address in $hba";
sub let_in ($node)
{
	my $file = $node->data_dir . '/pg_hba.conf';
	my $lines = slurp_file($file);
	unlink $file;
	append_to_file($file, "$hba\n$lines");
}

let_in($_) foreach $old, $new;
$_->start foreach $old, $new;
shell_ok($old, for_servers(block_of('docs/fleet.md', qr/createdb/), ids1 => $old), 'the registry of docs/fleet.md is made');

my $password = block_of('docs/fleet.md', qr/pgpass/);
$password =~ s/^sudo -u postgres -H/HOME='$directory'/ or die "no user in $password";
shell_ok($member, $password, 'the password is written to a file');
is((stat "$directory/.pgpass")[2] & 0777, 0600, '... which other users of the system cannot read');
$member->{uidgen_env} = { HOME => $directory };

my ($line) = $page =~ /^(uidgen\.registry = .*)$/m;
sub line_for ($node)
{
	my ($host, $port) = ($node->host, $node->port);
	return $line =~ s/host=ids1,ids2/host=$host,$host port=$port,$port/r . "\n";
}
$member->append_conf('postgresql.conf', line_for($old));
start_uidgen($member);

sub protection ($generator)
{
	return $member->safe_psql('postgres', "SELECT uid_next('uid_generators.$generator') > 0;"
		  . " SELECT protection FROM uid_generator_status WHERE generator = 'uid_generators.$generator'::regclass");
}
is(protection('uid_default'), "t\nregistry", 'the registry grants a node');

# "Move the registry" of docs/fleet-reference.md. A member may be connected to it.
shell_ok($new, for_servers(block_of('docs/fleet-reference.md', qr/ids_moved/), OLD => $old, NEW => $new), 'the registry is moved');
is($old->safe_psql('ids_moved', 'SELECT count(*) FROM uid_registry.node'), $new->safe_psql('ids', 'SELECT count(*) FROM uid_registry.node'), '... with its rows');
$new->safe_psql('ids', statement_of('docs/fleet-reference.md', qr/nothing_was_lost/));
set_conf($member, line_for($new));
$member->poll_query_until('postgres', q{SELECT current_setting('uidgen.registry') LIKE '%port=} . $new->port . q{,%'}) or die 'no reload';
$member->safe_psql('postgres', "SELECT uid_generator_create('later')");
is(protection('later'), "t\nregistry", 'its successor grants nodes at once, because nothing was lost');
is(protection('uid_default'), "t\nregistry", '... and keeps those that were granted');

$_->stop foreach $member, $old, $new;
done_testing();
