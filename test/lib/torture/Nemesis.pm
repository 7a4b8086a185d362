# What goes wrong in a round, and when. The dice choose the faults and their arguments; the log says when each was in
# force, and which errors it explains.
#
# To add a fault, write a function and add a line to %faults: its weight, and what a round must be like for it. The
# function calls in_force() before it breaks anything. When it returns, the fault is over, unless it has called finish() before.
package Nemesis;

use v5.36;

use Disk;
use IPC::Run;
use POSIX ();
use PostgreSQL::Test::Utils ();
use Recreation qw(kinds_of_things ways_to_recreate is_ever_gone sql_of sql_to_draw sql_to_recreate);
use Time::HiRes qw(sleep);
use UidgenTest;
use Clients;
use Clock;
use Installation;
use Trouble;

# The server is away, or its sessions are.
our @away = qw(08001 08006 57P01 57P02 57P03);
# A parallel worker that dies, or cannot start.
my @outage = (@away, '55000', 'XX000');

my %faults = (
	kill_backend => { weight => 8 },
	kill_background => { weight => 6 },
	kill_postmaster => { weight => 5 },
	stop_immediate => { weight => 4 },
	stop_fast => { weight => 4 },
	stop_smart => { weight => 2 },
	freeze_session => { weight => 4 },
	freeze_background => { weight => 3 },
	freeze_server => { weight => 2 },
	terminate => { weight => 3 },
	cancel => { weight => 3 },
	checkpoint => { weight => 2 },
	alter_generator => { weight => 4 },
	alter_sequence => { weight => 4 },
	alter_worker => { weight => 4 },
	move_counter => { weight => 4 },
	use_up_memory => { weight => 3 },
	recreate_database => { weight => 2 },
	recreate => { weight => 4 },
	step_clock => { weight => 25, if => sub { $_[0]->{setting}{clock} } },
	fill_disk => { weight => 10, if => sub { $_[0]->{setting}{disk} } },
	break_disk => { weight => 10, if => sub { $_[0]->{setting}{disk} } },
	upgrade => { weight => 3, if => sub { !defined $_[0]->{standby} } },
	restore_to_point => { weight => 3, if => sub { !defined $_[0]->{standby} && !$_[0]->{setting}->is_minimal } },
	promote => { weight => 4, if => sub { defined $_[0]->{standby} } });

# A failed assertion of PostgreSQL's own: without a postmaster a session with parallel workers exits inside its transaction.
my $of_orphan = 'TRAP: .*IsTransactionOrTransactionBlock.*"[^"]*pgstat\.c"';

sub new ($class, %opts)
{
	my $self = bless { %opts, began => now(), number => 0, faults => [], clock => [ [ 0, 0, 0 ] ], found => [], offset => 0,
		complaints => [$of_orphan] }, $class;
	$self->check_only;
	return $self;
}

# Nanoseconds, by the clock that workers write down.
sub now
{
	return int(Time::HiRes::clock_gettime(Time::HiRes::CLOCK_MONOTONIC()) * 1e9);
}

# ---------------------------------------------------------------------------------------------------------------
# The log.
# ---------------------------------------------------------------------------------------------------------------

