# Cached mode on a real server: the refiller helps but is never needed, ids are unique and in order, and none is too old.
# (021_cached_clock.t moves the clock, 001_matrix.t ends the server and kills processes.)
use Time::HiRes;
use UidgenTest;
use Clients;
use Trouble;

my $node = new_server('cached', conf => "autovacuum = off\nuidgen.max_wait = 300ms\n");

sub create ($name, $how)
{
	# A new generator starts above the ids of those that were dropped, so give it room.
	$how .= ', max_ahead_ms => 600000' unless $how =~ /max_ahead_ms/;
	sql("SELECT uid_generator_create('$name', $how)");
	return "uid_generators.$name";
}

# Ticks of a millisecond, so that half a second is a long time.
my $fast = "mode => 'cached', spread => false";

sub status ($generator, $column)
{
	return sql("SELECT $column FROM uid_generator_status WHERE generator = '$generator'::regclass");
}

# Slots of what was dropped go when others are made.
sub sweep
{
	sql('DO $$ BEGIN FOR i IN 1 .. 100 LOOP EXECUTE $s$CREATE SEQUENCE passing$s$; PERFORM segment_next($s$passing$s$); COMMIT; EXECUTE $s$DROP SEQUENCE passing$s$; COMMIT; END LOOP; END $$');
}

sub padders { return background_pids($node, 'refiller'); }

# The one refiller, once it is there: callers whose ring is half empty start it, at most once a second.
sub refiller ($generator)
{
	my @found;
	poll_until('a refiller', sub { sql("SELECT count(*) FROM unnest(uid_next_array('$generator', 10000))"); @found = padders(); @found == 1 });
	return $found[0] // 0;
}

# What each of several sessions draws at the same time.
sub at_once ($clients, $sql)
{
	my @said = psql_at_once($node, ($sql) x $clients);
	diag($_->[1]) foreach grep { $_->[1] ne '' } @said;
	return map { [ grep { /^\d/ } split /\n/, $_->[0] ] } @said;
}

# No id is older than max_staleness when it is handed out: a session in one long transaction, with a run in hand or with
# the ring, with and without a refiller, after errors, beside another generator.
# (This comes first: a new generator starts above the ids of those that were dropped, so of some that are far ahead.)
{
	my $generator = create('brief', "'snowflake', $fast, max_ahead_ms => 2000, max_staleness_ms => 200");
	my $lasting = create('lasting', "'snowflake', $fast, max_ahead_ms => 2000, max_staleness_ms => 100000");
	my $session = hold_open($node);
	my $is_fresh = sub ($what) {
		is($session->query_safe("SELECT uid_timestamp(uid_next('$generator'), '$generator') >= now FROM (SELECT clock_timestamp() - interval '200 ms' AS now OFFSET 0) t"), 't', "$what, $generator: the id is fresh");
	};
	foreach my $stopped (0, 1)
	{
		my $pid = refiller($generator);
		freeze_process($pid) if $stopped;
		my $with = $stopped ? 'refiller stopped' : 'refiller at work';
		my $stale = status($generator, 'discarded_stale');
		$session->query_safe("BEGIN; SELECT uid_next('$generator') FROM generate_series(1, 3)");
		Time::HiRes::sleep(0.3);
		$is_fresh->("$with, after a pause");
		$session->query_safe("SELECT uid_next('$generator'), pg_sleep(0.3)");
		$is_fresh->("$with, after a pause within a statement");
		cmp_ok(status($generator, 'discarded_stale'), '>', $stale, '... what was too old is counted');

		$session->query_safe("SAVEPOINT a; SELECT uid_next('$generator')");
		is(sqlstate($session, 'SELECT 1 / 0'), '22012', 'an error');
		$session->query_safe('ROLLBACK TO a');
		Time::HiRes::sleep(0.3);
		$is_fresh->("$with, after an error under a savepoint");

		$session->query_safe("DO \$\$ BEGIN PERFORM uid_next('$generator'); PERFORM 1 / 0; EXCEPTION WHEN division_by_zero THEN PERFORM uid_next('$generator'); END \$\$");
		Time::HiRes::sleep(0.3);
		$is_fresh->("$with, after an exception that was caught");

		$session->query_safe("SELECT uid_next('$lasting'), uid_next('$generator')");
		Time::HiRes::sleep(0.3);
		$is_fresh->("$with, beside one that may be older");
		$session->query_safe('COMMIT');
		thaw($pid);
	}
	$session->quit;
	sql("SELECT uid_generator_drop(g) FROM unnest('{$generator,$lasting}'::regclass[]) AS g");
	ok(poll_until("gone", sub { padders() == 0 }), "when they are dropped the refiller is gone");
}

