# Runs rounds of torture: torture.pl SECONDS SEED FIRST-ROUND DENSE PROGRAMS KIND [NEMESIS,...]. KIND
# is "server" or "fleet". Started by run.sh, in an environment like that of a TAP test. Prints what it does and finds; exits
# with 1 if it found anything.
use v5.36;

our $out;

BEGIN
{
	# PostgreSQL::Test::Utils sends STDOUT to a log of its own.
	open $out, '>&', \*STDOUT or die "could not keep the output: $!";
	$out->autoflush(1);
}

use Dice;
use FleetServers;
use IPC::Run;
use Nemesis;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Servers;
use Setting;
use Time::HiRes qw(time);
use UidgenTest;

my ($seconds, $seed, $first, $dense, $programs, $kind, $only) = @ARGV;
my $is_fleet = $kind eq 'fleet';
my $fault = $ENV{UIDGEN_FAULT};
# The last one is an internal error of the extension's own processes. Errors of sessions are in their logs.
my $complaints = "$ENV{server_complaints}|PANIC:|runtime error:|AddressSanitizer|inconsistent page"
  . '|terminated by signal (?!9)|XX001|XX002|uidgen (?:refiller|registrar|node writer) XX000';
# What a call may last beyond its bound: it shares two processors with dozens of sessions and several servers, it may
# wait for each of the values that it draws, and a server that has just come back is slow for a while.
my $slack_s = 10;

sub say_line
{
	print $out "$_[0]\n";
}

# ---------------------------------------------------------------------------------------------------------------
# The end of a round.
# ---------------------------------------------------------------------------------------------------------------

# The longest that a call may last without the time in which faults stall it: uidgen.max_wait and a second (P5), what the
# statement itself sleeps, and the slack.
sub bound_s ($setting, $paths)
{
	my ($max_wait_s) = $setting->{max_wait} =~ /^(\d+)s$/ or die "not in seconds: $setting->{max_wait}";
	return $max_wait_s + 1 + $paths->longest_sleep_s + $slack_s * ($setting->{discard_caches} ? 2 : 1);
}

# Each ends its statement, and goes.
sub stop_sessions ($directory, $nemesis, $bound_s, @runs)
{
	append_to_file("$directory/stop", '');
	my $ended = sub { !grep { $_->pumpable } @runs };
	if (!poll_until('the sessions end', $ended, $bound_s + 30))
	{
		my $activity = $nemesis->sql('SELECT pid, state, wait_event_type, wait_event, left(query, 80) FROM pg_stat_activity');
		$nemesis->found("sessions do not end\n" . ($activity // 'and the server does not answer'));
		$_->kill_kill foreach @runs;
		return;
	}
	$_->finish or $nemesis->found('a session failed: ' . $_->full_result) foreach @runs;
}

sub check_server_logs ($nemesis, @nodes)
{
	my $expected = $nemesis->expected_complaints;
	foreach my $node (@nodes)
	{
		my @lines = grep { /$complaints/ && !/$expected/ } split /\n/, slurp_file($node->logfile);
		$nemesis->found("the log of " . $node->name . " says: $_") foreach splice @lines, 0, 5;
	}
}

# Returns the number of findings, and of values.
sub judge ($nemesis, $directory)
{
	my $output = '';
	my $is_clean = IPC::Run::run([ "$programs/checker", $directory ], '>', \$output, '2>&1');
	say_line($output =~ s/^/   /mgr =~ s/^   FOUND/FOUND/mgr =~ s/\n\z//r);
	my ($values) = $output =~ /with (\d+) values/;
	return (@{ $nemesis->{found} } + ($is_clean ? 0 : 1), $values // 0);
}

# ---------------------------------------------------------------------------------------------------------------
# Rounds.
# ---------------------------------------------------------------------------------------------------------------

# Returns the number of findings and of values, and the faults by name.
sub run_round ($number, $length_s)
{
	my $dice = Dice->new("$seed/$number");
	my $setting = Setting->new($dice->part('setting'), dense => $dense, fleet => $is_fleet);
	my $directory = "$ENV{TESTDIR}/round$number";
	my $servers = ($is_fleet ? 'FleetServers' : 'Servers')->new(setting => $setting, number => $number, directory => $directory, programs => $programs);

	say_line("round $number of seed $seed: " . $setting->describe);
	mkdir $_ or die "could not make $_: $!" foreach $directory, "$directory/logs";
	$servers->create;
	my $nemesis = $servers->nemesis(dice => $dice->part('nemesis'), say => \&say_line, only => [ split /,/, $only // '' ]);
	my $bound_s = bound_s($setting, $servers->{paths});
	write_file("$directory/bound", join("\t", int($bound_s * 1e9), $nemesis->{began}) . "\n");

	my @runs = $servers->start_sessions($dice->part('sessions'));
	$nemesis->attack_until(Nemesis::now() + $length_s * 1e9);
	stop_sessions($directory, $nemesis, $bound_s, @runs);
	$servers->check_end($nemesis) unless @{ $nemesis->{found} };
	check_server_logs($nemesis, @{ $servers->{nodes} });
	$nemesis->write_logs;

	my ($found, $values) = judge($nemesis, $directory);
	$_->stop('immediate', fail_ok => 1) foreach @{ $servers->{nodes} };
	system_log('rm', '-rf', $directory, map { $_->basedir } @{ $servers->{nodes} }) unless $found;
	return { found => $found, values => $values, faults => { $nemesis->faults_by_name } };
}

sub run_rounds
{
	my $began = time;
	my ($rounds, $found, $faults, $values, %faults) = (0, 0, 0, 0);
	for (my $number = $first; !$found; $number++)
	{
		my $left = $seconds - (time - $began);
		last if $rounds > 0 && $left < 25;
		# The last round takes what is left.
		my $length = Dice->new("$seed/$number length")->between($dense || $is_fleet ? (60, 120) : (10, 40));
		$length = $left - 5 if $length > $left - 25;
		my $replay = "to replay: test/torture --seed $seed --round $number --seconds " . int($length + 5)
		  . ($is_fleet ? ' --kind fleet' : '') . ($dense ? " --dense $dense" : '') . ($only ? " --only $only" : '')
		  . (defined $fault ? " --fault $fault" : '');
		my $of_round = eval { run_round($number, $length < 5 ? 5 : $length) } // die "$@$replay\n";
		$rounds++;
		$found += $of_round->{found};
		$values += $of_round->{values};
		while (my ($name, $count) = each %{ $of_round->{faults} })
		{
			$faults{$name} += $count;
			$faults += $count;
		}
		say_line(sprintf '   so far %d rounds, %d faults, %d values, %d s', $rounds, $faults, $values, time - $began);
		say_line($replay) if $found;
	}
	say_line('faults: ' . join ', ', map { "$_ $faults{$_}" } sort keys %faults);
	say_line(sprintf 'torture: seed %s, %d rounds, %d faults, %d values, %d s: %s',
		$seed, $rounds, $faults, $values, time - $began, $found ? 'FOUND something' : 'found nothing');
	return $found;
}

my $found = eval { run_rounds() };
say_line("torture: FAILED to reach the end: $@") unless defined $found;
exit($found // 1 ? 1 : 0);
