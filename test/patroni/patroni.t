# A registry that Patroni manages: one etcd, two servers, and two members that insert all the while. The leader is switched
# over, then killed while its standby lacks the last grants, and comes back.
#
# Expected: no insert fails and no id comes twice. Members keep their nodes. Each event raises one fence, for which newcomers
# wait; after the switchover an administrator says that nothing was lost.
#
# test/check has unpacked Debian's packages into the work directory. Each process is started here, has its files in the
# directory of the test and ends with it.
use IPC::Run;
use POSIX ();
use Time::HiRes qw(sleep time);
use UidgenTest 'preloaded';
use Clients;
use Fleet;
use Trouble;

my $programs = "$ENV{UIDGEN_WORK}/patroni/usr";
my $patience = 180;    # seconds; far more than Patroni takes
my ($longest, $bound) = (60, 1);    # seconds, of the registry
my @names = ('one', 'two');
my $password = join '', map { sprintf '%08x', rand 2**32 } 1 .. 4;
my ($home, $sockets, %port, %rest_port, %pid);

# Processes

sub is_program ($name)
{
	return scalar grep { -x "$_/$name" } split /:/, $ENV{PATH};
}

sub start_process ($name, @command)
{
	$pid{$name} = fork() // die "could not fork: $!";
	return if $pid{$name} != 0;
	open STDOUT, '>>', log_of($name) or POSIX::_exit(1);
	open STDERR, '>&', \*STDOUT or POSIX::_exit(1);
	chdir $home;
	exec(@command) or POSIX::_exit(1);
}

sub log_of ($name)
{
	return "$PostgreSQL::Test::Utils::log_path/$name.log";
}

sub stop_process ($name, $signal)
{
	my $process = delete $pid{$name} or return;
	kill $signal, $process;
	foreach (1 .. 300)
	{
		return if waitpid($process, POSIX::WNOHANG) != 0;
		sleep 0.1;
	}
	kill 'KILL', $process;
	waitpid $process, 0;
}