# Nothing runs before the first use; then one refiller, until the last generator in cached mode is gone.
{
	my $generator = create('first', "'baidu_cached', max_ahead_ms => 32000");
	sql('SELECT uid_next()');
	is(scalar(padders()), 0, 'a generator in cached mode that nobody uses has no refiller');
	my $id = sql("SELECT uid_next('$generator')");
	ok(poll_until('refiller', sub { padders() == 1 }), 'the first use starts it');
	is(sql("SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'uidgen refiller' AND datid IS NOT NULL"), 0, '... without a database');
	is(status($generator, "ring_size || ' ' || (ring_filled * ring_size)::text || ' ' || rejected_takes || ' ' || padded + padded_inline"), '65536 65535 0 1', '... after the first draw the ring is full but for its id');
	is(sql("SELECT uid_encode(d.generated_at, d.datacenter_id, d.worker_id, d.sequence, '$generator') = $id AND d.worker_id = s.worker_id AND generated_at BETWEEN clock_timestamp() - interval '6 s' AND clock_timestamp() + interval '33 s' FROM uid_decode($id, '$generator') d, (SELECT worker_id FROM uid_generator_status WHERE generator = '$generator'::regclass) s"),
		't', '... and the id decodes');
	sql("SELECT uid_generator_drop('$generator')");
	ok(poll_until('gone', sub { padders() == 0 }), 'after DROP the refiller is gone');

	# One draw each is enough, however soon after the last refiller's start or at its end.
	my $session = hold_open($node);
	foreach my $wait (0 .. 9)
	{
		$session->query_safe("SELECT uid_generator_create('soon', 'baidu_cached', max_ahead_ms => 600000); SELECT uid_next('uid_generators.soon')");
		ok(poll_until('refiller', sub { padders() == 1 && status('uid_generators.soon', 'ring_filled') > 0.5 }), 'soon again: there is a refiller') or last;
		sql("SELECT uid_generator_drop('uid_generators.soon')");
		$session->query_safe('SELECT 1');
		poll_until('gone', sub { padders() == 0 }) if $wait < 5;
	}
	$session->quit;
}

# When the ring is empty a call fails, says the row. A new ring is no empty one, also when the refiller fills it at the
# moment in which the first caller finds nothing: it is awake, because another ring is refilled all the time.
{
	my $busy = create('busy', $fast);
	my $loop = background_loop($node, sql => "SELECT count(*) FROM unnest(uid_next_array('$busy', 20000))");
	isnt(refiller($busy), 0, 'a refiller is at work');
	my @new = map { create("new$_", "'baidu_cached', when_ring_empty => 'error'") } 1 .. 60;
	is(join(' ', grep { $_ ne '00000' } map { scalar sqlstate($node, "SELECT uid_next('$_')") } @new), '', 'no first draw of 60 new generators fails');
	stop_loop($loop);
	sql("SELECT uid_generator_drop('$_')") foreach $busy, @new;
}

