# Processes that are killed under load. Clients record each value as they receive it. No value may ever be received
# twice.
#
# Expected: kill -9 of any process leads to PostgreSQL's crash restart. SIGTERM ends one session or delays callers a
# little. Service resumes by itself. No value is issued twice.
use UidgenTest;

my $node = new_server('kill');
sql("SELECT segment_create('killed', 1, 100), count(segment_create('s' || i)) FROM generate_series(1, 300) AS i;"
	  . " SELECT uid_generator_create('ring', mode => 'cached', spread => false)");

# What clients send; each line that comes back is a value with its kind.
my @work = (
	"SELECT 'id ' || uid_next()",
	"SELECT 'id ' || id FROM unnest(uid_next_array(20)) AS id",
	"SELECT 'ring ' || uid_next('uid_generators.ring')",
	"BEGIN; SELECT 'ring ' || uid_next('uid_generators.ring') FROM generate_series(1, 100); COMMIT",
	"SELECT 'value ' || segment_next('killed')",
	"BEGIN; SELECT 'id ' || uid_next(); SELECT 'value ' || segment_next('killed'); SELECT 'id ' || uid_next(); COMMIT",
	"BEGIN READ ONLY; SELECT 'value ' || segment_next('killed') FROM generate_series(1, 30); ROLLBACK",
	# After a crash it makes slots one after another.
	"SELECT 'value s' || i || ' ' || segment_next('s' || i) FROM (SELECT 1 + (random() * 299)::int AS i FROM generate_series(1, 30) OFFSET 0) AS n");

my @logs;

sub pid_of ($type)
{
	if ($type eq 'refiller')
	{
		my @found;
		poll_until('a refiller', sub { @found = background_pids($node, 'refiller') }) or die 'no refiller';
		return $found[0];
	}
	my $which = $type eq 'maker of slots' ? q{query LIKE '%random()%'} : "backend_type = '$type'";
	return sql("SELECT pid FROM pg_stat_activity WHERE $which AND pid <> pg_backend_pid() ORDER BY pid LIMIT 1");
}

sub serves_above ($id, $of_ring)
{
	return try_sql($node, "SELECT uid_next() > $id AND uid_next('uid_generators.ring') > $of_ring AND segment_next('killed') > 0") eq 't';
}

# [signal, process, whether it is a crash restart]
my @rounds = (
	[ 'KILL', 'client backend', 1 ],
	[ 'TERM', 'client backend', 0 ],
	[ 'KILL', 'walwriter', 1 ],
	[ 'KILL', 'checkpointer', 1 ],
	[ 'TERM', 'walwriter', 0 ],
	[ 'KILL', 'client backend', 1 ],
	[ 'KILL', 'refiller', 1 ],
	map { [ 'KILL', 'maker of slots', 1 ] } 1 .. 3);

foreach my $round (@rounds)
{
	my ($signal, $process, $crash) = @$round;
	my @loops = map { background_loop($node, sql => $_) } @work;
	poll_until('every client has received something', sub { !grep { !-s $_ } map { @{ $_->{logs} } } @loops }) or BAIL_OUT('no load');

	my $offset = -s $node->logfile;
	my $pid = pid_of($process);
	my @highest = split /\|/, sql(q{SELECT uid_next(), uid_next('uid_generators.ring')});
	kill $signal, $pid or die "could not send SIG$signal to $pid: $!";
	$node->wait_for_log(qr/all server processes terminated; reinitializing/, $offset) if $crash;
	poll_until("process $pid is gone", sub { !kill 0, $pid });

	# A SIGTERM ends one client at most; the others go on. A crash ends all.
	ok( poll_until('service', sub { serves_above(@highest) }),
		"SIG$signal to a $process: service resumes by itself, above what was drawn before");
	push @logs, stop_loop($_) foreach @loops;
}

# There is a slot for what was drawn from since the last crash, and no other.
is(sql("SELECT count(segment_next('s' || i)) FROM generate_series(1, 300) AS i; SELECT generators, segments FROM uid_stat_server"), "300\n2|301", 'no slot is lost');
ok(poll_until('a refiller', sub { background_pids($node, 'refiller') == 1 }), 'there is one refiller again');

# Values that this test drew itself to look at the service are missing from the logs,
# which can hide a repetition of these few only.
my @lines = map { split /\n/, slurp_file($_) } @logs;
my %received = map { /^(id|value|ring)(?: s\d+)? \d+$/ ? ($1 => 1) : die "not a value: $_" } @lines;
is(join(' ', sort keys %received), 'id ring value', 'clients received values of each kind');
is(repeated(@lines), '', 'no client received what another or the same had received before');

$node->stop;
done_testing();
