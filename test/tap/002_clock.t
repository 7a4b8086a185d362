# Clocks that are wrong. Uniqueness and order never depend on the clock. The clock decides how truthful an id's time is
# (never more than max_ahead above the clock of the call) and how long a call may wait (never more than
# uidgen.max_wait). Nor do they depend on how late it is.
#
# 014_policies.t has steps by a year, and the end of the time bits.
#
# The default preset: a lease of 1 s, ids up to 2 s ahead of the clock. All clocks stand still at instants that the test
# chooses, so nothing depends on the machine.
use UidgenTest;
use Clients;
use Clock;
use Installation;

skip_with_assertions();

my $hour = 3600;
my $year = 365 * 24 * $hour;
my $state;

my $node = new_server('clock', conf => "autovacuum = off\nuidgen.max_wait = 200ms\n", clock => 0);

# Every id of the default generator that a client has received, in order.
my @all;

# Draws, by default one by one, until an error or the count. Each row says whether the id's time was at most 2 s above the
# clock of its call. Returns how many ids came, and the error.
my $untruthful = 0;

sub draw ($count, $ids = "SELECT uid_next() AS id FROM generate_series(1, $count) OFFSET 0")
{
	my ($output, $error);
	$node->psql(
		'postgres', "\\set VERBOSITY verbose\nSELECT id, uid_timestamp(id) <= clock_timestamp() + interval '2 s' FROM ($ids) AS d",
		on_error_stop => 0, stdout => \$output, stderr => \$error);
	my @rows = map { [ split /\|/ ] } split /\n/, $output;
	push @all, map { $_->[0] } @rows;
	$untruthful += grep { $_->[1] ne 't' } @rows;
	return (scalar(@rows), $error);
}

sub ms_ahead
{
	return sql("SELECT round(extract(epoch FROM uid_timestamp($all[-1]) - clock_timestamp()) * 1000)");
}

sub ahead_by ($error)
{
	return $error =~ /is ahead of the clock by ([\d.]+) s more than allowed/ ? $1 : $error;
}

# A small step back. Expected: ids go on above the last one, ahead of the clock.

freeze_clock($node, 10);
draw(10);
is(ms_ahead(), 0, 'an id carries the time of its call');
freeze_clock($node, 9.5);
my ($count, $error) = draw(10);
is($count, 10, 'half a second back: ids go on');
is(ms_ahead(), 500, '... half a second ahead of the clock');

# A tick has 4096 numbers. At one instant the generator has 2001 ticks: that of the
# clock, and max_ahead beyond it. Expected: after a step back of 1.875 s there
# are ids for 126 ms left; then the call waits, gives up, and takes nothing.
freeze_clock($node, 8.125);
draw(125 * 4096, 'SELECT unnest(uid_next_array(125 * 4096)) AS id');    # a batch, to the end of what the clock allows
is(ms_ahead(), 2000, '1.875 s back: ids go on until they are max_ahead ahead of the clock');
($count, $error) = draw(4096 * 2);
is($count, 0, 'then a statement that needs more than is allowed fails');
like($error, qr/ERROR:  55000: generator "uid_default" is ahead of the clock/, '... with a clear error');
is(ahead_by($error), '0.001', '... that names how far the generator is ahead');
my ($waited) = $error =~ /waited (\d+) ms and took no id/;
cmp_ok($waited, '>=', 200, '... after uidgen.max_wait');

# The wait. Expected: it shows in pg_stat_activity, ends when the clock is mended,
# and a cancel ends it (57014) without an id.

my $event = wait_event($node, 'UidgenClock');
my $waiting = "SELECT count(*) = 1 FROM pg_stat_activity WHERE pid <> pg_backend_pid()"
  . " AND state = 'active' AND wait_event = '$event'";

freeze_clock($node, 20);
draw(10);
freeze_clock($node, 22 - $hour);
is(sqlstate($node, "SELECT segment_next('any') FROM segment_create('any')"),
	'00000', 'a segment does not look at the clock');
