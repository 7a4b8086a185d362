# The servers of a round, and the sessions that draw on them: one server, or a server with a standby.
package Servers;

use v5.36;

use Disk;
use IPC::Run;
use Nemesis;
use Paths;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Time::HiRes ();
use UidgenTest;
use Clock;
use Trouble;

sub new ($class, %opts)
{
	return bless { %opts, history => 0, nodes => [] }, $class;
}

# Of all servers that the round has started, also those that are gone.
sub add_node ($self, $node)
{
	push @{ $self->{nodes} }, $node;
	return $node;
}

sub create ($self)
{
	my $setting = $self->{setting};
	my $paths = $self->{paths} = Paths->new($setting);
	my $node = $self->{primary} = $self->new_server('server');
	use_fake_clock($node) if $setting->{clock};
	use_shaky_disk($node) if $setting->{disk};
	start_node($node);
	$paths->create($node);
	$self->create_standby($node) if $setting->{topology} ne 'single';
	write_file("$self->{directory}/streams", $paths->streams);
	$self->write_targets($node);
}

sub new_server ($self, $name)
{
	my $setting = $self->{setting};
	return $self->add_node(new_node("$name$self->{number}", allows_streaming => $setting->is_minimal ? 0 : 1, conf => $setting->conf));
}

# An empty one, to which pg_upgrade carries everything. The clock and the disk are those of the server so far.
sub new_cluster ($self, $old)
{
	my $new = $self->new_server('upgraded' . ++$self->{upgrades} . '_');
	share_environment($new, $old);
	return $new;
}

sub create_standby ($self, $node)
{
	my $standby = $self->{standby} = $self->add_node(PostgreSQL::Test::Cluster->new("standby$self->{number}"));
	share_environment($standby, $node);
	$node->backup('base');
	$standby->init_from_backup($node, 'base', has_streaming => 1);
	start_node($standby);
	$node->wait_for_catchup($standby, 'replay');
	make_synchronous($node) if $self->{setting}->is_synchronous;
}

# The clock and the disk of one server are those of another one.
sub share_environment ($node, $other)
{
	my @names = qw(uidgen_env uidgen_clock torture_disk);
	@{$node}{@names} = @{$other}{@names};
}

sub make_synchronous ($node)
{
	set_conf($node, "synchronous_standby_names = '*'");
	$node->poll_query_until('postgres', "SELECT count(*) = 1 FROM pg_stat_replication WHERE sync_state = 'sync'")
	  or die 'the standby did not become synchronous';
}

# Where sessions connect to.
sub write_targets ($self, $node)
{
	write_file("$self->{directory}/target.$_", $node->connstr($_) . "\n$self->{history}\n") foreach $self->{paths}->databases;
}

# Sessions connect nowhere until follow() tells where to go.
sub hold ($self)
{
	write_file("$self->{directory}/target.$_", "host=/nowhere\n$self->{history}\n") foreach $self->{paths}->databases;
}

# After a promotion or a restore. If the server may have lost commits, another history begins, with the rows that
# survived.
sub follow ($self, $new, $is_other)
{
	$self->{history} += $is_other;
	if ($is_other)
	{
		$self->write_down_rows($new, "survivors$self->{history}", 1);
		$new->safe_psql($_, 'TRUNCATE copied') foreach $self->{paths}->databases;
	}
	return $self->write_targets($new);
}

sub nemesis ($self, %opts)
{
	return Nemesis->new(%opts, setting => $self->{setting}, paths => $self->{paths}, node => $self->{primary},
		standby => $self->{standby}, directory => $self->{directory}, servers => $self);
}

# ---------------------------------------------------------------------------------------------------------------
# Sessions.
# ---------------------------------------------------------------------------------------------------------------

sub start_sessions ($self, $dice)
{
	my $setting = $self->{setting};
	my $count = $setting->{sessions} + $setting->{dense};
	return map { $self->start_session($_, $dice->part("session $_")) } 1 .. $count;
}

# The last sessions draw in bulk. The first one may be slow.
sub statements ($self, $where, $number, $dice)
{
	return $self->{paths}->statements_in_bulk($where) if $number > $self->{setting}{sessions};
	my @statements = $self->{paths}->statements($where, $dice);
	return @statements unless $number == 1 && $self->{setting}{discard_caches};
	return ("0\t-\tSET debug_discard_caches = 1\n", map { s/\{\d+\}/{5}/gr } @statements);
}

# Where a session connects to, and what it sends there.
sub assignment ($self, $number, $dice)
{
	my @databases = $self->{paths}->databases;
	my $database = $databases[ $number % @databases ];
	return ("target.$database", $self->statements($database, $number, $dice));
}

# A connection lasts so many milliseconds at most, so that a smart shutdown comes to its end.
sub life_ms
{
	return 4000;
}

sub start_session ($self, $number, $dice)
{
	my $directory = $self->{directory};
	my ($target, @statements) = $self->assignment($number, $dice);
	write_file("$directory/logs/$number.statements", @statements);
	my $pace_us = $number <= $self->{setting}{sessions} ? $self->{setting}{pace_us} : 0;
	my @command = ("$self->{programs}/worker", "$directory/$target", "$directory/logs/$number.statements",
		"$directory/logs/$number.log", $dice->seed, $number, $pace_us, $self->life_ms, "$directory/stop");
	return IPC::Run::start(\@command, '<', '/dev/null', '>', "$directory/logs/$number.out", '2>&1');
}

