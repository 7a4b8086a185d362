# Many sessions wait for a synchronous standby that does not answer, for the same range. Expected: none of them enters
# PostgreSQL's own queue of commits, which allows each LSN once. Each can be canceled, can time out, can be terminated,
# and gets a message that is true: no value was handed out, and nothing about a commit. When the standby answers, all
# others go on, each with its own value. uid_generator_raise() waits as a draw does. (003_standbys.t promotes standbys.)
use UidgenTest;
use Clock;
use Trouble;

my $conf = "autovacuum = off\nupdate_process_title = on\n";
my $primary = new_server('primary', conf => $conf, clock => 0);
$primary->safe_psql('postgres', <<'END');
SELECT uid_generator_create('many');
SELECT uid_generator_create('raised');
SELECT uid_generator_create('ring', 'baidu_cached');
SELECT segment_create('many', 1, 100);
CREATE TABLE rows (id bigint);
END
my $standby = standby_of($primary, 'sync');
$standby->append_conf('postgresql.conf', "synchronous_standby_names = ''\n");
use_fake_clock($standby);
freeze_clock($standby);
start_node($standby);
make_synchronous($primary, 'sync');
my $walsender = freeze_walsender($primary, 'sync');

# Sessions of this test that wait for the standby, by what they run.
sub waiting ($count, $what)
{
	return ok( $primary->poll_query_until('postgres',
			"SELECT count(*) = $count FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND pid <> pg_backend_pid()"),
		$what);
}

sub pid_of
{
	return $_[0]->query_safe('SELECT pg_backend_pid()');
}

# SyncRepWaitForLSN shows in the title of a process which LSN it waits for.
sub queued
{
	my @titles = map { slurp_file("/proc/$_/cmdline") } @_;
	return join ' ', sort map { m{waiting for ([0-9A-F]+/[0-9A-F]+)} ? $1 : () } @titles;
}

my @sql = (("SELECT segment_next('many')") x 6, ("SELECT uid_next('uid_generators.many')") x 6, ("SELECT uid_next('uid_generators.ring')") x 2,
	"SELECT unnest(uid_next_array('uid_generators.many', 1))", "SELECT first FROM segment_reserve('many', 1)");