my $session = hold_open($node);
$session->query_safe("SET uidgen.max_wait = '1d'");
send_query($session, 'SELECT uid_next()');
ok($node->poll_query_until('postgres', $waiting), 'a call that waits for the clock is seen waiting');
freeze_clock($node, 30);
my ($mended) = finish_query($session);
like($mended, qr/^\d+$/, 'a clock that is mended ends the wait with an id');
push @all, $mended;

freeze_clock($node, 30 - $hour);
send_query($session, "\\set VERBOSITY verbose\nSELECT uid_next()");
ok($node->poll_query_until('postgres', $waiting), 'it waits again');
sql("SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = '$event'");
($mended, $error) = finish_query($session);
is($mended, '', 'a call that is cancelled while it waits returns no id');
like($error, qr/ERROR:  57014:/, '... and says that it was cancelled');
freeze_clock($node, 31);
push @all, $session->query_safe('SELECT uid_next()');
$session->quit;

# The wait of a server that is asked to stop.
freeze_clock($node, 31 - $hour);
$session = hold_open($node);
$session->query_safe("SET uidgen.max_wait = '1d'");
send_query($session, 'SELECT uid_next()');
ok($node->poll_query_until('postgres', $waiting), 'it waits again');
$node->stop('fast');
pass('a fast shutdown does not wait for it');
freeze_clock($node, 40);
start_node($node);
draw(10);

# A year forward, in a clock that shows another second at each look: no reading is one to lease a year by. Expected: no id,
# no counter moves, and the generator goes on as if it had not been read.

my @unsteady = ('uid_default', 'unsteady_cached', 'unsteady_twitter', 'unsteady_js53');
sql(q{SELECT uid_generator_create('unsteady_cached', 'baidu_cached'), uid_generator_create('unsteady_twitter', 'twitter'), uid_generator_create('unsteady_js53', 'js53')});
sql("SELECT uid_next('uid_generators.$_')") foreach @unsteady;
my $counters = sub { return join ' ', map { sql("SELECT last_value FROM uid_generators.$_") } @unsteady };
my $unmoved = $counters->();
set_clock($node, '+1y i100');
foreach my $name (@unsteady)
{
	($state, $error) = sqlstate($node, "SELECT uid_next('uid_generators.$name')");
	is($state, '55000', "$name: a year forward, in a clock that is not steady: no id");
	like($error, qr/server clock is not steady; generator "$name" cannot issue ids/, '... and the error says why');
}
freeze_clock($node, 45);
is($counters->(), $unmoved, '... and nothing is leased');
is((draw(10))[0], 10, 'the right clock: ids go on');
is(ms_ahead(), 0, '... with the time that it says');

# What a generator says of a clock that goes back, with each policy and in cached mode, while four sessions draw.
# Expected: one line in the log when the clock is found behind, and one when it has caught up; in
# the views, what the policy did meanwhile.

my $now = $year + 100.5;
my %watched = (
	hold => "when_back => 'hold'",
	wait => "when_back => 'wait'",
	error => "preset => 'twitter'",
	backup => "preset => 'js53', epoch => '2026-11-21 12:00+00'",
	cached => "mode => 'cached', spread => false, boost_power => 0",
	quiet => "when_back => 'hold'");
my @watched = sort grep { $_ ne 'quiet' } keys %watched;
my $columns = 'clock_steps_back, backup_ids, refused_clock';

sub of_events ($what, @names)
{
	my $generators = join ', ', map { "'uid_generators.$_'::regclass" } @names;
	return "SELECT $what FROM uid_generator_status JOIN uid_stat ON sequence = generator::oid WHERE generator IN ($generators)";
}

sub events ($name, $what = $columns)
{
	return sql(of_events($what, $name));
}

# How many lines of each kind the log has about the generator.
sub lines_about ($name)
{
	my $log = slurp_file($node->logfile);
	my $it = qr/generator "$name" in database "postgres"/;
	my @behind = $log =~ /LOG:  clock is [\d.]+ s behind $it\n/g;
	my @caught_up = $log =~ /LOG:  clock has caught up with $it\n/g;
	return join '|', scalar(@behind), scalar(@caught_up);
}