# Layouts, eight sessions each: unique, right, rising in each session.
foreach my $case (
	[ 'preset', "'baidu_cached'" ],
	[ 'sequence_first', "'sonyflake', mode => 'cached', when_full => 'borrow', sequence_bits => 12, time_bits => 35, epoch => '2026-01-01'" ],
	[ 'millis', "'snowflake', $fast, boost_power => 6" ],
	[ 'one_id', "'snowflake', $fast, sequence_bits => 0, boost_power => 0" ])
{
	my ($name, $how) = @$case;
	my $generator = create($name, $how);
	my $rounds = $name eq 'one_id' ? 30 : 120;
	my @lists = at_once(8, join('', "SELECT uid_next('$generator');\n" x $rounds,
			"BEGIN;\n", "SELECT uid_next('$generator');\n" x $rounds, "SELECT unnest(uid_next_array('$generator', $rounds));\nCOMMIT;\n",
			"SELECT unnest(uid_next_array('$generator', $rounds));\nSELECT uid_next('$generator') FROM generate_series(1, $rounds);\n"));
	my @all = map { @$_ } @lists;
	is(scalar(@all), 8 * 5 * $rounds, "$name: eight sessions draw");
	is(repeated(@all), '', '... no id twice');
	my $array = join ',', @all;
	is(sql("SELECT count(*) FILTER (WHERE uid_encode(d.generated_at, d.datacenter_id, d.worker_id, d.sequence, '$generator') <> id OR d.worker_id <> s.worker_id OR d.sequence >= 1 << g.sequence_bits OR d.generated_at < g.created - interval '6 s')"
			  . " FROM unnest('{$array}'::bigint[]) AS id, uid_decode(id, '$generator') d, uid_generator g JOIN uid_generator_status s USING (generator) WHERE generator = '$generator'::regclass"),
		0, '... each decodes right');
	is(join(' ', grep { my $list = $lists[$_]; grep { $list->[$_] <= $list->[ $_ - 1 ] } 1 .. $#$list } 0 .. $#lists), '', '... rising in each session');
	sql("SELECT uid_generator_drop('$generator')");
}

# Ids rise across sessions, whatever windows these have open and however they draw, and none of the ring is lost between
# them. A generator that is drawn from in the transaction that creates it keeps its ring at the commit.
{
	my @sessions = map { hold_open($node) } 1 .. 3;
	my $ids = sub ($session, $draw) { return split /\n/, $sessions[$session]->query_safe($draw) };
	my @drawn = $ids->(0, "BEGIN; SELECT FROM uid_generator_create('ordered', 'baidu_cached', max_staleness_ms => 600000, max_ahead_ms => 600000);"
		  . " SELECT uid_next('uid_generators.ordered') FROM generate_series(1, 3); COMMIT; SELECT uid_next('uid_generators.ordered')");
	my @draws = ("SELECT uid_next('uid_generators.ordered')", "SELECT uid_next('uid_generators.ordered') FROM generate_series(1, 5)",
		"SELECT unnest(uid_next_array('uid_generators.ordered', 3000))");
	$sessions[2]->query_safe('BEGIN');
	push @drawn, $ids->($_ % 3, $draws[ $_ % 4 == 0 ? 2 : $_ % 2 ]) foreach 1 .. 60;
	is(join(' ', grep { ($drawn[$_] >> 35) * 8192 + ($drawn[$_] & 8191) != ($drawn[ $_ - 1 ] >> 35) * 8192 + ($drawn[ $_ - 1 ] & 8191) + 1 } 1 .. $#drawn), '',
		'position follows position across sessions, from the creating transaction on');
	is(status('uid_generators.ordered', 'discarded_stale'), 0, '... and nothing is too old');
	$_->quit foreach @sessions;
	sql("SELECT uid_generator_drop('uid_generators.ordered')");
}

# One session alone, a refiller that stands still: position follows position, nothing is thrown away.
{
	my $generator = create('quiet', "'baidu_cached', max_staleness_ms => 600000");
	my $pid = refiller($generator);
	# The refiller may have filled it before the calls above ended. Then single calls draw until a refill is due.
	ok(poll_until('full', sub { status($generator, 'ring_filled') == 1 || sql("SELECT count(*) FROM unnest(uid_next_array('$generator', 1000))") < 0 }),
		'a refiller fills the ring');
	my @ids = map { ($_ >> 35) << 13 | ($_ & 8191) } split /\n/, sql("SELECT unnest(uid_next_array('$generator', 30000))");
	is(join(' ', grep { $ids[$_] != $ids[$_ - 1] + 1 } 1 .. 1000), '', 'the ring gives what it holds in order');
	is(status($generator, 'discarded_stale'), 0, '... and nothing is thrown away');
	sql("SELECT uid_generator_alter('$generator', padding_factor => 1, schedule_ms => 50)");
	sql("SELECT uid_next('$generator')");
	my $padded = status($generator, 'padded');
	ok(poll_until('schedule', sub { sql("SELECT uid_next('$generator')"); status($generator, "padded > $padded + 3") eq 't' }),
		'with a schedule: padded although the ring is nearly full');
	sql("SELECT uid_generator_drop('$generator')");
}

# The refiller is ended, stopped, missing.
{
	my $generator = create('padded', "'baidu_cached'");
	my $waits = create('waits', "'baidu_cached', when_ring_empty => 'wait', boost_power => 0");
	my $errs = create('errs', "'baidu_cached', when_ring_empty => 'error', boost_power => 0, max_staleness_ms => 600000");
	my $pid = refiller($generator);
	kill 'TERM', $pid;
	is(scalar(() = sql("SELECT unnest(uid_next_array('$generator', 2000))") =~ /\d+/g), 2000, 'without a refiller calls carry on');
	ok(poll_until('gone', sub { !kill 0, $pid }), 'SIGTERM ends the refiller');
	my $next = refiller($generator);
	ok($next > 0 && $next != $pid, '... and a caller starts another one');

	ok(poll_until('waits', sub { sqlstate($node, "SELECT uid_next('$waits')") eq '00000' }), 'wait: the refiller serves');
	ok(poll_until('errs', sub { sqlstate($node, "SELECT uid_next('$errs')") eq '00000' }), 'error: the refiller serves');
	ok(poll_until('both filled', sub { status($errs, 'ring_filled') > 0 && status($waits, 'ring_filled') > 0 }), 'both rings are filled again');
	is(scalar(padders()), 1, 'there is one refiller for all of them');

	$pid = refiller($generator);
	freeze_process($pid);
	is(scalar(() = sql("SELECT unnest(uid_next_array('$generator', 5000))") =~ /\d+/g), 5000, 'the refiller stands still: pad carries on');
	# What is left of the ring and of the lease comes, then nothing.
	my ($state, $message);
	foreach my $name ($waits, $errs)
	{
		poll_until('empty', sub {
				($state, $message) = sqlstate($node, "SELECT count(*) FROM unnest(uid_next_array('$name', 4096))");
				return $state ne '00000' });
		is($state, '55000', "$name: the ring is empty, an error");
		like($message, qr/the ring of generator "\w+" is empty.*took no id.*when_ring_empty => 'pad'/s, '... with a hint');
		my $before = status($name, "last_time || ' ' || ring_filled");
		my $refused = status($name, 'rejected_takes');
		my $began = Time::HiRes::time();
		is(sqlstate($node, "SELECT uid_next('$name')"), '55000', '... again');
		cmp_ok(Time::HiRes::time() - $began, '>=', 0.3, '... after uidgen.max_wait') if $name eq $waits;
		is(status($name, "last_time || ' ' || ring_filled"), $before, '... and nothing is taken');
		cmp_ok(status($name, 'rejected_takes'), '>', $refused, '... but counted');
	}
	my $session = hold_open($node);
	$session->query_safe("SET uidgen.max_wait = '100s'");
	send_query($session, "SELECT uid_next('$waits') > 0");
	my $event = wait_event($node, 'UidgenRing');
	ok($node->poll_query_until('postgres', "SELECT count(*) = 1 FROM pg_stat_activity WHERE wait_event = '$event' AND query LIKE '%uid_next%' AND pid <> pg_backend_pid()"),
		"a caller that waits for the refiller shows wait event $event");
	thaw($pid);
	is((finish_query($session))[0], 't', '... and gets its id when the refiller goes on');
	$session->quit;
	sql("SELECT uid_generator_drop(g) FROM unnest('{$waits,$errs}'::regclass[]) AS g");
	sql('CREATE DATABASE copied');
	sql('DROP DATABASE copied');
	is(scalar(padders()), 1, 'CREATE and DROP DATABASE pass by a refiller at work');
	sql("SELECT uid_generator_drop('$generator')");
}

# Altered, and in other databases. When the last generator in cached mode is gone, however it ended, the refiller is.
{
	my $session = hold_open($node);
	my $create = "SELECT uid_generator_create('g', 'snowflake', $fast, max_ahead_ms => 600000)";
	my $draw = "SELECT uid_next('uid_generators.g')";
	my $in_workers = "FROM (SELECT uid_next('uid_generators.g') AS id FROM rows OFFSET 0) AS drawn";
	sql('CREATE TABLE rows WITH (parallel_workers = 2) AS SELECT generate_series(1, 2000) AS i');
	$session->query_safe('SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0; SET parallel_leader_participation = off');
	$session->query_safe("BEGIN; $create; $draw; ROLLBACK");
	$session->query_safe("BEGIN; SAVEPOINT s; SAVEPOINT t; $create; RELEASE t; $draw; ROLLBACK TO s; COMMIT");
	is($session->query_safe("BEGIN; $create; SELECT count(DISTINCT id) $in_workers; ROLLBACK"), "uid_generators.g\n2000", 'parallel workers draw, and no id twice');
	sweep();
	ok(poll_until('gone', sub { padders() == 0 }), '... after rollbacks no refiller is left');
	$session->query_safe($create);
	like($session->query_safe("EXPLAIN (COSTS OFF) SELECT count(DISTINCT id) $in_workers"), qr/Gather/, '... in such a plan');
	my @ids = $session->query_safe($draw);
	foreach my $i (1 .. 5)
	{
		$session->query_safe("SELECT uid_generator_alter('uid_generators.g', padding_factor => 10 * $i)");
		push @ids, $session->query_safe("SET uidgen.max_wait = '40s'; $draw");
	}
	is(join(' ', sort { $a <=> $b } @ids), join(' ', @ids), 'altered while in use: ids rise');
	$session->quit;
	sql("SELECT uid_generator_drop('uid_generators.g'); DROP TABLE rows");

	my $small = "'baidu_cached', sequence_bits => 12, boost_power => 0, max_ahead_ms => 600000";
	sql('CREATE DATABASE other');
	sql("CREATE EXTENSION uidgen; SELECT uid_generator_create('g', $small); SELECT uid_generator_create('h', $small); SELECT uid_default_set('uid_generators.h')", 'other');
	my @default = split /\n/, sql("SELECT uid_next() FROM generate_series(1, 100); SELECT uid_next('uid_generators.g')", 'other');
	is(scalar(@default), 101, 'another database draws, by default from a ring');
	is(sql("SELECT count(*) FROM unnest('{" . join(',', @default[0 .. 99]) . "}'::bigint[]) AS id, uid_decode(id) d WHERE d.generated_at < clock_timestamp() + interval '33 s' AND d.worker_id = (SELECT worker_id FROM uid_generator_status WHERE generator = 'uid_generators.h'::regclass)", 'other'), 100, '... which decodes');
	ok(poll_until('a refiller', sub { padders() == 1 }), '... and there is a refiller');
	sql('DROP DATABASE other');
	sweep();
	ok(poll_until('gone', sub { padders() == 0 }), '... the databases are dropped, and the refiller is gone');
}

# DROP and ALTER under load, of which only the drop ends sessions. (001_matrix.t has kill -9.)
{
	my %generators = (one => create('one', "'snowflake', $fast"), many => create('many', "'snowflake', $fast, max_ahead_ms => 600000"));
	my @loops = map { background_loop($node, clients => 2, sql => "SELECT uid_next('$generators{$_}')") } ('one');
	push @loops, background_loop($node, sql => "SET uidgen.max_wait = '100s'; SELECT uid_next('$generators{one}')");
	poll_until('load', sub { !grep { !-s $_ } map { @{ $_->{logs} } } @loops }) or BAIL_OUT('no load');
	sql("SELECT uid_generator_alter('$generators{one}', boost_power => 2, max_staleness_ms => 2000)");
	sql("SELECT uid_next('$generators{one}')");
	sql("SELECT uid_generator_alter('$generators{one}', boost_power => 5)");
	is(sql("SELECT uid_next('$generators{one}') > 0"), 't', 'altered under load: ids come');
	is(status($generators{one}, 'ring_size'), 4096 << 5, '... from the new ring');
	my @more = map { stop_loop($_) } @loops;
	assert_unique(@more);
	@loops = background_loop($node, clients => 3, sql => "SELECT uid_next('$generators{many}')");
	poll_until('load', sub { !grep { !-s $_ } map { @{ $_->{logs} } } @loops }) or BAIL_OUT('no load');
	sql("SELECT uid_generator_drop('$generators{many}')");
	assert_unique(map { stop_loop($_) } @loops);
	is(sql('SELECT 1'), 1, 'dropped under load: the server goes on');
	sql("SELECT uid_generator_drop('$generators{one}')");
}

# No background worker to be had. (056_without_preload.t has a server that does not preload the library.)
{
	my $generator = create('alone', "'baidu_cached'");
	$node->append_conf('postgresql.conf', "max_worker_processes = 0\nmax_parallel_workers = 0\n");
	$node->restart;
	my @ids = map { @$_ } at_once(4, "SELECT uid_next('$generator');\n" x 500);
	my %seen = map { $_ => 1 } @ids;
	is(scalar(keys %seen), 2000, 'max_worker_processes = 0: callers pad');
	is(scalar(padders()), 0, '... there is no refiller');
}

$node->stop;
done_testing();
