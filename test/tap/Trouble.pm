# Trouble for a server, and its processes.
#
#   my $pid = freeze_walsender($node, 'standby1');   thaw($pid);   # or freeze_process($pid)
#   my @pids = background_pids($node, 'refiller');   # and postmaster_pid($node)
#   kill_hard($node);                          # kill -9, and a wait for its end
#   wait_for_service($node);                   # after it has restarted by itself
#   my $rows = try_sql($node, $sql);           # '' while it is down
#   my @said = psql_at_once($node, @scripts);  # output and messages of a psql for each, all at the same time
#   my $sql = sql_to_use_up_locks($then);      # fills the lock table, and then runs a statement of PL/pgSQL
package Trouble;

use v5.36;

use Exporter 'import';
use IPC::Run;
use PostgreSQL::Test::Utils;
use Time::HiRes;
use UidgenTest;

our @EXPORT = qw(try_sql wait_for_service kill_hard psql_at_once sql_to_use_up_locks postmaster_pid background_pids
  freeze_walsender freeze_process thaw);

sub try_sql ($node, $sql)
{
	my $session = $node->start_session('postgres') or return '';
	$session->run([ [ $sql, 1 ] ]);
	$session->quit;
	return ($session->take)[0];
}

sub wait_for_service ($node)
{
	poll_until('service', sub { try_sql($node, 'SELECT true') eq 't' }) or die 'the server does not answer';
}

# Only the postmaster is killed. The others end by themselves, so a start may have to wait for them.
sub kill_hard ($node)
{
	my $pid = postmaster_pid($node);
	$node->kill9;
	poll_until('the end of ' . $node->name, sub { !kill 0, $pid }) or die 'the server lives';
}

# A psql for each script, which ends with its first error.
sub psql_at_once ($node, @scripts)
{
	my @psql = ($node->installed_command('psql'), '-XAtq', '-v', 'ON_ERROR_STOP=1', '-d', $node->connstr('postgres'));
	my @runs;
	foreach my $script (@scripts)
	{
		my $input = PostgreSQL::Test::Utils::tempdir() . '/script';
		append_to_file($input, $script);
		my ($output, $messages) = ('', '');
		push @runs, [ IPC::Run::start(\@psql, '<', $input, '>', \$output, '2>', \$messages), \$output, \$messages ];
	}
	$_->[0]->finish foreach @runs;
	return map { [ ${ $_->[1] }, ${ $_->[2] } ] } @runs;
}

# Locks of the session, so that they stay when the lock table is full and the transaction fails.
sub sql_to_use_up_locks ($then)
{
	return <<"END";
DO \$\$
BEGIN
  FOR i IN 1 .. 1000000 LOOP
    PERFORM pg_advisory_lock(i);
  END LOOP;
EXCEPTION WHEN out_of_memory THEN
  $then;
END \$\$;
END
}

# The first line of the file, while the server runs.
sub postmaster_pid ($node)
{
	my ($pid) = slurp_file($node->data_dir . '/postmaster.pid') =~ /^(\d+)/ or die 'no postmaster of ' . $node->name;
	return $pid;
}

# The processes "uidgen NAME" of a server; without a name all its processes but the postmaster. Of a background process
# without a connection only the process table tells.
sub background_pids ($node, $name = undef)
{
	my $postmaster = postmaster_pid($node);
	my @found;
	foreach my $stat (glob '/proc/[0-9]*/stat')
	{
		open my $fh, '<', $stat or next;
		my ($pid, $parent) = (<$fh> // '') =~ /^(\d+) \(.*\) \w (\d+) / or next;
		next unless $parent == $postmaster;
		open my $command, '<', "/proc/$pid/cmdline" or next;
		push @found, $pid if !defined $name || (<$command> // '') =~ /uidgen $name/;
	}
	return @found;
}

# Makes a standby unresponsive: stops its walsender on the primary.
my %frozen;

sub freeze_walsender ($node, $standby)
{
	my $pid = $node->safe_psql('postgres',
		"SELECT pid FROM pg_stat_replication WHERE application_name = '$standby'");
	die "$standby is not connected" unless $pid =~ /^\d+$/;
	return freeze_process($pid);
}

# Until thaw().
sub freeze_process ($pid)
{
	kill 'STOP', $pid or die "could not stop process $pid: $!";
	$frozen{$pid} = 1;
	# A signal takes a moment; "T" is the state of a stopped process, "Z" of one that has ended.
	Time::HiRes::sleep(0.01)
	  until slurp_file("/proc/$pid/stat") =~ /^\d+ \(.*\) [TZ]/;
	return $pid;
}

sub thaw ($pid)
{
	delete $frozen{$pid};
	return kill 'CONT', $pid;
}

# A stopped process would block the shutdown of its server.
END
{
	my $status = $?;
	thaw($_) foreach keys %frozen;
	$? = $status;
}

1;