freeze_clock($node, $now);
$node->safe_psql('postgres',
	join '', map { "SELECT uid_generator_create('$_', $watched{$_});\nSELECT uid_next('uid_generators.$_');\n" } sort keys %watched);
is(events($_), '0|0|0', "$_: a clock that is right") foreach @watched;

my $loop = background_loop($node, clients => 4, on_error_stop => 0, pace => 0.02,
	sql => join '; ', 'SET uidgen.max_wait = 0', map { "SELECT uid_next('uid_generators.$_')" } @watched);
freeze_clock($node, $now - 1);
ok($node->poll_query_until('postgres', of_events('bool_and(clock_steps_back = 1)', @watched)), 'a second back: each generator finds the clock behind');
my $counts = "CASE WHEN generator::text ~ 'error|wait' THEN refused_clock WHEN generator::text ~ 'backup' THEN backup_ids ELSE 20 END";
ok($node->poll_query_until('postgres', of_events("bool_and($counts >= 20)", @watched)),
	'... counts what the policy does');
freeze_clock($node, $now);
ok(poll_until('the lines', sub { !grep { lines_about($_) ne '1|1' } @watched }), '... and when it has caught up');
goes_on('the sessions draw on', $loop);
freeze_clock($node, $now + 1);
goes_on('... also later', $loop);
my @watched_logs = stop_loop($loop);
is(lines_about($_), '1|1', "$_: one line of each kind, from four sessions") foreach @watched;
is(lines_about('quiet'), '0|0', 'a generator that nobody used meanwhile says nothing');
is(events($_, 'clock_steps_back'), 1, "$_: ... and one step back") foreach @watched;
assert_unique(@watched_logs);

# By itself, to the id: one call, many in one statement (the fast path), and a batch.
my %expected = (hold => '2|0|0', wait => '2|0|3', error => '2|0|3', backup => '2|12|0', cached => '2|0|0');
my $quiet = events('hold');
is((split /\|/, $quiet)[2], 0, 'hold: no call failed');
foreach my $name (sort keys %expected)
{
	my @before = split /\|/, events($name);
	freeze_clock($node, $now + 10);
	sql("SELECT uid_next('uid_generators.$name')");
	freeze_clock($node, $now + 9);
	my $of = "'uid_generators.$name'";
	sqlstate($node, $_)
	  foreach "SELECT uid_next($of)", "SELECT uid_next($of) FROM generate_series(1, 4)", "SELECT unnest(uid_next_array($of, 7))";
	my @after = split /\|/, events($name);
	is(join('|', $after[0], map { $after[$_] - $before[$_] } 1 .. 2),
		$expected{$name}, "$name: $columns");
	freeze_clock($node, $now + 11);
	sqlstate($node, "SELECT uid_next($of)");
	is(events($name), join('|', @after), '... and the same after the clock has caught up');
	is(lines_about($name), '2|2', '... with a line each');
}
my $held = slurp_file($node->logfile);
like($held, qr/clock is 1\.000 s behind generator "hold" .*\n.*DETAIL:  The clock catches up when it shows 2027-/,
	'the line says how far the clock is behind, and until when');

# Across a restart, an hour back: a new slot finds the clock behind what was leased.
freeze_clock($node, $now + 30);
sql("SELECT uid_next('uid_generators.error')");
$node->stop('immediate');
freeze_clock($node, $now + 30 - $hour);
start_node($node);
my $lines = lines_about('error') =~ s/\|.*//r;
is(sqlstate($node, "SELECT uid_next('uid_generators.error')"), '55000', 'an hour back across a restart: an error');
is(events('error'), '1|0|1', '... that is counted');
is(lines_about('error'), $lines + 1 . '|2', '... and in the log');