# Values that the nemesis was given, as a session's log (log.hpp): by the name of the stream in a database, or of a member.
sub write_down ($self, $what, $database, $begin, $end, %values)
{
	my $real = real_offset();
	my $connection = ++$self->{connections}{$what};
	foreach my $name (sort keys %values)
	{
		my @values = @{ $values{$name} };
		append_to_file("$self->{directory}/logs/$what.log",
			pack('L7 a8 x4 q3 q*', 0x54524f54, $self->{paths}->number($database, $name), 0, $self->{history}, $connection, 0,
				scalar @values, '00000', $begin, $end, $real, @values));
	}
}

# As real_offset_ns() of log.hpp.
sub real_offset
{
	while (1)
	{
		my $before = Nemesis::now();
		my $real = int(Time::HiRes::time() * 1e9);
		return $real - $before if Nemesis::now() - $before < 1_000_000;
	}
}

# What the tables hold, as a session's log: of the database as it is now.
sub write_down_rows ($self, $node, $what, $all)
{
	foreach my $database ($self->{paths}->databases)
	{
		my $path = "$self->{directory}/logs/$what.$database";
		write_file("$path.target", $node->connstr($database) . "\n$self->{history}\n");
		write_file("$path.statements", $self->{paths}->rows($database, $all));
		system_log("$self->{programs}/worker", "$path.target", "$path.statements", "$path.log", 0, 0, 0, 0, 'once') == 0
		  or die "could not write down the rows of $database";
	}
}

# ---------------------------------------------------------------------------------------------------------------
# The end of a round.
# ---------------------------------------------------------------------------------------------------------------

# Of sessions that are gone, and of the extension's own processes.
my $locks_left = <<'END';
SELECT locktype, relation, mode, pid, coalesce(backend_type, 'gone')
  FROM pg_locks LEFT JOIN pg_stat_activity AS process USING (pid)
  WHERE pid IS DISTINCT FROM pg_backend_pid()
    AND (process.pid IS NULL OR backend_type = 'client backend' OR backend_type LIKE 'uidgen%')
END

# Nothing may be left of sessions that are gone.
sub check_end ($self, $nemesis)
{
	$self->check_leaks($nemesis);
	$self->check_session($nemesis);
	$self->write_down_rows($nemesis->{node}, 'rows', 0);
	$self->check_stop($nemesis);
}

sub check_leaks ($self, $nemesis)
{
	$nemesis->end_prepared($_) foreach $self->{paths}->databases;
	my $left;
	poll_until('locks are released', sub { ($left = $nemesis->sql($locks_left) // 'no answer') eq '' }, 30)
	  or $nemesis->found("locks are left: $left");
}

# A session that has called everything very often holds no more memory and files than one that has called it a few times.
# What is free does not count: the caches of PostgreSQL take half a megabyte at a time.
sub check_session ($self, $nemesis)
{
	my ($database) = $self->{paths}->databases;
	my $calls = join ', ', $self->{paths}->calls;
	my $grown;
	my $reads = <<"END";
SELECT count(*) FROM (SELECT $calls FROM generate_series(1, 100)) AS calls;
SELECT sum(used_bytes) AS bytes, (SELECT count(*) FROM pg_ls_dir('/proc/self/fd')) AS files
  FROM pg_backend_memory_contexts \\gset before_
\\o /dev/null
SELECT \$\$SELECT $calls\$\$ FROM generate_series(1, 1000) \\gexec
\\o
SELECT sum(used_bytes) - :before_bytes, (SELECT count(*) FROM pg_ls_dir('/proc/self/fd')) - :before_files
  FROM pg_backend_memory_contexts
END
	# A clock that was put right may keep a generator from drawing for a while.
	poll_until('a session calls everything', sub { defined($grown = $nemesis->sql($reads, database => $database)) }, 60)
	  or return $nemesis->found('a session cannot call everything: ' . $nemesis->error_of($reads, database => $database));
	my ($bytes, $files) = $grown =~ /(-?\d+)\|(-?\d+)\s*\z/ or return $nemesis->found("a session says what it holds: $grown");
	# Files of catalogs that others have changed meanwhile are opened again; what a call leaves would be a thousand.
	$nemesis->found("a session has grown by $bytes bytes and $files files") if $bytes > 200_000 || $files > 50;
}

# The System V segment of a server, and the POSIX ones that its processes have mapped.
sub shared_memory ($node)
{
	my @lines = split /\n/, slurp_file($node->data_dir . '/postmaster.pid');
	my ($id) = $lines[6] =~ /(\d+)\s*$/;
	my %mapped;
	foreach my $pid ($lines[0], background_pids($node))
	{
		open my $fh, '<', "/proc/$pid/maps" or next;
		while (<$fh>) { $mapped{$1} = 1 if m{(/dev/shm/PostgreSQL\.\S+)} }
	}
	return ($id, keys %mapped);
}

sub check_stop ($self, $nemesis)
{
	my $node = $nemesis->{node};
	my ($id, @mapped) = shared_memory($node);
	my @processes = background_pids($node);
	if (!$node->stop('fast', fail_ok => 1))
	{
		$nemesis->found('the server does not stop (fast)');
		$node->stop('immediate', fail_ok => 1);
		return;
	}
	$nemesis->found("shared memory is left: $_") foreach grep { -e } @mapped;
	$nemesis->found("shared memory is left: $id")
	  if grep { /^\s*\d+\s+$id\s/ } split /\n/, slurp_file('/proc/sysvipc/shm');
	$nemesis->found("a process is left: $_") foreach grep { kill 0, $_ } @processes;
}

1;
