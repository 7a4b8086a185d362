# A member with a thousand generators, in a layout of 1,024 nodes.
#
# Expected: all of them draw, and none is refused. Few calls serve them, and renewals need a handful, which store what has
# changed, not the whole file of grants each time. After a restart all have their nodes, without the registry, even if the
# last store is not whole.
use UidgenTest 'preloaded';
use Fleet;
use Trouble;
use List::Util 'sum0';

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

# What the registrar has written, as /proc counts it: files, not sockets.
sub written
{
	return sum0(map { slurp_file("/proc/$_/io") =~ /^wchar: (\d+)/m } background_pids($member, 'registrar'));
}
my $grants = $member->data_dir . '/global/pgsql_tmp_uidgen.grants';

# All members renew, because the line has changed.
my $renewals = 1;
sub renew_all ($name)
{
	$renewals++;
	set_conf($member, "uidgen.registry = '" . registry_line($registry) . " application_name=$name'");
	$member->poll_query_until('postgres', "SELECT min(renewals) >= $renewals FROM uid_registry_status") or die 'no renewal';
}

my $before = written();
renew_all('again');
cmp_ok(calls(), '<=', $generators / 50, 'renewals need a handful of calls');
my $bytes = written() - $before;
note("$bytes bytes written, the file has " . -s $grants);
# A renewal stores its token, and then its grant.
cmp_ok($bytes, '<', 8 * -s $grants, '... which write the file of grants a few times');

unlink $grants;
renew_all('without_a_file');
ok(-e $grants, 'a file that is gone is written anew');

my $granted = q{SELECT string_agg(format('%s %s %s', generator, node, granted_until), ',' ORDER BY node) FROM uid_registry_status};
my $before_crash = $member->safe_psql('postgres', $granted);

# As after a crash in the middle of a store: the file has become longer, but its end has not been written.
$registry->stop;
$member->stop;
append_to_file($grants, "\0" x 200);
start_node($member);
draw_all('after a crash all have their nodes');
ok($member->safe_psql('postgres', $granted) eq $before_crash, '... by the latest grants');
is($member->safe_psql('postgres', 'SELECT count(*) FROM uid_registry_status WHERE fleet > 0'), $generators, '... in their fleet');

$member->stop;
done_testing();