# The clock jumps a month forward while four sessions draw. Expected: ids go on, and the jump is logged and counted once,
# and shown by the view without a draw. With uidgen.max_clock_jump a further jump is refused, in both modes, and nothing
# is leased; until the clock is back, or a superuser accepts it by the statements of the hint.

my $month = 30 * 24 * $hour;
$now = $year + 200;
freeze_clock($node, $now);
draw(10);
sub jumps
{
	my @lines = slurp_file($node->logfile) =~ /LOG:  clock jumped forward by (\d+)\.\d{3} s\n/g;
	return join '|', sql('SELECT clock_jumps FROM uid_stat_server'), scalar(@lines), $lines[-1] // 0;
}
sub marks
{
	return sql('SELECT d.last_value, c.last_value FROM uid_generators.uid_default d, uid_generators.cached c');
}
my ($counted, $logged) = split /\|/, jumps();
$loop = background_loop($node, clients => 4);
freeze_clock($node, $now + $month);
ok($node->poll_query_until('postgres', "SELECT clock_jumps > $counted FROM uid_stat_server"), 'a month forward: counted');
goes_on('... ids go on', $loop);
assert_unique(stop_loop($loop));
like(jumps(), qr/^@{[ $counted + 1 ]}\|@{[ $logged + 1 ]}\|259[12]\d{3}$/, '... one line says by how much, from four sessions');
draw(10);
is(ms_ahead(), 0, '... with the time that the clock says');
is(sql("SELECT clock_moved_ms BETWEEN 29 * 864e5 AND 31 * 864e5 FROM uid_stat_server"), 't', '... and the view says so');
freeze_clock($node, $now + 2 * $month);
is(sql("SELECT clock_moved_ms > 59 * 864e5, clock_jumps FROM uid_stat_server"), 't|' . ($counted + 1),
	'... it says so without a draw');

sql("ALTER SYSTEM SET uidgen.max_clock_jump = '1d'");
$node->reload;
$node->poll_query_until('postgres', q{SELECT current_setting('uidgen.max_clock_jump') = '1d'});
my $leased = marks();
foreach my $name ('uid_default', 'cached')
{
	($state, $error) = sqlstate($node, "SELECT uid_next('uid_generators.$name')");
	is($state, '55000', "$name: a jump beyond uidgen.max_clock_jump is refused");
	like($error, qr/ERROR:  55000: clock jumped forward by 259[12]\d{3}\.\d{3} s, more than uidgen.max_clock_jump; generator "$name" cannot issue ids\nDETAIL:  The clock shows 2028-01-20 12:03:20\+00, and ids would carry that time/,
		'... and the error says so');
}
my ($accept) = $error =~ /HINT:  .*(SET uidgen.max_clock_jump = 0; .*;)$/m;
is(marks(), $leased, '... nothing is leased');
freeze_clock($node, $now + $month + 1);
is((draw(10))[0], 10, 'when the clock is back, ids go on');
freeze_clock($node, $now + 2 * $month);
is((draw(1))[0], 0, 'it jumps again: refused');
is(sqlstate($node, $accept), '00000', '... a superuser accepts the jump');
is((draw(10))[0], 10, '... and every session draws');
like(jumps(), qr/^@{[ $counted + 2 ]}\|@{[ $logged + 2 ]}\|/, '... which is logged and counted, unlike what was refused');
freeze_clock($node, $now + 2 * $month + 5);
is(sqlstate($node, 'SET uidgen.max_clock_jump = 2; SELECT uid_next()'), '55000', 'a limit of seconds is kept');
sql('ALTER SYSTEM RESET uidgen.max_clock_jump');
$node->reload;
$node->poll_query_until('postgres', q{SELECT current_setting('uidgen.max_clock_jump', true) IS DISTINCT FROM '1d'});

# Over all of the above.

my @disorder = grep { $all[$_] <= $all[ $_ - 1 ] } 1 .. $#all;
is(scalar(@disorder), 0, 'all ids strictly increase in the order of the calls')
  or diag("position $disorder[0] of " . scalar(@all));
is($untruthful, 0, 'no id was more than max_ahead above the clock of its call');
note(scalar(@all) . ' ids');

