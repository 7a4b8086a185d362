# A member with a thousand generators, whose registry is 20 ms away each way.
#
# Expected: all of them draw, and none is refused by a registry that answers. Few calls serve them, and the file of grants
# is written once a call, and not at all while nothing changes.
use UidgenTest 'preloaded';

my $generators = 1000;
my $clients = 50;

my $registry = make_registry(new_server('registry', conf => "autovacuum = off\nlog_parameter_max_length = 0\n"));

my $directory = PostgreSQL::Test::Utils::tempdir_short();
write_file("$directory/mode", "far 0.02\n");
start_proxy($registry, $directory, "$directory/mode");
my $line = registry_line($registry) =~ s/host=\S+/host=$directory/r;
my $member = new_server('member', conf => "uidgen.registry = '$line'\nautovacuum = off\nmax_connections = 200\n");
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

# Calls that the registry was asked for.
my $log_at = 0;
sub calls
{
	my $log = slurp_file($registry->logfile, $log_at);
	$log_at += length $log;
	return scalar(() = $log =~ /CALL uid_internal\.uid_fleet_call/g);
}

# What the registrar has written to files.
sub written
{
	my ($pid) = background_pids($member, 'registrar');
	my ($bytes) = slurp_file("/proc/$pid/io") =~ /^wchar: (\d+)/m;
	return $bytes;
}

sub wait_for_renewals ($count)
{
	$member->poll_query_until('postgres', "SELECT min(renewals) >= $count FROM uid_registry_status") or die 'no renewal';
}

my $grants = $member->data_dir . '/global/pgsql_tmp_uidgen.grants';
my $seconds = draw_all('a thousand newcomers draw, and none is refused');
is($registry->safe_psql('postgres', "SELECT count(*) FROM uid_fleet WHERE state = 'live'"), $generators, '... each with a node of its own');
# Each as the other one has it.
my $nodes = "SELECT md5(string_agg(generator || ' ' || node, ',' ORDER BY node))";
is($member->safe_psql('postgres', "$nodes FROM uid_registry_status"), $registry->safe_psql('postgres', "$nodes FROM uid_fleet WHERE state = 'live'"),
	'... which is that of the registry');
my $calls = calls();
my $written = written();
note("$seconds s, $calls calls, $written bytes written, of which the file has " . -s $grants);
# Each client waits for its draws one after another, so that there are as many calls as it has draws, at least.
cmp_ok($calls, '<', 100, '... by calls for all that wait');
cmp_ok($written, '<', 10_000_000, '... with one write of the file for each of them');

draw_all('they draw again');
is(calls(), 0, '... and nothing is asked');
is(written(), $written, '... nor written');

set_conf($member, "uidgen.registry = '$line application_name=again'");
wait_for_renewals(2);
my $renewals = calls();
# A call ends after 100 ms of the registry's lock, in which a busy machine serves fewer.
cmp_ok($renewals, '<=', $generators / 10, 'renewals need few calls');
cmp_ok(written() - $written, '<', 1.5 * $renewals * -s $grants, '... with one write of the file for each of them');

# The first draw after a start writes the incarnations of all.
$registry->stop;
my $inode = (stat $grants)[1];
$member->stop;
start_node($member);
$member->safe_psql('postgres', "SELECT uid_next('uid_generators.g1')");
my $next_inode = (stat $grants)[1];
isnt($next_inode, $inode, 'after a restart without the registry the incarnations are written');
draw_all('... and all generators go on');
is((stat $grants)[1], $next_inode, '... with this one write');
$registry->start;
$registry->safe_psql('postgres', 'SELECT uid_fleet_fence(cancel => true)');
# A server that stops has counted everything.
my $read = $registry->safe_psql('postgres', "SELECT sum(idx_tup_read) FROM pg_stat_user_indexes WHERE relname = 'uid_fleet_node'");
note("$read entries read");
cmp_ok($read, '<', 100 * $generators, 'a newcomer of a pool with many nodes reads few entries of indexes');
wait_for_renewals(1);
calls();

# A registry that cannot answer a call of more than one request.
$registry->safe_psql('postgres', <<'SQL');
ALTER EXTENSION uidgen DROP PROCEDURE uid_internal.uid_fleet_call;
ALTER PROCEDURE uid_internal.uid_fleet_call RENAME TO honest;
CREATE PROCEDURE uid_internal.uid_fleet_call(requests bytea, INOUT answers bytea DEFAULT NULL) LANGUAGE plpgsql AS $$
BEGIN
  IF length(requests) > 1500 THEN
    RAISE 'too much at once';
  END IF;
  CALL uid_internal.honest(requests, answers);
END
$$;
SQL
$member->safe_psql('postgres', "SELECT uid_generator_create('h' || n, 'js53') FROM generate_series(0, 9) n");
$member->safe_psql('postgres', "SET uidgen.max_wait = '2min'; SELECT uid_next('uid_generators.h0')");
my @waiting = map { my $session = hold_open($member); send_query($session, "SET uidgen.max_wait = '2min'; SELECT uid_next('uid_generators.h$_')"); $session } 1 .. 9;
is(scalar(grep { (finish_query($_))[0] =~ /^\d+$/ } @waiting), 9, 'what a call of several requests does not get, they get one by one');


# One that has time for one request at a time.
learn_messages($registry);
$registry->safe_psql('postgres', <<'SQL');
CREATE OR REPLACE PROCEDURE uid_internal.uid_fleet_call(requests bytea, INOUT answers bytea DEFAULT NULL) LANGUAGE plpgsql AS $$
DECLARE
  first bytea := message_of(jsonb_populate_record(NULL::fleet_request, fields)) FROM rows_in(requests, 'fleet_request') fields LIMIT 1;
BEGIN
  CALL uid_internal.honest(first, answers);
END
$$;
SQL
$member->safe_psql('postgres', "SELECT uid_generator_create('h' || n, 'js53') FROM generate_series(10, 16) n");
@waiting = map { my $session = hold_open($member); send_query($session, "SET uidgen.max_wait = '2min'; SELECT uid_next('uid_generators.h$_')"); $session } 10 .. 15;
is(scalar(grep { (finish_query($_))[0] =~ /^\d+$/ } @waiting), 6, 'what the registry had no time for is asked again at once');

# All 16 nodes are in use. One that is refused asks again later each time.
calls();
my ($state, $error) = sqlstate($member, "SET uidgen.max_wait = '6s'; SELECT uid_next('uid_generators.h16')");
like($error, qr/all 16 nodes of the layout are in use/, 'the last generator gets no node');
cmp_ok(calls(), '<', 10, '... and asks again after a pause that grows');

done_testing();
