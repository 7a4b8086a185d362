# A member with a thousand generators, in a layout of 1,024 nodes.
#
# Expected: all of them draw, and none is refused. Few calls serve them, and renewals need a handful. After a restart all
# have their nodes, without the registry.
use UidgenTest 'preloaded';
use Fleet;

my $generators = 1000;
my $clients = 50;

my $registry = new_node('registry', conf => "track_functions = all\nautovacuum = off\n");
start_node($registry);
make_registry($registry);
my $member = new_server('member', conf => registry_setting($registry) . "autovacuum = off\nmax_connections = 200\n");
$member->safe_psql('postgres', "SELECT uid_generator_create('g' || n) FROM generate_series(0, $generators - 1) n");

my $script = $member->basedir . '/draw.sql';
write_file($script, "\\set n :client_id * :each + :k\n\\set k :k + 1\nSELECT uid_next(('uid_generators.g' || :n)::regclass);\n");

# Each generator draws an id. Returns the seconds that it took.
sub draw_all ($what)
{
	my $each = $generators / $clients;
	my $began = Time::HiRes::time();
	$member->command_ok([ 'pgbench', '-n', '-f', $script, '-c', $clients, '-j', 2, '-t', $each, '-D', "each=$each", '-D', 'k=0', $member->connstr('postgres') ], $what);
	return Time::HiRes::time() - $began;
}

# Calls since the last time.
my $called = 0;
sub calls
{
	my $calls = $registry->safe_psql('postgres', q{SELECT sum(calls) FROM pg_stat_user_functions WHERE funcname = 'grant'}) - $called;
	$called += $calls;
	return $calls;
}

my $seconds = draw_all('a thousand newcomers draw, and none is refused');
is($registry->safe_psql('postgres', 'SELECT count(*) FROM uid_registry.node'), $generators, '... each with a node of its own');
# Each as the other one has it.
is($member->safe_psql('postgres', q{SELECT md5(string_agg(generator || ' ' || node, ',' ORDER BY node)) FROM uid_registry_status}),
	$registry->safe_psql('postgres', q{SELECT md5(string_agg(substring(holder, 'generator ([^,]*)') || ' ' || node, ',' ORDER BY node)) FROM uid_registry.node}),
	'... which is that of the registry');
my $calls = calls();
note("$seconds s, $calls calls");
# Each client waits for its draws one after another, so that there are as many calls as it has draws, at least.
cmp_ok($calls, '<', 100, '... by calls for all that wait');

draw_all('they draw again');
is(calls(), 0, '... and nothing is asked');

set_conf($member, "uidgen.registry = '" . registry_line($registry) . " application_name=again'");
$member->poll_query_until('postgres', 'SELECT min(renewals) >= 2 FROM uid_registry_status') or die 'no renewal';
cmp_ok(calls(), '<=', $generators / 50, 'renewals need a handful of calls');

$registry->stop;
$member->restart;
draw_all('after a restart all have their nodes');

$member->stop;
done_testing();
