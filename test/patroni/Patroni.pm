# A registry that Patroni manages, with two servers and one etcd, and members that draw from it all the while.
#
# A test of this directory says "use lib 'test/patroni'", and is one of a server that is preloaded.
#
#   start_cluster();                         # the leader is one, its standby two; without Patroni the test is skipped
#   my @members = start_members('a', 'b');   # servers with that registry
#   my @loops = draw_all_the_time(@members); # rows, and generators that are new to the registry
#   ask('one', $sql);                        # its result there; undef: it failed, or the server is away
#   wait_until('two takes over', sub { accepts_writes('two') });
#   patronictl('pause', '--wait');
#   kill_now('one', 'patroni', 'server');    # either of them, or both
#   judge(@loops);                           # assertions: no value came twice, no row failed
#
# test/check has unpacked or installed Debian's packages. Each process is started here, has its files in the directory of the
# test and ends with it.
package Patroni;

use v5.36;

use Exporter 'import';
use IPC::Run;
use POSIX ();
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep time);
use UidgenTest;
use Clients;
use Fleet;
use Trouble;

our @EXPORT = qw(start_cluster start_members start_patroni start_etcd stop_etcd draw_all_the_time judge ask accepts_writes status_of
  wait_until has_standby wait_for_standby patronictl patroni_of server_processes kill_now time_without_leader draw_as_newcomer nodes_of
  is_fenced_by_term make_it_the_registry wait_for_renewals says_in_log note_figure);

my $programs = "$ENV{UIDGEN_WORK}/patroni/usr";
my $patience = 180;    # seconds; far more than Patroni takes
my ($longest, $bound) = (60, 1);    # seconds, of the registry. A grant that was just renewed outlasts the time without a leader
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

sub says_in_log ($name, $pattern)
{
	return slurp_file(log_of($name)) =~ $pattern;
}

sub stop_process ($name, $signal)
{
	my $process = delete $pid{$name} or return;
	kill $signal, $process;
	kill 'CONT', $process;
	foreach (1 .. 300)
	{
		return if waitpid($process, POSIX::WNOHANG) != 0;
		sleep 0.1;
	}
	kill 'KILL', $process;
	waitpid $process, 0;
}

sub patroni_of ($name)
{
	return $pid{$name};
}

