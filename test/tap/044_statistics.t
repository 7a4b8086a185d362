# The statistics: ids are counted exactly, although no call counts them, and no counter goes back while sessions draw.
# The server's totals survive what frees a slot. All begin at zero at a start of the server.
use UidgenTest 'preloaded';
use Clients;
use Clock;
use Fleet;

my $node = new_node('primary', conf => "autovacuum = off\nuidgen.max_wait = 100ms\n");
use_fake_clock($node);
start_uidgen($node);

sub of_sequence ($sequence, $columns)
{
	return sql("SELECT $columns FROM uid_stat WHERE sequence = '$sequence'::regclass");
}

sub of_server
{
	return sql("SELECT $_[0] FROM uid_stat_server");
}

# Sessions draw side by side, with batches and subtransactions among their calls. A session that looks on never sees less
# than before, and in the end there are as many ids as the sessions have received.

sql("SELECT uid_generator_create('shared', mode => 'cached', spread => false), segment_create('paced', 1, 10, 20)");
my %statements = (
	'uid_generators.uid_default' => 'SELECT uid_next(), uid_next()',
	'uid_generators.shared' => "BEGIN; SAVEPOINT a; SELECT uid_next('uid_generators.shared'); ROLLBACK TO a;"
	  . " SELECT * FROM unnest(uid_next_array('uid_generators.shared', 5)); ROLLBACK",
	'uid_segments.paced' => "SELECT segment_next('paced')");
# Slots that are freed meanwhile.
my $passing = background_loop($node, sql => "SELECT segment_create('passing'); SELECT segment_next('passing'); SELECT segment_drop('passing')");
my %loops = map { $_ => background_loop($node, clients => 2, sql => $statements{$_}) } sort keys %statements;
my $watcher = hold_open($node);
my ($looks, $backward, $moved) = (0, 0, 0);
my %before;
foreach (1 .. 300)
{
	my $rows = $watcher->query_safe("SELECT sequence::oid, ids, records, flush_wait_time FROM uid_stat UNION ALL"
		  . " SELECT 0, ids, records, flush_wait_time FROM uid_stat_server");
	foreach my $row (split /\n/, $rows)
	{
		my ($sequence, @now) = split /\|/, $row;
		my $last = $before{$sequence} // [ 0, 0, 0 ];
		$looks++;
		$backward++ if grep { $now[$_] < $last->[$_] } 0 .. 2;
		$moved++ if $now[0] > $last->[0];
		$before{$sequence} = \@now;
	}
}
ok($looks > 300 && $moved > 100, 'a session watches while others draw');
is($backward, 0, 'no counter goes back');
my $all = 0;
foreach my $sequence (sort keys %loops)
{
	my $received = 0;
	foreach my $log (stop_loop($loops{$sequence}))
	{
		$received += split /[|\n]/, slurp_file($log);
		is(slurp_file("$log.err"), '', "no error of a session that draws from $sequence") if -s "$log.err";
	}
	is(of_sequence($sequence, 'ids'), $received, "as many ids as sessions received from $sequence");
	$all += $received;
}
my @passed = grep { /^\d+$/ } map { split /\n/, slurp_file($_) } stop_loop($passing);
is(of_server('ids'), $all + @passed, 'the server has their sum, and what dropped segments have counted');

# Refusals by cause, and what the calls have waited for.

sql("SELECT uid_generator_create('clocked'); SELECT uid_next('uid_generators.clocked')");
set_clock($node, '-1h');
is(sqlstate($node, "SELECT uid_next('uid_generators.clocked')"), '55000', 'the clock is behind');
is(of_sequence('uid_generators.clocked', 'refused_clock, refused_rate, clock_waits, clock_wait_time > 50'), '1|0|1|t',
	'a refusal because of the clock, and its wait');
set_clock($node, '+0');
sql("SELECT uid_generator_create('slow', time_bits => 30, tick_us => 60000000, sequence_bits => 0, lease_ms => 60000, max_ahead_ms => 120000)");
my $drawn = 0;
$drawn++ while $drawn < 10 && sqlstate($node, "SELECT uid_next('uid_generators.slow')") eq '00000';
is(of_sequence('uid_generators.slow', 'refused_clock, refused_rate, clock_waits, ids'), "0|1|1|$drawn",
	'drawing faster than the layout allows is another cause');
is(of_server('refused_clock, refused_rate'), '1|1', 'the server has both');

sql("SELECT uid_generator_create('empty', mode => 'cached', spread => false, when_ring_empty => 'error', boost_power => 0)");
my $errors = 0;
foreach (1 .. 50)
{
	my $state = sqlstate($node, "SELECT count(*) FROM unnest(uid_next_array('uid_generators.empty', 1000000))");
	$errors++ if $state ne '00000';
}
ok($errors > 0, 'a batch that is larger than the ring fails');
is(of_sequence('uid_generators.empty', 'refused_ring'), $errors, 'each counts');

# A member of a fleet, whose registry is the server above: away, then there.