my @canceled = (0, 6, 12, 14, 15);
my @terminated = (1, 7);
my @sessions = map { hold_open($primary) } @sql;
my @pids = map { pid_of($_) } @sessions;
$_->query_safe('\set VERBOSITY verbose') foreach @sessions;
# In cached mode there is a lease, which the standby has not got. One session waits in the transaction that has drawn from
# it without waiting.
$sessions[12]->query_safe("SET synchronous_commit = local;\n$sql[12];\nRESET synchronous_commit");
$sessions[13]->query_safe("BEGIN READ ONLY;\nSET LOCAL synchronous_commit = local;\n$sql[13];\n$sql[13];\nSET LOCAL synchronous_commit = on");
# In order, so that the others find the first one's record.
foreach my $i (0 .. $#sql)
{
	send_query($sessions[$i], $sql[$i]);
	waiting($i + 1, "session @{[$i + 1]} waits for the standby: $sql[$i]");
}
is(queued(@pids), '', 'none of them stands in the queue of commits');

# Commits do, and don't mind.
my @commits = map { hold_open($primary) } 1 .. 2;
my @commit_pids = map { pid_of($_) } @commits;
send_query($_, 'INSERT INTO rows VALUES (1)') foreach @commits;
waiting(@sql + 2, 'commits wait, too');
my @lsns = split / /, queued(@commit_pids);
is(scalar(@lsns), 2, '... in the queue');
isnt($lsns[0], $lsns[1], '... each for its own LSN');

# One of each is canceled, one terminated.
foreach my $i (@canceled)
{
	$primary->safe_psql('postgres', "SELECT pg_cancel_backend($pids[$i])");
	my ($output, $error) = finish_query($sessions[$i]);
	like($error, qr/ERROR:  57014: canceling statement due to user request/, "$sql[$i]: a cancel is an error");
	unlike($error, qr/WARNING|committed/, '... without a warning that the transaction is committed');
	is($output, '', '... and there is no value');
	is($sessions[$i]->query_safe('SELECT 1'), '1', '... the session lives on');
}
foreach my $i (@terminated)
{
	$primary->safe_psql('postgres', "SELECT pg_terminate_backend($pids[$i])");
	ok($primary->poll_query_until('postgres', "SELECT count(*) = 0 FROM pg_stat_activity WHERE pid = $pids[$i]"),
		"$sql[$i]: a terminated session ends");
}
my $log = slurp_file($primary->logfile);
unlike($log, qr/WARNING:  (01000|57P01)?.*synchronous replication/, 'no warning of a commit in the log either');
like($log, qr/FATAL: .*terminating connection due to administrator command/, '... and the terminated sessions say why');

# The clock of statement_timeout must run.
set_clock($primary, '+0');
my ($state, $message) = sqlstate($sessions[0], "SET statement_timeout = '300ms';\n$sql[0]");
is($state, '57014', 'statement_timeout ends the wait');
like($message, qr/canceling statement due to statement timeout/, '... and the error says so');
unlike($message, qr/WARNING/, '... and no warning');
$sessions[0]->query_safe('RESET statement_timeout');
freeze_clock($primary);

# uid_generator_raise(): a cancel leaves the mark, and the next call waits for it as well.
my $raise = "SELECT uid_generator_raise('uid_generators.raised', uid_encode(clock_timestamp() + interval '1 s', 0, 0, 0, 'uid_generators.raised'))";
my $raising = hold_open($primary);
my $raising_pid = pid_of($raising);
my $raising_waits = "SELECT count(*) = 1 FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND pid = $raising_pid";
foreach my $time ('first', 'second')
{
	send_query($raising, $raise);
	ok($primary->poll_query_until('postgres', $raising_waits), "uid_generator_raise waits for the standby, the $time time");
	$primary->safe_psql('postgres', "SELECT pg_cancel_backend($raising_pid)");
	like((finish_query($raising))[1], qr/canceling statement due to user request/, '... and can be canceled');
}
send_query($raising, $raise);
ok($primary->poll_query_until('postgres', $raising_waits), '... it waits again');

# What was in hand becomes too old while it is waited for.
freeze_clock($primary, 60);
thaw($walsender);
unlike((finish_query($raising))[1], qr/ERROR/, 'the standby answers: uid_generator_raise returns');
my $raised = $primary->safe_psql('postgres', 'SELECT last_value FROM uid_generators.raised');
# Not for what is written and not flushed: while the clock stands still, the WAL writer does not flush.
$primary->wait_for_catchup($standby, 'replay', $primary->lsn('flush'));
is($standby->safe_psql('postgres', 'SELECT last_value FROM uid_generators.raised'), $raised, '... with its mark on the standby');
my (%values, @errors);
my %is_over = map { $_ => 1 } @canceled, @terminated;
foreach my $i (grep { !$is_over{$_} } 0 .. $#sql)
{
	my ($output, $error) = finish_query($sessions[$i]);
	push @errors, $error if $error ne '';
	next unless $output =~ /^\d+$/;
	$values{"$sql[$i] $output"}++;
	my ($generator) = $sql[$i] =~ /(uid_generators\.\w+)/ or next;
	is($primary->safe_psql('postgres', "SELECT uid_timestamp($output, '$generator') >= clock_timestamp() - interval '5 s'"),
		't', "$sql[$i]: an id that was waited for is not too old");
}
is(scalar(keys %values), @sql - keys %is_over, '... all who still waited get a value of their own')
  or diag(join "\n", %values, @errors);
is(scalar(grep { $_ > 1 } values %values), 0, '... and none comes twice');
unlike((finish_query($_))[1], qr/ERROR|WARNING/, '... the commits go on') foreach @commits;
like($sessions[$_]->query_safe($sql[$_]), qr/^\d+$/, '... whose wait was canceled draws') foreach @canceled;

# A lease that the standby has not got, while another setting awaits none, and then again.
$sessions[13]->query_safe('COMMIT');
$walsender = freeze_walsender($primary, 'sync');
sql("SET synchronous_commit = local;\nSELECT uid_generator_create('awaited', 'baidu_cached');\nSELECT uid_next('uid_generators.awaited')");
my @awaiting = @sessions[ 2 .. 5 ];
send_query($_, "SELECT uid_next('uid_generators.awaited')") foreach @awaiting;
waiting(4, 'four sessions wait');
set_conf($primary, "synchronous_standby_names = ''");
is(scalar(grep { /^\d+$/ } map { (finish_query($_))[0] } @awaiting), 4, '... when no standby is awaited any more, each gets its id');
make_synchronous($primary, 'sync');
send_query($awaiting[0], "SELECT uid_next('uid_generators.awaited')");
waiting(1, 'when it is awaited again, it is waited for, as it has not got it');
sql("SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'");
is((finish_query($awaiting[0]))[0], '', '... a cancel gives none');
thaw($walsender);
like($awaiting[0]->query_safe("SELECT uid_next('uid_generators.awaited')"), qr/^\d+$/, 'when the standby answers, ids come');

$_->quit foreach @sessions[ grep { my $i = $_; !grep { $_ == $i } @terminated } 0 .. $#sql ], @commits, $raising;
$primary->stop('immediate');
$standby->stop;
done_testing();
