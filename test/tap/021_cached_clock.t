# Cached mode with clocks that the test sets. All wall clocks stand still unless said otherwise, so the test alone
# determines what the ring holds and what is too old. (Windows of the fast path end by the real time, so a session that
# is to see a clock that was set is a new one.) There is no refiller, because libfaketime does not reach processes that
# PostgreSQL 15 starts from a signal handler. Callers refill rings instead.
#
# Expected: every position of the ring is handed out, or counted as thrown away. No id is further ahead of the clock
# than max_ahead, or older than max_staleness. The high-water mark stays near the clock.
use UidgenTest;
use Clients;
use Clock;
use Trouble;

my $node = new_server('cached_clock', conf => "autovacuum = off\nuidgen.max_wait = 300ms\nmax_worker_processes = 0\n", clock => 0);

# 8 bits of sequence, 256 ids a tick of a second. The time bits begin a day before the clocks stand still, or end 16 s after it.
my $bits = 8;
my $long = "epoch => '2026-11-20 00:00+00', time_bits => 30";
my $short = "epoch => '2026-11-21 11:56+00', time_bits => 8";
my $max_ahead = 32;

sub create ($name, $more = '', $time = $long)
{
	sql("SELECT uid_generator_create('$name', preset => 'baidu_cached', sequence_bits => $bits, $time" . ($more && ", $more") . ')');
	return "uid_generators.$name";
}

sub status ($generator, $column)
{
	return sql("SELECT $column FROM uid_generator_status WHERE generator = '$generator'::regclass");
}

# Whether ids are near the clock: at most some seconds ahead of it, and fresh.
sub are_near ($what, $generator, $ids, $ahead = $max_ahead, $fresh = '2.5 s')
{
	is(sql("SELECT bool_and(uid_timestamp(id, '$generator') - date_trunc('second', clock_timestamp()) <= interval '$ahead s'"
			  . " AND uid_timestamp(id, '$generator') >= clock_timestamp() - interval '$fresh')"
			  . " FROM unnest('{" . join(',', @$ids) . "}'::bigint[]) AS id"), 't', $what);
}

# The number of an id in the order in which the word gives them.
sub position ($id)
{
	return ($id >> (22 + $bits)) << $bits | ($id & ((1 << $bits) - 1));
}

# What several sessions draw at the same time, each up to its first error, and the errors.
sub at_once ($clients, $sql)
{
	my @said = psql_at_once($node, ($sql) x $clients);
	return ([ grep { /^\d+$/ } map { split /\n/, $_->[0] } @said ], join '', map { $_->[1] } @said);
}