# A fault is in force from now on, until finish(). What has been sent meanwhile may still come back `after` so many seconds.
sub in_force ($self, $name, $details, %opts)
{
	my $begin = now();
	push @{ $self->{faults} }, { begin => $begin, name => $name, details => $details, states => $opts{explains} // [],
		marks => $opts{marks} // '-', after => $opts{after} // 1 };
	$self->{say}->(sprintf '   %7.3f s  %-20s %s', ($begin - $self->{began}) / 1e9, $name, $details);
}

# Of all faults that are in force.
sub finish ($self)
{
	foreach my $fault (grep { !defined $_->{over} } @{ $self->{faults} })
	{
		$fault->{over} = now();
		$fault->{end} = $fault->{over} + int($fault->{after} * 1e9);
	}
}

# Something that no session can see.
sub found ($self, $what)
{
	push @{ $self->{found} }, $what;
	$self->{say}->("FOUND $what");
}

# Lines of servers' logs that a fault explains, as one pattern.
sub expected_complaints ($self)
{
	return join '|', @{ $self->{complaints} };
}

# For the checker, whatever is still in force. Its errors may arrive until `end`; it stalls no call after `over`.
sub write_logs ($self)
{
	my @lines = map {
		join("\t", $_->{begin}, $_->{end} // now(), $_->{name}, $_->{details},
			@{ $_->{states} } ? join(' ', @{ $_->{states} }) : '-', $_->{marks}, $_->{over} // $_->{end} // now()) . "\n"
	} @{ $self->{faults} };
	my @always = $self->{setting}->expected_errors;
	push @lines, join("\t", 0, now(), 'setting', '-', join(' ', @always), '-', now()) . "\n" if @always;
	PostgreSQL::Test::Utils::append_to_file("$self->{directory}/faults", join '', @lines);
	PostgreSQL::Test::Utils::append_to_file("$self->{directory}/clock",
		join '', map { join("\t", @$_[ 0 .. 2 ], $_->[3] // '*') . "\n" } @{ $self->{clock} });
}

# ---------------------------------------------------------------------------------------------------------------
# The course of a round.
# ---------------------------------------------------------------------------------------------------------------

# One fault after the other, until the time is over. The dice of a fault are its own, so the faults of a seed are the
# same, and in the same order, however long each of them takes.
sub attack_until ($self, $end)
{
	while (now() < $end && !@{ $self->{found} })
	{
		my $dice = $self->{dice}->part('fault ' . ++$self->{number});
		sleep($dice->fraction * $dice->one_of($self->{setting}{dense} ? (0, 0, 0.1, 0.3) : (0, 0.2, 1, 2)));
		my $name = $dice->weighted($self->weights);
		$self->choose_server($dice);
		$self->$name($dice);
		$self->finish;
	}
	$self->check_that_disks_fail;
}

# Where the next fault is. There is one server that sessions draw from.
sub choose_server
{
}

# The faults that there are.
sub catalog
{
	return %faults;
}

# In a dense round those that are over at once are likelier.
my %is_short = map { $_ => 1 } qw(kill_backend kill_background stop_immediate terminate cancel checkpoint
  alter_generator alter_sequence move_counter);

sub weight ($self, $name, $weight)
{
	return $self->{setting}{dense} && $is_short{$name} ? 5 * $weight : $weight;
}

# A name that can never mean a fault would make a test that does nothing.
sub check_only ($self)
{
	my @names = @{ $self->{only} };
	my %known = $self->catalog;
	$known{$_} || die "--only: there is no fault $_\n" foreach @names;
}

# Of the faults that this round, and whoever started it, want.
sub weights ($self)
{
	my %catalog = $self->catalog;
	my @names = @{ $self->{only} } ? @{ $self->{only} } : keys %catalog;
	my @possible = grep { $catalog{$_} && (!$catalog{$_}{if} || $catalog{$_}{if}->($self)) } @names;
	return map { $_ => $self->weight($_, $catalog{$_}{weight}) } @possible if @possible;
	$self->{say}->('   nothing of --only fits this round: checkpoints only') unless $self->{fits_nothing}++;
	return (checkpoint => 1);
}

sub faults_by_name ($self)
{
	my %faults;
	$faults{ $_->{name} }++ foreach @{ $self->{faults} };
	return %faults;
}

# ---------------------------------------------------------------------------------------------------------------
# Means.
# ---------------------------------------------------------------------------------------------------------------

# The output; undef after an error.
sub sql ($self, $sql, %opts)
{
	my ($out, $err) = ('', '');
	# IPC::Run dies if psql ends before it has read everything, because there is no server.
	my $status = eval {
		$self->{node}->psql($opts{database} // 'postgres', "SET lock_timeout = '5s';\n$sql", stdout => \$out, stderr => \$err);
	} // 2;
	return $status == 0 ? $out : undef;
}

# '' after a success.
sub error_of ($self, $sql, %opts)
{
	my $err = '';
	eval { $self->{node}->psql($opts{database} // 'postgres', $sql, stderr => \$err) };
	return $err;
}

# SHOW needs no snapshot, which a standby refuses if transactions are serializable by default.
sub answers ($self)
{
	return defined $self->sql('SHOW server_version');
}

sub wait_for_server ($self)
{
	return if poll_until('the server answers', sub { $self->answers }, 60);
	$self->found('the server does not come back');
}

sub start ($self)
{
	return $self->wait_for_server if start_node($self->{node}, fail_ok => 1);
	$self->found('the server does not start');
}

sub is_gone ($self)
{
	my $pid = $self->{node}{_pid};
	return !defined $pid || !kill 0, $pid;
}

# The postmaster ends if a recovery fails.
sub start_if_gone ($self)
{
	poll_until('the server answers, or has ended', sub { $self->is_gone || $self->answers }, 60);
	return $self->wait_for_server unless $self->is_gone;
	$self->{node}->kill9;
	return $self->start;
}

# Processes of the server whose title matches.
sub processes ($self, $pattern)
{
	return grep { title($_) =~ $pattern } sort { $a <=> $b } background_pids($self->{node});
}

my $session = qr/^\w+ \w+ \[local\]/;
my $background = qr/^(?:checkpointer|background writer|walwriter|autovacuum|archiver|logical replication|parallel worker
  |startup|walreceiver|walsender|uidgen)/x;

# $dice->one_of the processes there are.
sub choose_process ($self, $dice, $pattern)
{
	my $fraction = $dice->fraction;
	my @pids = $self->processes($pattern);
	return $pids[ int($fraction * @pids) ];
}

# What a process calls itself, without the name of its server.
sub title ($pid)
{
	open my $fh, '<', "/proc/$pid/cmdline" or return 'gone';
	my $title = <$fh> // 'gone';
	$title =~ s/[\0\s]+/ /g;
	$title =~ s/^postgres: (?:\w+: )?(.*?) ?$/$1/;
	return $title;
}

# ---------------------------------------------------------------------------------------------------------------
# Kills and stops.
# ---------------------------------------------------------------------------------------------------------------

# The server ends all its other processes, and itself if it was the one that recovers.
sub kill_processes ($self, $name, @pids)
{
	my %once = map { $_ => 1 } grep { defined } @pids;
	@pids = sort { $a <=> $b } keys %once or return;
	my $whom = join ', ', map { "$_ (" . title($_) . ')' } @pids;
	$self->in_force($name, $whom, explains => \@outage, marks => 'stall crash', after => 3);
	my @all = background_pids($self->{node});
	poll_until('the server notices', sub { $self->is_gone || !grep { kill 0, $_ } @all }, 10) if kill 'KILL', @pids;
	$self->start_if_gone;
}

sub kill_backend ($self, $dice)
{
	return $self->kill_processes('kill_backend', map { $self->choose_process($dice, $session) } 1 .. $dice->one_of(1, 1, 1, 5));
}

sub kill_background ($self, $dice)
{
	return $self->kill_processes('kill_background', $self->choose_process($dice, $background));
}

# Whether commits wait for a standby.
sub waits_for_standby ($self)
{
	return defined $self->{standby} && $self->{setting}->is_synchronous;
}

sub kill_postmaster ($self, $dice)
{
	$self->in_force('kill_postmaster', '', explains => \@outage, marks => 'stall crash');
	my @orphans = background_pids($self->{node});
	$self->{node}->kill9;
	# They hold the shared memory, so that no server can start.
	poll_until('orphans end', sub { !grep { kill 0, $_ } @orphans }, 30)
	  or $self->found("processes do not notice that the postmaster is gone: @orphans");
	sleep($dice->fraction);
	$self->start;
}

sub stop ($self, $mode, $marks, $dice)
{
	$self->in_force("stop_$mode", '', explains => \@outage, marks => $marks);
	$self->{node}->stop($mode, fail_ok => 1) or $self->found("the server does not stop ($mode)");
	sleep($dice->fraction);
	$self->start;
}

sub stop_immediate ($self, $dice)
{
	return $self->stop('immediate', 'stall crash', $dice);
}

sub stop_fast ($self, $dice)
{
	return $self->stop('fast', 'stall', $dice);
}

# Sessions end first. One that waits for a synchronous standby never does if the standby has to connect again meanwhile.
sub stop_smart ($self, $dice)
{
	$self->wait_for_synchronous_standby if $self->waits_for_standby;
	return $self->stop('smart', 'stall', $dice);
}

# ---------------------------------------------------------------------------------------------------------------
# Processes that stand still, or are told to end.
# ---------------------------------------------------------------------------------------------------------------

# Thawed at the latest when this program ends.
sub freeze ($self, $name, $whom, $seconds, @pids)
{
	return unless @pids;
	$self->in_force($name, "$whom for $seconds s", marks => 'stall');
	# Some may have ended meanwhile.
	my @frozen = grep { eval { freeze_process($_) } } @pids;
	sleep($seconds);
	thaw($_) foreach @frozen;
}

sub freeze_one ($self, $dice, $name, $pattern)
{
	my $seconds = $dice->one_of(0.05, 0.5, 2, 4);
	my $pid = $self->choose_process($dice, $pattern);
	return $self->freeze($name, defined $pid ? title($pid) : 'nobody', $seconds, defined $pid ? $pid : ());
}

sub freeze_session ($self, $dice)
{
	return $self->freeze_one($dice, 'freeze_session', $session);
}

sub freeze_background ($self, $dice)
{
	local $self->{node} = $self->{standby} if $dice->chance(30) && defined $self->{standby};
	return $self->freeze_one($dice, 'freeze_background', $background);
}

sub freeze_server ($self, $dice)
{
	return $self->freeze('freeze_server', 'all', $dice->one_of(0.05, 0.5, 2), background_pids($self->{node}));
}

# Of all sessions.
sub signal_sessions ($self, $name, $function, @states)
{
	$self->in_force($name, 'all sessions', explains => \@states);
	$self->sql("SELECT $function(pid) FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()");
}

sub terminate ($self, $dice)
{
	return $self->signal_sessions('terminate', 'pg_terminate_backend', @outage);
}

sub cancel ($self, $dice)
{
	return $self->signal_sessions('cancel', 'pg_cancel_backend', '57014');
}

sub checkpoint ($self, $dice)
{
	$self->in_force('checkpoint', '');
	$self->sql('CHECKPOINT');
}

sub end_prepared ($self, $database)
{
	my $ends = "SELECT format('ROLLBACK PREPARED %L', gid) FROM pg_prepared_xacts WHERE database = current_database()";
	$self->sql($_, database => $database) foreach split /\n/, $self->sql($ends, database => $database) // '';
}

# ---------------------------------------------------------------------------------------------------------------
# Commands beside those that draw.
# ---------------------------------------------------------------------------------------------------------------

sub alter_system ($self, $change)
{
	$self->sql("ALTER SYSTEM SET $change");
	$self->sql('SELECT pg_reload_conf()');
}

sub command ($self, $dice, $name, @commands)
{
	my $database = $dice->one_of($self->{paths}->databases);
	my $sql = $dice->one_of(@commands);
	$self->in_force($name, "$database: $sql");
	$self->sql($sql, database => $database);
}

# The schema that the extension is in; never seen by others.
my $rename_for_a_moment = <<'END' =~ s/\n/ /gr;
DO $$ BEGIN
EXECUTE format('ALTER SCHEMA %I RENAME TO elsewhere',
(SELECT nspname FROM pg_extension JOIN pg_namespace AS n ON n.oid = extnamespace WHERE extname = 'uidgen'));
PERFORM pg_sleep(0.1);
RAISE 'rolled back';
END $$
END

sub alter_generator ($self, $dice)
{
	my $generator = 'uid_generators.' . $dice->one_of(qw(leaf twitter shared own far js53));
	return $self->command($dice, 'alter_generator',
		"SELECT uid_generator_alter('$generator', lease_ms => 2000)",
		"SELECT uid_generator_alter('$generator', lease_ms => 1000)",
		"SELECT uid_generator_alter('$generator', tolerance_ms => 3000)",
		"SELECT uid_generator_raise('$generator', uid_next('$generator'))",
		"BEGIN; SELECT uid_generator_alter('$generator', lease_ms => 1500); ROLLBACK",
		"BEGIN; SELECT uid_generator_alter('$generator', max_ahead_ms => 120000); ROLLBACK",
		"SELECT uid_generator_alter('uid_generators.shared', spread => true)",
		"SELECT uid_generator_alter('uid_generators.shared', spread => false)",
		"SELECT uid_generator_alter('uid_generators.ring', boost_power => 1)",
		"BEGIN; SELECT uid_default_set('uid_generators.shared'); SELECT pg_sleep(0.1); ROLLBACK",
		$rename_for_a_moment);
}

# From the next id on a generator has the worker id that it is given.
sub alter_worker ($self, $dice)
{
	my $database = $dice->one_of($self->{paths}->databases);
	my $generator = q{'uid_generators.altered'};
	my $worker = 1 + ++$self->{altered}{$database};
	$self->in_force('alter_worker', "$database: worker id $worker");
	my $is_altered = defined $self->sql("SELECT uid_generator_alter($generator, worker_number => $worker)", database => $database);
	my $next = $self->sql("SELECT worker_id FROM uid_decode(uid_next($generator), $generator)", database => $database);
	$self->found("in $database a generator is altered, and its next id does not have worker id $worker")
	  if $is_altered && ($next // $worker) ne $worker;
}

sub alter_sequence ($self, $dice)
{
	my $segment = $dice->one_of(qw(uid_segments.named plain of_orders));
	return $self->command($dice, 'alter_sequence',
		"ALTER SEQUENCE $segment CACHE 5",
		"ALTER SEQUENCE $segment MAXVALUE 9000000000000000000",
		"BEGIN; ALTER SEQUENCE $segment RESTART 7; ROLLBACK",
		"BEGIN; ALTER SEQUENCE $segment RENAME TO other; SELECT pg_sleep(0.1); ROLLBACK",
		q{SELECT segment_alter('named', step => 50)},
		q{BEGIN; SELECT segment_alter('named', step => 3); ROLLBACK});
}

# Upwards, and by nobody else: what has been reserved is invalid, and no value comes twice.
sub move_counter ($self, $dice)
{
	my $by = $dice->one_of(1000, 100000, 100000000);
	my $database = $dice->one_of($self->{paths}->databases);
	my $move = $dice->one_of('setval', 'segment_set') . "('moved', 20000000 + last_value + $by)";
	$self->in_force('move_counter', "$database: $move");
	my $drawn = $self->sql("SELECT $move FROM moved; SELECT segment_next('moved'::regclass)", database => $database);
	my ($moved_to, $value) = split /\n/, $drawn // '';
	$self->found("after a move to $moved_to a session draws $value") if defined $value && $value < $moved_to;
}

# ---------------------------------------------------------------------------------------------------------------
# Things that run out.
# ---------------------------------------------------------------------------------------------------------------

# A session gets no more memory than it has. Its stack may still grow, because a session whose stack cannot is killed.
sub use_up_memory ($self, $dice)
{
	my $seconds = $dice->one_of(0.2, 1, 3);
	my $pid = $self->choose_process($dice, $session) // return;
	my ($kilobytes) = map { /^VmData:\s+(\d+)/ ? $1 : () } split /^/, eval { PostgreSQL::Test::Utils::slurp_file("/proc/$pid/status") } // '';
	return unless defined $kilobytes;
	my $limit = 1024 * ($kilobytes + $dice->one_of(0, 0, 16, 256));
	# 58P01: of a library that is loaded only now.
	$self->in_force('use_up_memory', title($pid) . ": $limit bytes for $seconds s", explains => [ '53200', '58P01' ]);
	my $former = `prlimit --pid $pid --data --output=SOFT --noheadings --raw` =~ s/\s+//gr;
	my $set = sub { IPC::Run::run([ 'prlimit', '--pid', $pid, "--data=$_[0]:" ], '>', '/dev/null', '2>&1') };
	sleep($seconds) if $former ne '' && $set->($limit);
	$set->($former);
}

# A database that is made again with the same numbers must not meet what the server remembers of the former one.
sub recreate_database ($self, $dice)
{
	$self->in_force('recreate_database', 'twin');
	$self->sql('CREATE DATABASE mould');
	$self->sql('CREATE EXTENSION IF NOT EXISTS uidgen; CREATE SEQUENCE IF NOT EXISTS s', database => 'mould');
	foreach my $life (1 .. 2)
	{
		$self->sql('DROP DATABASE IF EXISTS twin');
		$self->sql('CREATE DATABASE twin TEMPLATE mould OID 50000') // next;
		my $first = $self->sql('SELECT count(*) FROM uid_internal.uid_live_segments(); SELECT last_value FROM s;'
			  . " SELECT segment_next('s'::regclass); SELECT last_value FROM s", database => 'twin') // next;
		my ($slots, $before, $value, $after) = split /\n/, $first;
		$self->found("a new database has $slots slots of the one before it") if $slots;
		$self->found("in a new database a sequence at $before gave $value") if $value < $before;
		$self->sql("SELECT setval('s', $after, true)", database => 'mould');
	}
	$self->sql('DROP DATABASE IF EXISTS twin');
}

# The fault before may still end a session.
my @explained_here = ('53200', @away);

# While what a session draws from is not there: a relation, an object, a function or a schema.
my @explained_without = qw(42P01 42704 42883 3F000);

# Two sessions draw from a thing while it is dropped and created again. No value comes twice, and each session's come in
# order, but those of a ring: sessions take from several of them.
sub recreate ($self, $dice)
{
	my ($kind, $way) = ($dice->one_of(kinds_of_things()), $dice->one_of(ways_to_recreate()));
	$self->in_force('recreate', "$kind, $way");
	# The process that writes rows tries again after an error. PostgreSQL calls a table internal that is gone meanwhile.
	push @{ $self->{complaints} }, 'node writer XX000 (?:LOG:  could not write the row of worker_node: could not open relation'
	  . '|DETAIL:  Ids do not depend|CONTEXT:  SQL function "uid_write_node")' if $kind eq 'extension';
	my @in_torn = (database => 'torn');
	# Both may exist already. Then these two fail.
	$self->sql('CREATE DATABASE torn');
	$self->sql('CREATE EXTENSION uidgen', @in_torn);
	$self->sql(sql_of($kind, 'create', ++$self->{lives}), @in_torn);
	my $sessions = background_loop($self->{node}, clients => 2, dbname => 'torn', on_error_stop => 0, pace => 0.01,
		verbosity => 'sqlstate', sql => sql_to_draw($kind, $way));
	my $have_ended = sub { grep { waitpid $_, POSIX::WNOHANG } @{ $sessions->{pids} } };
	poll_until('both sessions draw, or have ended', sub { $have_ended->() || !grep { !-s } @{ $sessions->{logs} } }, 60)
	  or $self->found("$kind: a session does not draw");
	my $done = 0;
	foreach (1 .. 3)
	{
		sleep(0.2 * $dice->fraction);
		$done++ if defined $self->sql(sql_to_recreate($kind, $way, ++$self->{lives}), @in_torn);
	}
	$self->found("$kind: it is never dropped and created again, $way") unless $done || $have_ended->();
	$self->check_recreation($kind, $way, stop_loop($sessions));
	$self->sql(sql_of($kind, 'drop'), @in_torn);
	$self->sql('CREATE EXTENSION IF NOT EXISTS uidgen', @in_torn);
}

sub check_recreation ($self, $kind, $way, @logs)
{
	my %is_explained = map { $_ => 1 } @explained_here, is_ever_gone($way) ? @explained_without : (),
	  $self->{setting}->expected_errors;
	my %seen;
	foreach my $log (@logs)
	{
		my @values = split /\n/, PostgreSQL::Test::Utils::slurp_file($log);
		my @unordered = $kind eq 'ring' ? () : grep { $values[$_] <= $values[ $_ - 1 ] } 1 .. $#values;
		$self->found("$kind, created again: $values[$unordered[0]] after $values[$unordered[0] - 1]") if @unordered;
		$seen{$_}++ foreach @values;
		my @states = PostgreSQL::Test::Utils::slurp_file("$log.err") =~ /^(?:ERROR|FATAL): +(\w+)/mg;
		my @unexpected = grep { !$is_explained{$_} } @states;
		$self->found("$kind, created again: $way: a session ends in $unexpected[0]") if @unexpected;
	}
	my @twice = grep { $seen{$_} > 1 } sort keys %seen;
	$self->found("$kind, created again: $twice[0] comes twice") if @twice;
}

# ---------------------------------------------------------------------------------------------------------------
# Clocks. None of these faults stalls a call: P5's bounds are on the monotonic clock.
# ---------------------------------------------------------------------------------------------------------------

sub set_offset ($self, $offset)
{
	my $from = now();
	set_clock($self->{node}, sprintf '%+.3f', $offset);
	# libfaketime has read the file when a call that began after this has returned.
	push @{ $self->{clock} }, [ $from, now() + 100_000_000, int($offset * 1e6), $self->{node}{uidgen_clock} ];
}

# Backwards, and after a while to where it was: meanwhile a generator may refuse. Or forwards, for good.
sub step_clock ($self, $dice)
{
	# PostgreSQL with assertions aborts when its clock goes back by more than 24 days.
	my $far_back = $self->{setting}{assertions} ? -86400 * 20 : -86400 * 365;
	my $step = $dice->one_of(-0.001, -0.02, -0.5, -1.9, -5, -60, -3600, $far_back, 0.002, 0.5, 3, 60, 3600, 86400 * 30);
	my $seconds = $dice->one_of(0.1, 1, 3);
	my $there = $self->{offset} + $step;
	# A call that has waited reads the clock at least every 100 ms.
	$self->in_force('step_clock', $step < 0 ? "$step s for $seconds s" : "$step s", explains => ['55000'], after => 2);
	$self->set_offset($there);
	if ($step < 0)
	{
		sleep($seconds);
		$self->set_offset($self->{offset});
	}
	else
	{
		$self->{offset} = $there;
	}
}

# ---------------------------------------------------------------------------------------------------------------
# Disks. What fails, and how, is in the file that disk.cpp reads.
# ---------------------------------------------------------------------------------------------------------------

# PostgreSQL answers an error of the log, and of fsync, with a PANIC and recovers from the log.
my $of_disk = 'PANIC:  (?:could not (?:write|fsync|fdatasync|extend|open|create|close|rename)|.*(?:No space left|Input/output error))'
  . '|terminated by signal 6';

# Where a checkpoint writes and flushes in any case. A clean stop also writes, without a flush, in the third place.
my %is_met = (checkpoint => qr{^/(?:pg_wal/|global/)?$}, clean_stop => qr{^/(?:pg_wal/|global/|pg_stat)?$});

# While the disk fails the server may be told to write a checkpoint, or to stop cleanly.
sub fail_disk ($self, $dice, $name, $error, @calls)
{
	my $calls = $dice->one_of(@calls);
	my $where = $dice->one_of('/pg_wal/', '/pg_wal/', '/base/', '/global/', '/pg_stat', '/pg_stat', '/');
	# Half a page would need full_page_writes.
	$where = '/pg_stat' if $calls eq 'short';
	my $seconds = $dice->one_of(0.01, 0.2, 1, 3);
	my $order = $dice->weighted(none => 3, checkpoint => 4, clean_stop => 3);
	# A checkpoint writes nothing there.
	$order = 'clean_stop' if $where eq '/pg_stat' && $order eq 'checkpoint';
	$self->in_force($name, "$calls in $where for $seconds s" . ($order eq 'none' ? '' : ", with a $order" =~ s/_/ /r),
		explains => [ @outage, '53100', '58030' ], marks => 'stall crash', after => 3);
	push @{ $self->{complaints} }, $of_disk;
	my @before = failed_calls($self->{node});
	# PostgreSQL 15 never ends if it is told to stop while it recovers from a crash. Nothing below /pg_stat makes it crash.
	kill 'INT', $self->{node}{_pid} if $order eq 'clean_stop' && $where ne '/pg_stat';
	set_disk($self->{node}, $error, $calls, $where);
	my $is_done = $order eq 'checkpoint' && $self->error_of('CHECKPOINT') !~ /connection to server (?:on|at) /;
	$is_done = $self->{node}->stop('fast', fail_ok => 1) || !defined $self->{node}{_pid} if $order eq 'clean_stop';
	sleep($seconds);
	set_disk($self->{node});
	$is_done && $order eq 'clean_stop' ? $self->start : $self->start_if_gone;
	my @failed = map { $_ - shift @before } failed_calls($self->{node});
	$self->{say}->(sprintf '%35s%d calls have failed, %d of them on files of uidgen', '', @failed);
	my $must_fail = $is_done && $order ne 'none' && $where =~ $is_met{$order} && ($calls =~ /write/ || $where ne '/pg_stat');
	push @{ $self->{failed_calls} }, $failed[0] if $must_fail && $calls ne 'short';
}

# In faults in which some call must have failed.
sub check_that_disks_fail ($self)
{
	my @failed = @{ $self->{failed_calls} // [] };
	$self->found('the test does not make disks fail: in ' . @failed . ' faults no call has failed') if @failed > 1 && !grep { $_ } @failed;
}

sub fill_disk ($self, $dice)
{
	return $self->fail_disk($dice, 'fill_disk', 'ENOSPC', 'write', 'write', 'short');
}

sub break_disk ($self, $dice)
{
	return $self->fail_disk($dice, 'break_disk', 'EIO', 'write', 'sync', 'sync', 'write sync');
}

# ---------------------------------------------------------------------------------------------------------------
# pg_upgrade.
# ---------------------------------------------------------------------------------------------------------------

# A new cluster of the same PostgreSQL takes the server's place. The history is the same.
sub upgrade ($self, $dice)
{
	my @options = $dice->chance(50) ? ('--link') : ();
	my $old = $self->{node};
	$self->in_force('upgrade', "@options", explains => \@outage, marks => 'stall');
	$self->{servers}->hold;
	$old->stop('fast', fail_ok => 1) or $self->found('the server does not stop (fast)');
	my $new = $self->{servers}->new_cluster($old);
	# No session comes any more. pg_upgrade refuses a server with prepared transactions.
	$self->start;
	$self->end_prepared($_) foreach $self->{paths}->databases;
	$old->stop('fast', fail_ok => 1) or $self->found('the server does not stop (fast)');
	$self->found('pg_upgrade fails') unless run_pg_upgrade($old, $new, @options);
	$self->{node} = $new;
	$self->start;
	$self->{servers}->follow($new, 0);
}

sub run_pg_upgrade ($old, $new, @options)
{
	local %ENV = (%ENV, %{ $new->{uidgen_env} // {} });
	return PostgreSQL::Test::Utils::system_log(pg_upgrade_command($old, $new, @options)) == 0;
}

# ---------------------------------------------------------------------------------------------------------------
# Failover and restore.
# ---------------------------------------------------------------------------------------------------------------

# False: the server has just crashed.
sub back_up ($self, $node, $directory)
{
	my @backup = ('pg_basebackup', '-D', $directory, '-d', $node->connstr('postgres'), '--checkpoint', 'fast', '--no-sync');
	return PostgreSQL::Test::Utils::system_log(@backup) == 0;
}

# Starts another copy of the data directory, which replays what the present one has logged up to a restore point.
sub put_back ($self, $copy, $target)
{
	my $node = $self->{node};
	my $data = $node->data_dir;
	$node->stop('immediate', fail_ok => 1);
	rename $data, "$data.gone" or die "could not rename $data: $!";
	rename $copy, $data or die "could not rename $copy: $!";
	$node->append_conf('postgresql.conf', "restore_command = 'cp \"$data.gone/pg_wal/%f\" \"%p\"'\n"
		  . "recovery_target_name = '$target'\nrecovery_target_action = promote\n");
	PostgreSQL::Test::Utils::append_to_file("$data/recovery.signal", '');
	$self->start;
	poll_until('the copy has replayed', sub { ($self->sql('SELECT pg_is_in_recovery()') // '') =~ /f/ }, 60)
	  or $self->found('the copy does not end its recovery');
	PostgreSQL::Test::Utils::system_or_bail('rm', '-rf', "$data.gone");
}

# What was given after the point is another history's: only rows that survive must not come again.
sub restore_to_point ($self, $dice)
{
	my $node = $self->{node};
	my $copy = $node->data_dir . '.backup';
	my $point = "point $self->{number}";
	$self->in_force('restore_to_point', $point, marks => 'stall crash', after => 5, # longer than a connection
		explains => [ @outage, $self->{setting}->errors_in_hot_standby ]);
	if ($self->back_up($node, $copy))
	{
		sleep($dice->fraction);
		# With a transaction id, so that the commit flushes the log up to the point.
		my $log_point = "SET synchronous_commit = local; SELECT pg_create_restore_point('$point'), pg_current_xact_id()";
		my $is_logged = defined $self->sql($log_point);
		sleep($dice->fraction);
		$self->{servers}->hold;
		$self->put_back($copy, $point) if $is_logged;
		$self->{servers}->follow($node, $is_logged ? 1 : 0);
	}
	PostgreSQL::Test::Utils::system_or_bail('rm', '-rf', $copy);
}

# With all its processes, as when its machine is gone.
sub kill_server ($self, $node)
{
	my @processes = background_pids($node);
	$node->kill9;
	kill 'KILL', @processes;
	poll_until('the processes end', sub { !grep { kill 0, $_ } @processes }, 30);
}

# Kills the primary, promotes its standby, and returns the old primary.
sub fail_over ($self)
{
	my ($old, $new) = ($self->{node}, delete $self->{standby});
	$self->kill_server($old);
	$new->promote;
	$self->{node} = $new;
	$self->wait_for_server;
	return $old;
}

# The primary's machine is gone. With an asynchronous standby the values that it gave are another history's: only those
# in rows that survive must not come again. The machine may come back, as the standby of the new primary.
sub promote ($self, $dice)
{
	my $synchronous = $self->{setting}->is_synchronous;
	$self->in_force('promote', $self->{setting}{topology}, explains => \@outage, marks => 'stall crash', after => 3);
	# What the standby has not got is lost, if no session waits for it.
	my @walsenders = $dice->chance(50) ? $self->processes(qr/^walsender/) : ();
	freeze_process($_) foreach @walsenders;
	sleep(0.5) if @walsenders;
	$self->{servers}->hold;
	my $old = $self->fail_over;
	# Nothing waits for a standby that is not there.
	$self->alter_system("synchronous_standby_names = ''");
	$self->{servers}->follow($self->{node}, $synchronous ? 0 : 1);
	$self->finish;
	sleep(2 * $dice->fraction);
	return $self->come_back($dice, $old) if $dice->chance(70);
}

# A former primary becomes the standby of the present one, by pg_rewind or from a base backup.
sub come_back ($self, $dice, $old, %opts)
{
	my ($new, $data) = ($self->{node}, $old->data_dir);
	my $source = $new->connstr('postgres');
	my $rewinds = $dice->chance(60) && !$opts{never_rewinds};
	$self->in_force('come_back', $old->name . ($rewinds ? ', by pg_rewind' : ''), explains => \@outage,
		marks => 'stall');
	my $conf = PostgreSQL::Test::Utils::slurp_file("$data/postgresql.conf");
	$self->alter_system('full_page_writes = on');
	$self->sql('CHECKPOINT') if $rewinds;
	my @rewind = ('pg_rewind', '--target-pgdata', $data, '--source-server', $source, '--no-sync');
	if (!$rewinds || PostgreSQL::Test::Utils::system_log(@rewind) != 0)
	{
		$self->found('pg_rewind fails') if $rewinds;
		PostgreSQL::Test::Utils::system_or_bail('rm', '-rf', $data);
		$self->back_up($new, $data) or die 'no backup of the new primary';
	}
	# The settings of its own, among them its port.
	write_file("$data/postgresql.conf", $conf);
	$old->enable_streaming($new);
	start_node($old, fail_ok => 1) or $self->found('the former primary does not start');
	$self->{standby} = $old;
	$self->make_synchronous if $self->{setting}->is_synchronous;
}

# From now on commits wait for the standby.
sub make_synchronous ($self)
{
	$self->alter_system("synchronous_standby_names = '*'");
	return $self->wait_for_synchronous_standby;
}

sub wait_for_synchronous_standby ($self)
{
	my $is = "SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'";
	poll_until('a synchronous standby', sub { ($self->sql($is) // '') eq '1' }, 60)
	  or $self->found('the standby did not become synchronous');
}

1;