set_conf($node, "uidgen.max_wait = 5s");
make_registry($node);
my $member = new_node('member', conf => "uidgen.max_wait = 100ms\n");
join_fleet($member, $node);
$node->stop;
start_uidgen($member);
is(sqlstate($member, 'SELECT uid_next()'), '55000', 'the registry is away');
is($member->safe_psql('postgres', 'SELECT refused_registry, registry_waits, registry_wait_time > 50, ids FROM uid_stat'),
	'1|1|t|0', 'a refusal because of the registry, and its wait');
start_node($node);
set_conf($member, "uidgen.max_wait = 60s");
sql("INSERT INTO uid_registry.segment (name) VALUES ('central')");
$member->safe_psql('postgres', "SELECT segment_attach('central', step => 100, max_step => 100); SELECT count(segment_next('central')) FROM generate_series(1, 2000)");
is($member->safe_psql('postgres', "SELECT ids FROM uid_stat WHERE sequence = 'uid_segments.central'::regclass"), 2000, 'values of an attached segment');

# The registry stops. From PostgreSQL 17 on the wait has a name.
$member->safe_psql('postgres', "SELECT uid_generator_create('late')");
$node->stop;
my $waiter = hold_open($member);
$waiter->query_safe("SET uidgen.max_wait = '1h'");
send_query($waiter, "SELECT uid_next('uid_generators.late') > 0");
my $event = wait_event($member, 'UidgenGrant');
ok($member->poll_query_until('postgres', "SELECT count(*) = 1 FROM pg_stat_activity WHERE wait_event = '$event' AND query LIKE '%late%' AND pid <> pg_backend_pid()"),
	"a call that waits for a grant shows wait event $event");
start_node($node);
is((finish_query($waiter))[0], 't', '... and has its id when the registry is back');
$waiter->quit;
$member->stop;

# The views read the server's memory: no page of a sequence, and no table in proportion to the rows of another one, even
# before the catalogs have statistics.
{
	sql("SELECT segment_create('s' || g), segment_next('s' || g) FROM generate_series(1, 50) g");
	my $pages = 'SELECT sum(blks_read + blks_hit) FROM pg_statio_all_sequences';
	my $reader = hold_open($node);
	$reader->query_safe("SET stats_fetch_consistency = 'none'");
	my $before = $reader->query_safe($pages);
	is($reader->query_safe("SELECT count(name), count(range_left), count(step) FROM segment_status WHERE name ~ '^s[0-9]+\$'"), '50|50|50', 'each segment has a row');
	$reader->query_safe('SELECT pg_stat_force_next_flush()');
	is($reader->query_safe($pages), $before, '... for which no page of a sequence is read');
	$reader->quit;
	my $locked = hold_open($node);
	$locked->query_safe("BEGIN; ALTER SEQUENCE uid_segments.s1 INCREMENT 5");
	is(sql("SELECT range_left FROM segment_status WHERE name = 's1'"), 999, 'a segment that another session alters has a row, too');
	$locked->quit;
	sql("SELECT uid_generator_create('g' || g) FROM generate_series(1, 300) g");
	my $plan = sql('EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) SELECT * FROM uid_generator_status');
	like($plan, qr/uid_live_generators.*loops=30\d/, 'uid_generator_status looks at one generator for each of its rows');
	unlike($plan, qr/Removed by Join Filter/, '... and compares no two of them');
}

# What docs/operations.md says of quiet generators: each draw after the end of a lease waits for a flush, and a longer
# lease is the remedy.
{
	freeze_clock($node);
	sql("SELECT uid_generator_create('quiet'), uid_generator_create('paid', lease_ms => 60000, max_ahead_ms => 60000), segment_create('quiet')");
	my %waits;
	foreach my $second (0 .. 5)
	{
		freeze_clock($node, $second * 2.5);
		sql("SELECT uid_next('uid_generators.quiet'), uid_next('uid_generators.paid'), segment_next('quiet')");
		$waits{$_} .= of_sequence($_, 'flush_waits') foreach 'uid_generators.quiet', 'uid_generators.paid', 'uid_segments.quiet';
	}
	is($waits{'uid_generators.quiet'}, '123456', 'a generator that is drawn from every 2.5 s waits for a flush each time');
	is($waits{'uid_generators.paid'}, '111111', '... but once with a lease of a minute');
	is($waits{'uid_segments.quiet'}, '111111', '... and so does a segment');
	set_clock($node, '+0');
}

# A standby counts what it refuses. Every start begins at zero, whatever came before.

my $standby = standby_of($node, 'standby');
$standby->{uidgen_env} = $node->{uidgen_env};
start_node($standby);
is(sqlstate($standby, 'SELECT uid_next()'), '25006', 'a standby refuses');
is($standby->safe_psql('postgres', 'SELECT refused_standby, ids, generators, segments FROM uid_stat_server'), '1|0|0|0', 'and counts');
$standby->stop;

foreach my $mode ('fast', 'immediate')
{
	sql('SELECT uid_next()');
	cmp_ok(of_server('ids'), '>', 0, "ids before a stop in mode $mode");
	$node->stop($mode);
	start_node($node);
	is(of_server('ids, records, refused_standby, generators, segments'), '0|0|0|0|0', 'a start begins at zero');
	is(sql('SELECT count(*) FROM uid_stat'), 0, 'and without rows');
}
$node->stop;
done_testing();
