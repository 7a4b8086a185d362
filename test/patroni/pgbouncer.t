# PgBouncer is between a member and its registry. Each call is one statement, so that both modes work.
use IPC::Run;
use UidgenTest 'preloaded';
use Fleet;

my ($pgbouncer) = grep { -x } map { "$_/pgbouncer" } "$ENV{UIDGEN_WORK}/patroni/usr/sbin", '/usr/sbin', split /:/, $ENV{PATH};
plan skip_all => 'PgBouncer is not there' unless defined $pgbouncer;

my $registry = new_node('registry');
start_node($registry);
make_registry($registry);
my $member = new_node('member', conf => "uidgen.max_wait = '1min'\n");
start_node($member);
$member->safe_psql('postgres', 'CREATE EXTENSION uidgen');
foreach my $mode ('session', 'transaction')
{
	my $directory = PostgreSQL::Test::Utils::tempdir_short();
	my $port = PostgreSQL::Test::Cluster::get_free_port();
	append_to_file("$directory/users", "\"uid_fleet\" \"\"\n");
	append_to_file("$directory/ini", join "\n", '[databases]', 'postgres = host=' . $registry->host . ' port=' . $registry->port,
		'[pgbouncer]', "unix_socket_dir = $directory", "listen_port = $port", "pool_mode = $mode", 'default_pool_size = 1',
		'auth_type = trust', "auth_file = $directory/users", '');
	my $said = '';
	my $run = IPC::Run::start([ $pgbouncer, "$directory/ini" ], '<', '/dev/null', '>&', \$said);
	set_conf($member, "uidgen.registry = 'host=$directory port=$port dbname=postgres user=uid_fleet'");
	$member->poll_query_until('postgres', qq{SELECT current_setting('uidgen.registry') LIKE '%$directory%'}) or die 'no reload';
	$member->safe_psql('postgres', "SELECT uid_generator_create('by_$mode')");
	is($member->safe_psql('postgres', "SELECT count(uid_next('uid_generators.by_$mode')) FROM generate_series(1, 10)"), 10, "a generator draws, pool_mode $mode");
	like($registry->safe_psql('postgres', q{SELECT string_agg(holder, ' ') FROM uid_registry.node}), qr/by_$mode/, '... in a grant of the registry') or diag $said;
	$run->kill_kill;
}
$_->stop foreach $member, $registry;
done_testing();