# Drawn until the clock or the time bits allow no more, by eight sessions at once. Every position from the first on is
# handed out, none beyond max_ahead or the last of 256 ticks, and the error says why.
my $too_far = qr/ahead of the clock by/;
foreach my $case (
	[ 'large', 12, $too_far, 'boost_power => 3, max_ahead_ms => 12000, lease_ms => 6000' ],
	[ 'small', 12, $too_far, 'boost_power => 0, max_ahead_ms => 12000, lease_ms => 6000' ],
	[ 'ended', 16, qr/time bits of generator "ended" are used up/, '', $short, 256 * 256 - 1 ])
{
	my ($name, $ahead, $error, $more, $time, $last) = @$case;
	my $generator = create($name, $more, $time // $long);
	# One statement each, so each session ends at its first error.
	my ($ids, $errors) = at_once(8, "SELECT uid_next('$generator');\n" x 4000);
	my @positions = sort { $a <=> $b } map { position($_) } @$ids;
	is(repeated(@positions), '', "$name: no position twice");
	my $lost = status($generator, 'discarded_stale');
	is($positions[-1] - $positions[0] + 1 - $lost, scalar(@positions),
		'... every position was handed out (' . scalar(@positions) . ", not $lost that the counters tell of)");
	like($errors, $error, '... up to an error that says why');
	is($positions[-1], $last, '... after the very last one') if defined $last;
	are_near('... no id is further ahead than max_ahead', $generator, $ids, $ahead);
	is(status($generator, "leased_until - clock_timestamp() <= interval '@{[$ahead + 1]} s'"), 't', '... nor the lease');
	is(status($generator, "round(extract(epoch FROM last_time - clock_timestamp())) = ahead_ms / 1000"), 't', '... ahead_ms tells it');
}

# Long after the time bits have ended, whatever the ring's policy is.
{
	my @policies = ('pad', 'wait', 'error');
	create("ended_$_", "when_ring_empty => '$_'", $short) foreach @policies;
	freeze_clock($node, 100);
	is(sqlstate($node, "SELECT uid_next('uid_generators.ended_$_')"), '2200H', "$_: long after the end, 2200H") foreach @policies;
	freeze_clock($node);
}

# Ids that lie behind the clock are not ahead of it.
{
	my $frozen = status('uid_generators.large', 'ahead_ms');
	cmp_ok($frozen, '>', 0, 'ahead_ms of a generator that is ahead');
	freeze_clock($node, 3600);
	is(status('uid_generators.large', 'ahead_ms'), 0, '... is 0 when the clock has passed it');
	freeze_clock($node);
	is(status('uid_generators.large', 'ahead_ms'), $frozen, '... and what it was when the clock goes back');
}

is(sqlstate($node, "SELECT count(*) FROM unnest(uid_next_array('uid_generators.small', 100000))"), '55000', 'a batch beyond what the clock allows: an error');

# A crash: above everything, whatever the ring held. An id is ahead of the clock by up to max_ahead then.
{
	freeze_clock($node, 2000);
	my $generator = create('crashed');
	my $held = hold_open($node);
	my @ids = split /\n/, $held->query_safe("SELECT uid_next('$generator') FROM generate_series(1, 300)");
	my $left = int(0.5 + 2048 * status($generator, 'ring_filled'));
	cmp_ok($left, '>', 500, 'the ring holds ids before a crash');
	$held->quit;
	crash($node);
	my $next = sql("SELECT uid_next('$generator')");
	cmp_ok(position($next), '>', position($ids[-1]) + $left, "... after it the next id is above the ring's");
	are_near('... and not too far ahead', $generator, [$next]);
}

# setval: what was leased is given up, at each session's next transaction. The clock still bounds what comes: a counter set an hour ahead is waited for, not followed.
{
	my $at = 3100;
	freeze_clock($node, $at);
	my $generator = create('moved', 'max_staleness_ms => 100000');
	my $session = hold_open($node);
	$session->query_safe('BEGIN');
	# So far that what the ring holds stays fresh while the clock goes on.
	$session->query_safe("SELECT count(*) FROM unnest(uid_next_array('$generator', 7680))");
	my $first = $session->query_safe("SELECT uid_next('$generator')");
	sql("SELECT setval('$generator', last_value + 2) FROM $generator");
	my $mark = sql("SELECT last_value FROM $generator");
	my $same = $session->query_safe("SELECT uid_next('$generator')");
	cmp_ok($same, '>', $first, 'a transaction that began before setval goes on');
	$session->query_safe('COMMIT');
	freeze_clock($node, $at + 25);
	my $after = $session->query_safe("SELECT uid_next('$generator')");
	cmp_ok($after >> 30, '>', $mark, '... the next one is above what setval gave');
	my ($others, $errors) = at_once(3, "SELECT uid_next('$generator');\n" x 40);
	is(scalar(grep { $_ >> 30 <= $mark } @$others), 0, '... and so is everybody');
	is(scalar(@$others), 120, '... without an error');
	are_near('... not too far ahead', $generator, [$after], $max_ahead, '100 s');

	$mark = sql("SELECT setval('$generator', last_value + 3600) FROM $generator");
	my ($state, $message) = sqlstate($session, "SELECT uid_next('$generator')");
	is($state, '55000', '... a counter set an hour ahead: an error');
	like($message, qr/ahead of the clock by 3\d\d\d\.\d+ s more/, '... that tells how far');
	is(sql("SELECT last_value FROM $generator"), $mark, '... and no lease is taken there');
	$session->quit;
}

# Too old: the clock goes on. What was in the ring is thrown away, counted, and the next id is fresh.
{
	my $at = 20100;
	freeze_clock($node, $at);
	my $generator = create('stale');
	my $id = sql("SELECT uid_next('$generator')");
	my $ready = int(0.5 + 2048 * status($generator, 'ring_filled'));
	is($ready, 2047, 'the ring is full but for the id');
	is(status($generator, 'padded_inline'), 1, 'a caller pads');
	are_near('... the id is fresh', $generator, [$id]);
	freeze_clock($node, $at + 60);
	my $later = sql("SELECT uid_next('$generator')");
	are_near('... a minute later too', $generator, [$later]);
	is(status($generator, 'discarded_stale'), $ready, '... and all that was made before was thrown away, and counted');
	# Within the same tick all that is made comes, one after the other.
	my $next = position($later) + 1;
	my @more = map { position($_) } split /\n/, sql("SELECT unnest(uid_next_array('$generator', 1000))");
	is(join(' ', grep { $more[$_] != $next + $_ } 0 .. $#more), '', '... after which position follows position');
	# A part of the ring is too old.
	freeze_clock($node, $at + 65);
	my $last = sql("SELECT uid_next('$generator')");
	is(status($generator, 'discarded_stale'), $ready + position($last) - $more[-1] - 1, '... and a part of what is left is thrown away later');
}

# The clock goes back: an error; nothing twice.
{
	freeze_clock($node, 40000);
	my $generator = create('back');
	my ($before) = at_once(1, "SELECT uid_next('$generator');\n" x 10);
	freeze_clock($node, 36000);
	my ($after, $errors) = at_once(4, "SELECT uid_next('$generator');\n" x 3000);
	like($errors, qr/ahead of the clock by/, 'the clock goes back an hour: an error');
	is(repeated(@$before, @$after), '', '... nothing comes twice');
	is(scalar(@$after), 0, '... and no id');
	my $mark = sql("SELECT last_value FROM $generator");
	is(sqlstate($node, "SELECT uid_next('$generator')"), '55000', '... it stays so');
	is(sql("SELECT last_value FROM $generator"), $mark, '... and nothing more is leased');
}

# The clock goes on and back again, and what was leased and padded meanwhile has not been drawn from: calls are cancelled,
# each at the end of its first step.
{
	my $at = 60000;
	freeze_clock($node, $at);
	my $generator = create('ahead');
	sql("SELECT uid_next('$generator')");
	freeze_clock($node, $at + 7200);
	sql('SELECT uid_next()'); # the server believes the clock
	my $stale = status($generator, 'discarded_stale');
	foreach (1 .. 3)
	{
		is(scalar sqlstate($node, "SELECT pg_cancel_backend(pg_backend_pid()), uid_next('$generator')"), '57014', 'a call is cancelled');
	}
	is(status($generator, "ring_filled > 0.1 AND discarded_stale > $stale"), 't', '... and has padded two hours later');
	freeze_clock($node, $at + 300);
	my @ids = split /\n/, sql("SELECT unnest(uid_next_array('$generator', 5000))");
	are_near('... the clock goes back: ids near it, and none far ahead', $generator, \@ids);
}

# The clock is set back while a session is busy in one transaction. Once half of max_staleness is over in real time, the
# session reads the clock again, and does not hand out ids that are an hour ahead of it.
{
	freeze_clock($node, 7200);
	my $generator = create('busy', 'max_staleness_ms => 2000');
	my $session = hold_open($node);
	$session->query_safe('SET uidgen.max_wait = 0');
	$session->query_safe("BEGIN; SELECT uid_next('$generator'), uid_next('$generator')");
	freeze_clock($node, 3600);
	$session->query_safe(q{DO $$ DECLARE began float8 := split_part(pg_read_file('/proc/uptime'), ' ', 1);
		BEGIN WHILE split_part(pg_read_file('/proc/uptime'), ' ', 1)::float8 < began + 1.5 LOOP END LOOP; END $$});
	is(sqlstate($session, "SELECT uid_next('$generator')"), '55000', 'a step back in a busy transaction is noticed');
	$session->quit;
}

done_testing();