# Clocks beyond 2262-04-11 23:47:16.854775807, where 2^63 nanoseconds since 1970 end. Expected: whatever the clock shows,
# and however it got there, each call of each preset returns an id or an error within uidgen.max_wait. An id's time is that
# of the clock, or a cached one's 32 s more. A layout that reaches so far draws there, and one that does not reports that
# its time bits are used up.
{
	freeze_clock($node);
	# Milliseconds for 4,400 years.
	my $wide = 'time_bits => 47, datacenter_bits => 0, worker_bits => 4, sequence_bits => 12';
	my %made = (
		(map { $_ => "preset => '$_'" } split /\n/, sql('SELECT preset FROM uid_preset')),
		wide => $wide,
		wide_cached => "$wide, mode => 'cached', spread => false",
		wide_wait => "$wide, when_full => 'wait', when_back => 'wait'");
	sql("SELECT uid_generator_create('$_', $made{$_})") foreach sort keys %made;
	my @wide = grep { /^wide/ } sort keys %made;
	my %latest;

	# Three calls of one session for each generator. Those that must draw do so each time.
	my $check = sub ($when, @must_draw) {
		my @wrong;
		foreach my $name (sort keys %made)
		{
			my ($output, $error, $late) = ('', '', 0);
			my $call = "SELECT id, abs(extract(epoch FROM uid_timestamp(id, 'uid_generators.$name') - clock_timestamp())) <= 33"
			  . " FROM uid_next('uid_generators.$name') AS id;\n";
			# Far more than uidgen.max_wait: a call that takes so long is one that never ends.
			$node->psql('postgres', "\\set VERBOSITY verbose\n" . $call x 3, on_error_stop => 0, stdout => \$output, stderr => \$error,
				timeout => 60, timed_out => \$late);
			push @wrong, "$name: no end" if $late;
			push @wrong, "$name: $1" if $error =~ /(?:ERROR|FATAL|PANIC):  (?!2200H|55000)(.*)/;
			my @ids = split /\n/, $output;
			foreach (@ids)
			{
				my ($id, $near) = split /\|/;
				push @wrong, "$name: $id is far from the clock" if $near ne 't';
				push @wrong, "$name: $id after $latest{$name}" if $id <= ($latest{$name} // 0);
				$latest{$name} = $id;
			}
			push @wrong, "$name: no id: $error" if @ids != 3 && grep { $_ eq $name } @must_draw;
		}
		is(join("\n", @wrong), '', "$when: each call ends, with an id that is above the former and near the clock, or the end of the bits");
	};

	$check->('in 2026', sort keys %made);
	foreach my $clock ('2262-04-10 12:00:00', '2262-04-11 23:47:16.250000', '2262-04-11 23:47:17.000000', '2262-04-12 00:00:00',
		'2300-01-01 00:00:00', '2500-01-01 00:00:00')
	{
		set_clock($node, $clock);
		$check->($clock, @wide);
	}

	# The clock goes on within the session, and across the instant.
	my $crossing = hold_open($node);
	sql("SELECT uid_generator_create('crossing', $wide)");
	foreach my $clock ('2262-04-11 23:47:16', '2262-04-11 23:47:18')
	{
		set_clock($node, "$clock.000000");
		is($crossing->query_safe("SELECT date_trunc('second', uid_timestamp(uid_next(g), g) AT TIME ZONE 'UTC') FROM (SELECT 'uid_generators.crossing'::regclass AS g) AS c"),
			$clock, 'a session draws on both sides of the instant');
	}
	$crossing->quit;

	# A server that starts there, after a crash; then back before the instant.
	set_clock($node, '2500-01-01 00:00:10');
	crash($node);
	$check->('a start in 2500', grep { $_ ne 'wide_wait' } @wide);
	set_clock($node, '2262-04-11 23:47:16.250000');
	$check->('back in 2262');
	freeze_clock($node, 100);
	$check->('back in 2026');
}

$node->stop;
done_testing();