sub postmaster_of ($name)
{
	open my $file, '<', "$home/$name/postmaster.pid" or return;
	my ($process) = (<$file> // '') =~ /^(\d+)/;
	return $process;
}

# The postmaster is the first one.
sub server_processes ($name)
{
	my $postmaster = postmaster_of($name);
	return ($postmaster, split / /, slurp_file("/proc/$postmaster/task/$postmaster/children"));
}

# Patroni first, because it would start its server again.
sub kill_now ($name, @what)
{
	my $postmaster = postmaster_of($name);
	stop_process($name, 'KILL') if grep { $_ eq 'patroni' } @what;
	kill 'KILL', $postmaster if grep { $_ eq 'server' } @what;
}

# Patroni ends its server, if it is alive itself.
sub stop_everything
{
	stop_process($_, 'TERM') foreach @names;
	foreach my $name (grep { defined postmaster_of($_) } @names)
	{
		my @processes = eval { server_processes($name) };
		kill 'CONT', @processes;
		kill 'QUIT', $processes[0] if @processes;
	}
	stop_etcd();
}

$SIG{TERM} = $SIG{INT} = sub { exit 1 };

END
{
	my $status = $?;
	stop_everything() if defined $home;
	$? = $status;
}

# The cluster

sub start_cluster
{
	$ENV{PATH} = "$ENV{PATH}:$programs/bin";
	$ENV{PYTHONPATH} = "$programs/lib/python3/dist-packages";
	plan skip_all => 'Patroni or etcd is not available' unless is_program('patroni') && is_program('etcd');
	$ENV{PGCONNECT_TIMEOUT} = 5;    # of a server that stands still
	note_figure('%s', `patroni --version` =~ s/\n//r);
	$home = PostgreSQL::Test::Utils::tempdir();
	$sockets = PostgreSQL::Test::Utils::tempdir_short();
	$port{$_} = PostgreSQL::Test::Cluster::get_free_port() foreach 'etcd', 'etcd_peer', @names;
	start_etcd();
	foreach my $name (@names)
	{
		$rest_port{$name} = PostgreSQL::Test::Cluster::get_free_port();
		write_configuration($name);
	}
	start_patroni('one');
	wait_until('one is the leader', sub { accepts_writes('one') });
	start_patroni('two');
	wait_for_standby('one');
	make_registry_on('one');
}

sub make_registry_on ($name)
{
	chomp(my $share = `pg_config --sharedir`);
	system_or_bail('psql', '-XAtq', '-h', $sockets, '-p', $port{$name}, '-U', 'postgres', '-d', 'postgres', '-v', 'keeps=restarts',
		'-v', "longest=$longest", '-v', "bound=$bound", '-f', "$share/extension/uidgen_registry.sql");
	ask($name, 'CREATE ROLE uid_fleet LOGIN IN ROLE uid_member') // die 'no role';
}

sub start_etcd
{
	my ($client, $peer) = map { "http://127.0.0.1:$port{$_}" } 'etcd', 'etcd_peer';
	start_process(
		'etcd', 'etcd', '--data-dir', "$home/etcd",
		'--listen-client-urls', $client, '--advertise-client-urls', $client,
		'--listen-peer-urls', $peer, '--initial-advertise-peer-urls', $peer,
		'--initial-cluster', "default=$peer");
}

sub stop_etcd
{
	stop_process('etcd', 'TERM');
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
    failsafe_mode: true
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

sub patronictl ($command, @arguments)
{
	my $said;
	my $succeeds = IPC::Run::run([ 'patronictl', '-c', "$home/one.yml", $command, @arguments, 'registry' ], '<', \undef, '>&', \$said);
	ok($succeeds, "patronictl $command succeeds") or diag($said);
}

sub ask ($name, $sql)
{
	my ($result, $error);
	IPC::Run::run([ 'psql', '-XAtqw', '-h', $sockets, '-p', $port{$name}, '-U', 'postgres', '-d', 'postgres', '-c', $sql ],
		'>', \$result, '2>', \$error) or return;
	chomp $result;
	return $result;
}

# Columns of the view for administrators.
sub status_of ($name, $columns)
{
	return ask($name, "SELECT $columns FROM uid_registry.status") // 'no answer';
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

sub has_standby ($leader)
{
	return (ask($leader, "SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming' AND application_name IN ('one', 'two')") // 0) == 1;
}

sub wait_for_standby ($leader)
{
	wait_until("$leader has a standby", sub { has_standby($leader) });
}

# Between the last success on the old leader and the first one on the new. They may be the same.
sub time_without_leader ($old, $new, $event)
{
	my $last = time;
	$event->();
	my $was_away = $old ne $new;
	wait_until("$new is the leader",
		sub {
			my $now = time;
			return 1 if $was_away && accepts_writes($new);
			my $is_there = accepts_writes($old);
			$last = $now if $is_there;
			$was_away ||= !$is_there;
			return 0;
		});
	return time - $last;
}

# Members

sub start_members (@member_names)
{
	my $line = "host=$sockets,$sockets port=$port{one},$port{two} dbname=postgres user=uid_fleet connect_timeout=3";
	return map {
		my $node = new_node($_, conf => "uidgen.registry = '$line'\n");
		start_uidgen($node);
		$node;
	} @member_names;
}

# Two loops on each member. The first one inserts. Each script of the second one makes a generator, which is a newcomer at the
# registry, draws from it for a while, and drops it. Ids of another layout have its name before them.
sub draw_all_the_time (@members)
{
	return map { insert($_), visit($_) } @members;
}

sub insert ($member)
{
	$member->safe_psql('postgres', 'CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT uid_next(), at timestamptz DEFAULT clock_timestamp())');
	my $sql = 'INSERT INTO orders SELECT FROM generate_series(1, 10) RETURNING id';
	my $loop = background_loop($member, clients => 2, sql => $sql, on_error_stop => 0, pace => 0.05);
	$member->poll_query_until('postgres', 'SELECT count(*) > 100 FROM orders') or die 'no inserts';
	return { %$loop, inserts_on => $member };
}

sub visit ($member)
{
	$member->safe_psql('postgres', <<'END');
CREATE FUNCTION ids_of(generator regclass) RETURNS SETOF text LANGUAGE plpgsql AS $$
BEGIN
  FOR i IN 1 .. 20 LOOP
    RETURN QUERY SELECT 'visitor ' || id FROM unnest(uid_next_array(generator, 20)) AS id;
    PERFORM pg_sleep(0.1);
  END LOOP;
END $$;
END
	return background_loop($member, on_error_stop => 0, pace => 0.2, sql => <<'END');
SET uidgen.max_wait = '1s';
DO $$ BEGIN PERFORM uid_generator_create('visitor', datacenter_bits => 0, worker_bits => 7, sequence_bits => 3); END $$;
SELECT ids_of('uid_generators.visitor');
DROP SEQUENCE uid_generators.visitor;
END
}

# Ends the loops.
sub judge (@loops)
{
	note_figure('%d values', assert_unique(stop_loop(@loops)));
	my @inserts = grep { defined $_->{inserts_on} } @loops;
	is(join('', map { slurp_file("$_.err") } map { @{ $_->{logs} } } @inserts), '', 'no insert failed');
	foreach my $member (map { $_->{inserts_on} } @inserts)
	{
		note_figure('%s: longest time between two inserts: %s s', $member->name,
			$member->safe_psql('postgres', 'SELECT round(extract(epoch FROM max(pause)), 2) FROM (SELECT at - lag(at) OVER (ORDER BY at) AS pause FROM orders) p'));
	}
}

# A new generator of a member is a newcomer at the registry. Returns the error of its first draw.
sub draw_as_newcomer ($member, $generator)
{
	$member->safe_psql('postgres', "SELECT uid_generator_create('$generator')");
	my $error;
	$member->psql('postgres', "SET uidgen.max_wait = '10s'; SELECT uid_next('uid_generators.$generator')", stderr => \$error);
	return $error;
}

# A server is fenced because a member has shown it the term of another one.
sub is_fenced_by_term ($name, $term, $what)
{
	my $seen = '';
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	ok(poll_until($what, sub { ($seen = status_of($name, 'larger_term, reason, fenced_until IS NOT NULL')) eq "$term|proof|t" }), $what)
	  or diag("$seen instead of the term $term");
}

# The administrator's decision for a former registry, by the statement that members show.
sub make_it_the_registry ($name, $member)
{
	my $statement;
	poll_until('the statement', sub { ($statement) = try_sql($member, 'SELECT error, hint, last_error FROM uid_registry_status') =~ /(SELECT uid_registry\.fence\(\d+\))/ });
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	ok(defined $statement && defined ask($name, $statement), 'an administrator makes it the registry again');
}

sub nodes_of (@members)
{
	return join ' ', map { node_of($_) } @members;
}

# Each of them asks when half of its grant is used.
sub wait_for_renewals ($leader, @members)
{
	my $ports = join '|', map { $_->port } @members;
	my $since = ask($leader, 'SELECT clock_timestamp()');
	wait_until("$leader has renewed all grants",
		sub { (ask($leader, "SELECT count(*) FROM uid_registry.node WHERE holder ~ ':($ports),.*uid_default' AND heard > '$since'") // 0) == @members });
}

sub note_figure ($format, @values)
{
	note(sprintf "figure: $format", @values);
}

1;