sub postmaster_of ($name)
{
	open my $file, '<', "$home/$name/postmaster.pid" or return;
	my ($process) = (<$file> // '') =~ /^(\d+)/;
	return $process;
}

# Patroni ends its server, if it is alive itself.
sub stop_everything
{
	stop_process($_, 'TERM') foreach @names;
	foreach my $process (grep { defined } map { postmaster_of($_) } @names)
	{
		kill 'QUIT', $process;
	}
	stop_process('etcd', 'TERM');
}

$SIG{TERM} = $SIG{INT} = sub { exit 1 };

END
{
	my $status = $?;
	stop_everything();
	$? = $status;
}

# The cluster

sub start_etcd
{
	my $client = 'http://127.0.0.1:' . ($port{etcd} = PostgreSQL::Test::Cluster::get_free_port());
	my $peer = 'http://127.0.0.1:' . PostgreSQL::Test::Cluster::get_free_port();
	start_process(
		'etcd', 'etcd', '--data-dir', "$home/etcd",
		'--listen-client-urls', $client, '--advertise-client-urls', $client,
		'--listen-peer-urls', $peer, '--initial-advertise-peer-urls', $peer,
		'--initial-cluster', "default=$peer");
}

sub write_configuration ($name)
{
	chomp(my $bindir = `pg_config --bindir`);
	append_to_file("$home/$name.yml", <<"END");
scope: registry
name: $name
restapi:
  listen: 127.0.0.1:$rest_port{$name}
  connect_address: 127.0.0.1:$rest_port{$name}
  authentication: {username: patroni, password: $password}
etcd3: {host: '127.0.0.1:$port{etcd}'}
bootstrap:
  dcs:
    ttl: 20
    loop_wait: 2
    retry_timeout: 5
    postgresql: {use_pg_rewind: true}
  initdb: [{encoding: UTF8}, no-locale, {auth-local: trust}, {auth-host: scram-sha-256}]
  pg_hba:
    - local all all trust
    - host all all 127.0.0.1/32 scram-sha-256
    - host replication all 127.0.0.1/32 scram-sha-256
postgresql:
  listen: 127.0.0.1:$port{$name}
  connect_address: 127.0.0.1:$port{$name}
  data_dir: $home/$name
  bin_dir: $bindir
  pgpass: $home/$name.pgpass
  parameters: {unix_socket_directories: $sockets}
  authentication:
    superuser: {username: postgres, password: $password}
    replication: {username: replicator, password: $password}
END
}

sub start_patroni ($name)
{
	start_process($name, 'patroni', "$home/$name.yml");
}

# The result of a statement; undef: it failed, or the server is away.
sub ask ($name, $sql)
{
	my ($result, $error);
	IPC::Run::run([ 'psql', '-XAtqw', '-h', $sockets, '-p', $port{$name}, '-U', 'postgres', '-d', 'postgres', '-c', $sql ],
		'>', \$result, '2>', \$error) or return;
	chomp $result;
	return $result;
}

sub accepts_writes ($name)
{
	return (ask($name, 'SELECT pg_is_in_recovery()') // '') eq 'f';
}

sub wait_until ($what, $condition)
{
	my $end = time + $patience;
	until ($condition->())
	{
		die "waited in vain until $what" if time > $end;
		foreach my $name (keys %pid)
		{
			die "$name has ended" if waitpid($pid{$name}, POSIX::WNOHANG) != 0;
		}
		sleep 0.1;
	}
}

sub wait_for_standby ($leader)
{
	wait_until("$leader has a standby",
		sub { (ask($leader, "SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming' AND application_name IN ('one', 'two')") // 0) == 1 });
}

# Between the last success on the old leader and the first one on the new.
sub time_without_leader ($old, $new, $start)
{
	my $last = time;
	my $running = $start->();
	wait_until("$new is the leader",
		sub {
			my $now = time;
			return 1 if accepts_writes($new);
			$last = $now if accepts_writes($old);
			return 0;
		});
	my $seconds = time - $last;
	ok($running->finish, 'patronictl switchover succeeds') if defined $running;
	return $seconds;
}

# The members

sub new_member ($name)
{
	my $line = "host=$sockets,$sockets port=$port{one},$port{two} dbname=postgres user=uid_fleet connect_timeout=3";
	my $node = new_node($name, conf => "uidgen.registry = '$line'\n");
	start_uidgen($node);
	$node->safe_psql('postgres', 'CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT uid_next(), at timestamptz DEFAULT clock_timestamp())');
	return $node;
}

# A new generator of a member is a newcomer at the registry. Returns the error of its first draw.
sub draw_as_newcomer ($member, $generator)
{
	$member->safe_psql('postgres', "SELECT uid_generator_create('$generator')");
	my $error;
	$member->psql('postgres', "SET uidgen.max_wait = '10s'; SELECT uid_next('uid_generators.$generator')", stderr => \$error);
	return $error;
}

sub nodes_of
{
	return join ' ', map { node_of($_) } @_;
}

# Each of them asks when half of its grant is used.
sub wait_for_renewals ($leader, $since, @members)
{
	my $ports = join '|', map { $_->port } @members;
	wait_until("$leader has renewed all grants",
		sub { (ask($leader, "SELECT count(*) FROM uid_registry.node WHERE holder ~ ':($ports),.*uid_default' AND heard > '$since'") // 0) == @members });
}

sub fences ($leader) { return ask($leader, 'SELECT fence FROM uid_registry.registry') }
sub note_figure ($format, @values) { note(sprintf "figure: $format", @values) }

# The story

$ENV{PATH} = "$ENV{PATH}:$programs/bin";
$ENV{PYTHONPATH} = "$programs/lib/python3/dist-packages";
plan skip_all => 'Patroni or etcd is not available' unless is_program('patroni') && is_program('etcd');
$home = PostgreSQL::Test::Utils::tempdir();
$sockets = PostgreSQL::Test::Utils::tempdir_short();
start_etcd();
foreach my $name (@names)
{
	$port{$name} = PostgreSQL::Test::Cluster::get_free_port();
	$rest_port{$name} = PostgreSQL::Test::Cluster::get_free_port();
	write_configuration($name);
}
start_patroni('one');
wait_until('one is the leader', sub { accepts_writes('one') });
start_patroni('two');
wait_for_standby('one');
chomp(my $script = `pg_config --sharedir`);
system_or_bail('psql', '-XAtq', '-h', $sockets, '-p', $port{one}, '-U', 'postgres', '-d', 'postgres', '-v', 'keeps=restarts', '-v', "longest=$longest", '-v', "bound=$bound",
	'-f', "$script/extension/uidgen_registry.sql");
ask('one', 'CREATE ROLE uid_fleet LOGIN IN ROLE uid_member') // die 'no role';
my @members = map { new_member($_) } 'berlin', 'osaka';
my $insert = q{INSERT INTO orders SELECT FROM generate_series(1, 10) RETURNING id; DO 'BEGIN PERFORM pg_sleep(0.02); END'};
my @loops = map { background_loop($_, clients => 2, sql => $insert, on_error_stop => 0) } @members;
$_->poll_query_until('postgres', 'SELECT count(*) > 100 FROM orders') or die 'no inserts' foreach @members;
my $kept = nodes_of(@members);

my $seconds = time_without_leader('one', 'two',
	sub {
		return IPC::Run::start([ 'patronictl', '-c', "$home/one.yml", 'switchover', '--leader', 'one', '--candidate', 'two', '--force', 'registry' ],
			'<', \undef, '>', log_of('switchover'), '2>&1');
	});
note_figure('switchover: %.1f s without a leader', $seconds);
my $since = ask('two', 'SELECT clock_timestamp()');
like(draw_as_newcomer($members[0], 'after_switchover'), qr/may have lost grants/, 'after a switchover newcomers wait');
is(fences('two'), 1, '... for one fence');
ask('two', 'SELECT uid_registry.nothing_was_lost()') // die 'the statement fails';
ok(poll_until('a newcomer', sub { try_sql($members[0], q{SELECT uid_next('uid_generators.after_switchover')}) =~ /^\d+$/ }), '... until an administrator says that nothing was lost');
wait_for_renewals('two', $since, @members);
is(nodes_of(@members), $kept, '... and members keep their nodes');
wait_for_standby('two');

my $walsender = ask('two', "SELECT pid FROM pg_stat_replication WHERE application_name = 'one'");
freeze_process($walsender);
is(draw_as_newcomer($members[1], 'late'), '', 'a newcomer gets a node just before the failover');
my $late = node_of($members[1], 'uid_generators.late');
$seconds = time_without_leader('two', 'one',
	sub {
		my $postmaster = postmaster_of('two');
		kill 'KILL', $pid{two}, $postmaster;
		waitpid delete $pid{two}, 0;
		kill 'KILL', $walsender;
		return;
	});
note_figure('failover: %.1f s without a leader', $seconds);
$since = ask('one', 'SELECT clock_timestamp()');
is(ask('one', "SELECT count(*) FROM uid_registry.node WHERE holder ~ 'late'"), 0, 'the new leader does not know it');
$members[1]->safe_psql('postgres', "SELECT uid_next('uid_generators.late')");
like(draw_as_newcomer($members[0], 'after_failover'), qr/may have lost grants/, '... and lets newcomers wait');
note_figure('failover: newcomers wait for %s s', ask('one', "SELECT extract(epoch FROM fenced_until - '$since')::int FROM uid_registry.status"));
is(fences('one'), 2, '... for one fence');
wait_for_renewals('one', $since, @members);
is(nodes_of(@members), $kept, 'members keep their nodes');
wait_until('the late newcomer is known', sub { (ask('one', "SELECT node FROM uid_registry.node WHERE holder ~ 'late'") // -1) == $late });
pass('... and the late newcomer its own');
start_patroni('two');
wait_for_standby('one');

my @logs = map { stop_loop($_) } @loops;
note_figure('%d rows inserted by both members', assert_unique(@logs));
is(join('', map { slurp_file("$_.err") } @logs), '', 'no insert failed');
foreach my $member (@members)
{
	note_figure('%s: longest time between two inserts: %s s', $member->name,
		$member->safe_psql('postgres', 'SELECT round(extract(epoch FROM max(pause)), 2) FROM (SELECT at - lag(at) OVER (ORDER BY at) AS pause FROM orders) p'));
	$member->stop('fast');
}
done_testing();
